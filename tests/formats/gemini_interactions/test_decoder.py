"""Google's Interactions API: what each step becomes, and that nothing else ever comes out."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared import recordings

import rxdelta as rd
from rxdelta.core import Event, Fold, ProtocolChecker, events
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    StreamError,
    TextDelta,
    UsageUpdate,
)
from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder, recognises

Chunk = dict[str, Any]

CREATED = {
    "event_type": "interaction.created",
    "interaction": {"id": "v1_1", "model": "gemini-x", "status": "in_progress", "object": "interaction"},
}


def completed(status: str = "completed", **fields: Any) -> Chunk:
    interaction = {"id": "v1_1", "status": status, "object": "interaction", **fields}
    return {"event_type": "interaction.completed", "interaction": interaction}


def start(index: Any, type: str, **fields: Any) -> Chunk:
    return {"event_type": "step.start", "index": index, "step": {"type": type, **fields}}


def delta(index: Any, type: str, **fields: Any) -> Chunk:
    return {"event_type": "step.delta", "index": index, "delta": {"type": type, **fields}}


def text(index: int, piece: str) -> Chunk:
    return delta(index, "text", text=piece)


def stop(index: int) -> Chunk:
    return {"event_type": "step.stop", "index": index}


def step(index: int, type: str, *deltas: Chunk, **fields: Any) -> list[Chunk]:
    return [start(index, type, **fields), *({**each, "index": index} for each in deltas), stop(index)]


def decoded(*chunks: Any) -> list[Event]:
    """All events of a stream, checked against the protocol."""
    decoder = GeminiInteractionsDecoder()
    found = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    lifecycle = ProtocolChecker()
    for event in found:
        assert lifecycle.check(event) is None or isinstance(event, StreamError), event
    return found


def folded(*chunks: Any) -> rd.Snapshot:
    fold = Fold()
    for event in decoded(*chunks):
        if isinstance(event, StreamError):
            break
        fold.step(event)
    return fold.snapshot


def message(*chunks: Any) -> rd.Message:
    return folded(*chunks).to_message()


def parts_of(found: rd.Message) -> list[rd.ContentPart]:
    return [block for block in found.blocks if isinstance(block, rd.ContentPart)]


# Texts and thoughts


def test_a_text_from_start_to_finish() -> None:
    found = decoded(CREATED, *step(0, "model_output", text(0, "Hel"), text(0, "lo")), completed())
    assert found == [
        MessageStart("v1_1", "gemini-x"),
        BlockStart(0, {"type": "text", "text": ""}),
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        BlockFinish(0),
        MessageFinish("stop", "completed"),
    ]


def test_a_start_may_hold_the_beginning() -> None:
    content, summary = [{"type": "text", "text": "Hel"}], [{"type": "text", "text": "H"}]
    thought = step(0, "thought", delta(0, "thought_signature", signature="s"), summary=summary, signature="")
    found = message(CREATED, *thought, *step(1, "model_output", text(1, "lo"), content=content), completed())
    assert [(part.type, part.text, part.options) for part in parts_of(found)] == [
        ("reasoning", "H", {"signature": "s"}),
        ("text", "Hello", {}),
    ]


def test_a_thought_may_be_a_signature_and_nothing_else() -> None:
    found = message(CREATED, *step(0, "thought", delta(0, "thought_signature", signature="s")), completed())
    assert [(part.type, part.text, part.options) for part in parts_of(found)] == [
        ("reasoning", "", {"signature": "s"})
    ]


def test_a_summary_is_nested_and_an_empty_signature_takes_none_back() -> None:
    summary = [delta(0, "thought_summary", content={"type": "text", "text": piece}) for piece in ("a", "b")]
    signature = [delta(0, "thought_signature", signature=one) for one in ("", "s", "")]
    found = message(CREATED, *step(0, "thought", *summary, *signature), completed())
    assert [(part.text, part.options) for part in parts_of(found)] == [("ab", {"signature": "s"})]


def test_an_image_in_a_thought_is_a_block_of_its_own() -> None:
    image = delta(0, "thought_summary", content={"type": "image", "mime_type": "image/png", "data": "aaaa"})
    said = [delta(0, "thought_summary", content={"type": "text", "text": piece}) for piece in ("a", "b")]
    found = message(CREATED, *step(0, "thought", said[0], image, said[1]), completed())
    assert [(part.type, part.text) for part in parts_of(found)] == [
        ("reasoning", "a"),
        ("image", "aaaa"),
        ("reasoning", "b"),
    ]
    assert parts_of(found)[1].options["thought"] is True


@pytest.mark.parametrize("type", ["hologram", None, 1, [], {}])
def test_a_content_of_no_known_type_is_kept_whole(type: Any) -> None:
    strange = {"type": type, "data": "QUJD"}
    chunks = [CREATED, *step(0, "model_output", content=[strange]), completed()]
    (part,) = parts_of(message(*chunks))
    assert (part.type, rd.thaw(part.options)["data"]) == ("unsupported", "QUJD")


def test_annotations_are_the_texts_citations() -> None:
    annotation = {
        "type": "url_citation",
        "url": "https://e.org",
        "title": "E",
        "start_index": 0,
        "end_index": 2,
    }
    place = {"type": "file_citation", "document_uri": "gs://x", "file_name": "x"}
    deltas = [text(0, "Hi"), delta(0, "text_annotation_delta", annotations=[annotation, place])]
    (part,) = parts_of(message(CREATED, *step(0, "model_output", *deltas), completed()))
    first, second = part.citations
    assert (first.url, first.title, first.start_index, first.end_index, first.raw) == (
        "https://e.org",
        "E",
        0,
        2,
        annotation,
    )
    assert (second.url, second.title) == ("gs://x", "x")


def test_media_are_blocks_and_audio_goes_on() -> None:
    deltas = [
        text(0, "a"),
        delta(0, "image", mime_type="image/png", data="aaaa"),
        delta(0, "audio", mime_type="audio/l16", data="bbbb", sample_rate=24000),
        delta(0, "audio", mime_type="audio/l16", data="cccc"),
        delta(0, "video", uri="gs://v", mime_type="video/mp4"),
        delta(0, "document", data="dddd"),
        text(0, "b"),
    ]
    found = message(CREATED, *step(0, "model_output", *deltas), completed())
    assert [(part.type, part.text) for part in parts_of(found)] == [
        ("text", "a"), ("image", "aaaa"), ("audio", "bbbbcccc"), ("video", None), ("file", "dddd"), ("text", "b"),
    ]  # fmt: skip
    assert parts_of(found)[2].options == {"mime_type": "audio/l16", "sample_rate": 24000}
    assert parts_of(found)[3].options == {"mime_type": "video/mp4", "url": "gs://v"}


def test_audio_in_pieces_is_one_base64_text() -> None:
    pieces = [delta(0, "audio", mime_type="audio/l16", data=piece) for piece in ("aA==", "aWo=", "aw==")]
    (part,) = parts_of(message(CREATED, *step(0, "model_output", *pieces), completed()))
    assert part.text == "aGlqaw=="


# Calls


def test_arguments_are_text_although_the_start_has_an_object() -> None:
    pieces = [delta(0, "arguments_delta", arguments=piece) for piece in ('{"a": ', "1}")]
    chunks = [
        CREATED,
        *step(0, "function_call", *pieces, id="c1", name="f", arguments={}, signature=""),
        completed("requires_action"),
    ]
    (call,) = message(*chunks).tool_calls
    assert (call.call_id, call.name, call.arguments, call.metadata) == ("c1", "f", {"a": 1}, {})
    assert message(*chunks).finish_reason == "tool_use"


def test_a_call_with_arguments_is_finished_at_its_stop() -> None:
    decoder = GeminiInteractionsDecoder()
    for chunk in [
        CREATED,
        start(0, "function_call", id="c1", name="f", arguments={}),
        delta(0, "arguments_delta", arguments="{}"),
    ]:
        decoder.decode(chunk)
    assert decoder.decode(stop(0)) == [BlockFinish(0)]


def test_arguments_may_come_whole() -> None:
    (call,) = message(
        CREATED, *step(0, "function_call", id="c1", name="f", arguments={"a": 1}), completed()
    ).tool_calls
    assert call.arguments == {"a": 1}
    whole = delta(0, "function_call", arguments={"a": 2}, signature="s")
    (call,) = message(
        CREATED, *step(0, "function_call", whole, id="c1", name="f", arguments={}), completed()
    ).tool_calls
    assert (call.arguments, call.metadata) == ({"a": 2}, {"signature": "s"})


def test_a_call_without_an_id_gets_one() -> None:
    (call,) = message(CREATED, *step(0, "function_call", name="f"), completed()).tool_calls
    assert (call.call_id, call.metadata["synthetic_id"]) == ("v1_1-0", True)


def test_arguments_may_bring_the_id_and_signature_of_their_call() -> None:
    piece = delta(0, "arguments_delta", id="c1", signature="s", arguments='{"a": 1}')
    (call,) = message(CREATED, *step(0, "function_call", piece, name="f"), completed()).tool_calls
    assert (call.call_id, call.arguments, call.metadata["signature"]) == ("c1", {"a": 1}, "s")


def test_a_call_without_arguments_waits_for_what_follows() -> None:
    chunks = [CREATED, *step(0, "function_call", id="c1", name="f", arguments={})]
    assert folded(*chunks).tool_calls[0].status == "incomplete"
    (call,) = message(*chunks, *step(1, "model_output"), completed()).tool_calls
    assert (call.status, call.arguments) == ("complete", {})
    assert message(*chunks, completed("requires_action")).tool_calls[0].status == "complete"
    late = delta(0, "arguments_delta", arguments='{"a": 1}')
    assert message(*chunks, late, completed()).tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("status", ["incomplete", "budget_exceeded", "cancelled"])
@pytest.mark.parametrize("arguments", ["", '{"a": '])
def test_a_call_that_was_cut_off_is_never_one_to_run(status: str, arguments: str) -> None:
    pieces = [delta(0, "arguments_delta", arguments=arguments)]
    found = message(
        CREATED, *step(0, "function_call", *pieces, id="c1", name="f", arguments={}), completed(status)
    )
    assert found.tool_calls == ()
    assert len(found.invalid_tool_calls) == 1


# The provider's own tools


def test_a_server_tool_and_its_result_also_after_the_output() -> None:
    found = message(
        CREATED,
        *step(0, "model_output", text(0, "Found it.")),
        *step(
            1,
            "google_search_call",
            delta(1, "google_search_call", arguments={"queries": ["q"]}, signature="s"),
            id="g1",
            search_type="web_search",
        ),
        *step(
            2,
            "google_search_result",
            delta(2, "google_search_result", result=[{"search_suggestions": "x"}], is_error=False),
            delta(2, "google_search_result", result=[{"search_suggestions": "y"}]),
            call_id="g1",
        ),
        completed(),
    )
    _, call, result = found.blocks
    assert isinstance(call, rd.ToolCall)
    assert (call.type, call.call_id, call.name, call.arguments) == (
        "server_tool_call",
        "g1",
        "google_search",
        {"queries": ["q"]},
    )
    assert call.metadata == {
        "provider_type": "google_search_call",
        "signature": "s",
        "search_type": "web_search",
    }
    assert isinstance(result, rd.ContentPart)
    assert result.options == {
        "tool_call_id": "g1",
        "provider_type": "google_search_result",
        "output": [{"search_suggestions": "x"}, {"search_suggestions": "y"}],
        "status": "success",
    }
    assert found.finish_reason == "stop"


def test_the_result_of_code_is_a_text_that_goes_on() -> None:
    result = [delta(0, "code_execution_result", result=piece) for piece in ("a", "b", "c")]
    (part,) = parts_of(
        message(CREATED, *step(0, "code_execution_result", *result, call_id="x", is_error=True), completed())
    )
    assert (part.options["output"], part.options["status"]) == ("abc", "error")


def test_a_result_may_say_only_later_which_call_it_is_of() -> None:
    piece = delta(0, "google_search_result", call_id="s1", result=[{"title": "Tides"}])
    (part,) = parts_of(message(CREATED, *step(0, "google_search_result", piece), completed()))
    assert part.options["tool_call_id"] == "s1"


def test_a_result_comes_whole_in_its_start() -> None:
    (part,) = parts_of(
        message(CREATED, *step(0, "url_context_result", call_id="x", result=[1], signature="s"), completed())
    )
    assert part.options == {
        "tool_call_id": "x",
        "provider_type": "url_context_result",
        "output": [1],
        "signature": "s",
    }


def test_a_tool_of_an_mcp_server_has_a_name() -> None:
    fields = {"id": "m1", "name": "roll", "server_name": "dice", "arguments": {"n": 1}}
    (call,) = (
        block for block in message(CREATED, *step(0, "mcp_server_tool_call", **fields), completed()).blocks
    )
    assert isinstance(call, rd.ToolCall)
    assert (call.type, call.name, call.arguments) == ("server_tool_call", "roll", {"n": 1})
    assert call.metadata == {"provider_type": "mcp_server_tool_call", "server_name": "dice"}


def test_steps_that_the_client_put_in_are_no_part_of_the_reply() -> None:
    put_in = step(0, "user_input", content=[{"type": "text", "text": "Hi"}])
    found = decoded(CREATED, *put_in, *step(1, "function_result", call_id="c", result="x"), completed())
    assert [event.name for event in found if isinstance(event, ProviderEvent)] == [
        "user_input",
        "function_result",
    ]
    assert message(CREATED, *put_in, completed()).blocks == ()


def test_an_unknown_step_is_kept_whole_and_its_deltas_pass() -> None:
    change = delta(0, "hologram_delta", depth=3)
    found = decoded(CREATED, *step(0, "hologram", change, depth=2), completed())
    assert ProviderEvent("google", "hologram_delta", change) in found
    (part,) = parts_of(message(CREATED, *step(0, "hologram", change, depth=2), completed()))
    assert part.options["depth"] == 2


# The end


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("completed", "stop"),
        ("requires_action", "stop"),  # no call came
        ("incomplete", "length"),
        ("budget_exceeded", "length"),
        ("cancelled", "stop"),
        ("requires_continuation", "stop"),
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
        (completed("failed"), StreamError("the interaction failed", "failed")),
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
    with pytest.raises(rd.MalformedChunkError) as caught:
        GeminiInteractionsDecoder().decode(chunk)
    assert (caught.value.wire_format, caught.value.path) == ("gemini-interactions", path)


def test_a_hostile_index_is_refused() -> None:
    with pytest.raises(rd.LimitExceededError):
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
    assert BlockDelta(0, {"signature": "s"}) in found
