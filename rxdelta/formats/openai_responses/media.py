"""Images and audio of the output."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping

from rxdelta.core import events
from rxdelta.formats.decoding import due, word
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_responses.items import Item
from rxdelta.formats.openai_responses.reading import READ, Content, Json, Out, rest

__all__ = ["Audio", "Image"]


class Image(Item):
    """A picture that the provider made. Its `result` is the data."""

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        fields = rest(item, "type", "result", "status")
        self.block = self.response.start(out, {**fields, "type": "image", PROVIDER_TYPE: self.type})

    def finish(self, out: Out, item: Json | None, path: str, _wrong: str | None = None, /) -> None:
        content: Content = {"type": "image"}
        if item is not None:
            data = READ.text_of(item, "result", path)
            made = word(item.get("output_format"))
            content |= rest(item, "type", "result")
            content |= {"data": data} if data else {}
            content |= {"mime_type": f"image/{_MIME.get(made, made)}"} if made else {}
        out.append(events.BlockFinish(self.block, content))
        self.done = True


class Audio:
    """The audio of a response, which belongs to no item."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.open = True
        self._transcript: list[str] = []  # the protocol has no delta for it, only the whole again
        self._length = self._told = 0

    def read(self, out: Out, chunk: Json) -> None:
        piece = READ.text_of(chunk, "delta", "")
        if not piece or not self.open:
            return
        if "transcript" not in chunk["type"]:
            out.append(events.DataDelta(self.block, piece))
            return
        self._transcript.append(piece)
        self._length += len(piece)
        if due(self._length, self._told):
            self.tell(out)

    def tell(self, out: Out) -> None:
        if self._length > self._told:
            self._told = self._length
            self._transcript = ["".join(self._transcript)]
            out.append(events.BlockDelta(self.block, {"transcript": self._transcript[0]}))

    def finish(self, out: Out, /) -> None:
        if self.open:
            self.tell(out)
            out.append(events.BlockFinish(self.block))
        self.open = False


_MIME: Mapping[str | None, str] = {"jpg": "jpeg", "svg": "svg+xml"}
