"""A reply as Google's Interactions API streams it, and how the API is served. The grammar is in `decoder.py`.

Each block is a step of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core import Citation
from rxdelta.core.events import StreamError
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked
from rxdelta.formats.format import Endpoint, by_body
from rxdelta.formats.gemini_interactions.tables import FORMAT, MEDIA
from rxdelta.formats.notes import GOOGLE
from rxdelta.formats.provider_reply import BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.framing import sse_frame


class _Writer(ProviderWriter):
    signers = frozenset([GOOGLE, FORMAT])

    def start(self, _: Counts, /) -> None:
        self.write(event_type="interaction.created", interaction=self._interaction("in_progress"))

    def block_start(self, item: BlockItem, /) -> None:
        step: JsonObject = {"type": "thought" if item.content.type == "reasoning" else "model_output"}
        if (call := item.as_call) is not None:
            step = {"type": "function_call", "id": call.call_id, "name": call.call.name, "arguments": {}}
        self.write(event_type="step.start", index=item.place, step=step)

    def block_piece(self, item: BlockItem, piece: str, /) -> None:
        if item.as_call is not None:
            self._delta(item, type="arguments_delta", arguments=piece)
        elif item.content.type == "reasoning":
            self._delta(item, type="thought_summary", content={"type": "text", "text": piece})
        else:
            self._delta(item, type="text", text=piece)

    def block_end(self, item: BlockItem, /) -> None:
        medium = item.medium
        if medium is not None:
            content = {"data": medium.data} if medium.url is None else {"uri": medium.url}
            self._delta(item, type=_CONTENTS[medium.kind], mime_type=medium.mime_type, **content)
        elif item.signature is not None and item.content.type == "reasoning":
            self._delta(item, type="thought_signature", signature=item.signature)
        elif item.citations:
            self._delta(
                item, type="text_annotation_delta", annotations=[_annotation(one) for one in item.citations]
            )
        self.write(event_type="step.stop", index=item.place)

    def end(self, reason: str, counts: Counts, /) -> None:
        more = {"usage": _usage(counts)} if counts else {}
        interaction = self._interaction(_STATUSES.get(reason, "completed"), **more)
        self.write(event_type="interaction.completed", interaction=interaction)

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        said = {"code": code or kind} if code or kind else {}
        self.write(event_type="error", error={**said, "message": message})

    def _interaction(self, status: str, **more: Any) -> JsonObject:
        head = {"model": self.model} if self.model else {}
        return {"id": self.id, "object": "interaction", **head, "status": status, **more}

    def _delta(self, item: BlockItem, **delta: Any) -> None:
        self.write(event_type="step.delta", index=item.place, delta=delta)


def _annotation(citation: Citation) -> JsonObject:
    found: JsonObject = {"type": "url_citation", "url": citation.url, "title": citation.title}
    found |= {"start_index": citation.start_index, "end_index": citation.end_index}
    return {name: value for name, value in found.items() if value is not None}


def _usage(counts: Counts) -> JsonObject:
    """The counts in Google's form, whose output excludes the thoughts."""
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    thoughts = counts.get("output_reasoning_tokens", 0)
    return {
        "total_input_tokens": given,
        "total_cached_tokens": counts.get("cache_read_tokens", 0),
        "total_output_tokens": max(0, made - thoughts),
        "total_thought_tokens": thoughts,
        "total_tokens": given + made,
    }


_CONTENTS = {block: content for content, block in MEDIA.items()}
_STATUSES = {"tool_use": "requires_action", "length": "incomplete", "pause": "requires_continuation"}


def writer(on_error: Masked) -> ProviderEncoder:
    return ProviderEncoder(_Writer(), on_error)


def _error(error: StreamError, status: int) -> JsonObject:
    return {"error": {"code": error.code or error.type or str(status), "message": error.message}}


def _frame(chunk: Mapping[str, Any]) -> bytes:
    """The bytes of a chunk whose `event_type` is also the name of its event."""
    return f"event: {chunk['event_type']}\n".encode() + sse_frame(dict(chunk))


def _whole(chunks: Iterable[Mapping[str, Any]]) -> JsonObject:
    """The body of a reply that isn't streamed. A call that the token limit has cut is left out."""
    body: JsonObject = {}
    steps: list[JsonObject] = []
    step: JsonObject = {}
    deltas: list[JsonObject] = []
    for chunk in chunks:
        kind = chunk["event_type"]
        if kind == "step.start":
            step, deltas = chunk["step"], []
        elif kind == "step.delta":
            deltas.append(chunk["delta"])
        elif kind == "step.stop":
            found = _step(step, deltas)
            steps += [] if found is None else [found]
        else:
            body |= chunk["interaction"]
    return {**body, "steps": steps}


def _step(step: JsonObject, deltas: list[JsonObject]) -> JsonObject | None:
    """A step as its events say it; `None` for a call that can't be read."""
    if step["type"] == "function_call":
        try:
            return {**step, "arguments": json.loads("".join(delta["arguments"] for delta in deltas) or "{}")}
        except ValueError:
            return None
    if step["type"] == "thought":
        said = "".join(delta["content"]["text"] for delta in deltas if "content" in delta)
        signature = next((delta["signature"] for delta in deltas if "signature" in delta), None)
        signed = {} if signature is None else {"signature": signature}
        return {**step, "summary": [{"type": "text", "text": said}] if said else [], **signed}
    media = [delta for delta in deltas if delta["type"] not in ("text", "text_annotation_delta")]
    text = "".join(delta["text"] for delta in deltas if delta["type"] == "text")
    cited = [one for delta in deltas for one in delta.get("annotations", ())]
    annotated = {"annotations": cited} if cited else {}
    return {**step, "content": media or [{"type": "text", "text": text, **annotated}]}


ENDPOINT: Final = Endpoint(
    paths=["/interactions"],
    streams=by_body(),
    frame=_frame,
    error=_error,
    whole=_whole,
)
