"""Tool calls in the UI message stream: input, output, and what the provider runs itself."""

from __future__ import annotations

from typing import Any

import pytest
from support.ai_sdk import (
    CALL,
    OUTPUT,
    SERVER,
    START,
    STOP,
    TEXT,
    frames_of,
    of_type,
    read,
    told,
    types,
    whole,
)
from support.clients import ask

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


def test_sdk_5_gets_a_display_text_beside_the_call_and_nothing_that_it_refuses() -> None:
    start, *rest = CALL
    named = [ev.BlockStart(1, {"type": "tool_call", "id": "c1"}), ev.ToolUpdate("c1", None, "Looking")]
    for events in ([start, named[1], *rest], [*named, ev.BlockDelta(1, {"name": "look"}), *rest]):
        frames = told(*events, *whole(SERVER, 2), *whole(OUTPUT, 3), sdk_version=5)
        assert of_type("data-tool-update", frames) == [
            {"type": "data-tool-update", "id": "c1", "data": {"toolCallId": "c1", "displayText": "Looking"}}
        ]
    assert frames_of([START, ev.MessageInterrupted("by the user")], sdk_version=5)[-2] == {"type": "abort"}


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


NAMED = {"type": "tool_call", "name": "look", "args": {"at": "land"}}
SAID = [ev.BlockStart(1, {"type": "text", "text": "Hi"}), ev.BlockFinish(1)]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(CALL, id="at once"),
        pytest.param([*SAID, *CALL], id="with a text in between"),
        pytest.param([ev.BlockStart(1, {**NAMED, "id": "c1"}), ev.BlockFinish(1)], id="with other arguments"),
        pytest.param(
            [ev.BlockStart(1, NAMED), ev.BlockDelta(1, {"id": "c1"}), ev.BlockFinish(1)], id="with a late id"
        ),
        pytest.param(
            [ev.BlockStart(1, NAMED), ev.BlockFinish(1, {**NAMED, "id": "c1"})], id="with a last id"
        ),
        pytest.param(CALL[:2], id="cut off"),
    ],
)
@pytest.mark.parametrize("version", [5, 7])
def test_a_call_that_begins_again_is_available_once_and_gets_its_result(
    again: list[Any], version: int
) -> None:
    result = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea"))
    frames = told(*CALL, *again, ev.BlockStart(2, {"type": "text"}), result, sdk_version=version)
    calls = [frame for frame in frames if "toolCallId" in frame]
    assert {call["toolCallId"] for call in calls} == {"c1"}
    assert [call["input"] for call in of_type("tool-input-available", calls)] == [{"at": "sea"}]
    assert [call["output"] for call in of_type("tool-output-available", calls)] == ["sea"]


def test_a_call_that_takes_the_id_of_one_that_has_ended_while_it_is_open_is_an_error() -> None:
    other = [ev.BlockStart(1, {**NAMED, "id": "c2"}), ev.BlockDelta(1, {"id": "c1"}), ev.BlockFinish(1)]
    frames = told(*CALL, *other)
    assert [frame["toolCallId"] for frame in of_type("tool-input-available", frames)] == ["c1"]
    assert [frame["toolCallId"] for frame in of_type("tool-input-error", frames)] == ["c2"]


def test_a_call_that_begins_again_and_is_cut_off_is_not_shown_again() -> None:
    frames = frames_of([START, *CALL, *CALL[:2]], ValueError())
    read(frames)
    assert of_type("tool-input-error", frames) == []


def test_a_call_whose_block_is_another_now_stays_where_the_client_runs_it() -> None:
    frames = told(*CALL, *SAID, *TEXT[:2], ev.BlockFinish(0, {"type": "text", "text": "Bye"}))
    assert "reset-step" not in types(frames)


def test_the_result_of_another_call_in_the_place_of_the_first_is_its_own() -> None:
    def result(call_id: str) -> ev.ToolUpdate:
        return ev.ToolUpdate(call_id, "completed", None, rd.ToolResult(call_id, f"of {call_id}"))

    other = [ev.BlockStart(1, {**NAMED, "id": "c2"}), ev.BlockFinish(1), result("c2")]
    same = [ev.BlockStart(2, {**NAMED, "id": "c1"}), ev.BlockFinish(2), result("c1")]
    outputs = of_type("tool-output-available", told(*CALL, *other, *same))
    assert [frame["output"] for frame in outputs] == ["of c2", "of c1"]


def test_another_call_in_the_place_of_one_that_has_ended_is_available_too() -> None:
    frames = told(*CALL, ev.BlockStart(1, {**NAMED, "id": "c2"}), ev.BlockFinish(1))
    assert [frame["toolCallId"] for frame in of_type("tool-input-available", frames)] == ["c1", "c2"]


def test_a_call_whose_block_begins_again_as_a_text_has_failed() -> None:
    frames = told(*CALL[:2], *SAID)
    assert types(frames) == [
        "tool-input-start",
        "tool-input-delta",
        "tool-input-error",
        "text-start",
        "text-delta",
        "text-end",
    ]
    assert frames[2]["toolName"] == "look"


@pytest.mark.parametrize("content", [{**NAMED, "id": "c1"}, {**NAMED, "id": "c2"}])
def test_a_second_end_makes_no_call_available(content: Any) -> None:
    frames = told(*CALL, ev.BlockFinish(1, content), *TEXT, ev.BlockFinish(0, content))
    assert [frame["input"] for frame in of_type("tool-input-available", frames)] == [{"at": "sea"}]


@pytest.mark.parametrize("between", [[ev.MessageStart("m2")], [ev.MessageStart("m2"), ev.AttemptReset(1)]])
def test_a_tool_that_runs_reports_its_result_in_the_next_message_too(between: list[Any]) -> None:
    runs = ev.ToolUpdate("c1", "executing")
    result = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", 1))
    frames = frames_of([START, *CALL, runs, STOP, *between, result, STOP])
    assert [frame["output"] for frame in of_type("tool-output-available", frames)] == [1]


def test_a_call_gets_its_result_in_the_next_message_even_if_nothing_was_known_of_its_tool() -> None:
    result = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", 1))
    frames = frames_of([START, *CALL, STOP, ev.MessageStart("m2"), result, STOP])
    (output,) = of_type("tool-output-available", frames)
    assert (output["toolCallId"], output["output"]) == ("c1", 1)


TAKEN_BACK = ev.BlockFinish(1, {"type": "invalid_tool_call", "error": "too late", "late_arguments": "}"})


def test_a_call_that_is_taken_back_is_an_error_in_place_of_its_input() -> None:
    frames = told(*CALL, TAKEN_BACK, TAKEN_BACK)
    assert types(frames)[-2:] == ["tool-input-available", "tool-input-error"]
    assert frames[-1]["errorText"] == "too late"
    decoder, fold = rd.providers.decoder("ai-sdk"), rd.Fold()
    for frame in frames_of([START, *CALL, TAKEN_BACK, STOP]):
        for event in decoder.decode(frame):
            fold.step(event)
    (call,) = fold.snapshot.to_message().invalid_tool_calls
    assert (call.call_id, call.error, call.metadata["late_arguments"]) == ("c1", "too late", "}")


@pytest.mark.parametrize("event", [ev.BlockStart, ev.BlockFinish])
@pytest.mark.parametrize("kind", ["text", "image", "server_tool_result"])
@pytest.mark.parametrize(
    ("call", "state"), [(whole(SERVER, 1), "output-available"), (CALL, "input-available")]
)
def test_a_call_whose_place_another_block_takes_stays_and_has_run_if_the_provider_runs_it(
    call: list[Any], state: str, event: Any, kind: str
) -> None:
    frames = frames_of([START, *call, event(1, {"type": kind}), STOP])
    shown = [part for part in read(frames).parts if part["type"] != "step-start"]
    assert shown[0]["state"] == state


def test_a_text_that_ends_again_as_a_call_is_not_sent_again_with_its_step() -> None:
    again = ev.BlockFinish(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {}})
    changed = [
        ev.BlockStart(1, {"type": "text", "text": "Yes"}),
        ev.BlockFinish(1, {"type": "text", "text": "No"}),
    ]
    client = read(frames_of([START, *TEXT, again, *changed, STOP]))
    assert [part.get("text") for part in client.parts] == [None, "No"]


def test_a_call_that_has_run_is_not_taken_back_from_the_client() -> None:
    result = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea"))
    for news in ([ev.ToolUpdate("c1", "executing"), TAKEN_BACK, result], [result, TAKEN_BACK]):
        assert types(told(*CALL, *news))[-2:] == ["tool-input-available", "tool-output-available"]


# Calls of the provider's tools that end without an output.

SEARCH = {**SERVER, "status": "completed"}
NOTHING = {"type": "tool-output-available", "toolCallId": "s1", "output": None, "providerExecuted": True}


@pytest.mark.parametrize(
    "content", [{"type": "image", "url": "https://a/b"}, {"type": "text", "text": "So."}]
)
def test_a_search_whose_block_ends_again_as_another_one_has_ended_without_a_result(content: Any) -> None:
    frames = frames_of([START, *whole(SERVER, 1), ev.BlockFinish(1, content), STOP])
    assert of_type("tool-output-available", frames) == [NOTHING]


def test_a_search_without_a_result_has_ended_when_the_model_goes_on() -> None:
    frames = told(*whole(SEARCH, 0), *TEXT_BEHIND)
    assert types(frames)[:4] == [
        "tool-input-start",
        "tool-input-available",
        "tool-output-available",
        "text-start",
    ]
    assert of_type("tool-output-available", frames) == [NOTHING]


TEXT_BEHIND = [ev.BlockStart(5, {"type": "text", "text": "So."}), ev.BlockFinish(5)]


@pytest.mark.parametrize(
    ("call", "reason", "ended"),
    [
        (SEARCH, "stop", True),
        (SEARCH, "tool_use", True),
        (SEARCH, "pause", True),
        (SERVER, "stop", True),
        (SERVER, "length", True),
        (SERVER, "tool_use", False),  # its output comes with the next message
        (SERVER, "pause", False),
    ],
)
def test_a_call_without_a_result_ends_with_its_message_unless_the_provider_goes_on(
    call: Any, reason: str, ended: bool
) -> None:
    asked = CALL if reason == "tool_use" else []
    events = [START, *whole(call, 0), *asked, ev.MessageFinish(reason)]
    assert of_type("tool-output-available", frames_of(events)) == [NOTHING] * ended
    if not ended:
        late = frames_of([*events, ev.MessageStart("m2"), *whole(OUTPUT, 0), STOP])
        assert [frame["output"] for frame in of_type("tool-output-available", late)] == [[1]]
        never = frames_of([*events, ev.MessageStart("m2"), *TEXT, STOP])
        assert of_type("tool-output-available", never) == [NOTHING]


def test_a_result_is_told_and_nothing_in_its_place() -> None:
    frames = told(*whole(SEARCH, 0), *whole(OUTPUT, 1), *TEXT_BEHIND)
    assert [frame["output"] for frame in of_type("tool-output-available", frames)] == [[1]]
    late = told(*whole(SEARCH, 0), *TEXT_BEHIND, *whole(OUTPUT, 1))
    assert of_type("tool-output-available", late) == [NOTHING]
    waits = told(*whole(SEARCH, 0), ev.ToolUpdate("s1", "awaiting_approval"), *TEXT_BEHIND)
    assert of_type("tool-output-available", waits) == []


def test_an_attempt_that_failed_leaves_no_call_to_end() -> None:
    frames = frames_of([START, *whole(SEARCH, 0), ev.AttemptReset(1), *TEXT, STOP])
    read(frames)
    assert of_type("tool-output-available", frames) == []


@pytest.mark.parametrize("version", [5, 7])
def test_what_says_only_that_the_tool_has_run_is_no_result(version: int) -> None:
    frames = frames_of([START, *whole(SEARCH, 0), *TEXT_BEHIND, STOP], sdk_version=version)
    decoder, fold = rd.providers.decoder("ai-sdk"), rd.Fold()
    for frame in frames:
        for event in decoder.decode(frame):
            fold.step(event)
    assert [block.type for block in fold.snapshot.blocks] == ["server_tool_call", "text"]
    part = {"type": "tool-web", "toolCallId": "s1", "providerExecuted": True, "state": "output-available"}
    parts = [{**part, "input": {}, "output": None}, {"type": "text", "text": "So."}]
    (message,) = rd.from_ai_sdk([{"id": "a", "role": "assistant", "parts": parts}])
    assert [block.type for block in message.blocks] == ["server_tool_call", "text"]


def test_a_call_without_a_result_moves_no_other_result() -> None:
    outer, inner = ({**SERVER, "id": name} for name in ("outer", "inner"))
    results = [{**OUTPUT, "tool_call_id": name} for name in ("inner", "outer")]
    blocks = [SEARCH, outer, inner, *results]
    events = [event for number, block in enumerate(blocks) for event in whole(block, number)]
    (answer,) = ask(
        "ai_sdk.mjs", [{"body": b"".join(map(rd.wire.sse_frame, frames_of([START, *events, STOP]))).decode()}]
    )
    (message,) = rd.from_ai_sdk([answer["message"]])
    found = [
        block if isinstance(block, rd.ToolCall) else block.options["tool_call_id"] for block in message.blocks
    ]
    assert [getattr(one, "call_id", one) for one in found] == ["s1", "outer", "inner", "inner", "outer"]
