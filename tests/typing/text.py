"""What the checkers infer of the operators on a reply's text. Never run."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, assert_type

import reactivex as rx
from reactivex import Observable

import rxdelta as rd


async def is_harmless(text: str) -> bool:
    return "Bob" not in text


def is_short(text: str) -> bool:
    return len(text) < 9


def asked(text: str) -> Observable[bool]:
    return rx.of(len(text) < 9)


def masked(match: re.Match[str]) -> str:
    return "*" * len(match[0])


def events_to_events(events: Observable[rd.Event], later: Callable[[str], Awaitable[bool]]) -> None:
    redacting = rd.redact(r"sk-\w+")
    assert_type(redacting, Callable[[Observable[rd.Event]], Observable[rd.Event]])
    assert_type(
        events.pipe(
            redacting,
            rd.redact(re.compile("a"), masked, holdback=9, reasoning=False, arguments=True, elsewhere=False),
            rd.redact("b", lambda match: match[0].upper()),
            rd.map_text(str.upper, "line"),
            rd.until_sequence("\n\nQuestion:", "User:", drain=True),
            rd.run_tools({}),
            rd.cut_text("word"),
        ),
        Observable[rd.Event],
    )
    assert_type(
        events.pipe(
            rd.guard(is_short),
            rd.guard(is_harmless, re.compile(r"\n\n"), on_hit="error", context=200, arguments=False),
            rd.guard(asked, 9, on_hit=lambda unit: unit[:1]),
            rd.guard(later),
            rd.scan_deltas(),
        ),
        Observable[rd.Snapshot],
    )


def sentences(events: Observable[rd.Event]) -> None:
    assert_type(rd.sentences(), Callable[[Observable[rd.Event]], Observable[str]])
    assert_type(events.pipe(rd.cut_text(), rd.sentences(), rd.with_limits(rd.Limits())), Observable[str])


def wrong(numbers: Observable[int]) -> tuple[Any, ...]:
    rd.redact(rb"sk")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.redact("sk", lambda match: len(match[0]))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    rd.map_text(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.map_text(str.upper, "words")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.cut_text(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.until_sequence(["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.guard(str.upper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.guard(lambda unit, so_far: True)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
    rd.guard(is_short, on_hit=len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.sentences(choice=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    return (numbers.pipe(rd.redact("a")),)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
