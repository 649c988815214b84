"""`race`: who wins, in virtual time and on threads, and that nothing is seen of who loses."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.testing import TestScheduler
from support.contests import ERRORS, MARKS, contest
from support.loops import Stream, run as run_loop

import rxdelta as rd
from rxdelta.testing import VirtualTime, marbles

if TYPE_CHECKING:
    from collections.abc import Iterator

ev = rd.events
END = 1_000  # of a scene
HI = ev.TextDelta(0, "Hi")
NEVER = "-" * 12


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "rxdelta-timer":
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    ("sources", "output", "read"),
    [
        pytest.param(["-s---a|", "--t-c-d|"], "----[tc]-d|", [[(0, 4)], [(0, 7)]], id="the first content wins"),
        pytest.param(["-s-a-|", "--t-c|"], "---[sa]-|", [[(0, 5)], [(0, 3)]], id="a start wins nothing"),
        pytest.param(["-s-a|", "-t-c|"], "---[sa]|", [[(0, 4)], [(0, 3)]], id="in the same instant the first"),
        pytest.param(["-#", "--E", "-t|", "---c|"], "---c|", [[(0, 1)], [(0, 2)], [(0, 2)], [(0, 4)]], id="losers"),
        pytest.param(["-sx---", "-----c|"], "-----c|", [[(0, 5)], [(0, 6)]], id="a refused reply left open"),
        pytest.param(["-sx---", "---#"], "---[sx]", [[(0, END)], [(0, 3)]], id="which is the best there is"),
        pytest.param(["---t|", "-s|"], "----[s|]", [[(0, 4)], [(0, 2)]], id="the first that is empty"),
        pytest.param(["-s#", "-t|"], "--[t|]", [[(0, 2)], [(0, 2)]], id="an empty one rather than an error"),
        pytest.param(["-a#", "-----c|"], "-a#", [[(0, 2)], [(0, 1)]], id="an error behind the first content"),
    ],
)  # fmt: skip
def test_all_at_once(sources: list[str], output: str, read: list[list[tuple[float, float]]]) -> None:
    assert contest(rd.race, *sources) == (output, read)


@pytest.mark.parametrize(
    ("sources", "output", "read"),
    [
        pytest.param(["-s-a|", "c|"], "---[sa]|", [[(0, 4)], []], id="in time"),
        pytest.param(["-s---a|", "--t-c|"], "-----[sa]|", [[(0, 6)], [(4, 5)]], id="late, but first"),
        pytest.param(["-s-------a|", "-t-c|"], "-------[tc]|", [[(0, 7)], [(4, 8)]], id="overtaken"),
        pytest.param(["-s#", "-t-c|"], "-----[tc]|", [[(0, 2)], [(2, 6)]], id="at once on a failure"),
        pytest.param(["-s|", "-t-c|"], "-----[tc]|", [[(0, 2)], [(2, 6)]], id="at once on an empty reply"),
        pytest.param(["-s#", NEVER, "-a|"], "-------a|", [[(0, 2)], [(2, 7)], [(6, 8)]], id="counted from the last"),
        pytest.param([NEVER, "-#", NEVER, "a|"], "---------a|", [[(0, 9)], [(4, 5)], [(5, 9)], [(9, 10)]], id="a second that fails"),
        pytest.param([NEVER, NEVER, "-a|"], "---------a|", [[(0, 9)], [(4, 9)], [(8, 10)]], id="one after another"),
        pytest.param([NEVER], "", [[(0, END)]], id="the only one"),
        pytest.param(["-s-----#", "-#"], "-------#", [[(0, 7)], [(4, 5)]], id="all fail"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("after", [4, timedelta(seconds=4)])
def test_one_after_another(
    sources: list[str], output: str, read: list[list[tuple[float, float]]], after: float | timedelta
) -> None:
    assert contest(partial(rd.race, after=after), *sources) == (output, read)


def test_nothing_to_wait_for_is_at_once() -> None:
    for after in (0, 0.0, timedelta()):
        assert contest(partial(rd.race, after=after), NEVER, "-a|")[1][1] == [(0, 2)]


# Random scripts.

Script = list[tuple[int, str]]
LONG = 100_000  # behind the end of all scripts
Reads = list[list[tuple[float, float]]]


@st.composite
def scripts(draw: st.DrawFn) -> list[Script]:
    """Sources whose marks never come in the same instant, whenever they are asked."""
    found: list[Script] = []
    for place in range(draw(st.integers(1, 4))):
        marks = [*draw(st.lists(st.sampled_from("ss_kpunxya"), max_size=6)), draw(st.sampled_from("|#E-"))]
        times, time = list[int](), 16 >> place
        for _ in marks:
            time += 64 * draw(st.integers(0, 4))
            times.append(time)
        found.append(list(zip(times, marks)))
    return found


class Story:
    """What must happen, told without Rx: who is asked when, who gives the reply, and from when on."""

    def __init__(self, sources: list[Script], after: float | None) -> None:
        self.sources, self.after = sources, after
        self.asked: dict[int, float] = {}
        self.left: dict[int, float] = {}
        self.empty: list[int] = []
        self.failures: list[int] = []
        self.winner: int | None = None
        self.timer, self.decided = float("inf"), float("inf")
        self.ask(0)
        while after == 0 and len(self.asked) < len(sources):
            self.ask(0)
        while self.decided == float("inf"):
            coming = [(self.asked[at] + time, at, mark) for at, time, mark in self.coming()]
            now, at, mark = min([*coming, (self.timer, -1, "")])
            if now == float("inf"):
                break
            if at < 0:
                self.ask(now)
            else:
                self.take(now, at, mark)

    def coming(self) -> Iterator[tuple[int, float, str]]:
        for at in self.asked:
            if self.taken[at] < len(self.sources[at]):
                yield (at, *self.sources[at][self.taken[at]])

    def ask(self, now: float) -> None:
        at = len(self.asked)
        self.timer = float("inf")
        if at < len(self.sources):
            self.asked[at] = now
            self.taken = {**getattr(self, "taken", {}), at: 0}
            if self.after and at + 1 < len(self.sources):
                self.timer = now + self.after

    def take(self, now: float, at: int, mark: str) -> None:
        self.taken[at] += 1
        if mark == "a":
            self.winner, self.decided = at, now
        elif mark in "E#":
            self.left[at] = now
            self.failures.append(at)
            if at in self.empty:
                self.empty.remove(at)
            else:
                self.settle(now)
        elif mark in "xy|":
            if mark == "|":
                self.left[at] = now
            if at not in self.empty:
                self.empty.append(at)
                self.settle(now)

    def settle(self, now: float) -> None:
        if len({*self.empty, *self.failures}) < len(self.sources):
            self.ask(now)
        else:
            self.decided, self.winner = now, self.empty[0] if self.empty else None

    def output(self) -> list[tuple[float, str]]:
        if self.winner is not None:
            asked = self.asked[self.winner]
            return [
                (max(self.decided, asked + time), mark)
                for time, mark in self.sources[self.winner]
                if mark != "-"
            ]
        return [(self.decided, "#")] if self.decided < LONG else []

    def reads(self) -> Reads:
        ends = {
            at: min(self.decided, LONG, self.left.get(at, LONG)) if at != self.winner else self.end(at)
            for at in self.asked
        }
        return [[(self.asked[at], ends[at])] if at in ends else [] for at in range(len(self.sources))]

    def end(self, at: int) -> float:
        last, mark = self.sources[at][-1]
        return self.asked[at] + last if mark in "|#" else LONG


@given(sources=scripts(), after=st.sampled_from([None, 0, 96, 416]), by_function=st.booleans())
def test_all_events_of_one_source_are_emitted_unchanged_and_none_of_another(
    sources: list[Script], after: float | None, by_function: bool
) -> None:
    for error in ERRORS:
        error.__dict__.pop("__notes__", None)
    story = Story(sources, after)
    clock = VirtualTimeScheduler()
    cold = [marbles.cold(played(at, script), clock) for at, script in enumerate(sources)]
    make = rd.fallback if after is None else partial(rd.race, after=after)
    given: list[Any] = [partial(rx.pipe, one) for one in cold] if by_function else cold
    output = marbles.records(make(*given), clock, until=LONG)
    assert [(time, kind) for time, kind, _ in output] == [
        (time, {"|": "completed", "#": "error"}.get(mark, "next")) for time, mark in story.output()
    ]
    if story.winner is not None:
        for (_, _, one), (_, _, its) in zip(output, played(story.winner, sources[story.winner]), strict=True):
            assert one is its
    elif output:
        assert len(getattr(output[0][2], "__notes__", [])) == len(sources) - 1
    assert [source.subscriptions for source in cold] == story.reads()


def played(at: int, script: Script) -> list[marbles.Record]:
    ends: dict[str, tuple[Any, Any]] = {"|": ("completed", None), "#": ("error", ERRORS[at])}
    return [(time, *ends.get(mark, ("next", OWN.get((at, mark))))) for time, mark in script if mark != "-"]


OWN = {(at, mark): attrs.evolve(event) for at in range(4) for mark, event in MARKS.items()}
"""The event of each mark in each source: equal ones are different objects."""


# Losers.


class Pushed:
    """A source that is pushed by hand. It emits while it is closed, and may fail to close."""

    def __init__(self, *, at_the_end: bool = False, cannot_close: bool = False) -> None:
        self.closed = 0
        self.log: list[str] = []
        self.at_the_end, self.cannot_close = at_the_end, cannot_close
        self.source = rx.create(self._subscribe)

    def _subscribe(self, observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        self.push = observer.on_next
        self.fail = observer.on_error
        self.complete = observer.on_completed
        return Disposable(self._close)

    def _close(self) -> None:
        self.closed += 1
        if self.at_the_end:
            self.push(ev.TextDelta(0, "too late"))
            self.fail(ConnectionError("too late"))
        if self.cannot_close:
            raise OSError("can't be closed")


def test_losers_are_disposed_before_the_winner_is_seen_and_emit_nothing_then() -> None:
    winner, losers, got = Pushed(), [Pushed(at_the_end=True) for _ in range(3)], list[Any]()

    def take(event: rd.Event) -> None:
        got.append((event, [loser.closed for loser in losers]))
        losers[0].push(ev.TextDelta(0, "late"))

    rd.race(losers[0].source, winner.source, *(loser.source for loser in losers[1:])).subscribe(
        take, got.append
    )
    for loser in losers:
        loser.push(ev.MessageStart("lost"))
    winner.push(ev.MessageStart("m1"))
    assert got == []
    winner.push(HI)
    assert got == [(ev.MessageStart("m1"), [1, 1, 1]), (HI, [1, 1, 1])]
    for loser in losers:
        loser.push(ev.TextDelta(0, "late"))
        loser.fail(ConnectionError("late"))
    winner.push(HI)
    assert got[2:] == [(HI, [1, 1, 1])]
    assert winner.closed == 0


def test_a_loser_that_cant_be_closed_is_reported_and_the_reply_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    winner, loser, other, got = Pushed(), Pushed(cannot_close=True), Pushed(), list[Any]()
    rd.race(loser.source, other.source, winner.source).subscribe(got.append, got.append)
    winner.push(HI)
    winner.push(HI)
    assert got == [HI, HI]
    assert (loser.closed, other.closed) == (1, 1)
    (record,) = caplog.records
    assert record.getMessage() == "a source of race that has lost raised when it was disposed"


def test_a_source_that_emits_at_once_wins_before_the_next_is_asked() -> None:
    asked: list[int] = []

    def ask() -> Observable[rd.Event]:
        asked.append(1)
        return rx.never()

    def now(observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        observer.on_next(HI)
        return Disposable()

    got: list[Any] = []
    rd.race(rx.create(now), ask).subscribe(got.append)
    assert (got, asked) == ([HI], [])


def test_a_source_that_wins_while_another_is_being_asked() -> None:
    first, second, got = Pushed(), Pushed(), list[Any]()

    def ask() -> Observable[rd.Event]:
        first.push(HI)
        return second.source

    third = Pushed()
    rd.race(first.source, ask, third.source).subscribe(got.append)
    assert got == [HI]
    assert (first.closed, second.closed) == (0, 1)
    assert not hasattr(third, "push")


@pytest.mark.parametrize("what", ["content", "an end", "an error"])
def test_a_loser_whose_turn_comes_behind_the_win_is_not_seen(what: str) -> None:
    got: list[Any] = []
    last = Pushed()

    def end() -> None:  # `last` isn't disposed yet
        if what == "content":
            last.push(ev.TextDelta(0, "late"))
        elif what == "an end":
            last.complete()
        else:
            last.fail(ERRORS[0])

    def subscribe(_: object, __: object) -> abc.DisposableBase:
        return Disposable(end)

    first: Observable[rd.Event] = rx.create(subscribe)
    winner = Pushed()
    rd.race(first, winner.source, last.source).subscribe(got.append, got.append, partial(got.append, None))
    winner.push(HI)
    winner.push(HI)
    assert got == [HI, HI]
    assert (winner.closed, last.closed) == (0, 1)


def test_nobody_is_asked_any_more_when_one_wins_while_another_is_asked() -> None:
    asked: list[int] = []
    first, second, third = Pushed(), Pushed(), Pushed()

    def ask() -> Observable[rd.Event]:
        second.fail(ERRORS[1])  # so the next one is to be asked
        third.push(HI)
        return rx.never()

    def ask_no_more() -> Observable[rd.Event]:
        asked.append(1)
        return rx.never()

    clock, got = TestScheduler(), list[Any]()
    sources = [first.source, second.source, third.source, ask, ask_no_more]
    rd.race(*sources, after=4).subscribe(got.append, scheduler=clock)
    clock.advance_by(9)
    first.fail(ERRORS[0])
    clock.advance_by(100)
    assert (got, asked) == ([HI], [])


# Threads.


def emitting(
    name: str, go: threading.Event, left: list[str], threads: list[threading.Thread]
) -> Observable[rd.Event]:
    """A source with a thread of its own."""

    def subscribe(observer: abc.ObserverBase[rd.Event], _: Any = None) -> abc.DisposableBase:
        def emit() -> None:
            go.wait(10)
            observer.on_next(ev.MessageStart(name))
            for number in range(5):
                observer.on_next(ev.TextDelta(0, f"{name}{number}"))
            observer.on_completed()

        thread = threading.Thread(target=emit)
        threads.append(thread)
        thread.start()
        return Disposable(lambda: left.append(name))

    return rx.create(subscribe)


def test_two_threads_have_one_winner() -> None:
    for _ in range(200):
        go, over, got, left = threading.Event(), threading.Event(), list[Any](), list[str]()
        threads: list[threading.Thread] = []
        rd.race(*(emitting(name, go, left, threads) for name in "ab")).subscribe(
            got.append, got.append, over.set
        )
        go.set()
        assert over.wait(10)
        for thread in threads:
            thread.join(10)
        winner = got[0].id
        assert got == [ev.MessageStart(winner), *(ev.TextDelta(0, f"{winner}{n}") for n in range(5))]
        assert sorted(left) == ["a", "b"]


def test_a_function_that_blocks_is_overtaken_on_another_thread() -> None:
    blocked, over, got = threading.Event(), threading.Event(), list[Any]()
    loser = Pushed()

    def slow() -> Observable[rd.Event]:
        assert blocked.wait(10)
        return loser.source

    def quick() -> Observable[rd.Event]:
        return rx.of(HI)

    def complete() -> None:
        blocked.set()
        over.set()

    rd.race(slow, quick, after=0.001).subscribe(got.append, got.append, complete)
    assert over.wait(10)
    assert got == [HI]
    assert loser.closed in (0, 1)
    assert loser.closed == 1 or not hasattr(loser, "push")


# With a loop.


def test_a_source_that_a_timer_asks_waits_for_the_reader_and_losers_are_closed() -> None:
    async def main() -> None:
        first = Stream[rd.Event](ev.MessageStart(), hold=True)
        second = Stream[rd.Event](*[ev.TextDelta(0, str(n)) for n in range(1_000)])
        reply = rd.race(
            rd.from_async_iterable(lambda: first), lambda: rd.from_async_iterable(lambda: second), after=0.001
        )
        async with rd.to_async_iterable(reply, maxsize=3) as events:
            async for event in events:
                assert event == ev.TextDelta(0, "0")
                for _ in range(100):
                    await asyncio.sleep(0)
                assert (first.cancelled, first.closed) == (1, 1)
                break
        assert second.given < 10
        assert second.closed == 1

    run_loop(main)


def test_the_seconds_pass_on_the_running_loop() -> None:
    async def main() -> float:
        begun = asyncio.get_running_loop().time()
        assert (
            await rd.first_value(rd.race(rx.never(), rx.never(), rx.of(HI), after=timedelta(hours=1))) == HI
        )
        return asyncio.get_running_loop().time() - begun

    assert VirtualTime().run(main()) == pytest.approx(7_200)
