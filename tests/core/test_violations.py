"""The counts of the rules that a reply's events broke: what a fold leaves out is counted, and nothing else is."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from core.strategies import events, every_event, fold, fold_leniently
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events
TEXT, CALL = {"type": "text"}, {"type": "tool_call_chunk", "id": "c", "name": "f"}
S, F, B, E = ev.MessageStart("m"), ev.MessageFinish("stop"), ev.BlockStart(0, TEXT), ev.BlockFinish(0)
X, R = ev.MessageInterrupted("user"), ev.AttemptReset(1)
UNKNOWN = ev.from_dict({"event": "content-block-delta", "index": 0, "delta": {"type": "new"}})
USAGE = ev.UsageUpdate(rd.TokenUsage(1))


def T(text: str = "x", index: int = 0) -> rd.Event:
    return ev.TextDelta(index, text)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([B, T(), E, F], {"missing_message_start": 1}, id="no start"),
        pytest.param([F], {"missing_message_start": 1}, id="only the end"),
        pytest.param([USAGE, B, E, F], {"missing_message_start": 1}, id="no start, usage first"),
        pytest.param([T(), T(), S], {"missing_message_start": 1, "delta_before_start": 1}, id="a start that came late"),
        pytest.param([S, S], {"duplicate_message_start": 1}, id="a start twice"),
        pytest.param([S, T(), T(), F], {"delta_before_start": 2}, id="no start of the block"),
        pytest.param([S, B, T(), B, E], {"duplicate_block_start": 1}, id="a start of the block twice"),
        pytest.param([S, ev.BlockDelta(0, {"a": 1})], {"delta_before_start": 1}, id="fields of no block"),
        pytest.param([S, E], {"finish_without_start": 1}, id="an end of no block"),
        pytest.param([S, ev.BlockFinish(0, TEXT), F], {"finish_without_start": 1}, id="an end with content of no block"),
        pytest.param([S, B, E, T(), T("y")], {"delta_after_finish": 2}, id="deltas behind the end of the block"),
        pytest.param([S, B, E, E], {"duplicate_block_finish": 1}, id="an end of the block twice"),
        pytest.param([S, B, ev.ReasoningDelta(0, "x"), E, F], {"delta_type_mismatch": 1}, id="another kind of delta"),
        pytest.param([S, B, UNKNOWN, E], {"unknown_delta_type": 1}, id="a delta of a later version"),
        pytest.param([S, B, T(), F], {"block_not_finished": 1}, id="no end of the block"),
        pytest.param([S, B, E, F, T(), USAGE], {"event_after_message_finish": 2}, id="behind the end"),
        pytest.param([S, F, F], {"duplicate_message_finish": 1}, id="the end twice"),
    ],
)  # fmt: skip
def test_what_a_fold_counts(events: list[rd.Event], expected: dict[str, int]) -> None:
    snapshot = fold(*events)
    assert snapshot.violations == expected
    assert snapshot.to_dict()["violations"] == expected
    if snapshot.status != "incomplete":
        assert snapshot.to_message().violations == expected


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="nothing"),
        pytest.param([S, B, T(), E, F], id="a whole reply"),
        pytest.param([S, B, T()], id="cut off"),
        pytest.param([S, B, T(), X], id="interrupted"),
        pytest.param([X], id="interrupted before anything came"),
        pytest.param([S, B, T(""), ev.ReasoningDelta(0, ""), T("", 7), E], id="empty pieces"),
        pytest.param([S, B, ev.TextDelta(0, "x", choice=1), ev.MessageFinish(choice=1), E, F], id="another choice"),
        pytest.param([S, ev.BlockStart(0, CALL), E, ev.BlockFinish(0, {"type": "invalid_tool_call"}), F], id="a call taken back"),
        pytest.param([S, ev.BlockStart(0, CALL), E, F, ev.ToolUpdate("c", "executing"), ev.ToolUpdate("nobody")], id="news"),
        pytest.param([ev.Custom("note", 1), S, ev.ProviderEvent("p", "ping"), F, ev.Custom("note", 2)], id="others' events"),
        pytest.param([T(), T(), R, S, B, T(), E, F], id="a failed attempt's are gone with it"),
        pytest.param([rd.MessageDelta("Hel"), rd.MessageDelta("lo"), F], id="small deltas have no start"),
    ],
)  # fmt: skip
def test_what_is_legal_counts_nothing(events: list[rd.Event]) -> None:
    snapshot = fold(*events)
    assert snapshot.violations == {}
    assert "violations" not in snapshot.to_dict()
    again = fold(*rd.to_events(snapshot))
    assert again.violations == {}


@given(st.lists(every_event, max_size=25))
def test_a_fold_counts_what_the_checker_names(told: list[rd.Event]) -> None:
    """But for what ends a fold, and for the end of the stream, which the status tells."""
    folding, checker, named = rd.Fold(choice=0), rd.core.ProtocolChecker(), Counter[str]()
    for event in told:
        if getattr(event, "choice", None) not in (None, 0):
            continue
        if folding.begins_another(event) or isinstance(event, ev.StreamError):
            return
        if isinstance(event, ev.AttemptReset):
            named.clear()
        name = checker.check(event)
        named.update([] if name is None else [name])
        assert folding.step(event).violations == named


@given(st.lists(events(), max_size=25))
def test_the_counts_go_wherever_the_reply_goes(told: list[rd.Event]) -> None:
    step: rd.Snapshot | None = None
    for event, snapshot in zip(told, fold_leniently(told)):
        if rd.Fold(step).begins_another(event):
            return
        step = rd.apply_event(step, event)
        assert step.violations == snapshot.violations
    if step is None:
        return
    stored = rd.Snapshot.from_dict(json.loads(json.dumps(step.to_dict())))
    replayed = [ev.from_dict(json.loads(json.dumps(event.to_dict()))) for event in rd.to_events(step)]
    copies = [stored, pickle.loads(pickle.dumps(step)), fold(*rd.to_events(step)), fold(*replayed)]
    assert [copy.violations for copy in copies] == [step.violations] * 4
    next_one = ev.TextDelta(99, "x")  # by the wire, the start of an empty reply is a real one
    assert len({str(rd.apply_event(copy, next_one).violations) for copy in (step, *copies[:3])}) == 1
    if step.status != "incomplete" and not any(call.open for call in step.tool_calls):
        try:
            message = step.to_message()
        except rd.errors.InvalidToolCallError:
            return
        assert message.violations == step.violations
        assert rd.Message.from_dict(message.to_dict()).violations == step.violations
        assert fold(*rd.to_events(message)).violations == step.violations


def test_a_late_start_may_follow_what_was_replayed() -> None:
    lost = fold(B, T("a"))
    whole = fold(*rd.to_events(lost), S, T("b"), E, F)
    assert (whole.id, whole.text, whole.violations) == ("m", "ab", {"missing_message_start": 1})


def test_an_event_that_a_fold_refuses_is_not_counted() -> None:
    folding = rd.Fold(fold(S, B), limits=rd.Limits(blocks=1))
    for refused in (ev.MessageStart("another"), ev.TextDelta(0, "x", run_id="r"), ev.BlockStart(1, TEXT)):
        with pytest.raises(rd.RxDeltaError) as error:
            folding.step(refused)
        assert error.value.snapshot.violations == {}


@pytest.mark.parametrize(
    "read",
    [
        rd.Snapshot.from_dict,
        rd.Message.from_dict,
        lambda data: ev.from_dict(data | {"event": "message-start"}),
    ],
)
@pytest.mark.parametrize(
    "wrong",
    [
        "many", 3, ["delta_before_start"], {"delta_before_start": 0}, {"delta_before_start": -1}, {"delta_before_start": "1"},
        {"delta_before_start": True}, {"delta_before_start": 1.0}, {"delta_before_start": 10**5000}, {"no_rule": 1}, {"x": None},
    ],
)  # fmt: skip
def test_what_are_no_counts_is_refused(read: Any, wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="violations"):
        read({"violations": wrong})
    assert read({"violations": None}).violations == {}
    assert read({"violations": {}}).violations == {}
    assert read({"violations": {"delta_before_start": 2}}).violations == {"delta_before_start": 2}


def test_wrong_deltas_without_number_take_no_memory() -> None:
    folding = rd.Fold(fold(S))
    tracemalloc.start()
    try:
        for _ in range(4_000):
            folding.step(T())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert folding.snapshot.violations == {"delta_before_start": 4_000}
    assert peak < 2**17
