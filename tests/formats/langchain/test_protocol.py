"""The event protocol: our events in their wire form, older spellings, and the agent protocol's envelope."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.chunks import Chunk, decoded

import rxdelta as rd


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


def test_an_error_ends_the_stream() -> None:
    assert decoded(
        {"event": "error", "message": "boom", "code": "x", "more": 1}, {"event": "message-start"}
    ) == [rd.events.StreamError("boom", None, "x")]


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
