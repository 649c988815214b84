"""Every reader holds its laws for its seeds and for inputs that are made of them, without the fuzzer."""

from __future__ import annotations

import random

import pytest
from fuzz.finds import place_of
from fuzz.targets import TARGETS, Target
from support.needs import LEFT_OUT

import rxdelta as rd

LONGEST = 600
"""Bytes of an input here: the fuzzer has time for longer ones."""


def made_of(target: Target, count: int, seed: str, longest: int = LONGEST) -> list[bytes]:
    """So many inputs, the same each time."""
    corpus = [one for one in target.corpus() if len(one) <= longest] or [min(target.corpus(), key=len)]
    mutated, chance = target.mutator(), random.Random(seed)
    return [mutated(chance.choice(corpus), longest, chance.getrandbits(32)) for _ in range(count)]


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_holds_its_laws(name: str) -> None:
    target = TARGETS[name]
    short = [one for one in target.corpus() if len(one) <= LONGEST]
    assert short or target.corpus(), "the fuzzing begins with something"
    for data in [*short[:15], *made_of(target, 200, name)]:
        try:
            target.holds(data)
        except Exception as error:
            pytest.fail(f"{place_of(error)}\n{error!r}\n{target.program(data)}")


@pytest.mark.soak
@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_holds_its_laws_for_long_and_in_bulk(name: str) -> None:
    target = TARGETS[name]
    for number, data in enumerate([*target.corpus(), *made_of(target, 2_000, f"{name} soak", 8_000)]):
        target.holds(data)
        if number % 100 == 0:
            target.holds_in_bulk(data, number)


def test_there_is_a_reader_for_each_format_and_each_stored_value() -> None:
    assert {*rd.providers.FORMATS} <= {*TARGETS}
    bodies = {name for name in rd.requests.__all__ if name.startswith("from_")}
    assert {
        f"from_{name.removesuffix('-body').replace('-', '_')}" for name in TARGETS if name.endswith("-body")
    } == bodies


@pytest.mark.skipif("recordings" in LEFT_OUT, reason="left out")
@pytest.mark.parametrize("name", rd.providers.FORMATS)
def test_the_seeds_of_a_format_say_something(name: str) -> None:
    """Most of them are read, not refused: what begins with errors stays there."""
    from fuzz.mutation import values

    corpus = TARGETS[name].corpus()
    read = 0
    for data in corpus:
        decoder = rd.providers.decoder(name)
        try:
            read += any(
                not isinstance(event, rd.events.StreamError)
                for chunk in values(data)
                for event in decoder.decode(chunk)
            )
        except rd.RxDeltaError:
            continue
    assert read > len(corpus) * 0.7, f"{read} of {len(corpus)}"
