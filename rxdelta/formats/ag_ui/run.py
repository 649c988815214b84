"""What the parts of a run share: the frames to send, the ids in use, the calls, the options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.formats.ag_ui.marks import AGAIN, DISCARDED
from rxdelta.formats.ag_ui.texts import OpenTexts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from ag_ui.core import BaseEvent

    from rxdelta.formats.ag_ui.blocks import AgUiBlock
    from rxdelta.formats.ag_ui.calls import CallBlock
    from rxdelta.formats.ag_ui.reasoning import ReasoningBlock

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
    return ag_ui


class Run:
    """What the parts of a run share.

    Args:
        ag: The module `ag_ui.core`.
        run_id: The run's id.
        used_ids: The ids of the messages and calls that the client already has.
        speaks_1_0: Whether the client declares version 1.0 of the protocol, or a later one.
        serialize_calls: Whether nothing else may be sent while a call is open.
        show_reasoning: Whether reasoning and signatures are sent.

    Attributes:
        calls: The calls of the run that the client has, by the id that the provider gave them.
        unanswered: Those of them that have no result yet, by the id that the client knows.
        stale_ids: The messages that the client still has although they no longer hold.
        open_texts: The text messages without TEXT_MESSAGE_END.
        open_reasoning: The reasoning blocks without REASONING_END.
        open_call: The call that all other blocks wait for; always `None` unless calls are serialized.
        waiting: The blocks that have changed since that call began, in the order of their first change.
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
    ) -> None:
        self.ag = ag
        self.id = run_id
        self.speaks_1_0 = speaks_1_0
        self.serialize_calls = serialize_calls
        self.show_reasoning = show_reasoning
        self.calls: dict[str, list[CallBlock]] = {}
        self.unanswered: dict[str, CallBlock] = {}
        self.stale_ids: list[str] = []
        self.open_texts = OpenTexts()
        self.open_reasoning: dict[ReasoningBlock, None] = {}
        self.open_call: CallBlock | None = None
        self.waiting: dict[AgUiBlock, None] = {}
        self._used_ids = set(used_ids)
        self._frames: list[BaseEvent] = []

    def send(self, frame: BaseEvent) -> None:
        self._frames.append(frame)

    def take_frames(self) -> list[BaseEvent]:
        """The frames since the last call. Those of a step that raised an error come with the next step's."""
        frames, self._frames = self._frames, []
        return frames

    def pause_for_call(self) -> None:
        """Where calls are serialized, end the open messages. A block that continues is opened again."""
        if self.serialize_calls:
            self.open_texts.end_all()
            for block in [*self.open_reasoning]:
                block.pause()

    def new_id(self, wanted: str) -> str:
        """An id that the client doesn't have: it would take a second message for a continuation of the first."""
        found, number = wanted, 1
        while found in self._used_ids:
            number += 1
            found = f"{wanted}-{number}"
        self._used_ids.add(found)
        return found

    def reserve_id(self, own_id: str) -> None:
        self._used_ids.add(own_id)

    def free_id(self, own_id: str) -> None:
        self._used_ids.discard(own_id)

    def discard_message(self, message_id: str, *, again: bool = False) -> None:
        """Replace a message of any kind by an activity that shows nothing. Its id can't be used again.

        Args:
            message_id: The message's id.
            again: Whether the messages that still hold are sent again.
        """
        self.reserve_id(message_id)
        content: dict[str, Any] = {AGAIN: True} if again else {}
        self.send(
            self.ag.ActivitySnapshotEvent(message_id=message_id, activity_type=DISCARDED, content=content)
        )
