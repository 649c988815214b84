"""Decoders whose calls have ids of their own, and come once: the rule of `CallIdentity`, for every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rxdelta.core import CallIdentity, Event, Limits
from rxdelta.core.events import ReasoningDelta, TextDelta, ToolCallDelta
from rxdelta.formats.decoding import Decoder

__all__ = ["PROSE", "KnowsCalls", "knowing_calls"]

# What a reader may hold is for the reader to bound, which knows its limits. A call that is held here never gets there.
_LIMITS = Limits(index=2**62, blocks=2**62, choices=2**62, runs=2**62)

PROSE = frozenset([TextDelta, ReasoningDelta])
"""The kinds of event of which one that comes alone needs not pass the rule: most are of these."""


def knowing_calls(decoder: Decoder) -> Decoder:
    """The decoder, which holds the rule from now on, or a decoder around it that holds the rule."""
    if not isinstance(decoder, KnowsCalls):
        return _KnownCallsDecoder(decoder)
    decoder.know_calls()
    return decoder


def _all(events: Sequence[Event]) -> Sequence[Event]:
    return events


def _piece(piece: ToolCallDelta) -> Sequence[Event]:
    return (piece,)


class KnowsCalls:
    """The base of a decoder that asks the rule itself, once it has been told to, so that a piece of text needs not pass it.

    A decoder whose events are changed by another one around it is not told to: the rule is for the events that come out.

    Attributes:
        _told: What to emit for these events.
        _told_piece: What to emit for a piece of arguments that comes alone.
    """

    _calls: CallIdentity | None = None
    _told: Callable[[Sequence[Event]], Sequence[Event]] = staticmethod(_all)
    _told_piece: Callable[[ToolCallDelta], Sequence[Event]] = staticmethod(_piece)

    def know_calls(self) -> None:
        calls = self._calls = CallIdentity(_LIMITS, keeps_messages=True)
        self._told, self._told_piece = calls.steps, calls.grow

    def _told_last(self, events: Sequence[Event]) -> Sequence[Event]:
        """What to emit at the end of input, for the events that the decoder has."""
        return events if self._calls is None else [*self._told(events), *self._calls.close()]


class _KnownCallsDecoder(KnowsCalls):
    """A decoder around another one, which doesn't know the rule."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.know_calls()

    def decode(self, chunk: object, /) -> Sequence[Event]:
        events = self._decoder.decode(chunk)
        return events if len(events) == 1 and type(events[0]) in PROSE else self._told(events)

    def close(self) -> Sequence[Event]:
        return self._told_last(self._decoder.close())
