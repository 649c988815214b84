"""The calls of tools in the output, and the results of those that the provider ran."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import Event, events, thaw, tool_call_delta
from rxdelta.formats.decoding import NOTHING
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, call_identity
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.reading import (
    READ,
    Content,
    Json,
    Out,
    call_id_of,
    mapping_or_none,
    rest,
)

if TYPE_CHECKING:
    from rxdelta.formats.openai_responses.decoder import Response

__all__ = ["CALLS", "CUT_OFF", "Call", "Result"]


class Call(Item):
    """A call of a tool, the client's to run or run by the provider, then with its results behind it."""

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        self._said = {name: item.get(name) for name in ("name", "environment", "execution")}
        self._close = ""  # what ends the JSON that is being written
        self._command = -1
        self._operation: Json = mapping_or_none(item.get("operation")) or {}
        name = READ.text(item.get("name"), f"{path}.name") or None
        spec, ours = self._read_spec(item)
        if self.type == "tool_search_call":
            self.response.searched = self
        content = {
            **self._fields(item, spec),
            "type": "tool_call_chunk" if ours else "server_tool_call_chunk",
            "id": self.call_id or (None if self.type in _NAMED_BY_CALL_ID else self.id),
            "name": name or _tool_name(self.type),
            "args": "",
        }
        content.pop("status", None)
        self.block = self.response.start(out, content)
        self._growing = Growing("", None, self.block, tool_call_delta)

    def _read_spec(self, item: Json) -> tuple[_Spec, bool]:
        """How to read the call, and whether it is the client's."""
        spec = CALLS.get(self.type) or _unknown_tool(item)
        said = {name: value for name, value in item.items() if value is not None}
        return spec, spec.ours(self.response, {**self._said, **said})

    def _fields(self, item: Json, spec: _Spec) -> Content:
        """What is said of the call, but not what it is to do."""
        payload = spec.payload or ("arguments",)
        fields = rest(item, "type", "name", "call_id", spec.result, spec.result and "error", *payload)
        return fields if self.type == "function_call" else {**fields, PROVIDER_TYPE: self.type}

    # Pieces of its arguments.

    def read(self, out: Out, kind: str, chunk: Json) -> bool:
        what, _, step = kind.removeprefix(f"response.{self.type}_").rpartition(".")
        if what == "command":
            return self._shell(out, step, chunk)
        if what not in _WRITTEN or step not in ("delta", "done"):
            return super().read(out, kind, chunk)
        raw = what == "arguments"
        if raw != (CALLS.get(self.type, _RAW).payload is None):
            return False
        piece = READ.text_of(chunk, "delta" if step == "delta" else _WRITTEN[what], "")
        growing = self._growing
        if step == "delta" or growing.length == 0:
            growing.takes = f"response.{self.type}_{what}.delta"
            if not raw:
                growing.grow = _escaped
                self._open(out, what)
            if piece:
                growing.length += len(piece)
                out.append(growing.grow(self.block, piece))
            self.grows(growing)
        elif raw and piece and len(piece) != growing.length:
            growing.length = len(piece)
            self.change(out, {"args": piece})
        return True

    def _open(self, out: Out, what: str) -> None:
        """The JSON that a text is written into begins."""
        if self._close:
            return
        if what == "operation_diff":
            known = {name: value for name, value in self._operation.items() if name != "diff"}
            head = json.dumps({"operation": {**thaw(known), "diff": ""}}, ensure_ascii=False)[:-3]
            self._close = '"}}'
        else:
            head, self._close = f'{{"{what}": "', '"}'
        out.append(tool_call_delta(self.block, head))

    def _shell(self, out: Out, step: str, chunk: Json) -> bool:
        """Commands come one after another; one that is out of turn is known when all are."""
        at = READ.index(chunk.get("command_index", 0), "command_index")
        piece = READ.text_of(chunk, "delta" if step == "delta" else "command", "")
        if at < self._command or at > self._command + 1 or step not in ("added", "delta", "done"):
            return False
        growing = self._growing
        if at == self._command + 1:
            head = '{"action": {"commands": ["' if at == 0 else '", "'
            self._command, self._close, growing.length = at, '"]}}', 0
            out.append(tool_call_delta(self.block, head))
        if piece and (step == "delta" or growing.length == 0):
            growing.length += len(piece)
            out.append(_escaped(self.block, piece))
        return True

    # Its end.

    def waits(self, item: Json, /) -> bool:
        """A call without arguments is one that needs none, or was cut off before they came."""
        if self.type not in _NAMED_BY_CALL_ID or self.pending is not None or self._fed():
            return False
        if item.get("arguments") or item.get("input") or item.get("status") in ("completed", "incomplete"):
            return False
        self.pending = item
        return True

    def _fed(self) -> bool:
        return self._growing.length > 0 or self._close != ""

    def finish(self, out: Out, item: Json | None, path: str, wrong: str | None = None, /) -> None:
        if item is None:
            self._finish_as_folded(out, wrong)
            return
        spec, ours = self._read_spec(item)
        name = READ.text(item.get("name"), f"{path}.name")
        args = self._payload(item, spec, path)
        call_id = self.call_id or self.id
        known = call_identity(call_id, self._made_up_id())
        content: Content = {**self._fields(item, spec), **known}
        content["type"] = "tool_call" if ours else "server_tool_call"
        if name:
            content["name"] = name
        if item.get("status") == "incomplete":
            wrong = wrong or CUT_OFF["incomplete"]
        if ours and wrong is not None:
            content |= {"type": "invalid_tool_call", "error": wrong}
            if isinstance(args, Mapping):
                args = None if self._fed() else json.dumps(thaw(args), ensure_ascii=False)
        elif args is None and self._close:
            out.append(tool_call_delta(self.block, self._close))
        if args is not None:
            content["args"] = args
        self._end(out, ours, content)
        result = None if spec.result is None or ours else item.get(spec.result)
        failed = item.get("error") if spec.result and not ours else None
        if result is not None or failed is not None:
            self._add_result(out, item, content["id"], failed if result is None else result)

    def _payload(self, item: Json, spec: _Spec, path: str) -> str | Json | None:
        """What the call is to do: JSON text, or the fields of the item. `None` if that's in the pieces."""
        if spec.payload is None:
            found = item.get("arguments")
            if isinstance(found, Mapping):
                return found
            return READ.text(found, f"{path}.arguments") or (None if self._fed() else "")
        found = {name: item[name] for name in spec.payload if item.get(name) is not None}
        empty = all(value in NOTHING for value in found.values())
        return None if empty and self._fed() else found

    def _finish_as_folded(self, out: Out, wrong: str | None) -> None:
        content: Content | None = None
        _, ours = self._read_spec({})
        if wrong is not None and ours:
            content = {"type": "invalid_tool_call", "error": wrong}
        elif self._close:
            out.append(tool_call_delta(self.block, self._close))
        self._end(out, ours, content)

    def _end(self, out: Out, ours: bool, content: Content | None) -> None:
        self.response.asked |= ours
        out.append(events.BlockFinish(self.block, content))
        self.done = True

    def _made_up_id(self) -> str:
        return "-".join(filter(None, ["call", self.response.id, str(self.block)]))

    def _add_result(self, out: Out, item: Json, call_id: str, result: object) -> None:
        failed = item.get("status") in ("failed", "incomplete") or item.get("error") not in NOTHING
        fields = {"tool_call_id": call_id, "output": result, PROVIDER_TYPE: self.type}
        error = {} if item.get("error") in NOTHING else {"item_error": item["error"]}
        if self.id is not None:
            fields[ITEM_ID] = self.id
        status = "error" if failed else "success"
        number = self.response.start(out, {**fields, **error, "type": "server_tool_result", "status": status})
        out.append(events.BlockFinish(number))


class Result(Item):
    """What a tool that the provider ran gave back, where that is an item of its own."""

    def _content(self, item: Json) -> Content:
        source = _RESULTS.get(self.type, "output")
        output = item.get(source)
        search = self.response.searched if self.type == "tool_search_output" else None
        searched = None if search is None else search.call_id or search.id
        call_id = call_id_of(item.get("call_id")) or searched or call_id_of(item.get("id"))
        failed = item.get("status") in ("failed", "incomplete")
        content = rest(item, "type", "call_id", source)
        if "status" in content:
            content["item_status"] = content["status"]
        content |= {"type": "server_tool_result", "tool_call_id": call_id, "output": output}
        return content | {PROVIDER_TYPE: self.type, "status": "error" if failed else "success"}

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        content = self._content(item)
        content.pop("item_status", None)
        content["output"] = content["output"] or None
        self.block = self.response.start(out, content)

    def finish(self, out: Out, item: Json | None, _path: str, _wrong: str | None = None, /) -> None:
        out.append(events.BlockFinish(self.block, None if item is None else self._content(item)))
        self.done = True


class _Spec(NamedTuple):
    """How a call is read: whose it is, which fields say what to do (`None`: `arguments`), and its results."""

    ours: Callable[[Response, Json], bool]
    payload: tuple[str, ...] | None = None
    result: str | None = None


def _always(_response: Response, _item: Json, /) -> bool:
    return True


def _never(_response: Response, _item: Json, /) -> bool:
    return False


def _outside_a_container(_response: Response, item: Json) -> bool:
    environment = mapping_or_none(item.get("environment"))
    return environment is None or environment.get("type") in (None, "local")


def _if_it_says_client(_response: Response, item: Json) -> bool:
    return item.get("execution") == "client"


def _if_the_request_had_it(response: Response, item: Json) -> bool:
    """Not if the request's tools are known and this is none of them, nor can have been found later."""
    name = item.get("name")
    known = list(_tools_in(response.tools))
    if not known or name is None:
        return True
    return any(tool.get("type") in _FINDS or tool.get("name") == name for tool in known)


def _tools_in(tools: Sequence[Any]) -> Iterator[Json]:
    for tool in tools:
        if isinstance(tool, Mapping):
            yield tool
            inner = tool.get("tools")
            if isinstance(inner, (list, tuple)):
                yield from (found for found in inner if isinstance(found, Mapping))


def _unknown_tool(item: Json) -> _Spec:
    """A call of a kind that isn't known was not asked of the client. What it was to do is in one of these."""
    payload = tuple(name for name in ("input", "action", "queries", "code", "query") if name in item)
    return _Spec(_never, None if "arguments" in item else payload, "output")


def _tool_name(kind: str) -> str | None:
    return None if kind in _NAMED else kind.removesuffix("_call")


def _escaped(block: int, piece: str) -> Event:
    """A piece of a text that is written into JSON."""
    return tool_call_delta(block, json.dumps(piece, ensure_ascii=False)[1:-1])


CALLS: Mapping[str, _Spec] = {
    "function_call": _Spec(_always),
    "custom_tool_call": _Spec(_if_the_request_had_it, ("input",)),
    "local_shell_call": _Spec(_always, ("action",)),
    "shell_call": _Spec(_outside_a_container, ("action",)),
    "apply_patch_call": _Spec(_always, ("operation",)),
    "computer_call": _Spec(_always, ("action", "actions")),
    "tool_search_call": _Spec(_if_it_says_client),
    "mcp_call": _Spec(_never, None, "output"),
    "mcp_approval_request": _Spec(_never),
    "web_search_call": _Spec(_never, ("action",)),
    "file_search_call": _Spec(_never, ("queries",), "results"),
    "code_interpreter_call": _Spec(_never, ("code",), "outputs"),
    "program": _Spec(_never, ("code",)),
}
_RAW = _Spec(_never)
_NAMED_BY_CALL_ID = frozenset(["function_call", "custom_tool_call"])
_NAMED = frozenset(["function_call", "custom_tool_call", "mcp_call", "mcp_approval_request"])
_FINDS = frozenset(["tool_search", "namespace"])
_RESULTS: Mapping[str, str] = {"tool_search_output": "tools", "program_output": "result"}
_WRITTEN: Mapping[str, str] = {
    "arguments": "arguments",
    "input": "input",
    "code": "code",
    "operation_diff": "diff",
}
CUT_OFF: Mapping[str, str] = {
    "length": "cut off by the token limit",
    "content_filter": "cut off by the content filter",
    "incomplete": "left incomplete by the provider",
}
