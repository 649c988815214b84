"""How Bedrock's Converse and ConverseStream are served."""

from __future__ import annotations

from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.bedrock_converse.event_stream import EVENT_STREAM, event_message
from rxdelta.formats.bedrock_converse.whole_converse import converse
from rxdelta.formats.endpoint import FAKE_KEY, Endpoint, by_path

__all__ = ["ENDPOINT"]


def _error(error: StreamError, status: int) -> dict[str, Any]:
    kind = error.type if error.type and error.type.endswith("Exception") else None
    kind = kind or _TYPES.get(status, "ValidationException" if status < 500 else "InternalServerException")
    return {"__type": kind[0].upper() + kind[1:], "message": error.message}


_TYPES: Final = {
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}

ENDPOINT: Final = Endpoint(
    paths=["/converse", "/converse-stream"],
    streams=by_path("/converse-stream"),
    headers={"content-type": EVENT_STREAM},
    frame=event_message,
    error=_error,
    whole=converse,
    environment={
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{url}",
        "AWS_ACCESS_KEY_ID": FAKE_KEY,
        "AWS_SECRET_ACCESS_KEY": FAKE_KEY,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    },
)
