"""Citations: of recited sources, and of what the reply is grounded on."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.formats.citations import as_citation

__all__ = ["citation", "grounding"]

Json: TypeAlias = Mapping[str, Any]


def citation(found: Json) -> Json:
    names = {"title": "title", "url": "uri", "start_index": "startIndex", "end_index": "endIndex"}
    return as_citation({name: found.get(theirs) for name, theirs in names.items()}, found)


def grounding(metadata: object) -> list[Json]:
    """The citations of a web search and the like: which piece of the text rests on which source."""
    if not isinstance(metadata, Mapping):
        return []
    sources, supports = (metadata.get(name) for name in ("groundingChunks", "groundingSupports"))
    if not isinstance(sources, (list, tuple)) or not isinstance(supports, (list, tuple)):
        return []
    found: list[Json] = []
    for support in supports:
        fields: Json = support if isinstance(support, Mapping) else {}
        segment, indexes = fields.get("segment"), fields.get("groundingChunkIndices")
        place: Json = segment if isinstance(segment, Mapping) else {}
        for index in indexes if isinstance(indexes, (list, tuple)) else ():
            if type(index) is not int or not 0 <= index < len(sources):
                continue
            whole: Any = sources[index]
            kinds = list(whole.values()) if isinstance(whole, Mapping) else []
            source: Json = kinds[0] if kinds and isinstance(kinds[0], Mapping) else {}
            values = {
                "title": source.get("title"),
                "url": source.get("uri"),
                "cited_text": source.get("text"),
                "start_index": place.get("startIndex"),
                "end_index": place.get("endIndex"),
            }
            found.append(as_citation(values, {**fields, "groundingChunk": whole}))
    return found
