"""OpenAI Responses: the table of calls agrees with what the request writes."""

from __future__ import annotations

import pytest

from rxdelta.formats.openai_responses.calls import CALLS, CallType, result_field
from rxdelta.formats.openai_responses.results import CLIENT_CALLS

FOR_CLIENT = {"environment": {"type": "local"}, "execution": "client"}


def test_each_call_for_the_client_has_a_form_for_its_result() -> None:
    assert {kind for kind, call in CALLS.items() if call.for_client((), FOR_CLIENT)} == CLIENT_CALLS


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("mcp_call", "output"),
        ("code_interpreter_call", "outputs"),
        ("web_search_call", "output"),
        ("tool_search_output", "tools"),
        ("odd_output", "output"),
    ],
)
def test_results_stand_in_one_field_of_an_item(kind: str, field: str) -> None:
    assert result_field(kind) == field


def test_the_arguments_of_an_unknown_call_are_the_fields_that_usually_hold_them() -> None:
    assert CallType.of("odd_call", {"query": "q", "color": "red"}).payload == ("query",)
    assert CallType.of("odd_call", {"query": "q", "arguments": "{}"}).payload is None
