"""The items of a response's output."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rxdelta.core import Event, events
from rxdelta.formats.decoding import word
from rxdelta.formats.openai_responses.reading import Content, Json, Out, call_id_of

if TYPE_CHECKING:
    from rxdelta.formats.openai_responses.decoder import Response

__all__ = ["Growing", "Item"]


class Growing:
    """A text that comes in pieces: which they are, and where they go."""

    __slots__ = ("at", "block", "grow", "length", "part", "takes")

    def __init__(self, takes: str, part: str | None, block: int, grow: Callable[[int, str], Event]) -> None:
        self.takes = takes
        self.part = part  # the name of the index that tells it from others of its item
        self.at = -1
        self.block = block
        self.grow = grow
        self.length = 0


class Item:
    """An item of the output: its blocks, and what it takes. This one is none that is known, and kept whole."""

    READS: ClassVar[Mapping[str, Callable[[Any, Out, Json], bool]]] = {}

    def __init__(self, response: Response, place: int, kind: str, item: Json) -> None:
        self.response = response
        self.place = place
        self.type = kind
        self.id = word(item.get("id"))
        self.call_id = call_id_of(item.get("call_id"))
        self.done = False
        self.pending: Json | None = None  # the item, if it has come whole but may be cut off
        self.block = -1

    def is_another(self, item: Json) -> bool:
        """Whether this is not the item that is known at the place.

        While that is open, its own id says that it is the same, whatever call it is now, and another says nothing.
        """
        kind, call_id, item_id = item.get("type"), call_id_of(item.get("call_id")), word(item.get("id"))
        if kind != self.type:
            return True
        if call_id is not None and self.call_id is not None:
            same_item = item_id is not None and item_id == self.id
            return call_id != self.call_id and (self.done or not same_item)
        return self.done and item_id is not None and item_id != self.id

    def waits(self, _item: Json, /) -> bool:
        """Whether only the end tells what this item is worth."""
        return False

    def learn(self, item: Json) -> None:
        """What names it: the first item id, which its pieces name, and the last call id, which the provider stores."""
        self.id = self.id or word(item.get("id"))
        self.call_id = call_id_of(item.get("call_id")) or self.call_id

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        self.block = self.response.start(out, {"type": "non_standard", "value": item})

    def read(self, out: Out, kind: str, chunk: Json) -> bool:
        """Whether an event of the item could be read."""
        on = self.READS.get(kind)
        if on is not None:
            return on(self, out, chunk)
        status = kind.removeprefix(f"response.{self.type}.")
        if status == kind or "." in status or self.block < 0 or not _STATUS_EVENT.issuperset(chunk):
            return False
        self.change(out, {"status": status})
        return True

    def finish(self, out: Out, item: Json | None, _path: str, _wrong: str | None = None, /) -> None:
        self.done = True
        out.append(
            events.BlockFinish(self.block, None if item is None else {"type": "non_standard", "value": item})
        )

    def tell(self, _out: Out, /) -> None:
        """What is told now and then only, up to now."""

    def change(self, out: Out, fields: Content) -> None:
        out.append(events.BlockDelta(self.block, fields))

    def grows(self, growing: Growing) -> None:
        self.response.growing[self.place] = growing


_STATUS_EVENT = frozenset(["type", "item_id", "output_index", "sequence_number", "obfuscation"])
