"""Images, sounds, films and files in a conversation, as every format reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

from rxdelta.core import ContentPart, thaw

__all__ = ["Medium", "data_url", "medium_of"]

_KINDS = {
    "image": "image",
    "image_url": "image",
    "audio": "audio",
    "video": "video",
    "file": "file",
    "file_url": "file",
}
_MIME_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}


class Medium(NamedTuple):
    """An image, a sound, a film or a file. Its content is in `data`, at the `url`, or with the provider (`file_id`)."""

    kind: str
    mime_type: str
    data: str | None
    """In base64."""
    url: str | None
    file_id: str | None
    options: dict[str, Any]


def medium_of(part: ContentPart) -> Medium | None:
    """The medium that a part holds, if any. A `data:` URL is read as the data."""
    kind = _KINDS.get(part.type)
    if kind is None:
        return None
    options: dict[str, Any] = thaw(part.options)
    mime_type = _word(options.get("mime_type")) or _MIME_TYPES[kind]
    url, file_id, data = _word(options.get("url")), _word(options.get("file_id")), part.text or None
    if part.type.endswith("_url"):
        url, data = url or data, None
    if url is not None and url.startswith("data:"):
        head, comma, found = url.removeprefix("data:").partition(",")
        if comma and head.endswith(";base64"):
            url, data, mime_type = None, found, head.partition(";")[0] or mime_type
    return Medium(kind, mime_type, data, url, file_id, options)


def data_url(medium: Medium) -> str | None:
    """The URL of a medium, or a `data:` URL of its data; `None` if only its id is known."""
    if medium.url is not None or medium.data is None:
        return medium.url
    return f"data:{medium.mime_type};base64,{medium.data}"


def _word(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None
