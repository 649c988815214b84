"""A reasoning of a response."""

from __future__ import annotations

from collections.abc import Iterator

from rxdelta.core import events, reasoning_delta
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.notes import PARAGRAPH, PART_LENGTHS, REASONING_TEXT, fields_beside
from rxdelta.formats.openai_responses.reading import FORMAT, READ, Content, Json, Out, object_of
from rxdelta.formats.signatures import signed

__all__ = ["ReasoningItem"]

_SUMMARY, _CONTENT = "summary_index", "content_index"
"""The indexes of its two texts."""


class ReasoningItem(Item):
    """A block with the summary or with the raw chain of thought: of the two the one that comes first."""

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        fields = fields_beside(item, "type", "summary", "content", "status", "encrypted_content")
        fields |= _signature(item, path)
        self.block = self.response.start_block(out, {**fields, "type": "reasoning", "reasoning": ""})
        self._growing: Growing | None = None

    def _add(self, out: Out, chunk: Json, index: str, piece: str) -> bool:
        """Add a piece. Parts of a summary become paragraphs, those of a chain of thought one text."""
        found = chunk.get(index)
        if found is not None:
            found = READ.index(found, index)
        if not piece:
            return True
        growing = self._growing
        if growing is None:
            takes = f"response.reasoning{'_summary' if index == _SUMMARY else ''}_text.delta"
            growing = self._growing = Growing(takes, index, self.block, reasoning_delta)
            growing.at = 0 if found is None else found
        elif growing.index != index:
            return False
        if found is not None and found != growing.at:
            growing.at, growing.length = found, 0
            if index == _SUMMARY:
                out.append(reasoning_delta(self.block, PARAGRAPH))
        growing.length += len(piece)
        out.append(reasoning_delta(self.block, piece))
        self.grows(growing)
        return True

    def _add_whole(self, out: Out, chunk: Json, index: str, whole: str) -> bool:
        """Read the end of a part. Its text counts only if it had no deltas."""
        growing = self._growing
        if growing is None:
            return self._add(out, chunk, index, whole)
        if growing.index != index:
            return not whole
        at = chunk.get(index)
        begun = at is None or (type(at) is int and at <= growing.at)
        return begun or self._add(out, chunk, index, whole)

    def add_summary(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, _SUMMARY, READ.text_of(chunk, "delta", ""))

    def end_summary(self, out: Out, chunk: Json) -> bool:
        return self._add_whole(out, chunk, _SUMMARY, READ.text_of(chunk, "text", ""))

    def add_summary_part(self, out: Out, chunk: Json) -> bool:
        return self._add_whole(out, chunk, _SUMMARY, READ.text_of(object_of(chunk, "part"), "text", "part"))

    def add_content(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, _CONTENT, READ.text_of(chunk, "delta", ""))

    def end_content(self, out: Out, chunk: Json) -> bool:
        return self._add_whole(out, chunk, _CONTENT, READ.text_of(chunk, "text", ""))

    def add_content_part(self, out: Out, chunk: Json) -> bool:
        return self._add_whole(out, chunk, _CONTENT, READ.text_of(object_of(chunk, "part"), "text", "part"))

    def finish_blocks(self, out: Out, item: Json | None, path: str, _wrong: str | None, /) -> None:
        content: Content = {"type": "reasoning"}
        raw = self._growing is not None and self._growing.index == _CONTENT
        if item is not None:
            summary = list(_texts(item, "summary", path))
            thought = list(_texts(item, "content", path))
            content |= fields_beside(item, "type", "summary", "content", "encrypted_content")
            content |= _signature(item, path)
            if any(summary) and any(thought):
                content["content"] = item["content"]
            parts, between = (summary, PARAGRAPH) if any(summary) else (thought, "")
            text = between.join(part for part in parts if part)
            if text:
                content["reasoning"] = text
                raw = parts is thought
            if len(parts) > 1:
                content[PART_LENGTHS] = [len(part) for part in parts if part]
        if raw:
            content[PROVIDER_TYPE] = REASONING_TEXT
        out.append(events.BlockFinish(self.block, content))

    READS = {
        "response.reasoning_summary_part.added": add_summary_part,
        "response.reasoning_summary_part.done": add_summary_part,
        "response.reasoning_summary_text.delta": add_summary,
        "response.reasoning_summary_text.done": end_summary,
        "response.reasoning_part.added": add_content_part,
        "response.reasoning_part.done": add_content_part,
        "response.content_part.added": add_content_part,
        "response.content_part.done": add_content_part,
        "response.reasoning_text.delta": add_content,
        "response.reasoning_text.done": end_content,
    }


def _signature(item: Json, path: str) -> Content:
    """The encrypted content, which represents the whole reasoning when it is sent back."""
    encrypted = READ.text_of(item, "encrypted_content", path)
    return signed(encrypted, FORMAT) if encrypted else {}


def _texts(item: Json, field: str, path: str) -> Iterator[str]:
    found = item.get(field)
    if isinstance(found, str):
        yield found
        return
    for n, part in enumerate(READ.items(found, f"{path}.{field}")):
        at = f"{path}.{field}[{n}]"
        yield READ.text_of(READ.mapping(part, at), "text", at)
