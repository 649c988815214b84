"""`text_deltas`, of the text and of the reasoning: the pieces are the text. What holds for each projection: `test_projection`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import reactivex as rx
from hypothesis import example, given, settings, strategies as st
from reactivex import operators as ops

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.core import BlockFold, fold as fold_module

START, FINISH = ev.BlockStart(0, {"type": "text"}), ev.BlockFinish(0)
THINK = ev.BlockStart(0, {"type": "reasoning"})
HIGH, LOW = "\ud83d", "\ude00"


def pieces(*events: Any, operator: Any = rd.text_deltas, **options: Any) -> list[str]:
    got: list[str] = rx.from_iterable(events).pipe(operator(**options), ops.to_list()).run()
    return got


def says(text: str, index: int | str = 0) -> ev.TextDelta:
    return ev.TextDelta(index, text)


def ends(text: str, index: int | str = 0, type: str = "text") -> ev.BlockFinish:
    return ev.BlockFinish(index, {"type": type, type: text})


def begins(text: str, index: int | str = 0, type: str = "text") -> ev.BlockStart:
    return ev.BlockStart(index, {"type": type, type: text})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([START, says("a"), FINISH], ["a"], id="a finish as folded"),
        pytest.param([begins("He"), says("llo")], ["He", "llo"], id="a start that carries text"),
        pytest.param([START, says("He"), ends("Hello")], ["He", "llo"], id="a finish that extends it"),
        pytest.param([START, says("He"), ends("He")], ["He"], id="a finish that repeats it"),
        pytest.param([START, ends("Hello")], ["Hello"], id="a finish that has all of it"),
        pytest.param([START, says("He"), ends("Bye")], ["He"], id="a finish that replaces it"),
        pytest.param([START, says("He"), ends("")], ["He"], id="a finish that blanks it"),
        pytest.param([START, says("He"), ends("Bye"), ends("Bye!")], ["He"], id="a second finish"),
        pytest.param([ends("Hello")], ["Hello"], id="a finish without a start"),
        pytest.param([ends("Hello"), ends("Hello!")], ["Hello"], id="and a second one"),
        pytest.param([says("a"), START, says("b")], ["b"], id="7: a delta before the start"),
        pytest.param([START, says("a"), FINISH, says("b")], ["a"], id="8: a delta after the finish"),
        pytest.param([THINK, says("a")], [], id="a text delta for a reasoning"),
        pytest.param([ev.BlockStart(0, {"type": "refusal"}), says("No.")], [], id="a refusal is no text"),
        pytest.param([START, ev.ReasoningDelta(0, "a"), says("b")], ["b"], id="a reasoning delta for a text"),
        pytest.param([START, says("a"), START, says("b")], ["a", "b"], id="9: a second start"),
        pytest.param([START, says("a"), FINISH, begins("b"), says("c")], ["a", "b", "c"], id="after the end"),
        pytest.param([START, says("a"), THINK, says("b")], ["a"], id="a second start of another type"),
        pytest.param([START, FINISH, THINK, ends("b")], ["b"], id="which was no text when it ended"),
        pytest.param([START, says("a"), ends("b", type="reasoning")], ["a"], id="a finish of another type"),
        pytest.param([THINK, ends("b")], ["b"], id="a reasoning that turns out to be text"),
        pytest.param([START, ev.BlockDelta(0, {"text": "Hi"})], ["Hi"], id="the text so far"),
        pytest.param(
            [START, says("H"), ev.BlockDelta(0, {"text": "Hi"}), says("!")],
            ["H", "i", "!"],
            id="extended so far",
        ),
        pytest.param(
            [START, says("He"), ev.BlockDelta(0, {"text": "Hi"}), says("!"), ends("Hi!!")],
            ["He", "!", "!"],
            id="replaced so far",
        ),
        pytest.param(
            [START, says("a"), ev.BlockDelta(0, {"lang": "en"}), says("b")], ["a", "b"], id="other fields"
        ),
        pytest.param([ev.BlockDelta(0, {"text": "Hi"}), START], [], id="fields before the start"),
        pytest.param([START, says("a"), says("", 1), says("b")], ["a", "b"], id="31: no piece is empty"),
        pytest.param(
            [begins("a", 1), begins("b", "x"), says("c", 1), says("d", "x")],
            list("abcd"),
            id="blocks interleave",
        ),
        pytest.param([START, says(f"a{HIGH}"), says(f"{LOW}b")], ["a", "😀b"], id="24: a pair in two pieces"),
        pytest.param([START, says(HIGH), says(""), says(LOW)], ["😀"], id="and nothing else"),
        pytest.param([START, says(HIGH), says("b")], ["\ufffdb"], id="24: half a pair"),
        pytest.param([START, says(LOW), says("é")], ["\ufffd", "é"], id="24: the other half"),
        pytest.param([START, says(HIGH), FINISH], ["\ufffd"], id="half a pair at the end"),
        pytest.param([START, says(HIGH), ev.MessageFinish("stop")], ["\ufffd"], id="at the message's end"),
        pytest.param([START, says(HIGH), ev.MessageInterrupted()], ["\ufffd"], id="at its interruption"),
        pytest.param([START, says(f"a{HIGH}"), ends("a😀!")], ["a", "😀!"], id="completed by the finish"),
        pytest.param(
            [START, says(HIGH), ev.BlockDelta(0, {"text": "b"}), says("c")], ["b", "c"], id="or replaced"
        ),
        pytest.param([START, says(HIGH)], [], id="a cut stream has no half characters"),
    ],
)
def test_the_pieces_of(events: list[Any], expected: list[str]) -> None:
    assert pieces(*events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([THINK, ev.ReasoningDelta(0, "a"), FINISH], ["a"], id="pieces"),
        pytest.param(
            [ev.BlockStart(0, {"type": "thinking", "thinking": "a"})], ["a"], id="by its other name"
        ),
        pytest.param(
            [begins("a", type="reasoning"), ends("ab", type="reasoning")], ["a", "b"], id="the tail"
        ),
        pytest.param([THINK, ev.BlockDelta(0, {"thinking": "a"})], ["a"], id="so far, by its other name"),
        pytest.param(
            [THINK, ev.ReasoningDelta(0, "a"), ev.BlockDelta(0, {"signature": "s"})], ["a"], id="signed"
        ),
        pytest.param([START, says("a"), ev.ReasoningDelta(0, "b")], [], id="text is no reasoning"),
        pytest.param([THINK, says("a")], [], id="nor is a text delta"),
        pytest.param([THINK, ev.ReasoningDelta(0, HIGH), ev.ReasoningDelta(0, LOW)], ["😀"], id="24: a pair"),
        pytest.param([THINK, ev.ReasoningDelta(0, "a"), ends("b", type="reasoning")], ["a"], id="replaced"),
    ],
)
def test_the_pieces_of_reasoning(events: list[Any], expected: list[str]) -> None:
    assert pieces(*events, operator=partial(rd.text_deltas, of="reasoning")) == expected


words = st.text(st.characters() | st.sampled_from([HIGH, LOW]), max_size=3)
steps = st.lists(
    st.tuples(st.just("delta"), st.integers(0, 2), words)
    | st.tuples(st.just("start"), st.integers(0, 2), words)
    | st.tuples(st.just("finish"), st.integers(0, 2), words | st.none()),
    max_size=30,
)


@pytest.mark.slow
@settings(deadline=None)
@given(told=st.lists(st.tuples(st.integers(0, 2), words), max_size=20), finished=st.sets(st.integers(0, 2)))
def test_at_every_moment_the_pieces_of_a_block_are_its_text(
    told: list[tuple[int, str]], finished: set[int]
) -> None:
    events: list[Any] = [ev.BlockStart(index, {"type": "text"}) for index in range(3)]
    events += [says(text, index) for index, text in told]
    events += [ev.BlockFinish(index) for index in sorted(finished)]
    fold = rd.Fold()
    so_far: list[Any] = []
    for event in events:
        so_far.append(event)
        snapshot = fold.step(event)
        for index, block in enumerate(snapshot.blocks):
            mine = [one for one in so_far if one.index == index]
            assert "".join(pieces(*mine)) == (block.text or "")  # type: ignore[union-attr]
        together = pieces(*so_far)
        assert "" not in together
        assert sum(map(len, together)) == len(snapshot.text)


@settings(deadline=None)
@given(steps=steps)
def test_whatever_comes_gives_text_that_can_be_written(steps: list[tuple[str, int, Any]]) -> None:
    events: list[Any] = []
    for what, index, text in steps:
        if what == "delta":
            events.append(says(text, index))
        elif what == "start":
            events.append(begins(text, index))
        else:
            events.append(ev.BlockFinish(index, None if text is None else {"type": "text", "text": text}))
    for piece in pieces(*events):
        assert piece
        piece.encode()


letters = st.text(st.sampled_from(["a", "é", HIGH, LOW]), max_size=2)
deltas = st.builds(ev.TextDelta, st.integers(0, 1), letters, choice=st.sampled_from([0, 0, 0, 1]))


@example([says("a")] * 3 + [says(HIGH), says("a"), says(LOW)])
@given(st.lists(st.one_of(deltas, deltas, st.just(FINISH), st.just(ends("aé"))), max_size=20))
def test_pieces_that_are_kept_are_those_of_each_delta(told: list[Any]) -> None:
    events = [START, ev.BlockStart(1, {"type": "refusal"}), *told, ends("aéa")]
    found = pieces(*events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "_MOST", 0)  # so that nothing is kept
        assert found == pieces(*events)


def test_other_deltas_are_neither_kept_nor_bounded() -> None:
    call = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c"})
    arguments = [ev.ToolCallDelta(1, "ab")] * 9
    limits = rd.with_limits(rd.Limits(block_chars=8))
    operator = rx.compose(rd.text_deltas(), limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockFold, "grow", lambda *_: pytest.fail("a block has grown"))
        assert pieces(START, call, *arguments, FINISH, operator=lambda: operator) == []
