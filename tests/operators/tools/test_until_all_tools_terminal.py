"""`until_all_tools_terminal` in virtual time."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, get_args

import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st
from reactivex.subject import ReplaySubject, Subject
from support.lines import through, whole
from support.replies import REPLIES

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

BOOM = ValueError("boom")


def call(name: str = "c1", execution: str | None = None, **known: Any) -> rd.ToolCall:
    metadata = {} if execution is None else {"execution_status": execution}
    return rd.ToolCall(
        call_id=name, name="look", metadata=metadata, **{"arguments": {}, "status": "complete"} | known
    )


def reply(*calls: rd.ToolCall, status: str = "complete") -> rd.Snapshot:
    return rd.MessageDelta(role="assistant", status=status, tool_calls=calls)


INVALID = call(type="invalid_tool_call", arguments="{", status="incomplete", error="cut")
OPEN = call(arguments='{"at": ', status="incomplete")
MARKS: dict[str, Any] = {
    "a": reply(status="incomplete"),
    "b": reply(OPEN, status="incomplete"),
    "c": reply(call("c1", "completed"), status="incomplete"),  # the tool was quicker than the message
    "m": reply(),
    "l": reply(status="length"),
    "i": reply(status="interrupted"),
    "q": reply(call()),  # asked, and nobody has begun
    "e": reply(call("c1", "executing")),
    "d": reply(call("c1", "completed")),
    "f": reply(call("c1", "failed")),
    "1": reply(call("c1", "completed"), call("c2", "executing")),
    "2": reply(call("c1", "completed"), call("c2", "failed")),
    "3": reply(call("c1", "executing"), call("c2", "completed")),
    "v": reply(INVALID),
    "w": reply(INVALID, call("c2", "executing")),
    "x": reply(INVALID, call("c2", "completed")),
    "o": reply(OPEN),
    "L": reply(OPEN, call("c2", "completed"), status="length"),
    "M": reply(OPEN, call("c2", "executing"), status="length"),
    "N": reply(call(), status="length"),
    "I": reply(call(arguments="{", status="complete"), status="interrupted"),
    "J": reply(call(status="incomplete"), status="length"),
    "s": reply(call(type="server_tool_call")),
    "?": ev.TextDelta(0, "Hi"),
}
check = partial(marbles.check, values=MARKS, frame=1)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("-a-m-----", "-a-[m|]", id="no calls"),
        pytest.param("-a-l-----", "-a-[l|]", id="cut by the limit"),
        pytest.param("-a-i-----", "-a-[i|]", id="interrupted"),
        pytest.param("-a-b-d---", "-a-b-[d|]", id="finished and completed at once"),
        pytest.param("-a-q-e-d-", "-a-q-e-[d|]", id="late statuses"),
        pytest.param("-b-q---f-", "-b-q---[f|]", id="a call that fails"),
        pytest.param("-b-c-d---", "-b-c-[d|]", id="a status ahead of the message"),
        pytest.param("-q-e-1-2-", "-q-e-1-[2|]", id="the last of two"),
        pytest.param("-q-3-2---", "-q-3-[2|]", id="the first of two is the last"),
        pytest.param("-b-v-----", "-b-[v|]", id="invalid calls only"),
        pytest.param("-b-w-x---", "-b-w-[x|]", id="an invalid call beside one that runs"),
        pytest.param("-b-s-----", "-b-[s|]", id="the provider's own call"),
        pytest.param("-b-M-L---", "-b-M-[L|]", id="an open call that was cut is never run"),
        pytest.param("-b-N-d---", "-b-N-[d|]", id="a whole call is, though the message was cut"),
        pytest.param("-b-I-----", "-b-[I|]", id="nor is one whose arguments are no object"),
        pytest.param("-b-J-----", "-b-[J|]", id="nor is one that was still open"),
        pytest.param("-b-o-d---", "-b-o-[d|]", id="an open call of a complete message is"),
        pytest.param("-m-a-d---", "-[m|]", id="only the first such snapshot"),
        pytest.param("m--------", "[m|]", id="at once"),
        pytest.param("-a-q-e-|", "-a-q-e-|", id="a source that ends first"),
        pytest.param("-a-q-e-#", "-a-q-e-#", id="an error"),
        pytest.param("-a-d-#", "-a-[d|]", id="an error that comes too late"),
        pytest.param("-a-[d#]", "-a-[d|]", id="at the same tick too"),
        pytest.param("|", "|", id="empty"),
        pytest.param("#", "#", id="only an error"),
        pytest.param("---------", "---------", id="never"),
    ],
)
def test_up_to_the_first_finished_snapshot_without_a_call_that_runs(source: str, expected: str) -> None:
    check(source, rd.until_all_tools_terminal(), gives=expected, reads=whole(expected), error=BOOM)


def test_it_emits_then_disposes_then_completes() -> None:
    source = Subject[Any]()
    told: list[Any] = []
    source.pipe(rd.until_all_tools_terminal()).subscribe(
        lambda snapshot: told.append((snapshot, len(source.observers))),
        on_completed=lambda: told.append(("|", len(source.observers))),
    )
    source.on_next(MARKS["d"])
    assert told == [(MARKS["d"], 1), ("|", 0)]


def test_a_late_subscriber_to_a_replay_gets_the_last_snapshot_and_the_end() -> None:
    replay = ReplaySubject[Any](buffer_size=1)
    for mark in "aqd":
        replay.on_next(MARKS[mark])
    got: list[Any] = []
    replay.pipe(rd.until_all_tools_terminal()).subscribe(got.append, on_completed=lambda: got.append("|"))
    assert got == [MARKS["d"], "|"]
    assert replay.observers == []


def asked(*names: str) -> list[Any]:
    """A reply that asks for these tools, as events."""
    events: list[Any] = [ev.MessageStart(id="m1")]
    for index, name in enumerate(names):
        events.append(ev.BlockStart(index, {"type": "tool_call", "id": name, "name": "look", "args": {}}))
        events.append(ev.BlockFinish(index))
    return [*events, ev.MessageFinish("tool_use")]


def told(name: str, word: str) -> Any:
    return ev.ToolUpdate(name, execution_status=word)


def statuses(snapshot: rd.Snapshot) -> list[str]:
    return [one.execution_status() for one in snapshot.tool_calls]


def test_statuses_may_come_from_elsewhere() -> None:
    updates = Subject[Any]()
    got: list[Any] = []
    rx.merge(rx.from_iterable(asked("c1", "c2")), updates).pipe(
        rd.scan_deltas(), rd.until_all_tools_terminal()
    ).subscribe(got.append, on_completed=lambda: got.append("|"))
    for name, word in [
        ("c2", "executing"),
        ("c1", "executing"),
        ("c1", "completed"),
        ("c1", "executing"),  # a terminal call never goes back
    ]:
        updates.on_next(told(name, word))
    assert statuses(got[-1]) == ["completed", "executing"]
    updates.on_next(told("c2", "failed"))
    assert got[-1] == "|"
    assert statuses(got[-2]) == ["completed", "failed"]
    assert updates.observers == []


def test_an_error_between_passes_with_the_snapshot() -> None:
    updates = Subject[Any]()
    got: list[Any] = []
    rx.merge(rx.from_iterable(asked("c1")), updates).pipe(
        rd.scan_deltas(), rd.until_all_tools_terminal()
    ).subscribe(on_error=got.append)
    updates.on_error(BOOM)
    assert [type(error) for error in got] == [rd.StreamInterrupted]
    assert got[0].snapshot.status == "complete"


@pytest.mark.parametrize("first", ["until", "throttle"])
def test_before_or_after_throttling_the_last_snapshot_is_seen(first: str) -> None:
    events = dict(zip("abcdefg", [*asked("c1"), told("c1", "executing"), told("c1", "completed")]))
    stages = [rd.throttle_latest(5), rd.until_all_tools_terminal()]
    if first == "until":
        stages.reverse()
    records, reads = through("abcd-ef----", rd.scan_deltas(), *stages, values=events)
    *_, (_, _, emitted), (time, kind, _) = records
    assert statuses(emitted) == ["completed"]
    end = 6 if first == "until" else 10  # flushed at the end; or seen when the window closes
    assert (time, kind, reads) == (end, "completed", [(0, end)])


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_a_reply_whose_call_nobody_runs_ends_with_the_source(wire_format: str) -> None:
    snapshots = rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format), rd.scan_deltas())
    got: list[Any] = []
    snapshots.pipe(rd.until_all_tools_terminal()).subscribe(got.append)
    everything: list[Any] = []
    snapshots.subscribe(everything.append)
    assert got == everything


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["c0", "c1", "c2"]),
            st.sampled_from(get_args(rd.core.ExecutionStatus)),
        ),
        max_size=12,
    ),
    st.integers(0, 12),
    st.integers(0, 3),
)
def test_whatever_the_order_it_ends_with_the_first_snapshot_that_is_over(
    news: list[tuple[str, str]], when: int, calls: int
) -> None:
    *body, end = asked(*(f"c{number}" for number in range(calls)))
    updates = [told(name, word) for name, word in news]
    stream = [*body, *updates[:when], end, *updates[when:]]
    got: list[Any] = []
    rx.from_iterable(stream).pipe(rd.scan_deltas(), rd.until_all_tools_terminal()).subscribe(got.append)
    everything: list[Any] = []
    rx.from_iterable(stream).pipe(rd.scan_deltas()).subscribe(everything.append)
    over = [
        one.status == "complete" and (not one.tool_calls or one.all_tools_terminal()) for one in everything
    ]
    assert got == (everything[: over.index(True) + 1] if any(over) else everything)
    assert all(len(before.blocks) <= len(after.blocks) for before, after in pairwise(got))
