"""Decoders whose calls have ids of their own, and come once: the rule of `CallIdentity`, for every format."""

from __future__ import annotations

from collections.abc import Sequence

from rxdelta.core import CallIdentity, Event, Limits
from rxdelta.formats.decoding import Decoder

__all__ = ["KnownCallsDecoder", "KnowsCalls"]

# What a reader may hold is for the reader to bound, which knows its limits. A call that is held here never gets there.
_LIMITS = Limits(index=2**62, blocks=2**62, choices=2**62, runs=2**62)


class KnowsCalls:
    """The base of a decoder that asks the rule itself, so that a piece of text needs not pass it.

    Attributes:
        known_calls: Gets the pieces of arguments by `grow`, and all events that are no mere pieces by `steps`.
    """

    def __init__(self) -> None:
        self.known_calls = CallIdentity(_LIMITS, keeps_messages=True)

    def ended(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events to emit at the end of input, for those that the decoder has."""
        return [*self.known_calls.steps(events), *self.known_calls.close()]


class KnownCallsDecoder(KnowsCalls):
    """A decoder around another one, which doesn't know the rule."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self._decoder = decoder

    def decode(self, chunk: object, /) -> Sequence[Event]:
        return self.known_calls.steps(self._decoder.decode(chunk))

    def close(self) -> Sequence[Event]:
        return self.ended(self._decoder.close())
