"""The sources that a provider's tool has found, whether or not the model cites them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rxdelta.core import Citation, is_list, is_mapping

__all__ = ["sources_in"]

_LISTS: Final = ("action", "sources", "results", "search_results", "groundingMetadata", "groundingChunks")
"""The fields that lead to a list of sources."""

_NO_SOURCES: Final = frozenset(["image", "input_image", "logs"])
"""The types of what has an address and is the tool's own work."""


def sources_in(found: Any) -> Iterator[Citation]:
    """The sources in a tool's arguments or output, or in a message's metadata, as the provider gives them.

    Example:
        >>> [one.url for one in sources_in({"action": {"sources": [{"type": "url", "url": "https://a"}]}})]
        ['https://a']
    """
    if is_list(found):
        for one in found:
            yield from sources_in(one)
    elif is_mapping(found):
        page = found.get("web")
        source = page if is_mapping(page) else found
        url = source.get("url") or source.get("uri")
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            if source.get("type") not in _NO_SOURCES:
                yield Citation(url=url, title=_title(source))
            return
        for name in _LISTS:
            if name in found:
                yield from sources_in(found[name])


def _title(source: Any) -> str | None:
    content = source.get("content")
    given = source.get("title") or (content.get("title") if is_mapping(content) else None)
    return given if isinstance(given, str) and given else None
