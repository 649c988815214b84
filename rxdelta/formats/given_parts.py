"""The texts and media that clients send, in the parts of the APIs that clients speak.

    Anthropic      text | image, document: with a source of type base64, url, file or text
    Responses      input_text, output_text, text | input_image | input_file | input_audio
    of tools       both, and image, audio, video, document with their data or address, as of MCP and Interactions

What a part says beyond that isn't read here; `Admission` decides what of it may reach a provider.
"""

# Parts are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rxdelta.core import ContentPart, is_list, is_mapping
from rxdelta.formats.json_values import word

__all__ = ["anthropic_part", "response_part", "result_parts", "sound"]

Json: TypeAlias = Mapping[str, Any]


def anthropic_part(part: Any) -> ContentPart | None:
    """A text, image or document of a request to Anthropic's Messages API; `None` for anything else.

    Example:
        >>> anthropic_part({"type": "text", "text": "Hi"})
        ContentPart('text', 'Hi')
    """
    kind = part.get("type") if is_mapping(part) else None
    if kind == "text":
        return _text(part, "cache_control")
    if kind not in ("image", "document"):
        return None
    source = part.get("source")
    if not is_mapping(source) or (read := _SOURCES.get(str(source.get("type")))) is None:
        return None
    found = read(source)
    if found is None:
        return None
    data, options = found
    more = {name: part[name] for name in _OF_A_DOCUMENT if part.get(name) is not None}
    return ContentPart("image" if kind == "image" else "file", data, options | more)


def response_part(part: Any) -> ContentPart | None:
    """A text, image, file or sound of a request to OpenAI's Responses API; `None` for anything else.

    Example:
        >>> response_part({"type": "input_image", "image_url": "https://x.example/a.png"})
        ContentPart('image', options={'url': 'https://x.example/a.png'})
    """
    kind = part.get("type") if is_mapping(part) else None
    if kind in ("input_text", "output_text", "text"):
        return _text(part)
    if kind == "input_audio":
        return sound(part.get(kind))
    if kind == "input_image":
        names = {"image_url": "url", "file_id": "file_id", "detail": "detail"}
    elif kind == "input_file":
        names = {"file_url": "url", "file_id": "file_id", "filename": "filename"}
    else:
        return None
    options: dict[str, Any] = {
        ours: found for name, ours in names.items() if (found := word(part.get(name))) is not None
    }
    data = word(part.get("file_data")) if kind == "input_file" else None
    if data is not None and data.startswith("data:"):
        head, _, data = data.removeprefix("data:").partition(",")
        options["mime_type"] = head.partition(";")[0] or "application/pdf"
    if not (data or options.keys() & {"url", "file_id"}):
        return None
    return ContentPart("image" if kind == "input_image" else "file", data, options)


def sound(source: Any) -> ContentPart | None:
    """The sound of an `input_audio`, which both of OpenAI's APIs have alike; `None` if there is none.

    Example:
        >>> sound({"data": "UklGRg==", "format": "mp3"})
        ContentPart('audio', 'UklGRg==', options={'mime_type': 'audio/mpeg'})
    """
    data = word(source.get("data")) if is_mapping(source) else None
    if data is None:
        return None
    kind = word(source.get("format")) or "wav"
    return ContentPart("audio", data, {"mime_type": "audio/mpeg" if kind == "mp3" else f"audio/{kind}"})


def result_parts(content: Any) -> list[ContentPart]:
    """The texts and media of a tool's result that is a list of such parts; empty for any other result.

    Example:
        >>> result_parts([{"type": "image", "data": "aGk=", "mimeType": "image/png"}])
        [ContentPart('image', 'aGk=', options={'mime_type': 'image/png'})]
        >>> result_parts([1]), result_parts("text")
        ([], [])
    """
    parts = [_result_part(part) for part in content] if is_list(content) else []
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else []


def _result_part(part: Any) -> ContentPart | None:
    return anthropic_part(part) or response_part(part) or _flat_part(part)


def _flat_part(part: Any) -> ContentPart | None:
    """A medium with its data or address beside its type."""
    kind = _MEDIA.get(str(part.get("type"))) if is_mapping(part) else None
    if kind is None or "source" in part:
        return None
    data, url = word(part.get("data")), word(part.get("uri"))
    mime_type = word(part.get("mimeType")) or word(part.get("mime_type"))
    named = {"mime_type": mime_type} if mime_type else {}
    if data is not None and mime_type is not None:
        return ContentPart(kind, data, named)
    return None if url is None else ContentPart(kind, None, {**named, "url": url})


def _text(part: Json, *kept: str) -> ContentPart | None:
    text = part.get("text")
    options = {name: part[name] for name in kept if part.get(name) is not None}
    return ContentPart("text", text, options) if isinstance(text, str) else None


_Found: TypeAlias = tuple[str | None, dict[str, Any]]
"""The data of a medium, and its options."""


def _base64(source: Json) -> _Found | None:
    data, mime_type = word(source.get("data")), word(source.get("media_type"))
    return None if data is None or mime_type is None else (data, {"mime_type": mime_type})


def _plain_text(source: Json) -> _Found | None:
    text = source.get("data")
    if not isinstance(text, str):
        return None
    return base64.b64encode(text.encode("utf-8", "replace")).decode(), {"mime_type": "text/plain"}


def _named(name: str) -> Callable[[Json], _Found | None]:
    def read(source: Json) -> _Found | None:
        found = word(source.get(name))
        return None if found is None else (None, {name: found})

    return read


_SOURCES: Final[Mapping[str, Callable[[Json], _Found | None]]] = {
    "base64": _base64,
    "text": _plain_text,
    "url": _named("url"),
    "file": _named("file_id"),
}

_OF_A_DOCUMENT: Final = ("title", "context", "citations", "cache_control")
_MEDIA: Final = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
