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
