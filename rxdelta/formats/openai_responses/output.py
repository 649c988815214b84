"""The items of a response by their places."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.formats.decoding import NOTHING, Json, word
from rxdelta.formats.openai_responses.calls import CALLS
from rxdelta.formats.openai_responses.items import ImageItem, Item, Response
from rxdelta.formats.openai_responses.message import MessageItem, ReasoningItem
from rxdelta.formats.openai_responses.notes import READ, Out, type_of
from rxdelta.formats.openai_responses.tools import CallItem, ResultItem


class Output:
    """The items of a response, in the order in which they began.

    The place of an item, its output index, counts as long as the content doesn't contradict it. An event at a place where
    nothing has been announced, or at that of another type of item, belongs to the open item of its type that has its id,
    or else to the only one that has been announced and has nothing yet.
    """

    def __init__(self, response: Response) -> None:
        self._response = response
        self._items: list[Item] = []
        self._newest_at: dict[int, Item] = {}  # by output index
        self._places: dict[str, int] = {}  # by item id, for providers that send no index
        self._newest_of: dict[str, Item] = {}  # by type
        self._named: dict[tuple[str, str], Item] = {}  # the newest by type and id
        # Those that are announced and have nothing yet, by type.
        self._empty: dict[str, dict[Item, None]] = {}
        self._ended: dict[tuple[str, int], Item] = {}  # texts that have ended, by type and mark
        self._announces = False
        self._last = -1

    def of_event(self, chunk: Json, kind: str, implied: str | None) -> Item | None:
        """The item of an event; `None` if it begins one.

        Args:
            chunk: The event.
            kind: Its type.
            implied: The type of its item, if the event shows it.
        """
        place = self.place_of(chunk)
        item = self._newest_at.get(place)
        if implied is None or (item is not None and (item.type == implied or _takes(item, kind, implied))):
            return item
        found = self._astray(implied, place, chunk, "item_id")
        if found is not None:
            self._move(found, place)
        return found

    def fed(self, item: Item) -> None:
        """Something has come of the item."""
        self._empty.get(item.type, {}).pop(item, None)

    def _astray(self, kind: str, place: int, fields: Json, *names: str) -> Item | None:
        """The open item of this type that fields belong to, where their place has none or another."""
        for name in names:
            found = self._named.get((kind, word(fields.get(name)) or ""))
            if found is not None and not found.done:
                return found
        newest, empty = self._newest_of.get(kind), self._empty.get(kind, ())
        if newest is not None and not newest.done and newest.place == place:
            return newest  # displaced by an event of another type
        return next(iter(empty)) if len(empty) == 1 else None

    def _move(self, item: Item, place: int) -> None:
        """Put an item at the place that its events name."""
        if self._newest_at.get(item.place) is item:
            del self._newest_at[item.place]
        self._response.growing.pop(item.place, None)
        self._response.growing.pop(place, None)
        item.place, self._newest_at[place] = place, item
        self._last = max(self._last, place)

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

    def begin(self, out: Out, chunk: Json, item: Json) -> None:
        """Begin an announced item, unless it is known at its place."""
        place = self.place_of(chunk, item)
        known = self._newest_at.get(place)
        self._announces = True
        if known is None or known.is_another(item):
            added = self.add(out, place, item, "item")
            self._empty.setdefault(added.type, {})[added] = None

    def end(self, out: Out, chunk: Json, item: Json) -> None:
        """End the item that an event has whole: the one known at its place, else the one that it belongs to."""
        place = self.place_of(chunk, item)
        known = self._newest_at.get(place)
        if known is None or known.is_another(item):
            known = self._open_like(place, item)
            if known is not None:
                self._move(known, place)
            elif self._is_repeated(item):
                return
            else:
                known = self.add(out, place, item, "item")
        if known.done:
            return
        known.end(out, item, "item")
        self.fed(known)
        known.mark = _mark(item)
        if known.type in _TEXTS:
            self._ended[known.type, known.mark] = known

    def _open_like(self, place: int, item: Json) -> Item | None:
        kind = type_of(item, "item")
        found = self._astray(kind, place, item, "call_id", "id")
        if found is None or found.is_another(item):
            newest = self._newest_of.get(kind)
            found = newest if newest is not None and not newest.done and newest.fits(item) else None
        return found

    def _is_repeated(self, item: Json) -> bool:
        """Whether the item repeats a text that has ended, at a place where no item was announced."""
        return self._announces and (str(item.get("type")), _mark(item)) in self._ended

    def add(self, out: Out, place: int, item: Json, path: str) -> Item:
        kind = type_of(item, path)
        added = _class_of(kind)(self._response, place, kind, item)
        added.begin(out, item, path)
        self._newest_at[place] = self._newest_of[kind] = added
        self._items.append(added)
        self._last = max(self._last, place)
        if added.id is not None:
            self._places.setdefault(added.id, place)
        for name in (added.id, added.call_id):
            if name is not None:
                self._named[kind, name] = added
        self._response.growing.pop(place, None)
        return added

    def complete(self, out: Out, output: Sequence[Any], path: str, wrong: str | None) -> None:
        """Finish the open items with the response's own `output`, and add those that never came.

        Ids and places may differ from those so far. `wrong` is why the last item may be cut off.
        """
        unmatched = _Unmatched(self._items)
        found = [READ.mapping(item, f"{path}[{n}]") for n, item in enumerate(output)]
        named = [unmatched.with_id_of(item) for item in found]
        matched = [one or unmatched.with_content_of(item) for one, item in zip(named, found, strict=True)]
        for n, item in enumerate(found):
            at = f"{path}[{n}]"
            known = matched[n] or unmatched.first_like(item)
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
        self._by_mark: dict[tuple[str, int], deque[Item]] = {}
        self._matched: set[int] = set()
        for item in items:
            self._by_type.setdefault(item.type, deque()).append(item)
            for name in (item.call_id, item.id):
                if name is not None:
                    self._by_id.setdefault((item.type, name), item)
            if item.mark is not None:
                self._by_mark.setdefault((item.type, item.mark), deque()).append(item)

    def with_id_of(self, item: Json) -> Item | None:
        kind = str(item.get("type"))
        for name in (word(item.get("call_id")), word(item.get("id"))):
            known = self._by_id.get((kind, name or ""))
            if known is not None and id(known) not in self._matched:
                self._matched.add(id(known))
                return known
        return None

    def with_content_of(self, item: Json) -> Item | None:
        """The first item that ended with the same content: the same one under another id."""
        return self._first(self._by_mark.get((str(item.get("type")), _mark(item))))

    def first_like(self, item: Json) -> Item | None:
        """The first item of this type: the same one under another id, since nobody sends half of a kind."""
        return self._first(self._by_type.get(str(item.get("type"))))

    def _first(self, waiting: deque[Item] | None) -> Item | None:
        while waiting:
            known = waiting.popleft()
            if id(known) not in self._matched:
                self._matched.add(id(known))
                return known
        return None


def _mark(item: Json) -> int:
    """A number for the content of a whole item."""
    said = ((name, value) for name, value in item.items() if name not in _NAMES and value not in NOTHING)
    return hash(frozenset(said))


def _takes(item: Item, kind: str, implied: str) -> bool:
    """Whether an event that shows another type of item is this item's all the same.

    The end of a part begins no other item: it may be a late one.
    """
    known = kind.endswith(".done") if item.done else kind in item.READS
    return known or implied not in _TEXTS or type(item) is Item


def _class_of(kind: str) -> type[Item]:
    known = _ITEMS.get(kind)
    if known is not None:
        return known
    if kind in CALLS or kind.endswith("_call"):
        return CallItem
    return ResultItem if kind.endswith("_output") else Item


_NAMES = frozenset(["id", "call_id", "status"])
_TEXTS = frozenset(["message", "reasoning"])

_ITEMS: Mapping[str, type[Item]] = {
    "message": MessageItem,
    "reasoning": ReasoningItem,
    "image_generation_call": ImageItem,
}
