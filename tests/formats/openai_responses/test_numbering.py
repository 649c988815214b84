"""OpenAI Responses: chunks that a transport delivers twice, and chunks that only look so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from support.openai_responses import Chunk, added, completed, created, decode, message, names, part, text
from support.shared import recordings

import rxdelta as rd

SURROGATE = "\ud83d"


def numbered(*chunks: Chunk, first: int = 0) -> list[Chunk]:
    return [{**chunk, "sequence_number": first + place} for place, chunk in enumerate(chunks)]


def said(*pieces: str) -> list[Chunk]:
    """A response with these pieces of text, without numbers."""
    return [created(), added(message()), *map(text, pieces), completed(message(part("".join(pieces))))]


def live(chunks: list[Chunk]) -> list[str]:
    """The text after each event."""
    fold = rd.Fold()
    return [fold.step(event).text for event in decode(*chunks)]


def without_numbers(events: list[rd.Event]) -> list[dict[str, Any]]:
    told = [event.to_dict() for event in events]
    for event in told:
        event.get("payload", {}).pop("sequence_number", None)
    return told


def delivered_again(chunks: list[Chunk], draw: Random) -> list[list[Chunk]]:
    """As an at-least-once transport may deliver them: each twice, all twice, all from a place on, some later."""
    begin = draw.randrange(len(chunks))
    end = draw.randrange(begin, len(chunks)) + 1
    late = list(chunks)
    for _ in range(5):
        place = draw.randrange(len(late))
        late.insert(draw.randint(place, len(late)) + 1, late[place])
    each = [chunk for chunk in chunks for _ in range(2)]
    return [each, chunks * 2, chunks[:end] + chunks[begin:], late]


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_a_recording_whose_chunks_come_again_gives_the_same_events(
    chunks: list[Chunk], expected: Chunk
) -> None:
    if any("sequence_number" not in chunk for chunk in chunks):
        chunks = numbered(*chunks)
    events = decode(*chunks)
    for stream in delivered_again(chunks, Random(len(chunks))):
        assert decode(*stream) == events


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_a_recording_whose_numbers_do_not_count_loses_nothing(chunks: list[Chunk], expected: Chunk) -> None:
    bare = [{name: value for name, value in chunk.items() if name != "sequence_number"} for chunk in chunks]
    events = without_numbers(decode(*bare))
    for lane in ("output_index", "type"):
        counts: dict[Any, Iterator[int]] = defaultdict(count)
        counted = [{**chunk, "sequence_number": next(counts[chunk.get(lane)])} for chunk in bare]
        assert without_numbers(decode(*counted)) == events
    for constant in (0, 1, 7):
        assert without_numbers(decode(*({**chunk, "sequence_number": constant} for chunk in bare))) == events


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(lambda chunk: {**chunk, "obfuscation": "x7"}, id="padded anew"),
        pytest.param(lambda chunk: dict(reversed(chunk.items())), id="in another order"),
        pytest.param(lambda chunk: {**chunk, "sequence_number": chunk["sequence_number"]}, id="as it was"),
    ],
)
def test_a_repetition_may_be_padded_anew(again: Any) -> None:
    chunks = numbered(*said("a", SURROGATE, "b"))
    doubled = [one for chunk in chunks for one in (chunk, again(chunk))]
    assert decode(*doubled) == decode(*chunks)


def test_a_stream_that_begins_in_the_middle_may_begin_twice() -> None:
    first, *rest = numbered(*map(text, ("a", "b", "c")), completed(message(part("abc"))), first=57)
    assert decode(first, first, *rest) == decode(first, *rest)


def test_numbers_may_leave_gaps_and_come_out_of_order() -> None:
    begin, item, a, b, c, end = numbered(*said("a", "b", "c"))
    assert "acb" in live([begin, item, a, c, b, a, c, b, end])
    begin, item, a, b, c, end = numbered(*said("a", "b", "c"), first=5)
    assert live([item, begin, a, b, b, c, end])[2:5] == ["a", "ab", "abc"]


@pytest.mark.parametrize("far", [10_000, 10**18, 10**400])
def test_numbers_far_apart_do_not_count_and_cost_no_memory(far: int) -> None:
    chunks = [{**chunk, "sequence_number": n * far} for n, chunk in enumerate(said("a", "a", "b"))]
    assert live(chunks)[-2] == "aab"


@pytest.mark.parametrize("place", [10**400, -1])
def test_an_absurd_place_is_refused_as_without_numbers(place: int) -> None:
    begin, item, a, bad, _ = numbered(*said("a", "b"))
    with pytest.raises((rd.errors.LimitExceededError, rd.errors.MalformedChunkError)):
        decode(begin, item, a, {**bad, "output_index": place})


def test_another_response_on_the_connection_counts_anew() -> None:
    first = numbered(*said("a", "b", "c"))
    second = [
        {**chunk, "response": {**chunk["response"], "id": "resp_2"}} if "response" in chunk else chunk
        for chunk in numbered(*said("a", "b", "c"))
    ]
    doubled = [chunk for chunk in first + second for _ in range(2)]
    assert decode(*doubled) == decode(*first, *second)
    assert names(decode(*first, *second)).count("message-start") == 2
