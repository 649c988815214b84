"""The texts, media and thoughts of an interaction."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core import events, reasoning_delta, text_delta
from rxdelta.formats.decoding import due, kept, others, word
from rxdelta.formats.gemini_interactions.steps import READ, Json, Out, Step

if TYPE_CHECKING:
    from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder

__all__ = [
    "add_annotations",
    "add_media",
    "add_signature",
    "add_text",
    "add_thought",
    "start_content",
    "start_output",
    "start_thought",
]


def start_thought(decoder: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, path: str) -> None:
    signature = READ.text_of(fields, "signature", path)
    content = others(fields, _THOUGHT) | ({"signature": signature} if signature else {})
    decoder.start_block(out, step, "reasoning", {**content, "type": "reasoning", "reasoning": ""})
    text = fields.get("text", fields.get("thought"))
    if isinstance(text, str) and text:
        out.append(reasoning_delta(step.block, text))
    summary = fields.get("summary")
    for place, found in enumerate(
        [summary] if isinstance(summary, str) else READ.items(summary, f"{path}.summary")
    ):
        _think(decoder, out, step, found, f"{path}.summary[{place}]")


def _think(decoder: GeminiInteractionsDecoder, out: Out, step: Step, found: object, path: str) -> None:
    """A piece of a thought's summary. An image in it is a block of its own, and so is the thought behind it."""
    content = {"type": "text", "text": found} if isinstance(found, str) else READ.mapping(found, path)
    if content.get("type", "text") != "text":
        _show(decoder, out, step, {"thought": True, **content}, path)
        return
    text = READ.text_of(content, "text", path)
    if text and step.writes != "reasoning":
        decoder.start_block(out, step, "reasoning", {"type": "reasoning", "reasoning": ""})
    if text:
        out.append(reasoning_delta(step.block, text))


def start_output(decoder: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, path: str) -> None:
    for place, found in enumerate(READ.items(fields.get("content"), f"{path}.content")):
        at = f"{path}.content[{place}]"
        _show(decoder, out, step, READ.mapping(found, at), at, new=True)
    said = others(fields, _OUTPUT)
    if said:  # such as the error that ended it
        decoder.whole(out, step, {"type": "non_standard", "value": {"type": step.kind, **said}})


def start_content(decoder: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, path: str) -> None:
    """A content that is not in a step, as once was usual."""
    if fields.keys() > {"type"}:
        _show(decoder, out, step, fields, path)


def _show(
    decoder: GeminiInteractionsDecoder, out: Out, step: Step, found: Json, path: str, *, new: bool = False
) -> bool:
    """A text, an image and the like. A text goes on, unless another item of a list begins."""
    kind = word(found.get("type"))
    if kind == "text":
        text = READ.text_of(found, "text", path)
        if step.writes != "text" or new:
            if not text and not found.get("annotations"):
                return True
            decoder.start_block(out, step, "text", {"type": "text", "text": ""})
        if text:
            out.append(text_delta(step.block, text))
        _annotate(decoder, out, step, found)
        return True
    if kind not in MEDIA:
        decoder.whole(out, step, {"type": "non_standard", "value": kept(found)})
        return True
    data, url = READ.text_of(found, "data", path), READ.text_of(found, "uri", path)
    mime_type = READ.text_of(found, "mime_type", path)
    known = {"mime_type": mime_type or None, "url": url or None, **others(found, _MEDIUM)}
    content = {**known, "type": MEDIA[kind]}
    if kind != "audio":
        decoder.whole(out, step, content, data)
    else:  # comes in pieces
        if step.writes != "audio" or new or (mime_type and mime_type != step.mime_type):
            decoder.start_block(out, step, "audio", content)
            step.mime_type = mime_type
        piece = step.audio.add(data)
        if piece:
            out.append(events.DataDelta(step.block, piece))
    return True


def _annotate(decoder: GeminiInteractionsDecoder, out: Out, step: Step, found: Json) -> bool:
    annotations = READ.items(found.get("annotations"), "delta.annotations")
    for place, entry in enumerate(annotations):
        annotation = READ.mapping(entry, f"delta.annotations[{place}]")
        if step.writes != "text":
            decoder.start_block(out, step, "text", {"type": "text", "text": ""})
        step.citations.append(_citation(annotation))
        step.size = len(step.citations)
    if due(step.size, step.told):
        told = step.size
        out.append(events.BlockDelta(step.block, {"citations": step.citations}))
        step.told = told
    return True


def add_text(decoder: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    if step.kind == "thought":  # before there were summaries
        _think(decoder, out, step, {"text": delta.get("text")}, "delta")
        return True
    return step.kind in HAS_CONTENT and _show(decoder, out, step, {"type": "text", **delta}, "delta")


def add_media(decoder: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    return step.kind in HAS_CONTENT and _show(decoder, out, step, delta, "delta")


def add_annotations(decoder: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    return step.kind in HAS_CONTENT and _annotate(decoder, out, step, delta)


def add_thought(decoder: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    if step.kind == "thought":
        found = delta.get("content", delta.get("text", delta.get("thought")))
        if found is not None:
            _think(decoder, out, step, found, "delta.content")
    return step.kind == "thought"


def add_signature(decoder: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    signature = READ.text_of(delta, "signature", "delta")
    if signature and step.writes is None:
        if step.kind != "thought":
            return False
        decoder.start_block(out, step, "reasoning", {"type": "reasoning", "reasoning": ""})
    if signature:
        out.append(events.BlockDelta(step.block, {"signature": signature}))
    return True


def _citation(annotation: Json) -> Json:
    found = {name: annotation.get(name) for name in ("title", "url", "start_index", "end_index")}
    found["title"] = found["title"] or annotation.get("file_name") or annotation.get("name")
    found["url"] = found["url"] or annotation.get("document_uri")
    return kept({**{name: value for name, value in found.items() if value is not None}, "raw": annotation})


MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}


HAS_CONTENT = frozenset(["model_output", "text", *MEDIA])


_THOUGHT = frozenset(["type", "signature", "summary", "text", "thought"])


_OUTPUT = frozenset(["type", "content"])


_MEDIUM = frozenset(["type", "data", "uri", "mime_type"])
