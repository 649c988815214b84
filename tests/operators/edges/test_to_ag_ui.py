"""`to_ag_ui` as an operator: when its frames come, and how it ends."""

from __future__ import annotations

from typing import Any

import reactivex as rx
from support.bounded import bounded
from support.lines import through

import rxdelta as rd

BOOM = ValueError("boom")

ev = rd.events
EVENTS = {
    "s": ev.MessageStart("m1"),
    "b": ev.BlockStart(0, {"type": "text"}),
    "x": ev.TextDelta(0, "Hi"),
    "f": ev.BlockFinish(0),
    "c": ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c1", "name": "f"}),
    "g": ev.BlockFinish(1),
    "e": ev.MessageFinish("stop"),
    "i": ev.MessageInterrupted("user"),
    "u": ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok")),
    "p": ev.ProviderEvent("x", "ping"),
}
ENDS = [(2, "RUN_STARTED"), (2, "RUN_ERROR"), (2, "completed")]


def operator(**options: Any) -> Any:
    return bounded(rd.to_ag_ui, thread_id="t1", run_id="r1", **{"on_error": lambda error: "no", **options})


def told(line: str) -> list[tuple[float, str]]:
    """(tick, what) for a source of these events."""
    records, _ = through(line, operator(), values=EVENTS)
    return [(time, frame.type.value if kind == "next" else kind) for time, kind, frame in records]


def test_each_frame_comes_with_its_event_and_the_end_with_the_sources() -> None:
    assert told("sb-x-f-cg-e-u-|") == [
        (0, "RUN_STARTED"),
        (0, "STEP_STARTED"),
        (3, "TEXT_MESSAGE_START"),
        (3, "TEXT_MESSAGE_CONTENT"),
        (7, "TEXT_MESSAGE_END"),
        (7, "TOOL_CALL_START"),
        (8, "TOOL_CALL_ARGS"),
        (8, "TOOL_CALL_END"),
        (10, "STEP_FINISHED"),
        (12, "TOOL_CALL_RESULT"),
        (14, "RUN_FINISHED"),
        (14, "completed"),
    ]


def test_an_error_becomes_a_frame_and_the_output_completes() -> None:
    assert told("--#") == ENDS
    assert told("sbx-#")[-4:] == [
        (4, "TEXT_MESSAGE_END"),
        (4, "STEP_FINISHED"),
        (4, "RUN_ERROR"),
        (4, "completed"),
    ]


def test_a_limit_that_is_passed_ends_the_run() -> None:
    events = rx.from_iterable([EVENTS[key] for key in "sbxce"])
    kinds: list[str] = []
    events.pipe(operator(limits=rd.Limits(blocks=1))).subscribe(
        lambda frame: kinds.append(frame.type.value), on_completed=lambda: kinds.append("completed")
    )
    assert kinds == [
        "RUN_STARTED",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_ERROR",
        "completed",
    ]


def test_the_error_is_the_sources_own() -> None:
    seen: list[Exception] = []
    rx.throw(BOOM).pipe(operator(on_error=lambda error: seen.append(error) or "no")).subscribe()
    assert seen == [BOOM]


def test_it_reaches_the_wire_through_to_sse() -> None:
    frames = rx.from_iterable([EVENTS[key] for key in "sbxfe"]).pipe(operator(), rd.to_sse())
    seen: list[bytes] = []
    frames.subscribe(seen.append)
    assert seen[3] == b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hi"}\n\n'
    assert rd.wire.AG_UI_HEADERS["content-type"].startswith("text/event-stream")


def test_without_a_request_the_ids_are_made_up_anew_for_each_subscription() -> None:
    told = rx.from_iterable([EVENTS[key] for key in "sbxfe"]).pipe(rd.to_ag_ui())
    runs: list[list[Any]] = [[], []]
    for one in runs:
        told.subscribe(one.append)
    ids = [getattr(run[at], name) for run in runs for name in ("thread_id", "run_id") for at in (0, -1)]
    assert all(ids)
    assert len(set(ids)) == 4


def test_the_request_is_all_that_it_needs() -> None:
    request = {"threadId": "t9", "runId": "r9", "messages": [], "protocolVersion": "1.0"}
    seen: list[Any] = []
    rx.from_iterable([EVENTS[key] for key in "sbxfe"]).pipe(rd.to_ag_ui(request)).subscribe(seen.append)
    assert (seen[0].thread_id, seen[0].run_id, seen[0].protocol_version) == ("t9", "r9", "1.0")
