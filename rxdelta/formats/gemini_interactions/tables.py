"""What the decoder and the request of Google's Interactions share of the format."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["MEDIA", "default_tool_name"]

MEDIA: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""The contents that are media, and the type of the block for each."""


def default_tool_name(kind: str) -> str:
    """The name of one of the provider's own tools, from the type of its call's step, which has no name itself.

    Example:
        >>> default_tool_name("google_search_call")
        'google_search'
    """
    return kind.removesuffix("_call")
