"""A tail: whoever looks sees what a fold of each event has, and nobody else makes blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from core.strategies import event_of_any_run, events, text
from hypothesis import example, given, strategies as st

import rxdelta as rd
from rxdelta.core import EventsSoFar, Tail, fold as fold_module

ev = rd.events
TEXT = {"type": "text"}


class Kept:
    """A fold behind a tail."""

    def __init__(self, **options: Any) -> None:
        self.fold = rd.Fold(**options)
        self.tail = Tail(self.fold.step, lambda _: self.fold, threading.Lock())

    def step(self, event: rd.Event) -> None:
        self.tail.feed(event)

    @property
    def snapshot(self) -> rd.Snapshot:
        self.tail.settle()
        return self.fold.snapshot


def outcome(step: Callable[[rd.Event], object], event: rd.Event) -> object:
    """What a step says: nothing, or an error with its snapshot."""
    try:
        step(event)
    except rd.errors.RxDeltaError as error:
        return type(error), str(error), error.snapshot
    return None


growing = st.one_of(
    st.builds(ev.TextDelta, st.integers(0, 1), text),
    st.builds(ev.TextDelta, st.just(0), text, choice=st.integers(0, 1), run_id=st.sampled_from([None, "a"])),
    st.builds(ev.ToolCallDelta, st.integers(0, 1), text),
    st.builds(ev.ReasoningDelta, st.integers(0, 1), text),
)
START, ARGS = ev.BlockStart(0, TEXT), ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "args": ""})


A, B = ev.TextDelta(0, "a"), ev.TextDelta(0, "b", choice=1)
unseen = [(A, False)] * 4  # of which the last two are kept


@example([*unseen, (ev.BlockFinish(0), True), *unseen], 64)  # each of the last breaks a rule
@example([*unseen, (B, False), (B, False), *unseen], 64)
@example([*unseen, (ev.TextDelta(0, "b", run_id="a"), False), *unseen], 64)
@example([*unseen, (ev.TextDelta(1, "b"), False), *unseen], 64)
@example([(ev.TextDelta(0, "\ud83d"), False), (ev.TextDelta(0, "\ude00"), False)] * 3, 5)
@given(
    st.lists(st.tuples(st.one_of(growing, growing, events(), event_of_any_run), st.booleans()), max_size=30),
    st.sampled_from([0, 1, 5, 20, 10_000]),
)
def test_it_equals_a_fold_of_each_event(steps: list[tuple[rd.Event, bool]], room: int) -> None:
    limits = rd.Limits(block_chars=room)
    plain, kept = rd.Fold(limits=limits), Kept(limits=limits)
    for event, looks in [(START, False), (ARGS, False), *steps]:
        assert outcome(kept.step, event) == outcome(plain.step, event)
        if looks:
            assert kept.snapshot == plain.snapshot
    assert kept.snapshot == plain.snapshot
    assert kept.snapshot.violations == plain.snapshot.violations


def test_only_one_thread_steps_what_is_kept() -> None:
    fold, lock, waits = rd.Fold(), threading.Lock(), threading.Event()

    class Lock:
        def __enter__(self) -> None:
            if lock.locked():
                waits.set()
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    def step(event: Any) -> None:
        if event.text == "ccc":
            other.start()
            assert waits.wait(30)
        fold.step(event)

    tail = Tail(step, lambda _: fold, Lock())
    other = threading.Thread(target=tail.settle)
    fold.step(START)
    for piece in ["a", "b", "c", "c", "c"]:
        tail.feed(ev.TextDelta(0, piece))
    tail.settle()
    other.join()
    assert fold.snapshot.text == "abccc"


def test_another_thread_may_settle_while_deltas_come() -> None:
    kept, done, seen = Kept(), threading.Event(), [""]

    def look() -> None:
        while not done.is_set():
            seen.append(kept.snapshot.text)

    looking = threading.Thread(target=look)
    looking.start()
    pieces = [f"{n} " for n in range(5_000)]
    for event in [
        START,
        *(ev.TextDelta(0, piece) for piece in pieces),
        ev.BlockFinish(0),
        ev.MessageFinish("stop"),
    ]:
        kept.step(event)
    done.set()
    looking.join()
    assert kept.snapshot.text == "".join(pieces)
    assert kept.snapshot.status == "complete"
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))


def looked_at(steps: list[tuple[rd.Event, bool]], limits: rd.Limits, whole: bool) -> list[object]:
    """What `EventsSoFar` says at each event and each look, up to the first error."""
    so_far, said = EventsSoFar(limits, whole=whole), list[object]()
    for event, looks in steps:
        said.append(outcome(so_far.take, event))
        if looks or said[-1] is not None:
            snapshot = so_far.snapshot()
            said.append((so_far.so_far(), snapshot, snapshot and snapshot.violations, so_far.is_settled()))
        if said[-1] is not None and not looks:
            break
    return [*said, so_far.so_far(), so_far.snapshot()]


@example([*unseen, (B, False), (B, False), *unseen], rd.Limits(), True)
@example([*unseen, (ev.TextDelta(0, "b", run_id="a"), False), *unseen], rd.Limits(), True)
@given(
    st.lists(st.tuples(st.one_of(growing, growing, event_of_any_run), st.booleans()), max_size=30),
    st.builds(rd.Limits, block_chars=st.sampled_from([1, 5, 20, 10_000]), runs=st.integers(1, 3)),
    st.booleans(),
)
def test_the_events_so_far_are_those_of_a_fold_of_each_event(
    steps: list[tuple[rd.Event, bool]], limits: rd.Limits, whole: bool
) -> None:
    steps = [(START, False), (ARGS, False), *steps]
    found = looked_at(steps, limits, whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "_MOST", 0)  # so that nothing is kept
        assert found == looked_at(steps, limits, whole)
