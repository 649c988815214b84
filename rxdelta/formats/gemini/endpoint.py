"""How Gemini's generateContent is served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.endpoint import FAKE_KEY, FAKE_MODEL, Endpoint, by_path

__all__ = ["ENDPOINT"]


def _error(error: StreamError, status: int) -> dict[str, Any]:
    known = error.type or _STATUSES.get(status, "INTERNAL")
    return {"error": {"code": status, "message": error.message, "status": known}}


def _whole(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a reply that isn't streamed: one candidate with all parts."""
    body: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    citations: list[Any] = []
    for chunk in chunks:
        body |= chunk
        for one in chunk.get("candidates", ()):
            candidate |= one
            citations += one.get("citationMetadata", {}).get("citations", ())
            for part in one.get("content", {}).get("parts", ()):
                if parts and _continues(parts[-1], part):
                    parts[-1] |= {**part, "text": parts[-1]["text"] + part["text"]}
                else:
                    parts.append({**part})
    said = [part for part in parts if part != {"text": ""}]
    cited = {"citationMetadata": {"citations": citations}} if citations else {}
    candidate |= {"content": {"parts": said, "role": "model"}, **cited}
    return {**body, "candidates": [candidate]}


def _continues(last: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether a part goes on with the text of the last one, which no signature has ended."""
    return (
        "text" in last
        and "text" in part
        and "thoughtSignature" not in last
        and last.get("thought") == part.get("thought")
    )


_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_MODEL: Final = {
    "name": f"models/{FAKE_MODEL}",
    "displayName": FAKE_MODEL,
    "supportedGenerationMethods": ["generateContent"],
}

ENDPOINT: Final = Endpoint(
    paths=[":generateContent", ":streamGenerateContent"],
    streams=by_path(":streamGenerateContent"),
    error=_error,
    whole=_whole,
    lookups={"/models": {"models": [_MODEL]}, f"/models/{FAKE_MODEL}": _MODEL},
    environment={
        "GOOGLE_GEMINI_BASE_URL": "{url}",
        "GEMINI_API_KEY": FAKE_KEY,
        "GOOGLE_API_KEY": FAKE_KEY,
    },
)
