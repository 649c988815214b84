"""Streams whose items hold the chunks of another stream: the table of envelopes, and how they are opened.

An agent's SDK gives each event of the provider in an object of its own, and between them objects that tell of the agent. A
transport may put each chunk into an object as well. The chunks inside are those of an ordinary format.
"""

# An item is an untyped mapping or an object of an SDK: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import attrs

from rxdelta.core import Event, MalformedChunkError
from rxdelta.core.events import ProviderEvent, StreamError
from rxdelta.formats.decoding import Decoder, dumped
from rxdelta.formats.json_values import kept, word
from rxdelta.formats.provider_errors import error_code
from rxdelta.formats.runs import Address, RunsDecoder
from rxdelta.framing import DONE

__all__ = ["Envelope", "as_item", "envelope_of"]


def _nothing(_: Any) -> Sequence[Event]:
    return ()


@attrs.frozen(kw_only=True)
class Envelope:
    """What wraps each chunk of a stream.

    Attributes:
        name: Who wraps them.
        format: The format of the chunks; `None` if it may be any.
        inside: The chunk that an item holds; `None` if it holds none.
        is_own: Whether an item without a chunk shows that the stream has this envelope.
        own: The events of an item without a chunk, once the envelope is known; `None` if such an item is itself a
            chunk, as an error is.
        address: To which run an item belongs, where chunks of several runs come.
        missing: What to do if no item holds a chunk.
    """

    name: str
    format: str | None
    inside: Callable[[Any], Any]
    is_own: Callable[[Any], bool] = lambda _: False
    own: Callable[[Any], Sequence[Event]] | None = _nothing
    address: Callable[[Any], Address | None] | None = None
    missing: str = ""

    def chunk_in(self, item: object) -> Any:
        """The chunk of an item; `None` for an item without one."""
        found = self.inside(item)
        return item if found is None and self.own is None else found

    def decoder(self, make: Callable[[], Decoder]) -> Decoder:
        """A decoder of the items, by decoders of the chunks."""

        def of_one_run() -> Decoder:
            return _Opening(self, make())

        return of_one_run() if self.address is None else RunsDecoder(of_one_run, self.address)


class _Opening:
    """Decodes the chunks in a stream's items."""

    def __init__(self, envelope: Envelope, decoder: Decoder) -> None:
        self._inside, self._own = envelope.inside, envelope.own
        self._decoder = decoder

    def decode(self, item: object, /) -> Sequence[Event]:
        found = self._inside(item)
        if found is not None:
            return self._decoder.decode(found)
        if self._own is None or item is DONE:
            return self._decoder.decode(item)
        return self._own(item)

    def close(self) -> Sequence[Event]:
        return self._decoder.close()


def envelope_of(item: object) -> Envelope | None:
    """The envelope that this item shows; `None` for an ordinary chunk.

    Example:
        >>> found = envelope_of({"type": "raw_response_event", "data": {"type": "response.created"}})
        >>> found.name, found.format
        ('the OpenAI Agents SDK', 'openai-responses')
    """
    return next((one for one in _ENVELOPES if one.inside(item) is not None or one.is_own(item)), None)


def as_item(item: object) -> Mapping[str, Any] | None:
    """An SDK's object as a mapping that decodes to the same events; `None` for an object that is no data.

    It may have objects within.
    """
    kind = type(item)
    if kind.__module__.partition(".")[0] == "claude_agent_sdk" and kind.__name__.endswith(
        ("Message", "Event")
    ):
        data = _field(item, "data")
        return {"type": _line_kind(item), **(data if _is_mapping(data) else _attributes(item) or {})}
    found = dumped(item)
    if found is None:
        found = _attributes(item)
        if (
            found is not None and word(found.get("type")) in _AGENT_EVENTS
        ):  # it holds the agent, with its functions
            return {name: value for name, value in found.items() if isinstance(value, str)}
    return found


def _attributes(item: Any) -> Mapping[str, Any] | None:
    """The fields of an object of a dataclass or of attrs."""
    if isinstance(item, type):
        return None
    if is_dataclass(item):
        return {one.name: getattr(item, one.name) for one in fields(item)}
    return (
        {one.name: getattr(item, one.name) for one in attrs.fields(type(item))}
        if attrs.has(type(item))
        else None
    )


def _is_mapping(item: object) -> bool:
    return type(item) is dict or isinstance(item, Mapping)  # the first is faster


def _field(item: Any, name: str) -> Any:
    return item.get(name) if _is_mapping(item) else getattr(item, name, None)


def _of_type(kind: str, field: str) -> Callable[[Any], Any]:
    """A function that finds the chunk in a field of the items of a type."""
    return lambda item: _field(item, field) if _field(item, "type") == kind else None


# Claude Code, and the Claude Agent SDK, which has a class for each kind of line.


def _line_kind(item: Any) -> str | None:
    if _is_mapping(item):
        return word(item.get("type"))
    kind = type(item)
    if kind.__module__.partition(".")[0] == "claude_agent_sdk":
        return _LINES_OF.get(kind.__name__, "system")
    return None


def _event_in(line: Any) -> Any:
    return _field(line, "event") if _line_kind(line) == "stream_event" else None


def _is_line(line: Any) -> bool:
    if _is_mapping(line):
        return word(line.get("type")) in _LINES and ("session_id" in line or "subtype" in line)
    return _line_kind(line) is not None


def _read_line(line: Any) -> Sequence[Event]:
    """The events of a line without an event: the line as it is, and its error."""
    found: Any = line if _is_mapping(line) else getattr(line, "data", None)
    if not _is_mapping(found):
        found = asdict(line) if is_dataclass(line) and not isinstance(line, type) else {}
    kind = _line_kind(line) or ""
    told = ProviderEvent("claude-code", kind, kept(found))
    if kind != "result" or found.get("is_error") is not True:
        return (told,)
    errors: Any = found.get("errors")
    reasons = [found.get("result"), *(errors if isinstance(errors, (list, tuple)) else ())]
    message = "; ".join(reason for reason in map(word, reasons) if reason)
    reason = word(found.get("subtype"))
    return told, StreamError(
        message or reason or "unknown error", reason, error_code(found.get("api_error_status"))
    )


def _address(line: Any) -> Address | None:
    """The run of a sub-agent's event: the id of the call that started the sub-agent."""
    call = word(_field(line, "parent_tool_use_id"))
    event = _event_in(line) if call else None
    if call is None or event is None:
        return None
    return Address(call, last=_field(event, "type") == "message_stop")


# Transports.


def _object_in(item: Any, name: str) -> Mapping[str, Any]:
    """The object in a field of an item that has no `type`."""
    found = item.get(name) if _is_mapping(item) and "type" not in item else None
    return found if isinstance(found, Mapping) else {}


def _response_in(item: Any) -> Any:
    """The response, with what stands beside it, such as a `traceId`."""
    response = _object_in(item, "response")
    if _GEMINI.isdisjoint(response):
        return None
    return {**{name: value for name, value in item.items() if name != "response"}, **response}


def _json_in(item: Any) -> Any:
    """The JSON in the bytes. In a recording, which is JSON itself, they are in base64."""
    data = _object_in(item, "chunk").get("bytes")
    if not isinstance(data, (bytes, bytearray, str)):
        return None
    try:
        return json.loads(b64decode(data, validate=True) if isinstance(data, str) else data)
    except (ValueError, RecursionError):
        raise MalformedChunkError.at("InvokeModel", "chunk.bytes", "one JSON document", data) from None


_LINES = frozenset(["system", "assistant", "user", "result", "rate_limit_event"])
_LINES_OF: Mapping[str, str] = {
    "StreamEvent": "stream_event",
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "ResultMessage": "result",
    "RateLimitEvent": "rate_limit_event",
    "ConversationResetMessage": "conversation_reset",
}
"""The types of lines by the SDK's classes. All others are kinds of `system`."""

_GEMINI = frozenset(["candidates", "usageMetadata", "promptFeedback", "error"])
_AGENT_EVENTS = frozenset(["run_item_stream_event", "agent_updated_stream_event"])

_ENVELOPES = (
    Envelope(
        name="the OpenAI Agents SDK",
        format="openai-responses",
        inside=_of_type("raw_response_event", "data"),
        is_own=lambda item: word(_field(item, "type")) in _AGENT_EVENTS,
        missing="only Runner.run_streamed(…).stream_events() has the provider's events",
    ),
    Envelope(
        name="Claude Code",
        format="anthropic-messages",
        inside=_event_in,
        is_own=_is_line,
        own=_read_line,
        address=_address,
        missing="ask for the provider's events: include_partial_messages=True, or --include-partial-messages",
    ),
    Envelope(name="chat.completions.stream()", format="openai-chat", inside=_of_type("chunk", "chunk")),
    Envelope(name="Gemini Code Assist", format="gemini", inside=_response_in, own=None),
    Envelope(name="InvokeModel", format=None, inside=_json_in, own=None),
)
