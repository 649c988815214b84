"""The texts, media and thoughts of an interaction."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from rxdelta.core import reasoning_delta, text_delta
from rxdelta.formats.base64_pieces import Base64Pieces
from rxdelta.formats.citations import as_citation
from rxdelta.formats.gemini_interactions.interaction import Interaction
from rxdelta.formats.gemini_interactions.reading import READ, Json
from rxdelta.formats.gemini_interactions.step import Step
from rxdelta.formats.gemini_interactions.tables import MEDIA
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import others, word
from rxdelta.formats.notes import THOUGHT
from rxdelta.formats.signatures import GOOGLE, signed

__all__ = ["Content", "Output", "Thought"]


class Content(Step):
    """A content that is not in a step, as events once had it."""

    def __init__(self, interaction: Interaction, index: int, kind: str, fields: Json) -> None:
        super().__init__(interaction, index, kind, fields)
        self._citations = GrowingList()
        self._audio = Base64Pieces()
        self._mime_type: str | None = None  # of the open audio

    def begin(self, fields: Json, path: str, /) -> None:
        if fields.keys() > {"type"}:
            self._show(fields, path)

    def _show(self, found: Json, path: str, *, new: bool = False) -> None:
        """Add a text, a medium or another content. A text and audio continue, unless a new content begins."""
        kind = word(found.get("type")) or ""
        if kind == "text" and not (_TEXT.isdisjoint(found) and len(found) > 1):
            self._add_text(found, path, new=new)
        elif kind in MEDIA:
            self._add_medium(MEDIA[kind], found, path, new=new)
        else:
            self.end_block()
            self.blocks.pass_on(found)

    def _add_text(self, found: Json, path: str, *, new: bool) -> None:
        text = READ.text_of(found, "text", path)
        if self.writes != "text" or new:
            if not text and not found.get("annotations"):
                return
            self.start_block("text", {"type": "text", "text": ""})
        if text:
            self.blocks.out.append(text_delta(self.block, text))
        self.add_annotations(found)

    def _add_medium(self, block_type: str, found: Json, path: str, *, new: bool) -> None:
        data, url = READ.text_of(found, "data", path), READ.text_of(found, "uri", path)
        mime_type = READ.text_of(found, "mime_type", path)
        known = {"mime_type": mime_type or None, "url": url or None, **others(found, _MEDIUM)}
        content = {**known, "type": block_type}
        if block_type != "audio":
            self.end_block()
            self.blocks.whole(content, data)
            return
        if self.writes != "audio" or new or (mime_type and mime_type != self._mime_type):
            self.start_block("audio", content)
            self._mime_type = mime_type
        self.blocks.add_data(self.block, self._audio.add(data))

    def add_text(self, delta: Json) -> bool:
        if _TEXT.isdisjoint(delta):
            return False
        self._show({"type": "text", **delta}, "delta")
        return True

    def add_medium(self, delta: Json) -> bool:
        self._show(delta, "delta")
        return True

    def add_annotations(self, found: Json) -> bool:
        for place, entry in enumerate(READ.items(found.get("annotations"), "delta.annotations")):
            annotation = READ.mapping(entry, f"delta.annotations[{place}]")
            if self.writes != "text":
                self.start_block("text", {"type": "text", "text": ""})
            self._citations.add(_citation(annotation))
        self._emit_citations(at_end=False)
        return "annotations" in found

    def _emit_citations(self, *, at_end: bool) -> None:
        citations = self._citations.take(at_end=at_end)
        if citations is not None:
            self.blocks.change(self.block, {"citations": citations})

    def flush(self) -> None:
        self._emit_citations(at_end=True)

    def finish_block(self, cut: str | None, /) -> None:
        self.blocks.add_data(self.block, self._audio.rest())
        super().finish_block(cut)
        self._citations, self._mime_type = GrowingList(), None

    READS = {
        **Step.READS,
        "text": add_text,
        "text_annotation_delta": add_annotations,
        "text_annotation": add_annotations,
        "image": add_medium,
        "audio": add_medium,
        "video": add_medium,
        "document": add_medium,
    }


class Output(Content):
    """A list of contents, each of which is a block."""

    def begin(self, fields: Json, path: str, /) -> None:
        for place, found in enumerate(READ.items(fields.get("content"), f"{path}.content")):
            at = f"{path}.content[{place}]"
            self._show(READ.mapping(found, at), at, new=True)
        more = others(fields, _OUTPUT)
        if more:  # such as an error
            self.end_block()
            self.blocks.pass_on({"type": self.kind, **more})


class Thought(Content):
    """A summary and a signature. An image in the summary is a block of its own, and splits the reasoning in two."""

    def begin(self, fields: Json, path: str, /) -> None:
        signature = READ.text_of(fields, "signature", path)
        self._start_reasoning(others(fields, _THOUGHT) | (signed(signature, GOOGLE) if signature else {}))
        text = fields.get("text", fields.get("thought"))
        if isinstance(text, str):
            self._reason(text)
        summary = fields.get("summary")
        parts = [summary] if isinstance(summary, str) else READ.items(summary, f"{path}.summary")
        for place, found in enumerate(parts):
            if not self._think(found, f"{path}.summary[{place}]") and len(found) > 1:
                self.blocks.pass_on(found)

    def _start_reasoning(self, fields: Json) -> None:
        self.start_block("reasoning", {**fields, "type": "reasoning", "reasoning": ""})

    def _think(self, found: object, path: str) -> bool:
        """Read a part of the summary. False if it says nothing."""
        content = {"type": "text", "text": found} if isinstance(found, str) else READ.mapping(found, path)
        if content.get("type", "text") != "text":
            self._show({THOUGHT: True, **content}, path)
            return True
        self._reason(READ.text_of(content, "text", path))
        return "text" in content

    def _reason(self, text: str) -> None:
        if text and self.writes != "reasoning":
            self._start_reasoning({})
        if text:
            self.blocks.out.append(reasoning_delta(self.block, text))

    def add_thought(self, delta: Json) -> bool:
        found = delta.get("content", delta.get("text", delta.get("thought")))
        return found is not None and self._think(found, "delta.content")

    def add_text(self, delta: Json) -> bool:
        self._reason(READ.text_of(delta, "text", "delta"))
        return "text" in delta

    def sign(self, delta: Json) -> bool:
        if self.writes is None and READ.text_of(delta, "signature", "delta"):
            self._start_reasoning({})
        return super().sign(delta)

    READS = {
        "text": add_text,  # before there were summaries
        "thought": add_thought,
        "thought_summary": add_thought,
        "thought_signature": sign,
    }


def _citation(annotation: Json) -> Json:
    found = {name: annotation.get(name) for name in ("title", "url", "start_index", "end_index")}
    found["title"] = found["title"] or annotation.get("file_name") or annotation.get("name")
    found["url"] = found["url"] or annotation.get("document_uri")
    return as_citation(found, annotation)


_TEXT = frozenset(["text", "annotations"])
_THOUGHT = frozenset(["type", "signature", "summary", "text", "thought"])
_OUTPUT = frozenset(["type", "content"])
_MEDIUM = frozenset(["type", "data", "uri", "mime_type"])
