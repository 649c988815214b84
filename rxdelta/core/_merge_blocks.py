"""Merging the blocks of a `MessageDelta` into those of a reply: content by slot, calls by index and id.

A left fold. It is associative for parts, and for calls whose fragments all carry the same id (or none at all) and
whose name comes in one piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core._block_key import Key
from rxdelta.core._blocks import Block
from rxdelta.core._content_part import ContentPart, change_part
from rxdelta.core._errors import InvalidValueError
from rxdelta.core._frozen import freeze_mapping, is_list, is_mapping
from rxdelta.core._strict_json import clean_text
from rxdelta.core._tool_call import ToolCall, change, raw_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Content", "ContentItem", "frozen_content", "merge_blocks", "merge_content", "place_for"]

ContentItem: TypeAlias = str | ContentPart | Mapping[str, Any]
Content: TypeAlias = ContentItem | Sequence[ContentItem] | None


def frozen_content(value: Any) -> Any:
    """Content as a frozen value: text, a part, or a tuple of parts, texts and mappings.

    Raises:
        InvalidValueError: It is something else.
    """
    if value is None or isinstance(value, ContentPart):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if is_mapping(value):
        return (freeze_mapping(value, "content"),)
    if is_list(value):
        return tuple(_content_item(item) for item in value)
    raise InvalidValueError.of([("content", value, "must be text, a part, or a list of them")])


def _content_item(item: Any) -> ContentItem:
    if is_mapping(item):
        return freeze_mapping(item, "content")
    if isinstance(item, str):
        return clean_text(item)
    if isinstance(item, ContentPart):
        return item
    raise InvalidValueError.of([("content", item, "must hold parts, strings and mappings")])


def merge_content(blocks: list[Block], content: object, slot: int) -> None:
    """Merge the `content` of a small delta into the part of its slot."""
    for part in () if content is None else _parts(content):
        _merge_part(blocks, change_part(part, key=("part", slot), open=False))


def merge_blocks(blocks: list[Block], fragments: Iterable[Block]) -> None:
    """Merge each fragment into the block that it continues, or insert it as a new block."""
    for fragment in fragments:
        if isinstance(fragment, ToolCall):
            _merge_call(blocks, fragment)
        else:
            _merge_part(blocks, fragment)


def _parts(content: object) -> list[ContentPart]:
    parts = [_part(item) for item in (content if is_list(content) else (content,))]
    return [part for part in parts if part is not None and not (part.type == "text" and part.text == "")]


def _part(item: Any) -> ContentPart | None:
    """Strings and parts are content; of mappings only `{"type": "text", "text": …}` is."""
    if isinstance(item, str):
        return ContentPart("text", item)
    if is_mapping(item):
        typed: Mapping[str, Any] = item
        text = typed.get("text")
        return ContentPart("text", text) if typed.get("type") == "text" and isinstance(text, str) else None
    return item if isinstance(item, ContentPart) else None


def _merge_part(blocks: list[Block], part: ContentPart) -> None:
    for place in range(len(blocks) - 1, -1, -1):
        known = blocks[place]
        if known.key == part.key and isinstance(known, ContentPart):
            if known.type == part.type:
                blocks[place] = known.merge(part)
            else:
                blocks.insert(place + 1, part)
            return
    _insert(blocks, part)


def _insert(blocks: list[Block], block: Block) -> None:
    blocks.insert(place_for(blocks, block.key), block)


def _merge_call(blocks: list[Block], fragment: ToolCall) -> None:
    place = _place_of_call(blocks, fragment)
    if place is None:
        _insert(blocks, fragment)
        return
    known = blocks[place]
    if isinstance(known, ToolCall):
        again = known.status == fragment.status == "complete"  # a repeated complete call has no new text
        arguments = None if again else raw_arguments(fragment)
        blocks[place] = known.merge(change(fragment, index=known.index, arguments=arguments))


def _place_of_call(blocks: list[Block], fragment: ToolCall) -> int | None:
    known = [
        (n, block)
        for n, block in enumerate(blocks)
        if isinstance(block, ToolCall) and block.key == fragment.key and block.type == fragment.type
    ]
    if not known:
        return None
    if fragment.call_id is not None:
        same = [n for n, call in known if call.call_id == fragment.call_id]
        if same:
            return same[-1]
    unnamed = [n for n, call in known if call.call_id is None and call.status == "incomplete"]
    if unnamed:
        return unnamed[-1]
    return known[-1][0] if fragment.call_id is None else None


def place_for(blocks: Sequence[Block], key: Key) -> int:
    """The place of a new block: before the first block of its kind with a higher number; else the end."""
    number, place = _number(key), len(blocks)
    if number is not None:
        for n in range(len(blocks) - 1, -1, -1):
            known = _number(blocks[n].key)
            if known is not None and known[0] == number[0]:
                if known[1] <= number[1]:
                    break
                place = n
    return place


def _number(key: Key) -> tuple[str, int] | None:
    """The kind and number of a block in numerical order: a part has its slot, a block of events its index."""
    if isinstance(key, int):
        return ("event", key)
    return (
        ("part", key[1]) if isinstance(key, tuple) and key[0] == "part" and isinstance(key[1], int) else None
    )
