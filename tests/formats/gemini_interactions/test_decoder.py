"""Google's Interactions API: the beginning and end of a message, other shapes, and malformed chunks."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gemini_interactions import (
    CREATED,
    Chunk,
    completed,
    decoded,
    delta,
    folded,
    message,
    parts_of,
    start,
    step,
    stop,
    text,
)
from support.shared import recordings

import rxdelta as rd
from rxdelta.core import events
from rxdelta.core.events import (
    BlockDelta,
    MessageFinish,
    ProviderEvent,
    StreamError,
    UsageUpdate,
)
from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder, recognises

# The end


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("completed", "stop"),
        ("requires_action", "stop"),  # no call came
        ("incomplete", "length"),
        ("budget_exceeded", "length"),
        ("requires_continuation", "pause"),
        ("brand_new", "stop"),
    ],
)
def test_statuses(status: str, reason: str) -> None:
    found = message(CREATED, *step(0, "model_output", text(0, "Hi")), completed(status))
    assert (found.finish_reason, found.provider_finish_reason) == (reason, status)


def test_completed_with_a_call_is_tool_use() -> None:
    assert (
        message(CREATED, *step(0, "function_call", id="c", name="f"), completed()).finish_reason == "tool_use"
    )


def test_a_lost_last_event_is_made_up_for_by_the_status() -> None:
    update = {"event_type": "interaction.status_update", "interaction_id": "v1_1", "status": "completed"}
    assert message(CREATED, *step(0, "model_output", text(0, "Hi")), update).finish_reason == "stop"
    assert folded(CREATED, *step(0, "model_output", text(0, "Hi"))).status == "incomplete"


def test_a_status_may_be_the_name_of_an_event() -> None:
    begun, needed = ({"event_type": f"interaction.{name}"} for name in ("in_progress", "requires_action"))
    chunks = [CREATED, begun, *step(0, "function_call", id="c1", name="f")]
    assert folded(*chunks).status == "incomplete"
    assert message(*chunks, needed).provider_finish_reason == "requires_action"


def test_citations_held_back_are_told_when_a_stream_is_cut_off() -> None:
    notes = [delta(0, "text_annotation_delta", annotations=[{"url": f"u{n}"}]) for n in range(30)]
    chunks = [CREATED, start(0, "model_output"), text(0, "Hi"), *notes]
    for end in ([], [{"event_type": "error", "error": {"message": "Oh"}}]):
        (part,) = folded(*chunks, *end).blocks
        assert isinstance(part, rd.ContentPart)
        assert len(part.citations) == 30


def test_usage_is_a_running_total_and_the_last_event_has_the_last() -> None:
    early = {**CREATED, "metadata": {"usage": {"total_input_tokens": 11, "total_output_tokens": 0}}}
    later = {
        **text(0, "Hi"),
        "metadata": {"total_usage": {"total_output_tokens": 3, "total_thought_tokens": 2}},
    }
    found = decoded(
        early, start(0, "model_output"), later, stop(0), completed(usage={"total_output_tokens": 4})
    )
    assert [event.usage.output_tokens for event in found if isinstance(event, UsageUpdate)] == [3]
    usage = message(
        early, start(0, "model_output"), later, stop(0), completed(usage={"total_output_tokens": 4})
    ).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (11, 4)
    assert usage.raw == {"total_input_tokens": 11, "total_output_tokens": 4, "total_thought_tokens": 2}


def test_what_the_interaction_says_is_metadata() -> None:
    found = message(CREATED, completed(service_tier="flex", created="2026", previous_interaction_id="v0"))
    assert found.metadata == {"service_tier": "flex", "created": "2026", "previous_interaction_id": "v0"}


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        ({"event_type": "error", "error": {"code": "x", "message": "m"}}, StreamError("m", None, "x")),
        ({"error": {"code": 400, "message": "m", "status": "INVALID"}}, StreamError("m", "INVALID", "400")),
        ({"event_type": "error", "error": "gone"}, StreamError("gone")),
        (completed("failed"), StreamError("the interaction failed", None, "failed", transient=True)),
        (completed("failed", errors=[{"code": "x", "message": "m"}]), StreamError("m", "failed", "x")),
    ],
)
def test_an_error_ends_the_stream(chunk: Chunk, told: StreamError) -> None:
    found = decoded(CREATED, start(0, "model_output"), text(0, "Hi"), chunk, text(0, "!"), completed())
    assert found[-1] == told
    assert not any(isinstance(event, MessageFinish) for event in found)


def test_an_unknown_event_passes() -> None:
    strange = {"event_type": "step.sparkle", "index": 0}
    assert ProviderEvent("google", "step.sparkle", strange) in decoded(CREATED, strange, completed())


# Other shapes


STEPS = [
    {"type": "thought", "summary": [{"type": "text", "text": "Hm."}], "signature": "c2ln"},
    {
        "type": "model_output",
        "content": [
            {"type": "text", "text": "Hi", "annotations": [{"type": "url_citation", "url": "https://e.org"}]}
        ],
    },
    {"type": "code_execution_call", "id": "x1", "arguments": {"language": "python", "code": "1"}},
    {"type": "code_execution_result", "call_id": "x1", "result": "1", "is_error": False},
    {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
]
BODY = {
    "object": "interaction",
    "id": "v1_1",
    "model": "gemini-x",
    "status": "requires_action",
    "usage": {"total_input_tokens": 1, "total_output_tokens": 2},
    "steps": STEPS,
}


def test_a_body_is_read_as_its_stream() -> None:
    stream = [
        CREATED,
        *step(
            0,
            "thought",
            delta(0, "thought_summary", content={"type": "text", "text": "Hm."}),
            delta(0, "thought_signature", signature="c2ln"),
        ),
        *step(
            1,
            "model_output",
            text(1, "Hi"),
            delta(1, "text_annotation_delta", annotations=[{"type": "url_citation", "url": "https://e.org"}]),
        ),
        *(chunk for place, fields in enumerate(STEPS[2:], 2) for chunk in step(place, **fields)),  # type: ignore[arg-type]
        completed("requires_action", usage=BODY["usage"]),
    ]
    assert message(BODY) == message(*stream)


def test_the_last_event_may_have_the_steps_that_were_not_streamed() -> None:
    assert message(CREATED, completed("completed", steps=STEPS[:2])).text == "Hi"
    streamed = step(0, "model_output", text(0, "Hi"))
    assert message(CREATED, *streamed, completed("completed", steps=STEPS[:2])).text == "Hi"


def test_a_body_that_is_still_running_is_incomplete() -> None:
    assert folded({**BODY, "status": "in_progress"}).status == "incomplete"


def test_the_events_before_there_were_steps() -> None:
    chunks = [
        {"event_type": "interaction.start", "interaction": {"id": "v1_1", "status": "in_progress"}},
        {"event_type": "content.start", "index": 0, "content": {"type": "thought"}},
        {"event_type": "content.delta", "index": 0, "delta": {"type": "thought_summary", "content": {"type": "text", "text": "H"}}},
        {"event_type": "content.delta", "index": 0, "delta": {"type": "thought_signature", "signature": "s"}},
        {"event_type": "content.stop", "index": 0},
        {"event_type": "content.start", "index": 1, "content": {"type": "text", "text": ""}},
        {"event_type": "content.delta", "index": 1, "delta": {"type": "text", "text": "a"}},
        {"event_type": "content.delta", "delta": {"type": "text", "text": "b"}},
        {"event_type": "content.stop", "index": 1},
        {"event_type": "content.start", "index": 2, "content": {"type": "function_call"}},
        {"event_type": "content.delta", "index": 2, "delta": {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}}},
        {"event_type": "content.stop", "index": 2},
        {"event_type": "interaction.complete", "interaction": {"id": "v1_1", "status": "requires_action"}},
    ]  # fmt: skip
    found = message(*chunks)
    assert [(part.type, part.text) for part in parts_of(found)] == [("reasoning", "H"), ("text", "ab")]
    assert [(call.call_id, call.name, call.arguments) for call in found.tool_calls] == [("c", "f", {"a": 1})]


def test_a_body_from_before_there_were_steps() -> None:
    outputs = [{"type": "thought", "signature": "s"}, {"type": "text", "text": "Hi"}]
    found = message({"id": "v1_1", "status": "completed", "outputs": outputs})
    assert [(part.type, part.text) for part in parts_of(found)] == [("reasoning", ""), ("text", "Hi")]


def test_a_start_sent_twice_counts_once() -> None:
    twice = start(0, "model_output")
    assert len(message(CREATED, twice, text(0, "a"), twice, text(0, "b"), stop(0), completed()).blocks) == 1


def test_a_lost_start_is_made_up_for() -> None:
    found = message(text(0, "Hi"), delta(1, "thought_signature", signature="s"), completed())
    assert [part.type for part in parts_of(found)] == ["text", "reasoning"]
    lost = delta(0, "arguments_delta", arguments="{}")
    assert ProviderEvent("google", "arguments_delta", lost) in decoded(CREATED, lost, completed())


def test_interleaved_steps() -> None:
    found = message(
        CREATED, start(0, "model_output"), start(1, "function_call", id="c", name="f"), text(0, "a"),
        delta(1, "arguments_delta", arguments="{"), text(0, "b"), delta(1, "arguments_delta", arguments="}"),
        stop(1), stop(0), completed(),
    )  # fmt: skip
    assert found.text == "ab"
    assert found.tool_calls[0].status == "complete"


def sdk(chunk: Chunk) -> Any:
    interactions = pytest.importorskip("google.genai.interactions")
    from pydantic import TypeAdapter

    return TypeAdapter(interactions.InteractionSSEEvent).validate_python(copy.deepcopy(chunk))


@pytest.mark.parametrize(("chunks", "expected"), recordings("gemini-interactions"))
def test_recordings_as_the_sdks_objects_are_the_same_message(chunks: list[Chunk], expected: Chunk) -> None:
    theirs = message(*map(sdk, chunks)).to_dict()
    ours = message(*chunks).to_dict()
    assert theirs == ours


def test_the_sdks_objects_are_read_as_what_they_were_made_of() -> None:
    chunks = [
        CREATED,
        *step(0, "google_search_call", id="g", arguments={"queries": ["q"]}, signature="c2ln"),
        *step(1, "google_search_result", call_id="g", result=[{"search_suggestions": "x"}]),
        *step(2, "model_output", text(2, "Hi"), delta(2, "image", data="aaaa", mime_type="image/png")),
        *step(
            3,
            "function_call",
            delta(3, "arguments_delta", arguments='{"a": 1}'),
            id="c",
            name="f",
            arguments={},
        ),
        completed("requires_action", usage={"total_input_tokens": 1}),
    ]
    assert message(*map(sdk, chunks)) == message(*chunks)


# What is malformed


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ("text", ""),
        ({}, "event_type"),
        ({"event_type": 1}, "event_type"),
        ({"event_type": "interaction.created", "interaction": 1}, "interaction"),
        (start("0", "thought"), "index"),
        (start(True, "thought"), "index"),
        ({"event_type": "step.start", "index": 0}, "content.type"),
        ({"event_type": "step.start", "index": 0, "step": []}, "step"),
        (start(0, "model_output", content=[1]), "step.content[0]"),
        (start(0, "function_call", name=1), "step.name"),
        (start(0, "function_call", arguments=[1]), "step.arguments"),
        ({"event_type": "step.delta", "index": 0, "delta": 1}, "delta"),
        ({"event_type": "step.delta", "index": 0, "delta": {}}, "delta.type"),
        (text(0, 1), "delta.text"),  # type: ignore[arg-type]
        ({**BODY, "steps": 1}, "steps"),
        ({**BODY, "steps": [{}]}, "steps[0].type"),
        (completed(usage=[]), "interaction.usage"),
    ],
)
def test_a_malformed_chunk_names_the_place(chunk: Any, path: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        GeminiInteractionsDecoder().decode(chunk)
    assert (caught.value.wire_format, caught.value.path) == ("gemini-interactions", path)


def test_a_hostile_index_is_refused() -> None:
    with pytest.raises(rd.errors.LimitExceededError):
        GeminiInteractionsDecoder().decode(start(2**31, "thought"))


EVENTS = st.one_of(
    st.builds(start, st.integers(0, 2), st.sampled_from(["thought", "model_output", "x", "user_input", "google_maps_result"])),
    st.builds(lambda index: start(index, "function_call", id=f"c{index}", name="f", arguments={}), st.integers(0, 2)),
    st.builds(lambda index: start(index, "url_context_call", id=f"u{index}"), st.integers(0, 2)),
    st.builds(text, st.integers(0, 3), st.sampled_from(["a", ""])),
    st.builds(lambda index, piece: delta(index, "arguments_delta", arguments=piece), st.integers(0, 3), st.sampled_from(["{", "}", "{}"])),
    st.builds(lambda index: delta(index, "thought_signature", signature="s"), st.integers(0, 3)),
    st.builds(lambda index: delta(index, "text_annotation_delta", annotations=[{"url": "u"}]), st.integers(0, 3)),
    st.builds(lambda index: delta(index, "google_maps_result", result=[1]), st.integers(0, 3)),
    st.builds(lambda index: delta(index, "audio", data="aaaa"), st.integers(0, 3)),
    st.builds(stop, st.integers(0, 3)),
    st.sampled_from([CREATED, completed("requires_action"), completed("incomplete"), {"event_type": "error", "error": {}}]),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(chunks=st.lists(EVENTS, max_size=12))
def test_any_events_in_any_order_keep_the_protocol(chunks: list[Chunk]) -> None:
    found = decoded(*chunks)
    assert [events.from_dict(event.to_dict()) for event in found] == found
    whole = folded(*chunks)
    if whole.status != "incomplete":
        assert (
            rd.Message.from_dict(json.loads(json.dumps(whole.to_message().to_dict()))) == whole.to_message()
        )


# Recognising


@pytest.mark.parametrize(
    "chunk",
    [
        CREATED,
        start(0, "thought"),
        text(0, "a"),
        stop(0),
        completed(),
        BODY,
        {"event_type": "content.delta", "delta": {}},
    ],
)
def test_recognises_its_own(chunk: Chunk) -> None:
    assert recognises(chunk)
    assert rd.providers.detect(chunk) == "gemini-interactions"


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"event_type": "message-start"},
        {"event_type": "text-generation"},
        {"event_type": ""},
        {"type": "step.start"},
        {"status": "x"},
    ],
)
def test_does_not_recognise_others(chunk: Chunk) -> None:
    assert not recognises(chunk)


def test_a_signature_is_a_field_of_its_block() -> None:
    found = decoded(CREATED, *step(0, "thought", delta(0, "thought_signature", signature="s")), completed())
    assert BlockDelta(0, {"signature": "s", "signed_by": "google"}) in found
