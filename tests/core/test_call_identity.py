"""A call is known by its run, its message and its id: a repetition is left out, and another call gets an id of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

import rxdelta as rd
from rxdelta.core import CallIdentity

ev = rd.events


def call(
    index: int,
    call_id: str | None = "c",
    name: str = "pay",
    args: Any = '{"a": 1}',
    *,
    end: bool = True,
    **lane: Any,
) -> list[rd.Event]:
    events: list[rd.Event] = [
        ev.BlockStart(index, {"type": "tool_call_chunk", "id": call_id, "name": name, "args": ""}, **lane)
    ]
    events += [ev.ToolCallDelta(index, piece, **lane) for piece in args]
    return [*events, ev.BlockFinish(index, **lane)] if end else events


def told(events: Sequence[rd.Event], **options: Any) -> list[rd.Event]:
    calls = CallIdentity(**options)
    return [*calls.steps(events), *calls.close()]


def folded(events: Sequence[rd.Event]) -> list[tuple[str | None, str | None, Any]]:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return [(one.call_id, one.name, rd.core.thaw(one.arguments)) for one in fold.snapshot.blocks]  # type: ignore[union-attr]


START, END = ev.MessageStart("m"), ev.MessageFinish("tool_use")
PAY, PAY_2 = ("c", "pay", {"a": 1}), ("c-2", "pay", {"a": 2})


@pytest.mark.parametrize(
    ("events", "meant"),
    [
        pytest.param([*call(0), *call(1, "d")], [PAY, ("d", "pay", {"a": 1})], id="two ids"),
        pytest.param([*call(0), *call(1)], [PAY], id="again"),
        pytest.param([*call(0), *call(1), *call(2)], [PAY], id="twice again"),
        pytest.param([*call(0), *call(1, args='{ "a":1 }')], [PAY], id="again, written otherwise"),
        pytest.param([*call(0), *call(1, args='{"a": 2}')], [PAY, PAY_2], id="other arguments"),
        pytest.param([*call(0), *call(1, args='{"a": true}')], [PAY, ("c-2", "pay", {"a": True})], id="true, which is 1 in Python"),
        pytest.param([*call(0), *call(1, args='{"a": 2}'), *call(2, args='{"a": 2}')], [PAY, PAY_2], id="again, of which the second had other arguments"),
        pytest.param([*call(0), *call(1, name="see")], [PAY, ("c-2", "see", {"a": 1})], id="another name"),
        pytest.param([*call(0, end=False), *call(1, end=False), ev.BlockFinish(0), ev.BlockFinish(1)], [PAY], id="again, side by side"),
        pytest.param([*call(0, end=False), *call(1), ev.BlockFinish(0)], [PAY], id="again, ended before the first"),
        pytest.param([*call(0, end=False), *call(1, args='{"a": 2}'), ev.BlockFinish(0)], [PAY, PAY_2], id="another, ended before the first"),
        pytest.param([*call(0, end=False), *call(1, end=False)], [PAY], id="again, ended by the message"),
        pytest.param([*call(0), *call(1, args='{"a"', end=False)], [PAY, ("c-2", "pay", '{"a"')], id="cut off"),
        pytest.param([*call(0), ev.BlockFinish(1, {"type": "tool_call", "id": "c", "name": "pay", "args": {"a": 1}})], [PAY], id="again, a finish alone"),
        pytest.param([*call(0), ev.BlockFinish(1, {"type": "tool_call", "id": "c", "name": "pay", "args": {"a": 2}})], [PAY, PAY_2], id="another, a finish alone"),
        pytest.param([*call(0), ev.BlockStart(1, {"type": "tool_call", "id": "c", "name": "pay", "args": {"a": 1}}), ev.BlockFinish(1)], [PAY], id="again, whole in its start"),
        pytest.param([*call(0), ev.BlockStart(1, {"type": "tool_call", "id": "c", "name": "pay"}), ev.BlockFinish(1, {"type": "tool_call", "id": "c", "name": "pay", "args": {"a": 2}})], [PAY, PAY_2], id="another, whole in its finish"),
        pytest.param([*call(0), *call(1, "d", end=False), ev.BlockDelta(1, {"id": "c"}), ev.BlockFinish(1)], [PAY, PAY], id="again, by an id that comes late"),
        pytest.param([*call(0), *call(1, "d", args='{"a": 2}', end=False), ev.BlockDelta(1, {"id": "c"}), ev.BlockFinish(1)], [PAY, PAY_2], id="another, by an id that comes late"),
        pytest.param([*call(0), *call(1, args='{"a": 2}', end=False), ev.BlockDelta(1, {"id": "d"}), ev.BlockFinish(1)], [PAY, ("d", "pay", {"a": 2})], id="gets its own id late"),
        pytest.param([*call(0), *call(1, name="", end=False), ev.BlockDelta(1, {"name": "see"}), ev.BlockFinish(1)], [PAY, ("c-2", "see", {"a": 1})], id="gets another name late"),
        pytest.param([*call(0), *call(0)], [PAY], id="again in its place"),
        pytest.param([*call(0, None, end=False), ev.BlockDelta(0, {"id": "c"}), ev.BlockFinish(0), *call(1)], [PAY], id="again, of a call whose id came last"),
        pytest.param([*call(0), *call(1), ev.ToolCallDelta(1, "x"), ev.BlockDelta(1, {"x": 1}), ev.BlockFinish(1)], [PAY], id="again, and more of it behind its end"),
        pytest.param([*call(0), *call(1)[:3], START, *call(1)[3:]], [PAY], id="again, with the message's start in its middle"),
        pytest.param([*call(0, "d", end=False), ev.BlockDelta(0, {"id": "c"}), ev.BlockFinish(0), *call(1, "d", args='{"a": 2}')], [PAY, ("d", "pay", {"a": 2})], id="an id that its first call has given up"),
        pytest.param([*call(0, None), *call(1, None)], [(None, "pay", '{"a": 1}')] * 2, id="no ids"),
        pytest.param([*call(0), *call(1, "c-2", args="{}"), *call(2, args='{"a": 2}')], [PAY, ("c-2", "pay", {}), ("c-3", "pay", {"a": 2})], id="the next id is taken"),
        pytest.param([*call(0), *call(1, name="see", end=False), *call(2), *call(3, name="see"), ev.BlockFinish(1)], [PAY, ("c-2", "see", {"a": 1})], id="both again, while the second goes on"),
        pytest.param([*call(0, args="{"), *call(1, args="{")], [("c", "pay", "{")], id="again, invalid"),
        pytest.param([*call(0), ev.BlockStart(1, {"type": "text", "text": "c"}), ev.BlockFinish(1)], [PAY, None], id="a text"),
        pytest.param([*call(0), *call(1), ev.BlockStart(2, {"type": "text", "text": "c"}), ev.BlockDelta(2, {"x": 1}), ev.BlockFinish(2), ev.ToolCallDelta(7, "x")], [PAY, None], id="a text with news, behind a repetition"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["once", "twice"])
def test_a_call_is_known_by_its_id(events: list[rd.Event], meant: list[Any], how: str) -> None:
    given = [START, *events, END]
    once = told(given)
    result = once if how == "once" else told(once)
    fold = rd.Fold()
    for event in result:
        fold.step(event)
    blocks = [
        (one.call_id, one.name, rd.core.thaw(one.arguments)) if isinstance(one, rd.ToolCall) else None
        for one in fold.snapshot.blocks
    ]
    assert blocks == meant
    assert how == "once" or result == once


def test_another_name_is_told_at_once() -> None:
    calls = CallIdentity()
    calls.steps([START, *call(0)])
    start, *rest = calls.steps(call(1, name="see", end=False))
    assert isinstance(start, ev.BlockStart)
    assert start.content["id"] == "c-2"
    assert rest == call(1, end=False)[1:]


@pytest.mark.parametrize(
    "between", [[END, START], [ev.MessageInterrupted("stop"), START], [ev.AttemptReset(1)]]
)
def test_another_message_or_attempt_has_other_calls(between: list[rd.Event]) -> None:
    events = [START, *call(0), *between, *call(0), END]
    assert told(events) == events


def test_a_message_that_is_sent_again_has_the_calls_that_it_had() -> None:
    other = [ev.MessageStart("n"), *call(0), END]
    events = [START, *call(0), END, *other, START, *call(0), *call(1, args='{"a": 2}'), END, *other]
    assert [
        event.content.get("id")
        for event in told(events, keeps_messages=True)
        if isinstance(event, ev.BlockStart)
    ] == ["c", "c", "c-2"]
    assert told([END, *events], keeps_messages=True)[1:] == told(events, keeps_messages=True)


def test_news_of_an_id_are_news_of_all_that_had_it() -> None:
    """A reply that was stored with two calls of one id must not run the second again."""
    done = ev.ToolUpdate("c", "completed", None, rd.ToolResult("c", 5))
    second = call(1, args='{"a": 2}')
    events = told([START, *call(0), done, second[0], done, *second[1:], END])
    assert [event.call_id for event in events if isinstance(event, ev.ToolUpdate)] == ["c", "c", "c-2"]


def test_what_is_held_can_be_dropped_before_it_is_asked_for_again() -> None:
    calls = CallIdentity()
    calls.steps([START, *call(0), *call(1, args='{"a": 2', end=False)])
    calls.drop_held()
    assert calls.close() == []
    assert [*calls.step(END)] == [END]


def test_what_is_held_is_bounded() -> None:
    calls = CallIdentity(rd.Limits(block_chars=10_000))
    calls.steps([START, *call(0), *call(1, args="", end=False)])
    with pytest.raises(rd.errors.LimitExceededError):
        for _ in range(20_000):
            calls.step(ev.ToolCallDelta(1, "x" * 100))
            calls.step(ev.BlockDelta(1, {"x": 1}))


ARGUMENTS = st.sampled_from(['{"a": 1}', '{"a": 2}', "{}", "{"])


@st.composite
def replies(draw: st.DrawFn) -> list[rd.Event]:
    """Calls with few ids, side by side, cut at random."""
    said = draw(
        st.lists(st.tuples(st.sampled_from("cd"), st.sampled_from(["f", "g"]), ARGUMENTS), max_size=5)
    )
    lists = [call(index, *one) for index, one in enumerate(said)]
    events: list[rd.Event] = [START]
    while any(lists):
        events.append(draw(st.sampled_from([one for one in lists if one])).pop(0))
    return [*events, END]


@given(replies())
def test_each_call_is_told_once_however_they_interleave(events: list[rd.Event]) -> None:
    every = {(name, str(arguments)) for _, name, arguments in folded(events)}
    calls = folded(told(events))
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    assert {(name, str(arguments)) for _, name, arguments in calls} == every
    assert told(told(events)) == told(events)
    # All blocks have ended, so nothing waits for the message's end.
    assert [*CallIdentity().steps(events[:-1])] == told(events)[:-1]


@given(replies(), st.data())
def test_what_is_told_depends_on_no_cut(events: list[rd.Event], data: st.DataObject) -> None:
    """The stream ends anywhere: what was held until then is told, and nothing is told twice."""
    cut = data.draw(st.integers(0, len(events)))
    ids = [call_id for call_id, _, _ in folded(told(events[:cut]))]
    assert len(set(ids)) == len(ids)


def test_a_long_connection_keeps_the_calls_of_its_newest_messages() -> None:
    calls = CallIdentity(keeps_messages=True)

    def sent(number: int) -> list[object]:
        told = calls.steps([ev.MessageStart(f"m{number}"), *call(0), END])
        return [event for event in told if isinstance(event, ev.BlockStart)]

    assert all(sent(number) for number in range(1_500))
    assert (len(sent(1_499)), len(sent(0))) == (0, 1)


def test_what_is_noted_is_bounded_and_changes_nothing() -> None:
    pieces = [ev.ToolCallDelta(0, "1"), ev.BlockDelta(0, {"x": 1})] * 5_000
    events = [
        START,
        *call(0, args="", end=False),
        *pieces,
        ev.BlockFinish(0),
        *call(1, args="1" * 5_000),
        END,
    ]
    assert told(events) == [*events[:-5_003], END]
