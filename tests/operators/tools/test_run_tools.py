"""Tools run while the reply streams: order, bounds, outcomes, ends."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import SerialDisposable
from reactivex.subject import ReplaySubject, Subject
from reactivex.testing import ReactiveTest, TestScheduler
from support.bounded import bounded
from support.cost import lines_run
from support.loops import run as loops_run, turns
from support.security_page import says

import rxdelta as rd

ev = rd.events
on_next, on_completed, on_error = ReactiveTest.on_next, ReactiveTest.on_completed, ReactiveTest.on_error


def begin(index: int, name: str = "f", call_id: str | None = None) -> rd.Event:
    content = {"type": "tool_call_chunk", "id": call_id or f"c{index}", "name": name, "args": ""}
    return ev.BlockStart(index, content)


def call(index: int, name: str = "f", args: str = "{}", call_id: str | None = None) -> list[rd.Event]:
    return [begin(index, name, call_id), ev.ToolCallDelta(index, args), ev.BlockFinish(index)]


def reply(*events: list[rd.Event], reason: str = "tool_use") -> list[rd.Event]:
    return [ev.MessageStart("m"), *(event for some in events for event in some), ev.MessageFinish(reason)]


def run(events: list[rd.Event], tools: dict[str, Any], **options: Any) -> list[rd.Event]:
    """All that comes out of a synchronous source and tools that answer where they are called."""
    out: list[rd.Event] = []
    rx.from_iterable(events).pipe(bounded(rd.run_tools, tools, **options)).subscribe(out.append)
    return out


def told(events: list[Any]) -> list[tuple[str, str | None]]:
    return [(event.call_id, event.execution_status) for event in events if isinstance(event, ev.ToolUpdate)]


def results(events: list[Any]) -> dict[str, Any]:
    updates = [event for event in events if isinstance(event, ev.ToolUpdate) and event.result is not None]
    return {update.call_id: update.result.content for update in updates}


def snapshot(events: list[Any]) -> rd.Snapshot:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return fold.snapshot


def test_events_pass_unchanged_and_updates_are_woven_in() -> None:
    events = reply(call(0, args='{"a": 1}'))
    out = run(events, {"f": lambda a: a + 1})
    assert [event for event in out if not isinstance(event, ev.ToolUpdate)] == events
    assert told(out) == [("c0", "identified"), ("c0", "executing"), ("c0", "completed")]
    assert snapshot(out).tool_calls[0].result == rd.ToolResult(
        "c0", 2, duration=snapshot(out).tool_calls[0].result.duration
    )


def test_an_event_comes_before_what_it_starts() -> None:
    out = run(reply(call(0)), {"f": lambda: None})
    kinds = [(event.event, getattr(event, "execution_status", None)) for event in out]
    assert kinds == [
        ("message-start", None),
        ("content-block-start", None),
        ("tool-update", "identified"),
        ("content-block-delta", None),
        ("content-block-finish", None),
        ("tool-update", "executing"),
        ("tool-update", "completed"),
        ("message-finish", None),
    ]


def test_a_server_tool_is_never_run() -> None:
    content = {"type": "server_tool_call", "id": "s", "name": "f", "args": {}}
    out = run(reply([ev.BlockStart(0, content), ev.BlockFinish(0)], reason="stop"), {"f": pytest.fail})
    assert told(out) == []


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param(call(0, "nobody"), "there is no tool 'nobody'", id="unknown tool"),
        pytest.param(
            call(0, args='{"b": 1}'),
            "invalid arguments: missing a required argument: 'a'",
            id="bad arguments",
        ),
        pytest.param(call(0, args='{"a": '), "invalid arguments: ", id="cut arguments"),
        pytest.param(call(0, args='{"a": 0}'), "The tool failed.", id="an exception"),
    ],
)
def test_what_goes_wrong_is_a_result_for_the_model(events: list[rd.Event], why: str) -> None:
    out = run(reply(events), {"f": lambda a: 1 / a})
    assert told(out)[-1] == ("c0", "failed")
    last = snapshot(out)
    (block,) = last.blocks
    assert isinstance(block, rd.ToolCall)
    assert block.result is not None
    assert block.result.is_error
    assert block.result.content.startswith(why)
    assert last.all_tools_terminal()


class WithoutAReadableSignature:
    @property
    def __signature__(self) -> Any:
        raise NameError("an annotation that is there for type checkers only")

    def __call__(self, a: int) -> int:
        return a


def test_a_tool_whose_signature_cannot_be_read_is_called_all_the_same() -> None:
    tools = {"f": WithoutAReadableSignature()}
    assert results(run(reply(call(0, args='{"a": 1}')), tools))["c0"] == 1
    assert results(run(reply(call(0)), tools))["c0"] == "The tool failed."


@attrs.frozen
class Point:
    x: int


@dataclass
class Pair:
    a: int


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (None, None),
        ({"a": [1]}, {"a": [1]}),
        (Point(1), {"x": 1}),
        (Pair(2), {"a": 2}),
        ((1, 2), [1, 2]),
    ],
)
def test_a_value_is_any_json_or_a_record(value: Any, content: Any) -> None:
    out = run(reply(call(0)), {"f": lambda: value})
    assert told(out)[-1] == ("c0", "completed")
    assert results(out)["c0"] == content


def test_a_result_of_the_tools_own_is_taken_as_it_is() -> None:
    out = run(reply(call(0)), {"f": lambda: rd.ToolResult(content="no", is_error=True, duration=3.0)})
    assert told(out)[-1] == ("c0", "failed")
    assert snapshot(out).tool_calls[0].result == rd.ToolResult("c0", "no", is_error=True, duration=3.0)


@pytest.mark.parametrize("value", [object(), float("nan"), {1: 2}])
def test_bad_input_54_what_cannot_be_sent_to_the_model_fails(value: Any) -> None:
    out = run(reply(call(0)), {"f": lambda: value})
    assert told(out)[-1] == ("c0", "failed")


def test_calls_start_in_the_order_in_which_they_became_ready() -> None:
    order: list[str] = []
    tools: dict[str, Callable[[], object]] = {name: functools.partial(order.append, name) for name in "abc"}
    events = reply([begin(0, "a"), begin(1, "b"), begin(2, "c"), *(ev.BlockFinish(n) for n in (2, 0, 1))])
    run(events, tools)
    assert order == ["c", "a", "b"]


def virtual(
    marks: dict[float, list[rd.Event]],
    tools: Callable[[TestScheduler], dict[str, Any]],
    end: float = 900,
    error: Exception | None = None,
    disposed: float = 1000,
    **options: Any,
) -> tuple[list[Any], Any]:
    scheduler = TestScheduler()
    last: Any = on_completed(end) if error is None else on_error(end, error)
    source = scheduler.create_hot_observable(
        [on_next(at, event) for at, some in marks.items() for event in some] + [last]
    )
    seen = scheduler.start(lambda: source.pipe(rd.run_tools(tools(scheduler), **options)), disposed=disposed)
    return seen.messages, source.subscriptions


def updates_of(messages: list[Any]) -> list[tuple[float, str, str | None]]:
    return [
        (message.time, message.value.value.call_id, message.value.value.execution_status)
        for message in messages
        if message.value.kind == "N" and isinstance(message.value.value, ev.ToolUpdate)
    ]


def after(seconds: float, value: Any = "done") -> Callable[[TestScheduler], Callable[..., Any]]:
    return lambda scheduler: lambda: rx.timer(seconds, scheduler=scheduler).pipe(ops.map(lambda _: value))


def test_a_tool_starts_while_the_rest_still_streams() -> None:
    marks = {210.0: call(0), 300.0: call(1), 400.0: [ev.MessageFinish("tool_use")]}
    messages, _ = virtual(marks, lambda s: {"f": after(50)(s)}, end=450)
    assert updates_of(messages) == [
        (210, "c0", "identified"),
        (210, "c0", "executing"),
        (260, "c0", None),
        (260, "c0", "completed"),
        (300, "c1", "identified"),
        (300, "c1", "executing"),
        (350, "c1", None),
        (350, "c1", "completed"),
    ]
    assert messages[-1] == on_completed(450)


def test_the_end_waits_for_the_last_tool() -> None:
    marks = {210.0: reply(call(0))}
    messages, subscriptions = virtual(marks, lambda s: {"f": after(200)(s)}, end=220)
    assert messages[-1] == on_completed(410)
    assert subscriptions == [ReactiveTest.subscribe(200, 220)]


def test_at_most_so_many_at_once_and_the_next_as_one_ends() -> None:
    marks = {210.0: reply(*(call(n) for n in range(4)))}
    messages, _ = virtual(marks, lambda s: {"f": after(100)(s)}, end=220, max_concurrency=2)
    started = [(at, call_id) for at, call_id, status in updates_of(messages) if status == "executing"]
    assert started == [(210, "c0"), (210, "c1"), (310, "c2"), (310, "c3")]


def test_a_failure_gives_its_place_to_the_next() -> None:
    marks = {210.0: reply(call(0, "nobody"), call(1), call(2))}
    messages, _ = virtual(marks, lambda s: {"f": after(100)(s)}, end=220, max_concurrency=1)
    started = [(at, call_id) for at, call_id, status in updates_of(messages) if status == "executing"]
    assert started == [(210, "c1"), (310, "c2")]


def test_a_tool_that_hangs_is_stopped_by_the_time_limit() -> None:
    disposed: list[float] = []

    def hanging(scheduler: TestScheduler) -> dict[str, Any]:
        return {"f": lambda: rx.never().pipe(ops.finally_action(lambda: disposed.append(scheduler.clock)))}

    messages, _ = virtual({210.0: reply(call(0))}, hanging, end=220, timeout=30)
    assert updates_of(messages)[-1] == (240, "c0", "failed")
    assert "within 30 seconds" in messages[-2].value.value.result.content
    assert messages[-2].value.value.result.duration == 30
    assert disposed == [240]
    assert messages[-1] == on_completed(240)


def test_the_time_limit_counts_from_a_tools_own_start() -> None:
    marks = {210.0: reply(call(0), call(1))}
    messages, _ = virtual(marks, lambda s: {"f": after(40)(s)}, end=220, timeout=50, max_concurrency=1)
    assert [status for _, _, status in updates_of(messages)].count("completed") == 2


def test_with_message_nothing_starts_before_the_message_has_finished() -> None:
    marks = {210.0: [*call(0), *call(1)], 400.0: [ev.MessageFinish("tool_use")]}
    messages, _ = virtual(marks, lambda s: {"f": after(10)(s)}, end=450, start="message")
    assert [at for at, _, status in updates_of(messages) if status == "executing"] == [400, 400]


TAKEN_BACK = ev.BlockFinish(1, {"type": "invalid_tool_call", "error": "too late"})


def test_with_message_a_call_that_is_taken_back_before_the_end_is_not_run() -> None:
    ran: list[int] = []
    events = reply(call(0, args='{"n": 0}'), call(1, args='{"n": 1}'), [TAKEN_BACK, TAKEN_BACK])
    out = run(events, {"f": lambda n: ran.append(n)}, start="message")
    assert ran == [0]
    assert [one for one in told(out) if one[0] == "c1"] == [("c1", "identified"), ("c1", "failed")]
    assert results(out)["c1"] == "invalid arguments: too late"
    (valid,) = snapshot(out).to_message().tool_calls
    assert valid.call_id == "c0"


def test_a_call_that_is_taken_back_is_not_run_if_its_tool_has_not_started() -> None:
    """The first call's tool runs on, although it is taken back: what it does can't be undone."""
    answers: dict[int, Subject[int]] = {0: Subject(), 1: Subject()}
    source, out, ran = Subject[rd.Event](), list[rd.Event](), list[int]()

    def f(n: int) -> rx.Observable[int]:
        ran.append(n)
        return answers[n]

    source.pipe(rd.run_tools({"f": f}, max_concurrency=1)).subscribe(out.append)
    for event in [ev.MessageStart("m"), *call(0, args='{"n": 0}'), *call(1, args='{"n": 1}')]:
        source.on_next(event)
    source.on_next(attrs.evolve(TAKEN_BACK, index=0))
    source.on_next(TAKEN_BACK)
    answers[0].on_next(7)
    answers[0].on_completed()
    assert ran == [0]
    assert results(out) == {"c0": 7, "c1": "invalid arguments: too late"}
    first, second = snapshot(out).blocks
    assert (first.type, second.type) == ("tool_call", "invalid_tool_call")


def test_with_message_a_cut_stream_runs_nothing() -> None:
    out = run([ev.MessageStart("m"), *call(0)], {"f": pytest.fail}, start="message")
    assert told(out) == [("c0", "identified"), ("c0", "failed")]


def test_arguments_that_merely_parse_start_nothing() -> None:
    messages, _ = virtual(
        {210.0: [begin(0), ev.ToolCallDelta(0, "{}")], 300.0: [ev.BlockFinish(0)]},
        lambda s: {"f": after(1)(s)},
    )
    assert [at for at, _, status in updates_of(messages) if status == "executing"] == [300]


def test_the_next_block_starts_a_call_whose_arguments_are_whole() -> None:
    marks = {
        210.0: [begin(0), begin(1), ev.ToolCallDelta(0, "{}"), ev.ToolCallDelta(1, '{"a"')],
        250.0: [begin(2)],
        300.0: [ev.BlockFinish(0), ev.ToolCallDelta(1, ": 1}"), ev.BlockFinish(1)],
    }
    messages, _ = virtual(marks, lambda s: {"f": lambda **arguments: rx.never()})
    started = [(at, call_id) for at, call_id, status in updates_of(messages) if status == "executing"]
    assert started == [(250, "c0"), (300, "c1")]


def test_a_call_that_went_on_after_it_had_begun_fails() -> None:
    marks = {
        210.0: [
            begin(0),
            ev.ToolCallDelta(0, "{}"),
            begin(1),
            ev.ToolCallDelta(0, '{"a": 1}'),
            ev.BlockFinish(0),
        ]
    }
    messages, _ = virtual(marks, lambda s: {"f": lambda: rx.never()})
    assert (210, "c0", "failed") in updates_of(messages)


def test_progress_refines_the_text_and_gives_partial_results() -> None:
    def tool() -> Any:
        return rx.of(
            rd.ToolProgress(display_text="Reading"), "half", rd.ToolProgress("Nearly", "most"), "all"
        )

    out = run(reply(call(0)), {"f": tool})
    said = [
        (event.display_text, event.result and event.result.content)
        for event in out
        if isinstance(event, ev.ToolUpdate)
    ]
    assert said == [
        (None, None),
        (None, None),
        ("Reading", None),
        (None, "half"),
        ("Nearly", "most"),
        (None, "all"),
        (None, "all"),
    ]
    assert snapshot(out).tool_calls[0].display_text == "Nearly"


def test_a_source_error_fails_what_runs_and_then_passes() -> None:
    broken = ConnectionError("gone")
    stopped: list[float] = []
    messages, _ = virtual(
        {210.0: [*call(0), begin(1)]},
        lambda s: {"f": lambda: rx.never().pipe(ops.finally_action(lambda: stopped.append(s.clock)))},
        end=300,
        error=broken,
    )
    assert updates_of(messages)[-2:] == [(300, "c0", "failed"), (300, "c1", "failed")]
    assert messages[-1] == on_error(300, broken)
    assert stopped == [300]


def test_disposal_cancels_what_runs_and_tells_nothing_more() -> None:
    stopped: list[float] = []
    messages, subscriptions = virtual(
        {210.0: [*call(0), *call(1)]},
        lambda s: {
            "f": lambda: rx.timer(500, scheduler=s).pipe(ops.finally_action(lambda: stopped.append(s.clock)))
        },
        disposed=300,
    )
    assert stopped == [300, 300]
    assert subscriptions == [ReactiveTest.subscribe(200, 300)]
    assert all(message.time < 300 for message in messages)


def test_an_interruption_leaves_no_call_without_an_outcome() -> None:
    marks = {210.0: [*call(0), begin(1)], 300.0: [ev.MessageInterrupted("stop")]}
    messages, _ = virtual(marks, lambda s: {"f": lambda: rx.never()}, end=310)
    assert updates_of(messages)[-2:] == [(300, "c0", "failed"), (300, "c1", "failed")]
    assert messages[-1] == on_completed(310)


def test_a_new_attempt_forgets_the_calls_of_the_last() -> None:
    marks = {210.0: call(0), 250.0: [ev.AttemptReset(1)], 260.0: reply(call(0))}
    messages, _ = virtual(marks, lambda s: {"f": after(100)(s)}, end=300)
    assert [(at, status) for at, _, status in updates_of(messages) if status in ("completed", "failed")] == [
        (360, "completed")
    ]
    assert messages[-1] == on_completed(360)


def test_a_call_that_the_stream_cut_off_fails() -> None:
    out = run([ev.MessageStart("m"), begin(0), ev.ToolCallDelta(0, '{"a"')], {"f": pytest.fail})
    assert told(out) == [("c0", "identified"), ("c0", "failed")]


@says("It runs no call that is cut off", "**Running what shouldn't run.**")
def test_a_call_cut_by_the_token_limit_is_not_run() -> None:
    out = run(
        [ev.MessageStart("m"), begin(0), ev.ToolCallDelta(0, "{}"), ev.MessageFinish("length")],
        {"f": pytest.fail},
    )
    assert told(out)[-1] == ("c0", "failed")


def test_a_thousand_tools_that_answer_at_once_do_not_nest() -> None:
    out = run(reply(*(call(n) for n in range(1000))), {"f": lambda: 1}, max_concurrency=1, start="message")
    assert [status for _, status in told(out)].count("completed") == 1000


def test_other_choices_are_passed_on_and_not_run() -> None:
    content = {"type": "tool_call", "id": "c", "name": "f", "args": {}}
    events = [ev.BlockStart(0, content, choice=1), ev.BlockFinish(0, choice=1)]
    assert run(events, {"f": pytest.fail}) == events


# Real asyncio.


def over(events: list[rd.Event], tools: dict[str, Any], **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        async def source() -> AsyncIterator[rd.Event]:
            for event in events:
                yield event

        woven = rd.from_async_iterable(source).pipe(bounded(rd.run_tools, tools, **options))
        return [event async for event in rd.iterate(woven)]

    return asyncio.run(main())


def test_a_coroutine_function_is_awaited() -> None:
    async def tool(a: int) -> int:
        await asyncio.sleep(0)
        return a + 1

    assert results(over(reply(call(0, args='{"a": 1}')), {"f": tool})) == {"c0": 2}


def test_an_async_iterator_gives_progress() -> None:
    closed: list[bool] = []

    async def tool() -> AsyncIterator[Any]:
        try:
            yield rd.ToolProgress(display_text="Looking")
            yield "found"
        finally:
            closed.append(True)

    out = over(reply(call(0)), {"f": tool})
    assert snapshot(out).tool_calls[0].display_text == "Looking"
    assert results(out) == {"c0": "found"}
    assert closed == [True]


def test_a_plain_function_does_not_run_on_the_loops_thread() -> None:
    out = over(reply(call(0)), {"f": lambda: threading.current_thread() is threading.main_thread()})
    assert results(out) == {"c0": False}


def test_two_plain_functions_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=30)
    out = over(reply(call(0), call(1)), {"f": lambda: meeting.wait() >= 0})
    assert results(out) == {"c0": True, "c1": True}


def test_a_tool_that_returns_an_observable_or_an_awaitable_is_followed() -> None:
    async def later() -> str:
        return "later"

    out = over(reply(call(0, "a"), call(1, "b")), {"a": lambda: rx.of(1, 2), "b": lambda: later()})
    assert results(out) == {"c0": 2, "c1": "later"}


def test_an_observables_values_are_told_as_they_come_on_a_loop_too() -> None:
    out = over(reply(call(0)), {"f": lambda: rx.of("half", rd.ToolProgress("Nearly"), "all")})
    news = [event for event in out if isinstance(event, ev.ToolUpdate) and event.execution_status is None]
    assert [
        update.display_text or update.result.content
        for update in news
        if update.result or update.display_text
    ] == [
        "half",
        "Nearly",
        "all",
    ]
    assert results(over(reply(call(0)), {"f": lambda: rx.empty()})) == {"c0": None}


def test_a_callable_object_and_a_partial_are_known_as_asynchronous() -> None:
    class Tool:
        async def __call__(self, a: int = 1) -> bool:
            return asyncio.get_running_loop() is not None

    out = over(reply(call(0, "a"), call(1, "b")), {"a": Tool(), "b": functools.partial(Tool().__call__, a=2)})
    assert results(out) == {"c0": True, "c1": True}


def test_a_tool_that_cancels_itself_has_failed() -> None:
    async def tool() -> None:
        raise asyncio.CancelledError

    out = over(reply(call(0)), {"f": tool})
    assert told(out)[-1] == ("c0", "failed")


def test_leaving_cancels_a_running_coroutine_and_leaves_no_task() -> None:
    async def main() -> tuple[list[str], int]:
        log: list[str] = []
        started = asyncio.Event()

        async def tool() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                log.append("cancelled")

        events: Subject[rd.Event] = Subject()
        async with rd.to_async_iterable(events.pipe(rd.run_tools({"f": tool})), overflow="buffer"):
            for event in reply(call(0)):
                events.on_next(event)
            await started.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return log, len(asyncio.all_tasks()) - 1

    assert asyncio.run(main()) == (["cancelled"], 0)


@pytest.mark.parametrize(
    "kind", ["coroutine function", "async generator", "function that gives an awaitable"]
)
def test_an_asynchronous_tool_without_a_loop_is_told_to_the_programmer_and_not_to_the_model(
    kind: str,
) -> None:
    async def coroutine() -> None: ...

    async def generator() -> AsyncIterator[int]:
        yield 1

    tool = {"coroutine function": coroutine, "async generator": generator}.get(kind, lambda: coroutine())
    out: list[Any] = []
    ends: list[Any] = []
    source: Subject[rd.Event] = Subject()
    source.pipe(rd.run_tools({"f": tool})).subscribe(
        out.append, ends.append, lambda: ends.append("completed")
    )
    for event in reply(call(0)):
        source.on_next(event)
    (end,) = ends
    assert isinstance(end, rd.InvalidValueError)
    assert "needs a running asyncio loop" in str(end)
    assert told(out)[-1] == ("c0", "failed")
    assert "asyncio" not in results(out)["c0"]
    assert source.observers == []


# A call is acted on once.

PAY = {"type": "tool_call", "id": "c1", "name": "f", "args": {"a": 1}}
PAID, DONE = [ev.BlockStart(0, PAY), ev.BlockFinish(0)], ev.MessageFinish("tool_use")


def runs_of(events: list[rd.Event], **options: Any) -> tuple[list[Any], list[rd.Event]]:
    ran: list[Any] = []
    out = run(events, {"f": lambda **arguments: ran.append(arguments)}, **options)
    return ran, out


@pytest.mark.parametrize("start", ["ready", "message"])
@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*PAID, ev.BlockFinish(0, PAY), DONE], id="a finish with content"),
        pytest.param([*PAID, ev.BlockFinish(0), DONE], id="a finish"),
        pytest.param([*PAID, DONE, ev.BlockFinish(0, PAY)], id="a finish behind the message's"),
        pytest.param([PAID[0], DONE, ev.BlockFinish(0, PAY)], id="a late finish"),
        pytest.param([*PAID, *PAID, DONE], id="start and finish"),
        pytest.param([*PAID, DONE, *PAID, DONE], id="start and finish behind the message's"),
        pytest.param([PAID[0], *PAID, DONE], id="the start"),
        pytest.param(
            [*PAID, *call(0, call_id="c2", args="null"), *PAID, DONE], id="both, another call between"
        ),
        pytest.param(
            [*PAID, ev.BlockStart(0, {"type": "text"}), *PAID, DONE], id="both, another block between"
        ),
        pytest.param([PAID[0], begin(1, "f", "c9"), *PAID, DONE], id="the start, after it has begun to run"),
        pytest.param(
            [*PAID, begin(0, "", ""), ev.BlockDelta(0, {"id": "c1", "name": "f"}), ev.BlockFinish(0), DONE],
            id="start and finish, the id later",
        ),
        pytest.param([ev.BlockFinish(0, PAY), ev.BlockFinish(0, PAY), DONE], id="a finish without a start"),
        pytest.param(
            [ev.MessageStart("m"), *PAID, ev.MessageStart("m"), *PAID, DONE], id="the message's own start"
        ),
    ],
)
def test_a_call_that_comes_again_is_run_once(events: list[rd.Event], start: Any) -> None:
    ran, out = runs_of(events, start=start)
    assert [arguments for arguments in ran if arguments == {"a": 1}] == [{"a": 1}]
    mine = [status for call_id, status in told(out) if call_id == "c1"]
    assert mine == ["identified", "executing", "completed"]


@says("It runs no call that is cut off")
@pytest.mark.parametrize(
    "between",
    [
        pytest.param([DONE, ev.MessageStart("m2")], id="finished"),
        pytest.param([DONE, ev.MessageStart("m")], id="finished, all have one id"),
        pytest.param([DONE, ev.MessageStart()], id="finished, none has an id"),
        pytest.param([ev.MessageStart("m2")], id="cut off"),
        pytest.param([ev.MessageStart()], id="cut off, without an id"),
        pytest.param([ev.AttemptReset(1)], id="rolled back"),
        pytest.param([ev.MessageInterrupted(), ev.MessageStart("m2")], id="interrupted"),
    ],
)
def test_another_message_runs_its_own_call_at_the_same_place(between: list[rd.Event]) -> None:
    ran, _ = runs_of([ev.MessageStart("m"), *PAID, *between, *PAID, DONE])
    assert ran == [{"a": 1}, {"a": 1}]


def test_a_call_begun_behind_the_messages_end_is_not_run() -> None:
    _, out = runs_of([*reply(call(0)), *call(1)])
    assert [call_id for call_id, _ in told(out)] == ["c0"] * 3


def test_a_call_that_turns_out_to_be_a_text_fails_and_the_stream_goes_on() -> None:
    text = ev.BlockFinish(0, {"type": "text", "text": "no call"})
    out = run(reply([begin(0), text], call(1)), {"f": lambda: 1})
    assert told(out) == [
        ("c0", "identified"),
        ("c0", "failed"),
        ("c1", "identified"),
        ("c1", "executing"),
        ("c1", "completed"),
    ]
    assert results(out)["c0"] == "it turned out to be no call"


def test_a_text_that_turns_out_to_be_a_call_is_run() -> None:
    out = run(reply([ev.BlockStart(0, {"type": "text"}), ev.BlockFinish(0, PAY)]), {"f": lambda a: a})
    assert told(out) == [("c1", "identified"), ("c1", "executing"), ("c1", "completed")]


@pytest.mark.parametrize(
    "renamed", [[ev.BlockDelta(0, {"id": "c1"}), ev.BlockFinish(0)], [ev.BlockFinish(0, PAY)]]
)
def test_a_call_whose_id_changes_is_one_call(renamed: list[rd.Event]) -> None:
    out = run(reply([begin(0), *renamed, *PAID]), {"f": lambda a=0: a})
    assert told(out) == [("c0", "identified"), ("c1", "executing"), ("c1", "completed")]


def test_a_call_that_gets_the_id_of_one_that_has_run_fails() -> None:
    out = run(reply([*PAID, begin(0, "f", "c2"), ev.BlockFinish(0, PAY)]), {"f": lambda a: a})
    assert told(out)[-2:] == [("c2", "identified"), ("c2", "failed")]


@pytest.mark.parametrize("choice", [None, 0, 1])
def test_an_interruption_stops_the_tools_of_its_choice(choice: int | None) -> None:
    marks = {210.0: [*call(0), begin(1)], 220.0: [ev.MessageInterrupted(choice=choice)]}
    messages, _ = virtual(marks, lambda s: {"f": after(100)(s)}, end=230)
    stopped = [(220.0, "c0", "failed"), (220.0, "c1", "failed")]
    went_on = [(230.0, "c1", "failed"), (310.0, "c0", "completed")]
    ended = [update for update in updates_of(messages) if update[2] in ("completed", "failed")]
    assert ended == (went_on if choice == 1 else stopped)


def test_a_call_that_turns_out_to_be_the_providers_own_is_not_run_and_has_not_failed() -> None:
    theirs = ev.BlockFinish(0, {"type": "server_tool_call", "id": "c0", "name": "f", "args": {}})
    out = run(reply([begin(0), theirs], reason="stop"), {"f": pytest.fail})
    assert told(out) == [("c0", "identified")]


SERVER = ev.BlockStart(0, {"type": "server_tool_call_chunk", "id": "c1", "name": "f", "args": '{"a": 1}'})
CLIENT = ev.BlockFinish(0, {"type": "tool_call", "name": "f"})


@pytest.mark.parametrize(
    ("events", "ran"),
    [
        pytest.param([SERVER, CLIENT], [{"a": 1}], id="turns out to be the client's"),
        pytest.param([SERVER, ev.BlockFinish(0), CLIENT], [], id="but not after its end"),
        pytest.param([SERVER, begin(1, "g", "c9"), ev.BlockFinish(0)], [], id="whole before the next block"),
        pytest.param([SERVER], [], id="left open"),
        pytest.param([SERVER, ev.MessageInterrupted()], [], id="interrupted"),
    ],
)
def test_a_call_that_the_provider_runs(events: list[rd.Event], ran: list[Any]) -> None:
    got, out = runs_of([*events, DONE])
    assert got == ran
    mine = [status for call_id, status in told(out) if call_id == "c1"]
    assert (mine == ["identified", "executing", "completed"]) if ran else mine == []


def test_a_call_that_the_next_message_cuts_off_fails() -> None:
    out = run([ev.MessageStart("m"), begin(0), *reply(call(0, call_id="c1"))], {"f": lambda: 1})
    assert told(out) == [
        ("c0", "identified"),
        ("c0", "failed"),
        ("c1", "identified"),
        ("c1", "executing"),
        ("c1", "completed"),
    ]


def test_a_running_tool_is_left_alone_by_another_call_at_its_place() -> None:
    marks = {210.0: reply(call(0)), 220.0: reply(call(0, call_id="other"))}
    messages, _ = virtual(marks, lambda s: {"f": after(100)(s)}, end=230)
    ended = [(at, call_id, status) for at, call_id, status in updates_of(messages) if status == "completed"]
    assert ended == [(310, "c0", "completed"), (320, "other", "completed")]


def test_a_reset_behind_a_finished_message_is_the_next_ones_and_stops_none_of_its_tools() -> None:
    marks = {210.0: reply(call(0)), 220.0: [ev.AttemptReset(1)], 230.0: reply(call(0, call_id="c1"))}
    messages, _ = virtual(marks, lambda s: {"f": after(100)(s)}, end=240)
    ended = [(at, call_id) for at, call_id, status in updates_of(messages) if status == "completed"]
    assert ended == [(310, "c0"), (330, "c1")]


def test_an_invalid_call_whose_arguments_are_an_object_is_not_run() -> None:
    content = {"type": "invalid_tool_call", "id": "c0", "name": "f", "args": {"a": 1}, "error": "no"}
    out = run(reply([ev.BlockStart(0, content), ev.BlockFinish(0, content)]), {"f": pytest.fail})
    assert told(out)[-1:] == [("c0", "failed")]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (rd.Snapshot(), "a Snapshot; put it in front of scan_deltas()"),
        ({"type": "message_start"}, "a dict; decode() makes events of chunks"),
        (None, "None; decode() makes events of chunks"),
    ],
)
def test_a_value_that_is_no_event_ends_the_stream_with_one_error_that_names_the_operator(
    value: Any, what: str
) -> None:
    source: Subject[Any] = Subject()
    out: list[Any] = []
    ends: list[Any] = []
    source.pipe(rd.run_tools({"f": lambda: rx.never()})).subscribe(out.append, ends.append)
    for event in [*call(0), value, *call(1)]:
        source.on_next(event)
    (end,) = ends
    assert type(end) is rd.InvalidValueError
    assert str(end) == f"run_tools() reads events, and got {what}"
    assert told(out) == [("c0", "identified"), ("c0", "executing"), ("c0", "failed")]
    assert value not in out


# A call that is somebody else's.


def test_an_unknown_tool_is_told_without_naming_the_others() -> None:
    out = run(reply(call(0, "nobody")), {"drop_database": pytest.fail, "get_salary": pytest.fail})
    assert results(out) == {"c0": "there is no tool 'nobody'"}


@pytest.mark.parametrize("start", ["ready", "message"])
@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param(call(0, "theirs"), id="whole"),
        pytest.param([begin(0, "theirs")], id="left open"),
        pytest.param(call(0, "theirs", args="{"), id="invalid"),
        pytest.param([ev.BlockFinish(0, {**PAY, "id": "c0", "name": "theirs"})], id="without a start"),
        pytest.param([begin(0, "theirs"), begin(0, "theirs", "c9"), ev.BlockFinish(0)], id="begun again"),
        pytest.param([begin(0, "theirs"), ev.BlockFinish(0, {"type": "text"})], id="no call"),
    ],
)
def test_a_call_that_is_left_is_not_spoken_of_nor_waited_for(theirs: list[rd.Event], start: Any) -> None:
    events = reply(theirs, call(1))
    out = run(events, {"f": lambda: 1}, unknown="leave", start=start)
    assert [event for event in out if not isinstance(event, ev.ToolUpdate)] == events
    assert told(out) == [("c1", "identified"), ("c1", "executing"), ("c1", "completed")]


@pytest.mark.parametrize("end", [[ev.MessageInterrupted("stop")], []])
def test_a_call_that_is_left_does_not_fail_where_the_stream_is_cut(end: list[rd.Event]) -> None:
    assert told(run([begin(0, "theirs"), *end], {"f": pytest.fail}, unknown="leave")) == []


def test_a_call_whose_name_comes_late_is_ours_when_it_has_come() -> None:
    late = [begin(0, ""), ev.BlockDelta(0, {"name": "f"}), ev.BlockFinish(0)]
    out = run(reply(late), {"f": lambda: 1}, unknown="leave")
    assert told(out) == [("c0", "identified"), ("c0", "executing"), ("c0", "completed")]


def test_two_in_a_row_share_the_calls_between_them() -> None:
    events = reply(call(0, "a"), call(1, "b"), call(2, "c"))
    out: list[Any] = []
    rx.from_iterable(events).pipe(
        rd.run_tools({"a": lambda: "first"}, unknown="leave"),
        rd.run_tools({"b": lambda: "second"}, unknown="leave"),
    ).subscribe(out.append)
    assert results(out) == {"c0": "first", "c1": "second"}
    last = snapshot(out)
    assert [one.execution_status() for one in last.tool_calls] == ["completed", "completed", "identified"]


# What is told of a failure.

SECRET = "postgres://admin:hunter2@db"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(SECRET),
        TypeError(SECRET),
        rd.ProviderError(SECRET),
        rd.InvalidValueError(SECRET),
        asyncio.InvalidStateError(SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_tool_raises_stays_here_and_is_logged(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    out = run(reply(call(0)), {"f": raising(error)})
    assert results(out) == {"c0": "The tool failed."}
    (record,) = caplog.records
    assert record.name == "rxdelta"
    assert "'f'" in record.getMessage().split()
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_call_that_fits_no_function_is_logged_for_the_programmer(caplog: pytest.LogCaptureFixture) -> None:
    run(reply([*call(0, "nobody"), *call(1, args='{"b": 1}')]), {"f": lambda a: a})
    assert [record.getMessage() for record in caplog.records] == [
        "the model called the tool 'nobody', which run_tools() doesn't have",
        "the arguments of a call don't fit the tool 'f': missing a required argument: 'a'",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def raising(error: BaseException) -> Callable[..., Any]:
    def tool(**arguments: Any) -> Any:
        raise error

    return tool


def test_what_a_tool_says_on_purpose_goes_to_the_model(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Any] = []
    out = run(
        reply(call(0)),
        {"f": raising(rd.ToolError("there is no such city"))},
        on_error=lambda call, error: asked.append(error) or "no",
    )
    assert told(out)[-1] == ("c0", "failed")
    assert results(out) == {"c0": "there is no such city"}
    assert (asked, caplog.records) == ([], [])


def test_on_error_says_what_the_model_is_told() -> None:
    asked: list[tuple[rd.ToolCall, Exception]] = []

    def say(call: rd.ToolCall, error: Exception) -> str:
        asked.append((call, error))
        return f"{call.name} of {call.arguments_as_map()['a']} is out of order"

    error = KeyError(SECRET)
    events = [
        begin(0),
        ev.ToolCallDelta(0, '{"a": 1}'),
        begin(1),
        ev.BlockFinish(0),
        *call(2, args='{"a": 2}'),
    ]
    out = run(events, {"f": raising(error)}, on_error=say)
    assert results(out)["c0"] == "f of 1 is out of order"
    assert results(out)["c2"] == "f of 2 is out of order"
    assert [(call.call_id, call.status, given) for call, given in asked] == [
        ("c0", "complete", error),
        ("c2", "complete", error),
    ]


@pytest.mark.parametrize(
    "say",
    [raising(ValueError("no")), lambda call, error: None, lambda call, error: b"no", lambda: "no"],
    ids=["raises", "nothing", "no text", "takes nothing"],
)
def test_an_on_error_that_fails_leaves_the_usual_words(say: Any, caplog: pytest.LogCaptureFixture) -> None:
    out = run(reply(call(0)), {"f": raising(RuntimeError(SECRET))}, on_error=say)
    assert results(out) == {"c0": "The tool failed."}
    assert len(caplog.records) == 2


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnprintableToolError(rd.ToolError):
    __str__ = Unprintable.__str__


class Opaque:
    def __repr__(self) -> str:
        return SECRET


class Torn:
    def model_dump(self, mode: str) -> object:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("value", [Opaque(), {"a": Opaque()}, {1}, Torn()])
@pytest.mark.parametrize("partial", [False, True])
def test_a_result_that_is_no_json_is_not_shown(value: Any, partial: bool) -> None:
    tool = (lambda: rx.concat(rx.just(value), rx.never())) if partial else (lambda: value)
    out = run(reply(call(0)), {"f": tool})
    assert results(out) == {"c0": "The tool's result cannot be written as JSON."}
    assert told(out)[-1] == ("c0", "failed")


def test_a_display_text_that_is_none_fails_in_the_tool() -> None:
    with pytest.raises(rd.InvalidValueError):
        rd.ToolProgress(display_text=5)  # type: ignore[arg-type]


# Whatever a tool raises.


class Own(BaseException):
    pass


RAISED: dict[str, Callable[[], BaseException]] = {
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "a BaseException": Own,
    "a BaseExceptionGroup": lambda: BaseExceptionGroup("some", [Own()]),
    "an error of ours": lambda: rd.ProviderError("busy"),
    "an error without text": Unprintable,
    "a ToolError without text": lambda: UnprintableToolError("no"),
}
OURS = ("The tool failed.", "the tool was cancelled")


def coroutine_that(error: BaseException) -> Callable[[], Any]:
    async def tool() -> Any:
        await asyncio.sleep(0)
        raise error

    return tool


def generator_that(error: BaseException) -> Callable[[], Any]:
    async def tool() -> AsyncIterator[Any]:
        yield rd.ToolProgress(display_text="Looking")
        raise error

    return tool


def subscription_that(error: BaseException) -> Callable[[], Any]:
    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        raise error

    return lambda: rx.Observable(subscribe)


KINDS: dict[str, Callable[[BaseException], Callable[[], Any]]] = {
    "plain": raising,
    "coroutine": coroutine_that,
    "async generator": generator_that,
    "Observable": lambda error: lambda: rx.throw(error),  # type: ignore[arg-type]
    "Observable that cannot be subscribed to": subscription_that,
    "plain that gives an awaitable": lambda error: lambda: coroutine_that(error)(),
    "partial": lambda error: functools.partial(coroutine_that(error)),
}
ASYNCHRONOUS = ("coroutine", "async generator", "plain that gives an awaitable", "partial")


async def on_the_loop(pipeline: rx.Observable[Any]) -> tuple[list[Any], list[Any]]:
    out: list[Any] = []
    ends: list[Any] = []
    ended = asyncio.Event()

    def end(how: object) -> None:
        ends.append(how)
        ended.set()

    with pipeline.subscribe(out.append, end, lambda: end("completed")):
        await asyncio.wait_for(ended.wait(), 30)
        await turns()
    return out, ends


@pytest.mark.parametrize("where", ["loop", "thread", "nowhere"])
@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_tool_raises_the_call_fails_and_the_stream_ends_once(
    kind: str, error: str, where: str
) -> None:
    tools = {"f": KINDS[kind](RAISED[error]()), "g": lambda: 1}
    pipeline = rx.from_iterable(reply(call(0), call(1, "g"))).pipe(
        rd.run_tools(tools, on_error=lambda call, error: "The tool failed.")
    )
    out: list[Any] = []
    ends: list[Any] = []
    if where == "loop":
        out, ends = loops_run(lambda: on_the_loop(pipeline))
    elif where == "thread":
        with rd.to_iterable(pipeline, overflow="buffer") as events:
            out = list(events)
        ends = ["completed"]
    else:
        pipeline.subscribe(out.append, ends.append, lambda: ends.append("completed"))
    statuses = told(out)
    if where == "nowhere" and kind in ASYNCHRONOUS:
        assert [type(end) for end in ends] == [rd.InvalidValueError]
    else:
        assert ends == ["completed"]
        assert results(out)["c1"] == 1
    assert [status for call_id, status in statuses if call_id == "c0"][-1] == "failed"
    assert results(out)["c0"] in (*OURS, "the stream broke off")


def own_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def cancels_itself() -> None:
    own_task().cancel()
    await asyncio.sleep(0)


async def cancels_itself_as_an_iterator() -> AsyncIterator[int]:
    yield 1
    own_task().cancel()
    await asyncio.sleep(0)


async def cancels_itself_behind_a_time_limit() -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    await cancels_itself()


async def is_cancelled_by_others() -> None:
    asyncio.get_running_loop().call_soon(own_task().cancel)
    await asyncio.Event().wait()


async def is_cancelled_by_others_and_itself() -> None:
    try:
        await is_cancelled_by_others()
    finally:
        own_task().cancel()


CANCELLED = "the tool was cancelled"


@pytest.mark.parametrize(
    ("tool", "waiting"),
    [
        (cancels_itself, "done"),
        (cancels_itself_as_an_iterator, "done"),
        (cancels_itself_behind_a_time_limit, "done"),
        (is_cancelled_by_others, CANCELLED),
        (is_cancelled_by_others_and_itself, CANCELLED),
    ],
)
def test_a_tool_that_is_cancelled_has_failed_and_if_others_did_it_so_have_those_that_wait(
    tool: Any, waiting: str
) -> None:
    async def main() -> tuple[list[Any], list[Any]]:
        tools = {"f": tool, "g": lambda: "done"}
        calls = reply(call(0), call(1, "g"), call(2, "g"))
        return await on_the_loop(rx.from_iterable(calls).pipe(rd.run_tools(tools, max_concurrency=1)))

    out, ends = loops_run(main)
    assert ends == ["completed"]
    assert results(out) == {"c0": CANCELLED, "c1": waiting, "c2": waiting}


def test_a_tool_that_cancels_itself_leaves_those_beside_it_alone() -> None:
    async def slow() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "done"

    out = over(reply(call(0), call(1, "g")), {"f": cancels_itself, "g": slow})
    assert results(out) == {"c0": CANCELLED, "c1": "done"}


@pytest.mark.parametrize("swallows", [False, True])
def test_the_end_of_the_program_starts_no_tool_that_waits(swallows: bool) -> None:
    """`asyncio.run` cancels all tasks when its coroutine has ended, also that of a tool which cancels itself then."""
    out: list[Any] = []
    started = asyncio.Event()

    async def tool() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            if swallows:
                await cancels_itself()

    async def main() -> None:
        tools = {"f": tool, "g": pytest.fail}
        calls = rx.from_iterable(reply(call(0), call(1, "g")))
        calls.pipe(rd.run_tools(tools, max_concurrency=1)).subscribe(out.append)
        await started.wait()

    asyncio.run(main())
    assert results(out) == {"c0": CANCELLED, "c1": CANCELLED}


def test_a_name_of_a_tool_is_in_the_log_as_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """A name may come from a server of tools that isn't ours."""
    name = "f\n\x1b[2JERROR all is well"
    run(reply(call(0, name), call(1, name, '{"a": 1}')), {name: lambda: object()})
    run(reply(call(0, name)), {name: raising(ValueError("no"))}, on_error=lambda call, error: None)
    run(reply(call(0, name)), {})
    assert len(caplog.records) == 5
    for record in caplog.records:
        assert repr(name) in record.getMessage()
        assert record.getMessage().isprintable()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_tool_reaches_the_program_and_the_call_has_failed(
    kind: type[BaseException],
) -> None:
    out: list[Any] = []

    async def main() -> None:
        events = rx.from_iterable(reply(call(0)))
        await rd.for_each(events.pipe(rd.run_tools({"f": coroutine_that(kind())})), out.append)

    with pytest.raises(kind):
        asyncio.run(main())
    tools = {"f": raising(kind())}
    with pytest.raises(kind):
        rx.from_iterable(reply(call(0))).pipe(rd.run_tools(tools)).subscribe(out.append)
    assert told(out)[-1] == ("c0", "failed")


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_tool_that_exits_on_another_thread_has_failed(kind: str) -> None:
    pipeline = rx.from_iterable(reply(call(0))).pipe(rd.run_tools({"f": KINDS[kind](SystemExit(3))}))
    with rd.to_iterable(pipeline, overflow="buffer") as events:
        assert results(list(events)) == {"c0": "The tool failed."}


# An observer that raises.


def raises_at(
    status: str, error: BaseException
) -> Callable[[rx.Observable[rd.Event]], rx.Observable[rd.Event]]:
    """An operator of somebody's whose `on_next` raises at a call's news."""

    def apply(source: rx.Observable[rd.Event]) -> rx.Observable[rd.Event]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            def on_next(event: Any) -> None:
                if isinstance(event, ev.ToolUpdate) and (event.execution_status or "progress") == status:
                    raise error
                observer.on_next(event)

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return rx.Observable(subscribe)

    return apply


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("coroutine", "executing"),
        ("coroutine", "completed"),
        ("plain", "completed"),
        ("generator", "progress"),
        ("generator", "completed"),
        ("Observable", "progress"),
        ("Observable", "completed"),
        ("timeout", "failed"),
    ],
)
def test_what_an_observer_raises_at_a_tools_news_is_raised_where_the_pipeline_is_read(
    kind: str, status: str
) -> None:
    log: list[str] = []

    async def coroutine() -> int:
        await asyncio.sleep(0.001)
        return 1

    async def generator() -> AsyncIterator[int]:
        await asyncio.sleep(0.001)
        yield 1

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cancelled")

    async def source() -> AsyncIterator[rd.Event]:
        try:
            for event in [*call(0, "hangs"), *call(1)]:
                yield event
            await asyncio.Event().wait()
        finally:
            log.append("closed")

    tools = {
        "hangs": hangs,
        "f": {
            "coroutine": coroutine,
            "plain": lambda: 1,
            "generator": generator,
            "Observable": lambda: rx.timer(0.001),
            "timeout": lambda: rx.never(),
        }[kind],
    }
    boom = RuntimeError("mine")

    async def main() -> None:
        events = rd.from_async_iterable(source).pipe(
            rd.run_tools(tools, timeout=0.01 if kind == "timeout" else None), raises_at(status, boom)
        )
        with pytest.raises(RuntimeError) as caught:
            await asyncio.wait_for(rd.for_each(events, lambda event: None), 30)
        assert caught.value is boom

    loops_run(main)
    assert sorted(log) == (["closed"] if status == "executing" else ["cancelled", "closed"])


def test_what_an_observer_raises_within_a_tools_start_goes_to_who_started_it() -> None:
    source: Subject[rd.Event] = Subject()
    boom = RuntimeError("mine")
    events = source.pipe(rd.run_tools({"f": lambda: rx.of(1, 2)}), raises_at("progress", boom))
    events.subscribe(lambda event: None)
    with pytest.raises(RuntimeError) as caught:
        for event in call(0):
            source.on_next(event)
    assert caught.value is boom
    assert source.observers == []


# Order, threads, and readers that leave.


def test_no_lock_is_held_while_a_tool_runs() -> None:
    source: Subject[rd.Event] = Subject()
    out: list[Any] = []

    def tool() -> bool:
        other = threading.Thread(target=source.on_next, args=(ev.MessageFinish("tool_use"),), daemon=True)
        other.start()
        other.join(30)
        return isinstance(out[-1], ev.MessageFinish)

    source.pipe(rd.run_tools({"f": tool})).subscribe(out.append)
    for event in call(0):
        source.on_next(event)
    assert results(out) == {"c0": True}


def test_the_time_limit_fails_the_call_of_a_tool_that_runs_without_a_loop() -> None:
    out: list[Any] = []
    failed = threading.Event()

    def tool() -> str:
        return "late" if failed.wait(30) else "too late"

    def listen(event: Any) -> None:
        out.append(event)
        if getattr(event, "execution_status", None) == "failed":
            failed.set()

    rx.from_iterable(reply(call(0), call(1, "g"))).pipe(
        rd.run_tools({"f": tool, "g": lambda: 1}, timeout=0.01)
    ).subscribe(listen)
    assert results(out) == {"c0": "the tool did not end within 0.01 seconds", "c1": 1}


def test_progress_is_told_while_a_tool_without_a_loop_runs() -> None:
    out: list[Any] = []
    seen: list[int] = []

    def tool() -> Any:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            for number in range(3):
                observer.on_next(number)
                seen.append(out[-1].result.content)
            observer.on_completed()

        return rx.Observable(subscribe)

    rx.from_iterable(reply(call(0))).pipe(rd.run_tools({"f": tool})).subscribe(out.append)
    assert seen == [0, 1, 2]


def test_progress_is_emitted_while_a_tool_runs_behind_an_observer_that_pushes_the_next_event() -> None:
    source: Subject[rd.Event] = Subject()
    events = iter(reply(call(0), call(1)))
    out: list[Any] = []
    emitted: list[bool] = []

    def tool() -> Any:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            observer.on_next("progress")
            emitted.append(isinstance(out[-1], ev.ToolUpdate) and out[-1].result is not None)
            observer.on_completed()

        return rx.Observable(subscribe)

    def feed(event: Any) -> None:
        out.append(event)
        following = next(events, None)
        if following is not None:
            source.on_next(following)

    source.pipe(rd.run_tools({"f": tool})).subscribe(feed)
    source.on_next(next(events))
    assert emitted == [True, True]


def test_an_observer_that_leaves_at_a_tools_progress_stops_that_tool() -> None:
    log: list[Any] = []

    async def tool() -> AsyncIterator[Any]:
        try:
            yield 1
            await asyncio.sleep(0)
            log.append("went on")
        finally:
            log.append("closed")

    async def main() -> None:
        events = rx.concat(rx.from_iterable(call(0)), rx.never()).pipe(rd.run_tools({"f": tool}))
        news = events.pipe(ops.filter(lambda event: getattr(event, "result", None) is not None))
        await asyncio.wait_for(rd.for_each(news.pipe(ops.take(1)), log.append), 30)
        await turns()

    loops_run(main)
    assert log[1:] == ["closed"]


def synchronous(events: list[rd.Event]) -> rx.Observable[rd.Event]:
    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        for event in events:
            observer.on_next(event)
        observer.on_completed()

    return rx.Observable(subscribe)


def shared_before(events: list[rd.Event]) -> rx.Observable[rd.Event]:
    source: Subject[rd.Event] = Subject()
    shared = source.pipe(rd.share_events())
    shared.subscribe()
    for event in events:
        source.on_next(event)
    return shared


def replayed(events: list[rd.Event]) -> rx.Observable[rd.Event]:
    source: ReplaySubject[rd.Event] = ReplaySubject()
    for event in events:
        source.on_next(event)
    return source


@pytest.mark.parametrize("source", [synchronous, shared_before, replayed])
@pytest.mark.parametrize(
    "leave",
    [ops.take(1), ops.take_while(lambda event: not isinstance(event, ev.BlockStart))],
    ids=["take", "take_while"],
)
def test_no_tool_runs_once_the_reader_has_gone(source: Any, leave: Any) -> None:
    ran: list[int] = []
    events = source(reply(call(0))).pipe(rd.run_tools({"f": lambda: ran.append(1)}), leave)
    events.subscribe(lambda event: None)
    assert ran == []


@pytest.mark.parametrize("how", ["the reader leaves", "the attempt is given up"])
def test_a_tool_does_not_start_that_is_called_off_when_its_start_is_told(how: str) -> None:
    ran: list[int] = []
    source: Subject[rd.Event] = Subject()
    subscription = SerialDisposable()

    def call_off(event: rd.Event) -> None:
        if isinstance(event, ev.ToolUpdate) and event.execution_status == "executing":
            if how == "the reader leaves":
                subscription.dispose()
            else:
                source.on_next(ev.AttemptReset(1))

    subscription.disposable = source.pipe(rd.run_tools({"f": lambda: ran.append(1)})).subscribe(call_off)
    for event in call(0):
        source.on_next(event)
    assert ran == []


@pytest.mark.parametrize("source", [synchronous, shared_before, replayed])
def test_the_tools_of_a_source_that_says_all_at_once_run(source: Any) -> None:
    out: list[Any] = []
    ends: list[str] = []
    source(reply(call(0), call(1))).pipe(rd.run_tools({"f": lambda: 1}, max_concurrency=1)).subscribe(
        out.append, on_completed=lambda: ends.append("completed")
    )
    assert results(out) == {"c0": 1, "c1": 1}
    assert ends == (["completed"] if source is synchronous else [])


# Limits, and what it costs.


@pytest.mark.parametrize(
    ("events", "limits"),
    [
        (call(0, args='{"a": "long"}'), rd.Limits(block_chars=4)),
        (call(9), rd.Limits(index=9)),
        ([*call(0), begin(1), begin(2)], rd.Limits(blocks=2)),
        ([ev.BlockFinish(0, PAY), ev.BlockFinish(1, {**PAY, "id": "c2"})], rd.Limits(blocks=1)),
    ],
    ids=["block_chars", "index", "blocks", "blocks without a start"],
)
def test_what_exceeds_a_limit_ends_the_stream_and_what_runs(
    events: list[rd.Event], limits: rd.Limits
) -> None:
    source: Subject[rd.Event] = Subject()
    stopped: list[bool] = []
    out: list[Any] = []
    ends: list[Any] = []
    tools = {"f": lambda **arguments: rx.never().pipe(ops.finally_action(lambda: stopped.append(True)))}
    source.pipe(rd.run_tools(tools), rd.with_limits(limits)).subscribe(out.append, ends.append, ends.append)
    for event in events:
        source.on_next(event)
    assert [type(end) for end in ends] == [rd.errors.LimitExceededError]
    assert source.observers == []
    assert {status for _, status in told(out)[-1:]} <= {"failed"}
    assert len(stopped) == [status for _, status in told(out)].count("executing")


@pytest.mark.parametrize("limits", [rd.Limits(blocks=1), rd.Limits(block_chars=3)])
def test_limits_in_front_hold_unless_there_are_some_behind(limits: rd.Limits) -> None:
    from rxdelta.testing import sample_chunks

    async def end_of(**own: Any) -> Any:
        chunks = rd.from_async_iterable(sample_chunks("weather"))
        events = chunks.pipe(
            rd.decode("anthropic-messages"),
            rd.with_limits(limits),
            bounded(rd.run_tools, {}, unknown="leave", **own),
        )
        return (await on_the_loop(events))[1]

    assert [type(end) for end in loops_run(end_of)] == [rd.errors.LimitExceededError]
    assert loops_run(lambda: end_of(limits=rd.Limits())) == ["completed"]


def test_a_call_that_begins_anew_is_one_block() -> None:
    events = reply([begin(0), *call(0)], call(1))
    assert results(run(events, {"f": lambda: 1}, limits=rd.Limits(blocks=2))) == {"c0": 1, "c1": 1}


@pytest.mark.parametrize("args", ['{"a": 1', '{"a": 1}', ""], ids=["unfinished", "whole", "none"])
def test_many_open_calls_cost_what_they_are(args: str) -> None:
    def cost(count: int) -> int:
        events: list[rd.Event] = [ev.MessageStart("m")]
        for number in range(count):
            events += [begin(number), ev.ToolCallDelta(number, args)]
        events.append(ev.MessageFinish("tool_use"))
        source: Subject[rd.Event] = Subject()
        source.pipe(rd.run_tools({"f": lambda a=0: a}, max_concurrency=4)).subscribe(lambda event: None)

        def play() -> None:
            for event in events:
                source.on_next(event)
            source.on_completed()

        return lines_run(play)

    few, many = cost(100), cost(400)
    assert many < 4.5 * few


def test_a_call_that_is_gone_on_with_behind_another_is_whole_when_the_next_begins() -> None:
    marks = {
        210.0: [begin(0), ev.ToolCallDelta(0, '{"a"'), begin(1), ev.ToolCallDelta(1, "{}")],
        220.0: [begin(2)],
        230.0: [ev.ToolCallDelta(0, ": 1}")],
        240.0: [begin(3)],
    }
    messages, _ = virtual(marks, lambda s: {"f": lambda **arguments: rx.never()})
    started = [(at, call_id) for at, call_id, status in updates_of(messages) if status == "executing"]
    assert started == [(220, "c1"), (240, "c0")]


@pytest.mark.parametrize("end", [ev.StreamError("overloaded"), ev.MessageStart("m2")])
def test_an_event_that_ends_a_message_comes_behind_the_failure_of_its_calls(end: rd.Event) -> None:
    open_call = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "f", "args": ""})
    got: list[Any] = []
    rx.of(ev.MessageStart("m1"), open_call, end).pipe(rd.run_tools({"f": lambda: 1})).subscribe(got.append)
    failure = next(event for event in got if getattr(event, "execution_status", None) == "failed")
    assert got.index(failure) < got.index(end)
