"""Images, which come whole, and audio, which is streamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.formats.block_writer import BlockWriter
from rxdelta.formats.decoding import Fields
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import others
from rxdelta.formats.openai_chat.tables import FORMAT

__all__ = ["Audio", "read_image", "read_images"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields(FORMAT)


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
