"""Rx's grammar for every operator, as a state machine: whatever its source, its clock and its observers do, and wherever.

For each observer: values, then at most one end; one notification at a time; nothing behind a return of `dispose`, or behind an
exception of its own. When nobody reads, the source is disposed and no timer is set. What was held comes before the end. No
exception leaves a call but an observer's own, and an error is rxdelta's or the source's own object.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, ClassVar

import pytest
import reactivex as rx
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from reactivex import Observable, operators as ops
from support.grammar import ACTS, Bench, Plan, Probe, Source
from support.operators import CASES, FEEDS, Case, made_by

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import VirtualTime

EXAMPLES, SOAKED, STEPS = 10, 300, 12
MOST_OBSERVERS = 6

plans = st.builds(
    Plan, st.one_of(st.integers(0, 2), st.just("end")), st.sampled_from(ACTS), elsewhere=st.booleans()
)
some_plan = st.one_of(st.none(), st.none(), plans)
ends = st.sampled_from([None, None, None, "completed", "fails", "fails for a while"])
RUBBISH = [None, 5, "x", b"{", {"a": object()}, object(), ValueError(), [], ev.BlockFinish(77), rd.Snapshot()]


def error_of(end: str | None) -> Exception | str | None:
    match end:
        case "fails":
            return ValueError("of the source")
        case "fails for a while":
            return TimeoutError("of the source")
    return end


class Grammar(RuleBasedStateMachine):
    case: ClassVar[Case]

    @initialize(
        number=st.integers(0, 50),
        opening=st.sampled_from([0, 0, 0, 1, 4, 99]),
        end=ends,
        plan=some_plan,
        inner=some_plan,
    )
    def open(self, number: int, opening: int, end: str | None, plan: Plan | None, inner: Plan | None) -> None:
        feed = FEEDS[self.case.feed]()
        values = feed[number % len(feed)]
        source = Source(
            values, min(opening, len(values)), error_of(end) if opening else None, restarts=self.case.restarts
        )
        self.bench = Bench(source, self.case.make, queued=self.case.queued)
        self.bench.subscribe(plan, inner)

    @rule(plan=some_plan, inner=some_plan)
    def subscribe(self, plan: Plan | None, inner: Plan | None) -> None:
        if len(self.bench.probes) < MOST_OBSERVERS:
            self.bench.subscribe(plan, inner)

    @rule(count=st.integers(1, 6))
    def push(self, count: int) -> None:
        for _ in range(count):
            self.bench.do("a push", self.bench.source.push)

    @rule(value=st.sampled_from(RUBBISH))
    def push_rubbish(self, value: Any) -> None:
        self.bench.is_disturbed = True
        self.bench.do("a push", self.bench.source.emit, value)

    @rule(end=st.sampled_from(["completed", "fails", "fails for a while"]))
    def end(self, end: str) -> None:
        self.bench.do("the source's end", self.bench.source.finish, error_of(end))

    @rule(seconds=st.sampled_from([0.5, 3, 7, 60]))
    def advance(self, seconds: float) -> None:
        self.bench.advance(seconds)

    @rule(how=st.sampled_from(["value", "end", "error"]))
    def signal(self, how: str) -> None:
        side = self.bench.side
        self.bench.is_disturbed |= how != "end"
        if how == "value":
            self.bench.do("a signal", side.emit, ev.Custom("said", 1))
        else:
            self.bench.do(
                "a signal's end", side.finish, "completed" if how == "end" else ValueError("of the signal")
            )

    @precondition(lambda self: self.bench.readers)
    @rule(number=st.integers(0, MOST_OBSERVERS), times=st.integers(1, 2))
    def dispose(self, number: int, times: int) -> None:
        readers = self.bench.readers
        for _ in range(times):
            readers[number % len(readers)].dispose()

    @invariant()
    def the_laws_hold(self) -> None:
        check(self.case, self.bench)

    def teardown(self) -> None:
        check_the_rest(self.case, self.bench)


def check(case: Case, bench: Bench) -> None:
    """What holds at each moment. What an operator has held must be there when the source has ended."""
    assert not bench.faults, "\n".join(bench.faults)
    for one in [*bench.source.subscriptions, *bench.side.subscriptions]:
        assert getattr(one.scheduler, "time", one.scheduler) is bench.scheduler, "another clock goes upstream"
    if case.shared:
        assert len(bench.source.open) <= 1, "a shared source is read twice"
    if not bench.readers and not case.grace:
        check_nothing_is_left(bench)
    for probe in bench.probes:
        if probe.end is not None and not probe.judged:
            probe.judged = True
            judge(case, bench, probe)


def check_nothing_is_left(bench: Bench) -> None:
    assert not bench.source.open, "the source isn't disposed, although nobody reads"
    assert not bench.side.open, "the signal isn't disposed, although nobody reads"
    assert not bench.timers(), "a timer is set, although nobody reads"


def check_the_rest(case: Case, bench: Bench) -> None:
    """What holds when all have left."""
    if not bench.faults:
        for probe in bench.readers:
            probe.dispose()
        if case.grace:
            bench.advance(100)
        check_nothing_is_left(bench)
        check(case, bench)


def judge(case: Case, bench: Bench, probe: Probe) -> None:
    """Compare what an observer has got from start to end, where all that happened was the source's."""
    source = bench.source
    is_known = not (bench.is_disturbed or source.repeats) and len(source.subscriptions) == 1
    if case.law is not None and is_known and probe.ends_with_source:
        sent = source.subscriptions[0].sent
        got, wanted = case.law(sent, probe.got, isinstance(source.ended, Exception))
        assert got == wanted, f"an observer got {got} in sum, and not {wanted}"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What an observer raises behind a timer is logged."""
    log = logging.getLogger("rxdelta")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    yield
    log.setLevel(level)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "examples",
    [pytest.param(EXAMPLES, id="some"), pytest.param(SOAKED, id="many", marks=pytest.mark.soak)],
)
def test_an_operator_keeps_the_grammar(name: str, examples: int) -> None:
    machine = type(name, (Grammar,), {"case": CASES[name]})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=STEPS, deadline=None)
    )


def shortest(case: Case) -> Sequence[Any]:
    """Of what the operator reads, what is short and has all that it looks for."""
    return min((values for values in FEEDS[case.feed]() if len(values) > 2), key=len)


def scenes() -> Iterator[tuple[Plan, str, int]]:
    """Each thing that an observer can do in its first notification or its end, how the source ends, and what it emits at once."""
    for act, elsewhere in product(ACTS, (False, True)):
        for at, end, opening in [
            (0, "completed", 0),
            (0, "fails", 3),
            ("end", "completed", 3),
            ("end", "fails", 0),
        ]:
            yield Plan(at, act, elsewhere=elsewhere), end, opening


@pytest.mark.parametrize("name", CASES)
def test_an_observer_may_do_anything_in_a_notification(name: str) -> None:
    case = CASES[name]
    values = shortest(case)
    for (plan, end, opening), is_inner in product(scenes(), {False, name.startswith("group_by")}):
        source = Source(values, opening, restarts=case.restarts)
        bench = Bench(source, case.make, queued=case.queued)
        bench.subscribe(None if is_inner else plan, plan if is_inner else None)
        while source.rest and source.ended is None:
            bench.do("a push", source.push)
        bench.do("the source's end", source.finish, error_of(end))
        try:
            if not (is_inner or case.shared or name == "per_block"):  # these report it, each in its way
                assert {*bench.escaped} == {*bench.raised}
            bench.advance(50)
            check(case, bench)
            check_the_rest(case, bench)
        except AssertionError as error:
            error.add_note(
                f"{plan} of an {'inner' if is_inner else 'outer'} observer, {opening} at once, {end}"
            )
            raise


@pytest.mark.parametrize("name", CASES)
def test_behind_a_source_that_emits_all_at_once_nothing_follows_a_reader_that_leaves(name: str) -> None:
    case = CASES[name]
    values = shortest(case)
    source = Source(values, len(values), "completed", restarts=case.restarts)
    bench = Bench(source, lambda bench: case.make(bench).pipe(ops.take(1)), queued=case.queued)
    bench.subscribe()
    (probe, *_) = bench.probes
    if not case.restarts:
        assert (len(probe.got), probe.end) == (1, "completed")
        check_nothing_is_left(bench)
    assert not bench.faults, bench.faults


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.queued])
def test_threads_may_push_end_and_leave_at_once(name: str) -> None:
    """Whatever comes first: one notification at a time, and one end. All begin at a barrier, and switch as often as can be."""
    case = CASES[name]
    values = shortest(case)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for acts in [
            ("push", "push", "complete"),
            ("push", "dispose", "fail"),
            ("push", "subscribe", "dispose"),
        ]:
            bench = Bench(Source(values, restarts=case.restarts), case.make, queued=True)
            bench.subscribe()
            bench.is_racing = True
            barrier = Barrier(len(acts))

            def work(act: str, bench: Bench = bench, barrier: Barrier = barrier) -> None:
                barrier.wait(30)
                for _ in range(len(values) if act == "push" else 1):
                    bench.perform(act, bench.probes[0])

            threads = [Thread(target=work, args=(act,), daemon=True) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive(), f"{acts}: a thread waits for ever"
            bench.is_racing, bench.is_disturbed = False, True
            bench.perform("push", bench.probes[0])
            check(case, bench)
            check_the_rest(case, bench)
    finally:
        sys.setswitchinterval(interval)


NAMED = {name for name, case in CASES.items() if name.startswith("to_") and case.feed == "events"}
"""Each output has ids and times of its own."""


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.shared])
def test_two_subscriptions_know_nothing_of_each_other(name: str) -> None:
    case = CASES[name]
    bench = Bench(Source(shortest(case), restarts=True), case.make, queued=case.queued)
    for count in (2, 1):  # two at once, and one when all is over
        for _ in range(count):
            bench.subscribe()
        for _ in range(bench.source.rest):
            bench.do("a push", bench.source.push)
        bench.do("the source's end", bench.source.finish, "completed")
        bench.advance(100)
    got: dict[str, dict[str, Any]] = {}
    for probe in bench.probes:
        reader, _, stream = probe.name.partition(", ")
        values = [None if isinstance(value, Observable) else value for value in probe.got]
        got.setdefault(reader, {})[stream] = [*map(type, values)] if name in NAMED else values
    first, second, later = got.values()
    assert first == second == later


class Letters:
    """What a source reads: four letters, one a second, and then the end. It notes who reads and who has stopped."""

    def __init__(self, end: Exception | str | None) -> None:
        self.end = end
        self.reading: Counter[str] = Counter()

    async def slow(self) -> AsyncIterator[str]:
        self.reading["begun"] += 1
        try:
            for letter in "abcd":
                await asyncio.sleep(1)
                yield letter
            if isinstance(self.end, Exception):
                raise self.end
        finally:
            self.reading["closed"] += 1

    def at_once(self) -> Iterator[str]:
        self.reading["begun"] += 1
        try:
            yield from "abcd"
            if isinstance(self.end, Exception):
                raise self.end
        finally:
            self.reading["closed"] += 1


SOURCES: dict[str, Callable[[Letters, Path], Observable[Any]]] = {
    "from_async_iterable": lambda letters, _: rd.from_async_iterable(letters.slow),
    "from_iterable": lambda letters, _: rd.from_iterable(letters.at_once),
    "from_recording": lambda _, path: rd.from_recording(path),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_keeps_the_grammar_whatever_its_observers_do(name: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    rx.from_iterable([*"abcd"]).pipe(rd.record(path)).run()

    async def play(plan: Plan, end: str) -> None:
        letters = Letters(error_of(end))
        bench = Bench(Source(()), lambda _: SOURCES[name](letters, path), queued=True)
        bench.source.errors += [letters.end] if isinstance(letters.end, Exception) else []
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # gets what an observer raises
        bench.subscribe(plan)
        bench.subscribe()
        for _ in range(20):
            await asyncio.sleep(1)
            bench.advance(1)
        while letters.reading["closed"] < letters.reading["begun"]:  # a thread closes its iterator
            await asyncio.sleep(0.01)
        assert not bench.faults, bench.faults
        assert not bench.readers
        assert "".join(bench.probes[1].got) == "abcd"
        assert not bench.timers()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    for plan, end, _ in scenes():
        if plan.act in ("dispose", "dispose twice", "raise", "subscribe"):
            VirtualTime().run(play(plan, end))


def test_every_operator_has_a_case() -> None:
    made = made_by(rd) | made_by(rd.building)
    assert {name.partition(" ")[0].removesuffix("'s") for name in {**CASES, **SOURCES}} == made
