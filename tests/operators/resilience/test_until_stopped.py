"""`until_stopped` in virtual time, and with what asyncio has for signals."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import BehaviorSubject, Subject
from support.loops import Stream, run as run_loop, turns
from support.replies import ANTHROPIC

import rxdelta as rd
from rxdelta.testing import VirtualTime, marbles

BOOM = ValueError("boom")

ev = rd.events
MARKS: dict[str, Any] = {
    "s": ev.BlockStart(0, {"type": "text"}),
    **{mark: ev.TextDelta(0, mark) for mark in "abc"},
    "m": ev.MessageFinish("stop"),
    "X": ev.MessageInterrupted("stopped"),
    "!": None,
}


@pytest.mark.parametrize(
    ("source", "signal", "expected", "source_left", "signal_left"),
    [
        pytest.param("-s-a-m|", "------------", "-s-a-m|", 6, 6, id="never stopped"),
        pytest.param("-s-a-m|", "--|", "-s-a-m|", 6, 2, id="a signal that just completes"),
        pytest.param("-s-a-b-m|", "----!", "-s-a[X|]", 4, 4, id="stopped"),
        pytest.param("-s-a-b-m|", "----!!!|", "-s-a[X|]", 4, 4, id="once"),
        pytest.param("-s-a-b-m|", "----[!|]", "-s-a[X|]", 4, 4, id="and the signal's end"),
        pytest.param("-s-a-b-m|", "---!", "-s-[X|]", 3, 3, id="in the same instant"),
        pytest.param("-[sabc]-------|", "--!", "-[sabc][X|]", 2, 2, id="after a burst"),
        pytest.param("---------", "----!", "----[X|]", 4, 4, id="silence"),
        pytest.param("-s-a-m---", "-------!", "-s-a-m-[X|]", 7, 7, id="a message that has finished"),
        pytest.param("-s-|", "---!", "-s-[X|]", 3, 3, id="at the end"),
        pytest.param("-s|", "---!", "-s|", 2, 2, id="after the end"),
        pytest.param("-s#", "---!", "-s#", 2, 2, id="an error"),
        pytest.param("|", "----!", "|", 0, 0, id="empty"),
        pytest.param("#", "----!", "#", 0, 0, id="only an error"),
        pytest.param("-s-a-b|", "----#", "-s-a#", 4, 4, id="a signal that fails"),
    ],
)
def test_a_signal_in_virtual_time(
    source: str, signal: str, expected: str, source_left: int, signal_left: int
) -> None:
    time = VirtualTimeScheduler()
    events, stop = (marbles.cold(line, time, values=MARKS, frame=1) for line in (source, signal))
    assert marbles.drawn(events.pipe(rd.until_stopped(stop)), time, values=MARKS, frame=1) == expected
    assert (events.subscriptions, stop.subscriptions) == ([(0, source_left)], [(0, signal_left)])


@pytest.mark.parametrize(
    ("options", "said", "reason"),
    [
        ({}, None, "stopped"),
        ({}, True, "stopped"),
        ({}, "", "stopped"),
        ({}, "closed the tab", "closed the tab"),
        ({"reason": "by hand"}, 1, "by hand"),
        ({"reason": None}, 1, None),
    ],
)
def test_the_reason(options: dict[str, Any], said: object, reason: str | None) -> None:
    got: list[rd.Event] = []
    rx.never().pipe(rd.until_stopped(rx.just(said), **options)).subscribe(got.append)
    assert got == [ev.MessageInterrupted(reason)]


def test_a_signal_that_came_before_costs_no_request() -> None:
    stop = BehaviorSubject(None)
    asked: list[int] = []
    got: list[Any] = []
    source = rx.defer(lambda _: (asked.append(1), rx.never())[1])
    source.pipe(rd.until_stopped(stop)).subscribe(got.append, on_completed=lambda: got.append("|"))
    assert (asked, got) == ([], [ev.MessageInterrupted("stopped"), "|"])


def test_tools_that_run_are_cancelled_and_their_calls_fail() -> None:
    stop, source = Subject[None](), Subject[rd.Event]()
    left: list[int] = []

    def look() -> Observable[int]:
        return rx.create(lambda *_: Disposable(lambda: left.append(1)))

    snapshots: list[rd.Snapshot] = []
    pipeline = source.pipe(
        rd.until_stopped(stop), rd.run_tools({"look": look}), rd.scan_deltas(), rd.until_all_tools_terminal()
    )
    pipeline.subscribe(snapshots.append)
    source.on_next(ev.BlockStart(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {}}))
    source.on_next(ev.BlockFinish(0))
    assert snapshots[-1].tool_calls[0].execution_status() == "executing"
    stop.on_next(None)
    assert snapshots[-1].status == "interrupted"
    assert snapshots[-1].tool_calls[0].execution_status() == "failed"
    assert left == [1]


def test_the_source_is_left_before_anybody_hears_of_it() -> None:
    stop, source = Subject[None](), Subject[rd.Event]()
    seen: list[int] = []
    source.pipe(rd.until_stopped(stop)).subscribe(lambda _: seen.append(len(source.observers)))
    source.on_next(MARKS["s"])
    stop.on_next(None)
    assert seen == [1, 0]


def test_a_synchronous_source_is_stopped_from_within() -> None:
    stop = Subject[None]()
    got: list[rd.Event] = []

    def draw(event: rd.Event) -> None:
        got.append(event)
        stop.on_next(None)

    rx.from_iterable([MARKS["s"], MARKS["a"]] * 1000).pipe(rd.until_stopped(stop)).subscribe(draw)
    assert got == [MARKS["s"], MARKS["X"]]


def test_53_a_button_on_another_thread_waits_for_no_observer() -> None:
    stop, source = Subject[None](), Subject[rd.Event]()
    entered, go_on = threading.Event(), threading.Event()
    got: list[Any] = []

    def draw(event: rd.Event) -> None:
        if event is MARKS["a"]:
            entered.set()
            assert go_on.wait(10)
        got.append(event)

    source.pipe(rd.until_stopped(stop)).subscribe(draw, on_completed=lambda: got.append("|"))
    thread = threading.Thread(target=lambda: source.on_next(MARKS["a"]))
    thread.start()
    assert entered.wait(10)
    stop.on_next(None)  # returns while the other thread is inside draw
    assert source.observers == []
    source.on_next(MARKS["b"])
    assert got == []
    go_on.set()
    thread.join()
    assert got == [MARKS["a"], MARKS["X"], "|"]


# With asyncio.


def test_an_event_stops_and_the_request_is_closed() -> None:
    stream = Stream(*ANTHROPIC[:4], hold=True)

    async def main() -> rd.Message:
        button = asyncio.Event()
        snapshots = rd.from_async_iterable(stream).pipe(
            rd.decode("anthropic-messages"), rd.until_stopped(button), rd.scan_deltas()
        )
        reading = asyncio.create_task(rd.last_value(snapshots.pipe(rd.to_message())))
        await turns(40)
        button.set()
        message = await reading
        assert stream.closed == 1
        return message

    message = run_loop(main)
    assert (message.status, message.text) == ("interrupted", "Let me ")


def test_an_event_that_is_set_costs_no_request() -> None:
    async def main() -> list[rd.Event]:
        button = asyncio.Event()
        button.set()
        stream = Stream({})
        got = [
            event
            async for event in rd.iterate(
                rd.from_async_iterable(lambda: stream).pipe(rd.until_stopped(button))
            )
        ]
        assert stream.given == 0
        return got

    assert run_loop(main) == [MARKS["X"]]


def test_anything_with_an_async_wait_stops() -> None:
    class Process:
        async def wait(self) -> int:
            return 0

    async def main() -> list[rd.Event]:
        return [event async for event in rd.iterate(rx.never().pipe(rd.until_stopped(Process())))]

    assert run_loop(main) == [MARKS["X"]]


@pytest.mark.parametrize("kind", ["future", "task", "coroutine"])
def test_an_awaitable_stops_when_it_ends(kind: str) -> None:
    async def main() -> list[rd.Event]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def wait() -> str:
            return await future

        signal: Any = {
            "future": lambda: future,
            "task": lambda: asyncio.create_task(wait()),
            "coroutine": wait,
        }[kind]()
        asyncio.get_running_loop().call_soon(future.set_result, "closed the tab")
        return [event async for event in rd.iterate(rx.never().pipe(rd.until_stopped(signal)))]

    assert run_loop(main) == [ev.MessageInterrupted("closed the tab")]


def test_a_future_goes_on_when_the_source_has_ended_and_a_cancelled_one_stops_nothing() -> None:
    async def main() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        assert await rd.last_value(rx.just(MARKS["s"]).pipe(rd.until_stopped(future))) is MARKS["s"]
        assert not future.done()
        source, got = Subject[rd.Event](), list[Any]()
        source.pipe(rd.until_stopped(future)).subscribe(got.append, got.append, lambda: got.append("|"))
        future.cancel()
        await turns()
        source.on_next(MARKS["a"])
        assert got == [MARKS["a"]]

    run_loop(main)


def test_an_awaitable_that_fails_is_an_error() -> None:
    async def fail() -> None:
        raise BOOM

    async def main() -> None:
        with pytest.raises(ValueError, match="boom"):
            await rd.last_value(rx.never().pipe(rd.until_stopped(fail())))

    run_loop(main)


def test_a_coroutine_can_be_subscribed_once_and_is_cancelled_with_the_source() -> None:
    async def main() -> None:
        signal = asyncio.sleep(1000)
        stopping = rx.just(MARKS["s"]).pipe(rd.until_stopped(signal))
        assert await rd.last_value(stopping) is MARKS["s"]
        await turns()
        with pytest.raises(rd.InvalidValueError, match="awaited before"):
            await rd.last_value(stopping)

    run_loop(main)


def test_an_awaitable_needs_a_loop() -> None:
    errors: list[Exception] = []

    async def never() -> None: ...

    for signal in (asyncio.Event(), never()):
        rx.never().pipe(rd.until_stopped(signal)).subscribe(on_error=errors.append)
    assert ["asyncio loop" in str(error) for error in errors] == [True, True]


def test_58_a_loop_that_is_closed_leaves_no_task_behind() -> None:
    source = Subject[rd.Event]()

    async def main() -> abc.DisposableBase:
        return source.pipe(rd.until_stopped(asyncio.Event())).subscribe()

    subscription = asyncio.run(main())
    subscription.dispose()
    assert source.observers == []


@given(
    marks=st.lists(st.sampled_from("abc-"), max_size=20),
    at=st.integers(0, 25),
    error=st.booleans(),
)
def test_all_that_came_before_the_stop_arrives_and_nothing_after(
    marks: list[str], at: int, error: bool
) -> None:
    time = VirtualTimeScheduler()
    line = "".join(marks) + ("#" if error else "|")
    events = marbles.cold(line, time, values=MARKS, frame=1)
    stop = marbles.cold([(at, "next", None)], time)
    came = marbles.records(events.pipe(rd.until_stopped(stop)), time)
    # The signal is subscribed first, so what comes in its instant comes too late.
    stopped = at <= len(marks)
    wanted = marbles.parse(f"{line[:at]}[X|]" if stopped else line, values=MARKS, frame=1)
    assert marbles.draw(came, values=MARKS, frame=1) == marbles.draw(wanted, values=MARKS, frame=1)


@pytest.mark.parametrize("pace", [rd.throttle_latest(1), rd.conflate()], ids=["throttle", "conflate"])
def test_a_signal_by_content_that_is_paced_does_not_wait_for_a_slow_reader(pace: Any) -> None:
    sent: list[int] = []

    async def answer() -> Any:
        yield rd.events.BlockStart(0, {"type": "text"})
        for number in range(400):
            sent.append(number)
            yield rd.events.TextDelta(0, "x")
            await asyncio.sleep(0.1)

    async def main() -> list[rd.Event]:
        shared = rd.from_async_iterable(answer).pipe(rd.share_events())
        too_long = shared.pipe(rd.scan_deltas(), pace, ops.filter(lambda snapshot: len(snapshot.text) > 50))
        read: list[rd.Event] = []

        async def draw(event: rd.Event) -> None:
            read.append(event)
            await asyncio.sleep(1)

        await rd.for_each(shared.pipe(rd.until_stopped(too_long)), draw)
        return read

    assert VirtualTime().run(main())[-1] == rd.events.MessageInterrupted("stopped")
    assert len(sent) <= 50 + 11
