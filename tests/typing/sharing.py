"""What the checkers infer of sharing and surviving. Never run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, assert_type

from reactivex import Observable
from reactivex.subject import Subject

import rxdelta as rd


def sharing(
    events: Observable[rd.Event], snapshots: Observable[rd.Snapshot], block: rd.types.BlockStream
) -> None:
    assert_type(snapshots.pipe(rd.share_latest()), Observable[rd.Snapshot])
    assert_type(block.pipe(rd.share_latest(unread="keep")), Observable[rd.ContentPart | rd.ToolCall])
    assert_type(snapshots.pipe(rd.share_latest(grace=30, reset_on_error=True)), Observable[rd.Snapshot])
    assert_type(events.pipe(rd.share_events(grace=0.5, unread="restart")), Observable[rd.Event])
    assert_type(rd.share_events(), Callable[[Observable[rd.Event]], Observable[rd.Event]])
    assert_type(events.pipe(rd.share_events(unread="restart"), rd.scan_deltas()), Observable[rd.Snapshot])


def surviving(
    chunks: Observable[dict[str, Any]],
    events: Observable[rd.Event],
    snapshots: Observable[rd.Snapshot],
    task: Awaitable[str],
) -> None:
    assert_type(chunks.pipe(rd.stall_timeout(first=30, idle=10)), Observable[dict[str, Any]])
    assert_type(snapshots.pipe(rd.stall_timeout(total=60)), Observable[rd.Snapshot])
    assert_type(events.pipe(rd.until_stopped(Subject[None]())), Observable[rd.Event])
    assert_type(events.pipe(rd.until_stopped(asyncio.Event()), rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(events.pipe(rd.until_stopped(task, reason=None)), Observable[rd.Event])
    assert_type(events.pipe(rd.on_settled(settle)), Observable[rd.Event])
    assert_type(snapshots.pipe(rd.on_settled(store), rd.to_message()), Observable[rd.Message])


def settle(snapshot: rd.Snapshot | None, outcome: rd.types.StreamOutcome) -> None:
    assert_type(outcome.error, Exception | None)


async def store(snapshot: rd.Snapshot | None, outcome: rd.types.StreamOutcome) -> None: ...


def retrying(
    start: Callable[[], Observable[rd.Event]],
    go_on: Callable[[rd.Snapshot | None], Observable[rd.Event]],
    informed: Callable[[rd.Snapshot | None, Exception | None], Observable[rd.Event]],
) -> None:
    assert_type(rd.retry_stream(start), Observable[rd.Event])
    assert_type(rd.retry_stream(start, 5, rd.exponential_backoff(1)), Observable[rd.Event])
    assert_type(rd.retry_stream(start, resume=True), Observable[rd.Event])
    assert_type(rd.retry_stream(go_on), Observable[rd.Event])
    assert_type(rd.retry_stream(go_on, resume=True, min_overlap=20), Observable[rd.Event])
    assert_type(rd.retry_stream(go_on, 3, lambda failures, error: failures * 2.0, True), Observable[rd.Event])
    assert_type(rd.retry_stream(informed), Observable[rd.Event])
    assert_type(rd.retry_stream(ask_another), Observable[rd.Event])
    assert_type(rd.retry_stream(with_default, resume=True), Observable[rd.Event])
    assert_type(rd.retry_stream(start, retry_if=rd.errors.is_transient), Observable[rd.Event])
    assert_type(rd.retry_stream(lambda: start()).pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(rd.retry_stream(lambda snapshot, error: informed(snapshot, error)), Observable[rd.Event])


def choosing(events: Observable[rd.Event], ask: Callable[[], Observable[rd.Event]]) -> None:
    assert_type(rd.fallback(events), Observable[rd.Event])
    assert_type(rd.fallback(ask, events, lambda: ask()), Observable[rd.Event])
    assert_type(rd.fallback(*[ask, ask]).pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(rd.race(events, ask, after=0.5), Observable[rd.Event])
    assert_type(rd.race(ask, ask, after=timedelta(seconds=1)), Observable[rd.Event])


def ask_another(snapshot: rd.Snapshot | None, error: Exception | None, attempt: int) -> Observable[rd.Event]:
    raise NotImplementedError


def with_default(snapshot: rd.Snapshot | None, model: str = "small") -> Observable[rd.Event]:
    raise NotImplementedError


def needs_a_snapshot(snapshot: rd.Snapshot) -> Observable[rd.Event]:
    raise NotImplementedError


def wrong(
    events: Observable[rd.Event],
    snapshots: Observable[rd.Snapshot],
    go_on: Callable[[rd.Snapshot | None, Exception | None, int, str], Observable[rd.Event]],
) -> None:
    snapshots.pipe(rd.share_events())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snapshots.pipe(rd.until_stopped(asyncio.Event()))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.fallback(snapshots)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.fallback([events])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.race(events, go_on)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.race(events, after="1s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    events.pipe(rd.fallback(events))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    rd.retry_stream(go_on)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    rd.retry_stream(needs_a_snapshot)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    events.pipe(rd.until_stopped(lambda: None))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
