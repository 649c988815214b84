"""Images and audio of a response."""

from __future__ import annotations

from collections.abc import Mapping

from rxdelta.core import events
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import word
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_responses.items import Item
from rxdelta.formats.openai_responses.notes import fields_beside
from rxdelta.formats.openai_responses.reading import READ, Content, Json, Out

__all__ = ["Audio", "ImageItem"]


class ImageItem(Item):
    """An image that the provider's own tool made. Its `result` is the data."""

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        fields = fields_beside(item, "type", "result", "status")
        self.block = self.response.start_block(out, {**fields, "type": "image", PROVIDER_TYPE: self.type})

    def finish_blocks(self, out: Out, item: Json | None, path: str, _wrong: str | None, /) -> None:
        content: Content = {"type": "image"}
        if item is not None:
            data = READ.text_of(item, "result", path)
            file_format = word(item.get("output_format"))
            content |= fields_beside(item, "type", "result")
            content |= {"data": data} if data else {}
            content |= {"mime_type": f"image/{_MIME.get(file_format, file_format)}"} if file_format else {}
        out.append(events.BlockFinish(self.block, content))


class Audio:
    """The audio of a response, which belongs to no item. Deltas exist for its data but not for its transcript."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._open = True
        self._transcript = GrowingList()

    def read(self, out: Out, chunk: Json) -> None:
        piece = READ.text_of(chunk, "delta", "")
        if not piece or not self._open:
            return
        if "transcript" not in chunk["type"]:
            out.append(events.DataDelta(self._block, piece))
            return
        self._transcript.add(piece, len(piece))
        self._emit_transcript(out, at_end=False)

    def flush(self, out: Out) -> None:
        self._emit_transcript(out, at_end=True)

    def _emit_transcript(self, out: Out, *, at_end: bool) -> None:
        pieces = self._transcript.take(at_end=at_end)
        if pieces is not None:
            out.append(events.BlockDelta(self._block, {"transcript": "".join(pieces)}))

    def finish(self, out: Out) -> None:
        if self._open:
            self.flush(out)
            out.append(events.BlockFinish(self._block))
        self._open = False


_MIME: Mapping[str, str] = {"jpg": "jpeg", "svg": "svg+xml"}
