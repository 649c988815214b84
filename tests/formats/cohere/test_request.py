"""What `to_request` writes for Cohere's chat API, and whether its package's types take it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.conversations import call, invalid, recorded, reply, system, text, thought, user, whole

import rxdelta as rd


def cohere(*messages: Any, **more: Any) -> list[Any]:
    written: list[Any] = rd.to_request(messages, "cohere", **more)["messages"]
    return written


def cited(kind: str, said: str, *raw: Any) -> rd.ContentPart:
    return rd.ContentPart(kind, said, citations=[rd.Citation(raw=one) for one in raw])


@pytest.mark.parametrize("message", recorded())
def test_the_package_takes_every_recorded_reply(message: rd.Message) -> None:
    types = pytest.importorskip("cohere")
    pydantic = pytest.importorskip("pydantic")
    written = rd.to_request(whole(message), "cohere")["messages"]
    assert json.loads(json.dumps(written)) == written
    pydantic.TypeAdapter(list[types.ChatMessageV2]).validate_python(written)
    assert all(len(one) > 1 for one in written)


def test_a_conversation_whole() -> None:
    plan = thought("I will add.", provider_type="tool_plan")
    written = cohere(
        system(text("Be brief.")),
        "2 + 2?",
        reply(plan, call("a", "add", {"x": 2}), call("b", "now")),
        rd.ToolResult("b", "broken", is_error=True),
        rd.ToolResult("a", {"sum": 4}),
        reply(thought("Hm."), text("4")),
    )
    assert written == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
        {
            "role": "assistant",
            "tool_plan": "I will add.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"x": 2}'}},
                {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": '{"sum": 4}'},
        {"role": "tool", "tool_call_id": "b", "content": "broken"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "4"}],
        },
    ]


def test_an_invalid_call_is_answered_and_an_empty_message_left_out() -> None:
    (said, answer) = cohere(reply(invalid("a", '{"x": ')))
    arguments = json.loads(said["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"invalid_arguments": '{"x": '}
    assert (answer["tool_call_id"], "cut off" in answer["content"]) == ("a", True)
    assert cohere(reply(), reply(text("")), reply(thought("", redacted=True, data="x"))) == []


def test_citations_go_back_if_they_are_cohere_s() -> None:
    source = {"type": "tool", "id": "t:0", "tool_output": {"x": 1}}
    first = {"start": 0, "end": 2, "text": "Hi", "sources": [source], "type": "TEXT_CONTENT"}
    placed = {**first, "content_index": 0}
    late = {**first, "type": "PLAN"}
    message = reply(
        thought(""),
        cited("reasoning", "Hm.", first),
        cited("text", "Hi", placed, {"type": "url_citation", "url": "https://x"}),
        metadata={"citations": [late, "https://y"]},
    )
    (written,) = cohere(message)
    assert written["citations"] == [first, {**placed, "content_index": 1}, late]


def test_what_a_person_shows_is_a_picture() -> None:
    parts = [
        rd.ContentPart("image", "QUJD", {"mime_type": "image/jpeg", "detail": "low"}),
        rd.ContentPart("image_url", "https://x/y.png"),
        rd.ContentPart("unsupported", None, {"type": "new"}),
    ]
    assert cohere(user(text("See:"), *parts))[0]["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        {"type": "new"},
    ]
