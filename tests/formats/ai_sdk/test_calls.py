"""Tool calls in the UI message stream: input, output, and what the provider runs itself."""

from __future__ import annotations

from typing import Any

from support.ai_sdk import (
    CALL,
    OUTPUT,
    SERVER,
    START,
    STOP,
    frames_of,
    of_type,
    read,
    told,
    types,
    whole,
)

import rxdelta as rd

ev = rd.events


def test_u3_a_call_streams_its_input_and_is_then_whole() -> None:
    assert told(*CALL) == [
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "look"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"at": '},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '"sea"}'},
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "look", "input": {"at": "sea"}},
    ]


def test_u3_a_call_waits_for_its_id_and_name() -> None:
    frames = told(
        ev.BlockStart(1, {"type": "tool_call"}),
        ev.ToolCallDelta(1, "{"),
        ev.BlockDelta(1, {"id": "c1"}),
        ev.BlockDelta(1, {"name": "look"}),
        ev.ToolCallDelta(1, "}"),
    )
    assert types(frames) == [
        "tool-input-start",
        "tool-input-delta",
        "tool-input-delta",
        "tool-input-available",
    ]


def test_u3_an_id_that_was_there_before_is_told_apart() -> None:
    result = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea"))
    frames = frames_of([START, *CALL, result, STOP, ev.MessageStart("m2"), *CALL, result, STOP])
    calls = [part for part in read(frames).parts if "toolCallId" in part]
    assert [(call["state"], call["output"]) for call in calls] == [("output-available", "sea")] * 2
    assert len({call["toolCallId"] for call in calls}) == 2


def test_u3_news_of_a_call_wait_for_its_input() -> None:
    frames = told(*CALL[:2], ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", 1)), *CALL[2:])
    assert types(frames)[-2:] == ["tool-input-available", "tool-output-available"]


def test_u3_news_of_a_call_that_nobody_knows_are_not_told() -> None:
    assert told(ev.ToolUpdate("nobody", "completed", "x", rd.ToolResult("nobody", 1))) == []


def test_u5_a_call_that_cannot_be_read_is_an_error_with_its_text() -> None:
    frame = told(CALL[0], ev.ToolCallDelta(1, '{"at": '), ev.BlockFinish(1))[-1]
    assert (frame["type"], frame["input"]) == ("tool-input-error", '{"at": ')
    assert frame["errorText"]


def test_u5_a_call_cut_by_the_token_limit_is_never_whole() -> None:
    frames = frames_of([START, *CALL[:3], ev.MessageFinish("length")])
    assert of_type("tool-input-available", frames) == []
    assert "token limit" in of_type("tool-input-error", frames)[0]["errorText"]
    assert frames[-2]["finishReason"] == "length"


def test_u6_what_a_tool_has_so_far_is_preliminary() -> None:
    def update(status: str | None, content: Any = None, **more: Any) -> Any:
        result = None if content is None else rd.ToolResult("c1", content, **more)
        return ev.ToolUpdate("c1", status, None, result)

    frames = told(
        *CALL, update("executing", 1), update(None, 2), update("completed", 3), update("completed", 4)
    )
    assert [(frame["output"], frame.get("preliminary")) for frame in frames[4:]] == [
        (1, True),
        (2, True),
        (3, None),
    ]
    assert told(*CALL, update("failed", {"no": 1}, is_error=True))[-1]["errorText"] == '{"no": 1}'
    assert told(*CALL, update("failed"))[-1]["errorText"] == "The tool failed."
    assert told(*CALL, update("completed"))[-1] == {
        "type": "tool-output-available",
        "toolCallId": "c1",
        "output": None,
    }


def test_u6_a_line_for_people_is_the_title_and_then_data_under_the_calls_id() -> None:
    reading, read_it = (ev.ToolUpdate("c1", display_text=text) for text in ("Reading", "Read"))
    frames = told(*CALL[:1], reading, *CALL[1:], read_it, read_it)
    assert of_type("tool-input-available", frames)[0]["title"] == "Reading"
    assert of_type("data-tool-update", frames) == [
        {"type": "data-tool-update", "id": "c1", "data": {"toolCallId": "c1", "displayText": text}}
        for text in ("Reading", "Read")
    ]


def test_u6_results_come_behind_the_message_too() -> None:
    frames = frames_of([START, *CALL, STOP, ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", 1))])
    assert types(frames)[-4:] == ["finish-step", "tool-output-available", "finish", "DONE"]


def test_what_the_provider_ran_itself_is_executed_there() -> None:
    frames = told(*whole(SERVER, 1), *whole(OUTPUT, 2))
    available, output = of_type("tool-input-available", frames)[0], frames[-1]
    assert available["providerExecuted"] is output["providerExecuted"] is True
    assert output["output"] == [1]
    failed = told(*whole(SERVER, 1), *whole({**OUTPUT, "output": {"code": 1}, "status": "error"}, 2))[-1]
    assert (failed["type"], failed["errorText"]) == ("tool-output-error", '{"code": 1}')


def test_a_call_of_the_providers_that_was_cut_off_is_an_error_too() -> None:
    start = ev.BlockStart(1, {"type": "server_tool_call", "id": "s1", "name": "web"})
    frames = frames_of([START, start, ev.ToolCallDelta(1, '{"q')], ValueError())
    assert of_type("tool-input-error", frames)[0]["providerExecuted"] is True


def test_an_output_that_comes_before_its_calls_end_waits() -> None:
    frames = told(ev.BlockStart(1, SERVER), *whole(OUTPUT, 2), ev.BlockFinish(1))
    assert types(frames)[-2:] == ["tool-input-available", "tool-output-available"]


def test_an_input_that_the_finish_changes_is_what_counts() -> None:
    frames = told(*CALL[:2], ev.BlockFinish(1, {"type": "tool_call", "args": {"at": "land"}}))
    assert frames[-1]["input"] == {"at": "land"}
