"""The common ground of an AG-UI run: frames, ids, options; which block may send; calls without a result; lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from rxdelta.core import BlockFold, ToolCall, free_name
from rxdelta.formats.ag_ui.marks import DATA_EVENTS, DISCARDED, RUN_ID, with_marks
from rxdelta.formats.runs import RunIdentity
from rxdelta.framing import add_form

if TYPE_CHECKING:
    from types import ModuleType

    from ag_ui.core import BaseEvent


_MISSING = "to_ag_ui() needs the package ag-ui-protocol, 1.0 or later: pip install 'rxdelta[ag-ui]'"


def load_ag_ui() -> ModuleType:
    """The classes of AG-UI's events. Only the encoder needs them.

    Raises:
        ImportError: They are not installed, or the version is older than 1.0.
    """
    try:
        import ag_ui.core as ag_ui
    except ImportError as error:
        raise ImportError(_MISSING) from error
    if not hasattr(ag_ui, "RunFinishedCancelledOutcome"):
        raise ImportError(_MISSING)
    _add_forms()
    return ag_ui


@cache
def _add_forms() -> None:
    import ag_ui.core as ag

    for kind in (ag.TextMessageContentEvent, ag.ReasoningMessageContentEvent):
        add_form(kind(message_id="1", delta="2"), "message_id", "delta")
    add_form(ag.ToolCallArgsEvent(tool_call_id="1", delta="2"), "tool_call_id", "delta")


class Run:
    """The common ground of an AG-UI run, of which all runs of the stream are parts.

    Args:
        ag: The module `ag_ui.core`.
        run_id: The run's id.
        used_ids: The ids of the messages and calls that the client already has.
        speaks_1_0: Whether the client declares version 1.0 of the protocol, or a later one.
        serialize_calls: Whether nothing else may be sent while a call is open.
        show_reasoning: Whether reasoning and signatures are sent.
        provider_items: Whether the provider's own items that have no standard type are sent.

    Attributes:
        floor: Which block may send.
        unanswered: The calls that have no result yet.
    """

    def __init__(
        self,
        ag: ModuleType,
        run_id: str,
        used_ids: Iterable[str],
        *,
        speaks_1_0: bool,
        serialize_calls: bool,
        show_reasoning: bool,
        provider_items: bool,
    ) -> None:
        self.ag = ag
        self.id = run_id
        self.speaks_1_0 = speaks_1_0
        self.show_reasoning = show_reasoning
        self.provider_items = provider_items
        self.floor = Floor(serialized=serialize_calls)
        self.unanswered = Unanswered()
        self._used_ids = set(used_ids)
        self._owners: dict[str, str | None] = {}
        self._freed: set[str] = set()  # ids that were used, and may be used again
        # By the wanted id, those that haven't been tried: none before them is free, unless an id has been freed.
        self._suffixes: dict[str, count[int]] = {}
        self._names: set[str] = set()
        self._frames: list[BaseEvent] = []

    def send(self, frame: BaseEvent) -> None:
        self._frames.append(frame)

    def take_frames(self) -> list[BaseEvent]:
        """The frames since the last call. Those of a step that raised an error come with the next step's."""
        frames, self._frames = self._frames, []
        return frames

    def run_name(self, run_id: str | None) -> str:
        """A name for a run of the stream that no other has."""
        found = free_name(run_id or self.id, self._names.__contains__)
        self._names.add(found)
        return found

    def new_id(self, wanted: str, owner: str | None) -> str:
        """An id that the client doesn't have: it would take a second message for a continuation of the first.

        Args:
            wanted: The id, if it can be had.
            owner: The run that wants it. To the client, an id belongs for good to the run that had it first.
        """

        def is_taken(name: str) -> bool:
            return name in self._used_ids or self._owners.get(name, owner) != owner

        suffixes = None if self._freed else self._suffixes.setdefault(wanted, count(2))
        found = free_name(wanted, is_taken, suffixes)
        self.reserve_id(found)
        self._owners[found] = owner
        return found

    def reserve_id(self, own_id: str) -> None:
        self._used_ids.add(own_id)
        self._freed.discard(own_id)

    def free_id(self, own_id: str) -> None:
        self._used_ids.discard(own_id)
        self._freed.add(own_id)

    def discard_message(self, message_id: str, **marks: Any) -> None:
        """Replace a message of any kind by an activity that shows nothing, but has these marks.

        Its id can't be used again.
        """
        self.reserve_id(message_id)
        self.send(
            self.ag.ActivitySnapshotEvent(message_id=message_id, activity_type=DISCARDED, content=marks)
        )


class Floor:
    """Which block may send: where calls are serialized, only the open call.

    Older clients take one call at a time, so everything else waits until the call has ended.

    Args:
        serialized: Whether calls are serialized. If not, every block may send at any time.

    Attributes:
        call: The open call of a serialized run; other blocks wait for its end.
    """

    def __init__(self, *, serialized: bool) -> None:
        self.call: object = None
        self._serialized = serialized
        # In the order of their first change since the call began, which is the order in which they are shown.
        self._waiting: dict[Any, Callable[[Any], None]] = {}
        self._texts: list[OpenTexts] = []
        self._pauses: dict[Callable[[], object], None] = {}

    def take(self, call: object) -> None:
        """The call begins: the others wait from now on."""
        if self._serialized:
            self.call = call

    def leave(self, call: object) -> None:
        """The call has ended, or was taken back."""
        if self.call is call:
            self.call = None

    def wait(self, block: Any, show: Callable[[Any], None]) -> None:
        """The block has changed. Show it when the call has ended."""
        self._waiting[block] = show

    def forget(self, block: object) -> None:
        """The block was taken back, so it waits no more."""
        self._waiting.pop(block, None)

    def release(self) -> None:
        """Show the blocks that waited for a call to end, up to the next call that is open."""
        while self._waiting and self.call is None:
            block = next(iter(self._waiting))  # which may be a call that takes the floor in its turn
            self._waiting.pop(block)(block)

    @property
    def is_awaited(self) -> bool:
        """Whether blocks wait."""
        return bool(self._waiting)

    def is_awaited_by(self, reply: object) -> bool:
        """Whether blocks of this reply wait."""
        return any(block.reply is reply for block in self._waiting)

    # Messages that are open beside calls.

    def add_texts(self, texts: OpenTexts) -> None:
        """A lane begins."""
        self._texts.append(texts)

    def begin_reasoning(self, pause: Callable[[], object]) -> None:
        """The client waits for REASONING_END, which `pause` sends."""
        self._pauses[pause] = None

    def end_reasoning(self, pause: Callable[[], object]) -> None:
        """The client has REASONING_END."""
        self._pauses.pop(pause, None)

    def pause_for_call(self) -> None:
        """Where calls are serialized, end the open messages. A block that continues is opened again."""
        if self._serialized:
            for texts in self._texts:
                texts.end_all()
            for pause in [*self._pauses]:
                pause()


class Unanswered:
    """The calls that have no result yet, by the id that the client knows."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter([*self._calls.values()])  # a copy: a call is answered while they are gone through

    def __contains__(self, own_id: str) -> bool:
        return own_id in self._calls

    @property
    def ids(self) -> list[str]:
        """The client's ids of the calls."""
        return [*self._calls]

    def add(self, call: Call) -> None:
        """The client has the call."""
        self._calls[call.id] = call

    def settle(self, call: Call) -> None:
        """The client has a result of the call."""
        self._calls.pop(call.id, None)


class Lane:
    """One run of the stream, as far as its messages and blocks know it.

    Args:
        run: The AG-UI run.
        first: The first run of the stream, which is the agent's own; `None` if this is the first.

    Attributes:
        send: Sends a frame of this run.
        calls: The calls that the client has, by the id that the provider gave them.
        open_texts: The text messages without TEXT_MESSAGE_END.
        cancelled: Whether the message was stopped.
        identity: Which run of the stream it is.
        name: The run's name in the stream; `None` for the first run, whose frames name no run.
    """

    def __init__(self, run: Run, first: Lane | None) -> None:
        self.run = run
        self.send: Callable[[BaseEvent], None] = run.send if first is None else self._send_signed
        self.calls: dict[str, list[Call]] = {}
        self.open_texts = OpenTexts()
        run.floor.add_texts(self.open_texts)
        self.cancelled = False
        self.identity: RunIdentity = RunIdentity(None if first is None else first.identity)
        self.name: str | None = None

    @property
    def subagent(self) -> str | None:
        """The run's name, if it is a sub-agent's."""
        return self.name if self.identity.subagent else None

    def new_id(self, wanted: str) -> str:
        """An id that the client doesn't have."""
        return self.run.new_id(wanted, self.name)

    def _send_signed(self, frame: BaseEvent) -> None:
        self.run.send(self.signed(frame))

    def signed(self, frame: Any) -> Any:
        """An event or a message of this run, which says so, unless the run is the first."""
        if self.name is None:
            return frame
        if self.identity.subagent:
            frame.subagent_run_id = self.name
        elif frame.metadata is not None or getattr(frame, "type", None) in _OPENERS or hasattr(frame, "role"):
            frame.metadata = with_marks(frame.metadata, {RUN_ID: self.name})
        return frame


_OPENERS: Final = frozenset(
    [
        "TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START", "TOOL_CALL_START",
        "TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT", "RAW", *DATA_EVENTS,
    ]
)  # fmt: skip
"""The events that say whose a message, a call or news is. Others continue one of these."""


class OpenTexts:
    """The text messages without TEXT_MESSAGE_END.

    Messages without an open block are kept in a second dict, so that ending them needs no search.
    """

    def __init__(self) -> None:
        self._all: dict[OpenText, None] = {}
        self._complete: dict[OpenText, None] = {}

    def add(self, message: OpenText) -> None:
        self._all[message] = None
        self.update(message)

    def remove(self, message: OpenText) -> None:
        del self._all[message]
        self._complete.pop(message, None)

    def update(self, message: OpenText) -> None:
        """The number of open blocks of a message has changed."""
        if message in self._all and not message.growing:
            self._complete[message] = None
        else:
            self._complete.pop(message, None)

    def end_complete(self) -> None:
        """End the messages that no open block continues, because something else follows."""
        for message in [*self._complete]:
            message.end()

    def end_all(self) -> None:
        for message in [*self._all]:
            message.end()


class OpenText(Protocol):
    """A text message without TEXT_MESSAGE_END."""

    @property
    def growing(self) -> int:
        """How many of its texts are open."""
        ...

    def end(self) -> None:
        """Send TEXT_MESSAGE_END."""


class Call(Protocol):
    """A call that the client has."""

    id: str
    place: int
    lane: Lane
    fold: BlockFold

    @property
    def call(self) -> ToolCall:
        """The call itself."""
        ...

    @property
    def waits(self) -> bool:
        """Whether the call waits for a person's decision."""
        ...

    def send_news(self) -> None:
        """Send the progress of the tool, or its result."""

    def answer(self, answer: Any, /) -> None:
        """Send the result of the call."""

    def answer_unless_it_may_run(self, *, stopped: bool, may_wait: bool) -> None:
        """At the end of the run: answer a call that the client must not run."""
