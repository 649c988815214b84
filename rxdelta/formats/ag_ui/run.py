"""What the parts of an AG-UI run share: the frames to send, the ids in use, the replies, the options."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from rxdelta.formats.ag_ui.data import ApplicationData
from rxdelta.formats.ag_ui.marks import DISCARDED
from rxdelta.formats.ag_ui.reply import EncodedReply
from rxdelta.framing import add_form

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from ag_ui.core import BaseEvent

    from rxdelta.formats.ag_ui.blocks import AgUiBlock
    from rxdelta.formats.ag_ui.calls import CallBlock
    from rxdelta.formats.ag_ui.reasoning import ReasoningBlock
    from rxdelta.formats.ag_ui.run_messages import RunMessages

__all__ = ["Run", "load_ag_ui"]

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
    """What the parts of an AG-UI run share. All runs of the stream are parts of it.

    Args:
        ag: The module `ag_ui.core`.
        run_id: The run's id.
        used_ids: The ids of the messages and calls that the client already has.
        speaks_1_0: Whether the client declares version 1.0 of the protocol, or a later one.
        serialize_calls: Whether nothing else may be sent while a call is open.
        show_reasoning: Whether reasoning and signatures are sent.
        provider_items: Whether the provider's own items that have no standard type are sent.
        history: The messages of the request, and the results of their calls, as a snapshot repeats them; `None` if they
            aren't known.

    Attributes:
        lanes: The runs of the stream.
        subagents: The names of the runs that the client knows as sub-agents.
        replies: The replies of all runs of the stream, in the order in which they began.
        usage: The usage of messages and attempts that have ended, by model.
        unanswered: The calls that have no result yet, by the id that the client knows.
        stale_ids: The messages that the client still has although they no longer hold.
        open_reasoning: The reasoning blocks without REASONING_END.
        open_call: The call that all other blocks wait for; always `None` unless calls are serialized.
        waiting: The blocks that have changed since that call began, in the order of their first change.
        data: What the application says.
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
        history: list[Any] | None,
    ) -> None:
        self.ag = ag
        self.id = run_id
        self.speaks_1_0 = speaks_1_0
        self.serialize_calls = serialize_calls
        self.show_reasoning = show_reasoning
        self.provider_items = provider_items
        self.history = history
        self.lanes: list[RunMessages] = []
        self.subagents: set[str] = set()
        self.replies: list[EncodedReply] = []
        self.usage: dict[str | None, dict[str, int]] = {}
        self.unanswered: dict[str, CallBlock] = {}
        self.stale_ids: list[str] = []
        self.open_reasoning: dict[ReasoningBlock, None] = {}
        self.open_call: CallBlock | None = None
        self.waiting: dict[AgUiBlock, None] = {}
        self.data = ApplicationData(self)
        self._used_ids = set(used_ids)
        self._owners: dict[str, str | None] = {}
        self._freed: set[str] = set()  # ids that were used, and may be used again
        self._numbers: dict[str, int] = {}  # below which no id is free, unless some are freed
        self._names: set[str] = set()
        self._reply_count = 0
        self._frames: list[BaseEvent] = []

    def send(self, frame: BaseEvent) -> None:
        self._frames.append(frame)

    def take_frames(self) -> list[BaseEvent]:
        """The frames since the last call. Those of a step that raised an error come with the next step's."""
        frames, self._frames = self._frames, []
        return frames

    def run_name(self, run_id: str | None) -> str:
        """A name for a run of the stream that no other has."""
        wanted, number = run_id or self.id, 1
        found = wanted
        while found in self._names:
            number += 1
            found = f"{wanted}-{number}"
        self._names.add(found)
        return found

    def new_reply(self, lane: RunMessages, *, instead_of: EncodedReply | None = None) -> EncodedReply:
        """A reply begins, behind the others or in the place of one that was taken back."""
        self._reply_count += 1
        reply = EncodedReply(lane, self._reply_count)
        if instead_of is None:
            self.replies.append(reply)
        else:
            self.replies[self.replies.index(instead_of)] = reply
        return reply

    def pause_for_call(self) -> None:
        """Where calls are serialized, end the open messages. A block that continues is opened again."""
        if self.serialize_calls:
            for lane in self.lanes:
                lane.open_texts.end_all()
            for block in [*self.open_reasoning]:
                block.pause()

    def new_id(self, wanted: str, owner: str | None) -> str:
        """An id that the client doesn't have: it would take a second message for a continuation of the first.

        Args:
            wanted: The id, if it can be had.
            owner: The run that wants it. To the client, an id belongs for good to the run that had it first.
        """
        number = 1 if self._freed else self._numbers.get(wanted, 1)
        found = wanted if number == 1 else f"{wanted}-{number}"
        while found in self._used_ids or self._owners.get(found, owner) != owner:
            number += 1
            found = f"{wanted}-{number}"
        self.reserve_id(found)
        self._owners[found] = owner
        self._numbers[wanted] = number
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
