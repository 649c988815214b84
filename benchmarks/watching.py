"""What an operator that watches, shares or paces a reply costs a delta, as a multiple of folding it.

All deltas come within one moment of a virtual clock. A bare subscription's time is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import reactivex as rx
import reactivex.operators as ro
from harness import Table
from reactivex import Observable
from reactivex.testing import TestScheduler
from streams import arguments, events

import rxdelta as rd

N = 4_000
BARE, STEP = "a bare subscription", "`Fold.step`, by hand"
TEXT, CALL = events(N), arguments(N)
FOLD = rd.Fold(choice=0)
SNAPSHOTS = [FOLD.step(event) for event in TEXT]

Make = Callable[[TestScheduler], Callable[[Observable[Any]], Observable[Any]]]


def folded(reply: list[rd.Event]) -> None:
    fold = rd.Fold(choice=0)
    for event in reply:
        fold.step(event)


def nothing(*_: Any) -> None:
    pass


def piped(items: list[Any], make: Make | None) -> None:
    clock = TestScheduler()
    source = rx.from_iterable(items)
    errors: list[Exception] = []

    def read(value: Any) -> None:
        if isinstance(value, Observable):
            value.subscribe(nothing, errors.append)

    (source.pipe(make(clock)) if make else source).subscribe(read, errors.append)
    clock.start()
    if errors:
        raise errors[0]


def retried(clock: TestScheduler) -> Callable[[Observable[Any]], Observable[Any]]:
    return lambda source: rd.retry_stream(lambda *_: source)


# What it gets, the operator, and the most that it may cost. The last five goals are half of what it was when each delta was folded.
WATCHING: dict[str, tuple[list[Any], Make, float | None]] = {
    "`on_settled`": (TEXT, lambda clock: rd.on_settled(nothing), 0.5),
    "`text_deltas`": (TEXT, lambda clock: rd.text_deltas(), 0.7),
    "`tap_metrics`": (TEXT, lambda clock: rd.tap_metrics(nothing), 0.9),
    "`group_by_message`": (TEXT, lambda clock: rd.group_by_message(), 0.9),
    "`share_events`": (TEXT, lambda clock: rd.share_events(), 1.9),
    "`share_latest` of snapshots": (SNAPSHOTS, lambda clock: rd.share_latest(), 1.7),
    "`stall_timeout`": (TEXT, lambda clock: rd.stall_timeout(1, 1, scheduler=clock), 0.9),
    "`retry_stream` around it": (TEXT, retried, 1.3),
    "`smooth`, a burst": (TEXT, lambda clock: rd.smooth(scheduler=clock), 2.5),
    "`stable_blocks`": (TEXT, lambda clock: rd.stable_blocks(), 2.0),
    "`partial_arguments`, of arguments": (CALL, lambda clock: rd.partial_arguments(), 4.4),
}
OTHERS: dict[str, tuple[list[Any], Make, float | None]] = {
    "`scan_deltas`, with the fold in it": (TEXT, lambda clock: rd.scan_deltas(), None),
    "`validate`": (TEXT, lambda clock: rd.validate(), None),
    "`until_stopped`": (TEXT, lambda clock: rd.until_stopped(rx.never()), None),
    "`throttle_latest` of snapshots": (SNAPSHOTS, lambda clock: rd.throttle_latest(1, scheduler=clock), None),
    "`conflate` of snapshots": (SNAPSHOTS, lambda clock: rd.conflate(scheduler=clock), None),
    "`compact_deltas`": (TEXT, lambda clock: rd.compact_deltas(1, scheduler=clock), None),
    "`group_by_block`, read": (TEXT, lambda clock: rd.group_by_block(), None),
    "`per_block`": (TEXT, lambda clock: rd.per_block(lambda block: block), None),
    "`run_tools`, a text": (TEXT, lambda clock: rd.run_tools({}), None),
    "`completed_tool_calls`, of arguments": (CALL, lambda clock: rd.completed_tool_calls(), None),
    "`to_langchain_events`": (TEXT, lambda clock: rd.to_langchain_events(), None),
}
PEERS: dict[str, tuple[list[Any], Make, float | None]] = {
    "reactivex, `share()`": (TEXT, lambda clock: ro.share(), None),
    "reactivex, `map()`": (TEXT, lambda clock: ro.map(lambda event: event), None),
}


def tables() -> Iterator[Table]:
    for title, operators in {"Watching and sharing": WATCHING | PEERS, "Other operators": OTHERS}.items():
        table = Table(title, "µs a delta more than a bare subscription", base=STEP)
        table.row(STEP, lambda: folded(TEXT), N)
        table.row(BARE, lambda: piped(TEXT, None), N)
        for name, (items, make, goal) in operators.items():
            table.row(
                name,
                lambda items=items, make=make: piped(items, make),
                N,
                over=BARE,
                goal=goal,
                peer=name in PEERS,
            )
        yield table
