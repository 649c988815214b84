"""A block in the event protocol's vocabulary, both ways.

| wire type | ours |
| --- | --- |
| `text`, `reasoning` (also `thinking`), `refusal` | a part; its text under the type's own name |
| `image`, `audio`, `video`, `file`, … | a part; base64 `data` is its text |
| `server_tool_result` | a part without text |
| `tool_call`, `tool_call_chunk`, `tool_use` | a call; `args` (or `input`) text or object |
| `server_tool_call`, `server_tool_call_chunk`; `invalid_tool_call` | a call of that type |
| `non_standard`, any other | `unsupported`, whole in `options` |

All other fields go to a part's `options` or a call's `metadata`. `index` is the block's name and no content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core._block_key import Key
from rxdelta.core._blocks import Block
from rxdelta.core._content_part import (
    PART_TYPES,
    ContentPart,
    make_part,
    part_type,
    raw_text,
    remake_part,
)
from rxdelta.core._execution_status import merge_call_metadata
from rxdelta.core._frozen import EMPTY, FrozenDict, freeze_mapping, is_list, is_mapping, thaw
from rxdelta.core._origin import Origin
from rxdelta.core._strict_json import InvalidJson, clean_text
from rxdelta.core._text import finish_text, has_half
from rxdelta.core._tool_call import (
    ToolCall,
    change,
    invalid,
    parse_arguments,
    raw_arguments,
    real_id,
)
from rxdelta.core._values import Citation, without_empty

__all__ = [
    "block_from_wire",
    "block_to_wire",
    "finish_block",
    "finish_content",
    "has_text_field",
    "is_call",
    "update_block",
]

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
