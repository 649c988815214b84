"""What an operator that watches, shares or paces a reply costs a delta, as a multiple of folding it.

All deltas come within one moment of a virtual clock, or in one turn of an asyncio loop where an operator reads the time of each,
because a virtual clock makes a date of it. A bare subscription's time is taken off.
"""

from __future__ import annotations

import asyncio
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
BARE, IN_A_LOOP, STEP = "a bare subscription", "a bare subscription in a loop", "`Fold.step`, by hand"
TEXT, CALL, MIXED = events(N, ascii=True), arguments(N), events(N)
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

    def read(part: Observable[Any]) -> None:
        part.subscribe(nothing, errors.append)

    piped = source.pipe(make(clock)) if make else source
    piped.subscribe(read if make in GROUPS else nothing, errors.append)
    clock.start()
    if errors:
        raise errors[0]


def looped(items: list[Any], make: Callable[[], Callable[[Observable[Any]], Observable[Any]]] | None) -> None:
    async def read() -> None:
        source = rx.from_iterable(items)
        await rd.last_value(source.pipe(make()) if make else source)

    asyncio.run(read())


def retried(clock: TestScheduler) -> Callable[[Observable[Any]], Observable[Any]]:
    return lambda source: rd.retry_stream(lambda *_: source)


def by_message(clock: TestScheduler) -> Callable[[Observable[Any]], Observable[Any]]:
    return rd.group_by_message()


def by_block(clock: TestScheduler) -> Callable[[Observable[Any]], Observable[Any]]:
    return rd.group_by_block()


GROUPS: tuple[Make | None, ...] = (by_message, by_block)  # whose streams are read, too
# What it gets, the operator, and the most that it may cost. The last goals are half of what it was when each delta was folded.
WATCHING: dict[str, tuple[list[Any], Make, float | None]] = {
    "`on_settled`": (TEXT, lambda clock: rd.on_settled(nothing), 0.5),
    "`text_deltas`": (TEXT, lambda clock: rd.text_deltas(), 0.7),
    "`tap_metrics`": (TEXT, lambda clock: rd.tap_metrics(nothing), 0.9),
    "`group_by_message`": (TEXT, by_message, 0.9),
    "`share_events`": (TEXT, lambda clock: rd.share_events(), 1.9),
    "`share_latest` of snapshots": (SNAPSHOTS, lambda clock: rd.share_latest(), 1.7),
    "`retry_stream` around it": (TEXT, retried, 1.3),
    "`stable_blocks`": (TEXT, lambda clock: rd.stable_blocks(), 2.0),
    "`partial_arguments`, of arguments": (CALL, lambda clock: rd.partial_arguments(), 5.7),
}
# The same in a loop.
TIMED: dict[str, tuple[Callable[[], Callable[[Observable[Any]], Observable[Any]]], float]] = {
    "`stall_timeout`": (lambda: rd.stall_timeout(1, 1), 0.9),
    "`smooth`, a burst": (lambda: rd.smooth(max_lag=0.01), 2.5),
}
OTHERS: dict[str, tuple[list[Any], Make, float | None]] = {
    "`text_deltas`, a seventh isn't ASCII": (MIXED, lambda clock: rd.text_deltas(), None),
    "`scan_deltas`, with the fold in it": (TEXT, lambda clock: rd.scan_deltas(), None),
    "`validate`": (TEXT, lambda clock: rd.validate(), None),
    "`until_stopped`": (TEXT, lambda clock: rd.until_stopped(rx.never()), None),
    "`throttle_latest` of snapshots": (SNAPSHOTS, lambda clock: rd.throttle_latest(1, scheduler=clock), None),
    "`conflate` of snapshots": (SNAPSHOTS, lambda clock: rd.conflate(scheduler=clock), None),
    "`compact_deltas`": (TEXT, lambda clock: rd.compact_deltas(1, scheduler=clock), None),
    "`group_by_block`, read": (TEXT, by_block, None),
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
        table.row(STEP, lambda: folded(TEXT), len(TEXT))
        table.row(BARE, lambda: piped(TEXT, None), len(TEXT))
        for name, (items, make, goal) in operators.items():
            table.row(
                name,
                lambda items=items, make=make: piped(items, make),
                len(items),
                over=BARE,
                goal=goal,
                peer=name in PEERS,
            )
        if operators is not OTHERS:
            table.row(IN_A_LOOP, lambda: looped(TEXT, None), len(TEXT))
            for name, (timed, goal) in TIMED.items():
                table.row(name, lambda timed=timed: looped(TEXT, timed), len(TEXT), over=IN_A_LOOP, goal=goal)
        yield table
