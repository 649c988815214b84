"""The reply that passes, whenever somebody looks at it."""

from __future__ import annotations

import threading
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from core.strategies import event_of_any_run, text
from hypothesis import example, given, strategies as st

import rxdelta as rd
from rxdelta.core import fold as fold_module
from rxdelta.operators.watching.reply_so_far import ReplySoFar

ev = rd.events
START = ev.BlockStart(0, {"type": "text"})


def begin(limits: rd.Limits | None = None) -> ReplySoFar:
    sink: Any = SimpleNamespace(limits=limits or rd.Limits(), choice=0, name="on_settled")
    return ReplySoFar(sink)


def tell(reply: ReplySoFar, value: Any) -> None:
    if not reply.keeps(value):
        reply.note(value)


growing = st.one_of(
    st.builds(ev.TextDelta, st.integers(0, 1), text, choice=st.sampled_from([0, 0, 1])),
    st.builds(ev.TextDelta, st.just(0), text, run_id=st.sampled_from([None, "a"])),
)
snapshots = st.sampled_from([rd.Snapshot(), rd.Fold().step(START)])


def looked_at(steps: list[tuple[Any, bool]], limits: rd.Limits) -> list[object]:
    """What is known at each look."""
    reply, seen = begin(limits), list[object]()
    for value, looks in steps:
        tell(reply, value)
        seen.append((reply.usage, reply._gave_up))
        if looks:
            snapshot = reply.snapshot
            seen.append((snapshot, snapshot and snapshot.violations))
    return [*seen, reply.snapshot]


unseen = [(ev.TextDelta(0, "a"), False)] * 4  # of which the last two are kept


@pytest.mark.filterwarnings("ignore")
@example([*unseen, *[(ev.TextDelta(0, "b", choice=1), False)] * 3, *unseen], rd.Limits())
@example([*unseen, *[(ev.TextDelta(0, "b", run_id="a"), False)] * 3, *unseen], rd.Limits())
@given(
    st.lists(st.tuples(st.one_of(growing, growing, event_of_any_run, snapshots), st.booleans()), max_size=30),
    st.builds(rd.Limits, block_chars=st.sampled_from([1, 5, 20, 10_000]), runs=st.integers(1, 3)),
)
def test_it_is_that_of_a_fold_of_each_event(steps: list[tuple[Any, bool]], limits: rd.Limits) -> None:
    steps = [(START, False), *steps]
    found = looked_at(steps, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "_MOST", 0)  # so that nothing is kept
        assert found == looked_at(steps, limits)


def test_a_snapshot_that_comes_behind_deltas_is_the_last() -> None:
    reply = begin()
    for value in [START, *[ev.TextDelta(0, "a")] * 5, last := rd.Snapshot()]:
        tell(reply, value)
    assert reply.snapshot is last


def test_another_thread_may_look_while_events_come() -> None:
    reply, done, seen = begin(), threading.Event(), list[str]()

    def look() -> None:
        while not done.is_set():
            if (snapshot := reply.snapshot) is not None:
                seen.append(snapshot.text)

    looking = threading.Thread(target=look)
    looking.start()
    for event in [START, *[ev.TextDelta(0, "ab")] * 5_000, ev.BlockFinish(0), ev.MessageFinish("stop")]:
        tell(reply, event)
    done.set()
    looking.join()
    assert reply.snapshot is not None
    assert (reply.snapshot.text, reply.snapshot.status) == ("ab" * 5_000, "complete")
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))
