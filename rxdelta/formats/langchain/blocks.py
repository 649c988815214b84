"""The blocks of one message: which one a piece continues, and the events that begin, change and finish it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from rxdelta.core import Event, events, reasoning_delta, text_delta, tool_call_delta
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.langchain.fields import Index, Json, part_index
from rxdelta.formats.langchain.merging import MergedFields
from rxdelta.formats.tool_calls import CUT_OFF, arguments_after_end, invalid_call

__all__ = ["Block", "Blocks", "CallBlock", "Place"]

B = TypeVar("B", bound="Block")


class Place(NamedTuple):
    """Where LangChain has a block.

    Attributes:
        space: What the index counts: the parts of the content (`part`), the calls beside it (`call`), and others.
        lc_index: The index by which later pieces continue the block; `None` if none can.
        label: A string index by which nothing is continued, but which the block's own index shows.
    """

    space: str
    lc_index: Index | None
    label: str = ""

    @classmethod
    def of_part(cls, value: object, path: str) -> Place:
        index = part_index(value, path)
        return cls("part", index, value if index is None and isinstance(value, str) else "")


class Block:
    """What is remembered of a block, to find and to continue it.

    Attributes:
        key: The index that its events have.
        family: The kind of its deltas, a key of `_MAKE_DELTA`.
        id: The provider's.
        space: Of its place.
        part_type: The type of the part with which it began.
        summary_part: The part of a reasoning's summary that was written last.
    """

    __slots__ = ("citations", "family", "fields", "id", "key", "part_type", "space", "summary_part")

    def __init__(self, key: str, space: str, family: str, block_id: str | None, content: Json) -> None:
        self.key = key
        self.space = space
        self.family = family
        self.id = block_id
        self.fields = MergedFields(_own_fields(family, content))
        self.part_type = family
        self.summary_part: object = None
        self.citations = GrowingList()


class CallBlock(Block):
    """A call's block.

    Attributes:
        error: Why its source marked it as invalid; `None` if it didn't.
        late_is_known: Whether arguments have come after its end.
        expects_more: Whether its arguments can't be complete yet.
    """

    __slots__ = ("error", "expects_more", "has_arguments", "late_is_known", "name")

    def __init__(self, key: str, space: str, family: str, block_id: str | None, content: Json) -> None:
        super().__init__(key, space, family, block_id, content)
        self.name = ""
        self.error: str | None = None
        self.has_arguments = False
        self.expects_more = False
        self.late_is_known = False

    def fault(self, wrong: str | None) -> str | None:
        """Why the call must not run, if it is one that the client would run. `wrong` is a reason from outside."""
        if self.family != "tool_call":
            return None
        if wrong is not None:
            return wrong
        return self.error or (None if self.name.strip() else "the call has no name")


class Blocks:
    """Finds blocks and writes their events.

    The events stay here until they are taken. After a malformed chunk, those from before its fault are taken
    together with the next chunk's.
    """

    def __init__(self) -> None:
        self.count = 0
        self.events: list[Event] = []
        self.prose: Block | None = None
        """The block being written of a text that has no index."""
        self.calls_client = False
        """Whether a call for the client has begun."""
        self._newest_call: CallBlock | None = None
        self._grown_call: CallBlock | None = None
        self._open: dict[str, Block] = {}
        self._ended: dict[Place, list[Block]] = {}
        self._by_place: dict[Place, list[Block]] = {}

    def take_events(self) -> Sequence[Event]:
        taken, self.events = self.events, []
        return taken

    def find(self, place: Place, part_id: str | None) -> Block | None:
        """The block that a piece continues, as LangChain's `merge_lists` finds it."""
        if place.lc_index is None:
            return None
        found = [
            block
            for block in self._by_place.get(place, ())
            if part_id is None or block.id is None or block.id == part_id
        ]
        if len(found) < 2:
            return found[0] if found else None
        if part_id is None:
            return next(
                (block for block in found if isinstance(block, CallBlock) and block.expects_more), found[-1]
            )
        return next((block for block in found if block.id == part_id), found[0])

    def begin(self, make: type[B], place: Place, family: str, block_id: str | None, content: Json) -> B:
        key = f"{place.space}:{place.label if place.lc_index is None else place.lc_index}"
        if place.lc_index is None or place in self._by_place:
            key += f"~{self.count}"
        block = make(key, place.space, family, block_id, content)
        self.count += 1
        if place.lc_index is not None:
            self._by_place.setdefault(place, []).append(block)
        self._open[key] = block
        if isinstance(block, CallBlock):
            self._newest_call = block
            self.calls_client |= family == "tool_call"
        self.events.append(events.BlockStart(key, content))
        return block

    def find_ended(self, place: Place, call_id: str | None) -> CallBlock | None:
        """The call that has ended, and would otherwise be continued by a piece; none that isn't the client's."""
        for block in reversed(self._ended.get(place, ())):
            if isinstance(block, CallBlock) and block.family == "tool_call" and call_id in (None, block.id):
                return block
        return None

    def add_late_arguments(self, call: CallBlock, arguments: str) -> None:
        """Make a call that has ended invalid. Further pieces are passed on."""
        if call.late_is_known:
            self.events.append(events.ProviderEvent("langchain", "late_arguments", {"args": arguments}))
            return
        call.late_is_known = True
        self.events.append(events.BlockFinish(call.key, arguments_after_end(arguments)))

    def write_prose(self, space: str, family: str, text: str) -> None:
        """Append a text that has no index to the block of its space, or begin one."""
        prose = self.prose
        if prose is None or prose.space != space:
            self.end_prose()
            key, content = f"{space}:{self.count}", {"type": family, family: ""}
            prose = self.prose = self._open[key] = Block(key, space, family, None, {})
            self.count += 1
            self.events.append(events.BlockStart(key, content))
        self.append(prose, text)

    def end_prose(self) -> None:
        if self.prose is not None:
            self.finish(self.prose)

    def add_arguments(self, call: CallBlock, text: str) -> None:
        if text:
            self._grown_call = call
        self.append(call, text)

    def append(self, block: Block, text: str) -> None:
        self.events.append(_MAKE_DELTA[block.family](block.key, text))

    def change(self, block: Block, fields: Json) -> None:
        self.events.append(events.BlockDelta(block.key, fields))

    def merge(self, block: Block, content: Json, path: str) -> None:
        """Merge what a later piece has beside its text."""
        read = ("type", "index") if block.family == "other" else ("type", "index", block.family)
        fields = _own_fields(block.family, content)
        changed = block.fields.add({name: fields[name] for name in fields if name not in read}, path)
        if changed:
            self.change(block, changed)

    def cite(self, block: Block, citations: Sequence[Json]) -> None:
        for citation in citations:
            block.citations.add(citation)
        self._emit_citations(block, at_end=False)

    def _emit_citations(self, block: Block, *, at_end: bool) -> None:
        found = block.citations.take(at_end=at_end)
        if found is not None:
            self.change(block, {"citations": found})

    def finish(self, block: Block, wrong: str | None = None) -> None:
        """Finish a block. A call is invalid if there is something wrong with the reply."""
        del self._open[block.key]
        if block is self.prose:
            self.prose = None
        self._emit_citations(block, at_end=True)
        late = block.fields.unemitted()
        if late:
            self.change(block, late)
        fault = block.fault(wrong) if isinstance(block, CallBlock) else None
        self.events.append(events.BlockFinish(block.key, None if fault is None else invalid_call(fault)))

    def finish_all(self, wrong: str | None) -> None:
        """Finish all blocks, with what is wrong with the reply.

        The token limit cuts off the newest call. Those before it had ended, unless they have no arguments yet.
        """
        for block in list(self._open.values()):
            self.finish(block, None if wrong == CUT_OFF and self._had_ended(block) else wrong)
        self._ended |= {place: found for place, found in self._by_place.items() if found}
        self._by_place = {place: [] for place in self._by_place}  # their keys stay taken

    def _had_ended(self, block: Block) -> bool:
        is_last = block is self._newest_call or block is self._grown_call
        return isinstance(block, CallBlock) and block.has_arguments and not is_last


def _own_fields(family: str, content: Json) -> Json:
    """The fields of a block; those of a part that isn't standard are in its `value`."""
    fields: Json = content.get("value", {}) if family == "other" else content
    return fields


_MAKE_DELTA: Mapping[str, Callable[[str, str], Event]] = {
    "text": text_delta,
    "refusal": text_delta,
    "reasoning": reasoning_delta,
    "tool_call": tool_call_delta,
    "server_tool_call": tool_call_delta,
    "data": events.DataDelta,
    "other": events.DataDelta,
}
