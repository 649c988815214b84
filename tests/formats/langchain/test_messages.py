"""The message as a whole: how it begins and ends, its id, model, metadata and usage."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
import reactivex.operators as ops
from formats.langchain.chunks import BODY, LAST, STREAM, USAGE, Chunk, call, chunk, decoded, folded, message

import rxdelta as rd


def test_text_goes_on_in_one_block() -> None:
    told = message(chunk("Hel", id="m1"), chunk("lo", id="m1"))
    assert told["id"] == "m1"
    assert told["blocks"] == [{"type": "text", "text": "Hello"}]
    assert told["finish_reason"] == "stop"


def test_a_chunk_that_says_nothing_waits_for_the_providers_id() -> None:
    assert decoded(chunk(id="lc_run--1")) == []
    assert message(chunk(id="lc_run--1"), chunk("Hi", id="msg_1"))["id"] == "msg_1"


def test_a_providers_id_that_comes_late_is_told_with_the_finish() -> None:
    told = message(chunk("Hi", id="lc_run--1"), chunk("!", id="msg_1"))
    assert (told["id"], told["metadata"]) == ("lc_run--1", {"message_id": "msg_1"})


def test_usage_is_added_up_and_each_event_has_the_sum() -> None:
    half = {**USAGE, "input_token_details": {"cache_read": 1}}
    events = decoded(chunk("a", usage_metadata=half), chunk("b", usage_metadata=half))
    told = [event.usage for event in events if isinstance(event, rd.events.UsageUpdate)]
    assert [(usage.input_tokens, usage.output_tokens) for usage in told] == [(3, 2), (6, 4)]
    assert told[-1].raw["input_token_details"]["cache_read"] == 2


def test_of_metadata_the_last_value_counts() -> None:
    told = message(
        chunk("a", response_metadata={"model_name": "m", "service_tier": "x", "logprobs": {"content": [1]}}),
        chunk("b", response_metadata={"model_name": "m", "service_tier": "y", "logprobs": {"content": [2]}}),
    )
    assert told["model"] == "m"
    assert told["metadata"] == {"service_tier": "y", "logprobs": {"content": [1, 2]}}


def test_a_model_that_is_named_late_is_told_with_the_finish() -> None:
    assert message(chunk("a"), chunk("", response_metadata={"model_name": "m"}))["model"] == "m"


@pytest.mark.parametrize(
    ("metadata", "reason", "said"),
    [
        ({"finish_reason": "stop"}, "stop", "stop"),
        ({"finish_reason": "length"}, "length", "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length", "MAX_TOKENS"),
        ({"finish_reason": "SAFETY"}, "content_filter", "SAFETY"),
        ({"stop_reason": "end_turn"}, "stop", "end_turn"),
        ({"stop_reason": "max_tokens"}, "length", "max_tokens"),
        ({"stop_reason": "refusal"}, "content_filter", "refusal"),
        ({"stopReason": "guardrail_intervened"}, "content_filter", "guardrail_intervened"),
        ({"done_reason": "stop"}, "stop", "stop"),
        ({"status": "completed"}, "stop", "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
        ),
    ],
)
def test_the_reason_is_what_the_provider_wrote_into_the_metadata(
    metadata: Chunk, reason: str, said: str
) -> None:
    reply = folded(chunk("a"), chunk("", response_metadata=metadata))
    assert (reply.finish_reason, reply.provider_finish_reason) == (reason, said)
    assert reply.status == ("length" if reason == "length" else "complete")


def test_a_stream_without_an_end_is_incomplete() -> None:
    assert folded(chunk("a")).status == "incomplete"


def test_the_last_chunk_ends_the_message_at_once() -> None:
    events = decoded(chunk("a"), LAST, chunk("", id="m"), chunk("late"), close=False)
    assert [event.event for event in events[-3:]] == ["content-block-finish", "message-finish", "provider"]
    assert isinstance(events[-1], rd.events.ProviderEvent)
    assert events[-1].payload["content"] == "late"


def test_a_finish_reason_ends_the_calls_and_the_usage_may_follow() -> None:
    whole = call('{"a": 1}', id="i", name="f")
    before = decoded(
        chunk(tool_call_chunks=[whole], response_metadata={"finish_reason": "tool_calls"}), close=False
    )
    assert [event.event for event in before][-1] == "content-block-finish"
    reply = folded(
        chunk(tool_call_chunks=[whole], response_metadata={"finish_reason": "tool_calls"}),
        chunk(usage_metadata=USAGE),
    )
    assert reply.usage is not None
    assert (reply.finish_reason, reply.usage.input_tokens) == ("tool_use", 3)


# Whole messages.


def test_a_message_that_was_not_streamed_is_the_same() -> None:
    assert folded(BODY).to_message() == folded(*STREAM).to_message()


def test_a_whole_message_keeps_its_calls_where_the_content_has_them() -> None:
    body = {
        "type": "ai",
        "content": [
            {"type": "tool_use", "id": "i", "name": "f", "input": {"a": 1}},
            {"type": "text", "text": "and"},
            {"type": "tool_use", "id": "j", "name": "g", "input": {}},
        ],
        "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "i"}, {"name": "g", "args": {}, "id": "j"}],
        "invalid_tool_calls": [{"name": "h", "args": "{", "id": "k", "error": "broken"}],
    }
    told = folded(body).to_message().to_dict()["blocks"]
    assert [one["type"] for one in told] == ["tool_call", "text", "tool_call", "invalid_tool_call"]
    assert (told[3]["arguments"], told[3]["error"]) == ("{", "broken")


def test_the_whole_message_after_its_chunks_changes_nothing() -> None:
    reply = folded(*STREAM, BODY)
    assert reply == folded(*STREAM)


def test_messages_of_others_pass_on() -> None:
    (event,) = decoded({"type": "human", "content": "Hi"}, close=False)
    assert isinstance(event, rd.events.ProviderEvent)


# Two replies one after the other, as LangGraph's tuples without their metadata.

OWN = ("lc_run--1", "lc_run--2")
PROVIDERS = ("msg_1", "msg_2")


def texts_of_replies(*chunks: Chunk) -> list[str]:
    texts: list[str] = []
    rx.from_iterable(chunks).pipe(
        rd.decode("langchain"),
        rd.group_by_message(),
        ops.flat_map(lambda reply: reply.pipe(rd.scan_deltas(), ops.last())),
    ).subscribe(lambda snapshot: texts.append(snapshot.text), on_error=pytest.fail)
    return texts


@pytest.mark.parametrize(
    "end", [{"chunk_position": "last"}, {"response_metadata": {"finish_reason": "stop"}}]
)
@pytest.mark.parametrize(("first", "second"), [OWN, PROVIDERS, ("run-1", "run-2")])
def test_a_chunk_behind_the_end_with_another_id_begins_another_reply(
    first: str, second: str, end: dict[str, Any]
) -> None:
    chunks = [
        chunk(text, id=own_id, **more)
        for own_id in (first, second)
        for text, more in (("a ", {}), (own_id, end))
    ]
    assert texts_of_replies(*chunks) == [f"a {first}", f"a {second}"]
    with pytest.raises(rd.ProtocolError):
        rx.from_iterable(chunks).pipe(rd.decode("langchain"), rd.scan_deltas()).run()


def test_whole_messages_of_two_replies_are_two() -> None:
    answer = {"type": "tool", "tool_call_id": "c", "content": "done"}
    one, two = ({"type": "ai", "id": own_id, "content": own_id} for own_id in PROVIDERS)
    assert texts_of_replies(one, answer, two) == list(PROVIDERS)


def test_a_reply_in_another_is_refused() -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match="LangGraph's tuples"):
        decoded(chunk("a", id=OWN[0]), chunk("b", id=OWN[1]), chunk("c", id=OWN[0]))


def test_a_server_that_has_a_new_id_for_each_chunk_writes_one_reply() -> None:
    chunks = [chunk(text, id=f"msg_{n}") for n, text in enumerate("abc")]
    end = chunk(id="msg_3", response_metadata={"finish_reason": "stop"})
    assert folded(*chunks, end, chunk(id="msg_4", usage_metadata=USAGE)).text == "abc"


def test_an_id_of_the_provider_behind_those_of_the_run_is_the_same_reply() -> None:
    chunks = [chunk("a", id=OWN[0]), chunk("b", id="msg_1"), chunk("c", id=OWN[0], chunk_position="last")]
    assert folded(*chunks).text == "abc"
