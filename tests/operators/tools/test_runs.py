"""The runs of a stream: each has its own calls, whatever their ids, and the news of a call name its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import compose
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import rxdelta as rd

ev = rd.events


def call(index: int = 0, call_id: str = "c1", **arguments: Any) -> list[rd.Event]:
    content = {"type": "tool_call", "id": call_id, "name": "echo", "args": arguments}
    return [ev.BlockStart(index, content), ev.BlockFinish(index)]


def message(*events: rd.Event, id: str = "m") -> list[rd.Event]:
    return [ev.MessageStart(id), *events, ev.MessageFinish("tool_use")]


def in_run(run_id: str | None, events: list[rd.Event], choice: int = 0) -> list[rd.Event]:
    """The events within a run. Those without a choice keep none."""
    return [
        attrs.evolve(
            event, run_id=run_id, **({"choice": choice} if getattr(event, "choice", None) == 0 else {})
        )
        for event in events
    ]


def run(events: list[rd.Event], **options: Any) -> list[rd.Event]:
    out: list[rd.Event] = []
    tools = rd.run_tools({"echo": lambda **arguments: arguments}, scheduler=TestScheduler(), **options)
    rx.from_iterable(events).pipe(tools).subscribe(out.append)
    return out


def results(events: list[Any]) -> list[tuple[str | None, str | None, Any]]:
    return [
        (event.run_id, event.execution_status, event.result.content)
        for event in events
        if isinstance(event, ev.ToolUpdate) and event.result is not None
    ]


def test_calls_of_two_runs_with_one_id_have_their_own_results() -> None:
    a, b = in_run("a", message(*call(of="a"))), in_run("b", message(*call(of="b")))
    out = run([event for pair in zip(a, b) for event in pair])
    assert results(out) == [("a", "completed", {"of": "a"}), ("b", "completed", {"of": "b"})]
    for name in ("a", "b"):
        fold = rd.Fold()
        for event in out:
            if event.run_id == name:
                fold.step(event)
        (ended,) = fold.snapshot.tool_calls
        assert ended.result is not None
        assert ended.result.content == {"of": name}


def test_without_a_run_updates_name_none() -> None:
    updates = [event for event in run(message(*call())) if isinstance(event, ev.ToolUpdate)]
    assert updates
    assert all((update.run_id, update.choice) == (None, None) for update in updates)


turns = st.sampled_from(
    [
        message(*call(n=1)),
        message(*call(n=1), *call(1, "c2", n=2)),
        message(*call(n=1), *call(1, n=2)),
        message(ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi"), *call(1)),
        [*message(*call(n=1))[:2], ev.AttemptReset(1), *message(*call(n=2))],
        [*message(*call(n=1))[:2], ev.MessageInterrupted("stop")],
        message(*call(n=1))[:2],
        [ev.MessageStart("m"), ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "echo", "args": ""}),
         ev.ToolCallDelta(0, '{"n":'), ev.ToolCallDelta(0, "3}"), ev.MessageFinish("tool_use")],
    ]
)  # fmt: skip
streams = st.lists(turns, min_size=1, max_size=3).map(lambda some: [event for turn in some for event in turn])


@given(st.lists(streams, min_size=2, max_size=5), st.sampled_from(["ready", "message"]), st.data())
def test_a_run_among_others_is_as_if_it_were_alone(
    some: list[list[rd.Event]], start: str, data: st.DataObject
) -> None:
    named: dict[str | None, list[rd.Event]] = {
        f"r{number}": in_run(f"r{number}", events) for number, events in enumerate(some)
    }
    order = data.draw(st.permutations([name for name, events in named.items() for _ in events]))
    waiting = {name: iter(events) for name, events in named.items()}
    out = run([next(waiting[name]) for name in order], start=start)
    for name, events in named.items():
        assert [event for event in out if event.run_id == name] == run(events, start=start)


class Reading:
    """Two runs, each with a call whose tool goes on for ever, and one that is not yet whole."""

    def __init__(self) -> None:
        self.source: Subject[rd.Event] = Subject()
        self.out: list[Any] = []
        self.running: list[str] = []
        self.source.pipe(rd.run_tools({"echo": self._echo}, scheduler=TestScheduler())).subscribe(
            self.out.append, lambda error: None
        )
        for name in ("a", "b"):
            begun = {"type": "tool_call_chunk", "id": "c2", "name": "echo", "args": ""}
            self.send(*in_run(name, [ev.MessageStart("m"), *call(of=name), ev.BlockStart(1, begun)]))
        assert self.running == ["a", "b"]

    def _echo(self, of: str) -> Any:
        def begin(*_: Any) -> Callable[[], None]:
            self.running.append(of)
            return lambda: self.running.remove(of)

        return rx.create(begin)

    def send(self, *events: rd.Event) -> None:
        for event in events:
            self.source.on_next(event)


def failed(reading: Reading) -> list[Any]:
    return sorted((run_id, text) for run_id, status, text in results(reading.out) if status == "failed")


@pytest.mark.parametrize(
    ("event", "why"),
    [(ev.MessageInterrupted(), "the message was interrupted"), (ev.AttemptReset(1), None)],
    ids=["interrupted", "reset"],
)
def test_an_event_that_stops_calls_stops_those_of_its_run_or_all(event: rd.Event, why: str | None) -> None:
    one = Reading()
    one.send(attrs.evolve(event, run_id="b"))
    assert one.running == ["a"]
    assert failed(one) == ([] if why is None else [("b", why)] * 2)
    every = Reading()
    every.send(event)
    assert every.running == []
    assert failed(every) == ([] if why is None else [("a", why)] * 2 + [("b", why)] * 2)


@pytest.mark.parametrize("run_id", [None, "b"])
def test_an_error_ends_the_calls_of_all_runs(run_id: str | None) -> None:
    reading = Reading()
    reading.send(ev.StreamError("overloaded", run_id=run_id))
    assert reading.running == []
    assert failed(reading) == [(name, "the stream broke off") for name in "aabb"]


def test_an_interruption_before_any_run_concerns_the_first() -> None:
    out = run([ev.MessageInterrupted(), *in_run("a", call(of="a")), *in_run("b", call(of="b"))])
    assert results(out) == [("b", "completed", {"of": "b"})]
    out = run([ev.MessageInterrupted(), *in_run("a", message(*call(of="a")))])
    assert results(out) == [("a", "completed", {"of": "a"})]


def test_a_message_of_one_run_ends_no_call_of_another() -> None:
    cut = message(*call(of="a"))
    out = run([*in_run("a", cut[:2]), *in_run("b", message(*call(of="b"))), *in_run("a", cut[2:])])
    assert results(out) == [("b", "completed", {"of": "b"}), ("a", "completed", {"of": "a"})]


def test_an_update_names_its_choice_if_the_run_has_several() -> None:
    first, second = in_run("a", message(*call(n=0))), in_run("a", message(*call(n=1)), choice=1)
    woven = [event for pair in zip(first, second) for event in pair]
    for choice in (0, 1):
        out = run(woven, choice=choice)
        other = rd.Fold(choice=1 - choice)
        for event in out:
            other.step(event)
        assert results(out) == [("a", "completed", {"n": choice})]
        assert other.snapshot.tool_calls[0].result is None


def test_runs_have_a_limit() -> None:
    errors: list[Exception] = []
    events = [event for number in range(3) for event in in_run(f"r{number}", message(*call()))]
    tools = compose(rd.run_tools({"echo": lambda: 1}), rd.with_limits(rd.Limits(runs=2)))
    rx.from_iterable(events).pipe(tools).subscribe(on_error=errors.append)
    assert isinstance(errors[0], rd.errors.LimitExceededError)
    assert errors[0].limit == "runs"


def test_completed_tool_calls_reads_one_run() -> None:
    events = [*in_run("a", message(*call())), *in_run("b", message(*call()))]
    calls: list[rd.ToolCall] = []
    errors: list[Exception] = []
    rx.from_iterable(events).pipe(rd.completed_tool_calls()).subscribe(calls.append, errors.append)
    assert len(calls) == 1
    assert isinstance(errors[0], rd.ProtocolError)
    assert errors[0].violation == "another_run"


def test_until_all_tools_terminal_reads_one_run() -> None:
    a, b = (rd.MessageDelta(run_id=name, status="incomplete") for name in ("a", "b"))
    for values in ([a, a, b], [rd.Snapshot(), a, b], [a, rd.Snapshot()]):
        errors: list[Exception] = []
        shown: list[rd.Snapshot] = []
        rx.from_iterable(values).pipe(rd.until_all_tools_terminal()).subscribe(shown.append, errors.append)
        assert shown == values[:-1]
        assert isinstance(errors[0], rd.ProtocolError)
        assert errors[0].violation == "another_run"
