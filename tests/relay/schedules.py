"""One stream of a relay, published and read at random in virtual time: cuts, returns, and every kind of end."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any, TypeVar

from reactivex import abc
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.runs import answer, call, text, thought, turn, within, woven

import rxdelta as rd
from rxdelta.core import DEFAULT_LIMITS, EventsSoFar
from rxdelta.relay import Entry, Relay

__all__ = ["OPENED", "Schedule", "conversation", "left_behind", "now", "relay_objects"]

T = TypeVar("T")
ev = rd.events

LEASE = 40.0
OPENED = {"Relay": 1, "Publications": 1, "Memory": 1, "Tally": 1, "Reports": 1}
"""The relay's own objects, of one that is open in memory."""
_LETTERS = "the quick brown fox jumps over the lazy dog"


def now(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")


def conversation(chance: Random) -> list[rd.Event]:
    """A conversation of one to three runs, among it pings, usage, resets and the application's own data."""
    runs = [_run(chance, name) for name in (None, "a", "b")[: chance.choice((1, 1, 2, 3))]]
    events = woven(*runs, seed=chance.randrange(1000))
    for _ in range(chance.choice((0, 0, 3, 8))):
        name, data, again = chance.choice("xy"), chance.randrange(9), chance.choice((None, "1", "2"))
        run = chance.choice((None, None, events[-1].run_id))
        custom = ev.Custom(name, data, again, chance.random() < 0.3, run_id=run)
        events.insert(chance.randrange(len(events) + 1), custom)
    for _ in range(chance.choice((0, 2))):
        events.insert(chance.randrange(len(events) + 1), ev.ProviderEvent("made-up", "ping"))
    return events


def _run(chance: Random, name: str | None) -> list[rd.Event]:
    told: list[rd.Event] = []
    for number in range(chance.choice((1, 1, 2))):
        said = _LETTERS[: chance.randrange(1, 30)]
        blocks = [text(0, said)]
        if chance.random() < 0.5:
            blocks.insert(0, thought(7, said))
        if chance.random() < 0.4:
            blocks.append(call(9, f"c{number}", said[:3]))
        message = turn(*blocks, id=f"m{number}")
        if chance.random() < 0.3:  # a usage with each event, as some providers have it
            for place in range(len(message) - 1, 1, -1):
                message.insert(place, ev.UsageUpdate(rd.TokenUsage(place, place)))
        if chance.random() < 0.2:
            message[2:2] = [ev.TextDelta(0, "lost"), ev.AttemptReset(1, "again"), message[0], message[1]]
        told += message
        if len(blocks) > 1 and chance.random() < 0.5:
            told.append(answer(f"c{number}", "done"))
    return told if name is None else within(name, told)


class Schedule:
    """One stream, its publisher and its readers.

    Args:
        relay: The relay, opened with `LEASE`.
        seed: Names the stream and decides everything.
    """

    def __init__(self, relay: Relay, seed: int) -> None:
        self.relay = relay
        self.stream_id = f"stream {seed}"
        self.chance = Random(seed)
        self.scheduler = TestScheduler()
        self.source = Subject[rd.Event]()
        self.published: list[Any] = []  # the publisher's own subscriber, with its end
        self.ids: list[str] = []  # as far as a reader of the whole log has got them
        self.readers = [_Reader(self) for _ in range(self.chance.randrange(1, 5))]

    def run(self) -> None:
        chance, at = self.chance, 100.0
        start = chance.choice((0.0, at, at + LEASE / 2))
        began = at

        def begin(*_: Any) -> None:
            publishing = self.source.pipe(self.relay.publish(self.stream_id))
            self.publisher = publishing.subscribe(
                self.published.append,
                self.published.append,
                lambda: self.published.append("|"),
                scheduler=self.scheduler,
            )
            reader = self.relay.entries(self.stream_id)
            reader.subscribe(
                lambda entry: self.ids.append(entry.id), lambda _: None, scheduler=self.scheduler
            )

        self._at(at, begin)
        for event in conversation(chance):
            at += chance.choice((0, 0, 1, 1, 3, 10))
            self._at(at, lambda event=event: self.source.on_next(event))
        ends = chance.choice((at, at, at + 5, (began + at) / 2))
        self._at(
            ends,
            chance.choice(
                (self.complete, self.complete, self.fail, self.fail_as_ours, self.stop, self.leave)
            ),
        )
        for reader in self.readers:
            reader.plan(max(1.0, start + chance.uniform(0, at - began + 30)))
        self.scheduler.start()
        for reader in self.readers:
            reader.check()
        assert now(self.relay.delete(self.stream_id))

    def _at(self, time: float, step: Any) -> None:
        self.scheduler.schedule_absolute(time, lambda *_: step() and None)

    def complete(self) -> None:
        self.source.on_completed()

    def fail(self) -> None:
        self.source.on_error(RuntimeError("secret"))

    def fail_as_ours(self) -> None:
        self.source.on_error(rd.ProviderError("busy", type="overloaded_error", code="529", transient=True))

    def stop(self) -> None:
        assert now(self.relay.cancel(self.stream_id, "enough")) is True
        assert now(self.relay.cancel(self.stream_id, "enough")) is False

    def leave(self) -> None:
        self.publisher.dispose()
        self.published += [ev.MessageInterrupted("publisher left"), "|"]

    @property
    def events(self) -> list[rd.Event]:
        return self.published[:-1]


class _Reader:
    """A reader that is cut off and comes back, at random: behind what it had, from the start, or behind any event."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.connections: list[_Connection] = []

    def plan(self, at: float) -> None:
        schedule, chance = self.schedule, self.schedule.chance
        times = [at]
        for _ in range(chance.choice((0, 0, 1, 2, 4))):
            times.append(times[-1] + chance.uniform(0, 40))
        for number, time in enumerate(times):
            schedule._at(time, lambda number=number: self.come(last=number == len(times) - 1))

    def come(self, *, last: bool) -> None:
        schedule, chance = self.schedule, self.schedule.chance
        after, before = None, None
        if self.connections:
            self.connections[-1].subscription.dispose()
            how = chance.choice(("on", "on", "start", "any"))
            if how == "on":
                before = self.connections[-1]
                after = before.last
            elif how == "any" and schedule.ids:
                after = chance.choice(schedule.ids)
        self.connections.append(_Connection(schedule, after, before, last))

    def check(self) -> None:
        for connection in self.connections:
            connection.check()


class _Connection:
    """One subscription of a reader."""

    def __init__(self, schedule: Schedule, after: str | None, before: _Connection | None, last: bool) -> None:
        self.schedule = schedule
        self.after = after
        self.before = before if after is not None else None
        self.is_last = last
        self.got: list[Any] = []
        self.there = len(schedule.published)  # events that are a replay
        self.subscription: abc.DisposableBase
        split = schedule.chance.choice((None, *schedule.ids[-3:])) if after is None else None
        self.split = split
        self.subscription = schedule.relay.entries(schedule.stream_id, after, split_at=split).subscribe(
            self.got.append, self.got.append, lambda: self.got.append("|"), scheduler=schedule.scheduler
        )

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry in self.got if isinstance(entry, Entry)]

    @property
    def last(self) -> str | None:
        return self.entries[-1].id if self.entries else self.after

    def whole(self) -> list[rd.Event]:
        """What the reader has, with what it had before this connection."""
        before = [] if self.before is None else self.before.whole()
        return [*before, *(entry.event for entry in self.entries)]

    def check(self) -> None:
        events = self.schedule.events
        numbers = [number_of(entry.id) for entry in self.entries]
        start = 0 if self.after is None else number_of(self.after)
        assert numbers == sorted(set(numbers))
        assert not numbers or start < numbers[0]
        if self.after is not None:
            assert [entry.event for entry in self.entries] == [
                event
                for number, event in enumerate(events[start : numbers[-1] if numbers else start], start + 1)
                if number > min(self.there, len(events)) or not is_transient(event)
            ]
        for number, entry in zip(numbers, self.entries):
            if number > self.there:
                assert entry.event is events[number - 1] or entry.event == events[number - 1]
        if self.split is not None and self.is_last:
            at = number_of(self.split)
            head = [entry.event for number, entry in zip(numbers, self.entries) if number <= at]
            assert folded(head) == folded(events[:at])
        if not self.is_last:
            return
        if self.got and isinstance(self.got[-1], rd.errors.EmptyStreamError):
            assert self.entries == []
            return
        self._check_end()

    def _check_end(self) -> None:
        events, end, mine = self.schedule.events, self.schedule.published[-1], self.got[-1]
        known = [] if self.after is None else events[: number_of(self.after)]
        if self.before is None:
            assert folded([*known, *(entry.event for entry in self.entries)]) == folded(events)
        else:
            assert folded(self.whole_from_start()) == folded(events)
        if end == "|":
            assert mine == "|"
        elif isinstance(end, rd.ProviderError):
            assert (type(mine), str(mine), mine.type, mine.code) == (type(end), str(end), end.type, end.code)
            assert mine is not end
        else:
            assert type(mine) is rd.StreamInterrupted
            assert "secret" not in str(mine)
        if end != "|":
            assert mine.snapshot == so_far(events).snapshot()

    def whole_from_start(self) -> list[rd.Event]:
        """As `whole`, and where the first connection began in the middle with what came before it."""
        first: _Connection = self
        while first.before is not None:
            first = first.before
        known = [] if first.after is None else self.schedule.events[: number_of(first.after)]
        return [*known, *self.whole()]


def number_of(entry_id: str) -> int:
    return int(entry_id.rpartition("-")[2])


def is_transient(event: rd.Event) -> bool:
    return isinstance(event, ev.Custom) and event.transient


def so_far(events: Sequence[rd.Event]) -> EventsSoFar:
    folds = EventsSoFar(DEFAULT_LIMITS, whole=True)
    for event in events:
        if not is_transient(event):
            folds.take(event)
    return folds


def folded(events: Sequence[rd.Event]) -> Any:
    """The shortest list of events that folds to the same. Of a run without a message only the newest data count."""
    found: dict[object, rd.Event] = {}
    for place, event in enumerate(so_far(events).so_far()):
        named = isinstance(event, ev.Custom) and event.id is not None
        found[(event.run_id, event.name, event.id, place_of_message(found)) if named else place] = event
    return list(found.values())


def place_of_message(found: dict[object, rd.Event]) -> int:
    return sum(isinstance(event, (ev.MessageStart, ev.AttemptReset)) for event in found.values())


def relay_objects() -> list[Any]:
    """The relay's objects that are alive."""
    gc.collect()
    return [one for one in gc.get_objects() if str(type(one).__module__).startswith("rxdelta.relay")]


def left_behind(before: Sequence[Any]) -> Counter[str]:
    """How many there are of each type, without those of other tests that were there before."""
    known = {id(one) for one in before}
    return Counter(type(one).__name__ for one in relay_objects() if id(one) not in known)
