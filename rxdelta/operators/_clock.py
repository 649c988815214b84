"""Whose time an operator goes by."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reactivex.disposable import Disposable
from reactivex.scheduler import EventLoopScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from reactivex import abc

__all__ = ["check_seconds", "clock"]


def clock(
    chosen: abc.SchedulerBase | None, inherited: abc.SchedulerBase | None
) -> tuple[abc.SchedulerBase, abc.DisposableBase]:
    """The scheduler of one subscription, and what must be disposed with it.

    The operator's own argument; else the subscriber's; else the running asyncio loop; else a thread of its own, which
    ends with the subscription (Rx's default would start a thread for each timer).
    """
    if chosen is not None or inherited is not None:
        return chosen or inherited, Disposable()  # type: ignore[return-value]
    try:
        return AsyncIOScheduler(asyncio.get_running_loop()), Disposable()
    except RuntimeError:
        thread = EventLoopScheduler()
        return thread, thread


def check_seconds(name: str, seconds: object) -> float:
    """A span of time as a positive number of seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise InvalidValueError.of([(name, seconds, "must be a positive number of seconds")])
    return float(seconds)
