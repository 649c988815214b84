"""A message of a response."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from rxdelta.core import events, text_delta
from rxdelta.formats.citations import as_citation
from rxdelta.formats.growing_list import due
from rxdelta.formats.openai_responses.items import Growing, Item, Response
from rxdelta.formats.openai_responses.notes import fields_beside
from rxdelta.formats.openai_responses.reading import READ, Content, Json, Out, object_of, type_of

__all__ = ["MessageItem"]


class MessageItem(Item):
    """A block for each part of the message, with the message's own fields in each."""

    def __init__(self, response: Response, place: int, kind: str, item: Json) -> None:
        super().__init__(response, place, kind, item)
        self._parts: dict[int, _Part] = {}  # by content index
        self._fields = fields_beside(item, "type", "role", "content", "status")

    def begin(self, _out: Out, _item: Json, _path: str, /) -> None:
        """Start no block yet: each part starts its own."""

    def _part(self, out: Out, chunk: Json, part: Json, path: str) -> _Part:
        """The part that a chunk belongs to, which is started if need be."""
        found = chunk.get("content_index")
        at = next(reversed(self._parts), 0) if found is None else READ.index(found, "content_index")
        known = self._parts.get(at)
        return self._start(out, at, part, path) if known is None else known

    def _start(self, out: Out, at: int, part: Json, path: str) -> _Part:
        kind = _KINDS.get(str(part.get("type")))
        content = _content_of(kind, part, path) | self._fields
        if kind is None:
            content["value"] = {**part, **self._fields}
        else:
            content[kind] = ""
        block = self.response.start_block(out, content)
        started = self._parts[at] = _Part(block, kind, at)
        started.add(out, READ.text_of(part, kind, path) if kind else "")
        return started

    def add_part(self, out: Out, chunk: Json) -> bool:
        part = object_of(chunk, "part")
        type_of(part, "part")
        self._part(out, chunk, part, "part")
        return True

    def end_part(self, out: Out, chunk: Json) -> bool:
        part = object_of(chunk, "part")
        known = self._part(out, chunk, part, "part")
        if known.kind is not None:
            known.add_whole(out, READ.text_of(part, known.kind, "part"))
        return True

    def add_text(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, "output_text")

    def add_refusal(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, "refusal")

    def _add(self, out: Out, chunk: Json, kind: str) -> bool:
        piece = READ.text_of(chunk, "delta", "")
        logprobs = READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind}, "")
        if part.kind != _KINDS[kind]:
            return not piece
        part.add(out, piece)
        part.logprobs.extend(logprobs)
        self.grows(part.growing)
        return True

    def end_text(self, out: Out, chunk: Json) -> bool:
        return self._add_whole(out, chunk, "output_text", READ.text_of(chunk, "text", ""))

    def end_refusal(self, out: Out, chunk: Json) -> bool:
        return self._add_whole(out, chunk, "refusal", READ.text_of(chunk, "refusal", ""))

    def _add_whole(self, out: Out, chunk: Json, kind: str, whole: str) -> bool:
        logprobs = READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind}, "")
        if part.kind != _KINDS[kind]:
            return not whole
        part.add_whole(out, whole)
        if logprobs:
            part.logprobs = list(logprobs)
        return True

    def add_annotation(self, out: Out, chunk: Json) -> bool:
        annotation = READ.mapping(chunk.get("annotation"), "annotation")
        if not annotation:
            return True
        part = self._part(out, chunk, {"type": "output_text"}, "")
        if part.kind != "text":
            return False
        part.cite(out, chunk.get("annotation_index"), _citation(annotation))
        return True

    def flush(self, out: Out, /) -> None:
        for part in self._parts.values():
            part.flush(out)

    def finish_blocks(self, out: Out, item: Json | None, path: str, _wrong: str | None, /) -> None:
        if item is not None:
            self._fields = fields_beside(item, "type", "role", "content")
        found = [] if item is None else list(_parts_of(item, path))
        open_parts = deque(self._parts[at] for at in sorted(self._parts))
        for fields, kind, content in found:
            if open_parts and open_parts[0].kind == kind:
                part = open_parts.popleft()
            else:
                part = self._start(out, max(self._parts, default=-1) + 1, fields, path)
            if kind is None:
                content["value"] = {**fields, **self._fields}
            part.finish(out, {**self._fields, **content})
        for part in open_parts:
            part.finish(out, None if part.kind is None else {**self._fields, "type": part.kind})

    READS = {
        "response.content_part.added": add_part,
        "response.content_part.done": end_part,
        "response.output_text.delta": add_text,
        "response.output_text.done": end_text,
        "response.output_text.annotation.added": add_annotation,
        "response.output_text_annotation.added": add_annotation,
        "response.refusal.delta": add_refusal,
        "response.refusal.done": end_refusal,
    }


class _Part:
    """The block of a part. `kind` is `text` or `refusal`; an unknown part has `None` and is kept whole."""

    __slots__ = ("block", "citations", "emitted", "growing", "kind", "logprobs")

    def __init__(self, block: int, kind: str | None, at: int) -> None:
        takes = "response.refusal.delta" if kind == "refusal" else "response.output_text.delta"
        self.block = block
        self.kind = kind
        self.growing = Growing(takes, "content_index", block, text_delta)
        self.growing.at = at
        self.citations: dict[int, Content] = {}
        self.emitted = 0  # how many of them
        self.logprobs: list[Any] = []

    def add(self, out: Out, piece: str) -> None:
        if piece:
            self.growing.length += len(piece)
            out.append(text_delta(self.block, piece))

    def add_whole(self, out: Out, whole: str) -> None:
        """Take the whole text where it differs in length from its deltas, because some were lost."""
        if self.growing.length == 0:
            self.add(out, whole)
        elif whole and len(whole) != self.growing.length:
            self.growing.length = len(whole)
            out.append(events.BlockDelta(self.block, {self.kind or "text": whole}))

    def cite(self, out: Out, at: object, citation: Content) -> None:
        self.citations[at if type(at) is int else len(self.citations)] = citation
        if due(len(self.citations), self.emitted):
            self.flush(out)

    def flush(self, out: Out) -> None:
        """Emit the citations so far."""
        if len(self.citations) > self.emitted:
            self.emitted = len(self.citations)
            out.append(events.BlockDelta(self.block, {"citations": list(self.citations.values())}))

    def finish(self, out: Out, content: Content | None) -> None:
        if content is not None and self.kind is not None:
            if self.logprobs and "logprobs" not in content:
                content["logprobs"] = self.logprobs
            if self.citations and "citations" not in content:
                self.flush(out)
        out.append(events.BlockFinish(self.block, content))


def _parts_of(item: Json, path: str) -> Iterator[tuple[Json, str | None, Content]]:
    """The parts of a whole message: the fields of each, its kind, and its block's content."""
    found: Any = item.get("content")
    if isinstance(found, str):
        found = [{"type": "output_text", "text": found}]
    for n, entry in enumerate(READ.items(found, f"{path}.content")):
        at = f"{path}.content[{n}]"
        part = READ.mapping(entry, at)
        kind = _KINDS.get(str(part.get("type")))
        content = _content_of(kind, part, at)
        text = READ.text_of(part, kind, at) if kind else ""
        yield part, kind, content | ({kind: text} if kind and text else {})


def _content_of(kind: str | None, part: Json, path: str) -> Content:
    """The content of a part's block, except for the text."""
    if kind is None:
        return {"type": "non_standard"}
    content = fields_beside(part, "type", kind, "annotations", "logprobs")
    content["type"] = kind
    citations = [
        _citation(READ.mapping(entry, f"{path}.annotations[{n}]"))
        for n, entry in enumerate(READ.items(part.get("annotations"), f"{path}.annotations"))
    ]
    logprobs = READ.items(part.get("logprobs"), f"{path}.logprobs")
    return (
        content
        | ({"citations": citations} if citations else {})
        | ({"logprobs": logprobs} if logprobs else {})
    )


def _citation(annotation: Json) -> Content:
    """An annotation as a citation. A file is cited by its name."""
    found = {name: annotation.get(name) for name in ("url", "start_index", "end_index")}
    found["title"] = annotation.get("title") or annotation.get("filename")
    return as_citation(found, annotation)


# A part has its text in the field of this name.
_KINDS: Mapping[str, str] = {"output_text": "text", "text": "text", "refusal": "refusal"}
