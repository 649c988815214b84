"""The parts of a content, of the standard's making or a provider's, as pieces of our blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from rxdelta.core import is_mapping
from rxdelta.formats.json_values import kept
from rxdelta.formats.langchain.fields import READ, Json, extras_of, is_list, other_fields
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED

__all__ = ["Piece", "read_part"]


@attrs.define
class Piece:
    """What one part adds to a block.

    Attributes:
        family: Which kind of block it belongs to: `text`, `refusal`, `reasoning`, `data` or `other`.
        text: What it appends.
        content: The content with which it would begin a block.
        summary_part: Which part of a summary it ends in; parts are separated by a blank line.
    """

    family: str
    text: str
    content: Json
    citations: Sequence[Json] = ()
    summary_part: object = None


def read_part(part: Json, kind: str, path: str) -> Piece:
    read = _READERS.get(kind) or (_result if kind.endswith("_tool_result") else _other)
    return read(part, kind, path)


def _text(part: Json, _: str, path: str) -> Piece:
    text = READ.text_of(part, "text", path)
    more = other_fields(part, "text", "annotations", "citations", "extras") | extras_of(part.get("extras"))
    citations = [
        _citation(READ.mapping(annotation, f"{path}.{name}[{place}]"))
        for name in ("annotations", "citations")
        for place, annotation in enumerate(READ.items(part.get(name), f"{path}.{name}"))
    ]
    return Piece("text", text, {"type": "text", "text": "", **more}, citations)


def _citation(annotation: Json) -> Json:
    known = {name: annotation.get(name) for name in ("cited_text", "title", "url")}
    found: dict[str, Any] = {name: value for name, value in known.items() if isinstance(value, str)}
    for name in ("start_index", "end_index"):
        value = annotation.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            found[name] = value
    return found | {"raw": kept(annotation)}


def _reasoning(part: Json, _: str, path: str) -> Piece:
    """The standard's `reasoning`, Anthropic's `thinking`, Bedrock's `reasoning_content` or OpenAI's summary."""
    nested = part.get("reasoning_content")
    if is_mapping(nested):
        part = {**nested, **other_fields(part, "reasoning_content")}
        path = f"{path}.reasoning_content"
    name = next(
        (one for one in ("reasoning", "thinking", "text") if isinstance(part.get(one), str)), "reasoning"
    )
    text, summary_part = READ.text_of(part, name, path), None
    read = ["reasoning", "thinking", name, "extras"]
    summary = part.get("summary")
    if is_list(summary):
        read.append("summary")
        for place, found in enumerate(summary):
            at = f"{path}.summary[{place}]"
            entry = READ.mapping(found, at)
            more = READ.text_of(entry, "text", at)
            text += ("\n\n" if text and more else "") + more
            summary_part = entry.get("index", place)
    content = {"type": "reasoning", "reasoning": "", **other_fields(part, *read)}
    return Piece("reasoning", text, content | extras_of(part.get("extras")), summary_part=summary_part)


def _redacted(part: Json, *_: str) -> Piece:
    content = {"type": "reasoning", "reasoning": "", REDACTED: True, **other_fields(part)}
    return Piece("reasoning", "", content)


def _refusal(part: Json, _: str, path: str) -> Piece:
    content = {"type": "refusal", "refusal": "", **other_fields(part, "refusal", "text")}
    return Piece("refusal", READ.text_of(part, "refusal", path), content)


def _media(part: Json, kind: str, path: str) -> Piece:
    """The standard calls the data `base64`; the protocol and older standards call it `data`."""
    name = "base64" if isinstance(part.get("base64"), str) else "data"
    if not isinstance(part.get(name, ""), str):
        return _other(part, kind, path)
    return Piece("data", part.get(name, ""), {"type": kind, **other_fields(part, name, "data")})


def _image_url(part: Json, kind: str, path: str) -> Piece:
    found = part.get("image_url")
    url = found if isinstance(found, str) else found.get("url") if is_mapping(found) else None
    if not isinstance(url, str):
        return _other(part, kind, path)
    head, comma, data = url.partition(",")
    more = other_fields(part, "image_url")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        mime_type = head[len("data:") : -len(";base64")].partition(";")[0] or None
        return Piece("data", data, {"type": "image", "mime_type": mime_type, **more})
    return Piece("data", "", {"type": "image", "url": url, **more})


def _result(part: Json, kind: str, _: str) -> Piece:
    """The result of a tool that the provider ran, in the standard's fields or in Anthropic's."""
    standard = kind in ("server_tool_result", "server_tool_call_result")
    output, id_field = ("output", "tool_call_id") if standard else ("content", "tool_use_id")
    call_id = part.get(id_field, part.get("toolCallId"))
    content = {
        **other_fields(part, output, id_field, "toolCallId"),
        "type": "server_tool_result",
        "tool_call_id": call_id if isinstance(call_id, str) else None,
        "output": part.get(output),
        **({} if standard else {PROVIDER_TYPE: kind, "status": _status(part)}),
    }
    return Piece("data", "", content)


def _status(result: Json) -> str:
    output = result.get("content")
    failed = is_mapping(output) and str(output.get("type")).endswith("_error")
    return "error" if failed or result.get("is_error") is True else "success"


def _other(part: Json, kind: str, _: str) -> Piece:
    """Keep any other part unchanged but for its index, the part's place."""
    if kind == "non_standard" and is_mapping(part.get("value")) and not other_fields(part, "value"):
        value = part["value"]
        if value.get("type") == "redacted_thinking":  # the standard has no type for it
            return _redacted(value)
        return Piece("other", "", {"type": "non_standard", "value": kept(value)})
    typed = {"type": kind} if kind else {}
    return Piece("other", "", {"type": "non_standard", "value": kept(other_fields(part)) | typed})


_READERS: Mapping[str, Callable[[Json, str, str], Piece]] = {
    "text": _text,
    "reasoning": _reasoning,
    "thinking": _reasoning,
    "reasoning_content": _reasoning,
    "redacted_thinking": _redacted,
    "refusal": _refusal,
    "image": _media,
    "audio": _media,
    "video": _media,
    "file": _media,
    "image_url": _image_url,
    "server_tool_result": _result,
    "server_tool_call_result": _result,
}
"""By the part's type. Any `…_tool_result` is read as a result too."""
