"""Decoders read a plain chunk, which only continues a block, by a short way: it leads to the same events as the long one.

Each short way takes exact dicts only, so that a chunk of a subclass goes the long way.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from support.shared import RECORDED, recordings
from support.small_replies import REPLIES, Chunk, Reply

import rxdelta as rd
from rxdelta.core import is_list, is_mapping

SEEDS = 120


class Subclass(Chunk):
    """A chunk that no short way takes."""


def completion(text: str, reason: str | None = None, **more: Any) -> Chunk:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
    return {"id": "c", "object": "text_completion", "model": "m", "choices": [choice], **more}


USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
STREAMS: dict[str, Reply] = {
    **REPLIES,
    "openai-completions": Reply(
        text=(completion("Hi"),),
        call=lambda n: (completion(f"{n}"),),
        end=lambda reason: (completion("", reason), {**completion(""), "choices": [], "usage": USAGE}),
        stop="stop",
        length="length",
    ),
}


def chunks_of(reply: Reply) -> list[Chunk]:
    """A reply with several pieces of each text and of each call's arguments."""
    pieces = [*reply.text[-1:]] * 3
    call = [*reply.call(0)] if reply.cut is None else [*reply.call(0), *reply.cut(1)]
    late = [] if reply.late is None else [reply.late(1)] * 3
    chunks = [*reply.begin, *reply.text, *pieces, *call, *late, *pieces, *reply.end(reply.stop), *pieces]
    return [copy.deepcopy(chunk) for chunk in chunks]


def objects(value: Any) -> Iterator[Any]:
    """The objects in a value, itself included."""
    if is_mapping(value):
        yield value
        for member in value.values():
            yield from objects(member)
    elif is_list(value):
        for item in value:
            yield from objects(item)


def change(draw: Random, chunks: list[Chunk]) -> None:
    """Change a field of one object: to nothing, to another value of the stream, or to a value of another type."""
    fields = [item for one in objects(chunks) for item in one.items()]
    changed = draw.choice([*objects(draw.choice(chunks))])
    name, value = draw.choice(fields)
    others: list[Any] = [None, "", 7, [], {}, "{", "x"]
    match draw.randrange(5):
        case 0:
            changed.pop(draw.choice([*changed, ""]), None)
        case 1:
            changed[draw.choice([*changed, "extra"])] = copy.deepcopy(draw.choice(others))
        case 2:
            changed[name] = copy.deepcopy(value)
        case 3:
            changed[draw.choice([*changed, "extra"])] = copy.deepcopy(value)
        case _:
            place = draw.randrange(len(chunks))
            chunks.insert(place, copy.deepcopy(draw.choice(chunks)))


def outcome(wire_format: str, chunks: list[Chunk]) -> list[Any]:
    """The events, and the errors of malformed chunks, by chunk."""
    decoder, found = rd.providers.decoder(wire_format), list[Any]()
    for chunk in chunks:
        try:
            found.append([event.to_dict() for event in decoder.decode(chunk)])
        except rd.errors.RxDeltaError as error:
            found.append(str(error))
    return [*found, [event.to_dict() for event in decoder.close()]]


def same_by_both_ways(wire_format: str, chunks: list[Chunk]) -> None:
    expected = outcome(wire_format, [Subclass(chunk) for chunk in chunks])
    assert outcome(wire_format, chunks) == expected


def test_every_format_is_tried() -> None:
    assert {*STREAMS} == {*rd.providers.FORMATS}


@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
def test_a_plain_chunk_leads_to_the_events_of_the_long_way(wire_format: str) -> None:
    same_by_both_ways(wire_format, chunks_of(STREAMS[wire_format]))


@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
def test_a_chunk_that_is_not_quite_plain_leads_to_the_events_of_the_long_way(wire_format: str) -> None:
    for seed in range(SEEDS):
        draw = Random(seed)
        chunks = chunks_of(STREAMS[wire_format])
        for _ in range(draw.randint(1, 4)):
            change(draw, chunks)
        same_by_both_ways(wire_format, chunks)


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        pytest.param(wire_format, *one.values[:1], id=f"{wire_format}-{one.id}", marks=one.marks)
        for wire_format in RECORDED
        for one in recordings(wire_format)
    ],
)
def test_recorded_chunks_lead_to_the_events_of_the_long_way(wire_format: str, chunks: list[Chunk]) -> None:
    same_by_both_ways(wire_format, chunks)
