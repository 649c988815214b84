"""What the checkers infer of the operators that pace. Never run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import assert_type

from reactivex import Observable
from reactivex.scheduler import EventLoopScheduler

import rxdelta as rd


def snapshots_at_a_pace(snapshots: Observable[rd.Snapshot], numbers: Observable[int]) -> None:
    assert_type(snapshots.pipe(rd.debounce_latest(0.2, max_wait=1)), Observable[rd.Snapshot])
    assert_type(snapshots.pipe(rd.debounce_latest(0.2, 1), rd.to_message()), Observable[rd.Message])
    assert_type(numbers.pipe(rd.debounce_latest(0.2)), Observable[int])
    assert_type(snapshots.pipe(rd.conflate()), Observable[rd.Snapshot])
    assert_type(numbers.pipe(rd.conflate(scheduler=EventLoopScheduler())), Observable[int])


def the_newest_of_each(events: Observable[rd.Event], quotes: Observable[tuple[str, int]]) -> None:
    assert_type(quotes.pipe(rd.throttle_latest(1, key=lambda quote: quote[0])), Observable[tuple[str, int]])
    assert_type(quotes.pipe(rd.debounce_latest(1, key=stock)), Observable[tuple[str, int]])
    assert_type(events.pipe(rd.conflate(key=lambda event: event.run_id)), Observable[rd.Event])
    assert_type(events.pipe(rd.share_latest(key=type)), Observable[rd.Event])


def stock(quote: tuple[str, int]) -> str:
    return quote[0]


def events_at_a_pace(events: Observable[rd.Event]) -> None:
    assert_type(rd.compact_deltas(0.05), Callable[[Observable[rd.Event]], Observable[rd.Event]])
    assert_type(events.pipe(rd.compact_deltas(0.05)), Observable[rd.Event])
    assert_type(events.pipe(rd.smooth()), Observable[rd.Event])
    assert_type(events.pipe(rd.smooth("line", rate=20, max_lag=1)), Observable[rd.Event])
    assert_type(events.pipe(rd.smooth(re.compile(r"[.!?]\s+"))), Observable[rd.Event])
    assert_type(
        events.pipe(rd.smooth(lambda text: text[:8] if len(text) >= 8 else None)), Observable[rd.Event]
    )
    assert_type(
        events.pipe(rd.smooth(), rd.compact_deltas(0.05), rd.scan_deltas(), rd.conflate()),
        Observable[rd.Snapshot],
    )
