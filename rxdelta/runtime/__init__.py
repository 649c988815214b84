"""What operators with a clock, a thread or an asyncio loop stand on. For the rooms above, not for users."""

from rxdelta.runtime.clocks import check_seconds, clock
from rxdelta.runtime.loop import call_on, running_loop
from rxdelta.runtime.newest import dropped
from rxdelta.runtime.outlet import Outlet
from rxdelta.runtime.pings import PIECES, is_ping
from rxdelta.runtime.reporting import is_interrupt, report, unattended
from rxdelta.runtime.session import Pump, Room, Session, SharedSession, current_session

__all__ = [
    "PIECES",
    "Outlet",
    "Pump",
    "Room",
    "Session",
    "SharedSession",
    "call_on",
    "check_seconds",
    "clock",
    "current_session",
    "dropped",
    "is_interrupt",
    "is_ping",
    "report",
    "running_loop",
    "unattended",
]
