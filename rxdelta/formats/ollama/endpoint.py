"""How Ollama's chat API is served."""

from __future__ import annotations

from typing import Final

from rxdelta.formats.endpoint import FAKE_MODEL, Endpoint, by_body, plain_error
from rxdelta.formats.ollama.whole_chat import ollama_chat
from rxdelta.framing import NDJSON_HEADERS, ndjson_line

__all__ = ["ENDPOINT"]

_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "fake",
    "families": ["fake"],
    "parameter_size": "1B",
    "quantization_level": "F16",
}
_MODEL: Final = {
    "name": FAKE_MODEL,
    "model": FAKE_MODEL,
    "modified_at": "2023-11-14T22:13:20Z",
    "size": 1,
    "digest": "0" * 64,
    "details": _DETAILS,
}

ENDPOINT: Final = Endpoint(
    paths=["/api/chat"],
    streams=by_body(default=True),
    headers=NDJSON_HEADERS,
    frame=ndjson_line,
    error=plain_error,
    whole=ollama_chat,
    lookups={
        "/api/tags": {"models": [_MODEL]},
        "/api/ps": {"models": []},
        "/api/version": {"version": "0.13.0"},
    },
    environment={"OLLAMA_HOST": "{url}"},
)
