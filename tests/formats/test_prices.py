"""Recorded replies cost what `genai-prices` reads out of the providers' own objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import reactivex as rx
from support.shared import SHARED, recordings

import rxdelta as rd

pytest.importorskip("genai_prices")
from genai_prices import data_snapshot
from genai_prices.types import ModelInfo, Usage

Json = dict[str, Any]

READERS: dict[str, dict[str, tuple[str, str]]] = {
    "anthropic-messages": {"anthropic": ("anthropic", "default"), "bedrock-invoke": ("aws", "anthropic")},
    "bedrock-converse": dict.fromkeys(
        ("ai21", "anthropic", "anthropic?", "invoke:nova", "llama", "mistral", "nova", "titan"), ("aws", "default")
    ),
    "cohere": {"cohere": ("cohere", "default")},
    "gemini": {"google": ("google", "default"), "vertex": ("google", "default")},
    "mistral": {"mistral": ("mistral", "default")},
    "openai-chat": {
        "azure": ("azure", "chat"),
        "cerebras": ("cerebras", "chat"),
        "deepseek": ("deepseek", "chat"),
        "groq": ("groq", "default"),
        "hf-novita": ("huggingface_novita", "chat"),
        "hf-together": ("huggingface_together", "chat"),
        "moonshotai": ("moonshotai", "chat"),
        "openai": ("openai", "chat"),
        "openrouter": ("openrouter", "chat"),
        "perplexity": ("perplexity", "default"),
        "xai": ("x-ai", "chat"),
        "zai": ("zai", "chat"),
    },
    "openai-responses": {
        "azure": ("azure", "responses"),
        "openai": ("openai", "responses"),
        "openrouter": ("openrouter", "default"),
        "xai": ("x-ai", "responses"),
    },
}  # fmt: skip
"""The provider and the form that `genai-prices` reads, by our format and the vendor of a recording."""

DIFFERS = {
    # It reads no iterations. Anthropic's API says that the totals leave out what it took to compact the conversation,
    # and bills it.
    "vercel-anthropic-compaction-1": {"input_tokens": 60385, "output_tokens": 522},
}
"""What is billed beyond what `genai-prices` reads."""

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)  # prices change, some by the hour


def recorded() -> Iterator[Any]:
    index = SHARED / "corpus" / "INDEX.json"
    known = {one["id"]: one for one in json.loads(index.read_text("utf-8"))} if index.exists() else {}
    for wire_format, readers in READERS.items():
        for case in recordings(wire_format):
            chunks, _ = case.values
            told = known.get(f"{wire_format}/{case.id}", {})
            reader = readers.get(told.get("vendor"), ("", ""))
            if chunks is None or (reader[0] and usage_in(chunks)):
                values = (wire_format, chunks, told.get("model") or "unknown", *reader)
                yield pytest.param(*values, id=f"{wire_format}/{case.id}", marks=case.marks)


def usage_in(chunks: list[Any]) -> Json:
    """The provider's usage, which comes whole or in parts, at the top of a chunk or one step below."""
    usage: Json = {}
    for chunk in chunks:
        inner = (
            [value for value in chunk.values() if isinstance(value, dict)] if isinstance(chunk, dict) else []
        )
        for place in (chunk, *inner):
            for name in ("usage", "usageMetadata"):
                found = place.get(name) if isinstance(place, dict) else None
                usage |= {key: value for key, value in (found or {}).items() if value is not None}
    return usage


def bill_of(wire_format: str, chunks: list[Any]) -> rd.core.FrozenDict[int]:
    seen: list[rd.Snapshot] = []
    snapshots = rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas())
    snapshots.subscribe(seen.append, lambda _: None)  # a recorded error comes after the usage
    usage = seen[-1].usage
    assert usage is not None
    return usage.billed


def priced(model: ModelInfo, provider: Any, usage: object) -> Decimal:
    return model.calc_price(usage, provider, genai_request_timestamp=AT).total_price


RECORDED = list(recorded())


@pytest.mark.parametrize(("wire_format", "chunks", "model", "provider_id", "form"), RECORDED)
def test_a_recorded_reply_costs_what_genai_prices_reads(
    wire_format: str,
    chunks: list[Any],
    model: str,
    provider_id: str,
    form: str,
    request: pytest.FixtureRequest,
) -> None:
    snapshot = data_snapshot.get_snapshot()
    (provider,) = (one for one in snapshot.providers if one.id == provider_id)
    usage = usage_in(chunks)
    _, theirs = provider.extract_usage({"usage": usage, "usageMetadata": usage}, api_flavor=form)
    more = next((more for name, more in DIFFERS.items() if request.node.callspec.id.endswith(name)), {})
    theirs = theirs + Usage(**more)

    bill = bill_of(wire_format, chunks)
    (reader,) = (one for one in provider.extractors or () if one.api_flavor == form)
    read = {mapping.dest for mapping in reader.mappings}
    assert {name: bill.get(name, 0) for name in read} == {name: theirs.reported_value(name) for name in read}
    priced_model = provider.find_model(model, all_providers=snapshot.providers)
    if priced_model is not None:
        assert priced(priced_model, provider, bill) == priced(priced_model, provider, theirs)


def test_enough_of_the_recorded_replies_have_a_price() -> None:
    snapshot = data_snapshot.get_snapshot()
    cases = [case.values for case in RECORDED]
    if cases[0][1] is None:
        pytest.skip("no recordings")
    by_id = {provider.id: provider for provider in snapshot.providers}
    found = [
        provider_id
        for _, _, model, provider_id, _ in cases
        if by_id[provider_id].find_model(model, all_providers=snapshot.providers)
    ]
    assert len(found) > 140
    assert len(set(found)) >= 12


def test_a_sum_of_attempts_costs_what_the_attempts_cost() -> None:
    """Also of different providers, whose totals mean different things."""
    snapshot = data_snapshot.get_snapshot()
    provider, model = snapshot.find_provider_model("claude-sonnet-4-5", None, "anthropic", None)
    assert model is not None
    cached = {"input_tokens": 9, "cache_read_input_tokens": 5000, "output_tokens": 7}
    start = {
        "type": "message_start",
        "message": {"id": "m", "role": "assistant", "content": [], "usage": cached},
    }
    (first, *_) = rd.providers.decoder("anthropic-messages").decode(start)
    assert isinstance(first, rd.events.MessageStart)
    assert first.usage is not None
    other = rd.TokenUsage(100, 20, cache_read_tokens=60)
    total = first.usage.add(other)
    assert priced(model, provider, total.billed) == sum(
        priced(model, provider, one.billed) for one in (first.usage, other)
    )
