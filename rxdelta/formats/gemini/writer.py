"""A reply as Gemini streams it. The grammar stands in `decoder.py`.

A text, a reasoning and the end are parts of their own, a piece each. Calls and media come whole.
"""

from __future__ import annotations

from typing import Any

from rxdelta.core import Citation, thaw
from rxdelta.formats.encoding import Masked
from rxdelta.formats.gemini.tables import FORMAT
from rxdelta.formats.http_status import status_of
from rxdelta.formats.provider_reply import BlockItem, Json, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.formats.signatures import GOOGLE

__all__ = ["writer"]


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

    def _say(self, part: Json, finish_reason: str | None = None, **more: Any) -> None:
        ended = {} if finish_reason is None else {"finishReason": finish_reason}
        self._write({"content": {"parts": [part], "role": "model"}, **ended}, **more)

    def _write(self, candidate: Json, **more: Any) -> None:
        head = {"modelVersion": self.model} if self.model else {}
        self.write(candidates=[{**candidate, "index": 0}], **more, **head, responseId=self.id)


def _thought(item: BlockItem) -> Json:
    return {"thought": True} if item.content.type == "reasoning" else {}


def _citation(citation: Citation) -> Json:
    found = {
        "uri": citation.url,
        "title": citation.title,
        "startIndex": citation.start_index,
        "endIndex": citation.end_index,
    }
    return {name: value for name, value in found.items() if value is not None}


def _usage(counts: Counts) -> Json:
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
