"""Plays the worlds of many seeds."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import attrs

from simulation.draw import draw
from simulation.play import play
from simulation.shrink import program, shrunk

SAME = 50  # each so many seeds, a world is played twice


@attrs.frozen
class Found:
    """A law that the world of a seed breaks."""

    seed: int
    law: str
    details: str


def play_seeds(seeds: Iterable[int]) -> tuple[Counter[str], list[Found]]:
    """How often each law was judged, and what broke one; of each world the first."""
    judged: Counter[str] = Counter()
    found: list[Found] = []
    with _collecting_at_ends():
        for seed in seeds:
            verdict = play(draw(seed), twice=seed % SAME == 0)
            judged.update(verdict.judged)
            found += [Found(seed, *one) for one in verdict.broken[:1]]
    return judged, found


@contextmanager
def _collecting_at_ends() -> Iterator[None]:
    """Garbage is collected at the end of each world, which then hears of errors that nobody took, and not meanwhile."""
    was_enabled = gc.isenabled()
    gc.disable()
    gc.collect()
    gc.freeze()  # what is there needn't be looked through each time
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def explained(found: Found) -> str:
    """The seed, the law and a program that breaks it, as small as could be found."""
    twice = found.law == "same"
    small = shrunk(
        draw(found.seed), lambda world: any(law == found.law for law, _ in play(world, twice=twice).broken)
    )
    said = next(
        (details for law, details in play(small, twice=twice).broken if law == found.law), found.details
    )
    return f"seed {found.seed} breaks {found.law!r}: {said}\n\n{program(small)}"
