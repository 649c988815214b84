"""The blocks of a reply, in the event protocol's vocabulary and ours, and how the blocks of a small delta are merged.

A block is a `ContentPart` for what the model says, or a `ToolCall` for what it asks to be done.

| wire type | ours |
| --- | --- |
| `text`, `reasoning` (also `thinking`), `refusal` | a part; its text under the type's own name |
| `image`, `audio`, `video`, `file`, … | a part; base64 `data` is its text |
| `server_tool_result` | a part without text |
| `tool_call`, `tool_call_chunk`, `tool_use` | a call; `args` (or `input`) text or object |
| `server_tool_call`, `server_tool_call_chunk`; `invalid_tool_call` | a call of that type |
| `non_standard`, any other | `unsupported`, whole in `options` |

All other fields go to a part's `options` or a call's `metadata`. `index` is the block's name and no content.

Merging is a left fold: content by slot, calls by index and id. It is associative for parts, and for calls whose fragments
all carry the same id (or none at all) and whose name comes in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core.content_part import (
    PART_TYPES,
    ContentPart,
    Origin,
    change_part,
    make_part,
    part_type,
    raw_text,
    remake_part,
)
from rxdelta.core.errors import InvalidValueError
from rxdelta.core.json_values import (
    EMPTY,
    FrozenDict,
    InvalidJson,
    clean_text,
    freeze_mapping,
    is_list,
    is_mapping,
    thaw,
)
from rxdelta.core.literals import merge_call_metadata
from rxdelta.core.text import finish_text, has_half
from rxdelta.core.tool_call import (
    ToolCall,
    change,
    finished_arguments,
    invalid,
    parse_arguments,
    raw_arguments,
    real_id,
)
from rxdelta.core.values import Citation, Key, without_empty

Block: TypeAlias = ContentPart | ToolCall
"""A block of a reply."""


def settled(block: Block, *, key: Key = None) -> Block:
    """The block as a finished message holds it: plain strings, closed, and without the key of a snapshot."""
    if isinstance(block, ContentPart):
        text = raw_text(block)
        return change_part(
            block, text=None if text is None else finish_text(text), key=key, open=False, _origin=None
        )
    return change(block, arguments=finished_arguments(block), key=key, open=False, _origin=None)


Fields: TypeAlias = Mapping[str, Any]

_CALLS = {
    "tool_call": "tool_call",
    "tool_call_chunk": "tool_call",
    "tool_use": "tool_call",
    "server_tool_call": "server_tool_call",
    "server_tool_call_chunk": "server_tool_call",
    "invalid_tool_call": "invalid_tool_call",
}
_TAKEN = PART_TYPES | _CALLS.keys() | {"thinking", "non_standard"}  # that are read as more than their fields
TEXT_FIELDS: Mapping[str, Sequence[str]] = {
    "text": ("text",),
    "reasoning": ("reasoning", "thinking"),
    "refusal": ("refusal", "text"),
}
"""The fields that say the text of a part of this type, its own name first."""
ARGUMENT_FIELDS = ("args", "input", "arguments")
"""The fields that say the arguments of a call."""
_DATA = ("data",)  # of all other types
_NO_CONTENT = ("type", "index")  # these identify the block


def is_call(content: Fields) -> bool:
    """Whether a block with this content is a call that the provider doesn't run itself."""
    return _CALLS.get(content.get("type", "")) in ("tool_call", "invalid_tool_call")


def block_from_wire(content: Fields, key: Key, *, origin: Origin | None = None) -> Block:
    """The open block that a start with this content begins."""
    kind = content.get("type", "text")
    if kind in _CALLS:
        call = change(_NO_CALL, type=_CALLS[kind], key=key, open=True, _origin=origin)
        return _update_call(call, content)
    if kind == "non_standard":
        return make_part(
            "unsupported", None, _mapping(content.get("value", content)), (), key, True, origin=origin
        )
    kind = part_type(kind)
    if kind not in PART_TYPES or kind == "unsupported":
        return make_part("unsupported", None, _mapping(content), (), key, True, origin=origin)
    return _update_part(make_part(kind, None, EMPTY, (), key, True, origin=origin), content)


def update_block(block: Block, fields: Fields, cited: Sequence[Any] = ()) -> Block:
    """The block with these fields replaced. A null changes nothing, and the type stays.

    Citations are not made again of the first items if they are those in `cited`, of which the block's were made.
    """
    if not any(name not in _NO_CONTENT and value is not None for name, value in fields.items()):
        return block
    return _update_call(block, fields) if isinstance(block, ToolCall) else _update_part(block, fields, cited)


def _update_part(part: ContentPart, fields: Fields, cited: Sequence[Any] = ()) -> ContentPart:
    text, citations, options = raw_text(part), part.citations, dict[str, Any]()
    if part.type == "unsupported":
        options = {name: value for name, value in fields.items() if value is not None}
        return remake_part(part, text, FrozenDict(part.options, **options), citations, part.open)
    own = TEXT_FIELDS.get(part.type, _DATA)
    for name, value in fields.items():
        if value is None or name in _NO_CONTENT:
            continue
        if name in own and isinstance(value, str):
            text = clean_text(value)
        elif name == "citations":
            items = value if is_list(value) else [value]
            same = _known(items, cited)
            new = (Citation.from_dict(_mapping(item)) for item in items[same:])
            citations = (*citations[:same], *new)
        else:
            options[name] = value
    kept = FrozenDict(part.options, **options) if options else part.options  # one copy, not two
    return remake_part(part, text, kept, citations, part.open)


def _known(items: Sequence[Any], before: Sequence[Any]) -> int:
    """How many items at the beginning make the citations that they made before."""
    count = 0
    for item, known in zip(items, before):
        if item is not known and (item != known or _index_types(item) != _index_types(known)):
            break
        count += 1
    return count


def _index_types(item: Any) -> tuple[type, ...]:
    """`1`, `1.0` and `True` are equal, but only the first is an index."""
    found: Mapping[str, object] = item if is_mapping(item) else {}
    return type(found.get("start_index")), type(found.get("end_index"))


def _update_call(call: ToolCall, fields: Fields) -> ToolCall:
    known: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None or name in _NO_CONTENT:
            continue
        if name in ("id", "call_id"):
            known["call_id"] = value if isinstance(value, str) and real_id(value) else call.call_id
        elif name == "name" and isinstance(value, str):
            known["name"] = value or call.name
        elif name in ARGUMENT_FIELDS and (isinstance(value, str) or is_mapping(value)):
            text = (
                clean_text(value) or None if isinstance(value, str) else None
            )  # the wire writes "" for none
            known["arguments"] = _mapping(value) if is_mapping(value) else text
        elif name == "error" and isinstance(value, str):
            known["error"] = value
        else:
            metadata[name] = value
    if metadata:
        known["metadata"] = merge_call_metadata(call.metadata, metadata)
    return change(call, **known)


def finish_content(block: Block, content: Fields, key: Key) -> Block:
    """The block after a finish with this content. The content's fields replace those that were folded.

    Fields that are not in the content stay, unless the content is of another type than the block.
    """
    kind = content.get("type") or block.type
    if isinstance(block, ToolCall) and kind in _CALLS:
        return _update_call(change(block, type=_CALLS[kind], error=None), content)
    if isinstance(block, ContentPart) and part_type(kind) == block.type != "unsupported":
        return _update_part(block, content)
    return block_from_wire(content, key, origin=block._origin)


def finish_block(block: Block, *, cut: str | None = None) -> Block:
    """Close the block. A call's argument text is parsed; if it is not a JSON object the call becomes invalid.

    Args:
        block: The block as folded.
        cut: Why the message was cut short, if it was; an open call is then invalid, whatever its arguments.
    """
    if isinstance(block, ContentPart):
        text = raw_text(block)
        if text is not None and has_half(text):
            text = finish_text(text)
        return remake_part(block, text, block.options, block.citations, False)
    if block.type == "invalid_tool_call":
        return invalid(block, block.error or "marked invalid by its source")
    ours = (
        block.type == "tool_call"
    )  # the provider runs its own calls itself, so an incomplete one is no danger
    arguments = raw_arguments(block)
    wrong = cut if ours else block.error or cut
    if wrong is None and not isinstance(arguments, FrozenDict):
        text = "" if arguments is None else finish_text(arguments)
        try:
            arguments = parse_arguments(text) if text else EMPTY
        except InvalidJson as error:
            wrong = error.reason
    if wrong is None and ours:
        wrong = next((f"the call has no {what}" for what, known in _identity(block) if not known), None)
    if wrong is None:
        return change(block, arguments=arguments, status="complete", open=False)
    return invalid(block, wrong) if ours else change(block, error=wrong, open=False, status="incomplete")


def _identity(call: ToolCall) -> tuple[tuple[str, str], ...]:
    return (("id", (call.call_id or "").strip()), ("name", (call.name or "").strip()))


def has_text_field(part: ContentPart) -> bool:
    """Whether `block_to_wire` has a field for the part's text that no option occupies."""
    return part.type != "unsupported" and TEXT_FIELDS.get(part.type, _DATA)[0] not in part.options


def block_to_wire(block: Block) -> dict[str, Any]:
    """The block, as far as it has come, as the content of a start or finish."""
    if isinstance(block, ToolCall):
        kind = f"{block.type}_chunk" if block.open and block.type != "invalid_tool_call" else block.type
        arguments = thaw(block.arguments)
        if arguments is None and block.open and "args" not in block.metadata:
            arguments = ""
        own = {"type": kind, "id": block.call_id, "name": block.name, "args": arguments, "error": block.error}
        known = {name: value for name, value in own.items() if value is not None}
        return {**known, **thaw(_metadata_on_the_wire(block)), **known}
    if block.type == "unsupported":
        whole: dict[str, Any] = thaw(block.options) | ({} if block.text is None else {"data": block.text})
        named = whole.get("type")
        free = isinstance(named, str) and named not in _TAKEN
        return whole if free else {"type": "non_standard", "value": whole}
    text = {} if block.text is None else {TEXT_FIELDS.get(block.type, _DATA)[0]: block.text}
    citations = [_citation_to_wire(citation) for citation in block.citations]
    known = {"type": block.type, **text, **without_empty({"citations": citations})}
    return {**known, **thaw(block.options), **known}


def _metadata_on_the_wire(call: ToolCall) -> Fields:
    """The metadata without the execution status, if a `ToolUpdate` can carry that."""
    if isinstance(call.metadata.get("execution_status"), str) and call.call_id is not None:
        return {name: value for name, value in call.metadata.items() if name != "execution_status"}
    return call.metadata


def _citation_to_wire(citation: Citation) -> dict[str, Any]:
    """The provider's own object, if that holds every field of the citation."""
    if citation.raw and Citation.from_dict(citation.raw) == citation:
        whole: dict[str, Any] = thaw(citation.raw)
        return whole
    return citation.to_dict()


def _mapping(value: object) -> FrozenDict[Any]:
    return freeze_mapping(value if is_mapping(value) else {"value": value}, "content", lenient=True)


_NO_CALL = ToolCall()


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
                # Upstream loses the text of a part of another type than its slot's newest block.
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
    # Another id at one index is another call; upstream joins the two.
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
