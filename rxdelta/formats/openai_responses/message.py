"""A message of the output, with a block for each of its parts."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rxdelta.core import events, text_delta
from rxdelta.formats.decoding import due
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.reading import READ, Content, Json, Out, object_at, rest, word_at

if TYPE_CHECKING:
    from rxdelta.formats.openai_responses.decoder import Response

__all__ = ["Message"]


class Message(Item):
    """A message: a block for each of its parts."""

    def __init__(self, response: Response, place: int, kind: str, item: Json) -> None:
        super().__init__(response, place, kind, item)
        self._parts: dict[int, _Part] = {}
        self._fields: Content = {}

    def begin(self, _out: Out, item: Json, _path: str, /) -> None:
        self._fields = rest(item, "type", "role", "content", "status")

    def _part(self, out: Out, chunk: Json, part: Json, path: str) -> _Part:
        found = chunk.get("content_index")
        at = next(reversed(self._parts), 0) if found is None else READ.index(found, "content_index")
        known = self._parts.get(at)
        return self._start(out, at, part, path) if known is None else known

    def _start(self, out: Out, at: int, part: Json, path: str) -> _Part:
        kind = _PARTS.get(str(part.get("type")))
        content = _part_content(kind, part, path) | self._fields
        if kind is None:
            content["value"] = {**part, **self._fields}
        else:
            content[kind] = ""
        number = self.response.start(out, content)
        started = self._parts[at] = _Part(number, kind)
        started.growing.at = at
        self._write(out, started, READ.text_of(part, _TEXT_OF[kind], path) if kind else "")
        return started

    def _write(self, out: Out, part: _Part, piece: str) -> None:
        if piece:
            part.growing.length += len(piece)
            out.append(text_delta(part.block, piece))

    def part_added(self, out: Out, chunk: Json) -> bool:
        part = object_at(chunk, "part")
        word_at(part, "type", "part.type")
        self._part(out, chunk, part, "part")
        return True

    def part_done(self, out: Out, chunk: Json) -> bool:
        part = object_at(chunk, "part")
        known = self._part(out, chunk, part, "part")
        if known.kind is not None:
            self._settle(out, known, READ.text_of(part, _TEXT_OF[known.kind], "part"))
        return True

    def text(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "output_text")

    def refusal(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "refusal")

    def _piece(self, out: Out, chunk: Json, kind: str) -> bool:
        piece = READ.text_of(chunk, "delta", "")
        logprobs = READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind}, "")
        if part.kind != _PARTS[kind]:
            return not piece
        self._write(out, part, piece)
        part.logprobs.extend(logprobs)
        self.grows(part.growing)
        return True

    def text_done(self, out: Out, chunk: Json) -> bool:
        return self._done(out, chunk, "output_text", READ.text_of(chunk, "text", ""))

    def refusal_done(self, out: Out, chunk: Json) -> bool:
        return self._done(out, chunk, "refusal", READ.text_of(chunk, "refusal", ""))

    def _done(self, out: Out, chunk: Json, kind: str, whole: str) -> bool:
        logprobs = READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind}, "")
        if part.kind != _PARTS[kind]:
            return not whole
        self._settle(out, part, whole)
        if logprobs:
            part.logprobs = list(logprobs)
        return True

    def _settle(self, out: Out, part: _Part, whole: str) -> None:
        """The text is told whole. Where its pieces are of another length, some were lost."""
        if part.growing.length == 0:
            self._write(out, part, whole)
        elif whole and len(whole) != part.growing.length:
            part.growing.length = len(whole)
            out.append(events.BlockDelta(part.block, {part.kind or "text": whole}))

    def annotation(self, out: Out, chunk: Json) -> bool:
        annotation = READ.mapping(chunk.get("annotation"), "annotation")
        if not annotation:
            return True
        part = self._part(out, chunk, {"type": "output_text"}, "")
        if part.kind != "text":
            return False
        at = chunk.get("annotation_index")
        part.citations[at if type(at) is int else len(part.citations)] = _citation(annotation)
        if due(len(part.citations), part.told):
            self._tell_citations(out, part)
        return True

    def tell(self, out: Out, /) -> None:
        for part in self._parts.values():
            self._tell_citations(out, part)

    def _tell_citations(self, out: Out, part: _Part) -> None:
        if len(part.citations) > part.told:
            part.told = len(part.citations)
            out.append(events.BlockDelta(part.block, {"citations": list(part.citations.values())}))

    def finish(self, out: Out, item: Json | None, path: str, _wrong: str | None = None, /) -> None:
        if item is not None:
            self._fields = rest(item, "type", "role", "content")
        found = [] if item is None else list(_parts_of(item, path))
        waiting = deque(self._parts[at] for at in sorted(self._parts))
        for part, kind, content in found:
            if waiting and waiting[0].kind == kind:
                known = waiting.popleft()
            else:
                known = self._start(out, max(self._parts, default=-1) + 1, part, path)
            if kind is None:
                content["value"] = {**part, **self._fields}
            self._finish_part(out, known, {**self._fields, **content})
        for known in waiting:
            kind = known.kind
            self._finish_part(out, known, None if kind is None else {**self._fields, "type": kind})
        self.done = True

    def _finish_part(self, out: Out, part: _Part, content: Content | None) -> None:
        if content is not None and part.kind is not None:
            if part.logprobs and "logprobs" not in content:
                content["logprobs"] = part.logprobs
            if part.citations and "citations" not in content:
                self._tell_citations(out, part)
        out.append(events.BlockFinish(part.block, content))

    READS = {
        "response.content_part.added": part_added,
        "response.content_part.done": part_done,
        "response.output_text.delta": text,
        "response.output_text.done": text_done,
        "response.output_text.annotation.added": annotation,
        "response.output_text_annotation.added": annotation,
        "response.refusal.delta": refusal,
        "response.refusal.done": refusal_done,
    }


class _Part:
    """A part of a message that has begun. Of a kind that isn't known (`None`), it is kept whole."""

    __slots__ = ("block", "citations", "growing", "kind", "logprobs", "told")

    def __init__(self, block: int, kind: str | None) -> None:
        takes = "response.refusal.delta" if kind == "refusal" else "response.output_text.delta"
        self.block = block
        self.kind = kind
        self.growing = Growing(takes, "content_index", block, text_delta)
        self.citations: dict[int, Content] = {}  # the first `told` have been told
        self.told = 0
        self.logprobs: list[Any] = []


def _part_content(kind: str | None, part: Json, path: str) -> Content:
    """A message's part in the protocol's words, but for its text."""
    if kind is None:
        return {"type": "non_standard"}
    content = rest(part, "type", _TEXT_OF[kind], "annotations", "logprobs")
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


def _parts_of(item: Json, path: str) -> Iterator[tuple[Json, str | None, Content]]:
    """The parts of a message that is whole, in their own words and in ours."""
    found: Any = item.get("content")
    if isinstance(found, str):
        found = [{"type": "output_text", "text": found}]
    for n, entry in enumerate(READ.items(found, f"{path}.content")):
        at = f"{path}.content[{n}]"
        part = READ.mapping(entry, at)
        kind = _PARTS.get(str(part.get("type")))
        content = _part_content(kind, part, at)
        text = READ.text_of(part, _TEXT_OF[kind], at) if kind else ""
        yield part, kind, content | ({kind: text} if kind and text else {})


def _citation(annotation: Json) -> Content:
    """An annotation in our words; a file is called by its name."""
    found = {name: annotation.get(name) for name in ("url", "start_index", "end_index")}
    found["title"] = annotation.get("title") or annotation.get("filename")
    return {name: value for name, value in found.items() if value is not None} | {"raw": annotation}


_PARTS: Mapping[str, str] = {"output_text": "text", "text": "text", "refusal": "refusal"}
_TEXT_OF: Mapping[str, str] = {"text": "text", "refusal": "refusal"}
