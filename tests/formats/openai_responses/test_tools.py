"""OpenAI Responses: calls for the client, and tools that the provider runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import reactivex as rx
from support.openai_responses import (
    Chunk,
    added,
    arguments,
    blocks,
    completed,
    created,
    custom,
    decode,
    done,
    event,
    fold,
    function,
    incomplete,
    message,
    only,
    part,
    reply,
    response,
    streamed,
    text,
    violations,
)

import rxdelta as rd
from rxdelta.core import (
    ContentPart,
    Fold,
    ToolCall,
    thaw,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    Event,
    ProviderEvent,
)
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder


def test_a_call_is_named_by_its_call_id_and_keeps_its_items_id() -> None:
    item = function('{"x": 1}', namespace="ns", caller={"type": "direct"}, status="completed")
    call = only(streamed(item, arguments('{"x"'), arguments(": 1}"), begin=function()))
    assert (call.type, call.call_id, call.name, thaw(call.arguments)) == ("tool_call", "c1", "f", {"x": 1})
    assert thaw(call.metadata) == {
        "item_id": "fc",
        "namespace": "ns",
        "caller": {"type": "direct"},
        "status": "completed",
    }


def test_a_call_ends_with_its_item_before_the_message_does() -> None:
    found = decode(created(), added(function()), arguments("{}"), done(function("{}")))
    assert isinstance(found[-1], BlockFinish)
    assert only(fold(found)).status == "complete"


def test_arguments_may_come_without_pieces() -> None:
    whole = event("function_call_arguments.done", arguments='{"x": 1}')
    assert only(reply(created(), added(function()), whole)).arguments == '{"x": 1}'
    assert thaw(only(streamed(function('{"x": 1}'), whole, begin=function())).arguments) == {"x": 1}


def test_finished_arguments_win_over_their_pieces() -> None:
    whole = event("function_call_arguments.done", arguments='{"x": 12}')
    assert only(reply(created(), added(function()), arguments('{"x"'), whole)).arguments == '{"x": 12}'
    assert thaw(only(streamed(function('{"x": 12}'), arguments('{"y"'), begin=function())).arguments) == {
        "x": 12
    }


def test_arguments_may_come_as_an_object() -> None:
    assert thaw(only(streamed(function({"x": 1}), begin=function())).arguments) == {"x": 1}


def test_a_finished_item_may_still_call_itself_in_progress() -> None:
    call = only(streamed(function('{"x": 1}', status="in_progress"), begin=function()))
    assert (call.type, call.status, call.metadata["status"]) == ("tool_call", "complete", "in_progress")


def test_parallel_calls_may_interleave_and_calls_may_share_an_id() -> None:
    one, two = function('{"a": 1}'), function('{"b": 2}', name="g", id="fc2")
    snapshot = reply(
        created(),
        added(function()),
        added(function(name="g", id="fc2"), 1),
        arguments('{"a"'),
        arguments('{"b"', 1),
        arguments(": 1}"),
        arguments(": 2}", 1),
        done(two, 1),
        done(one),
        completed(one, two),
    )
    assert [(call.call_id, thaw(call.arguments)) for call in snapshot.tool_calls] == [
        ("c1", {"a": 1}),
        ("c1-2", {"b": 2}),
    ]
    assert snapshot.finish_reason == "tool_use"


def test_a_call_without_a_call_id_is_named_by_its_items_id_or_gets_one() -> None:
    assert only(streamed(function("{}", call_id=None))).call_id == "fc"
    call = only(streamed(function("{}", call_id="", id=None)))
    assert (call.call_id, call.metadata["synthetic_id"]) == ("call-resp_1-0", True)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (function('{"x": 1}'), "tool_call"),
        ({"type": "tool_search_call", "id": "ts", "execution": "client", "arguments": {"x": 1}}, "tool_call"),
        ({"type": "custom_tool_call", "id": "ct", "name": "f", "input": "x"}, "tool_call"),
        ({"type": "web_search_call", "id": "ws", "action": {"query": "x"}}, "server_tool_call"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
@pytest.mark.parametrize("placed", [True, False])
def test_an_item_whose_call_id_changes_when_it_is_done_is_one_call_under_the_last_one(
    item: Chunk, kind: str, placed: bool
) -> None:
    begun = {**item, "call_id": "early", "status": "in_progress", "arguments": {}, "input": "", "action": {}}
    begun = {name: value for name, value in begun.items() if name in (*item, "call_id", "status")}
    item = {**item, "call_id": "late", "status": "completed"}
    chunks = [created(), added(begun), done(item), done(item), completed(item)]
    for chunk in chunks if not placed else ():
        chunk.pop("output_index", None)
    for call in (only(reply(*chunks)), only(reply(*chunks[:2], completed(item)))):
        assert (call.type, call.call_id, call.status) == (kind, "late", "complete")
        assert thaw(call.arguments) in ({"x": 1}, {"input": "x"}, {"action": {"query": "x"}})


def test_a_call_whose_id_changes_runs_once_and_every_front_end_sees_one_call() -> None:
    begun, ended = function("", call_id="early"), function('{"x": 1}', call_id="late", status="completed")
    chunks = rx.of(created(), added(begun), arguments('{"x": 1}'), done(ended), completed(ended))
    ran: list[int] = []
    told: list[Event] = []
    chunks.pipe(
        rd.decode("openai-responses"), rd.run_tools({"f": lambda x: ran.append(x)}), rd.validate()
    ).subscribe(told.append)
    call = only(fold(told))
    assert (ran, call.call_id, call.result.call_id, call.execution_status()) == (
        [1],
        "late",
        "late",
        "completed",
    )
    frames: list[Any] = []
    rx.from_iterable(told).pipe(rd.to_ai_sdk()).subscribe(frames.append)
    asked = [frame for frame in frames if frame != rd.wire.DONE and frame["type"] == "tool-input-available"]
    answers = [
        frame for frame in frames if frame != rd.wire.DONE and frame["type"] == "tool-output-available"
    ]
    assert [frame["toolCallId"] for frame in asked] == [frame["toolCallId"] for frame in answers]
    assert len(asked) == 1


def test_a_call_id_that_changes_is_told_also_where_only_the_end_says_what_the_call_is_worth() -> None:
    bare = function("", call_id="late")
    snapshot = reply(created(), added(function("", call_id="early")), done(bare), completed())
    assert blocks(snapshot) == [("tool_call", "late", "f")]


def test_a_result_that_names_no_search_is_that_of_the_id_which_the_search_ended_with() -> None:
    search = {
        "type": "tool_search_call",
        "id": "ts",
        "execution": "server",
        "arguments": {},
        "call_id": "early",
    }
    ended = {**search, "call_id": "late", "status": "completed"}
    found = {"type": "tool_search_output", "id": "to", "status": "completed", "tools": []}
    snapshot = reply(created(), added(search), done(ended), added(found, 1), done(found, 1), completed())
    assert [block.options["tool_call_id"] for block in snapshot.blocks if isinstance(block, ContentPart)] == [
        "late"
    ]


def test_a_call_that_cannot_be_parsed_or_has_no_name_cannot_be_run() -> None:
    for item in (function('{"x": '), function("{}", name="")):
        assert only(streamed(item, begin=function(name=item["name"]))).type == "invalid_tool_call"


@pytest.mark.parametrize("status", ["incomplete", None, "in_progress"])
@pytest.mark.parametrize("said", ['{"x": 1}', "", '{"x"'])
def test_a_call_cut_off_by_the_token_limit_never_looks_as_if_it_could_be_run(
    said: str, status: str | None
) -> None:
    item = function(said, status=status)
    cut = reply(created(), added(function()), arguments(said), incomplete(item))
    assert (only(cut).type, cut.status, cut.finish_reason) == ("invalid_tool_call", "length", "length")
    assert cut.to_message().provider_finish_reason == "incomplete"
    if status == "incomplete" or said != '{"x": 1}':
        ended = reply(created(), added(function()), arguments(said), done(item), incomplete(item))
        assert only(ended).type == "invalid_tool_call"
    assert only(reply(response("incomplete", output=[item]))).type == "invalid_tool_call"


def test_a_call_that_had_come_whole_before_the_limit_stays_one() -> None:
    first = function('{"x": 1}', status="completed")
    text_cut = message(part("And th"), status="incomplete")
    snapshot = reply(created(), added(function()), done(first), added(message(), 1), text("And th", 1), done(text_cut, 1), incomplete(first, text_cut))  # fmt: skip
    assert blocks(snapshot) == [("tool_call", "c1", "f"), ("text", "And th")]
    assert snapshot.blocks[1].options["status"] == "incomplete"  # type: ignore[union-attr]
    assert (
        reply(response("incomplete", output=[function('{"x": 1}'), text_cut])).tool_calls[0].status
        == "complete"
    )


@pytest.mark.parametrize("status", ["completed", None, "in_progress"])
def test_no_arguments_are_an_empty_object(status: str | None) -> None:
    item = function("", status=status)
    found = decode(created(), added(function()), done(item), completed(item))
    assert violations(found) == []
    call = only(fold(found))
    assert (call.status, thaw(call.arguments)) == ("complete", {})
    early = decode(created(), added(function()), done(item))
    assert isinstance(early[-1], BlockFinish) is (status == "completed")


def test_a_custom_call_has_its_text_as_input() -> None:
    said = 'SELECT "é"\nFROM t'
    pieces = [event("custom_tool_call_input.delta", delta=piece) for piece in (said[:9], said[9:])]
    begun = only(reply(created(), added(custom("")), *pieces))
    assert thaw(begun.arguments_so_far) == {"input": said}
    call = only(streamed(custom(said), *pieces, begin=custom("")))
    assert (call.type, call.name, thaw(call.arguments)) == ("tool_call", "sql", {"input": said})
    assert thaw(call.metadata) == {"item_id": "ct", "provider_type": "custom_tool_call"}
    finished = event("custom_tool_call_input.done", input=said)
    assert thaw(only(reply(created(), added(custom("")), finished)).arguments_so_far) == {"input": said}
    without_its_done = reply(created(), added(custom("")), *pieces, completed())
    assert thaw(only(without_its_done).arguments) == {"input": said}
    cut = only(reply(created(), added(custom("")), *pieces, incomplete()))
    assert (cut.type, cut.arguments) == (
        "invalid_tool_call",
        json.dumps({"input": said}, ensure_ascii=False)[:-2],
    )


@pytest.mark.parametrize(
    ("tools", "ours"),
    [
        ([{"type": "x_search"}], False),
        ([{"type": "x_search"}, {"type": "custom", "name": "sql"}], True),
        ([{"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "sql"}]}], True),
        ([{"type": "tool_search"}], True),
        ([], True),
        (None, True),
    ],
)
def test_a_custom_call_of_a_tool_that_the_request_did_not_have_is_the_providers_own(
    tools: Any, ours: bool
) -> None:
    item = custom("{}", status="completed")
    snapshot = reply(created(tools=tools), added(custom("")), done(item), completed(item))
    assert only(snapshot).type == ("tool_call" if ours else "server_tool_call")
    assert snapshot.finish_reason == ("tool_use" if ours else "stop")
    assert snapshot.to_message() == reply({**completed(item, tools=tools)["response"]}).to_message()


LOCAL: list[tuple[Chunk, str, Chunk]] = [
    (
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        "local_shell",
        {"action": {"type": "exec", "command": ["ls"], "env": {}}},
    ),
    ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", {"action": {"commands": ["ls"]}}),
    (
        {"type": "shell_call", "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
        "shell",
        {"action": {"commands": ["ls"]}},
    ),
    (
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        {"operation": {"type": "delete_file", "path": "a"}},
    ),
    ({"type": "computer_call", "action": {"type": "wait"}}, "computer", {"action": {"type": "wait"}}),
    (
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "x"}},
        "tool_search",
        {"query": "x"},
    ),
]


@pytest.mark.parametrize(("item", "name", "said"), LOCAL)
def test_what_the_client_must_run_is_a_tool_call(item: Chunk, name: str, said: Chunk) -> None:
    item = {"id": "x1", "call_id": "c1", "status": "completed", **item}
    snapshot = streamed(item)
    call = only(snapshot)
    assert (call.type, call.call_id, call.name, thaw(call.arguments)) == ("tool_call", "c1", name, said)
    assert (call.status, snapshot.finish_reason) == ("complete", "tool_use")
    assert (call.metadata["provider_type"], call.metadata["item_id"]) == (item["type"], "x1")


def test_a_shell_in_a_container_is_the_providers_with_its_output() -> None:
    place = {"type": "container_reference", "container_id": "cntr"}
    call = {
        "type": "shell_call",
        "id": "sh",
        "call_id": "c1",
        "action": {"commands": ["ls"]},
        "environment": place,
    }
    output = [{"outcome": {"type": "exit", "exit_code": 0}, "stdout": "a\n", "stderr": ""}]
    result = {
        "type": "shell_call_output",
        "id": "sho",
        "call_id": "c1",
        "status": "completed",
        "output": output,
    }
    found = decode(
        created(),
        added({**call, "action": {"commands": []}}),
        done(call),
        added({**result, "output": []}, 1),
        event("shell_call_output_content.delta", 1, command_index=0, delta={"stdout": "a\n"}),
        event("shell_call_output_content.done", 1, command_index=0, output=output),
        done(result, 1),
        completed(call, result),
    )
    assert violations(found) == []
    snapshot = fold(found)
    assert snapshot.blocks[0].type == "server_tool_call"
    told = snapshot.blocks[1]
    assert isinstance(told, ContentPart)
    assert (told.type, told.options["tool_call_id"], thaw(told.options["output"])) == (
        "server_tool_result",
        "c1",
        output,
    )
    assert (told.options["status"], told.options["item_status"]) == ("success", "completed")
    assert snapshot.finish_reason == "stop"
    assert [one for one in found if isinstance(one, ProviderEvent)] == []


SHELL = {"type": "shell_call_output", "id": "sho", "call_id": "c1", "status": "in_progress", "output": []}


def put_out(command: int, **delta: str) -> Chunk:
    return event("shell_call_output_content.delta", command_index=command, delta=delta)


def test_what_a_shell_puts_out_grows_while_it_runs() -> None:
    ended = [{"outcome": {"type": "exit", "exit_code": 0}, "stdout": "ab", "stderr": ""}]
    steps = [
        (put_out(0, stdout="a"), [{"stdout": "a", "stderr": ""}]),
        (put_out(0, stdout="b"), [{"stdout": "ab", "stderr": ""}]),
        (put_out(1, stderr="no"), [{"stdout": "ab", "stderr": ""}, {"stdout": "", "stderr": "no"}]),
        (
            event("shell_call_output_content.done", command_index=0, output=ended),
            [*ended, {"stdout": "", "stderr": "no"}],
        ),
    ]
    chunks = [created(), added(SHELL)]
    for chunk, wanted in steps:
        chunks.append(chunk)
        assert thaw(only(reply(*chunks)).options["output"]) == wanted
    item = {**SHELL, "status": "completed", "output": ended}
    told = reply(*chunks, done(item), completed(item))
    assert told == reply(created(), added(SHELL), done(item), completed(item))


def test_a_long_output_is_told_in_linear_space_and_whole_when_the_stream_breaks_off() -> None:
    found = decode(created(), added(SHELL), *(put_out(0, stdout="line\n") for _ in range(500)))
    told = [one.fields["output"] for one in found if isinstance(one, BlockDelta)]
    assert sum(len(output[0]["stdout"]) for output in told) < 10 * 500 * 5
    assert thaw(only(fold(found)).options["output"]) == [{"stdout": "line\n" * 500, "stderr": ""}]


def test_a_web_search_shows_how_far_it_has_come() -> None:
    begin = {"type": "web_search_call", "id": "ws", "status": "in_progress"}
    item = {
        **begin,
        "status": "completed",
        "action": {"type": "search", "query": "x", "sources": [{"url": "u"}]},
    }
    decoder, folded = OpenAIResponsesDecoder(), Fold()
    seen = []
    for chunk in (
        created(),
        added(begin),
        event("web_search_call.searching"),
        event("web_search_call.completed"),
        done(item),
    ):
        for one in decoder.decode(chunk):
            folded.step(one)
        seen.append(
            [block.metadata.get("status") for block in folded.snapshot.blocks if isinstance(block, ToolCall)]
        )
    assert seen == [[], [None], ["searching"], ["completed"], ["completed"]]
    call = only(folded.snapshot)
    assert (call.type, call.call_id, call.name) == ("server_tool_call", "ws", "web_search")
    assert thaw(call.arguments) == {"action": item["action"]}


def test_a_finished_search_may_still_call_itself_searching() -> None:
    item = {
        "type": "web_search_call",
        "id": "ws",
        "status": "searching",
        "action": {"type": "search", "query": "x"},
    }
    call = only(streamed(item, event("web_search_call.completed")))
    assert (call.status, call.metadata["status"]) == ("complete", "searching")


def test_what_a_file_search_found_is_its_result() -> None:
    item = {"type": "file_search_call", "id": "fs", "status": "completed", "queries": ["q"], "results": None}
    call = only(streamed(item, begin={**item, "queries": []}))
    assert (call.name, thaw(call.arguments)) == ("file_search", {"queries": ["q"]})
    found = [{"file_id": "f", "score": 0.5}]
    snapshot = streamed({**item, "results": found})
    assert [block.type for block in snapshot.blocks] == ["server_tool_call", "server_tool_result"]
    assert thaw(snapshot.blocks[1].options) == {  # type: ignore[union-attr]
        "tool_call_id": "fs", "output": found, "provider_type": "file_search_call", "item_id": "fs", "status": "success",
    }  # fmt: skip


def test_code_that_the_provider_runs_streams_and_has_its_outputs() -> None:
    begin = {"type": "code_interpreter_call", "id": "ci", "code": "", "container_id": "cntr", "outputs": []}
    code, outputs = 'print("a")\n', [{"type": "logs", "logs": "a"}]
    item = {**begin, "status": "completed", "code": code, "outputs": outputs}
    pieces = [
        event("code_interpreter_call.in_progress"),
        event("code_interpreter_call_code.delta", delta=code[:5]),
        event("code_interpreter_call_code.delta", delta=code[5:]),
        event("code_interpreter_call_code.done", code=code),
        event("code_interpreter_call.interpreting"),
        event("code_interpreter_call.completed"),
    ]
    assert thaw(only(reply(created(), added(begin), *pieces)).arguments_so_far) == {"code": code}
    snapshot = streamed(item, *pieces, begin=begin)
    call, result = snapshot.blocks
    assert isinstance(call, ToolCall)
    assert isinstance(result, ContentPart)
    assert (call.name, thaw(call.arguments)) == ("code_interpreter", {"code": code})
    assert (call.metadata["container_id"], thaw(result.options["output"])) == ("cntr", outputs)
    assert len(streamed({**item, "outputs": None}, *pieces, begin=begin).blocks) == 1


def test_a_call_of_an_mcp_server_has_its_output_or_its_error() -> None:
    begin = {
        "type": "mcp_call",
        "id": "mcp",
        "name": "find",
        "server_label": "s",
        "arguments": "",
        "output": None,
    }
    item = {**begin, "arguments": '{"q": 1}', "output": "found", "error": None, "status": "completed"}
    pieces = [
        event("mcp_call.in_progress"),
        event("mcp_call_arguments.delta", delta='{"q": 1}'),
        event("mcp_call_arguments.done", arguments='{"q": 1}'),
        event("mcp_call.completed"),
    ]
    snapshot = streamed(item, *pieces, begin=begin)
    assert blocks(snapshot) == [("server_tool_call", "mcp", "find"), ("server_tool_result", None)]
    assert thaw(snapshot.blocks[0].arguments) == {"q": 1}  # type: ignore[union-attr]
    assert snapshot.blocks[0].metadata["server_label"] == "s"  # type: ignore[union-attr]
    wrong = {"type": "http_error", "code": 500, "message": "m"}
    failed = streamed({**item, "output": None, "error": wrong, "status": "failed"}, event("mcp_call.failed"))
    result = failed.blocks[1].options  # type: ignore[union-attr]
    assert (result["status"], thaw(result["output"]), thaw(result["item_error"])) == ("error", wrong, wrong)


def test_an_approval_that_is_asked_for_is_no_call_to_run() -> None:
    item = {"type": "mcp_approval_request", "id": "mcpr", "name": "f", "arguments": "{}", "server_label": "s"}
    snapshot = streamed(item)
    assert blocks(snapshot) == [("server_tool_call", "mcpr", "f")]
    assert snapshot.finish_reason == "stop"
    assert only(snapshot).metadata["provider_type"] == "mcp_approval_request"


def test_a_tool_search_of_the_provider_names_its_result_though_the_wire_does_not() -> None:
    call = {
        "type": "tool_search_call",
        "id": "tsc",
        "call_id": None,
        "execution": "server",
        "arguments": {"paths": ["a"]},
    }
    found = {
        "type": "tool_search_output",
        "id": "tso",
        "call_id": None,
        "execution": "server",
        "tools": [{"name": "a"}],
    }
    snapshot = reply(
        created(), added(call), done(call), added(found, 1), done(found, 1), completed(call, found)
    )
    assert blocks(snapshot) == [("server_tool_call", "tsc", "tool_search"), ("server_tool_result", None)]
    told = snapshot.blocks[1].options  # type: ignore[union-attr]
    assert (told["tool_call_id"], thaw(told["output"])) == ("tsc", [{"name": "a"}])


def test_a_program_is_the_providers_and_the_calls_in_it_are_ours() -> None:
    program = {"type": "program", "id": "p", "call_id": "cp", "code": "f()", "fingerprint": "x"}
    call = function("{}", caller={"type": "program", "caller_id": "cp"})
    output = {"type": "program_output", "id": "po", "call_id": "cp", "result": "1", "status": "completed"}
    snapshot = reply(completed(program, call, output)["response"])
    assert blocks(snapshot) == [
        ("server_tool_call", "cp", "program"),
        ("tool_call", "c1", "f"),
        ("server_tool_result", None),
    ]
    assert snapshot.blocks[2].options["output"] == "1"  # type: ignore[union-attr]


def test_a_call_of_a_kind_that_is_not_known_is_not_run() -> None:
    item = {
        "type": "x_search_call",
        "id": "xs",
        "name": "x_keyword_search",
        "arguments": '{"q": 1}',
        "status": "completed",
    }
    snapshot = streamed(item, event("x_search_call.searching"), begin={**item, "arguments": ""})
    assert blocks(snapshot) == [("server_tool_call", "xs", "x_keyword_search")]
    assert thaw(only(snapshot).arguments) == {"q": 1}
    look = {"type": "view_image_call", "id": "v", "action": {"url": "u"}, "index": 3}
    call = only(streamed(look))
    assert (call.name, thaw(call.arguments)) == ("view_image", {"action": {"url": "u"}})
    assert call.metadata["item_index"] == 3
