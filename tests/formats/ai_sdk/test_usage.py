"""The usage in a UI message's metadata: what AG-UI's clients get, and the sum over all requests of the message."""

from __future__ import annotations

from typing import Any

import pytest
from support.ai_sdk import DONE, START, STOP, frames_of
from support.shared import recordings

import rxdelta as rd

ev = rd.events

SAME = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_write_input_tokens": "cacheWriteTokens",
}


def of_ai_sdk(events: list[Any], **options: Any) -> dict[str, int]:
    frames = frames_of(events, on_error=str, **options)
    told = [frame["messageMetadata"] for frame in frames if frame is not DONE and "messageMetadata" in frame]
    usage = told[-1].get("usage", {}) if told else {}
    usage = {**usage, **usage.get("inputTokenDetails", {})}
    return {name: usage[theirs] for name, theirs in SAME.items() if theirs in usage}


def of_ag_ui(events: list[Any]) -> dict[str, int]:
    """The usage of all models."""
    encoder = rd.wire.AgUiEncoder(thread_id="t", run_id="r", on_error=str)
    frames = [frame for event in events for frame in encoder.encode(event)]
    told: Any = [*frames, *encoder.close()][-1]
    counts = [one.model_dump(exclude_none=True) for one in told.usage or ()]
    return {
        name: sum(one.get(name, 0) for one in counts) for name in SAME if any(name in one for one in counts)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "wire_format", ["anthropic-messages", "bedrock-converse", "cohere", "gemini", "openai-responses"]
)
def test_it_is_what_ag_ui_tells(wire_format: str) -> None:
    pytest.importorskip("ag_ui.core")
    for case in recordings(wire_format):
        if case.marks:
            continue
        decoder = rd.providers.decoder(wire_format)
        events = [event for chunk in case.values[0] for event in decoder.decode(chunk)] + [*decoder.close()]
        events = [event for event in events if not isinstance(event, ev.StreamError)]
        assert of_ai_sdk(events) == of_ag_ui(events), case.id


def test_the_details_are_counted_in_the_totals() -> None:
    raw = {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 57, "totalTokenCount": 70}
    usage = rd.TokenUsage.from_dict({"input_tokens": 10, "output_tokens": 3, "raw": raw})
    events = [START, ev.UsageUpdate(usage), STOP]
    told = of_ai_sdk(events)
    assert (told["output_tokens"], told["total_tokens"], told["reasoning_tokens"]) == (60, 70, 57)


def test_the_requests_of_one_message_add_up() -> None:
    events: list[list[Any]] = [
        [START, ev.UsageUpdate(rd.TokenUsage(3, 4, cache_read_tokens=1)), STOP],
        [START, ev.UsageUpdate(rd.TokenUsage(5, 6, reasoning_tokens=2)), STOP],
    ]
    first = frames_of(events[0])
    asked = [{"id": "a1", "role": "assistant", "parts": [], "metadata": first[-2]["messageMetadata"]}]
    expected = of_ai_sdk([*events[0], *events[1]])
    assert of_ai_sdk(events[1], messages=asked) == expected
    assert (expected["input_tokens"], expected["output_tokens"], expected["total_tokens"]) == (8, 10, 18)
    broken = frames_of(events[1][:2], ValueError(), messages=asked, on_error=str)
    assert broken[-3]["messageMetadata"]["usage"]["totalTokens"] == 18
