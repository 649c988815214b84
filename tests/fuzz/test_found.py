"""What the fuzzer has found, as small as it got. Each input must stay read or refused as the laws have it."""

from __future__ import annotations

from typing import Any

import pytest
from fuzz.targets import TARGETS

FOUND: list[tuple[str, str, list[Any]]] = [
    ("ag-ui", "a type that is a list was looked up in a set", [{"type": []}]),
    ("ag-ui", "a type that is an object was, too", [{"type": {}}]),
    ("langchain", "a chunk that is a number was", [{"event": "on_chat_model_stream", "data": {"chunk": 1}}]),
    ("langchain", "a message in a message was", [{"message": {"message": {"message": 1}}}]),
    (
        "openai-chat",
        "a field of lists in lists",
        [{"choices": [{"delta": {"x": [[[[]]]]}}]}, {"choices": [{"finish_reason": "stop"}]}],
    ),
    (
        "openai-responses",
        "a response that still runs had no end where another response follows",
        [
            {"object": "response", "status": "in_progress"},
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
        ],
    ),
    ("parts", "a stored value that is no object was asked for its fields", ["x"]),
    ("parts", "a list was, too", [[1]]),
    ("parts", "and a number", [1.5]),
    ("store-url", "half a surrogate pair in PostgreSQL's address was no error of ours", [b"postgresql:\x88"]),
    ("store-url", "nor were bytes there that are no UTF-8", [b"postgres://%db"]),
]


@pytest.mark.parametrize(
    ("name", "given"), [pytest.param(name, given, id=f"{name}: {what}") for name, what, given in FOUND]
)
def test_what_was_found_is_mended(name: str, given: list[Any]) -> None:
    TARGETS[name].holds_for(*given)
