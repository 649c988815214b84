"""What `to_request` writes for LangChain, and what LangChain makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.conversations import (
    call,
    invalid,
    recorded,
    reply,
    system,
    text,
    thought,
    user,
    whole,
    without_signers,
)

import rxdelta as rd


def langchain(*messages: Any, **more: Any) -> list[Any]:
    written: list[Any] = rd.to_request(messages, "langchain", **more)["messages"]
    return written


def back(written: Any) -> rd.Message:
    """LangChain's own object of it, decoded."""
    (message,) = pytest.importorskip("langchain_core.messages").convert_to_messages([written])
    decoder, fold = rd.providers.decoder("langchain"), rd.Fold()
    for event in [*decoder.decode(message), *decoder.close()]:
        fold.step(event)
    return fold.snapshot.to_message()


def shape(message: rd.Message) -> list[Any]:
    shapes: list[Any] = []
    for block in message.blocks:
        if isinstance(block, rd.ToolCall):
            kind = "tool_call" if block.type == "invalid_tool_call" else block.type
            told = {} if block.type == "invalid_tool_call" else rd.core.thaw(block.arguments)
            told = {} if isinstance(told, dict) and "invalid_arguments" in told else told
            shapes.append((kind, block.call_id, block.name, told or {}))
        elif block.options.get("redacted"):
            shapes.append(("redacted", block.options["data"]))
        elif block.type == "server_tool_result":
            named = block.options.get("tool_call_id") or ""
            shapes.append((block.type, named, rd.core.thaw(block.options.get("output"))))
        elif block.text or block.options or block.citations:
            kind = {"refusal": "text"}.get(block.type, block.type)
            shapes.append((kind, block.text or "", block.options.get("signature"), len(block.citations)))
    return shapes


@pytest.mark.parametrize("message", recorded())
def test_langchain_takes_every_recorded_reply_and_gives_it_back(message: rd.Message) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    message = without_signers(message)  # so that everybody's signatures go there
    written = rd.to_request(whole(message), "langchain")["messages"]
    assert json.loads(json.dumps(written)) == written
    made = messages.convert_to_messages(written)
    calls = [one for one in message.blocks if isinstance(one, rd.ToolCall) and one.type != "server_tool_call"]
    assert [one["id"] for one in made[1].tool_calls] == [one.call_id for one in calls]
    assert [one.tool_call_id for one in made if one.type == "tool"] == [one.call_id for one in calls]
    standard = ("text", "reasoning", "image", "tool_call", "server_tool_call", "server_tool_result",
                "non_standard")  # fmt: skip
    assert {block["type"] for block in made[1].content_blocks} <= {*standard}
    if any(isinstance(one, rd.ContentPart) and one.type != "text" for one in message.blocks):
        assert shape(back(written[1])) == shape(message)
    else:
        assert message.text == back(written[1]).text


def test_a_conversation_whole() -> None:
    written = langchain(
        system(text("Be brief.")),
        "2 + 2?",
        reply(text("Let me see."), call("a", "add", {"x": 2}), call("b", "now"), id="m1"),
        rd.ToolResult("b", "broken", is_error=True),
        rd.ToolResult("a", {"sum": 4}),
        reply(text("4")),
    )
    calls = [
        {"type": "tool_call", "id": "a", "name": "add", "args": {"x": 2}},
        {"type": "tool_call", "id": "b", "name": "now", "args": {}},
    ]
    assert written == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": calls, "id": "m1"},
        {"role": "tool", "tool_call_id": "a", "content": '{"sum": 4}', "name": "add"},
        {"role": "tool", "tool_call_id": "b", "content": "broken", "name": "now", "status": "error"},
        {"role": "assistant", "content": "4"},
    ]
    made = pytest.importorskip("langchain_core.messages").convert_to_messages(written)
    assert [one.type for one in made] == ["system", "human", "ai", "tool", "tool", "ai"]
    assert made[4].status == "error"


def test_blocks_of_the_standard_keep_their_order_and_say_whose_they_are() -> None:
    found = rd.ContentPart(
        "server_tool_result",
        None,
        {
            "tool_call_id": "s",
            "output": {"x": 1},
            "status": "error",
            "provider_type": "web_search_tool_result",
        },
    )
    message = reply(
        thought("Hm.", signature="s"),
        thought("", redacted=True, data="xyz"),
        call("s", "web_search", {"q": "x"}, type="server_tool_call"),
        found,
        text("Hi", id="t1"),
        call("a", metadata={"item_id": "fc_1", "synthetic_id": False}),
        text("Bye"),
        rd.ContentPart("unsupported", None, {"type": "new"}),
        metadata={"model_provider": "anthropic", "additional_kwargs": {"x": 1}},
    )
    (written, *_) = langchain(message)
    assert written["content"] == [
        {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "s"}},
        {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "xyz"}},
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"q": "x"}},
        {
            "type": "server_tool_result",
            "tool_call_id": "s",
            "status": "error",
            "output": {"x": 1},
            "extras": {"block_type": "web_search_tool_result"},
        },
        {"type": "text", "text": "Hi", "id": "t1"},
        {"type": "tool_call", "id": "a", "name": "f", "args": {}, "extras": {"item_id": "fc_1"}},
        {"type": "text", "text": "Bye"},
        {"type": "non_standard", "value": {"type": "new"}},
    ]
    assert written["response_metadata"] == {"output_version": "v1", "model_provider": "anthropic"}
    assert written["additional_kwargs"] == {"x": 1}
    (made,) = pytest.importorskip("langchain_core.messages").convert_to_messages([written])
    assert made.content_blocks == written["content"]
    assert made.additional_kwargs == {"x": 1}


def test_a_call_s_signature_keeps_its_block() -> None:
    (written,) = langchain(reply(call("a", metadata={"signature": "s"})))
    assert written["content"] == [
        {"type": "tool_call", "id": "a", "name": "f", "args": {}, "extras": {"signature": "s"}}
    ]
    (written,) = langchain(reply(call("a", metadata={"signature": "s"})), reasoning=False)
    assert written["content"] == ""


def test_an_invalid_call_goes_back_as_an_object_and_is_answered() -> None:
    (said, answer) = langchain(reply(invalid("a", '{"x": ')))
    assert said["tool_calls"][0]["args"] == {"invalid_arguments": '{"x": '}
    assert (answer["tool_call_id"], answer["status"]) == ("a", "error")


def test_citations_are_annotations() -> None:
    standard = {"type": "citation", "url": "https://x", "title": "X"}
    own = {"type": "non_standard_annotation", "value": {"x": 1}}
    other = rd.Citation(url="https://y", raw={"type": "web", "url": "https://y", "place": 3})
    said = rd.ContentPart("text", "Hi", citations=[rd.Citation(raw=standard), rd.Citation(raw=own), other])
    (block,) = langchain(reply(said))[0]["content"]
    assert block["annotations"] == [
        standard,
        own,
        {"type": "citation", "url": "https://y", "extras": {"type": "web", "place": 3}},
    ]


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (rd.ContentPart("image", "QUJD", {"mime_type": "image/jpeg"}),
         {"type": "image", "base64": "QUJD", "mime_type": "image/jpeg"}),
        (rd.ContentPart("image_url", "https://x/y.png", {"detail": "low"}),
         {"type": "image", "url": "https://x/y.png", "extras": {"detail": "low"}}),
        (rd.ContentPart("audio", "QUJD"), {"type": "audio", "base64": "QUJD", "mime_type": "audio/wav"}),
        (rd.ContentPart("video", None, {"url": "https://x/y", "mime_type": "video/webm"}),
         {"type": "video", "url": "https://x/y", "mime_type": "video/webm"}),
        (rd.ContentPart("file", "QUJD", {"filename": "a.pdf"}),
         {"type": "file", "base64": "QUJD", "mime_type": "application/pdf", "extras": {"filename": "a.pdf"}}),
        (rd.ContentPart("file", None, {"file_id": "f"}), {"type": "file", "file_id": "f"}),
        (rd.ContentPart("text", "x", {"cache_control": {"type": "ephemeral"}}),
         {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}),
        (rd.ContentPart("unsupported", None, {"type": "new"}), {"type": "new"}),
    ],
)  # fmt: skip
def test_media_are_blocks_of_the_standard(part: rd.ContentPart, written: Any) -> None:
    (message,) = langchain(user(text("See:"), part))
    assert message["content"] == [{"type": "text", "text": "See:"}, written]
    (made,) = pytest.importorskip("langchain_core.messages").convert_to_messages([message])
    assert made.content == message["content"]


def test_a_message_in_langchain_s_own_form_and_a_result_for_it_stay() -> None:
    own = {"role": "assistant", "content": "", "tool_calls": []}
    assert langchain(own, rd.ToolResult("z", "x"), reply()) == [
        own,
        {"role": "tool", "tool_call_id": "z", "content": "x"},
        {"role": "assistant", "content": ""},
    ]
