"""`tap_metrics` in virtual time: the stream is untouched, and what is told of it is true."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.lines import through
from support.loops import Stream, run as run_loop, turns
from support.replies import ANTHROPIC

import rxdelta as rd
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
TEXT = {"type": "text", "text": ""}


class Notes(list[rd.types.StreamMetrics]):
    """What has been told."""

    def __call__(self, metrics: rd.types.StreamMetrics) -> None:
        self.append(metrics)

    @property
    def kinds(self) -> list[str | None]:
        return [None if metrics.outcome is None else metrics.outcome.kind for metrics in self]


def measured(
    line: str, values: Any = str, *, until: float = 60, **options: Any
) -> tuple[Notes, list[marbles.Record], list[Any]]:
    """What was told, what came, and when the source was read."""
    notes = Notes()
    return notes, *through(line, rd.tap_metrics(notes, **options), values=values, error=BOOM, until=until)


def shown(records: list[marbles.Record]) -> str:
    return marbles.draw(records, values=str, frame=1, error=BOOM)


# The stream.


@pytest.mark.parametrize(
    ("source", "kind", "seconds"),
    [
        pytest.param("-a-b-|", "completed", 5, id="completed"),
        pytest.param("-a-b-#", "failed", 5, id="failed"),
        pytest.param("-a-b----", "disposed", 60, id="disposed"),
        pytest.param("[abcd|]", "completed", 0, id="a burst"),
        pytest.param("|", "completed", 0, id="empty"),
        pytest.param("#", "failed", 0, id="only an error"),
        pytest.param("-------", "disposed", 60, id="never"),
        pytest.param("-a-----|", "completed", 7, id="silence, then the end"),
    ],
)
@pytest.mark.parametrize("every", [None, 2.0])
def test_the_values_are_untouched_and_the_end_is_told_once(
    source: str, kind: str, seconds: float, every: float | None
) -> None:
    notes, records, reads = measured(source, every=every)
    assert records == marbles.parse(source, values=str, frame=1, error=BOOM)
    assert notes.kinds[-1] == kind
    assert notes.kinds.count(None) == len(notes) - 1
    assert notes[-1].seconds == seconds
    assert reads == [(0, seconds)]


@pytest.mark.parametrize("end", ["|", "#"])
def test_it_is_told_before_the_end_is_passed_on(end: str) -> None:
    order: list[Any] = []
    source = rx.empty() if end == "|" else rx.throw(BOOM)
    tapped: Observable[Any] = source.pipe(rd.tap_metrics(lambda metrics: order.append(metrics.outcome)))
    tapped.subscribe(on_error=lambda _: order.append("#"), on_completed=lambda: order.append("|"))
    kind = rd.types.StreamOutcome("completed") if end == "|" else rd.types.StreamOutcome("failed", BOOM)
    assert order == [kind, end]


# What is measured.


def test_the_first_chunk_the_gaps_and_the_rates() -> None:
    notes, _, _ = measured("--a-b----c|")
    (metrics,) = notes
    assert metrics.time_to_first_chunk == metrics.time_to_first_token == 2
    assert (metrics.chunks, metrics.streaming_seconds, metrics.longest_gap, metrics.mean_gap) == (
        3,
        7,
        5,
        3.5,
    )
    assert metrics.chunks_per_second == 2 / 7
    assert metrics.tokens_per_second is None
    assert metrics.mean_lag is metrics.longest_lag is None


@pytest.mark.parametrize("source", ["--|", "--a-|", "[ab|]"])
def test_what_cannot_be_measured_is_none(source: str) -> None:
    (metrics,) = measured(source)[0]
    assert (metrics.chunks_per_second, metrics.tokens_per_second) == (None, None)
    assert metrics.mean_gap == (0 if "b" in source else None)
    assert metrics.longest_gap == (0 if "b" in source else None)


EVENTS: dict[str, rd.Event] = {
    "s": ev.MessageStart("m1"),
    "b": ev.BlockStart(0, TEXT),
    "t": ev.TextDelta(0, "Hel"),
    "r": ev.ReasoningDelta(1, "so"),
    "e": ev.TextDelta(0, ""),
    "p": ev.ProviderEvent("anthropic", "ping", {"type": "ping"}),
    "u": ev.UsageUpdate(rd.TokenUsage(3, 12)),
    "f": ev.MessageFinish("stop"),
    "x": ev.AttemptReset(1, "reset", rd.TokenUsage(3, 12)),
    "w": ev.BlockStart(0, {"type": "text", "text": "Hello"}),
}


def test_among_events_chunks_are_those_that_bring_something() -> None:
    notes, _, _ = measured("-ps-b--t--r-e-u--tf|", EVENTS)
    (metrics,) = notes
    assert (metrics.time_to_first_chunk, metrics.time_to_first_token) == (2, 7)
    assert (metrics.chunks, metrics.streaming_seconds, metrics.longest_gap) == (3, 10, 7)
    assert metrics.usage == rd.TokenUsage(3, 12)
    assert metrics.tokens_per_second == 1.2


def test_a_block_that_starts_with_text_is_a_chunk() -> None:
    (metrics,) = measured("-w-|", EVENTS)[0]
    assert (metrics.chunks, metrics.time_to_first_token) == (1, 1)


def test_failed_attempts_count() -> None:
    (metrics,) = measured("-bt-x-b--tu|", EVENTS)[0]
    assert metrics.usage == rd.TokenUsage(6, 24)
    assert (metrics.chunks, metrics.streaming_seconds, metrics.tokens_per_second) == (2, 7, 24 / 7)


def test_the_usage_is_of_the_choice_that_was_asked_for() -> None:
    told = {"a": ev.UsageUpdate(rd.TokenUsage(1, 1)), "b": ev.UsageUpdate(rd.TokenUsage(1, 7), choice=1)}
    notes = Notes()
    rx.of(*told.values()).pipe(rd.only_choice(1), rd.tap_metrics(notes)).subscribe()
    assert notes[0].usage == rd.TokenUsage(1, 7)


def test_among_snapshots_the_first_that_says_something_is_the_first_token() -> None:
    snapshots = {"n": rd.Snapshot(), "a": rd.MessageDelta(content="a")}
    (metrics,) = measured("-n--a|", snapshots)[0]
    assert (metrics.time_to_first_chunk, metrics.time_to_first_token, metrics.chunks) == (1, 4, 2)


def test_pings_are_no_chunks_in_front_of_decode_either() -> None:
    notes = Notes()
    rx.from_iterable(ANTHROPIC).pipe(rd.tap_metrics(notes)).subscribe()
    assert notes[0].chunks == len(ANTHROPIC) - 1
    rx.from_iterable(ANTHROPIC).pipe(rd.decode("anthropic-messages"), rd.tap_metrics(notes)).subscribe()
    assert notes[1].chunks == 4
    assert notes[1].usage is not None
    assert notes[1].usage.output_tokens == 5


# How late a paced reader is.


def test_the_lag_of_snapshots_is_that_of_the_newest_which_leaves() -> None:
    notes, records, _ = measured("ab-c----d-#", through=lambda source: source.pipe(rd.throttle_latest(4)))
    assert shown(records) == "a---c---d-#"
    assert (notes[0].chunks, notes[0].longest_lag, notes[0].mean_lag) == (4, 1, 1 / 3)


def test_the_lag_of_events_that_are_joined_is_that_of_the_first_letter_that_waited() -> None:
    pieces = {mark: ev.TextDelta(0, mark) for mark in "abcdef"} | {"S": EVENTS["b"]}
    notes, records, _ = measured("Sab-cd----|", pieces, through=rd.compact_deltas(4))
    again, more, _ = measured("Sab-cd-ef-----|", pieces, through=rd.compact_deltas(4))
    assert [time for time, _, _ in more] == [0, 1, 5, 9, 14]
    assert (again[0].longest_lag, again[0].mean_lag) == (3, 5 / 4)
    assert [(time, getattr(event, "text", "")) for time, _, event in records[:-1]] == [
        (0, ""),
        (1, "a"),
        (5, "bcd"),
    ]
    assert (notes[0].longest_lag, notes[0].mean_lag) == (3, 1)


def test_the_lag_of_text_that_is_cut_anew() -> None:
    burst = {"S": EVENTS["b"], "a": ev.TextDelta(0, "one two three four ")}
    notes, records, _ = measured("Sa------------|", burst, through=rd.smooth("word", rate=0.5, max_lag=60))
    last = max(time for time, _, _ in records[:-1])
    assert notes[0].longest_lag == last - 1 > 2


def test_what_leaves_as_something_else_is_as_late_as_the_newest() -> None:
    notes, _, _ = measured("a--b-|", through=ops.map(lambda mark: mark * 2))
    assert (notes[0].longest_lag, notes[0].mean_lag) == (0, 0)
    notes, _, _ = measured(
        "a--b-|", through=lambda source: source.pipe(ops.map(str.upper), ops.start_with("Z"))
    )
    assert notes[0].longest_lag == 0


def test_equal_values_are_told_apart_by_their_order() -> None:
    notes, _, _ = measured("aaa-a---|", through=lambda source: source.pipe(ops.delay(2)))
    assert (notes[0].longest_lag, notes[0].mean_lag) == (2, 2)


def test_what_waits_is_not_kept_for_ever() -> None:
    from rxdelta.operators.watching.tap import _Waiting

    waiting = _Waiting()
    for number in range(1000):
        waiting.add(number, 0, rd.MessageDelta(content=str(number)))
        waiting.take(rd.MessageDelta(content="another"), number)
    assert (len(waiting._values), len(waiting._known)) == (0, 0)
    for number in range(1000):
        event = ev.TextDelta(0, "ab")
        waiting.add(number, 2, event)
        waiting.take(ev.TextDelta(0, "a"), number)
        waiting.take(ev.TextDelta(0, "b"), number)
    assert len(waiting._values) <= 2


@pytest.mark.parametrize("end", ["|", "#"])
def test_what_the_pacing_holds_comes_before_the_end_and_counts(end: str) -> None:
    notes, records, _ = measured(f"ab{end}", through=lambda source: source.pipe(rd.throttle_latest(9)))
    assert shown(records) == f"a-[b{end}]"
    assert notes[0].longest_lag == 1


# Now and then.


def test_every_so_often_it_is_told_how_it_goes_also_in_silence() -> None:
    notes, _, _ = measured("-a-b-----c|", every=4)
    assert notes.kinds == [None, None, "completed"]
    assert [(metrics.seconds, metrics.chunks) for metrics in notes] == [(4, 2), (8, 2), (10, 3)]


def test_an_end_on_the_edge_is_told_once_and_nothing_comes_after_it() -> None:
    notes, _, _ = measured("-a--|", every=4, until=800)
    assert notes.kinds[-1] == "completed"
    assert [metrics.seconds for metrics in notes][-1] == 4
    assert len(notes) <= 2


def test_fn_may_dispose() -> None:
    scheduler, notes = TestScheduler(), Notes()
    subscription = SerialDisposable()

    def note(metrics: rd.types.StreamMetrics) -> None:
        notes(metrics)
        subscription.dispose()

    subscription.disposable = rx.never().pipe(rd.tap_metrics(note, every=4, scheduler=scheduler)).subscribe()
    scheduler.advance_to(99)
    assert notes.kinds == [None, "disposed"]


# Whose time, whose fault.


def test_time_is_the_subscribers_and_goes_upstream_as_it_came() -> None:
    seen: list[Any] = []

    def subscribe(_: abc.ObserverBase[int], scheduler: abc.SchedulerBase | None = None) -> Disposable:
        seen.append(scheduler)
        return Disposable()

    theirs, own, notes = TestScheduler(), TestScheduler(), Notes()
    subscription = Observable(subscribe).pipe(rd.tap_metrics(notes)).subscribe(scheduler=theirs)
    theirs.advance_to(7)
    subscription.dispose()
    through = rd.tap_metrics(notes, scheduler=own, through=rd.conflate())
    subscription = Observable(subscribe).pipe(through).subscribe(scheduler=theirs)
    own.advance_to(3)
    subscription.dispose()
    assert seen == [theirs, theirs]
    assert [metrics.seconds for metrics in notes] == [7, 3]


def test_what_fn_raises_goes_to_the_log_and_never_into_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    def note(_: object) -> None:
        raise BOOM

    with caplog.at_level(logging.ERROR, "rxdelta"):
        marbles.check("-a---b|", rd.tap_metrics(note, every=4), values=str, frame=1, until=800)
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [BOOM, BOOM]


def test_51_an_observer_that_raises_is_told_and_leaves_the_source() -> None:
    source, notes = Subject[str](), Notes()

    def draw(value: str) -> None:
        raise BOOM

    source.pipe(rd.tap_metrics(notes)).subscribe(draw)
    with pytest.raises(ValueError, match="boom"):
        source.on_next("a")
    assert [metrics.outcome for metrics in notes] == [rd.types.StreamOutcome("failed", BOOM)]
    assert source.observers == []


def test_a_source_that_is_synchronous_and_one_that_cannot_be_subscribed() -> None:
    notes, errors = Notes(), list[Exception]()
    rx.of(1, 2).pipe(rd.tap_metrics(notes, every=1)).subscribe()

    def subscribe(*_: object) -> Disposable:
        raise BOOM

    Observable(subscribe).pipe(rd.tap_metrics(notes)).subscribe(on_error=errors.append)
    assert (notes.kinds, errors) == (["completed", "failed"], [BOOM])


def test_the_metrics_are_values() -> None:
    (metrics,) = measured("-a-|")[0]
    with pytest.raises(AttributeError):
        metrics.chunks = 3  # type: ignore[misc]
    assert metrics == measured("-a-|")[0][0]


# With asyncio.


def test_a_reader_that_leaves_and_an_async_fn() -> None:
    stored: list[rd.types.StreamMetrics] = []

    async def store(metrics: rd.types.StreamMetrics) -> None:
        await turns(1)
        stored.append(metrics)

    async def main() -> None:
        stream = Stream(*ANTHROPIC, hold=True)
        events = rd.from_async_iterable(stream).pipe(
            rd.decode("anthropic-messages"), rd.tap_metrics(store, every=3600)
        )
        async with rd.to_async_iterable(events, "block") as values:
            async for value in values:
                if isinstance(value, ev.MessageFinish):
                    break
        await turns()
        assert stream.closed == 1

    run_loop(main)
    (metrics,) = stored
    assert (metrics.outcome, metrics.chunks) == (rd.types.StreamOutcome("disposed"), 4)
    assert metrics.time_to_first_chunk is not None
    assert 0 <= metrics.time_to_first_chunk <= metrics.seconds


@given(
    marks=st.lists(st.booleans(), max_size=20),
    end=st.sampled_from("|#-"),
    disposed=st.integers(1, 30),
    pace=st.integers(1, 9),
)
def test_through_a_pacing_operator_all_comes_as_it_would_and_the_sums_hold(
    marks: list[bool], end: str, disposed: int, pace: int
) -> None:
    line = "-" + "".join(chr(ord("a") + at) if mark else "-" for at, mark in enumerate(marks))
    notes, *came = measured(line + end, through=rd.throttle_latest(pace), until=disposed)
    assert came == [*through(line + end, rd.throttle_latest(pace), error=BOOM, until=disposed)]
    (metrics,) = notes
    arrived = [mark for mark in line[:disposed] if mark != "-"]
    assert metrics.chunks == len(arrived)
    assert 0 <= metrics.streaming_seconds <= metrics.seconds
    assert (metrics.longest_lag or 0) <= pace
    assert (metrics.mean_lag or 0) <= (metrics.longest_lag or 0)
    assert (metrics.longest_gap or 0) <= metrics.streaming_seconds
