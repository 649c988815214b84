"""The marks that `to_ag_ui` writes for what AG-UI has no field for, and that `from_ag_ui` and the decoder read.

They are an object under `rxdelta` in the `metadata` of an event. Clients keep it with the message or the tool call, and
send it back with the next request. An event with marks, and the marks that it may have:

    RUN_FINISHED            interrupted, or finish_reason and provider_finish_reason
    TEXT_MESSAGE_START      type
    TEXT_MESSAGE_END        parts, each of them with length, type, options, citations
    REASONING_MESSAGE_END   options, encrypted
    TOOL_CALL_START         type
    TOOL_CALL_END           type, error, metadata
    TOOL_CALL_RESULT        is_error, json, metadata, block, place (`front_ends.place_marks`); or unrun
    CUSTOM, STATE_…, STEP_… of the application: id, transient; synthetic

If the stream has several runs, the events that open something have `run_id`, except those of the first run, and except a
sub-agent's, which have AG-UI's own `subagentRunId`.

Beside them there are activities and CUSTOM events whose names begin with `rxdelta.`.

What any front end may show stands in the `metadata` itself: `sources` and `finishReason`. Our readers have the same in
the marks.

The marks also name the run that an event belongs to: a sub-agent, another run of `to_ag_ui`, or the agent itself. An event
that opens a message or a call names the run, by `subagentRunId` or by our mark. The events that
continue it may have its id alone, which no other message or call of the stream has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rxdelta.core import is_mapping
from rxdelta.formats.decoding import as_mapping, kept, word
from rxdelta.formats.runs import Address

# Marks come back from a client, as JSON without types.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false


Marks: TypeAlias = Mapping[str, Any]

_OURS: Final = "rxdelta"

# On the end of a run.

INTERRUPTED: Final = "interrupted"
"""`True`: the reply was stopped. For clients before 1.0, whose protocol has no outcome `cancelled`."""

FINISH_REASON: Final = "finish_reason"
"""Why the last message ended: `stop`, `length`, `tool_use` or `content_filter`."""

PROVIDER_FINISH_REASON: Final = "provider_finish_reason"
"""The same in the provider's own word."""

# On a text, a reasoning or a call.

TYPE: Final = "type"
"""The type of a block, where AG-UI's event implies another: `refusal`, `server_tool_call`, `invalid_tool_call`."""

PARTS: Final = "parts"
"""The blocks that a text message consists of, in order."""

LENGTH: Final = "length"
"""The number of characters of such a block."""

OPTIONS: Final = "options"
"""The block's `options`."""

CITATIONS: Final = "citations"
"""The block's citations."""

ENCRYPTED: Final = "encrypted"
"""The name of the option that travels as the encrypted value, if it is not `signature`."""

SIGNATURE: Final = "signature"
"""The option, or the metadata of a call, that travels as the encrypted value unless `encrypted` names another."""

METADATA: Final = "metadata"
"""A call's `metadata`, or that of its result."""

ERROR: Final = "error"
"""Why a call is invalid."""

# On the result of a call.

IS_ERROR: Final = "is_error"
"""`True`: the tool failed."""

JSON: Final = "json"
"""`True`: the content is the JSON of a result that is not a string."""

UNRUN: Final = "unrun"
"""`True`: the tool did not run. The result exists only so that no client runs the call; readers drop it."""

BLOCK: Final = "block"
"""The block `server_tool_result` that the result stands for, without its output, which is the content."""

# On the application's own data.

ID: Final = "id"
"""The id of a `Custom`."""

TRANSIENT: Final = "transient"
"""`True`: the `Custom` is transient."""

SYNTHETIC: Final = "synthetic"
"""`True`: the application didn't say it, but the protocol requires it. Our reader skips it."""

# On the events of other runs than the first, and in `rxdelta.run`.

RUN_ID: Final = "run_id"
"""The run, under a name that no other run of the stream has."""

PARENT_RUN_ID: Final = "parent_run_id"
"""The run's parent."""

FIRST: Final = "first"
"""`True`: the run whose events name no run."""

MESSAGE_ID: Final = "message_id"
"""The id of the run's message."""

MODEL: Final = "model"
"""Its model."""

USAGE: Final = "usage"
"""Its usage, counted as the protocol does."""

# For any front end.

SOURCES: Final = "sources"
"""In a message's metadata: the sources that it cites, each as `useChat` and assistant-ui know a source."""

SHOWN_REASON: Final = "finishReason"
"""In the metadata of the run's end, of the end of a model's turn, and of a text that ended with it: the finish reason."""

# Events of our own.

SOURCES_EVENT: Final = f"{_OURS}.{SOURCES}"
"""The CUSTOM event with the sources of a message, for a front end that reads no metadata."""

RUN: Final = f"{_OURS}.run"
"""The CUSTOM event for a message of a run, when it begins and when it has ended: then with the marks of a run's end."""

DISCARDED: Final = f"{_OURS}.discarded"
"""The activity that replaces a message which no longer holds."""

AGAIN: Final = "again"
"""`True` in that activity: the messages of the run that still hold follow again, under other ids."""

TOOL_UPDATE: Final = f"{_OURS}.tool-update"
"""The CUSTOM event for progress of a tool."""

# The application's events.

DATA_EVENTS: Final[Mapping[str, str]] = {
    "CUSTOM": "value",
    "STATE_DELTA": "delta",
    "STATE_SNAPSHOT": "snapshot",
    "STEP_FINISHED": "stepName",
    "STEP_STARTED": "stepName",
}
"""The events of an application, and the field with its data."""

_number = re.compile(r"~\d+\Z")


def marked(marks: Marks) -> dict[str, Any] | None:
    """The `metadata` of an event with these marks; `None` without any."""
    return {_OURS: marks} if marks else None


def with_marks(metadata: Mapping[str, Any] | None, marks: Marks) -> dict[str, Any]:
    """The `metadata` of an event with these marks beside those that it has."""
    known: dict[str, Any] = dict(metadata or {})
    return {**known, _OURS: {**known.get(_OURS, {}), **marks}}


def marks_of(source: Mapping[str, Any]) -> Marks:
    """The marks of an event, a message or a call."""
    metadata = source.get("metadata")
    marks = metadata.get(_OURS) if is_mapping(metadata) else None
    return marks if is_mapping(marks) else {}


def fields_of(space: str, marks: Marks) -> dict[str, Any]:
    """The fields of a block that its marks hold. Several parts of a text are merged into one.

    Args:
        space: The kind of block: `text`, `reasoning` or `call`.
        marks: The marks of its end.
    """
    if space != "text":
        found = marks.get(METADATA if space == "call" else OPTIONS)
        return kept(found) if is_mapping(found) else {}
    fields: dict[str, Any] = {}
    citations: list[Any] = []
    parts = marks.get(PARTS)
    for part in parts if isinstance(parts, (list, tuple)) else ():
        if not is_mapping(part):
            continue
        if is_mapping(options := part.get(OPTIONS)):
            fields |= kept(options)
        if isinstance(more := part.get(CITATIONS), (list, tuple)):
            citations += [kept(one) for one in more if is_mapping(one)]
    return fields | ({CITATIONS: citations} if citations else {})


def activity_type(block_type: str) -> str:
    """The type of the activity that shows a block which is neither text, reasoning nor call."""
    return f"{_OURS}.{block_type}"


def is_ours(activity: object) -> bool:
    """Whether `to_ag_ui` wrote an activity of this type."""
    return isinstance(activity, str) and activity.startswith(f"{_OURS}.")


def numbered_id(reply_id: str, number: int) -> str:
    """The id of one of the messages that a reply becomes."""
    return f"{reply_id}~{number}"


def reply_id(message_id: str) -> str:
    """The id of the reply that a message belongs to."""
    return _number.sub("", message_id)


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
