"""Streams that aren't a format as its provider sends it: envelopes around the chunks, look-alikes, and text that repeats.

An agent's SDK gives each event of the provider in an object of its own, and between them objects about the agent. A transport
may put each chunk into an object as well. The chunks inside are those of an ordinary format: the table is `_ENVELOPES`.

A stream that only looks like a known format is refused by name, instead of giving an empty message.

Some gateways repeat the whole text so far, where the format wants only the new text. `CumulativeDecoder` wraps a decoder of any format.
It keeps the text, since a repetition can only be recognised by comparing it with the text before.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Literal, TypeAlias

import attrs

from rxdelta.core import (
    Event,
    InvalidValueError,
    MalformedChunkError,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
)
from rxdelta.formats.decoding import Decoder, Json, dumped, kept, word
from rxdelta.formats.endings import error_code
from rxdelta.formats.runs import Address, RunsDecoder
from rxdelta.framing import DONE

# An item is an untyped mapping or an object of an SDK: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


def _nothing(_: Any) -> Sequence[Event]:
    return ()


@attrs.frozen(kw_only=True)
class Envelope:
    """The envelope around each chunk of a stream.

    Attributes:
        name: The program that wraps them.
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
    event = ProviderEvent("claude-code", kind, kept(found))
    if kind != "result" or found.get("is_error") is not True:
        return (event,)
    errors: Any = found.get("errors")
    reasons = [found.get("result"), *(errors if isinstance(errors, (list, tuple)) else ())]
    message = "; ".join(reason for reason in map(word, reasons) if reason)
    reason = word(found.get("subtype"))
    return event, StreamError(
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


def refuse_stranger(chunk: Json) -> None:
    """Raise if the chunk is of a protocol that is known to be no format here.

    Raises:
        MalformedChunkError: It is. The error says what the protocol is, and what to use instead.

    Example:
        >>> refuse_stranger({"type": "text-delta", "id": "0", "delta": "Hello"})
        >>> refuse_stranger({"type": "text-delta", "id": "0", "text": "Hello"})
        Traceback (most recent call last):
        rxdelta.core.errors.MalformedChunkError: this is a stream of the AI SDK's own parts (fullStream), which is no format here...
    """
    for is_stranger, what in _STRANGERS.items():
        if is_stranger(chunk):
            raise MalformedChunkError(f"this is {what}")


# OpenAI Realtime.


def _is_realtime(chunk: Json) -> bool:
    """Whether it is an event of OpenAI Realtime. It shares names with Responses, whose events have a number and no id."""
    kind: Any = chunk.get("type")
    if not isinstance(kind, str):
        return _is_realtime_object(chunk)
    if kind.startswith("response.output_audio"):
        return True
    if kind.startswith(_REALTIME) and "event_id" in chunk and "sequence_number" not in chunk:
        return True
    return any(_is_realtime_object(chunk.get(name)) for name in ("response", "item", "session"))


def _is_realtime_object(value: object) -> bool:
    kind: Any = value.get("object") if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(kind, str) and kind.startswith("realtime.")


_REALTIME = (
    "response.",
    "session.",
    "conversation.",
    "input_audio_buffer.",
    "output_audio_buffer.",
    "rate_limits.",
)

# Relatives of the AI SDK's UI message stream, which share the types of its chunks.


def _is_full_stream(chunk: Json) -> bool:
    """Whether it is a part of `fullStream`, also of version 4, or of a model of the AI SDK's."""
    kind: Any = chunk.get("type")
    fields = _PARTS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        return False
    shown, not_with = fields
    return not_with not in chunk and any(name in chunk for name in shown)


_PARTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "text-delta": (("text", "textDelta"), "delta"),
    "reasoning-delta": (("text",), "delta"),
    "reasoning": (("textDelta",), "delta"),
    "tool-input-start": (("id",), "toolCallId"),
    "tool-input-delta": (("id",), "toolCallId"),
    "tool-call": (("toolCallId",), "id"),
    "tool-result": (("toolCallId",), "id"),
    "tool-error": (("toolCallId",), "id"),
    "file": (("file",), "url"),
    "start-step": (("request", "warnings"), "messageId"),
    "stream-start": (("warnings",), "messageId"),
}
"""The parts by their types: the fields of which each has one, and the field that it has in another protocol.

`TextStreamPart` in https://github.com/vercel/ai/tree/main/packages/ai/src/generate-text
"""


def _is_mastra(chunk: Json) -> bool:
    """Whether it is one of Mastra's chunks, which wrap their fields (mastra.ai/reference/streaming/ChunkType)."""
    return (
        isinstance(chunk.get("type"), str)
        and isinstance(chunk.get("from"), str)
        and isinstance(chunk.get("payload"), Mapping)
    )


_STRANGERS: Mapping[Callable[[Json], bool], str] = {
    _is_realtime: (
        "a stream of OpenAI Realtime, which is no format here: it is a session of sound, with many replies. "
        "For a reply as text use the Responses API, or write a decoder of your own"
    ),
    _is_mastra: (
        "a stream of Mastra's own chunks, which is no format here: let the server send the AI SDK's UI messages, "
        "by chatRoute() or toAISdkStream() of @mastra/ai-sdk, and use decode('ai-sdk')"
    ),
    _is_full_stream: (
        "a stream of the AI SDK's own parts (fullStream), which is no format here: let the server send its UI messages, "
        "by result.toUIMessageStreamResponse() or result.toUIMessageStream(), and use decode('ai-sdk')"
    ),
}
"""How each is known, and what the error says."""


Cumulative: TypeAlias = Literal["auto"] | bool
"""Whether each delta repeats the text before it: always, never, or as the deltas show."""

Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta

_SURE = 8
"""So many characters are not repeated by chance. While fewer are, deltas are held until the next one decides."""


def check_cumulative(value: object) -> None:
    if value not in (True, False, "auto") or not isinstance(value, (bool, str)):
        raise InvalidValueError.of([("cumulative", value, 'must be True, False or "auto"')])


class CumulativeDecoder:
    """Another decoder's events, with the repetitions removed from texts, reasonings and arguments.

    Example:
        >>> import rxdelta as rd
        >>> decoder = rd.providers.decoder("openai-chat", cumulative=True)
        >>> for text in ("Hel", "Hello", "Hello!"):
        ...     for event in decoder.decode({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}):
        ...         if isinstance(event, rd.events.TextDelta):
        ...             print(event.text)
        Hel
        lo
        !
    """

    def __init__(self, decoder: Decoder, *, guess: bool) -> None:
        self._decoder = decoder
        self._guess = guess
        self._texts: dict[tuple[object, ...], _Text] = {}

    def decode(self, chunk: object, /) -> Sequence[Event]:
        return self._without_repetitions(self._decoder.decode(chunk))

    def close(self) -> Sequence[Event]:
        held = [event for text in self._texts.values() for event in text.release()]
        return [*held, *self._without_repetitions(self._decoder.close())]

    def _without_repetitions(self, decoded: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        for event in decoded:
            if isinstance(event, TextDelta):
                out += self._next(event, event.text, "text")
            elif isinstance(event, ReasoningDelta):
                out += self._next(event, event.reasoning, "reasoning")
            elif isinstance(event, ToolCallDelta):
                out += self._next(event, event.args, event.index)
            else:
                if isinstance(event, BlockDelta) and "args" in event.fields:
                    # The decoder has seen a repetition itself: these are all the arguments so far.
                    self._texts.pop((event.choice, ToolCallDelta, event.index), None)
                if isinstance(event, BlockFinish):
                    for text in self._texts.values():
                        if (text.index, text.choice) == (event.index, event.choice):
                            out += text.release()
                out.append(event)
        return out

    def _next(self, event: Delta, piece: str, which: object) -> list[Event]:
        """All text blocks of a choice are one text here. So are its reasonings; each call's arguments are another."""
        key = (event.choice, type(event), which)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = _Text(event, guess=self._guess)
        return text.next(event, piece)


class _Text:
    """One text. `_repeats` is `None` until the deltas show whether they repeat it."""

    def __init__(self, event: Delta, *, guess: bool) -> None:
        self.index, self.choice = event.index, event.choice
        self._make = _MAKE[type(event)]
        self._field = _FIELD[type(event)]
        self._repeats: bool | None = None if guess else True
        self._text = ""
        self._held: list[str] = []

    def next(self, event: Delta, text: str) -> list[Event]:
        if self._repeats is False:
            return [event]
        released = self.release() if event.index != self.index else []
        another = event.index != self.index
        self.index = event.index
        if self._repeats is None:
            return released + self._decide(text)
        return released + self._emit(text, another=another)

    def release(self) -> list[Event]:
        """Release held deltas as ordinary text: no later delta decided whether they repeat."""
        held, self._held = self._held, []
        self._text += "".join(held)
        return [self._piece(text) for text in held]

    def _decide(self, text: str) -> list[Event]:
        before = self._held[-1] if self._held else self._text
        if not before:
            self._text = text
            return [self._piece(text)] if text else []
        if not text.startswith(before):
            released = self.release()
            self._repeats, self._text = False, ""
            return [*released, self._piece(text)]
        if len(before) < _SURE:
            self._held.append(text)
            return []
        self._repeats, self._held = True, []
        return self._emit(text, another=False)

    def _emit(self, text: str, *, another: bool) -> list[Event]:
        before = self._text
        if text.startswith(before):
            self._text = text
            return [self._piece(text[len(before) :])] if len(text) > len(before) else []
        if another or not before:
            self._text = text
            return [self._piece(text)]
        if before.startswith(text):  # it arrived after a longer one
            return []
        if self._field == "args" and not text.lstrip().startswith("{"):
            self._text += text  # the decoder has seen that they were said again, and gives only what is new
            return [self._piece(text)]
        self._text = text
        return [BlockDelta(self.index, {self._field: text}, choice=self.choice)]

    def _piece(self, text: str) -> Event:
        return self._make(self.index, text, self.choice)


_MAKE: dict[type, Callable[[Any, str, int], Event]] = {
    TextDelta: text_delta,
    ReasoningDelta: reasoning_delta,
    ToolCallDelta: tool_call_delta,
}
_FIELD = {TextDelta: "text", ReasoningDelta: "reasoning", ToolCallDelta: "args"}
