"""The event protocol: our events in their wire form, older spellings, and the agent protocol's envelope."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from formats.langchain.chunks import USAGE, Chunk, chunk, decoded, folded
from support.replies import ANTHROPIC, OPENAI

import rxdelta as rd


@pytest.mark.parametrize(
    ("wire_format", "chunks"), [("openai-chat", OPENAI), ("anthropic-messages", ANTHROPIC)]
)
def test_our_own_events_in_their_wire_form_are_read_again(wire_format: str, chunks: list[Chunk]) -> None:
    decoder = rd.providers.decoder(wire_format)
    events = [*(event for one in chunks for event in decoder.decode(one)), *decoder.close()]
    assert decoded(*(event.to_dict() for event in events)) == events
    assert {rd.providers.detect(event.to_dict()) for event in events} == {"langchain"}


EVENTS: list[rd.events.Event] = [
    rd.events.MessageStart("m", "model", rd.TokenUsage(1, 2), {"a": 1}),
    rd.events.BlockStart("lc_0", {"type": "text", "text": ""}),
    rd.events.BlockStart(-1, {"type": "text", "text": ""}, choice=2),
    rd.events.TextDelta(0, "Hi"),
    rd.events.ReasoningDelta(0, "Hm"),
    rd.events.DataDelta(0, "AA"),
    rd.events.ToolCallDelta(0, "{"),
    rd.events.BlockDelta(0, {"a": 1}),
    rd.events.BlockFinish(0),
    rd.events.BlockFinish(0, {"type": "text", "text": ""}),
    rd.events.UsageUpdate(rd.TokenUsage(1, 2)),
    rd.events.MessageFinish("stop", "end_turn", rd.TokenUsage(1, 2), {"a": 1}),
    rd.events.MessageFinish("length", "max_tokens"),
    rd.events.ProviderEvent("p", "n", {"a": 1}),
    rd.events.ToolUpdate("c", "completed", "done"),
    rd.events.MessageInterrupted("stop"),
    rd.events.AttemptReset(1, "boom"),
    rd.events.StreamError("boom", "overloaded", "529"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_each_event_survives(event: rd.events.Event) -> None:
    assert decoded(event.to_dict()) == [event]
    snake = {**event.to_dict(), "event": event.event.replace("-", "_")}
    assert decoded(snake) == [event]


def test_older_spellings() -> None:
    delta = {"event": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    assert decoded(delta) == [rd.events.TextDelta(0, "Hi")]
    older = {"event": "content-block-delta", "index": 0, "content_block": {"type": "text", "text": "Hi"}}
    assert decoded(older) == [rd.events.TextDelta(0, "Hi")]
    finish = {"event": "message-finish", "reason": "stop", "responseMetadata": {"a": 1}}
    assert decoded(finish) == [rd.events.MessageFinish("stop", None, None, {"a": 1})]


def test_the_finish_of_pythons_events_has_its_reason_in_the_metadata() -> None:
    (event,) = decoded({"event": "message-finish", "metadata": {"stop_reason": "max_tokens"}})
    assert isinstance(event, rd.events.MessageFinish)
    assert (event.reason, event.provider_reason) == ("length", "max_tokens")


def test_what_an_event_says_beside_is_not_lost() -> None:
    found = {"event": "message-finish", "reason": "stop", "additional_kwargs": {"signatures": {"c": "s"}}}
    (event,) = decoded(found)
    assert isinstance(event, rd.events.MessageFinish)
    assert rd.core.thaw(event.metadata) == {"additional_kwargs": {"signatures": {"c": "s"}}}
    delta = {
        "event": "content-block-delta",
        "index": 0,
        "delta": {"type": "text-delta", "text": "a"},
        "node": "n",
    }
    (text,) = decoded(delta)
    assert text == rd.events.TextDelta(0, "a")
    assert text.to_dict() == delta


def test_an_event_of_unknown_make_passes_on() -> None:
    assert decoded({"event": "heartbeat", "n": 1}, close=False) == [
        rd.events.ProviderEvent("", "heartbeat", {"event": "heartbeat", "n": 1})
    ]


def test_an_error_ends_the_stream() -> None:
    assert decoded(
        {"event": "error", "message": "boom", "code": "x", "more": 1}, {"event": "message-start"}
    ) == [rd.events.StreamError("boom", None, "x")]


def test_the_agent_protocols_envelope() -> None:
    event = {"event": "message-start", "role": "ai", "id": "m"}
    wrapped = {
        "type": "event",
        "method": "messages",
        "params": {"namespace": [], "timestamp": 1, "data": event},
    }
    assert decoded(wrapped) == [rd.events.MessageStart("m")]
    assert rd.providers.detect(wrapped) == "langchain"
    (other,) = decoded({**wrapped, "method": "values"})
    assert isinstance(other, rd.events.ProviderEvent)


@pytest.mark.parametrize(
    "found",
    [
        {"event": "content-block-start", "index": None},
        {"event": "content-block-start", "index": 1.5},
        {"event": "content-block-delta", "index": True, "delta": {"type": "text-delta", "text": "a"}},
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": 1}},
        {"event": "message-start", "id": 1},
        {"event": "message-finish", "reason": []},
    ],
)
def test_a_malformed_event_is_named(found: Chunk) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        decoded(found)
    assert caught.value.wire_format == "langchain"


def test_langchains_own_bridge_to_the_events_says_the_same() -> None:
    """Its events are of the standard parts, so that a stream of them must fold to what its chunks do."""
    bridge = pytest.importorskip("langchain_core.language_models._compat_bridge")
    messages = pytest.importorskip("langchain_core.messages")
    outputs = pytest.importorskip("langchain_core.outputs")
    standard: list[Chunk] = [
        chunk([{"type": "reasoning", "reasoning": "Hm", "index": 0}], id="m1"),
        chunk([{"type": "text", "text": "Hi", "index": 1}]),
        chunk([{"type": "tool_call_chunk", "id": "c", "name": "f", "args": '{"a":', "index": 2}]),
        chunk([{"type": "tool_call_chunk", "id": None, "name": None, "args": "1}", "index": 2}]),
        chunk(
            [], usage_metadata=USAGE, response_metadata={"finish_reason": "tool_calls"}, chunk_position="last"
        ),
    ]
    for one in standard:
        one["response_metadata"] = {**one.get("response_metadata", {}), "output_version": "v1"}
    made = [outputs.ChatGenerationChunk(message=messages.AIMessageChunk(**one)) for one in standard]
    by_events = folded(*bridge.chunks_to_events(iter(made)))
    by_chunks = folded(*standard)
    assert [block.text for block in by_events.blocks if isinstance(block, rd.ContentPart)] == ["Hm", "Hi"]
    assert by_events.to_message().blocks == by_chunks.to_message().blocks
    assert by_events.usage == by_chunks.usage
    assert (by_events.finish_reason, by_events.id) == (by_chunks.finish_reason, by_chunks.id)


def test_a_foreign_tools_channel_is_read() -> None:
    def frame(**found: Any) -> Chunk:
        return {
            "type": "event",
            "method": "tools",
            "params": {"namespace": [], "timestamp": 1, "data": found},
        }

    assert decoded(
        frame(event="tool-started", tool_call_id="c", tool_name="f", input={}),
        frame(event="tool-output-delta", tool_call_id="c", delta="a"),
        frame(event="tool-output-delta", tool_call_id="c", delta="b"),
        frame(event="tool-output-delta", tool_call_id="c", delta={"done": 1}),
        frame(event="tool-finished", tool_call_id="c", output={"n": 1}),
        frame(event="tool-error", tool_call_id="d", message="no", code="x"),
    ) == [
        rd.events.ToolUpdate("c", "executing"),
        rd.events.ToolUpdate("c", "executing", None, rd.ToolResult("c", "a")),
        rd.events.ToolUpdate("c", "executing", None, rd.ToolResult("c", "ab")),
        rd.events.ToolUpdate("c", "executing", None, rd.ToolResult("c", {"done": 1})),
        rd.events.ToolUpdate("c", "completed", None, rd.ToolResult("c", {"n": 1})),
        rd.events.ToolUpdate("d", "failed", None, rd.ToolResult("d", "no", is_error=True)),
    ]
    assert isinstance(decoded(frame(event="tool-paused", tool_call_id="c"))[0], rd.events.ProviderEvent)
    for wrong in (
        {"event": "tool-started", "tool_call_id": None},
        {"event": "tool-started", "tool_call_id": "c", "display_text": 1},
        {"event": "tool-finished", "tool_call_id": "c", "result": 1},
        {"event": "tool-finished", "tool_call_id": "c", "result": {"duration": "x"}},
    ):
        with pytest.raises(rd.errors.MalformedChunkError):
            decoded(frame(**wrong))


def start(content: Chunk) -> Chunk:
    return {"event": "content-block-start", "index": 0, "content": content}


def envelope(method: str, data: Chunk) -> Chunk:
    return {"type": "event", "method": method, "params": {"data": data}}


@pytest.mark.parametrize(
    "found",
    [
        start({"type": [1]}),
        start({"type": {}}),
        start({"type": "text", "refusal": True, "assumed": ["refusal"]}),
        start({"type": "image", "base64": "AA", "assumed": ["base64"]}),
        start({"type": "text", "text": "a", "annotations": [], "assumed": ["annotations"]}),
        envelope("tools", {"event": [1], "tool_call_id": "c"}),
        envelope("custom", {"name": "rxdelta", "payload": {"event": 1}}),
    ],
)
def test_fields_of_the_wrong_type_give_events_or_our_errors(found: Chunk) -> None:
    with suppress(rd.RxDeltaError):
        assert decoded(found)
