"""`to_request` for Gemini: parts in their order, each with the signature that hung on it."""

from __future__ import annotations

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
    return rd.to_request(messages, "gemini", **more)


def parts(*messages: Any, **more: Any) -> list[Any]:
    """The parts of a model that alone has spoken."""
    (content,) = written(*messages, **more)["contents"]
    assert content["role"] == "model"
    found: list[Any] = content["parts"]
    return found


def decoded(*found: Any) -> rd.Message:
    candidate = {"content": {"role": "model", "parts": found}, "finishReason": "STOP"}
    decoder, fold = rd.providers.decoder("gemini"), rd.Fold()
    for event in [*decoder.decode({"candidates": [candidate], "responseId": "r"}), *decoder.close()]:
        fold.step(event)
    return fold.snapshot.to_message()


def test_a_whole_conversation() -> None:
    said = [
        rd.Message.of("system", "Be brief."),
        "2 + 2?",
        reply(text("Let me see."), call("a", "add", {"x": 2})),
        rd.ToolResult("a", {"sum": 4}),
        reply(text("4")),
        "Thanks!",
    ]
    assert written(*said) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "2 + 2?"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see."},
                    {"functionCall": {"id": "a", "name": "add", "args": {"x": 2}}},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "a", "name": "add", "response": {"sum": 4}}}],
            },
            {"role": "model", "parts": [{"text": "4"}]},
            {"role": "user", "parts": [{"text": "Thanks!"}]},
        ],
    }


def test_roles_take_turns_but_results_are_a_content_of_their_own() -> None:
    contents = written(
        "One.", "Two.", reply(text("a")), reply(call("c", "f")), "Hurry!", rd.ToolResult("c", 1), "Well?"
    )["contents"]
    assert [(content["role"], len(content["parts"])) for content in contents] == [
        ("user", 2), ("model", 2), ("user", 1), ("user", 2),
    ]  # fmt: skip
    assert "functionResponse" in contents[2]["parts"][0]
    own = {"role": "user", "parts": [{"text": "Hi"}]}
    assert written(own, "There.")["contents"] == [own, {"role": "user", "parts": [{"text": "There."}]}]
    assert own["parts"] == [{"text": "Hi"}]


@pytest.mark.parametrize(
    "part",
    [
        {"text": "Hi", "thoughtSignature": "cw=="},
        {"text": "", "thoughtSignature": "cw=="},
        {"text": "Hm.", "thought": True},
        {"text": "Hm.", "thought": True, "thoughtSignature": "cw=="},
        {"text": "Hi", "partMetadata": {"a": 1}},
        {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "cw=="},
        {"functionCall": {"id": "a", "name": "f", "args": {}}},
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "cw=="},
        {"executableCode": {"id": "e", "language": "PYTHON", "code": "1"}},
        {"toolCall": {"id": "t", "toolType": "FILE_SEARCH", "args": {"q": 1}}, "thoughtSignature": "cw=="},
        {"toolResponse": {"id": "t", "toolType": "FILE_SEARCH", "response": {"x": []}}, "thoughtSignature": "cw=="},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thoughtSignature": "cw=="},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thought": True},
        {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "QUJD"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://x/y"}, "videoMetadata": {"fps": 1}},
        {"hologram": {"x": 1}, "thoughtSignature": "cw=="},
    ],
    ids=lambda part: "-".join(part),
)  # fmt: skip
def test_a_part_goes_back_as_it_came(part: dict[str, Any]) -> None:
    assert parts(decoded(part)) == [part]


@pytest.mark.parametrize("call_id", [None, "e"])
def test_code_and_its_result_name_one_another_only_if_the_provider_did(call_id: str | None) -> None:
    named = {"id": call_id} if call_id else {}
    found = [
        {"executableCode": {"language": "PYTHON", "code": "1", **named}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", **named}},
        {"executableCode": {"language": "PYTHON", "code": "2", **named}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", **named}},
        {"text": "Done."},
    ]
    assert parts(decoded(*found)) == found


def test_a_code_s_result_that_somebody_wrote_may_be_a_text() -> None:
    result = rd.ContentPart(
        "server_tool_result", None, {"provider_type": "codeExecutionResult", "output": "1"}
    )
    assert parts(reply(result)) == [
        {"codeExecutionResult": {"outcome": "OUTCOME_UNSPECIFIED", "output": "1"}}
    ]


def test_a_result_for_what_stands_there_in_the_provider_s_own_form() -> None:
    own = {"role": "model", "parts": [{"functionCall": {"id": "z", "name": "g", "args": {}}}, {"text": ""}]}
    contents = written(own, rd.ToolResult("z", 1), rd.ToolResult("y", 2))["contents"]
    assert contents[1]["parts"] == [
        {"functionResponse": {"id": "z", "name": "g", "response": {"output": 1}}},
        {"functionResponse": {"id": "y", "name": "y", "response": {"output": 2}}},
    ]


def test_an_invalid_call_goes_back_with_its_text_and_what_was_wrong() -> None:
    invalid = rd.ToolCall(
        call_id="a", name="f", arguments='{"x": ', type="invalid_tool_call", error="cut off"
    )
    made, answer = written(reply(invalid))["contents"]
    assert made["parts"][0]["functionCall"]["args"] == {"invalid_arguments": '{"x": '}
    assert "cut off" in answer["parts"][0]["functionResponse"]["response"]["error"]


def test_without_reasoning_thoughts_and_signatures_are_left_out() -> None:
    message = decoded(
        {"text": "Hm.", "thought": True},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "cw=="},
        {"text": "", "thoughtSignature": "cw=="},
    )
    assert parts(message, reasoning=False) == [{"functionCall": {"name": "f", "args": {}}}]


def test_what_came_from_another_provider_and_has_no_place_is_left_out() -> None:
    message = reply(
        rd.ContentPart("reasoning", "Hm.", {"item_id": "rs1", "signature": "s"}),
        rd.ContentPart("reasoning", "", {"redacted": True, "data": "x"}),
        rd.ContentPart("unsupported", None, {"type": "compaction", "id": "c"}),
        rd.ToolCall(call_id="s", name="search", arguments={}, status="complete", type="server_tool_call"),
        rd.ContentPart("server_tool_result", None, {"provider_type": "web_search_tool_result", "output": []}),
        rd.ContentPart("audio", None, {"id": "audio_1"}),
        text("Hi", item_id="m1", status="completed"),
        rd.ContentPart("refusal", "No."),
    )
    assert parts(message) == [{"text": "Hi"}, {"text": "No."}]
    assert written(reply())["contents"] == []


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (rd.ContentPart("image", "QUJD", {"mime_type": "image/jpeg", "displayName": "x"}),
         {"inlineData": {"mimeType": "image/jpeg", "data": "QUJD", "displayName": "x"}}),
        (rd.ContentPart("audio", "QUJD"), {"inlineData": {"mimeType": "audio/wav", "data": "QUJD"}}),
        (rd.ContentPart("video", None, {"url": "https://youtu.be/x", "videoMetadata": {"fps": 1}}),
         {"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 1}}),
        (rd.ContentPart("file_url", "https://x/y.pdf", {"mime_type": "application/pdf"}),
         {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/y.pdf"}}),
        (rd.ContentPart("image_url", "data:image/gif;base64,QUJD"),
         {"inlineData": {"mimeType": "image/gif", "data": "QUJD"}}),
        (rd.ContentPart("unsupported", None, {"hologram": {"x": 1}}), {"hologram": {"x": 1}}),
    ],
)  # fmt: skip
def test_media(part: rd.ContentPart, expected: Any) -> None:
    assert written(user(text("See:"), part))["contents"][0]["parts"] == [{"text": "See:"}, expected]
