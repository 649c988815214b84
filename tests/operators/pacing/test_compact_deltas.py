"""`compact_deltas` in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex.testing import TestScheduler
from support.lines import through, whole

import rxdelta as rd
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
TOOL = ev.ToolUpdate("c", "executing")


def one(mark: str) -> Any:
    """Small letters are text of block 0, digits arguments of block 1, `!` is a tool's update."""
    if mark == "!":
        return TOOL
    return ev.ToolCallDelta(1, mark) if mark[0].isdigit() else ev.TextDelta(0, mark)


EVENTS = {mark: one(mark) for mark in "abcdefghijklmnopqrstuvwxyz0123456789!"}


def joined(**words: str) -> dict[str, Any]:
    """Capitals stand for what several deltas have become."""
    return EVENTS | {capital: one(word) for capital, word in words.items()}


@pytest.mark.parametrize(
    ("source", "expected", "words"),
    [
        pytest.param("-a--------b---|", "-a--------b---|", {}, id="a slow source is untouched"),
        pytest.param("-abc------d---|", "-a---B----d---|", {"B": "bc"}, id="a burst is two deltas"),
        pytest.param(
            "abcdefghijkl|", "a---B---F---[J|]", {"B": "bcde", "F": "fghi", "J": "jkl"}, id="steady"
        ),
        pytest.param("[abc]-------|", "a---B---|", {"B": "bc"}, id="what comes at once is a burst"),
        pytest.param("-abc|", "-a--[B|]", {"B": "bc"}, id="completion flushes"),
        pytest.param("-abc#", "-a--[B#]", {"B": "bc"}, id="an error flushes"),
        pytest.param("-a--|", "-a--|", {}, id="completion with nothing held"),
        pytest.param("-a--#", "-a--#", {}, id="an error with nothing held"),
        pytest.param("-ab--c----|", "-a---B----|", {"B": "bc"}, id="a delta on the edge is in"),
        pytest.param("-a---b---|", "-a---b---|", {}, id="on the edge of a silent window it goes at once"),
        pytest.param("-ab--|", "-a---[b|]", {}, id="completion on the edge"),
        pytest.param("-abc", "-a---B", {"B": "bc"}, id="a source that goes silent"),
        pytest.param("-abc!---d--|", "-a--[B!]---d--|", {"B": "bc"}, id="another event flushes"),
        pytest.param("[ab1c2|]", "[ab1c2|]", {}, id="no neighbours"),
        pytest.param("[ab12cd|]", "[abTC|]", {"T": "12", "C": "cd"}, id="neighbours of two blocks"),
        pytest.param("!---!|", "!---!|", {}, id="no deltas at all"),
        pytest.param("--|", "--|", {}, id="empty"),
        pytest.param("#", "#", {}, id="only an error"),
        pytest.param("------", "------", {}, id="never"),
    ],
)
def test_neighbours_within_four_ticks_are_one(source: str, expected: str, words: dict[str, str]) -> None:
    compact, values = rd.compact_deltas(4), joined(**words)
    marbles.check(source, compact, gives=expected, values=values, frame=1, reads=whole(source))


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (ev.TextDelta(0, "a"), ev.TextDelta(0, "b"), ev.TextDelta(0, "ab")),
        (ev.ReasoningDelta(0, "a"), ev.ReasoningDelta(0, "b"), ev.ReasoningDelta(0, "ab")),
        (ev.ToolCallDelta("k", "a"), ev.ToolCallDelta("k", "b"), ev.ToolCallDelta("k", "ab")),
        (ev.DataDelta(0, "a"), ev.DataDelta(0, "b"), ev.DataDelta(0, "ab")),
        (ev.TextDelta(0, "a", choice=1), ev.TextDelta(0, "b", choice=1), ev.TextDelta(0, "ab", choice=1)),
        (ev.TextDelta(0, "a"), ev.TextDelta(1, "b"), None),
        (ev.TextDelta(0, "a"), ev.TextDelta("0", "b"), None),
        (ev.TextDelta(0, "a"), ev.TextDelta(0, "b", choice=1), None),
        (ev.TextDelta(0, "a"), ev.ReasoningDelta(0, "b"), None),
        (ev.BlockDelta(0, {"a": 1}), ev.BlockDelta(0, {"b": 1}), None),
        (ev.UsageUpdate(rd.TokenUsage(1, 1)), ev.UsageUpdate(rd.TokenUsage(1, 2)), None),
    ],
)
def test_only_deltas_of_one_kind_block_and_choice_are_joined(first: Any, second: Any, both: Any) -> None:
    got: list[Any] = []
    lead = ev.TextDelta(9, "lead")
    compact = rd.compact_deltas(4, scheduler=TestScheduler())
    rx.of(lead, first, second).pipe(compact).subscribe(got.append)
    assert got == [lead, *([first, second] if both is None else [both])]


def test_what_is_no_event_is_refused_after_what_was_held() -> None:
    snapshot = rd.MessageDelta(content="x")
    came, _ = through("[abs]-----c", rd.compact_deltas(4), values={**EVENTS, "s": snapshot})
    *held, (_, _, error) = came
    assert [event for _, _, event in held] == [one("a"), one("b")]
    assert type(error) is rd.InvalidValueError
    assert "compact_deltas() reads events, and got a MessageDelta" in str(error)


DELTAS = st.builds(
    lambda make, index, text, choice: make(index, text, choice=choice),
    st.sampled_from([ev.TextDelta, ev.ReasoningDelta, ev.ToolCallDelta]),
    st.integers(0, 1),
    st.text("ab", max_size=2),
    st.integers(0, 1),
)


@given(
    stream=st.lists(st.tuples(st.integers(0, 6), st.one_of(DELTAS, st.just(TOOL))), max_size=40),
    window=st.integers(1, 9),
    error=st.booleans(),
)
def test_order_and_text_stay_and_nothing_waits_longer_than_a_window(
    stream: list[tuple[int, Any]], window: int, error: bool
) -> None:
    times = [sum(gap for gap, _ in stream[: count + 1]) for count in range(len(stream))]
    end = (times[-1] if times else 0) + 1
    source: list[marbles.Record] = [(time, "next", event) for time, (_, event) in zip(times, stream)]
    source.append((end, "error", BOOM) if error else (end, "completed", None))
    records, _ = through(source, rd.compact_deltas(window))
    assert records[-1][1:] == source[-1][1:]
    came = [unit for time, (_, event) in zip(times, stream) for unit in _units(event, time)]
    left = [unit for time, _, event in records[:-1] for unit in _units(event, time)]
    assert [unit for unit, _ in came] == [unit for unit, _ in left]
    assert all(0 <= after - before <= window for (_, before), (_, after) in zip(came, left))


def _units(event: Any, time: float) -> list[tuple[Any, float]]:
    """An event letter by letter."""
    if event is TOOL:
        return [(TOOL, time)]
    text = {ev.TextDelta: "text", ev.ReasoningDelta: "reasoning", ev.ToolCallDelta: "args"}[type(event)]
    return [((type(event), event.index, event.choice, one), time) for one in getattr(event, text)]
