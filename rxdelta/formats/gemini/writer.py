"""A reply as Gemini streams it, and how generateContent is served. The grammar is in `decoder.py`.

A text, a reasoning and the end are parts of their own, a piece each. Calls and media come whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core import Citation, thaw
from rxdelta.core.events import StreamError
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked
from rxdelta.formats.format import FAKE_KEY, FAKE_MODEL, Endpoint, by_path, status_of
from rxdelta.formats.gemini.tables import FORMAT
from rxdelta.formats.notes import GOOGLE
from rxdelta.formats.provider_reply import BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts


class _Writer(ProviderWriter):
    signers = frozenset([GOOGLE, FORMAT])

    def block_piece(self, item: BlockItem, piece: str, /) -> None:
        if item.as_call is None:
            self._say({"text": piece, **_thought(item)})

    def block_end(self, item: BlockItem, /) -> None:
        signed = {} if item.signature is None else {"thoughtSignature": item.signature}
        call, medium = item.as_call, item.medium
        if call is not None:
            function = {
                "id": call.call_id,
                "name": call.call.name,
                "args": thaw(call.call.arguments_as_map()),
            }
            self._say({"functionCall": function, **signed})
        elif medium is None:
            if signed:
                self._say({"text": "", **_thought(item), **signed})
            if item.citations:
                self._write({"citationMetadata": {"citations": [_citation(one) for one in item.citations]}})
        elif medium.url is None:
            self._say({"inlineData": {"mimeType": medium.mime_type, "data": medium.data}, **signed})
        else:
            self._say({"fileData": {"mimeType": medium.mime_type, "fileUri": medium.url}, **signed})

    def end(self, reason: str, counts: Counts, /) -> None:
        more = {"usageMetadata": _usage(counts)} if counts else {}
        self._say({"text": ""}, _REASONS.get(reason, "STOP"), **more)

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        number = int(code) if code is not None and code.isdecimal() else status_of(kind, code)
        status = kind or (None if str(number) == code else code)
        self.write(error={"code": number, "message": message, **({"status": status} if status else {})})

    def _say(self, part: JsonObject, finish_reason: str | None = None, **more: Any) -> None:
        ended = {} if finish_reason is None else {"finishReason": finish_reason}
        self._write({"content": {"parts": [part], "role": "model"}, **ended}, **more)

    def _write(self, candidate: JsonObject, **more: Any) -> None:
        head = {"modelVersion": self.model} if self.model else {}
        self.write(candidates=[{**candidate, "index": 0}], **more, **head, responseId=self.id)


def _thought(item: BlockItem) -> JsonObject:
    return {"thought": True} if item.content.type == "reasoning" else {}


def _citation(citation: Citation) -> JsonObject:
    found = {
        "uri": citation.url,
        "title": citation.title,
        "startIndex": citation.start_index,
        "endIndex": citation.end_index,
    }
    return {name: value for name, value in found.items() if value is not None}


def _usage(counts: Counts) -> JsonObject:
    """The counts in Google's form, whose output excludes the thoughts."""
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    thoughts = counts.get("output_reasoning_tokens", 0)
    usage = {
        "promptTokenCount": given,
        "candidatesTokenCount": max(0, made - thoughts),
        "totalTokenCount": given + made,
    }
    more = {"thoughtsTokenCount": thoughts, "cachedContentTokenCount": counts.get("cache_read_tokens", 0)}
    return usage | {name: count for name, count in more.items() if count}


_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "pause": "CONTINUATION"}


def writer(on_error: Masked) -> ProviderEncoder:
    return ProviderEncoder(_Writer(), on_error)


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
