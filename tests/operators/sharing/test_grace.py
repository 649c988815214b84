"""`share_events` and `share_latest`: what happens between the last reader's leaving and the next one's coming."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.loops import Stream, run as run_loop, turns

import rxdelta as rd
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import Callable

BOOM = ValueError("boom")

ev = rd.events
SHARES: Any = pytest.mark.parametrize("share", [rd.share_latest, rd.share_events])
HELLO = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "Hel"),
    ev.TextDelta(0, "lo"),
]
SO_FAR = [HELLO[0], ev.BlockStart(0, {"type": "text", "text": "Hello"})]


def watch(shared: Observable[Any], **options: Any) -> tuple[list[Any], abc.DisposableBase]:
    """What a reader hears: values, errors, and `|`."""
    got: list[Any] = []
    return got, shared.subscribe(got.append, got.append, lambda: got.append("|"), **options)


class Hot:
    """A source that counts its requests, and who is subscribed."""

    def __init__(self) -> None:
        self.requests = 0
        self.open: list[abc.ObserverBase[Any]] = []
        self.observable: Observable[Any] = Observable(self._subscribe)

    def _subscribe(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        self.requests += 1
        self.open.append(observer)
        return Disposable(lambda: self.open.remove(observer))

    def emit(self, value: Any) -> None:
        for observer in list(self.open):
            observer.on_next(value)


def test_who_comes_back_in_time_goes_on_with_the_same_request() -> None:
    time, source = TestScheduler(), Hot()
    shared = source.observable.pipe(rd.share_latest(grace=30))
    first, leaving = watch(shared, scheduler=time)
    source.emit("a")
    leaving.dispose()
    time.advance_by(29)
    source.emit("b")
    second, leaving = watch(shared, scheduler=time)
    time.advance_by(100)  # while somebody reads, nothing is counted
    source.emit("c")
    leaving.dispose()
    time.advance_by(29)
    assert (first, second, source.requests, len(source.open)) == (["a"], ["b", "c"], 1, 1)
    time.advance_by(1)
    assert source.open == []


def test_who_comes_later_is_told_so_or_begins_anew() -> None:
    for restart in (False, True):
        time, source = TestScheduler(), Hot()
        shared = source.observable.pipe(rd.share_latest(grace=30, unread="restart" if restart else "close"))
        _, leaving = watch(shared, scheduler=time)
        source.emit("a")
        leaving.dispose()
        time.advance_by(30)
        late, _ = watch(shared, scheduler=time)
        if restart:
            assert (late, source.requests) == ([], 2)
        else:
            assert [type(one) for one in late] == [str, rd.StreamInterrupted]
            assert "grace=" in str(late[1])
            assert source.requests == 1


def test_a_page_that_is_reloaded_folds_the_same_reply() -> None:
    time, source = TestScheduler(), Hot()
    shared = source.observable.pipe(rd.share_events(grace=30))
    for before in range(len(HELLO) + 1):
        source.requests = 0
        _, leaving = watch(shared, scheduler=time)
        for event in HELLO[:before]:
            source.emit(event)
        leaving.dispose()
        for event in [*HELLO[before:], ev.BlockFinish(0), ev.MessageFinish("stop")]:
            source.emit(event)
        snapshots, leaving = watch(shared.pipe(rd.scan_deltas()), scheduler=time)
        assert (snapshots[-1].text, snapshots[-1].status, source.requests) == ("Hello", "complete", 1)
        leaving.dispose()
        time.advance_by(30)
        shared = source.observable.pipe(rd.share_events(grace=30))


@pytest.mark.parametrize("end", ["|", BOOM], ids=["completes", "fails"])
def test_a_source_that_ends_meanwhile_has_ended(end: Any) -> None:
    time, source = TestScheduler(), Subject[str]()
    shared = source.pipe(rd.share_latest(grace=30, unread="restart"))
    _, leaving = watch(shared, scheduler=time)
    source.on_next("a")
    leaving.dispose()
    if end == "|":
        source.on_completed()
    else:
        source.on_error(end)
    time.advance_by(100)
    assert watch(shared, scheduler=time)[0] == ["a", end]


def test_the_scheduler_counts_whoever_reads() -> None:
    time, source = TestScheduler(), Hot()
    shared = source.observable.pipe(rd.share_events(grace=30, scheduler=time))
    watch(shared)[1].dispose()
    time.advance_by(29)
    assert len(source.open) == 1
    time.advance_by(1)
    assert source.open == []


@SHARES
def test_a_source_that_is_kept_needs_no_grace(share: Callable[..., Any]) -> None:
    with pytest.raises(rd.InvalidValueError, match='unread="keep"'):
        share(unread="keep", grace=3)


# With loops and threads.


def test_on_a_loop_the_loop_counts() -> None:
    async def main() -> None:
        stream = Stream(*HELLO, hold=True)
        shared = rd.from_async_iterable(stream).pipe(rd.share_events(grace=30))
        async with rd.to_async_iterable(shared) as values:
            await anext(values)
        await asyncio.sleep(29)
        assert (stream.given, stream.closed) == (4, 0)  # it went on
        async with rd.to_async_iterable(shared) as values:
            assert [await anext(values) for _ in range(2)] == SO_FAR
            await asyncio.sleep(100)
        assert stream.closed == 0
        await asyncio.sleep(31)
        assert stream.closed == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}
        with pytest.raises(rd.StreamInterrupted) as caught:
            await rd.last_value(shared)
        assert caught.value.snapshot is not None
        assert caught.value.snapshot.text == "Hello"

    VirtualTime().run(main())


def test_a_reader_that_comes_back_leaves_no_task_behind() -> None:
    async def main() -> None:
        stream = Stream(*HELLO, hold=True)
        shared = rd.from_async_iterable(stream).pipe(rd.share_events(grace=3600))
        for _ in range(3):
            async with rd.to_async_iterable(shared) as values:
                await anext(values)
        reading = asyncio.create_task(rd.last_value(shared))
        await turns()
        stream.go_on.set()
        assert await reading == SO_FAR[-1]

    run_loop(main)


@SHARES
def test_when_the_loop_ends_the_source_is_closed(share: Callable[..., Any]) -> None:
    stream, hot = Stream(*HELLO[:1], hold=True), Hot()
    # The one is read by the loop's own task, the other is not of this loop.
    sources = rd.from_async_iterable(stream).pipe(ops.map(lambda _: 1)), hot.observable
    shared = [source.pipe(rd.share_latest(grace=3600)) for source in sources]

    async def main() -> None:
        for one in shared:
            async with rd.to_async_iterable(one):
                await turns()
        assert (stream.closed, len(hot.open)) == (0, 1)

    asyncio.run(main())
    assert (stream.closed, len(hot.open)) == (1, 0)
    for one in shared:
        assert [type(heard) for heard in watch(one)[0]][-1] is rd.StreamInterrupted


def test_a_loop_that_has_ended_counts_nothing() -> None:
    source = Hot()
    shared = source.observable.pipe(rd.share_latest(grace=3600))

    async def main() -> abc.DisposableBase:
        return watch(shared)[1]

    leaving = asyncio.run(main())
    assert len(source.open) == 1
    leaving.dispose()
    assert source.open == []


def timers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "rxdelta-timer"}


def test_without_a_loop_a_thread_counts_and_ends() -> None:
    source, before = Hot(), timers()
    shared = source.observable.pipe(rd.share_latest(grace=3600))
    watch(shared)[1].dispose()
    (waiting,) = timers() - before
    _, leaving = watch(shared)
    waiting.join(10)
    assert not waiting.is_alive()
    assert len(source.open) == 1
    leaving.dispose()
    (waiting,) = timers() - before
    for observer in source.open:
        observer.on_completed()
    waiting.join(10)
    assert not waiting.is_alive()
    gone = Hot()
    watch(gone.observable.pipe(rd.share_latest(grace=0.001)))[1].dispose()
    for thread in timers() - before:
        thread.join(10)
    assert gone.open == []


# `reset_on_error`


class Failing:
    """A source whose first attempts fail, each after a word of its own."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.attempts = 0

    def __call__(self) -> Observable[rd.Event]:
        return rx.defer(lambda _: self._attempt())

    def _attempt(self) -> Observable[rd.Event]:
        self.attempts += 1
        begun: list[rd.Event] = [
            ev.MessageStart(f"m{self.attempts}"),
            ev.BlockStart(0, {"type": "text"}),
            ev.TextDelta(0, f"attempt {self.attempts}"),
        ]
        if self.attempts <= self.failures:
            return rx.concat(rx.from_iterable(begun), rx.throw(ConnectionError("broken")))
        return rx.from_iterable([*begun, ev.BlockFinish(0), ev.MessageFinish("stop")])


def test_a_retry_behind_it_asks_again_only_if_asked_to() -> None:
    for reset, requests in ((False, 1), (True, 50)):
        source = Failing(100)
        got, _ = watch(
            source().pipe(rd.share_events(reset_on_error=reset), ops.ignore_elements(), ops.retry(50))
        )
        assert ([type(one) for one in got], source.attempts) == ([ConnectionError], requests)


def test_who_comes_after_the_reset_gets_nothing_of_the_failed_attempt() -> None:
    source = Failing(1)
    shared = source().pipe(rd.share_events(reset_on_error=True))
    assert [type(one) for one in watch(shared)[0]][-1] is ConnectionError
    for _ in range(2):
        snapshots, _ = watch(shared.pipe(rd.scan_deltas()))
        assert (snapshots[-2].text, snapshots[-1]) == ("attempt 2", "|")
        assert {snapshot.id for snapshot in snapshots[:-1]} == {"m2"}
    assert source.attempts == 2


def test_retry_stream_behind_it_takes_the_failed_attempt_back() -> None:
    source = Failing(2)
    shared = source().pipe(rd.share_events(reset_on_error=True))

    async def read() -> rd.Snapshot:
        retried = rd.retry_stream(lambda: shared, backoff=lambda *_: 1.0)
        return await rd.last_value(retried.pipe(rd.scan_deltas()))

    async def main() -> None:
        replies = await asyncio.gather(read(), read())
        assert [(reply.text, reply.id) for reply in replies] == [("attempt 3", "m3")] * 2

    VirtualTime().run(main())
    assert source.attempts == 3


def test_readers_who_retry_at_once_share_the_next_request() -> None:
    source = Hot()
    shared = source.observable.pipe(rd.share_latest(reset_on_error=True), ops.retry(2))
    (first, _), (second, _) = watch(shared), watch(shared)
    source.emit("a")
    for observer in list(source.open):
        observer.on_error(BOOM)
    source.emit("b")
    assert (first, second, source.requests) == (["a", "b"], ["a", "b"], 2)


def test_that_all_have_left_is_told_once_before_a_retry_asks_again() -> None:
    source = Hot()
    shared = source.observable.pipe(rd.share_latest(reset_on_error=True))
    watch(shared)[1].dispose()
    told: list[Exception] = []
    got, _ = watch(shared.pipe(ops.do_action(on_error=told.append), ops.retry()))
    source.emit("a")
    assert ([type(one) for one in told], got, source.requests) == ([rd.StreamInterrupted], ["a"], 2)


def test_a_source_that_completed_is_not_begun_anew() -> None:
    source = Failing(0)
    shared = source().pipe(rd.share_events(reset_on_error=True, unread="restart", grace=1))
    for _ in range(3):
        assert watch(shared)[0][-1] == "|"
    assert source.attempts == 1


# At random.


@given(
    st.lists(st.sampled_from(["come", "leave", "emit", "fail", "1 s"]), max_size=40),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 3]),
)
def test_what_the_rules_say(steps: list[str], restart: bool, reset: bool, grace: float | None) -> None:
    time, source = TestScheduler(), Hot()
    rules: Any = {"unread": "restart" if restart else "close", "reset_on_error": reset, "grace": grace}
    shared = source.observable.pipe(rd.share_latest(**rules))
    readers: list[tuple[list[Any], abc.DisposableBase]] = []
    expected: list[list[Any]] = []
    heard: list[list[Any]] = []
    number = requests = 0
    newest: list[Any] = []
    state, absent, told = "none", 0.0, False  # none, open, left, failed
    for step in steps:
        if step == "come":
            anew = state == "none" or (state == "left" and (restart or (told and reset)))
            if anew or (state == "failed" and reset):
                state, newest, told = "open", [], False
                requests += 1
            heard.append([])
            expected.append(list(newest))
            reader = watch(shared, scheduler=time)
            heard[-1] = reader[0]
            if state == "open":
                readers.append(reader)
            else:
                told = True
                expected[-1].append({"left": rd.StreamInterrupted, "failed": ValueError}[state])
        elif step == "leave" and readers:
            readers.pop(0)[1].dispose()
            absent = 0.0
            if not readers and grace is None:
                state = "left"
        elif step == "emit":
            number += 1
            if state == "open":
                newest = [number]
                for got in expected[len(expected) - len(readers) :] if readers else ():
                    got.append(number)
            source.emit(number)
        elif step == "fail" and state == "open":
            for got in expected[len(expected) - len(readers) :] if readers else ():
                got.append(ValueError)
            readers.clear()
            state = "failed"
            for observer in list(source.open):
                observer.on_error(BOOM)
        elif step == "1 s":
            time.advance_by(1)
            absent += 1
            if state == "open" and not readers and grace is not None and absent >= grace:
                state = "left"
        assert source.requests == requests
        assert len(source.open) == (state == "open")
    shown = [[one if isinstance(one, int) else type(one) for one in got] for got in heard]
    assert shown == expected


class Hand(TestScheduler):
    """A clock whose timers end when a test's thread says so."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[tuple[Any, Disposable]] = []

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> Any:
        timer = Disposable()
        self.due.append((action, timer))
        return timer

    def ring(self) -> None:
        while self.due:
            action, timer = self.due.pop()
            if not timer.is_disposed:
                action(self, None)


@pytest.mark.parametrize("ended", [False, True], ids=["somebody comes", "the source ends"])
def test_53_a_timer_that_was_about_to_ring_changes_nothing(ended: bool) -> None:
    time, source = Hand(), Subject[str]()
    shared = source.pipe(rd.share_latest(grace=30, scheduler=time))
    watch(shared)[1].dispose()
    ((action, timer),) = time.due
    got = [] if ended else watch(shared)[0]
    if ended:
        source.on_completed()
    assert timer.is_disposed
    action(time, None)  # its thread had looked before
    source.on_next("a")
    assert (watch(shared)[0] if ended else got) == (["|"] if ended else ["a"])
