"""The rule that a snapshot may be dropped for a newer one, and an event may not."""

from __future__ import annotations

from rxdelta.core import InvalidValueError
from rxdelta.core.events import EVENT_TYPES

__all__ = ["drop_error"]


def drop_error(
    by: str, value: object, instead: str = "pace the events with compact_deltas()"
) -> InvalidValueError | None:
    """Return the error for dropping this value in favour of a newer one, or `None` if that loses nothing."""
    if type(value) not in EVENT_TYPES:
        return None
    return InvalidValueError(
        f"{by} would drop a {type(value).__name__}, which the next event does not contain; "
        f"put scan_deltas() in front of it, or {instead}",
        field="value",
        value=value,
    )
