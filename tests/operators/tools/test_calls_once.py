"""A call runs once, whoever says it again: a gateway, a replay, a request that continues the reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from support.security_page import says

import rxdelta as rd

ev = rd.events

Said: TypeAlias = tuple[str, str, dict[str, Any]]
"""A call: its id, its name, its arguments."""

PAY: Said = ("c", "pay", {"eur": 9})
MORE: Said = ("c", "pay", {"eur": 900})
SEE: Said = ("c", "see", {"eur": 9})
OTHER: Said = ("d", "pay", {"eur": 9})


def chat(calls: list[Said]) -> rx.Observable[rd.Event]:
    """One id at several indexes."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {"id": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    entries = [
        {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for index, (call_id, name, args) in enumerate(calls)
    ]
    chunks = [*(chunk({"tool_calls": [entry]}) for entry in entries), chunk({}, "tool_calls")]
    return rx.from_iterable(chunks).pipe(rd.decode("openai-chat"))


def anthropic(calls: list[Said]) -> rx.Observable[rd.Event]:
    """One id at several indexes."""
    chunks: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {}}}
    ]
    for index, (call_id, name, args) in enumerate(calls):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(args)}
        chunks += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    return rx.from_iterable([*chunks, *end]).pipe(rd.decode("anthropic-messages"))


def responses(calls: list[Said]) -> rx.Observable[rd.Event]:
    """One id in several items."""
    chunks: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    items: list[dict[str, Any]] = []
    for place, (call_id, name, args) in enumerate(calls):
        item = {
            "type": "function_call",
            "id": f"i{place}",
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(args),
        }
        items.append(item)
        chunks.append(
            {"type": "response.output_item.added", "output_index": place, "item": {**item, "arguments": ""}}
        )
        chunks.append({"type": "response.output_item.done", "output_index": place, "item": item})
    response = {"id": "r", "status": "completed", "output": items}
    return rx.from_iterable([*chunks, {"type": "response.completed", "response": response}]).pipe(
        rd.decode("openai-responses")
    )


def gemini(calls: list[Said]) -> rx.Observable[rd.Event]:
    """One id in several parts."""
    parts = [{"functionCall": {"id": call_id, "name": name, "args": args}} for call_id, name, args in calls]
    body = {
        "responseId": "m",
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}],
    }
    return rx.of(body).pipe(rd.decode("gemini"))


def events(calls: list[Said]) -> list[rd.Event]:
    found: list[rd.Event] = [ev.MessageStart("m")]
    for index, (call_id, name, args) in enumerate(calls):
        found += [ev.BlockStart(index, {"type": "tool_call", "id": call_id, "name": name, "args": args})]
        found += [ev.BlockFinish(index)]
    return [*found, ev.MessageFinish("tool_use")]


def own_events(calls: list[Said]) -> rx.Observable[rd.Event]:
    """One id in several blocks of a stream that no decoder has made."""
    return rx.from_iterable(events(calls))


def stored(calls: list[Said]) -> rx.Observable[rd.Event]:
    """A reply that was stored as it came."""
    return rx.from_iterable(rd.to_events(own_events(calls).pipe(rd.scan_deltas()).run()))


def continued(calls: list[Said]) -> rx.Observable[rd.Event]:
    """A reply that breaks off behind each call, and a provider that says them all again."""
    requests = iter(range(1, len(calls) + 2))

    def request() -> rx.Observable[rd.Event]:
        count = next(requests)
        if count > len(calls):
            return rx.from_iterable(events(calls))
        return rx.concat(rx.from_iterable(events(calls[:count])[:-1]), rx.throw(ConnectionError()))

    rules: dict[str, Any] = {
        "attempts": len(calls) + 1,
        "backoff": lambda *_: 0.0,
        "retry_if": lambda _: True,
    }
    return rd.retry_stream(lambda _: request(), resume=True, **rules)


def ai_sdk(calls: list[Said]) -> rx.Observable[rd.Event]:
    """A server that sends the frames from the beginning when a page comes back."""
    frames: list[dict[str, Any]] = [{"type": "start", "messageId": "m"}, {"type": "start-step"}]
    for call_id, name, args in calls:
        frames.append(
            {"type": "tool-input-available", "toolCallId": call_id, "toolName": name, "input": args}
        )
    return rx.from_iterable([*frames, *frames, {"type": "finish-step"}, *frames, {"type": "finish"}]).pipe(
        rd.decode("ai-sdk")
    )


def ag_ui(calls: list[Said]) -> rx.Observable[rd.Event]:
    """A server that sends its events from the beginning when a page comes back."""
    told: list[dict[str, Any]] = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}]
    for call_id, name, args in calls:
        told.append(
            {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name, "parentMessageId": "m"}
        )
        told.append({"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": json.dumps(args)})
        told.append({"type": "TOOL_CALL_END", "toolCallId": call_id})
    end = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    return rx.from_iterable([*told, *told[1:], end]).pipe(rd.decode("ag-ui"))


Way: TypeAlias = Callable[[list[Said]], rx.Observable[rd.Event]]
WAYS: list[Way] = [chat, anthropic, responses, gemini, own_events, stored, continued, ai_sdk, ag_ui]


def played(way: Way, calls: list[Said], **options: Any) -> tuple[list[tuple[str, Any]], list[rd.Event]]:
    """(what ran, the events behind `run_tools`)"""
    ran: list[tuple[str, Any]] = []

    def tool(name: str) -> Callable[..., str]:
        return lambda **args: ran.append((name, args)) or "done"  # type: ignore[func-returns-value]

    tools = {"pay": tool("pay"), "see": tool("see")}
    return ran, way(calls).pipe(rd.run_tools(tools, **options), ops.to_list()).run()


def ids(told: list[rd.Event]) -> list[str]:
    """The ids of the calls, in the order in which their blocks begin."""
    starts = [event for event in told if isinstance(event, ev.BlockStart)]
    return [start.content["id"] for start in starts if start.content["type"].startswith("tool_call")]


@says("It runs no call that is cut off", "**Running what shouldn't run.**")
@pytest.mark.parametrize("start", ["ready", "message"])
@pytest.mark.parametrize("approve", [None, lambda _: True], ids=["", "approved"])
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_comes_again_runs_once_and_has_one_outcome(way: Way, approve: Any, start: Any) -> None:
    ran, told = played(way, [PAY, PAY, OTHER], approve=approve, start=start)
    assert ran == [("pay", {"eur": 9})] * 2
    assert ids(told) == ["c", "d"]
    done = [
        event.call_id
        for event in told
        if isinstance(event, ev.ToolUpdate) and event.execution_status == "completed"
    ]
    assert done == ["c", "d"]


@pytest.mark.parametrize("way", [way for way in WAYS if way not in (ai_sdk, ag_ui)])
def test_other_arguments_or_another_name_are_another_call(way: Way) -> None:
    ran, told = played(way, [PAY, MORE, SEE])
    assert sorted((name, args["eur"]) for name, args in ran) == [("pay", 9), ("pay", 900), ("see", 9)]
    assert sorted(ids(told)) == ["c", "c-2", "c-3"]


def test_a_call_that_is_called_otherwise_goes_back_so() -> None:
    told = played(chat, [PAY, MORE])[1]
    message = rx.from_iterable(told).pipe(rd.scan_deltas(), rd.to_message()).run()
    request = rd.to_request([message], "openai-chat")["messages"]
    assert [call["id"] for call in request[0]["tool_calls"]] == ["c", "c-2"]
    assert [answer["tool_call_id"] for answer in request[1:]] == ["c", "c-2"]


def test_a_front_end_gets_no_call_twice() -> None:
    frames: Any = own_events([PAY, PAY, MORE]).pipe(rd.to_ai_sdk(), ops.to_list()).run()
    inputs = [
        one["toolCallId"]
        for one in frames
        if one is not rd.wire.DONE and one["type"] == "tool-input-available"
    ]
    assert inputs == ["c", "c-2"]


def test_a_call_whose_id_comes_last_has_no_news_behind_the_outcome_of_that_id() -> None:
    whole = {"type": "tool_call", "id": "c", "name": "pay", "args": {"eur": 9}}
    late = [
        ev.BlockStart(1, {"type": "tool_call_chunk", "args": ""}),
        ev.ToolCallDelta(1, '{"eur": 9}'),
        ev.BlockFinish(1, whole),
    ]
    source = rx.of(ev.BlockStart(0, whole), ev.BlockFinish(0), *late, ev.MessageFinish("tool_use"))
    ran: list[int] = []
    tools = rd.run_tools({"pay": lambda eur: ran.append(eur)})
    told = source.pipe(tools, ops.filter(lambda event: isinstance(event, ev.ToolUpdate)), ops.to_list()).run()
    assert [update.execution_status for update in told] == ["identified", "executing", "completed"]


def test_a_resumed_reply_has_the_call_once() -> None:
    message = continued([PAY, OTHER]).pipe(rd.scan_deltas(), rd.to_message()).run()
    assert [call.call_id for call in message.tool_calls] == ["c", "d"]


CALLS = st.lists(
    st.tuples(
        st.sampled_from("cd"), st.sampled_from(["pay", "see"]), st.sampled_from([{}, {"eur": 1}, {"eur": 2}])
    ),
    min_size=1,
    max_size=5,
)


@given(CALLS, st.sampled_from(WAYS), st.sampled_from(["ready", "message"]))
def test_no_call_runs_twice_whoever_says_it_again(calls: list[Said], way: Way, start: Any) -> None:
    ran, told = played(way, calls, start=start)
    meant = {(call_id, name, str(args)) for call_id, name, args in calls}
    if way in (ai_sdk, ag_ui) and len({call_id for call_id, _, _ in meant}) < len(meant):
        return  # there a call's frames are known by the id alone: what is said of it later replaces it
    assert sorted((name, str(args)) for name, args in ran) == sorted((name, args) for _, name, args in meant)
    outcomes = [e.call_id for e in told if isinstance(e, ev.ToolUpdate) and e.execution_status == "completed"]
    assert len(outcomes) == len(set(outcomes)) == len(meant)
    assert sorted(ids(told)) == sorted(outcomes)
