"""Events → the stream of Anthropic's Messages API, which Claude Code and Anthropic's packages read.

    stream = message_start block* (message_delta message_stop | error)
    block  = content_block_start content_block_delta* content_block_stop

One block is open at a time. A message that has broken off has no `message_stop`, and its open block no end. Blocks are
those that a request would send back, so what goes out and what comes back have one spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from rxdelta.core import DEFAULT_LIMITS, Limits
from rxdelta.formats.anthropic_messages.block_frames import Content
from rxdelta.formats.encoding import Masked, masked
from rxdelta.formats.reply import Counts, ReplyEncoder, Writer
from rxdelta.framing import NamedFrame

__all__ = ["AnthropicMessagesEncoder"]


class MessageFrames(Writer):
    """Writes the frames of one message."""

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.out.append(NamedFrame(type=kind, **fields))

    def start(self, counts: Counts, /) -> None:
        usage = {"input_tokens": 0, "output_tokens": 0, **_usage(counts)}
        message: dict[str, Any] = {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        self.emit("message_start", message=message)

    def end(self, reason: str, counts: Counts, /) -> None:
        delta = {"stop_reason": _REASONS[reason], "stop_sequence": None}
        self.emit("message_delta", delta=delta, usage={"output_tokens": 0, **_usage(counts)})
        self.emit("message_stop")

    def fail(self, message: str, kind: str | None, _: str | None, /) -> None:
        known = kind if kind in _ERRORS or (self.is_provider and kind) else "api_error"
        self.emit("error", error={"type": known, "message": message})


class AnthropicMessagesEncoder(ReplyEncoder[NamedFrame]):
    """The frames of one message.

    Args:
        now: The time, in seconds since 1970; not written.
        new_id: An id for a reply that has none.
        model, tools, on_error, reasoning, limits: As for `rxdelta.to_anthropic_messages`.
        choice: Which of several alternative replies is written.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.AnthropicMessagesEncoder(now=lambda: 1.5, new_id=lambda: "msg_1")
        >>> frames = [frame for event in rd.to_events(rd.Message.of("assistant", "Hi")) for frame in encoder.encode(event)]
        >>> [frame["delta"] for frame in frames if frame["type"] == "content_block_delta"]
        [{'type': 'text_delta', 'text': 'Hi'}]
        >>> [frame["type"] for frame in encoder.close()]
        ['message_delta', 'message_stop']
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None = None,
        tools: Collection[str] | None = None,
        on_error: Masked = masked,
        reasoning: bool = True,
        choice: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        writer = MessageFrames(now=now, new_id=new_id, model=model, tools=tools, reasoning=reasoning)
        super().__init__(writer, Content, on_error=on_error, limits=limits, choice=choice)


def _usage(counts: Counts) -> dict[str, Any]:
    """The counts in Anthropic's form, whose input excludes what a cache reads and writes."""
    found: dict[str, Any] = {theirs: counts[ours] for theirs, ours in _COUNTS.items() if ours in counts}
    if "input_tokens" in found:
        cached = counts.get("cache_read_tokens", 0) + counts.get("cache_write_tokens", 0)
        found["input_tokens"] = max(0, found["input_tokens"] - cached)
    if "output_reasoning_tokens" in counts:
        found["output_tokens_details"] = {"thinking_tokens": counts["output_reasoning_tokens"]}
    return found


_COUNTS: Final[Mapping[str, str]] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
_REASONS: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "tool_use": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "pause": "pause_turn",
}
_ERRORS: Final = frozenset(
    ["overloaded_error", "rate_limit_error", "api_error", "timeout_error", "invalid_request_error"]
)
"""The types of errors that say something to Anthropic's clients, such as when to ask again."""
