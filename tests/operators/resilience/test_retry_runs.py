"""`retry_stream` where several runs share the stream: each stays itself, and all are repeated."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from reactivex.subject import Subject

import rxdelta as rd
from rxdelta.core import concerns_any_run

ev = rd.events
OVERLOADED = rd.ProviderError("Overloaded", type="overloaded_error")


def told(
    run_id: str | None, *pieces: str, choice: int = 0, id: str = "m", end: bool = True
) -> list[rd.Event]:
    lane: Any = {"choice": choice, "run_id": run_id}
    usage = rd.TokenUsage(3, len(pieces))
    return [
        ev.MessageStart(id, **lane),
        ev.BlockStart(0, {"type": "text"}, **lane),
        *(ev.TextDelta(0, piece, **lane) for piece in pieces),
        ev.UsageUpdate(usage, **lane),
        *([ev.BlockFinish(0, **lane), ev.MessageFinish("stop", **lane)] if end else []),
    ]


def woven(*lists: list[rd.Event]) -> list[rd.Event]:
    """One event of each in turn."""
    longest = max(map(len, lists))
    return list(chain.from_iterable(events[at : at + 1] for at in range(longest) for events in lists))


def retried(
    *requests: list[rd.Event], resume: bool = False, limits: rd.Limits | None = None, **options: Any
) -> tuple[list[Any], list[Any]]:
    """What is emitted, and the snapshots that the factory is given."""
    given: list[Any] = []
    each = iter(requests)

    def factory(snapshot: rd.Snapshot | None) -> Observable[rd.Event]:
        given.append(snapshot)
        events = rx.from_iterable(next(each))
        return events if len(given) == len(requests) else rx.concat(events, rx.throw(OVERLOADED))

    got: list[Any] = []
    retrying = rd.retry_stream(factory, len(requests), lambda *_: 0, resume, **options)
    retrying.pipe(rd.with_limits(limits or rd.Limits())).subscribe(got.append, got.append)
    return got, given


def reply(events: list[Any], run_id: str | None, choice: int = 0) -> rd.Snapshot:
    """The reply of one lane, as a reader of this run alone sees it."""
    fold = rd.Fold(choice=choice, run_id=run_id)
    for event in events:
        if event.run_id == run_id or concerns_any_run(event):
            fold.step(event)
    return fold.snapshot


def resets(events: list[Any]) -> list[tuple[str | None, int | None]]:
    return [(event.run_id, event.choice) for event in events if isinstance(event, ev.AttemptReset)]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(("a", False), ("b", False), [("a", None), ("b", None)], id="both broke off"),
        pytest.param(("a", True), ("b", False), [("a", 0), ("b", 0)], id="one was over"),
        pytest.param((None, False), ("b", False), [(None, None), ("b", None)], id="one has no name"),
        pytest.param(("a", True), (None, False), [(None, 0), ("a", 0)], id="the other has no name"),
        pytest.param((None, True), ("b", False), [(None, 0), ("b", 0)], id="the one without a name was over"),
    ],
)
def test_starting_over_takes_every_run_back(one: Any, other: Any, expected: Any) -> None:
    first = woven(told(one[0], "Hel", end=one[1]), told(other[0], "Bon", end=other[1]))
    second = woven(told(one[0], "Hel", "lo"), told(other[0], "Bon", "jour"))
    got, _ = retried(first, second)
    assert resets(got) == expected
    for run_id, text in ((one[0], "Hello"), (other[0], "Bonjour")):
        snapshot = reply(got, run_id)
        assert (snapshot.text, snapshot.attempt, snapshot.status) == (text, 1, "complete")
        assert snapshot.total_usage == rd.TokenUsage(6, 3)


def test_a_reader_of_each_run_sees_its_attempts() -> None:
    first = woven(told("a", "Hel"), told("b", "Bon", end=False))
    each = iter(
        [
            rx.concat(rx.from_iterable(first), rx.throw(OVERLOADED)),
            rx.from_iterable(woven(told("a", "Hello"), told("b", "Bonjour"))),
        ]
    )
    got: dict[str | None, list[str]] = {}
    events = rd.retry_stream(lambda: next(each), backoff=lambda *_: 0)
    for run in events.pipe(rd.group_by_run(), ops.to_list()).run():
        run.pipe(rd.scan_deltas()).subscribe(
            lambda reply, run=run: got.setdefault(run.run_id, []).append(reply.text)
        )
    assert {run_id: texts[-1] for run_id, texts in got.items()} == {"a": "Hello", "b": "Bonjour"}


def test_several_choices_of_several_runs_are_taken_back_one_by_one() -> None:
    lanes = [("a", 0), ("a", 1), ("b", 0)]
    first = woven(*(told(run_id, "x", choice=choice, end=choice == 1) for run_id, choice in lanes))
    second = woven(*(told(run_id, f"{run_id}{choice}", choice=choice) for run_id, choice in lanes))
    got, _ = retried(first, second)
    assert resets(got) == lanes
    assert [reply(got, *lane).text for lane in lanes] == ["a0", "a1", "b0"]


def test_the_next_attempt_may_name_its_runs_anew() -> None:
    first = woven(told("a", "Hel", end=False), told("b", "Bon"))
    got, _ = retried(first, woven(told("c", "Hello"), told("d", "Bonjour")))
    assert [reply(got, run_id).text for run_id in "abcd"] == ["", "", "Hello", "Bonjour"]


@pytest.mark.parametrize(("before", "run_id"), [([], None), (told("a", "Hel", end=False), "a")])
def test_the_reset_names_the_run_of_what_it_takes_back(before: list[rd.Event], run_id: str | None) -> None:
    got, _ = retried(before, [], told("a", "Hello"), retry_if=lambda _: True)
    assert resets(got) == [(run_id, None)] * 2
    assert (reply(got, "a").text, reply(got, "a").attempt) == ("Hello", 2)


def test_a_stream_is_complete_when_every_run_is() -> None:
    half = woven(told("a", "Hello"), told("b", "Bon", end=False))
    got, _ = retried(half, woven(told("a", "Hello"), told("b", "Bonjour")))
    assert len(resets(got)) == 2
    whole = woven(told("a", "Hello"), told("b", "Bonjour"))
    got, given = retried(whole, [])
    assert got == [*whole, OVERLOADED]
    assert len(given) == 1


def test_a_second_message_in_one_run_is_refused_and_in_another_it_is_not() -> None:
    got, _ = retried([*told("a", "x"), *told("b", "y"), *told("a", "z", id="m2")])
    assert isinstance(got[-1], rd.ProtocolError)
    assert got[:-1] == [*told("a", "x"), *told("b", "y")]


@pytest.mark.parametrize("run_id", ["a", "z", None])
def test_what_continues_a_run_is_of_that_run(run_id: str | None) -> None:
    lane: Any = {"run_id": "a"}
    first = [
        ev.MessageStart("m", usage=rd.TokenUsage(1, 1), **lane),
        ev.BlockStart(0, {"type": "reasoning", "reasoning": "Hm"}, **lane),
        ev.BlockStart(1, {"type": "text", "text": "The tide is "}, **lane),
    ]
    end = {"choice": 0, "run_id": run_id}
    second = [
        ev.ProviderEvent("p", "hello", run_id=run_id and "root"),
        ev.MessageStart("m2", usage=rd.TokenUsage(1, 0), **end),
        ev.BlockStart(0, {"type": "text", "text": "The tide "}, **end),
        ev.TextDelta(0, "is high", **end),
        ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c1", "name": "f", "args": "{"}, **end),
        ev.ToolCallDelta(1, "}", **end),
        ev.BlockDelta(1, {"status": "x"}, **end),
        ev.BlockFinish(1, **end),
        ev.UsageUpdate(rd.TokenUsage(1, 2), **end),
        ev.ProviderEvent("p", "bye", run_id=run_id),
        ev.MessageFinish("stop", **end),
    ]
    got, given = retried(first, second, resume=True)
    assert {event.run_id for event in got} == {"a"} | {run_id and "a"}
    snapshot = reply(got, "a")
    assert (given[1].text, given[1].run_id, snapshot.text) == ("The tide is ", "a", "The tide is high")
    assert snapshot.usage == rd.TokenUsage(2, 3)
    assert snapshot.tool_calls[0].metadata == {"status": "x"}
    assert snapshot.metadata == {"resumed_at": 12, "overlap": 12}


def test_a_text_that_was_not_continued_is_finished_in_its_run() -> None:
    got, _ = retried(told("a", "Hel", end=False), [ev.MessageFinish("stop", run_id="a")], resume=True)
    assert got[-2:-1] == [ev.BlockFinish(0, run_id="a")]


def test_other_runs_and_choices_of_a_continuation_stay_themselves() -> None:
    second = woven(told("b", "lo"), told("sub", "Sub", "agent"))
    got, _ = retried(told("a", "Hel", end=False), second, resume=True)
    assert reply(got, "a").text == "Hello"
    assert reply(got, "sub").text == "Subagent"
    got, _ = retried(
        told(None, "Hel", end=False), woven(told(None, "lo"), told(None, "x", choice=1)), resume=True
    )
    assert [reply(got, None, choice).text for choice in (0, 1)] == ["Hello", "x"]


def test_several_runs_start_over_also_with_resume() -> None:
    for other in (told("b", "Bon", end=False), told("b", "Bonjour"), [ev.MessageStart("m", run_id="b")]):
        got, given = retried(woven(told("a", "Hel", end=False), other), told("a", "Hello"), resume=True)
        assert given == [None, None]
        assert {run_id for run_id, _ in resets(got)} == {"a", "b"}
        assert reply(got, "a").text == "Hello"


def test_a_second_message_of_a_continuation_is_refused() -> None:
    got, _ = retried(told("a", "Hel", end=False), [*told("b", "lo"), *told("b", "Bye", id="m2")], resume=True)
    assert isinstance(got[-1], rd.ProtocolError)


@pytest.mark.parametrize("behind", [False, True])
def test_a_stop_concerns_every_run(behind: bool) -> None:
    stop = Subject[None]()
    stopped = rd.until_stopped(stop)
    live = rx.concat(
        rx.from_iterable(woven(told("a", "Hel", end=False), told("b", "Bon", end=False))), rx.never()
    )
    made = (
        rd.retry_stream(lambda: live).pipe(stopped) if behind else rd.retry_stream(lambda: live.pipe(stopped))
    )
    got: list[Any] = []
    made.subscribe(got.append, got.append, lambda: got.append("|"))
    stop.on_next(None)
    assert got[-2:] == [ev.MessageInterrupted("stopped"), "|"]
    assert {reply(got[:-1], run_id).status for run_id in "ab"} == {"interrupted"}


def test_the_number_of_runs_is_limited() -> None:
    events = [ev.MessageStart(run_id=str(n)) for n in range(3)]
    got, _ = retried(events, limits=rd.Limits(runs=2))
    assert (type(got[-1]), got[-1].limit) == (rd.errors.LimitExceededError, "runs")
