"""Token counts to an AG-UI client."""

from __future__ import annotations

from typing import Any

import pytest
from support.ag_ui import told
from support.shared import RECORDED, recordings

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]


def test_g11_usage_is_that_of_all_messages_and_attempts_by_model() -> None:
    def turn(model: str, usage: rd.TokenUsage) -> list[rd.Event]:
        return [ev.MessageStart(None, model), ev.UsageUpdate(usage), ev.MessageFinish("stop")]

    frames = told(
        ev.MessageStart(None, "a"),
        ev.UsageUpdate(rd.TokenUsage(1, 1)),
        ev.AttemptReset(1),
        *turn("a", rd.TokenUsage(2, 3)),
        *turn("b", rd.TokenUsage(4, None)),
    )
    assert frames[-1]["usage"] == [
        {"model": "a", "inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        {"model": "b", "inputTokens": 4},
    ]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            rd.TokenUsage(10, 5, {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}),
            {"inputTokens": 16, "outputTokens": 5, "totalTokens": 21, "cachedInputTokens": 4, "cacheWriteInputTokens": 2},
        ),
        (
            rd.TokenUsage(10, 5, {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}, "cache_read_input_tokens": 4}),
            {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedInputTokens": 4},
        ),
        (
            rd.TokenUsage(10, 5, {"promptTokenCount": 10, "thoughtsTokenCount": 7, "cachedContentTokenCount": 3}),
            {"inputTokens": 10, "outputTokens": 12, "totalTokens": 22, "cachedInputTokens": 3, "reasoningTokens": 7},
        ),
        (rd.TokenUsage(2**53, 5), {"outputTokens": 5}),
        (
            rd.TokenUsage(9, 5, reasoning_tokens=3, cache_write_tokens=0, billed={"input_tokens": 99, "output_tokens": 8, "cache_read_tokens": 90}),
            {"inputTokens": 99, "outputTokens": 8, "totalTokens": 107, "cachedInputTokens": 90},
        ),
        (
            rd.TokenUsage(9, 5, reasoning_tokens=3, cache_write_tokens=0),
            {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14, "reasoningTokens": 3, "cacheWriteInputTokens": 0},
        ),
    ],
)  # fmt: skip
def test_g11_usage_counts_as_the_protocol_does(usage: rd.TokenUsage, counts: Json) -> None:
    frames = told(ev.MessageStart(), ev.MessageFinish("stop", usage=usage))
    assert frames[-1]["usage"] == [counts]


TOLD = (ev.MessageStart, ev.UsageUpdate, ev.AttemptReset, ev.MessageFinish, ev.MessageInterrupted)
SDK = {
    "inputTokens": ["inputTokens"],
    "outputTokens": ["outputTokens"],
    "totalTokens": ["totalTokens"],
    "cachedInputTokens": ["inputTokenDetails", "cacheReadTokens"],
    "cacheWriteInputTokens": ["inputTokenDetails", "cacheWriteTokens"],
    "reasoningTokens": ["outputTokenDetails", "reasoningTokens"],
}
"""The counts of AG-UI, and where the AI SDK has them."""


@pytest.mark.parametrize("wire_format", RECORDED)
def test_usage_is_the_same_as_in_the_ai_sdk(wire_format: str) -> None:
    seen = 0
    for case in recordings(wire_format):
        if case.marks:  # there is none
            pytest.skip(case.marks[0].kwargs["reason"])
        decoder = rd.providers.decoder(wire_format)
        decoded = [event for chunk in case.values[0] for event in decoder.decode(chunk)]
        events = [event for event in (*decoded, *decoder.close()) if isinstance(event, TOLD)]
        encoder, sent = rd.wire.AiSdkEncoder(), []
        for event in events:
            sent += encoder.encode(event)
        metadata = [
            one.get("messageMetadata", {}) for one in (*sent, *encoder.close()) if isinstance(one, dict)
        ]
        usage = [one["usage"] for one in metadata if "usage" in one]
        wanted = {name: found for name, path in SDK.items() if (found := _at(usage[-1:], path)) is not None}
        counts: Json = {}
        for entry in told(*events)[-1].get("usage", ()):
            for name in entry.keys() - {"model"}:
                counts[name] = counts.get(name, 0) + entry[name]
        assert counts == wanted, case.id
        seen += bool(counts)
    assert seen or wire_format == "openai-completions"  # of which no usage is recorded


def _at(usage: list[Any], path: list[str]) -> Any:
    for found in usage:
        for name in path:
            found = (found or {}).get(name)
        return found
    return None
