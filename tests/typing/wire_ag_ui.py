"""What type checkers infer of AG-UI's runs. Never run: `mypy --strict tests/typing` and `pyright tests/typing`."""

from __future__ import annotations

from typing import Any, assert_type

from ag_ui.core import BaseEvent, RunAgentInput
from reactivex import Observable

import rxdelta as rd


def frames(events: Observable[rd.Event], run: RunAgentInput) -> None:
    told = events.pipe(rd.to_ag_ui(run))
    assert_type(told, Observable[BaseEvent])
    assert_type(told.pipe(rd.to_sse()), Observable[bytes])
    assert_type(
        events.pipe(rd.to_ag_ui(on_error=str, provider_items=True), rd.to_sse(15)),
        Observable[bytes],
    )
    posted: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": []}
    assert_type(events.pipe(rd.to_ag_ui(posted, thread_id="t", run_id="r")), Observable[BaseEvent])


def messages(run: RunAgentInput) -> None:
    assert_type(rd.from_ag_ui(run), list[rd.Message])
    assert_type(rd.requests.approvals_from_ag_ui(run), dict[str, rd.Approval])
    assert_type(rd.from_ag_ui({"messages": []}, system=True, allow={"s3", "file_id"}), list[rd.Message])


def encoder() -> rd.wire.Encoder[BaseEvent]:
    return rd.wire.AgUiEncoder(thread_id="t", run_id="r", serialize_tool_calls=True)


def wrong() -> None:
    rd.to_ag_ui("t")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.to_ag_ui(None, "t", "r")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
