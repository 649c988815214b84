"""What a broken law looks like: one find for each place where it comes from, as small as it gets."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterator
from time import process_time

from fuzz import mutation
from fuzz.laws import PACKAGE_FILES, LawBroken

__all__ = ["place_of", "shrunk"]

TRIES, SECONDS = 3_000, 20.0


def place_of(error: BaseException) -> str:
    """What the find is called: the law, or the error with the line of the package that raised it."""
    if isinstance(error, LawBroken):
        return str(error).partition(":")[0]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(PACKAGE_FILES)
    ]
    where = f" at {frames[-1].filename[len(PACKAGE_FILES) + 1 :]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def shrunk(data: bytes, fails: Callable[[bytes], bool], *, is_json: bool) -> bytes:
    """A smaller input that fails as well. It stops after some seconds of CPU."""
    began, tries = process_time(), 0
    smaller = True
    while smaller:
        smaller = False
        for other in _smaller(data, is_json):
            tries += 1
            if tries > TRIES or process_time() - began > SECONDS:
                return data
            if len(other) < len(data) and fails(other):
                data, smaller = other, True
                break
    return data


def _smaller(data: bytes, is_json: bool) -> Iterator[bytes]:
    if is_json:
        yield from _without_a_part(data)
        return
    size = len(data) // 2
    while size:
        for at in range(0, len(data), size):
            yield data[:at] + data[at + size :]
        size //= 2


def _without_a_part(data: bytes) -> Iterator[bytes]:
    documents = mutation.values(data)
    size = len(documents) // 2
    while size:
        for at in range(0, len(documents), size):
            yield mutation.lines(documents[:at] + documents[at + size :])
        size //= 2
    count = len([*mutation.places(documents)])
    order = [*range(count)]
    random.Random(0).shuffle(order)
    for number in order:
        for how in range(3):
            changed = mutation.values(data)
            where, name = [*mutation.places(changed)][number]
            value = where[name]
            if how == 0:
                where.pop(name)
            elif how == 1 and isinstance(value, (dict, list)) and value:
                where[name] = type(value)()
            elif how == 2 and isinstance(value, str) and len(value) > 1:
                where[name] = value[: len(value) // 2]
            else:
                continue
            yield mutation.lines(changed)
