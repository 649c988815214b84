"""The blocks of one message: which one a piece continues, and the events that begin, change and finish it.

The pieces merge by LangChain's rules: `merge_dicts`, `merge_lists` and the sum of usages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    FrozenDict,
    check_members,
    events,
    freeze,
    is_mapping,
    reasoning_delta,
    text_delta,
    thaw,
    tool_call_delta,
)
from rxdelta.formats.calls import CUT_OFF, arguments_after_end, invalid_call
from rxdelta.formats.decoding import NOTHING, GrowingList, Json
from rxdelta.formats.langchain.tables import LAST_VALUE_FIELDS, READ, REPEATED_FIELDS, Index, part_index

# What `thaw` returns is narrowed to dicts and lists of unknown items.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


_JSON_TYPES: Mapping[type, str] = {str: "a string", int: "a number", dict: "an object", list: "a list"}


def merge(known: dict[str, Any], found: Json, path: str) -> None:
    """Merge as LangChain's `merge_dicts` does, except that a repeated field is not appended to itself."""
    for name, value in found.items():
        before = known.get(name)
        if value is None:
            known.setdefault(name, None)
            continue
        now = thaw(freeze(value, lenient=True))
        if before is None:
            known[name] = now
            continue
        at = f"{path}.{name}"
        if isinstance(before, bool) or isinstance(now, bool) or isinstance(before, float):
            if type(before) is not type(now) or before != now:
                shown = str(before).lower() if isinstance(before, bool) else str(before)
                raise READ.fail(at, f"{shown} again, as an earlier chunk has it", value)
        elif type(before) is not type(now):
            raise READ.fail(at, f"{_JSON_TYPES.get(type(before), 'what')}, as in an earlier chunk", value)
        elif isinstance(before, str):
            if name not in REPEATED_FIELDS or before != now:
                known[name] = before + now
        elif isinstance(before, dict):
            merge(before, now, at)
        elif isinstance(before, list):
            _merge_items(before, now, at)
        elif isinstance(before, int):
            known[name] = now if name in LAST_VALUE_FIELDS or before == now else before + now


def _merge_items(known: list[Any], found: list[Any], path: str) -> None:
    """Merge as LangChain's `merge_lists` does: items with the same index are one, others are appended."""
    for place, item in enumerate(found):
        same = None
        index = item.get("index") if isinstance(item, dict) else None
        if (isinstance(index, int) and not isinstance(index, bool)) or (
            isinstance(index, str) and index.startswith("lc_")
        ):
            same = next((one for one in known if isinstance(one, dict) and _is_same_item(one, item)), None)
        if same is None:
            known.append(item)
        else:
            more = {name: value for name, value in item.items() if name not in ("type", "index")}
            merge(same, more, f"{path}[{place}]")


def _is_same_item(one: dict[str, Any], other: dict[str, Any]) -> bool:
    ids = one.get("id") or None, other.get("id") or None
    return one.get("index") == other["index"] and (None in ids or ids[0] == ids[1])


def remember(known: dict[str, Any], found: Json) -> None:
    """Merge metadata: the last value that isn't empty replaces others, objects are merged, lists are appended."""
    for name, value in found.items():
        before = known.get(name)
        if value in NOTHING:
            continue
        now = thaw(freeze(value, lenient=True))
        if isinstance(before, dict) and isinstance(now, dict):
            remember(before, now)
        elif isinstance(before, list) and isinstance(now, list):
            before.extend(now)
        elif now is not None:
            known[name] = now
    check_members(known, DEFAULT_LIMITS, "the metadata")


def add_usage(total: dict[str, Any], more: Json) -> None:
    """Add a usage to the sum.

    Raises:
        LimitExceededError: The sum has more than `Limits.members`, or an object in it does.
    """
    for name, value in more.items():
        before = total.get(name)
        if is_mapping(value):
            inner = dict(before) if is_mapping(before) else {}
            add_usage(inner, value)
            total[name] = FrozenDict(inner)
        elif _is_number(value) and _is_number(before):
            total[name] = freeze(before + value, lenient=True)
        elif value is not None:
            total[name] = freeze(value, lenient=True)
    check_members(total, DEFAULT_LIMITS, "the usage")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class MergedFields:
    """The fields of a block beside its text, merged over all of its parts.

    A field is emitted whole. A string that grows is emitted again when it has grown by an eighth, so that the sum of
    all emissions stays linear.
    """

    __slots__ = ("_growing", "_values")

    def __init__(self, fields: Json) -> None:
        self._values: dict[str, Any] = {
            name: thaw(freeze(value, lenient=True)) for name, value in fields.items()
        }
        self._growing: dict[str, GrowingList] = {}  # strings, as their pieces

    def add(self, fields: Json, path: str) -> dict[str, Any]:
        """Merge the fields of the next part. Returns those to emit."""
        changed: dict[str, Any] = {}
        for name, value in fields.items():
            before = self._values.get(name)
            if value is None or (value == before and (not isinstance(value, str) or name in REPEATED_FIELDS)):
                continue
            if isinstance(before, str) and isinstance(value, str):
                if not value:
                    continue
                growing = self._growing.get(name)
                if growing is None:
                    growing = self._growing[name] = GrowingList([before], len(before))
                growing.add(value, len(value))
                pieces = growing.take()
                if pieces is not None:
                    changed[name] = self._values[name] = "".join(pieces)
            else:
                merge(self._values, {name: value}, path)
                changed[name] = self._values[name]
        return changed

    def unemitted(self) -> dict[str, Any]:
        """The strings that have grown since they were last emitted."""
        return {
            name: "".join(pieces)
            for name, growing in self._growing.items()
            if (pieces := growing.take(at_end=True)) is not None
        }


B = TypeVar("B", bound="Block")


class Place(NamedTuple):
    """Where LangChain has a block.

    Attributes:
        space: The items that the index counts: the parts of the content (`part`), the calls beside it (`call`), and others.
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
    """The facts by which a block is found and continued.

    Attributes:
        key: The index that its events have.
        family: The kind of its deltas, a key of `_MAKE_DELTA`.
        id: The provider's.
        space: The space of its place.
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
