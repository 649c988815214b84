"""Stored events and replies: the number of their format, and fields of a later version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from core.strategies import every_event
from hypothesis import given

import rxdelta as rd

ev = rd.events
READERS: dict[str, Any] = {
    "event": ev.from_dict,
    "snapshot": rd.Snapshot.from_dict,
    "message": rd.Message.from_dict,
}
STORED = [
    (line["kind"], line["stored"])
    for line in map(
        json.loads, (Path(__file__).parent / "stored" / "format_1.jsonl").read_text("utf-8").splitlines()
    )
]
ONE_EACH = list(
    {(kind, value.get("event"), str(value.get("delta"))): (kind, value) for kind, value in STORED}.values()
)


@pytest.mark.parametrize(("kind", "stored"), STORED)
def test_a_file_of_format_1_is_read_for_good(kind: str, stored: dict[str, Any]) -> None:
    """The file is never written anew. If this test fails, the format has changed, and needs a new number."""
    value = READERS[kind](stored)
    assert type(value) is not ev.ProviderEvent or stored["event"] == "provider"
    assert value.to_dict() == stored


def test_the_file_has_every_event() -> None:
    assert {type(ev.from_dict(stored)) for kind, stored in STORED if kind == "event"} == ev.EVENT_TYPES


def test_what_the_file_means() -> None:
    events = [ev.from_dict(stored) for kind, stored in STORED if kind == "event"]
    assert events[0] == ev.MessageStart(
        "m1", "model-1", rd.TokenUsage(7, 0), {"lab": "x"}, run_id="agent/1", parent_run_id="agent"
    )
    assert events[3] == ev.TextDelta(0, "Héllo 😀", run_id="agent/1")
    assert events[-1] == ev.AttemptReset(2, "busy", rd.TokenUsage(5, 1), choice=0)
    snapshot, message = rd.Snapshot.from_dict(STORED[-2][1]), rd.Message.from_dict(STORED[-1][1])
    assert (snapshot.text, snapshot.status, snapshot.run_id, snapshot.attempt) == (
        "Héllo",
        "incomplete",
        "agent/1",
        1,
    )
    fold = rd.Fold(snapshot)
    fold.step(ev.ToolCallDelta(2, " 1}", run_id="agent/1"))
    fold.step(ev.BlockFinish(2, run_id="agent/1"))
    fold.step(ev.MessageFinish("tool_use", usage=rd.TokenUsage(7, 4), run_id="agent/1"))
    done = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", {"sum": 3}))
    assert fold.step(done).to_message() == message


@pytest.mark.parametrize(("kind", "stored"), ONE_EACH)
class TestEachStoredValue:
    def test_a_field_of_a_later_version_is_kept(self, kind: str, stored: dict[str, Any]) -> None:
        later = {**stored, "novel": {"n": [1]}, "more_novel": None}
        value = READERS[kind](later)
        assert value.to_dict() == later
        assert value == READERS[kind](stored)
        assert READERS[kind](value.to_dict()).to_dict() == later
        with pytest.raises(TypeError):
            value.more["novel"]["n"].append(2)

    def test_format_1_may_be_written_out(self, kind: str, stored: dict[str, Any]) -> None:
        assert READERS[kind]({**stored, "format": 1}).to_dict() == stored

    def test_a_later_format_is_refused(self, kind: str, stored: dict[str, Any]) -> None:
        with pytest.raises(rd.InvalidValueError, match=r"format: is 2, but .* format 1 only") as caught:
            READERS[kind]({**stored, "format": 2})
        assert (caught.value.field, caught.value.value) == ("format", 2)

    @pytest.mark.parametrize("number", [0, -1, True, "1", 1.0, None, [1]])
    def test_a_format_that_is_no_number_is_refused(
        self, kind: str, stored: dict[str, Any], number: object
    ) -> None:
        with pytest.raises(rd.InvalidValueError, match="format"):
            READERS[kind]({**stored, "format": number})


def test_an_event_of_a_later_version_is_kept_as_it_came() -> None:
    later = {"event": "mood", "format": 1, "level": 3, "run_id": "a"}
    event = ev.from_dict(later)
    assert isinstance(event, ev.ProviderEvent)
    assert (event.name, event.run_id, event.payload["level"]) == ("mood", "a", 3)
    assert event.to_dict() == later
    assert attrs.evolve(event, run_id="b").to_dict() == later | {"run_id": "b"}
    delta = {"event": "content-block-delta", "index": 0, "delta": {"type": "mood-delta", "mood": "ok"}}
    assert ev.from_dict(delta).to_dict() == delta


@given(every_event)
def test_no_event_has_fields_that_are_unknown_to_its_own_reader(event: rd.Event) -> None:
    assert not ev.from_dict(event.to_dict()).more


def test_a_snapshot_keeps_the_fields_while_it_grows() -> None:
    restored = rd.Snapshot.from_dict({"role": "assistant", "novel": 1})
    fold = rd.Fold(restored)
    for event in rd.to_events(rd.MessageDelta("Hi", role="assistant", status="complete")):
        fold.step(event)
    assert fold.snapshot.to_dict()["novel"] == 1
    assert fold.snapshot.to_message().to_dict()["novel"] == 1


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (rd.ContentPart, {"type": "text", "text": "Hi"}),
        (
            rd.ToolCall,
            {"type": "tool_call", "call_id": "c", "name": "f", "arguments": {}, "status": "complete"},
        ),
        (rd.ToolResult, {"call_id": "c", "content": 1, "is_error": False}),
        (rd.TokenUsage, {"input_tokens": 1}),
    ],
)
def test_the_values_of_a_reply_keep_fields_of_a_later_version_too(kind: Any, stored: dict[str, Any]) -> None:
    later = {**stored, "novel": [1]}
    assert kind.from_dict(later).to_dict() == later
    assert kind.from_dict(later) == kind.from_dict(stored)


def test_a_block_keeps_the_fields_while_it_grows() -> None:
    block = {"key": 0, "open": True, "type": "text", "text": "H", "novel": 1}
    fold = rd.Fold(rd.Snapshot.from_dict({"role": "assistant", "blocks": [block]}))
    fold.step(ev.TextDelta(0, "i"))
    (kept,) = fold.step(ev.BlockFinish(0)).to_dict()["blocks"]
    assert (kept["text"], kept["novel"]) == ("Hi", 1)
    call = {
        "key": 0,
        "open": True,
        "type": "tool_call",
        "call_id": "c",
        "name": "f",
        "arguments_text": "{",
        "novel": 1,
    }
    fold = rd.Fold(rd.Snapshot.from_dict({"role": "assistant", "blocks": [call]}))
    fold.step(ev.ToolCallDelta(0, "}"))
    (kept,) = fold.step(ev.BlockFinish(0)).to_dict()["blocks"]
    assert (kept["arguments"], kept["novel"]) == ({}, 1)
