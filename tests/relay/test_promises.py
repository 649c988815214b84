"""What a relay promises, on each store. On a server each test has two relays, as two machines have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import reactivex as rx
from relay.comparing import folded, is_transient, number_of
from relay.conftest import Opener
from relay.promises import claimed, promised, promises
from relay.reading import HELLO, Source, read, said, until
from support.loops import run
from support.runs import text, thought, turn

import rxdelta as rd
from rxdelta.relay import Entry, Relay, StreamUnreadableError

ev = rd.events
LONG = [
    *turn(thought(0, "hm"), text(1, "one" * 30)),
    ev.Custom("note", 1, "a"),
    *turn(text(0, "two"), id="m2"),
]


def test_each_promise_is_a_test_and_each_test_has_its_promise() -> None:
    said, claims = promises(), claimed()
    assert len(said) > 15
    assert [one for one in said if not one.startswith(tuple(claims))] == [], "promises without a test"
    assert [one for one in set(claims) if sum(each.startswith(one) for each in said) != 1] == []


@asynccontextmanager
async def two(open_relay: Opener, **options: Any) -> AsyncIterator[tuple[Relay, Relay]]:
    """Two machines' relays with the same streams. Memory has only one process, and so one relay."""
    async with open_relay(**options) as here:
        if open_relay is Relay.open:
            yield here, here
            return
        async with open_relay(**options) as there:
            yield here, there


@promised("A stream has one publisher")
def test_a_stream_is_published_once_and_watched_by_any_number(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            source = Source()
            early = [asyncio.create_task(read(relay.watch("chat"))) for relay in (here, there, there)]
            assert await here.start("chat", source.events)
            assert not await there.start("chat", rx.never())
            (refused,) = await read(rx.never().pipe(there.publish("chat")))
            assert isinstance(refused, rd.InvalidValueError)
            source.emit(*HELLO)
            source.complete()
            for task in early:
                *events, end = await task
                assert (folded(events), end) == (folded(HELLO), "|")
            assert not await there.start("chat", rx.never())  # it is kept
            late = await read(there.watch("chat"))
            assert said(late) == "Hello"
            assert not await there.is_live("chat")
            assert await there.streams() == ["chat"]
            assert await there.delete("chat")
            assert await here.streams() == []
            assert await there.start("chat", rx.of(*HELLO))

    run(main)


@promised("Events come in order")
def test_behind_each_id_comes_what_is_behind_it_on_any_machine(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            source, live = Source(), list[Entry]()
            assert await here.start("chat", source.events)
            following = asyncio.create_task(read(there.entries("chat"), live))
            for number, event in enumerate(LONG, 1):  # one by one, so that the reader has each id
                source.emit(event)
                await until(lambda number=number: len(live) == number)
            assert [entry.event for entry in live] == LONG
            source.complete()
            assert await following == [*live, "|"]
            ids = [entry.id for entry in live]
            assert [number_of(one) for one in ids] == [*range(1, len(LONG) + 1)]
            for place, after in enumerate(ids, 1):
                for relay in (here, there):
                    assert await read(relay.entries("chat", after)) == [*live[place:], "|"]

    run(main)


@promised("Events come in order")
def test_a_reader_that_leaves_anywhere_and_returns_anywhere_has_each_event_once(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            assert await here.start("chat", rx.of(*LONG))  # all at once
            whole = await read(here.entries("chat"))
            for first in range(1, len(whole) - 1):
                split = whole[first - 1].id
                head = (await read(here.entries("chat", split_at=split)))[:-1]
                had = [entry.event for entry in head if number_of(entry.id) <= number_of(split)]
                rest = await read(there.watch("chat", split))
                assert folded([*had, *rest[:-1]]) == folded(LONG)
                assert rest == [*LONG[number_of(split) :], "|"]

    run(main)


@promised("`publish` passes an event on when it is in the log")
def test_what_the_publisher_emits_can_be_read(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            source, emitted = Source(), 0
            source.emit(*HELLO)
            source.complete()
            async for event in rd.iterate(source.events.pipe(here.publish("chat"))):
                emitted += 1
                got = await rd.first_value(there.watch("chat"))
                assert got == HELLO[0]
                entries: list[Entry] = []
                async with rd.to_async_iterable(there.entries("chat")) as door:
                    async for entry in door:
                        entries.append(entry)
                        if number_of(entry.id) >= emitted:
                            break
                assert event == HELLO[emitted - 1]
            assert emitted == len(HELLO)

    run(main)


@promised("A reader that must not wait for the store")
def test_the_source_can_be_read_beside_the_relay(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            shared = rx.of(*HELLO).pipe(rd.share_events())
            beside = asyncio.create_task(read(shared))
            assert await here.start("chat", shared)
            assert (await beside)[-1] == "|"
            *events, end = await read(there.watch("chat"))
            assert (folded(events), end) == (folded(HELLO), "|")

    run(main)


@pytest.mark.parametrize("how", ["cancel", "delete"])
@promised("A cancel from any machine")
def test_a_stop_from_another_machine_closes_the_source(open_relay: Opener, how: str) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(*HELLO[:4])
            await until(lambda: said(got) == "He")
            following = asyncio.create_task(read(there.watch("chat")))
            if how == "cancel":
                assert await there.cancel("chat", "enough")
                assert not await there.cancel("chat", "enough")
            else:
                assert await there.delete("chat")
                assert await there.start("chat", rx.of(*HELLO))  # the name is free at once
            last = ev.MessageInterrupted("enough" if how == "cancel" else "deleted")
            assert await publishing == [*HELLO[:4], last, "|"]
            await until(lambda: source.life == ["subscribed", "closed"])
            *events, interrupted, end = await following
            if how == "cancel":
                assert (folded(events), interrupted, end) == (folded(HELLO[:4]), last, "|")

    run(main)


def test_readers_of_a_deleted_stream_read_it_to_the_end_beside_its_successor(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            source, got = Source(), list[Any]()
            assert await here.start("chat", source.events)
            source.emit(*HELLO[:4])
            following = asyncio.create_task(read(there.entries("chat"), got))
            await until(lambda: got and number_of(got[-1].id) == 4)
            assert await there.delete("chat")
            assert await there.start("chat", rx.of(ev.Custom("note", "new")))
            *_, last, end = await following
            assert (last.event, end) == (ev.MessageInterrupted("deleted"), "|")
            assert last.id[:16] == got[0].id[:16]
            assert await read(here.watch("chat")) == [ev.Custom("note", "new"), "|"]
            (refused,) = await read(here.watch("chat", got[0].id))
            assert isinstance(refused, rd.InvalidValueError)

    run(main)


@promised("A silent publisher that lives isn't dead")
def test_a_publisher_may_be_silent_for_longer_than_a_lease(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay, lease=0.5) as (here, there):
            source, got = Source(), list[Any]()
            assert await here.start("chat", source.events)
            source.emit(HELLO[0])
            following = asyncio.create_task(read(there.watch("chat"), got))
            await until(lambda: got)
            for _ in range(4):
                await asyncio.sleep(0.5)
                assert await there.is_live("chat")
            assert not following.done()
            source.emit(*HELLO[1:])
            source.complete()
            assert folded((await following)[:-1]) == folded(HELLO)

    run(main)


@promised("Leaving a relay ends the streams that it publishes")
def test_a_relay_that_is_left_ends_its_streams_and_no_others(open_relay: Opener) -> None:
    async def main() -> None:
        if open_relay is Relay.open:
            pytest.skip("with memory there is one relay")
        async with open_relay() as there:
            source, other = Source(), Source()
            async with open_relay() as here:
                assert await here.start("mine", source.events)
                assert await there.start("yours", other.events)
                source.emit(*HELLO[:4])
                other.emit(*HELLO[:4])
                got: list[Any] = []
                reading = asyncio.create_task(read(here.watch("yours"), got))
                waiting = asyncio.create_task(read(here.watch("nobody's")))
                mine = asyncio.create_task(read(there.watch("mine")))
                await until(lambda: said(got) == "He")
            assert source.life == ["subscribed", "closed"]
            assert (await mine)[-2:] == [ev.MessageInterrupted("the relay was closed"), "|"]
            assert type((await reading)[-1]) is StreamUnreadableError
            assert type((await waiting)[-1]) is StreamUnreadableError
            assert await there.streams() == ["mine", "yours"]
            other.emit(*HELLO[4:])
            other.complete()
            assert said(await read(there.watch("yours"))) == "Hello"

    run(main)


@promised("A stream that isn't there")
def test_who_comes_before_the_stream_waits_for_a_lease(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay, lease=0.5) as (here, there):
            (error,) = await read(there.watch("chat"))
            assert isinstance(error, rd.errors.EmptyStreamError)
            early = asyncio.create_task(read(there.watch("chat")))
            await asyncio.sleep(0.05)
            assert await here.start("chat", rx.of(*HELLO))
            *events, end = await early
            assert (folded(events), end) == (folded(HELLO), "|")

    run(main)


def test_the_longest_times_are_kept_and_waited_for(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay, lease=1e9, keep=1e9, patience=1e9) as (here, there):
            source = Source()
            assert await here.start("chat", source.events)
            assert await there.is_live("chat")
            source.emit(*HELLO)
            source.complete()
            assert said(await read(there.watch("chat"))) == "Hello"
            assert await there.streams() == ["chat"]

    run(main)


VALUES = [
    2**63,
    -(2**64) - 1,
    10**4299,
    1.5,
    -0.0,
    1e308,
    True,
    None,
    "",
    "\ud800",
    "\x00\x7f\u200b😀",
    {},
    [],
    {"": {"\x00": [None, {"a": []}]}},
    {"__class__": 1, "constructor": 2},
    [[1, [2.5, [None, ["x", {"y": False}]]]]],
]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@promised("Whatever an event can hold")
def test_hostile_values_are_stored_and_read_equal(open_relay: Opener) -> None:
    events: list[rd.Event] = [
        *(ev.Custom("value", value) for value in [*VALUES, nested(150), nested(199)]),
        ev.TextDelta(0, ""),
        ev.TextDelta(0, "\ud83d"),  # a character whose second half is in the next delta
        ev.TextDelta(0, "\ude00"),
        ev.TextDelta(2**31 - 1, "far away"),
        ev.ProviderEvent("made-up", "odd", {"big": 10**4299}),
    ]

    async def main() -> None:
        async with two(open_relay) as (here, there):
            for number, event in enumerate(events):
                assert await here.start(f"chat {number}", rx.of(event))
                assert await read(there.watch(f"chat {number}")) == [event, "|"]
            assert await here.start("chat", rx.of(ev.MessageStart("m1"), *events))
            (first, *_) = await read(there.entries("chat"))
            assert await read(there.watch("chat", first.id)) == [*events, "|"]

    run(main)


@pytest.mark.slow
@promised("Whatever an event can hold")
def test_an_event_of_64_mib_and_a_stream_without_any(open_relay: Opener) -> None:
    large = ev.TextDelta(0, "é" * (1 << 25))

    async def main() -> None:
        async with two(open_relay, max_bytes=None) as (here, there):
            assert await here.start("large", rx.of(HELLO[0], large, ev.TextDelta(0, "!")))
            entries = await read(there.entries("large"))
            assert len(said([entry.event for entry in entries[:-1]])) == len(large.text) + 1
            assert await here.start("empty", rx.empty())
            assert await read(there.watch("empty")) == ["|"]
            assert await here.start("failed", rx.throw(rd.ProviderError("busy")))
            (error,) = await read(there.watch("failed"))
            assert (type(error), error.message) == (rd.ProviderError, "busy")

    run(main)


@promised("Whatever an event can hold")
def test_an_error_and_a_reason_may_hold_anything_too(open_relay: Opener) -> None:
    async def main() -> None:
        async with two(open_relay) as (here, there):
            error = rd.InvalidValueError("odd \ud800", field="x", value=10**5000)
            assert await read(rx.throw(error).pipe(here.publish("chat"))) == [error]
            (seen,) = await read(there.watch("chat"))
            assert (type(seen), str(seen), seen.field) == (rd.InvalidValueError, str(error), "x")
            source = Source()
            assert await here.start("other", source.events)
            assert await there.cancel("other", '"\ud800')
            assert await read(there.watch("other")) == [ev.MessageInterrupted('"\ud800'), "|"]

    run(main)


def test_transient_data_reach_who_reads_now_on_any_machine(open_relay: Opener) -> None:
    status = ev.Custom("status", "looking", transient=True)

    async def main() -> None:
        async with two(open_relay) as (here, there):
            source, got = Source(), list[Any]()
            assert await here.start("chat", source.events)
            source.emit(HELLO[0])
            following = asyncio.create_task(read(there.watch("chat"), got))
            await until(lambda: got)
            source.emit(status, HELLO[1])
            source.complete()
            assert await following == [HELLO[0], status, HELLO[1], "|"]
            late = await read(here.watch("chat"))
            assert [one for one in late if one != "|" and is_transient(one)] == []

    run(main)
