"""How Anthropic's Messages API is served."""

from __future__ import annotations

from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.anthropic_messages.whole_message import anthropic_message
from rxdelta.formats.endpoint import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, named_sse_frame

__all__ = ["ENDPOINT"]


def _error(error: StreamError, status: int) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": error.type or _TYPES.get(status, "api_error"), "message": error.message},
    }


_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_MODEL: Final = {
    "type": "model",
    "id": FAKE_MODEL,
    "display_name": FAKE_MODEL,
    "created_at": "2023-11-14T22:13:20Z",
}
_PAGE: Final = {"data": [_MODEL], "has_more": False, "first_id": FAKE_MODEL, "last_id": FAKE_MODEL}

ENDPOINT: Final = Endpoint(
    paths=["/v1/messages"],
    streams=by_body(),
    frame=named_sse_frame,
    error=_error,
    whole=anthropic_message,
    lookups={"/v1/models": _PAGE, f"/v1/models/{FAKE_MODEL}": _MODEL},
    environment={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": FAKE_KEY},
)
