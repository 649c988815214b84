"""Constructors that skip the checks make the same values as those that don't."""

from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
from typing import Any

import attrs
import pytest
from core.strategies import every_event, word
from hypothesis import given, strategies as st

import rxdelta as rd
from rxdelta.core import BlockFold, Fold, reasoning_delta, text_delta, tool_call_delta
from rxdelta.core.content_part import change_part, make_part, raw_text, with_text
from rxdelta.core.fast_constructor import fast_constructor
from rxdelta.core.snapshot import make_snapshot
from rxdelta.core.tool_call import change, raw_arguments, with_arguments

ev = rd.events
parts = st.builds(
    rd.ContentPart,
    st.sampled_from(["text", "reasoning", "image"]),
    st.none() | word,
    st.dictionaries(word, word),
    st.lists(st.builds(rd.Citation, title=word)),
    _key=st.none() | word | st.integers(0, 9),
    _open=st.booleans(),
)
calls = st.builds(
    rd.ToolCall,
    call_id=st.none() | word,
    name=st.none() | word,
    arguments=st.none() | word,
    index=st.none() | st.integers(0, 9),
    metadata=st.dictionaries(word, word),
    _key=st.none() | word | st.integers(0, 9),
    _open=st.booleans(),
)


def slots(value: Any) -> dict[str, object]:
    return {field.name.lstrip("_"): getattr(value, field.name) for field in attrs.fields(type(value))}


def assert_same(made: Any, plain: Any) -> None:
    assert type(made) is type(plain)
    assert slots(made) == slots(plain)
    assert made == plain
    assert hash(made) == hash(plain)
    assert slots(pickle.loads(pickle.dumps(made))) == slots(copy.deepcopy(made)) == slots(plain)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(made, attrs.fields(type(made))[0].name, None)


@given(st.integers(0, 99) | word, word, st.integers(0, 9))
def test_deltas(index: int | str, piece: str, choice: int) -> None:
    assert_same(text_delta(index, piece, choice), ev.TextDelta(index, piece, choice=choice))
    assert_same(reasoning_delta(index, piece, choice), ev.ReasoningDelta(index, piece, choice=choice))
    assert_same(tool_call_delta(index, piece, choice=choice), ev.ToolCallDelta(index, piece, choice=choice))
    assert_same(text_delta(index, piece), ev.TextDelta(index, piece))


@given(parts, word)
def test_parts(part: rd.ContentPart, text: str) -> None:
    assert_same(make_part(**{**slots(part), "text": raw_text(part)}), part)
    assert_same(with_text(part, text), attrs.evolve(part, text=text))
    assert_same(change_part(part), part)
    assert_same(change_part(part, text=text, open=True), attrs.evolve(part, text=text, _open=True))


@given(calls, word)
def test_calls(call: rd.ToolCall, arguments: str) -> None:
    assert_same(with_arguments(call, arguments), attrs.evolve(call, arguments=arguments))
    assert_same(change(call), call)
    assert_same(change(call, name="n", status="complete"), attrs.evolve(call, name="n", status="complete"))
    assert raw_arguments(change(call)) is raw_arguments(call)


@given(st.lists(every_event, max_size=9))
def test_the_step_of_a_fold_that_is_written_out_is_the_other_one(events: list[rd.Event]) -> None:
    quick, other = Fold(), Fold()
    for event in events:
        for step in (quick.step, other._step_with_care):
            with contextlib.suppress(rd.RxDeltaError):
                step(event)
        snapshot = quick.snapshot
        assert other.snapshot == snapshot == make_snapshot(snapshot._head, snapshot.blocks)


@given(parts.map(lambda part: change_part(part, open=True)), st.lists(word, min_size=1))
def test_growing_that_is_written_out_is_with_text(part: rd.ContentPart, pieces: list[str]) -> None:
    fold = BlockFold(part)
    for piece in pieces:
        assert_same(fold.grow(piece), with_text(part, (part.text or "") + piece))
        part = with_text(part, (part.text or "") + piece)


def test_it_shows_the_signature_and_documentation_that_were_written() -> None:
    assert list(inspect.signature(text_delta).parameters) == ["index", "text", "choice", "run_id", "more"]
    assert text_delta.__name__ == "text_delta"
    assert text_delta.__doc__


def test_a_field_that_nobody_gives_is_noticed_at_once() -> None:
    with pytest.raises(SyntaxError):

        @fast_constructor(ev.TextDelta)
        def without_choice(index: int, text: str) -> rd.events.TextDelta:
            raise NotImplementedError
