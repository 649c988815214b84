"""Chunks of Anthropic's Messages API for tests, and what the decoder makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import Fold, ProtocolChecker, Snapshot, ToolCall, thaw
from rxdelta.core.events import Event, MessageFinish, MessageStart, ProviderEvent, StreamError
from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder
from rxdelta.formats.calls import knowing_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "CALLER",
    "Chunk",
    "PAGE",
    "PING",
    "RICH",
    "STOP",
    "WEB",
    "args",
    "block_start",
    "block_stop",
    "calls",
    "decode",
    "delta",
    "fold",
    "in_message",
    "message_delta",
    "message_start",
    "reply",
    "text",
    "tool_use",
    "violations",
]

Chunk = dict[str, Any]


def message_start(**fields: Any) -> Chunk:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    return {"type": "message_start", "message": message | fields}


def block_start(index: Any, type: str, **fields: Any) -> Chunk:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **fields}}


def delta(index: Any, type: str, **fields: Any) -> Chunk:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def text(index: int, piece: str) -> Chunk:
    return delta(index, "text_delta", text=piece)


def args(index: int, piece: str) -> Chunk:
    return delta(index, "input_json_delta", partial_json=piece)


def block_stop(index: Any) -> Chunk:
    return {"type": "content_block_stop", "index": index}


def tool_use(index: int, id: str | None = "toolu_1", name: str = "roll", **fields: Any) -> Chunk:
    return block_start(index, "tool_use", id=id, name=name, **({"input": {}} | fields))


def message_delta(stop_reason: str | None, usage: Chunk | None = None, **fields: Any) -> Chunk:
    return {"type": "message_delta", "delta": {"stop_reason": stop_reason, **fields}, "usage": usage or {}}


STOP: Chunk = {"type": "message_stop"}
PING: Chunk = {"type": "ping"}
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
WEB = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "said A"}
PAGE = {"type": "page_location", "document_title": "Doc", "cited_text": "said B", "start_page_number": 3}

RICH: list[Chunk] = [
    message_start(usage={"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 7}),
    PING,
    block_start(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Let me "),
    delta(0, "thinking_delta", thinking="see."),
    delta(0, "signature_delta", signature="c2ln"),
    block_stop(0),
    block_start(1, "redacted_thinking", data="b3BhcXVl"),
    block_stop(1),
    block_start(2, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    args(2, ""),
    args(2, '{"query": '),
    args(2, '"dice"}'),
    block_stop(2),
    block_start(3, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
    block_stop(3),
    block_start(4, "text", text="", citations=[]),
    delta(4, "citations_delta", citation=WEB),
    text(4, "I roll "),
    PING,
    delta(4, "citations_delta", citation=PAGE),
    text(4, "two."),
    block_stop(4),
    tool_use(5, "toolu_1", "roll"),
    args(5, ""),
    block_stop(5),
    PING,
    tool_use(6, "toolu_2", "roll"),
    args(6, '{"sides"'),
    args(6, ": 20}"),
    block_stop(6),
    tool_use(7, "toolu_3", "roll", input={"sides": 6}, caller=CALLER),
    args(7, ""),
    block_stop(7),
    message_delta("tool_use", {"output_tokens": 30}),
    STOP,
]


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = knowing_calls(AnthropicMessagesDecoder())
    decoded = [event for chunk in chunks for event in decoder.decode(chunk)]
    return decoded + list(decoder.close()) if close else decoded


def in_message(*chunks: Chunk) -> list[Event]:
    """The events of chunks in the middle of a message."""
    return decode(message_start(), *chunks, close=False)[1:]


def fold(decoded: Iterable[Event]) -> Snapshot:
    folding = Fold()
    for event in decoded:
        folding.step(event)
    return folding.snapshot


def reply(*chunks: Chunk) -> Snapshot:
    return fold(decode(*chunks))


def calls(snapshot: Snapshot) -> list[tuple[str, str | None, Any]]:
    return [
        (call.type, call.call_id, thaw(call.arguments))
        for call in snapshot.blocks
        if isinstance(call, ToolCall)
    ]


def violations(decoded: Sequence[Event]) -> list[str]:
    """The rules that each message in the events breaks."""
    found: list[str | None] = []
    lifecycle, over = ProtocolChecker(), False
    for event in decoded:
        if over and isinstance(event, MessageStart):
            found.append(lifecycle.close())
            lifecycle = ProtocolChecker()
        over = isinstance(event, (MessageFinish, StreamError)) or (over and isinstance(event, ProviderEvent))
        found.append(lifecycle.check(event))
    found.append(lifecycle.close())
    return [violation for violation in found if violation]
