"""`cumulative=`: a gateway that repeats the whole text so far is told once."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st

import rxdelta as rd


def chunk(**delta: Any) -> Any:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}


END = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def fold(chunks: list[Any], cumulative: Any) -> rd.Snapshot:
    events = rx.from_iterable(chunks).pipe(rd.decode("openai-chat", cumulative=cumulative), rd.validate())
    return events.pipe(rd.scan_deltas()).run()


def texts(*said: str) -> list[Any]:
    return [*(chunk(content=text) for text in said), END]


@pytest.mark.parametrize("cumulative", [True, "auto"])
@pytest.mark.parametrize(
    "so_far",
    [
        ["Hello", "Hello wor", "Hello world"],
        ["H", "He", "Hel", "Hello wor", "Hello world"],
        ["A longer beginning", "A longer beginning that goes on"],
        ["Same", "Same", "Same again", "Same again."],
        ["Hello there", "Hello there", "Hello there"],
    ],
)
def test_what_is_repeated_is_told_once(cumulative: Any, so_far: list[str]) -> None:
    assert fold(texts(*so_far), cumulative).text == so_far[-1]


@pytest.mark.parametrize("cumulative", [True, "auto"])
def test_reasoning_and_arguments_too(cumulative: Any) -> None:
    def call(arguments: str) -> Any:
        return chunk(tool_calls=[{"index": 0, "id": "x", "function": {"name": "f", "arguments": arguments}}])

    chunks = [
        chunk(reasoning_content="I do think"),
        chunk(reasoning_content="I do think so"),
        chunk(content="It is now"),
        chunk(content="It is now so"),
        call('{"city":'),
        call('{"city": "Oslo"}'),
        END,
    ]
    reply = fold(chunks, cumulative)
    assert (reply.reasoning, reply.text) == ("I do think so", "It is now so")
    assert reply.tool_calls[0].arguments == {"city": "Oslo"}


def test_one_that_was_overtaken_says_nothing_and_a_revised_one_replaces() -> None:
    assert fold(texts("Hello", "Hello wor", "Hello"), True).text == "Hello wor"
    assert fold(texts("Hello", "Hallo"), True).text == "Hallo"


@pytest.mark.parametrize("wrong", ["yes", 1, None, "True"])
def test_what_it_cannot_be_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="cumulative"):
        rd.decode("openai-chat", cumulative=wrong)


@settings(deadline=None)
@given(pieces=st.lists(st.text(min_size=1, max_size=6), max_size=12))
def test_any_text_told_so_far_is_the_text(pieces: list[str]) -> None:
    assert fold(texts(*accumulate(pieces)), True).text == fold(texts(*pieces), False).text


@settings(deadline=None)
@given(
    pieces=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), min_size=1, max_size=12
    )
)
def test_auto_finds_out_unless_it_is_too_short_to_tell(pieces: list[str]) -> None:
    pieces = ["Once upon a time", *pieces]
    assert fold(texts(*accumulate(pieces)), "auto").text == "".join(pieces)
