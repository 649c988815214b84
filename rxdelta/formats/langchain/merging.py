"""LangChain's rules for merging the chunks of a message: `merge_dicts`, `merge_lists` and the sum of usages."""

# What `thaw` returns is narrowed to dicts and lists of unknown items.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core import DEFAULT_LIMITS, FrozenDict, check_members, freeze, is_mapping, thaw
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import NOTHING
from rxdelta.formats.langchain.fields import READ, Json
from rxdelta.formats.langchain.tables import LAST_VALUE_FIELDS, REPEATED_FIELDS

__all__ = ["MergedFields", "add_usage", "merge", "remember"]

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
