"""`to_request` for OpenAI Responses: what came from it goes back item by item."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.openai_responses import streamed
from support.shared import recordings

import rxdelta as rd


def call(call_id: str, name: str = "f", arguments: Any = None, **more: Any) -> rd.ToolCall:
    given = {} if arguments is None else arguments
    return rd.ToolCall(call_id=call_id, name=name, arguments=given, status="complete", **more)


def reply(*blocks: Any) -> rd.Message:
    return rd.Message(blocks=blocks)


def user(*blocks: Any) -> rd.Message:
    return rd.Message(role="user", blocks=blocks)


def text(said: str, **options: Any) -> rd.ContentPart:
    return rd.ContentPart("text", said, options)


def reasoning(item_id: str, said: str = "", **options: Any) -> rd.ContentPart:
    return rd.ContentPart("reasoning", said, {"item_id": item_id, **options})


def special(kind: str, call_id: str, arguments: Any, **more: Any) -> rd.ToolCall:
    return call(call_id, kind, arguments, metadata={"provider_type": kind, "item_id": f"i_{call_id}", **more})


def items(*messages: Any, **more: Any) -> list[Any]:
    written: list[Any] = rd.to_request(messages, "openai-responses", **more)["input"]
    return written


def decoded(*output: Any) -> rd.Message:
    body = {"object": "response", "id": "r", "model": "m", "status": "completed", "output": output}
    fold = rd.Fold()
    for event in rd.providers.decoder("openai-responses").decode(body):
        fold.step(event)
    return fold.snapshot.to_message()


def told(value: Any) -> Any:
    """What a JSON value says: without what is empty, and JSON text read."""
    if isinstance(value, dict):
        return {name: told(item) for name, item in value.items() if item not in (None, [], {}, "")}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [told(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        return json.loads(value)
    return value


NOT_TAKEN = {"custom_tool_call": {"status"}}


@pytest.mark.parametrize(("chunks", "_told"), recordings("openai-responses"))
def test_the_items_of_a_recorded_reply_go_back_as_they_came(chunks: list[Any], _told: Any) -> None:
    decoder, fold = rd.providers.decoder("openai-responses"), rd.Fold(choice=0)
    for event in (event for chunk in chunks for event in decoder.decode(chunk)):
        if isinstance(event, rd.events.StreamError):
            return
        fold.step(event)
    if fold.snapshot.status == "incomplete":
        return
    done = [chunk for chunk in chunks if chunk.get("type") == "response.output_item.done"]
    came = [chunk["item"] for chunk in sorted(done, key=lambda chunk: chunk["output_index"])]
    written = {item.get("id"): told(item) for item in items(fold.snapshot.to_message())}
    for item in came:
        not_taken = NOT_TAKEN.get(item["type"], set())
        wanted = told({name: value for name, value in item.items() if name not in not_taken})
        assert written[item["id"]] == wanted


def test_a_whole_conversation() -> None:
    said = [
        rd.Message.of("system", "Be brief."),
        "2 + 2?",
        reply(text("Let me see."), call("a", "add", {"x": 2})),
        rd.ToolResult("a", {"sum": 4}),
        reply(text("4")),
        "Thanks!",
    ]
    assert items(*said) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": '{"x": 2}'},
        {"type": "function_call_output", "call_id": "a", "output": '{"sum": 4}'},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "Thanks!"},
    ]


def test_what_was_said_under_one_id_is_one_message() -> None:
    cited = rd.Citation(url="https://x", raw={"type": "url_citation", "url": "https://x"})
    message = reply(
        text("a", item_id="m1", status="completed", phase="commentary"),
        rd.ContentPart("refusal", "No.", {"item_id": "m1", "status": "completed", "phase": "commentary"}),
        rd.ContentPart("text", "b", {"item_id": "m2", "logprobs": [{"token": "b"}]}, [cited]),
    )
    first, second = items(message)
    assert first == {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "a", "annotations": []},
            {"type": "refusal", "refusal": "No."},
        ],
    }
    assert second["content"] == [
        {
            "type": "output_text",
            "text": "b",
            "annotations": [{"type": "url_citation", "url": "https://x"}],
            "logprobs": [{"token": "b"}],
        }
    ]


def test_texts_of_another_provider_are_one_plain_message_as_far_as_they_stand_together() -> None:
    message = reply(text("a"), text("b"), call("c"), text("d"), text(""))
    assert [item.get("content") for item in items(message)] == ["ab", None, "d"]


def test_reasoning_stands_before_what_it_led_to_with_its_parts_as_they_were() -> None:
    message = reply(
        reasoning("rs1", "one\n\ntwo", signature="xyz", part_lengths=[3, 3], status="completed"),
        call("a", metadata={"item_id": "fc1", "status": "completed"}),
        reasoning("rs2", "onetwo", provider_type="reasoning_text", part_lengths=[3, 3]),
        text("Hi", item_id="m1"),
    )
    first, made, second, said = items(message)
    assert first == {
        "type": "reasoning",
        "id": "rs1",
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
        "encrypted_content": "xyz",
        "status": "completed",
    }
    assert (made["id"], said["id"]) == ("fc1", "m1")
    assert second["summary"] == []
    assert second["content"] == [
        {"type": "reasoning_text", "text": "one"},
        {"type": "reasoning_text", "text": "two"},
    ]


def test_reasoning_that_nothing_follows_is_left_out_because_it_would_be_refused() -> None:
    message = reply(
        text("Hi", item_id="m1"), reasoning("rs1"), rd.ContentPart("audio", "QUJD"), reasoning("rs2")
    )
    assert [item["type"] for item in items(message, "Go on.")[:-1]] == ["message"]


def test_without_reasoning_the_ids_that_it_is_asked_for_by_are_left_out_too() -> None:
    search = rd.ToolCall(
        call_id="ws1",
        name="web_search",
        arguments={"action": {"type": "search"}},
        status="complete",
        type="server_tool_call",
        metadata={"provider_type": "web_search_call", "item_id": "ws1"},
    )
    given = rd.ContentPart(
        "server_tool_result",
        None,
        {"provider_type": "shell_call_output", "item_id": "o1", "tool_call_id": "s1", "output": []},
    )
    compacted = rd.ContentPart(
        "unsupported", None, {"type": "compaction", "id": "cmp1", "encrypted_content": "x"}
    )
    message = reply(
        compacted,
        reasoning("rs1", "Hm.", signature="s"),
        search,
        given,
        text("Hi", item_id="m1", phase="final_answer"),
        call("a", metadata={"item_id": "fc1", "status": "completed"}),
    )
    assert items(message, reasoning=False) == [
        {"type": "compaction", "id": "cmp1", "encrypted_content": "x"},
        {"role": "assistant", "content": "Hi", "phase": "final_answer"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "status": "completed"},
    ]
    assert [item.get("id") for item in items(message)] == ["cmp1", "rs1", "ws1", "o1", "m1", "fc1"]
    unthinking = reply(search, text("Hi", item_id="m1"))
    assert items(unthinking, reasoning=False) == items(unthinking)


RESULTS: list[tuple[rd.ToolCall, Any, bool, dict[str, Any]]] = [
    (call("a"), [1, "é"], False, {"type": "function_call_output", "output": '[1, "é"]'}),
    (call("a"), None, False, {"type": "function_call_output", "output": ""}),
    (call("a"), [{"type": "input_image", "image_url": "https://x"}], False,
     {"type": "function_call_output", "output": [{"type": "input_image", "image_url": "https://x"}]}),
    (special("custom_tool_call", "a", {"input": "x"}), "done", False,
     {"type": "custom_tool_call_output", "output": "done"}),
    (special("local_shell_call", "a", {"action": {}}), "out", False,
     {"type": "local_shell_call_output", "id": "a", "output": "out"}),
    (special("shell_call", "a", {"action": {}}), "out", False,
     {"type": "shell_call_output",
      "output": [{"stdout": "out", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
    (special("shell_call", "a", {"action": {}}), "no such file", True,
     {"type": "shell_call_output",
      "output": [{"stdout": "", "stderr": "no such file", "outcome": {"type": "exit", "exit_code": 1}}]}),
    (special("shell_call", "a", {"action": {}}), [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}],
     False, {"type": "shell_call_output",
             "output": [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}]}),
    (special("shell_call", "a", {"action": {}}), {"output": [], "max_output_length": 9}, False,
     {"type": "shell_call_output", "output": [], "max_output_length": 9}),
    (special("apply_patch_call", "a", {"operation": {}}), "no such file", True,
     {"type": "apply_patch_call_output", "status": "failed", "output": "no such file"}),
    (special("apply_patch_call", "a", {"operation": {}}), None, False,
     {"type": "apply_patch_call_output", "status": "completed"}),
    (special("computer_call", "a", {"action": {}}), "data:image/png;base64,QUJD", False,
     {"type": "computer_call_output",
      "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,QUJD"}}),
    (special("computer_call", "a", {"action": {}}),
     {"output": {"type": "computer_screenshot", "file_id": "f"}, "acknowledged_safety_checks": [{"id": "s"}]}, False,
     {"type": "computer_call_output", "output": {"type": "computer_screenshot", "file_id": "f"},
      "acknowledged_safety_checks": [{"id": "s"}]}),
    (special("tool_search_call", "a", {"q": "x"}), [{"type": "function", "name": "f"}], False,
     {"type": "tool_search_output", "execution": "client", "status": "completed",
      "tools": [{"type": "function", "name": "f"}]}),
    (call("a"), {"type": "function_call_output", "output": "x", "status": "incomplete"}, False,
     {"type": "function_call_output", "output": "x", "status": "incomplete"}),
    (call("a", metadata={"item_id": "fc", "caller": {"type": "program", "caller_id": "p"}}), "x", False,
     {"type": "function_call_output", "caller": {"type": "program", "caller_id": "p"}, "output": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("made", "content", "failed", "written"), RESULTS)
def test_each_call_has_its_own_kind_of_result(
    made: rd.ToolCall, content: Any, failed: bool, written: dict[str, Any]
) -> None:
    assert items(reply(made), rd.ToolResult("a", content, failed))[1] == {"call_id": "a", **written}


@pytest.mark.parametrize("content", ["it failed", None, {"x": 1}, [1]])
def test_a_computer_s_result_must_be_a_screenshot(content: Any) -> None:
    message = reply(special("computer_call", "a", {"action": {}}))
    with pytest.raises(rd.InvalidValueError, match="screenshot"):
        items(message, rd.ToolResult("a", content))


@pytest.mark.parametrize("arguments", [{"queries": ["x"]}, {}])
def test_a_search_for_tools_that_the_client_ran_goes_back_with_its_arguments(
    arguments: dict[str, Any],
) -> None:
    search = {
        "type": "tool_search_call",
        "id": "ts1",
        "call_id": "a",
        "status": "completed",
        "execution": "client",
        "arguments": arguments,
    }
    found = rd.ToolResult("a", [{"type": "function", "name": "f"}])
    assert items(decoded(search), found)[0] == search


def test_a_result_for_a_call_in_the_provider_s_own_form_is_of_its_kind() -> None:
    own = {"type": "custom_tool_call", "call_id": "z", "name": "sql", "input": "select 1"}
    written = items(own, rd.ToolResult("z", "x"), rd.ToolResult("y", "w"))
    assert [item["type"] for item in written] == [
        "custom_tool_call", "custom_tool_call_output", "function_call_output",
    ]  # fmt: skip


def test_an_invalid_call_goes_back_with_its_text_and_what_was_wrong() -> None:
    def invalid(**metadata: Any) -> rd.ToolCall:
        return rd.ToolCall(
            call_id="a",
            name="f",
            arguments='{"x": ',
            type="invalid_tool_call",
            error="cut off",
            metadata={"item_id": "i1", "status": "incomplete", **metadata},
        )

    made, answer = items(reply(invalid()))
    assert made == {
        "type": "function_call",
        "id": "i1",
        "call_id": "a",
        "name": "f",
        "arguments": '{"invalid_arguments": "{\\"x\\": "}',
    }
    assert (answer["type"], "cut off" in answer["output"]) == ("function_call_output", True)
    made, answer = items(reply(invalid(provider_type="custom_tool_call")))
    assert (made["input"], answer["type"]) == ('{"x": ', "custom_tool_call_output")
    made, answer = items(reply(invalid(provider_type="shell_call")))
    assert (made["type"], "id" in made, answer["type"]) == ("function_call", False, "function_call_output")


OWN: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "file_search_call", "id": "fs1", "status": "completed", "queries": ["q"], "results": [{"text": "x"}]},
    {"type": "file_search_call", "id": "fs1", "status": "completed", "queries": []},
    {"type": "code_interpreter_call", "id": "ci1", "status": "completed", "container_id": "c", "code": "1",
     "outputs": [{"type": "logs", "logs": "1"}]},
    {"type": "code_interpreter_call", "id": "ci1", "status": "failed", "container_id": "c", "code": None,
     "outputs": None},
    {"type": "image_generation_call", "id": "ig1", "status": "completed", "result": "QUJD", "size": "1x1",
     "output_format": "webp"},
    {"type": "mcp_list_tools", "id": "ml1", "server_label": "s", "tools": [], "error": "down"},
    {"type": "mcp_call", "id": "mc1", "status": "completed", "server_label": "s", "name": "f", "arguments": "{}",
     "output": "x"},
    {"type": "mcp_call", "id": "mc1", "status": "failed", "server_label": "s", "name": "f", "arguments": "{}",
     "error": {"type": "http_error", "code": 500, "message": "no"}},
    {"type": "mcp_approval_request", "id": "ma1", "server_label": "s", "name": "f", "arguments": "{}"},
    {"type": "program", "id": "p1", "call_id": "c1", "code": "f()", "fingerprint": "x"},
    {"type": "compaction", "id": "cp1", "encrypted_content": "x"},
    {"type": "x_search_call", "id": "x1", "status": "completed", "query": "q"},
    {"type": "new_item", "id": "n1", "x": {"y": 1}},
]  # fmt: skip


@pytest.mark.parametrize("item", OWN, ids=lambda item: item["type"])
def test_the_provider_s_own_items_go_back_whole(item: dict[str, Any]) -> None:
    said: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "Hi", "annotations": []}]
    assert items(decoded(item, said)) == [item, said]


def test_what_the_provider_ran_and_gave_back_as_an_item_of_its_own() -> None:
    shell = {
        "type": "shell_call",
        "id": "sh1",
        "call_id": "c1",
        "status": "completed",
        "action": {"commands": ["ls"]},
        "environment": {"type": "container_reference", "container_id": "c"},
    }
    gave = {"type": "shell_call_output", "id": "so1", "call_id": "c1", "status": "completed", "output": []}
    search = {
        "type": "tool_search_call",
        "id": "ts1",
        "status": "completed",
        "execution": "server",
        "arguments": {"paths": ["x"]},
    }
    found = {
        "type": "tool_search_output",
        "id": "to1",
        "status": "completed",
        "execution": "server",
        "tools": [{"type": "function", "name": "f"}],
    }
    program = {"type": "program", "id": "p1", "call_id": "c2", "code": "f()", "fingerprint": "x"}
    made = {"type": "program_output", "id": "po1", "call_id": "c2", "status": "incomplete", "result": ""}
    output: list[Any] = [shell, gave, search, found, program, made]  # fmt: skip
    assert items(decoded(*output)) == output


def test_of_what_the_provider_gave_back_only_an_item_of_its_own_stands_without_its_call() -> None:
    def gave(kind: str) -> rd.ContentPart:
        known = {"provider_type": kind, "item_id": "i1", "tool_call_id": "c1"}
        return rd.ContentPart("server_tool_result", None, {**known, "output": None})

    assert items(reply(gave("mcp_call"), gave("shell_call_output"), gave("program_output"))) == [
        {"type": "shell_call_output", "id": "i1", "call_id": "c1", "output": [], "status": "completed"},
        {"type": "program_output", "id": "i1", "call_id": "c1", "result": "", "status": "completed"},
    ]


def test_a_part_of_a_message_that_is_not_known_stays_in_it() -> None:
    said: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    said["content"] = [
        {"type": "output_text", "text": "Hi", "annotations": []},
        {"type": "hologram", "data": "x"},
    ]  # fmt: skip
    assert items(decoded(said)) == [said]


def test_what_came_from_another_provider_and_has_no_place_is_left_out() -> None:
    message = reply(
        rd.ContentPart("reasoning", "Hm.", {"signature": "s"}),
        rd.ContentPart("image", "QUJD", {"mime_type": "image/png"}),
        rd.ContentPart("unsupported", None, {"type": "container_upload", "file_id": "f"}),
        rd.ToolCall(call_id="s", name="search", arguments={}, status="complete", type="server_tool_call"),
        rd.ContentPart(
            "server_tool_result", None, {"provider_type": "web_search_tool_result", "tool_call_id": "s"}
        ),
        rd.ContentPart("refusal", "No."),
        call("a" * 70 + "1", metadata={"caller": {"type": "direct"}, "signature": "s"}),
    )
    assert items(message) == [
        {"role": "assistant", "content": "No."},
        {"type": "function_call", "call_id": "a" * 63 + "1", "name": "f", "arguments": "{}"},
    ]
    custom = call("a", "sql", {"input": "select 1"}, metadata={"provider_type": "custom"})
    assert items(reply(custom))[0]["type"] == "custom_tool_call"
    shell = call("a", "sh", {"action": {}}, metadata={"provider_type": "local_shell_call"})
    assert items(reply(shell))[0]["id"] == "a"


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (rd.ContentPart("image", "QUJD", {"mime_type": "image/jpeg"}),
         {"type": "input_image", "detail": "auto", "image_url": "data:image/jpeg;base64,QUJD"}),
        (rd.ContentPart("image_url", "https://x/y.png", {"detail": "low"}),
         {"type": "input_image", "detail": "low", "image_url": "https://x/y.png"}),
        (rd.ContentPart("image", None, {"url": "https://x/y.png"}),
         {"type": "input_image", "detail": "auto", "image_url": "https://x/y.png"}),
        (rd.ContentPart("image", None, {"file_id": "f1"}),
         {"type": "input_image", "detail": "auto", "file_id": "f1"}),
        (rd.ContentPart("file", None, {"file_id": "f1"}), {"type": "input_file", "file_id": "f1"}),
        (rd.ContentPart("file_url", "https://x/y.pdf"), {"type": "input_file", "file_url": "https://x/y.pdf"}),
        (rd.ContentPart("file", "QUJD", {"filename": "a.pdf"}),
         {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}),
        (rd.ContentPart("unsupported", None, {"type": "input_new", "x": 1}), {"type": "input_new", "x": 1}),
    ],
)  # fmt: skip
def test_media(part: rd.ContentPart, written: Any) -> None:
    assert items(user(text("See:"), part))[0]["content"] == [{"type": "input_text", "text": "See:"}, written]


@pytest.mark.parametrize("role", ["developer", "assistant", "tool"])
def test_tools_that_came_with_the_reply_go_back(role: str) -> None:
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    item = {"type": "additional_tools", "id": "at1", "role": role, "tools": tools}
    answer = streamed(item).to_message()
    assert items("Well?", answer, "And?")[1:-1] == [{**item, "role": "developer"}]
