"""A decoder whose calls have ids of their own, and come once: the rule of `CallIdentity`, for every format."""

from __future__ import annotations

from collections.abc import Sequence

from rxdelta.core import MOST_NOTED, CallIdentity, Event, Limits
from rxdelta.core.events import TextDelta, ToolCallDelta
from rxdelta.formats.decoding import Decoder

__all__ = ["KnownCallsDecoder"]

# What a reader may hold is for the reader to bound, which knows its limits. A call that is held here never gets there.
_LIMITS = Limits(index=2**62, blocks=2**62, choices=2**62, runs=2**62)
_CONCERNED = CallIdentity.EVENTS


class KnownCallsDecoder:
    """A decoder around another one, whose repeated calls it leaves out, and whose calls with one id it tells apart."""

    __slots__ = ("_calls", "_decode", "_decoder")

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._decode = decoder.decode
        self._calls = CallIdentity(_LIMITS, keeps_messages=True)

    def decode(self, chunk: object, /) -> Sequence[Event]:
        events = self._decode(chunk)
        if len(events) == 1:  # a piece of a text or of arguments, as most chunks have
            event = events[0]
            kind = type(event)
            if kind is TextDelta:
                return events
            if kind is ToolCallDelta:
                noted = self._calls.noted
                if noted is not None and len(noted) < MOST_NOTED:
                    noted.append(event)
                    return events
        for event in events:
            if type(event) in _CONCERNED:
                return self._calls.steps(events)
        return events

    def close(self) -> Sequence[Event]:
        return [*self._calls.steps(self._decoder.close()), *self._calls.close()]
