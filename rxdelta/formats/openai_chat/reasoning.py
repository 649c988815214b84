"""Reasoning beside the content: under `reasoning_content` and like names, `reasoning_details`, `thinking_blocks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import events
from rxdelta.formats.block_writer import BlockWriter
from rxdelta.formats.decoding import Fields
from rxdelta.formats.json_values import kept, others, word
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SENT_AS, SIGNED_BY
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
from rxdelta.formats.signatures import signed, via

__all__ = ["Reasoning"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields(FORMAT)


class Reasoning:
    """Reads the reasoning of one choice. Its text goes to the current block, if that is a reasoning."""

    __slots__ = ("_blocks", "_opaque", "_signed_by")

    def __init__(self, blocks: BlockWriter) -> None:
        self._blocks = blocks
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
            blocks.out.append(events.ProviderEvent("openai", sent_as, kept(entry)))
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
