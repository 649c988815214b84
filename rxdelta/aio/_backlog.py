"""The queue of events for a slow reader, in which events of one block are joined."""

from __future__ import annotations

import sys
from collections import deque
from threading import Lock
from typing import Any, Generic, TypeVar

import attrs

from rxdelta.core import JOINABLE, TERMINAL, InvalidValueError, Joined, usage_or_none
from rxdelta.core.events import (
    EVENT_TYPES,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    ProviderEvent,
    ToolUpdate,
    UsageUpdate,
)

__all__ = ["Backlog"]

T = TypeVar("T")


class Backlog(Generic[T]):
    """A queue of events with a few entries for each open block. It folds to the same reply as the appended events.

    An event is joined with a waiting one of the same subject, and so it may pass events of other subjects: another
    block, a tool, usage. No event passes the end of a message or another event of its own block. None passes a `Custom`
    either, but for a `Custom` that has newer data of the same name and id.

    Attributes:
        text_bytes: How much memory the text that waits takes. Joining makes fewer events of it, but no less text.
    """

    def __init__(self) -> None:
        self.text_bytes = 0
        self._queue: deque[_Entry] = deque()
        self._newest: dict[object, _Entry] = {}  # entries that events can still be joined with, by subject
        self._lock = Lock()  # the source may be on another thread than the reader

    def __len__(self) -> int:
        return len(self._queue)

    def append(self, event: T) -> None:
        """Add an event.

        Raises:
            InvalidValueError: It is no event.
        """
        if type(event) not in EVENT_TYPES:
            wanted = (
                "must be an event where a reader asks for overflow='join'; of snapshots it wants the 'latest'"
            )
            raise InvalidValueError.of([("value", event, wanted)])
        with self._lock:
            subject = self._subject(event)
            entry = self._newest.get(subject)
            if entry is None or not entry.takes(event):
                entry = _Entry(subject, event)
                self._queue.append(entry)
                if subject is not None:
                    self._newest[subject] = entry
            piece = JOINABLE.get(type(event))
            if piece is not None:
                # Many short pieces take more than their characters.
                size = sys.getsizeof(getattr(event, piece[0]))
                entry.text_bytes += size
                self.text_bytes += size

    def popleft(self) -> T:
        """Take the first event; `IndexError` if the queue is empty."""
        with self._lock:
            entry = self._queue.popleft()
            if self._newest.get(entry.subject) is entry:
                del self._newest[entry.subject]
            self.text_bytes -= entry.text_bytes
            held: Any = entry.held
        joined: Any = held.event() if type(held) is Joined else held
        event: T = joined
        return event

    def clear(self) -> None:
        with self._lock:
            self._queue.clear()
            self._newest.clear()
            self.text_bytes = 0

    def _subject(self, given: object) -> object:
        event: Any = given
        kind: Any = type(given)
        if kind in JOINABLE or kind in (BlockStart, BlockDelta, BlockFinish):
            return event.run_id, event.choice, event.index
        if kind is ToolUpdate:
            return ToolUpdate, event.run_id, event.choice, event.call_id
        if kind is UsageUpdate:
            return event.run_id, event.choice
        if kind is Custom:
            self._newest = {
                subject: entry for subject, entry in self._newest.items() if type(entry.held) is Custom
            }
            return None if event.id is None else (Custom, event.run_id, event.name, event.id, event.transient)
        if kind is not ProviderEvent:
            self._newest.clear()
        return None


class _Entry:
    __slots__ = ("held", "subject", "text_bytes")

    def __init__(self, subject: object, given: object) -> None:
        event: Any = given
        self.subject = subject
        self.text_bytes = 0
        kind: Any = type(given)
        known = JOINABLE.get(kind)
        self.held: Any = event if known is None else Joined(event, getattr(event, known[0]))

    def takes(self, given: object) -> bool:
        """Join the event with this entry if possible, and return whether it was."""
        event: Any = given
        held = self.held
        if type(held) is Joined:
            if not held.takes(event):
                return False
            held.pieces.append(getattr(event, JOINABLE[type(event)][0]))
        elif type(held) is UsageUpdate:
            if usage_or_none(event.usage) is not None:  # an empty one changes nothing
                self.held = event
        elif type(held) is Custom:
            self.held = event
        elif type(held) is ToolUpdate:
            if held.execution_status != event.execution_status or held.execution_status in TERMINAL:
                return False
            shown = event.display_text or held.display_text  # an empty text doesn't clear the last one
            result = held.result if event.result is None else event.result
            self.held = attrs.evolve(held, display_text=shown, result=result)
        elif type(held) is BlockDelta and type(event) is BlockDelta:
            if "execution_status" in held.fields:  # a status never goes back, so it must not be overwritten
                return False
            more = {name: value for name, value in event.fields.items() if value is not None}
            self.held = attrs.evolve(held, fields={**held.fields, **more})
        else:
            return False
        return True
