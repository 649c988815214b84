"""A tool that is itself an agent: its messages, from the events or snapshots that it emits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reactivex.disposable import SerialDisposable

from rxdelta.core import (
    TERMINAL,
    Event,
    Fold,
    Limits,
    Message,
    PerRun,
    Snapshot,
    ToolError,
    concerns_choice,
    freeze,
    refusal,
)
from rxdelta.core.events import EVENT_TYPES, ProviderEvent, ToolUpdate

if TYPE_CHECKING:
    from reactivex import abc


_PAUSE = 0.1  # the least number of seconds between two updates about an agent
_RATE = 500_000  # the characters of such updates in a second: each repeats all of the agent's messages


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
        self._runs = PerRun(_Run, limits)

    def step(self, value: Event | Snapshot | Message) -> bool:
        """Apply a value of the tool. Return whether it changes anything.

        Raises:
            ProviderError: The event is a `StreamError`.
            LimitExceededError: A message is too large, or there are too many runs.
        """
        if isinstance(value, (Snapshot, Message)):
            return self._replace(value)
        error = refusal(value)
        if error is not None:
            raise error
        changed = [message.step(value) for message in self._concerned(value)]
        return any(changed)

    def text(self) -> str:
        """The text of the newest message, or of its refusal."""
        reply = self._messages[-1].reply
        return reply.text or reply.content_to_string("refusal") or ""

    def answer(self) -> str:
        """The text of the last message, which is the tool's result.

        Raises:
            ToolError: There is no message, or the last one has no end, or asks for tools that nobody has run.
        """
        if not self._messages:
            raise ToolError("the agent did not reply")
        last = self._messages[-1].reply
        if last.status == "incomplete":
            raise ToolError("the agent's reply broke off")
        if last.status == "interrupted":
            raise ToolError("the agent's reply was interrupted")
        theirs = [call for call in last.waiting_calls if call.type == "server_tool_call"]
        calls = [*(call for call in last.tool_calls if call.execution_status() not in TERMINAL), *theirs]
        if calls:
            names = ", ".join(call.name or "" for call in calls)
            raise ToolError(f"the agent asked for tools that were not run: {names}")
        return self.text()

    def metadata(self) -> Mapping[str, Any]:
        """The messages as JSON, for the metadata of a result. Values that are nested too deep are left out."""
        messages = [message.reply.to_dict() for message in self._messages]
        frozen: Mapping[str, Any] = freeze({"messages": messages} if messages else {}, lenient=True)
        return frozen

    def _replace(self, reply: Snapshot | Message) -> bool:
        lane = (reply.run_id, reply.choice)
        before = next((one for one in reversed(self._messages) if one.lane == lane), None)
        if before is None or _is_another(before.reply, reply):
            self._messages.append(_Message(reply))
            return True
        changed = before.reply is not reply
        before.reply = reply
        return changed

    def _concerned(self, event: Event) -> Sequence[_Message]:
        """The messages that an event may change. It may begin one."""
        if isinstance(event, ProviderEvent) or not concerns_choice(event, 0):
            return ()
        if isinstance(event, ToolUpdate):
            return [one for one in reversed(self._messages) if one.has_call(event)][:1]
        return [self._newest(run, event) for run in self._runs.of(event)]

    def _newest(self, run: _Run, event: Event) -> _Message:
        """The newest message of a run, which may begin with this event."""
        if run.newest is None or run.newest.begins_another(event):
            fold = Fold(choice=0, run_id=run.run_id, limits=self._limits)
            run.newest = _Message(fold.snapshot, fold)
            self._messages.append(run.newest)
        return run.newest


class AgentUpdates:
    """Shows the messages of an agent while it streams, with a pause after each update.

    Args:
        limits: Bounds on the size of each message.
        show: Emits the text and the metadata of the tool's result so far.
        later: Calls a function in a turn after some seconds, unless it is disposed.
    """

    def __init__(
        self,
        limits: Limits,
        show: Callable[[str, Mapping[str, Any]], None],
        later: Callable[[float, Callable[[], None]], abc.DisposableBase],
    ) -> None:
        self._agent = SubAgent(limits)
        self._show = show
        self._later = later
        self._has_news = False  # since the last update
        self._pauses = False  # after that update
        self.pause = SerialDisposable()

    def step(self, value: Event | Snapshot | Message) -> None:
        """Apply a value of the tool; see `SubAgent.step`."""
        self._has_news = self._agent.step(value) or self._has_news

    def update(self) -> None:
        """Show the messages, if they have changed, and then pause: for the longer, the more is shown."""
        if self._has_news and not self._pauses:
            metadata = self.metadata()
            self._show(self._agent.text(), metadata)
            self._has_news, self._pauses = False, True
            seconds = max(_PAUSE, len(str(metadata)) / _RATE)
            self.pause.disposable = self._later(seconds, self._end_pause)

    def _end_pause(self) -> None:
        self._pauses = False
        self.update()

    def answer(self) -> str:
        """The tool's result; see `SubAgent.answer`."""
        return self._agent.answer()

    def metadata(self) -> Mapping[str, Any]:
        return self._agent.metadata()


class _Run:
    """One run of the events, and its newest message."""

    __slots__ = ("newest", "run_id")

    def __init__(self, run_id: str | None) -> None:
        self.run_id = run_id
        self.newest: _Message | None = None


class _Message:
    """One message: the newest reply, and the fold that made it of events, if it was made of events."""

    __slots__ = ("fold", "reply")

    def __init__(self, reply: Snapshot | Message, fold: Fold | None = None) -> None:
        self.reply = reply
        self.fold = fold

    @property
    def lane(self) -> tuple[str | None, int]:
        return self.reply.run_id, self.reply.choice

    def begins_another(self, event: Event) -> bool:
        return self.fold is not None and self.fold.begins_another(event)

    def has_call(self, update: ToolUpdate) -> bool:
        return self.fold is not None and self.fold.has_call(update)

    def step(self, event: Event) -> bool:
        before = self.reply
        if self.fold is not None:
            self.reply = self.fold.step(event)
        return self.reply is not before


def _is_another(before: Snapshot | Message, reply: Snapshot | Message) -> bool:
    """Whether a snapshot is of another message than the one before it, and no later attempt at that."""
    ids = before.id is not None and reply.id is not None and before.id != reply.id
    begins = before.status != "incomplete" and reply.status == "incomplete"
    whole = isinstance(before, Message) and isinstance(reply, Message) and None in (before.id, reply.id)
    return before is not reply and (ids or begins or whole) and reply.attempt <= before.attempt
