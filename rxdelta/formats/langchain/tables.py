"""The names that LangChain and the providers behind it use, and what each of them stands for."""

from __future__ import annotations

from collections.abc import Mapping

from rxdelta.core import ExecutionStatus
from rxdelta.formats.json_values import by_word
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SIGNED_BY
from rxdelta.formats.provider_errors import Broken
from rxdelta.formats.signatures import ANTHROPIC, GOOGLE, MISTRAL

__all__ = [
    "ARGUMENT_FIELDS",
    "BROKEN",
    "CALL_FIELDS",
    "CALL_TYPES",
    "CITATION_FIELDS",
    "CONTENT_FIELDS",
    "DELTA_FIELDS",
    "EVENT_FIELDS",
    "EVENT_NAMES",
    "FINISH_REASONS",
    "FRAGMENT_FIELDS",
    "LAST_VALUE_FIELDS",
    "MEDIA_TYPES",
    "MESSAGE_CLASSES",
    "MESSAGE_FIELDS",
    "MESSAGE_TYPES",
    "MODEL_FIELDS",
    "PROSE_KWARGS",
    "REASON_FIELDS",
    "REPEATED_FIELDS",
    "RESERVED_CALL_FIELDS",
    "SIGNERS",
    "TEXT_CHUNK_FIELDS",
    "TOOL_EVENTS",
    "WHOLE_MESSAGE_TYPES",
]

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
