"""Which values may be dropped in favour of a newer one."""

from __future__ import annotations

from rxdelta.core import InvalidValueError
from rxdelta.core.events import EVENT_TYPES

__all__ = ["drop_error"]


def drop_error(
    by: str, value: object, instead: str = "pace the events with compact_deltas()"
) -> InvalidValueError | None:
    """What is wrong with letting go of the value in favour of a newer one."""
    if type(value) not in EVENT_TYPES:
        return None
    return InvalidValueError(
        f"{by} would drop a {type(value).__name__}, which the next event does not contain; "
        f"put scan_deltas() in front of it, or {instead}",
        field="value",
        value=value,
    )
