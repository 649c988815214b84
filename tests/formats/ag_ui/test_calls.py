"""Tool calls to an AG-UI client: arguments, results, and which calls are left to the client."""

from __future__ import annotations

import pytest
from support.ag_ui import ASKED, call, message, read, shown, text, told, types

import rxdelta as rd

ev = rd.events
each_version = pytest.mark.parametrize("version", ["1.0", None])


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


def test_a_call_that_begins_again_before_its_end_ends_once() -> None:
    frames = told(*message(call(0, "c1", '{"a": 1')[:-1], call(0, "c1", '{"a": 2}')), messages=ASKED)
    assert types(frames).count("TOOL_CALL_END") == 1
    assert shown(read(frames, ASKED).messages)["calls"] == [("f", {"a": 2})]


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
