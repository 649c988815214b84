"""`to_request` for Google's Interactions: a reply goes back step by step."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rxdelta as rd


def call(call_id: str, name: str = "f", arguments: Any = None, **metadata: Any) -> rd.ToolCall:
    given = {} if arguments is None else arguments
    return rd.ToolCall(call_id=call_id, name=name, arguments=given, status="complete", metadata=metadata)


def reply(*blocks: Any) -> rd.Message:
    return rd.Message(blocks=blocks)


def user(*blocks: Any) -> rd.Message:
    return rd.Message(role="user", blocks=blocks)


def text(said: str, **options: Any) -> rd.ContentPart:
    return rd.ContentPart("text", said, options)


def written(*messages: Any, **more: Any) -> dict[str, Any]:
    return rd.to_request(messages, "gemini-interactions", **more)


def steps(*messages: Any, **more: Any) -> list[Any]:
    found: list[Any] = written(*messages, **more)["input"]
    return found


def decoded(*found: Any) -> rd.Message:
    fold = rd.Fold()
    body = {"object": "interaction", "id": "v1", "status": "completed", "steps": found}
    for event in rd.providers.decoder("gemini-interactions").decode(body):
        fold.step(event)
    return fold.snapshot.to_message()


def shown(*content: Any) -> dict[str, Any]:
    return {"type": "model_output", "content": [*content]}


def test_a_whole_conversation() -> None:
    said = [
        rd.Message.of("system", ["Be brief.", "Be kind."]),
        "2 + 2?",
        reply(text("Let me see."), call("a", "add", {"x": 2})),
        rd.ToolResult("a", {"sum": 4}),
        reply(text("4")),
        "Thanks!",
    ]
    assert written(*said) == {
        "system_instruction": "Be brief.\n\nBe kind.",
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "2 + 2?"}]},
            shown({"type": "text", "text": "Let me see."}),
            {"type": "function_call", "id": "a", "name": "add", "arguments": {"x": 2}},
            {"type": "function_result", "call_id": "a", "name": "add", "result": {"sum": 4}},
            shown({"type": "text", "text": "4"}),
            {"type": "user_input", "content": [{"type": "text", "text": "Thanks!"}]},
        ],
    }


TEXT = {"type": "text", "text": "Hi"}
IMAGE = {"type": "image", "data": "QUJD", "mime_type": "image/png"}
STEPS: list[list[dict[str, Any]]] = [
    [{"type": "thought", "signature": "cw=="}, shown(TEXT)],
    [{"type": "thought", "summary": [TEXT], "signature": "cw=="}, shown(TEXT)],
    [{"type": "thought", "summary": [TEXT, IMAGE, TEXT], "signature": "cw=="}],
    [{"type": "thought", "signature": "cw=="}, {"type": "thought", "signature": "dA=="}],
    [shown(TEXT, IMAGE, TEXT)],
    [shown({**TEXT, "annotations": [{"type": "url_citation", "url": "https://x", "title": "X"}]})],
    [shown({"type": "audio", "data": "QUJD", "mime_type": "audio/l16", "sample_rate": 24000})],
    [shown({"type": "video", "uri": "https://x/y.mp4", "mime_type": "video/mp4"})],
    [shown({"type": "document", "uri": "https://x/y.pdf"})],
    [shown(TEXT), {"type": "model_output", "error": {"code": 13, "message": "broken"}}],
    [{"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1}, "signature": "cw=="}],
    [{"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}, "signature": "cw=="},
     {"type": "google_search_result", "call_id": "s", "result": [{"search_suggestions": "x"}], "signature": "dA=="}],
    [{"type": "code_execution_call", "id": "c", "arguments": {"language": "python", "code": "1"}},
     {"type": "code_execution_result", "call_id": "c", "result": "1", "is_error": False}],
    [{"type": "mcp_server_tool_call", "id": "m", "name": "f", "server_name": "s", "arguments": {}},
     {"type": "mcp_server_tool_result", "call_id": "m", "name": "f", "server_name": "s", "result": "no",
      "is_error": True}],
    [{"type": "processing_call", "id": "p", "signature": "cw=="}, {"type": "processing_result", "call_id": "p"}],
    [{"type": "new_call", "id": "n", "arguments": {}}, {"type": "new_result", "call_id": "n", "result": {"x": 1}}],
]  # fmt: skip


@pytest.mark.parametrize("found", STEPS, ids=lambda found: "-".join(step["type"] for step in found))
def test_steps_go_back_as_they_came(found: list[dict[str, Any]]) -> None:
    assert steps(decoded(*found)) == found


@pytest.mark.parametrize(
    ("content", "failed", "result"),
    [
        ({"a": 1}, False, {"result": {"a": 1}}),
        ("text", False, {"result": "text"}),
        (None, False, {"result": ""}),
        ([1, 2], False, {"result": "[1, 2]"}),
        ([IMAGE, TEXT], False, {"result": [IMAGE, TEXT]}),
        ([{"type": "file"}, TEXT], False, {"result": f'[{{"type": "file"}}, {json.dumps(TEXT)}]'}),
        ("no such file", True, {"result": "no such file", "is_error": True}),
    ],
)
def test_results(content: Any, failed: bool, result: dict[str, Any]) -> None:
    answer = steps(reply(call("a", "f")), rd.ToolResult("a", content, failed))[1]
    assert answer == {"type": "function_result", "call_id": "a", "name": "f", **result}


def test_a_result_for_what_stands_there_in_the_provider_s_own_form() -> None:
    own = {"type": "function_call", "id": "z", "name": "g", "arguments": {}}
    assert steps(own, rd.ToolResult("z", "x")) == [
        own,
        {"type": "function_result", "call_id": "z", "result": "x"},
    ]


def test_without_reasoning_thoughts_and_signatures_are_left_out() -> None:
    message = decoded(
        {"type": "thought", "summary": [TEXT, IMAGE], "signature": "cw=="},
        {"type": "function_call", "id": "a", "name": "f", "arguments": {}, "signature": "cw=="},
    )
    assert steps(message, reasoning=False) == [
        {"type": "function_call", "id": "a", "name": "f", "arguments": {}}
    ]


def test_what_came_from_another_provider_and_has_no_place_is_left_out() -> None:
    cited = rd.Citation(url="https://x", raw={"type": "url_citation", "url": "https://x"})
    search = rd.ToolCall(
        call_id="s",
        name="file_search",
        arguments={},
        status="complete",
        type="server_tool_call",
        metadata={"provider_type": "file_search_call", "item_id": "s"},
    )
    message = reply(
        rd.ContentPart("reasoning", "Hm.", {"item_id": "rs1", "signature": "s"}),
        rd.ContentPart("reasoning", "", {"redacted": True, "data": "x"}),
        search,
        rd.ContentPart(
            "server_tool_result", None, {"provider_type": "file_search_call", "tool_call_id": "s"}
        ),
        rd.ContentPart("unsupported", None, {"type": "compaction", "id": "c"}),
        rd.ContentPart("audio", None, {"id": "audio_1"}),
        rd.ContentPart("text", "Hi", {"item_id": "m1"}, [cited]),
        rd.ContentPart("refusal", "No."),
        text(""),
    )
    assert steps(message) == [shown({"type": "text", "text": "Hi"}, {"type": "text", "text": "No."})]
    assert steps(reply()) == []


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (rd.ContentPart("image", "QUJD", {"resolution": "low"}), {**IMAGE, "resolution": "low"}),
        (rd.ContentPart("audio", "QUJD"), {"type": "audio", "data": "QUJD", "mime_type": "audio/wav"}),
        (rd.ContentPart("video", None, {"url": "https://youtu.be/x"}),
         {"type": "video", "uri": "https://youtu.be/x"}),
        (rd.ContentPart("file_url", "https://x/y.pdf", {"mime_type": "application/pdf"}),
         {"type": "document", "uri": "https://x/y.pdf", "mime_type": "application/pdf"}),
        (rd.ContentPart("file", "QUJD"), {"type": "document", "data": "QUJD", "mime_type": "application/pdf"}),
        (rd.ContentPart("image_url", "data:image/png;base64,QUJD"), IMAGE),
        (rd.ContentPart("unsupported", None, {"type": "new", "x": 1}), {"type": "new", "x": 1}),
    ],
)  # fmt: skip
def test_media(part: rd.ContentPart, expected: Any) -> None:
    assert steps(user(text("Hi"), part)) == [{"type": "user_input", "content": [TEXT, expected]}]
