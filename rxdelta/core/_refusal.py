"""What ends a stream of events in place of an event."""

from __future__ import annotations

from rxdelta.core._errors import InvalidValueError, ProviderError
from rxdelta.core._events import EVENT_TYPES, StreamError

__all__ = ["refusal"]


def refusal(event: object) -> Exception | None:
    """The error that ends the stream in place of this event, if it is one."""
    if isinstance(event, StreamError):
        return ProviderError(event.message, type=event.type, code=event.code)
    if type(event) in EVENT_TYPES:
        return None
    return InvalidValueError.of([("event", event, "must be an event; chunks go through decode() first")])
