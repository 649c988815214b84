"""A relay with a window joins a publisher's neighbouring deltas before they are written, and loses none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from relay.comparing import folded
from relay.conftest import Opener
from relay.later import Later
from relay.reading import HELLO, Source, read, said, told, until
from support.loops import run, turns
from support.runs import call, turn
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.testing import VirtualTime

ev = rd.events
START, BLOCK = HELLO[:2]


def words(*said: str, index: int = 0) -> list[rd.Event]:
    return [ev.TextDelta(index, one) for one in said]


Check = Callable[[Relay, Subject[rd.Event], list[Any]], Coroutine[Any, Any, None]]


def publishing(check: Check, **options: Any) -> None:
    """Check what a publisher in memory emits, in virtual time, with a window of a second."""

    async def main() -> None:
        async with Relay.open(**{"window": 1, **options}) as relay:
            source = Subject[rd.Event]()
            got = told(source.pipe(relay.publish("chat")))
            await check(relay, source, got)

    VirtualTime().run(main())


def emit(source: Subject[rd.Event], *events: rd.Event) -> None:
    for event in events:
        source.on_next(event)


def test_the_first_delta_is_written_at_once_and_those_of_the_window_as_one() -> None:
    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        following = told(relay.watch("chat"))
        emit(source, START, BLOCK, *words("a", "b"))
        await asyncio.sleep(0.5)
        emit(source, *words("c"))
        await turns()
        assert got == following == [START, BLOCK, *words("a")]
        await asyncio.sleep(0.4)
        assert len(got) == 3
        await asyncio.sleep(0.2)
        assert got == following == [START, BLOCK, *words("a", "bc")]
        emit(source, *words("d"))  # the next window is open
        assert len(got) == 4
        await asyncio.sleep(1)
        assert got[4:] == words("d")
        await asyncio.sleep(2)
        emit(source, *words("e"))  # none was
        assert got[5:] == words("e")
        source.on_completed()
        assert got[6:] == ["|"]
        assert (await read(relay.entries("chat")))[-2].id.endswith("-6")

    publishing(check)


@pytest.mark.parametrize("event", [ev.BlockFinish(0), ev.Custom("note", 1), BLOCK])
def test_what_cant_be_joined_waits_for_nothing_and_comes_behind_what_is_held(event: rd.Event) -> None:
    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        emit(source, *words("a", "b", "c"), event)
        assert got == [*words("a", "bc"), event]

    publishing(check)


def test_only_neighbours_of_one_kind_block_choice_and_run_are_joined_and_in_their_order() -> None:
    deltas: list[rd.Event] = [
        ev.TextDelta(0, "a"),
        ev.TextDelta(0, "b"),
        ev.TextDelta(1, "c"),
        ev.ReasoningDelta(1, "d"),
        ev.ToolCallDelta(1, "e"),
        ev.DataDelta(1, "f"),
        ev.TextDelta(1, "g", choice=1),
        ev.TextDelta(1, "h", run_id="r"),
        ev.TextDelta(0, "i"),
        rd.events.from_dict({**ev.TextDelta(0, "j").to_dict(), "new": 1}),
        ev.TextDelta(0, "k"),
    ]

    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        emit(source, *words("first"), *deltas)
        await asyncio.sleep(1.5)
        assert got == [*words("first"), ev.TextDelta(0, "ab"), *deltas[2:]]

    publishing(check)


def test_without_a_window_nothing_is_joined(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            assert await read(rx.of(*HELLO).pipe(relay.publish("chat"))) == [*HELLO, "|"]
            assert len([entry async for entry in rd.iterate(relay.entries("chat", None))]) <= len(HELLO)

    run(main)


END = ev.MessageInterrupted


@pytest.mark.parametrize("how", ["completes", "fails", "cancel", "delete", "drain", "leaves", "closes"])
def test_what_is_held_comes_before_every_end(how: str, open_relay: Opener) -> None:
    error = RuntimeError("broken")
    ends: dict[str, list[Any]] = {
        "completes": ["|"],
        "fails": [error],
        "cancel": [END("enough"), "|"],
        "delete": [END("deleted"), "|"],
        "drain": [END("a deploy"), "|"],
        "closes": [END("the relay was closed"), "|"],
    }

    async def main() -> None:
        async with open_relay(window=1000, keep=100) as there:
            async with open_relay(window=1000) as here:
                source, got = Subject[rd.Event](), list[Any]()
                publishing = source.pipe(here.publish("chat")).subscribe(
                    got.append, got.append, lambda: got.append("|")
                )
                reading = here if open_relay is Relay.open else there
                entries = list[Any]()
                following = asyncio.create_task(read(reading.entries("chat"), entries))
                await until(lambda: source.observers)
                emit(source, START, BLOCK, *words("a", "b", "c"))
                await until(lambda: len(entries) == 3)
                if how == "completes":
                    source.on_completed()
                elif how == "fails":
                    source.on_error(error)
                elif how == "cancel":
                    assert await here.cancel("chat", "enough")
                elif how == "delete":
                    assert await here.delete("chat")
                elif how == "drain":
                    assert await here.drain(0.01, "a deploy") == ["chat"]
                elif how == "leaves":
                    publishing.dispose()
                if how != "closes":
                    *seen, end = await following
            if how == "closes":
                *seen, end = await following
            events = [entry.event for entry in seen]
            assert events[:4] == [START, BLOCK, *words("a", "bc")]
            if how == "leaves":
                assert got == events[:3]
                assert events[4:] == [END("publisher left")]
            else:
                assert got == [*events[:4], *ends[how]]
                assert events[4:] == ends[how][:-1]
            assert end == "|" or (how == "fails" and isinstance(end, rd.StreamInterrupted))

    run(main)


def test_a_stop_from_another_thread_leaves_no_hole_in_the_text() -> None:
    """Whatever was taken from the source before the stop is written before the end, without a gap."""
    chance = Random(1)

    async def main() -> None:
        for _ in range(30):
            async with Relay.open(window=chance.choice((1e-4, 1e-3, 1000))) as relay:
                source = Subject[rd.Event]()
                source.pipe(relay.publish("chat")).subscribe(lambda _: None)
                emit(source, START, BLOCK)
                go = threading.Barrier(2)

                def stop(relay: Relay = relay, go: threading.Barrier = go) -> None:
                    go.wait()
                    asyncio.run(relay.cancel("chat"))

                stopping = threading.Thread(target=stop)
                stopping.start()
                go.wait()
                for number in range(2000):
                    source.on_next(ev.TextDelta(0, chr(0x4E00 + number)))
                    if number % 7 == 0:
                        source.on_next(ev.Custom("note", number))
                stopping.join()
                text = said(await read(relay.watch("chat")))
                assert text == "".join(chr(0x4E00 + number) for number in range(len(text)))

    run(main)


def test_a_stop_during_an_append_comes_behind_it() -> None:
    class Slow(Later):
        stopping: threading.Thread | None = None

        def ask(self, kind: str, *more: Any) -> None:
            if kind == "append" and self.stopping is not None:
                self.stopping.start()
                self.stopping.join(0.2)  # it can't end before the append has
            super().ask(kind, *more)

    async def main() -> None:
        later = Slow(asyncio.get_running_loop(), [])
        relay, source = Relay(later, 10.0, 10**6, window=1000.0), Subject[rd.Event]()
        got = told(source.pipe(relay.publish("chat")))
        emit(source, *words("a", "b", "c"))
        later.stopping = threading.Thread(target=lambda: asyncio.run(relay.cancel("chat")))
        emit(source, ev.BlockFinish(0))
        await asyncio.to_thread(later.stopping.join)
        assert got == [*words("a", "bc"), ev.BlockFinish(0), END(), "|"]
        await relay._close()

    run(main)


def test_it_holds_no_more_than_some_bytes() -> None:
    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        emit(source, *words("first", *["x" * 1000] * 1000))
        assert len(said(got)) > 900_000
        emit(source, *words(*["y"] * 100_000))
        assert len(said(got).replace("x", "")) > 90_000
        source.on_completed()
        assert len(said(got)) == 5 + 1_100_000

    publishing(check, window=1000)


def test_a_window_that_was_full_holds_again() -> None:
    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        emit(source, *words("first", "x" * 100_000, "a", "b"))
        assert got == words("first", "x" * 100_000)

    publishing(check, window=1000)


def test_the_joined_events_are_what_is_counted() -> None:
    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        emit(source, *words("a", "b", "c"))
        await asyncio.sleep(1.5)
        emit(source, *words("d", "e"))
        assert got == words("a", "bc")
        await asyncio.sleep(1)
        assert got[2:] == words("de")
        emit(source, *words("f"))
        await asyncio.sleep(1)
        assert isinstance(got[-1], rd.errors.LimitExceededError)
        assert (got[-1].limit, len(got)) == ("max_events", 4)
        assert not source.observers
        assert [type(one) for one in await read(relay.watch("chat"))][-1] is rd.errors.LimitExceededError

    publishing(check, max_events=3)


@pytest.mark.parametrize("how", ["completes", "cancel"])
def test_what_is_held_at_the_end_and_has_no_room_is_an_error(how: str) -> None:
    async def check(relay: Relay, source: Subject[rd.Event], got: list[Any]) -> None:
        emit(source, *words("a"), ev.TextDelta(0, "b"), ev.TextDelta(1, "c"))
        if how == "cancel":
            assert await relay.cancel("chat")
        else:
            source.on_completed()
        assert got[:-1] == words("a", "b")
        assert isinstance(got[-1], rd.errors.LimitExceededError)
        *events, end = await read(relay.watch("chat"))
        assert (said(events), type(end)) == ("ab", rd.errors.LimitExceededError)

    publishing(check, max_events=2)


def test_a_tool_is_called_when_its_update_is_in_the_log_however_long_the_window() -> None:
    calls = list[str]()

    async def look(at: str) -> str:
        calls.append(at)
        return "seen"

    async def main() -> None:
        later = Later(asyncio.get_running_loop(), ["claim", "append", "end"])
        relay, source = Relay(later, 10.0, 10**6, window=1000.0), Subject[rd.Event]()
        got = told(source.pipe(rd.run_tools({"look": look}), relay.publish("chat")))
        later.answer()
        await turns()
        for event in turn(call(0, "c1", "sea")):
            source.on_next(event)
        source.on_completed()
        await turns()
        assert calls == []
        while later.answer():
            await turns()
        assert calls == ["sea"]
        await turns()
        while later.answer():
            await turns()
        assert got[-1] == "|"
        await relay._close()

    run(main)


def test_a_stream_without_a_loop_has_its_window_on_a_thread() -> None:
    relays, done = list[Relay](), threading.Event()

    async def keep_open() -> None:
        async with Relay.open(window=0.01) as relay:
            relays.append(relay)
            while not done.is_set():
                await asyncio.sleep(0.001)

    keeper = threading.Thread(target=lambda: asyncio.run(keep_open()))
    keeper.start()
    while not relays:
        done.wait(0.001)
    source, got = Subject[rd.Event](), list[Any]()
    publishing = source.pipe(relays[0].publish("chat")).subscribe(got.append)
    emit(source, *words("a", "b", "c"))
    assert got == words("a")
    while len(got) < 2:
        done.wait(0.001)
    assert got == words("a", "bc")
    publishing.dispose()
    done.set()
    keeper.join()


def test_random_streams_fold_to_the_same_reply(open_relay: Opener) -> None:
    chance = Random(7)

    async def main() -> None:
        async with open_relay(window=0.002) as relay:
            for number in range(10):
                events = turn(
                    *(
                        [
                            ev.BlockStart(i, {"type": "text"}),
                            *words(*"some words", index=i),
                            ev.BlockFinish(i),
                        ]
                        for i in range(3)
                    )
                )
                source = Source()
                publishing = asyncio.create_task(read(source.events.pipe(relay.publish(f"chat {number}"))))
                for event in events:
                    source.emit(event)
                    if chance.random() < 0.3:
                        await asyncio.sleep(chance.choice((0, 0.001, 0.003)))
                source.complete()
                got = await publishing
                assert folded(got[:-1]) == folded(events)
                assert folded((await read(relay.watch(f"chat {number}")))[:-1]) == folded(events)

    run(main)


def test_a_server_has_fewer_entries(server: ValkeyServer) -> None:
    def entries() -> int:
        (log,) = server.command("KEYS", "*}:log:*")  # type: ignore[misc]
        return int(server.command("XLEN", log))  # type: ignore[arg-type]

    async def main() -> None:
        counts = list[int]()
        for window in (None, 1000):
            server.command("FLUSHALL")
            async with Relay.open(server.url, window=window) as relay:
                source, got = Source(), list[Any]()
                publishing = asyncio.create_task(read(source.events.pipe(relay.publish("chat")), got))
                source.emit(START, BLOCK)
                await until(lambda: len(got) == 2)  # noqa: B023
                for number in range(100):
                    source.emit(*words("word "))
                    await until(lambda: window or len(got) == number + 3)  # noqa: B023
                source.complete()
                assert said(await publishing) == "word " * 100
                assert said(await read(relay.watch("chat"))) == "word " * 100
                counts.append(entries())
        assert counts[0] > 100
        assert counts[1] < 10

    run(main)


@pytest.mark.parametrize("window", [0, -1, "1", True, float("nan"), 1e10])
def test_a_wrong_window_is_refused_at_once(window: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="window"):
        Relay.open(window=window)
