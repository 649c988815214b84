"""The errors that end a stream of events."""

from __future__ import annotations

from rxdelta.core._errors import InvalidValueError, ProviderError
from rxdelta.core._events import EVENT_TYPES, StreamError

__all__ = ["refusal"]


def refusal(event: object) -> Exception | None:
    """The error that an operator emits instead of this value: for a `StreamError`, and for a value that is no event."""
    if isinstance(event, StreamError):
        return ProviderError(event.message, type=event.type, code=event.code)
    if type(event) in EVENT_TYPES:
        return None
    return InvalidValueError.of([("event", event, "must be an event; chunks go through decode() first")])
