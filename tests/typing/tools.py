"""What the checkers infer of `run_tools`. Never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

from reactivex import Observable

import rxdelta as rd


def say(call: rd.ToolCall, error: Exception) -> str:
    return f"{call.name}: {type(error).__name__}"


def say_more(call: rd.CompleteToolCall, error: Exception) -> str:
    return f"{call.name}, of {call.arguments['city']}: {type(error).__name__}"


def tools(events: Observable[rd.Event], look: Callable[[str], str]) -> None:
    plain = rd.run_tools({"look": look})
    assert_type(plain, Callable[[Observable[rd.Event]], Observable[rd.Event]])
    asked = rd.run_tools(
        {"look": look}, 4, 30, "message", unknown="leave", on_error=say, choice=1, limits=rd.Limits(blocks=8)
    )
    assert_type(events.pipe(plain, asked), Observable[rd.Event])
    assert_type(events.pipe(plain, rd.scan_deltas(), rd.to_message()), Observable[rd.Message])
    rd.run_tools({}, on_error=say_more)
    rd.run_tools({}, on_error=lambda call, error: f"{dict(call.arguments)} {error}")
    rd.run_tools({}, unknown="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.run_tools({}, on_error=lambda call: "no")  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]


def fails() -> None:
    error = rd.ToolError("no such city")
    assert_type(error.snapshot, rd.Snapshot | None)
