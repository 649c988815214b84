"""A reply of a fake provider as what happens in it: events, pauses, and the error that breaks it off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import takewhile, zip_longest
from typing import Any, Final, Literal, TypeAlias, TypeVar

import attrs

from rxdelta.core import (
    ContentPart,
    Event,
    InvalidValueError,
    Message,
    Seconds,
    TokenUsage,
    ToolCall,
    block_from_wire,
    grows_by,
    is_call,
    thaw,
    to_events,
)
from rxdelta.core import events as ev
from rxdelta.cutting import splitter_of
from rxdelta.wire import write_each

__all__ = ["FakePart", "FakeReply", "Item", "Script", "Written", "own_words", "script_of"]

Item: TypeAlias = "Event | float | Exception"
"""What happens next in a reply: an event, a pause in seconds, or an error with which the connection breaks."""
Written: TypeAlias = "dict[str, Any] | float | Exception"
"""The same in a format: a chunk, a pause, or an error."""

FakePart: TypeAlias = (
    "str | ContentPart | ToolCall | Event | Seconds | Exception | tuple[ContentPart | ToolCall, ...]"
)
"""A part of a reply that is told as a list."""
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
        items: What happens in it.
        recorded: The format in which it was recorded, and its chunks there.
        number: Which reply of its provider it is, from 1, for errors.
    """

    items: Sequence[Item]
    recorded: tuple[str, Sequence[Written]] | None = None
    number: int = 1

    @property
    def first(self) -> Item | None:
        """What comes first, but for pauses."""
        return _first(self.items)

    @property
    def events(self) -> list[Event]:
        return [item for item in self.items if not isinstance(item, (int, float, Exception))]

    def written(self, wire_format: str) -> list[Written]:
        """What a stream of this format consists of.

        Raises:
            InvalidValueError: The format can't carry the reply; the error names the reply, and each block and thing.
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
    told = _Told(number)
    if isinstance(reply, Message):
        for event in to_events(reply):
            told.add(*_in_pieces(event, number))
    elif (parts := _members(reply, list)) is not None:
        for part in parts:
            told.part(part)
    elif isinstance(reply, str):
        told.text(_words(reply))
    else:
        told.part(reply)
    return told.items()


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


class _Told:
    """What has been told of a reply so far."""

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
        """The reply, with the start and the end that it hasn't told itself, and with what a provider says in them."""
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
