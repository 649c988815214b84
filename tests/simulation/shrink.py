"""A world that breaks a law, made smaller for as long as it breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from simulation.world import World


def shrunk(world: World, breaks: Callable[[World], bool]) -> World:
    """The smallest world that is found."""
    while True:
        smaller = next((each for each in _smaller(world) if breaks(each)), None)
        if smaller is None:
            return world
        world = smaller


def _smaller(value: Any) -> Iterator[Any]:
    """What is plainer in one place, the greatest steps first."""
    if attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            mine = getattr(value, field.name)
            if mine == field.default:
                continue
            if field.default is not attrs.NOTHING:
                yield attrs.evolve(value, **{field.name: field.default})
            for each in _smaller(mine):
                yield attrs.evolve(value, **{field.name: each})
    elif isinstance(value, tuple):
        if len(value) > 1:
            for place in range(len(value)):
                yield value[:place] + value[place + 1 :]
        for place, item in enumerate(value):
            for each in _smaller(item):
                yield (*value[:place], each, *value[place + 1 :])
    elif isinstance(value, str) and " " in value:
        words = value.split(" ")
        if len(words) > 2:
            yield " ".join(words[:-2]) + " "


def program(world: World) -> str:
    """A program that plays the world."""
    names = sorted(
        name
        for name in ("Attempt", "Call", "Fault", "Reader", "Thought", "Tools", "World")
        if f"{name}(" in repr(world)
    )
    return f"from simulation.play import play\nfrom simulation.world import {', '.join(names)}\n\nprint(play({world!r}).broken)\n"
