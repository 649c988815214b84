"""What holds for every operator, because each has the same shell: readers that leave or raise. `test_grammar` has the rest."""

from __future__ import annotations

from typing import Any

from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable

import rxdelta as rd
from rxdelta import events as ev

EVENTS = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "a"),
    ev.TextDelta(0, "b"),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]


def test_a_request_is_not_repeated_for_a_reader_that_has_left() -> None:
    requests: list[int] = []

    def factory() -> Observable[rd.Event]:
        def subscribe(
            observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            requests.append(1)
            observer.on_next(EVENTS[0])
            observer.on_error(TimeoutError())
            return Disposable()

        return Observable(subscribe)

    rd.retry_stream(factory, 3, lambda *_: 0).pipe(ops.take(1)).subscribe()
    assert requests == [1]
    rd.retry_stream(factory, 3, lambda *_: 0).subscribe(on_error=lambda _: None)
    assert requests == [1] * 4


def test_a_reader_that_has_left_a_synchronous_source_counts_as_having_disposed() -> None:
    outcomes: list[str] = []

    def subscribe(observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        for event in EVENTS:
            observer.on_next(event)
        observer.on_completed()
        return Disposable()

    source = Observable(subscribe)
    source.pipe(rd.on_settled(lambda _, outcome: outcomes.append(outcome.kind)), ops.take(1)).subscribe()
    source.pipe(
        rd.tap_metrics(lambda metrics: outcomes.append(metrics.outcome.kind)), ops.take(1)
    ).subscribe()
    assert outcomes == ["disposed", "disposed"]
