"""`from_iterable`: what blocks is read on a thread. Nothing here goes by the clock."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import threading
import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from support.loops import run, turns

import rxdelta as rd
from rxdelta.aio import pumps, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOOM = ValueError("boom")


class Blocks:
    """A sync client's stream: what it waits for is in the test's hands."""

    def __init__(self, *items: Any, end: Exception | None = None, hold: bool = False) -> None:
        self.items = list(items)
        self.end = end
        self.hold = hold  # before the end
        self.go_on = threading.Event()
        self.waits = threading.Event()
        self.given = self.closed = 0
        self.threads: set[str] = set()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._note()
        if self.given < len(self.items):
            self.given += 1
            return self.items[self.given - 1]
        if self.hold:
            self.waits.set()
            assert self.go_on.wait(30)
        raise StopIteration if self.end is None else self.end

    def close(self) -> None:
        self._note()
        self.closed += 1

    def _note(self) -> None:
        self.threads.add(threading.current_thread().name)


def numbers(count: int = 3) -> Iterator[int]:
    yield from range(count)


class Heard(list[Any]):
    """An observer that writes down what it is told, for one who waits on another thread."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.threads: set[str] = set()

    def watch(self, source: rx.Observable[Any]) -> Any:
        return source.subscribe(self._note, self._end, lambda: self._end("|"))

    def _note(self, value: Any) -> None:
        self.threads.add(threading.current_thread().name)
        self.append(value)

    def _end(self, value: Any) -> None:
        self._note(value)
        self.ended.set()


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


async def all_ended() -> None:
    await until(lambda: not pumps._running)


def gone(known: set[threading.Thread]) -> None:
    for thread in set(threading.enumerate()) - known:
        thread.join(30)
    assert set(threading.enumerate()) <= known


# What it takes.


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (3, "must be an iterable"),
        (lambda: 3, "must be an iterable"),
        ("text", "one whole value"),
        (b"data: {}", "one whole value"),
        (lambda: {"choices": []}, "one whole value"),
    ],
)
def test_what_is_no_stream_is_an_error_that_says_so(wrong: Any, said: str) -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match=said):
            await rd.last_value(rd.from_iterable(wrong))

    run(main)


def test_an_asynchronous_source_is_told_where_to_go_and_is_not_left_unawaited() -> None:
    async def items() -> Any:
        yield 1

    async def create() -> Any:
        return items()

    async def main() -> None:
        for source in (items, items(), create, create()):
            with pytest.raises(rd.InvalidValueError, match="from_async_iterable"):
                await rd.last_value(rd.from_iterable(source))  # type: ignore[arg-type]

    run(main)


@pytest.mark.parametrize("make", [numbers, lambda: Blocks(0, 1, 2)])
def test_a_one_shot_source_subscribed_twice_is_an_error_and_a_list_is_not(make: Any) -> None:
    async def main() -> None:
        source = rd.from_iterable(make())
        assert await rd.last_value(source) == 2
        with pytest.raises(rd.InvalidValueError, match="pass a function"):
            await rd.last_value(source)
        for again in (rd.from_iterable([1, 2]), rd.from_iterable(make)):
            assert [await rd.last_value(again), await rd.last_value(again)] == [2, 2]

    run(main)


@pytest.mark.parametrize("with_loop", [False, True])
def test_it_is_made_read_and_closed_on_its_thread_in_the_subscribers_context(with_loop: bool) -> None:
    name = contextvars.ContextVar("name", default="nobody")
    stream = Blocks(1)
    seen: list[Any] = []
    heard, known = Heard(), set(threading.enumerate())

    class Looks(Blocks):
        def close(self) -> None:
            super().close()
            seen.append(name.get())

    def create() -> Blocks:
        nonlocal stream
        seen.append((name.get(), threading.current_thread().name))
        name.set("the source's own")
        stream = Looks(1)
        return stream

    async def main() -> None:
        name.set("subscriber")
        await rd.for_each(rd.from_iterable(create), lambda _: seen.append(name.get()))
        assert name.get() == "subscriber"

    def plain() -> None:
        name.set("subscriber")
        heard.watch(rd.from_iterable(create))
        assert heard.ended.wait(30)
        gone(known)

    if with_loop:
        run(main)
        assert seen == [("subscriber", "rxdelta-source"), "subscriber", "the source's own"]
    else:
        contextvars.copy_context().run(plain)
        assert seen == [("subscriber", "rxdelta-source"), "the source's own"]
    assert (stream.closed, stream.threads) == (1, {"rxdelta-source"})


# The loop.


def test_the_loop_goes_on_while_the_source_blocks() -> None:
    async def main() -> None:
        stream = Blocks(1, hold=True)
        heard = Heard()
        heard.watch(rd.from_iterable(lambda: stream))
        await until(stream.waits.is_set)
        ran: list[int] = []
        asyncio.get_running_loop().call_soon(ran.append, 1)
        await turns()
        assert (heard, ran) == ([1], [1])
        stream.go_on.set()
        await until(heard.ended.is_set)
        assert heard == [1, "|"]
        await until(lambda: stream.closed)
        await all_ended()

    run(main)


def test_block_slows_it() -> None:
    async def main() -> None:
        stream = Blocks(*range(10))
        async with rd.to_async_iterable(rd.from_iterable(stream), "block", maxsize=2) as values:
            await until(lambda: stream.given == 2)
            await turns(100)
            assert stream.given == 2
            assert [value async for value in values] == list(range(10))
        assert stream.closed == 1

    run(main)


# How it ends.


@pytest.mark.parametrize("with_loop", [False, True])
def test_an_exception_is_passed_on_raw_with_its_traceback_and_the_stream_is_closed(with_loop: bool) -> None:
    stream = Blocks(1, end=BOOM)
    heard, known = Heard(), set(threading.enumerate())

    async def main() -> None:
        heard.watch(rd.from_iterable(stream))
        await until(heard.ended.is_set)
        await all_ended()

    if with_loop:
        run(main)
    else:
        heard.watch(rd.from_iterable(stream))
        assert heard.ended.wait(30)
        gone(known)
    assert heard == [1, BOOM]
    assert "__next__" in [frame.name for frame in traceback.extract_tb(BOOM.__traceback__)]
    assert stream.closed == 1


def test_a_close_that_raises_is_reported_and_the_end_stands() -> None:
    class Bad(Blocks):
        def close(self) -> None:
            raise BOOM

    async def main() -> None:
        assert await rd.last_value(rd.from_iterable(Bad(1))) == 1

    reports: list[Any] = []
    run(main, reports=reports)
    assert [report["exception"] for report in reports] == [BOOM]


# Leaving.


@pytest.mark.parametrize("with_loop", [False, True])
def test_a_thread_that_waits_closes_when_the_item_comes_and_nobody_hears_of_that(with_loop: bool) -> None:
    stream = Blocks(1, hold=True)
    heard, known = Heard(), set(threading.enumerate())

    async def main() -> None:
        subscription = heard.watch(rd.from_iterable(stream))
        await until(stream.waits.is_set)
        subscription.dispose()
        await turns()
        assert stream.closed == 0
        stream.go_on.set()
        await until(lambda: stream.closed)
        await all_ended()

    if with_loop:
        run(main)
    else:
        subscription = heard.watch(rd.from_iterable(stream))
        assert stream.waits.wait(30)
        subscription.dispose()
        stream.go_on.set()
        gone(known)
    assert (heard, stream.closed) == ([1], 1)


def test_a_reader_doesnt_wait_for_ever_for_a_thread_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CLOSE_SECONDS", 0)
    stream, known = Blocks(1, hold=True), set(threading.enumerate())

    async def main() -> None:
        assert await rd.first_value(rd.from_iterable(stream)) == 1

    asyncio.run(main())
    stream.go_on.set()
    gone(known)
    assert stream.closed == 1


@pytest.mark.parametrize("with_loop", [False, True])
def test_58_the_loop_or_the_program_ends_while_the_thread_waits(
    with_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, known = Blocks(1, hold=True), set(threading.enumerate())
    monkeypatch.setattr(reading, "CLOSE_SECONDS", 0)
    heard = Heard()

    async def main() -> None:
        heard.watch(rd.from_iterable(stream))
        await until(stream.waits.is_set)

    if with_loop:
        asyncio.run(main())
        assert type(heard[-1]) is rd.StreamInterrupted
    else:
        heard.watch(rd.from_iterable(stream))
        assert stream.waits.wait(30)
    threads = set(threading.enumerate()) - known
    assert threads
    assert all(thread.daemon for thread in threads)
    stream.go_on.set()
    gone(known)
    assert stream.closed == 1


class Connected(Blocks):
    """The stream of an SDK, over a socket; closing it under the thread that reads would be no good."""

    def __init__(self, version: bytes = b"HTTP/1.1") -> None:
        super().__init__()
        self.ours, self.theirs = socket.socketpair()
        below = SimpleNamespace(get_extra_info={"socket": self.ours}.get)
        self.response = SimpleNamespace(
            is_closed=False, extensions={"network_stream": below, "http_version": version}
        )

    def __next__(self) -> Any:
        self.waits.set()
        item = self.ours.recv(1)
        if not item:
            raise ConnectionError("cut off")
        return item

    def close(self) -> None:
        super().close()
        self.ours.close()


@pytest.mark.parametrize("with_loop", [False, True])
def test_an_sdks_stream_is_left_at_once_though_its_thread_waits(with_loop: bool) -> None:
    stream, known = Connected(), set(threading.enumerate())
    heard = Heard()

    async def main() -> None:
        reading = asyncio.create_task(rd.for_each(rd.from_iterable(lambda: stream), heard.append))
        await until(stream.waits.is_set)
        reading.cancel()
        await asyncio.wait([reading])
        assert stream.closed == 1

    if with_loop:
        run(main)
    else:
        subscription = heard.watch(rd.from_iterable(stream))
        assert stream.waits.wait(30)
        subscription.dispose()
        gone(known)
    assert (heard, stream.closed) == ([], 1)
    assert stream.theirs.recv(1) == b""
    stream.theirs.close()


def test_a_connection_that_others_share_is_not_shut_down() -> None:
    stream, known = Connected(b"HTTP/2"), set(threading.enumerate())
    subscription = Heard().watch(rd.from_iterable(stream))
    assert stream.waits.wait(30)
    subscription.dispose()
    stream.theirs.send(b"x")  # and not a broken pipe
    gone(known)
    assert stream.closed == 1
    stream.theirs.close()


# Who raises.


def test_51_without_a_loop_it_goes_to_the_threads_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, known = Blocks(1, 2), set(threading.enumerate())
    hooked: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: hooked.append(args.exc_value))

    def read(value: int) -> None:
        raise BOOM

    rd.from_iterable(stream).subscribe(read)
    gone(known)
    assert (hooked, stream.given, stream.closed) == ([BOOM], 1, 1)


def test_a_pipeline_without_asyncio() -> None:
    from support.replies import ANTHROPIC

    heard = Heard()
    snapshots = rd.from_iterable(ANTHROPIC).pipe(
        rd.decode("anthropic-messages"), rd.scan_deltas(), rd.throttle_latest(3600)
    )
    known = set(threading.enumerate())
    heard.watch(snapshots)
    assert heard.ended.wait(30)
    gone(known)
    assert [value if value == "|" else value.text for value in heard] == ["", "Let me look.", "|"]


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_a_close_that_raises_what_means_an_end_is_reported_and_not_waited_for(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Source:
        def __iter__(self) -> Iterator[int]:
            return iter((1, 2))

        def close(self) -> None:
            raise kind

    async def main() -> int:
        monkeypatch.setattr(reading, "CLOSE_SECONDS", 1000)
        return await rd.first_value(rd.from_iterable(Source))

    reports: list[Any] = []
    assert run(main, reports=reports) == 1
    (report,) = reports
    assert type(report["exception"].__cause__) is kind
