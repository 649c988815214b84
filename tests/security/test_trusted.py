"""What is trusted: what arrives is values, or an error of rxdelta."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from support.front_end_bodies import (
    CHAT,
    FUNCTION,
    RUN,
    UI,
    Json,
    deep,
)
from support.security_page import says

import rxdelta as rd

ev = rd.events

HOSTILE: list[Any] = [
    None, True, -1, 2**80, 10**4000, float("nan"), float("inf"), "", "\ud83d", "\0\r\n\n", [], {}, [[]],
    {"type": ["a"]}, {"type": {}}, {"__proto__": {"a": 1}, "__class__": "x", "constructor": {"prototype": {}}},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in inside for found in places(one, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], to)
    return copy


def mutations(value: Any) -> list[Any]:
    """The value with each of its places replaced by each hostile value."""
    return [changed(value, path, one) for path in places(value) for one in [*HOSTILE, deep(300)]]


CHUNKS: dict[str, list[Json]] = {
    "openai-chat": [
        {
            "id": "c",
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": "Hi", "tool_calls": [{"index": 0, "id": "c1", "function": FUNCTION}]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
    ],
    "anthropic-messages": [
        {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    ],
}  # fmt: skip


def read_or_refused(read: Callable[[Any], Any], given: Any) -> None:
    """Any other exception fails the test."""
    with contextlib.suppress(rd.RxDeltaError):
        read(given)


@says("Nothing that arrives is trusted", "The keys of JSON are data")
@pytest.mark.parametrize(
    ("read", "given"),
    [
        (rd.from_ai_sdk, UI),
        (rd.requests.approvals_from_ai_sdk, UI[:1]),
        (rd.from_ag_ui, RUN),
        (rd.requests.approvals_from_ag_ui, RUN),
        (rd.requests.from_openai_chat, CHAT),
    ],
)  # fmt: skip
def test_whatever_a_browser_sends_is_values_or_our_error(read: Any, given: Any) -> None:
    read(given)
    for hostile in mutations(given):
        read_or_refused(read, hostile)


@pytest.mark.parametrize("wire_format", CHUNKS)
def test_whatever_a_provider_sends_is_values_or_our_error(wire_format: str) -> None:
    for hostile in mutations(CHUNKS[wire_format]):
        failed: list[Exception] = []
        chunks = rx.from_iterable(hostile if isinstance(hostile, list) else [hostile])
        chunks.pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(on_error=failed.append)
        assert all(isinstance(error, rd.RxDeltaError) for error in failed), hostile


MESSAGE = rd.from_ai_sdk(UI)[0]


@says("Stored JSON is checked")
def test_stored_json_is_values_or_our_error() -> None:
    stored = MESSAGE.to_dict()
    assert rd.Message.from_dict(stored) == MESSAGE
    for hostile in mutations(json.loads(json.dumps(stored))):
        read_or_refused(rd.Message.from_dict, hostile)
        read_or_refused(rd.Snapshot.from_dict, hostile)
    for event in rd.to_events(MESSAGE):
        for hostile in mutations(json.loads(json.dumps(event.to_dict()))):
            read_or_refused(rd.events.from_dict, hostile)
