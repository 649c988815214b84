"""What every encoder is, and what encoders share: events in, frames of a front end's protocol out. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from rxdelta.core import Event, InvalidValueError, StreamInterrupted, clean_text, is_mapping, wrong_value

F = TypeVar("F", covariant=True)

MASKED = "An error occurred."
"""The text of an error that a front end gets by default: an error's own message may hold secrets."""

Masked = Callable[[Exception], str]
"""Makes the text that a front end gets of an error."""

_log = logging.getLogger("rxdelta.wire")


class Encoder(Protocol[F]):
    """The frames of one stream. An encoder closes whatever it has opened, however the stream ends."""

    def encode(self, event: Event, /) -> Sequence[F]:
        """The frames of one event; none after the end."""
        ...

    def fail(self, error: Exception, /) -> Sequence[F]:
        """The stream ended with an error: close what is open, then send the protocol's error frame."""
        ...

    def close(self) -> Sequence[F]:
        """The stream completed. If its message hadn't ended, it was cut off, and ends as by `fail`."""
        ...


def masked(error: Exception) -> str:
    """Hide the error from the front end, and log it."""
    _log.error("a stream to a front end ended with an error", exc_info=error)
    return MASKED


def shown_error(on_error: Masked, error: Exception) -> str:
    """The text of an error for the front end. If `on_error` fails, the error is masked, and both are logged."""
    try:
        return clean_text(str(on_error(error)))
    except Exception as failure:
        failure.__context__ = error
        return masked(failure)


def word_of(error: Exception) -> str | None:
    """The provider's word for an error, for a format that has a place for one: its code, or else its type."""
    found = (getattr(error, name, None) for name in ("code", "type"))
    return next((word for word in found if isinstance(word, str) and word), None)


def cut_off() -> StreamInterrupted:
    """The error of a stream that completed too early."""
    return StreamInterrupted("the stream ended before the message did")


def not_an_event(value: object) -> InvalidValueError:
    """The error of a value that is not an event."""
    return wrong_value("the encoder", value)


def named_frames(frames: Iterable[Mapping[str, Any]], by: str) -> Iterator[Mapping[str, Any]]:
    """The frames of an operator whose frames have a type.

    Raises:
        InvalidValueError: One has none.
    """
    for frame in frames:
        if not is_mapping(frame) or not isinstance(frame.get("type"), str):
            raise InvalidValueError.of([("frames", frame, f"must be those of {by}()")])
        yield frame


def number_problems(name: str, value: object) -> list[tuple[str, object, str]]:
    """The fault of an option that must be a whole number from 0, for `InvalidValueError.of`."""
    valid = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return [] if valid else [(name, value, "must be a whole number from 0")]


def whole_characters(half: str, piece: str) -> tuple[str, str]:
    """The text that can be written after one more piece, and half a character that waits for the piece after it.

    Args:
        half: The half character that waits.
        piece: The next piece.

    Example:
        >>> whole_characters("\\ud83d", "\\ude00 or \\ud83d")
        ('😀 or ', '\\ud83d')
    """
    piece = half + piece
    half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
    return clean_text(piece[:-1] if half else piece), half
