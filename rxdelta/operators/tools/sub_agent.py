"""A tool that is itself an agent: its messages, from the events or snapshots that it emits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import TERMINAL, Fold, Message, Snapshot, ToolError, freeze, refusal
from rxdelta.core.events import (
    EVENT_TYPES,
    AttemptReset,
    MessageInterrupted,
    ProviderEvent,
    ToolUpdate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rxdelta.core import Event, Limits

__all__ = ["SubAgent", "is_of_agent"]

_Lane: TypeAlias = "tuple[str | None, int]"  # run and choice
_WHICHEVER = (ToolUpdate, MessageInterrupted, AttemptReset)


def is_of_agent(value: object) -> bool:
    """Whether a tool's value is an event, a snapshot or a message, so that the tool is an agent."""
    return type(value) in EVENT_TYPES or isinstance(value, (Snapshot, Message))


class SubAgent:
    """The messages of an agent in the order in which they began, those of all its runs.

    Events are folded, first choices only. A snapshot or a message takes the place of the one before, unless it is
    another message's.

    Args:
        limits: Bounds on the size of each message.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._messages: list[_Message] = []
        self._lanes: dict[_Lane, list[_Message]] = {}

    def step(self, value: Event | Snapshot | Message) -> bool:
        """Apply a value of the tool. Return whether it changes anything.

        Raises:
            ProviderError: The event is a `StreamError`.
            LimitExceededError: A message is too large.
        """
        if isinstance(value, (Snapshot, Message)):
            return self._replace(value)
        error = refusal(value)
        if error is not None:
            raise error
        changed = [message.step(value) for message in self._messages_of(value)]
        return any(changed)

    def text(self) -> str:
        """The text of the newest message, or of its refusal."""
        newest = self._messages[-1].newest
        return newest.text or newest.content_to_string("refusal") or ""

    def answer(self) -> str:
        """The text of the last message, which is the tool's result.

        Raises:
            ToolError: There is no message, or the last one has no end, or asks for tools that nobody has run.
        """
        if not self._messages:
            raise ToolError("the agent did not reply")
        last = self._messages[-1].newest
        if last.status == "incomplete":
            raise ToolError("the agent's reply broke off")
        if last.status == "interrupted":
            raise ToolError("the agent's reply was interrupted")
        waiting = [call.name or "" for call in last.tool_calls if call.execution_status() not in TERMINAL]
        if waiting:
            raise ToolError(f"the agent asked for tools that were not run: {', '.join(waiting)}")
        return self.text()

    def metadata(self) -> Mapping[str, Any]:
        """The messages as JSON, for the metadata of a result. What is nested too deep is left out."""
        messages = [message.newest.to_dict() for message in self._messages]
        frozen: Mapping[str, Any] = freeze({"messages": messages} if messages else {}, lenient=True)
        return frozen

    def _replace(self, reply: Snapshot | Message) -> bool:
        lane = self._lanes.setdefault((getattr(reply, "run_id", None), reply.choice), [])
        if not lane or _is_another(lane[-1].newest, reply):
            self._begin(lane, _Message(reply))
            return True
        return lane[-1].replace(reply)

    def _messages_of(self, event: Event) -> Iterator[_Message]:
        """The messages that an event may change. It may begin one."""
        if isinstance(event, ProviderEvent) or getattr(event, "choice", None) not in (None, 0):
            return
        lanes = [lane for lane in self._lanes.values() if lane[-1].fold is not None]
        if getattr(event, "run_id", None) is not None or not isinstance(event, _WHICHEVER):
            lanes = [self._lanes.setdefault((getattr(event, "run_id", None), 0), [])]
        for lane in lanes:
            if isinstance(event, ToolUpdate):
                yield from [message for message in reversed(lane) if message.has_call(event)][:1]
            else:
                if not lane or lane[-1].begins_another(event):
                    self._begin(lane, _Message.folded(self._limits))
                yield lane[-1]

    def _begin(self, lane: list[_Message], message: _Message) -> None:
        lane.append(message)
        self._messages.append(message)


class _Message:
    """One message: its newest state, and the fold that made it of events, if it was made of events."""

    __slots__ = ("fold", "newest")

    def __init__(self, newest: Snapshot | Message, fold: Fold | None = None) -> None:
        self.newest = newest
        self.fold = fold

    @classmethod
    def folded(cls, limits: Limits) -> _Message:
        fold = Fold(choice=0, limits=limits)
        return cls(fold.snapshot, fold)

    def replace(self, newest: Snapshot | Message) -> bool:
        changed = self.newest is not newest
        self.newest, self.fold = newest, None
        return changed

    def step(self, event: Event) -> bool:
        before = self.newest
        if self.fold is not None:
            self.newest = self.fold.step(event)
        return self.newest is not before

    def begins_another(self, event: Event) -> bool:
        """Whether the event belongs to the next message. After a snapshot, every event does."""
        return self.fold is None or self.fold.begins_another(event)

    def has_call(self, update: ToolUpdate) -> bool:
        return self.fold is not None and self.fold.has_call(update)


def _is_another(before: Snapshot | Message, reply: Snapshot | Message) -> bool:
    """Whether a snapshot is of another message than the one before it, and no later attempt at that."""
    ids = before.id is not None and reply.id is not None and before.id != reply.id
    over = before.status != "incomplete"
    return (ids or (over and reply.status == "incomplete")) and reply.attempt <= before.attempt
