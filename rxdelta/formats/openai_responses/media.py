"""Images and audio of a response."""

from __future__ import annotations

from collections.abc import Mapping

from rxdelta.core import events
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import word
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_responses.items import Item
from rxdelta.formats.openai_responses.notes import fields_beside
from rxdelta.formats.openai_responses.reading import READ, Content, Json, Out, delta_of, optional_text

__all__ = ["Audio", "ImageItem"]


class ImageItem(Item):
    """An image that the provider's own tool made. Its `result` is the data, and the frames of the unfinished image before."""

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        fields = fields_beside(item, "type", "result", "status")
        self.block = self.response.start_block(out, {**fields, "type": "image", PROVIDER_TYPE: self.type})
        self._frame = -1  # the newest

    def add_frame(self, out: Out, chunk: Json) -> bool:
        """Read a frame, which replaces those before."""
        frame = optional_text(chunk, "partial_image_b64", "")
        if frame is None:
            raise READ.fail("partial_image_b64", "a string", None)
        found = chunk.get("partial_image_index")
        at = self._frame + 1 if found is None else READ.index(found, "partial_image_index")
        if at < self._frame or not frame:
            return False
        self._frame = at
        out.append(events.BlockDelta(self.block, {"data": frame, **_mime_type(chunk)}))
        return True

    def finish_blocks(self, out: Out, item: Json | None, path: str, _wrong: str | None, /) -> None:
        content: Content = {"type": "image"}
        data = "" if item is None else READ.text_of(item, "result", path)
        if item is not None:
            content |= fields_beside(item, "type", "result")
            content |= _mime_type(item)
        if data or self._frame >= 0:
            content["data"] = data  # an unfinished image is none
        out.append(events.BlockFinish(self.block, content))

    READS = {"response.image_generation_call.partial_image": add_frame}


def _mime_type(fields: Json) -> Content:
    file_format = word(fields.get("output_format"))
    return {"mime_type": f"image/{_MIME.get(file_format, file_format)}"} if file_format else {}


class Audio:
    """The audio of a response, which belongs to no item. Deltas exist for its data but not for its transcript."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._open = True
        self._transcript = GrowingList()

    def read(self, out: Out, chunk: Json) -> None:
        piece = delta_of(chunk) if chunk["type"].endswith(".delta") else ""
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
