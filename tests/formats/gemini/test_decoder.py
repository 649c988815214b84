"""Gemini's generateContent: the envelope, media, the end and usage, and that no JSON gives anything else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from support.gemini import STOP, Chunk, blocks, call, decoded, folded, message, parts_of, piece, said, text
from support.shared import recordings

import rxdelta as rd
from rxdelta.core.events import (
    MessageFinish,
    MessageStart,
    ProviderEvent,
    StreamError,
    UsageUpdate,
)
from rxdelta.formats.gemini.decoder import GeminiDecoder

# Media


def test_an_image_among_the_thoughts_says_so() -> None:
    (part,) = parts_of(
        message(said({"inlineData": {"mimeType": "image/png", "data": "aaaa"}, "thought": True}), STOP)
    )
    assert (part.type, part.options["thought"]) == ("image", True)


def test_audio_that_is_no_base64_is_passed_on_as_it_is() -> None:
    chunks = [said({"inlineData": {"mimeType": "audio/x", "data": data}}) for data in ("YQ==", "!!=", "bb")]
    assert parts_of(message(*chunks, STOP))[0].text == "YQ==!!=bb"


def test_audio_of_another_kind_is_another_block() -> None:
    first, second = ({"inlineData": {"mimeType": f"audio/{kind}", "data": "aaaa"}} for kind in ("mp3", "wav"))
    assert [block[0] for block in blocks(said(first, first, second), STOP)] == ["audio", "audio"]


# The end


@pytest.mark.parametrize(
    ("number", "word"), [(1, "STOP"), (2, "MAX_TOKENS"), (3, "SAFETY"), (8, "SPII"), (99, "99")]
)
def test_enums_as_integers(number: int, word: str) -> None:
    assert message(said(text("Hi"), finishReason=number)).provider_finish_reason == word


@pytest.mark.parametrize("nothing", [None, "", 0, "FINISH_REASON_UNSPECIFIED"])
def test_a_reason_that_says_nothing_is_no_end(nothing: Any) -> None:
    assert folded(said(text("Hi"), finishReason=nothing)).status == "incomplete"


def test_an_id_and_a_model_that_come_late_are_the_messages() -> None:
    first = {"promptFeedback": {"safetyRatings": []}}
    reply = folded(first, {**said(text("Hi"), reason="STOP"), "responseId": "r1", "modelVersion": "m"})
    assert (reply.id, reply.model) == ("r1", "m")


def test_citations_held_back_are_told_when_a_stream_is_cut_off() -> None:
    cited = [said(text("a"), citationMetadata={"citations": [{"uri": f"u{n}"}]}) for n in range(30)]
    (part,) = folded(*cited).blocks
    assert isinstance(part, rd.ContentPart)
    assert len(part.citations) == 30


def test_what_else_a_content_says_is_kept() -> None:
    strange = {"candidates": [{"content": {"parts": [text("Hi")], "mood": "calm"}, "finishReason": "STOP"}]}
    assert folded(strange).metadata["mood"] == "calm"
    later = {"candidates": [{"content": {"parts": [text("!")], "mood": "merry"}}]}
    assert folded(said(text("Hi")), later, STOP).metadata["mood"] == "merry"


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", 4])
def test_a_prompt_that_was_refused_is_a_whole_reply(reason: Any) -> None:
    found = message({"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 3}})
    assert (found.finish_reason, found.provider_finish_reason, found.blocks) == ("content_filter", None, ())
    assert found.metadata == {"promptFeedback": {"blockReason": reason}}
    assert found.usage is not None
    assert found.usage.input_tokens == 3


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"},
            StreamError("Overloaded", "UNAVAILABLE", "503"),
        ),
        ({"message": "x"}, StreamError("x")),
        ("gone", StreamError("gone")),
    ],
)
def test_an_error_ends_the_stream(error: Any, told: StreamError) -> None:
    found = decoded(said(text("Hi")), {"error": error}, said(text("!"), reason="STOP"))
    assert found[-1] == told
    assert not any(isinstance(event, MessageFinish) for event in found)


def test_an_error_makes_no_call_complete() -> None:
    found = folded(said(call("f", willContinue=True), reason="STOP"), {"error": {"message": "x"}})
    assert found.tool_calls == ()


def test_what_is_json_but_no_response_passes() -> None:
    strange = {"this": {"is": {"not": "a response"}}}
    assert decoded(strange) == [ProviderEvent("google", "chunk", strange)]
    assert blocks(said(text("a")), strange, said(text("b"), reason="STOP")) == [("text", "ab")]


# Usage


def usage(**figures: Any) -> Chunk:
    return {**said(text("a")), "usageMetadata": figures}


def test_usage_is_told_on_change() -> None:
    found = decoded(usage(promptTokenCount=1), usage(promptTokenCount=1), usage(promptTokenCount=2), STOP)
    assert [event.usage.input_tokens for event in found if isinstance(event, UsageUpdate)] == [2]
    assert isinstance(found[0], MessageStart)
    assert found[0].usage is not None


def test_usage_in_a_malformed_chunk_is_told_with_the_next() -> None:
    decoder = GeminiDecoder()
    decoder.decode(said(text("Hi")))
    with pytest.raises(rd.errors.MalformedChunkError):
        decoder.decode({"candidates": [[]], "usageMetadata": {"promptTokenCount": 3}})
    found = [*decoder.decode(STOP), *decoder.close()]
    assert [event.usage.input_tokens for event in found if isinstance(event, UsageUpdate)] == [3]


# Metadata


def test_metadata_that_is_empty_erases_nothing() -> None:
    found = message(
        said(text("a"), groundingMetadata={"webSearchQueries": ["q"]}, safetyRatings=[{"category": "X"}]),
        said(text("b"), groundingMetadata={}, safetyRatings=[], urlContextMetadata={"urlMetadata": [1]}),
        said(reason="STOP", groundingMetadata={"groundingChunks": []}, avgLogprobs=-0.5),
    )
    assert found.metadata == {
        "groundingMetadata": {"webSearchQueries": ["q"]},
        "safetyRatings": [{"category": "X"}],
        "urlContextMetadata": {"urlMetadata": [1]},
        "avgLogprobs": -0.5,
    }


def test_citations_are_the_texts() -> None:
    one, two = (
        {"startIndex": 1, "endIndex": 3, "uri": "https://e.org", "title": "E"},
        {"endIndex": 9, "license": "mit"},
    )
    found = message(
        said(text("a"), citationMetadata={"citations": [one]}),
        said(text("b"), citationMetadata={"citationSources": [two]}, reason="STOP"),
    )
    first, second = parts_of(found)[0].citations
    assert (first.url, first.title, first.start_index, first.end_index, first.raw) == (
        "https://e.org",
        "E",
        1,
        3,
        one,
    )
    assert second.raw == two


def test_citations_without_a_text_are_kept() -> None:
    found = message(said(citationMetadata={"citations": [{"endIndex": 9}]}, reason="RECITATION"))
    assert found.metadata == {"citationMetadata": {"citations": [{"endIndex": 9}]}}


def test_what_a_text_rests_on_is_cited() -> None:
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://e.org", "title": "E"}},
            {"retrievedContext": {"text": "So."}},
        ],
        "groundingSupports": [
            {"segment": {"endIndex": 2, "text": "ab"}, "groundingChunkIndices": [0, 1, 7, -1]},
            "nonsense",
        ],
    }
    found = message(said(text("ab"), groundingMetadata=grounding), STOP)
    first, second = parts_of(found)[0].citations
    assert (first.url, first.title, first.end_index, first.cited_text) == ("https://e.org", "E", 2, None)
    assert (second.url, second.cited_text) == (None, "So.")
    assert found.metadata["groundingMetadata"] == grounding


def test_logprobs_go_on() -> None:
    found = message(
        said(text("a"), logprobsResult={"chosenCandidates": [{"token": "a"}], "logProbabilitySum": -1}),
        said(text("b"), logprobsResult={"chosenCandidates": [{"token": "b"}], "logProbabilitySum": -2}),
        STOP,
    )
    assert found.metadata["logprobsResult"] == {
        "chosenCandidates": [{"token": "a"}, {"token": "b"}],
        "logProbabilitySum": -2,
    }


# Other shapes


WHOLE = {
    **said(
        text("Hm.", thought=True),
        text("Hi", thoughtSignature="c2ln"),
        call("f", args={"a": 1}),
        reason="STOP",
        index=0,
    ),
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    "modelVersion": "gemini-x",
    "responseId": "r1",
}


def dumps(chunk: Chunk) -> list[Any]:
    """The chunk as the SDK has it, and as its objects are written down."""
    types = pytest.importorskip("google.genai.types")
    response = types.GenerateContentResponse._from_response(response=chunk, kwargs={})
    return [
        response,
        response.model_dump(),
        response.model_dump(exclude_none=True),
        response.to_json_dict(),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        [WHOLE],
        [
            said(call("f", willContinue=True)),
            said(piece("$.n", numberValue=3)),
            said(piece("$.a_b", stringValue="x")),
            said(piece("$.nothing", nullValue="NULL_VALUE")),
            said(call()),
            STOP,
        ],
        [said(call("f", args={"snake_case": {"also_here": 1}})), STOP],
        [said({"inlineData": {"mimeType": "image/png", "data": "+/+/"}, "thoughtSignature": "+/+/"}), STOP],
        [said({"toolCall": {"toolType": "URL_CONTEXT", "args": {"a_b": 1}}}), STOP],
        [{"promptFeedback": {"blockReason": "SAFETY"}}],
        [{**said(text("a"), reason="STOP"), "createTime": "2025-07-28T16:02:47.774462Z"}],
    ],
)
def test_the_sdks_objects_and_their_dumps_are_read_as_what_they_were_made_of(chunks: list[Chunk]) -> None:
    wanted = message(*chunks)
    ways = zip(*(dumps(copy.deepcopy(chunk)) for chunk in chunks), strict=True)
    assert [message(*way) for way in ways] == [wanted] * 4


@pytest.mark.parametrize(("chunks", "expected"), recordings("gemini"))
def test_recordings_as_the_sdks_objects_are_the_same_message(chunks: list[Chunk], expected: Chunk) -> None:
    """Compared with what the SDK leaves of a chunk, as it drops the fields that it doesn't know."""
    if any("error" in chunk for chunk in chunks):
        pytest.skip("its client raises")
    left = copy.deepcopy(chunks)
    ways = list(zip(*map(dumps, left), strict=True))
    assert [folded(*way) for way in ways] == [folded(*left)] * 4


# What is malformed


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ("text", ""),
        (None, ""),
        ([[]], ""),
        ({"candidates": {}}, "candidates"),
        ({"candidates": ["x"]}, "candidates[0]"),
        ({"candidates": [{}, {"content": 1}]}, "candidates[1].content"),
        ({"candidates": [{"index": "0"}]}, "candidates[0].index"),
        ({"candidates": [{"index": -1}]}, "candidates[0].index"),
        ({"candidates": [{"content": {"parts": "x"}}]}, "candidates[0].content.parts"),
        (said(1), "candidates[0].content.parts[0]"),
        (said(text(1)), "candidates[0].content.parts[0].text"),  # type: ignore[arg-type]
        (said(text("a", thoughtSignature=1)), "candidates[0].content.parts[0].thoughtSignature"),
        (said({"functionCall": []}), "candidates[0].content.parts[0].functionCall"),
        (said(call("f", args="{}")), "candidates[0].content.parts[0].functionCall.args"),
        (said(call("f", partialArgs=[1])), "candidates[0].content.parts[0].functionCall.partialArgs[0]"),
        (
            said(piece("$.a", numberValue="NaN")),
            "candidates[0].content.parts[0].functionCall.partialArgs[0].numberValue",
        ),
        (said({"inlineData": {"data": 1}}), "candidates[0].content.parts[0].inlineData.data"),
        (said(finishReason=[]), "candidates[0].finishReason"),
        (said(citationMetadata=[]), "candidates[0].citationMetadata"),
        ({"usageMetadata": 3}, "usageMetadata"),
        ({"promptFeedback": "no"}, "promptFeedback"),
    ],
)
def test_a_malformed_chunk_names_the_place(chunk: Any, path: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        GeminiDecoder().decode(chunk)
    assert (caught.value.wire_format, caught.value.path) == ("gemini", path)


def test_a_hostile_index_is_refused() -> None:
    with pytest.raises(rd.errors.LimitExceededError):
        GeminiDecoder().decode(said(text("a"), index=2**31))
    with pytest.raises(rd.errors.LimitExceededError):
        GeminiDecoder().decode(
            said(call("f", partialArgs=[{"jsonPath": f"$.a[{'9' * 5000}]", "numberValue": 1}]))
        )
