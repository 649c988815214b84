"""Wrapped streams: the chunks inside are read as if they came without their envelope."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.replies import ANTHROPIC, OPENAI
from support.shared import recordings

import rxdelta as rd

Wrap = Callable[[list[Any]], list[Any]]


def decoded(name: str, items: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(name)
    return [*(event for item in items for event in decoder.decode(item)), *decoder.close()]


def told(events: list[rd.Event]) -> list[rd.Event]:
    """What is of a reply."""
    return [event for event in events if not isinstance(event, rd.events.ProviderEvent)]


def test_the_page_shows_each_envelope() -> None:
    page = Path(__file__).resolve().parents[2].joinpath("docs", "providers", "index.md").read_text("utf-8")
    rows = re.findall(r"^\| .* \| `(\{.*\})` \| (?:`([a-z-]+)`|.*) \|$", page, re.MULTILINE)
    assert len(rows) == 5
    for item, name in rows:
        assert rd.providers.detect(json.loads(item)) == (name or "anthropic-messages")


# The envelopes, in the shapes of their SDKs.


@dataclass
class RawResponsesStreamEvent:
    data: Any
    type: str = "raw_response_event"


@dataclass
class RunItemStreamEvent:
    name: str
    item: Any
    type: str = "run_item_stream_event"


@dataclass
class AgentUpdatedStreamEvent:
    new_agent: Any
    type: str = "agent_updated_stream_event"


@dataclass
class StreamEvent:
    uuid: str
    session_id: str
    event: dict[str, Any]
    parent_tool_use_id: str | None = None


@dataclass
class SystemMessage:
    subtype: str
    data: dict[str, Any]


@dataclass
class TextBlock:
    text: str


@dataclass
class AssistantMessage:
    content: list[TextBlock]
    model: str


@dataclass
class ResultMessage:
    subtype: str
    is_error: bool
    session_id: str = "s"
    result: str | None = None
    errors: list[str] | None = field(default=None)
    api_error_status: int | None = None


for claude in (StreamEvent, SystemMessage, TextBlock, AssistantMessage, ResultMessage):
    claude.__module__ = "claude_agent_sdk.types"


def agent_objects(chunks: list[Any]) -> list[Any]:
    events = [RawResponsesStreamEvent(chunk) for chunk in chunks]
    return [AgentUpdatedStreamEvent(object()), *events, RunItemStreamEvent("tool_called", object())]


def agent_dicts(chunks: list[Any]) -> list[Any]:
    events = [{"type": "raw_response_event", "data": chunk} for chunk in chunks]
    return [{"type": "agent_updated_stream_event"}, *events, {"type": "run_item_stream_event", "name": "x"}]


def line(event: Any, parent: str | None = None) -> dict[str, Any]:
    return {
        "type": "stream_event",
        "event": event,
        "session_id": "s",
        "parent_tool_use_id": parent,
        "uuid": "u",
    }


INIT = {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "total_cost_usd": 0.5}


def claude_lines(chunks: list[Any]) -> list[Any]:
    return [INIT, *map(line, chunks), {"type": "assistant", "message": {}, "session_id": "s"}, RESULT]


def claude_objects(chunks: list[Any]) -> list[Any]:
    events = [StreamEvent("u", "s", chunk) for chunk in chunks]
    said = AssistantMessage([TextBlock("Hi")], "m")
    return [SystemMessage("init", INIT), *events, said, ResultMessage("success", is_error=False)]


def helper(chunks: list[Any]) -> list[Any]:
    found = [SimpleNamespace(type="chunk", chunk=chunk) for chunk in chunks]
    return [one for event in found for one in (event, SimpleNamespace(type="content.delta", delta="x"))]


def code_assist(chunks: list[Any]) -> list[Any]:
    return [{"response": chunk} for chunk in chunks]


def invoke_model(chunks: list[Any]) -> list[Any]:
    return [{"chunk": {"bytes": json.dumps(chunk).encode()}} for chunk in chunks]


def recorded_invoke_model(chunks: list[Any]) -> list[Any]:
    return [{"chunk": {"bytes": base64.b64encode(json.dumps(chunk).encode()).decode()}} for chunk in chunks]


WRAPS: list[tuple[str, Wrap]] = [
    ("openai-responses", agent_objects),
    ("openai-responses", agent_dicts),
    ("anthropic-messages", claude_lines),
    ("anthropic-messages", claude_objects),
    ("openai-chat", helper),
    ("gemini", code_assist),
    ("anthropic-messages", invoke_model),
    ("anthropic-messages", recorded_invoke_model),
    ("bedrock-converse", invoke_model),
    ("mistral", invoke_model),
]


@pytest.mark.parametrize(
    ("name", "wrap", "chunks"),
    [
        pytest.param(name, wrap, case.values[0], id=f"{wrap.__name__}/{case.id}", marks=case.marks)
        for name, wrap in WRAPS
        for case in recordings(name)[::30]
    ],
)
def test_a_wrapped_recording_is_decoded_as_without_its_envelope(
    name: str, wrap: Wrap, chunks: list[Any]
) -> None:
    plain, items = told(decoded(name, chunks)), wrap(chunks)
    assert told(decoded(name, items)) == plain
    assert told(decoded("auto", items)) == plain
    assert rd.providers.detect(items[0]) == rd.providers.detect(wrap(chunks[:1])[0]) == name


@pytest.mark.parametrize(
    ("name", "wrap", "chunks"),
    [
        pytest.param(name, wrap, case.values[0], id=f"{wrap.__name__}/{case.id}", marks=case.marks)
        for name, wrap in WRAPS
        if wrap in (agent_objects, claude_objects, invoke_model)
        for case in recordings(name)[::60]
    ],
)
def test_a_wrapped_stream_is_recorded_as_one_that_decodes_to_the_same(
    name: str, wrap: Wrap, chunks: list[Any], tmp_path: Path
) -> None:
    path, replayed = tmp_path / "a.jsonl", list[Any]()
    rx.from_iterable(wrap(chunks)).pipe(rd.record(path)).subscribe()
    rd.from_recording(path, 0).subscribe(replayed.append)
    plain = told(decoded(name, wrap(chunks)))
    assert told(decoded(name, replayed)) == told(decoded("auto", replayed)) == plain


@pytest.mark.parametrize(
    ("format_", "wrap", "chunks"),
    [("anthropic-messages", claude_lines, ANTHROPIC), ("openai-chat", helper, OPENAI)],
)
def test_a_wrapped_stream_goes_through_the_doors(format_: str, wrap: Wrap, chunks: list[Any]) -> None:
    plain = rx.from_iterable(chunks).pipe(rd.decode(format_), rd.scan_deltas(), rd.to_message()).run()
    for name in ("auto", format_):
        with rd.stream(wrap(chunks), name) as reply:
            assert reply.result() == plain


def test_a_wrapped_stream_of_another_format_is_refused() -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match=r"use decode\('anthropic-messages'\)"):
        decoded("openai-chat", claude_lines(ANTHROPIC))


def test_what_stands_beside_a_response_is_kept() -> None:
    first = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    items = [{"response": first, "traceId": "t"}]
    assert told(decoded("gemini", items)) == told(decoded("gemini", [{**first, "traceId": "t"}]))


def test_an_error_without_an_envelope_is_an_error() -> None:
    error = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}
    first = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}
    *_, event = decoded("gemini", [{"response": first}, error])
    assert isinstance(event, rd.events.StreamError)
    assert event.message == "Overloaded"


@pytest.mark.parametrize("data", [b"{", "###", b"\xff", "[" * 5000])
def test_bytes_that_are_no_json_are_malformed(data: Any) -> None:
    for name in ("auto", "anthropic-messages"):
        with pytest.raises(rd.errors.MalformedChunkError, match=r"chunk\.bytes"):
            decoded(name, [{"chunk": {"bytes": data}}])


# Claude Code.


def test_the_lines_of_claude_code_are_provider_events() -> None:
    events = [
        event
        for event in decoded("anthropic-messages", claude_lines(ANTHROPIC))
        if isinstance(event, rd.events.ProviderEvent) and event.provider == "claude-code"
    ]
    assert [event.name for event in events] == ["system", "assistant", "result"]
    assert events[0].payload == INIT
    objects = decoded("anthropic-messages", claude_objects(ANTHROPIC))
    named = {event.name: event.payload for event in objects if isinstance(event, rd.events.ProviderEvent)}
    assert named["system"] == INIT
    assert named["assistant"] == {"content": [{"text": "Hi"}], "model": "m"}
    assert named["result"]["subtype"] == "success"


def test_two_sub_agents_and_their_agent_are_never_woven() -> None:
    def reply(text: str, name: str) -> list[Any]:
        return [
            {"type": "message_start", "message": {"id": name, "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
                for piece in text
            ),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ]

    lanes: list[tuple[str, str | None]] = [("main", None), ("left", "toolu_1"), ("rite", "toolu_2")]
    woven = [
        line(event, parent)
        for events in zip(*(reply(text, text) for text, _ in lanes), strict=True)
        for event, (_, parent) in zip(events, lanes, strict=True)
    ]
    again = [line(event, "toolu_1") for event in reply("more", "again")]
    messages = (
        rx.from_iterable([INIT, *woven, *again])
        .pipe(
            rd.decode("auto"),
            rd.group_by_message(),
            ops.flat_map(lambda one: one.pipe(rd.validate(), rd.scan_deltas(), rd.to_message())),
            ops.to_list(),
        )
        .run()
    )
    assert sorted(one.text for one in messages) == ["left", "main", "more", "rite"]
    runs = {event.run_id for event in told(decoded("auto", woven))}
    assert runs == {None, "toolu_1", "toolu_2"}


@pytest.mark.parametrize(
    "result",
    [
        {
            "type": "result",
            "subtype": "success",
            "is_error": True,
            "session_id": "s",
            "result": "API Error: Overloaded",
            "api_error_status": 529,
        },
        ResultMessage("success", is_error=True, result="API Error: Overloaded", api_error_status=529),
    ],
)
def test_a_run_of_claude_code_that_failed_is_an_error(result: Any) -> None:
    error = rd.events.StreamError("API Error: Overloaded", "success", "529")
    assert told(decoded("anthropic-messages", [INIT, result])) == [error]
    assert told(decoded("auto", [INIT, *map(line, ANTHROPIC[:4]), result]))[-1] == error
    stopped = ResultMessage("error_during_execution", is_error=True, errors=["a", "b"])
    assert told(decoded("auto", [INIT, stopped])) == [rd.events.StreamError("a; b", "error_during_execution")]


@pytest.mark.parametrize("name", ["auto", "anthropic-messages", "openai-chat"])
def test_without_partial_messages_the_error_says_how_to_get_them(name: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match=r"Claude Code.*include_partial_messages=True"):
        decoded(name, [INIT, {"type": "assistant", "message": {"content": []}, "session_id": "s"}, RESULT])
    with pytest.raises(rd.errors.MalformedChunkError, match=r"Agents SDK.*run_streamed"):
        decoded(name, [{"type": "run_item_stream_event", "name": "message_output_created"}])
