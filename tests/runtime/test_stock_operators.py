"""Whether a reading's session reaches through Rx's own operators, as the table in the reference says.

Each case reads one source (or several) through one operator on a real loop. Time passes for the operators' sake only:
the sources never end, and the test goes on as soon as the exception has arrived somewhere.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler

import rxdelta as rd
from rxdelta.aio.reading import ReaderSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SECONDS = 60  # what hangs is found
BOOM = ValueError("boom")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "slow-readers.md"


def raising(source: rx.Observable[Any]) -> rx.Observable[Any]:
    """An operator of somebody's own that raises, whatever it gets."""

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        def boom(*_: object) -> None:
            raise BOOM

        return source.subscribe(boom, boom, boom, scheduler=scheduler)

    return rx.Observable(subscribe)


class Sources:
    """The sources of one pipeline, counted as they are subscribed."""

    def __init__(self) -> None:
        self.subscribed = 0

    def __call__(self, items: Any = None) -> rx.Observable[int]:
        source = rd.from_async_iterable(self.bursts if items is None else items)

        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            self.subscribed += 1
            return source.subscribe(observer, scheduler=scheduler)

        return rx.Observable(subscribe)

    async def bursts(self) -> AsyncIterator[int]:
        while True:
            for number in range(3):
                yield number
            await asyncio.sleep(0.02)

    async def one(self) -> AsyncIterator[int]:
        yield 1

    async def broken(self) -> AsyncIterator[int]:
        raise OSError
        yield 1

    async def empty_twice(self) -> AsyncIterator[int]:
        if self.subscribed > 2:
            yield 1

    async def broken_twice(self) -> AsyncIterator[int]:
        if self.subscribed < 3:
            raise OSError
        yield 1


def nothing(_: object) -> bool:
    return False


def same(value: Any) -> Any:
    return value


def soon(_: object = None) -> rx.Observable[int]:
    return rx.timer(0.01)


def listed(window: rx.Observable[Any]) -> rx.Observable[Any]:
    return window.pipe(ops.to_list())


Build: TypeAlias = "Callable[[Sources], rx.Observable[Any]]"

TIMERS: dict[str, Build] = {
    "sample": lambda source: source().pipe(ops.sample(0.01)),
    "sample by an observable": lambda source: source().pipe(ops.sample(rx.interval(0.01))),
    "delay": lambda source: source().pipe(ops.delay(0.01)),
    "delay_subscription": lambda source: source().pipe(ops.delay_subscription(0.01)),
    "delay_with_mapper": lambda source: source().pipe(ops.delay_with_mapper(soon)),
    "debounce": lambda source: source().pipe(ops.debounce(0.005)),
    "throttle_with_mapper": lambda source: source().pipe(ops.throttle_with_mapper(soon)),
    "throttle_first": lambda source: source().pipe(ops.throttle_first(0.01)),
    "timeout": lambda source: source().pipe(ops.filter(nothing), ops.timeout(0.01)),
    "timeout's other": lambda source: rx.never().pipe(ops.timeout(0.01, source())),
    "timeout_with_mapper": lambda source: rx.never().pipe(
        ops.timeout_with_mapper(soon(), lambda _: rx.never(), source())
    ),
    "buffer_with_time": lambda source: source().pipe(ops.buffer_with_time(0.01)),
    "buffer_with_time_or_count": lambda source: source().pipe(ops.buffer_with_time_or_count(0.01, 50)),
    "buffer": lambda source: source().pipe(ops.buffer(rx.interval(0.01))),
    "window_with_time": lambda source: source().pipe(ops.window_with_time(0.01), ops.flat_map(listed)),
    "window_when": lambda source: source().pipe(ops.window_when(soon), ops.flat_map(listed)),
    "timestamp": lambda source: source().pipe(ops.timestamp()),
    "time_interval": lambda source: source().pipe(ops.time_interval()),
    "take_with_time": lambda source: source().pipe(ops.filter(nothing), ops.take_with_time(0.01)),
    "take_until_with_time": lambda source: source().pipe(ops.filter(nothing), ops.take_until_with_time(0.01)),
    "take_last_with_time": lambda source: source(source.one).pipe(ops.take_last_with_time(1)),
    "skip_with_time": lambda source: source().pipe(ops.skip_with_time(0.01)),
    "skip_until_with_time": lambda source: source().pipe(ops.skip_until_with_time(0.01)),
    "skip_last_with_time": lambda source: source().pipe(ops.skip_last_with_time(0.01)),
    "interval": lambda source: rx.merge(rx.interval(0.01), source().pipe(ops.filter(nothing))),
    "timer": lambda source: rx.merge(rx.timer(0.01, 0.01), source().pipe(ops.filter(nothing))),
    "generate_with_relative_time": lambda source: rx.merge(
        rx.generate_with_relative_time(0, lambda _: True, same, lambda _: 0.01),
        source().pipe(ops.filter(nothing)),
    ),
    "group_by_until": lambda source: source().pipe(
        ops.group_by_until(same, None, soon), ops.flat_map(listed)
    ),
}

OTHERS: dict[str, Build] = {
    "map": lambda source: source().pipe(ops.map(same)),
    "flat_map": lambda source: source().pipe(ops.flat_map(lambda _: source())),
    "flat_map of a timer": lambda source: soon().pipe(ops.flat_map(lambda _: source())),
    "concat_map": lambda source: soon().pipe(ops.concat_map(lambda _: source())),
    "switch_latest": lambda source: source().pipe(ops.map(lambda _: source()), ops.switch_latest()),
    "exclusive": lambda source: source().pipe(ops.map(lambda _: source()), ops.exclusive()),
    "expand": lambda source: source(source.one).pipe(ops.expand(lambda _: source()), ops.skip(1)),
    "merge": lambda source: rx.merge(source(), source()),
    "merge, one at a time": lambda source: rx.of(source(source.empty_twice), source()).pipe(
        ops.merge(max_concurrent=1)
    ),
    "concat": lambda source: rx.concat(source(source.one).pipe(ops.ignore_elements()), source()),
    "concat behind a timer": lambda source: rx.concat(soon().pipe(ops.ignore_elements()), source()),
    "catch": lambda source: source(source.broken).pipe(ops.catch(source())),
    "catch with a function": lambda source: source(source.broken).pipe(ops.catch(lambda *_: source())),
    "on_error_resume_next": lambda source: rx.on_error_resume_next(source(source.broken), source()),
    "retry": lambda source: source(source.broken_twice).pipe(ops.retry(5)),
    "repeat": lambda source: source(source.empty_twice).pipe(ops.repeat(5)),
    "while_do": lambda source: source(source.empty_twice).pipe(ops.while_do(lambda _: True)),
    "start_with": lambda source: source().pipe(ops.start_with(1), ops.skip(1)),
    "zip": lambda source: rx.zip(source(), source()),
    "zip_latest": lambda source: source().pipe(ops.zip_latest(source())),
    "combine_latest": lambda source: rx.combine_latest(source(), source()),
    "with_latest_from": lambda source: source().pipe(ops.with_latest_from(source())),
    "fork_join": lambda source: rx.fork_join(source(source.one), source(source.one)),
    "amb": lambda source: rx.amb(source(), source()),
    "sequence_equal": lambda source: source(source.one).pipe(ops.sequence_equal(source(source.one))),
    "join": lambda source: source().pipe(ops.join(source(), soon, soon)),
    "take_until": lambda source: source().pipe(ops.filter(nothing), ops.take_until(source())),
    "skip_until": lambda source: source().pipe(ops.skip_until(source())),
    "group_by": lambda source: source().pipe(
        ops.group_by(same), ops.flat_map(lambda group: group.pipe(ops.flat_map(lambda _: source())))
    ),
    "partition": lambda source: rx.merge(*source().pipe(ops.partition(nothing))),
    "share": lambda source: source().pipe(ops.share()),
    "publish with a function": lambda source: source().pipe(ops.publish(lambda it: it.pipe(ops.delay(0.01)))),
    "replay": lambda source: source().pipe(ops.replay(5), ops.ref_count()),
    "auto_connect": lambda source: source().pipe(ops.publish()).auto_connect(1),
    "do_action": lambda source: source().pipe(ops.do_action(same)),
    "finally_action": lambda source: source().pipe(ops.finally_action(lambda: None)),
    "defer": lambda source: rx.defer(lambda _: source()),
    "using": lambda source: rx.using(lambda: None, lambda _: source()),
    "materialize": lambda source: source().pipe(ops.materialize(), ops.dematerialize()),
}


def on_loop() -> AsyncIOScheduler:
    return AsyncIOScheduler(asyncio.get_running_loop())


def connected(source: Sources) -> rx.Observable[int]:
    published = source().pipe(ops.publish())
    published.connect()
    return published


ROWS: dict[str, tuple[bool, bool, dict[str, Build]]] = {
    "a timer": (True, True, TIMERS),
    "any other, without `scheduler`": (True, True, OTHERS),
    "a timer with `scheduler=` of the loop": (
        True,
        False,
        {
            "sample": lambda source: source().pipe(ops.sample(0.01, scheduler=on_loop())),
            "delay": lambda source: source().pipe(ops.delay(0.01, scheduler=on_loop())),
        },
    ),
    "`observe_on(scheduler)`": (
        True,
        False,
        {
            "the loop": lambda source: source().pipe(ops.observe_on(on_loop())),
            "a thread": lambda source: source().pipe(ops.observe_on(NewThreadScheduler())),
        },
    ),
    "`subscribe_on(scheduler)` of the loop": (
        True,
        True,
        {"subscribe_on": lambda source: source().pipe(ops.subscribe_on(on_loop()))},
    ),
    "`connect()` by hand": (False, False, {"connect": connected}),
}
CASES = [
    pytest.param(build, room, failure, id=f"{row}: {name}")
    for row, (room, failure, builds) in ROWS.items()
    for name, build in builds.items()
]


@pytest.mark.parametrize(("build", "reached", "raised"), CASES)
def test_the_session_reaches_through_rxs_own_operators(
    build: Any, reached: bool, raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[object] = []
    register = ReaderSession.register
    monkeypatch.setattr(
        ReaderSession, "register", lambda session, pump: (registered.append(pump), register(session, pump))
    )
    before = set(threading.enumerate())

    async def main() -> None:
        loop, lost = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda *_: lost.set())
        monkeypatch.setattr(threading, "excepthook", lambda _: loop.call_soon_threadsafe(lost.set))
        sources = Sources()
        reading = asyncio.ensure_future(rd.for_each(raising(build(sources)), lambda _: None))
        losing = asyncio.ensure_future(lost.wait())
        await asyncio.wait({reading, losing}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        assert lost.is_set() is not raised
        assert reading.done() is raised
        losing.cancel()
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({reading})
            assert reading.exception() is BOOM
        assert sources.subscribed
        assert len(registered) == (sources.subscribed if reached else 0)

    asyncio.run(main())
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS)


@pytest.mark.parametrize("build", TIMERS.values(), ids=TIMERS)
def test_a_timer_of_rx_runs_on_the_readers_loop(build: Any) -> None:
    places: list[threading.Thread] = []

    async def main() -> None:
        source = build(Sources()).pipe(
            ops.materialize(), ops.do_action(lambda _: places.append(threading.current_thread()))
        )
        await asyncio.wait_for(rd.first_value(source), SECONDS)
        assert places[0] is threading.current_thread()

    asyncio.run(main())


class Full:
    """An operator that never takes more."""

    def __init__(self, sink: rd.building.Sink[Any]) -> None:
        sink.room().close()
        self.on_next = sink.on_next


class CountedSources(Sources):
    given = 0

    async def bursts(self) -> AsyncIterator[int]:
        async for number in super().bursts():
            self.given += 1
            yield number


@pytest.mark.parametrize("build", [*TIMERS.values(), *OTHERS.values()], ids=[*TIMERS, *OTHERS])
def test_the_room_of_an_operator_reaches_through_rxs_own_operators(build: Any) -> None:
    async def main() -> None:
        sources = CountedSources()
        async with rd.to_async_iterable(build(sources).pipe(rd.building.lift("full", Full))):
            await asyncio.sleep(0.03)  # in which a source that doesn't wait gives three or more
            assert sources.subscribed
            assert sources.given <= sources.subscribed

    asyncio.run(main())


def test_a_thread_of_rx_carries_no_session() -> None:
    """Of the table's last row: there is no loop on the thread, so nothing can wait."""
    taken = threading.Semaphore(0)

    def items() -> Any:
        for number in range(5000):
            taken.release()
            yield number

    async def main() -> None:
        source = rd.from_iterable(items).pipe(ops.subscribe_on(NewThreadScheduler()))
        async with rd.to_async_iterable(source, maxsize=1) as values:
            for _ in range(5000):  # though nobody reads
                assert taken.acquire(timeout=SECONDS)
            assert [value async for value in values] == list(range(5000))

    asyncio.run(main())


def test_the_page_has_this_table() -> None:
    rows = {name: (room, failure) for name, (room, failure, _) in ROWS.items()}
    rows["`subscribe_on(scheduler)` of a thread"] = (False, False)
    lines = PAGE.read_text("utf-8").split("| Rx's operator | capacity, end | failure |\n")[1].splitlines()[1:]
    table = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    assert [name.partition(":")[0] for name, _, _ in table] == list(rows)
    assert [(room == "yes", failure == "yes") for _, room, failure in table] == list(rows.values())
