"""A reply as Bedrock's ConverseStream gives it by boto3, and how Converse is served. The grammar is in `decoder.py`.

Where boto3 has bytes, the chunks have their base64, as on the wire, so that they are JSON. Served, they are messages of AWS's
binary event stream:

    message = total-length header-length crc header* payload crc         big-endian, 4 bytes each
    header  = name-length name 7 value-length value                     7 is the type of a string
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core import Block, Citation
from rxdelta.core.events import StreamError
from rxdelta.formats.bedrock_converse.blocks import FORMAT
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked
from rxdelta.formats.format import FAKE_KEY, Endpoint, by_path, status_of
from rxdelta.formats.notes import ANTHROPIC, readable
from rxdelta.formats.provider_reply import BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts

EVENT_STREAM: Final = "application/vnd.amazon.eventstream"
"""The type of the content."""


def event_message(chunk: Mapping[str, Any]) -> bytes:
    """The bytes of a chunk, whose first key is the name of an event, or of an exception."""
    name, value = next(iter(chunk.items()))
    kind = "exception" if name.endswith("Exception") else "event"
    fields = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    headers = b"".join(_header(field, text) for field, text in fields.items())
    payload = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + _crc(prelude) + headers + payload
    return message + _crc(message)


def _header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()


def _crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


def converse(chunks: Iterable[Mapping[str, Any]]) -> JsonObject:
    """The body of a reply that isn't streamed. A call that the token limit has cut is left out."""
    content: list[JsonObject] = []
    deltas: list[JsonObject] = []
    start: JsonObject = {}
    body: JsonObject = {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}}
    for chunk in chunks:
        for name, event in chunk.items():
            if name == "contentBlockStart":
                start = event["start"]
            elif name == "contentBlockDelta":
                deltas.append(event["delta"])
            elif name == "contentBlockStop":
                block = _block(start, deltas)
                content += [] if block is None else [block]
                start, deltas = {}, []
            elif name in ("messageStop", "metadata"):
                body |= event
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "metrics": {"latencyMs": 0}, **body}


def _block(start: JsonObject, deltas: list[JsonObject]) -> JsonObject | None:
    """A block as its events say it; `None` for a call that can't be read."""
    if "toolUse" in start:
        written = "".join(delta["toolUse"]["input"] for delta in deltas)
        try:
            return {"toolUse": {**start["toolUse"], "input": json.loads(written or "{}")}}
        except ValueError:
            return None
    if "image" in start:
        return {"image": {**start["image"], **deltas[0]["image"]}}
    if any("reasoningContent" in delta for delta in deltas):
        pieces = [delta["reasoningContent"] for delta in deltas]
        if "redactedContent" in pieces[-1]:
            return {"reasoningContent": pieces[-1]}
        signed = {"signature": pieces[-1]["signature"]} if "signature" in pieces[-1] else {}
        text = "".join(piece.get("text", "") for piece in pieces)
        return {"reasoningContent": {"reasoningText": {"text": text, **signed}}}
    text = "".join(delta.get("text", "") for delta in deltas)
    citations = [delta["citation"] for delta in deltas if "citation" in delta]
    return (
        {"citationsContent": {"content": [{"text": text}], "citations": citations}}
        if citations
        else {"text": text}
    )


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


def _citation(citation: Citation) -> JsonObject:
    source = {"sourceContent": [{"text": citation.cited_text}]} if citation.cited_text else {}
    return {"title": citation.title or citation.url, **source, "location": {"web": {"url": citation.url}}}


def _usage(counts: Counts) -> JsonObject:
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
"""The exceptions in place of other providers' errors, by their status."""
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
