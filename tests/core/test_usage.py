"""A usage: its counts, what is billed, sums, and its stored forms."""

from __future__ import annotations

from typing import Any

import pytest

import rxdelta as rd
from rxdelta.core import InvalidValueError

ev = rd.events
DETAILS = (
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "input_audio_tokens",
    "output_audio_tokens",
)
FULL = rd.TokenUsage(
    20,
    9,
    {"n": 1},
    cache_read_tokens=8,
    cache_write_tokens=0,
    reasoning_tokens=3,
    input_audio_tokens=2,
    output_audio_tokens=1,
)


def test_what_is_billed_has_the_names_of_genai_prices() -> None:
    assert rd.TokenUsage().billed == {}
    assert FULL.billed == {
        "input_tokens": 20,
        "output_tokens": 9,
        "cache_read_tokens": 8,
        "cache_write_tokens": 0,
        "output_reasoning_tokens": 3,
        "input_audio_tokens": 2,
        "output_audio_tokens": 1,
    }
    assert rd.TokenUsage(9, 1, billed={"input_tokens": 99}).billed == {"input_tokens": 99}


@pytest.mark.parametrize("wrong", [{"input_tokens": -1}, {"input_tokens": None}, {"x": 1.5}, {"x": "1"}])
def test_what_is_billed_are_counts(wrong: Any) -> None:
    with pytest.raises(InvalidValueError, match="billed"):
        rd.TokenUsage(1, 2, billed=wrong)


def test_a_sum_knows_what_either_side_knows() -> None:
    total = FULL.add(rd.TokenUsage(1, None, cache_read_tokens=2))
    assert (total.cache_read_tokens, total.cache_write_tokens, total.reasoning_tokens) == (10, 0, 3)
    assert rd.TokenUsage(1, 2).add(rd.TokenUsage(3, 4)).cache_read_tokens is None
    assert rd.TokenUsage(1, 2).add(FULL).output_audio_tokens == 1
    assert total.billed == {**FULL.billed, "input_tokens": 21, "cache_read_tokens": 10}


def test_the_attempts_of_a_reply_are_billed_together() -> None:
    beside = rd.TokenUsage(9, 1, billed={"input_tokens": 99, "output_tokens": 1})
    events = [
        ev.MessageStart("m", usage=beside),
        ev.AttemptReset(1, usage=beside),
        ev.MessageStart("m"),
        ev.MessageFinish("stop", usage=beside),
    ]
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    message = fold.snapshot.to_message()
    assert message.usage == beside
    assert message.total_usage is not None
    assert message.total_usage.billed == {"input_tokens": 198, "output_tokens": 2}
    assert rd.Message.from_dict(message.to_dict()).total_usage == message.total_usage


@pytest.mark.parametrize(
    "usage", [FULL, rd.TokenUsage(9, 1, billed={"input_tokens": 99}), rd.TokenUsage(reasoning_tokens=1)]
)
def test_both_stored_forms_keep_a_usage(usage: rd.TokenUsage) -> None:
    assert rd.TokenUsage.from_dict(usage.to_dict()) == usage
    assert ev.from_dict(ev.UsageUpdate(usage).to_dict()) == ev.UsageUpdate(usage)
    assert usage != rd.TokenUsage(usage.input_tokens, usage.output_tokens, usage.raw)


def test_fields_of_a_later_version_stay_with_the_usage_of_an_event() -> None:
    stored = {"event": "usage", "usage": {"input_tokens": 1, "total_tokens": 1, "raw": {"n": 1}, "weight": 5}}
    event = ev.from_dict(stored)
    assert isinstance(event, ev.UsageUpdate)
    assert event.usage.more == {"weight": 5}
    assert event.to_dict()["usage"] == stored["usage"]


def test_the_protocols_own_details_are_read_and_written_unchanged() -> None:
    told = {
        "input_tokens": 20,
        "output_tokens": 9,
        "total_tokens": 29,
        "input_token_details": {"cache_read": 8, "cache_creation": 0, "audio": 2},
        "output_token_details": {"reasoning": 3, "audio": 1},
    }
    stored = {"event": "usage", "usage": told}
    event = ev.from_dict(stored)
    assert isinstance(event, ev.UsageUpdate)
    assert {name: getattr(event.usage, name) for name in DETAILS} == {
        name: getattr(FULL, name) for name in DETAILS
    }
    assert event.to_dict() == stored
    wrong = {"input_token_details": {"cache_read": -1, "audio": "2"}, "output_token_details": 5}
    event = ev.from_dict({"event": "usage", "usage": {**told, **wrong}})
    assert isinstance(event, ev.UsageUpdate)
    assert [getattr(event.usage, name) for name in DETAILS] == [None] * 5


def test_details_that_are_invalid_in_a_stored_event_are_unknown() -> None:
    stored = {
        "event": "usage",
        "usage": {"raw": {}, "input_tokens": 1, "cache_read_tokens": -1, "billed": {"a": 1, "b": "x"}},
    }
    event = ev.from_dict(stored)
    assert isinstance(event, ev.UsageUpdate)
    assert (event.usage.cache_read_tokens, event.usage.billed) == (None, {"a": 1})
