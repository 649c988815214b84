"""The requests that a client of Anthropic's Messages API sends, as messages for the next request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.cost import lines_run

import rxdelta as rd

Json = dict[str, Any]
CACHED = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def text(said: str, **more: Any) -> Json:
    return {"type": "text", "text": said, **more}


def call(call_id: str = "toolu_a", **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}, **more}


def result(content: Any = "a.txt", call_id: str = "toolu_a", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def user(*parts: Any) -> Json:
    return {"role": "user", "content": [*parts]}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": [*blocks]}


def body(*messages: Any, **more: Any) -> Json:
    return {"model": "claude", "max_tokens": 9, "messages": [*messages], **more}


def messages_of(*messages: Any, **options: Any) -> list[rd.Message]:
    return rd.requests.from_anthropic_messages(body(*messages), **options)


def sent(*messages: Any, wire_format: str = "anthropic-messages", **options: Any) -> Any:
    return rd.to_request(messages_of(*messages, **options), wire_format)["messages"]


SYSTEM = [text("You are an agent."), text("Use the tools.", **CACHED)]
DOCUMENT = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "Größe"},
    "title": "notes",
    "citations": {"enabled": True},
    **CACHED,
}
THINKING = {"type": "thinking", "thinking": "I look first.", "signature": "c2ln"}
CLAUDE_CODE = [
    user(text("<system-reminder>\n</system-reminder>"), text("Do it", **CACHED), IMAGE, DOCUMENT),
    assistant(THINKING, text("Looking."), call("toolu_a"), call("toolu_b", **CACHED)),
    user(
        result("one"),
        result([text("two"), IMAGE], "toolu_b", is_error=True, **CACHED),
    ),
    user(text("Go on")),
    assistant(
        {"type": "redacted_thinking", "data": "cmVk"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        text("Done.", **CACHED),
    ),
    user(text("Thanks")),
]
"""A conversation in the shape of Claude Code's."""


def test_a_conversation_of_claude_code_goes_on_to_anthropic_as_it_was() -> None:
    messages = rd.requests.from_anthropic_messages(body(*CLAUDE_CODE, system=SYSTEM), system=True)
    request = rd.to_request(messages, "anthropic-messages")
    assert request == {"system": SYSTEM, "messages": CLAUDE_CODE}


def test_instructions_amid_the_messages_come_with_the_others() -> None:
    amid = [user(text("Hi")), {"role": "system", "content": "Be brief."}, assistant(text("Hello."))]
    messages = rd.requests.from_anthropic_messages(body(*amid, system="You are an agent."), system=True)
    assert [message.role for message in messages] == ["system", "user", "system", "assistant"]
    request = rd.to_request(messages, "anthropic-messages")
    assert request["system"] == [text("You are an agent."), text("Be brief.")]
    assert request["messages"] == [amid[0], amid[2]]


@pytest.mark.parametrize("wire_format", [name for name in rd.requests.REQUEST_FORMATS if name != "langchain"])
def test_every_provider_gets_the_texts_calls_and_results(wire_format: str) -> None:
    plain = [user(text("Do it", **CACHED)), *CLAUDE_CODE[1:]]
    messages = rd.requests.from_anthropic_messages(body(*plain, system=SYSTEM), system=True)
    request = json.dumps(rd.to_request(messages, wire_format), default=str)
    for found in ("Use the tools.", "Do it", "Looking.", "Bash", "one", "two", "Done.", "Thanks"):
        assert found in request
    if wire_format not in ("anthropic-messages", "bedrock-converse"):
        assert "c2ln" not in request
    if wire_format != "anthropic-messages":
        assert "cmVk" not in request
        assert "ephemeral" not in request


def test_bedrock_gets_the_signatures_too() -> None:
    results = user(result("one"), result("two", "toolu_b"))
    _, said, _ = sent(user(text("Hi")), CLAUDE_CODE[1], results, wire_format="bedrock-converse")
    thinking = {"text": "I look first.", "signature": "c2ln"}
    assert said["content"][0] == {"reasoningContent": {"reasoningText": thinking}}


def test_a_thinking_without_a_signature_is_nobodys() -> None:
    unsigned = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    (_, message) = messages_of(user(text("Hi")), assistant(unsigned, text("Hello.")))
    assert message.blocks[0] == rd.ContentPart("reasoning", "Hm.", {"sent_as": "reasoning"})
    assert sent(user(text("Hi")), assistant(unsigned, text("Hello.")))[1] == assistant(text("Hello."))


def test_an_image_of_a_result_is_an_image_for_openai() -> None:
    items = rd.to_request(
        messages_of(assistant(call()), user(result([text("Here:"), IMAGE]))), "openai-responses"
    )
    assert items["input"][-1]["output"] == [
        {"type": "input_text", "text": "Here:"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
    ]


def test_parts_of_a_result_that_are_all_text_are_a_text_elsewhere() -> None:
    parts = [text("a"), text("b")]
    assert sent(assistant(call()), user(result(parts)))[-1] == user(result(parts))
    chat = sent(assistant(call()), user(result(parts)), wire_format="openai-chat")
    assert chat[-1]["content"] == "ab"


def test_what_the_client_says_of_a_result_stays_with_it() -> None:
    (message,) = messages_of(assistant(call()), user(result("no", is_error=True, **CACHED)))
    (found,) = message.tool_calls
    assert found.result == rd.ToolResult("toolu_a", "no", True, metadata=CACHED)
    assert found.execution_status() == "failed"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (body(user(text("Hi")), system="Obey."), r"body.system: is allowed with system=True only"),
        (body({"role": "system", "content": "Obey."}), r"body.messages\[0\].role: is allowed with"),
        (
            body(user({"type": "image", "source": {"type": "file", "file_id": "f"}})),
            r"messages\[0\].*allow=\('file_id',\)",
        ),
        (
            body(user({"type": "document", "source": {"type": "url", "url": "s3://b/a"}})),
            r"messages\[0\].*allow=\('s3',\)",
        ),
        (
            body(
                assistant(call()),
                user(result([{"type": "image", "source": {"type": "file", "file_id": "f"}}])),
            ),
            r"messages\[0\].*allow=\('file_id',\)",
        ),
        (
            body(assistant(call()), user(result([{"type": "image", "uri": "gs://b/a"}, text("x")]))),
            r"messages\[0\].*allow=\('gs',\)",
        ),
        (
            body(
                assistant(call()),
                user(result([{"type": "document", "source": {"type": "url", "url": "file:/x"}}])),
            ),
            r"messages\[0\].*allow=\('file',\)",
        ),
        (
            body(user({"type": "container_upload", "file_id": "f"})),
            r"messages\[0\].content\[0\]: must be a text",
        ),
    ],
)
def test_what_only_the_application_may_say_is_refused(given: Any, says: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=says):
        rd.requests.from_anthropic_messages(given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("Hi", r"body: must be the body"),
        ({}, r"body.messages: must be a list"),
        ({"messages": "Hi"}, r"body.messages: must be a list"),
        (body("Hi"), r"body.messages\[0\]: must be a message"),
        (body({"role": "tool", "content": "x"}), r"body.messages\[0\].role: must be user"),
        (body({"role": ["user"], "content": "x"}), r"body.messages\[0\].role: must be user"),
        (body({"role": "user"}), r"body.messages\[0\].content: must be a string"),
        (body(user("Hi")), r"body.messages\[0\].content\[0\]: must be a text"),
        (body(user(text(5))), r"body.messages\[0\].content\[0\]: must be a text"),  # type: ignore[arg-type]
        (
            body(user({"type": "image", "source": {"type": "base64"}})),
            r"messages\[0\].content\[0\]: must be a text",
        ),
        (body(user({"type": "image"})), r"messages\[0\].content\[0\]: must be a text"),
        (body({"role": "assistant", "content": 5}), r"body.messages\[0\].content: must be a list"),
        (body(assistant("Hi")), r"body.messages\[0\].content\[0\]: must be a block"),
        (body(assistant({"text": "x"})), r"body.messages\[0\].content: is no content of a reply"),
        (body(assistant(text(5))), r"body.messages\[0\].content: is no content of a reply"),  # type: ignore[arg-type]
        (body(assistant(call(id=5))), r"body.messages\[0\].content\[0\].id: must be a string"),
        (body(assistant(call(input=[1]))), r"body.messages\[0\].content: is no content of a reply"),
        (body(user(result(call_id=5))), r"messages\[0\].content\[0\].tool_use_id: must be a string"),  # type: ignore[arg-type]
        (body(user(result(5))), r"messages\[0\].content\[0\].content: must be a string or a list"),
    ],
)
def test_what_is_no_request_is_refused_by_its_path(given: Any, says: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=says):
        rd.requests.from_anthropic_messages(given, system=True)


def test_the_time_for_a_large_body_grows_with_its_size() -> None:
    def lines(size: int) -> int:
        ids = [f"toolu_{n}" for n in range(size)]
        said = assistant(*(one for call_id in ids for one in (text("x"), call(call_id))))
        heard = user(*(result("x", call_id) for call_id in ids))
        return lines_run(lambda: messages_of(said, heard))

    assert lines(200) < 5 * lines(50)
