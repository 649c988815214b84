"""The chunks of a streamed chat completion, as they are written. A key that may be missing is left out."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

__all__ = ["ErrorText", "OpenAiChatFrame"]


class Function(TypedDict):
    name: NotRequired[str]
    arguments: NotRequired[str]


class CustomInput(TypedDict):
    name: str
    input: str


class CallPiece(TypedDict):
    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function", "custom"]]
    function: NotRequired[Function]
    custom: NotRequired[CustomInput]
    extra_content: NotRequired[Any]


class UrlCitation(TypedDict):
    url: str
    title: str
    start_index: int
    end_index: int
    content: NotRequired[str]


class Annotation(TypedDict):
    index: int
    type: Literal["url_citation"]
    url_citation: UrlCitation


class Url(TypedDict):
    url: str


class Image(TypedDict):
    index: int
    type: Literal["image_url"]
    image_url: Url


class Audio(TypedDict):
    data: str
    id: NotRequired[str]
    transcript: NotRequired[str]
    expires_at: NotRequired[int]


class Delta(TypedDict, total=False):
    role: Literal["assistant"]
    content: str
    reasoning_content: str
    refusal: str
    tool_calls: list[CallPiece]
    annotations: list[Annotation]
    images: list[Image]
    audio: Audio


class ChoicePiece(TypedDict):
    index: int
    delta: Delta
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "pause"] | None


class Usage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: NotRequired[dict[str, int]]
    completion_tokens_details: NotRequired[dict[str, int]]


class Chunk(TypedDict):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChoicePiece]
    usage: NotRequired[Usage]


class ErrorText(TypedDict):
    message: str
    type: str


class Error(TypedDict):
    error: ErrorText


OpenAiChatFrame: TypeAlias = Chunk | Error
"""A chunk of a streamed chat completion, or the error that ends it."""
