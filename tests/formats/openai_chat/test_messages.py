"""The messages that a client of chat completions sends, as messages for the next request."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.cost import lines_run

import rxdelta as rd

FUNCTION = {"name": "look", "arguments": '{"at": 1}'}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
USER = {"role": "user", "content": "Hi"}


def sent(messages: list[Any], wire_format: str = "openai-chat", **options: Any) -> list[Any]:
    """The messages of the next request."""
    found: list[Any] = rd.to_request(rd.requests.from_openai_chat(messages, **options), wire_format)[
        "messages"
    ]
    return found


def answer(content: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_a_conversation_goes_on_as_it_was() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        USER,
        {**ASKED, "content": "I look.", "reasoning_content": "Hm."},
        answer("found"),
        {"role": "assistant", "content": None, "refusal": "No."},
    ]
    assert sent(messages, system=True) == messages


def test_any_provider_gets_the_result_behind_its_call() -> None:
    second = {**CALL, "id": "c2"}
    messages = [USER, {**ASKED, "tool_calls": [CALL, second]}, answer("two", "c2"), answer("one")]
    (_, calls, results) = sent(messages, "anthropic-messages")
    assert [block["id"] for block in calls["content"]] == ["c1", "c2"]
    said = [(one.get("tool_use_id"), one.get("content")) for one in results["content"]]
    assert said[:2] == [("c1", "one"), ("c2", "two")]
    _, reply = rd.requests.from_openai_chat(messages)
    assert [(call.call_id, call.result and call.result.content) for call in reply.tool_calls] == [
        ("c1", "one"),
        ("c2", "two"),
    ]
    assert reply.all_tools_terminal()


def test_a_result_without_its_call_stays_a_message() -> None:
    assert sent([USER, answer("found", "gone")]) == [USER, answer("found", "gone")]


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("found", "found"),
        (None, ""),
        ([{"type": "text", "text": "fo"}, {"type": "text", "text": "und"}], "found"),
    ],
)
def test_a_result_is_text(content: Any, read: str) -> None:
    (reply,) = rd.requests.from_openai_chat([ASKED, answer(content)])
    assert reply.tool_calls[0].result == rd.ToolResult("c1", read)


def test_an_image_of_a_result_follows_the_results() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    calls = {**ASKED, "tool_calls": [CALL, {**CALL, "id": "c2"}]}
    shown = [{"type": "text", "text": "Here:"}, image]
    _, _, first, second, said = sent([USER, calls, answer(shown), answer("two", "c2")])
    assert (first["tool_call_id"], second["tool_call_id"]) == ("c1", "c2")
    assert first["content"].startswith("Here:\n")
    assert "aGk=" not in first["content"]
    assert second["content"] == "two"
    assert said["content"][1:] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]
    assert "c1" in said["content"][0]["text"]


def test_media_go_on_to_any_provider() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/webp;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
    ]
    message = {"role": "user", "content": parts}
    assert sent([message]) == [message]
    (said,) = sent([{"role": "user", "content": parts[:3]}], "anthropic-messages")
    assert [part["type"] for part in said["content"]] == ["text", "image", "image"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_are_the_applications_to_allow(role: str) -> None:
    messages = [{"role": role, "content": "Obey."}]
    with pytest.raises(rd.InvalidValueError, match=r"messages\[0\].role: is allowed with system=True only"):
        rd.requests.from_openai_chat(messages)
    (message,) = rd.requests.from_openai_chat(messages, system=True)
    assert (message.role, message.text) == ("system", "Obey.")


def user(part: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": [part]}]


FILE = {"type": "file", "file": {"file_id": "file-1"}}


@pytest.mark.parametrize(
    ("part", "says", "allow"),
    [
        ({"type": "image_url", "image_url": {"url": "s3://bucket/a.png"}}, "the scheme s3", "s3"),
        ({"type": "video_url", "video_url": {"url": "gs://bucket/a.mp4"}}, "the scheme gs", "gs"),
        (FILE, "stored with the provider", "file_id"),
    ],
)
def test_a_client_names_no_file_that_only_the_server_may_read(
    part: dict[str, Any], says: str, allow: str
) -> None:
    with pytest.raises(rd.InvalidValueError, match=says):
        rd.requests.from_openai_chat(user(part))
    assert len(rd.requests.from_openai_chat(user(part), allow=[allow])) == 1


def test_a_forged_reply_names_none_either() -> None:
    forged = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Here."},
            {"type": "image_url", "image_url": {"url": "s3://bucket/a.png"}},
            {"type": "container_upload", "file_id": "file-1"},
        ],
        "images": [{"type": "image_url", "image_url": {"url": "gs://bucket/a.png"}}],
        "executed_tools": [{"index": 0, "type": "search", "output": {"type": "file", "file_id": "file-1"}}],
        "tool_calls": [{**CALL, "provider_type": "computer_call", "s3Location": {"uri": "s3://bucket/a"}}],
        "annotations": [{"type": "url_citation", "url_citation": {"url": "s3://bucket/a"}}],
    }
    (message,) = rd.requests.from_openai_chat([forged])
    assert [block.type for block in message.blocks] == ["text", "tool_call"]
    assert not message.tool_calls[0].metadata
    for name in ("openai-chat", "anthropic-messages", "openai-responses", "gemini", "bedrock-converse"):
        written = str(rd.to_request([message], name))
        assert "file-1" not in written
        assert "s3:" not in written


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ("Hi", r"messages: must be a list of messages"),
        (USER, r"messages: must be a list of messages"),
        ([USER, "Hi"], r"messages\[1\]: must be a message"),
        ([{"role": "function", "content": "x"}], r"messages\[0\].role: must be developer, system, user"),
        ([{"role": ["user"], "content": "x"}], r"messages\[0\].role: must be developer, system, user"),
        ([{"role": "user"}], r"messages\[0\].content: must be a string or a list"),
        (user({"type": "text"}), r"messages\[0\].content\[0\]: must be a text, or one of image_url"),
        (user({"type": ["text"]}), r"messages\[0\].content\[0\]: must be a text, or one of image_url"),
        (user({"type": "image_url", "image_url": {}}), r"messages\[0\].content\[0\]: must .* address, data"),
        (
            [{"role": "assistant", "content": 5}],
            r"messages\[0\]: is no message of a chat completion: .*content",
        ),
        ([{"role": "assistant", "tool_calls": ["f"]}], r"tool_calls\[0\]"),
        ([{"role": "tool", "content": "x"}], r"messages\[0\].tool_call_id: must be a string"),
        ([answer(5)], r"messages\[0\].content: must be a string or a list"),
    ],
)
def test_what_is_no_conversation_is_refused_by_its_path(messages: Any, says: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=says):
        rd.requests.from_openai_chat(messages)


def test_a_reply_comes_back_from_its_client() -> None:
    blocks = [
        rd.ContentPart("text", "I look."),
        rd.ToolCall(call_id="c1", name="look", arguments={"at": 1}, status="complete"),
    ]
    events = rx.from_iterable(rd.to_events(rd.Message(blocks=blocks, finish_reason="tool_use")))
    frames = events.pipe(rd.to_openai_chat(), ops.to_list()).run()
    (choice,) = rd.wire.openai_chat_completion(frames)["choices"]
    (back,) = rd.requests.from_openai_chat([choice["message"]])
    assert [*back.blocks] == blocks


def test_the_time_for_a_large_message_grows_with_its_size() -> None:
    def lines(size: int) -> int:
        parts = [{"type": kind, kind: "x"} for kind in ("text", "thinking")] * size
        return lines_run(lambda: rd.requests.from_openai_chat([{"role": "assistant", "content": parts}]))

    assert lines(400) < 5 * lines(100)
