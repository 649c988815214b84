"""A reply as Google's Interactions API streams it. The grammar stands in `decoder.py`. Each block is a step of its own."""

from __future__ import annotations

from typing import Any

from rxdelta.core import Citation
from rxdelta.formats.encoding import Masked
from rxdelta.formats.gemini_interactions.reading import FORMAT
from rxdelta.formats.gemini_interactions.tables import MEDIA
from rxdelta.formats.provider_reply import BlockItem, Json, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.formats.signatures import GOOGLE

__all__ = ["writer"]


class _Writer(ProviderWriter):
    signers = frozenset([GOOGLE, FORMAT])

    def start(self, _: Counts, /) -> None:
        self.write(event_type="interaction.created", interaction=self._interaction("in_progress"))

    def block_start(self, item: BlockItem, /) -> None:
        step: Json = {"type": "thought" if item.content.type == "reasoning" else "model_output"}
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

    def _interaction(self, status: str, **more: Any) -> Json:
        head = {"model": self.model} if self.model else {}
        return {"id": self.id, "object": "interaction", **head, "status": status, **more}

    def _delta(self, item: BlockItem, **delta: Any) -> None:
        self.write(event_type="step.delta", index=item.place, delta=delta)


def _annotation(citation: Citation) -> Json:
    found: Json = {"type": "url_citation", "url": citation.url, "title": citation.title}
    found |= {"start_index": citation.start_index, "end_index": citation.end_index}
    return {name: value for name, value in found.items() if value is not None}


def _usage(counts: Counts) -> Json:
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
