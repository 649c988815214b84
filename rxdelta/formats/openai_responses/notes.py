"""The names of the Responses API, access to the fields of its chunks, and the notes of its items in blocks.

A block has the item's id (`ITEM_ID`), its type (`PROVIDER_TYPE`) and all other fields that an event has no place for, so that
the request can write the item again. These keep their names, or get `item_` in front where the name means something else in
a block.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from rxdelta.core import Event
from rxdelta.formats.calls import given_id
from rxdelta.formats.decoding import NOTHING, Fields, Json
from rxdelta.formats.endings import Broken
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SIGNED_BY, SYNTHETIC_ID

Content: TypeAlias = dict[str, Any]
Out: TypeAlias = list[Event]

FORMAT = "openai-responses"
READ = Fields(FORMAT)


def object_of(fields: Json, name: str) -> Json:
    """An object that has to be there."""
    value = fields.get(name)
    if value is None:
        raise READ.fail(name, "an object", None)
    return READ.mapping(value, name)


def type_of(fields: Json, path: str) -> str:
    """The type of an item or part, which has to be there. `path` is the object's own."""
    kind = READ.text_of(fields, "type", path)
    if not kind:
        raise READ.fail(f"{path}.type", "a word", fields.get("type"))
    return kind


def delta_of(chunk: Json) -> str:
    """The piece of a delta, which has to be there.

    Null is an empty one, such as gateways write, unless another field may have the piece.
    """
    piece = chunk.get("delta")
    if piece is None and (
        "delta" not in chunk or any(chunk[name] for name in chunk.keys() - _BESIDE_A_PIECE)
    ):
        raise READ.fail("delta", "a string", None)
    return READ.text(piece, "delta")


_BESIDE_A_PIECE = frozenset([
    "type", "item_id", "output_index", "content_index", "summary_index", "command_index", "sequence_number",
    "logprobs", "obfuscation", "response_id", "event_id", "stream_id",
])  # fmt: skip


def optional_text(fields: Json, name: str, path: str) -> str | None:
    """The string that an object has under a name; `None` if there is none. `path` is the object's own."""
    return None if fields.get(name) is None else READ.text_of(fields, name, path)


def mapping_or_none(value: object) -> Json | None:
    return value if isinstance(value, Mapping) else None


def given_id_of(item: Json, name: str) -> str | None:
    """The id that an item has under a name, unless it is blank or a placeholder."""
    value = item.get(name)
    return given_id(value) if isinstance(value, str) else None


REASONS: Mapping[str, str] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
    # any other is the provider's own limit, or the client's wish: stop
}
"""Why a response is incomplete, by its `incomplete_details`."""

CANCELLED: Final = "cancelled"
"""The status of a response that the client has stopped."""

BROKEN: Mapping[str, Broken] = {
    "failed": Broken("the response failed", True),
    "incomplete": Broken("the response is incomplete, and nothing says why", True),  # without details
}
"""The statuses that say that the provider failed. An error of the response's own wins.

https://platform.openai.com/docs/api-reference/responses/object
"""

ENDS = frozenset(["completed", *BROKEN])
"""The statuses of a response that is over, but for `cancelled`."""


ITEM_ERROR: Final = "item_error"
"""In a tool's result: the error of the item, beside its output."""

ITEM_STATUS: Final = "item_status"
"""In a tool's result: the status of the item. The block's own `status` is `success` or `error`."""

PART_LENGTHS: Final = "part_lengths"
"""In a reasoning: the lengths of the parts that the block has as one text."""

REASONING: Final = "reasoning"
"""The `PROVIDER_TYPE` of a reasoning that has no id. Its encrypted content represents it then."""

REASONING_TEXT: Final = "reasoning_text"
"""The `PROVIDER_TYPE` of a reasoning whose text is the raw chain of thought. Else the text is the summary."""

PARAGRAPH: Final = "\n\n"
"""The separator of two parts of a summary. Parts of a chain of thought have nothing between them."""

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
