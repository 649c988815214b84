"""Tools run while the reply streams: order, bounds, outcomes, ends."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest, TestScheduler

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
    rx.from_iterable(events).pipe(rd.run_tools(tools, **options)).subscribe(out.append)
    return out


def told(events: list[Any]) -> list[tuple[str, str | None]]:
    return [(event.call_id, event.execution_status) for event in events if isinstance(event, ev.ToolUpdate)]


def results(events: list[Any]) -> dict[str, Any]:
    updates = [event for event in events if isinstance(event, ev.ToolUpdate) and event.result is not None]
    return {update.call_id: update.result.content for update in updates}


def snapshot(events: list[Any]) -> rd.MessageDelta:
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


def test_a_stream_without_calls_is_untouched() -> None:
    events = reply(
        [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi"), ev.BlockFinish(0)], reason="stop"
    )
    assert run(events, {}) == events


def test_an_empty_stream_completes() -> None:
    done: list[bool] = []
    rx.empty().pipe(rd.run_tools({})).subscribe(on_completed=lambda: done.append(True))
    assert done == [True]


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


def test_a_call_cut_by_the_token_limit_is_not_run() -> None:
    out = run(
        [ev.MessageStart("m"), begin(0), ev.ToolCallDelta(0, "{}"), ev.MessageFinish("length")],
        {"f": pytest.fail},
    )
    assert told(out)[-1] == ("c0", "failed")


def test_an_observer_that_disposes_within_an_update_stops_everything() -> None:
    subject: Subject[rd.Event] = Subject()
    seen: list[Any] = []
    subscription = rx.disposable.SerialDisposable()

    def leave(event: Any) -> None:
        seen.append(event)
        if isinstance(event, ev.ToolUpdate) and event.execution_status == "executing":
            subscription.dispose()

    subscription.disposable = subject.pipe(rd.run_tools({"f": pytest.fail})).subscribe(leave)
    for event in reply(call(0)):
        subject.on_next(event)
    assert told(seen) == [("c0", "identified"), ("c0", "executing")]


def test_a_pipeline_can_be_subscribed_twice() -> None:
    pipeline = rx.from_iterable(reply(call(0))).pipe(rd.run_tools({"f": lambda: 1}), ops.to_list())
    assert told(pipeline.run()) == told(pipeline.run())


def test_a_thousand_tools_that_answer_at_once_do_not_nest() -> None:
    out = run(reply(*(call(n) for n in range(1000))), {"f": lambda: 1}, max_concurrency=1, start="message")
    assert [status for _, status in told(out)].count("completed") == 1000


@pytest.mark.parametrize(
    "wrong",
    [{"max_concurrency": 0}, {"timeout": 0}, {"timeout": -1}, {"start": "now"}, {"max_concurrency": 1.5}],
)
def test_an_argument_that_cannot_be_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(rd.InvalidValueError):
        rd.run_tools({}, **wrong)


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

        woven = rd.from_async_iterable(source).pipe(rd.run_tools(tools, **options))
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


def test_the_fourth_pipeline() -> None:
    """Each tool starts as soon as its own arguments are whole; the picture stays until the last has ended."""

    async def main() -> list[rd.MessageDelta]:
        async def get_forecast(city: str, **_: Any) -> str:
            return f"sun in {city}"

        from rxdelta.testing import sample_chunks

        events = rd.from_async_iterable(sample_chunks("weather")).pipe(rd.decode("anthropic-messages"))
        seen: list[rd.MessageDelta] = []
        await rd.for_each(
            events.pipe(
                rd.run_tools({"get_forecast": get_forecast}, max_concurrency=4),
                rd.scan_deltas(),
                rd.until_all_tools_terminal(),
            ),
            seen.append,
        )
        return seen

    last = asyncio.run(main())[-1]
    assert [call.result.content for call in last.tool_calls if call.result] == [
        "sun in Lisbon",
        "sun in Oslo",
    ]
    assert last.all_tools_terminal()
