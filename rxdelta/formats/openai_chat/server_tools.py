"""Tools that the provider runs itself: Groq's `executed_tools`."""

from __future__ import annotations

from rxdelta.core import freeze
from rxdelta.formats.block_writer import BlockWriter
from rxdelta.formats.decoding import Fields
from rxdelta.formats.json_values import others, word
from rxdelta.formats.openai_chat.tables import FORMAT
from rxdelta.formats.tool_calls import given_id

__all__ = ["ServerTools"]

_READ = Fields(FORMAT)


class ServerTools:
    """Reads the tools of one choice. Each comes whole, and again with its output."""

    __slots__ = ("_blocks", "_call_ids", "_have_output")

    def __init__(self, blocks: BlockWriter) -> None:
        self._blocks = blocks
        self._call_ids: dict[object, str] = {}
        self._have_output: set[object] = set()

    def read(self, entries: object, path: str) -> None:
        for place, found in enumerate(_READ.items(entries, path)):
            entry = _READ.mapping(found, f"{path}[{place}]")
            index, given = entry.get("index"), word(entry.get("id"))
            key = index if type(index) is int else given or word(entry.get("arguments")) or place
            fields = others(entry, _EXECUTED)
            name = word(entry.get("name")) or word(entry.get("type"))
            if key not in self._call_ids and name is None:
                self._blocks.pass_on(entry)
                continue
            if key not in self._call_ids:
                call_id = self._call_ids[key] = given_id(given or "") or self._blocks.made_up_id()
                call = {"id": call_id, "name": name, "args": freeze(entry.get("arguments"), lenient=True)}
                self._blocks.whole({**fields, "type": "server_tool_call", **call})
            if entry.get("output") is not None and key not in self._have_output:
                self._have_output.add(key)
                output = freeze(entry["output"], lenient=True)
                result = {"tool_call_id": self._call_ids[key], "output": output}
                self._blocks.whole({**fields, "type": "server_tool_result", **result})


_EXECUTED = frozenset(["index", "id", "type", "name", "arguments", "output"])
