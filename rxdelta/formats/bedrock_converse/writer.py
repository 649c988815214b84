"""A reply as Bedrock's ConverseStream gives it by boto3. The grammar stands in `decoder.py`.

Where boto3 has bytes, the chunks have their base64, as on the wire, so that they are JSON.
"""

from __future__ import annotations

from typing import Any

from rxdelta.core import Block, Citation
from rxdelta.formats.bedrock_converse.tables import FORMAT
from rxdelta.formats.encoding import Masked
from rxdelta.formats.http_status import status_of
from rxdelta.formats.provider_reply import BlockItem, Json, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.formats.signatures import ANTHROPIC, readable

__all__ = ["owns", "writer"]


class _Writer(ProviderWriter):
    signers = frozenset([ANTHROPIC, FORMAT])

    def start(self, _: Counts, /) -> None:
        self.write(messageStart={"role": "assistant"})

    def block_start(self, item: BlockItem, /) -> None:
        call, medium = item.as_call, item.medium
        if call is not None:
            self._begin(item, toolUse={"toolUseId": call.call_id, "name": call.call.name})
        elif medium is not None:
            self._begin(item, image={"format": medium.mime_type.partition("/")[2]})

    def block_piece(self, item: BlockItem, piece: str, /) -> None:
        if item.as_call is not None:
            self._delta(item, toolUse={"input": piece})
        elif item.content.type == "reasoning":
            self._delta(item, reasoningContent={"text": piece})
        else:
            self._delta(item, text=piece)

    def block_end(self, item: BlockItem, /) -> None:
        medium = item.medium
        if medium is not None:
            self._delta(item, image={"source": {"bytes": medium.data}})
        elif item.content.type == "reasoning":
            if item.signature is not None:
                self._delta(item, reasoningContent={"signature": item.signature})
            if item.redacted is not None:
                self._delta(item, reasoningContent={"redactedContent": item.redacted})
        for citation in item.citations:
            self._delta(item, citation=_citation(citation))
        self.write(contentBlockStop={"contentBlockIndex": item.place})

    def end(self, reason: str, counts: Counts, /) -> None:
        self.write(messageStop={"stopReason": _REASONS.get(reason, reason)})
        if counts:
            self.write(metadata={"usage": _usage(counts), "metrics": {"latencyMs": 0}})

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        name = kind if kind in _EXCEPTIONS else _OTHERS.get(status_of(kind, code), _OF_THE_MODEL)
        status = (
            {"originalStatusCode": int(code)} if name == _OF_THE_MODEL and code and code.isdecimal() else {}
        )
        self.write(**{name: {"message": message, **status}})

    def _begin(self, item: BlockItem, **start: Any) -> None:
        self.write(contentBlockStart={"contentBlockIndex": item.place, "start": start})

    def _delta(self, item: BlockItem, **delta: Any) -> None:
        self.write(contentBlockDelta={"contentBlockIndex": item.place, "delta": delta})


def _citation(citation: Citation) -> Json:
    source = {"sourceContent": [{"text": citation.cited_text}]} if citation.cited_text else {}
    return {"title": citation.title or citation.url, **source, "location": {"web": {"url": citation.url}}}


def _usage(counts: Counts) -> Json:
    """The counts in Bedrock's form, whose input excludes what a cache reads and writes."""
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    read, written = counts.get("cache_read_tokens", 0), counts.get("cache_write_tokens", 0)
    usage = {"inputTokens": max(0, given - read - written), "outputTokens": made, "totalTokens": given + made}
    more = {"cacheReadInputTokens": read, "cacheWriteInputTokens": written}
    return usage | {name: count for name, count in more.items() if count}


_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "pause": "pause_turn",
}
_OF_THE_MODEL = "modelStreamErrorException"
_OTHERS = {
    400: "validationException",
    429: "throttlingException",
    503: "serviceUnavailableException",
    529: "serviceUnavailableException",
}
"""What stands for the errors of other providers, by their status."""
_EXCEPTIONS = frozenset(
    [
        "internalServerException",
        _OF_THE_MODEL,
        "serviceUnavailableException",
        "throttlingException",
        "validationException",
    ]
)


def writer(on_error: Masked) -> ProviderEncoder:
    return ProviderEncoder(_Writer(), on_error)


def owns(block: Block, kind: str) -> bool:
    """Whether the block is a reasoning that came encrypted from Bedrock."""
    return kind == "redacted_reasoning" and readable(block, _Writer.signers) is not None
