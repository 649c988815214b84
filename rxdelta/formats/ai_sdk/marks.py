"""The marks that `to_ai_sdk` writes for what the protocol has no field for, and that `from_ai_sdk` and the decoder read.

They are an object under `rxdelta` in the `providerMetadata` of a chunk. The client keeps it with the part and sends it
back with the next turn. A chunk with marks, and the marks that it may have:

    text-start                     type
    text-end, reasoning-end        type, options, citations
    tool-input-available, -error   type, metadata
    tool-output-available, -error  options, metadata, place (`front_ends.place_marks`)
    source-url, source-document    cited
    file                           type, options
    custom                         the whole block
    the application's data-…       again

If the stream has several runs, the parts of all but the first have `runId`, and `subagent` if they are a sub-agent's, in
these marks or in the data of a `data-…` chunk of our own.

Beside them there are `data-…` chunks of our own, and fields in the message's metadata.

In such a stream the marks name the run that a chunk belongs to. They are on the chunk that begins a part or holds it
whole; the chunks that continue it have its id. A step belongs to the run whose `data-run` is directly in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rxdelta.core import ContentPart, ToolCall, is_mapping, thaw
from rxdelta.formats.decoding import as_mapping, word
from rxdelta.formats.front_ends import ids_in
from rxdelta.formats.runs import Address

if TYPE_CHECKING:
    from rxdelta.formats.ai_sdk.chunks import ProviderMetadata

_OURS: Final = "rxdelta"
_INVALID_CALL: Final = "invalid_tool_call"

# On a part.

TYPE: Final = "type"
"""The type of a block, where the chunk implies another or none: `refusal`, `invalid_tool_call`, a file's."""

TEXT: Final = "text"
"""The text of a block that is sent whole."""

OPTIONS: Final = "options"
"""The block's `options`; of a tool's output, all but the output itself."""

CITATIONS: Final = "citations"
"""The block's citations, as the provider gave them."""

METADATA: Final = "metadata"
"""A call's `metadata`, or that of its result."""

CITED: Final = "cited"
"""`True`: a text or the output of a tool has this source, too."""

AGAIN: Final = "again"
"""`True`: the client has dropped these data with its step, so they are sent again. Our reader skips them."""

# On a part of another run than the first.

RUN_ID: Final = "runId"
"""The run, under a name that no other run of the stream has."""

SUBAGENT: Final = "subagent"
"""`True`: the run works for another one, so its text is not the reply's."""

RUN_MARKS: Final = frozenset([RUN_ID, SUBAGENT])
"""Both."""

# Chunks of our own.

RUN: Final = "data-run"
"""A message of a run: sent when it begins and, under the same id, when it has ended."""

FIRST: Final = "first"
"""`True` in it: the run whose parts have no `runId`."""

PARENT_RUN_ID: Final = "parentRunId"
"""The run's parent in it."""

MESSAGE_ID: Final = "messageId"
"""The message's id in it. Its model, status, finish reason and usage have the names of the metadata's fields."""

REASON: Final = "reason"
"""Why the message was interrupted, in it."""

CUSTOM_KIND: Final = f"{_OURS}.block"
"""The `kind` of a `custom` chunk with a whole block in its marks."""

WHOLE_BLOCK: Final = "data-block"
"""The same for clients without `custom` chunks: the block is the data."""

TOOL_UPDATE: Final = "data-tool-update"
"""A new display text of a call."""

DISPLAY_TEXT: Final = "displayText"
"""The display text in it."""

ATTEMPT_RESET: Final = "data-attempt-reset"
"""For clients without `reset-step`: the step so far belongs to an attempt that failed."""

ATTEMPT: Final = "attempt"
"""The number of the attempt in it."""

DATA: Final = "data-"
"""The types of these chunks begin with it, and those of the application's own data."""

OWN_DATA: Final = frozenset([RUN, WHOLE_BLOCK, TOOL_UPDATE, ATTEMPT_RESET])
"""The types of these chunks."""

# In the message's metadata.

MODEL: Final = "model"
"""The model of the last message."""

STATUS: Final = "status"
"""How the last message ended: `complete`, `length`, `interrupted` or `incomplete`."""

FINISH_REASON: Final = "finishReason"
"""Why it ended, in the SDK's words."""

USAGE: Final = "usage"
"""The usage of all messages and attempts."""

SUMMARY: Final = frozenset([MODEL, STATUS, FINISH_REASON, USAGE])
"""All of these; the rest of the metadata is the application's."""


def marked(marks: Mapping[str, Any]) -> dict[str, ProviderMetadata]:
    """The field of a chunk that holds these marks; none without any."""
    return {"providerMetadata": {_OURS: dict(marks)}} if marks else {}


def marks_of(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The marks of a chunk."""
    return marks_in(chunk.get("providerMetadata"))


def marks_for(block: ContentPart | ToolCall, *also: str) -> dict[str, Any]:
    """The marks of a block: the fields that a part has no place for, as `to_dict` writes them.

    Args:
        block: The block.
        also: The names of fields to include beside the options and citations, or beside a call's metadata.
    """
    fields: dict[str, Any] = {TYPE: block.type}
    if isinstance(block, ContentPart):
        fields, names = block.to_dict(), (OPTIONS, CITATIONS, *also)
    else:  # but not its arguments, which may be long
        fields[METADATA], names = thaw(block.metadata), (METADATA, *also)
    marks = {name: fields[name] for name in names if name in fields}
    if METADATA in marks:
        marks[METADATA].pop("execution_status", None)
    return {name: value for name, value in marks.items() if value}


def foreign_metadata(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """The `providerMetadata` that another server wrote."""
    metadata = chunk.get("providerMetadata")
    return {name: value for name, value in metadata.items() if name != _OURS} if is_mapping(metadata) else {}


def is_invalid_call(metadata: object) -> bool:
    """Whether the metadata of a UI message's tool part marks an invalid call."""
    return marks_in(metadata).get(TYPE) == _INVALID_CALL


def is_without_output(chunk: Mapping[str, Any]) -> bool:
    """Whether an output of the provider's tool says only that the tool has run: it is `null`, and has no marks."""
    return (
        chunk.get("type") == "tool-output-available" and chunk.get("output") is None and not marks_of(chunk)
    )


def marks_in(metadata: object) -> Mapping[str, Any]:
    """The marks in a `providerMetadata`."""
    marks = metadata.get(_OURS) if is_mapping(metadata) else None
    return marks if is_mapping(marks) else {}


_IDS = ("toolCallId", "id")


def addresses() -> Callable[[Any], Address | None]:
    """The addresses of one stream."""
    return _Addresses().of


class _Addresses:
    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], Address] = {}  # by the field of the id and the id
        self._announced: Address | None = None  # by the chunk before

    def of(self, chunk: Any) -> Address | None:
        found = as_mapping(chunk, "ai-sdk")
        kind = found.get("type")
        announced, self._announced = self._announced, None
        if kind == "start-step":
            return announced
        if kind == "tool-approval-response":
            return self._parts.get(("toolCallId", ids_in(str(found.get("approvalId")))[0]))
        address = self._named(found)
        if kind == RUN:
            self._announced = address
            return address
        if isinstance(kind, str) and kind.startswith(DATA):  # whole, and the application may use any id
            return address
        for name in _IDS:
            own_id = found.get(name)
            if isinstance(own_id, str):
                if address is None:
                    return self._parts.get((name, own_id))
                self._parts[name, own_id] = address
                break
        return address

    @staticmethod
    def _named(chunk: Mapping[str, Any]) -> Address | None:
        """The run that the chunk itself names."""
        data = chunk.get("data")
        marks = data if is_mapping(data) and chunk.get("type") in OWN_DATA else marks_of(chunk)
        run_id = word(marks.get(RUN_ID))
        if run_id is None or marks.get(FIRST) is True:
            return None
        return Address(run_id, word(marks.get(PARENT_RUN_ID)))
