"""Readers that can't keep up: what they get joined, and how many share a loop with others that can."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar
from typing import Any

import pytest
import reactivex as rx
from core.strategies import events as any_event
from hypothesis import example, given, settings, strategies as st
from reactivex.disposable import SerialDisposable
from reactivex.subject import Subject
from relay.comparing import folded, is_transient, number_of
from relay.conftest import Opener
from relay.promises import promised
from relay.reading import said, until
from relay.test_reading import Tape, events_of, in_relay
from support.loops import run, turns
from support.runs import text, turn

import rxdelta as rd
from rxdelta.relay import Entry, Relay

ev = rd.events
HELLO = turn(text(0, "Hello"))
LONG = turn(text(0, "Hello" * 20))
PING = ev.ProviderEvent("made-up", "ping")
STATUS = ev.Custom("status", "looking", transient=True)


def usage(count: int) -> ev.UsageUpdate:
    return ev.UsageUpdate(rd.TokenUsage(count, count))


@promised("A reader that falls behind")
def test_a_live_reader_that_is_behind_gets_deltas_joined_and_all_else_as_published() -> None:
    deltas = LONG[2:-2]
    published = [
        *LONG[:2],
        *deltas[:20],
        STATUS,
        *deltas[20:40],
        usage(1),
        PING,
        *deltas[40:60],
        usage(2),
        ev.Custom("note", "old", "a"),
        ev.Custom("note", "new", "a"),
        *deltas[60:],
        *LONG[-2:],
    ]

    def check(relay: Relay) -> None:
        tape = Tape(relay)
        got = tape.read()
        tape.publish(LONG[0])
        tape.play()
        tape.publish(*published[1:])
        tape.source.on_completed()
        tape.play()
        assert events_of(got) == [
            *LONG[:2],
            ev.TextDelta(0, "Hello" * 4),
            STATUS,
            ev.TextDelta(0, "Hello" * 8),
            usage(2),
            ev.Custom("note", "old", "a"),
            ev.Custom("note", "new", "a"),
            ev.TextDelta(0, "Hello" * 8),
            *LONG[-2:],
            "|",
        ]
        numbers = [number_of(entry.id) for entry in got[:-1]]
        assert [published[number - 1] for number in numbers if number > 2][:3] == [
            deltas[19],
            STATUS,
            deltas[59],
        ]
        for place, number in enumerate(numbers, 1):
            behind = events_of(tape.read(got[place - 1].id))
            assert behind == [*(one for one in published[number:] if not is_transient(one)), "|"]

    in_relay(check)


def test_a_reader_that_is_a_little_behind_gets_each_event_as_it_was_published() -> None:
    def check(relay: Relay) -> None:
        tape = Tape(relay)
        got = tape.read()
        for at in range(0, len(LONG), 40):
            tape.publish(*LONG[at : at + 40])
            tape.play()
        assert events_of(got) == LONG

    in_relay(check)


def test_a_reader_behind_an_id_gets_each_event_as_it_was_published_however_far_behind() -> None:
    def check(relay: Relay) -> None:
        tape = Tape(relay, LONG[0])
        (first,) = tape.read()
        got = tape.read(first.id)
        tape.publish(LONG[1])
        tape.play()
        tape.publish(*LONG[2:])
        tape.play()
        assert events_of(got) == LONG[1:]

    in_relay(check)


def spread(parts: list[rd.Event | int]) -> list[rd.Event]:
    """Events, with a number of deltas in the place of each number: a usage or a ping among them now and then."""
    known: list[rd.Event] = []
    for part in parts:
        if not isinstance(part, int):
            known.append(part)
            continue
        for number in range(part):
            known.append(ev.TextDelta(0, f"{number} "))
            if number % 7 == part % 7:
                known.append(usage(number))
            if number % 11 == 5:
                known.append(PING)
    return known


@settings(max_examples=60, deadline=None)
@example([*HELLO[:2], 70, *HELLO[7:]], [1], 0.5)
@example([*HELLO[:2], 30, STATUS, 40, ev.Custom("note", 1, "a"), 60, *HELLO[7:]], [1, 9], 0.9)
@given(
    st.lists(st.one_of(any_event(), st.integers(1, 80)), max_size=10),
    st.lists(st.integers(0, 300), max_size=4),
    st.floats(0, 1),
)
def test_any_events_fold_to_the_same_however_often_and_far_a_reader_is_behind(
    parts: list[Any], pauses: list[int], cut: float
) -> None:
    """The reader has its turns at the pauses. Some orders are no conversation: those are only read."""
    events = spread(parts)

    def check(relay: Relay) -> None:
        tape = Tape(relay)
        got = tape.read()
        at = 0
        for pause in (*sorted(pauses), len(events)):
            tape.publish(*events[at:pause])
            tape.play()
            at = max(at, pause)
        numbers = [number_of(entry.id) for entry in got]
        assert numbers == sorted(set(numbers))
        shown = [events[number - 1] for number in numbers]
        assert [one for one in shown if is_transient(one)] == [one for one in events if is_transient(one)]
        try:
            whole = folded(events)
        except rd.RxDeltaError:
            return
        assert folded(events_of(got)) == whole
        if got:
            last = got[int(cut * (len(got) - 1))]
            so_far = [entry for entry in got if number_of(entry.id) <= number_of(last.id)]
            assert folded(events_of([*so_far, *tape.read(last.id)])) == whole

    in_relay(check)


def test_a_slow_reader_gets_a_fast_stream_in_a_few_events_and_may_go_on_behind_each(
    open_relay: Opener,
) -> None:
    count = 3000

    async def main() -> None:
        async with open_relay() as relay:
            begun = asyncio.Event()

            async def events() -> Any:
                yield HELLO[0]
                yield HELLO[1]
                await begun.wait()
                for number in range(count):
                    yield ev.TextDelta(0, f"{number} ")
                    if number % 10 == 0:
                        yield usage(number)
                yield HELLO[-1]

            await relay.start("chat", rd.from_async_iterable(events))
            got: list[Entry] = []
            async with rd.to_async_iterable(relay.entries("chat"), maxsize=1) as door:
                async for entry in door:
                    got.append(entry)
                    if len(got) == 2:
                        begun.set()
                        while await relay.is_live("chat"):
                            await asyncio.sleep(0.01)
            assert said([entry.event for entry in got]) == "".join(f"{number} " for number in range(count))
            assert len(got) < count / 10
            late = [entry async for entry in rd.iterate(relay.entries("chat"))]
            whole = folded([entry.event for entry in late])
            assert folded([entry.event for entry in got]) == whole
            for place in range(1, len(got) + 1, max(1, len(got) // 5)):
                rest = [event async for event in rd.iterate(relay.watch("chat", after=got[place - 1].id))]
                assert folded([*(entry.event for entry in got[:place]), *rest]) == whole

    run(main)


def test_what_many_late_readers_emit_in_an_iteration_of_their_loop_is_bounded_together() -> None:
    """However many they are, and however few turns their events take: others on the loop have theirs."""
    readers, count = 40, 400

    async def main() -> None:
        async with Relay.open() as relay:
            events = [ev.Custom("data", number) for number in range(count)]
            await relay.start("chat", rx.from_iterable(events))
            await turns()
            ended = in_this = most = 0

            def take(_: rd.Event) -> None:
                nonlocal in_this
                in_this += 1

            def end() -> None:
                nonlocal ended
                ended += 1

            for _ in range(readers):
                relay.watch("chat").subscribe(take, on_completed=end)
            iterations = 0
            while ended < readers:
                iterations, most, in_this = iterations + 1, max(most, in_this), 0
                await asyncio.sleep(0)
            assert most <= 100
            assert iterations >= readers * count / 100

    run(main)


def test_a_long_log_is_looked_through_by_many_readers_in_turns_too() -> None:
    readers, count = 20, 20_000

    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", rx.from_iterable([ev.TextDelta(0, "a")] * count))
            await turns()
            got: list[rd.Event] = []
            for _ in range(readers):
                relay.watch("chat").subscribe(got.append)
            iterations = 0
            while len(got) < readers:
                iterations += 1
                await asyncio.sleep(0)
            assert iterations >= readers * count / 2000

    run(main)


def test_a_reader_that_keeps_up_has_its_event_while_many_late_ones_still_read() -> None:
    readers, count = 50, 2000

    async def main() -> None:
        async with Relay.open() as relay:
            live, late = Subject[rd.Event](), list[rd.Event]()
            live.pipe(relay.publish("live")).subscribe()
            got: list[rd.Event] = []
            relay.watch("live").subscribe(got.append)
            await relay.start("kept", rx.from_iterable(ev.Custom("data", n) for n in range(count)))
            await turns()
            for _ in range(readers):
                relay.watch("kept").subscribe(late.append)
            await turns(10)
            before = len(late)
            live.on_next(HELLO[0])
            while not got:
                await asyncio.sleep(0)
            assert len(late) - before <= readers * 32
            await until(lambda: len(late) == readers * count)

    run(main)


def test_an_observer_that_raises_keeps_nothing_from_the_other_readers_of_its_loop() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, got = Subject[rd.Event](), list[rd.Event]()
            source.pipe(relay.publish("chat")).subscribe()

            def fail(_: rd.Event) -> None:
                raise RuntimeError("mine")

            for _ in range(3):
                relay.watch("chat").subscribe(fail)
                relay.watch("chat").subscribe(got.append)
            source.on_next(HELLO[0])
            await turns()
            assert got == [HELLO[0]] * 3

    reports: list[dict[str, Any]] = []
    run(main, reports=reports)
    assert [str(report["exception"]) for report in reports] == ["mine"] * 3


def test_each_reader_is_called_in_its_own_context() -> None:
    user = ContextVar[str]("user")

    async def main() -> None:
        async with Relay.open() as relay:
            source, got = Subject[rd.Event](), list[str]()
            source.pipe(relay.publish("chat")).subscribe()

            async def page(name: str) -> None:
                user.set(name)
                relay.watch("chat").subscribe(lambda _: got.append(user.get()))

            await asyncio.gather(page("ann"), page("bob"))
            user.set("worker")
            source.on_next(HELLO[0])
            source.on_next(HELLO[1])
            await turns()
            assert sorted(got) == ["ann", "ann", "bob", "bob"]

    run(main)


@pytest.mark.parametrize("where", ["in its own event", "in another's", "between"])
def test_a_reader_may_leave_at_any_moment(where: str) -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, got, seen = Subject[rd.Event](), list[rd.Event](), list[rd.Event]()
            source.pipe(relay.publish("chat")).subscribe()
            leaving = SerialDisposable()

            def take(event: rd.Event) -> None:
                seen.append(event)
                if where == "in its own event":
                    leaving.dispose()

            def other(event: rd.Event) -> None:
                got.append(event)
                if where == "in another's":
                    leaving.dispose()

            relay.watch("chat").subscribe(other)
            leaving.disposable = relay.watch("chat").subscribe(take)
            await turns()
            source.on_next(HELLO[0])
            if where == "between":
                leaving.dispose()
            source.on_next(HELLO[1])
            await turns()
            assert got == HELLO[:2]
            assert seen == (HELLO[:1] if where == "in its own event" else [])

    run(main)


def test_a_reader_that_leaves_a_silent_stream_is_free_at_once() -> None:
    class Observer:
        def on_next(self, event: rd.Event) -> None:
            pass

    async def main() -> None:
        async with Relay.open() as relay:
            source, observer = Subject[rd.Event](), Observer()
            source.pipe(relay.publish("chat")).subscribe()
            is_there = weakref.ref(observer)
            reading = relay.watch("chat").subscribe(observer.on_next)
            source.on_next(HELLO[0])
            await turns()
            gc.collect()
            gc.disable()
            try:
                reading.dispose()
                del observer, reading
                assert is_there() is None
            finally:
                gc.enable()

    run(main)


def test_the_metrics_have_the_readers_that_are_there_and_the_events_that_they_got() -> None:
    def check(relay: Relay) -> None:
        tape = Tape(relay, *LONG[:50])
        got = tape.read()
        staying = relay.watch("chat").subscribe(scheduler=tape.scheduler)
        tape.play()
        assert (relay.metrics.readers, relay.metrics.events_read) == (2, 6)
        tape.publish(LONG[50])
        tape.play()
        staying.dispose()
        assert (relay.metrics.readers, relay.metrics.events_read) == (1, 8)
        tape.source.on_completed()
        tape.play()
        assert (relay.metrics.readers, relay.metrics.events_read, got[-1]) == (0, 8, "|")

    in_relay(check)
