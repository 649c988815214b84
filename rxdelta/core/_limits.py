"""Bounds on untrusted input, and the checks of them."""

from __future__ import annotations

from collections.abc import Sized
from typing import ClassVar, TypeVar

import attrs

from rxdelta.core._errors import InvalidValueError, LimitExceededError

__all__ = [
    "DEFAULT_LIMITS",
    "ByChoice",
    "ByRun",
    "Limits",
    "check_members",
    "check_place",
]

K = TypeVar("K")
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds on the memory of a stream; `index` is the highest number of a block, not how many there are.

    Beyond a bound, `LimitExceededError` has the reply so far.

    Raises:
        InvalidValueError: A bound is not a whole number from 0.

    Example:
        >>> import rxdelta as rd
        >>> rd.Limits(block_chars=1_000).blocks
        65536
    """

    index: int = 2**31
    """A block's index must be less than this. Indexes are keys, so a large one takes no memory."""
    blocks: int = 65_536
    """Blocks in one message."""
    choices: int = 1_024
    """Alternative replies in one stream, or in one run of it."""
    runs: int = 10_000
    """Runs in one stream: a graph may make one for each reply."""
    block_chars: int = 64 * 2**20
    """Characters in one block: text, reasoning, arguments, media."""
    json_depth: int = 200
    """Nesting of arguments and other JSON documents."""
    line_bytes: int = 2**20
    """Bytes in one line of SSE or NDJSON."""
    members: int = 4_096
    """Keys of each mapping that grows: a usage's `raw`, the metadata of a message, the options of a part, the metadata of a
    call. Decoders also count what is within a usage that a stream tells piece by piece; nothing else within a value counts."""

    def __attrs_post_init__(self) -> None:
        wrong = [
            (field.name, value, "must be a whole number from 0")
            for field in attrs.fields(Limits)
            if not isinstance(value := getattr(self, field.name), int) or isinstance(value, bool) or value < 0
        ]
        if wrong:
            raise InvalidValueError.of(wrong)


DEFAULT_LIMITS = Limits()


class _Bounded(dict[K, T]):
    """A mapping that takes no more items than a limit."""

    __slots__ = ("_most",)

    limit: ClassVar[str]

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__()
        self._most: int = getattr(limits, self.limit)

    def __setitem__(self, key: K, value: T) -> None:
        if len(self) >= self._most and key not in self:
            raise LimitExceededError.of(self.limit, self._most, f"the number of {self.limit}")
        super().__setitem__(key, value)


class ByChoice(_Bounded[int, T]):
    """A mapping from the choices of a stream, which takes no more choices than `Limits.choices`.

    Raises:
        LimitExceededError: An item for one more choice is set.
    """

    __slots__ = ()
    limit = "choices"


class ByRun(_Bounded["str | None", T]):
    """A mapping from the runs of a stream, which takes no more runs than `Limits.runs`.

    Raises:
        LimitExceededError: An item for one more run is set.
    """

    __slots__ = ()
    limit = "runs"


def check_members(found: Sized, limits: Limits, what: str) -> None:
    """Check the number of a mapping's keys, or of the items in a usage's list.

    Raises:
        LimitExceededError: There are more than `Limits.members`.
    """
    if len(found) > limits.members:
        raise LimitExceededError.of("members", limits.members, f"the number of members of {what}")


def check_place(index: object, known: int, limits: Limits) -> None:
    """Check that a message of `known` blocks may have one more block, with this index.

    Raises:
        LimitExceededError: The index is too large, or there are too many blocks.
    """
    if isinstance(index, int) and abs(index) >= limits.index:
        raise LimitExceededError.of("index", limits.index, "the block index")
    if known >= limits.blocks:
        raise LimitExceededError.of("blocks", limits.blocks, "the number of blocks in one message")
