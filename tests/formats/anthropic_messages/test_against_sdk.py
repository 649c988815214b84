"""Anthropic Messages: the objects of the `anthropic` package, and the messages that it makes of the same streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.anthropic_messages import (
    PING,
    RICH,
    STOP,
    Chunk,
    args,
    block_start,
    block_stop,
    decode,
    message_delta,
    message_start,
    reply,
    text,
    tool_use,
)

from rxdelta.core import events, thaw


def sdk_events(stream: list[Chunk]) -> list[Any]:
    anthropic_types = pytest.importorskip("anthropic.types")
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(anthropic_types.RawMessageStreamEvent)
    return [chunk if chunk == PING else adapter.validate_python(chunk) for chunk in stream]


FULL_USAGE = {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 7}
# Without what the SDK's types know only with more fields.
TYPED = [
    chunk
    for chunk in RICH[1:-2]
    if chunk.get("index") != 7 and chunk.get("delta", {}).get("type") != "citations_delta"
]
TYPED = [message_start(usage=FULL_USAGE, stop_reason=None, stop_sequence=None), *TYPED]
TYPED += [message_delta("tool_use", {"output_tokens": 30}, stop_sequence=None), STOP]


def test_the_sdk_s_objects_give_the_same_events_as_dicts() -> None:
    objects = sdk_events(TYPED)
    assert not any(isinstance(event, dict) for event in objects if event != PING)
    assert decode(*objects) == decode(*TYPED)


def test_the_sdk_s_message_gives_the_same_events_as_the_body() -> None:
    anthropic_types = pytest.importorskip("anthropic.types")
    content = [
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
    ]
    body = message_start(content=content, stop_reason="tool_use", usage=FULL_USAGE, stop_sequence=None)[
        "message"
    ]
    assert decode(anthropic_types.Message.model_validate(body)) == decode(body)


CUT = [
    message_start(usage=FULL_USAGE),
    tool_use(0),
    args(0, '{"lines": ["one", "tw'),
    block_stop(0),
    message_delta("max_tokens", {"output_tokens": 9}),
    STOP,
]
SPLICED = [
    message_start(usage=FULL_USAGE),
    block_start(0, "text", text=""),
    text(0, "Spark"),
    message_start(id="msg_2", usage=FULL_USAGE),
    block_start(0, "text", text=""),
    text(0, "Anew"),
    block_stop(0),
    message_delta("end_turn", {"output_tokens": 9}),
    STOP,
]
WHOLE = [
    message_start(
        content=[{"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}],
        stop_reason="tool_use",
        usage=FULL_USAGE,
    ),
    STOP,
]
REFUSED = [
    message_start(usage=FULL_USAGE),
    block_start(0, "text", text=""),
    block_stop(0),
    message_delta("refusal", {"output_tokens": 2, "input_tokens": 40}),
    STOP,
]


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(RICH, id="rich"),
        pytest.param(TYPED, id="typed"),
        pytest.param(WHOLE, id="whole in its start"),
        pytest.param(REFUSED, id="refused"),
        pytest.param(
            CUT, id="cut off", marks=pytest.mark.skip("the SDK takes arguments cut off for whole ones")
        ),
        pytest.param(
            SPLICED, id="spliced", marks=pytest.mark.skip("the SDK adds the new text to the old block")
        ),
    ],
)
def test_the_message_equals_the_sdk_s_own(stream: list[Chunk]) -> None:
    messages = pytest.importorskip("anthropic.lib.streaming._messages")
    theirs: Any = None
    buffers: dict[int, bytes] = {}
    for chunk in stream:
        if chunk != PING:
            theirs = messages.accumulate_event(
                event=json.loads(json.dumps(chunk)), current_snapshot=theirs, json_bufs=buffers
            )
    mine = reply(*stream).to_message()
    assert (mine.id, mine.model, mine.provider_finish_reason) == (theirs.id, theirs.model, theirs.stop_reason)
    assert mine.usage is not None
    assert (mine.usage.input_tokens, mine.usage.output_tokens) == (
        theirs.usage.input_tokens,
        theirs.usage.output_tokens,
    )
    assert len(mine.blocks) == len(theirs.content)
    for block, other in zip(mine.blocks, theirs.content, strict=True):
        match other.type:
            case "text":
                assert block.text == other.text
                cited = [citation.to_dict() for citation in other.citations or ()]
                assert [thaw(citation.raw) for citation in block.citations] == cited
            case "thinking":
                assert (block.text, block.options["signature"]) == (other.thinking, other.signature)
            case "redacted_thinking":
                assert block.options["data"] == other.data
            case "tool_use" | "server_tool_use":
                assert (block.call_id, block.name, block.arguments) == (other.id, other.name, other.input)
            case _:
                assert block.options["output"] == other.content


def test_every_event_here_is_one_of_the_protocol_s() -> None:
    for event in decode(*RICH):
        assert events.from_dict(event.to_dict()) is not None
