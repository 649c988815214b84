"""What the example's server takes of a page's message: the results of the page's own tools."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import rxdelta as rd

EXAMPLE = Path(__file__).parents[3] / "examples" / "chat_web"


def zone(call_id: str, output: str) -> dict[str, Any]:
    return {
        "type": "tool-get_time_zone",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {},
        "output": output,
    }


def test_a_result_is_for_the_newest_call_with_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that numbers its calls anew has used the id before: the page has a suffix there."""
    monkeypatch.syspath_prepend(EXAMPLE)
    answers = importlib.import_module("assistant").Answers
    waiting = rd.Message(
        role="assistant", blocks=[rd.ToolCall(call_id="call_0", name="get_time_zone", arguments={})]
    )
    parts = [{"type": "step-start"}, zone("call_0", "Rome"), {"type": "step-start"}, zone("call_0-2", "Oslo")]
    found = answers.to(waiting, {"id": "a", "role": "assistant", "parts": parts}).results
    assert found == {"call_0": rd.ToolResult("call_0", "Oslo")}
