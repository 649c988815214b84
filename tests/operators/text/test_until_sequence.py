"""`until_sequence`: the reply ends before the first sequence, however the text comes."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.subject import Subject

import rxdelta as rd

ev = rd.events
BEGUN: list[rd.Event] = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]


def run(
    events: list[rd.Event], *sequences: str, drain: bool = False, error: Exception | None = None
) -> tuple[list[rd.Event], list[Any]]:
    source: rx.Observable[rd.Event] = rx.from_iterable(events)
    if error is not None:
        source = rx.concat(source, rx.throw(error))
    told: list[rd.Event] = []
    ends: list[Any] = []
    source.pipe(rd.until_sequence(*sequences, drain=drain)).subscribe(
        told.append, ends.append, lambda: ends.append("completed")
    )
    return told, ends


def folded(events: list[rd.Event], choice: int = 0) -> rd.Snapshot:
    fold = rd.Fold(choice=choice)
    for event in events:
        fold.step(event)
    return fold.snapshot


@pytest.mark.parametrize("drain", [False, True])
def test_the_source_is_closed_once_before_the_reader_hears_of_the_end(*, drain: bool) -> None:
    happened: list[str] = []
    events: Subject[rd.Event] = Subject()

    def subscribe(observer: abc.ObserverBase[rd.Event], _: abc.SchedulerBase | None) -> abc.DisposableBase:
        events.subscribe(observer)
        return Disposable(lambda: happened.append("closed"))

    rx.create(subscribe).pipe(rd.until_sequence("END", drain=drain)).subscribe(
        lambda event: happened.append(type(event).__name__), None, lambda: happened.append("completed")
    )
    for event in [*BEGUN, *map(ev.TextDelta, [0, 0, 0], ["E", "N", "D"])]:
        events.on_next(event)
    stopped = ["MessageStart", "BlockStart", "BlockFinish"]
    assert happened == (stopped if drain else [*stopped, "MessageFinish", "closed", "completed"])
    for event in [ev.TextDelta(0, "unseen"), ev.UsageUpdate(rd.TokenUsage(1, 2)), ev.MessageFinish("stop")]:
        events.on_next(event)
    assert happened[-3:] == ["MessageFinish", "closed", "completed"]
    assert "TextDelta" not in happened


@pytest.mark.parametrize("pieces", [["xaab"], ["xa", "ab"], ["x", "a", "a", "b"]])
def test_of_two_sequences_at_one_place_the_shorter_counts(pieces: list[str]) -> None:
    for sequences, text, found in (
        (("aab", "aa"), "x", "aa"),
        (("ab", "aab"), "x", "aab"),
        (("b", "ab"), "xa", "ab"),
    ):
        told, _ = run([*BEGUN, *map(ev.TextDelta, [0] * len(pieces), pieces)], *sequences)
        reply = folded(told)
        assert (reply.text, reply.metadata["stop_sequence"]) == (text, found)


def test_of_the_rest_only_the_usage_is_seen() -> None:
    rest = [
        ev.TextDelta(0, " two END"),
        ev.BlockFinish(0, {"type": "text", "text": "One END two END"}),
        ev.BlockFinish(1, {"type": "text", "text": "another"}),
        ev.BlockFinish(2, {"type": "tool_call", "id": "c", "name": "pay", "args": {}}),
    ]
    usage, end = ev.UsageUpdate(rd.TokenUsage(7, 30)), ev.MessageFinish("length", usage=rd.TokenUsage(7, 31))
    told, _ = run([*BEGUN, ev.TextDelta(0, "One END"), *rest, usage, end], "END", drain=True)
    stopped = ev.MessageFinish("stop", "stop_sequence", rd.TokenUsage(7, 31), {"stop_sequence": "END"})
    assert told == [*BEGUN, ev.TextDelta(0, "One "), ev.BlockFinish(0), usage, stopped]


@pytest.mark.parametrize(
    "end", [[ev.StreamError("x", "y")], [ev.MessageInterrupted("x")], [ev.AttemptReset(1, "x")], []]
)
def test_what_fails_behind_the_sequence_is_ignored(end: list[rd.Event]) -> None:
    told, ends = run([*BEGUN, ev.TextDelta(0, "a END"), *end], "END", drain=True, error=RuntimeError("x"))
    assert ends == ["completed"]
    assert folded(told).to_message().text == "a "


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ([], None),
        ([], RuntimeError("x")),
        ([ev.StreamError("x", "y")], None),
        ([ev.MessageInterrupted("x")], None),
    ],
)
def test_the_beginning_of_a_sequence_is_emitted_where_the_reply_is_cut_off(
    end: list[rd.Event], error: Exception | None
) -> None:
    told, ends = run([*BEGUN, ev.TextDelta(0, "a EN"), *end], "END", error=error)
    assert told == [*BEGUN, ev.TextDelta(0, "a "), ev.TextDelta(0, "EN"), *end]
    assert ends == [error or "completed"]


@pytest.mark.parametrize("drain", [False, True])
def test_each_choice_ends_by_itself_and_begins_again_with_an_attempt_of_all(*, drain: bool) -> None:
    both = [ev.BlockStart(0, {"type": "text", "text": "so "}, choice=choice) for choice in (0, 1)]
    stopped: list[rd.Event] = [*both, ev.TextDelta(0, "a END b"), ev.TextDelta(0, "c", choice=1)]
    rest: list[rd.Event] = [ev.TextDelta(0, " END", choice=1), ev.MessageFinish("stop", choice=1)]
    told, _ = run([*stopped, ev.MessageFinish("stop"), *rest], "END", drain=drain)
    assert [folded(told, choice).text for choice in (0, 1)] == ["so a ", "so c "]
    reset = ev.AttemptReset(1, "busy")
    told, ends = run([*stopped, reset, *both, ev.MessageFinish("stop"), *rest], "END", drain=drain)
    replies = [folded(told[told.index(reset) :], choice) for choice in (0, 1)]
    assert ends == ["completed"]
    assert [(reply.text, reply.status) for reply in replies] == [("so ", "complete"), ("so  ", "complete")]


def test_reasoning_and_arguments_pass() -> None:
    call = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "f"})
    thought = ev.BlockStart(0, {"type": "reasoning", "reasoning": "END"})
    events = [BEGUN[0], thought, ev.ReasoningDelta(0, "END"), call, ev.ToolCallDelta(1, '{"a": "END"}')]
    assert run(events, "END")[0] == events


def test_a_call_that_is_open_at_the_sequence_is_invalid() -> None:
    call = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "f"})
    told, _ = run([*BEGUN, call, ev.ToolCallDelta(1, '{"a": 1}'), ev.TextDelta(0, "END")], "END")
    ran: list[int] = []

    def f(a: int) -> None:
        ran.append(a)

    rx.from_iterable(told).pipe(rd.run_tools({"f": f})).subscribe()
    assert [block.type for block in folded(told).blocks] == ["text", "invalid_tool_call"]
    assert not ran


def test_another_message_that_has_begun_is_awaited() -> None:
    def begin(run_id: str) -> list[rd.Event]:
        return [ev.MessageStart(run_id=run_id), ev.BlockStart(0, {"type": "text", "text": ""}, run_id=run_id)]

    def say(text: str, run_id: str) -> rd.Event:
        return ev.TextDelta(0, text, run_id=run_id)

    end = ev.MessageFinish("stop", run_id="a")
    told, ends = run(
        [*begin("a"), *begin("b"), end, *begin("a"), say("END", "b"), say("so", "a"), end], "END"
    )
    assert told[-2:] == [say("so", "a"), end]
    assert ends == ["completed"]


@pytest.mark.parametrize("drain", [False, True])
def test_a_sequence_that_is_certain_at_the_end_only(*, drain: bool) -> None:
    usage = rd.TokenUsage(1, 2)
    told, ends = run(
        [*BEGUN, ev.TextDelta(0, "xab"), ev.MessageFinish("length", usage=usage)], "abc", "b", drain=drain
    )
    reply = folded(told)
    assert (reply.text, reply.finish_reason, reply.usage, ends) == ("xa", "stop", usage, ["completed"])
