"""How much untrusted input may grow before it is refused."""

from __future__ import annotations

import attrs

__all__ = ["DEFAULT_LIMITS", "Limits"]


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
    block_chars: int = 64 * 2**20
    """Characters in one block: text, reasoning, arguments, media."""
    json_depth: int = 200
    """Nesting of arguments and other JSON documents."""
    line_bytes: int = 2**20
    """Length of one line of SSE or NDJSON."""


DEFAULT_LIMITS = Limits()
