"""What `to_request` writes for Ollama, and whether its package takes it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.conversations import call, invalid, recorded, reply, system, text, thought, whole

import rxdelta as rd


def ollama(*messages: Any, **more: Any) -> list[Any]:
    written: list[Any] = rd.to_request(messages, "ollama", **more)["messages"]
    return written


@pytest.mark.parametrize("message", recorded())
def test_the_package_takes_every_recorded_reply(message: rd.Message) -> None:
    client = pytest.importorskip("ollama._client")
    written = rd.to_request(whole(message), "ollama")["messages"]
    assert json.loads(json.dumps(written)) == written
    again = [one.model_dump(exclude_none=True) for one in client._copy_messages(written)]
    for sent, meant in zip(again, written, strict=True):
        known = {name: value for name, value in meant.items() if name in sent and name != "tool_calls"}
        assert {name: sent[name] for name in known} == known


def test_a_conversation_whole() -> None:
    written = ollama(
        system(text("Be brief.")),
        "2 + 2?",
        reply(thought("Hm."), text("Let me "), text("see."), call("a", "add", {"x": 2}), call("b", "now")),
        rd.ToolResult("b", "broken", is_error=True),
        rd.ToolResult("a", {"sum": 4}),
        reply(text("4")),
    )
    assert written == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "thinking": "Hm.",
            "tool_calls": [
                {"id": "a", "function": {"name": "add", "arguments": {"x": 2}}},
                {"id": "b", "function": {"name": "now", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": '{"sum": 4}', "tool_name": "add", "tool_call_id": "a"},
        {"role": "tool", "content": "broken", "tool_name": "now", "tool_call_id": "b"},
        {"role": "assistant", "content": "4"},
    ]


def test_an_id_that_was_made_up_here_stays_here() -> None:
    made = call("call-1", "add", {"x": 2}, metadata={"synthetic_id": True}, result=rd.ToolResult(None, "4"))
    assert ollama(reply(made)) == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "add", "arguments": {"x": 2}}}],
        },
        {"role": "tool", "content": "4", "tool_name": "add"},
    ]


def test_an_invalid_call_goes_back_as_an_object_and_is_answered() -> None:
    (said, answer) = ollama(reply(invalid("a", '{"x": ')))
    assert said["tool_calls"][0]["function"]["arguments"] == {"invalid_arguments": '{"x": '}
    assert (answer["tool_name"], "cut off" in answer["content"]) == ("f", True)


def test_a_picture_that_is_called_like_a_file_is_not_read_from_there(tmp_path: Path) -> None:
    """Ollama's package opens a text that names a file."""
    client = pytest.importorskip("ollama._client")
    file = tmp_path / "password"
    file.write_text("not-yours")
    name = "/" * (-len(str(file)) % 4) + str(file)  # as long as base64 must be
    browser = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{name}"}
    said = rd.from_ai_sdk([{"id": "1", "role": "user", "parts": [browser]}])
    for messages in (said, [reply(rd.ContentPart("image", name))]):
        (sent,) = client._copy_messages(rd.to_request(messages, "ollama")["messages"])
        (image,) = sent.images
        with contextlib.suppress(ValueError):
            assert image.model_dump().strip() == name


def test_a_message_in_ollama_s_own_form_and_a_result_for_it_stay() -> None:
    own = {"role": "assistant", "content": "", "tool_calls": []}
    assert ollama(own, rd.ToolResult("z", "x")) == [
        own,
        {"role": "tool", "content": "x", "tool_call_id": "z"},
    ]
