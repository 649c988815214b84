"""What a delta costs in the operators that wait, try again and read: the same in a long stream as in a short one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex.testing import TestScheduler
from support.cost import lines_run

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

ev = rd.events
WORDS = [
    "the ",
    "of",
    " and",
    "ing ",
    "Hello",
    ", wo",
    "rld",
    "\n",
    "def ",
    "x = ",
    "é",
    " we",
    "ation",
    " a",
    "ble.",
]


def text(pieces: list[str]) -> list[Any]:
    start = ev.BlockStart(0, {"type": "text", "text": ""})
    return [start, *(ev.TextDelta(0, piece) for piece in pieces), ev.BlockFinish(0), ev.MessageFinish("stop")]


def call(pieces: list[str]) -> list[Any]:
    start = ev.BlockStart(0, {"type": "tool_call", "id": "c", "name": "f"})
    return [
        start,
        *(ev.ToolCallDelta(0, piece) for piece in pieces),
        ev.BlockFinish(0),
        ev.MessageFinish("tool_use"),
    ]


def prose(count: int) -> list[str]:
    return [WORDS[at % len(WORDS)] for at in range(count)]


def string(count: int) -> list[str]:
    return ['{"path": "a.py", "content": "', *["abc\\n"] * count, '"}']


def objects(count: int) -> list[str]:
    whole = json.dumps({"edits": [{"line": n, "ok": True, "new": "x = 1; y = 2"} for n in range(count // 4)]})
    return [whole[at : at + 14] for at in range(0, len(whole), 14)]


def read_at_each_delta(events: list[Any]) -> None:
    fold = rd.Fold()
    for event in events:
        for known in fold.step(event).tool_calls:
            _ = known.arguments_so_far


def through(*operators: Callable[[Observable[Any]], Observable[Any]]) -> Callable[[list[Any]], None]:
    def subscribe(events: list[Any]) -> None:
        failed: list[Exception] = []
        rx.from_iterable(events).pipe(*operators).subscribe(on_error=failed.append)
        assert not failed

    return subscribe


def retried(events: list[Any]) -> None:
    rd.retry_stream(lambda: rx.from_iterable(events)).subscribe()


def raced(events: list[Any]) -> None:
    rd.race(rx.never(), lambda: rx.from_iterable(events)).subscribe()


def smoothed(events: list[Any]) -> None:
    scheduler = TestScheduler()
    rx.from_iterable(events).pipe(rd.smooth(scheduler=scheduler)).subscribe()
    scheduler.start()


@pytest.mark.parametrize(
    ("act", "events", "most"),
    [
        pytest.param(through(rd.stall_timeout(60)), lambda n: text(prose(n)), 34, id="stall_timeout"),
        pytest.param(retried, lambda n: text(prose(n)), 48, id="retry_stream"),
        pytest.param(raced, lambda n: text(prose(n)), 48, id="race"),
        pytest.param(smoothed, lambda n: text(prose(n)), 60, id="smooth"),
        pytest.param(through(rd.redact("sk-.+")), lambda n: text(prose(n)), 62, id="redact"),
        pytest.param(through(rd.map_text(str)), lambda n: text(prose(n)), 80, id="map_text"),
        pytest.param(through(rd.guard(bool, context=9)), lambda n: text(prose(n)), 122, id="guard"),
        pytest.param(through(rd.until_sequence("\n\n")), lambda n: text(prose(n)), 93, id="until_sequence"),
        pytest.param(through(rd.sentences()), lambda n: text(prose(n)), 83, id="sentences"),
        pytest.param(through(rd.stable_blocks()), lambda n: text(prose(n)), 75, id="stable_blocks"),
        pytest.param(through(rd.partial_arguments()), lambda n: call(string(n)), 140, id="one long string"),
        pytest.param(through(rd.partial_arguments()), lambda n: call(objects(n)), 235, id="many objects"),
        pytest.param(
            through(rd.partial_json()), lambda n: text(string(n)), 155, id="a text of one long string"
        ),
        pytest.param(
            through(rd.partial_json()), lambda n: text(objects(n)), 215, id="a text of many objects"
        ),
        pytest.param(
            read_at_each_delta, lambda n: call(string(n)), 155, id="arguments_so_far of one long string"
        ),
        pytest.param(
            read_at_each_delta, lambda n: call(objects(n)), 250, id="arguments_so_far of many objects"
        ),
    ],
)
def test_twice_as_many_deltas_cost_at_most_little_more_than_twice(
    act: Callable[[list[Any]], None], events: Callable[[int], list[Any]], most: int
) -> None:
    few, many = events(400), events(800)
    costs = lines_run(lambda: act(few)), lines_run(lambda: act(many))
    assert costs[1] <= 2.2 * costs[0]
    assert (costs[1] - costs[0]) / (len(many) - len(few)) <= most
