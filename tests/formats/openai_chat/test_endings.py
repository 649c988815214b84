"""Chat completions: what ends a reply, what says that it broke, and what comes too late."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from support.openai_chat import (
    USAGE,
    call,
    calls,
    chunk,
    decode,
    fold,
    fragment,
    reply,
    text,
    usage,
    violations,
)

import rxdelta as rd
from rxdelta.core.events import MessageFinish, ProviderEvent, StreamError


@pytest.mark.parametrize("end", [rd.wire.DONE, usage()], ids=["done", "usage"])
@pytest.mark.parametrize("reason", [None, ""])
def test_what_says_that_nothing_follows_completes_a_reply_without_a_reason(
    end: Any, reason: str | None
) -> None:
    found = decode(text("a"), text("b", reason), end)
    assert violations(found) == []
    message = fold(found).to_message()
    assert (message.text, message.finish_reason, message.provider_finish_reason) == ("ab", "stop", None)
    assert message.metadata["finish_reason_assumed"] is True
    asked = fold(decode(call(fragment(0, "", "a", "f")), call(fragment(0, "{}")), end))
    assert (calls(asked.to_message()), asked.finish_reason) == ([("a", "f", {})], "tool_use")


@pytest.mark.parametrize("reason", [None, ""])
def test_a_body_without_a_reason_is_whole(reason: str | None) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": reason}
    for kind in ({}, {"object": "chat.completion"}):
        found = decode({"id": "c1", "model": "m", "choices": [choice], **kind})
        assert (fold(found).status, fold(found).metadata["finish_reason_assumed"]) == ("complete", True)


def test_a_body_may_have_an_empty_delta_beside_its_message() -> None:
    empty, message = {"role": "assistant", "content": ""}, {"role": "assistant", "content": "a"}
    body = {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": empty, "message": message}]}
    assert (fold(decode(body)).text, fold(decode(body)).status) == ("a", "complete")


def test_a_message_that_grows_beside_the_deltas_is_no_whole_body() -> None:
    def both(delta: str, so_far: str) -> Any:
        choice = {"index": 0, "delta": {"content": delta}, "message": {"content": so_far}}
        return {"id": "c1", "model": "m", "choices": [choice]}

    found = fold(decode(both("", ""), both("a", "a"), both("b", "ab")))
    assert (found.text, found.status) == ("ab", "incomplete")


def test_a_reason_isnt_called_assumed() -> None:
    assert "finish_reason_assumed" not in fold(decode(text("a", "stop"), rd.wire.DONE)).metadata


def test_the_message_finishes_with_done_though_the_input_goes_on() -> None:
    decoder = rd.providers.decoder("openai-chat")
    decoder.decode(text("a", "stop"))
    assert [type(event) for event in decoder.decode(rd.wire.DONE)] == [MessageFinish]
    late = [usage(), text("b"), {"error": {"message": "no"}}]
    passed_on = [event for chunk in late for event in decoder.decode(chunk)]
    assert [getattr(event, "payload", None) for event in passed_on] == late
    said_before = [rd.wire.DONE, chunk({}), {"id": "c1", "choices": []}]
    assert [event for chunk in said_before for event in [*decoder.decode(chunk), *decoder.close()]] == []


def test_done_alone_is_no_message() -> None:
    assert decode(rd.wire.DONE) == []


BROKEN = ["insufficient_system_resource", "network_error", "error", "abort", "MALFORMED_FUNCTION_CALL",
          "function_call_filter: UNEXPECTED_TOOL_CALL"]  # fmt: skip


@pytest.mark.parametrize("end", [usage(), rd.wire.DONE, None])
@pytest.mark.parametrize("word", BROKEN)
def test_a_reason_that_says_that_the_provider_failed_is_an_error(word: str, end: Any) -> None:
    broken = [text("a"), call(fragment(0, '{"x":', "a", "f")), chunk({}, word, usage=USAGE)]
    found = decode(*broken, *([] if end is None else [end]))
    error = found[-1]
    assert isinstance(error, StreamError)
    assert (error.code, error.transient) == (word, True)
    snapshot = fold(found[:-1])
    assert (snapshot.text, snapshot.status, snapshot.usage is not None) == ("a", "incomplete", True)
    assert [block.type for block in snapshot.blocks] == ["text", "invalid_tool_call"]
    with pytest.raises(rd.ProviderError) as caught:
        rx.from_iterable([*broken, *([] if end is None else [end])]).pipe(
            rd.decode("openai-chat"), rd.scan_deltas()
        ).run()
    assert caught.value.snapshot == snapshot
    assert rd.errors.is_transient(caught.value)


def test_a_choice_that_failed_lets_the_others_finish_first() -> None:
    found = decode(text("a", "error", index=0), text("b", "stop", index=1), usage())
    assert [type(event) for event in found[-3:]] == [MessageFinish, ProviderEvent, StreamError]
    assert (found[-1].choice, fold(found[:-1], 1).status) == (0, "complete")  # type: ignore[union-attr]


def test_the_error_itself_says_more_than_the_reason() -> None:
    found = decode(text("a", "error"), {"error": {"message": "upstream", "code": 502}})
    assert [event for event in found if isinstance(event, StreamError)] == [
        StreamError("upstream", None, "502")
    ]


def test_under_length_only_the_newest_call_was_cut_off() -> None:
    parallel = [
        call(fragment(0, '{"x":1}', "a", "f")), call(fragment(1, "", "b", "g")), call(fragment(2, "{}", "c", "h")),
    ]  # fmt: skip
    message = reply(*parallel, chunk({}, "length"), usage())
    assert calls(message) == [("a", "f", {"x": 1})]
    assert [bad.call_id for bad in message.invalid_tool_calls] == ["b", "c"]


def test_pause_is_a_reason_of_its_own() -> None:
    message = reply(text("a", "pause_turn"), usage())
    assert (message.status, message.finish_reason) == ("complete", "pause")


@pytest.mark.parametrize(
    "late", [fragment(0, '{"x"'), fragment(None, '{"x"'), fragment(7, '{"x"'), fragment(3, '{"x"', "a")]
)
def test_arguments_after_the_end_of_their_call_make_it_invalid(late: Any) -> None:
    ended = [call(fragment(0, "{}", "a", "f")), chunk({}, "tool_calls")]
    rest = call(fragment(0, ":1}"))
    found = decode(*ended, call(late), rest, usage())
    assert violations(found) == []
    (bad,) = fold(found).invalid_tool_calls
    assert (bad.call_id, bad.arguments, bad.metadata["late_arguments"]) == ("a", {}, '{"x"')
    assert [event.payload for event in found if isinstance(event, ProviderEvent)] == [rest]
    assert fold(found).tool_calls == ()


@pytest.mark.parametrize(
    "ended",
    [
        [call(fragment(0, "", "a", "f")), chunk({}, "tool_calls")],
        [text("a", "stop"), call(fragment(0, "{}", "a", "f"))],  # the call is late already
    ],
)
def test_arguments_after_the_end_of_the_message_are_passed_on(ended: list[Any]) -> None:
    late = [call(fragment(0, '{"x"')), call(fragment(0, ":1}"))]
    found = decode(*ended, usage(), *late)
    assert violations(found) == []
    assert [event.payload for event in found if isinstance(event, ProviderEvent)] == late
    assert [known.arguments for known in fold(found).tool_calls] == [{}]


def test_a_call_that_has_run_stays_though_arguments_come_too_late() -> None:
    ended = [call(fragment(0, "{}", "a", "f")), chunk({}, "tool_calls"), call(fragment(0, '{"x":1}'))]
    events = rx.from_iterable(ended).pipe(rd.decode("openai-chat"), rd.run_tools({"f": lambda: "ran"}))
    snapshot = events.pipe(rd.scan_deltas()).run()
    (ran,) = snapshot.tool_calls
    assert (ran.arguments, ran.result.content) == ({}, "ran")
    assert ran.metadata["arguments_changed_after_run"] is True


def test_a_fragment_behind_the_message_is_passed_on() -> None:
    bare, piece = call(fragment(1, "", "L", "f")), call(fragment(1, "x"))
    found = decode(text("a"), chunk({}, "stop"), bare, call(fragment(1, "{}")), usage(), piece, piece)
    assert violations(found) == []
    assert [event.payload for event in found[-2:]] == [piece, piece]  # type: ignore[union-attr]


def test_azures_filtered_body_has_no_message() -> None:
    choice = {
        "content_filter_results": {"hate": {"filtered": True}},
        "finish_reason": "content_filter",
        "index": 0,
    }
    body = {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice]}
    assert rd.providers.detect(body) == "openai-chat"
    assert fold(decode(body)).to_message().finish_reason == "content_filter"
