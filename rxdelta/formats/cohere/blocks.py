"""The blocks of a Cohere message: its plan, contents and calls, and the citations in them.

The format's names come first, since the other files use them, too.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rxdelta.core import Event, freeze, real_id, reasoning_delta, text_delta, tool_call_delta
from rxdelta.formats.block_events import WireBlock, WireBlocks, as_citation
from rxdelta.formats.calls import call_identity, made_up_id
from rxdelta.formats.decoding import Fields, Json, kept, others, word
from rxdelta.formats.endings import Broken
from rxdelta.formats.notes import PROVIDER_TYPE

FORMAT: Final = "cohere"

PLAN: Final = "tool_plan"
"""The field of the plan for the calls. The reasoning that it becomes has this as its provider type."""

BLOCK_TYPES: Mapping[str, str] = {"text": "text", "thinking": "reasoning"}
"""The type of block that each type of content becomes. A content's text is in the field that has the type's name."""

CONTENT_TYPES: Mapping[str, str] = {block: content for content, block in BLOCK_TYPES.items()}

REASONS: Mapping[str, str] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_use",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
}

BROKEN: Mapping[str, Broken] = {
    "ERROR": Broken("the generation failed", True),
    "TIMEOUT": Broken("the generation timed out", True),
}
"""The reasons that say that Cohere failed. The message of an error that has its own wins.

https://docs.cohere.com/reference/chat-stream
"""


Out: TypeAlias = list[Event]
Place: TypeAlias = tuple[str, int]

_READ = Fields(FORMAT)
_PLAN_PLACE = ("plan", 0)

_CONTENT_FIELDS = frozenset(["type", *BLOCK_TYPES])
_CALL_FIELDS = frozenset(["id", "type", "function", "index"])
_FUNCTION_FIELDS = frozenset(["name", "arguments"])


class Block(WireBlock):
    __slots__ = ("field", "grow")

    def __init__(self, index: int, kind: str) -> None:
        super().__init__(index, kind, runnable=kind == "call")
        self.field, self.grow = _GROWS.get(kind, _DOES_NOT_GROW)


class Blocks(WireBlocks[Place, Block]):
    """A block's place is its kind and the index that Cohere gives it among those of its kind."""

    replaced = "another call took its place before its arguments came"

    def __init__(self) -> None:
        super().__init__()
        self.late_citations: list[Any] = []  # their block had finished
        self._newest_of: dict[str, Block] = {}  # by block type, of the contents

    def plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more of a content or of arguments, as nearly all are.

        It is that of the decoder's `_decode`: `tests/formats/test_plain_chunks.py` compares the two.
        """
        if type(chunk) is not dict or len(chunk) != 3 or self.held is not None:
            return None
        delta, index = chunk.get("delta"), chunk.get("index")
        message = delta.get("message") if type(delta) is dict and len(delta) == 1 else None
        if type(message) is not dict or len(message) != 1 or type(index) is not int:
            return None
        event_type = chunk.get("type")
        if event_type == "content-delta":
            block, part = self.newest.get(("content", index)), message.get("content")
        elif event_type == "tool-call-delta":
            block, part = self.newest.get(("call", index)), message.get("tool_calls")
            part = part.get("function") if type(part) is dict and len(part) == 1 else None
        else:
            return None
        if block is None or not block.open or block.has_all_arguments:
            return None
        text = part.get(block.field) if type(part) is dict and len(part) == 1 else None
        if type(text) is not str or not text:
            return None
        block.has_arguments = True
        return block.grow(block.index, text)

    def plan(self, out: Out, text: str) -> None:
        if text:
            self._write(out, _PLAN_PLACE, "reasoning", text)

    # Contents.

    def content_start(self, out: Out, index: int, content: Json) -> None:
        known = self.open_at(("content", index))
        if known is None or known.start != content:  # else it was sent twice
            self.content(out, index, content, "delta.message.content")

    def content(self, out: Out, index: int, content: Json, path: str) -> None:
        place = ("content", index)
        content_type = word(content.get("type")) or ("thinking" if content.get("thinking") else "text")
        block_type = BLOCK_TYPES.get(content_type)
        if block_type is None:
            self._begin(out, place, "other", {"type": "non_standard", "value": kept(content)})
            return
        text = _READ.text_of(content, content_type, path)
        fields = {**others(content, _CONTENT_FIELDS), "type": block_type, block_type: ""}
        self._begin(out, place, block_type, fields).start = kept(content)
        if text:
            self._write(out, place, block_type, text)

    def content_delta(self, out: Out, index: int, content: Json) -> None:
        for content_type, block_type in BLOCK_TYPES.items():
            text = _READ.text_of(content, content_type, "delta.message.content")
            if text:
                self._write(out, ("content", index), block_type, text)
        if BLOCK_TYPES.keys().isdisjoint(content) or not _CONTENT_FIELDS.issuperset(content):
            self.foreign = True

    # Citations.

    def citation(self, out: Out, citation: Json) -> None:
        if not citation:
            self.foreign = True
            return
        block = self._cited(citation)
        if block is None:
            self.late_citations.append(freeze(citation, lenient=True))
        else:
            block.items.add(_citation(citation))
            block.update(out)

    def _cited(self, citation: Json) -> Block | None:
        """The block that a citation belongs to, if that is still open."""
        kind, index = citation.get("type"), citation.get("content_index")
        if kind == "PLAN":
            return self.open_at(_PLAN_PLACE)
        block = self.newest.get(("content", index)) if type(index) is int else None
        if block is None:
            block = self._newest_of.get("reasoning" if kind == "THINKING_CONTENT" else "text")
        return block if block is not None and block.open else None

    # Calls.

    def call(self, out: Out, index: int, call: Json, path: str) -> None:
        function = _READ.mapping(call.get("function"), f"{path}.function")
        call_id, name = real_id(_READ.text_of(call, "id", path)), _READ.text_of(function, "name", path)
        known = self.newest.get(("call", index))
        if known is not None and call_id is not None and known.id == call_id:
            known.begin_again()
            return
        own = others(function, _FUNCTION_FIELDS)
        self.foreign |= bool(own) and "arguments" not in function  # they may be among the others
        fields = others(call, _CALL_FIELDS) | own
        if word(call.get("type")) not in (None, "function"):
            fields[PROVIDER_TYPE] = call["type"]
        identity = call_identity(call_id, made_up_id(self.message_id, self.next_index))
        fields |= {"type": "tool_call_chunk", **identity, "name": name or None, "args": ""}
        block = self._begin(out, ("call", index), "call", fields)
        block.id = call_id
        self._read_arguments(out, block, function.get("arguments"), f"{path}.function.arguments")

    def call_delta(self, out: Out, index: int, call: Json) -> None:
        path = "delta.message.tool_calls.function"
        function = _READ.mapping(call.get("function"), path)
        arguments = function.get("arguments")
        self.foreign |= "arguments" not in function
        place = ("call", index)
        block = self.open_for(place, arguments)
        if block is None or block.has_all_arguments:
            self.foreign |= bool(arguments) and not self.add_late_arguments(out, place, arguments)
            return
        self.release(out)
        self._read_arguments(out, block, arguments, f"{path}.arguments")

    def _read_arguments(self, out: Out, block: Block, arguments: Any, path: str) -> None:
        if arguments is None or arguments == "":
            return
        if not isinstance(arguments, (str, Mapping)):
            raise _READ.fail(path, "a string or an object", arguments)
        self.add_arguments(out, block, arguments)

    # Any block.

    def _write(self, out: Out, place: Place, block_type: str, text: str) -> None:
        self.release(out)
        block = self.open_at(place)
        if block is None or block.kind != block_type:
            plan: Json = {PROVIDER_TYPE: PLAN} if place == _PLAN_PLACE else {}
            block = self._begin(out, place, block_type, {"type": block_type, block_type: "", **plan})
        out.append(block.grow(block.index, text))

    def _begin(self, out: Out, place: Place, kind: str, content: Json) -> Block:
        self.stop(out, _PLAN_PLACE)  # nothing else says where the plan ends
        block = Block(self.next_index, kind)
        self.begin(out, place, block, content)
        if place[0] == "content":
            self._newest_of[kind] = block
        return block


def _citation(citation: Json) -> Json:
    """A citation in the protocol's words. The first source that has a title gives it, and so with the URL."""
    found: dict[str, Any] = {"cited_text": citation.get("text")}
    found |= {"start_index": citation.get("start"), "end_index": citation.get("end")}
    sources = citation.get("sources")
    for source in sources if isinstance(sources, (list, tuple)) else ():
        document = source.get("document") if isinstance(source, Mapping) else None
        if isinstance(document, Mapping):
            for name in ("title", "url"):
                found.setdefault(name, word(document.get(name)))
    return as_citation(found, citation)


_Growth = tuple[str | None, Callable[[int, str], Event]]
_GROWS: Mapping[str, _Growth] = {
    # block: the field with more of it, the event
    "text": (CONTENT_TYPES["text"], text_delta),
    "reasoning": (CONTENT_TYPES["reasoning"], reasoning_delta),
    "call": ("arguments", tool_call_delta),
}
_DOES_NOT_GROW: _Growth = (None, text_delta)
