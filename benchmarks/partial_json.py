"""A call's arguments, read at every fragment of eight characters, from 1 kB to 100 kB of them.

Others parse the whole text again at each fragment; they get the text so far ready.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

import reactivex as rx
from harness import Table, each

import rxdelta as rd

STEP = 8
SIZES = (1_000, 10_000, 100_000)
OURS = "`arguments_so_far` of each snapshot"


def one_string(size: int) -> str:
    return json.dumps({"path": "a.py", "content": ("def f(x):\n    return x + 1\n" * size)[: size - 40]})


def nested(size: int) -> str:
    edit = {"path": "src/a.py", "line": 7, "ok": True, "new": "some text of an edit, not long", "at": [1, 2]}
    return json.dumps({"edits": [edit] * (size // 100)})


def many_keys(size: int) -> str:
    return json.dumps({f"key{number}": number for number in range(size // 16)})


SHAPES: dict[str, Callable[[int], str]] = {
    "one long string": one_string,
    "nested": nested,
    "many keys": many_keys,
}


def cut(text: str) -> list[rd.Event]:
    ev = rd.events
    start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""})
    return [
        ev.MessageStart("m"),
        start,
        *(ev.ToolCallDelta(0, text[at : at + STEP]) for at in range(0, len(text), STEP)),
    ]


def so_far(events: list[rd.Event]) -> int:
    fold = rd.Fold(choice=0)

    def read(event: rd.Event) -> None:
        for call in fold.step(event).tool_calls:
            _ = call.arguments_so_far

    return each(events, read)()


def operator(events: list[rd.Event]) -> None:
    rx.from_iterable(events).pipe(rd.partial_arguments()).subscribe(lambda value: None)


def prefixes(text: str) -> list[str]:
    """The text so far at fragments that are spread evenly, because all of a long text take minutes."""
    ends = [*range(STEP, len(text) + STEP, STEP)]
    return [text[:end] for end in ends[:: max(1, len(ends) // 200)]]


def jiter(parts: list[bytes]) -> int:
    import jiter

    return each(parts, lambda part: jiter.from_json(part, partial_mode="trailing-strings"))()


def partial_json_parser(parts: list[str]) -> int:
    from partial_json_parser import loads

    return each(parts, loads)()


def tables() -> Iterator[Table]:
    for shape, make in SHAPES.items():
        table = Table(
            f"Partial JSON, {shape}",
            "µs a fragment: least / median (× ours)",
            base=OURS,
            growth=True,
            rounds=7,
        )
        for size in SIZES:
            text, column = make(size), {"column": f"{size:,}"}
            events, parts = cut(text), prefixes(text)
            table.row(OURS, partial(so_far, events), len(events), **column)
            table.row("`partial_arguments`", partial(operator, events), len(events), **column)
            table.row(
                "jiter, the text again",
                partial(jiter, [part.encode() for part in parts]),
                **column,
                peer=True,
            )
            table.row(
                "partial-json-parser, the text again",
                partial(partial_json_parser, parts),
                **column,
                peer=True,
            )
        yield table
