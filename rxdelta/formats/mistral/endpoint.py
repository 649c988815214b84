"""How Mistral's chat completions are served."""

from __future__ import annotations

from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.endpoint import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, typed_error
from rxdelta.formats.mistral.whole_completion import mistral_completion
from rxdelta.formats.provider_reply import CREATED
from rxdelta.framing import DONE, sse_frame

__all__ = ["ENDPOINT"]


def _error(error: StreamError, status: int) -> dict[str, Any]:
    return {"object": "error", **typed_error(error, status)["error"], "raw_status_code": status}


_MODEL: Final = {"id": FAKE_MODEL, "object": "model", "created": CREATED, "owned_by": "rxdelta"}

ENDPOINT: Final = Endpoint(
    paths=["/chat/completions"],
    streams=by_body(),
    last=sse_frame(DONE),
    error=_error,
    whole=mistral_completion,
    lookups={
        "/v1/models": {"object": "list", "data": [{**_MODEL, "capabilities": {"completion_chat": True}}]}
    },
    environment={"MISTRAL_API_KEY": FAKE_KEY},
)
