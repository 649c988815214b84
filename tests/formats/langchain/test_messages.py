"""The message as a whole: how it begins and ends, its id, model, metadata and usage."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
import reactivex.operators as ops
from formats.langchain.chunks import Chunk, chunk, decoded, folded, message

import rxdelta as rd


def test_a_chunk_that_says_nothing_waits_for_the_providers_id() -> None:
    assert decoded(chunk(id="lc_run--1")) == []
    assert message(chunk(id="lc_run--1"), chunk("Hi", id="msg_1"))["id"] == "msg_1"


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


# Whole messages.


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


def test_an_id_of_the_provider_behind_those_of_the_run_is_the_same_reply() -> None:
    chunks = [chunk("a", id=OWN[0]), chunk("b", id="msg_1"), chunk("c", id=OWN[0], chunk_position="last")]
    assert folded(*chunks).text == "abc"
