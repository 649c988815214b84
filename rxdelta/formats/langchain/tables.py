"""The names that LangChain and the providers behind it use, what each stands for, access to their fields, and our marks.

LangChain's protocol has fewer words than our events. The marks that `to_langchain_events` adds let our reader restore the
very events, and other readers skip them. An id of ours carries `notes.SYNTHETIC_ID`, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from rxdelta.core import DEFAULT_LIMITS, ExecutionStatus, LimitExceededError, is_mapping
from rxdelta.formats.decoding import Fields, Json, by_word
from rxdelta.formats.endings import Broken
from rxdelta.formats.notes import ANTHROPIC, GOOGLE, ITEM_ID, MISTRAL, PROVIDER_TYPE, SIGNED_BY

# Messages.

WHOLE_MESSAGE_TYPES = ("ai", "assistant")
MESSAGE_TYPES = ("AIMessageChunk", *WHOLE_MESSAGE_TYPES)
MESSAGE_CLASSES = {"AIMessage": "ai", "AIMessageChunk": "AIMessageChunk", "ToolMessage": "tool"}
"""The type of a stored message, by the name of its class."""

CONTENT_FIELDS = (
    "content", "tool_call_chunks", "tool_calls", "additional_kwargs", "response_metadata",
    "usage_metadata",
)  # fmt: skip
"""The fields of a message that can begin it."""

TEXT_CHUNK_FIELDS = frozenset(["content", "type", "id"])
"""The fields of a chunk that is nothing but more text."""

MESSAGE_FIELDS = frozenset([
    *CONTENT_FIELDS, *TEXT_CHUNK_FIELDS, "invalid_tool_calls", "chunk_position", "example", "lc_kwargs",
    "lc_namespace", "lc_serializable",
])  # fmt: skip
"""The fields of a message that are read or that mean nothing; any other belongs to its metadata."""

PROSE_KWARGS = {"reasoning_content": "reasoning", "refusal": "refusal"}
"""The texts among `additional_kwargs`, and the type of their block."""

REASON_FIELDS = ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason")
MODEL_FIELDS = ("model_name", "model", *REASON_FIELDS)

FINISH_REASONS: Mapping[str, str] = by_word(
    {
        "stop": "stop end_turn stop_sequence complete completed eos",
        "pause": "pause pause_turn compaction continuation requires_continuation",
        "tool_use": "tool_calls tool_use tool_call function_call",
        "length": "length max_tokens max_output_tokens model_length model_context_window_exceeded error_limit",
        "content_filter": "content_filter content_filtered refusal safety recitation blocklist prohibited_content spii"
        " image_safety image_prohibited_content image_recitation language model_armor escalation"
        " guardrail_intervened error_toxic",
    }
)
"""Our finish reason, by the provider's in lower case."""

_AGAIN = (
    "error abort insufficient_system_resource network_error malformed_function_call malformed_response"
    " function_call_filter unexpected_tool_call no_image image_other other malformed_model_output malformed_tool_use"
    " timeout failed incomplete"
)
_NEVER = "too_many_tool_calls missing_thought_signature pup_limited_disabled load unload"
BROKEN: Mapping[str, Broken] = {
    word: Broken(f"the provider ended the reply with {word!r}", transient)
    for words, transient in ((_AGAIN, True), (_NEVER, False))
    for word in words.split()
}
"""The reasons in lower case that say that the provider behind LangChain failed. Its own format says more of each."""

SIGNERS: Mapping[str, str] = {
    "anthropic": ANTHROPIC,
    "bedrock": ANTHROPIC,
    "bedrock_converse": ANTHROPIC,
    "google_genai": GOOGLE,
    "google_vertexai": GOOGLE,
    "mistralai": MISTRAL,
}
"""The vendors that sign, by LangChain's `model_provider`."""

# Parts and calls.

CALL_TYPES: Mapping[str, str] = {
    "tool_call": "tool_call",
    "tool_call_chunk": "tool_call",
    "invalid_tool_call": "tool_call",
    "tool_use": "tool_call",
    "input_json_delta": "",  # the call that it continues decides
    "function_call": "tool_call",
    "custom_tool_call": "tool_call",
    "server_tool_call": "server_tool_call",
    "server_tool_call_chunk": "server_tool_call",
    "server_tool_use": "server_tool_call",
    "mcp_tool_use": "server_tool_call",
}
"""The types of parts that are calls, and whether the client or the provider runs them."""

FRAGMENT_FIELDS = frozenset(["type", "index", "id", "name", "args", "error"])
ARGUMENT_FIELDS = ("args", "partial_json", "input", "arguments")
CALL_FIELDS = FRAGMENT_FIELDS | {"call_id", "caller", "extras", "namespace", "signature", "status"}
"""The fields of a call in the content, beside its arguments."""
RESERVED_CALL_FIELDS = frozenset(["args", "arguments", "input", "call_id", "error", "execution_status"])
"""Names that our protocol gives a meaning which a provider's further field of that name doesn't have."""

MEDIA_TYPES = ("image", "audio", "video", "file")
CITATION_FIELDS = frozenset(["type", "cited_text", "title", "url", "start_index", "end_index", "raw"])

REPEATED_FIELDS = frozenset([
    ITEM_ID, PROVIDER_TYPE, SIGNED_BY, "id", "output_version", "model_provider", "type", "name", "mime_type",
    "mimeType", "url", "title", "status", "tool_call_id", "encoding", "format", "filename", "phase",
])  # fmt: skip
"""Fields that every piece of a block may repeat; a repetition is not appended."""

LAST_VALUE_FIELDS = ("index", "created", "timestamp")
"""Numbers that are replaced, not added up."""

# Events.

EVENT_NAMES = frozenset([
    "message-start", "content-block-start", "content-block-delta", "content-block-finish", "usage",
    "message-finish", "error", "provider", "custom", "tool-update", "message-interrupted", "attempt-reset",
])  # fmt: skip
_CONTENT = ("content", "content_block")
EVENT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "content-block-start": _CONTENT,
    "content-block-delta": ("delta", *_CONTENT),
    "usage": ("usage",),
    "error": ("message",),
    "provider": ("name", "payload"),
    "custom": ("name",),
    "tool-update": ("call_id",),
}
"""The fields of which an event has one, where its name alone may be another protocol's."""
DELTA_FIELDS: Mapping[str, str] = {
    "text-delta": "text",
    "reasoning-delta": "reasoning",
    "data-delta": "data",
    "tool-call-delta": "args",
    "block-delta": "fields",
}
"""The types of deltas, and the field that each has to have."""

TOOL_EVENTS: Mapping[str, ExecutionStatus] = {
    "tool-started": "executing",
    "tool-output-delta": "executing",
    "tool-finished": "completed",
    "tool-error": "failed",
}
"""The execution status that each event of the channel `tools` reports."""


Index: TypeAlias = int | str

READ = Fields("langchain")


def is_json_object(value: object) -> TypeGuard[Json]:
    """`is_mapping`, and faster for a dict."""
    return type(value) is dict or is_mapping(value)


def part_type(part: Json) -> str:
    kind = part.get("type")
    if isinstance(kind, str) and kind:
        return kind
    return "text" if isinstance(part.get("text"), str) else ""


def part_index(value: object, path: str) -> Index | None:
    """The index by which later parts continue this one; `None` if none can."""
    if isinstance(value, str):
        return value if value.startswith("lc_") else None
    return _whole_number(value, path)


def fragment_index(value: object, path: str) -> int | None:
    """The same of a fragment in `tool_call_chunks`, where some providers write the number as a string."""
    if isinstance(value, str):
        if len(value) >= 20 or not value.removeprefix("-").isdecimal():
            raise READ.fail(f"{path}.index", "a whole number", value)
        value = int(value)
    return _whole_number(value, path)


def _whole_number(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise READ.fail(f"{path}.index", 'a whole number or a string that begins with "lc_"', value)
    if abs(value) >= DEFAULT_LIMITS.index:
        raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the index at {path}.index")
    return value


def other_fields(part: Json, *read: str) -> dict[str, Any]:
    """The fields of a part but those that are read, its type and its index."""
    return {name: value for name, value in part.items() if name not in read and name not in ("type", "index")}


def extras_of(extras: object) -> dict[str, Any]:
    """The standard's `extras` as fields of a block.

    A signature becomes a field of its own, where every other format has it: the provider wants it back.
    """
    if not is_mapping(extras):
        return {} if extras is None else {"extras": extras}
    signed = {"signature": extras["signature"]} if isinstance(extras.get("signature"), str) else {}
    more = {name: value for name, value in extras.items() if name not in signed}
    return {**signed, **({"extras": more} if more else {})}


CUSTOM_NAME: Final = "rxdelta"
"""The name of a `custom` frame whose payload is one of our events, whole, because the protocol has none like it."""

SYNTHETIC: Final = "synthetic"
"""`True` on a frame that stands for no event: the protocol requires it. Our reader skips it."""

SOURCE_INDEX: Final = "key"
"""On the start of a block: the index that the source gave it, where the protocol doesn't allow that one."""

FOLDED: Final = "folded"
"""`True` on the finish of a block whose content only repeats what came before. Our reader drops the content."""

INTERRUPTED: Final = "interrupted"
"""On the finish of a message that was interrupted: the reason, or `True` if there is none."""

ATTEMPT_RESET: Final = "attempt_reset"
"""On an error that ends a failed attempt: the fields of the `AttemptReset`."""

UNWRAP: Final = "unwrap"
"""`True` on a block of the type `non_standard` whose `value` is the content of the block itself."""

ASSUMED: Final = "assumed"
"""In a block or a usage: the names of fields that the protocol requires and the source didn't give."""

BLOCK_MARKS: Final = frozenset([ASSUMED, UNWRAP])
"""The marks that stand in the content of a block, where an option of the same name can't stand beside them."""

REFUSAL: Final = "refusal"
"""`True` on a block of the type `text` that is a refusal."""

RESULT: Final = "result"
"""On a frame of a tool: the `ToolResult`, where the protocol's own fields don't say all of it; `None` if it has none."""

DISPLAY_TEXT: Final = "display_text"
"""On a frame of a tool: what the user is shown about the run."""

SEPARATOR: Final = "|"
"""Between the parts of a run's id that are the parts of its namespace, as in LangGraph's own names of namespaces."""

IN_RUN: Final = "in_run"
"""`True` on a frame of a tool, or of the application: its namespace names the run. LangGraph's have one of their own."""

PARENT_RUN_ID: Final = "parent_run_id"
"""On the start of a message, if its run has a name: the run's parent, or `None`."""
