"""The blocks of an Anthropic message: their starts, their deltas, and another message within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rxdelta.core import Event, events, reasoning_delta, text_delta, tool_call_delta
from rxdelta.formats.anthropic_messages.content import citation_of, content_of
from rxdelta.formats.anthropic_messages.reading import READ, others, required_object, required_word
from rxdelta.formats.anthropic_messages.tables import FORMAT, SERVER_CALLS
from rxdelta.formats.decoding import Chunk
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.notes import REDACTED, SIGNED_BY
from rxdelta.formats.repeated_arguments import Arguments
from rxdelta.formats.signatures import ANTHROPIC, signed
from rxdelta.formats.tool_calls import call_identity, made_up_id
from rxdelta.formats.wire_blocks import WireBlock, WireBlocks

__all__ = ["Blocks"]

Out = list[Event]

_NEVER = object()  # no delta's type
_INPUT: Final = "input_json_delta"


class Block(WireBlock):
    __slots__ = ("field", "grow", "signed_by", "takes")

    def __init__(self, index: int, kind: str, block_id: str | None, start: Chunk, content: Chunk) -> None:
        super().__init__(index, kind, runnable=kind == "tool_use")
        self.id, self.start = block_id, start
        self.signed_by = ANTHROPIC
        self.takes, self.field, self.grow = _GROWS.get(kind, _DOES_NOT_GROW)
        if kind == "text":
            citations = content.get("citations", ())
            self.items = GrowingList(citations, len(citations))
        args: Any = content.get("args")
        self.has_arguments = bool(args)
        if self.takes == _INPUT:
            self.said = Arguments()
        if isinstance(args, Mapping):
            self.takes = _NEVER  # they are whole, and no text can follow

    def is_again(self, kind: str, block_id: str | None, start: Chunk) -> bool:
        """Whether this start is the block's own, sent twice. Without an id only while the block is open."""
        if (kind, block_id) != (self.kind, self.id):
            return False
        return block_id is not None or start == self.start


class Blocks(WireBlocks[int, Block]):
    """A block's place is its `index`. Its kind is its type."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = 0
        self._signed_by = ANTHROPIC

    def know_model(self, model: str | None) -> None:
        """Other vendors speak the format too, and sign in their own way."""
        if model is not None and "claude" not in model.lower():
            self._signed_by = FORMAT

    def plain(self, chunk: Chunk) -> Event | None:
        """The event of a chunk that is nothing but more of a block's text, as nearly all are."""
        if chunk.get("type") != "content_block_delta" or self.held is not None:
            return None
        place, delta = chunk.get("index"), chunk.get("delta")
        if type(place) is not int or not isinstance(delta, dict):
            return None
        block = self.newest.get(place)
        if block is None or not block.open or delta.get("type") != block.takes:  # pyright: ignore[reportUnknownMemberType]
            return None
        piece: Any = delta.get(block.field)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if type(piece) is not str or not piece:  # pyright: ignore[reportUnknownArgumentType]
            return None
        said = block.said
        if said is None:
            block.has_arguments = True
        else:
            pieces = said.pieces
            if not pieces or "{" in piece:
                return None
            pieces.append(piece)
        return block.grow(block.index, piece)

    def start(self, out: Out, place: int, block: Chunk, path: str) -> bool:
        """Start a block. `False` if its start is sent twice."""
        kind = required_word(block, "type", path)
        content = content_of(kind, block, path)
        block_id = content.get("id") or content.get("tool_call_id")
        known = self.newest.get(place)
        if known is not None and known.is_again(kind, block_id, block):
            known.begin_again()
            return False
        index = self.index_for(place + self._offset)
        if "signature" in content:
            content[SIGNED_BY] = self._signed_by
        elif REDACTED in content:
            content[SIGNED_BY] = FORMAT  # Bedrock has it in another encoding
        if content["type"] in _CALLS and block_id is None:
            content |= call_identity(None, made_up_id(self.message_id, index))
        begun = Block(index, kind, block_id, block, content)
        begun.signed_by = self._signed_by
        self.begin(out, place, begun, content)
        return True

    def delta(self, out: Out, place: int, delta: Chunk) -> bool:
        """Read a delta. `False` if it is unknown or no block can take it."""
        kind = required_word(delta, "type", "delta")
        read, arguments = _DELTAS.get(kind), delta.get("partial_json")
        block = self.open_for(place, arguments)
        found = None if read is None else read(block, delta)
        if found is None:
            return kind == _INPUT and self.add_late_arguments(out, place, arguments)
        if block is not None:
            self.release(out)
            out += found
        return True

    def splice(self) -> None:
        """Another message begins within this one. Its indexes begin at 0 again and mean none of the blocks so far."""
        for block in self.unfinished.values():
            block.error = "another message began before the call had come whole"
        self.newest, self.held, self._offset = {}, None, self.next_index


# Each reads a delta for the open block at its place, or for none. `None` if the block can't take the delta.


def _piece(field: str) -> Callable[[Block | None, Chunk], Sequence[Event] | None]:
    def piece(block: Block | None, delta: Chunk) -> Sequence[Event] | None:
        text = READ.text(delta.get(field), f"delta.{field}")
        if not text:
            return ()
        if block is None or block.takes != delta["type"]:
            return None
        block.has_arguments = True
        if block.said is None:
            return (block.grow(block.index, text),)
        found: Out = []
        block.say(found, text)
        return found

    return piece


def _signature(block: Block | None, delta: Chunk) -> Sequence[Event] | None:
    signature = READ.text(delta.get("signature"), "delta.signature")
    if not signature:
        return ()
    return None if block is None else (events.BlockDelta(block.index, signed(signature, block.signed_by)),)


def _citations(block: Block | None, delta: Chunk) -> Sequence[Event] | None:
    citation = citation_of(required_object(delta, "citation", "delta."))
    if block is None:
        return None
    found: Out = []
    block.items.add(citation)
    block.update(found)
    return found


def _compaction(block: Block | None, delta: Chunk) -> Sequence[Event] | None:
    if block is None or block.kind != "compaction":
        return None
    return (events.BlockDelta(block.index, others(delta, "type")),)


_DELTAS: Mapping[str, Callable[[Block | None, Chunk], Sequence[Event] | None]] = {
    "text_delta": _piece("text"),
    "thinking_delta": _piece("thinking"),
    _INPUT: _piece("partial_json"),
    "signature_delta": _signature,
    "citations_delta": _citations,
    "compaction_delta": _compaction,
}

_Growth = tuple[object, str, Callable[[int, str], Event]]
_ARGUMENTS: _Growth = (_INPUT, "partial_json", tool_call_delta)
_GROWS: Mapping[str, _Growth] = {
    # block: the delta it grows by, the field with the piece, the event
    "text": ("text_delta", "text", text_delta),
    "thinking": ("thinking_delta", "thinking", reasoning_delta),
    **dict.fromkeys(("tool_use", *SERVER_CALLS), _ARGUMENTS),
}
_DOES_NOT_GROW: _Growth = (_NEVER, "", text_delta)

_CALLS = frozenset(["tool_call_chunk", "server_tool_call_chunk"])
