"""The content of a block, and usage, as LangChain's protocol has them.

The protocol names some fields differently (`base64`, `annotations`), and has fewer types. A block that it has no form
for travels as `non_standard`, with its own content as the `value` and the mark `UNWRAP`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from rxdelta.core import (
    is_mapping,
)
from rxdelta.formats.langchain.fields import Json, is_list
from rxdelta.formats.langchain.marks import ASSUMED, REFUSAL, UNWRAP
from rxdelta.formats.langchain.tables import CITATION_FIELDS, MEDIA_TYPES

__all__ = ["read_content", "without_assumed"]

Wire: TypeAlias = dict[str, Any]


def read_content(content: Json) -> Json:
    """The content of a block, or some fields of one, by our names."""
    kind, media = content.get("type"), content.get("base64")
    if kind == "non_standard" and content.get(UNWRAP) is True and is_mapping(content.get("value")):
        unwrapped: Json = content["value"]
        return unwrapped
    known = without_assumed(content)
    if kind == "text" and content.get(REFUSAL) is True:
        known["type"] = "refusal"
        del known[REFUSAL]
    if kind in MEDIA_TYPES and isinstance(media, str) and "data" not in content:
        known["data"] = known.pop("base64")
    annotations = content.get("annotations")
    if is_list(annotations) and all(map(is_mapping, annotations)):
        del known["annotations"]
        if "citations" not in content:
            known["citations"] = [_read_citation(annotation) for annotation in annotations]
    return known


def without_assumed(found: Json) -> Wire:
    """A block or a usage without the fields that the source didn't give."""
    assumed = found.get(ASSUMED)
    if not is_list(assumed):
        return dict(found)
    return {name: value for name, value in found.items() if name != ASSUMED and name not in assumed}


def _read_citation(annotation: Json) -> Json:
    """An annotation that has only the fields of a citation loses its type; any other stays as it is."""
    if annotation.get("type") != "citation" or not CITATION_FIELDS.issuperset(annotation):
        return annotation
    return {name: value for name, value in annotation.items() if name != "type"}
