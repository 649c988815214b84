"""To which run an event belongs: to a sub-agent, to another run of `to_ag_ui`, or to the agent itself.

An event that opens a message or a call names the run, by `subagentRunId` or by our mark (`marks.py`). The events that
continue it may have its id alone, which no other message or call of the stream has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import is_mapping
from rxdelta.formats.ag_ui.marks import FIRST, PARENT_RUN_ID, RUN, RUN_ID, marks_of
from rxdelta.formats.decoding import as_mapping
from rxdelta.formats.json_values import word
from rxdelta.formats.runs import Address

__all__ = ["addresses"]

_OWN_IDS = ("toolCallId", "messageId", "entityId")
_OF_CALLS = frozenset(
    ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT"]
)


def addresses() -> Callable[[Any], Address | None]:
    """The addresses of one stream."""
    return _Addresses().of


class _Addresses:
    def __init__(self) -> None:
        self._agent: str | None = None  # the id of the AG-UI run
        self._runs: dict[str, Address] = {}
        self._owners: dict[tuple[str, str], Address] = {}  # of messages and calls

    def of(self, chunk: Any) -> Address | None:
        found = as_mapping(chunk, "ag-ui")
        kind = word(found.get("type"))
        if kind == "RUN_STARTED":
            self._agent = word(found.get("runId"))
            return None
        address = self._named(found)
        own = self._own_id(found, kind)
        if own is None:
            return address
        if address is None:
            parent = word(found.get("parentMessageId"))
            address = self._owners.get(own) or (self._owners.get(("messageId", parent)) if parent else None)
        if address is not None:
            self._owners[own] = address
        return address

    def _named(self, found: Mapping[str, Any]) -> Address | None:
        """The run that the event itself names."""
        value = found.get("value") if found.get("name") == RUN else None
        marks = value if is_mapping(value) else marks_of(found)
        run_id = word(found.get("subagentRunId")) or word(marks.get(RUN_ID))
        if run_id is None or marks.get(FIRST) is True:
            return None
        known = self._runs.get(run_id)
        if known is not None and not is_mapping(value):
            return known
        parent = word(marks.get(PARENT_RUN_ID)) or word(found.get("parentSubagentRunId"))
        if parent is None and "subagentRunId" in found:
            parent = self._agent
        self._runs[run_id] = address = Address(run_id, parent)
        return address

    @staticmethod
    def _own_id(found: Mapping[str, Any], kind: str | None) -> tuple[str, str] | None:
        """The id of the message or call that the event is of."""
        if kind in _OF_CALLS or (kind == "REASONING_ENCRYPTED_VALUE" and found.get("subtype") == "tool-call"):
            name = "toolCallId"
        else:
            name = "messageId"
        own_id = word(found.get(name)) or word(found.get("entityId"))
        return None if own_id is None else (name, own_id)
