"""The assistant's message that the client already has, and that a reply goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import is_mapping
from rxdelta.formats.ai_sdk.marks import FINISH_REASON, USAGE
from rxdelta.formats.ai_sdk.outcomes import Outcome, title_chunk
from rxdelta.formats.ai_sdk.sources import SOURCE
from rxdelta.formats.ai_sdk.tables import FINISH_REASONS
from rxdelta.formats.ai_sdk.tool_parts import ToolPart, last_reply, parts_of, tool_parts
from rxdelta.formats.ai_sdk.usage import read_usage, usage_figures
from rxdelta.formats.approval_ids import ids_in
from rxdelta.formats.json_values import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rxdelta.core.events import ToolUpdate
    from rxdelta.formats.ai_sdk.parts import Out
    from rxdelta.formats.ai_sdk.stream import Stream

__all__ = ["ContinuedMessage"]


class ContinuedMessage:
    """What the client has of the message.

    Args:
        messages: The UI messages of the request. If the last one isn't the assistant's, nothing is continued.

    Attributes:
        id: The message's id.
        usage: The figures that its metadata have.
        reason: Why its last step ended, in the SDK's words.
        told: Whether a tool of the message had news.

    Raises:
        InvalidValueError: They are no UI messages.
    """

    def __init__(self, messages: Iterable[Mapping[str, Any]]) -> None:
        message = last_reply(messages) or {}
        metadata = message.get("metadata")
        known: Mapping[str, Any] = metadata if is_mapping(metadata) else {}
        usage, reason = known.get(USAGE), known.get(FINISH_REASON)
        self.id = word(message.get("id"))
        self.usage = usage_figures(read_usage(usage)) if is_mapping(usage) else {}
        self.reason = reason if word(reason) in FINISH_REASONS else "tool-calls"
        self.told = False
        self._parts = parts_of(message)
        self._calls = {found.call_id: found for found in tool_parts(self._parts)}
        self._names: dict[str, list[ToolPart]] = {}  # by either id
        for found in self._calls.values():
            for name in {*ids_in(found.approval_id)}:
                self._names.setdefault(name, []).append(found)
        self._outcomes: dict[str, Outcome] = {}

    @property
    def call_ids(self) -> Iterable[str]:
        """The ids of the calls that the client has."""
        return self._calls.keys()

    @property
    def part_ids(self) -> set[str]:
        """The ids of the parts that the client has, as `Stream.new_id` makes them."""
        ids = (word(part.get("sourceId")) or word(part.get("id")) for part in self._parts if is_mapping(part))
        return {known.removeprefix(SOURCE) for known in ids if known is not None}

    def tell(self, out: Out, event: ToolUpdate, stream: Stream) -> bool:
        """Send the news of a call, by either of its ids; `False` if the message has no such call."""
        named = [(found, self._outcome(found, stream)) for found in self._names.get(event.call_id, ())]
        # A provider that numbers again has used the id for an earlier call, which has its outcome.
        for found, outcome in [one for one in named if not one[1].settled] or named[-1:]:
            self.told = True
            if event.display_text is not None:
                out.append(title_chunk(found.call_id, event.display_text, {}))
            outcome.tell(out, event.execution_status, event.result)
        return bool(named)

    def _outcome(self, found: ToolPart, stream: Stream) -> Outcome:
        outcome = self._outcomes.get(found.call_id)
        if outcome is None:
            outcome = self._outcomes[found.call_id] = Outcome(
                stream,
                found.call_id,
                found.approval_id,
                at_provider=found.at_provider,
                asked=found.asked,
                answer=None if found.answer is None else found.answer.approved,
            )
            outcome.settled = found.settled or found.state == "input-streaming"
        return outcome
