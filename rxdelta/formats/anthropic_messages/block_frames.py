"""The blocks of a message that is written to a client of Anthropic's: of each, what the client has."""

# Blocks are untyped JSON.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias, cast

from rxdelta.core import Block, BlockFold, Citation, ContentPart, Limits, ToolCall, thaw
from rxdelta.formats.anthropic_messages.request import CITATIONS, written_block
from rxdelta.formats.anthropic_messages.tables import FORMAT, RESULT_SUFFIX, SERVER_CALLS
from rxdelta.formats.notes import REDACTED
from rxdelta.formats.reply import CallItem, Item, Part, Reply, Run, TextItem, Writer
from rxdelta.formats.signatures import ANTHROPIC, readable, signature_of
from rxdelta.framing import NamedFrame

__all__ = ["Content", "own_block", "written_citation"]

Json: TypeAlias = dict[str, Any]

_READERS: Final = frozenset([FORMAT, ANTHROPIC])


class Content(Reply):
    """What the client has of the message.

    Attributes:
        unseen: The ids of the provider's calls that the client doesn't see.
    """

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self.unseen: set[object] = set()

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type == "reasoning" and not self.writer.reasoning:
            return Part(run, fold)
        if isinstance(block, ToolCall) and block.type != "server_tool_call":
            return _Call(run, fold)
        if block.type in ("text", "refusal"):
            return _Text(run, fold)
        if isinstance(block, ContentPart) and block.type == "reasoning" and not block.options.get(REDACTED):
            return _Thinking(run, fold)
        return _Whole(run, fold)


class _Frames(Item):
    """What all blocks have."""

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.run.choice.writer.out.append(NamedFrame(type=kind, index=self.place, **fields))

    def write_end(self) -> None:
        self.emit("content_block_stop")


class _Text(_Frames, TextItem):
    def write_start(self) -> None:
        self.emit("content_block_start", content_block={"type": "text", "text": ""})

    def write_piece(self, piece: str, /) -> None:
        self.emit("content_block_delta", delta={"type": "text_delta", "text": piece})

    def write_end(self) -> None:
        for citation in self.block.citations:
            if (written := written_citation(citation)) is not None:
                self.emit("content_block_delta", delta={"type": "citations_delta", "citation": written})
        super().write_end()


class _Thinking(_Frames, TextItem):
    """A reasoning. Without a signature of Anthropic's, the client leaves it out of its next request."""

    def is_shown(self) -> bool:
        return signature_of(self.block, _READERS) is not None

    def write_start(self) -> None:
        self.emit("content_block_start", content_block={"type": "thinking", "thinking": "", "signature": ""})

    def write_piece(self, piece: str, /) -> None:
        self.emit("content_block_delta", delta={"type": "thinking_delta", "thinking": piece})

    def write_end(self) -> None:
        if (signature := signature_of(self.block, _READERS)) is not None:
            self.emit("content_block_delta", delta={"type": "signature_delta", "signature": signature})
        super().write_end()


class _Call(_Frames, CallItem):
    takes_unreadable = (
        False  # the protocol has no place for it, and some clients repair what they can't read, and run it
    )

    def arguments(self) -> str:
        return _json(self.arguments_as_object())

    def write_start(self) -> None:
        block = {**(written_block(self.call) or {}), "type": "tool_use", "id": self.call_id, "input": {}}
        self.emit("content_block_start", content_block=block)

    def write_piece(self, piece: str, /) -> None:
        self.emit("content_block_delta", delta={"type": "input_json_delta", "partial_json": piece})


class _Whole(_Frames):
    """A block that only Anthropic's clients know: redacted thinking, the calls that Anthropic runs, their results, …"""

    def is_shown(self) -> bool:
        block, unseen = self.fold.block, cast("Content", self.run.choice).unseen
        own = own_block(block)
        if own is None:
            if isinstance(block, ToolCall):
                unseen.add(block.call_id)
            return False
        call_id = own.get("tool_use_id", self)  # only a result has it
        is_name = call_id is None or isinstance(call_id, str)
        return not (is_name and call_id in unseen)  # the API refuses a result without its call

    def write_end(self) -> None:
        block = own_block(self.fold.block) or {}
        given: Any = block.get("input")
        if block["type"] == "compaction":
            block, summary = {**block, "content": None}, block.get("content")
            self.emit("content_block_start", content_block=block)
            self.emit("content_block_delta", delta={"type": "compaction_delta", "content": summary})
        else:
            self.emit("content_block_start", content_block=block if given is None else {**block, "input": {}})
        if given:
            self.emit("content_block_delta", delta={"type": "input_json_delta", "partial_json": _json(given)})
        super().write_end()


def own_block(block: Block) -> Json | None:
    """A block of a kind that only Anthropic has, in its form; `None` for other blocks, and for other vendors'."""
    known = readable(block, _READERS)
    found = None if known is None else written_block(known)
    if found is None or not (found["type"] in _OWN or found["type"].endswith(RESULT_SUFFIX)):
        return None
    return found


def written_citation(citation: Citation) -> Json | None:
    """A citation in Anthropic's form: its own, or an address; `None` for a source without one."""
    raw: Json = thaw(citation.raw)
    if raw.get("type") in CITATIONS:
        return raw
    if not citation.url:
        return None
    known = {"cited_text": citation.cited_text or "", "title": citation.title, "url": citation.url}
    return {"type": "web_search_result_location", "encrypted_index": "", **known}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_OWN: Final = frozenset(["redacted_thinking", *SERVER_CALLS, "fallback", "compaction", "container_upload"])
