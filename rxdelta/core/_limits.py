"""Bounds on untrusted input, and the checks of them."""

from __future__ import annotations

from typing import TypeVar

import attrs

from rxdelta.core._errors import LimitExceededError

__all__ = ["DEFAULT_LIMITS", "ByChoice", "Limits", "check_place"]

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds on the memory that a stream may take. Beyond one, `LimitExceededError` has the reply so far.

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
    """Alternative replies in one stream."""
    block_chars: int = 64 * 2**20
    """Characters in one block: text, reasoning, arguments, media."""
    json_depth: int = 200
    """Nesting of arguments and other JSON documents."""
    line_bytes: int = 2**20
    """Bytes in one line of SSE or NDJSON."""


DEFAULT_LIMITS = Limits()


class ByChoice(dict[int, T]):
    """A mapping from the choices of a stream, which takes no more choices than `Limits.choices`.

    Raises:
        LimitExceededError: An item for one more choice is set.
    """

    __slots__ = ("_most",)

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__()
        self._most = limits.choices

    def __setitem__(self, choice: int, value: T) -> None:
        if len(self) >= self._most and choice not in self:
            raise LimitExceededError.of("choices", self._most, "the number of choices")
        super().__setitem__(choice, value)


def check_place(index: object, known: int, limits: Limits) -> None:
    """Check that a message of `known` blocks may have one more block, with this index.

    Raises:
        LimitExceededError: The index is too large, or there are too many blocks.
    """
    if isinstance(index, int) and abs(index) >= limits.index:
        raise LimitExceededError.of("index", limits.index, "the block index")
    if known >= limits.blocks:
        raise LimitExceededError.of("blocks", limits.blocks, "the number of blocks in one message")
