"""The protocol's promise: each rule by its name."""

from __future__ import annotations

from typing import Any

import pytest
from core.strategies import events as any_event
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events
S, F, X = ev.MessageStart("m"), ev.MessageFinish("stop"), ev.MessageInterrupted()
TEXT, CALL, IMAGE = {"type": "text"}, {"type": "tool_call_chunk", "id": "c"}, {"type": "image"}
BAD = {"type": "invalid_tool_call", "error": "late"}


def B(index: int = 0, content: dict[str, Any] = TEXT, choice: int = 0) -> rd.Event:
    return ev.BlockStart(index, content, choice=choice)


def T(index: int = 0, choice: int = 0) -> rd.Event:
    return ev.TextDelta(index, "x", choice=choice)


def E(index: int = 0, choice: int = 0) -> rd.Event:
    return ev.BlockFinish(index, choice=choice)


def broken(*events: rd.Event) -> list[str | None]:
    lifecycle = rd.core.ProtocolChecker()
    return [*(lifecycle.check(event) for event in events), lifecycle.close()]


@pytest.mark.parametrize(
    "events",
    [
        [S, F],
        [S, B(), T(), T(), E(), F],
        [S, B(0), B(1), T(1), T(0), E(1), T(0), E(0), F],
        [S, B(0, CALL), ev.ToolCallDelta(0, "{}"), ev.BlockDelta(0, {"name": "f"}), E(), F],
        [S, B(0, {"type": "thinking"}), ev.ReasoningDelta(0, "x"), E(), F],
        [S, B(0, {"type": "refusal"}), T(), E(), F],
        [S, B(0, IMAGE), ev.DataDelta(0, "x"), E(), F],
        [S, ev.UsageUpdate(rd.TokenUsage(1)), F],
        [S, B(), ev.ProviderEvent("p", "ping"), E(), F, ev.ToolUpdate("c"), ev.ProviderEvent("p", "ping")],
        [S, B(), T(), X],
        [S, B(), X, ev.ToolUpdate("c")],
        [S, B(), T(), ev.AttemptReset(1), S, B(), T(), E(), F],
        [S, F, ev.AttemptReset(1), S, F],
        [
            S,
            F,
            ev.MessageStart(choice=1),
            ev.AttemptReset(1, choice=1),
            ev.MessageStart(choice=1),
            ev.MessageFinish(choice=1),
        ],
        [X],
        [S, X, ev.AttemptReset(1), S, F],
        [
            S,
            ev.MessageStart(choice=1),
            B(0),
            B(0, choice=1),
            T(0),
            E(0),
            F,
            T(0, 1),
            E(0, 1),
            ev.MessageFinish(choice=1),
        ],
    ],
)
def test_what_keeps_the_promise(events: list[rd.Event]) -> None:
    assert broken(*events) == [None] * (len(events) + 1)


@pytest.mark.parametrize(
    ("events", "violation", "place"),
    [
        ([], "missing_message_start", 0),
        ([B()], "missing_message_start", 0),
        ([F], "missing_message_start", 0),
        ([S, S], "duplicate_message_start", 1),
        ([S, B(), B()], "duplicate_block_start", 2),
        ([S, B(), E(), B()], "duplicate_block_start", 3),
        ([S, T()], "delta_before_start", 1),
        ([S, ev.BlockDelta(0, {})], "delta_before_start", 1),
        ([S, E()], "finish_without_start", 1),
        ([S, B(), E(), T()], "delta_after_finish", 3),
        ([S, B(), E(), E()], "duplicate_block_finish", 3),
        ([S, B(), E(), ev.BlockFinish(0, BAD)], "duplicate_block_finish", 3),
        ([S, B(0, CALL), E(), ev.BlockFinish(0, CALL)], "duplicate_block_finish", 3),
        ([S, B(0, {"type": "reasoning"}), T()], "delta_type_mismatch", 2),
        ([S, B(0, CALL), T()], "delta_type_mismatch", 2),
        ([S, B(0, IMAGE), T()], "delta_type_mismatch", 2),
        ([S, B(), ev.DataDelta(0, "x")], "delta_type_mismatch", 2),
        ([S, B(), ev.from_dict({"event": "content-block-delta", "index": 0, "delta": {"type": "new"}})], "unknown_delta_type", 2),
        ([S, B(), F], "block_not_finished", 2),
        ([S, F, B()], "event_after_message_finish", 2),
        ([S, F, ev.UsageUpdate(rd.TokenUsage(1))], "event_after_message_finish", 2),
        ([S, X, B()], "event_after_message_finish", 2),
        ([S, X, S], "duplicate_message_start", 2),
        ([S, X, ev.MessageStart(choice=1)], "duplicate_message_start", 2),
        ([S, X, ev.UsageUpdate(rd.TokenUsage(1), choice=1)], "event_after_message_finish", 2),
        ([S, F, F], "duplicate_message_finish", 2),
        ([S], "missing_message_finish", 1),
        ([S, B(), E()], "missing_message_finish", 3),
        ([S, ev.MessageStart(choice=1), F], "missing_message_finish", 3),
        ([S, F, ev.AttemptReset(1)], "missing_message_start", 3),
        ([S, ev.StreamError("no")], "error_event", 1),
        ([S, B(), T(0, 1)], "missing_message_start", 2),
        ([S, F, S], "duplicate_message_start", 2),
        ([S, B(), ev.MessageStart("another")], "duplicate_message_start", 2),
        ([S, B(), ev.MessageInterrupted(choice=1), ev.UsageUpdate(rd.TokenUsage(1), choice=1)], "event_after_message_finish", 3),
        ([S, B(0, CALL | {"args": {"a": 1}}), ev.ToolCallDelta(0, "x")], "delta_type_mismatch", 2),
        ([S, E(), E()], "finish_without_start", 1),
    ],
)  # fmt: skip
def test_the_first_rule_broken_is_named(events: list[rd.Event], violation: str, place: int) -> None:
    found = broken(*events)
    assert found[: place + 1] == [None] * place + [violation]


def test_what_a_wrong_event_means_is_taken_in_all_the_same() -> None:
    assert broken(B(), T(), E(), F) == ["missing_message_start", None, None, None, None]
    assert broken(S, B(), B(0, CALL), ev.ToolCallDelta(0, "x"), E(), F) == [
        None,
        None,
        "duplicate_block_start",
        None,
        None,
        None,
        None,
    ]
    assert broken(S, B(), E(), B(), T(), E(), F)[3:] == ["duplicate_block_start", None, None, None, None]


def test_after_a_violation_the_rules_are_those_of_what_the_event_has_changed() -> None:
    assert broken(B(), S, T(), E(), F) == [
        "missing_message_start",
        None,
        None,
        None,
        None,
        None,
    ]  # a late start
    assert broken(T(), T(), S)[:3] == ["missing_message_start", "delta_before_start", None]
    assert broken(S, E(), B(), T(), E(), F) == [None, "finish_without_start", None, None, None, None, None]
    assert broken(S, F, S, B(), T(), E(), F)[2:] == [
        "duplicate_message_start",
        *[None] * 5,
    ]  # another message
    assert broken(S, X, S, B())[3:] == [None, "missing_message_finish"]


def test_its_size_is_bounded() -> None:
    checker = rd.core.ProtocolChecker(limits=rd.Limits(choices=1))
    checker.check(S)
    with pytest.raises(rd.errors.LimitExceededError):
        checker.check(ev.MessageStart(choice=1))


@given(st.lists(any_event(), max_size=20))
def test_the_fold_takes_what_is_legal_and_ignores_what_is_not(events: list[rd.Event]) -> None:
    """A delta that breaks a rule of its block changes nothing, one that keeps them all does."""
    lifecycle, folding = rd.core.ProtocolChecker(), rd.Fold()
    for event in [S, *events]:
        violation = lifecycle.check(event)
        if isinstance(event, (ev.MessageFinish, ev.MessageInterrupted, ev.AttemptReset)):
            return
        if folding.begins_another(event):
            assert violation == "duplicate_message_start"
            return
        before = folding.snapshot
        after = folding.step(event)
        if isinstance(event, (ev.TextDelta, ev.ReasoningDelta)):
            piece = event.text if isinstance(event, ev.TextDelta) else event.reasoning
            assert (after.blocks != before.blocks) == (violation is None and piece != "")
