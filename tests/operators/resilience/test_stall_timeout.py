"""`stall_timeout` in virtual time."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable, SingleAssignmentDisposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.lines import through, whole
from support.loops import Stream, run as run_loop, turns

import rxdelta as rd
from rxdelta.runtime import clocks
from rxdelta.testing import VirtualTime, marbles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Container, Iterator

BOOM = ValueError("boom")


ev = rd.events
PING = {"type": "ping"}
MARKS: dict[str, Any] = {**{mark: {"type": mark} for mark in "abcd"}, "p": PING}


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "rxdelta-timer":
            thread.join(10)
            assert not thread.is_alive()


def split(records: list[marbles.Record]) -> tuple[list[marbles.Record], Any]:
    """The records but for a stall's error; its time and limit."""
    *told, (time, _, error) = records
    return (told, (time, error.limit)) if isinstance(error, rd.errors.StallTimeoutError) else (records, None)


@pytest.mark.parametrize(
    ("limits", "source", "expected", "stall"),
    [
        pytest.param({"idle": 4}, "-a-b--c-|", "-a-b--c-|", None, id="a lively source is untouched"),
        pytest.param({"idle": 4}, "-a-b-------c|", "-a-b", (7, "idle"), id="silence"),
        pytest.param({"idle": 4}, "-a---b---c|", "-a---b---c|", None, id="just in time"),
        pytest.param({"idle": 4}, "-a---|", "-a---|", None, id="completion just in time"),
        pytest.param({"idle": 4}, "-a---#", "-a---#", None, id="an error just in time"),
        pytest.param({"idle": 4}, "-a----|", "-a", (5, "idle"), id="completion too late"),
        pytest.param({"idle": 4}, "-------", "", (4, "idle"), id="without first, idle counts from the start"),
        pytest.param({"first": 6, "idle": 2}, "----a-b|", "----a-b|", None, id="the first may take longer"),
        pytest.param({"first": 2, "idle": 6}, "-a-----b|", "-a-----b|", None, id="the first may take less"),
        pytest.param({"first": 6, "idle": 2}, "----a----|", "----a", (6, "idle"), id="but not the second"),
        pytest.param({"first": 2, "idle": 6}, "----a-b|", "", (2, "first"), id="a late first"),
        pytest.param({"first": 4}, "-a-b------|", "-a-b", (7, "idle"), id="without idle, first counts on"),
        pytest.param({"first": 4, "total": 9}, "-a---b-----|", "-a---b", (9, "total"), id="and total"),
        pytest.param({"first": 2, "idle": None}, "-a--------|", "-a--------|", None, id="first only"),
        pytest.param(
            {"first": 2, "idle": None}, "-p------|", "-p", (2, "first"), id="a ping is not the first"
        ),
        pytest.param({"idle": None, "total": 5}, "-a-----|", "-a", (5, "total"), id="total only"),
        pytest.param({"idle": 4}, "-ap-p-p-p--", "-ap-p", (5, "idle"), id="32 pings for ever"),
        pytest.param({"idle": 4}, "-ap-b-|", "-ap-b-|", None, id="pings pass"),
        pytest.param({"total": 5}, "-a-b-c-d|", "-a-b-c", (5, "total"), id="total"),
        pytest.param({"total": 5}, "-a-b|", "-a-b|", None, id="done within total"),
        pytest.param(
            {"idle": 2, "total": 5}, "a-bcdabcd|", "a-bcda", (5, "total"), id="total of a lively one"
        ),
        pytest.param({"idle": 2, "total": 9}, "a-b-----c|", "a-b", (4, "idle"), id="idle before total"),
        pytest.param({"idle": 9}, "[abcd]--------|", "[abcd]--------|", None, id="a burst"),
        pytest.param({"idle": 4}, "|", "|", None, id="empty"),
        pytest.param({"idle": 4}, "#", "#", None, id="only an error"),
    ],
)
def test_limits(limits: dict[str, float], source: str, expected: str, stall: Any) -> None:
    records, reads = through(source, rd.stall_timeout(**limits), values=MARKS)
    told, found = split(records)
    assert (marbles.draw(told, values=MARKS, frame=1), found) == (expected, stall)
    assert reads == ([(0, stall[0])] if stall else whole(source))


@pytest.mark.parametrize(
    ("value", "ping"),
    [
        (PING, True),
        ({"type": "keepalive", "sequence_number": 3}, True),
        (SimpleNamespace(type="ping"), True),
        ({"type": "content_block_delta"}, False),
        ({"type": None}, False),
        ({}, False),
        (None, False),
        (b": ping\n\n", True),
        (b": OPENROUTER PROCESSING\r\n\r\n", True),
        (b"\n", True),
        (b": ping\n\ndata: {}\n\n", False),
        (b"data: :\n\n", False),
        (":)", False),
        ("\n", False),
        (ev.ProviderEvent("anthropic", "ping"), True),
        (ev.ProviderEvent("anthropic", "news"), False),
        (ev.TextDelta(0, ""), True),
        (ev.ToolCallDelta(0, ""), True),
        (ev.TextDelta(0, " "), False),
        (ev.BlockFinish(0), False),
        (rd.Snapshot(), False),
    ],
)
def test_what_is_no_sign_of_life(value: Any, ping: bool) -> None:
    records, _ = through("-v-v", rd.stall_timeout(first=2, idle=9), values={"v": value})
    assert split(records)[1] == ((2, "first") if ping else (12, "idle"))


def test_what_is_no_sign_of_life_may_be_said() -> None:
    stall_timeout = rd.stall_timeout(idle=2, is_ping=lambda mark: mark == "b")
    marbles.check("-abbbbb|", stall_timeout, gives="-ab[b#StallTimeoutError]", values=str, frame=1)


def test_what_is_ping_raises_is_the_end() -> None:
    def is_ping(_: object) -> bool:
        raise BOOM

    stall_timeout = rd.stall_timeout(idle=4, is_ping=is_ping)
    marbles.check("-a-b|", stall_timeout, gives="-#", error=BOOM, values=str, frame=1, reads=[(0, 1)])


def test_32_a_block_that_never_ends_is_a_stall_with_what_came() -> None:
    start, delta = ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hel")
    for pipeline in (
        (rd.stall_timeout(idle=4), rd.scan_deltas()),
        (rd.scan_deltas(), rd.stall_timeout(idle=4)),
        (rd.stall_timeout(idle=4), rd.scan_deltas(), rd.throttle_latest(1)),
    ):
        records, _ = through("-sd", *pipeline, values={"s": start, "d": delta})
        error = records[-1][2]
        assert type(error) is rd.errors.StallTimeoutError
        assert (error.limit, error.seconds, error.snapshot.text) == ("idle", 4, "Hel")
        assert "4 seconds" in str(error)


def test_one_timer_at_a_time_and_none_per_value() -> None:
    class Counting(TestScheduler):
        count = 0

        def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
            self.count += 1
            return super().schedule_relative(duetime, action, state)

    scheduler = Counting()
    source = Subject[int]()
    source.pipe(rd.stall_timeout(idle=4)).subscribe(scheduler=scheduler)
    for value in range(1000):
        source.on_next(value)
    assert scheduler.count == 2  # one for the first value, one from then on


def test_an_explicit_scheduler_wins_over_the_subscribers_which_goes_upstream() -> None:
    seen: list[Any] = []

    def subscribe(_: abc.ObserverBase[int], scheduler: abc.SchedulerBase | None = None) -> Disposable:
        seen.append(scheduler)
        return Disposable()

    mine, theirs = TestScheduler(), TestScheduler()
    errors: list[Exception] = []
    stalling = Observable(subscribe).pipe(rd.stall_timeout(idle=4, scheduler=mine))
    stalling.subscribe(on_error=errors.append, scheduler=theirs)
    theirs.advance_to(100)
    assert (seen, errors) == ([theirs], [])
    mine.advance_to(100)
    assert [type(error) for error in errors] == [rd.errors.StallTimeoutError]


def test_53_the_first_value_may_come_while_another_thread_starts_the_timer_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler, source = TestScheduler(), Subject[str]()
    made = 0

    def make() -> SingleAssignmentDisposable:
        nonlocal made
        made += 1
        if made == 1:
            thread = threading.Thread(target=source.on_next, args=("a",))
            thread.start()
            thread.join(10)
        return SingleAssignmentDisposable()

    monkeypatch.setattr(import_module("rxdelta.runtime.sink"), "SingleAssignmentDisposable", make)
    ended: list[float] = []
    source.pipe(rd.stall_timeout(first=100, idle=10, scheduler=scheduler)).subscribe(
        on_error=lambda _: ended.append(scheduler.clock)
    )
    scheduler.advance_to(1000)
    assert ended == [10]


def test_a_stall_is_noticed_by_a_thread_while_nobody_else_does_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    source = Subject[int]()
    heard = threading.Event()
    errors: list[Exception] = []
    source.pipe(rd.stall_timeout(idle=0.001)).subscribe(
        on_error=lambda error: (errors.append(error), heard.set())
    )
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "rxdelta-timer"]
    assert not heard.is_set()
    now[0] = 1.0
    assert heard.wait(10)
    thread.join(10)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [rd.errors.StallTimeoutError]
    assert source.observers == []


def test_the_source_is_left_before_anybody_hears_of_it() -> None:
    scheduler, source = TestScheduler(), Subject[int]()
    seen: list[int] = []
    source.pipe(rd.stall_timeout(idle=4)).subscribe(
        on_error=lambda _: seen.append(len(source.observers)), scheduler=scheduler
    )
    scheduler.advance_to(100)
    assert seen == [0]


def test_58_a_loop_that_is_closed_leaves_no_timer_behind() -> None:
    source = Subject[int]()

    async def main() -> abc.DisposableBase:
        return source.pipe(rd.stall_timeout(idle=1000)).subscribe()

    subscription = asyncio.run(main())
    source.on_next(1)
    subscription.dispose()
    assert source.observers == []


# A reader that takes its time.


class Requests:
    """A provider that answers at once, and how often it was asked."""

    def __init__(self, chunks: int, gap: float = 0.0) -> None:
        self.made = 0
        self.chunks, self.gap = chunks, gap

    def __call__(self) -> Observable[rd.Event]:
        self.made += 1
        return rd.from_async_iterable(self.answer).pipe(rd.stall_timeout(idle=10), rd.decode("openai-chat"))

    async def answer(self) -> AsyncIterator[dict[str, Any]]:
        for number in range(self.chunks):
            reason = "stop" if number == self.chunks - 1 else None
            yield {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": reason}]}
            await asyncio.sleep(self.gap)

    def events(self) -> Observable[rd.Event]:
        return rd.retry_stream(self, backoff=lambda failures, error: 0)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("maxsize", [1, 7])
def test_a_slow_reader_pays_once_and_loses_nothing(maxsize: int, shared: bool) -> None:
    requests = Requests(100)

    async def main() -> rd.Message:
        events = requests.events().pipe(*[rd.share_events()] * shared)
        said: list[rd.Event] = []
        async for event in rd.iterate(events, maxsize=maxsize):
            said.append(event)
            if len(said) in (5, 40, 41, 80):
                await asyncio.sleep(25)
        assert not any(isinstance(event, ev.AttemptReset) for event in said)
        return rx.from_iterable(said).pipe(rd.scan_deltas(), rd.to_message()).run()

    assert VirtualTime().run(main()).text == "x" * 100
    assert requests.made == 1


@pytest.mark.parametrize("blocked", [25.0, 9.5, 10.0, 10.0001])
@pytest.mark.parametrize("of", ["the door", "the pipeline"])
@pytest.mark.parametrize("draws", [(5, 6, 40), range(5, 60)])
def test_a_draw_that_blocks_the_loop_is_no_silence_of_the_provider(
    blocked: float, of: str, draws: Container[int]
) -> None:
    virtual = VirtualTime()
    requests = Requests(100, gap=1)
    drawn: list[rd.Event] = []

    def draw(event: rd.Event) -> None:
        drawn.append(event)
        if len(drawn) in draws:
            virtual.advance(blocked)

    async def main() -> None:
        if of == "the door":
            await rd.for_each(requests.events(), draw)
        else:
            await rd.last_value(requests.events().pipe(ops.do_action(draw)))

    virtual.run(main())
    assert len(drawn) > 100
    assert requests.made == 1


@pytest.mark.parametrize(
    ("limits", "at", "limit"),
    [
        pytest.param({"idle": 10}, 50 + 10, "idle", id="idle begins anew"),
        pytest.param({"total": 40}, 50 + 40, "total", id="total stands still"),
        pytest.param({"first": 40, "idle": None}, None, None, id="a first that came"),
    ],
)
def test_silence_behind_a_pause_of_the_reader_is_still_noticed(limits: Any, at: Any, limit: Any) -> None:
    async def answer() -> AsyncIterator[int]:
        yield 1
        yield 2
        await asyncio.sleep(200)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        source = rd.from_async_iterable(answer).pipe(rd.stall_timeout(**limits))
        async with rd.to_async_iterable(source, maxsize=1) as values:
            await asyncio.sleep(50)
            assert await anext(values) == 1
            if at is None:
                assert [value async for value in values] == [2]
                return
            assert await anext(values) == 2
            await asyncio.sleep(5)
            with pytest.raises(rd.errors.StallTimeoutError) as raised:
                await anext(values)
            assert (loop.time(), raised.value.limit) == (pytest.approx(at, abs=0.05), limit)

    VirtualTime().run(main())


@pytest.mark.parametrize("limit", ["first", "idle", "total"])
@pytest.mark.parametrize("blocked", [0.02, 0.5, 20.0])
def test_silence_is_noticed_on_a_loop_that_others_block_all_the_time(blocked: float, limit: str) -> None:
    virtual = VirtualTime()

    async def answer() -> AsyncIterator[int]:
        if limit != "first":
            yield 1
        await asyncio.sleep(1_000_000)

    async def others() -> None:
        while True:
            virtual.advance(blocked)
            await asyncio.sleep(0)

    async def main() -> None:
        busy = asyncio.create_task(others())
        async with asyncio.timeout(1_000):
            with pytest.raises(rd.errors.StallTimeoutError):
                await rd.last_value(rd.from_async_iterable(answer).pipe(rd.stall_timeout(**{limit: 10})))
        busy.cancel()

    virtual.run(main())


def test_a_reader_that_had_no_room_from_the_start_uses_up_no_time() -> None:
    async def late() -> AsyncIterator[int]:
        await asyncio.sleep(3)
        yield 2
        await asyncio.sleep(3)
        yield 3

    async def main() -> None:
        second = rd.from_async_iterable(late).pipe(rd.stall_timeout(first=5, idle=None, total=6))
        async with rd.to_async_iterable(rx.concat(rx.of(1), second), maxsize=1) as values:
            await asyncio.sleep(17)
            assert [value async for value in values] == [1, 2, 3]

    VirtualTime().run(main())


def test_a_pause_is_measured_by_the_operators_own_clock() -> None:
    scheduler = TestScheduler()

    async def main() -> None:
        stream = Stream({"n": 1}, {"n": 2}, hold=True)
        watched = rd.from_async_iterable(stream).pipe(rd.stall_timeout(idle=4, scheduler=scheduler))
        async with rd.to_async_iterable(watched, maxsize=1) as values:
            await turns()
            scheduler.advance_to(100)  # and the reader has no room
            assert await anext(values) == {"n": 1}
            await turns()
            scheduler.advance_to(200)
            assert await anext(values) == {"n": 2}
            await turns()
            scheduler.advance_to(204)
            with pytest.raises(rd.errors.StallTimeoutError):
                await anext(values)

    run_loop(main)


def test_an_observer_that_works_on_the_sources_thread_is_no_silence() -> None:
    scheduler = TestScheduler()
    source = Subject[str]()
    got: list[Any] = []

    def draw(value: str) -> None:
        got.append(value)
        scheduler.advance_by(50)

    source.pipe(rd.stall_timeout(idle=4)).subscribe(draw, got.append, scheduler=scheduler)
    source.on_next("a")
    scheduler.advance_by(3)
    source.on_next("b")
    scheduler.advance_by(3)
    assert got == ["a", "b"]
    scheduler.advance_by(2)
    assert isinstance(got[2], rd.errors.StallTimeoutError)


@given(
    gaps=st.lists(st.integers(0, 9), max_size=30),
    first=st.integers(1, 9),
    idle=st.integers(1, 9),
    error=st.booleans(),
)
def test_all_that_came_in_time_arrives_before_the_end(
    gaps: list[int], first: int, idle: int, error: bool
) -> None:
    times = [sum(gaps[: count + 1]) for count in range(len(gaps))]
    end = (times[-1] if times else 0) + 1
    source: list[marbles.Record] = [(time, "next", count) for count, time in enumerate(times)]
    source.append((end, "error", BOOM) if error else (end, "completed", None))
    records, _ = through(source, rd.stall_timeout(first, idle))
    told, stall = split(records)
    late = [
        (before + (idle if count else first), "idle" if count else "first")
        for count, (before, after) in enumerate(pairwise([0, *times, end]))
        if after - before > (idle if count else first)
    ]
    assert stall == (late[0] if late else None)
    assert told == [record for record in source if not late or record[0] < late[0][0]]


@pytest.mark.parametrize("limits", [{"idle": 10}, {"first": 10}])
def test_what_a_pacing_operator_holds_for_a_busy_reader_is_no_silence(limits: Any) -> None:
    async def answer() -> AsyncIterator[int]:
        for number in range(60):
            yield number
            await asyncio.sleep(1)
        await asyncio.sleep(100)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        source = rd.from_async_iterable(answer).pipe(rd.throttle_latest(2), rd.stall_timeout(**limits))
        async with rd.to_async_iterable(source) as values:
            seen: list[int] = []
            while not seen or seen[-1] < 59:
                await asyncio.sleep(25)
                seen.append(await anext(values))
            assert len(seen) == 3
            if "idle" in limits:
                with pytest.raises(rd.errors.StallTimeoutError):
                    await anext(values)
                assert loop.time() < 100

    VirtualTime().run(main())
