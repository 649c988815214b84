"""The blocks of a Bedrock message: their starts, their deltas, and bytes as base64.

The format's names come first, since `decoder`, `request` and `writer` use them, too. boto3 has bytes where the wire and our
events have text.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from rxdelta.core import DEFAULT_LIMITS, Event, events, real_id, reasoning_delta, text_delta, tool_call_delta
from rxdelta.formats.block_events import WireBlock, WireBlocks, as_citation
from rxdelta.formats.calls import call_identity, made_up_id
from rxdelta.formats.decoding import Base64Pieces, Fields, GrowingList, Json, by_word, kept, others, word
from rxdelta.formats.endings import Broken
from rxdelta.formats.notes import ANTHROPIC, PROVIDER_TYPE, REDACTED, SIGNED_BY, signed

FORMAT: Final = "bedrock-converse"

MEDIA: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""The type of block that each medium becomes."""

REASONS: Mapping[str, str] = by_word(
    {
        "stop": "end_turn stop_sequence",
        "pause": "pause_turn",
        "tool_use": "tool_use",
        "length": "max_tokens model_context_window_exceeded",
        "content_filter": "content_filtered guardrail_intervened refusal",
    }
)

BROKEN: Mapping[str, Broken] = {
    "malformed_model_output": Broken("the model's output could not be read", True),
    "malformed_tool_use": Broken("the model's tool call could not be read", True),
}
"""The reasons that say that the model or Bedrock failed.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_MessageStopEvent.html
"""


Bytes: TypeAlias = bytes | bytearray | memoryview


def as_base64(value: Any) -> Any:
    """Encode bytes as base64. Return other values unchanged."""
    return base64.b64encode(value).decode() if isinstance(value, Bytes) else value


def decoded(data: str) -> bytes | None:
    """The bytes of a base64 text; `None` if it is none."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def joined(pieces: Sequence[str]) -> str:
    """One base64 text of pieces that each have their own padding."""
    found = [decoded(piece) for piece in pieces]
    whole = [piece for piece in found if piece is not None]
    return base64.b64encode(b"".join(whole)).decode() if len(whole) == len(found) else "".join(pieces)


def readable(source: Mapping[str, Any]) -> dict[str, Any]:
    """A frozen copy in which bytes are base64."""
    return kept({str(name): _without_bytes(value, 0) for name, value in source.items()})


def _without_bytes(value: Any, depth: int) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= DEFAULT_LIMITS.json_depth:
            return None
        if isinstance(value, Mapping):
            return {name: _without_bytes(item, depth + 1) for name, item in value.items()}
        return [_without_bytes(item, depth + 1) for item in value]
    return as_base64(value)


Out: TypeAlias = list[Event]

_READ = Fields(FORMAT)


class Block(WireBlock):
    __slots__ = ("data", "opaque")

    def __init__(self, index: int, kind: str, *, runnable: bool = False) -> None:
        super().__init__(index, kind, runnable=runnable)
        if kind == "toolResult":
            self.items_field = "output"
        self.data = Base64Pieces()  # of a medium
        self.opaque: dict[str, _Opaque] = {}

    def update(self, out: Out, *, last: bool = False) -> None:
        super().update(out, last=last)
        fields: dict[str, Any] = {}
        for name, opaque in self.opaque.items():
            whole = opaque.take(at_end=last)
            if whole is not None:
                fields |= (
                    {name: whole, REDACTED: True, SIGNED_BY: FORMAT}
                    if name == "data"
                    else signed(whole, ANTHROPIC)  # nobody else signs there
                )
        if fields:
            out.append(events.BlockDelta(self.index, fields))
        if last and (rest := self.data.rest()):
            out.append(events.DataDelta(self.index, rest))


class _Opaque:
    """A signature, or encrypted reasoning: a delta has the whole of it, or a piece."""

    __slots__ = ("_join", "_pieces")

    def __init__(self, join: Callable[[list[str]], str]) -> None:
        self._join = join
        self._pieces = GrowingList()

    def add(self, piece: str) -> None:
        self._pieces.add(piece, len(piece))

    def take(self, *, at_end: bool) -> str | None:
        """The whole, to be emitted now, if it is due."""
        pieces = self._pieces.take(at_end=at_end)
        if pieces is None:
            return None
        whole = pieces[0] if len(pieces) == 1 else self._join(pieces)
        self._pieces = GrowingList([whole], len(whole))
        return whole


class Blocks(WireBlocks[int, Block]):
    """A block's place is its `contentBlockIndex`. `kind` is Bedrock's name of the block."""

    replaced = "another block took its place before its arguments came"

    def plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more of a block's text, as nearly all are.

        It is that of the decoder's `_decode`: `tests/formats/test_plain_chunks.py` compares the two.
        """
        if type(chunk) is not dict or len(chunk) != 1 or self.held is not None:
            return None
        try:
            event: Any = chunk["contentBlockDelta"]
            if type(event) is not dict or not _PLAIN.issuperset(event):
                return None
            place, delta = event["contentBlockIndex"], event["delta"]
            if type(place) is not int or type(delta) is not dict or len(delta) != 1:
                return None
            block = self.newest[place]
            if not block.open:
                return None
            name, field, grow = _GROWS[block.kind]
            text = delta[name]
            if field is not None:
                if (
                    type(text) is not dict
                    or len(text) != 1
                    or (name == "toolUse" and not block.has_arguments)
                    or block.has_all_arguments
                ):
                    return None
                text = text[field]
        except KeyError:
            return None
        return grow(block.index, text) if type(text) is str and text else None

    def start(self, out: Out, place: int, name: str, value: Any, path: str) -> None:
        if name == "toolUse":
            self._start_call(out, place, _READ.mapping(value, path), path)
        elif name == "toolResult":
            self._start_result(out, place, _READ.mapping(value, path), path)
        elif name in MEDIA:
            self._medium(out, place, name, others(_READ.mapping(value, path), _MEDIUM_FIELDS))
        else:
            self._begin(out, place, "other", {"type": "non_standard", "value": readable({name: value})})

    def delta(self, out: Out, place: int, name: str, value: Any, path: str) -> None:
        read = _DELTAS.get(name)
        if read is not None:
            read(self, out, place, value, path)
        elif name in MEDIA:
            self._medium_delta(out, place, name, _READ.mapping(value, path), path)
        else:
            self.foreign = True

    def whole(self, out: Out, place: int, name: str, value: Any, path: str) -> None:
        """A block of a reply that was not streamed."""
        if name in MEDIA:
            medium = _READ.mapping(value, path)
            self.start(out, place, name, without(medium, "source", "error"), path)
            self._medium_delta(out, place, name, medium, path)
        elif name == "toolResult":
            result = _READ.mapping(value, path)
            self._start_result(out, place, result, path)
            self._result_delta(out, place, result.get("content"), f"{path}.content")
        elif name == "reasoningContent":
            reasoning = _READ.mapping(value, path)
            text = _READ.mapping(reasoning.get("reasoningText"), f"{path}.reasoningText")
            self._reasoning_delta(out, place, {**without(reasoning, "reasoningText"), **text}, path)
        elif name == "citationsContent":
            cited = _READ.mapping(value, path)
            for n, piece in enumerate(_READ.items(cited.get("content"), f"{path}.content")):
                at = f"{path}.content[{n}]"
                self._text_delta(out, place, _READ.mapping(piece, at).get("text"), f"{at}.text")
            for n, citation in enumerate(_READ.items(cited.get("citations"), f"{path}.citations")):
                self._citation_delta(out, place, citation, f"{path}.citations[{n}]")
        elif name == "text":
            self._text_delta(out, place, value, path)
        else:
            if name == "toolUse":
                _READ.require(_READ.mapping(value, path), ("input",), path)
            self.start(out, place, name, value, path)

    # Texts, their citations, and reasoning: the first delta is the start.

    def _text_delta(self, out: Out, place: int, value: Any, path: str) -> None:
        text = _READ.text(value, path)
        if text:
            out.append(text_delta(self._prose(out, place, "text").index, text))

    def _citation_delta(self, out: Out, place: int, value: Any, path: str) -> None:
        citation = _citation(_READ.mapping(value, path), path)
        block = self._prose(out, place, "text")
        block.items.add(citation)
        block.update(out)

    def _reasoning_delta(self, out: Out, place: int, value: Any, path: str) -> None:
        delta = _READ.mapping(value, path)
        text, signature = _READ.text_of(delta, "text", path), _READ.text_of(delta, "signature", path)
        redacted = _base64(delta.get("redactedContent"), f"{path}.redactedContent")
        if text:
            out.append(reasoning_delta(self._prose(out, place, "reasoning").index, text))
        if signature:
            self._opaque(out, place, "signature", signature, "".join)
        if redacted:
            self._opaque(out, place, "data", redacted, joined)
        if not delta or not _REASONING_FIELDS.issuperset(delta):
            self.foreign = True

    def _opaque(self, out: Out, place: int, name: str, piece: str, join: Callable[[list[str]], str]) -> None:
        block = self._prose(out, place, "reasoning")
        block.opaque.setdefault(name, _Opaque(join)).add(piece)
        block.update(out)

    def _prose(self, out: Out, place: int, kind: str) -> Block:
        self.release(out)
        block = self.open_at(place)
        if block is not None and block.kind == kind:
            return block
        return self._begin(out, place, kind, {"type": kind, kind: ""})

    # Calls.

    def _start_call(self, out: Out, place: int, start: Json, path: str) -> None:
        call_id = real_id(_READ.text_of(start, "toolUseId", path))
        name = _READ.text_of(start, "name", path)
        call_type = _READ.text_of(start, "type", path)
        known = self.newest.get(place)
        if known is not None and known.kind == "toolUse" and call_id is not None and known.id == call_id:
            known.begin_again()
            return
        self.foreign |= not _NOT_A_CALLS_OWN.isdisjoint(start)
        server = call_type.endswith("_tool_use")  # Bedrock runs it
        fields = kept(without(start, "toolUseId", "name", "type", "input", *_NOT_A_CALLS_OWN))
        if server:
            fields[PROVIDER_TYPE] = call_type
        block_type = "server_tool_call_chunk" if server else "tool_call_chunk"
        identity = call_identity(call_id, made_up_id(None, self.index_for(place)))
        fields |= {"type": block_type, "name": name or None, "args": "", **identity}
        block = self._begin(out, place, "toolUse", fields, runnable=not server)
        block.id = call_id
        self._read_arguments(out, block, start.get("input"), f"{path}.input")

    def _call_delta(self, out: Out, place: int, value: Any, path: str) -> None:
        delta = _READ.mapping(value, path)
        _READ.require(delta, ("input",), path)
        arguments = delta["input"]
        block = self.open_for(place, arguments)
        if block is None or block.kind != "toolUse" or block.has_all_arguments:
            self.foreign |= bool(arguments) and not self.add_late_arguments(out, place, arguments)
        else:
            self._read_arguments(out, block, arguments, f"{path}.input")

    def _read_arguments(self, out: Out, block: Block, arguments: Any, path: str) -> None:
        """Read a piece of their text. In a reply that was not streamed they are an object; an empty one means nothing."""
        if not arguments:
            return
        if not isinstance(arguments, (str, Mapping)):
            raise _READ.fail(path, "a string or an object", arguments)
        self.add_arguments(out, block, arguments)

    # Results of the tools that Bedrock runs.

    def _start_result(self, out: Out, place: int, start: Json, path: str) -> None:
        call_id = real_id(_READ.text_of(start, "toolUseId", path))
        known = self.open_at(place)
        if known is not None and known.kind == "toolResult" and known.id == call_id:
            return  # sent twice
        fields = kept(without(start, "toolUseId", "type", "content", "output"))
        fields |= {"type": "server_tool_result", "tool_call_id": call_id, "output": []}
        if word(start.get("type")):
            fields[PROVIDER_TYPE] = start["type"]
        self._begin(out, place, "toolResult", fields).id = call_id

    def _result_delta(self, out: Out, place: int, value: Any, path: str) -> None:
        block, items = self.open_at(place), _READ.items(value, path)
        if block is None or block.kind != "toolResult":
            self.foreign |= bool(items)
            return
        self.release(out)
        for item in items:
            block.items.add(readable({"": item})[""])
        block.update(out)

    # Media.

    def _medium(self, out: Out, place: int, name: str, fields: dict[str, Any]) -> Block:
        known = self.open_at(place)
        if known is not None and known.kind == name:
            return known
        block_type = MEDIA[name]
        if block_type == "image" and word(fields.get("format")):  # those of other media are no MIME types
            fields["mime_type"] = f"image/{fields['format']}"
        return self._begin(out, place, name, {**fields, "type": block_type})

    def _medium_delta(self, out: Out, place: int, name: str, delta: Json, path: str) -> None:
        source = _READ.mapping(delta.get("source"), f"{path}.source")
        data = _base64(source.get("bytes"), f"{path}.source.bytes")
        elsewhere, fields = without(source, "bytes"), others(delta, _MEDIUM_FIELDS)
        if not (data or elsewhere or fields):
            self.foreign |= "bytes" not in source
            return
        block = self._medium(out, place, name, {})
        self.release(out)
        if elsewhere:
            fields["source"] = readable(elsewhere)
        if fields:
            out.append(events.BlockDelta(block.index, fields))
        if data := block.data.add(data):
            out.append(events.DataDelta(block.index, data))

    # Any block.

    def _begin(self, out: Out, place: int, kind: str, content: Json, *, runnable: bool = False) -> Block:
        block = Block(self.index_for(place), kind, runnable=runnable)
        self.begin(out, place, block, content)
        return block


def _citation(citation: Json, path: str) -> Json:
    """A citation in the protocol's words. Its location is in the source, not in the reply: it stays in `raw`."""
    location = _READ.mapping(citation.get("location"), f"{path}.location")
    web = location.get("web")
    url = word(web.get("url")) if isinstance(web, Mapping) else None
    cited = ""
    for n, piece in enumerate(_READ.items(citation.get("sourceContent"), f"{path}.sourceContent")):
        at = f"{path}.sourceContent[{n}]"
        cited += _READ.text_of(_READ.mapping(piece, at), "text", at)
    found = {"cited_text": cited or None, "title": word(citation.get("title")), "url": url}
    return as_citation(found, citation)


def _base64(value: Any, path: str) -> str:
    return _READ.text(as_base64(value), path)


def without(source: Json, *names: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in names}


_DELTAS: Mapping[str, Callable[[Blocks, Out, int, Any, str], None]] = {
    "text": Blocks._text_delta,
    "reasoningContent": Blocks._reasoning_delta,
    "toolUse": Blocks._call_delta,
    "toolResult": Blocks._result_delta,
    "citation": Blocks._citation_delta,
}

_GROWS: Mapping[str, tuple[str, str | None, Callable[[int, str], Event]]] = {
    # block: the member of a delta, its field, the event
    "text": ("text", None, text_delta),
    "reasoning": ("reasoningContent", "text", reasoning_delta),
    "toolUse": ("toolUse", "input", tool_call_delta),
}
_PLAIN = frozenset(["contentBlockIndex", "delta", "p"])

# The fields that are read; others are kept.
_MEDIUM_FIELDS = frozenset(["source"])
_REASONING_FIELDS = frozenset(["text", "signature", "redactedContent"])
# The protocol's own words, which as fields of a call would mean what Bedrock doesn't.
_NOT_A_CALLS_OWN = frozenset(["args", "arguments", "call_id", "error", "execution_status", "id", "index"])
