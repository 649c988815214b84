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
    ENCODERS,
    FUNCTION,
    RUN,
    UI,
    Json,
    call_part,
    deep,
    shown,
    to_each,
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


@says("Nothing that arrives is trusted", "rxdelta reads what models")
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


@says("Nothing that arrives is trusted", "rxdelta reads what models", "**Resources.**")
@pytest.mark.parametrize("wire_format", CHUNKS)
def test_whatever_a_provider_sends_is_values_or_our_error_and_ends_once(wire_format: str) -> None:
    for hostile in mutations(CHUNKS[wire_format]):
        ends: list[Exception | None] = []
        chunks = rx.from_iterable(hostile if isinstance(hostile, list) else [hostile])
        chunks.pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(
            on_error=ends.append, on_completed=lambda ends=ends: ends.append(None)
        )
        (end,) = ends
        assert end is None or isinstance(end, rd.RxDeltaError), hostile


BODIES = [
    b"<html><body>502 Bad Gateway</body></html>", b"", b"\0" * 99, b"\xff\xfe\xfd", b"data: {", b"data: }\n\n", b"{}{}", b"[[[[",
    b"data: \xed\xa0\x80\n\n", b"\xef\xbb\xbfdata: 1\n\n", b"event: \n\n", b"\r\n\r\r\n", b'data: {"a": NaN}\n\n', b"HTTP/1.1 200 OK\r\n\r\n",
]  # fmt: skip
"""What a gateway may answer instead of a stream."""


@says("Nothing that arrives is trusted")
@pytest.mark.parametrize("wire_format", ["openai-chat", "anthropic-messages", "gemini", "ollama"])
def test_whatever_a_gateway_sends_is_values_or_our_error(wire_format: str) -> None:
    for body in BODIES:
        for pieces in ([body], [body[place : place + 1] for place in range(len(body))]):
            for parse in (rd.parse_sse(), rd.parse_ndjson()):
                for behind in ([], [rd.decode(wire_format), rd.scan_deltas()]):
                    ends: list[Exception | None] = []
                    rx.from_iterable(pieces).pipe(parse, *behind).subscribe(
                        on_error=ends.append, on_completed=lambda ends=ends: ends.append(None)
                    )
                    (end,) = ends
                    assert end is None or isinstance(end, rd.RxDeltaError), body


@says("Nothing that arrives is trusted")
@to_each
def test_whatever_a_tool_returns_is_a_result_or_a_failure_of_its_call(which: str) -> None:
    asked = [
        ev.MessageStart("m1"),
        ev.BlockStart(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {}}),
        ev.BlockFinish(0),
        ev.MessageFinish("tool_use"),
    ]
    for answer in (*HOSTILE, deep(300), object(), b"\xff", {1: 2}, {"a": {3}}):
        running = rx.from_iterable(asked).pipe(rd.run_tools({"look": lambda answer=answer: answer}))
        message = running.pipe(rd.scan_deltas(), rd.to_message()).run()
        assert message.tool_calls[0].execution_status() in ("completed", "failed")
        assert json.dumps(rd.to_request([message], "openai-chat"))
        assert shown(running, ENCODERS[which]())


NAMES: Json = {
    "__proto__": {"admin": True}, "__class__": "int", "constructor": {"prototype": {}}, "__init__": 1, "__dict__": {"a": 1},
    "toString": 2, "__globals__": {}, "__reduce__": "os.system",
}  # fmt: skip


@says("The keys of JSON are data")
def test_a_key_that_means_something_elsewhere_is_a_key() -> None:
    got: list[Json] = []

    def look(**given: Any) -> str:
        got.append(given)
        return "seen"

    function = {"name": "look", "arguments": json.dumps(NAMES)}
    delta = {"tool_calls": [{"index": 0, "id": "c1", "function": function}], **NAMES}
    chunk = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}], **NAMES}
    running = rx.of(chunk).pipe(rd.decode("openai-chat"), rd.run_tools({"look": look}))
    message = running.pipe(rd.scan_deltas(), rd.to_message()).run()
    assert got == [NAMES]
    (said,) = rd.from_ai_sdk([{"id": "m", "role": "assistant", "parts": [call_part(input=NAMES)]}])
    for one in (message, said, rd.Message.from_dict(json.loads(json.dumps(message.to_dict())))):
        assert type(one) is rd.Message
        assert one.tool_calls[0].arguments == NAMES
        (asked, *_) = rd.to_request([one], "openai-chat")["messages"]
        assert json.loads(asked["tool_calls"][0]["function"]["arguments"]) == NAMES
    assert not hasattr({}, "admin")
    assert rd.Message.from_dict({**message.to_dict(), **NAMES}).tool_calls == message.tool_calls


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
