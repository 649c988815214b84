"""What a wire format is to the rest of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

import attrs

from rxdelta.core import Block
from rxdelta.formats.conversation import Native, Turn
from rxdelta.formats.decoding import Decoder
from rxdelta.formats.encoding import Encoder, Masked
from rxdelta.formats.endpoint import Endpoint
from rxdelta.formats.runs import Address
from rxdelta.formats.tool_definitions import ToolDefinition

__all__ = ["Format", "WireFormat", "later"]

WireFormat: TypeAlias = Literal[
    "anthropic-messages", "ag-ui", "ai-sdk", "bedrock-converse", "gemini", "gemini-interactions", "cohere", "langchain",
    "openai-responses", "ollama", "mistral", "openai-completions", "openai-chat",
]  # fmt: skip
"""The names of the library's own formats. A parameter is `WireFormat | str`: other distributions have more."""


def later(folder: str, name: str = "writer") -> Callable[..., Any]:
    """A function of a format's `writer.py`, which is imported when the function is first called: most programs only read."""
    return partial(_imported, folder, name)


def _imported(folder: str, name: str, *arguments: Any) -> Any:
    return getattr(import_module(f"rxdelta.formats.{folder}.writer"), name)(*arguments)


def _frozen(words: Set[str]) -> Set[str]:
    return frozenset(words)  # so that a format can be hashed


@attrs.frozen(kw_only=True)
class Format:
    """A wire format: how its streams are read, and how a request is written in it.

    Another distribution adds a format by an entry point of the group `rxdelta.formats`, whose name is the
    format's and whose object is one of these (docs/extend/formats.md).

    Attributes:
        name: The name that `rd.decode` and `rd.to_request` take.
        decoder: Makes a decoder for one stream; takes the format's own options as keywords.
        recognises: Whether a stream of this format can begin with this chunk, for `detect`.
        address: Makes, for one stream, the function that says to which run a chunk belongs; `None` for a chunk
            without a run. Each run then has a decoder of its own, whose events must be new objects: they get the
            run's name. `None` for a format that has no runs.
        keeps_call_ids: Whether a message may have several calls with one id. Otherwise a call that comes again is left
            out, and another call gets an id of its own. `run_tools` and the encoders do this for all formats.
        carries_more: Whether a stream also carries what belongs to no reply, such as an agent's state. Such a stream
            without any reply is no mistake; of another format, it is a `MalformedChunkError`.
        request: The fields of the next request, from the turns of a conversation; `None` where none can be written.
        vendors: The vendors whose signatures the request may carry, beside those that came by this format: a block's
            `signed_by`, in its options or a call's metadata, is the word of a vendor or the name of a format. Other
            signatures and encrypted reasoning are left out of the turns; one without that note never is.
        tools: The fields of the request that define the tools which a model may call; `None` if it can have none.
        why_no_request: The reason, for the error of `to_request`.
        writer: Makes the encoder that writes one stream as the provider would, of the function that makes the text of an
            error. It takes no time and makes nothing up at random. `None` if `rd.wire.write` can't write the format.
        carries: What the streams can carry, for `rd.wire.write`, which refuses everything else: words of the table in
            docs/reference/written-formats.md, such as `text` and `tool_call`.
        owns: Whether the streams carry what a block has of this kind, although `carries` lacks the word: it is the
            provider's own, and others' is refused. `None` if there is no such thing.
        loses: The details that don't come back from a stream that was written, in words of the same table.
        endpoint: Gives what a server of this format answers with, for `rxdelta.testing.FakeProvider.serve`. `None` if it
            can't serve the format.
    """

    name: str
    decoder: Callable[..., Decoder]
    recognises: Callable[[Mapping[str, Any]], bool]
    address: Callable[[], Callable[[Any], Address | None]] | None = None
    keeps_call_ids: bool = False
    carries_more: bool = False
    request: Callable[[Sequence[Turn | Native]], dict[str, Any]] | None = None
    vendors: Set[str] = attrs.field(default=frozenset(), converter=_frozen)
    tools: Callable[[Sequence[ToolDefinition | Mapping[str, Any]]], dict[str, Any]] | None = None
    why_no_request: str = ""
    writer: Callable[[Masked], Encoder[Any]] | None = None
    carries: Set[str] = attrs.field(default=frozenset(), converter=_frozen)
    owns: Callable[[Block, str], bool] | None = None
    loses: Set[str] = attrs.field(default=frozenset(), converter=_frozen)
    endpoint: Callable[[], Endpoint] | None = None
