"""What the decoder of the Responses API notes in a block so that the request can write the item again.

A block has the item's id (`ITEM_ID`), its type (`PROVIDER_TYPE`) and all other fields that an event has no place for.
These keep their names, or get `item_` in front where the name means something else in a block.
"""

from __future__ import annotations

from typing import Final

from rxdelta.formats.json_values import NOTHING
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SIGNED_BY, SYNTHETIC_ID
from rxdelta.formats.openai_responses.reading import Content, Json

__all__ = [
    "ITEM_ERROR",
    "ITEM_STATUS",
    "PARAGRAPH",
    "PART_LENGTHS",
    "REASONING",
    "REASONING_TEXT",
    "fields_beside",
    "is_made",
    "item_fields",
    "made_id",
]

ITEM_ERROR: Final = "item_error"
"""Of a tool's result: the error of the item, beside its output."""

ITEM_STATUS: Final = "item_status"
"""Of a tool's result: the status of the item. The block's own `status` is `success` or `error`."""

PART_LENGTHS: Final = "part_lengths"
"""Of a reasoning: the lengths of the parts that the block has as one text."""

REASONING: Final = "reasoning"
"""The `PROVIDER_TYPE` of a reasoning that has no id. What encrypts it represents it then."""

REASONING_TEXT: Final = "reasoning_text"
"""The `PROVIDER_TYPE` of a reasoning whose text is the raw chain of thought. Else the text is the summary."""

PARAGRAPH: Final = "\n\n"
"""What stands between two parts of a summary. Parts of a chain of thought have nothing between them."""

_PREFIX = "item_"
_MADE = "_made_"


def made_id(prefix: str, response_id: str, place: int) -> str:
    """The id of an item that has none of OpenAI's, the same for all readers of a reply.

    Example:
        >>> made_id("rs", "resp_1", 0), is_made("rs_made_0_resp_1"), is_made("rs_68af")
        ('rs_made_0_resp_1', True, False)
    """
    return f"{prefix}{_MADE}{place}_{response_id}"


def is_made(item_id: object) -> bool:
    """Whether an id is such a one. OpenAI doesn't know it, and refuses reasoning whose id it doesn't know."""
    return isinstance(item_id, str) and _MADE in item_id


def fields_beside(item: Json, *read: str | None) -> Content:
    """The fields of an item beyond those that are read, by the names that they have in a block.

    Example:
        >>> fields_beside({"id": "i", "name": "n", "phase": "final", "status": None}, "name")
        {'item_id': 'i', 'phase': 'final'}
    """
    return {
        (f"{_PREFIX}{name}" if name in _HAS_A_MEANING else name): value
        for name, value in item.items()
        if name not in read and value not in NOTHING
    }


def item_fields(options: Json, *written: str) -> Content:
    """The fields of an item that a block keeps, by their own names, beyond those that are written otherwise.

    Example:
        >>> item_fields({"item_id": "i", "phase": "final", "item_name": "n"})
        {'phase': 'final', 'name': 'n'}
    """
    return {
        name.removeprefix(_PREFIX): value
        for name, value in options.items()
        if name not in _WRITTEN_OTHERWISE and name not in written
    }


_HAS_A_MEANING = frozenset([
    "id", "type", "index", "name", "call_id", "args", "arguments", "input", "error", "execution_status",
    "tool_call_id", "output", PROVIDER_TYPE, ITEM_ID, "citations", "data", "text", "thinking",
    "refusal", "reasoning", "signature", "mime_type", PART_LENGTHS, SIGNED_BY, SYNTHETIC_ID,
])  # fmt: skip
"""Fields of a block, whose values would be taken for the block's."""

_WRITTEN_OTHERWISE = frozenset([
    PROVIDER_TYPE, ITEM_ID, SYNTHETIC_ID, "execution_status", "signature", SIGNED_BY, PART_LENGTHS, "tool_call_id",
    "output", ITEM_STATUS, "logprobs",
    "type", "item_type", "role", "item_role", "id", "call_id", "item_call_id",
])  # fmt: skip
"""Fields that the request writes itself. Those in the last line identify the item and its author: options may have
come through a browser and must not change them."""
