"""The run of an event, and readers of one run."""

from __future__ import annotations

import inspect
from typing import Any

import attrs
import pytest
from core.strategies import events, every_event, word
from hypothesis import example, given, strategies as st
from support.security_page import says

import rxdelta as rd
from rxdelta.core import Walk, Walks, in_run as named_within

ev = rd.events
runs = st.sampled_from([None, "a", "b"])


def in_run(event: Any, run_id: str | None) -> Any:
    return attrs.evolve(event, run_id=run_id)


def reply(run_id: str | None, text: str = "Hi", *, id: str | None = None) -> list[rd.Event]:
    start = ev.MessageStart(id, run_id=run_id)
    block = ev.BlockStart(0, {"type": "text"}, run_id=run_id)
    end = ev.MessageFinish("stop", run_id=run_id)
    return [start, block, ev.TextDelta(0, text, run_id=run_id), ev.BlockFinish(0, run_id=run_id), end]


@pytest.mark.parametrize("kind", sorted(ev.EVENT_TYPES, key=lambda kind: kind.__name__))
def test_every_event_has_a_run_by_keyword_only(kind: Any) -> None:
    assert inspect.signature(kind).parameters["run_id"].kind is inspect.Parameter.KEYWORD_ONLY
    assert inspect.signature(kind).parameters["run_id"].default is None


@given(every_event)
def test_an_event_without_a_run_prints_and_is_written_as_if_there_were_none(event: Any) -> None:
    assert "run_id" not in repr(event)
    assert "run_id" not in event.to_dict()
    named = in_run(event, "a")
    assert repr(named) == repr(event)[:-1] + ", run_id='a')"
    assert named.to_dict() == event.to_dict() | {"run_id": "a"}
    assert named != event


@example(ev.Custom("n", 1), "a")
@given(every_event, word)
def test_the_run_is_read_back(event: Any, run_id: str) -> None:
    named = in_run(event, run_id)
    read = ev.from_dict(named.to_dict())
    assert read == named
    assert getattr(read, "more", {}) == getattr(named, "more", {})  # which equality leaves out


STARTS = st.builds(ev.MessageStart, st.none() | word, parent_run_id=st.none() | word)


@given(every_event | STARTS, word, st.none() | word, st.none() | word)
def test_a_run_within_another_has_both_names(
    event: Any, outer: str, inner: str | None, above: str | None
) -> None:
    given_name = in_run(event, inner)
    named = named_within(given_name, outer, above)
    assert named.run_id == (outer if inner is None else f"{outer}/{inner}")
    if isinstance(event, ev.MessageStart):
        old = event.parent_run_id
        assert named.parent_run_id == (above if old is None else f"{outer}/{old}")
        named = attrs.evolve(named, parent_run_id=old)
    assert in_run(named, inner) == given_name


@pytest.mark.parametrize("begun", [(), ("a",), ("a", "b"), (None, "a")])
def test_an_applications_event_of_a_run_that_has_not_begun_begins_none(begun: tuple[str | None, ...]) -> None:
    walks = Walks()
    for run_id in begun:
        for event in reply(run_id)[:3]:
            for walk in walks.of(event):
                walk.step(event)
    other = ev.Custom("n", 1, run_id="z")
    known = [*walks.of(other)]
    assert [walk.run_id for walk in known] == [*begun]
    assert [*walks.of(other)] == known
    for run_id in filter(None, begun):
        assert [walk.run_id for walk in walks.of(ev.Custom("n", 1, run_id=run_id))] == [run_id]
    (first,) = walks.of(ev.MessageStart(run_id="z"))
    assert first not in known


def test_a_run_must_be_a_string() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"run_id: must be a string \(got run_id=3\)"):
        ev.TextDelta(0, "", run_id=3)  # type: ignore[arg-type]
    with pytest.raises(rd.InvalidValueError, match="run_id"):
        ev.from_dict({"event": "usage", "usage": {"input_tokens": 1}, "run_id": ["a"]})


class TestFold:
    @pytest.mark.parametrize(("own", "other"), [(None, "b"), ("a", "b"), ("a", None)])
    @pytest.mark.parametrize("event", reply("x"), ids=lambda event: type(event).__name__)
    def test_it_refuses_another_run(self, own: str | None, other: str | None, event: rd.Event) -> None:
        fold = rd.Fold()
        for one in reply(own)[:3]:
            fold.step(one)
        before = fold.snapshot
        with pytest.raises(rd.ProtocolError, match=r"group_by_run\(\)") as caught:
            fold.step(in_run(event, other))
        assert (caught.value.violation, caught.value.snapshot) == ("another_run", before)

    def test_another_run_is_refused_after_the_end_and_in_another_choice_too(self) -> None:
        fold = rd.Fold()
        for event in reply("a"):
            fold.step(event)
        for event in (ev.MessageStart(run_id="b"), ev.MessageStart(choice=1, run_id="b")):
            with pytest.raises(rd.ProtocolError, match="group_by_run"):
                fold.step(event)

    @pytest.mark.parametrize(
        "event",
        [
            ev.UsageUpdate(rd.TokenUsage(input_tokens=1)),
            ev.MessageStart("m"),
            ev.MessageStart(metadata={"a": 1}),
            ev.BlockStart(0, {"type": "text"}),
        ],
        ids=lambda event: type(event).__name__,
    )
    def test_whatever_the_message_shows_first_settles_its_run(self, event: rd.Event) -> None:
        fold = rd.Fold()
        fold.step(event)
        with pytest.raises(rd.ProtocolError, match="group_by_run"):
            fold.step(ev.MessageStart(run_id="b"))

    def test_long_names_of_runs_are_not_quoted_whole(self) -> None:
        fold = rd.Fold()
        fold.step(ev.MessageStart(run_id="a" * 100_000))
        with pytest.raises(rd.ProtocolError, match="100,001 characters") as caught:
            fold.step(ev.MessageStart(run_id="b" * 100_001))
        assert len(str(caught.value)) < 500

    @pytest.mark.parametrize(
        "event",
        [ev.ToolUpdate("c", "executing"), ev.AttemptReset(1), ev.ProviderEvent("p", "n")],
        ids=lambda event: type(event).__name__,
    )
    def test_an_event_of_any_run_sets_none(self, event: rd.Event) -> None:
        fold = rd.Fold()
        fold.step(event)
        assert fold.step(ev.MessageStart(run_id="a")).run_id == "a"

    def test_an_event_of_any_run_concerns_every_run(self) -> None:
        fold = rd.Fold()
        fold.step(ev.BlockStart(0, {"type": "text"}, run_id="a"))
        fold.step(ev.ProviderEvent("p", "n"))
        with pytest.raises(rd.ProviderError):
            fold.step(ev.StreamError("no"))
        assert fold.step(ev.AttemptReset(1)).run_id == "a"
        fold.step(ev.BlockStart(0, {"type": "text"}, run_id="a"))
        assert fold.step(ev.MessageInterrupted()).status == "interrupted"

    def test_a_named_event_of_another_run_is_refused_whatever_it_is(self) -> None:
        fold = rd.Fold()
        fold.step(ev.MessageStart(run_id="a"))
        for event in (
            ev.ToolUpdate("c", run_id="b"),
            ev.AttemptReset(1, run_id="b"),
            ev.MessageInterrupted(run_id="b"),
        ):
            with pytest.raises(rd.ProtocolError, match="group_by_run"):
                fold.step(event)

    def test_the_parent_is_the_starts(self) -> None:
        snapshot = rd.apply_event(None, ev.MessageStart(run_id="a", parent_run_id="p"))
        assert (snapshot.parent_run_id, snapshot.run_id) == ("p", "a")
        restored = rd.Snapshot.from_dict(snapshot.to_dict())
        assert restored == snapshot
        assert restored.parent_run_id == "p"
        assert rd.apply_event(snapshot, ev.AttemptReset(1)).parent_run_id == "p"
        (start,) = rd.to_events(snapshot)
        assert start == ev.MessageStart(run_id="a", parent_run_id="p")


def test_small_deltas_of_different_runs_are_not_merged() -> None:
    one, other = rd.MessageDelta("Hi", role="assistant", run_id="a"), rd.MessageDelta("ho", run_id="b")
    with pytest.raises(rd.ProtocolError, match="group_by_run"):
        rd.merge_deltas([one, other])
    assert rd.merge_deltas([one, rd.MessageDelta(" you")]).text == "Hi you"  # type: ignore[union-attr]
    with pytest.raises(rd.ProtocolError, match="group_by_run"):
        rd.merge_deltas([rd.MessageDelta("Hi"), other])


def shown(fold: rd.Fold, event: rd.Event) -> object:
    try:
        return fold.step(event)
    except rd.RxDeltaError as error:
        return type(error), str(error), error.snapshot


with_runs = st.builds(in_run, events(), runs)


@example([ev.MessageInterrupted(), ev.AttemptReset(1, run_id="a"), ev.MessageStart(run_id="a")])
@example([ev.MessageInterrupted("why"), ev.MessageInterrupted(run_id="a"), ev.MessageStart(run_id="b")])
@given(st.lists(with_runs, max_size=30))
def test_a_fold_that_is_stored_at_every_step_has_the_same_run(told: list[rd.Event]) -> None:
    whole = rd.Fold()
    snapshot: rd.Snapshot | None = None
    for event in told:
        expected = shown(whole, event)
        stored = rd.Fold(None if snapshot is None else rd.Snapshot.from_dict(snapshot.to_dict()))
        assert shown(stored, event) == expected
        snapshot = whole.snapshot


@given(st.lists(with_runs, max_size=30))
def test_to_events_gives_the_reply_again_in_its_run(told: list[rd.Event]) -> None:
    fold = rd.Fold()
    for event in told:
        shown(fold, event)
    again = rd.Fold(choice=fold.snapshot.choice)
    replayed = rd.to_events(fold.snapshot)
    own = [event for event in replayed if not isinstance(event, ev.Custom)]  # which name their run or none
    assert {event.run_id for event in own} == {fold.snapshot.run_id}
    for event in replayed:
        again.step(event)
    assert again.snapshot.run_id == fold.snapshot.run_id
    assert again.snapshot.text == fold.snapshot.text


@given(st.lists(events(), max_size=25), st.lists(events(), max_size=25), st.randoms())
def test_a_run_is_followed_as_if_it_were_alone(one: list[Any], other: list[Any], random: Any) -> None:
    def log(walk: Walk, event: rd.Event) -> list[tuple[str, Any]]:
        return [(change.kind, change.fold and change.fold.block) for change in walk.step(event)]

    lists = [
        [in_run(event, "a") for event in one if not isinstance(event, ev.StreamError)],
        [in_run(event, "b") for event in other if not isinstance(event, ev.StreamError)],
    ]
    alone, together, walks = Walks(), [], Walks()
    expected = [log(walk, event) for event in lists[0] for walk in alone.of(event)]
    while any(lists):
        number = random.choice([number for number in (0, 1) if lists[number]])
        event = lists[number].pop(0)
        together += [log(walk, event) for walk in walks.of(event) if walk.run_id == "a"]
    # An application's event of a run that hasn't begun goes to the other one, and changes nothing there.
    assert [*filter(None, together)] == [*filter(None, expected)]


@pytest.mark.parametrize("begun", [("a",), ("a", "b"), (None, "a", "b")])
def test_an_event_of_any_run_goes_to_the_runs_that_have_begun(begun: tuple[str | None, ...]) -> None:
    walks = Walks()
    for run_id in begun:
        for event in reply(run_id)[:3]:
            for walk in walks.of(event):
                walk.step(event)
    stopped = [
        (walk.run_id, walk.step(ev.MessageInterrupted())[-1].kind)
        for walk in walks.of(ev.MessageInterrupted())
    ]
    assert stopped == [(run_id, "ended") for run_id in begun]
    (later,) = walks.of(ev.BlockStart(0, {"type": "text"}, run_id="c"))
    assert not later.over


def test_an_event_of_any_run_waits_for_the_first() -> None:
    walks = Walks()
    for walk in walks.of(ev.MessageInterrupted(choice=0)):
        walk.step(ev.MessageInterrupted())
    (first,) = walks.of(ev.BlockStart(0, {"type": "text"}, run_id="a"))
    assert (first.run_id, first.over) == ("a", True)
    (second,) = walks.of(ev.BlockStart(0, {"type": "text"}, run_id="b"))
    assert not second.over


@says("runs of a stream")
def test_there_are_no_more_runs_than_the_limit() -> None:
    walks = Walks(rd.Limits(runs=2))
    for run_id in (None, "a"):
        assert walks.of(ev.MessageStart(run_id=run_id))
    with pytest.raises(rd.errors.LimitExceededError, match="the number of runs"):
        walks.of(ev.MessageStart(run_id="b"))
