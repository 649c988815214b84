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


def test_finished_arguments_win_over_their_pieces() -> None:
    whole = event("function_call_arguments.done", arguments='{"x": 12}')
    assert only(reply(created(), added(function()), arguments('{"x"'), whole)).arguments == '{"x": 12}'
    assert thaw(only(streamed(function('{"x": 12}'), arguments('{"y"'), begin=function())).arguments) == {
        "x": 12
    }


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
