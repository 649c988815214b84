"""A reasoning of the output."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator

from rxdelta.core import events, reasoning_delta
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.reading import READ, Content, Json, Out, object_at, rest

__all__ = ["Reasoning"]


class Reasoning(Item):
    """A reasoning: of its summary and its raw text the one that comes, or comes first."""

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        fields = rest(item, "type", "summary", "content", "status", "encrypted_content")
        fields |= _signature(item, path)
        self.block = self.response.start(out, {**fields, "type": "reasoning", "reasoning": ""})
        self._writes: Growing | None = None

    def _piece(self, out: Out, chunk: Json, kind: str, piece: str) -> bool:
        """More of a part. Only of a summary are parts set apart; a chain of thought is one text."""
        part = "summary_index" if kind == "summary" else "content_index"
        found = chunk.get(part)
        if found is not None:
            found = READ.index(found, part)
        if not piece:
            return True
        growing = self._writes
        if growing is None:
            takes = f"response.reasoning{'_summary' if kind == 'summary' else ''}_text.delta"
            growing = self._writes = Growing(takes, part, self.block, reasoning_delta)
            growing.at = 0 if found is None else found
        elif growing.part != part:
            return False
        if found is not None and found != growing.at:
            growing.at, growing.length = found, 0
            if kind == "summary":
                out.append(reasoning_delta(self.block, _BETWEEN))
        growing.length += len(piece)
        out.append(reasoning_delta(self.block, piece))
        self.grows(growing)
        return True

    def _whole(self, out: Out, chunk: Json, kind: str, whole: str) -> bool:
        """The end of a part. Its text counts only if no piece of it has come."""
        growing = self._writes
        part = "summary_index" if kind == "summary" else "content_index"
        at = chunk.get(part)
        if growing is None:
            return self._piece(out, chunk, kind, whole)
        if growing.part != part:
            return not whole
        begun = at is None or (type(at) is int and at <= growing.at)
        return begun or self._piece(out, chunk, kind, whole)

    def summary_text(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "summary", READ.text_of(chunk, "delta", ""))

    def summary_done(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "summary", READ.text_of(chunk, "text", ""))

    def summary_part(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "summary", READ.text_of(object_at(chunk, "part"), "text", "part"))

    def content_text(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "content", READ.text_of(chunk, "delta", ""))

    def content_done(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "content", READ.text_of(chunk, "text", ""))

    def content_part(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "content", READ.text_of(object_at(chunk, "part"), "text", "part"))

    def finish(self, out: Out, item: Json | None, path: str, _wrong: str | None = None, /) -> None:
        content: Content = {"type": "reasoning"}
        writes = self._writes
        if item is not None:
            summary = list(_texts(item, "summary", path))
            thought = list(_texts(item, "content", path))
            content |= rest(item, "type", "summary", "content", "encrypted_content") | _signature(item, path)
            if any(summary) and any(thought):
                content["content"] = item["content"]
            parts, between = (summary, _BETWEEN) if any(summary) else (thought, "")
            text = between.join(part for part in parts if part)
            if text:
                content["reasoning"] = text
            if len(parts) > 1:
                content["part_lengths"] = [len(part) for part in parts if part]
            raw = bool(text) and parts is thought
        else:
            raw = False
        if raw or (writes is not None and writes.part == "content_index" and "reasoning" not in content):
            content[PROVIDER_TYPE] = "reasoning_text"
        out.append(events.BlockFinish(self.block, content))
        self.done = True

    READS = {
        "response.reasoning_summary_part.added": summary_part,
        "response.reasoning_summary_part.done": summary_part,
        "response.reasoning_summary_text.delta": summary_text,
        "response.reasoning_summary_text.done": summary_done,
        "response.reasoning_part.added": content_part,
        "response.reasoning_part.done": content_part,
        "response.content_part.added": content_part,
        "response.content_part.done": content_part,
        "response.reasoning_text.delta": content_text,
        "response.reasoning_text.done": content_done,
    }


def _signature(item: Json, path: str) -> Content:
    """The encrypted content, which stands for the whole reasoning when it is sent back."""
    encrypted = READ.text_of(item, "encrypted_content", path)
    return {"signature": encrypted} if encrypted else {}


def _texts(item: Json, field: str, path: str) -> Iterator[str]:
    found = item.get(field)
    if isinstance(found, str):
        yield found
        return
    for n, part in enumerate(READ.items(found, f"{path}.{field}")):
        at = f"{path}.{field}[{n}]"
        yield READ.text_of(READ.mapping(part, at), "text", at)


_BETWEEN = "\n\n"
