"""What a line has state of its replies so far, from which the next item implies its starts and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import events, message_order

if TYPE_CHECKING:
    from rxdelta.core.events import Event, Index


Lane: TypeAlias = tuple[str | None, int]
"""A run and a choice."""


class _Reply:
    """The reply of one lane."""

    def __init__(self) -> None:
        self.begun = False
        self.over = False
        self.called = False
        self.next = 0  # the index of the next block
        self.open: dict[Index, str] = {}  # the types of the open blocks
        self.current: Index | None = None  # the block that was touched last, if it is open

    def is_afresh(self) -> bool:
        return not self.begun or self.over

    def note(self, event: Any) -> None:
        if isinstance(event, events.MessageStart):
            self.__init__()  # type: ignore[misc]
            self.begun = True
        elif isinstance(event, events.BlockStart):
            kind = event.content.get("type")
            self.begun = True
            self.called = self.called or kind == "tool_call_chunk"
            self.open[event.index] = kind if isinstance(kind, str) else ""
            self.current = event.index
            if isinstance(event.index, int):
                self.next = max(self.next, event.index + 1)
        elif isinstance(event, events.BlockFinish):
            self.open.pop(event.index, None)
            if self.current == event.index:
                self.current = None
        elif isinstance(event, (events.MessageFinish, events.MessageInterrupted, events.StreamError)):
            self.over = True
            self.open.clear()
            self.current = None
        elif isinstance(event, events.AttemptReset):
            self.__init__()  # type: ignore[misc]
        elif event.index in self.open:
            self.current = event.index


class LineState:
    """The replies of all lanes, and the lane that items belong to.

    The functions for the events that an item implies change nothing; `note` takes note of these events.
    """

    def __init__(self) -> None:
        self.lane: Lane = (None, 0)
        self._replies: dict[Lane, _Reply] = {}

    @property
    def names(self) -> Mapping[str, Any]:
        """What an event of the lane is given."""
        run, choice = self.lane
        return {"run_id": run, "choice": choice}

    @property
    def _reply(self) -> _Reply:
        return self._replies.get(self.lane) or _Reply()

    def note(self, found: Sequence[Event]) -> None:
        for event in found:
            for reply in self._concerned(event):
                reply.note(event)

    def _concerned(self, event: Any) -> Sequence[_Reply]:
        if isinstance(event, (events.ProviderEvent, events.Custom, events.ToolUpdate, events.UsageUpdate)):
            return ()
        if not isinstance(event, (events.MessageInterrupted, events.StreamError, events.AttemptReset)):
            return [self._replies.setdefault((event.run_id, event.choice), _Reply())]
        choice = None if isinstance(event, events.StreamError) else event.choice
        return [
            reply
            for (run, own), reply in self._replies.items()
            if event.run_id in (None, run) and choice in (None, own)
        ]

    def start(self) -> list[Event]:
        """The start of the message, if it is implied."""
        return [events.MessageStart(**self.names)] if self._reply.is_afresh() else []

    def begin(
        self, content: Mapping[str, Any], *, beside: bool, index: Index | None = None
    ) -> tuple[list[Event], Index]:
        """The start of a block and what comes before it, and the block's index.

        Args:
            content: The block's content.
            beside: Whether the open blocks stay open.
            index: The block's index; by default the next one.
        """
        afresh = self._reply.is_afresh()
        if index is None:
            index = self.next_index()
        before = self.start() if afresh or beside else self.ends()
        return [*before, events.BlockStart(index, content, **self.names)], index

    @property
    def has_open_blocks(self) -> bool:
        return bool(self._reply.open)

    def ends(self) -> list[Event]:
        """The ends of the open blocks."""
        return [
            events.BlockFinish(index, **self.names) for index in sorted(self._reply.open, key=message_order)
        ]

    def current(self, *kinds: str) -> Index | None:
        """The index of the block that was touched last, if it is open and of one of these types."""
        index = self._reply.current
        return index if index is not None and (not kinds or self._reply.open[index] in kinds) else None

    def next_index(self) -> int:
        return 0 if self._reply.is_afresh() else self._reply.next

    def finish(self) -> list[Event]:
        """The ends of all replies that have begun and aren't over."""
        found: list[Event] = []
        before = self.lane
        for lane, reply in self._replies.items():
            if not reply.is_afresh():
                self.lane = lane
                reason = "tool_use" if reply.called else "stop"
                found += [*self.ends(), events.MessageFinish(reason, **self.names)]
        self.lane = before
        return found
