"""The formats that have OpenAI's choices keep the same rules."""

from __future__ import annotations

from typing import Any

import pytest

import rxdelta as rd

Chunk = dict[str, Any]

DIALECTS = [
    pytest.param("openai-chat", "openai", {"delta": {"content": "a"}}, id="openai-chat"),
    pytest.param("mistral", "mistral", {"delta": {"content": "a"}}, id="mistral"),
    pytest.param("openai-completions", "openai", {"text": "a"}, id="openai-completions"),
]


def chunk(text: Chunk, reason: str | None = None) -> Chunk:
    return {"id": "c", "model": "m", "choices": [{"index": 0, **text, "finish_reason": reason}]}


def decoded(wire_format: str, *chunks: Chunk) -> list[rd.events.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for one in chunks for event in decoder.decode(one)), *decoder.close()]


@pytest.mark.parametrize(("wire_format", "provider", "text"), DIALECTS)
def test_a_finish_reason_that_contradicts_the_first_is_passed_on(
    wire_format: str, provider: str, text: Chunk
) -> None:
    contradicting = chunk(text, "length")
    found = decoded(wire_format, chunk(text, "stop"), contradicting, chunk(text, "stop"))
    passed_on = [event for event in found if isinstance(event, rd.events.ProviderEvent)]
    assert [(event.provider, event.payload["choices"]) for event in passed_on] == [
        (provider, contradicting["choices"])
    ]
    assert isinstance(found[-1], rd.events.MessageFinish)
    assert found[-1].reason == "stop"


@pytest.mark.parametrize(("wire_format", "provider", "text"), DIALECTS)
def test_metadata_of_a_reply_that_failed_is_passed_on_under_the_providers_name(
    wire_format: str, provider: str, text: Chunk
) -> None:
    *_, passed_on, error = decoded(wire_format, {**chunk(text, "error"), "extra": 1})
    assert isinstance(passed_on, rd.events.ProviderEvent)
    assert (passed_on.provider, passed_on.payload) == (provider, {"extra": 1})
    assert isinstance(error, rd.events.StreamError)
