"""Tools that the provider runs itself."""

from __future__ import annotations

from support.gemini import STOP, message, said, text

import rxdelta as rd


def test_code_is_a_server_tool_call_with_its_result() -> None:
    found = message(
        said(
            {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "x1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "x1"}},
            text("One."),
            reason="STOP",
        )
    )
    code, result, _ = found.to_dict()["blocks"]
    assert code == {
        "type": "server_tool_call",
        "call_id": "x1",
        "name": "code_execution",
        "arguments": {"language": "PYTHON", "code": "print(1)"},
        "status": "complete",
        "metadata": {"provider_type": "executableCode"},
    }
    assert result["options"] == {
        "tool_call_id": "x1",
        "provider_type": "codeExecutionResult",
        "output": {"outcome": "OUTCOME_OK", "output": "1\n"},
        "status": "success",
    }
    assert found.finish_reason == "stop"


def test_a_result_without_an_id_is_of_the_newest_code() -> None:
    code, result = {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}
    first, first_result, second, second_result = message(said(code, result, code, result), STOP).blocks
    assert isinstance(first, rd.ToolCall)
    assert isinstance(second, rd.ToolCall)
    assert first.call_id != second.call_id
    assert isinstance(first_result, rd.ContentPart)
    assert isinstance(second_result, rd.ContentPart)
    assert (first_result.options["tool_call_id"], second_result.options["tool_call_id"]) == (
        first.call_id,
        second.call_id,
    )
    assert first_result.options["status"] == "error"
