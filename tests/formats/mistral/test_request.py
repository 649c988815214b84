"""What `to_request` writes for Mistral, and whether its package's types take it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.conversations import call, invalid, recorded, reply, system, text, thought, user, whole

import rxdelta as rd

AN_ID = re.compile("[a-zA-Z0-9]{9}")
FIELDS = {
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id", "name"},
}


def mistral(*messages: Any, **more: Any) -> list[Any]:
    written: list[Any] = rd.to_request(messages, "mistral", **more)["messages"]
    return written


@pytest.mark.parametrize("message", recorded())
def test_the_package_takes_every_recorded_reply_and_the_service_finds_nothing_to_refuse(
    message: rd.Message,
) -> None:
    models = pytest.importorskip("mistralai.client.models")
    pydantic = pytest.importorskip("pydantic")
    written = rd.to_request(whole(message), "mistral")["messages"]
    assert json.loads(json.dumps(written)) == written
    types = list[models.ChatCompletionRequestMessage]
    for one in pydantic.TypeAdapter(types).validate_python(written):
        parts = one.content if isinstance(one.content, list) else []
        assert not any(isinstance(part, models.UnknownContentChunk) for part in parts)
    before = None
    for one in written:
        assert one.keys() <= FIELDS[one["role"]]
        assert one.get("content") or one.get("tool_calls") or one["role"] == "tool"
        assert not (one["role"] == "user" and before == "tool")
        before = one["role"]
    ids = [made["id"] for one in written for made in one.get("tool_calls", ())]
    assert all(AN_ID.fullmatch(one) for one in ids)
    assert [one["tool_call_id"] for one in written if one["role"] == "tool"] == ids


def test_a_conversation_whole() -> None:
    thinking = thought("Hm.", sent_as="thinking", signature="s")
    written = mistral(
        system(text("Be brief.")),
        "2 + 2?",
        reply(thinking, text("Let me see."), call("aaaaaaaaa", "add", {"x": 2}), call("bbbbbbbb1", "now")),
        rd.ToolResult("bbbbbbbb1", "broken", is_error=True),
        rd.ToolResult("aaaaaaaaa", {"sum": 4}),
        reply(text("4")),
        "Thanks!",
    )
    assert written == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": "Hm."}],
                    "closed": True,
                    "signature": "s",
                },
                {"type": "text", "text": "Let me see."},
            ],
            "tool_calls": [
                {"id": "aaaaaaaaa", "type": "function", "function": {"name": "add", "arguments": '{"x": 2}'}},
                {"id": "bbbbbbbb1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "name": "add", "content": '{"sum": 4}'},
        {"role": "tool", "tool_call_id": "bbbbbbbb1", "name": "now", "content": "broken"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "Thanks!"},
    ]


def test_a_person_doesn_t_speak_right_behind_a_tool() -> None:
    written = mistral(reply(call("aaaaaaaaa")), "Hurry!", rd.ToolResult("aaaaaaaaa", "x"))
    assert [(one["role"], one["content"]) for one in written] == [
        ("assistant", ""), ("tool", "x"), ("assistant", "OK"), ("user", "Hurry!"),
    ]  # fmt: skip


def test_reasoning_stays_out_where_it_shall_and_another_s_signature_always() -> None:
    message = reply(thought("Hm.", signature="s"), thought("", redacted=True, data="x"), text("Hi"))
    assert mistral(message, reasoning=False) == [{"role": "assistant", "content": "Hi"}]
    (thinking, _) = mistral(message)[0]["content"]
    assert thinking == {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": True}


def test_references_stay_with_what_they_were_made_in() -> None:
    reference = {"type": "reference", "reference_ids": [1, "b"]}
    tool = {"type": "tool_reference", "tool": "web_search", "title": "T", "url": None, "new": 1}
    web = {"type": "url_citation", "url": "https://x"}
    thinking = rd.ContentPart(
        "reasoning", "Hm.", citations=[rd.Citation(raw=tool), rd.Citation(raw=reference)]
    )
    said = rd.ContentPart("text", "Hi", citations=[rd.Citation(raw=one) for one in (reference, web, tool)])
    alone = rd.ContentPart("unsupported", None, reference)
    other = rd.ContentPart("unsupported", None, {"type": "new"})
    assert mistral(reply(alone, other, thinking, said))[0]["content"] == [
        reference,
        {
            "type": "thinking",
            "thinking": [
                {"type": "text", "text": "Hm."},
                {"type": "tool_reference", "tool": "web_search", "title": "T"},
                reference,
            ],
            "closed": True,
        },
        {"type": "text", "text": "Hi"},
        reference,
    ]


def test_an_invalid_call_is_answered_and_an_empty_message_left_out() -> None:
    (said, answer) = mistral(reply(invalid("a", '{"x": ')))
    arguments = json.loads(said["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"invalid_arguments": '{"x": '}
    assert answer["tool_call_id"] == said["tool_calls"][0]["id"]
    assert mistral(reply(), reply(rd.ContentPart("image", "QUJD"))) == []


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (rd.ContentPart("image", "QUJD", {"mime_type": "image/jpeg", "detail": "low"}),
         {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD", "detail": "low"}}),
        (rd.ContentPart("image_url", "https://x/y.png"),
         {"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
        (rd.ContentPart("audio", "QUJD"), {"type": "input_audio", "input_audio": "QUJD"}),
        (rd.ContentPart("audio", None, {"url": "https://x/y.mp3"}),
         {"type": "input_audio", "input_audio": "https://x/y.mp3"}),
        (rd.ContentPart("file", None, {"file_id": "f"}), {"type": "file", "file_id": "f"}),
        (rd.ContentPart("file_url", "https://x/y.pdf", {"filename": "y.pdf"}),
         {"type": "document_url", "document_url": "https://x/y.pdf", "document_name": "y.pdf"}),
        (rd.ContentPart("file", "QUJD"),
         {"type": "document_url", "document_url": "data:application/pdf;base64,QUJD"}),
        (rd.ContentPart("unsupported", None, {"type": "new"}), {"type": "new"}),
    ],
)  # fmt: skip
def test_media_in_mistral_s_words(part: rd.ContentPart, written: Any) -> None:
    assert mistral(user(text("See:"), part))[0]["content"] == [{"type": "text", "text": "See:"}, written]
