"""The chunks of the AI SDK's UI message stream. A key that may be missing is left out, never null."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]


class Start(TypedDict):
    type: Literal["start"]
    messageId: NotRequired[str]
    messageMetadata: NotRequired[dict[str, Any]]


class StepChunk(TypedDict):
    type: Literal["start-step", "finish-step", "reset-step"]
    providerMetadata: NotRequired[ProviderMetadata]


class TextStart(TypedDict):
    type: Literal["text-start", "reasoning-start"]
    id: str
    providerMetadata: NotRequired[ProviderMetadata]


class TextMore(TypedDict):
    type: Literal["text-delta", "reasoning-delta"]
    id: str
    delta: str


class TextEnd(TypedDict):
    type: Literal["text-end", "reasoning-end"]
    id: str
    citations: NotRequired[list[dict[str, Any]]]
    providerMetadata: NotRequired[ProviderMetadata]


class ToolInputStart(TypedDict):
    type: Literal["tool-input-start"]
    toolCallId: str
    toolName: str
    title: NotRequired[str]
    providerExecuted: NotRequired[bool]
    providerMetadata: NotRequired[ProviderMetadata]


class ToolInputDelta(TypedDict):
    type: Literal["tool-input-delta"]
    toolCallId: str
    inputTextDelta: str


class ToolInputAvailable(TypedDict):
    type: Literal["tool-input-available"]
    toolCallId: str
    toolName: str
    input: Any
    title: NotRequired[str]
    providerExecuted: NotRequired[bool]
    providerMetadata: NotRequired[ProviderMetadata]


class ToolInputError(TypedDict):
    type: Literal["tool-input-error"]
    toolCallId: str
    toolName: str
    input: Any
    errorText: str
    title: NotRequired[str]
    providerExecuted: NotRequired[bool]
    providerMetadata: NotRequired[ProviderMetadata]


class ToolApprovalRequest(TypedDict):
    type: Literal["tool-approval-request"]
    approvalId: str
    toolCallId: str


class ToolApprovalResponse(TypedDict):
    type: Literal["tool-approval-response"]
    approvalId: str
    approved: bool
    reason: NotRequired[str]
    providerExecuted: NotRequired[bool]


class ToolOutputDenied(TypedDict):
    type: Literal["tool-output-denied"]
    toolCallId: str


class ToolOutputAvailable(TypedDict):
    type: Literal["tool-output-available"]
    toolCallId: str
    output: Any
    preliminary: NotRequired[bool]
    providerExecuted: NotRequired[bool]
    providerMetadata: NotRequired[ProviderMetadata]


class ToolOutputError(TypedDict):
    type: Literal["tool-output-error"]
    toolCallId: str
    errorText: str
    providerExecuted: NotRequired[bool]
    providerMetadata: NotRequired[ProviderMetadata]


class SourceUrl(TypedDict):
    type: Literal["source-url"]
    sourceId: str
    url: str
    title: NotRequired[str]
    providerMetadata: ProviderMetadata


class SourceDocument(TypedDict):
    type: Literal["source-document"]
    sourceId: str
    mediaType: str
    title: str
    providerMetadata: ProviderMetadata


class File(TypedDict):
    type: Literal["file"]
    url: str
    mediaType: str
    providerMetadata: NotRequired[ProviderMetadata]


class Custom(TypedDict):
    type: Literal["custom"]
    kind: str
    providerMetadata: ProviderMetadata


class Data(TypedDict):
    """Our own: what the protocol has no chunk for. A later one with the same type and id replaces the earlier."""

    type: Literal["data-block", "data-tool-update", "data-attempt-reset", "data-run"]
    id: str
    data: dict[str, Any]


class Metadata(TypedDict):
    type: Literal["message-metadata"]
    messageMetadata: dict[str, Any]


class Error(TypedDict):
    type: Literal["error"]
    errorText: str


class Finish(TypedDict):
    type: Literal["finish"]
    finishReason: str
    messageMetadata: dict[str, Any]


class Abort(TypedDict):
    type: Literal["abort"]
    reason: NotRequired[str]


AiSdkFrame: TypeAlias = (
    Start
    | StepChunk
    | TextStart
    | TextMore
    | TextEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputAvailable
    | ToolInputError
    | ToolApprovalRequest
    | ToolApprovalResponse
    | ToolOutputDenied
    | ToolOutputAvailable
    | ToolOutputError
    | SourceUrl
    | SourceDocument
    | File
    | Custom
    | Data
    | Metadata
    | Error
    | Finish
    | Abort
)
"""A chunk of the AI SDK's UI message stream: a JSON object, distinguished by its `type`.

The application's own data have types that it chooses itself (`data-…`), so no type of Python's can distinguish them.
"""
