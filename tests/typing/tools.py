"""What the checkers infer of `run_tools`. Never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import reactivex as rx
from reactivex import Observable

import rxdelta as rd


def say(call: rd.ToolCall, error: Exception) -> str:
    return f"{call.name}: {type(error).__name__}"


def say_more(call: rd.types.CompleteToolCall, error: Exception) -> str:
    return f"{call.name}, of {call.arguments['city']}: {type(error).__name__}"


def tools(events: Observable[rd.Event], look: Callable[[str], str]) -> None:
    plain = rd.run_tools({"look": look})
    assert_type(plain, Callable[[Observable[rd.Event]], Observable[rd.Event]])
    asked = rd.run_tools({"look": look}, 4, 30, "message", unknown="leave", on_error=say, choice=1)
    assert_type(events.pipe(plain, asked), Observable[rd.Event])
    assert_type(events.pipe(plain, rd.scan_deltas(), rd.to_message()), Observable[rd.Message])
    rd.run_tools({}, on_error=say_more)
    rd.run_tools({}, on_error=lambda call, error: f"{dict(call.arguments)} {error}")
    decided(events, {})
    rd.run_tools({}, unknown="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.run_tools({}, on_error=lambda call: "no")  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]


async def allow(call: rd.ToolCall) -> bool | rd.Approval:
    return call.name == "look" or rd.Approval(False, "Not this one.")


def answers(call: rd.ToolCall) -> Observable[bool]:
    return rx.of(call.type == "server_tool_call")


def decided(events: Observable[rd.Event], known: dict[str, rd.Approval]) -> None:
    assert_type(events.pipe(rd.run_tools({}, approve=allow, rerun={"look"})), Observable[rd.Event])
    rd.run_tools({}, approve=answers, rerun=["look"])
    rd.run_tools({}, approve=known)
    rd.run_tools({}, approve={"c1": True})
    rd.run_tools({}, approve=lambda call: call.arguments["city"] == "Oslo" or None)
    rd.stream(events, approve=allow)
    rd.run_tools({}, approve=lambda call: call.name)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    rd.run_tools({}, approve=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def fails() -> None:
    error = rd.ToolError("no such city")
    assert_type(error.snapshot, rd.Snapshot | None)
