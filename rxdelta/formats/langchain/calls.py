"""Fragments of calls: those in `tool_call_chunks`, `tool_calls` and `invalid_tool_calls`, and those in the content."""

from __future__ import annotations

from typing import Any

import attrs

from rxdelta.formats.json_values import NOTHING
from rxdelta.formats.langchain.blocks import Place
from rxdelta.formats.langchain.fields import READ, Json, extras_of, fragment_index, other_fields, part_type
from rxdelta.formats.langchain.tables import (
    ARGUMENT_FIELDS,
    CALL_TYPES,
    FRAGMENT_FIELDS,
    RESERVED_CALL_FIELDS,
)
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE

__all__ = ["Fragment", "MessageCalls", "call_metadata", "part_fragment"]


@attrs.define
class Fragment:
    """A chunk's fragment of a call.

    Attributes:
        entry: Its `id`, `name`, `args` and `error`, not checked yet.
        more: Its further fields.
        path: Its path in the chunk, for errors.
        arguments_field: The field in which its arguments came.
        family: `tool_call` or `server_tool_call`; empty if the call that it continues decides.
    """

    place: Place
    entry: Json
    more: Json
    path: str
    arguments_field: str = "args"
    family: str = "tool_call"

    @property
    def is_invalid(self) -> bool:
        return self.entry.get("type") == "invalid_tool_call"

    def is_same(self, part: Fragment) -> bool:
        """Whether a call in the content is this one."""
        own_id, part_id = self.entry.get("id") or None, part.entry.get("id") or None
        if own_id is not None and part_id is not None:
            return bool(own_id == part_id)
        return part.place.lc_index in (self.place.lc_index, None) or isinstance(part.place.lc_index, str)

    def join(self, part: Fragment) -> None:
        """Add what the same call in the content gives beyond this."""
        self.entry = {**self.entry, "id": self.entry.get("id") or part.entry.get("id")}
        self.more = {**part.more, **self.more}


class MessageCalls:
    """The calls that a chunk has outside of its content, each until it is read.

    `tool_calls` count only where there are no `tool_call_chunks`: LangChain makes them of half fragments.
    """

    def __init__(self, message: Json, path: str) -> None:
        if message.get("tool_call_chunks"):
            self.unread = _fragments(message, "tool_call_chunks", path)
        else:
            self.unread = _fragments(message, "tool_calls", path)
            self.unread += _fragments(message, "invalid_tool_calls", path)
        self.any = bool(self.unread)

    def take(self, part: Fragment) -> Fragment | None:
        """Remove and return the call that is the same as this one in the content."""
        same = next((call for call in self.unread if call.is_same(part)), None)
        if same is not None:
            self.unread.remove(same)
        return same


def _fragments(message: Json, name: str, path: str) -> list[Fragment]:
    found: list[Fragment] = []
    for place, item in enumerate(READ.items(message.get(name), f"{path}{name}")):
        at = f"{path}{name}[{place}]"
        entry = READ.mapping(item, at)
        if name == "tool_calls" or not FRAGMENT_FIELDS.issuperset(entry):
            READ.require(entry, ("args",), at)
        index = fragment_index(entry.get("index"), at) if name == "tool_call_chunks" else None
        more = {key: value for key, value in entry.items() if key not in FRAGMENT_FIELDS}
        if name == "invalid_tool_calls":
            entry = {**entry, "type": "invalid_tool_call"}
        found.append(Fragment(Place("call", index), entry, call_metadata(more), at))
    return found


def part_fragment(part: Json, path: str) -> Fragment:
    """A call in the content, of any provider's making."""
    place = Place.of_part(part.get("index"), path)
    kind = part_type(part)
    # Whole arguments are named first: a part that LangChain has added up has an empty `input` beside the text.
    name = next((name for name in ARGUMENT_FIELDS if part.get(name) not in NOTHING), "args")
    args = part.get(name)
    if kind == "custom_tool_call" and isinstance(args, str):
        args = {"input": args}
    call_id = part.get("call_id") or part.get("id")
    entry = {"type": kind, "id": call_id, "name": part.get("name"), "args": args, "error": part.get("error")}
    more = other_fields(part, "id", "call_id", "name", "error", *ARGUMENT_FIELDS)
    if part.get("call_id") and part.get("id"):
        more[ITEM_ID] = part["id"]
    metadata = call_metadata(more)
    if kind in ("server_tool_use", "mcp_tool_use"):
        metadata[PROVIDER_TYPE] = kind
    return Fragment(place, entry, metadata, path, name, CALL_TYPES[kind])


def call_metadata(fields: Json) -> dict[str, Any]:
    """A provider's further fields of a call; a name that our protocol reserves gets the prefix `provider_`."""
    if not fields:
        return {}
    own = {name: value for name, value in fields.items() if name != "extras"}
    return {
        f"provider_{name}" if name in RESERVED_CALL_FIELDS else name: value
        for name, value in {**own, **extras_of(fields.get("extras"))}.items()
        if value is not None
    }
