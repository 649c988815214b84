"""Chat completions: what ends a reply, what says that it broke, and what comes too late."""

from __future__ import annotations

from typing import Any

import pytest
from support.openai_chat import (
    call,
    calls,
    chunk,
    decode,
    fold,
    fragment,
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


def test_the_message_finishes_with_done_though_the_input_goes_on() -> None:
    decoder = rd.providers.decoder("openai-chat")
    decoder.decode(text("a", "stop"))
    assert [type(event) for event in decoder.decode(rd.wire.DONE)] == [MessageFinish]
    late = [usage(), text("b"), {"error": {"message": "no"}}]
    passed_on = [event for chunk in late for event in decoder.decode(chunk)]
    assert [getattr(event, "payload", None) for event in passed_on] == late
    said_before = [rd.wire.DONE, chunk({}), {"id": "c1", "choices": []}]
    assert [event for chunk in said_before for event in [*decoder.decode(chunk), *decoder.close()]] == []


def test_a_choice_that_failed_lets_the_others_finish_first() -> None:
    found = decode(text("a", "error", index=0), text("b", "stop", index=1), usage())
    assert [type(event) for event in found[-3:]] == [MessageFinish, ProviderEvent, StreamError]
    assert (found[-1].choice, fold(found[:-1], 1).status) == (0, "complete")  # type: ignore[union-attr]


def test_the_error_itself_says_more_than_the_reason() -> None:
    found = decode(text("a", "error"), {"error": {"message": "upstream", "code": 502}})
    assert [event for event in found if isinstance(event, StreamError)] == [
        StreamError("upstream", None, "502")
    ]


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


def test_a_fragment_behind_the_message_is_passed_on() -> None:
    bare, piece = call(fragment(1, "", "L", "f")), call(fragment(1, "x"))
    found = decode(text("a"), chunk({}, "stop"), bare, call(fragment(1, "{}")), usage(), piece, piece)
    assert violations(found) == []
    assert [event.payload for event in found[-2:]] == [piece, piece]  # type: ignore[union-attr]
