"""A store that calls its servers again by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.relay._store import Store

if TYPE_CHECKING:
    from rxdelta.relay._shared._traffic import Traffic

__all__ = ["Patient"]


class Patient(Store):
    """Its methods raise a `StreamInterrupted` when its servers have been away for `Terms.patience`, and no `OSError`.

    Attributes:
        traffic: Where it notes how its calls go, from `open` on.
    """

    traffic: Traffic
