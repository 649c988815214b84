"""The application's own events: legal everywhere, no part of the content, kept in their places."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from core.strategies import every_event
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events

REPLY = [
    ev.MessageStart("m1", "model-1"),
    ev.BlockStart(0, {"type": "text", "text": ""}),
    ev.TextDelta(0, "Hel"),
    ev.TextDelta(0, "lo"),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""}),
    ev.ToolCallDelta(1, "{}"),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
]
NOTE = ev.Custom("documents", [{"title": "Ä", "n": 1.5}], "d1")


def fold(events: list[rd.Event]) -> rd.Snapshot:
    folded = rd.Fold()
    for event in events:
        folded.step(event)
    return folded.snapshot


def without(snapshot: rd.Snapshot) -> dict[str, Any]:
    return {name: value for name, value in snapshot.to_dict().items() if name != "custom"}


@pytest.mark.parametrize("place", range(len(REPLY) + 1))
def test_at_every_place_it_is_legal_kept_and_no_part_of_the_content(place: int) -> None:
    events = [*REPLY[:place], NOTE, *REPLY[place:]]
    checker = rd.core.ProtocolChecker()
    assert [checker.check(event) for event in events] == [None] * len(events)
    assert checker.close() is None
    snapshot = fold(events)
    assert without(snapshot) == fold(REPLY).to_dict()
    assert snapshot.custom_events == snapshot.to_message().custom_events == (NOTE,)
    stored = rd.Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict())))
    assert stored == snapshot == fold(rd.to_events(snapshot))
    message = rd.Message.from_dict(json.loads(json.dumps(snapshot.to_message().to_dict())))
    assert message == snapshot.to_message()


def test_events_of_a_snapshot_have_it_among_the_blocks_that_it_stood_among() -> None:
    notes = [ev.Custom("note", number) for number in range(4)]
    events = [notes[0], *REPLY[:5], notes[1], *REPLY[5:7], notes[2], *REPLY[7:], notes[3]]
    kinds = [
        event.data if isinstance(event, ev.Custom) else event.event for event in rd.to_events(fold(events))
    ]
    block = ["content-block-start", "content-block-finish"]
    assert kinds == ["message-start", 0, *block, 1, *block, 2, "message-finish", 3]


def test_a_reset_keeps_what_the_failed_attempt_did_not_say() -> None:
    snapshot = fold([*REPLY[:4], NOTE, ev.AttemptReset(1), *REPLY])
    assert snapshot.custom_events == (NOTE,)
    assert [type(event) for event in rd.to_events(snapshot)][:3] == [
        ev.AttemptReset,
        ev.MessageStart,
        ev.Custom,
    ]


def test_a_message_takes_no_more_of_them_than_blocks() -> None:
    folded = rd.Fold(limits=rd.Limits(blocks=2))
    folded.step(ev.Custom("a", 1))
    folded.step(ev.Custom("a", 2))
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        folded.step(ev.Custom("a", 3))
    assert caught.value.snapshot == folded.snapshot
    assert len(folded.snapshot.custom_events) == 2


def test_a_fold_that_is_loaded_knows_the_places_too() -> None:
    before = fold([*REPLY[:5], NOTE, ev.Custom("note", 1)])
    again = rd.Fold(before)
    newer = ev.Custom(NOTE.name, "newer", NOTE.id)
    assert again.step(newer).custom_events == (newer, ev.Custom("note", 1))
    assert again.step(ev.AttemptReset(1)).custom_events == (newer, ev.Custom("note", 1))
    assert again.step(NOTE).custom_events == (NOTE, ev.Custom("note", 1))


def test_a_transient_one_begins_no_run_for_a_late_reader() -> None:
    so_far = rd.core.EventsSoFar(rd.Limits(runs=1))
    for event in REPLY:
        so_far.take(event)
    so_far.take(ev.Custom("typing", 1, transient=True, run_id="other"))
    assert so_far.snapshot() == fold(REPLY)


@pytest.mark.parametrize(
    "wrong",
    [("", 1), (None, 1), (7, 1), ("a", object()), ("a", float("nan")), ("a", 1, 7), ("a", 1, None, "yes")],
)
def test_what_is_no_json_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(rd.InvalidValueError):
        ev.Custom(*wrong)


@pytest.mark.parametrize(
    "wrong",
    [{}, [1], ["a"], [{"name": "a"}], [{"place": -1, "name": "a"}], [{"place": 0, "name": ""}], "a", 7],
)
def test_what_is_no_stored_custom_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError):
        rd.Snapshot.from_dict({"role": "assistant", "status": "incomplete", "custom": wrong})


def test_the_wire_form() -> None:
    assert NOTE.to_dict() == {
        "event": "custom",
        "name": "documents",
        "data": [{"title": "Ä", "n": 1.5}],
        "id": "d1",
    }
    passing = ev.Custom("status", None, transient=True, run_id="a")
    assert passing.to_dict() == {
        "event": "custom", "name": "status", "data": None, "transient": True, "run_id": "a",
    }  # fmt: skip
    assert [ev.from_dict(event.to_dict()) for event in (NOTE, passing)] == [NOTE, passing]
    whole = {"event": "custom", "name": "a", "data": {}, "id": None, "transient": False}
    assert ev.from_dict(whole) == ev.Custom("a", {})


def test_the_data_cannot_be_changed_from_outside() -> None:
    data = {"list": [1]}
    event = ev.Custom("a", data)
    data["list"].append(2)
    assert event.data == {"list": [1]}
    assert hash(event) == hash(ev.Custom("a", {"list": [1]}))


@given(st.lists(every_event, max_size=12))
def test_any_fold_is_the_same_after_storing_and_as_events(events: list[rd.Event]) -> None:
    folded = rd.Fold()
    for event in events:
        try:
            folded.step(event)
        except rd.RxDeltaError:
            break
    snapshot = folded.snapshot
    assert rd.Snapshot.from_dict(snapshot.to_dict()).custom_events == snapshot.custom_events
    assert fold(rd.to_events(snapshot)).custom_events == snapshot.custom_events


# Several runs, and several choices.


@pytest.mark.parametrize("said_in", [None, "a", "b"])
@pytest.mark.parametrize("run_id", [None, "a"])
@pytest.mark.parametrize("place", range(len(REPLY) + 1))
def test_a_fold_of_any_run_keeps_it(place: int, run_id: str | None, said_in: str | None) -> None:
    event = ev.Custom("note", 1, run_id=said_in)
    reply = [attrs.evolve(one, run_id=run_id) for one in REPLY]
    snapshot = fold([*reply[:place], event, *reply[place:]])
    assert (snapshot.custom_events, snapshot.run_id) == ((event,), run_id)
    assert fold(rd.to_events(snapshot)) == snapshot


def replay(events: list[rd.Event], *, whole: bool = True) -> list[rd.Event]:
    so_far = rd.core.EventsSoFar(rd.Limits(), whole=whole)
    for event in events:
        so_far.take(event)
    return list(so_far.so_far())


@pytest.mark.parametrize("choices", [1, 2])
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("said_in", [None, "0", "elsewhere"])
def test_a_replay_has_it_once_in_its_place(choices: int, runs: int, said_in: str | None) -> None:
    lanes = [
        [attrs.evolve(event, choice=choice, **({} if runs == 1 else {"run_id": str(run)})) for event in REPLY]
        for run in range(runs)
        for choice in range(choices)
    ]
    events = [event for lane in zip(*lanes, strict=True) for event in lane]
    for place in range(len(events) + 1):
        note = ev.Custom("note", place, "n", run_id=said_in)
        passing = ev.Custom("passing", place, transient=True)
        told = replay([*events[:place], note, passing, *events[place:]])
        assert [event for event in told if isinstance(event, ev.Custom)] == [note]
        assert [event for event in told if event != note] == replay(events)
    newer = ev.Custom("note", "newer", "n", run_id=said_in)
    told = replay([events[0], note, *events[1:], newer])
    assert [event for event in told if isinstance(event, ev.Custom)] == [newer]


def test_a_replay_has_what_came_behind_an_interruption_behind_it() -> None:
    events = [*REPLY[:3], ev.MessageInterrupted("stop"), NOTE]
    assert replay(events)[-2:] == events[-2:]


def test_one_that_comes_before_the_runs_is_replayed_without_a_message() -> None:
    assert replay([NOTE]) == [NOTE]
    assert replay([ev.Custom("note", 1, run_id="a")]) == [ev.Custom("note", 1, run_id="a")]
    newer = ev.Custom(NOTE.name, "newer", NOTE.id)
    assert replay([NOTE, newer]) == [newer]


def test_the_next_message_has_none_of_the_last_one() -> None:
    events = [*REPLY, NOTE, ev.MessageStart("m2")]
    told = replay(events)
    assert told.index(NOTE) == len(told) - 2
    assert NOTE not in replay(events, whole=False)
