"""Events → the frames of a reply, for a client of a provider's API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from rxdelta.core import (
    PIECE_FIELDS,
    ByChoice,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    StreamInterrupted,
    clean_text,
    concerns_choice,
)
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent
from rxdelta.formats.encoding import Masked, cut_off, not_an_event, number_problems, shown_error
from rxdelta.formats.reply.choice import Choice
from rxdelta.formats.reply.writer import Writer

F = TypeVar("F")

_piece_field = PIECE_FIELDS.get  # bound once, because it runs for every event


class ReplyEncoder(Generic[F]):
    """The base of the encoders for clients of a provider's API.

    Args:
        writer: Writes the frames.
        make: Makes what the client has of a choice, of the writer, the choice's number and the limits.
        on_error: The text of an error for the client.
        limits: Bounds what is kept.
        choice: Which of several alternative replies is written.
    """

    def __init__(
        self, writer: Writer, make: type[Choice], *, on_error: Masked, limits: Limits, choice: int = 0
    ) -> None:
        if problems := number_problems("choice", choice):
            raise InvalidValueError.of(problems)
        self._shown = choice
        self._writer = writer
        self._make = make
        self._on_error = on_error
        self._limits = limits
        self._choices: dict[int, Choice] = ByChoice(limits)
        self._over = False

    def encode(self, event: Event, /) -> Sequence[F]:
        """The frames of one event; none after the end.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: A block, its index or their number is too large, or there are too many choices or runs.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        field = _piece_field(kind)
        if field is not None:
            choice = self._choices.get(given.choice)
            runs = None if choice is None else choice.runs
            if runs is not None and (given.run_id == runs.newest_id or runs.turn_to(given.run_id)):
                if (fold := runs.grow(event)) is not None:
                    fold.place.grow(getattr(given, field))
                return self._writer.take()
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        if kind is ProviderEvent or kind is Custom:
            return ()
        try:
            for choice in self._concerned(event):
                for run in choice.runs.of(event):
                    run.encode(event)
        except (ProviderError, StreamInterrupted) as error:
            return self.fail(error)
        return self._writer.take()

    def _concerned(self, event: Any) -> Sequence[Choice]:
        """The choices that an event concerns: that one only, since most formats have no others."""
        return [self._choice(self._shown)] if concerns_choice(event, self._shown) else ()

    def _choice(self, index: int) -> Choice:
        """The state of a choice at the client, from now on if it is new."""
        known = self._choices.get(index)
        if known is None:
            known = self._choices[index] = self._make(self._writer, index, self._limits)
        return known

    def fail(self, error: Exception, /) -> Sequence[F]:
        """The stream ended with an error: send the masked error, and what else the format ends with."""
        if self._over:
            return ()
        for choice in self._choices.values():
            choice.break_off()
        kind, code = (
            word if isinstance(word, str) else None
            for word in (getattr(error, name, None) for name in ("type", "code"))
        )
        return self._failed(shown_error(self._on_error, error), kind, code)

    def close(self) -> Sequence[F]:
        """The stream completed: send why the reply ended, and the usage. If it hadn't ended, it was cut off."""
        if self._over:
            return ()
        choices = self._choices.values()
        if not choices or not all(choice.runs.over for choice in choices):
            return self.fail(cut_off())
        try:
            reasons = [choice.finish() for choice in choices]
        except StreamInterrupted as error:
            return self.fail(error)
        interrupted = next((reason for reason in reasons if reason is not None), None)
        if interrupted is not None:
            return self._failed(clean_text(interrupted), "interrupted")
        self._ended(choices)
        return self._last()

    def _ended(self, choices: Iterable[Choice]) -> None:
        """All choices have ended: write what follows them."""

    def _failed(self, message: str, kind: str | None, code: str | None = None) -> Sequence[F]:
        self._writer.fail(message, kind, code)
        return self._last()

    def _last(self) -> Sequence[F]:
        self._over = True
        return self._writer.take()


E = TypeVar("E", bound=ReplyEncoder[Any])


def as_provider(encoder: E) -> E:
    """The encoder, which from now on writes as the provider itself does, also what a client would rather not get."""
    encoder._writer.is_provider = True  # pyright: ignore[reportPrivateUsage]
    return encoder
