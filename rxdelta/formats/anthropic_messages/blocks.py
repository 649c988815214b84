"""The blocks of an Anthropic message: their content, their starts, their deltas, and another message within it.

The format's names and the access to its fields come first, since `decoder` and `request` use them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rxdelta.core import Event, block_from_wire, events, real_id, reasoning_delta, text_delta, tool_call_delta
from rxdelta.formats.block_events import WireBlock, WireBlocks
from rxdelta.formats.calls import Arguments, call_identity, made_up_id
from rxdelta.formats.decoding import NOTHING, Fields, GrowingList, Json
from rxdelta.formats.notes import ANTHROPIC, PROVIDER_TYPE, REDACTED, SIGNED_BY, signed

FORMAT: Final = "anthropic-messages"

SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
"""The types of the calls that Anthropic runs."""

RESULT_SUFFIX: Final = "_tool_result"
"""The end of the type of every result of a call that Anthropic runs."""

REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "pause",
    "compaction": "pause",  # the client asked to be shown the summary before the model goes on
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


READ = Fields(FORMAT)


def required_object(fields: Json, name: str, path: str = "") -> Json:
    value = fields.get(name)
    if value is None:
        raise READ.fail(f"{path}{name}", "an object", None)
    return READ.mapping(value, f"{path}{name}")


def required_word(fields: Json, name: str, path: str) -> str:
    value = READ.text(fields.get(name), f"{path}.{name}")
    if not value:
        raise READ.fail(f"{path}.{name}", "a word", fields.get(name))
    return value


def others(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields with other names, without nulls."""
    return {name: value for name, value in fields.items() if name not in names and value is not None}


Content = dict[str, Any]


def content_of(kind: str, block: Json, path: str) -> Content:
    """The content of a block's start, for the protocol's start."""
    if kind in _CONTENTS:
        return _CONTENTS[kind](block, path)
    if kind.endswith(RESULT_SUFFIX):
        return _tool_result(block, path)
    # A type that the protocol has too would be read as the protocol's.
    unknown = block_from_wire(events.BlockStart(0, block).content, 0).type == "unsupported"
    return dict(block) if unknown else {"type": "non_standard", "value": block}


def whole_content_of(kind: str, block: Json, path: str) -> Content:
    """The content of a block that came whole, so that no delta can bring a missing field."""
    field = _REQUIRED.get(kind)
    if field is not None and field not in block:
        raise READ.fail(f"{path}.{field}", "a string", None)
    return content_of(kind, block, path)


_REQUIRED: Mapping[str, str] = {"text": "text", "thinking": "thinking", "redacted_thinking": "data"}


def _text(block: Json, path: str) -> Content:
    citations = [
        citation_of(READ.mapping(citation, f"{path}.citations[{n}]"))
        for n, citation in enumerate(READ.items(block.get("citations"), f"{path}.citations"))
    ]
    text = READ.text(block.get("text"), f"{path}.text")
    content = others(block, "type", "text", "citations") | {"type": "text", "text": text}
    return content | {"citations": citations} if citations else content


def _thinking(block: Json, path: str) -> Content:
    thinking = READ.text(block.get("thinking"), f"{path}.thinking")
    signature = READ.text(block.get("signature"), f"{path}.signature")
    content = others(block, "type", "thinking", "signature") | {"type": "reasoning", "reasoning": thinking}
    return content | {"signature": signature} if signature else content


def _redacted_thinking(block: Json, path: str) -> Content:
    READ.text(block.get("data"), f"{path}.data")
    return others(block, "type") | {"type": "reasoning", "reasoning": "", REDACTED: True}


def _tool_use(block: Json, path: str) -> Content:
    """An `input` that isn't empty is all of the arguments; else their text may follow."""
    whole = block.get("input")
    if "input" not in block and any(block.get(name) not in _NO_INPUT for name in _INPUT_ELSEWHERE):
        raise READ.fail(f"{path}.input", "the arguments", None)  # the call would be run without them
    args = whole if isinstance(whole, str) else READ.mapping(whole, f"{path}.input") or ""
    return others(block, "type", "input", *_NOT_A_CALLS_OWN) | {
        "type": "tool_call_chunk",
        "id": real_id(READ.text(block.get("id"), f"{path}.id")),
        "name": READ.text(block.get("name"), f"{path}.name"),
        "args": args,
    }


def _server_tool_use(block: Json, path: str) -> Content:
    return _tool_use(block, path) | {"type": "server_tool_call_chunk", PROVIDER_TYPE: block["type"]}


def _tool_result(block: Json, path: str) -> Content:
    output = block.get("content")
    failed = block.get("is_error") is True or (
        isinstance(output, Mapping) and str(output.get("type")).endswith("_error")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    )
    return others(block, "type", "tool_use_id", "content") | {
        "type": "server_tool_result",
        "tool_call_id": real_id(READ.text(block.get("tool_use_id"), f"{path}.tool_use_id")),
        "output": output,
        PROVIDER_TYPE: block["type"],
        "status": "error" if failed else "success",
    }


def citation_of(citation: Json) -> Content:
    """A citation in the protocol's words. Its positions are in the source, not in the reply: they stay in `raw`."""
    title = citation.get("title") or citation.get("document_title")
    known = {"cited_text": citation.get("cited_text"), "title": title, "url": citation.get("url")}
    return {name: value for name, value in known.items() if isinstance(value, str)} | {"raw": citation}


_CONTENTS: Mapping[str, Callable[[Json, str], Content]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    **dict.fromkeys(SERVER_CALLS, _server_tool_use),
    # results: _tool_result; any other is kept whole
}

_INPUT_ELSEWHERE = ("args", "arguments", "parameters", "partial_json")
_NO_INPUT = (*NOTHING, "{}")

# The protocol's own words, which as fields of a call would mean what Anthropic doesn't.
_NOT_A_CALLS_OWN = ("args", "arguments", "call_id", "error", "execution_status", "index")


Out = list[Event]
Place: TypeAlias = int | tuple[int, str]
"""A block's `index`; with a kind that of a block which the stream has not begun there, beside the one that it has."""

_NEVER = object()  # no delta's type
_INPUT: Final = "input_json_delta"
_CALL: Final = "tool_use"


class Block(WireBlock):
    __slots__ = ("field", "grow", "signed_by", "takes")

    def __init__(self, index: int, kind: str, block_id: str | None, start: Json, content: Json) -> None:
        super().__init__(index, kind, runnable=kind == _CALL)
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

    def is_again(self, kind: str, block_id: str | None, start: Json) -> bool:
        """Whether this start is the block's own, sent twice. Without an id only while the block is open."""
        if (kind, block_id) != (self.kind, self.id):
            return False
        return block_id is not None or start == self.start


class Blocks(WireBlocks[Place, Block]):
    """A block's place is its `index`. Its kind is its type."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = 0
        self._signed_by = ANTHROPIC
        self._newest_call: Block | None = None  # of those that the stream has begun

    def know_model(self, model: str | None) -> None:
        """Other vendors speak the format too, and sign in their own way."""
        if model is not None and "claude" not in model.lower():
            self._signed_by = FORMAT

    def start(self, out: Out, place: int, block: Json, path: str, *, whole: bool = False) -> bool:
        """Start a block, which may be `whole`. `False` if its start is sent twice."""
        kind = required_word(block, "type", path)
        content = (whole_content_of if whole else content_of)(kind, block, path)
        known = self.newest.get(place)
        if known is not None and known.is_again(kind, _id_of(content), block):
            known.begin_again()
            return False
        before = self.open_at(place), self.open_at((place, _CALL))
        self._stop_beside(out, place)
        begun = self._begin(out, place, place, block, content)
        if begun.takes == _INPUT:
            self._newest_call = begun
            if any(one is not None and one.error is _NO_START for one in before):
                begun.error = _ARGUMENTS_BEFORE
        return True

    def delta(self, out: Out, place: int, delta: Json) -> bool:
        """Read a delta. `False` if it is unknown, or comes after its block has ended."""
        kind = required_word(delta, "type", "delta")
        known = _DELTAS.get(kind)
        if known is None:
            return False
        own, read, add = known
        found = read(delta)
        if not found:
            return True
        block = self._call_at(place) if kind == _INPUT else self._taker(place, kind, own)
        if block is None and self._begins(place, kind):
            block = self._begin_own(out, place, own)
        if block is None:
            return kind == _INPUT and self.add_late_arguments(out, place, found)
        self.release(out)
        add(out, block, found)
        return True

    def stop(self, out: Out, place: Place) -> None:
        super().stop(out, place)
        if isinstance(place, int):
            self._stop_beside(out, place)

    def splice(self) -> None:
        """Another message begins within this one. Its indexes begin at 0 again and mean none of the blocks so far."""
        for block in self.unfinished.values():
            block.error = "another message began before the call had come whole"
        self.newest, self.held, self._offset = {}, None, self.next_index
        self._newest_call = None

    def _begin(self, out: Out, place: Place, number: int, start: Json, content: dict[str, Any]) -> Block:
        kind, block_id, index = start["type"], _id_of(content), self.index_for(number + self._offset)
        if "signature" in content:
            content[SIGNED_BY] = self._signed_by
        elif REDACTED in content:
            content[SIGNED_BY] = FORMAT  # Bedrock has it in another encoding
        if content["type"] in _CALLS and block_id is None:
            content |= call_identity(None, made_up_id(self.message_id, index))
        begun = Block(index, kind, block_id, start, content)
        begun.signed_by = self._signed_by
        self.begin(out, place, begun, content)
        return begun

    # Deltas that the block at their index can't take.

    def _taker(self, place: int, kind: str, own: str) -> Block | None:
        """The open block for a delta that belongs to blocks of the kind `own`. A mark also fits a block that doesn't grow."""
        block = self.open_at(place)
        if block is not None and (block.kind == own or (kind in _MARKS and block.takes is _NEVER)):
            return block
        return self.open_at((place, own))

    def _call_at(self, place: int) -> Block | None:
        """The open call for a piece of arguments: the one at its index, else the newest one if that has none yet.

        An index where no call waits for arguments says nothing of whose they are, and a call that doesn't get its
        arguments is run without them.
        """
        block = self.open_for(place, arguments=True)
        if block is not None and block.takes == _INPUT:
            return block
        beside = self.open_at((place, _INPUT)) or self.open_at((place, _CALL))
        if beside is not None:
            return beside
        there, newest = self.newest.get(place), self._newest_call
        if newest is None or newest.has_arguments or not (newest.open or newest is self.held):
            return None
        if there is not None and not (there.kind in _GROWS if there.open else there.has_arguments):
            return None  # a kind to come, or a call that ended without them
        if newest is self.held:
            self.held, newest.open = None, True
        self.newest[place, _INPUT] = newest
        return newest

    def _begins(self, place: int, kind: str) -> bool:
        """Whether this delta, which no open block can take, begins a block."""
        there = self.newest.get(place)
        if there is None:
            return True
        if kind == _INPUT:  # more for a call that has ended or is whole, or for a kind to come
            return there.takes not in (_INPUT, _NEVER)
        return there.open or kind not in _MARKS

    def _begin_own(self, out: Out, place: int, kind: str) -> Block:
        """Begin a block that the stream has not begun: at this index, or beside the block there."""
        start: Json = {"type": kind, **_EMPTY[kind]}
        at = (place, kind) if place in self.newest else place
        begun = self._begin(out, at, place, start, content_of(kind, start, "content_block"))
        if kind == _CALL:
            begun.error = _NO_START
        return begun

    def _stop_beside(self, out: Out, place: int) -> None:
        for kind in _EMPTY:
            super().stop(out, (place, kind))


def _id_of(content: Json) -> str | None:
    return content.get("id") or content.get("tool_call_id")


# Each reads what a delta brings; nothing of an empty one.


def _text_of(field: str) -> Callable[[Json], str]:
    def read(delta: Json) -> str:
        if field not in delta:
            raise READ.fail(f"delta.{field}", "a string", None)
        return READ.text(delta[field], f"delta.{field}")

    return read


def _citation(delta: Json) -> Json:
    return citation_of(required_object(delta, "citation", "delta."))


def _compaction(delta: Json) -> Json:
    fields = others(delta, "type")
    if not fields and "content" not in delta:
        raise READ.fail("delta.content", "a string", None)
    return fields


# Each adds it to a block that can take it.


def _grow(out: Out, block: Block, piece: str) -> None:
    block.has_arguments = True
    if block.said is None:
        out.append(block.grow(block.index, piece))
    else:
        block.say(out, piece)


def _sign(out: Out, block: Block, signature: str) -> None:
    out.append(events.BlockDelta(block.index, signed(signature, block.signed_by)))


def _cite(out: Out, block: Block, citation: Json) -> None:
    block.items.add(citation)
    block.update(out)


def _change(out: Out, block: Block, fields: Json) -> None:
    out.append(events.BlockDelta(block.index, fields))


_DELTAS: Mapping[str, tuple[str, Callable[[Json], Any], Callable[[Out, Block, Any], None]]] = {
    # delta: the kind of the blocks that it belongs to, how it is read, how it is added
    "text_delta": ("text", _text_of("text"), _grow),
    "thinking_delta": ("thinking", _text_of("thinking"), _grow),
    _INPUT: (_CALL, _text_of("partial_json"), _grow),
    "signature_delta": ("thinking", _text_of("signature"), _sign),
    "citations_delta": ("text", _citation, _cite),
    "compaction_delta": ("compaction", _compaction, _change),
}
_MARKS = frozenset(["signature_delta", "citations_delta", "compaction_delta"])
"""Deltas that add to what a block says. Behind the end of their block they begin no other."""

_EMPTY: Mapping[str, Json] = {
    "text": {"text": ""},
    "thinking": {"thinking": ""},
    _CALL: {"name": "", "input": {}},
    "compaction": {},
}
"""The fields of the start of an empty block, for those that the stream doesn't begin."""

_NO_START: Final = "its start, which has the tool's name, never came"
_ARGUMENTS_BEFORE: Final = "arguments came before its start"

_Growth = tuple[object, str, Callable[[int, str], Event]]
_ARGUMENTS: _Growth = (_INPUT, "partial_json", tool_call_delta)
_GROWS: Mapping[str, _Growth] = {
    # block: the delta it grows by, the field with the piece, the event
    "text": ("text_delta", "text", text_delta),
    "thinking": ("thinking_delta", "thinking", reasoning_delta),
    **dict.fromkeys((_CALL, *SERVER_CALLS), _ARGUMENTS),
}
_DOES_NOT_GROW: _Growth = (_NEVER, "", text_delta)

_CALLS = frozenset(["tool_call_chunk", "server_tool_call_chunk"])
