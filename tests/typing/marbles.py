"""What the checkers infer of marble lines. Never run."""

from __future__ import annotations

from typing import Any, assert_type

from reactivex import Observable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.testing import TestScheduler

import rxdelta as rd
from rxdelta.testing import marbles


def lines_and_records(records: list[marbles.Record]) -> None:
    assert_type(marbles.parse("a|"), list[marbles.Record])
    assert_type(marbles.draw(marbles.parse("a|")), str)
    assert_type(marbles.draw(records, values={"a": 1}, frame=1, error=ValueError()), str)
    for _, kind, value in marbles.parse("a|", values=str):
        assert_type(value, Any)
        if kind == "next" or kind == "error" or kind == "completed":
            continue
        marbles.draw(kind)  # no other kind is left


def sources(time: VirtualTimeScheduler, source: Observable[rd.Snapshot]) -> None:
    line = marbles.cold("a|", time)
    assert_type(line, marbles.Cold)
    assert_type(line.pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(line.subscriptions, list[tuple[float, float | None]])
    assert_type(marbles.drawn(source, TestScheduler(), until=3), str)
    assert_type(marbles.records(source, time, until=3), list[marbles.Record])


def checks(records: list[marbles.Record]) -> None:
    marbles.check("a|", rd.scan_deltas(), rd.throttle_latest(1), gives=records)
    marbles.check(records, rd.text_deltas(), gives="a|", values=str, frame=1, reads=[(0, 1)])
