"""What any AG-UI front end may show: the model's turns, why they ended, and the sources of a text."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from support.ag_ui import ASKED, CLIENTS, body, call, is_turn, message, read, text, told
from support.clients import ask

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]
CITED = [
    {"type": "citation", "url": "https://a.example", "title": "A", "start_index": 0},
    {"type": "citation", "url": "https://a.example", "title": "A again"},
    {"type": "citation", "title": "A book"},
    {"type": "citation", "cited_text": "no source"},
]
SOURCES = [
    {"type": "source", "sourceType": "url", "id": "m1-source-1", "url": "https://a.example", "title": "A"},
    {
        "type": "source",
        "sourceType": "document",
        "id": "m1-source-2",
        "mediaType": "text/plain",
        "title": "A book",
    },
]
Told = list[tuple[str, Any]]


def turns(frames: list[Json]) -> Told:
    """The steps of the model's turns, with the finish reason at their end."""
    return [
        (frame["stepName"], frame["metadata"].get("finishReason") if "FINISHED" in frame["type"] else "begun")
        for frame in frames
        if is_turn(frame)
    ]


def cited(index: int, piece: str, citations: list[Json] = CITED) -> list[rd.Event]:
    begun, *rest, end = text(index, piece)
    return [begun, *rest, ev.BlockDelta(index, {"citations": citations}), end]


# Steps.


@pytest.mark.parametrize("error", [None, ValueError("no")])
def test_a_turn_that_breaks_off_or_is_stopped_has_no_reason(error: Exception | None) -> None:
    begun = [ev.MessageStart("m1"), *text(0, "Hi")[:-1]]
    frames = told(*begun, error=error)
    assert turns(frames) == [("model-turn-1", "begun"), ("model-turn-1", None)]
    stopped = told(*begun, ev.MessageInterrupted())
    assert turns(stopped) == [("model-turn-1", "begun"), ("model-turn-1", None)]
    assert "metadata" not in stopped[-1]
    assert all("metadata" not in said for said in read(stopped).messages)


def test_the_applications_steps_stay_its_own() -> None:
    step, over = ev.Custom("STEP_STARTED", "model-turn-1"), ev.Custom("STEP_FINISHED", "model-turn-1")
    first = told(step, *message(text(0, "Hi")), over)
    assert read(first).said == [("STEP_STARTED", "model-turn-1"), ("STEP_FINISHED", "model-turn-1")]
    assert turns(first)[0] == ("model-turn-1-2", "begun")
    start, *rest = message(text(0, "Hi"))
    later = told(start, step, over, *rest)
    assert [frame["name"] for frame in later if frame["type"] == "CUSTOM"] == [
        "STEP_STARTED",
        "STEP_FINISHED",
    ]
    plan, planned = ev.Custom("STEP_STARTED", "plan"), ev.Custom("STEP_FINISHED", "plan")
    client = read(told(start, plan, *rest, planned))
    assert client.said == [("STEP_STARTED", "plan"), ("STEP_FINISHED", "plan")]


def test_a_step_ends_behind_the_blocks_that_wait_for_another_runs_call() -> None:

    one = [ev.MessageStart("m1"), *call(0, "c1", "{}")[:-1]]
    two = [attrs.evolve(event, run_id="b") for event in message(text(0, "Two."), id="m2")]
    rest = [ev.BlockFinish(0), ev.MessageFinish("tool_use")]
    frames = told(*one, *two, *rest, serialize_tool_calls=True)
    ends = [n for n, frame in enumerate(frames) if frame["type"] == "STEP_FINISHED"]
    said = next(n for n, frame in enumerate(frames) if frame.get("delta") == "Two.")
    assert min(ends) > said
    read(frames)


def test_the_steps_are_no_data_of_the_application_to_our_reader() -> None:
    decoder = rd.providers.decoder("ag-ui")
    frames = told(*message(cited(0, "Hi")))
    found = [event for frame in frames for event in decoder.decode(frame)]
    assert not [event for event in found if isinstance(event, (ev.Custom, ev.ProviderEvent))]


# Sources.


def test_a_text_has_its_sources_each_once() -> None:
    frames = told(*message(cited(0, "One."), cited(1, " Two.")))
    (said,) = read(frames).messages
    assert said["metadata"]["sources"] == SOURCES
    (event,) = [frame for frame in frames if frame["type"] == "CUSTOM"]
    assert (event["name"], event["value"]) == ("rxdelta.sources", {"messageId": "m1", "sources": SOURCES})
    assert "sources" not in str(told(*message(cited(0, "Hi", CITED[-1:])))[-4:-1])


def test_the_citations_come_back_as_before() -> None:
    frames = told(*message(cited(0, "One.")))
    (said,) = rd.from_ag_ui({"messages": read(frames).messages})
    (block,) = said.blocks
    assert isinstance(block, rd.ContentPart)
    assert len(block.citations) == len(CITED)
    assert said.metadata == {}


def test_a_snapshot_repeats_the_sources() -> None:
    begun = [ev.MessageStart("m2"), *text(0, "Oo")[:-1], ev.AttemptReset(1)]
    client = read(
        told(*message(cited(0, "One.")), *begun, *message(text(0, "Two."), id="m2"), messages=ASKED), ASKED
    )
    assert [said.get("metadata", {}).get("sources") for said in client.messages] == [None, SOURCES, None]


def test_an_application_may_say_sources_too() -> None:
    frames = told(ev.Custom("rxdelta.sources", 1), ev.Custom("sources", 2), *message(text(0, "Hi")))
    names = [frame["name"] for frame in frames if frame["type"] == "CUSTOM"]
    assert names == ["custom-rxdelta.sources", "sources"]
    decoder = rd.providers.decoder("ag-ui")
    said = [event for frame in frames for event in decoder.decode(frame) if isinstance(event, ev.Custom)]
    assert [(event.name, event.data) for event in said] == [("rxdelta.sources", 1), ("sources", 2)]


# The provider's own items.


@pytest.mark.parametrize("kept_back", [True, False])
def test_the_providers_own_items_stay_on_the_server_unless_asked_for(kept_back: bool) -> None:
    item = [ev.BlockStart(0, {"type": "non_standard", "value": {"type": "mcp_list_tools", "tools": [1]}})]
    events = message([*item, ev.BlockFinish(0)], text(1, "Hi"))
    frames = told(*events, **({} if kept_back else {"provider_items": True}))
    assert ("mcp_list_tools" in json.dumps(frames)) is not kept_back
    types = [
        block.type for said in rd.from_ag_ui({"messages": read(frames).messages}) for block in said.blocks
    ]
    assert types == (["text"] if kept_back else ["unsupported", "text"])


# The real clients.


def test_the_real_clients_keep_sources_and_reasons_and_tell_the_steps() -> None:
    events = [
        *message(cited(0, "One."), reason="content_filter"),
        *message(text(0, "Two."), id="m2", reason="length"),
    ]
    runs = {client: told(*events, messages=ASKED, version=version) for client, version in CLIENTS.items()}
    lines = [{"body": body(frames), "messages": ASKED, "client": client} for client, frames in runs.items()]
    for frames, seen in zip(runs.values(), ask("ag_ui.mjs", lines), strict=True):
        assert (seen["error"], seen["warnings"]) == (None, [])
        assert seen["messages"] == read(frames, ASKED).messages
        assert seen["messages"][1]["metadata"]["sources"] == SOURCES
        assert seen["messages"][2]["metadata"]["finishReason"] == "length"
        begun, over = seen["steps"][:2]
        assert (begun, over["stepName"]) == ("model-turn-1", "model-turn-1")
        assert over["metadata"]["finishReason"] == "content_filter"
        assert seen["finished"]["metadata"]["finishReason"] == "length"
        assert seen["custom"][0]["value"] == {"messageId": "m1", "sources": SOURCES}
