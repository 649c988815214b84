"""A message of a response."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import events, text_delta
from rxdelta.formats.citations import as_citation
from rxdelta.formats.growing_list import due
from rxdelta.formats.openai_responses.items import Growing, Item, Response
from rxdelta.formats.openai_responses.notes import fields_beside
from rxdelta.formats.openai_responses.reading import (
    READ,
    Content,
    Json,
    Out,
    delta_of,
    object_of,
    optional_text,
    type_of,
)

__all__ = ["MessageItem"]


class MessageItem(Item):
    """A block for each part of the message, with the message's own fields in each.

    A part is known by its kind and its `content_index`. Some servers count every event there, so an index that has not
    been announced proves nothing:

        announced parts     only these exist: any other index means the newest part of the event's kind
        none, first at 0    each index is a part
        none, first above   the second index shows it: if the first had a single delta, the server counts

    A part that its own end has closed takes no more deltas.
    """

    def __init__(self, response: Response, place: int, kind: str, item: Json) -> None:
        super().__init__(response, place, kind, item)
        self._at: dict[int, _Part] = {}  # the newest part at each content index
        self._newest: dict[str | None, _Part] = {}  # by kind
        self._parts: list[_Part] = []
        self._last = -1  # the highest content index
        self._announced = False  # whether a part has been
        self._counts_events = False  # whether the indexes do
        self._fields = fields_beside(item, "type", "role", "content", "status")

    def begin(self, _out: Out, _item: Json, _path: str, /) -> None:
        """Start no block yet: each part starts its own."""

    def _known(self, at: int | None, kind: str | None) -> _Part | None:
        """The part of this kind at this index; without an index the newest."""
        found = self._newest.get(kind) if at is None else self._at.get(at)
        return found if found is not None and found.kind == kind else None

    def _part(self, out: Out, chunk: Json, part: Json, path: str = "", whole: str | None = None) -> _Part:
        """The part that a chunk belongs to, which is started if need be.

        Args:
            out: The events.
            chunk: The chunk.
            part: The part's type, with its other fields if they are known.
            path: The path to these.
            whole: The whole text, if the chunk has it; `None` for a delta.
        """
        at, kind = _index(chunk), _kind(part)
        known = self._known(at, kind)
        if known is None and kind is not None:
            known = self._continued(kind, whole)
        return self._start(out, at, part, path) if known is None else known

    def _continued(self, kind: str, whole: str | None) -> _Part | None:
        """The part that an event at an unknown index continues; `None` if it begins one."""
        newest = self._newest.get(kind)
        if newest is None:
            return None
        lies = self._announced or self._counts_events
        if whole is not None and len(whole) == newest.growing.length:
            continues = lies or not newest.closed
        else:
            continues = not newest.closed and (lies or (whole is None and self._shows(newest)))
        self._counts_events |= continues
        return newest if continues else None

    def _shows(self, first: _Part) -> bool:
        """Whether a second index shows that they count events."""
        return len(self._parts) == 1 and first.at > 0 and first.growing.length == first.begun_with

    def _start(self, out: Out, at: int | None, part: Json, path: str) -> _Part:
        kind = _kind(part)
        content = _content_of(kind, part, path) | self._fields
        if kind is None:
            content["value"] = {**part, **self._fields}
        else:
            content[kind] = ""
        block = self.response.start_block(out, content)
        if at is None:
            at = self._last + 1
        self._last = max(self._last, at)
        started = self._at[at] = self._newest[kind] = _Part(block, kind, at)
        self._parts.append(started)
        self.response.growing.pop(self.place, None)  # its index may be this part's
        started.add(out, READ.text_of(part, kind, path) if kind else "")
        return started

    def add_part(self, out: Out, chunk: Json) -> bool:
        part = object_of(chunk, "part")
        type_of(part, "part")
        at = _index(chunk)
        known = self._known(at, _kind(part))
        if known is None or known.closed:
            self._start(out, at, part, "part")
        self._announced = True
        return True

    def end_part(self, out: Out, chunk: Json) -> bool:
        part = object_of(chunk, "part")
        kind = _kind(part)
        whole = None if kind is None else optional_text(part, kind, "part")
        known = self._part(out, chunk, part, "part", whole)
        return kind is None or self._end_part(out, known, whole, f"part.{kind}")

    def _end_part(self, out: Out, part: _Part, whole: str | None, path: str) -> bool:
        """Close a part. Without its whole text it must have had deltas."""
        if whole is None and not part.growing.length:
            raise READ.fail(path, "a string", None)
        part.closed = True
        part.add_whole(out, whole or "")
        self.response.growing.pop(self.place, None)
        return whole is not None

    def add_text(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, "output_text")

    def add_refusal(self, out: Out, chunk: Json) -> bool:
        return self._add(out, chunk, "refusal")

    def _add(self, out: Out, chunk: Json, kind: str) -> bool:
        piece = delta_of(chunk)
        logprobs = READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind})
        part.add(out, piece)
        part.logprobs.extend(logprobs)
        part.growing.at = chunk.get("content_index", part.at)
        self.grows(part.growing)
        return True

    def end_text(self, out: Out, chunk: Json) -> bool:
        return self._end_text(out, chunk, "output_text", "text")

    def end_refusal(self, out: Out, chunk: Json) -> bool:
        return self._end_text(out, chunk, "refusal", "refusal")

    def _end_text(self, out: Out, chunk: Json, kind: str, field: str) -> bool:
        logprobs = READ.items(chunk.get("logprobs"), "logprobs")
        whole = optional_text(chunk, field, "")
        part = self._part(out, chunk, {"type": kind}, "", whole)
        if logprobs:
            part.logprobs = list(logprobs)
        return self._end_part(out, part, whole, field)

    def add_annotation(self, out: Out, chunk: Json) -> bool:
        annotation = object_of(chunk, "annotation")
        part = self._known(_index(chunk), "text")
        if part is None and (self._announced or self._counts_events):
            part = self._newest.get("text")
        if part is None:
            part = self._start(out, _index(chunk), {"type": "output_text"}, "")
        if annotation:
            part.cite(out, chunk.get("annotation_index"), _citation(annotation))
        return True

    def flush(self, out: Out, /) -> None:
        for part in self._parts:
            part.flush(out)

    def fits(self, item: Json, /) -> bool:
        said = sum(part.growing.length for part in self._parts)
        whole = "".join(text for _, kind, text, _ in _parts_of(item, "item") if kind)
        newest = [part.growing.newest for part in self._parts if part.growing.length]
        return 0 < said == len(whole) and any(map(whole.endswith, newest))

    def finish_blocks(self, out: Out, item: Json | None, path: str, _wrong: str | None, /) -> None:
        if item is not None:
            self._fields = fields_beside(item, "type", "role", "content")
        found = [] if item is None else list(_parts_of(item, path))
        waiting: dict[str | None, deque[_Part]] = {}
        for part in sorted(self._parts, key=lambda part: part.at):
            waiting.setdefault(part.kind, deque()).append(part)
        stays = {kind for kind, parts in waiting.items() if _is_divided_otherwise(parts, kind, found)}
        known = [parts.popleft() if (parts := waiting.get(kind)) else None for _, kind, _, _ in found]
        for n, ((fields, kind, _, _), before) in enumerate(zip(found, known, strict=True)):
            if kind and fields.get(kind) is None and not (before and before.growing.length):
                raise READ.fail(f"{path}.content[{n}].{kind}", "a string", None)
        for (fields, kind, text, content), before in zip(found, known, strict=True):
            part = before or self._start(out, None, fields, path)
            if kind is None:
                content["value"] = {**fields, **self._fields}
            elif text and kind not in stays:
                content[kind] = text
            part.finish(out, {**self._fields, **content})
        is_told = any(text for _, _, text, _ in found)
        for part in (part for parts in waiting.values() for part in parts):
            if part.kind is None:
                part.finish(out, None)
                continue
            is_missing = is_told and part.kind not in stays
            emptied = {part.kind: ""} if is_missing else {}
            part.finish(out, {**self._fields, "type": part.kind, **emptied})

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

    __slots__ = (
        "at",
        "begun_with",
        "block",
        "citations",
        "closed",
        "emitted",
        "growing",
        "kind",
        "logprobs",
    )

    def __init__(self, block: int, kind: str | None, at: int) -> None:
        takes = "response.refusal.delta" if kind == "refusal" else "response.output_text.delta"
        self.block = block
        self.kind = kind
        self.at = at
        self.growing = Growing(takes, "content_index", block, text_delta)
        self.begun_with = 0  # the length of its first piece
        self.closed = False  # by its own end
        self.citations: dict[int, Content] = {}
        self.emitted = 0  # how many of them
        self.logprobs: list[Any] = []

    def add(self, out: Out, piece: str) -> None:
        if piece:
            self.begun_with = self.begun_with or len(piece)
            self.growing.length += len(piece)
            self.growing.newest = piece
            out.append(text_delta(self.block, piece))

    def add_whole(self, out: Out, whole: str) -> None:
        """Take the whole text where it differs in length from its deltas, because some were lost."""
        if self.growing.length == 0:
            self.add(out, whole)
        elif whole and len(whole) != self.growing.length:
            self.growing.length, self.growing.newest = len(whole), whole
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


_Found: TypeAlias = tuple[Json, str | None, str, Content]
"""A part of a whole message: its fields, its kind, its text, and its block's other content."""


def _parts_of(item: Json, path: str) -> Iterator[_Found]:
    found: Any = item.get("content")
    if isinstance(found, str):
        found = [{"type": "output_text", "text": found}]
    for n, entry in enumerate(READ.items(found, f"{path}.content")):
        at = f"{path}.content[{n}]"
        part = READ.mapping(entry, at)
        kind = _kind(part)
        text = READ.text_of(part, kind, at) if kind else ""
        yield part, kind, text, _content_of(kind, part, at)


def _is_divided_otherwise(parts: Collection[_Part], kind: str | None, found: Sequence[_Found]) -> bool:
    """Whether the item has the text of these parts in fewer parts. What has been said can't be joined any more."""
    theirs = [text for _, one, text, _ in found if one == kind]
    return 0 < len(theirs) < len(parts) and sum(part.growing.length for part in parts) == sum(
        map(len, theirs)
    )


def _index(chunk: Json) -> int | None:
    found = chunk.get("content_index")
    return None if found is None else READ.index(found, "content_index")


def _kind(part: Json) -> str | None:
    return _KINDS.get(str(part.get("type")))


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
