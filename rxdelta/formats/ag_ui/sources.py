"""The sources that a message cites, for front ends.

AG-UI has no field for them. They stand in the message's metadata, which clients keep and send back, and once in a CUSTOM
event: assistant-ui reads no metadata, but shows such an event as a part of the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rxdelta.core import Citation

__all__ = ["sources_of"]


def sources_of(message_id: str, citations: Iterable[Citation]) -> list[dict[str, Any]]:
    """The sources of a message, each once, in the order in which they are cited.

    Args:
        message_id: The message's id, with which the sources' ids begin.
        citations: What the message cites. A citation without an address and a title names no source.

    Example:
        >>> import rxdelta as rd
        >>> sources_of("m1", [rd.Citation(url="https://sea.example", title="The sea")])
        [{'type': 'source', 'sourceType': 'url', 'id': 'm1-source-1', 'url': 'https://sea.example', 'title': 'The sea'}]
    """
    found: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for citation in citations:
        url, title = citation.url or None, citation.title or None
        key = (url, None if url else title)
        if (url or title) and key not in found:
            where = {"url": url} if url else {"mediaType": "text/plain"}
            own_id = f"{message_id}-source-{len(found) + 1}"
            kind = "url" if url else "document"
            found[key] = {"type": "source", "sourceType": kind, "id": own_id, **where}
            if title:
                found[key]["title"] = title
    return [*found.values()]
