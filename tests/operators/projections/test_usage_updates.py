"""`usage_updates`: what changed, once. What holds for each projection: `test_projection`."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import operators as ops
from support.marbles import marbles, run
from support.replies import REPLIES

import rxdelta as rd
from rxdelta import events as ev

ONE, TWO = rd.TokenUsage(3, 1), rd.TokenUsage(3, 2)
ZERO, UNKNOWN = rd.TokenUsage(0, 0), rd.TokenUsage(None, 5)


def told(*events: Any) -> list[Any]:
    got: list[Any] = rx.from_iterable(events).pipe(rd.usage_updates(), ops.to_list()).run()
    return got


def test_each_change_when_it_comes() -> None:
    marks = {"M": ev.MessageStart(usage=ONE), "a": ev.UsageUpdate(ONE), "b": ev.UsageUpdate(TWO)}
    messages, _ = run(marbles("-Ma-bb|", marks, start=0), rd.usage_updates())
    assert messages == marbles("-x--y-|", {"x": ONE, "y": TWO})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([ev.MessageStart(usage=ONE)], [ONE], id="the start's"),
        pytest.param([ev.MessageStart()], [], id="a start without"),
        pytest.param([ev.MessageStart(), ev.UsageUpdate(ONE)], [ONE], id="a running one"),
        pytest.param([ev.UsageUpdate(ONE), ev.UsageUpdate(ONE)], [ONE], id="the same again"),
        pytest.param([ev.UsageUpdate(TWO), ev.UsageUpdate(ONE)], [TWO, ONE], id="44: one that is lower"),
        pytest.param(
            [ev.UsageUpdate(ZERO), ev.UsageUpdate(UNKNOWN)], [ZERO, UNKNOWN], id="44: unknown is not 0"
        ),
        pytest.param([ev.MessageFinish("stop", usage=ONE)], [ONE], id="the finish's"),
        pytest.param([ev.UsageUpdate(ONE), ev.MessageFinish("stop")], [ONE], id="a finish without"),
        pytest.param(
            [ev.UsageUpdate(ONE), ev.MessageFinish("stop", usage=ONE)], [ONE], id="the finish's is known"
        ),
        pytest.param([ev.MessageFinish("stop"), ev.UsageUpdate(ONE)], [], id="43: after the finish"),
        pytest.param([ev.MessageInterrupted(), ev.UsageUpdate(ONE)], [], id="after an interruption"),
        pytest.param(
            [ev.UsageUpdate(ONE), ev.AttemptReset(1, usage=ONE), ev.UsageUpdate(ONE)],
            [ONE, ONE],
            id="an attempt's own",
        ),
        pytest.param(
            [ev.UsageUpdate(ONE), ev.UsageUpdate(rd.TokenUsage())], [ONE], id="one that says nothing"
        ),
        pytest.param([ev.UsageUpdate(ONE), ev.MessageStart(usage=TWO)], [ONE], id="a start that comes late"),
        pytest.param(
            [ev.UsageUpdate(rd.TokenUsage(3, 1, {"a": 1})), ev.UsageUpdate(ONE)], [..., ONE], id="raw counts"
        ),
    ],
)
def test_the_usage_told_by(events: list[Any], expected: list[Any]) -> None:
    got = told(*events)
    assert len(got) == len(expected)
    assert [one for one, wanted in zip(got, expected) if wanted is not ...] == [
        wanted for wanted in expected if wanted is not ...
    ]


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_the_last_usage_of_a_reply_is_its_messages(wire_format: str) -> None:
    decoded = rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format))
    got = decoded.pipe(rd.usage_updates(), ops.to_list()).run()
    assert got[-1] == decoded.pipe(rd.scan_deltas(), rd.to_message()).run().usage
    assert (got[-1].input_tokens, got[-1].output_tokens) == (3, 5)


usages = st.builds(rd.TokenUsage, st.none() | st.integers(0, 2), st.none() | st.integers(0, 2))
events = st.lists(
    st.builds(ev.UsageUpdate, usages)
    | st.builds(lambda usage: ev.MessageStart(usage=usage), usages | st.none())
    | st.builds(lambda usage: ev.MessageFinish("stop", usage=usage), usages | st.none()),
    max_size=12,
)


@settings(deadline=None)
@given(events=events)
def test_it_is_what_the_snapshots_say(events: list[Any]) -> None:
    first = next((n for n, event in enumerate(events) if isinstance(event, ev.MessageFinish)), len(events))
    events = events[: first + 1]
    fold = rd.Fold()
    seen: list[Any] = [None]
    for event in events:
        usage = fold.step(event).usage
        if usage is not None and usage != seen[-1]:
            seen.append(usage)
    assert told(*events) == seen[1:]
