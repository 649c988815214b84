"""The usage that a stream tells more than once: zeros behind a figure, figures as text, other vendors' names."""

from __future__ import annotations

import json
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st
from reactivex import operators as ops
from support.cost import lines_run
from support.shared import recordings

import rxdelta as rd

Json = dict[str, Any]


class Unusual(Json):
    """A chunk that is no plain `dict`, as an SDK may have it. Decoders read all of it, whatever it is."""


def sent_along(wire_format: str, usages: list[Any]) -> list[Json]:
    """A reply whose every chunk has a usage, or none where that is `None`; the first and the last have none."""

    def chunk(**more: Any) -> Json:
        if wire_format == "gemini":
            return {"candidates": [{"content": {"parts": [{"text": "w"}]}, **more}], "responseId": "r"}
        return {
            "id": "c",
            "choices": [{"index": 0, "delta": {"content": "w"}, "finish_reason": None, **more}],
        }

    name = "usageMetadata" if wire_format == "gemini" else "usage"
    along = [chunk() | ({} if usage is None else {name: usage}) for usage in usages]
    return [
        chunk(),
        *along,
        chunk(**{"finishReason" if wire_format == "gemini" else "finish_reason": "stop"}),
    ]


def chat(*usages: Json) -> list[Json]:
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
    return [
        {"id": "c", "choices": [choice]},
        *({"id": "c", "choices": [choice], "usage": one} for one in usages),
    ]


def anthropic(first: Json, *more: Json) -> list[Json]:
    return [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": first}},
        *({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": one} for one in more),
        {"type": "message_stop"},
    ]


def gemini(*usages: Json) -> list[Json]:
    part = {"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}
    return [{"candidates": [part], "usageMetadata": one} for one in usages]


def completions(*usages: Json) -> list[Json]:
    choice = {"index": 0, "text": "x", "finish_reason": "stop"}
    return [{"id": "c", "object": "text_completion", "choices": [choice], "usage": one} for one in usages]


def bedrock(*usages: Json) -> list[Json]:
    return [
        {"messageStart": {"role": "assistant"}},
        *({"metadata": {"usage": one}} for one in usages),
        {"messageStop": {"stopReason": "end_turn"}},
    ]


def openai(given: Any, made: Any, **more: Any) -> Json:
    return {"prompt_tokens": given, "completion_tokens": made, **more}


def claude(given: Any, made: Any, **more: Any) -> Json:
    return {"input_tokens": given, "output_tokens": made, **more}


# chunks -> input, output, what is billed beyond them
CASES: dict[str, tuple[str, list[Json], tuple[int, int], Json]] = {
    "zeros behind a figure": ("openai-chat", chat(openai(7, 2), openai(0, 0, total_tokens=0)), (7, 2), {}),
    "a zero beside a figure": ("openai-chat", chat(openai(7, 2), openai(0, 5)), (7, 5), {}),
    "a smaller figure": ("openai-chat", chat(openai(7, 9), openai(6, 2)), (6, 2), {}),
    "zeros as text": ("openai-chat", chat(openai(7, 2), openai("0", "0")), (7, 2), {}),
    "nulls": ("openai-chat", chat(openai(7, 2), openai(None, None)), (7, 2), {}),
    "zeros in the details": (
        "openai-chat",
        chat(openai(7, 2, prompt_tokens_details={"cached_tokens": 5}), openai(7, 3, prompt_tokens_details={"cached_tokens": 0})),
        (7, 3), {"cache_read_tokens": 5},
    ),
    "completions": ("openai-completions", completions(openai(7, 2), openai(0, 0)), (7, 2), {}),
    "a zero in message_delta": ("anthropic-messages", anthropic(claude(5, 1), claude(0, 9)), (5, 9), {}),
    "a zero in the first": ("anthropic-messages", anthropic(claude(0, 0), claude(5, 9)), (5, 9), {}),
    "gemini": (
        "gemini",
        gemini({"promptTokenCount": 7, "candidatesTokenCount": 2}, {"promptTokenCount": 0, "candidatesTokenCount": 3}),
        (7, 3), {},
    ),
    "bedrock": ("bedrock-converse", bedrock({"inputTokens": 7, "outputTokens": 2}, {"inputTokens": 0, "outputTokens": 0}), (7, 2), {}),
    "figures as text": ("openai-chat", chat(openai("7", "2")), (7, 2), {}),
    "figures as text, of Anthropic": ("anthropic-messages", anthropic(claude("7", "1"), {"output_tokens": "2"}), (7, 2), {}),
    "Anthropic's names in a chat": ("openai-chat", chat(claude(7, 2)), (7, 2), {}),
    "Anthropic's names in a chat, with a cache": ("openai-chat", chat(claude(7, 2, cache_read_input_tokens=5)), (7, 2), {"input_tokens": 12, "cache_read_tokens": 5}),
    "both names in a chat, one with zeros": ("openai-chat", chat(openai(0, 0, **claude(7, 2))), (7, 2), {}),
    "one of the names": ("openai-chat", chat({"prompt_tokens": 7, "output_tokens": 2}), (7, 2), {}),
    "Gemini's names in a chat": ("openai-chat", chat({"promptTokenCount": 7, "candidatesTokenCount": 2}), (7, 2), {}),
    "OpenAI's names in Anthropic's format": ("anthropic-messages", anthropic({}, openai(7, 2, prompt_tokens_details={"cached_tokens": 5})), (7, 2), {"cache_read_tokens": 5}),
    "OpenAI's names behind Anthropic's": ("anthropic-messages", anthropic(claude(7, 0), openai(7, 2)), (7, 2), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_the_stream_says_is_counted(case: str) -> None:
    wire_format, chunks, (given, made), billed = CASES[case]
    snapshot = rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas(), ops.last()).run()
    usage = snapshot.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (given, made)
    assert usage.billed == {"input_tokens": given, "output_tokens": made} | billed


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        ("openai-chat", chat(openai(7, 2), openai(7, 2), openai(0, 0), openai(None, 2))),
        ("gemini", gemini({"promptTokenCount": 7}, {"promptTokenCount": 7}, {"promptTokenCount": 0})),
        ("anthropic-messages", anthropic(claude(5, 1), {"input_tokens": 0}, {"output_tokens": None}, {})),
    ],
)
def test_a_usage_that_says_nothing_new_is_not_told(wire_format: str, chunks: list[Json]) -> None:
    events: list[rd.Event] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format)).subscribe(events.append)
    assert len([event for event in events if isinstance(event, rd.events.UsageUpdate)]) <= 1


# Usages as they come one behind the other. A count may fall, vanish, become a text or a list, and come again.
NAMES = (
    "prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "citation_tokens", "num_search_queries",
    "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", "input_tokens",
    "output_tokens", "unknown",
)  # fmt: skip
FIGURES = st.one_of(
    st.integers(0, 30), st.sampled_from([0, 7, "7", "0", 7.0, 0.5, -1, 2**60, True, None, "", "x"])
)
ENTRIES = st.fixed_dictionaries(
    {"modality": st.sampled_from(["TEXT", "AUDIO", "DOCUMENT"]), "tokenCount": FIGURES}
)
DETAILS = st.dictionaries(
    st.sampled_from(["cached_tokens", "reasoning_tokens", "audio_tokens", "deeper"]), FIGURES
)
USAGE = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NAMES, FIGURES),
        **dict.fromkeys(["prompt_tokens_details", "completion_tokens_details"], st.one_of(DETAILS, FIGURES)),
        **dict.fromkeys(
            ["promptTokensDetails", "candidatesTokensDetails"], st.one_of(st.lists(ENTRIES), DETAILS, FIGURES)
        ),
    },
)


# Fields that may come late.
LATE: dict[str, list[Json]] = {
    "gemini": [{"modelVersion": "m"}, {"createTime": "now"}],
    "openai-chat": [{"model": "m"}, {"created": 7}, {"system_fingerprint": "f"}],
}


@st.composite
def usages(draw: st.DrawFn) -> list[Any]:
    """Most change only some figures of the one before."""
    told: list[Any] = []
    for changes in draw(st.lists(USAGE, min_size=1, max_size=8)):
        before = told[-1] if told else None
        told.append({**before, **changes} if before and draw(st.booleans()) else changes)
        if draw(st.integers(0, 9)) == 0:
            told.append(None)
    return told


def events_of(wire_format: str, chunks: list[Json]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [event for chunk in chunks for event in decoder.decode(chunk)] + [*decoder.close()]


def as_written(event: rd.Event) -> str:
    """The event with the order of its keys, and with the bill."""
    usage = getattr(event, "usage", None)
    return json.dumps([event.to_dict(), usage and usage.billed])


@pytest.mark.parametrize("wire_format", ["gemini", "openai-chat"])
@settings(max_examples=60)
@given(told=usages())
def test_a_usage_that_comes_with_every_chunk_is_that_of_its_object_read_afresh(
    wire_format: str, told: list[Any]
) -> None:
    for event in events_of(wire_format, sent_along(wire_format, told)):
        usage = getattr(event, "usage", None)
        if usage is not None:
            (afresh,) = (
                found.usage
                for found in events_of(wire_format, sent_along(wire_format, [rd.core.thaw(usage.raw)]))
                if isinstance(found, (rd.events.MessageStart, rd.events.UsageUpdate))
                and found.usage is not None
            )
            assert usage == afresh
            assert json.dumps(usage.billed) == json.dumps(afresh.billed)


@pytest.mark.parametrize("wire_format", ["gemini", "openai-chat"])
@settings(max_examples=60)
@given(told=usages(), late=st.integers(1, 4))
def test_a_short_way_to_the_usage_leads_to_the_same_events(
    wire_format: str, told: list[Any], late: int
) -> None:
    chunks = sent_along(wire_format, told)
    for chunk, field in zip(chunks[late:-1], LATE[wire_format]):
        if chunk.get("usage") or chunk.get("usageMetadata"):
            chunk |= field
    unusual = events_of(wire_format, [Unusual(chunk) for chunk in chunks])
    assert [*map(as_written, events_of(wire_format, chunks))] == [*map(as_written, unusual)]


@pytest.mark.parametrize(("chunks", "told"), recordings("openai-chat") + recordings("mistral"))
def test_recorded_chunks_with_a_usage_each_lead_to_the_same_events(chunks: list[Json], told: Any) -> None:
    chunks = [
        {**chunk, "usage": chunk.get("usage") or {"prompt_tokens": 7, "completion_tokens": number}}
        if chunk.get("choices")
        else chunk
        for number, chunk in enumerate(chunks)
    ]
    unusual = events_of("openai-chat", [Unusual(chunk) for chunk in chunks])
    assert [*map(as_written, events_of("openai-chat", chunks))] == [*map(as_written, unusual)]


@pytest.mark.parametrize(
    ("wire_format", "count", "details"),
    [
        ("gemini", "candidatesTokenCount", "promptTokensDetails"),
        ("openai-chat", "completion_tokens", "prompt_tokens_details"),
    ],
)
def test_what_a_usage_repeats_is_not_read_again(wire_format: str, count: str, details: str) -> None:
    def lines(size: int) -> int:
        many = [{"modality": "TEXT", "tokenCount": 1}] * size
        chunks = sent_along(wire_format, [{count: n, details: many} for n in range(1, 12)])
        decoder = rd.providers.decoder(wire_format)
        for chunk in chunks[:3]:
            decoder.decode(chunk)
        return lines_run(lambda: [decoder.decode(chunk) for chunk in chunks[3:-1]])

    assert lines(1000) < 1.5 * lines(1)


def test_in_a_fold_the_last_usage_counts_whatever_it_says() -> None:
    fold = rd.Fold()
    for usage in (rd.TokenUsage(7, 2), rd.TokenUsage(0, 0)):
        fold.step(rd.events.UsageUpdate(usage))
    assert fold.snapshot.usage == rd.TokenUsage(0, 0)
