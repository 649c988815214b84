"""Tools that the provider runs itself: their calls and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rxdelta.core import freeze
from rxdelta.formats.decoding import Fields
from rxdelta.formats.gemini.blocks import Blocks
from rxdelta.formats.gemini.tables import (
    CODE_RESULT,
    EXECUTABLE_CODE,
    FORMAT,
    TOOL_CALL,
    TOOL_RESPONSE,
    UNSPECIFIED,
)
from rxdelta.formats.json_values import kept, others, word
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.tool_calls import given_id

__all__ = ["ServerTools"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields(FORMAT)


class ServerTools:
    """Reads the provider's own calls and their results of one candidate, each with the fields of its part."""

    __slots__ = ("_blocks", "_running")

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._running: dict[str, str] = {}  # the id of the newest call of each kind, until its result

    def read(self, kind: str, found: Json, fields: Json, path: str) -> None:
        _READERS[kind](self, found, fields, path)

    def read_executable_code(self, code: Json, fields: Json, path: str) -> None:
        call = {"name": "code_execution", "args": others(code, _ID)}
        self._write_call(EXECUTABLE_CODE, code, {**fields, **call}, path)

    def read_code_result(self, result: Json, fields: Json, path: str) -> None:
        status = None
        if result.get("outcome") not in UNSPECIFIED:
            status = "success" if result["outcome"] in ("OUTCOME_OK", 1) else "error"
        own = {PROVIDER_TYPE: CODE_RESULT, "output": others(result, _ID), "status": status}
        self._write_result(EXECUTABLE_CODE, result, {**fields, **own}, path)

    def read_tool_call(self, found: Json, fields: Json, path: str) -> None:
        kind = found.get("toolType")
        args = _READ.mapping(found.get("args"), f"{path}.args")
        call = {**others(found, _TOOL_CALL), "name": word(kind) or str(kind or "tool"), "args": kept(args)}
        self._write_call(TOOL_CALL, found, {**fields, **call}, path)

    def read_tool_response(self, response: Json, fields: Json, path: str) -> None:
        output = freeze(response.get("response"), lenient=True)
        own = {**others(response, _TOOL_RESPONSE), PROVIDER_TYPE: TOOL_RESPONSE, "output": output}
        self._write_result(TOOL_CALL, response, {**fields, **own}, path)

    def _write_call(self, kind: str, found: Json, content: Json, path: str) -> None:
        known = self._blocks.call_identity(given_id(_READ.text_of(found, "id", path)))
        self._running[kind] = known["id"]
        self._blocks.whole({**content, **known, "type": "server_tool_call", PROVIDER_TYPE: kind})

    def _write_result(self, kind: str, found: Json, content: Json, path: str) -> None:
        """Write a result. One without an id is that of the newest call of its kind."""
        call_id = given_id(_READ.text_of(found, "id", path)) or self._running.get(kind)
        self._running.pop(kind, None)
        self._blocks.whole({**content, "type": "server_tool_result", "tool_call_id": call_id})


_READERS: Mapping[str, Callable[[ServerTools, Json, Json, str], None]] = {
    EXECUTABLE_CODE: ServerTools.read_executable_code,
    CODE_RESULT: ServerTools.read_code_result,
    TOOL_CALL: ServerTools.read_tool_call,
    TOOL_RESPONSE: ServerTools.read_tool_response,
}

_ID = frozenset(["id"])
_TOOL_CALL = frozenset(["id", "toolType", "args"])
_TOOL_RESPONSE = frozenset(["id", "response"])
