"""Where a subscription belongs, as the context carries it: to a session, a log, and the bounds of a pipeline.

One variable has all three. A shared source sets it for each reader at each value, and to set three costs as much as all
the rest of a value's way.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rxdelta.runtime.bounds import Bounds
    from rxdelta.runtime.journals import Journal
    from rxdelta.runtime.session import Session

__all__ = ["Place", "current_place"]

Place: TypeAlias = "tuple[Session | None, Journal | None, Bounds | None]"

current_place: ContextVar[Place] = ContextVar("rxdelta", default=(None, None, None))
