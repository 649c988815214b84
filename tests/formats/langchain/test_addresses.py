"""To which run an item belongs, where its ids and its metadata say it in several ways."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.chunks import chunk, decoded

import rxdelta as rd


def at(node: str = "n:1", **more: Any) -> dict[str, Any]:
    return {"langgraph_checkpoint_ns": node, **more}


def texts(*items: Any) -> dict[str | None, str]:
    """The text of each run."""
    found: dict[str | None, str] = {}
    for event in decoded(*items):
        if isinstance(event, rd.events.MessageStart):
            assert event.run_id not in found, "a second message in one run"
            found[event.run_id] = ""
        elif isinstance(event, rd.events.TextDelta):
            found[event.run_id] += event.text
    return found


LAST = {"chunk_position": "last"}


def test_a_message_keeps_its_run_when_the_id_of_its_chunks_changes() -> None:
    metadata = at()
    for second in (metadata, dict(metadata)):
        stream = [chunk("a", id="msg_1"), chunk("b", id="lc_run--1"), chunk("c", id="lc_run--1", **LAST)]
        items = [(stream[0], metadata), (stream[1], second), (stream[2], second)]
        assert texts(*items) == {"n:1/msg_1": "abc"}


def test_a_message_that_repeats_what_streamed_is_left_out() -> None:
    whole = {"type": "ai", "content": "a", "id": "m"}
    streamed = [(chunk("a", id="m"), at()), (chunk("", id="m", **LAST), at())]
    assert texts(*streamed, (whole, at())) == {"n:1/m": "a"}
    assert texts((whole, at()), (whole, at())) == {"n:1/m": "a"}
    assert texts((whole, at()), ({**whole, "id": "m2"}, at())) == {"n:1/m": "a", "n:1/m2": "a"}


@pytest.mark.parametrize(
    "item",
    [
        (chunk("a", id="m"), {}),
        ("messages", (chunk("a", id="m"), {"tags": []})),
        {"event": "on_chat_model_stream", "data": {"chunk": chunk("a", id="m")}},
        {
            "type": "event",
            "method": "messages",
            "params": {"namespace": [], "data": [chunk("a", id="m"), {}]},
        },
    ],
    ids=["pair", "mode", "run", "event"],
)
def test_an_item_that_names_no_run_has_none(item: Any) -> None:
    assert texts(item) == {None: "a"}


def test_what_a_model_did_not_say_begins_no_message() -> None:
    human = {"type": "human", "content": "Hi", "id": "h"}
    (event,) = decoded((human, at()))
    assert event == rd.events.ProviderEvent("langchain", "human", human)
    asked = {"type": "tool", "content": "boom", "tool_call_id": "c", "status": "error"}
    assert decoded((asked, at())) == [
        rd.events.ToolUpdate("c", "failed", None, rd.ToolResult("c", "boom", is_error=True))
    ]


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (("updates", {"n": {"messages": []}}), "updates"),
        ((("sub:1",), {"n": 1}), "state"),
        ((("sub:1",), "values", None), "values"),
        ({"type": "values", "ns": [], "data": {"a": 1}, "interrupts": []}, "values"),
        ({"n": {"route": "b"}}, "message"),
    ],
)
def test_what_other_modes_say_passes_on(item: Any, name: str) -> None:
    (event,) = decoded(item, close=False)
    assert isinstance(event, rd.events.ProviderEvent)
    assert (event.name, event.run_id) == (name, None)


@pytest.mark.parametrize("item", [(1, 2), (), ("messages",), [chunk("a")], (chunk("a"), {}, 1), "text"])
def test_any_other_tuple_is_malformed(item: Any) -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match="langchain"):
        decoded(item)


TOOL = {"event": "tool-finished", "tool_call_id": "c", "output": "done"}


@pytest.mark.parametrize(
    "item", [("tools", TOOL), (("sub:1",), TOOL), {"type": "tools", "ns": ["sub:1"], "data": TOOL}]
)
def test_news_of_tools_concern_every_run(item: Any) -> None:
    assert decoded(item) == [rd.events.ToolUpdate("c", "completed", None, rd.ToolResult("c", "done"))]


def test_the_output_of_a_tool_may_be_a_message_or_a_command_with_one() -> None:
    class Command:
        update = {"messages": [{"type": "tool", "content": "moved", "tool_call_id": "c"}]}

    class Other:
        def __repr__(self) -> str:
            return "other"

    said = {"type": "tool", "content": "no", "tool_call_id": "c", "status": "error"}
    for output, status, content in (
        (said, "failed", "no"),
        (Command(), "completed", "moved"),
        (Other(), "completed", "other"),
        ({"message": "sent"}, "completed", {"message": "sent"}),
    ):
        (update,) = decoded(("tools", {**TOOL, "output": output}))
        assert isinstance(update, rd.events.ToolUpdate)
        assert update.result is not None
        assert (update.execution_status, rd.core.thaw(update.result.content)) == (status, content)


def test_the_runs_of_tools_end_their_calls() -> None:
    failed = {
        "event": "on_tool_error",
        "run_id": "t",
        "data": {"error": ValueError("no"), "tool_call_id": "c"},
    }
    result = rd.ToolResult("c", "no", is_error=True)
    assert decoded(failed) == [rd.events.ToolUpdate("c", "failed", None, result)]
    (other,) = decoded({"event": "on_tool_end", "run_id": "t", "data": {"output": {"message": "sent"}}})
    assert isinstance(other, rd.events.ProviderEvent)


def test_a_frame_of_the_agent_protocol_has_the_namespace_as_its_run() -> None:
    def frame(event: dict[str, Any], *namespace: str) -> dict[str, Any]:
        return {"type": "event", "method": "messages", "params": {"namespace": [*namespace], "data": event}}

    start, finish = {"event": "message-start", "id": "m"}, {"event": "message-finish", "reason": "stop"}
    events = decoded(frame(start, "a:1"), frame(start, "a:1", "b:2"), frame(finish, "a:1"), frame(start))
    assert events == [
        rd.events.MessageStart("m", run_id="a:1"),
        rd.events.MessageStart("m", run_id="a:1|b:2", parent_run_id="a:1"),
        rd.events.MessageFinish("stop", run_id="a:1"),
        rd.events.MessageStart("m"),
    ]
