"""A reply that was stored goes on where it was: no call is run twice, and none is lost."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import rxdelta as rd

ev = rd.events
UNKNOWN = "the tool had been started, and its outcome isn't known"
TERMINAL = ("completed", "failed")


def call(index: int, name: str) -> list[rd.Event]:
    content = {"type": "tool_call_chunk", "id": f"c{index}", "name": name, "args": ""}
    pieces = [ev.ToolCallDelta(index, piece) for piece in ('{"n": ', f"{index}}}")]
    return [ev.BlockStart(index, content), *pieces, ev.BlockFinish(index)]


def reply(*names: str) -> list[rd.Event]:
    said: list[rd.Event] = [ev.BlockStart(9, {"type": "text", "text": "Well."}), ev.BlockFinish(9)]
    calls = [event for index, name in enumerate(names) for event in call(index, name)]
    return [ev.MessageStart("m"), *calls, *said, ev.MessageFinish("tool_use")]


class Life:
    """A program that reads a source to its end, or to where it is stopped.

    Attributes:
        runs: The ids of the calls whose tools were started.
        asked: The ids of the calls for which a person was asked.
    """

    def __init__(self, source: list[rd.Event], plan: dict[str, str], **options: Any) -> None:
        self.runs: list[str] = []
        self.asked: list[str] = []
        self.events: list[rd.Event] = []
        self._plan = plan
        tools = {name: self._tool(name) for name in {"f", "g", *plan.values()}}
        approve = options.pop("approve", self._approve)
        running = rd.run_tools(tools, approve=approve, scheduler=TestScheduler(), **options)
        rx.from_iterable(source).pipe(running).subscribe(self.events.append)

    def _tool(self, _: str) -> Any:
        def tool(n: int) -> Any:
            self.runs.append(f"c{n}")
            return Subject() if self._plan.get(f"c{n}") == "hangs" else n

        return tool

    def _approve(self, call: rd.ToolCall) -> Any:
        call_id = call.call_id or ""
        self.asked.append(call_id)
        return {"refused": False, "left": None, "waits": Subject()}.get(self._plan.get(call_id, ""), True)

    def snapshot(self, cut: int | None = None) -> rd.Snapshot:
        fold = rd.Fold()
        for event in self.events[:cut]:
            fold.step(event)
        return fold.snapshot


def stored(reply: Any) -> Any:
    return type(reply).from_dict(json.loads(json.dumps(reply.to_dict())))


def statuses(reply: rd.Snapshot) -> dict[str, str]:
    calls = (block for block in reply.blocks if isinstance(block, rd.ToolCall))
    return {call.call_id or "": call.execution_status() for call in calls}


fates = st.sampled_from(["allowed", "refused", "left", "waits", "hangs"])


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("fg"), fates), min_size=1, max_size=3), st.booleans())
def test_a_reply_goes_on_from_every_event(calls: list[tuple[str, str]], reruns: bool) -> None:
    names = {f"c{n}": name for n, (name, _) in enumerate(calls)}
    first = Life(reply(*names.values()), {f"c{n}": fate for n, (_, fate) in enumerate(calls)})
    for cut in range(len(first.events) + 1):
        before = first.snapshot(cut)
        replies: list[Any] = [before]
        if before.status == "complete":
            replies.append(before.to_message())
        for kept in replies:
            again = stored(kept)
            second = Life(rd.to_events(again), {}, rerun={"g"} if reruns else ())
            after = second.snapshot()
            for call_id, status in statuses(before).items():
                old, new = find(before, call_id), find(after, call_id)
                assert new.execution_status() in TERMINAL
                runs = second.runs.count(call_id)
                if status in TERMINAL:
                    assert (runs, new.result) == (0, old.result)
                elif status == "executing" and not (reruns and names[call_id] == "g"):
                    assert runs == 0
                    assert new.result == rd.ToolResult(call_id, UNKNOWN, is_error=True)
                elif old.open:  # cut off in its arguments
                    assert (runs, new.execution_status()) == (0, "failed")
                else:
                    assert (runs, new.execution_status()) == (1, "completed")
            assert set(second.runs) <= set(second.asked)


def find(reply: rd.Snapshot, call_id: str) -> rd.ToolCall:
    return next(
        block for block in reply.blocks if isinstance(block, rd.ToolCall) and block.call_id == call_id
    )


def test_a_reply_that_waits_can_be_stored_again_and_again() -> None:
    known = Life(reply("f", "f"), {"c0": "left", "c1": "left"}).snapshot()
    for _ in range(2):
        life = Life(rd.to_events(stored(known)), {"c0": "left", "c1": "left"})
        assert life.snapshot() == known
        assert (life.runs, life.asked) == ([], ["c0", "c1"])
    decided = Life(rd.to_events(stored(known)), {"c0": "refused", "c1": "left"}).snapshot()
    assert statuses(decided) == {"c0": "failed", "c1": "awaiting_approval"}
    ended = Life(rd.to_events(stored(decided)), {})
    assert (ended.runs, ended.asked) == (["c1"], ["c1"])
    assert statuses(ended.snapshot()) == {"c0": "failed", "c1": "completed"}


def test_a_status_that_the_source_has_told_is_not_told_again() -> None:
    known = Life(reply("f"), {"c0": "left"}).snapshot()
    updates = [event for event in Life(rd.to_events(known), {}).events if isinstance(event, ev.ToolUpdate)]
    words = ["identified", "awaiting_approval", "executing", "completed"]
    assert [event.execution_status for event in updates] == words


def test_without_approve_a_stored_call_goes_on_waiting() -> None:
    known = Life(reply("f"), {"c0": "left"}).snapshot()
    life = Life(rd.to_events(known), {}, approve=None)
    assert life.runs == []
    assert life.snapshot() == known


def test_a_call_that_has_got_a_result_by_hand_is_not_run() -> None:
    fold = rd.Fold()
    for event in reply("f"):
        fold.step(event)
    asked = fold.snapshot.to_message()
    (answered,) = (attrs.evolve(block, result=rd.ToolResult("c0", 5)) for block in asked.tool_calls)
    kept: Any = attrs.evolve(asked, blocks=[answered])
    for _ in range(2):
        life = Life(rd.to_events(stored(kept)), {})
        assert (life.runs, life.asked) == ([], [])
        kept = life.snapshot().to_message()
        assert kept.tool_calls[0].result.content == 5


def test_the_calls_of_a_stored_interrupted_reply_are_not_begun() -> None:
    whole = [*reply("f", "f")[:-1], ev.MessageInterrupted()]
    fold = rd.Fold()
    for event in whole:
        fold.step(event)
    life = Life(rd.to_events(fold.snapshot), {}, start="message")
    assert (life.runs, life.asked) == ([], [])
    assert set(statuses(life.snapshot()).values()) == {"failed"}


# What else a source may tell of a call.


def updated(*updates: tuple[str, Any], place: int = 3) -> list[rd.Event]:
    """A reply with a call, and updates of the call in front of the event at this place of the call's block."""
    news = [ev.ToolUpdate("c0", word, result=result) for word, result in updates]
    start, *rest = reply("f")
    return [start, *rest[:place], *news, *rest[place:]]


def told(events: list[rd.Event]) -> list[str | None]:
    return [event.execution_status for event in events if isinstance(event, ev.ToolUpdate)]


@pytest.mark.parametrize("word", ["executing", "queued_elsewhere"])
def test_a_call_that_somebody_else_runs_gets_its_outcome_from_there(word: Any) -> None:
    done = rd.ToolResult("c0", "theirs")
    life = Life([*updated((word, None)), ev.ToolUpdate("c0", "completed", result=done)], {})
    assert (life.runs, life.asked) == ([], [])
    assert told(life.events) == ["identified", word, "completed"]
    assert find(life.snapshot(), "c0").result == done


def test_an_outcome_may_come_during_a_later_message() -> None:
    done = ev.ToolUpdate("c0", "completed", result=rd.ToolResult("c0", "theirs"))
    later = [ev.MessageStart("n"), ev.BlockStart(0, {"type": "text", "text": "Hi"}), done]
    life = Life([*updated(("executing", None)), *later, ev.MessageFinish("stop")], {})
    assert told(life.events) == ["identified", "executing", "completed"]
    life = Life([*updated(("executing", None)), *later[:2], ev.MessageFinish("stop")], {})
    assert told(life.events) == ["identified", "executing", "failed"]


def test_an_attempt_that_failed_leaves_no_call_behind() -> None:
    life = Life([*updated(("executing", None))[:-1], ev.AttemptReset(1), *reply("g")], {})
    assert told(life.events) == [
        "identified",
        "executing",
        *["identified", "awaiting_approval", "executing", "completed"],
    ]
    assert life.runs == ["c0"]


def test_a_question_ends_when_somebody_else_has_the_answer() -> None:
    answers: Subject[bool] = Subject()
    news: Subject[rd.Event] = Subject()
    out: list[rd.Event] = []
    running = rd.run_tools({"f": lambda n: pytest.fail("run")}, approve=lambda _: answers)
    rx.merge(rx.from_iterable(reply("f")), news).pipe(running).subscribe(out.append)
    assert len(answers.observers) == 1
    news.on_next(ev.ToolUpdate("c0", "failed", result=rd.ToolResult("c0", "no", is_error=True)))
    assert not answers.observers
    assert told(out) == ["identified", "awaiting_approval", "failed"]


def test_what_is_told_of_a_tool_that_runs_here_comes_too_late() -> None:
    values: Subject[str] = Subject()
    news: Subject[rd.Event] = Subject()
    out: list[rd.Event] = []
    running = rd.run_tools({"f": lambda n: values})
    rx.merge(rx.from_iterable(reply("f")), news).pipe(running).subscribe(out.append)
    news.on_next(ev.ToolUpdate("c0", "executing"))
    news.on_completed()
    values.on_next("ours")
    values.on_completed()
    assert told(out)[-1] == "completed"
    assert [event.result.content for event in out if isinstance(event, ev.ToolUpdate) and event.result] == [
        "ours"
    ] * 2


def test_a_call_that_was_refused_here_has_one_outcome() -> None:
    events = [*reply("f"), ev.ToolUpdate("c0", "executing")]
    life = Life(events, {"c0": "refused"})
    assert told(life.events) == ["identified", "awaiting_approval", "failed", "executing"]


def test_a_call_that_others_run_is_nobody_s_if_it_is_left() -> None:
    life = Life(updated(("executing", None)), {}, unknown="leave")
    assert told(life.events) == ["identified", "executing", "failed"]
    out: list[rd.Event] = []
    rx.from_iterable(updated(("executing", None))).pipe(rd.run_tools({}, unknown="leave")).subscribe(
        out.append
    )
    assert told(out) == ["executing"]
