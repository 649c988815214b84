"""The items of a response by their places."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.formats.json_values import word
from rxdelta.formats.openai_responses.calls import CALLS
from rxdelta.formats.openai_responses.items import Item, Response
from rxdelta.formats.openai_responses.media import ImageItem
from rxdelta.formats.openai_responses.message import MessageItem
from rxdelta.formats.openai_responses.reading import READ, Json, Out, type_of
from rxdelta.formats.openai_responses.reasoning import ReasoningItem
from rxdelta.formats.openai_responses.tools import CallItem, ResultItem

__all__ = ["Output"]


class Output:
    """The items of a response, in the order in which they began."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._items: list[Item] = []
        self._newest_at: dict[int, Item] = {}  # by output index
        self._places: dict[str, int] = {}  # by item id, for providers that send no index
        self._last = -1

    def at(self, place: int) -> Item | None:
        return self._newest_at.get(place)

    def place_of(self, chunk: Json, item: Json | None = None) -> int:
        """The output index of a chunk. Without one, the item's id identifies it; a new item follows all others."""
        found = chunk.get("output_index")
        if found is not None:
            return READ.index(found, "output_index")
        item_id = word(chunk.get("item_id")) if item is None else word(item.get("id"))
        known = self._places.get(item_id or "")
        if known is not None:
            return known
        newest = self._newest_at.get(self._last)
        same = newest is not None and not newest.done and (item is None or not newest.is_another(item))
        return self._last if same else self._last + 1

    def begin(self, out: Out, chunk: Json, item: Json) -> Item:
        """The item that an event has: the one known at its place, else a new one."""
        place = self.place_of(chunk, item)
        known = self._newest_at.get(place)
        return self.add(out, place, item, "item") if known is None or known.is_another(item) else known

    def add(self, out: Out, place: int, item: Json, path: str) -> Item:
        kind = type_of(item, path)
        added = _class_of(kind)(self._response, place, kind, item)
        added.begin(out, item, path)
        self._newest_at[place] = added
        self._items.append(added)
        self._last = max(self._last, place)
        if added.id is not None:
            self._places.setdefault(added.id, place)
        self._response.growing.pop(place, None)
        return added

    def complete(self, out: Out, output: Sequence[Any], path: str, wrong: str | None) -> None:
        """Finish the open items with the response's own `output`, and add those that never came.

        Ids and places may differ from those so far. `wrong` is why the last item may be cut off.
        """
        unmatched = _Unmatched(self._items)
        found = [READ.mapping(item, f"{path}[{n}]") for n, item in enumerate(output)]
        by_id = [unmatched.with_id_of(item) for item in found]
        for n, item in enumerate(found):
            at = f"{path}[{n}]"
            known = by_id[n] or unmatched.first_like(item)
            if known is None:
                known = self.add(out, self._last + 1, item, at)
            if not known.done:
                # Only the last item can be cut off, and only if it does not say that it is complete.
                whole = item.get("status") == "completed" or (n + 1 < len(found) and known.pending is None)
                known.end(out, item, at, None if whole else wrong)

    def finish(self, out: Out, wrong: str | None) -> None:
        for item in self._items:
            if not item.done:
                item.finish(out, item.pending, "item", wrong)

    def flush(self, out: Out) -> None:
        for item in self._items:
            if not item.done:
                item.flush(out)


class _Unmatched:
    """The known items that the response's own `output` has not named yet."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._by_type: dict[str, deque[Item]] = {}
        self._by_id: dict[tuple[str, str], Item] = {}
        self._matched: set[int] = set()
        for item in items:
            self._by_type.setdefault(item.type, deque()).append(item)
            for name in (item.call_id, item.id):
                if name is not None:
                    self._by_id.setdefault((item.type, name), item)

    def with_id_of(self, item: Json) -> Item | None:
        kind = str(item.get("type"))
        for name in (word(item.get("call_id")), word(item.get("id"))):
            known = self._by_id.get((kind, name or ""))
            if known is not None and id(known) not in self._matched:
                self._matched.add(id(known))
                return known
        return None

    def first_like(self, item: Json) -> Item | None:
        """The first item of this type: the same one under another id, since nobody sends half of a kind."""
        waiting = self._by_type.get(str(item.get("type")), deque())
        while waiting:
            known = waiting.popleft()
            if id(known) not in self._matched:
                return known
        return None


def _class_of(kind: str) -> type[Item]:
    known = _ITEMS.get(kind)
    if known is not None:
        return known
    if kind in CALLS or kind.endswith("_call"):
        return CallItem
    return ResultItem if kind.endswith("_output") else Item


_ITEMS: Mapping[str, type[Item]] = {
    "message": MessageItem,
    "reasoning": ReasoningItem,
    "image_generation_call": ImageItem,
}
