"""A reasoning of a response."""

from __future__ import annotations

from collections.abc import Iterator

from rxdelta.core import events, reasoning_delta
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.notes import PARAGRAPH, PART_LENGTHS, REASONING_TEXT, fields_beside
from rxdelta.formats.openai_responses.reading import (
    FORMAT,
    READ,
    Content,
    Json,
    Out,
    delta_of,
    object_of,
    optional_text,
)
from rxdelta.formats.signatures import signed

__all__ = ["ReasoningItem"]

_SUMMARY, _CONTENT = "summary_index", "content_index"
"""The indexes of its two texts."""


class ReasoningItem(Item):
    """A block with the summary or with the raw chain of thought: of the two the one that comes first.

    If parts are announced, only these exist: an event with another index, as of a server that counts every event, belongs
    to the newest.
    """

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        fields = fields_beside(item, "type", "summary", "content", "status", "encrypted_content")
        fields |= _signature(item, path)
        self.block = self.response.start_block(out, {**fields, "type": "reasoning", "reasoning": ""})
        self._growing: Growing | None = None
        self._announced: dict[str, set[int]] = {}  # the parts, by the name of their index
        self._part = -1  # the one that has the newest piece
        self._closed = False  # whether that has ended

    def _index(self, chunk: Json, index: str) -> int | None:
        """The part of a chunk; `None` if that is the newest."""
        found = chunk.get(index)
        if found is not None:
            found = READ.index(found, index)
        announced = self._announced.get(index)
        return None if announced and found not in announced else found

    def _add(self, out: Out, chunk: Json, index: str, piece: str) -> bool:
        """Add a piece. Parts of a summary become paragraphs, those of a chain of thought one text."""
        part = self._index(chunk, index)
        if not piece:
            return True
        growing = self._growing
        if growing is None:
            takes = f"response.reasoning{'_summary' if index == _SUMMARY else ''}_text.delta"
            growing = self._growing = Growing(takes, index, self.block, reasoning_delta)
            self._part = part or 0
        elif growing.index != index:
            return False
        if part is not None and part != self._part:
            self._part = part
            if index == _SUMMARY:
                out.append(reasoning_delta(self.block, PARAGRAPH))
        self._closed = False
        growing.at = chunk.get(index, -1)
        growing.length += len(piece)
        out.append(reasoning_delta(self.block, piece))
        self.grows(growing)
        return True

    def _end_part(self, out: Out, chunk: Json, index: str, fields: Json, path: str = "") -> bool:
        """Read the end of a part. Its text counts only if it had no deltas."""
        whole = optional_text(fields, "text", path)
        if whole is None and self._growing is None:
            raise READ.fail(f"{path}.text" if path else "text", "a string", None)
        return whole is not None and self._add_whole(out, chunk, index, whole)

    def _add_whole(self, out: Out, chunk: Json, index: str, whole: str) -> bool:
        growing = self._growing
        if growing is not None and growing.index != index:
            return not whole
        part = self._index(chunk, index)
        repeats = growing is not None and not self._closed and len(whole) == growing.length
        if repeats and part not in (None, self._part):
            # The end of the whole text, so the index counts events.
            self._announced[index] = {self._part}
            part = None
        has_come = growing is not None and (part is None or part <= self._part)
        known = has_come or self._add(out, chunk, index, whole)
        self._closed = bool(whole)
        return known

    def add_summary(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, _SUMMARY, delta_of(chunk))

    def end_summary(self, out: Out, chunk: Json) -> bool:
        return self._end_part(out, chunk, _SUMMARY, chunk)

    def add_summary_part(self, out: Out, chunk: Json) -> bool:
        return self._announce(out, chunk, _SUMMARY)

    def end_summary_part(self, out: Out, chunk: Json) -> bool:
        return self._end_part(out, chunk, _SUMMARY, object_of(chunk, "part"), "part")

    def add_content(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, _CONTENT, delta_of(chunk))

    def end_content(self, out: Out, chunk: Json) -> bool:
        return self._end_part(out, chunk, _CONTENT, chunk)

    def add_content_part(self, out: Out, chunk: Json) -> bool:
        return self._announce(out, chunk, _CONTENT)

    def end_content_part(self, out: Out, chunk: Json) -> bool:
        return self._end_part(out, chunk, _CONTENT, object_of(chunk, "part"), "part")

    def _announce(self, out: Out, chunk: Json, index: str) -> bool:
        part = object_of(chunk, "part")
        found = chunk.get(index)
        if found is not None:
            self._announced.setdefault(index, set()).add(READ.index(found, index))
        return self._add_whole(out, chunk, index, READ.text_of(part, "text", "part"))

    def finish_blocks(self, out: Out, item: Json | None, path: str, _wrong: str | None, /) -> None:
        content: Content = {"type": "reasoning"}
        raw = self._growing is not None and self._growing.index == _CONTENT
        if item is not None:
            has_come = self._growing is not None
            summary = list(_texts(item, "summary", path, has_come=has_come))
            thought = list(_texts(item, "content", path, has_come=has_come))
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
        "response.reasoning_summary_part.done": end_summary_part,
        "response.reasoning_summary_text.delta": add_summary,
        "response.reasoning_summary_text.done": end_summary,
        "response.reasoning_part.added": add_content_part,
        "response.reasoning_part.done": end_content_part,
        "response.content_part.added": add_content_part,
        "response.content_part.done": end_content_part,
        "response.reasoning_text.delta": add_content,
        "response.reasoning_text.done": end_content,
    }


def _signature(item: Json, path: str) -> Content:
    """The encrypted content, which represents the whole reasoning when it is sent back."""
    encrypted = READ.text_of(item, "encrypted_content", path)
    return signed(encrypted, FORMAT) if encrypted else {}


def _texts(item: Json, field: str, path: str, *, has_come: bool) -> Iterator[str]:
    """The texts of the parts. Each must be there unless a text has come before."""
    found = item.get(field)
    if isinstance(found, str):
        yield found
        return
    for n, part in enumerate(READ.items(found, f"{path}.{field}")):
        at = f"{path}.{field}[{n}]"
        fields = READ.mapping(part, at)
        if not has_come and fields.get("text") is None and fields.get("type") in _HAS_TEXT:
            raise READ.fail(f"{at}.text", "a string", None)
        yield READ.text_of(fields, "text", at)


_HAS_TEXT = ("summary_text", "reasoning_text")
