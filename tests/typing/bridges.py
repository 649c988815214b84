"""What the checkers infer of the doors in and out. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, assert_type

from reactivex import Observable

import rxdelta as rd


def doors_in(
    stream: Iterator[dict[str, Any]],
    create: Callable[[], Iterable[dict[str, Any]]],
    generate: Callable[[], AsyncIterator[bytes]],
) -> None:
    assert_type(rd.from_iterable(stream), Observable[dict[str, Any]])
    assert_type(rd.from_iterable(create), Observable[dict[str, Any]])
    assert_type(rd.from_iterable([1, 2]), Observable[int])
    assert_type(rd.from_async_iterable(generate), Observable[bytes])
    assert_type(
        rd.from_iterable(create).pipe(rd.decode("openai-chat"), rd.scan_deltas()), Observable[rd.Snapshot]
    )


def doors_out(snapshots: Observable[rd.Snapshot], texts: Observable[str]) -> None:
    with rd.to_iterable(snapshots) as values:
        assert_type(values, Iterator[rd.Snapshot])
    with rd.to_iterable(texts, overflow="block", maxsize=3) as words:
        for word in words:
            assert_type(word, str)
    assert_type(rd.iterate(texts, overflow="error", maxsize=3), AsyncIterator[str])


async def reading(snapshots: Observable[rd.Snapshot]) -> None:
    meter = rd.ReaderMeter()
    assert_type(meter.metrics.queued, int)
    async with rd.to_async_iterable(snapshots, maxsize=3, meter=meter) as values:
        assert_type(values, AsyncIterator[rd.Snapshot])
    await rd.for_each(snapshots, show, overflow="latest", maxsize=3)
    await rd.for_each(snapshots, show, overflow="latest", key=lambda snapshot: snapshot.model)
    async with rd.to_async_iterable(snapshots, "latest", key=lambda snapshot: snapshot.run_id) as newest:
        assert_type(newest, AsyncIterator[rd.Snapshot])
    assert_type(await rd.last_value(snapshots), rd.Snapshot)


def show(snapshot: rd.Snapshot) -> None: ...


def measuring(events: Observable[rd.Event], snapshots: Observable[rd.Snapshot]) -> None:
    assert_type(events.pipe(rd.tap_metrics(note)), Observable[rd.Event])
    assert_type(snapshots.pipe(rd.tap_metrics(store, every=1)), Observable[rd.Snapshot])
    assert_type(
        snapshots.pipe(rd.tap_metrics(note, through=rd.throttle_latest(0.05)), rd.to_message()),
        Observable[rd.Message],
    )
    assert_type(events.pipe(rd.tap_otel("openai", "gpt-5"), rd.scan_deltas()), Observable[rd.Snapshot])


def note(metrics: rd.types.StreamMetrics) -> None:
    assert_type(metrics.tokens_per_second, float | None)
    assert_type(metrics.outcome, rd.types.StreamOutcome | None)


async def store(metrics: rd.types.StreamMetrics) -> None: ...


def wrong(snapshots: Observable[rd.Snapshot]) -> None:
    rd.iterate(snapshots, maxsize="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.to_iterable(snapshots, "newest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snapshots.pipe(rd.tap_metrics(lambda: None))  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
    rd.from_iterable(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
