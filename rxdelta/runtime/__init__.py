"""The plumbing of operators with a clock, a thread or an asyncio loop. Private to the package."""

from rxdelta.runtime.clocks import ABOUT_NOW, check_seconds, clock
from rxdelta.runtime.lift import Machine, Sink, State, Timer, create, lift, lift_machine
from rxdelta.runtime.loop import call_on, running_loop
from rxdelta.runtime.newest import drop_error
from rxdelta.runtime.outlet import Outlet
from rxdelta.runtime.pings import is_ping
from rxdelta.runtime.reporting import errors_to_session, is_interrupt, report
from rxdelta.runtime.serial import Serial
from rxdelta.runtime.session import Backpressure, Pump, Session, SharedSession, current_session, session_of

__all__ = [
    "ABOUT_NOW",
    "Machine",
    "Outlet",
    "Pump",
    "Backpressure",
    "Serial",
    "Session",
    "SharedSession",
    "Sink",
    "State",
    "Timer",
    "call_on",
    "check_seconds",
    "clock",
    "create",
    "current_session",
    "drop_error",
    "is_interrupt",
    "is_ping",
    "lift",
    "lift_machine",
    "report",
    "running_loop",
    "session_of",
    "errors_to_session",
]
