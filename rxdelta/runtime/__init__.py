"""The plumbing of operators with a clock, a thread or an asyncio loop. Private to the package."""

from rxdelta.runtime.clocks import ABOUT_NOW, LoopScheduler, check_seconds, clock
from rxdelta.runtime.loop import call_on, needed_loop, other_library, running_loop
from rxdelta.runtime.newest import drop_error
from rxdelta.runtime.outlet import Outlet
from rxdelta.runtime.pings import is_ping
from rxdelta.runtime.reporting import errors_to_session, is_interrupt, report
from rxdelta.runtime.session import (
    Backpressure,
    Pump,
    Session,
    SharedSession,
    current_session,
    session_of,
    subscribing,
)

__all__ = [
    "ABOUT_NOW",
    "LoopScheduler",
    "Outlet",
    "Pump",
    "Backpressure",
    "Session",
    "SharedSession",
    "call_on",
    "check_seconds",
    "clock",
    "current_session",
    "drop_error",
    "is_interrupt",
    "is_ping",
    "needed_loop",
    "other_library",
    "report",
    "running_loop",
    "session_of",
    "subscribing",
    "errors_to_session",
]
