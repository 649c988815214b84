"""Draws a marble diagram as SVG: from what happened in virtual time, so that the picture says what the operator does.

Time goes to the right, one lane for each row of the diagram, the call in a box between what goes in and what comes out.
Colours are variables of `_static/marbles.css`, so the picture follows the page's light or dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

from support.diagrams import FRAME, Diagram, Lane, ran, shown

import rxdelta as rd

__all__ = ["Mark", "legend", "picture", "words"]

EVENT = rd.events
WIDTH, MARGIN, RIGHT = 700, 76, 36  # of a picture; of the names at its left; behind the last moment
BOX, HEIGHT, GAP, STEP = (
    30,
    22,
    5,
    (20, 96),
)  # of the call; of a mark; between marks; the least and the greatest width of a frame
EXTRA = {"call": 22, "text": 15, "think": 15}  # how much wider a mark is than its label
NARROW, WIDE = "fijlrtI.,:;'!|()[] ·", "mwMWGOQ@%…→"


@dataclass
class Mark:
    """One mark of a lane.

    Attributes:
        kind: Its shape and colour.
        label: What is written in it.
        said: What it is in words.
        tail: Whether a label that is too long loses its beginning rather than its end.
        is_other: Whether it belongs to another choice or run than the first event that goes in.
    """

    kind: str
    label: str
    said: str
    tail: bool = False
    is_other: bool = False
    width: float = field(init=False)

    def __post_init__(self) -> None:
        self.width = max(HEIGHT, length(self.label) + EXTRA.get(self.kind, 12))


@dataclass
class Band:
    """A block, from its begin to its end."""

    begin: float
    end: float | None = None
    level: int = 0
    last: float = 0.0  # when its last mark came
    is_whole: bool = True


def length(text: str) -> float:
    """About the width of a text of 12 px."""
    return sum(
        3.7 if char in NARROW else 10 if char in WIDE else 8 if char.isupper() else 6.7 for char in text
    )


def fitted(label: str, room: float, tail: bool) -> str:
    """The label, shortened to a width."""
    if length(label) <= room:
        return label
    while len(label) > 1 and length(label) + 9 > room:
        label = label[1:] if tail else label[:-1]
    return f"…{label.lstrip()}" if tail else f"{label.rstrip()}…"


def visible(text: str) -> str:
    return text.strip(" ").replace("\n", "↵") or "_" * bool(text)


def mark_of(value: Any) -> Mark | None:
    """The mark of a value; a block's begin and end, and what has nothing to show, have none."""
    match value:
        case EVENT.TextDelta(text=text):
            return Mark("text", visible(text), f"text {text!r}")
        case EVENT.ReasoningDelta(reasoning=text):
            return Mark("think", visible(text), f"reasoning {text!r}")
        case EVENT.ToolCallDelta(args=text):
            return Mark("args", visible(text), f"arguments {text}")
        case EVENT.ToolUpdate(execution_status=status, display_text=text, result=result):
            told = str(result.content) if result is not None else text or ""
            label = ": ".join(filter(None, [status, told]))
            return Mark("tool", label, f"the call is {label}")
        case EVENT.Custom(name=name, data=data):
            return Mark("own", name, f"custom event {name} {data}")
        case EVENT.UsageUpdate():
            return Mark("item", "usage", "usage")
        case EVENT.ProviderEvent(name=name):
            return Mark("item", name, f"provider event {name}")
        case EVENT.MessageInterrupted(reason=reason):
            return Mark("stop", reason or "stop", f"the message is interrupted: {reason}")
        case EVENT.AttemptReset(attempt=attempt):
            return Mark("reset", "reset", f"attempt {attempt} begins; what was before is taken back")
        case EVENT.StreamError(message=text):
            return Mark("stop", text or "error", f"error event {text}")
        case EVENT.BlockStart(content=content) if content.get("name"):
            return Mark("call", str(content["name"]), f"the call {content['name']} begins")
        case EVENT.BlockStart(content=content) if content.get("text"):
            return Mark("text", visible(content["text"]), f"text {content['text']!r}")
        case _ if getattr(value, "event", None) and isinstance(value, EVENT_TYPES):
            return None
        case str() | int() | float() if len(str(value)) == 1:
            return Mark("value", str(value), f"value {value}")
        case str():
            return Mark("text", visible(value), repr(value))
        case rd.ToolCall():
            return Mark("call", shown(value), f"call {shown(value)}")
        case rd.Snapshot() if len(shown(value)) == 1:
            return Mark("state", shown(value), f"snapshot {value.text!r}")
        case rd.Snapshot() | rd.ContentPart():
            return Mark("state", visible(shown(value)), f"snapshot {shown(value)!r}", tail=True)
        case rd.Message():
            return Mark("final", visible(shown(value)), f"message {value.text!r}", tail=True)
        case rd.types.PartialValue() | rd.types.StableMarkdown():
            return Mark("state", visible(shown(value)), f"value {shown(value)}", tail=True)
        case _:
            return Mark("item", visible(shown(value)), shown(value), tail=not isinstance(value, bytes))


EVENT_TYPES = tuple(rd.core.events.EVENT_TYPES)


def reply_of(event: Any) -> Any:
    """The choice and the run that an event is of, if it is of one."""
    return (
        (event.choice, event.run_id) if isinstance(event, EVENT_TYPES) and hasattr(event, "index") else None
    )


def marked(records: Sequence[Any], first: Any = None) -> tuple[list[tuple[float, Mark]], list[Band]]:
    """The marks of a lane and the blocks on it."""
    found: list[tuple[float, Mark]] = []
    bands: list[Band] = []
    opened: dict[Any, tuple[Band, Mark | None]] = {}
    for at, kind, value in records:
        if kind != "next":
            continue
        mark = mark_of(value)
        band, call = opened.get(key(value), (None, None))
        match value:
            case EVENT.BlockStart():
                band = Band(at, level=len(opened), last=at)
                bands.append(band)
                opened[key(value)] = (band, mark)
            case EVENT.ToolCallDelta(args=args) if call and band and band.begin == at and args.endswith("}"):
                call.said = f"call {call.label} {args}"  # the whole call at one moment
                mark = None
            case EVENT.BlockFinish() if band:
                band.end = at
                del opened[key(value)]
            case EVENT.MessageFinish() | EVENT.MessageInterrupted() | EVENT.AttemptReset():
                for one, _ in opened.values():
                    one.end, one.is_whole = at, isinstance(value, EVENT.MessageFinish)
                opened.clear()
            case _:
                pass
        if mark is not None:
            mark.is_other = first is not None and reply_of(value) not in (None, first)
            found.append((at, mark))
            if band:
                band.last = at
    return found, [band for band in bands if band.end != band.begin]


def key(event: Any) -> Any:
    """The block that an event is of."""
    return getattr(event, "choice", 0), getattr(event, "run_id", None), getattr(event, "index", None)


@dataclass
class Drawn:
    """A lane with its marks, and those that nobody reads."""

    lane: Lane
    marks: list[tuple[float, Mark]]
    bands: list[Band]
    unread: list[tuple[float, Mark]]
    y: float = 0.0

    @property
    def columns(self) -> dict[float, list[Mark]]:
        """The marks of each moment."""
        found: dict[float, list[Mark]] = {}
        for at, mark in (*self.marks, *self.unread):
            found.setdefault(at, []).append(mark)
        return found

    @property
    def widths(self) -> dict[float, float]:
        return {at: max(mark.width for mark in column) for at, column in self.columns.items()}

    @property
    def over(self) -> float | None:
        """When the stream ended, or was disposed."""
        last = self.lane.records[-1] if self.lane.records else None
        return last[0] if last and last[1] != "next" else self.lane.left

    @property
    def spans(self) -> dict[float, float]:
        """The widths of what is at each moment, and of the end."""
        found = self.widths
        if self.over is not None and not self.unread:
            found.setdefault(self.over, 12.0)
        return found

    def put(self, y: float) -> float:
        """Put the lane below `y`; returns where it ends."""
        most = max((len(column) for column in self.columns.values()), default=1)
        height = most * (HEIGHT + GAP) + 15
        self.y = y + height / 2
        return y + height

    def make_room(self, step: float) -> None:
        """Make marks narrower that would cover one another."""
        for (before, left), (after, right) in pairwise(self.spans.items()):
            room = (after - before) / FRAME * step - 5
            if (left + right) / 2 > room:
                least = HEIGHT / 2
                mine = min(max(room * left / (left + right), least), left / 2)
                for at, most in ((before, mine), (after, max(room - mine, least))):
                    for mark in self.columns.get(at, ()):
                        mark.width = min(mark.width, 2 * most)

    def tail(self, end: float) -> float:
        """How much room the lane needs behind the last moment."""
        need = self.widths.get(end, 0.0) / 2 + 14
        if self.lane.records and self.lane.records[-1][1] == "error":
            before = (end - self.lane.records[-1][0]) / FRAME * STEP[0]
            need = max(need, length(type(self.lane.records[-1][2]).__name__) + 26 - before)
        return need


def drawn_of(lane: Lane, first: Any) -> Drawn:
    marks, bands = marked(lane.records, first)
    unread, _ = marked(lane.unread, first)
    return Drawn(lane, marks, bands, unread)


def step_of(lanes: Sequence[Drawn], frames: int, room: float) -> float:
    """The width of a frame: so much that the labels have room, if there is so much."""
    wanted = 60.0
    for one in lanes:
        for (before, left), (after, right) in pairwise(one.spans.items()):
            wanted = max(wanted, ((left + right) / 2 + 8) / ((after - before) / FRAME))
    return max(STEP[0], min(wanted, STEP[1], room / max(frames, 1)))


def picture(diagram: Diagram) -> str:
    """The SVG of a diagram."""
    what_came, what_happened = ran(diagram)
    first = next(filter(None, (reply_of(value) for _, _, value in what_came[0].records)), None)
    inputs, outputs = ([drawn_of(lane, first) for lane in lanes] for lanes in (what_came, what_happened))
    lanes = [*inputs, *outputs]
    end = max((at for one in lanes for at, *_ in (*one.lane.records, *one.lane.unread)), default=0.0)
    frames = round(end / FRAME)
    left = MARGIN + max(one.widths.get(0.0, 20) / 2 for one in lanes) + 6
    right = max(RIGHT, *(one.tail(end) for one in lanes))
    step = step_of(lanes, frames, WIDTH - left - right)

    def x(at: float) -> float:
        return left + at / FRAME * step

    y = 6.0
    for one in inputs:
        y = one.put(y)
    box = y + 4
    y += BOX + 10
    for one in outputs:
        y = one.put(y)
    parts = [*ticks(x, frames, step, 6, y, (box, box + BOX))]
    for one in lanes:
        one.make_room(step)
        parts += lane_parts(one, x, x(end) + right - 8)
    parts.append(
        f'<rect class="m-box" x="1" y="{box}" width="{WIDTH - 2}" height="{BOX}" rx="6"/>'
        f'<text class="m-code" x="{MARGIN}" y="{box + 19.5}">{escape(diagram.call)}</text>'
    )
    said = escape(words(diagram, [one.lane for one in inputs], [one.lane for one in outputs]))
    return (
        f'<svg class="marbles" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 18:.0f}" '
        f'role="img" aria-label="{said}">{"".join(parts)}</svg>'
    )


def ticks(
    x: Any, frames: int, step: float, top: float, bottom: float, box: tuple[float, float]
) -> Iterator[str]:
    every = 5 if frames > 8 else 2 if frames > 3 else 1
    for frame in range(frames + 1):
        at = x(frame * FRAME)
        named = " m-named" if frame % every == 0 else ""
        yield f'<path class="m-tick{named}" d="M{at:.1f} {top}V{box[0]}M{at:.1f} {box[1]}V{bottom}"/>'
        if named:
            yield f'<text class="m-time" x="{at:.1f}" y="{bottom + 12}">{frame * FRAME:g} s</text>'


def lane_parts(one: Drawn, x: Any, right: float) -> Iterator[str]:
    lane, y, columns = one.lane, one.y, one.columns
    yield f'<text class="m-name" x="2" y="{y + 4}">{escape(lane.name)}</text>'
    half = {at: width / 2 for at, width in one.widths.items()}
    last = lane.records[-1] if lane.records else None
    is_over = last is not None and last[1] != "next"
    over = one.over
    stop = right if over is None else x(over) + (half[over] + 8 if over in half else 0)
    if lane.begin is None:
        yield f'<path class="m-unread" d="M{x(0):.1f} {y}H{right:.1f}"/>'
    else:
        yield f'<path class="m-line" d="M{x(lane.begin):.1f} {y}H{stop:.1f}"/>'
        if over is None:
            yield f'<path class="m-line" d="M{right - 5:.1f} {y - 4}L{right:.1f} {y}L{right - 5:.1f} {y + 4}"/>'
        elif lane.unread:
            yield f'<path class="m-unread" d="M{stop:.1f} {y}H{right:.1f}"/>'
        if lane.begin > 0 and lane.begin not in columns:
            yield f'<circle class="m-begin" cx="{x(lane.begin):.1f}" cy="{y}" r="3.5"/>'
    for band in one.bands:
        begin = x(band.begin) - half.get(band.begin, 4) - 4
        if band.end is None:
            end = stop
        elif band.end in half:
            end = x(band.end) + (half[band.end] + 4 if band.last == band.end else -half[band.end] - 7)
        else:
            end = x(band.end)
        tall = HEIGHT / 2 + 4 - 2 * band.level
        kind = "m-band" if band.end is not None and band.is_whole else "m-band m-open"
        yield f'<rect class="{kind}" x="{begin:.1f}" y="{y - tall}" width="{max(end - begin, 4):.1f}" height="{2 * tall}" rx="{tall}"/>'
    for at, column in columns.items():
        top = y - (len(column) - 1) * (HEIGHT + GAP) / 2
        for place, mark in enumerate(column):
            is_unread = any(mark is other for _, other in one.unread)
            yield shape(mark, x(at), top + place * (HEIGHT + GAP), at, is_unread)
    if is_over and last:
        yield from ending(last, stop, y)
    elif lane.left is not None:
        yield f'<path class="m-left" d="M{stop:.1f} {y - 8}v16"><title>{lane.left:g} s: nobody reads on</title></path>'


def ending(record: Any, x: float, y: float) -> Iterator[str]:
    at, kind, value = record
    if kind == "completed":
        yield f'<path class="m-end" d="M{x:.1f} {y - 12}v24"><title>{at:g} s: completes</title></path>'
    else:
        name = type(value).__name__
        yield f'<path class="m-error" d="M{x - 6:.1f} {y - 6}l12 12m0 -12l-12 12"><title>{at:g} s: {name}</title></path>'
        yield f'<text class="m-error-name" x="{x + 11:.1f}" y="{y + 4}">{name}</text>'


def shape(mark: Mark, x: float, y: float, at: float, is_unread: bool) -> str:
    width = mark.width
    label = fitted(mark.label, width - EXTRA.get(mark.kind, 12) + 2, mark.tail)
    a, top = x - width / 2, y - HEIGHT / 2
    box = f'x="{a:.1f}" y="{top:.1f}" width="{width:.1f}" height="{HEIGHT}"'
    match mark.kind:
        case "call":
            points = f"{a:.1f},{y} {a + 8:.1f},{top} {a + width - 8:.1f},{top} {a + width:.1f},{y} {a + width - 8:.1f},{top + HEIGHT} {a + 8:.1f},{top + HEIGHT}"
            body = f'<polygon class="m-back" points="{points}"/><polygon class="m-shape" points="{points}"/>'
        case "state":
            behind = "".join(
                f'<rect class="m-back" x="{a + n:.1f}" y="{top - n}" width="{width:.1f}" height="{HEIGHT}" rx="3"/>'
                f'<rect class="m-under" x="{a + n:.1f}" y="{top - n}" width="{width:.1f}" height="{HEIGHT}" rx="3"/>'
                for n in (4, 2)
            )
            body = behind + both(f'{box} rx="3"')
        case "value":
            body = both(f'{box} rx="{HEIGHT / 2}"')
        case "text" | "think":
            body = both(f'{box} rx="{HEIGHT / 2}"')
        case "stop":
            points = " ".join(
                f"{a + p:.1f},{top + q}"
                for p, q in (
                    (6, 0),
                    (width - 6, 0),
                    (width, 6),
                    (width, 16),
                    (width - 6, 22),
                    (6, 22),
                    (0, 16),
                    (0, 6),
                )
            )
            body = f'<polygon class="m-back" points="{points}"/><polygon class="m-shape" points="{points}"/>'
        case _:
            body = both(f'{box} rx="2"')
    unread = " m-faint" * is_unread + " m-other" * mark.is_other
    return (
        f'<g class="m-{mark.kind}{unread}">{body}<text x="{x:.1f}" y="{y + 4}">{escape(label)}</text>'
        f"<title>{at:g} s: {escape(mark.said)}</title></g>"
    )


def both(attributes: str) -> str:
    return f'<rect class="m-back" {attributes}/><rect class="m-shape" {attributes}/>'


def words(diagram: Diagram, inputs: Sequence[Lane], outputs: Sequence[Lane]) -> str:
    """What a picture shows, for those who can't see it."""
    told = [f"Marble diagram of {diagram.call}."]
    told += [f"In, {said(lane)}" for lane in inputs]
    told += [f"Out, {said(lane)}" for lane in outputs]
    return " ".join(told)


def said(lane: Lane) -> str:
    marks, _ = marked(lane.records)
    items = [f"{at:g} s {mark.said}" for at, mark in marks]
    if lane.begin is None:
        return f"{lane.name}: never read."
    if lane.records and lane.records[-1][1] != "next":
        at, kind, value = lane.records[-1]
        items.append(
            f"{at:g} s {'completes' if kind == 'completed' else f'fails with {type(value).__name__}'}"
        )
    elif lane.left is not None:
        items.append(f"{lane.left:g} s nobody reads on")
    return f"{lane.name}: {'; '.join(items) or 'nothing'}."


def legend() -> list[tuple[str, str]]:
    """All marks, each as a small SVG, with what they mean."""
    marks = [
        (Mark("text", "tide", ""), "a piece of text"),
        (Mark("think", "Hm.", ""), "a piece of reasoning"),
        (Mark("call", "look", ""), "a call, or its begin, with the tool's name"),
        (Mark("args", '{"at":', ""), "a piece of a call's arguments"),
        (Mark("tool", "executing", ""), "news of a call: its status, or its result so far"),
        (Mark("text", "sea", "", is_other=True), "a piece of another choice or run"),
        (
            Mark("state", "The tide", ""),
            "a snapshot, or another state that the next one replaces; with ✓ it is complete",
        ),
        (Mark("final", "The tide", ""), "a finished message"),
        (Mark("value", "a", ""), "a value of any type"),
        (Mark("item", "finish", ""), "a chunk, a frame, or another value that isn't drawn otherwise"),
        (Mark("own", "status", ""), "an event of the application's own"),
        (Mark("stop", "stopped", ""), "an interruption, or the provider's error, as an event"),
        (Mark("reset", "reset", ""), "another attempt begins, and the reply so far is taken back"),
    ]
    found = [(small(shape(mark, 48, 18, 0, False)), said) for mark, said in marks]
    line = '<path class="m-line" d="M6 18H{}"/>'
    band = '<rect class="m-band{}" x="10" y="5" width="76" height="26" rx="13"/>'
    found += [
        (small(band.format("")), "a block, from its begin to its end"),
        (small(band.format(" m-open")), "a block that was cut off"),
        (small(line.format(70) + '<path class="m-end" d="M70 6v24"/>'), "the stream completes"),
        (
            small(line.format(64) + '<path class="m-error" d="M58 12l12 12m0 -12l-12 12"/>'),
            "the stream fails, with the error's name",
        ),
        (
            small('<path class="m-line" d="M30 18H90"/><circle class="m-begin" cx="30" cy="18" r="3.5"/>'),
            "a stream that is subscribed later",
        ),
        (
            small(
                line.format(50) + '<path class="m-left" d="M50 10v16"/><path class="m-unread" d="M50 18H92"/>'
            ),
            "here the subscription is disposed: what would follow is faint",
        ),
    ]
    return found


def small(body: str) -> str:
    return f'<svg class="marbles m-small" viewBox="0 0 96 36" width="96" height="36" aria-hidden="true">{body.replace("<title>0 s: </title>", "")}</svg>'
