"""Untrusted input is bounded, and beyond a bound the reply so far is kept (bad inputs 1-4, 30)."""

from __future__ import annotations

import tracemalloc

import attrs
import pytest
from core.strategies import fold
from support.security_page import says

import rxdelta as rd

ev = rd.events
TEXT = {"type": "text"}


def test_the_defaults() -> None:
    assert attrs.asdict(rd.Limits()) == {
        "index": 2**31,
        "blocks": 65_536,
        "choices": 1_024,
        "runs": 10_000,
        "block_chars": 64 * 2**20,
        "json_depth": 200,
        "line_bytes": 2**20,
        "members": 4_096,
    }


def refused(folding: rd.Fold, event: rd.Event) -> rd.errors.LimitExceededError:
    before = folding.snapshot
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        folding.step(event)
    assert caught.value.snapshot is before is folding.snapshot
    return caught.value


@says("blocks of a message")
def test_too_many_blocks_keep_those_that_came() -> None:
    folding = rd.Fold(limits=rd.Limits(blocks=3))
    for index in range(3):
        folding.step(ev.BlockStart(index, {"type": "text", "text": str(index)}))
    error = refused(folding, ev.BlockStart(3, TEXT))
    assert (error.limit, error.maximum) == ("blocks", 3)
    assert error.snapshot.text == "012"
    assert refused(folding, ev.BlockFinish(4, TEXT)).limit == "blocks"
    assert folding.step(ev.BlockStart(1, TEXT)).text == "02"  # a block begun again is no new one


@says("characters of a block")
@pytest.mark.parametrize(
    ("start", "delta"),
    [
        (TEXT, ev.TextDelta(0, "abc")),
        ({"type": "reasoning"}, ev.ReasoningDelta(0, "abc")),
        ({"type": "image"}, ev.DataDelta(0, "abc")),
        ({"type": "tool_call_chunk", "id": "c"}, ev.ToolCallDelta(0, "abc")),
        (TEXT, ev.BlockDelta(0, {"text": "abcdefg"})),
        (TEXT, ev.BlockFinish(0, {"type": "text", "text": "abcdefg"})),
        ({"type": "tool_call_chunk"}, ev.BlockFinish(0, {"type": "tool_call", "args": "abcdefg"})),
        (TEXT, ev.BlockStart(0, {"type": "text", "text": "abcdefg"})),
        (TEXT, ev.BlockFinish(1, {"type": "text", "text": "abcdefg"})),
    ],
)
def test_too_long_a_block_keeps_what_came(start: dict[str, str], delta: rd.Event) -> None:
    folding = rd.Fold(limits=rd.Limits(block_chars=6))
    folding.step(ev.BlockStart(0, start))
    for _ in range(2):
        if not isinstance(delta, (ev.BlockDelta, ev.BlockFinish, ev.BlockStart)):
            folding.step(delta)
    error = refused(folding, delta)
    assert (error.limit, error.maximum) == ("block_chars", 6)
    finish = ev.BlockFinish(0)
    assert folding.step(finish) == rd.apply_event(error.snapshot, finish)


def test_the_limit_counts_what_was_there_when_the_fold_was_resumed() -> None:
    half = fold(ev.BlockStart(0, TEXT), ev.TextDelta(0, "abcd"))
    folding = rd.Fold(half, limits=rd.Limits(block_chars=5))
    assert folding.step(ev.TextDelta(0, "e")).text == "abcde"
    assert refused(folding, ev.TextDelta(0, "f")).snapshot.text == "abcde"


def test_a_block_may_be_exactly_as_long_as_allowed() -> None:
    fold = rd.core.BlockFold(ev.BlockStart(0, TEXT), limits=rd.Limits(block_chars=4))
    assert fold.step(ev.TextDelta(0, "abcd")).text == "abcd"
    with pytest.raises(rd.errors.LimitExceededError):
        fold.step(ev.TextDelta(0, "e"))


def test_bad_input_30_an_endless_argument_is_refused_without_being_joined() -> None:
    folding = rd.Fold(limits=rd.Limits(block_chars=2**20))
    folding.step(ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f"}))
    piece = "x" * 2**12
    tracemalloc.start()
    try:
        for _ in range(2**8):
            folding.step(ev.ToolCallDelta(0, piece))
        error = refused(folding, ev.ToolCallDelta(0, piece))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(error.snapshot.tool_calls[0].arguments) == 2**20
    assert peak < 4 * 2**20


def test_bad_input_1_a_huge_index_costs_nothing() -> None:
    tracemalloc.start()
    try:
        snapshot = fold(
            ev.BlockStart(2**31 - 1, {"type": "text", "text": "b"}),
            ev.BlockStart(0, {"type": "text", "text": "a"}),
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert snapshot.text == "ab"
    assert [block.key for block in snapshot.blocks] == [0, 2**31 - 1]
    assert peak < 2**20
    assert rd.merge_delta(None, rd.MessageDelta(content="x", index=10**9)).text == "x"


@pytest.mark.parametrize(
    "index",
    [2**31, 2**63, 10**400, -(2**31), 10**5000],
    ids=["2**31", "2**63", "10**400", "-2**31", "10**5000"],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda index: ev.BlockStart(index, TEXT),
        lambda index: ev.TextDelta(index, "x"),
        lambda index: ev.BlockFinish(index),
        lambda index: ev.from_dict(
            {"event": "content-block-delta", "index": index, "delta": {"type": "text-delta"}}
        ),
        lambda index: rd.ToolCall(index=index),
        lambda index: rd.MessageDelta(index=abs(index)),
        lambda index: rd.MessageDelta(choice=abs(index)),
        lambda index: rd.ContentPart(_key=index),
        lambda index: rd.ToolCall.from_dict({"key": ["call", index]}),
        lambda index: ev.AttemptReset(abs(index)),
    ],
)
def test_bad_input_4_an_absurd_index_is_beyond_the_limit(make: object, index: int) -> None:
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        make(index)  # type: ignore[operator]
    assert caught.value.limit == "index"


@says("a block's index")
def test_a_fold_may_be_stricter_about_indexes() -> None:
    folding = rd.Fold(limits=rd.Limits(index=10))
    folding.step(ev.BlockStart(9, TEXT))
    assert refused(folding, ev.BlockStart(10, TEXT)).maximum == 10
    assert refused(folding, ev.BlockStart(-10, TEXT)).limit == "index"


@pytest.mark.parametrize("index", [True, False, 1.0, float("nan"), None, [], ""])
def test_bad_input_3_an_index_is_an_integer_or_a_name(index: object) -> None:
    for make in (
        lambda: ev.BlockStart(index, TEXT),
        lambda: ev.TextDelta(index, "x"),
        lambda: ev.from_dict({"event": "content-block-finish", "index": index}),
    ):
        with pytest.raises(rd.InvalidValueError) as caught:
            make()
        assert caught.value.field == "index"


def test_bad_input_3_the_name_1_is_not_the_number_1() -> None:
    snapshot = fold(
        ev.BlockStart(1, TEXT), ev.BlockStart("1", TEXT), ev.TextDelta("1", "b"), ev.TextDelta(1, "a")
    )
    assert [(block.key, block.text) for block in snapshot.blocks] == [(1, "a"), ("1", "b")]


def test_bad_input_2_a_negative_index_never_counts_from_the_end() -> None:
    snapshot = fold(ev.BlockStart(0, TEXT), ev.TextDelta(-1, "x"))
    assert snapshot.text == ""
    for make in (
        lambda: rd.MessageDelta(index=-1),
        lambda: rd.MessageDelta(choice=-1),
        lambda: ev.TextDelta(0, "", choice=-1),
    ):
        with pytest.raises(rd.InvalidValueError):
            make()


@says("choices of a stream")
def test_more_choices_than_allowed_are_refused() -> None:
    lifecycle = rd.core.ProtocolChecker()
    for choice in range(1_024):
        lifecycle.check(ev.MessageStart(choice=choice * 7))
    assert lifecycle.check(ev.BlockStart(0, TEXT, choice=7)) is None
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        lifecycle.check(ev.MessageStart(choice=1))
    assert (caught.value.limit, caught.value.maximum) == ("choices", 1_024)


def test_the_members_of_usage_and_metadata_are_counted_with_the_event_that_brings_them() -> None:
    members = {f"k{number}": 1 for number in range(3)}
    for limit in (2, 3):
        for event in (
            ev.MessageStart(metadata=members),
            ev.MessageFinish("stop", metadata=members),
            ev.UsageUpdate(rd.TokenUsage(input_tokens=1, raw=members)),
        ):
            folding = rd.Fold(limits=rd.Limits(members=limit))
            if limit == 3:
                folding.step(event)
            else:
                assert "members" in str(refused(folding, event))
                assert not folding.snapshot.metadata
                assert folding.snapshot.usage is None
