"""What every encoder is: events in, frames of a front end's protocol out. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rxdelta.core import Event, StreamInterrupted, clean_text

__all__ = ["MASKED", "Encoder", "Masked", "cut_off", "masked", "whole_characters"]

F = TypeVar("F", covariant=True)

MASKED = "An error occurred."
"""What a front end is told of an error unless it is said otherwise: the message may hold secrets."""

Masked = Callable[[Exception], str]
"""What a front end may be told of an error."""

_log = logging.getLogger("rxdelta.wire")


class Encoder(Protocol[F]):
    """The frames of one stream. What it opens it closes, whichever way the stream ends."""

    def encode(self, event: Event, /) -> Sequence[F]:
        """The frames of one event; none after the end."""
        ...

    def fail(self, error: Exception, /) -> Sequence[F]:
        """The stream ended with an error: what is open is closed, then the protocol's error frame."""
        ...

    def close(self) -> Sequence[F]:
        """The stream completed. If its message hadn't, it was cut off, and ends as by `fail`."""
        ...


def masked(error: Exception) -> str:
    """Hide the error from the front end, and log it."""
    _log.error("a stream to a front end ended with an error", exc_info=error)
    return MASKED


def cut_off() -> StreamInterrupted:
    """The error of a stream that completed too early."""
    return StreamInterrupted("the stream ended before the message did")


def whole_characters(half: str, piece: str) -> tuple[str, str]:
    """A piece of text as it can be written, and the half character at its end, which the next piece may complete.

    Args:
        half: What was kept back of the piece before.
        piece: The next piece.

    Example:
        >>> whole_characters("\\ud83d", "\\ude00 or \\ud83d")
        ('😀 or ', '\\ud83d')
    """
    piece = half + piece
    half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
    return clean_text(piece[:-1] if half else piece), half
