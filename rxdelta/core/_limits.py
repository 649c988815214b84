"""How much untrusted input may grow before it is refused."""

from __future__ import annotations

from typing import TypeVar

import attrs

from rxdelta.core._errors import LimitExceededError

__all__ = ["DEFAULT_LIMITS", "ByChoice", "Limits", "check_place"]

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds on what a stream may make us hold. Beyond one, `LimitExceededError` keeps the reply so far.

    Example:
        >>> import rxdelta as rd
        >>> rd.Limits(block_chars=1_000).blocks
        65536
    """

    index: int = 2**31
    """A block's index must be below this. Indexes are keys, so a large one costs no memory."""
    blocks: int = 65_536
    """Blocks in one message."""
    choices: int = 1_024
    """Alternative replies in one stream."""
    block_chars: int = 64 * 2**20
    """Characters in one block: text, reasoning, arguments, media."""
    json_depth: int = 200
    """Nesting of arguments and other JSON documents."""
    line_bytes: int = 2**20
    """Length of one line of SSE or NDJSON."""


DEFAULT_LIMITS = Limits()


class ByChoice(dict[int, T]):
    """What is remembered for each choice of a stream: of so many as `Limits.choices` allows.

    Raises:
        LimitExceededError: One more is put in.
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
    """Whether a message that has `known` blocks may have one more, with this index.

    Raises:
        LimitExceededError: It may not.
    """
    if isinstance(index, int) and abs(index) >= limits.index:
        raise LimitExceededError.of("index", limits.index, "the block index")
    if known >= limits.blocks:
        raise LimitExceededError.of("blocks", limits.blocks, "the number of blocks in one message")
