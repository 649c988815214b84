"""Whatever a source or a function of the user's raises, a reader hears of one end, and nothing hangs.

Functions that only watch may not end the stream at all. Tools have a table of their own, in `operators/test_run_tools`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import reactivex as rx
from support.loops import run

import rxdelta as rd
from rxdelta.testing import VirtualTime

ev = rd.events
SECONDS = 20  # for what should take none


class OfMyOwn(BaseException):
    """As those of gevent or of a Rust extension."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__


KINDS: list[Callable[[], BaseException]] = [
    ValueError,
    StopIteration,
    StopAsyncIteration,
    GeneratorExit,
    asyncio.CancelledError,
    OfMyOwn,
    Unprintable,
    lambda: ExceptionGroup("two", [ValueError(), KeyError()]),
    lambda: BaseExceptionGroup("two", [OfMyOwn(), ValueError()]),
]
NAMES = [made.__name__ if isinstance(made, type) else type(made()).__name__ for made in KINDS]

REPLY = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "Hi "),
    ev.TextDelta(0, "you"),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]

Raise = Callable[..., Any]
Case = Callable[[Raise], rx.Observable[Any]]


def broken() -> rx.Observable[Any]:
    return rx.throw(ConnectionError())


# Sources. `fail` raises.


def async_items(fail: Raise) -> rx.Observable[Any]:
    async def source() -> AsyncIterator[Any]:
        yield REPLY[0]
        fail()

    return rd.from_async_iterable(source)


def async_iterator(fail: Raise) -> rx.Observable[Any]:
    class Source:
        def __aiter__(self) -> Source:
            return self

        async def __anext__(self) -> Any:
            try:
                fail()
            except StopAsyncIteration:  # its way to say that it has ended
                raise ValueError from None

    return rd.from_async_iterable(Source)


def async_function(fail: Raise) -> rx.Observable[Any]:
    return rd.from_async_iterable(fail)


def async_request(fail: Raise) -> rx.Observable[Any]:
    async def request() -> Any:
        fail()

    return rd.from_async_iterable(request)


def async_close(fail: Raise) -> rx.Observable[Any]:
    class Source:
        def __aiter__(self) -> AsyncIterator[Any]:
            async def items() -> AsyncIterator[Any]:
                for event in REPLY:
                    yield event

            return items()

        async def close(self) -> None:
            fail()

    return rd.from_async_iterable(Source)


def items(fail: Raise) -> rx.Observable[Any]:
    def source() -> Iterator[Any]:
        yield REPLY[0]
        fail()

    return rd.from_iterable(source)


def function(fail: Raise) -> rx.Observable[Any]:
    return rd.from_iterable(fail)


def iterator(fail: Raise) -> rx.Observable[Any]:
    class Source:
        def __iter__(self) -> Any:
            fail()

    return rd.from_iterable(Source())


def close(fail: Raise) -> rx.Observable[Any]:
    class Source:
        def __iter__(self) -> Iterator[Any]:
            return iter(REPLY)

        def close(self) -> None:
            fail()

    return rd.from_iterable(Source())


ASYNC_SOURCES: list[Case] = [async_items, async_iterator, async_function, async_request, async_close]
SOURCES: list[Case] = [items, function, iterator, close]


# Functions that operators call.

Callback = Callable[[Raise, rx.Observable[Any]], rx.Observable[Any]]

CALLBACKS: dict[str, Callback] = {
    "retry_stream's factory": lambda fail, _: rd.retry_stream(fail),
    "retry_stream's retry_if": lambda fail, _: rd.retry_stream(broken, retry_if=fail),
    "retry_stream's backoff": lambda fail, _: rd.retry_stream(broken, backoff=fail),
    "fallback's function": lambda fail, _: rd.fallback(fail),
    "per_block's fn": lambda fail, events: events.pipe(rd.per_block(fail)),
    "smooth's chunking": lambda fail, events: events.pipe(rd.smooth(fail)),
    "stall_timeout's is_ping": lambda fail, events: events.pipe(rd.stall_timeout(idle=5, is_ping=fail)),
    "redact's replacement": lambda fail, events: events.pipe(rd.redact("Hi", fail)),
    "map_text's fn": lambda fail, events: events.pipe(rd.map_text(fail)),
    "guard's on_hit": lambda fail, events: events.pipe(rd.guard(lambda _: False, on_hit=fail)),
    "decode's factory": lambda fail, events: events.pipe(rd.decode(fail)),
    "to_ai_sdk's on_error": lambda fail, _: broken().pipe(rd.to_ai_sdk(on_error=fail)),
    "an observer": lambda fail, events: events.pipe(observed_by(fail)),
    "an observer behind a scan": lambda fail, events: events.pipe(rd.scan_deltas(), observed_by(fail)),
    "an observer of a race": lambda fail, events: rd.race(rx.never(), events).pipe(observed_by(fail)),
    "an observer of a shared source": lambda fail, events: events.pipe(rd.share_events(), observed_by(fail)),
}
BESIDE: dict[str, Callback] = {
    "on_settled": lambda fail, events: events.pipe(rd.on_settled(fail)),
    "tap_metrics": lambda fail, events: events.pipe(rd.tap_metrics(fail)),
    "validate's on_violation": lambda fail, events: events.pipe(rd.validate(on_violation=fail)),
}


def observed_by(fail: Raise) -> Callable[[rx.Observable[Any]], rx.Observable[Any]]:
    """An operator of the user's own, that raises instead of emitting."""

    def apply(source: rx.Observable[Any]) -> rx.Observable[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            return source.subscribe(fail, observer.on_error, observer.on_completed, scheduler=scheduler)

        return rx.Observable(subscribe)

    return apply


def raising(made: Callable[[], BaseException]) -> Raise:
    def fail(*_: object) -> Any:
        raise made()

    return fail


class Ends:
    """Counts what a subscriber is told of the end."""

    def __init__(self) -> None:
        self.heard: list[Exception | None] = []

    def __call__(self, source: rx.Observable[Any]) -> rx.Observable[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            def on_error(error: Exception) -> None:
                self.heard.append(error)
                observer.on_error(error)

            def on_completed() -> None:
                self.heard.append(None)
                observer.on_completed()

            return source.subscribe(observer.on_next, on_error, on_completed, scheduler=scheduler)

        return rx.Observable(subscribe)


async def outcome(source: rx.Observable[Any]) -> Exception | None:
    """What a reader hears: `None` is completion."""
    try:
        await asyncio.wait_for(rd.for_each(source, lambda _: None), SECONDS)
    except TimeoutError:
        pytest.fail("nobody heard of an end")
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("made", KINDS, ids=NAMES)
@pytest.mark.parametrize("case", [*ASYNC_SOURCES, *SOURCES], ids=lambda case: str(case.__name__))
def test_whatever_a_source_raises_its_reader_hears_of_one_end(
    case: Case, made: Callable[[], BaseException]
) -> None:
    ends = Ends()
    reports: list[Any] = []

    async def main() -> Exception | None:
        return await outcome(case(raising(made)).pipe(ends))

    heard = run(main, reports=reports)
    assert len(ends.heard) == 1
    if "close" in case.__name__:
        assert (ends.heard, heard) == ([None], None)
        assert made is asyncio.CancelledError or len(reports) == 1
    else:
        assert isinstance(heard, Exception)
        assert reports == []


@pytest.mark.parametrize("made", KINDS, ids=NAMES)
@pytest.mark.parametrize("case", [*ASYNC_SOURCES, *SOURCES], ids=lambda case: str(case.__name__))
def test_on_a_thread_too(case: Case, made: Callable[[], BaseException]) -> None:
    ends = Ends()
    heard: list[Exception] = []
    with rd.to_iterable(case(raising(made)).pipe(ends)) as values:
        try:
            for _ in values:
                pass
        except Exception as error:
            heard.append(error)
    assert len(ends.heard) == 1
    assert len(heard) == (0 if "close" in case.__name__ else 1)


@pytest.mark.parametrize("made", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("case", [async_items, items], ids=lambda case: str(case.__name__))
def test_what_would_end_the_program_ends_only_the_stream_on_another_thread(
    case: Case, made: type[BaseException]
) -> None:
    with (
        rd.to_iterable(case(raising(made))) as values,
        pytest.raises(rd.StreamInterrupted, match=made.__name__),
    ):
        for _ in values:
            pass


@pytest.mark.parametrize("made", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_raised_on_the_main_thread_and_the_reader_is_told(
    made: type[BaseException],
) -> None:
    ends = Ends()

    async def main() -> None:
        # asyncio reports the task when it is collected, which may be in the middle of any later test.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await rd.for_each(async_items(raising(made)).pipe(ends), lambda _: None)

    with pytest.raises(made):
        asyncio.run(main())
    assert [type(error) for error in ends.heard] == [rd.StreamInterrupted]


@pytest.mark.parametrize("made", KINDS, ids=NAMES)
@pytest.mark.parametrize("case", SOURCES, ids=lambda case: str(case.__name__))
def test_without_a_loop_too(
    case: Case, made: Callable[[], BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", reports.append)
    before = set(threading.enumerate())
    heard: list[Exception | None] = []

    def end(error: Exception | None = None) -> None:
        heard.append(error)

    case(raising(made)).subscribe(lambda _: None, end, end)
    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert len(heard) == 1
    closes = "close" in case.__name__
    assert ((heard == [None]), len(reports)) == (closes, int(closes))


async def reply() -> AsyncIterator[Any]:
    for event in REPLY:
        yield event


UPSTREAMS: dict[str, Callable[[], rx.Observable[Any]]] = {
    "async": lambda: rd.from_async_iterable(reply),
    "sync": lambda: rx.from_iterable(REPLY),
}


@pytest.mark.parametrize("made", KINDS, ids=NAMES)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", CALLBACKS)
def test_whatever_a_function_raises_that_the_stream_needs_its_reader_hears_of_it(
    name: str, upstream: str, made: Callable[[], BaseException]
) -> None:
    if (upstream, made) == ("sync", StopIteration) and name.startswith("an observer"):
        pytest.skip("Rx's own from_iterable takes it for the end of the iterator")
    ends = Ends()
    heard: list[BaseException] = []

    async def main() -> None:
        source = CALLBACKS[name](raising(made), UPSTREAMS[upstream]()).pipe(ends)
        try:
            await asyncio.wait_for(rd.for_each(source, lambda _: None), SECONDS)
        except BaseException as error:
            heard.append(error)

    reports: list[Any] = []
    run(main, reports=reports)
    assert len(ends.heard) <= 1
    assert not any(isinstance(error, TimeoutError) for error in heard)
    assert len(heard) == 1 or (
        heard == [] and name == "to_ai_sdk's on_error"
    )  # an encoder's errors are frames


@pytest.mark.parametrize("made", KINDS, ids=NAMES)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", BESIDE)
def test_whatever_a_function_raises_that_only_watches_the_stream_goes_on(
    name: str, upstream: str, made: Callable[[], BaseException]
) -> None:
    ends = Ends()
    seen: list[Any] = []

    async def main() -> None:
        source = BESIDE[name](raising(made), UPSTREAMS[upstream]()).pipe(ends)
        await asyncio.wait_for(rd.for_each(source, seen.append), SECONDS)

    reports: list[Any] = []
    run(main, reports=reports)
    assert (seen, ends.heard) == (REPLY, [None])


TIMED: dict[str, Callable[[rx.Observable[Any]], rx.Observable[Any]]] = {
    "throttle_latest": lambda events: events.pipe(rd.scan_deltas(), rd.throttle_latest(1)),
    "debounce_latest": lambda events: events.pipe(rd.scan_deltas(), rd.debounce_latest(1)),
    "compact_deltas": lambda events: events.pipe(rd.compact_deltas(1)),
    "smooth": lambda events: events.pipe(rd.smooth("char", rate=1, max_lag=10)),
    "stall_timeout": lambda events: events.pipe(rd.stall_timeout(idle=1)),
    "race": lambda events: rd.race(rx.never(), events, after=1),
    "retry_stream": lambda events: rd.retry_stream(lambda: events.pipe(rd.stall_timeout(idle=1)), attempts=2),
}


@pytest.mark.parametrize("made", KINDS, ids=NAMES)
@pytest.mark.parametrize("name", TIMED)
def test_whatever_an_observer_raises_that_a_timer_calls_is_raised_at_the_door(
    name: str, made: Callable[[], BaseException]
) -> None:
    async def silent() -> AsyncIterator[Any]:
        for event in REPLY[:4]:
            yield event
        await asyncio.Event().wait()

    def observed(source: rx.Observable[Any]) -> rx.Observable[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            began = asyncio.get_running_loop().time()

            def look(*_: object) -> None:
                if asyncio.get_running_loop().time() > began:
                    raise made()

            return source.subscribe(look, look, observer.on_completed, scheduler=scheduler)

        return rx.Observable(subscribe)

    async def main() -> None:
        with pytest.raises((type(made()), rd.StreamInterrupted)):
            await rd.for_each(TIMED[name](rd.from_async_iterable(silent)).pipe(observed), lambda _: None)

    VirtualTime().run(main())
