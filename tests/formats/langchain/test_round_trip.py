"""Any events and every recorded stream in LangChain's protocol: with its own types and its own reader as judges."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

import attrs
import pytest
from core import strategies
from formats.langchain.frames import BOOM, Frame, Rules, folded, read, sent
from hypothesis import given, settings, strategies as st
from support.shared import recordings

import rxdelta as rd
from rxdelta import events as ev


@functools.cache
def shapes() -> dict[str, Any]:
    """LangChain's own types, as validators of what a frame holds."""
    pydantic, protocol = pytest.importorskip("pydantic"), pytest.importorskip("langchain_protocol.protocol")
    kinds = {"messages": protocol.MessagesData, "tools": protocol.ToolsData, "custom": protocol.CustomData}
    return {"frame": pydantic.TypeAdapter(protocol.Event)} | {
        method: pydantic.TypeAdapter(kind) for method, kind in kinds.items()
    }


def check_shapes(frames: Iterable[Frame], types: Mapping[str, Any]) -> None:
    for frame in frames:
        types["frame"].validate_python(frame)
        types[frame["method"]].validate_python(frame["params"]["data"])


RECORDED = [
    pytest.param(wire_format, *one.values, marks=one.marks, id=f"{wire_format}-{one.id}")
    for wire_format in sorted(
        set(rd.providers.FORMATS) - {"langchain", "ai-sdk", "ag-ui"}
    )  # those of front ends
    for one in recordings(wire_format)
]


def events_of(wire_format: str, chunks: Iterable[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


@pytest.fixture(scope="module")
def types() -> dict[str, Any]:
    return shapes()


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks", "_expected"), RECORDED)
def test_a_recorded_stream_is_read_back_without_loss(
    wire_format: str,
    chunks: list[Any],
    _expected: Any,
    types: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    events = events_of(wire_format, chunks)
    for choice in {getattr(event, "choice", 0) for event in events}:
        frames = sent(*events, choice=choice)
        Rules().check(frames)
        check_shapes(frames, types)
        back, reply = read(frames), folded(alone(events, choice))
        assert folded(back) == reply
        assert natives(back) == natives(events)
        if reply.status != "incomplete":
            assert folded(back).to_message() == reply.to_message()
            if not any(isinstance(event, ev.StreamError) for event in events):
                check_with_langchain(frames, reply)


def alone(events: Iterable[rd.Event], choice: int) -> list[rd.Event]:
    """The events of one choice, as if there were no other."""
    kept = [
        event
        for event in events
        if getattr(event, "choice", choice) == choice or isinstance(event, ev.StreamError)
    ]
    return [attrs.evolve(event, choice=0) if hasattr(event, "choice") else event for event in kept]


def natives(events: Iterable[rd.Event]) -> list[dict[str, Any]]:
    """What came of the provider's own before the error, if there is one. The provider's object of the error isn't sent."""
    before = takewhile(lambda event: not isinstance(event, ev.StreamError), events)
    sent = [event for event in before if isinstance(event, ev.ProviderEvent) and event.name != "error"]
    return [event.to_dict() for event in sent]


def check_with_langchain(frames: Iterable[Frame], reply: rd.Snapshot) -> None:
    """What LangChain's own reader ends up with is our final message."""
    core = pytest.importorskip("langchain_core.language_models.chat_model_stream")
    stream = core.ChatModelStream()
    for frame in frames:
        if frame["method"] == "messages":
            stream.dispatch(frame["params"]["data"])
    message = stream.output_message
    assert message.id == (reply.id or "made-0")
    calls = [block for block in reply.blocks if isinstance(block, rd.ToolCall)]
    assert [(call["id"], call["name"], call["args"]) for call in message.tool_calls] == [
        (call.call_id, call.name, rd.core.thaw(call.arguments)) for call in calls if call.type == "tool_call"
    ]
    invalid = [call for call in calls if call.type == "invalid_tool_call"]
    assert [call["error"] for call in message.invalid_tool_calls] == [call.error for call in invalid]
    words = ("text", "refusal")
    said = [b.text for b in reply.blocks if isinstance(b, rd.ContentPart) and b.type in words]
    assert [block["text"] for block in message.content if block["type"] == "text"] == [
        one or "" for one in said
    ]
    assert str(stream.reasoning) == reply.reasoning
    assert len(message.content) == len(reply.blocks)
    if reply.usage is not None:
        found = message.usage_metadata
        assert (found.get("input_tokens"), found.get("output_tokens")) == (
            reply.usage.input_tokens or 0,
            reply.usage.output_tokens or 0,
        )


def legal(turn: list[rd.Event]) -> list[rd.Event]:
    """The events that keep the protocol, with an end."""
    lifecycle, kept = rd.core.ProtocolChecker(), [ev.MessageStart("m")]
    lifecycle.check(kept[0])
    for event in turn:
        if isinstance(event, (ev.MessageStart, ev.MessageFinish, ev.AttemptReset, ev.MessageInterrupted)):
            continue
        trial = copy.deepcopy(lifecycle)
        if trial.check(event) is None:
            lifecycle = trial
            kept.append(event)
    return kept


def test_a_result_that_grows_is_read_back_without_loss() -> None:
    result = [ev.BlockStart(0, {"type": "server_tool_result", "tool_call_id": "c1"}), ev.DataDelta(0, "AA")]
    events = [ev.MessageStart("m"), *result, ev.BlockFinish(0), ev.MessageFinish("stop")]
    frames = sent(*events)
    Rules().check(frames)
    check_shapes(frames, shapes())
    assert folded(read(frames)) == folded(events)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(strategies.events(), max_size=25), st.sampled_from(["stop", "length", "interrupted"]))
def test_any_legal_events_are_read_back_without_loss(turn: list[rd.Event], end: str) -> None:
    events = legal(turn)
    last = ev.MessageInterrupted("left") if end == "interrupted" else ev.MessageFinish(end, "word")
    events.append(last)
    frames = sent(*events)
    Rules().check(frames)
    check_shapes(frames, shapes())
    assert folded(read(frames)) == folded(events)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(strategies.every_event, max_size=25), st.booleans())
def test_no_events_at_all_make_an_illegal_frame(events: list[rd.Event], fails: bool) -> None:
    frames = sent(*events, error=BOOM if fails else None)
    Rules().check(frames)
    check_shapes(frames, shapes())
    read(frames)
