"""How a server answers that speaks a wire format, for a fake provider with which the format's own clients talk.

A writer says what the chunks of a reply are. An `Endpoint` says what is around them: paths, bytes, the bodies of errors
and of replies that aren't streamed, and where the clients look for the server. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeAlias

import attrs

from rxdelta.core.events import StreamError
from rxdelta.formats.http_status import status_of
from rxdelta.framing import SSE_HEADERS, NamedFrame, sse_frame

__all__ = [
    "FAKE_KEY",
    "FAKE_MODEL",
    "Endpoint",
    "always",
    "by_body",
    "by_path",
    "endpoint_of",
    "named_sse_frame",
    "plain_error",
    "typed_error",
]

Json: TypeAlias = Mapping[str, Any]

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


def endpoint_of(folder: str) -> Callable[[], Endpoint]:
    """The endpoint of a format, from its `endpoint.py`, which is imported when it is first asked for."""
    return partial(_imported, folder)


def _imported(folder: str) -> Endpoint:
    found: Endpoint = import_module(f"rxdelta.formats.{folder}.endpoint").ENDPOINT
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
