"""What a relay keeps, and how long; slow readers; readers and publishers on other threads and loops."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
import weakref
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from relay.comparing import OPENED, left_behind, relay_objects
from relay.reading import said, until
from support.loops import run, turns
from support.runs import text, turn

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.testing import VirtualTime

ev = rd.events
HELLO = turn(text(0, "Hello"))


def test_a_stream_is_kept_for_a_while_after_its_end_and_its_events_are_then_free() -> None:
    before = relay_objects()

    async def main() -> None:
        async with Relay.open(keep=100) as relay:
            source = Subject[rd.Event]()
            source.pipe(relay.publish("chat")).subscribe()
            started = ev.MessageStart("m1")
            seen = weakref.ref(started)
            source.on_next(started)
            del started
            await asyncio.sleep(1000)  # a live one is kept however long it takes
            assert await relay.streams() == ["chat"]
            source.on_completed()
            await asyncio.sleep(99)
            assert await rd.first_value(relay.watch("chat")) is seen()
            await asyncio.sleep(2)
            assert await relay.streams() == []
            assert left_behind(before) == Counter(OPENED)
            assert seen() is None
            assert await relay.start("chat", rx.of(*HELLO))  # the name is free

    VirtualTime().run(main())


def test_what_is_kept_keeps_neither_the_loop_nor_its_source_alive() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source = Subject[rd.Event]()
            source.pipe(relay.publish("chat")).subscribe()
            source.on_completed()
            seen = weakref.ref(source)
            del source
            gc.collect()
            assert seen() is None
            assert await relay.streams() == ["chat"]
        assert [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()] == []  # type: ignore[attr-defined]

    VirtualTime().run(main())


def test_an_expired_streams_timer_doesnt_take_its_successor() -> None:
    async def main() -> None:
        async with Relay.open(keep=100) as relay:
            await relay.start("chat", rx.of(*HELLO))
            await asyncio.sleep(50)
            await relay.delete("chat")
            await relay.start("chat", rx.of(*HELLO))
            await asyncio.sleep(60)
            assert await relay.streams() == ["chat"]
            await asyncio.sleep(60)
            assert await relay.streams() == []

    VirtualTime().run(main())


def test_a_stream_that_another_thread_has_stopped_and_deleted_leaves_no_timer() -> None:
    before = relay_objects()

    async def main() -> None:
        async with Relay.open(keep=100) as relay:
            rx.never().pipe(relay.publish("chat")).subscribe()
            deleting = threading.Thread(target=lambda: asyncio.run(relay.delete("chat")))
            deleting.start()
            deleting.join()  # before this loop hears of the end
            await turns(3)
            assert left_behind(before) == Counter(OPENED)

    VirtualTime().run(main())


def test_nothing_is_left_of_readers_that_leave_raise_or_give_up() -> None:
    before = relay_objects()

    async def main() -> None:
        async with Relay.open(lease=0.5) as relay:
            source = Subject[rd.Event]()
            publishing = source.pipe(relay.publish("chat")).subscribe()
            for _ in range(10):
                relay.watch("nobody").subscribe(on_error=lambda _: None)
                relay.watch("somebody").subscribe().dispose()
                relay.watch("chat").subscribe().dispose()
                reading = asyncio.create_task(rd.last_value(relay.watch("chat")))
                await turns(3)
                reading.cancel()

                def divide(_: rd.Event) -> None:
                    raise ZeroDivisionError

                failing = asyncio.create_task(rd.for_each(relay.watch("chat"), divide))
                await turns(3)
                source.on_next(HELLO[0])
                with pytest.raises(ZeroDivisionError):
                    await failing
                relay.watch("chat").pipe(ops.take(1)).subscribe()
                await turns(3)
            while (kept := left_behind(before))["Reader"]:  # those that wait for a lease
                await asyncio.sleep(0.01)
            assert kept.keys() == {*OPENED, "Name", "_Log", "Publication", "Budget"}
            assert kept["Publication"] == kept["_Log"] == 1
            publishing.dispose()
            await relay.delete("chat")
            del source, publishing
            assert left_behind(before) == Counter(OPENED)

    run(main)


def test_readers_that_raise_dont_concern_the_publisher_or_each_other() -> None:
    reports: list[dict[str, Any]] = []

    async def main() -> None:
        async with Relay.open() as relay:
            source, got = Subject[rd.Event](), list[rd.Event]()

            def divide(_: rd.Event) -> None:
                raise ZeroDivisionError

            source.pipe(relay.publish("chat")).subscribe()
            relay.watch("chat").subscribe(divide)
            relay.watch("chat").subscribe(got.append)
            await turns(3)
            for event in HELLO:
                source.on_next(event)
            await turns(3)
            assert got == HELLO

    run(main, reports=reports)
    assert [type(one["exception"]) for one in reports] == [ZeroDivisionError]


def test_a_stuck_reader_costs_the_log_and_nothing_else() -> None:
    """A hundred readers that never read, of a stream that is longer than their doors take at once."""
    count = 20_000

    async def main() -> None:
        async with Relay.open() as relay:
            source, quick = Subject[rd.Event](), list[rd.Event]()
            source.pipe(relay.publish("chat")).subscribe()
            source.on_next(HELLO[0])
            source.on_next(HELLO[1])
            doors = [rd.to_async_iterable(relay.watch("chat"), maxsize=10) for _ in range(100)]
            stuck = [await door.__aenter__() for door in doors]
            relay.watch("chat").subscribe(quick.append)
            await turns(5)
            tracemalloc.start()
            for number in range(count):
                source.on_next(ev.TextDelta(0, str(number)))
                if number % 100 == 0:
                    await turns(2)
            size, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert size < count * 300  # a reader's own queue of pointers would be 16 MB for all
            text = "".join(map(str, range(count)))
            await until(lambda: said(quick) == text)
            source.on_completed()
            assert said([event async for event in stuck[0]]) == text
            for door in doors:
                await door.__aexit__(None, None, None)

    run(main)


def test_a_long_stream_is_read_in_turns_so_that_others_have_theirs() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start(
                "chat", rx.of(*(ev.ProviderEvent("made-up", str(number)) for number in range(10_000)))
            )
            await turns(5)
            got, ticks = list[rd.Event](), 0
            relay.watch("chat").subscribe(got.append)
            while len(got) < 10_000:
                before = len(got)
                await asyncio.sleep(0)
                ticks += 1
                assert len(got) - before <= 256
            assert ticks > 30

    run(main)


@pytest.mark.parametrize("kind", ["text", "data", "a failed text"])
def test_a_long_stream_is_joined_in_turns_too(kind: str) -> None:
    deltas = (
        [ev.TextDelta(0, "a"), ev.Custom("progress", 1, "id")] if kind == "data" else [ev.TextDelta(0, "a")]
    )
    end = rx.throw(rd.ProviderError("overloaded")) if kind == "a failed text" else rx.empty()

    async def main() -> None:
        async with Relay.open() as relay:
            publisher = rx.concat(rx.of(*HELLO[:2], *deltas * 10_000), end).pipe(relay.publish("chat"))
            publisher.subscribe(on_error=lambda _: None)
            ticks, got, ends = 0, list[rd.Event](), list[Any]()
            relay.watch("chat").subscribe(got.append, ends.append, lambda: ends.append("|"))
            while not ends:
                await asyncio.sleep(0)
                ticks += 1
            assert ticks > (20 if kind == "text" else 40) > 2 * len(got)
            if kind == "a failed text":
                assert ends[0].snapshot.text == "a" * 10_000

    run(main)


def test_a_publisher_on_one_loop_is_read_on_others_and_in_plain_code() -> None:
    notes = [ev.Custom("note", number) for number in range(500)]  # come as they are, also to who falls behind

    async def main() -> None:
        async with Relay.open() as relay:
            here, begun = threading.get_ident(), threading.Barrier(4)
            heard: dict[str, Any] = {}

            async def on_another_loop() -> None:
                threads: set[int] = set()
                got: list[rd.Event] = []

                async def take(event: rd.Event) -> None:
                    threads.add(threading.get_ident())
                    got.append(event)

                reading = asyncio.create_task(rd.for_each(relay.watch("chat"), take))
                await asyncio.sleep(0)
                await asyncio.to_thread(begun.wait, 60)
                await reading
                assert threads == {threading.get_ident()} != {here}
                heard["loop"] = got

            def in_plain_code() -> None:
                with rd.to_iterable(relay.watch("chat")) as events:
                    begun.wait(60)
                    heard["plain"] = list(events)

            def with_an_observer() -> None:
                got: list[rd.Event] = []
                done = threading.Event()
                relay.watch("chat").subscribe(got.append, on_completed=done.set)
                begun.wait(60)
                assert done.wait(60)
                heard["observer"] = got

            jobs = [
                asyncio.to_thread(asyncio.run, on_another_loop()),
                asyncio.to_thread(in_plain_code),
                asyncio.to_thread(with_an_observer),
            ]
            waiting = asyncio.gather(*jobs)
            await asyncio.to_thread(begun.wait, 60)
            await rd.for_each(rd.from_iterable(notes).pipe(relay.publish("chat")), lambda _: None)
            await waiting
            assert heard == {"loop": notes, "plain": notes, "observer": notes}

    run(main)


def test_a_publisher_and_its_stop_may_be_on_any_thread() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            for number in range(20):
                name = f"chat {number}"
                got: list[Any] = []

                def publish(name: str, got: list[Any]) -> None:
                    async def endless() -> Any:
                        while True:
                            yield HELLO[0]
                            await asyncio.sleep(0)

                    events = rd.from_async_iterable(endless).pipe(relay.publish(name))
                    with rd.to_iterable(events) as values:
                        got.extend(values)

                publishing = asyncio.create_task(asyncio.to_thread(publish, name, got))
                first = await rd.first_value(relay.watch(name))
                assert first == HELLO[0]
                assert await asyncio.to_thread(asyncio.run, relay.cancel(name, "enough"))
                await publishing
                assert got[-1] == ev.MessageInterrupted("enough")
                kept: list[rd.Event] = []
                await rd.for_each(relay.watch(name), kept.append)
                assert kept == got

    run(main)


def test_the_readers_of_a_slow_publisher_are_told_while_it_waits() -> None:
    """The publisher's own reader is slow, and the source waits for it. The other readers get what is there at once."""

    async def main() -> None:
        async with Relay.open() as relay:
            events = rd.from_iterable(HELLO * 100)
            door = rd.to_async_iterable(events.pipe(relay.publish("chat")), maxsize=1)
            async with door as values:
                got: list[rd.Event] = []
                relay.watch("chat").subscribe(got.append)
                async for _ in values:
                    await turns(10)
                    if len(got) > 20:
                        break

    run(main)


WRONG: list[dict[str, Any]] = [
    {"store": b"redis://localhost"},
    {"store": "http://localhost"},
    {"store": "valkey+embedded://host/path"},
    {"patience": 0},
    {"replicas": -1},
    {"replicas": True},
    {"prefix": ""},
    {"prefix": "{1}"},
    {"prefix": "é"},
    {"lease": 0},
    {"lease": 0.49},
    {"lease": 0.49, "store": "valkey://localhost"},
    {"lease": timedelta(milliseconds=499)},
    {"lease": "10"},
    {"keep": -1},
    {"keep": float("inf")},
    {"max_events": 0},
    {"max_events": 1.5},
    {"max_events": True},
    {"max_bytes": 0},
    {"max_bytes": 1.5},
    {"max_bytes": True},
    {"max_total_bytes": 0},
    {"max_total_bytes": "1"},
    *({name: wrong} for name in ("lease", "keep", "patience") for wrong in (1e10, 10**400, float("nan"))),
    {"replicas": 10**10},
]


@pytest.mark.parametrize("options", WRONG, ids=lambda options: str(options)[:40])
def test_a_wrong_option_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(rd.InvalidValueError, match=next(iter(options))):
        Relay.open(**options)
