"""What the events of a reply cost beside its text: starts, finishes, updates of tools, and many parallel calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import reactivex as rx
from harness import Table
from reactivex.subject import Subject
from streams import arguments, events

import rxdelta as rd

ev = rd.events
N = 5_000


def calls(count: int) -> list[rd.Event]:
    content = {"type": "tool_call_chunk", "name": "f", "args": ""}
    return [
        event
        for index in range(count)
        for event in (
            ev.BlockStart(index, {**content, "id": f"c{index}"}),
            ev.ToolCallDelta(index, "{}"),
            ev.BlockFinish(index),
        )
    ]


def folded(items: list[rd.Event]) -> rd.Fold:
    fold = rd.Fold(choice=0)
    for event in items:
        fold.step(event)
    return fold


def piped(items: list[rd.Event], operator: Any) -> None:
    rx.from_iterable(items).pipe(operator).subscribe(lambda value: None)


def updates(count: int) -> Callable[[], None]:
    fold = folded(calls(count))
    news = [
        ev.ToolUpdate(f"c{turn % count}", display_text=text)
        for turn in range(500)
        for text in (str(turn), "again")
    ]

    def act() -> None:
        for event in news:
            fold.step(event)

    return act


WAYS: dict[str, Callable[[Subject[Any]], object]] = {
    "`group_by_block`, read": lambda source: source.pipe(rd.group_by_block()).subscribe(
        lambda block: block.subscribe(lambda call: None)
    ),
    "`per_block`": lambda source: source.pipe(rd.per_block(lambda block: block)).subscribe(lambda call: None),
    "`scan_deltas`": lambda source: source.pipe(rd.scan_deltas()).subscribe(lambda snapshot: None),
}


def started(subscribe: Callable[[Subject[Any]], object], count: int) -> Callable[[], None]:
    """The deltas of parallel calls that have begun, in turn."""
    deltas = [ev.ToolCallDelta(place % count, '{"a"') for place in range(N)]
    source = Subject[Any]()
    subscribe(source)
    (observer,) = source.observers  # past the lock of the subject
    observer.on_next(ev.MessageStart(id="m"))
    for event in calls(count)[::3]:
        observer.on_next(event)

    def act() -> None:
        for event in deltas:
            observer.on_next(event)

    return act


def tables() -> Iterator[Table]:
    table = Table("Other events", "µs an event", base="`Fold.step`, a text")
    text, call, many = events(N), arguments(N)[:-2], calls(500)
    pairs = [ev.BlockStart(0, {"type": "text"}), ev.BlockFinish(0)] * 1_000
    short = [*events(1)]
    for name, items in {
        table.base: text,
        "arguments": call,
        "starts and finishes of texts": pairs,
        "500 calls of one delta": many,
    }.items():
        table.row(name, lambda items=items: (folded(items), None)[1], len(items))
    table.row("whole messages of five events", lambda: [folded(short) for _ in range(500)], 500 * len(short))
    table.row("updates of 1 call", updates(1), 1_000)
    table.row("updates of 4,000 calls", updates(4_000), 1_000)
    tools = {"f": lambda: 1}
    for name, items, make in (
        ("`group_by_block`, 500 calls", many, rd.group_by_block),
        ("`run_tools`, arguments", call, lambda: rd.run_tools(tools)),
        ("`run_tools`, 500 calls", many, lambda: rd.run_tools(tools)),
        ("`completed_tool_calls`, 500 calls", many, rd.completed_tool_calls),
    ):
        table.row(name, lambda items=items, make=make: piped(items, make()), len(items))
    yield table
    table = Table("Parallel calls", "µs a delta with so many of them: least / median", base="-", rounds=5)
    for count in (1, 8, 64, 512):
        for name, subscribe in WAYS.items():
            table.row(name, started(subscribe, count), N, column=str(count))
    yield table
