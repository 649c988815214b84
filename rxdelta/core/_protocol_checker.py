"""The rules of the event protocol: a start, then deltas, then a finish; and all blocks finish before the message."""

from __future__ import annotations

from typing import Any

from rxdelta.core._block_fold import grows_by
from rxdelta.core._block_wire import block_from_wire
from rxdelta.core._events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.core._limits import ByChoice

__all__ = ["ProtocolChecker"]


class ProtocolChecker:
    """Checks the events of one message against the rules of the protocol.

    | violation | what happened |
    | --- | --- |
    | `missing_message_start` | an event of the message before its start, or no event at all |
    | `duplicate_message_start` | a second start |
    | `duplicate_block_start` | a start for a block that has started |
    | `delta_before_start`, `finish_without_start` | an event for a block that has not started |
    | `delta_after_finish`, `duplicate_block_finish` | an event for a block that has finished |
    | `delta_type_mismatch` | e.g. a text delta for a reasoning |
    | `unknown_delta_type` | a delta that the protocol does not define |
    | `block_not_finished` | the message finished with a block open |
    | `event_after_message_finish`, `duplicate_message_finish` | an event after the message's finish or interruption |
    | `missing_message_finish` | the stream completed without a finish |
    | `error_event` | the provider reported an error |

    Example:
        >>> import rxdelta as rd
        >>> rd.core.ProtocolChecker().check(rd.events.TextDelta(0, "Hi"))
        'missing_message_start'
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._choices: dict[int, _Choice] = ByChoice()
        self._interrupted = False

    def check(self, event: Event) -> str | None:
        """The first rule that this event breaks, if any. The event counts even if it breaks a rule.

        Raises:
            LimitExceededError: More choices than the default `Limits` allow.
        """
        if isinstance(event, (ToolUpdate, ProviderEvent)):
            delta = (
                isinstance(event, ProviderEvent)
                and event.name == "content-block-delta"
                and not event.provider
            )
            return "unknown_delta_type" if delta else None
        if isinstance(event, AttemptReset):
            self._begin()
            return None
        if isinstance(event, MessageInterrupted):
            self._interrupted = True
            return None
        if isinstance(event, StreamError):
            return "error_event"
        if self._interrupted:
            return "event_after_message_finish"
        choice = self._choices.get(event.choice)
        if choice is None:
            choice = self._choices[event.choice] = _Choice()
        return choice.check(event)

    def close(self) -> str | None:
        """The rule that the stream breaks by ending here, if any."""
        if self._interrupted:
            return None
        if not self._choices:
            return "missing_message_start"
        return None if all(choice.finished for choice in self._choices.values()) else "missing_message_finish"


class _Choice:
    __slots__ = ("_closed", "_open", "_started", "finished")

    def __init__(self) -> None:
        self._started = self.finished = False
        self._open: dict[int | str, type] = {}  # the type of the deltas that continue each open block
        self._closed: set[int | str] = set()

    def check(self, event: Any) -> str | None:
        if isinstance(event, MessageStart):
            broken = "duplicate_message_start" if self._started else None
            self._started = True
            return broken
        if self.finished:
            return (
                "duplicate_message_finish"
                if isinstance(event, MessageFinish)
                else "event_after_message_finish"
            )
        missing_start = None if self._started else "missing_message_start"
        self._started = True
        broken = self._check_block(event)
        return missing_start or broken

    def _check_block(self, event: Any) -> str | None:
        if isinstance(event, UsageUpdate):
            return None
        if isinstance(event, BlockStart):
            return self._start(event)
        if isinstance(event, BlockFinish):
            return self._finish(event)
        return self._message_finish() if isinstance(event, MessageFinish) else self._delta(event)

    def _start(self, event: BlockStart) -> str | None:
        known = event.index in self._open or event.index in self._closed
        self._open[event.index] = grows_by(block_from_wire(event.content, event.index))
        self._closed.discard(event.index)
        return "duplicate_block_start" if known else None

    def _delta(self, event: Any) -> str | None:
        if event.index in self._closed:
            return "delta_after_finish"
        takes = self._open.get(event.index)
        if takes is None:
            return "delta_before_start"
        return None if isinstance(event, (BlockDelta, takes)) else "delta_type_mismatch"

    def _finish(self, event: BlockFinish) -> str | None:
        if event.index in self._closed:
            return "duplicate_block_finish"
        started = self._open.pop(event.index, None)
        self._closed.add(event.index)
        return "finish_without_start" if started is None else None

    def _message_finish(self) -> str | None:
        self.finished = True
        return "block_not_finished" if self._open else None
