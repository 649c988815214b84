"""What a wire format is to the rest of the library: its decoder, its requests, and the server that speaks it.

A writer gives the chunks of a reply. An `Endpoint` gives what is around them, for a fake provider with which the format's own
clients talk: paths, bytes, status codes, the bodies of errors and of replies that aren't streamed, and where the clients look
for the server. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

import attrs

from rxdelta.core import Block
from rxdelta.core.events import StreamError
from rxdelta.formats.conversation import Native, ToolDefinition, Turn
from rxdelta.formats.decoding import Decoder, Json
from rxdelta.formats.encoding import Encoder, Masked
from rxdelta.formats.runs import Address
from rxdelta.framing import SSE_HEADERS, NamedFrame, sse_frame


def status_of(kind: str | None, code: str | None) -> int:
    """The status of an error: its code if that is one, else what its words say, else 500.

    Args:
        kind: The provider's type of the error.
        code: The provider's code.

    Example:
        >>> status_of("overloaded_error", None), status_of("invalid_request_error", "invalid_api_key"), status_of(None, "418")
        (529, 401, 418)
    """
    if code is not None and code.isdecimal() and len(code) == 3 and 400 <= int(code) <= 599:
        return int(code)
    words = (word.casefold() for word in (code, kind) if word)  # the code says more than the type
    return next((_STATUSES[word] for word in words if word in _STATUSES), 500)


def _by_word(words: Mapping[int, str]) -> Mapping[str, int]:
    return {word: status for status, some in words.items() for word in some.split()}


_STATUSES: Final = _by_word(
    {
        400: "invalid_request_error invalid_request bad_request context_length_exceeded invalid_argument failed_precondition "
        "out_of_range validationexception servicequotaexceededexception",
        401: "authentication_error unauthorized invalid_api_key unauthenticated unrecognizedclientexception",
        402: "billing_error payment_required",
        403: "permission_error permission_denied forbidden accessdeniedexception",
        404: "not_found_error not_found model_not_found resourcenotfoundexception",
        408: "modeltimeoutexception",
        409: "conflict conflict_error aborted already_exists conflictexception",
        413: "request_too_large",
        422: "unprocessable_entity unprocessable_entity_error",
        424: "modelerrorexception modelstreamerrorexception",
        429: "rate_limit_error rate_limit_exceeded rate_limited too_many_requests insufficient_quota resource_exhausted "
        "tokens requests throttlingexception modelnotreadyexception",
        499: "cancelled",
        501: "unimplemented",
        503: "service_unavailable service_unavailable_error unavailable serviceunavailableexception",
        504: "timeout timeout_error gateway_timeout deadline_exceeded",
        529: "overloaded_error overloaded",
    }
)


FAKE_KEY: Final = "fake"
"""What stands for a key in the environment of a program under test."""
FAKE_MODEL: Final = "fake-model"
"""The model that a list of models has."""


def always(_path: str, _body: Json) -> bool:
    """Every request wants a stream."""
    return True


@attrs.frozen(kw_only=True)
class Endpoint:
    """How a server answers that speaks a wire format.

    Attributes:
        base: What the base URL ends with that the format's clients take, such as `/v1`.
        paths: What the path of a request ends with. Empty if every path will do.
        streams: Whether a request wants a stream, by its path and its body.
        headers: The headers of a stream.
        frame: The bytes of a chunk.
        last: The bytes behind the last chunk of a reply that is whole.
        error: The body of an HTTP answer with an error, for its status.
        whole: The body of a reply that isn't streamed, of its chunks. `None` if the decoder reads no such body.
        lookups: What a `GET` gets, by the end of its path: such as a list of models, for clients that ask for one first.
        environment: The variables by which the format's clients find the server. In their values, `{url}` stands for the
            base URL.

    Example:
        >>> import rxdelta as rd
        >>> harbour = rd.providers.Endpoint(
        ...     paths=["/harbour/chat"],
        ...     headers=rd.wire.NDJSON_HEADERS,
        ...     frame=rd.wire.ndjson_line,
        ...     error=lambda error, status: {"status": status, "why": error.message},
        ... )
        >>> error = rd.events.StreamError("Slow down", "rate_limit_error")
        >>> harbour.error(error, harbour.status(error))
        {'status': 429, 'why': 'Slow down'}
    """

    base: str = ""
    paths: Sequence[str] = ()
    streams: Callable[[str, Json], bool] = always
    headers: Mapping[str, str] = SSE_HEADERS
    frame: Callable[[Any], bytes] = sse_frame
    last: bytes = b""
    error: Callable[[StreamError, int], Json]
    whole: Callable[[Iterable[Any]], dict[str, Any]] | None = None
    lookups: Mapping[str, Json] = attrs.field(factory=dict[str, Json])
    environment: Mapping[str, str] = attrs.field(factory=dict[str, str])

    def status(self, error: StreamError) -> int:
        """The HTTP status of an error that comes before the reply: its code if that is one, else by its words, else 500."""
        return status_of(error.type, error.code)


def endpoint_of(folder: str, *, module: str = "endpoint") -> Callable[[], Endpoint]:
    """The endpoint of a format, from its `endpoint.py` or another module, which is imported at the first call."""
    return partial(_endpoint_of, f"rxdelta.formats.{folder}.{module}")


def _endpoint_of(module: str) -> Endpoint:
    found: Endpoint = import_module(module).ENDPOINT
    return found


def by_body(*, default: bool = False) -> Callable[[str, Json], bool]:
    """A request wants a stream if its field `stream` says so, or if it has none, by default."""

    def streams(_: str, body: Json) -> bool:
        said = body.get("stream")
        return default if said is None else said is True

    return streams


def by_path(*ends: str) -> Callable[[str, Json], bool]:
    """A request wants a stream if its path ends with one of these."""

    def streams(path: str, _: Json) -> bool:
        return path.endswith(ends)

    return streams


def named_sse_frame(frame: Json) -> bytes:
    """The bytes of a chunk whose `type` is also the name of its event."""
    return sse_frame(NamedFrame(frame))


def typed_error(error: StreamError, status: int) -> Json:
    """The body of an error as OpenAI writes it, and most others."""
    kind = error.type or ("invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": None, "code": error.code}}


def plain_error(error: StreamError, _: int) -> Json:
    """The body of an error that is only a sentence."""
    return {"error": error.message}


WireFormat: TypeAlias = Literal[
    "anthropic-messages", "ag-ui", "ai-sdk", "bedrock-converse", "gemini", "gemini-interactions", "cohere", "langchain",
    "openai-responses", "ollama", "mistral", "openai-completions", "openai-chat",
]  # fmt: skip
"""The names of the library's own formats. A parameter is `WireFormat | str`: other distributions have more."""


ALL_BLOCKS: Final = frozenset(
    [
        "text",
        "reasoning",
        "redacted_reasoning",
        "refusal",
        "tool_call",
        "invalid_tool_call",
        "tool_result",
        "server_tool_call",
        "server_tool_result",
        "image",
        "image_url",
        "audio",
        "audio_url",
        "video",
        "video_url",
        "file",
        "file_url",
        "file_id",
        "unsupported",
        "citation",
        "citation_without_url",
        "doubtful_tool_call",
    ]
)
"""The words of `Format.carries` for every kind of block. A format that shows replies to a front end carries them all."""


def later(folder: str, name: str = "writer", *, module: str = "writer") -> Callable[..., Any]:
    """A function of a format's `writer.py`, or of another module, which is imported at the first call: most programs only
    read."""
    return partial(_call, f"rxdelta.formats.{folder}.{module}", name)


def _call(module: str, name: str, *arguments: Any) -> Any:
    return getattr(import_module(module), name)(*arguments)


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
            provider's own, and others' is refused. `None` if it has none.
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
