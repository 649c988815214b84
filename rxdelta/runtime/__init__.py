"""The plumbing of operators with a clock, a thread or an asyncio loop. Private to the package.

| file | subject |
| --- | --- |
| `lift`, `sink`, `serial` | an operator is a state or a machine; one subscription of it; its turns |
| `session`, `reader`, `place` | how sources and operators reach their reader, its limits and its log |
| `clocks`, `loop` | times, timers, and the asyncio loop of a thread |
| `observables`, `makers` | our own Observables and the functions that make operators |
| `values` | which value a newer one replaces, and which says nothing |
"""

from rxdelta.runtime.clocks import ABOUT_NOW, LoopScheduler, clock, deadline, loop_of, seconds
from rxdelta.runtime.lift import (
    Machine,
    Mapper,
    create,
    lift,
    lift_machine,
    lift_map,
    lift_opening,
)
from rxdelta.runtime.loop import call_on, from_thread, needed_loop, other_library, running_loop
from rxdelta.runtime.makers import checks_options, is_made_by, names_operator, operator_maker
from rxdelta.runtime.observables import (
    Emits,
    Mark,
    OwnObservable,
    SourceObservable,
    Taker,
    all_events,
    emits_events,
    headers_of,
    keeps_newest,
    mark_of,
    pipeline_of,
    refuse_all_but_events,
    refuse_pieces,
    sent_with,
)
from rxdelta.runtime.place import Bounds, current_journal, journaling, within
from rxdelta.runtime.reader import Backpressure, Idleness, Journal, Pump, Session, is_interrupt, report
from rxdelta.runtime.serial import Serial
from rxdelta.runtime.session import (
    SessionScheduler,
    SharedSession,
    SideSession,
    calling_for,
    current_session,
    journal_of,
    logged,
    session_of,
    subscribing,
)
from rxdelta.runtime.sink import Sink, State, Timer
from rxdelta.runtime.values import KeyOf, Newest, NewestForLate, Pings, is_ping, replaceable

__all__ = [
    "ABOUT_NOW",
    "all_events",
    "Backpressure",
    "Bounds",
    "call_on",
    "calling_for",
    "checks_options",
    "clock",
    "create",
    "current_journal",
    "current_session",
    "deadline",
    "Emits",
    "emits_events",
    "from_thread",
    "headers_of",
    "Idleness",
    "is_interrupt",
    "is_made_by",
    "is_ping",
    "Journal",
    "journal_of",
    "journaling",
    "keeps_newest",
    "KeyOf",
    "lift",
    "lift_machine",
    "pipeline_of",
    "lift_map",
    "lift_opening",
    "logged",
    "loop_of",
    "LoopScheduler",
    "Machine",
    "Mark",
    "mark_of",
    "Mapper",
    "names_operator",
    "needed_loop",
    "Newest",
    "NewestForLate",
    "operator_maker",
    "other_library",
    "OwnObservable",
    "Pings",
    "Pump",
    "refuse_all_but_events",
    "refuse_pieces",
    "replaceable",
    "report",
    "running_loop",
    "Serial",
    "Session",
    "session_of",
    "SessionScheduler",
    "SharedSession",
    "seconds",
    "sent_with",
    "SideSession",
    "Sink",
    "SourceObservable",
    "State",
    "subscribing",
    "Taker",
    "Timer",
    "within",
]
