"""What type checkers infer of values: calls in their states, statuses, reasons, names of formats. Never run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, assert_never, assert_type

from reactivex import Observable, operators as ops

import rxdelta as rd
from rxdelta.core import FrozenDict
from rxdelta.events import TextDelta

Ended = rd.types.CompleteToolCall | rd.types.InvalidToolCall


def look(call: rd.ToolCall) -> None: ...


def look_whole(call: rd.ToolCall[FrozenDict[Any]]) -> None: ...


def run(port: str) -> None: ...


def written(tools: Sequence[rd.ToolDefinition | Mapping[str, Any]]) -> dict[str, Any]:
    return {"tools": [tool.name for tool in tools if isinstance(tool, rd.ToolDefinition)]}


class HarbourDecoder(rd.providers.Decoder): ...


def imported_from_the_module_of_events(event: rd.Event) -> None:
    if isinstance(event, TextDelta):
        assert_type(event, rd.events.TextDelta)


# A call's arguments.


def calls_of_a_message(message: rd.Message) -> None:
    for call in message.tool_calls:
        assert_type(call, rd.types.CompleteToolCall)
        assert_type(dict(call.arguments), dict[str, Any])
        run(call.arguments["port"])
        run(**call.arguments)
        look(call)
        look_whole(call)
    for refused in message.invalid_tool_calls:
        assert_type(refused.arguments, str | FrozenDict[Any] | None)
        print(refused.arguments["port"])  # type: ignore[index]  # pyright: ignore[reportArgumentType, reportCallIssue, reportOptionalSubscript]


def violations(reply: rd.Snapshot | rd.Message) -> None:
    assert_type(reply.violations, FrozenDict[int])
    counts: Mapping[str, int] = reply.violations
    assert_type(counts.get("delta_before_start", 0), int)


def calls_of_a_snapshot(snapshot: rd.Snapshot) -> None:
    for call in snapshot.tool_calls:
        assert_type(call, rd.ToolCall)
        assert_type(call.arguments, str | FrozenDict[Any] | None)
        look_whole(call)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert_type(call.complete().arguments, FrozenDict[Any])
        assert_type(call.arguments_as_map(), Mapping[str, Any])
        if isinstance(call.arguments, Mapping):
            run(call.arguments["port"])


def completed(events: Observable[rd.Event]) -> None:
    assert_type(events.pipe(rd.completed_tool_calls()), Observable[Ended])
    assert_type(events.pipe(rd.completed_tool_calls(), ops.map(asked)), Observable[dict[str, Any] | None])
    events.pipe(rd.completed_tool_calls()).subscribe(look)
    takes_any: Callable[[rd.ToolCall], str | None] = name_of
    assert_type(events.pipe(rd.completed_tool_calls(), ops.map(takes_any)), Observable[str | None])


def name_of(call: rd.ToolCall) -> str | None:
    return call.name


def asked(call: Ended) -> dict[str, Any] | None:
    if call.type == "invalid_tool_call":
        assert_type(call, rd.types.InvalidToolCall)
        return None
    assert_type(call, rd.types.CompleteToolCall)
    return dict(call.arguments)


def matched(call: Ended) -> None:
    match call.type:
        case "tool_call":
            run(call.arguments["port"])
        case "invalid_tool_call":
            assert_type(call, rd.types.InvalidToolCall)
    print(call.arguments["port"])  # type: ignore[index]  # pyright: ignore[reportArgumentType, reportCallIssue, reportOptionalSubscript, reportUnknownArgumentType]


def made() -> None:
    look(rd.ToolCall(call_id="c1", name="f", arguments='{"a'))
    call: rd.ToolCall = rd.ToolCall(arguments={"a": 1}, type="server_tool_call")
    block: rd.core.Block = call
    if isinstance(block, rd.ToolCall):
        look(block)
    rd.ToolCall(type="call")  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    rd.ToolCall(arguments=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# The words.


def of_a_message(message: rd.Message) -> str:
    assert_type(message.status, rd.core.MessageStatus)
    assert_type(message.role, Literal["assistant", "user", "system", "tool"])
    if message.finish_reason == "tool_calls":  # type: ignore[comparison-overlap]
        return "no"
    match message.finish_reason:
        case None | "stop" | "length" | "tool_use" | "content_filter":
            return "over"
        case "pause":
            return "to be sent back"
        case _:
            assert_never(message.finish_reason)


def of_a_snapshot(snapshot: rd.Snapshot, call: rd.ToolCall) -> str:
    assert_type(snapshot.status, rd.core.SnapshotStatus)
    assert_type(snapshot.finish_reason, rd.core.FinishReason | None)
    status = call.execution_status()
    match status:
        case "identified" | "awaiting_approval" | "executing":
            return "…"
        case "completed" | "failed":
            return "done"
        case _:
            assert_never(status)


def wrong_words(snapshot: rd.Snapshot) -> None:
    rd.Message(role="developer")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.Message(status="incomplete")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.MessageDelta(status="done")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.MessageDelta(finish_reason="end_turn")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.events.ToolUpdate("c1", "complete")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snapshot.set_tool_execution_status("c1", "done")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def providers_own_words(name: str) -> None:
    rd.events.MessageFinish("end_turn")
    rd.events.MessageFinish("pause", "pause_turn")
    rd.decode("openai-chat")
    rd.decode(name)
    rd.decode("harbour")  # of another distribution
    rd.to_request([], name)
    rd.to_request([], name, tools={"size": len})
    rd.to_request([], name, tools={"now": rd.ToolDefinition("now")})
    rd.to_request([], name, tools=[len, rd.ToolDefinition("now"), {"type": "web_search"}])
    rd.to_request([], name, tools=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.providers.Format(
        name=name,
        decoder=HarbourDecoder,
        recognises=bool,
        carries_more=True,
        vendors={"google"},
        tools=written,
    )
    rd.providers.Format(name=name, decoder=HarbourDecoder, recognises=bool, vendors=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.decode(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    own: rd.providers.WireFormat = "openai"  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    rd.providers.decoder(own)


def replies_and_deltas(delta: rd.MessageDelta, snapshot: rd.Snapshot, event: rd.Event) -> None:
    assert_type(rd.merge_delta(None, delta), rd.MessageDelta)
    assert_type(rd.merge_delta(delta, event), rd.MessageDelta)
    assert_type(rd.merge_delta(snapshot, delta), rd.Snapshot)
    assert_type(rd.merge_deltas([delta, event]), rd.MessageDelta | None)
    assert_type(rd.merge_deltas(snapshot, [delta]), rd.Snapshot)
    assert_type(rd.apply_event(delta, event), rd.Snapshot)
    assert_type(delta + snapshot, rd.MessageDelta)
    assert_type(snapshot.set_tool_display_text("c", "Reading"), rd.Snapshot)
    assert_type(rd.MessageDelta.from_dict({}), rd.MessageDelta)
    snapshot.content  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnusedExpression]  # noqa: B018
    rd.Snapshot(content="Hi")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
