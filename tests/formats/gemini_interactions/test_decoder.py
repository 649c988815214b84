"""Google's Interactions API: the beginning and end of a message, other shapes, and malformed chunks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
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
from rxdelta.core.events import (
    BlockDelta,
    MessageFinish,
    ProviderEvent,
    StreamError,
    UsageUpdate,
)
from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder

# The end


def test_a_lost_last_event_is_made_up_for_by_the_status() -> None:
    update = {"event_type": "interaction.status_update", "interaction_id": "v1_1", "status": "completed"}
    assert message(CREATED, *step(0, "model_output", text(0, "Hi")), update).finish_reason == "stop"
    assert folded(CREATED, *step(0, "model_output", text(0, "Hi"))).status == "incomplete"


def test_a_status_may_be_the_name_of_an_event() -> None:
    begun, needed = ({"event_type": f"interaction.{name}"} for name in ("in_progress", "requires_action"))
    chunks = [CREATED, begun, *step(0, "function_call", id="c1", name="f")]
    assert folded(*chunks).status == "incomplete"
    assert message(*chunks, needed).provider_finish_reason == "requires_action"


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


def test_a_signature_is_a_field_of_its_block() -> None:
    found = decoded(CREATED, *step(0, "thought", delta(0, "thought_signature", signature="s")), completed())
    assert BlockDelta(0, {"signature": "s", "signed_by": "google"}) in found


def test_an_empty_piece_of_text_says_nothing() -> None:
    said, again = [text(0, "Hi"), text(0, "!")], [text(0, "Hi"), text(0, ""), text(0, "!")]
    assert decoded(CREATED, *step(0, "model_output", *again), completed()) == decoded(
        CREATED, *step(0, "model_output", *said), completed()
    )
