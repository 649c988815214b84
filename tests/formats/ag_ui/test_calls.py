"""Tool calls to an AG-UI client: arguments, results, and which calls are left to the client."""

from __future__ import annotations

from typing import Any

import pytest
from support.ag_ui import ASKED, call, message, read, shown, text, told, types

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]
each_version = pytest.mark.parametrize("version", ["1.0", None])


def test_g6_parallel_calls_interleave_and_belong_to_the_message_before_them() -> None:
    starts = [call(1, "c1")[0], call(2, "c2")[0]]
    pieces = [
        ev.ToolCallDelta(1, '{"a"'),
        ev.ToolCallDelta(2, "{}"),
        ev.ToolCallDelta(1, ": 1}"),
    ]
    frames = told(*message(text(0, "Hi"), [*starts, *pieces, ev.BlockFinish(2), ev.BlockFinish(1)]))
    assert {f["parentMessageId"] for f in frames if f["type"] == "TOOL_CALL_START"} == {"m1"}
    assert not any("CHUNK" in kind for kind in types(frames))
    (said,) = read(frames).messages
    assert [one["function"]["arguments"] for one in said["toolCalls"]] == ['{"a": 1}', "{}"]


def test_g6_for_old_clients_nothing_comes_while_a_call_is_open() -> None:
    starts = [ev.BlockStart(0, {"type": "text"}), call(1, "c1")[0], call(2, "c2")[0]]
    pieces = [
        ev.TextDelta(0, "a"),
        ev.ToolCallDelta(1, "{"),
        ev.ToolCallDelta(2, "{}"),
        ev.TextDelta(0, "b"),
        ev.ToolUpdate("c2", "executing"),
        ev.BlockFinish(2),
        ev.ToolCallDelta(1, "}"),
        ev.BlockFinish(1),
        ev.BlockFinish(0),
        ev.ToolUpdate("c2", "completed", result=rd.ToolResult("c2", "ok")),
    ]
    frames = told(*message([*starts, *pieces]), serialize_tool_calls=True)
    opened = None
    for frame in frames:
        if opened is not None:
            assert frame["type"] in ("TOOL_CALL_ARGS", "TOOL_CALL_END")
            assert frame["toolCallId"] == opened
        if frame["type"] == "TOOL_CALL_START":
            opened = frame["toolCallId"]
        elif frame["type"] == "TOOL_CALL_END":
            opened = None
    client = read(frames)
    assert shown(client.messages)["text"] == "ab"
    assert [f["toolCallId"] for f in frames if f["type"] == "TOOL_CALL_START"] == ["c1", "c2"]
    assert client.pending == ["c1"]


def test_g6_blocks_that_the_end_of_the_message_closes_together_keep_their_order() -> None:
    blocks = [call(0, "c1", "{}")[:2], text(1, "one"), text(2, "two")[:-1]]
    client = read(told(*message(*blocks), serialize_tool_calls=True))
    assert shown(client.messages)["text"] == "onetwo"


def test_g6_a_call_whose_id_has_been_is_given_another_and_still_gets_its_result() -> None:
    turn = message(call(0, "c1", "{}"), id="m1")
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    history = [*ASKED, {"id": "a", "role": "assistant", "toolCalls": [_call("c1")]}]
    client = read(told(*turn, done, messages=history), history)
    assert client.messages[-2]["toolCalls"][0]["id"] == "c1-2"
    assert client.messages[-1]["toolCallId"] == "c1-2"


def _call(call_id: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_g6_arguments_that_never_came_are_an_empty_object() -> None:
    (said,) = read(told(*message(call(0, "c1")))).messages
    assert said["toolCalls"][0]["function"]["arguments"] == "{}"


def test_g6_a_call_is_told_when_it_has_an_id_and_a_name() -> None:
    events = [
        ev.BlockStart(0, {"type": "tool_call_chunk"}),
        ev.ToolCallDelta(0, '{"a": '),
        ev.BlockDelta(0, {"id": "c1"}),
        ev.BlockDelta(0, {"name": "f"}),
        ev.ToolCallDelta(0, "1}"),
        ev.BlockFinish(0),
    ]
    frames = told(*message(events))
    start, *pieces = [f for f in frames if f["type"] in ("TOOL_CALL_START", "TOOL_CALL_ARGS")]
    assert (start["toolCallId"], start["toolCallName"]) == ("c1", "f")
    assert [piece["delta"] for piece in pieces] == ['{"a": ', "1}"]


def test_g7_a_result_comes_behind_its_calls_end_under_an_id_of_its_own() -> None:
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", {"t": 21}))
    again = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "twice"))
    events = call(0, "c1", "{}")
    frames = told(*message([*events[:-1], done, events[-1], again]))
    results = [f for f in frames if f["type"] == "TOOL_CALL_RESULT"]
    assert [(f["messageId"], f["content"]) for f in results] == [("c1-result", '{"t": 21}')]
    assert read(frames).pending == []


def test_g7_a_failed_tool_says_so() -> None:
    failed = ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "boom", is_error=True))
    said = read(told(*message(call(0, "c1")), failed)).messages[-1]
    assert (said["content"], said["metadata"]) == ("boom", {"rxdelta": {"is_error": True}})


def test_g7_progress_of_a_tool_is_custom() -> None:
    news = [
        ev.ToolUpdate("c1", "identified"),
        ev.ToolUpdate("c1", "executing", "Reading"),
        ev.ToolUpdate("nobody", "executing"),
    ]
    frames = told(*message(call(0, "c1")), *news)
    assert [(f["name"], f["value"]) for f in frames if f["type"] == "CUSTOM"] == [
        (
            "rxdelta.tool-update",
            {"call_id": "c1", "execution_status": "executing", "display_text": "Reading"},
        )
    ]


def test_g11_calls_for_the_client_are_named_and_others_are_not_left_to_it() -> None:
    blocks = [call(0, "c1"), call(1, "c2", "{"), call(2, "c3", "{}", kind="server_tool_call_chunk")]
    client = read(told(*message(*blocks)))
    assert client.pending == ["c1"]
    assert client.messages[1]["content"].startswith("This call could not be read: ")
    assert client.messages[2]["content"] == ""


def test_what_the_providers_own_tool_gave_is_its_calls_result() -> None:
    output = {"type": "server_tool_result", "tool_call_id": "s1", "output": [1], "provider_type": "x"}
    own = [ev.BlockStart(1, output), ev.BlockFinish(1)]
    client = read(told(*message(call(0, "s1", "{}", kind="server_tool_call_chunk"), own)))
    assert client.messages[1]["content"] == "[1]"
    assert client.pending == []


# A call's second life.

RAN = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))


@each_version
def test_a_call_that_a_tool_has_run_is_not_left_to_the_client_when_it_begins_again(
    version: str | None,
) -> None:
    first, again = call(0, "c1", '{"a": 1}'), call(0, "c1", '{"a": 1}')
    frames = told(*message([*first, RAN], again), version=version)
    assert types(frames).count("TOOL_CALL_END") == types(frames).count("TOOL_CALL_RESULT") == 1
    assert read(frames).pending == []


@each_version
@pytest.mark.parametrize("ran", [True, False])
def test_a_call_that_ends_again_with_other_arguments_is_corrected_and_not_sent_again(
    ran: bool, version: str | None
) -> None:
    again = call(0, "c1", '{"a": 2}')
    overruled = [ev.BlockFinish(0, {"type": "tool_call", "args": {"a": 2}})]
    for second in (again, overruled):
        first = [*call(0, "c1", '{"a": 1}'), *([RAN] if ran else [])]
        frames = told(*message(first, second), messages=ASKED, version=version)
        assert types(frames).count("TOOL_CALL_END") == 1
        client = read(frames, ASKED)
        assert shown(client.messages)["calls"] == [("f", {"a": 2})]
        assert client.pending == ([] if ran else ["c1"])
        marks = client.messages[1]["toolCalls"][0].get("metadata")
        assert marks == ({"rxdelta": {"metadata": {"arguments_changed_after_run": True}}} if ran else None)


@each_version
def test_a_call_that_ends_once_more_behind_another_block_is_not_left_to_the_client(
    version: str | None,
) -> None:
    between = text(0, "x")[:-1]
    frames = told(*message([*call(0, "c1", "{}"), RAN], between, call(0, "c1", "{}")), version=version)
    client = read(frames)
    assert shown(client.messages)["calls"] == [("f", {})]
    assert client.pending == []


def test_another_call_in_the_same_place_is_left_to_the_client() -> None:
    client = read(told(*message(call(0, "c1", "{}"), call(0, "c2", "{}"))))
    assert client.pending == ["c2"]


def test_a_call_that_begins_again_before_its_end_ends_once() -> None:
    frames = told(*message(call(0, "c1", '{"a": 1')[:-1], call(0, "c1", '{"a": 2}')), messages=ASKED)
    assert types(frames).count("TOOL_CALL_END") == 1
    assert shown(read(frames, ASKED).messages)["calls"] == [("f", {"a": 2})]


def test_a_tool_that_runs_while_the_next_message_begins_gives_its_result_to_the_call() -> None:
    executing = ev.ToolUpdate("c1", "executing")
    frames = told(*message(call(0, "c1")), executing, *message(text(0, "Hi"), id="m2"), RAN)
    client = read(frames)
    assert [one["role"] for one in client.messages] == ["assistant", "tool", "assistant"]
    assert client.pending == []


def test_a_result_goes_to_the_newest_call_with_its_id() -> None:
    frames = told(*message(call(0, "c1")), *message(call(0, "c1"), id="m2"), RAN)
    assert [f["toolCallId"] for f in frames if f["type"] == "TOOL_CALL_RESULT"] == ["c1-2"]


# What a call's arguments become.


def test_news_of_a_call_wait_until_the_client_knows_the_call() -> None:
    begun = [
        ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1"}),
        ev.ToolUpdate("c1", "executing", "Reading"),
    ]
    frames = told(*message([*begun, ev.BlockDelta(0, {"name": "f"}), ev.BlockFinish(0)]))
    assert types(frames)[1:4] == ["TOOL_CALL_START", "CUSTOM", "TOOL_CALL_ARGS"]


def test_an_object_in_place_of_arguments_that_grew_is_believed() -> None:
    events = [*call(0, "c1", '{"a"')[:-1], ev.BlockDelta(0, {"args": {"a": 2}}), ev.BlockFinish(0)]
    assert shown(read(told(*message(events), messages=ASKED), ASKED).messages)["calls"] == [("f", {"a": 2})]


def test_a_character_in_two_halves_is_one_while_the_call_has_no_name() -> None:
    begun = [ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1"}), ev.ToolCallDelta(0, '{"a": "\ud83d')]
    events = [*begun, ev.BlockDelta(0, {"name": "f"}), ev.ToolCallDelta(0, '\ude00"}'), ev.BlockFinish(0)]
    frames = told(*message(events))
    assert "".join(f["delta"] for f in frames if f["type"] == "TOOL_CALL_ARGS") == '{"a": "😀"}'


def test_what_waits_for_a_call_is_sent_in_one_piece_and_goes_on_where_it_was() -> None:
    begun = [ev.BlockStart(0, {"type": "text"}), *call(1, "c1")[:-1]]
    meanwhile = [ev.TextDelta(0, "a"), ev.TextDelta(0, "b\ud83d")]
    events = [*begun, *meanwhile, ev.BlockFinish(1), ev.TextDelta(0, "\ude00"), ev.BlockFinish(0)]
    frames = told(*message(events), serialize_tool_calls=True)
    assert [f["delta"] for f in frames if f["type"] == "TEXT_MESSAGE_CONTENT"] == ["ab", "😀"]
