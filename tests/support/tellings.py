"""The same text, told in every way in which a reply tells it; and what readers make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias

import attrs
import reactivex as rx
from hypothesis import strategies as st
from reactivex import Observable

import rxdelta as rd

__all__ = [
    "Told",
    "after",
    "cut_off",
    "final",
    "joined",
    "plain",
    "replies",
    "strings",
    "taken_back",
    "tell",
    "tellings",
]

ev = rd.events
Events: TypeAlias = list[rd.Event]
Lane: TypeAlias = tuple[str | None, int]
Place: TypeAlias = tuple[Lane, object]
"""A block: its lane and key."""

KINDS = ("text", "reasoning", "refusal")
ENDS = ("completed", "interrupted", "failed", "broken")


@attrs.frozen
class Told:
    """The events of a stream, and the error that it ends with, if it does."""

    events: Sequence[rd.Event]
    error: Exception | None = None

    def source(self) -> Observable[rd.Event]:
        events = rx.from_iterable(self.events)
        return events if self.error is None else rx.concat(events, rx.throw(self.error))


def tellings(text: str, **how: Any) -> st.SearchStrategy[Told]:
    """A strategy of what `tell` returns."""
    return st.randoms(use_true_random=False).map(lambda draw: tell(draw, text, **how))


def tell(
    draw: Random,
    text: str,
    *,
    kinds: Sequence[str] = KINDS,
    takes_back: bool = True,
    lanes: bool = True,
    blocks: int = 2,
    strays: bool = True,
) -> Told:
    """A whole reply whose blocks say this text: in a start, deltas of any cut, a `BlockDelta`, a finish, or several.

    Args:
        kinds: The types that a block may have.
        takes_back: Whether a block may say other words first: it begins again, another finish overrules it, or the
            attempt is reset.
        lanes: Whether there may be several choices, or runs.
        blocks: How many blocks a message has at most.
        strays: Whether there may be events that change nothing: deltas for no block, of a wrong type, or too late.
    """
    how = draw.randrange(6) if lanes else 0
    choices: list[Lane] = [(None, 0), (None, 1)]
    runs: list[Lane] = [("a", 0), ("b", 0)]
    named = choices if how == 4 else runs if how == 5 else choices[:1]
    teller = _Teller(draw, text, kinds, takes_back, blocks, strays)
    return Told(_woven(draw, *(teller.message(run_id, choice) for run_id, choice in named)))


def plain(text: str, *sizes: int, kind: str = "text") -> Told:
    """A reply of one block whose deltas have these sizes, the last one again and again."""
    make = ev.ReasoningDelta if kind == "reasoning" else ev.TextDelta
    left, deltas, pieces = text, list[rd.Event](), [*(sizes or (1,))]
    while left:
        size = pieces.pop(0) if len(pieces) > 1 else pieces[0]
        deltas.append(make(0, left[:size]))
        left = left[size:]
    start, finish = ev.BlockStart(0, {"type": kind}), ev.BlockFinish(0)
    return Told([ev.MessageStart("m"), start, *deltas, finish, ev.MessageFinish("stop")])


def cut_off(draw: Random, told: Told, how: str | None = None) -> Told:
    """The stream until some event, and then an end that isn't the message's own."""
    events = [*told.events[: draw.randrange(len(told.events) + 1)]]
    how = how or draw.choice(ENDS)
    if how == "interrupted":
        events.append(ev.MessageInterrupted("stopped"))
    elif how == "failed":
        events.append(ev.StreamError("Overloaded", "overloaded"))
    return Told(events, ConnectionError() if how == "broken" else None)


@attrs.frozen
class _Teller:
    draw: Random
    text: str
    kinds: Sequence[str]
    takes_back: bool
    blocks: int
    strays: bool

    def message(self, run_id: str | None, choice: int) -> Events:
        draw = self.draw
        lane: dict[str, Any] = {"run_id": run_id, "choice": choice}
        start: Events = [ev.MessageStart(f"m{choice}", "small", **lane)]
        if not draw.randrange(8):
            start.clear()  # it was lost
        body = self._body(lane)
        if self.takes_back and not draw.randrange(8):
            first = body[: draw.randrange(len(body) + 1)]
            body = [*first, ev.AttemptReset(1, "Overloaded", **lane), *start, *self._body(lane)]
        ended = {event.index for event in body if isinstance(event, ev.BlockFinish)}
        begun = {event.index for event in body if isinstance(event, ev.BlockStart)}
        ends = begun - ended or any(isinstance(event, ev.AttemptReset) for event in body) or draw.randrange(6)
        end: Events = [ev.MessageFinish("stop", usage=rd.TokenUsage(7, 9), **lane)] if ends else []
        late: Events = []
        if self.strays and end and not draw.randrange(4):
            late = [ev.TextDelta(0, self.text, **lane), ev.BlockFinish(0, self._whole("text"), **lane)]
        return [*start, *body, *end, *late]

    def _body(self, lane: dict[str, Any]) -> Events:
        count = self.draw.randrange(self.blocks) + 1
        return _woven(self.draw, *(self._block(index, lane) for index in range(count)))

    def _whole(self, kind: str, text: str | None = None) -> dict[str, Any]:
        return {"type": kind, kind: self.text if text is None else text}

    def _block(self, index: int, lane: dict[str, Any]) -> Events:
        draw, text, kind = self.draw, self.text, self.draw.choice(self.kinds)
        other = draw.choice([text[::-1], text[len(text) // 2 :], f"{text} {text}", ""])
        events: Events = []
        if self.takes_back and not draw.randrange(6):
            events.append(ev.BlockStart(index, self._whole(kind, other[: draw.randrange(3)]), **lane))
            events += self._deltas(index, kind, other, lane)
        if not draw.randrange(8):  # no start
            return [*events, ev.BlockFinish(index, self._whole(kind), **lane)]
        begins = draw.randrange(len(text) + 1) if not draw.randrange(3) else 0
        ends = draw.randrange(begins, len(text) + 1) if not draw.randrange(3) else len(text)
        whole = self._whole(kind)
        events.append(
            ev.BlockStart(index, self._whole(kind, text[:begins]) if begins else {"type": kind}, **lane)
        )
        at = begins
        while at < ends:
            to = draw.randrange(at, ends) + 1 if not draw.randrange(3) else ends
            if draw.randrange(4):
                events += self._deltas(index, kind, text[at:to], lane)
            else:
                events.append(ev.BlockDelta(index, {kind: text[:to], "x": to}, **lane))
            at = to
        if self.strays and not draw.randrange(6):
            wrong = ev.TextDelta if kind == "reasoning" else ev.ReasoningDelta
            events += [wrong(index, text, **lane), ev.TextDelta(77, text, **lane)]
        how = draw.choice(["bare", "whole", "whole", "none", "field", "again", "type"])
        if how == "field" or (ends < len(text) and how in ("bare", "none")):
            events.append(ev.BlockDelta(index, {kind: text}, **lane))
        if how == "type" and kind == "text" and "reasoning" in self.kinds:
            whole = self._whole("reasoning")
        if how == "again" and self.takes_back:
            events.append(ev.BlockFinish(index, self._whole(kind, other), **lane))
        if how != "none":
            bare = how in ("bare", "field")
            events.append(ev.BlockFinish(index, None if bare else whole, **lane))
            if self.strays and not draw.randrange(4):
                events.append(ev.TextDelta(index, text, **lane))
        return events

    def _deltas(self, index: int, kind: str, text: str, lane: dict[str, Any]) -> Events:
        make = ev.ReasoningDelta if kind == "reasoning" else ev.TextDelta
        return [make(index, piece, **lane) for piece in _pieces(self.draw, text)]


def _pieces(draw: Random, text: str) -> list[str]:
    """The text in any pieces; pairs of surrogates may be cut in two."""
    units = text.encode("utf-16-le")
    largest = draw.choice([1, 2, 3, 7, 30])
    pieces: list[str] = []
    while units:
        size = 2 * draw.randint(1, largest)
        pieces.append(units[:size].decode("utf-16-le", "surrogatepass"))
        units = units[size:]
    return pieces


def _woven(draw: Random, *lists: Events) -> Events:
    """All these events in a random order, each list in its own."""
    left = [[*events] for events in lists if events]
    woven: Events = []
    while left:
        events = draw.choice(left) if len(left) > 1 else left[0]
        size = draw.randint(1, 4) if len(left) > 1 else len(events)
        woven += events[:size]
        del events[:size]
        left = [events for events in left if events]
    return woven


# What readers make of it.


def after(told: Told, *operators: Any) -> Told:
    """What comes out behind these operators."""
    values: list[Any] = []
    failures: list[Exception] = []
    ends: list[None] = []
    told.source().pipe(*operators).subscribe(values.append, failures.append, lambda: ends.append(None))
    assert len(failures) + len(ends) == 1, "it has no end, or two"
    return Told(values, failures[0] if failures else None)


def replies(told: Told) -> dict[Lane, list[rd.Snapshot]]:
    """The snapshots of each choice of each run."""
    folds: dict[Lane, rd.Fold] = {}
    found: dict[Lane, list[rd.Snapshot]] = {}
    for event in told.events:
        run_id, choice = event.run_id, getattr(event, "choice", None)
        if choice is not None and not isinstance(event, ev.StreamError):
            folds.setdefault((run_id, choice), rd.Fold(choice=choice))
        for lane, fold in folds.items():
            if isinstance(event, ev.StreamError):
                continue
            if run_id in (None, lane[0]) and choice in (None, lane[1]):
                found.setdefault(lane, []).append(fold.step(event))
    return found


def joined(told: Told) -> dict[Place, list[tuple[str, str]]]:
    """The type and text of each block in each snapshot in which it is."""
    found: dict[Place, list[tuple[str, str]]] = {}
    for lane, snapshots in replies(told).items():
        for snapshot in snapshots:
            for block in snapshot.blocks:
                if isinstance(block, rd.ContentPart):
                    found.setdefault((lane, block.key), []).append((block.type, block.text or ""))
    return found


def final(told: Told) -> dict[Place, tuple[str, str]]:
    """The type and text of each block in the last snapshots."""
    return {
        (lane, block.key): (block.type, block.text or "")
        for lane, snapshots in replies(told).items()
        for block in snapshots[-1].blocks
        if isinstance(block, rd.ContentPart)
    }


def taken_back(told: Told) -> set[Place]:
    """The blocks of which something is taken back: they end twice, or have other words first."""
    ends = Counter[tuple[object, ...]]()
    over, changed = set[Lane](), False
    for event in told.events:
        lane = event.run_id, getattr(event, "choice", 0)
        changed = changed or isinstance(event, ev.AttemptReset)
        if isinstance(event, ev.MessageFinish):
            over.add(lane)
        elif isinstance(event, ev.BlockFinish) and lane not in over:
            ends[lane, event.index] += 1
    return {
        place
        for place, seen in joined(told).items()
        if changed or ends[place] > 1 or any(not two.startswith(one) for (_, one), (_, two) in pairwise(seen))
    }


def strings(value: object) -> Iterator[str]:
    """Each string in a JSON value, also those that are names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from strings(name)  # pyright: ignore[reportUnknownArgumentType]
            yield from strings(item)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, (list, tuple)):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from strings(item)  # pyright: ignore[reportUnknownArgumentType]
