"""`on_settled` on every path."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.subject import Subject
from support.lines import through, whole
from support.loops import Stream, run as run_loop, turns
from support.replies import ANTHROPIC

import rxdelta as rd
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
COMPLETED, DISPOSED = rd.types.StreamOutcome("completed"), rd.types.StreamOutcome("disposed")
SNAPSHOTS = {mark: rd.MessageDelta(content=mark) for mark in "abcd"}


class Notes(list[Any]):
    """What has been settled."""

    def __call__(self, snapshot: rd.Snapshot | None, outcome: rd.types.StreamOutcome) -> None:
        self.append((snapshot, outcome))


def failed(error: Exception) -> rd.types.StreamOutcome:
    return rd.types.StreamOutcome("failed", error)


@pytest.mark.parametrize(
    ("source", "last", "outcome"),
    [
        pytest.param("-a-b-|", "b", COMPLETED, id="completed"),
        pytest.param("-a-b-#", "b", failed(BOOM), id="failed"),
        pytest.param("-a-b----", "b", DISPOSED, id="disposed"),
        pytest.param("[abcd|]", "d", COMPLETED, id="a burst"),
        pytest.param("|", None, COMPLETED, id="empty"),
        pytest.param("#", None, failed(BOOM), id="only an error"),
        pytest.param("-------", None, DISPOSED, id="never"),
        pytest.param("-a-|", "a", COMPLETED, id="silence, then the end"),
    ],
)
def test_the_values_are_untouched_and_the_end_is_told_once(
    source: str, last: str | None, outcome: Any
) -> None:
    notes, ((_, end),) = Notes(), whole(source)
    settled, reads = rd.on_settled(notes), [(0.0, min(end, 10))]
    marbles.check(source, settled, values=SNAPSHOTS, frame=1, error=BOOM, until=10, reads=reads)
    assert notes == [(None if last is None else SNAPSHOTS[last], outcome)]


def test_it_is_told_before_the_end_is_passed_on_and_after_the_source_was_left() -> None:
    source, other = Subject[int](), Subject[int]()
    order: list[Any] = []

    def settle(_: object, outcome: rd.types.StreamOutcome) -> None:
        order.append((outcome.kind, len(other.observers)))

    source.pipe(rd.on_settled(settle)).subscribe(on_completed=lambda: order.append("|"))
    source.on_completed()
    assert order == [("completed", 0), "|"]
    order.clear()
    subscription = other.pipe(rd.on_settled(settle)).subscribe()
    subscription.dispose()
    subscription.dispose()
    assert order == [("disposed", 0)]


def test_events_are_folded() -> None:
    notes = Notes()
    rx.from_iterable(ANTHROPIC).pipe(rd.decode("anthropic-messages"), rd.on_settled(notes)).subscribe()
    ((snapshot, outcome),) = notes
    assert outcome == COMPLETED
    assert (snapshot.status, snapshot.text, snapshot.tool_calls[0].name) == (
        "complete",
        "Let me look.",
        "look",
    )


def test_of_a_conversation_the_last_message_and_of_the_choices_the_one_asked_for() -> None:
    def message(number: int, choice: int = 0) -> list[rd.Event]:
        return [
            ev.MessageStart(f"m{number}", choice=choice),
            ev.BlockStart(0, {"type": "text", "text": f"{number}/{choice}"}, choice=choice),
            ev.MessageFinish("stop", choice=choice),
        ]

    for choice in (0, 1):
        notes = Notes()
        told = [*message(1), *message(1, 1), *message(2), *message(2, 1)]
        rx.from_iterable(told).pipe(rd.only_choice(choice), rd.on_settled(notes)).subscribe()
        assert [snapshot.text for snapshot, _ in notes] == [f"2/{choice}"]


def test_another_attempt_after_the_end_is_the_next_messages() -> None:
    notes = Notes()
    told = [
        ev.BlockStart(0, {"type": "text", "text": "the first"}),
        ev.MessageFinish("stop"),
        ev.AttemptReset(1),
        ev.BlockStart(0, {"type": "text", "text": "the second"}),
    ]
    rx.from_iterable(told).pipe(rd.on_settled(notes)).subscribe()
    ((snapshot, _),) = notes
    assert (snapshot.text, snapshot.status, snapshot.attempt) == ("the second", "incomplete", 1)


def test_chunks_have_no_snapshot() -> None:
    notes = Notes()
    rx.from_iterable(ANTHROPIC).pipe(rd.on_settled(notes)).subscribe()
    assert notes == [(None, COMPLETED)]


def test_events_that_cannot_be_folded_pass_and_what_came_before_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notes, got = Notes(), []
    told = [
        ev.BlockStart(0, {"type": "text", "text": "Hi"}),
        ev.StreamError("overloaded"),
        *(ev.BlockStart(2**31 - 1 - n, {"type": "text"}) for n in range(2)),
    ]
    limited = rx.from_iterable(told).pipe(rd.on_settled(notes))
    limited.subscribe(got.append)
    assert got == told
    assert notes[0][0].text == "Hi"
    assert notes[0][1] == COMPLETED


def test_what_fn_raises_goes_to_the_log_and_never_into_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    def settle(*_: object) -> None:
        raise BOOM

    got: list[Any] = []
    with caplog.at_level(logging.ERROR, "rxdelta"):
        rx.of(1, 2).pipe(rd.on_settled(settle)).subscribe(got.append, got.append, lambda: got.append("|"))
    assert got == [1, 2, "|"]
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [BOOM]


def test_51_an_observer_that_raises_settles_it_and_leaves_the_source() -> None:
    source = Subject[str]()
    notes = Notes()

    def draw(value: str) -> None:
        raise BOOM

    source.pipe(rd.on_settled(notes)).subscribe(draw)
    with pytest.raises(ValueError, match="boom"):
        source.on_next("a")
    assert notes == [(None, failed(BOOM))]
    assert source.observers == []


def test_52_an_observer_may_dispose_inside_on_next() -> None:
    source, notes = Subject[rd.Snapshot](), Notes()
    subscription = SerialDisposable()
    subscription.disposable = source.pipe(rd.on_settled(notes)).subscribe(lambda _: subscription.dispose())
    source.on_next(SNAPSHOTS["a"])
    source.on_completed()
    assert notes == [(SNAPSHOTS["a"], DISPOSED)]


def test_a_source_that_cannot_be_subscribed_has_failed() -> None:
    def subscribe(*_: object) -> Disposable:
        raise BOOM

    notes, errors = Notes(), list[Exception]()
    Observable(subscribe).pipe(rd.on_settled(notes)).subscribe(on_error=errors.append)
    assert (notes, errors) == ([(None, failed(BOOM))], [BOOM])


def test_53_two_threads_that_end_it_at_once_settle_once() -> None:
    def both(gate: threading.Barrier, end: Any) -> None:
        gate.wait(10)
        end()

    ends: list[Any] = []

    def subscribe(
        observer: Any, _: Any
    ) -> Disposable:  # a Subject may raise for whoever leaves while it completes
        ends.append(observer.on_completed)
        return Disposable()

    for _ in range(200):
        ends.clear()
        notes = Notes()
        ends.append(Observable(subscribe).pipe(rd.on_settled(notes)).subscribe().dispose)
        gate = threading.Barrier(2)
        threads = [threading.Thread(target=both, args=(gate, end)) for end in ends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(notes) == 1


# With asyncio.


def test_a_reader_that_leaves_settles_with_what_came() -> None:
    notes = Notes()

    async def main() -> None:
        stream = Stream(*ANTHROPIC[:4], hold=True)
        events = rd.from_async_iterable(stream).pipe(rd.decode("anthropic-messages"), rd.on_settled(notes))
        reading = asyncio.create_task(rd.for_each(events, lambda _: None))
        await turns(40)
        reading.cancel()
        await asyncio.wait([reading])
        assert stream.closed == 1

    run_loop(main)
    ((snapshot, outcome),) = notes
    assert (snapshot.text, outcome) == ("Let me ", DISPOSED)


def test_an_observer_that_raises_on_a_loop_settles_too() -> None:
    notes = Notes()

    def draw(_: object) -> None:
        raise BOOM

    async def main() -> None:
        stream = Stream(1, 2)
        rd.from_async_iterable(stream).pipe(rd.on_settled(notes)).subscribe(draw)
        await turns()
        assert stream.closed == 1

    run_loop(main, reports=[])
    assert notes == [(None, failed(BOOM))]


def test_an_async_fn_runs_as_a_task_on_the_loop_whoever_disposes() -> None:
    stored: list[Any] = []

    async def store(snapshot: rd.Snapshot | None, outcome: rd.types.StreamOutcome) -> None:
        await asyncio.sleep(0)
        stored.append((snapshot, outcome))

    async def main() -> None:
        await rd.last_value(rx.of(SNAPSHOTS["a"]).pipe(rd.on_settled(store)))
        await turns()
        subscription = rx.never().pipe(rd.on_settled(store)).subscribe()
        await asyncio.to_thread(subscription.dispose)
        await turns()

    run_loop(main)
    assert stored == [(SNAPSHOTS["a"], COMPLETED), (None, DISPOSED)]


def test_what_an_async_fn_raises_goes_to_the_loop() -> None:
    async def store(*_: object) -> None:
        raise BOOM

    async def main() -> None:
        assert await rd.last_value(rx.of(1).pipe(rd.on_settled(store))) == 1
        await turns()

    reports: list[dict[str, Any]] = []
    run_loop(main, reports=reports)
    assert [report["exception"] for report in reports] == [BOOM]


def test_58_a_loop_that_is_cancelled_or_closed_settles_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    notes = Notes()
    kept: list[abc.DisposableBase] = []

    async def store(*_: object) -> None: ...

    async def main() -> None:
        rd.from_async_iterable(Stream(hold=True)).pipe(rd.on_settled(notes)).subscribe(
            on_error=lambda _: None
        )
        kept.append(rx.never().pipe(rd.on_settled(notes)).subscribe())
        kept.append(rx.never().pipe(rd.on_settled(store)).subscribe())
        await turns(1)

    asyncio.run(main())
    assert [type(outcome.error) for _, outcome in notes] == [rd.StreamInterrupted]
    for subscription in kept:
        subscription.dispose()
    assert notes[1:] == [(None, DISPOSED)]
    assert "asyncio loop" in str(caplog.records[-1].exc_info)


@given(
    marks=st.lists(st.sampled_from("abcd-"), max_size=20),
    end=st.sampled_from("|#-"),
    disposed=st.integers(1, 30),
)
def test_exactly_once_with_the_last_value(marks: list[str], end: str, disposed: int) -> None:
    notes, line = Notes(), "-" + "".join(marks) + end
    records, _ = through(line, rd.on_settled(notes), values=SNAPSHOTS, until=disposed)
    values = [value for _, kind, value in records if kind == "next"]
    ended = [kind for _, kind, _ in records if kind != "next"]
    kind = {"completed": "completed", "error": "failed"}[ended[0]] if ended else "disposed"
    assert [(snapshot, outcome.kind) for snapshot, outcome in notes] == [
        (values[-1] if values else None, kind)
    ]
