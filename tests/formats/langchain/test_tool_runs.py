"""The channel `tools`, written and read back."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.frames import CALL, Rules, read, sent

import rxdelta as rd
from rxdelta import events as ev

RUN = [
    ev.MessageStart("m"),
    ev.BlockStart(0, CALL),
    ev.ToolCallDelta(0, '{"at": "sea"}'),
    ev.BlockFinish(0),
    ev.MessageFinish("tool_use"),
]


def tools(*updates: rd.Event) -> list[dict[str, Any]]:
    frames = sent(*RUN, *updates)
    Rules().check(frames)
    return [frame["params"]["data"] for frame in frames if frame["method"] == "tools"]


def test_a_tool_that_runs() -> None:
    updates = [
        ev.ToolUpdate("c1", "identified"),
        ev.ToolUpdate("c1", "executing"),
        ev.ToolUpdate("c1", "executing", None, rd.ToolResult("c1", "so")),
        ev.ToolUpdate("c1", "executing", None, rd.ToolResult("c1", "so far")),
        ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", {"n": 1})),
    ]
    of_it = {"tool_call_id": "c1"}
    assert tools(*updates) == [
        {"event": "tool-started", **of_it, "tool_name": "look", "input": {"at": "sea"}},
        {"event": "tool-output-delta", **of_it, "delta": "so"},
        {"event": "tool-output-delta", **of_it, "delta": " far"},
        {"event": "tool-finished", **of_it, "output": {"n": 1}},
    ]
    assert [event for event in read(sent(*RUN, *updates)) if isinstance(event, ev.ToolUpdate)] == updates


def test_a_tool_that_fails() -> None:
    update = ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", "no sea", is_error=True))
    started, error = tools(update)
    assert started["synthetic"] is True
    assert error == {"event": "tool-error", "tool_call_id": "c1", "message": "no sea"}
    assert read(sent(*RUN, update))[-1] == update


@pytest.mark.parametrize(
    "update",
    [
        ev.ToolUpdate("c1", None, "Looking"),
        ev.ToolUpdate("c1", "identified", "Looking"),
        ev.ToolUpdate("c1", "executing", "Looking", rd.ToolResult("c1", "so")),
        ev.ToolUpdate("c1", "completed"),
        ev.ToolUpdate("c1", "completed", "Looked", rd.ToolResult("c1", "sea", duration=0.5)),
        ev.ToolUpdate("c1", "completed", None, rd.ToolResult(None, "sea")),
        ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea", is_error=True)),
        ev.ToolUpdate("c1", "failed"),
        ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", ["no", 1], is_error=True)),
        ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", "no")),
        ev.ToolUpdate("nobody", "completed", None, rd.ToolResult("nobody", "sea")),
    ],
)
def test_news_of_a_tool_survive(update: ev.ToolUpdate) -> None:
    assert update in read(sent(*RUN, update))
    begun = ev.ToolUpdate("c1", "executing")
    assert update in read(sent(*RUN, begun, update))


def test_results_that_do_not_continue_each_other_are_told_whole_to_ours() -> None:
    updates = [
        ev.ToolUpdate("c1", "executing"),
        *(
            ev.ToolUpdate("c1", "executing", None, rd.ToolResult("c1", one))
            for one in ("a", "b", "bc", {"n": 1})
        ),
    ]
    assert [event for event in read(sent(*RUN, *updates)) if isinstance(event, ev.ToolUpdate)] == updates


def test_a_tool_that_nobody_hears_of_any_more_is_ended_for_others() -> None:
    _, error = tools(ev.ToolUpdate("c1", "executing"))
    assert (error["event"], error["synthetic"]) == ("tool-error", True)
    assert read(sent(*RUN, ev.ToolUpdate("c1", "executing")))[-1] == ev.ToolUpdate("c1", "executing")


def test_a_failed_attempt_leaves_the_tools_of_the_message_before_it_running() -> None:
    next_attempt = [ev.MessageStart("n"), ev.BlockStart(0, {**CALL, "id": "c2"}), ev.AttemptReset(1)]
    done = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea"))
    found = tools(ev.ToolUpdate("c1", "executing"), *next_attempt, done)
    assert [one["event"] for one in found] == ["tool-started", "tool-finished"]


def test_a_tool_of_a_message_that_is_taken_back_is_ended_with_it() -> None:
    assert tools(ev.ToolUpdate("c1", "executing"), ev.AttemptReset(1, choice=0))[-1]["event"] == "tool-error"
