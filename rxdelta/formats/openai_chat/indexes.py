"""The indexes of choices and calls, as vendors write them."""

from __future__ import annotations

import re
from typing import Final

from rxdelta.formats.decoding import Fields
from rxdelta.formats.openai_chat.tables import FORMAT

__all__ = ["index_of"]

_READ = Fields(FORMAT)


def index_of(value: object, path: str) -> int | None:
    """The index; `None` if there is none, also in the form of a number that can be none: `-1`.

    A whole number may come as a text or as a float.

    Raises:
        MalformedChunkError: It is something else.
        LimitExceededError: It is absurd.

    Example:
        >>> index_of("1", "index"), index_of(1.0, "index"), index_of(-1, "index")
        (1, 1, None)
    """
    if value is None:
        return None
    number = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        number = int(value[:_DIGITS])
    if type(number) is int and number < 0:
        return None
    return _READ.index(number, path)


_DIGITS: Final = 40
"""More of them are as absurd, and cost time."""

_NUMBER: Final = re.compile("-?[0-9]+")
