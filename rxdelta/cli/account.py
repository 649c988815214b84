"""The account of one reply of a recording: its blocks with their times, its oddities, and events in a few words.

A stream may be of any length, so only some of many items are kept, and how densely events came.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from typing import Any, Generic, TypeVar

import attrs

from rxdelta.core import (
    ARGUMENT_FIELDS,
    PIECE_FIELDS,
    TEXT_FIELDS,
    Block,
    Event,
    Fold,
    RxDeltaError,
    Snapshot,
    TokenUsage,
    ToolCall,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)

T = TypeVar("T")

_FARTHEST = 1e15  # bins; a file may claim any time


class Some(Generic[T]):
    """The first and the last of many items.

    Args:
        first: How many of the first items are kept.
        last: How many of the last ones, beyond those.
    """

    def __init__(self, first: int, last: int) -> None:
        self._most = first
        self.first: list[T] = []
        self.last: deque[T] = deque(maxlen=last)
        self._count = 0

    def add(self, item: T) -> None:
        self._count += 1
        if len(self.first) < self._most:
            self.first.append(item)
        else:
            self.last.append(item)

    def __len__(self) -> int:
        """The number of all items, also of those that weren't kept."""
        return self._count

    @property
    def left_out(self) -> int:
        """The number of items between the first ones and the last ones that weren't kept."""
        return self._count - len(self.first) - len(self.last)


class Ticks:
    """How much came where, along an axis whose length isn't known: bins, which double in width when there are too many.

    Args:
        width: The width of the first bins, in units of the axis.
        most: The number of bins that are kept.
    """

    def __init__(self, width: float, most: int = 1000) -> None:
        self._most = most
        self.width = width
        self._bins: dict[int, int] = {}

    def add(self, position: float, weight: int) -> None:
        """Count a weight at a position, which is 0 or more."""
        place = int(min(position / self.width, _FARTHEST))
        self._bins[place] = self._bins.get(place, 0) + weight
        while len(self._bins) > self._most:
            self.width *= 2
            wider: dict[int, int] = {}
            for old, weighed in self._bins.items():
                wider[old // 2] = wider.get(old // 2, 0) + weighed
            self._bins = wider

    def at(self) -> list[tuple[float, int]]:
        """The positions of the bins' beginnings that have something, with their weights, in order."""
        return [(place * self.width, weight) for place, weight in sorted(self._bins.items())]


Described = tuple[str, int, str]
"""What it is, how many characters it adds, and what it says."""

_LONGEST = 300  # characters; a line shows fewer

_TEXTS = ("data", *dict.fromkeys(name for names in TEXT_FIELDS.values() for name in names))
_PIECES = {"args": "arguments"}
_TOTALS = ("input", "output")
_USAGE = (
    ("input_tokens", "input"),
    ("output_tokens", "output"),
    ("cache_read_tokens", "read from cache"),
    ("cache_write_tokens", "written to cache"),
    ("reasoning_tokens", "of reasoning"),
    ("input_audio_tokens", "of audio in"),
    ("output_audio_tokens", "of audio out"),
)


def kind_of(content: Any) -> str:
    """The type of a block, as the wire names it."""
    kind = content.get("type") if content else None
    return kind.removesuffix("_chunk") if isinstance(kind, str) else "block"


def tell(event: Event, kind: str) -> Described:
    """Describe an event.

    Args:
        event: The event.
        kind: The type of its block, if it has one.
    """
    size = characters(event)
    field = PIECE_FIELDS.get(type(event))
    if field is not None:
        return (kind if field == "text" else _PIECES.get(field, field)), size, _quoted(getattr(event, field))
    match event:
        case BlockStart(content=content):
            return f"{kind_of(content)} start", size, _fields(content)
        case BlockDelta(fields=fields):
            return f"{kind} fields", 0, as_json(fields)
        case BlockFinish(content=content):
            return f"{kind} finish", 0, "" if content is None else f"as a whole: {as_json(content)}"
        case MessageStart():
            facts = [
                event.id,
                event.model,
                say_usage(event.usage),
                f"for run {event.parent_run_id}" if event.parent_run_id else "",
            ]
            return "message start", 0, _joined(facts)
        case UsageUpdate(usage=usage):
            return "usage", 0, say_usage(usage)
        case MessageFinish(reason=reason, provider_reason=word):
            said = f"{reason} (the provider's word: {word})" if word not in (None, reason) else reason
            return "message finish", 0, _joined([said, say_usage(event.usage)])
        case StreamError():
            return "error", 0, f"{_words(event.type, event.code)}{event.message}"
        case ToolUpdate():
            result = "" if event.result is None else f"result {as_json(event.result.content)}"
            return (
                "tool update",
                0,
                _joined([event.call_id, event.execution_status, event.display_text, result]),
            )
        case MessageInterrupted(reason=reason):
            return "interrupted", 0, reason or ""
        case AttemptReset():
            return "another attempt", 0, _joined([f"after {event.attempt} failed", event.error])
        case ProviderEvent():
            return (
                "provider's own",
                0,
                _joined([event.provider, event.name, as_json(event.payload) if event.payload else ""]),
            )
        case Custom():
            return "custom", 0, f"{event.name} {as_json(event.data)}"
        case _:  # the pieces, which stand above
            return kind, size, ""


def characters(event: Event) -> int:
    """How many characters of content an event adds, or the whole content has that it replaces."""
    field = PIECE_FIELDS.get(type(event))
    if field is not None:
        return len(getattr(event, field))
    content = event.content if isinstance(event, (BlockStart, BlockFinish)) else None
    pieces = [] if content is None else [content.get(name) for name in (*_TEXTS, *ARGUMENT_FIELDS)]
    return sum(
        len(piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False))
        for piece in pieces
        if piece
    )


def as_json(value: object, most: int = _LONGEST) -> str:
    """A value on one line, cut after so many characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}…"


def say_usage(usage: TokenUsage | None) -> str:
    """The counts of a usage that are known."""
    if usage is None:
        return ""
    counts = [(name, getattr(usage, field)) for field, name in _USAGE]
    said = [f"{count:,} {name}" for name, count in counts if count or (count == 0 and name in _TOTALS)]
    return f"tokens: {', '.join(said)}" if said else ""


def _quoted(text: str) -> str:
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return json.dumps(cut, ensure_ascii=False)


def _fields(content: Any) -> str:
    shown = {
        name: value for name, value in content.items() if name != "type" and value not in (None, "", {}, [])
    }
    return as_json(shown) if shown else ""


def _words(kind: str | None, code: str | None) -> str:
    words = "/".join(word for word in (kind, code) if word)
    return f"{words}: " if words else ""


def _joined(parts: list[str | None]) -> str:
    return " · ".join(part for part in parts if part)


_GAPS = 40  # the longest ones are kept
_ENDED = ("completed", "failed")


@attrs.frozen(order=True)
class Place:
    """When something came: the seconds, and the number of the event."""

    at: float
    number: int


@attrs.frozen
class Gap:
    """A time in which nothing came."""

    seconds: float
    begin: Place
    end: Place


@attrs.define
class Span:
    """The run of a call's tool."""

    begin: Place
    end: Place | None = None
    status: str = ""


@attrs.frozen
class Row:
    """An event, or a chunk of which no event was made, as it is shown.

    Attributes:
        at: When it came.
        gap: The seconds since the row before came; `None` for the first.
        lane: The run and the choice, if they have a name and a number; otherwise empty.
        index: The block's index, if it is an event of a block.
        what: What it is, in words.
        size: The characters that it adds.
        says: What it says, in short.
        broken: The rule of the event protocol that it breaks.
        chunk: The chunk that it came of, if it is the chunk's first row.
        is_event: Whether it is an event.
    """

    at: Place
    gap: float | None
    lane: str
    index: Any
    what: str
    size: int
    says: str
    broken: str | None = None
    chunk: Any = None
    is_event: bool = True


@attrs.define
class BlockAccount:
    """A block with its times.

    Attributes:
        index: The index of its events.
        kind: Its type.
        begin, end: When its first and its last event came.
        deltas: The number of its pieces.
        size: Its characters, as far as they came in pieces.
        by_time, by_number: The characters of its pieces by the second, and by the number of the event.
        runs: The runs of its tool, if it is a call.
        rows: Some of its events.
        attempt: The number of attempts that had failed before.
        block: Its last state; `None` if an event named it that breaks a rule.
    """

    index: Any
    kind: str
    begin: Place
    end: Place
    attempt: int
    deltas: int = 0
    size: int = 0
    by_time: Ticks = attrs.Factory(lambda: Ticks(0.001))
    by_number: Ticks = attrs.Factory(lambda: Ticks(1))
    runs: list[Span] = attrs.Factory(list[Span])
    rows: Some[Row] = attrs.Factory(lambda: Some[Row](60, 20))
    block: Block | None = None

    @property
    def name(self) -> str:
        """The name of the call's tool; of a block of an unknown type, that type."""
        if isinstance(self.block, ToolCall):
            return self.block.name or ""
        kind = self.block.options.get("type") if self.block is not None else None
        return kind if self.kind == "unsupported" and isinstance(kind, str) else ""


class Account:
    """One reply: a choice of a message of a run.

    Attributes:
        run_id, choice: Whose it is.
        snapshot: The reply so far.
        blocks: Its blocks in the order of their starts, those of failed attempts included.
        events: The number of its events.
        begin, end: When its first and its last event came; `None` before them.
        content: When the first and the last piece came.
        first_text: When the first piece of a text came.
        gaps: The longest gaps between its events.
        broken: The rules that its events break, with how often.
        own: The names of the provider's own events, with how often.
        marks: What happened to the reply and not to a block of it: when, and what in words.
        error: What ended it, if that was no finish.
    """

    def __init__(self, run_id: str | None, choice: int) -> None:
        self.run_id, self.choice = run_id, choice
        self.snapshot = Snapshot()
        self.blocks: list[BlockAccount] = []
        self.events = 0
        self.begin: Place | None = None
        self.end: Place | None = None
        self.content: tuple[Place, Place] | None = None
        self.first_text: Place | None = None
        self.gaps: list[Gap] = []
        self.broken: Counter[str] = Counter()
        self.own: Counter[str] = Counter()
        self.marks: Some[tuple[Place, str, str]] = Some(150, 50)
        self.error: BaseException | None = None
        self._fold: Fold | None = Fold()
        self._current: dict[Any, BlockAccount] = {}
        self._executing: dict[str, Span] = {}

    def take(self, event: Event, at: Place) -> None:
        """Note an event of this reply."""
        self.events += 1
        if self.end is not None:
            keep_longest(self.gaps, Gap(at.at - self.end.at, self.end, at))
        self.begin = self.begin or at
        self.end = at
        if isinstance(event, AttemptReset):
            self._settle()
            self._current = {}
        if self._fold is not None:
            try:
                self.snapshot = self._fold.step(event)
            except RxDeltaError as error:  # a limit: the rest is listed, and not folded
                self.error, self._fold = error, None
        if isinstance(event, (BlockStart, BlockDelta, BlockFinish, *PIECE_FIELDS)):
            self._take_block(event, at)
        elif isinstance(event, ToolUpdate):
            self._take_update(event, at)
        elif isinstance(event, ProviderEvent):
            self.own[event.name] += 1

    def kind_at(self, index: Any) -> str:
        """The type of the block with this index."""
        known = self._current.get(index)
        return "block" if known is None else known.kind

    def block_at(self, index: Any) -> BlockAccount | None:
        """The block with this index of the present attempt."""
        return self._current.get(index)

    def close(self) -> None:
        """Find out what has become of the blocks."""
        self._settle()
        if self.error is None and (broken := self.snapshot.violations):
            for name, count in broken.items():
                self.broken[name] = max(self.broken[name], count)

    @property
    def is_whole(self) -> bool:
        """Whether it is complete, or was cut by its length."""
        return self.error is None and self.snapshot.status in ("complete", "length")

    @property
    def longest_gap(self) -> Gap | None:
        """The longest time in which nothing of it came."""
        return self.gaps[0] if self.gaps else None

    @property
    def tokens_per_second(self) -> float | None:
        """Output tokens per second, from the first piece of content to the last; `None` if their number isn't the last word."""
        usage = self.snapshot.usage
        if usage is None or usage.output_tokens is None or self.content is None or not self.is_whole:
            return None
        seconds = self.content[1].at - self.content[0].at
        return usage.output_tokens / seconds if seconds > 0 else None

    def _take_block(self, event: Any, at: Place) -> None:
        known = self._current.get(event.index)
        if known is None:
            content = getattr(event, "content", None)
            known = BlockAccount(event.index, kind_of(content), at, at, self.snapshot.attempt)
            self.blocks.append(known)
            self._current[event.index] = known
        elif isinstance(event, BlockFinish) and event.content is not None and "type" in event.content:
            known.kind = kind_of(event.content)
        known.end = at
        # A finish may have the whole content once more.
        size = 0 if known.size and isinstance(event, BlockFinish) else characters(event)
        known.deltas += type(event) in PIECE_FIELDS
        known.size += size
        if size:
            known.by_time.add(at.at, size)
            known.by_number.add(at.number, size)
            self.content = (self.content[0] if self.content else at, at)
            if known.kind == "text":
                self.first_text = self.first_text or at

    def _take_update(self, event: ToolUpdate, at: Place) -> None:
        status = event.execution_status or ""
        span = self._executing.get(event.call_id)
        if span is None:
            if not status or status == "identified":
                return
            owner = self._caller(event.call_id)
            if owner is None:
                return
            span = self._executing[event.call_id] = Span(at)
            owner.runs.append(span)
        span.end, span.status = at, status or span.status
        if status in _ENDED:
            del self._executing[event.call_id]

    def _caller(self, call_id: str) -> BlockAccount | None:
        for block in self.snapshot.blocks:
            if isinstance(block, ToolCall) and block.call_id == call_id:
                return self._current.get(block.key)
        return None

    def _settle(self) -> None:
        for block in self.snapshot.blocks:
            if (known := self._current.get(block.key)) is not None:
                known.block, known.kind = block, block.type


def keep_longest(gaps: list[Gap], gap: Gap) -> None:
    """Add a gap to a list of the longest ones, the longest first."""
    if gap.seconds > 0 and (len(gaps) < _GAPS or gap.seconds > gaps[-1].seconds):
        gaps.append(gap)
        gaps.sort(key=lambda one: -one.seconds)
        del gaps[_GAPS:]
