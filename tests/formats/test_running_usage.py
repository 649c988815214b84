"""The usage that a stream tells more than once: zeros behind a figure, figures as text, other vendors' names."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd

Json = dict[str, Any]


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


def test_in_a_fold_the_last_usage_counts_whatever_it_says() -> None:
    fold = rd.Fold()
    for usage in (rd.TokenUsage(7, 2), rd.TokenUsage(0, 0)):
        fold.step(rd.events.UsageUpdate(usage))
    assert fold.snapshot.usage == rd.TokenUsage(0, 0)
