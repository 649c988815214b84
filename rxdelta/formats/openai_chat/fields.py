"""The fields of a delta beside content and calls: reasoning, media, and tools that the provider runs itself.

Reasoning has many names (`reasoning_content` and the like, `reasoning_details`, `thinking_blocks`). Images come whole, audio is
streamed. Groq's `executed_tools` are the provider's own calls.
"""

from __future__ import annotations

from typing import Any

from rxdelta.core import events, freeze
from rxdelta.formats.block_events import BlockWriter
from rxdelta.formats.calls import given_id
from rxdelta.formats.decoding import Fields, GrowingList, Json, kept, others, word
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SENT_AS, SIGNED_BY, signed, via
from rxdelta.formats.openai_chat.tables import (
    FORMAT,
    REASONING_DETAILS,
    REASONING_ENCRYPTED,
    REASONING_NAMES,
    REASONING_OPAQUE,
    REASONING_TEXT,
    SIGNERS,
    THINKING_BLOCKS,
)

_READ = Fields(FORMAT)


class Reasoning:
    """Reads the reasoning of one choice. Its text goes to the current block, if that is a reasoning."""

    __slots__ = ("_blocks", "_opaque", "_provider", "_signed_by")

    def __init__(self, blocks: BlockWriter, provider: str) -> None:
        self._blocks = blocks
        self._provider = provider
        self._opaque = ""  # the newest, since it may be repeated
        self._signed_by: tuple[int, int] | None = None  # block, and index of the entry that had the signature

    def read(self, delta: Json, path: str) -> None:
        """Read a delta's reasoning. Gateways send it under several names at once; only the first counts."""
        if _FIELDS.isdisjoint(delta):
            return
        has_text = False
        for field in (REASONING_DETAILS, THINKING_BLOCKS):
            if delta.get(field) is not None and not has_text:
                at = f"{path}.{field}"
                for place, entry in enumerate(_READ.items(delta[field], at)):
                    has_text |= self.read_detail(entry, f"{at}[{place}]", field)
        for field in REASONING_NAMES:
            text = _READ.text_of(delta, field, path)
            if text:
                if not has_text:
                    self._blocks.write("reasoning", text, {SENT_AS: field})
                break
        opaque = _READ.text_of(delta, REASONING_OPAQUE, path)
        if opaque and opaque != self._opaque:
            self._opaque = opaque
            self._read_opaque(opaque)

    def _read_opaque(self, opaque: str) -> None:
        """Read what signs `reasoning_text`. It may come late."""
        fields = {SENT_AS: "reasoning_text", **signed(opaque, via(FORMAT, None))}
        if self._blocks.type in (None, "reasoning"):
            self._describe(fields)
        else:
            self._add_signed(fields)

    def read_detail(self, found: object, path: str, sent_as: str = REASONING_DETAILS) -> bool:
        """Read an entry of `reasoning_details` or `thinking_blocks`. Return whether it has text.

        An entry behind a signature continues the reasoning if it has the same `index`, else it begins another. The
        entries of `thinking_blocks` have no index: behind a signature each begins another.
        """
        blocks, entry = self._blocks, _READ.mapping(found, path)
        fields = others(entry, _DETAIL)
        if sent_as == THINKING_BLOCKS:
            fields[SENT_AS] = sent_as
        elif word(entry.get("type")) not in (None, REASONING_TEXT, REASONING_ENCRYPTED):
            fields[PROVIDER_TYPE] = entry["type"]
        index, data = entry.get("index"), _READ.text_of(entry, "data", path)
        texts = (_READ.text_of(entry, name, path) for name in _TEXTS)
        text = next(filter(None, texts), "")
        signature = _READ.text_of(entry, "signature", path)
        if data:
            redacted = {**fields, "type": "reasoning", REDACTED: True, "data": data, SIGNED_BY: FORMAT}
            blocks.whole(redacted, beside=True)
        if signature:
            fields |= signed(signature, via(FORMAT, SIGNERS.get(str(entry.get("format")))))
        if entry.keys().isdisjoint(_SAYING) and others(entry, _NAMING):  # its text has another name
            blocks.out.append(events.ProviderEvent(self._provider, sent_as, kept(entry)))
        if signature and not text and blocks.type not in (None, "reasoning"):
            # A late signature must not cut a text in two.
            self._add_signed(fields)
            return False
        if text:
            numbered = type(index) is int or sent_as == THINKING_BLOCKS
            if numbered and self._is_signed_by_another(index):
                blocks.end_current()
        if text or signature:
            self._describe(fields)
        if text:
            blocks.write("reasoning", text)
        if signature:
            self._signed_by = blocks.current, index if type(index) is int else -1
        return bool(text)

    def sign(self, signature: str, signed_by: str) -> None:
        """The signature of a part of the content. The newest of the current reasoning counts."""
        fields = signed(signature, signed_by)
        if self._blocks.type != "reasoning":
            self._blocks.begin({"type": "reasoning", "reasoning": "", **fields})
        elif self._blocks.is_signed_otherwise(fields):
            self._add_signed(fields)
        elif self._blocks.known.get("signature") != signature:
            self._blocks.change(self._blocks.current, fields)

    def _is_signed_by_another(self, index: object) -> bool:
        if self._signed_by is None or self._blocks.type != "reasoning":
            return False
        block, signer = self._signed_by
        return block == self._blocks.current and index != signer

    def _describe(self, fields: Json) -> None:
        """Add an entry's fields to the current reasoning, or to a new one."""
        if self._blocks.type != "reasoning":
            self._blocks.begin({"type": "reasoning", "reasoning": "", **fields}, fields)
        elif self._blocks.is_signed_otherwise(fields):
            self._add_signed(fields)
        else:
            self._blocks.describe(fields)

    def _add_signed(self, fields: Json) -> None:
        """Write a signature in an empty block of its own: a second one, since both go back, or one that is late."""
        self._blocks.whole({**fields, "type": "reasoning", "reasoning": ""}, beside=True)


_FIELDS = frozenset([*REASONING_NAMES, REASONING_OPAQUE, REASONING_DETAILS, THINKING_BLOCKS])
_TEXTS = ("text", "summary", "thinking")
_SAYING = frozenset(["data", "signature", *_TEXTS])
_DETAIL = _SAYING | {"type", "index"}
_NAMING = frozenset(["type", "index", "id", "format"])


def read_image(blocks: BlockWriter, entry: Json, path: str) -> None:
    """Write an image as a block, with its data or with its address."""
    found, at = entry.get("image_url"), f"{path}.image_url"
    source: Json = {"url": found} if isinstance(found, str) else _READ.mapping(found, at)
    url = _READ.text_of(source, "url", at)
    fields = others(entry, _IMAGE) | others(source, _URL)
    head, comma, data = url.partition(",")
    if not url:
        blocks.pass_on(entry)
    elif comma and head.startswith("data:") and head.endswith(";base64"):
        mime_type = head[len("data:") : -len(";base64")].partition(";")[0]
        blocks.whole({**fields, "type": "image", "mime_type": mime_type or None}, data)
    else:
        blocks.whole({**fields, "type": "image", "url": url})


def read_images(blocks: BlockWriter, entries: object, path: str) -> None:
    for place, entry in enumerate(_READ.items(entries, path)):
        at = f"{path}[{place}]"
        read_image(blocks, _READ.mapping(entry, at), at)


class Audio:
    """Reads the audio of one choice: a block that stays open until the finish reason.

    Attributes:
        block: The number of the open block, `None` if there is none.
    """

    __slots__ = ("_blocks", "_fields", "_transcript", "block")

    def __init__(self, blocks: BlockWriter) -> None:
        self.block: int | None = None
        self._blocks = blocks
        self._fields: dict[str, Any] = {}
        self._transcript = GrowingList()

    def read(self, found: object, path: str) -> None:
        entry = _READ.mapping(found, path)
        fields = others(entry, _AUDIO)
        data, transcript = _READ.text_of(entry, "data", path), _READ.text_of(entry, "transcript", path)
        if not (fields or data or transcript):
            return
        block = self.block
        if block is None:
            self._fields, self._transcript = fields, GrowingList()
            block = self.block = self._blocks.start({**fields, "type": "audio"})
        elif new := {name: value for name, value in fields.items() if self._fields.get(name) != value}:
            self._fields.update(new)
            self._blocks.change(block, new)
        self._blocks.add_data(block, data)
        if transcript:
            self._transcript.add(transcript, len(transcript))
            self._emit_transcript(block, at_end=False)

    def finish(self, block: int) -> None:
        self.block = None
        self._emit_transcript(block, at_end=True)
        self._blocks.finish(block)

    def _emit_transcript(self, block: int, *, at_end: bool) -> None:
        pieces = self._transcript.take(at_end=at_end)
        if pieces is not None:
            self._blocks.change(block, {"transcript": "".join(pieces)})


_IMAGE = frozenset(["type", "index", "image_url"])
_URL = frozenset(["url", "type"])
_AUDIO = frozenset(["data", "transcript", "type", "index"])


class ServerTools:
    """Reads the tools of one choice. Each comes whole, and again with its output."""

    __slots__ = ("_blocks", "_call_ids", "_have_output")

    def __init__(self, blocks: BlockWriter) -> None:
        self._blocks = blocks
        self._call_ids: dict[object, str] = {}
        self._have_output: set[object] = set()

    def read(self, entries: object, path: str) -> None:
        for place, found in enumerate(_READ.items(entries, path)):
            entry = _READ.mapping(found, f"{path}[{place}]")
            index, given = entry.get("index"), word(entry.get("id"))
            key = index if type(index) is int else given or word(entry.get("arguments")) or place
            fields = others(entry, _EXECUTED)
            name = word(entry.get("name")) or word(entry.get("type"))
            if key not in self._call_ids and name is None:
                self._blocks.pass_on(entry)
                continue
            if key not in self._call_ids:
                call_id = self._call_ids[key] = given_id(given or "") or self._blocks.made_up_id()
                call = {"id": call_id, "name": name, "args": freeze(entry.get("arguments"), lenient=True)}
                self._blocks.whole({**fields, "type": "server_tool_call", **call})
            if entry.get("output") is not None and key not in self._have_output:
                self._have_output.add(key)
                output = freeze(entry["output"], lenient=True)
                result = {"tool_call_id": self._call_ids[key], "output": output}
                self._blocks.whole({**fields, "type": "server_tool_result", **result})


_EXECUTED = frozenset(["index", "id", "type", "name", "arguments", "output"])
