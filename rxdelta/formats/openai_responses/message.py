"""The messages and the reasoning of a response: items that have text in parts."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import events, reasoning_delta, text_delta
from rxdelta.formats.block_events import as_citation
from rxdelta.formats.decoding import Json, due
from rxdelta.formats.notes import PROVIDER_TYPE, signed
from rxdelta.formats.openai_responses.items import Growing, Item, Response
from rxdelta.formats.openai_responses.notes import (
    FORMAT,
    PARAGRAPH,
    PART_LENGTHS,
    READ,
    REASONING_TEXT,
    Content,
    Out,
    delta_of,
    fields_beside,
    object_of,
    optional_text,
    type_of,
)


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
        has_text = any(text for _, _, text, _ in found)
        for part in (part for parts in waiting.values() for part in parts):
            if part.kind is None:
                part.finish(out, None)
                continue
            is_missing = has_text and part.kind not in stays
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
    """Whether the item has the text of these parts in fewer parts. Parts that have been emitted can't be joined any more."""
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
