"""A person decides whether a tool may run."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.loops import run as loops_run, turns

import rxdelta as rd

ev = rd.events
REFUSED = "The call was not allowed."


def call(index: int, name: str = "f", args: str = "{}") -> list[rd.Event]:
    content = {"type": "tool_call_chunk", "id": f"c{index}", "name": name, "args": ""}
    return [ev.BlockStart(index, content), ev.ToolCallDelta(index, args), ev.BlockFinish(index)]


def server_call(index: int = 0) -> list[rd.Event]:
    content = {"type": "server_tool_call", "id": f"s{index}", "name": "theirs", "args": {"a": 1}}
    asks = ev.ToolUpdate(f"s{index}", "awaiting_approval")
    return [ev.BlockStart(index, content), asks, ev.BlockFinish(index)]


def reply(*events: list[rd.Event]) -> list[rd.Event]:
    return [ev.MessageStart("m"), *(event for some in events for event in some), ev.MessageFinish("tool_use")]


class Seen:
    """A subscription, and what came of it."""

    def __init__(self, source: rx.Observable[rd.Event], **options: Any) -> None:
        tools = options.pop("tools", {"f": lambda: "done"})
        self.events: list[rd.Event] = []
        self.end: object = None
        self.subscription = source.pipe(rd.run_tools(tools, **options)).subscribe(
            self.events.append, self._end, lambda: self._end("completed")
        )

    def _end(self, end: object) -> None:
        self.end = end

    @property
    def told(self) -> list[tuple[str, str | None]]:
        return told(self.events)

    @property
    def last(self) -> rd.Snapshot:
        return folded(self.events)


def told(events: list[rd.Event]) -> list[tuple[str, str | None]]:
    updates = [event for event in events if isinstance(event, ev.ToolUpdate)]
    return [(event.call_id, event.execution_status) for event in updates]


def folded(events: list[rd.Event]) -> rd.Snapshot:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return fold.snapshot


def result_of(snapshot: rd.Snapshot, place: int = 0) -> rd.ToolResult:
    block = snapshot.blocks[place]
    assert isinstance(block, rd.ToolCall)
    assert block.result is not None
    return block.result


def seen(events: list[rd.Event], **options: Any) -> Seen:
    return Seen(rx.from_iterable(events), **options)


def raising(error: Exception) -> Callable[[rd.ToolCall], bool]:
    def approve(_: rd.ToolCall) -> bool:
        raise error

    return approve


def test_an_allowed_call_waits_and_then_runs() -> None:
    asked: list[rd.ToolCall] = []

    def approve(call: rd.ToolCall) -> bool:
        asked.append(call)
        return True

    out = seen(reply(call(0, args='{"a": 1}')), tools={"f": lambda a: a + 1}, approve=approve)
    assert out.told == [
        ("c0", word) for word in ("identified", "awaiting_approval", "executing", "completed")
    ]
    assert [(one.name, dict(one.arguments_as_map())) for one in asked] == [("f", {"a": 1})]
    assert result_of(out.last).content == 2
    assert out.end == "completed"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(False, None), (rd.Approval(False), None), (rd.Approval(False, "Not today."), "Not today.")],
    ids=str,
)
def test_a_refused_call_fails_and_the_model_reads_why(answer: Any, reason: str | None) -> None:
    out = seen(reply(call(0)), tools={"f": pytest.fail}, approve=lambda _: answer)
    assert out.told == [("c0", word) for word in ("identified", "awaiting_approval", "failed")]
    result = result_of(out.last)
    assert result.is_error
    assert result.content == (f"{REFUSED} {reason}" if reason else REFUSED)
    assert result.metadata["denied"] is True
    assert result.metadata.get("reason") == reason
    assert out.last.all_tools_terminal()


@pytest.mark.parametrize("answer", [None, rx.empty(), rx.of(None, True)], ids=["none", "empty", "first none"])
def test_without_a_decision_the_call_stays_and_the_stream_ends(answer: Any) -> None:
    out = seen(reply(call(0)), tools={"f": pytest.fail}, approve=lambda _: answer)
    assert out.told == [("c0", "identified"), ("c0", "awaiting_approval")]
    assert out.end == "completed"
    assert [one.call_id for one in out.last.waiting_calls] == ["c0"]
    assert not out.last.all_tools_terminal()


def test_known_answers_decide_about_their_own_calls() -> None:
    calls = [call(0), call(1), call(2)]
    out = seen(
        reply(*calls), tools={"f": lambda: 1}, approve={"c0": rd.Approval(True), "c1": False, "x": True}
    )
    assert [one.execution_status() for one in out.last.tool_calls] == [
        "completed",
        "failed",
        "awaiting_approval",
    ]
    assert seen(reply(call(0)), tools={"f": pytest.fail}, approve={}).told[-1] == ("c0", "awaiting_approval")


def test_the_first_value_of_an_observable_counts_and_no_later_one_is_waited_for() -> None:
    answers: Subject[bool] = Subject()
    out = seen(reply(call(0)), approve=lambda _: answers)
    assert out.told[-1] == ("c0", "awaiting_approval")
    assert out.end is None
    answers.on_next(True)
    assert out.told[-1] == ("c0", "completed")
    assert not answers.observers
    assert out.end == "completed"
    assert seen(reply(call(0)), approve=lambda _: rx.repeat_value(True)).told[-1] == ("c0", "completed")


def test_a_call_that_runs_is_not_asked_about_any_longer() -> None:
    answers: Subject[bool] = Subject()
    out = seen(reply(call(0)), tools={"f": Subject}, approve=lambda _: answers)
    answers.on_next(True)
    assert not answers.observers

    def says_it_twice(observer: Any, _: object) -> None:
        observer.on_next(True)
        observer.on_next(True)
        observer.on_next(False)

    twice = seen(reply(call(0)), tools={"f": Subject}, approve=lambda _: rx.create(says_it_twice))
    assert (
        out.told == twice.told == [("c0", word) for word in ("identified", "awaiting_approval", "executing")]
    )


@pytest.mark.parametrize(
    ("approve", "text", "logged"),
    [
        (raising(rd.ToolError("Ask the owner.")), f"{REFUSED} Ask the owner.", None),
        (raising(ValueError("the key is 42")), REFUSED, "approve() failed for the tool 'f'"),
        (lambda _: rx.throw(ValueError("the key is 42")), REFUSED, "approve() failed for the tool 'f'"),
        (lambda _: 1, REFUSED, "not <class 'int'>"),
        (lambda _: "yes", REFUSED, "not <class 'str'>"),
        (lambda _: rx.of("yes"), REFUSED, "not <class 'str'>"),
    ],
    ids=["ToolError", "raises", "on_error", "number", "text", "observable of text"],
)
def test_what_is_no_answer_is_a_refusal(
    approve: Any, text: str, logged: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "rxdelta"):
        out = seen(reply(call(0)), tools={"f": pytest.fail}, approve=approve)
    assert out.told[-1] == ("c0", "failed")
    assert result_of(out.last).content == text
    assert result_of(out.last).metadata["denied"] is True
    assert [record.name for record in caplog.records] == ([] if logged is None else ["rxdelta"])
    assert logged is None or logged in caplog.text


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (call(0, "nobody"), "there is no tool 'nobody'"),
        (call(0, args='{"b": 1}'), "invalid arguments: got an unexpected keyword argument 'b'"),
        (call(0, args='{"b"'), "invalid arguments: "),
    ],
    ids=["unknown", "unfit", "cut"],
)
def test_nobody_is_asked_for_a_call_that_cannot_run(events: list[rd.Event], why: str) -> None:
    out = seen(reply(events), approve=pytest.fail)
    assert out.told == [("c0", "identified"), ("c0", "failed")]
    assert str(result_of(out.last).content).startswith(why)
    assert "denied" not in result_of(out.last).metadata


def test_a_call_that_is_left_to_others_is_not_asked_for() -> None:
    assert seen(reply(call(0, "browser")), unknown="leave", approve=pytest.fail).told == []


def test_neither_the_time_limit_nor_the_number_of_tools_counts_the_person() -> None:
    time = TestScheduler()
    answers = {f"c{n}": Subject[bool]() for n in range(3)}
    out = seen(
        reply(call(0), call(1), call(2)),
        tools={"f": lambda: rx.timer(20.0, scheduler=time).pipe(ops.map(str))},
        approve=lambda call: answers[call.call_id],
        max_concurrency=1,
        timeout=30,
        scheduler=time,
    )
    time.advance_by(1000)
    assert [word for _, word in out.told] == ["identified", "awaiting_approval"] * 3
    answers["c2"].on_next(True)
    answers["c0"].on_next(True)
    assert out.told[6:] == [("c2", "executing")]
    time.advance_by(20)
    assert out.told[-2:] == [("c2", "completed"), ("c0", "executing")]
    answers["c1"].on_next(False)
    assert out.told[-1] == ("c1", "failed")
    time.advance_by(20)
    assert out.told[-1] == ("c0", "completed")
    assert result_of(out.last).duration == 20
    assert out.end == "completed"


def stopped(out: Seen, source: Subject[rd.Event], event: rd.Event) -> list[tuple[str, str | None]]:
    before = len(out.told)
    source.on_next(event)
    return out.told[before:]


def test_an_interruption_fails_a_call_that_waits_and_a_reset_takes_it_back() -> None:
    for event, after in (
        (ev.MessageInterrupted(), [("c0", "failed")]),
        (ev.AttemptReset(1), []),
        (ev.StreamError("no"), [("c0", "failed")]),
    ):
        answers: Subject[bool] = Subject()
        source: Subject[rd.Event] = Subject()
        out = Seen(source, tools={"f": pytest.fail}, approve=lambda _: answers)  # noqa: B023
        for one in [ev.MessageStart("m"), *call(0)]:
            source.on_next(one)
        assert len(answers.observers) == 1
        assert stopped(out, source, event) == after
        assert not answers.observers


def test_an_interruption_leaves_a_call_without_a_decision_as_it_is() -> None:
    broken = [ev.MessageStart("m"), *call(0), ev.MessageInterrupted()]
    out = seen(broken, tools={"f": pytest.fail}, approve=lambda _: None)
    assert [one.call_id for one in out.last.waiting_calls] == ["c0"]


def test_a_call_that_turns_out_invalid_is_not_asked_for_any_longer() -> None:
    answers: Subject[bool] = Subject()
    wrong = {"type": "invalid_tool_call", "error": "cut off"}
    events = [*reply(call(0))[:-1], ev.BlockFinish(0, wrong), ev.MessageFinish("tool_use")]
    out = seen(events, tools={"f": pytest.fail}, approve=lambda _: answers)
    assert out.told[-1] == ("c0", "failed")
    assert not answers.observers


def test_a_reader_that_leaves_withdraws_the_question_and_the_call_stays() -> None:
    answers: Subject[bool] = Subject()
    out = seen(reply(call(0)), tools={"f": pytest.fail}, approve=lambda _: answers)
    out.subscription.dispose()
    assert not answers.observers
    assert out.told[-1] == ("c0", "awaiting_approval")


def test_each_run_has_its_own_questions() -> None:
    runs = [rx.from_iterable(reply(call(0))).pipe(rd.with_run(name)) for name in ("a", "b")]
    answers = {"a": True, "b": False}
    asked: list[str | None] = []

    def approve(call: rd.ToolCall) -> bool:
        asked.append(call.name)
        return answers["ab"[len(asked) - 1]]

    out = Seen(rx.concat(*runs), approve=approve)
    updates = [event for event in out.events if isinstance(event, ev.ToolUpdate)]
    assert [(event.run_id, event.execution_status) for event in updates][2:] == [
        ("a", "executing"), ("a", "completed"), ("b", "identified"), ("b", "awaiting_approval"), ("b", "failed")
    ]  # fmt: skip


@pytest.mark.parametrize("late", [0, 1, 2], ids=["before its end", "behind it", "behind the message's"])
@pytest.mark.parametrize("start", ["ready", "message"])
def test_a_call_of_the_provider_s_own_is_decided_and_not_run(late: int, start: str) -> None:
    events = reply(server_call())
    events.insert(2 + late, events.pop(2))

    def run(answer: Any) -> tuple[Seen, rd.ToolCall]:
        out = seen(
            events,
            tools={"theirs": pytest.fail},
            approve=lambda _: answer,
            start=start,
        )
        (block,) = out.last.blocks
        assert isinstance(block, rd.ToolCall)
        assert out.end == "completed"
        return out, block

    out, block = run(rd.Approval(True, "Fine."))
    assert out.told == [("s0", "awaiting_approval"), ("s0", "completed")]
    assert block.result == rd.ToolResult("s0", metadata={"approved": True, "reason": "Fine."})
    out, block = run(False)
    assert out.told == [("s0", "awaiting_approval"), ("s0", "failed")]
    assert block.result is not None
    assert block.result.metadata["denied"] is True
    out, block = run(None)
    assert out.told == [("s0", "awaiting_approval")]
    assert out.last.waiting_calls == (block,)


def test_without_approve_a_call_that_waits_stays_as_it_is() -> None:
    waits = ev.ToolUpdate("c0", "awaiting_approval")
    start, delta, finish = call(0)
    out = seen(reply([start, delta, waits, finish], server_call(1)), tools={"f": pytest.fail})
    assert out.told == [("c0", "identified"), ("c0", "awaiting_approval"), ("s1", "awaiting_approval")]
    assert out.end == "completed"


async def agree(_: rd.ToolCall) -> bool:
    return True


def test_an_asynchronous_approve_needs_a_loop() -> None:
    out = seen(reply(call(0)), tools={"f": pytest.fail}, approve=agree)
    assert isinstance(out.end, rd.InvalidValueError)
    assert str(out.end).startswith("an asynchronous approve needs a running asyncio loop")
    assert out.end.field == "approve"
    assert out.told[-1] == ("c0", "failed")
    source = rx.from_iterable(reply(call(0))).pipe(rd.run_tools({"f": lambda: 1}, approve=agree))
    with rd.to_iterable(source) as events:
        assert told(list(events))[-1] == ("c0", "completed")


@pytest.mark.parametrize("wrong", [{"approve": True}, {"rerun": "f"}, {"rerun": [1]}, {"rerun": 1}], ids=str)
def test_arguments_that_make_no_sense_are_refused_at_once(wrong: Any) -> None:
    (field,) = wrong
    with pytest.raises(rd.InvalidValueError, match=f"^{field}: must be"):
        rd.run_tools({}, **wrong)


async def read(source: list[rd.Event], **options: Any) -> list[rd.Event]:
    tools = options.pop("tools", {"f": lambda: "done"})
    return [
        event async for event in rd.iterate(rx.from_iterable(source).pipe(rd.run_tools(tools, **options)))
    ]


def test_on_a_loop_people_are_asked_at_once_and_answer_in_any_order() -> None:
    async def main() -> None:
        answers = {f"c{n}": asyncio.get_running_loop().create_future() for n in range(2)}
        asked, started = asyncio.Semaphore(0), asyncio.Event()

        async def approve(call: rd.ToolCall) -> Any:
            asked.release()
            return await answers[call.call_id or ""]

        async def tool() -> str:
            started.set()
            return "done"

        reading = asyncio.ensure_future(read(reply(call(0), call(1)), tools={"f": tool}, approve=approve))
        await asked.acquire()
        await asked.acquire()
        answers["c1"].set_result(True)
        await started.wait()
        answers["c0"].set_result(rd.Approval(False))
        ends = {one for one in told(await reading) if one[1] not in ("identified", "awaiting_approval")}
        assert ends == {("c1", "executing"), ("c1", "completed"), ("c0", "failed")}

    loops_run(main)


def test_on_a_loop_a_plain_approve_blocks_nobody() -> None:
    async def main() -> None:
        on_thread: list[bool] = []
        answered = threading.Event()

        def approve(_: rd.ToolCall) -> bool:
            on_thread.append(threading.current_thread() is not threading.main_thread())
            return answered.wait(60)

        asyncio.get_running_loop().call_later(0.01, answered.set)
        assert told(await read(reply(call(0)), approve=approve))[-1] == ("c0", "completed")
        assert on_thread == [True]

    loops_run(main)


def test_a_cancelled_approve_decides_nothing() -> None:
    async def approve(_: rd.ToolCall) -> bool:
        raise asyncio.CancelledError

    async def main() -> None:
        out = await read(reply(call(0)), tools={"f": pytest.fail}, approve=approve)
        assert told(out) == [("c0", "identified"), ("c0", "awaiting_approval")]

    loops_run(main)


def test_a_loop_that_is_left_cancels_an_approve_that_hangs() -> None:
    async def main() -> None:
        left: list[str] = []

        async def approve(call: rd.ToolCall) -> bool:
            try:
                return await asyncio.get_running_loop().create_future()
            finally:
                left.append(call.call_id or "")

        source = rx.from_iterable(reply(call(0))).pipe(rd.run_tools({"f": pytest.fail}, approve=approve))
        async with rd.to_async_iterable(source) as events:
            async for event in events:
                if isinstance(event, ev.MessageFinish):
                    await turns(5)
                    break
        await turns(5)
        assert left == ["c0"]

    loops_run(main)


def test_a_tool_that_is_an_agent_fails_if_its_reply_waits_for_a_person() -> None:
    inner = rx.from_iterable(reply(server_call())).pipe(rd.run_tools({}, approve=lambda _: None))
    out = seen(reply(call(0)), tools={"f": lambda: inner}, approve=lambda _: True)
    assert out.told[-1] == ("c0", "failed")
    assert result_of(out.last).content == "the agent asked for tools that were not run: theirs"
