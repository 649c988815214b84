"""The marble diagrams in docstrings: read, run in virtual time, and written out again from what happened.

A diagram is the literal block behind the first sentence of an operator's docstring::

    values  ab-c------d--e|
            throttle_latest(0.4)
    values  a---c-----d---[e|]

The rows above the call are what goes in, the rows below it are what comes out. The lines are those of
`rxdelta.testing.marbles`, with a frame of 0.1 s. The first row's name says what flows:

- `events`, and every name that isn't below: model events.
- `values` and the like (`VALUES`): a character, or a literal of Python in `<…>`, is a value.
- `snapshots`: a character is a snapshot that has this text.
- `reply`: a literal is a piece of the reply's text; the events around it are implied.

The first row flows through the call, unless the call names it: then the call is a stream itself, as `race(first, second)`.
Other rows are in the call by their names. A row `look()` is a function: each call returns the next row of this name, or
the only one. Below the call `store()` is a function, whose calls are noted, and `from 0.5s` is a reader that comes later. A
stream that is emitted gets a row of its own. A row that begins later stands further to the right.

Values other than events are written as `<…>`, `shown` says how, or as a character where that is their whole text.
Of more than three values at one moment the first and the last are written.

    python tests/support/diagrams.py NAME …     the operators' diagrams as they should be
"""

from __future__ import annotations

import inspect
import json
import logging
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import zip_longest
from typing import Any

import attrs
from reactivex import Observable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.scheduler.scheduler import Scheduler

import rxdelta as rd
from rxdelta import operators
from rxdelta.core.events import EVENT_TYPES
from rxdelta.testing import marbles

__all__ = ["FRAME", "Diagram", "Lane", "diagram_in", "diagram_of", "ran", "shown", "written"]

FRAME = 0.1
HORIZON = 20.0  # seconds, after which a diagram is left
VALUES = ("values", "signal", "reply", "bytes", "chunks", "frames", "look()", "check()")
EMPTY = "…"  # a state that has nothing to show yet
DONE = " ✓"  # behind a state that is complete, or can't change any more
MOST = 3  # values at one moment; of more, the first and the last are written
NO_MARKS = "-|#[]()<> "  # what a character of a line can't be

BLOCK = re.compile(r"(?:\A|\n)::\n\n((?: {4}.*\n?)+)")
ROW = re.compile(r"    ([^\W\d]\w*(?:\(\))?(?: [\w.]+)?)  +(\S.*)")
CALL = re.compile(r"     +(\S.*)")


@dataclass(frozen=True)
class Diagram:
    """A diagram as it is written: rows of name and line, and the call between them."""

    above: tuple[tuple[str, str], ...]
    call: str
    below: tuple[tuple[str, str], ...]


@dataclass
class Lane:
    """What happened on one row.

    Attributes:
        name: The row's name.
        records: What came; the times count from the diagram's beginning. Of states that look alike at one moment, and of
            empty ones, only the last is kept.
        begin: When it was subscribed; `None` if it never was.
        left: When it was disposed before its end.
        unread: What it would have said after that.
        spelled: Of what goes in, what the line has; `None` for what comes out.
    """

    name: str
    begin: float | None = 0.0
    records: list[marbles.Record] = field(default_factory=list)
    left: float | None = None
    unread: list[marbles.Record] = field(default_factory=list)
    spelled: list[marbles.Record] | None = None

    @property
    def says_events(self) -> bool:
        return any(type(value) in EVENT_TYPES for _, _, value in self.told)

    @property
    def told(self) -> list[marbles.Record]:
        """What the line says; the times count from its begin."""
        if self.spelled is not None:
            return self.spelled
        return [(round(at - (self.begin or 0.0), 6), kind, value) for at, kind, value in self.records]


def diagram_in(text: str) -> Diagram | None:
    """The diagram of a docstring, which stands behind its first sentence."""
    found = BLOCK.search(text)
    if found is None or "\n\n" in text[: found.start()]:
        return None
    above: list[tuple[str, str]] = []
    below: list[tuple[str, str]] = []
    call = ""
    for line in found[1].rstrip().splitlines():
        if row := ROW.fullmatch(line):
            (below if call else above).append((row[1], row[2]))
        elif called := CALL.fullmatch(line):
            call = f"{call} {called[1]}".strip()
        else:
            raise ValueError(f"no row and no call: {line!r}")
    return Diagram(tuple(above), call, tuple(below))


@cache
def diagram_of(name: str) -> Diagram | None:
    """The diagram of an operator."""
    return diagram_in(inspect.getdoc(getattr(operators, name)) or "")


def ran(diagram: Diagram) -> tuple[list[Lane], list[Lane]]:
    """The lanes of what went in and of what came out, in virtual time."""
    time = VirtualTimeScheduler()
    begin = time.now

    def now() -> float:
        return round((time.now - begin).total_seconds(), 6)

    sources = [(name, _parsed(name, line)) for name, line in diagram.above]
    colds = [marbles.cold(_told(name, records), time) for name, records in sources]
    names: dict[str, Any] = {"rd": rd, **vars(operators), "slow": partial(Slow, time)}
    for name in dict.fromkeys(name for name, _ in diagram.above):
        mine = [cold for cold, (other, _) in zip(colds, sources, strict=True) if other == name]
        names[name.removesuffix("()")] = _each(mine) if name.endswith("()") else mine[0]

    outputs: list[Lane] = []
    streams: list[object] = []

    def record(name: str, source: Observable[Any]) -> Lane:
        lane = Lane(name, now())
        outputs.append(lane)

        def take(value: Any) -> None:
            if isinstance(value, Observable):
                streams.append(value)
                record(_stream_name(value), value)
            else:
                lane.records.append((now(), "next", value))

        source.subscribe(
            take,
            lambda error: lane.records.append((now(), "error", error)),
            lambda: lane.records.append((now(), "completed", None)),
            scheduler=time,
        )
        return lane

    noted = [Lane(name) for name, _ in diagram.below if name.endswith("()")]
    for lane in noted:
        names[lane.name.removesuffix("()")] = partial(_note, lane, now)
    made: Any = eval(diagram.call, names)
    first = diagram.above[0][0].removesuffix("()")
    if not re.search(rf"\b{first}\b", diagram.call):
        made = colds[0].pipe(*(made if isinstance(made, tuple) else (made,)))
    readers = [name for name, _ in diagram.below if not name.endswith("()")]
    record(readers[0], made)
    for name in readers[1:]:
        if later := re.fullmatch(r"from ([\d.]+)s", name):
            time.schedule_relative(float(later[1]), lambda *_, name=name: record(name, made))
    with _silence():
        time.advance_by(HORIZON)
    if streams:
        del outputs[0]  # it has emitted these streams
    inputs = [_of_source(*source, cold.subscriptions) for source, cold in zip(sources, colds, strict=True)]
    for lane in outputs:
        lane.records = [(at, kind, _short(value)) for at, kind, value in _seen(lane.records)]
    return inputs, [*outputs, *noted]


def _short(value: Any) -> Any:
    """An event without what a diagram has no room for: the seconds of a call, metadata, the text of a failure."""
    match value:
        case rd.events.ToolUpdate(result=rd.ToolResult(call_id=call_id, content=content)):
            return attrs.evolve(value, result=rd.ToolResult(call_id, content))
        case rd.events.MessageFinish():
            return attrs.evolve(value, metadata={})
        case rd.events.AttemptReset():
            return attrs.evolve(value, error=None)
        case _:
            return value


STATES = (rd.Snapshot, rd.ContentPart, rd.ToolCall, rd.types.PartialValue)


def _seen(records: Sequence[marbles.Record]) -> Iterator[marbles.Record]:
    for record, later in zip_longest(records, records[1:]):
        are_states = isinstance(record[2], STATES) and later and isinstance(later[2], STATES)
        if are_states and later[0] == record[0] and shown(record[2]) in (EMPTY, shown(later[2])):
            continue
        yield record


@contextmanager
def _silence() -> Iterator[None]:
    """Without what the operators log: that a source failed is in the diagram."""
    log = logging.getLogger("rxdelta")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


class Slow(Scheduler):
    """A thread whose observer needs some seconds for each value: what is scheduled meanwhile waits."""

    def __init__(self, time: VirtualTimeScheduler, seconds: float) -> None:
        super().__init__()
        self._time, self._seconds, self._free = time, seconds, 0.0

    @property
    def now(self) -> Any:
        return self._time.now

    def schedule(self, action: Any, state: Any = None) -> Any:
        wait = max(0.0, self._free - self._time.clock)
        self._free = self._time.clock + wait + self._seconds
        return self._time.schedule_relative(wait, action, state)

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> Any:
        seconds = self.to_seconds(duetime)
        return (
            self._time.schedule_relative(seconds, action, state)
            if seconds > 0
            else self.schedule(action, state)
        )

    def schedule_absolute(self, duetime: Any, action: Any, state: Any = None) -> Any:
        return self._time.schedule_absolute(duetime, action, state)


def _each(colds: Sequence[marbles.Cold]) -> Callable[..., Observable[Any]]:
    left = iter(colds)

    def made() -> Observable[Any]:
        return next(left, colds[-1])

    return lambda *_, **__: made()


def _note(lane: Lane, now: Callable[[], float], *arguments: Any) -> None:
    lane.records.append((now(), "next", arguments[-1]))


def _stream_name(stream: Any) -> str:
    for attribute, word in (("kind", ""), ("run_id", "run "), ("choice", "choice "), ("id", "message ")):
        value = getattr(stream, attribute, None)
        if value is not None and not (attribute == "choice" and hasattr(stream, "parent_run_id")):
            return f"{word}{value}"
    return "message"


def _of_source(name: str, records: list[marbles.Record], read: Sequence[tuple[float, float | None]]) -> Lane:
    if not read:
        return Lane(name, None, unread=_told(name, records), spelled=records)
    begin, end = read[0]
    moved = [(round(at + begin, 6), kind, value) for at, kind, value in _told(name, records)]
    # A stream that is left at a moment may have said something at the same moment.
    told = [one for one in moved if end is None or one[0] <= end]
    unread = moved[len(told) :]
    left = end if end is not None and (not told or told[-1][1] == "next") else None
    return Lane(name, begin, told, left, unread, records)


def _parsed(name: str, line: str) -> list[marbles.Record]:
    if name == "snapshots":
        return marbles.parse(line, values=_snapshot, frame=FRAME)
    if name in VALUES:
        return marbles.parse(line, values=str, frame=FRAME)
    return marbles.parse(line, frame=FRAME)


def _told(name: str, records: list[marbles.Record]) -> list[marbles.Record]:
    """What a source emits for what its line has."""
    if name == "bytes":
        return [(at, kind, value.encode() if kind == "next" else value) for at, kind, value in records]
    if name != "reply":
        return records
    ev, found = rd.events, list[marbles.Record]()
    for at, kind, value in records:
        if kind == "next":
            found += (
                []
                if found
                else [(at, "next", ev.MessageStart()), (at, "next", ev.BlockStart(0, {"type": "text"}))]
            )
            found.append((at, kind, ev.TextDelta(0, value)))
        else:
            found += [(at, "next", ev.BlockFinish(0)), (at, "next", ev.MessageFinish("stop"))] * (
                kind == "completed"
            )
            found.append((at, kind, value))
    return found


@cache
def _snapshot(text: str) -> rd.Snapshot:
    folded = rd.Fold().step(rd.events.BlockStart(0, {"type": "text", "text": text}))
    return rd.Snapshot.from_dict(folded.to_dict())  # all are states of one message


def shown(value: object) -> str:
    """A value other than an event, in short."""
    match value:
        case rd.Snapshot() | rd.Message():
            runs = [f"{call.name}: {call.execution_status() or call.status}" for call in value.tool_calls]
            is_done = isinstance(value, rd.Snapshot) and value.status == "complete"
            return (" ".join(filter(None, [value.text, *runs])) or EMPTY) + DONE * is_done
        case rd.ContentPart():
            return value.text or EMPTY
        case rd.ToolCall(arguments=Mapping() as arguments):
            return f"{value.name}({', '.join(f'{key}={one!r}' for key, one in arguments.items())})"
        case rd.ToolCall():
            return f"{value.name}…"
        case rd.types.PartialValue():
            return _json(value.so_far if value.value is None else value.value) + DONE * value.complete
        case rd.types.StableMarkdown():
            return " ".join([*(one.strip() + DONE for one in value.sealed), value.tail.strip()]).strip()
        case rd.types.StreamOutcome():
            return value.kind
        case rd.types.StreamMetrics():
            return f"{value.chunks} chunks"
        case bytes():
            return value.decode()
        case {"type": str() as kind}:
            return kind.removeprefix("response.")
        case {"message": {"tool_calls": [{"function": {"name": name}}]}} | {
            "choices": [{"delta": {"tool_calls": [{"function": {"name": name}}]}}]
        }:
            return f"call {name}"
        case {"choices": [{"finish_reason": str() as reason}]} | {"done_reason": reason}:
            return f"finish {reason}"
        case {"message": {"content": text}} | {"choices": [{"delta": {"content": str() as text}}]} if text:
            return str(text)
        case {"choices": [{"delta": {"role": _}}]}:
            return "start"
        case {"choices": []}:
            return "usage"
        case Mapping():
            return _json(value)
        case _ if hasattr(value, "type"):
            return str(getattr(value.type, "value", value.type))
        case _:
            return str(value)


def _json(value: object) -> str:
    return json.dumps(value, default=dict, ensure_ascii=False)


def _mark(value: object, form: str) -> str:
    text = shown(value)
    if len(text) == 1 and text not in NO_MARKS and text != EMPTY:
        return text
    return f"<{''.join(char if char.isprintable() else repr(char)[1:-1] for char in form)}>"


def _groups(records: Sequence[marbles.Record]) -> list[list[marbles.Record]]:
    """The records of each frame, together."""
    found: list[list[marbles.Record]] = []
    for record in records:
        if found and record[0] - found[-1][0][0] < FRAME - 1e-9:
            found[-1].append(record)
        else:
            found.append([record])
    return found


def _cells(lane: Lane) -> Iterator[tuple[int, str]]:
    """Each frame's number and what the line has there."""
    groups = _groups(lane.told)
    are_events = lane.says_events
    offset = round((lane.begin or 0.0) / FRAME)
    done: list[marbles.Record] = []
    line, clock = "", 0.0
    for group in groups:
        at = group[0][0]
        done += group
        if are_events:
            longer = marbles.draw(done, frame=FRAME)
            text = longer[len(line) :]
            gap = round((at - clock) / FRAME)
            text = re.sub(r"^ ?(?:-*|\([\d.]+m?s\))", "", text) if gap else text.lstrip(" ")
            line = longer
            text = re.sub(r'(#\w+)\(".*"\)(?=]?$)', r"\1", text)
        else:
            items = [_item(*record, is_input=lane.spelled is not None) for record in group]
            if len(items) > MOST:
                end = -2 if group[-1][1] != "next" else -1
                items = [items[0], "…", *items[end:]]
            text = items[0] if len(items) == 1 else f"[{''.join(items)}]"
        clock = at + FRAME
        yield offset + round(at / FRAME), text


def _item(at: float, kind: str, value: Any, *, is_input: bool) -> str:
    if kind == "completed":
        return "|"
    if kind == "error":
        return f"#{type(value).__name__}"
    return _mark(value, repr(value) if is_input and not isinstance(value, STATES) else shown(value))


def written(diagram: Diagram) -> str:
    """The diagram as it should be: what goes in, and what came out, with the same moments below one another."""
    inputs, outputs = ran(diagram)
    rows = [(lane, dict(_cells(lane))) for lane in (*inputs, *outputs)]
    last = max((frame for _, cells in rows for frame in cells), default=0)
    widths = [1] * (last + 2)
    for lane, cells in rows:
        for frame, text in cells.items():
            both = lane.says_events and _is_word(text[-1]) and _is_word(cells.get(frame + 1, "-")[0])
            widths[frame] = max(widths[frame], len(text) + both)
    margin = max(len(lane.name) for lane, _ in rows) + 2
    lines = [
        lane.name.ljust(margin) + _row(cells, widths, round((lane.begin or 0.0) / FRAME))
        for lane, cells in rows
    ]
    lines.insert(len(inputs), " " * margin + diagram.call)
    return "\n".join(lines)


def _row(cells: Mapping[int, str], widths: Sequence[int], begin: int) -> str:
    end = max(cells, default=begin)
    before = sum(widths[:begin])
    return (
        " " * before
        + "".join(cells.get(frame, "-").ljust(widths[frame]) for frame in range(begin, end + 1)).rstrip()
    )


def _is_word(char: str) -> bool:
    return char not in "-|/#()[]<>"


def main(names: list[str]) -> None:
    for name in names:
        if diagram := diagram_of(name):
            print(name, textwrap.indent(written(diagram), "    "), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or [*operators.__all__])
