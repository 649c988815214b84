"""What an operator that rewrites, checks or cuts the text costs a delta of six characters, and whether it grows with the text.

And what goes wrong where a gateway holds back some characters and applies its function to what it holds: a model of that
beside `redact`, on random texts with keys and card numbers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import reactivex as rx
from harness import Table

import rxdelta as rd

SIZES = [2_000, 16_000]
FOLDED = "`scan_deltas`"
Operator = Callable[[], Any]


def reply(n: int) -> list[rd.Event]:
    """One text in n deltas; each fifteenth ends a sentence."""
    ev = rd.events
    deltas = [ev.TextDelta(0, "lorem " if i % 15 else "end. A") for i in range(n)]
    start, finish = ev.BlockStart(0, {"type": "text"}), ev.BlockFinish(0)
    return [ev.MessageStart("m"), start, *deltas, finish, ev.MessageFinish("stop")]


# The operator, and the most that it may cost, as a multiple of folding. A machine that looks at each character costs 8.
OPERATORS: dict[str, tuple[Operator, float | None]] = {
    "`text_deltas`": (rd.text_deltas, None),
    "`redact`, a key": (lambda: rd.redact(r"sk-\w{8,}"), 2.2),
    "`redact`, an address": (lambda: rd.redact(r"[\w.]+@[\w.]+\.\w\w"), 2.2),
    "`redact`, a number": (lambda: rd.redact(r"\d{3}-\d\d-\d{4}"), 2.2),
    '`map_text`, by "word"': (lambda: rd.map_text(lambda word: word), 2.8),
    '`cut_text`, by "sentence"': (rd.cut_text, None),
    "`sentences`": (rd.sentences, None),
    "`until_sequence`": (lambda: rd.until_sequence("STOP", "\n\n\n"), None),
    "`guard`, a check that passes": (lambda: rd.guard(lambda text: True), None),
    "`guard`, with a `context` of 200": (lambda: rd.guard(lambda text: True, context=200), None),
}


def nothing(_: object) -> None:
    pass


def piped(events: list[rd.Event], operator: Any) -> None:
    errors: list[Exception] = []
    rx.from_iterable(events).pipe(operator).subscribe(nothing, errors.append)
    if errors:
        raise errors[0]


# As gateways do.

SECRET = re.compile(r"sk-\w{5,}|\d{4}(?: \d{4}){3}")
TEXTS, HELD = 2_000, 24


def hidden(text: str) -> str:
    return SECRET.sub("#", text)


def texts() -> Iterator[tuple[str, list[str]]]:
    """Random texts, and each in pieces."""
    draw = random.Random(2)
    words = ["a ", "bb ", "4111 1111 1111 1111 "]
    for _ in range(TEXTS):
        text = "".join(draw.choice([*words, f"sk-{'x' * draw.choice([5, 10, 40])} "]) for _ in range(12))
        pieces: list[str] = []
        at = 0
        while at < len(text):
            pieces.append(text[at : at + draw.choice([1, 2, 3, 8])])
            at += len(pieces[-1])
        yield text, pieces


def held_back(pieces: list[str]) -> str:
    """The function on what is held, again and again, and all but the last characters passed on."""
    out = held = ""
    for piece in pieces:
        held = hidden(held + piece)
        if len(held) > HELD:
            out, held = out + held[:-HELD], held[-HELD:]
    return out + hidden(held)


def redacted(pieces: list[str]) -> str:
    ev = rd.events
    deltas = [ev.TextDelta(0, piece) for piece in pieces]
    seen: list[Any] = []
    source = rx.from_iterable([ev.BlockStart(0, {"type": "text"}), *deltas, ev.BlockFinish(0)])
    source.pipe(rd.redact(SECRET, "#"), rd.text_deltas()).subscribe(seen.append)
    return "".join(map(str, seen))


def wrong(rewritten: Callable[[list[str]], str]) -> int:
    return sum(rewritten(pieces) != hidden(text) for text, pieces in texts())


def leaking(rewritten: Callable[[list[str]], str]) -> int:
    return sum(re.search("xxxx|1111", rewritten(pieces)) is not None for _, pieces in texts())


def tables() -> Iterator[Table]:
    table = Table("Text on its way", "µs a delta of six characters", base=FOLDED, growth=True, rounds=7)
    for n in SIZES:
        events, column = reply(n), f"{n:,}"
        table.row(FOLDED, lambda events=events: piped(events, rd.scan_deltas()), n, column=column)
        for name, (make, goal) in OPERATORS.items():
            table.row(
                name,
                lambda events=events, make=make: piped(events, make()),
                n,
                column=column,
                goal=goal if n == SIZES[-1] else None,
            )
    yield table
    peers = Table(f"{TEXTS:,} random texts with secrets", "texts", scale=1, base="-", rounds=1)
    peers.note = f"The gateways' way holds back {HELD} characters and applies its function to what it holds."
    for name, rewritten, is_peer in [("`redact`", redacted, False), ("the gateways' way", held_back, True)]:
        for column, count in [("wrong", wrong), ("leaking", leaking)]:
            peers.row(
                name,
                lambda count=count, rewritten=rewritten: count(rewritten),
                column=column,
                told=True,
                peer=is_peer,
            )
    yield peers
