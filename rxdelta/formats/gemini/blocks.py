"""The blocks of one candidate: texts and thoughts that signatures hang on, and audio in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import Event
from rxdelta.formats.base64_pieces import Base64Pieces
from rxdelta.formats.block_writer import BlockWriter

__all__ = ["Blocks"]

Json: TypeAlias = Mapping[str, Any]


class Blocks(BlockWriter):
    """Writes the blocks of one candidate. The current one is a text, a thought or an audio."""

    __slots__ = ("_audio",)

    def __init__(self, out: list[Event], choice: int, message_id: str | None) -> None:
        super().__init__(out, choice, message_id)
        self._audio = Base64Pieces()

    def write_text(self, type: str, text: str, fields: Json) -> None:
        if not text:
            self.sign(type, fields)
            return
        if self.type != type or self.is_signed_otherwise(fields):
            self.begin({**fields, "type": type, type: ""}, fields)
        elif fields:
            self.describe(fields)
        self.write(type, text)

    def sign(self, type: str, fields: Json) -> None:
        """Write the fields of an empty part: to the current block that they belong to, else in one of their own."""
        if not fields:
            return
        belongs = self.type == type or (self.type is not None and type == "text")
        if belongs and not self.is_signed_otherwise(fields):
            self.describe(fields)
        else:
            self.whole({**fields, "type": type, type: ""})

    def write_audio(self, data: str, mime_type: str, fields: Json) -> None:
        """Write a piece of audio: to the current block if that has the same type, as no piece says that it begins."""
        is_same = self.type == "audio" and self.known.get("mime_type") == (mime_type or None)
        if not is_same or self.is_signed_otherwise(fields):
            self.begin({**fields, "type": "audio"}, fields)
        else:
            self.describe(fields)
        self.add_data(self.current, self._audio.add(data))

    def end_current(self) -> None:
        if self.type == "audio":
            self.add_data(self.current, self._audio.rest())
        super().end_current()
