"""A reply of a fake provider as what happens in it: events, pauses, and the error that breaks it off.

A script is written by a test, read from a recording, or taken from the small samples that are bundled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib import resources
from itertools import takewhile, zip_longest
from threading import Event as Flag
from typing import IO, Any, Final, Literal, TypeAlias, TypeVar

import attrs

from rxdelta.core import (
    ContentPart,
    Event,
    InvalidValueError,
    MalformedChunkError,
    Message,
    RxDeltaError,
    Seconds,
    TokenUsage,
    ToolCall,
    UnknownWireFormatError,
    block_from_wire,
    check_seconds,
    check_word,
    events as ev,
    grows_by,
    is_call,
    thaw,
    to_events,
)
from rxdelta.core.events import EVENT_TYPES, StreamError
from rxdelta.cutting import splitter_of
from rxdelta.providers import AutoParser, WireFormat, decoder, detect
from rxdelta.recording import LONGEST_WAIT, Line, read_lines
from rxdelta.wire import DONE, write, write_each

Item: TypeAlias = "Event | float | Exception"
"""What happens next in a reply: an event, a pause in seconds, or an error with which the connection breaks."""
Written: TypeAlias = "dict[str, Any] | float | Exception"
"""The same in a format: a chunk, a pause, or an error."""

FakePart: TypeAlias = (
    "str | ContentPart | ToolCall | Event | Seconds | Exception | tuple[ContentPart | ToolCall, ...]"
)
"""A part of a reply that is written as a list."""
FakeReply: TypeAlias = "Message | FakePart | Sequence[FakePart] | tuple[FakeReply, ...]"
"""A reply of a fake provider, see `FakeProvider`."""

E = TypeVar("E")

_ARGUMENTS_BY: Final = 9  # characters
_ENDS: Final = (Exception, ev.StreamError, ev.MessageInterrupted)
_WANTED: Final = (
    "must be a text, a part, a call, a pause in seconds, an exception, a StreamError or another event, "
    "or a tuple of parts that come at a time"
)


@attrs.frozen
class Script:
    """A reply.

    Attributes:
        items: Its events, pauses and error.
        recorded: The format in which it was recorded, and its chunks there.
        number: Which reply of its provider it is, from 1, for errors.
    """

    items: Sequence[Item]
    recorded: tuple[str, Sequence[Written]] | None = None
    number: int = 1

    @property
    def first(self) -> Item | None:
        """The first item that is no pause."""
        return _first(self.items)

    @property
    def events(self) -> list[Event]:
        return [item for item in self.items if not isinstance(item, (int, float, Exception))]

    def written(self, wire_format: str) -> list[Written]:
        """What a stream of this format consists of.

        Raises:
            InvalidValueError: The format can't carry the reply; the error names the reply, and each block and field.
            UnknownWireFormatError: There is no such format.
        """
        if self.recorded is not None and self.recorded[0] == wire_format:
            return [*self.recorded[1]]
        try:
            chunks = iter(write_each(self.events, wire_format, on_error=own_words))
        except InvalidValueError as error:
            message = f"reply {self.number}, {error}"
            raise InvalidValueError(message, field=error.field, value=error.value) from None
        out: list[Written] = []
        for item in self.items:
            if isinstance(item, (int, float, Exception)):
                out.append(item)
            else:
                out += next(chunks)
        return out


def own_words(error: Exception) -> str:
    """What an error says by itself, for writers, which mask it otherwise."""
    return str(getattr(error, "message", error))


def script_of(reply: Any, number: int) -> Script:
    """The script of a reply.

    Args:
        reply: See `FakeProvider`.
        number: Which reply it is, from 1. Ids that are made up have it.

    Raises:
        InvalidValueError: Something is no part of a reply.
    """
    replies = _members(reply, tuple)
    if replies is None:
        return Script(_until_broken(_items(reply, number)))
    if not replies:
        raise _wrong(number, reply, "must not be an empty tuple")
    choices = [_numbered(_items(one, number), choice) for choice, one in enumerate(replies)]
    return Script(_until_broken(_in_turns(choices)))


def _members(value: Any, kind: type[list[Any] | tuple[Any, ...]]) -> list[Any] | None:
    """What a list or a tuple holds; `None` for anything else."""
    return [*value] if isinstance(value, kind) else None


def _until_broken(items: Iterable[Item]) -> tuple[Item, ...]:
    """The items up to the error that ends the stream. An `EOFError` ends it without one."""
    out: list[Item] = []
    for item in items:
        if isinstance(item, EOFError):
            break
        out.append(item)
        if isinstance(item, (Exception, ev.StreamError)):
            break
    return tuple(out)


def _numbered(items: Iterable[Any], choice: int) -> Iterator[Item]:
    for item in items:
        yield attrs.evolve(item, choice=choice) if hasattr(item, "choice") else item


def _in_turns(streams: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """One item of each in turn."""
    nothing = object()
    for turn in zip_longest(*streams, fillvalue=nothing):
        yield from (item for item in turn if item is not nothing)


def _items(reply: Any, number: int) -> list[Item]:
    draft = _Draft(number)
    if isinstance(reply, Message):
        for event in to_events(reply):
            draft.add(*_in_pieces(event, number))
    elif (parts := _members(reply, list)) is not None:
        for part in parts:
            draft.part(part)
    elif isinstance(reply, str):
        draft.text(_words(reply))
    else:
        draft.part(reply)
    return draft.items()


def _in_pieces(event: Event, number: int, index: int | None = None) -> Iterator[Event]:
    """The event, with this index; the start of a block that can grow is followed by its content in pieces.

    A call without an id gets one.
    """
    given: Any = event
    if index is not None and hasattr(event, "index"):
        given = attrs.evolve(given, index=index)
    if not isinstance(given, ev.BlockStart):
        yield given
        return
    content: dict[str, Any] = thaw(given.content)
    block = block_from_wire(content, given.index)
    pieces: list[str] = []
    if isinstance(block, ToolCall):
        args = content.get("args")
        content["id"] = content.get("id") or f"call_{number}_{given.index}"
        if block.type == "tool_call" and isinstance(args, dict):
            content |= {"type": "tool_call_chunk", "args": ""}
            written = json.dumps(args, ensure_ascii=False)
            pieces = [written[at : at + _ARGUMENTS_BY] for at in range(0, len(written), _ARGUMENTS_BY)]
    elif block.type in ("text", "reasoning", "refusal") and content.get(block.type):
        pieces = _words(content[block.type])
        content[block.type] = ""
    yield attrs.evolve(given, content=content)
    for piece in pieces:
        yield grows_by(block)(given.index, piece, choice=given.choice, run_id=given.run_id)


def _words(text: str) -> list[str]:
    splitter = splitter_of("word")()
    return [*splitter.feed(text), *splitter.close()]


class _Draft:
    """The state of a reply's script so far."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._out: list[Item] = []
        self._place = 0  # of the next block
        self._text: int | None = None  # the block that neighbouring texts continue

    def part(self, part: Any) -> None:
        if self._out and isinstance(self._out[-1], (Exception, ev.StreamError)):
            raise _wrong(self._number, part, "must not stand behind the error that ends the reply")
        parts = _members(part, tuple) or [part]
        if all(isinstance(one, (ContentPart, ToolCall)) for one in parts):
            self._end_text()
            self.add(*_in_turns([self._block(one) for one in parts]))
        elif isinstance(part, str):
            self.text([part])
        elif isinstance(part, Exception):
            self._out.append(part)
        elif isinstance(part, (int, float, timedelta)):
            self._out.append(self._pause(part))
        elif type(part) in ev.EVENT_TYPES:
            self._end_text()
            self.add(part)
        else:
            name = part.__name__ if isinstance(part, type) else ""
            raise _wrong(self._number, part, f"must not be a class: {name}(…)" if name else _WANTED)

    def _pause(self, part: float | timedelta) -> float:
        seconds = part.total_seconds() if isinstance(part, timedelta) else part
        if isinstance(part, bool) or not 0 <= seconds < float("inf"):
            raise _wrong(self._number, part, "must be a pause of 0 seconds or more")
        return float(seconds)

    def text(self, pieces: Iterable[str]) -> None:
        if self._text is None:
            self._text = self._place
            self.add(ev.BlockStart(self._text, {"type": "text", "text": ""}))
        self.add(*(ev.TextDelta(self._text, piece) for piece in pieces))

    def _end_text(self) -> None:
        if self._text is not None:
            self.add(ev.BlockFinish(self._text))
            self._text = None

    def _block(self, part: ContentPart | ToolCall) -> list[Event]:
        _, *events, _ = to_events(Message.of("assistant", part))
        index = self._place
        self._place += 1
        return [one for event in events for one in _in_pieces(event, self._number, index)]

    def add(self, *events: Event) -> None:
        for event in events:
            index = getattr(event, "index", None)
            if isinstance(index, int):
                self._place = max(self._place, index + 1)
            self._out.append(event)

    def items(self) -> list[Item]:
        """The reply, with the start and the end that it lacks, and with what a provider says in them."""
        self._end_text()
        head: dict[str, Any] = {"id": f"reply_{self._number}", "model": "fake-model"}
        start = self._find(ev.MessageStart)
        usage: TokenUsage | None = None
        if start is not None:
            place, known = start
            usage = known.usage  # of a message, whose events have it there; providers send it with the end
            own = {name: getattr(known, name) or value for name, value in head.items()}
            self._out[place] = attrs.evolve(known, usage=None, **own)
        elif (first := _first(self._out)) is None or not isinstance(first, (Exception, ev.StreamError)):
            pauses = takewhile(lambda item: isinstance(item, (int, float)), self._out)
            self._out.insert(len([*pauses]), ev.MessageStart(**head))
        end = self._find(ev.MessageFinish)
        if end is not None:
            place, last = end
            known_usage = last.usage or usage or self._usage()
            self._out[place] = attrs.evolve(last, reason=last.reason or self._reason(), usage=known_usage)
        elif not any(isinstance(item, _ENDS) for item in self._out):
            self._out.append(ev.MessageFinish(self._reason(), usage=usage or self._usage()))
        return self._out

    def _find(self, kind: type[E]) -> tuple[int, E] | None:
        return next(((at, item) for at, item in enumerate(self._out) if isinstance(item, kind)), None)

    def _usage(self) -> TokenUsage:
        deltas = (ev.TextDelta, ev.ReasoningDelta, ev.DataDelta, ev.ToolCallDelta)
        return TokenUsage(1, max(1, sum(isinstance(item, deltas) for item in self._out)))

    def _reason(self) -> Literal["tool_use", "stop"]:
        starts = (item.content for item in self._out if isinstance(item, ev.BlockStart))
        return "tool_use" if any(is_call(content) for content in starts) else "stop"


def _first(items: Iterable[Item]) -> Item | None:
    return next((item for item in items if not isinstance(item, (int, float))), None)


def _wrong(number: int, part: object, wrong: str) -> InvalidValueError:
    return InvalidValueError.of([(f"reply {number}", part, wrong)])


def recorded_script(lines: Iterable[Line], speed: float) -> Script:
    """The script of a recording, with its pauses. Its chunks are kept as they are for the format that they have.

    Args:
        lines: Its lines.
        speed: How fast it comes; 0 leaves the pauses out.

    Raises:
        RxDeltaError: Nothing of a reply could be read before this error.
        Exception: What the reading of the lines raises.
    """
    reading = _Reading(speed)
    for line in lines:
        reading.pause_until(line.at)
        if line.kind == "error":
            reading.fail(line.value)
        elif line.kind == "end":
            reading.end()
        else:
            reading.read(line.value)
    return reading.script()


class _Reading:
    """The read part of a recording, as chunks and as events."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._due = 0.0
        self._parser = AutoParser()
        self._decoder = decoder("auto")
        self._format: str | None = None
        self._chunks: list[Written] = []
        self._items: list[Item] = []
        self._broken = False  # a chunk could not be decoded

    def pause_until(self, at: float) -> None:
        due = min(at / self._speed, LONGEST_WAIT) if self._speed else 0.0
        if due > self._due:
            self._add(due - self._due)
            self._due = due

    def read(self, value: Any) -> None:
        """Read a chunk, an event, or a piece of a body."""
        for one in self._parser.feed(value) if isinstance(value, (str, bytes)) else [value]:
            self._read(one)

    def _read(self, chunk: Any) -> None:
        if chunk is not DONE and type(chunk) not in EVENT_TYPES:
            if self._format is None:
                with suppress(UnknownWireFormatError, MalformedChunkError):
                    self._format = detect(chunk)
            self._chunks.append(chunk)
        self._decode(lambda: self._decoder.decode(chunk))

    def _decode(self, decode: Callable[[], Sequence[Event]]) -> None:
        if not self._broken:
            try:
                self._items += decode()
            except RxDeltaError as error:  # in its own format the recording continues
                if self._format is None and not self._items:
                    raise
                self._items.append(error)
                self._broken = True

    def fail(self, error: Exception) -> None:
        """The recorded stream ended with this error."""
        if not any(isinstance(item, StreamError) for item in self._items):  # its reader leaves, as at an end
            self._add(error)
        self._broken = True

    def end(self) -> None:
        """The recorded stream completed."""
        for chunk in self._parser.close():
            self._read(chunk)
        self._decode(self._decoder.close)

    def _add(self, item: float | Exception) -> None:
        self._chunks.append(item)
        if not self._broken:
            self._items.append(item)

    def script(self) -> Script:
        own = None if self._format is None else (self._format, tuple(self._chunks))
        return Script(tuple(self._items), own)


SAMPLES = {
    "weather": "weather.jsonl",
    "forecast": "forecast.jsonl",
    "tides": "tides.sse",
    "overloaded": "overloaded.jsonl",
}
"""The samples and their files. `sample_chunks` gives each of them in any format.

- `weather`: Anthropic Messages; reasoning, text and two tool calls, one after the other:
  `get_forecast(city, country, days, units)` for Lisbon and Oslo, with a list of dates as `days`.
- `forecast`: Anthropic Messages; the answer to `weather` when its tools have run. It calls none.
- `tides`: OpenAI chat as server-sent events; reasoning, text and two tool calls whose fragments interleave:
  `tide_table(port, date)` for Brest and Plymouth.
- `overloaded`: Anthropic Messages; a text that breaks off with an error. It calls no tools.
"""


def open_sample(name: str) -> IO[bytes]:
    """Open a sample's recorded bytes; close the file after reading.

    Raises:
        InvalidValueError: There is no sample of this name.
    """
    check_word("name", name, SAMPLES)
    return (resources.files("rxdelta.testing") / "samples" / SAMPLES[name]).open("rb")


async def sample_chunks(
    name: str = "weather", wire_format: WireFormat | str | None = None, *, pause: Seconds = 0.0
) -> AsyncIterator[Any]:
    """A sample's chunks, as a provider's SDK would return them: as they were recorded, or in another format.

    Two samples call tools, with these arguments. A tool of your own takes them by name, or has `**more`:

    - `weather` calls `get_forecast(city, country, days, units)` twice: `city` is "Lisbon" and "Oslo", `country` "PT" and
      "NO", `days` a list of two dates, `units` "metric".
    - `tides` calls `tide_table(port, date)` twice: `port` is "Brest" and "Plymouth", `date` "2026-11-28".

    `forecast` and `overloaded` call none. `forecast` is the answer when the tools of `weather` have run, and
    `overloaded` breaks off with an error of the provider.

    Args:
        name: One of `SAMPLES`.
        wire_format: One of `rd.providers.FORMATS`, in which `rd.wire.write` then writes the reply; by default, the
            sample's own.
        pause: Seconds, or a `timedelta`, between two chunks.

    Raises:
        InvalidValueError: There is no sample of this name, or the format can't carry it; then no chunk comes.
        UnknownWireFormatError: There is no such format.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> from rxdelta.testing import sample_chunks
        >>> chunks = rd.from_async_iterable(sample_chunks("tides", "gemini"))
        >>> message = asyncio.run(rd.last_value(chunks.pipe(rd.decode("gemini"), rd.scan_deltas(), rd.to_message())))
        >>> [call.name for call in message.tool_calls]
        ['tide_table', 'tide_table']
    """
    between = check_seconds("pause", pause) if pause else 0.0
    chunks = _recorded(name)
    if wire_format is not None and wire_format != detect(chunks[0]):
        events = decoder("auto")
        read = [*(event for chunk in chunks for event in events.decode(chunk)), *events.close()]
        chunks = write(read, wire_format, on_error=own_words)
    for chunk in chunks:
        yield chunk
        if between:
            await asyncio.sleep(between)


def _recorded(name: str) -> list[Any]:
    """The chunks of a sample, without what the SDK would end its stream at."""
    with open_sample(name) as file:
        return [line.value for line in read_lines(file) if line.kind == "value" and line.value is not DONE]


@attrs.frozen(kw_only=True)
class FakeRequest:
    """What a fake provider was asked.

    Attributes:
        wire_format: The format in which the answer is expected.
        path: The path of the URL; empty if the request didn't come to a server.
        body: The JSON object that was sent; empty likewise.
        headers: The headers that were sent, their names in lower case; empty likewise.
        closed: Set when the client has gone away before the end of the reply. `FakeProvider.events` has no client.
    """

    wire_format: str
    path: str = ""
    body: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    closed: Flag = attrs.field(factory=Flag, repr=False, eq=False)
