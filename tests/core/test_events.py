"""Events as values, and their wire form both ways, in today's spelling and in older ones."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, get_type_hints

import attrs
import pytest
from core.strategies import every_event, fold_leniently, json_values, word
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events


@given(every_event)
def test_an_event_is_read_back_as_it_was_written(event: rd.Event) -> None:
    written = json.dumps(event.to_dict(), allow_nan=False)
    assert ev.from_dict(json.loads(written)) == event
    assert pickle.loads(pickle.dumps(event)) == event == copy.deepcopy(event)
    assert hash(pickle.loads(pickle.dumps(event))) == hash(event)
    if hasattr(event, "choice"):
        default: Any = next(field.default for field in attrs.fields(type(event)) if field.name == "choice")
        assert ("choice" in event.to_dict()) == (event.choice != default)


@pytest.mark.parametrize(
    ("event", "wire"),
    [
        (ev.MessageStart("m", "gpt", rd.TokenUsage(1), {"a": 1}),
         {"event": "message-start", "id": "m", "role": "ai", "metadata": {"model": "gpt", "a": 1},
          "usage": {"input_tokens": 1, "total_tokens": 1, "raw": {}}}),
        (ev.BlockStart(0, {"type": "text", "text": ""}),
         {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}}),
        (ev.TextDelta(0, "Hi", choice=1),
         {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "Hi"}, "choice": 1}),
        (ev.ReasoningDelta("r", "Hm"),
         {"event": "content-block-delta", "index": "r", "delta": {"type": "reasoning-delta", "reasoning": "Hm"}}),
        (ev.DataDelta(0, "AA=="),
         {"event": "content-block-delta", "index": 0, "delta": {"type": "data-delta", "data": "AA==", "encoding": "base64"}}),
        (ev.ToolCallDelta(0, "{"),
         {"event": "content-block-delta", "index": 0, "delta": {"type": "tool-call-delta", "args": "{"}}),
        (ev.BlockDelta(0, {"signature": "s"}),
         {"event": "content-block-delta", "index": 0, "delta": {"type": "block-delta", "fields": {"signature": "s"}}}),
        (ev.BlockFinish(0), {"event": "content-block-finish", "index": 0}),
        (ev.BlockFinish(0, {}), {"event": "content-block-finish", "index": 0, "content": {}}),
        (ev.UsageUpdate(rd.TokenUsage(1, 2, {"input_tokens": 1, "output_tokens": 2, "x": 3})),
         {"event": "usage", "usage": {"input_tokens": 1, "output_tokens": 2, "x": 3}}),
        (ev.MessageFinish("stop", "end_turn"),
         {"event": "message-finish", "reason": "stop", "metadata": {"finish_reason": "end_turn"}}),
        (ev.StreamError("no", transient=False), {"event": "error", "message": "no", "transient": False}),
        (ev.StreamError("no", "t", "1", choice=2), {"event": "error", "message": "no", "type": "t", "code": "1", "choice": 2}),
        (ev.ProviderEvent("p", "ping", {"a": 1}), {"event": "provider", "provider": "p", "name": "ping", "payload": {"a": 1}}),
        (ev.ToolUpdate("c", "executing", "Doing", rd.ToolResult("c", [])),
         {"event": "tool-update", "call_id": "c", "execution_status": "executing", "display_text": "Doing",
          "result": {"call_id": "c", "content": [], "is_error": False}}),
        (ev.ToolUpdate("c", "executing", choice=0),
         {"event": "tool-update", "call_id": "c", "execution_status": "executing", "choice": 0}),
        (ev.MessageInterrupted(choice=1), {"event": "message-interrupted", "choice": 1}),
        (ev.AttemptReset(choice=0), {"event": "attempt-reset", "attempt": 1, "choice": 0}),
        (ev.MessageInterrupted("user"), {"event": "message-interrupted", "reason": "user"}),
        (ev.AttemptReset(2, "overloaded"), {"event": "attempt-reset", "attempt": 2, "error": "overloaded"}),
    ],
)  # fmt: skip
def test_the_wire_form(event: rd.Event, wire: dict[str, Any]) -> None:
    assert event.to_dict() == wire
    assert ev.from_dict(wire) == event


@pytest.mark.parametrize("event_type", sorted(ev.EVENT_TYPES, key=repr))
def test_an_event_is_of_the_door(event_type: type) -> None:
    assert event_type.__module__ == "rxdelta.core.events"
    assert pickle.loads(pickle.dumps(event_type)) is event_type
    assert "event" in get_type_hints(event_type)


def test_the_door_shows_what_it_lists_and_nothing_else() -> None:
    shown = {
        name for name in dir(ev) if name.isidentifier() and not name.startswith("__")
    }  # pytest adds names of its own
    assert shown == {*ev.__all__}


START = {"event": "content-block-start", "index": 0}
DELTA = {"event": "content-block-delta", "index": 0}


@pytest.mark.parametrize(
    ("wire", "event"),
    [
        (START | {"content_block": {"type": "text"}}, ev.BlockStart(0, {"type": "text"})),
        (START, ev.BlockStart(0)),
        ({"event": "content-block-finish", "index": 0, "content_block": {"type": "text"}}, ev.BlockFinish(0, {"type": "text"})),
        (DELTA | {"content_block": {"type": "text", "text": "a"}}, ev.TextDelta(0, "a")),
        (DELTA | {"content": {"type": "text", "text": "a"}}, ev.TextDelta(0, "a")),
        (DELTA | {"content_block": {"type": "reasoning", "reasoning": "a"}}, ev.ReasoningDelta(0, "a")),
        (DELTA | {"content_block": {"type": "tool_call_chunk", "args": "{"}}, ev.ToolCallDelta(0, "{")),
        (DELTA | {"content": {"type": "tool_call_chunk", "args": "{"}},
         ev.BlockDelta(0, {"type": "tool_call_chunk", "args": "{"})),
        (DELTA | {"content_block": {"type": "audio", "data": "AA"}}, ev.DataDelta(0, "AA")),
        (DELTA | {"content": {"type": "citation", "url": "u"}}, ev.BlockDelta(0, {"type": "citation", "url": "u"})),
        (DELTA | {"delta": {"type": "text-delta"}}, ev.TextDelta(0, "")),
        ({"event": "message-start", "metadata": {"model_name": "gpt"}}, ev.MessageStart(model="gpt", metadata={"model_name": "gpt"})),
        ({"event": "message-start", "responseMetadata": {"model": "gpt", "a": 1}}, ev.MessageStart(model="gpt", metadata={"a": 1})),
        ({"event": "message-finish", "metadata": {"finish_reason": "length"}}, ev.MessageFinish("length", "length")),
        ({"event": "message-finish", "reason": "stop", "responseMetadata": {"finish_reason": "length"}},
         ev.MessageFinish("stop", "length")),
        ({"event": "usage", "usage": {"input_tokens": 5, "output_tokens": "x", "details": {"a": 1}}},
         ev.UsageUpdate(rd.TokenUsage(5, None, {"input_tokens": 5, "output_tokens": "x", "details": {"a": 1}}))),
        ({"event": "error"}, ev.StreamError("unknown error")),
        ({"event": "error", "message": "no", "transient": "yes"}, ev.StreamError("no")),
        ({"event": "error", "message": "no", "code": 529}, ev.StreamError("no", code="529")),
        ({"event": "provider", "payload": [1]}, ev.ProviderEvent("", "", {"value": [1]})),
        ({"event": "attempt-reset"}, ev.AttemptReset(1)),
    ],
)  # fmt: skip
def test_older_and_looser_spellings(wire: dict[str, Any], event: rd.Event) -> None:
    read = ev.from_dict(wire)
    assert read == event
    assert getattr(read, "more", {}) == {}  # each name is known, which equality leaves out


@pytest.mark.parametrize(
    "wire",
    [
        {"event": "new-event", "a": [1]},
        {"event": 5},
        {"a": 1},
        {},
        DELTA,
        DELTA | {"delta": {"type": "new-delta", "a": 1}},
        DELTA | {"delta": {"type": ["text-delta"]}},
        DELTA | {"delta": "x"},
        {"event": "usage"},
        {"event": "usage", "usage": 5},
    ],
)
def test_what_is_unknown_is_kept_whole(wire: dict[str, Any]) -> None:
    event = ev.from_dict(wire)
    assert isinstance(event, ev.ProviderEvent)
    assert (event.provider, event.payload) == ("", wire)
    assert event.name == (wire["event"] if isinstance(wire.get("event"), str) else "")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ev.from_dict([]), "event: must be a mapping"),
        (lambda: ev.TextDelta(0, None), "text: must be a string"),
        (lambda: ev.TextDelta(None, 5, choice=1.0), "index: is invalid; text: must be a string; choice: is invalid"),
        (lambda: ev.ReasoningDelta(0, b"x"), "reasoning: must be a string"),
        (lambda: ev.DataDelta(0, b"x"), "data: must be a string"),
        (lambda: ev.ToolCallDelta(0, {}), "args: must be a string"),
        (lambda: ev.BlockStart(0, []), "content: must be a mapping"),
        (lambda: ev.BlockDelta(0, "x"), "fields: must be a mapping"),
        (lambda: ev.BlockFinish(0, "x"), "content: must be a mapping"),
        (lambda: ev.MessageStart(5, 6, 7, choice=None),
         "id: must be a string; model: must be a string; usage: must be a TokenUsage; choice: is invalid"),
        (lambda: ev.MessageFinish(5, 6), "reason: must be a string; provider_reason: must be a string"),
        (lambda: ev.UsageUpdate(None), "usage: can't be blank"),
        (lambda: ev.UsageUpdate({}), "usage: must be a TokenUsage"),
        (lambda: ev.StreamError("", transient=1), "transient: must be True, False or None"),
        (lambda: ev.StreamError(None, 5, 6, choice="x"),
         "message: must be a string; type: must be a string; code: must be a string; choice: is invalid"),
        (lambda: ev.ProviderEvent(None, 5), "provider: must be a string; name: must be a string"),
        (lambda: ev.ToolUpdate(None, 5, 6, 7),
         "call_id: must be a string; execution_status: must be a string; display_text: must be a string; result: must be"),
        (lambda: ev.MessageInterrupted(5), "reason: must be a string"),
        (lambda: ev.AttemptReset(-1, 5, 6), "attempt: is invalid; error: must be a string; usage: must be a TokenUsage"),
        (lambda: ev.AttemptReset(None), "attempt: is invalid"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name_all_at_once(make: Any, said: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        make()
    assert said in str(caught.value)


def test_the_wires_places_in_the_metadata_are_fields() -> None:
    start = ev.MessageStart(metadata={"model": "gpt", "a": 1})
    assert (start.model, start.metadata) == ("gpt", {"a": 1})
    assert ev.MessageStart(model="mine", metadata={"model": "gpt"}) == ev.MessageStart(model="mine")
    assert ev.MessageStart(model="mine", metadata={"model_name": "gpt"}).model == "mine"
    finish = ev.MessageFinish(metadata={"finish_reason": "end_turn", "model_name": "gpt"})
    assert (finish.reason, finish.provider_reason, finish.metadata) == (
        "end_turn",
        "end_turn",
        {"model_name": "gpt"},
    )
    assert finish.model == "gpt"
    assert ev.MessageFinish(metadata={"model": 5}).model is None


def test_lone_surrogates_are_replaced_in_all_but_growing_text() -> None:
    half = "\ud83d"
    for event in (
        ev.MessageStart(half, half, metadata={half: half}),
        ev.BlockStart(half, {half: half}),
        ev.BlockDelta(half, {half: half}),
        ev.BlockFinish(half, {half: half}),
        ev.TextDelta(half, ""),
        ev.MessageFinish(half, half, metadata={half: half}),
        ev.StreamError(half, half, half),
        ev.ProviderEvent(half, half, {half: half}),
        ev.ToolUpdate(half, half, half),
        ev.MessageInterrupted(half),
        ev.AttemptReset(1, half),
    ):
        json.dumps(event.to_dict(), ensure_ascii=False).encode()
    assert ev.TextDelta(0, half).text == half  # its other half may come yet


def test_a_part_or_call_is_content_too() -> None:
    assert ev.BlockStart(0, rd.ContentPart("text", "a")).content == {"type": "text", "text": "a"}
    call = rd.ToolCall(call_id="c", name="f", arguments={}, status="complete")
    assert ev.BlockFinish(0, call).content == {"type": "tool_call", "id": "c", "name": "f", "args": {}}


wire = st.dictionaries(
    st.sampled_from(["event", "index", "delta", "content", "content_block", "usage", "choice", "metadata", "reason",
                     "id", "message", "code", "type", "call_id", "result", "attempt", "payload", "provider", "name"]),
    json_values
    | st.integers(0, 2)
    | st.sampled_from(["message-start", "content-block-start", "content-block-delta", "content-block-finish", "usage",
                       "message-finish", "error", "provider", "tool-update", "message-interrupted", "attempt-reset"])
    | st.dictionaries(st.sampled_from(["type", "text", "args", "data", "fields", "id", "name", "input_tokens"]),
                      json_values | st.sampled_from(["text-delta", "text", "tool_call", "block-delta"]) | word),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(json_values | wire, max_size=8))
def test_any_json_makes_events_and_snapshots_or_an_error_of_ours(sent: list[Any]) -> None:
    read = []
    for data in sent:
        try:
            read.append(ev.from_dict(data))
        except rd.RxDeltaError:
            continue
    for event in read:
        assert ev.from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False))) == event
    for snapshot in fold_leniently(read):
        written = json.dumps(snapshot.to_dict(), allow_nan=False, ensure_ascii=False).encode()
        assert rd.Snapshot.from_dict(json.loads(written)) == snapshot
