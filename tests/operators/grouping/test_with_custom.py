"""An application's events put among those of a reply: each at once, in one order for all readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import ReplaySubject, Subject

import rxdelta as rd

ev = rd.events

SEARCHING = ev.Custom("status", "Searching", "s")
FOUND = ev.Custom("documents", [{"title": "Tides"}])
REPLY: list[rd.Event] = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "Hi"),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]


def told(source: rx.Observable[Any]) -> tuple[list[Any], list[Any]]:
    values: list[Any] = []
    ends: list[Any] = []
    source.subscribe(values.append, ends.append, lambda: ends.append("completed"))
    return values, ends


@pytest.mark.parametrize("place", range(len(REPLY) + 1))
def test_each_event_is_emitted_where_it_comes(place: int) -> None:
    source: Subject[rd.Event] = Subject()
    own: Subject[ev.Custom] = Subject()
    values, ends = told(source.pipe(rd.with_custom(own)))
    for event in REPLY[:place]:
        source.on_next(event)
    own.on_next(SEARCHING)
    assert values[-1:] == [SEARCHING]
    for event in REPLY[place:]:
        source.on_next(event)
    assert values == [*REPLY[:place], SEARCHING, *REPLY[place:]]
    assert ends == []


def test_what_is_emitted_at_once_comes_before_the_reply() -> None:
    values, ends = told(rx.from_iterable(REPLY).pipe(rd.with_custom(rx.of(SEARCHING, FOUND))))
    assert (values, ends) == ([SEARCHING, FOUND, *REPLY], ["completed"])


def test_it_completes_with_the_source_and_lets_the_other_go() -> None:
    source: Subject[rd.Event] = Subject()
    own: Subject[ev.Custom] = Subject()
    _, ends = told(source.pipe(rd.with_custom(own)))
    source.on_completed()
    assert ends == ["completed"]
    assert own.observers == []
    own.on_next(FOUND)


def test_the_end_of_the_other_ends_nothing() -> None:
    source: Subject[rd.Event] = Subject()
    own: Subject[ev.Custom] = Subject()
    values, ends = told(source.pipe(rd.with_custom(own)))
    own.on_completed()
    source.on_next(REPLY[0])
    assert (values, ends) == ([REPLY[0]], [])


@pytest.mark.parametrize("failing", [0, 1])
def test_the_error_of_either_ends_it_and_lets_the_other_go(failing: int) -> None:
    both: list[Subject[Any]] = [Subject(), Subject()]
    _, ends = told(both[0].pipe(rd.with_custom(both[1])))
    error = ConnectionError()
    both[failing].on_error(error)
    assert ends == [error]
    assert both[1 - failing].observers == []


def test_what_is_no_event_of_the_application_is_refused() -> None:
    values, (error,) = told(rx.never().pipe(rd.with_custom(rx.of(ev.MessageStart()))))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert (values, type(error)) == ([], rd.InvalidValueError)
    assert "rx.merge()" in str(error)
    with pytest.raises(rd.InvalidValueError, match="must be an Observable"):
        rd.with_custom([SEARCHING])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_an_event_that_a_reader_answers_with_comes_behind_the_one_that_it_reads() -> None:
    own: Subject[ev.Custom] = Subject()
    values: list[rd.Event] = []

    def read(event: rd.Event) -> None:
        if isinstance(event, ev.TextDelta):
            own.on_next(FOUND)
        values.append(event)

    rx.from_iterable(REPLY).pipe(rd.with_custom(own)).subscribe(read)
    assert values == [*REPLY[:3], FOUND, *REPLY[3:]]


def test_who_emits_one_does_not_get_a_readers_exception(caplog: pytest.LogCaptureFixture) -> None:
    own: Subject[ev.Custom] = Subject()

    def read(_: rd.Event) -> None:
        raise ZeroDivisionError

    rx.never().pipe(rd.with_custom(own)).subscribe(read)
    own.on_next(FOUND)
    assert own.observers == []
    assert "an observer of with_custom raised" in caplog.text


def test_a_later_subscription_gets_what_the_subject_repeats() -> None:
    own: ReplaySubject[ev.Custom] = ReplaySubject()
    events = rx.from_iterable(REPLY).pipe(rd.with_custom(own))
    own.on_next(SEARCHING)
    assert told(events)[0] == told(events)[0] == [SEARCHING, *REPLY]


def test_all_readers_have_one_order_and_tools_run_once() -> None:
    """A tool's task says what it does while it runs."""
    asked = [
        ev.MessageStart("m"),
        ev.BlockStart(0, {"type": "tool_call", "id": "c", "name": "f", "args": {}}),
        ev.BlockFinish(0),
        ev.MessageFinish("tool_use"),
    ]

    async def main() -> tuple[list[list[rd.Event]], int]:
        own: Subject[ev.Custom] = Subject()
        calls = 0

        async def tool() -> str:
            nonlocal calls
            calls += 1
            for number in range(3):
                own.on_next(ev.Custom("progress", number))
                await asyncio.sleep(0)
            return "done"

        async def reply() -> AsyncIterator[rd.Event]:
            for event in asked:
                yield event

        shared = rd.from_async_iterable(reply).pipe(
            rd.run_tools({"f": tool}), rd.with_custom(own), rd.share_events()
        )
        found: list[list[rd.Event]] = [[], []]
        await asyncio.gather(*(rd.for_each(shared, values.append) for values in found))
        return found, calls

    (one, other), calls = asyncio.run(main())
    assert calls == 1
    assert one == other
    kinds = [event.data if isinstance(event, ev.Custom) else event.event for event in one]
    assert kinds[-4:] == [0, 1, 2, "tool-update"]


def test_a_stream_of_the_applications_own_is_closed_with_the_reply() -> None:
    async def main() -> tuple[list[rd.Event], list[str]]:
        log: list[str] = []
        said = asyncio.Event()

        async def statuses() -> AsyncIterator[ev.Custom]:
            try:
                yield SEARCHING
                said.set()
                await asyncio.Event().wait()
            finally:
                log.append("closed")

        async def reply() -> AsyncIterator[rd.Event]:
            await said.wait()
            for event in REPLY:
                yield event

        own: rx.Observable[ev.Custom] = rd.from_async_iterable(statuses)
        events = rd.from_async_iterable(reply).pipe(rd.with_custom(own), ops.map(lambda event: event))
        values = [event async for event in rd.iterate(events)]
        return values, log

    assert asyncio.run(main()) == ([SEARCHING, *REPLY], ["closed"])
