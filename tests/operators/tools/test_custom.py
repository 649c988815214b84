"""What a tool says to the application: events among its values, which are no part of its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import attrs
import pytest
import reactivex as rx
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import rxdelta as rd

ev = rd.events

READING = ev.Custom("status", "Reading", "s")
DONE = ev.Custom("status", "Done", "s")
PASSING = ev.Custom("progress", 0.5, transient=True)
ASKED: list[rd.Event] = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "tool_call", "id": "c0", "name": "f", "args": {}}),
    ev.BlockFinish(0),
    ev.MessageFinish("tool_use"),
]


def in_a_generator(*values: Any) -> Callable[[], Any]:
    def tool() -> Iterator[Any]:
        yield from values

    return tool


def in_an_async_generator(*values: Any) -> Callable[[], Any]:
    async def tool() -> AsyncIterator[Any]:
        for value in values:
            yield value

    return tool


def in_an_observable(*values: Any) -> Callable[[], Any]:
    return lambda: rx.from_iterable(values)


KINDS = [in_a_generator, in_an_async_generator, in_an_observable]
each_kind = pytest.mark.parametrize("kind", KINDS)


async def run(tool: Callable[..., Any], events: list[rd.Event] = ASKED, **options: Any) -> list[rd.Event]:
    source = rx.from_iterable(events).pipe(rd.run_tools({"f": tool}, **options))
    return [event async for event in rd.iterate(source)]


def here(tool: Callable[..., Any]) -> list[rd.Event]:
    """Without a loop: the tool runs where the event arrives."""
    out: list[rd.Event] = []
    rx.from_iterable(ASKED).pipe(rd.run_tools({"f": tool}, scheduler=TestScheduler())).subscribe(out.append)
    return out


def said(events: list[rd.Event]) -> list[Any]:
    """The application's events, and what is told of the call, in their order."""
    return [
        event if isinstance(event, ev.Custom) else event.execution_status or event.result.content
        for event in events
        if isinstance(event, ev.Custom) or (isinstance(event, ev.ToolUpdate) and event.display_text is None)
    ]


def result(events: list[rd.Event]) -> rd.ToolResult:
    (last,) = [event for event in events if isinstance(event, ev.ToolUpdate)][-1:]
    assert last.result is not None
    return last.result


@each_kind
def test_it_is_emitted_where_it_comes_and_is_no_part_of_the_result(kind: Callable[..., Any]) -> None:
    values = [READING, {"n": 1}, PASSING, rd.ToolProgress("Half"), {"n": 2}, DONE]
    events = asyncio.run(run(kind(*values)))
    told = said(events)
    assert told == ["identified", "executing", READING, {"n": 1}, PASSING, {"n": 2}, DONE, "completed"]
    assert result(events).content == {"n": 2}
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    (call,) = fold.snapshot.tool_calls
    assert (call.result, call.display_text) == (result(events), "Half")
    assert fold.snapshot.custom_events == (DONE,)


@pytest.mark.parametrize("kind", [in_a_generator, in_an_observable])
def test_without_a_loop_it_is_emitted_where_the_tool_runs(kind: Callable[..., Any]) -> None:
    assert said(here(kind(READING, 7, DONE))) == ["identified", "executing", READING, 7, DONE, "completed"]


@each_kind
def test_a_tool_that_says_nothing_else_has_no_result(kind: Callable[..., Any]) -> None:
    events = asyncio.run(run(kind(READING, DONE)))
    assert said(events) == ["identified", "executing", READING, DONE, "completed"]
    assert result(events).content is None


def test_one_that_is_returned_is_said_too() -> None:
    async def later() -> Any:
        return READING

    for tool in (lambda: READING, later):
        events = asyncio.run(run(tool))
        assert said(events) == ["identified", "executing", READING, "completed"]
        assert (result(events).content, result(events).is_error) == (None, False)


def test_what_a_generator_returns_is_its_result() -> None:
    def tool() -> Any:
        yield READING
        yield 1
        return 2

    assert said(here(tool)) == ["identified", "executing", READING, 1, "completed"]
    assert result(here(tool)).content == 2
    assert result(asyncio.run(run(tool))).content == 2


def test_what_a_generator_has_yielded_is_its_result_if_it_returns_an_event() -> None:
    def tool() -> Iterator[Any]:
        yield 1
        return DONE

    events = asyncio.run(run(tool))
    assert said(events) == ["identified", "executing", 1, DONE, "completed"]
    assert result(events).content == 1


def test_a_generator_fails_as_any_tool() -> None:
    def tool() -> Any:
        yield READING
        raise rd.ToolError("no such city")

    for events in (here(tool), asyncio.run(run(tool))):
        assert said(events) == ["identified", "executing", READING, "failed"]
        assert (result(events).content, result(events).is_error) == ("no such city", True)


@each_kind
@pytest.mark.parametrize("said_in", [None, "another"])
def test_it_has_the_run_of_the_call(kind: Callable[..., Any], said_in: str | None) -> None:
    events = [attrs.evolve(event, run_id="north") for event in ASKED]
    out = asyncio.run(run(kind(attrs.evolve(READING, run_id=said_in), 1), events))
    assert attrs.evolve(READING, run_id="north") in out
    assert [event.run_id for event in out] == ["north"] * len(out)


def test_a_sub_agents_come_up_in_the_run_of_the_call_and_are_not_in_its_messages() -> None:
    answer: list[Any] = [
        READING,
        ev.MessageStart("s", run_id="sub"),
        ev.BlockStart(0, {"type": "text", "text": "high"}, run_id="sub"),
        attrs.evolve(PASSING, run_id="sub"),
        ev.BlockFinish(0, run_id="sub"),
        ev.MessageFinish("stop", run_id="sub"),
        attrs.evolve(DONE, run_id="sub"),
    ]
    for kind in KINDS:
        events = asyncio.run(run(kind(*answer)))
        assert [event for event in events if isinstance(event, ev.Custom)] == [READING, PASSING, DONE]
        assert result(events).content == "high"
        (message,) = result(events).metadata["messages"]
        assert "custom" not in message
        fold = rd.Fold()
        for event in events:
            fold.step(event)
        assert fold.snapshot.custom_events == (DONE,)


def test_it_is_emitted_while_the_tool_runs() -> None:
    async def main() -> None:
        go_on, seen = asyncio.Event(), asyncio.Event()

        async def tool() -> AsyncIterator[Any]:
            yield READING
            await seen.wait()
            yield "read"
            go_on.set()

        source = rx.from_iterable(ASKED).pipe(rd.run_tools({"f": tool}))
        async for event in rd.iterate(source):
            if event == READING:
                assert not go_on.is_set()
                seen.set()
        assert go_on.is_set()

    asyncio.run(main())


def test_a_tool_that_is_cancelled_says_no_more_and_its_generator_is_closed() -> None:
    async def main() -> list[rd.Event]:
        go_on, closed = threading.Event(), threading.Event()

        def tool() -> Iterator[Any]:
            try:
                yield READING
                go_on.wait()
                while True:
                    yield DONE
            finally:
                closed.set()

        source: Subject[rd.Event] = Subject()
        out: list[rd.Event] = []
        told = asyncio.Event()

        def take(event: rd.Event) -> None:
            out.append(event)
            told.set()

        source.pipe(rd.run_tools({"f": tool})).subscribe(take)
        for event in ASKED:
            source.on_next(event)
        while READING not in out:
            told.clear()
            await told.wait()
        source.on_next(ev.MessageInterrupted("stop"))
        source.on_completed()
        await asyncio.sleep(0)  # the cancellation reaches the tool's task
        go_on.set()
        await asyncio.to_thread(closed.wait)
        await asyncio.sleep(0)
        return out

    out = asyncio.run(main())
    assert said(out) == ["identified", "executing", READING, "failed"]


def test_an_observable_that_goes_on_behind_its_end_says_no_more() -> None:
    values: Subject[Any] = Subject()
    out: list[rd.Event] = []
    source = rx.concat(rx.from_iterable(ASKED), rx.never())
    source.pipe(rd.run_tools({"f": lambda: values}, scheduler=TestScheduler())).subscribe(out.append)
    values.on_next(READING)
    values.on_next(1)
    values.on_completed()
    values.on_next(DONE)
    assert said(out) == ["identified", "executing", READING, 1, "completed"]


def test_those_of_parallel_tools_have_their_runs() -> None:
    events = [attrs.evolve(event, run_id=run_id) for run_id in ("north", "south") for event in ASKED]

    async def tool() -> AsyncIterator[Any]:
        for number in range(3):
            yield ev.Custom("step", number)
            await asyncio.sleep(0)

    out = asyncio.run(run(tool, events))
    for run_id in ("north", "south"):
        own = [event.data for event in out if isinstance(event, ev.Custom) and event.run_id == run_id]
        assert own == [0, 1, 2]
