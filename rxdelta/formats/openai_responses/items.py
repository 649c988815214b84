"""An item of a response, the state that all items of a response share, and its images and audio."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rxdelta.core import Event, events, real_id
from rxdelta.formats.decoding import NOTHING, GrowingList, Json, word
from rxdelta.formats.notes import PROVIDER_TYPE, SIGNED_BY
from rxdelta.formats.openai_responses.notes import (
    FORMAT,
    READ,
    Content,
    Out,
    delta_of,
    fields_beside,
    given_id_of,
    optional_text,
)


class Growing:
    """A text that grows: its block, and the chunks with its deltas."""

    __slots__ = ("at", "block", "delta", "index", "length", "newest", "takes")

    def __init__(self, takes: str, index: str | None, block: int, delta: Callable[[int, str], Event]) -> None:
        self.takes = takes  # the type of the chunks
        self.index = index  # the name of the chunks' index, where an item has several texts
        self.at = -1  # its value for this text
        self.block = block
        self.delta = delta  # makes the event
        self.length = 0
        self.newest = ""  # piece


class Response:
    """The message of a response: its beginning, the numbers of its blocks, and the state that its items share."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.started = False
        # By output index: the text that the next delta probably continues.
        self.growing: dict[int, Growing] = {}
        self.tools: Sequence[Any] = ()  # of the request, as the response repeats them
        self.calls_client = False
        self.search: Item | None = None  # the newest tool search, which its results do not name
        self._blocks = 0

    def begin(self, out: Out, response: Json, path: str) -> None:
        if self.started:
            return
        self.id = real_id(READ.text(response.get("id"), f"{path}id"))
        self.model = READ.text(response.get("model"), f"{path}model") or None
        self.started = True
        out.append(events.MessageStart(self.id, self.model, None, message_fields(response)))

    def start_block(self, out: Out, content: Content) -> int:
        """Start a block, and the message first where its own beginning was lost."""
        self.begin(out, {}, "")
        number = self._blocks
        self._blocks += 1
        out.append(events.BlockStart(number, content))
        return number


class Item:
    """An item of the output, which turns its events into blocks. An unknown type is kept whole."""

    READS: ClassVar[Mapping[str, Callable[[Any, Out, Json], bool]]] = {}
    """The events of the item by type. A reader returns False for an event that it has no use for."""

    def __init__(self, response: Response, place: int, kind: str, item: Json) -> None:
        self.response = response
        self.place = place
        self.type = kind
        self.id = word(item.get("id"))
        self.call_id = given_id_of(item, "call_id")
        self.block = -1
        self.done = False
        self.pending: Json | None = None  # the whole item, while only the response's end can complete it
        self.mark: int | None = None  # of the whole item

    def is_another(self, item: Json) -> bool:
        """Whether `item` is not the one known at its place.

        While this item is open, the same id identifies it even under a new `call_id`, and a new id means nothing.
        """
        if item.get("type") != self.type:
            return True
        call_id, item_id = given_id_of(item, "call_id"), word(item.get("id"))
        if call_id is not None and self.call_id is not None:
            same_item = item_id is not None and item_id == self.id
            return call_id != self.call_id and (self.done or not same_item)
        return self.done and item_id is not None and item_id != self.id

    def fits(self, _item: Json, /) -> bool:
        """Whether what has come of the item is as long as this whole item, and ends as it does."""
        return False

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        self.block = self.response.start_block(out, _unknown(item))

    def read(self, out: Out, kind: str, chunk: Json) -> bool:
        """Read an event of the item. False if it has no use for it."""
        reader = self.READS.get(kind)
        if reader is not None:
            return reader(self, out, chunk)
        status = kind.removeprefix(f"response.{self.type}.")
        if status == kind or "." in status or self.block < 0 or not _STATUS_EVENT.issuperset(chunk):
            return False
        out.append(events.BlockDelta(self.block, {"status": status}))
        return True

    def read_late(self, _out: Out, _kind: str, _chunk: Json, /) -> bool:
        """Read an event of the item that comes after its end. False if it has no use for it."""
        return False

    def end(self, out: Out, item: Json, path: str, wrong: str | None = None) -> None:
        """Finish with the whole item, unless only the response's end shows whether it is complete."""
        self.id = self.id or word(item.get("id"))  # the first one: deltas name it
        self.call_id = given_id_of(item, "call_id") or self.call_id  # the last one: the provider stores it
        if self.is_doubtful(item):
            self.pending = item
        else:
            self.finish(out, item, path, wrong)

    def is_doubtful(self, _item: Json, /) -> bool:
        """Whether the whole item may still have been cut off."""
        return False

    def finish(self, out: Out, item: Json | None, path: str, wrong: str | None = None) -> None:
        """Finish the blocks, with the whole item if it is known. `wrong` is why a call may be cut off."""
        self.finish_blocks(out, item, path, wrong)
        self.done = True
        self.response.growing.pop(self.place, None)

    def finish_blocks(self, out: Out, item: Json | None, _path: str, _wrong: str | None, /) -> None:
        out.append(events.BlockFinish(self.block, None if item is None else _unknown(item)))

    def flush(self, _out: Out, /) -> None:
        """Emit what has been held back, as the stream breaks off."""

    def grows(self, growing: Growing) -> None:
        self.response.growing[self.place] = growing


def message_fields(response: Json) -> Content:
    """The fields of a response that describe the message and not the request."""
    return {
        name: value for name, value in response.items() if name not in _READ_OR_ASKED and value not in NOTHING
    }


_STATUS_EVENT = frozenset(["type", "item_id", "output_index", "sequence_number", "obfuscation"])

# Fields that events have a place for, and those that repeat the request.
_READ_OR_ASKED = frozenset([
    "id", "object", "model", "output", "output_text", "usage", "status", "error", "tools", "tool_choice",
    "instructions", "text", "temperature", "top_p", "parallel_tool_calls", "truncation",
    "max_output_tokens", "max_tool_calls", "reasoning", "store", "user", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "top_logprobs",
    "frequency_penalty", "presence_penalty", "background",
])  # fmt: skip


def _unknown(item: Json) -> dict[str, Any]:
    """An item of another kind as it is. Encrypted content in it, such as a compaction, goes back nowhere else."""
    note = {SIGNED_BY: FORMAT} if item.get("encrypted_content") else {}
    return {"type": "non_standard", "value": {**item, **note}}


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
