"""The AI SDK's providers, in Node, as judges of a fake provider's server."""

from __future__ import annotations

from typing import Any

from support.clients import ask

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import FakeProvider

PROVIDERS = {
    "anthropic": "anthropic-messages",
    "google": "gemini",
    "mistral": "mistral",
    "openai.chat": "openai-chat",
    "openai.responses": "openai-responses",
}


def asked(provider: FakeProvider) -> dict[str, list[dict[str, Any]]]:
    """What each of the SDK's providers makes of the stream and of the whole body."""
    with provider.serve() as server:
        lines = [{"provider": name, "url": server.base_url(known)} for name, known in PROVIDERS.items()]
        return dict(zip(PROVIDERS, ask("served.mjs", lines), strict=True))


def test_the_ai_sdk_reads_text_parallel_calls_and_usage() -> None:
    calls: Any = (
        rd.ToolCall(name="weather", arguments={"city": "Zürich"}),
        rd.ToolCall(name="time", arguments={"zone": "CET"}),
    )
    said = {
        "text": "Let me look.",
        "calls": [["weather", {"city": "Zürich"}], ["time", {"zone": "CET"}]],
        "usage": [1, 6],
        "reason": "tool-calls",
    }
    found = asked(FakeProvider(["Let me ", "look.", calls], repeat=True))
    assert found == {name: [said, said] for name in PROVIDERS}


def test_the_ai_sdk_gets_the_sentence_of_an_error_that_comes_first() -> None:
    found = asked(FakeProvider(ev.StreamError("Slow down", "rate_limit_error"), repeat=True))
    assert found == {name: [{"error": "Slow down"}] * 2 for name in PROVIDERS}
