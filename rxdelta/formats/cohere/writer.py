"""A reply as Cohere's chat API, version 2, streams it, and how the API is served. The grammar is in `decoder.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from rxdelta.core import Block, Citation, ContentPart, thaw
from rxdelta.core.events import StreamError
from rxdelta.formats.cohere.blocks import CONTENT_TYPES, PLAN
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked
from rxdelta.formats.format import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, named_sse_frame
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.provider_reply import BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts


class _Writer(ProviderWriter):
    def __init__(self) -> None:
        super().__init__()
        self._contents = self._citations = 0

    def start(self, _: Counts, /) -> None:
        message: JsonObject = {
            "role": "assistant",
            "content": [],
            "tool_plan": "",
            "tool_calls": [],
            "citations": [],
        }
        self.write(id=self.id, type="message-start", delta={"message": message})

    def block_start(self, item: BlockItem, /) -> None:
        if (call := item.as_call) is not None:
            function = {"name": call.call.name, "arguments": ""}
            self._say(
                "tool-call-start",
                call.number,
                tool_calls={"id": call.call_id, "type": "function", "function": function},
            )
        elif not _is_plan(item):
            field = CONTENT_TYPES[item.content.type]
            self._say("content-start", self._contents, content={"type": field, field: ""})
            self._contents += 1

    def block_piece(self, item: BlockItem, piece: str, /) -> None:
        if (call := item.as_call) is not None:
            self._say("tool-call-delta", call.number, tool_calls={"function": {"arguments": piece}})
        elif _is_plan(item):
            self.write(type="tool-plan-delta", delta={"message": {PLAN: piece}})
        else:
            self._say("content-delta", self._contents - 1, content={CONTENT_TYPES[item.content.type]: piece})

    def block_end(self, item: BlockItem, /) -> None:
        if (call := item.as_call) is not None:
            self.write(type="tool-call-end", index=call.number)
        elif not _is_plan(item):
            for citation in item.citations:
                self._say("citation-start", self._citations, citations=self._written(item, citation))
                self.write(type="citation-end", index=self._citations)
                self._citations += 1
            self.write(type="content-end", index=self._contents - 1)

    def _written(self, item: BlockItem, citation: Citation) -> JsonObject:
        if _is_own(citation):
            raw: JsonObject = thaw(citation.raw)
            return raw
        start, end = citation.start_index or 0, citation.end_index
        place = {
            "start": start,
            "end": len(cast("ContentPart", item.content).text or "") if end is None else end,
        }
        document = {
            "id": f"doc_{self._citations}",
            "url": citation.url,
            "title": citation.title or citation.url,
        }
        source = {"type": "document", "id": document["id"], "document": document}
        known = {"content_index": self._contents - 1, "type": "TEXT_CONTENT"}
        return {**place, "text": citation.cited_text or "", "sources": [source], **known}

    def end(self, reason: str, counts: Counts, /) -> None:
        usage = {"usage": _usage(counts)} if counts else {}
        self.write(type="message-end", delta={"finish_reason": _REASONS.get(reason, "COMPLETE"), **usage})

    def fail(self, message: str, _kind: str | None, _code: str | None, /) -> None:
        self.write(type="message-end", delta={"finish_reason": "ERROR", "error": message})

    def _say(self, kind: str, index: int, **message: Any) -> None:
        self.write(type=kind, index=index, delta={"message": message})


def _is_own(citation: Citation) -> bool:
    return {"start", "end", "text", "sources"} <= citation.raw.keys()


def _is_plan(item: BlockItem) -> bool:
    block = item.content
    return (
        isinstance(block, ContentPart)
        and block.type == "reasoning"
        and block.options.get(PROVIDER_TYPE) == PLAN
    )


def _usage(counts: Counts) -> JsonObject:
    totals = {name: counts.get(name, 0) for name in ("input_tokens", "output_tokens")}
    return {"billed_units": totals, "tokens": totals, "cached_tokens": counts.get("cache_read_tokens", 0)}


_REASONS = {"tool_use": "TOOL_CALL", "length": "MAX_TOKENS", "content_filter": "ERROR_TOXIC"}


def writer(on_error: Masked) -> ProviderEncoder:
    return ProviderEncoder(_Writer(), on_error)


def owns(block: Block, kind: str) -> bool:
    """Whether the block cites in Cohere's own form."""
    return (
        kind == "citation_without_url"
        and isinstance(block, ContentPart)
        and all(map(_is_own, block.citations))
    )


def _error(error: StreamError, _: int) -> JsonObject:
    return {"message": error.message}


def _whole(chunks: Iterable[Mapping[str, Any]]) -> JsonObject:
    """The body of a reply that isn't streamed."""
    body: JsonObject = {}
    message: JsonObject = {"role": "assistant"}
    content: list[JsonObject] = []
    calls: list[JsonObject] = []
    citations: list[JsonObject] = []
    plan: list[str] = []
    for chunk in chunks:
        kind, delta = chunk["type"], chunk.get("delta", {})
        said = delta.get("message", {})
        if kind == "message-start":
            body["id"] = chunk["id"]
        elif kind == "content-start":
            content.append(said["content"])
        elif kind == "content-delta":
            for field, text in said["content"].items():
                content[-1] |= {field: content[-1][field] + text}
        elif kind == "tool-plan-delta":
            plan.append(said["tool_plan"])
        elif kind == "tool-call-start":
            calls.append({**said["tool_calls"], "function": {**said["tool_calls"]["function"]}})
        elif kind == "tool-call-delta":
            calls[chunk["index"]]["function"]["arguments"] += said["tool_calls"]["function"]["arguments"]
        elif kind == "citation-start":
            citations.append(said["citations"])
        elif kind == "message-end":
            body |= delta
    lists = {"content": content, "tool_calls": calls, "citations": citations, "tool_plan": "".join(plan)}
    return {**body, "message": message | {field: value for field, value in lists.items() if value}}


_MODEL: Final = {"name": FAKE_MODEL, "endpoints": ["chat"]}

ENDPOINT: Final = Endpoint(
    paths=["/v2/chat"],
    streams=by_body(),
    frame=named_sse_frame,
    error=_error,
    whole=_whole,
    lookups={"/v1/models": {"models": [_MODEL]}},
    environment={"CO_API_URL": "{url}", "CO_API_KEY": FAKE_KEY},
)
