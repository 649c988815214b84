"""The tool calls of a response, their arguments as they stream, and the results of tools that the provider ran."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import Event, events, thaw, tool_call_delta
from rxdelta.formats.calls import arguments_after_end, call_identity, invalid_call, made_up_id
from rxdelta.formats.decoding import NOTHING, Json, due
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE
from rxdelta.formats.openai_responses.calls import (
    APPROVAL_REQUEST,
    CALLS,
    NAMED_CALLS,
    CallType,
    result_field,
)
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.notes import (
    ITEM_ERROR,
    ITEM_STATUS,
    READ,
    Content,
    Out,
    delta_of,
    fields_beside,
    given_id_of,
    mapping_or_none,
    object_of,
    optional_text,
)

TEXT_OF = {"arguments": "arguments", "input": "input", "code": "code", "operation_diff": "diff"}
"""The arguments that stream, by the end of their chunks' type: the field with the whole text in the last chunk."""


class Arguments:
    """Arguments that are JSON text already, or a text or commands that are written into JSON."""

    def __init__(self, block: int, operation: Json) -> None:
        self.growing = Growing("", None, block, tool_call_delta)
        self._block = block
        self._operation = operation  # of a patch: the fields beside its diff
        self._command: int = -1
        self._close = ""  # ends the JSON that has begun

    @property
    def begun(self) -> bool:
        return self.growing.length > 0 or self._close != ""

    def add_json(self, out: Out, piece: str) -> None:
        if piece:
            self.growing.length += len(piece)
            out.append(self.growing.delta(self._block, piece))

    def add_text(self, out: Out, kind: str, piece: str) -> None:
        """Add to the text of a field."""
        self.growing.delta = _escaped
        if not self._close:
            if kind == "operation_diff":
                known = {name: value for name, value in self._operation.items() if name != "diff"}
                head = json.dumps({"operation": {**thaw(known), "diff": ""}}, ensure_ascii=False)[:-3]
                self._close = '"}}'
            else:
                head, self._close = f'{{"{kind}": "', '"}'
            out.append(tool_call_delta(self._block, head))
        self.add_json(out, piece)

    def add_command(self, out: Out, step: str, chunk: Json) -> bool:
        """Add to a command. One out of turn is left to the whole item."""
        at = READ.index(chunk.get("command_index", 0), "command_index")
        piece = delta_of(chunk) if step == "delta" else optional_text(chunk, "command", "")
        if at < self._command or at > self._command + 1 or step not in ("added", "delta", "done"):
            return False
        growing = self.growing
        if piece is None and step == "done":
            if at == self._command:
                return self.lacks("command")
            raise READ.fail("command", "a string", None)
        if at == self._command + 1:
            head = '{"action": {"commands": ["' if at == 0 else '", "'
            self._command, self._close, growing.length = at, '"]}}', 0
            out.append(tool_call_delta(self._block, head))
        if piece and (step == "delta" or growing.length == 0):
            growing.length += len(piece)
            out.append(_escaped(self._block, piece))
        return True

    def lacks(self, field: str) -> bool:
        """The last chunk has no text. False if the deltas had one.

        Raises:
            MalformedChunkError: Nothing has come before either.
        """
        if self.growing.length:
            return False
        raise READ.fail(field, "a string", None)

    def replace(self, out: Out, whole: str) -> None:
        """Take the whole text where it differs in length from its deltas, because some were lost."""
        if whole and len(whole) != self.growing.length:
            self.growing.length = len(whole)
            out.append(events.BlockDelta(self._block, {"args": whole}))

    def close(self, out: Out) -> None:
        """End the JSON that has begun."""
        if self._close:
            out.append(tool_call_delta(self._block, self._close))


def _escaped(block: int, piece: str) -> Event:
    """A piece of a text as a piece of a JSON string."""
    return tool_call_delta(block, json.dumps(piece, ensure_ascii=False)[1:-1])


INCOMPLETE = "left incomplete by the provider"
"""Why a call is invalid whose item is incomplete, where nothing else says why."""


class CallItem(Item):
    """A call of a tool. If the provider ran the tool, a block with the results in the item may follow."""

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        self._at_first = {name: item.get(name) for name in ("name", "environment", "execution")}
        name = READ.text(item.get("name"), f"{path}.name") or None
        kind, for_client = self._kind(item)
        if self.type == "tool_search_call":
            self.response.search = self
        content = {
            **self._fields(item, kind),
            "type": "tool_call_chunk" if for_client else "server_tool_call_chunk",
            "id": self.call_id or (None if self.type in _NAMED_BY_CALL_ID else self.id),
            "name": name or (None if self.type in NAMED_CALLS else self.type.removesuffix("_call")),
            "args": "",
        }
        content.pop("status", None)
        self.block = self.response.start_block(out, content)
        self._arguments = Arguments(self.block, mapping_or_none(item.get("operation")) or {})
        self._has_ended = False  # its arguments, by an event of their own
        # How much of the text no delta has brought, of a client's call that has ended.
        self._missing: int | None = None
        self._takes_late: bool = (
            False  # a call of the client's that has ended: what comes late makes it invalid
        )

    def _kind(self, item: Json) -> tuple[CallType, bool]:
        """How to read the call, and whether the client has to run it."""
        kind = CallType.of(self.type, item)
        known = {name: value for name, value in item.items() if value is not None}
        return kind, kind.for_client(self.response.tools, {**self._at_first, **known})

    def _fields(self, item: Json, kind: CallType) -> Content:
        """The fields of the item beyond the arguments and the results."""
        payload = kind.payload or ("arguments",)
        fields = fields_beside(
            item, "type", "name", "call_id", kind.result, kind.result and "error", *payload
        )
        return fields if self.type == "function_call" else {**fields, PROVIDER_TYPE: self.type}

    def read(self, out: Out, kind: str, chunk: Json) -> bool:
        what, _, step = kind.removeprefix(f"response.{self.type}_").rpartition(".")
        arguments = self._arguments
        if what == "command":
            return arguments.add_command(out, step, chunk)
        if what not in TEXT_OF or step not in ("delta", "done"):
            return super().read(out, kind, chunk)
        known = CALLS.get(self.type)
        is_json = what == "arguments"
        if is_json != (known is None or known.payload is None):
            return False
        piece = delta_of(chunk) if step == "delta" else optional_text(chunk, TEXT_OF[what], "")
        if piece is None:
            return arguments.lacks(TEXT_OF[what])
        self._has_ended |= step == "done"
        if step == "delta" or arguments.growing.length == 0:
            arguments.growing.takes = f"response.{self.type}_{what}.delta"
            if is_json:
                arguments.add_json(out, piece)
            else:
                arguments.add_text(out, what, piece)
            self.grows(arguments.growing)
        elif is_json:
            arguments.replace(out, piece)
        return True

    def read_late(self, out: Out, kind: str, chunk: Json, /) -> bool:
        """Read arguments that come after the end of the call. If the end didn't have them, they make it invalid."""
        what, _, step = kind.removeprefix(f"response.{self.type}_").rpartition(".")
        piece = READ.text_of(chunk, "delta" if step == "delta" else TEXT_OF.get(what, ""), "")
        if self._missing is None or not piece:
            return False
        self._missing -= len(piece)
        if self._missing >= 0 or (step == "done" and self._arguments.growing.length):
            return False
        self._missing = None
        out.append(events.BlockFinish(self.block, arguments_after_end(piece)))
        return True

    def is_doubtful(self, item: Json, /) -> bool:
        """A call without arguments needs none, or was cut off before they came."""
        if self.type not in _NAMED_BY_CALL_ID or self.pending is not None or self._arguments.begun:
            return False
        return not (
            item.get("arguments") or item.get("input") or item.get("status") in ("completed", "incomplete")
        )

    def finish_blocks(self, out: Out, item: Json | None, path: str, wrong: str | None, /) -> None:
        kind, for_client = self._kind(item or {})
        if item is None:
            self._finish_with_deltas(out, for_client, wrong)
            return
        name = READ.text(item.get("name"), f"{path}.name")
        args = self._payload(item, kind, path)
        identity = call_identity(self.call_id or self.id, made_up_id(self.response.id, self.block))
        content: Content = {**self._fields(item, kind), **identity}
        content["type"] = "tool_call" if for_client else "server_tool_call"
        if name:
            content["name"] = name
        if item.get("status") == "incomplete":
            wrong = wrong or INCOMPLETE
        if for_client and wrong is not None:
            content |= invalid_call(wrong)
            if isinstance(args, Mapping):
                args = None if self._arguments.begun else json.dumps(thaw(args), ensure_ascii=False)
        elif args is None:
            self._arguments.close(out)
        if args is not None:
            content["args"] = args
        if self.type == APPROVAL_REQUEST and self.id is not None:
            # In front of the end, at which a reader of single blocks is done with a call that waits for nothing.
            out.append(events.ToolUpdate(self.id, "awaiting_approval"))
        self._finish_call(out, for_client, content, item.get("arguments") or item.get("input") or "")
        if kind.result is not None and not for_client:
            self._add_result(out, item, content["id"], item.get(kind.result))

    def _finish_with_deltas(self, out: Out, for_client: bool, wrong: str | None) -> None:
        content: Content | None = None
        if wrong is not None and for_client and not self._has_ended:
            content = invalid_call(wrong)
        else:
            self._arguments.close(out)
        self._finish_call(out, for_client, content)

    def _finish_call(self, out: Out, for_client: bool, content: Content | None, whole: object = "") -> None:
        self.response.calls_client |= for_client
        if for_client and self.type in _NAMED_BY_CALL_ID and isinstance(whole, str):
            self._missing = max(0, len(whole) - self._arguments.growing.length)
        out.append(events.BlockFinish(self.block, content))

    def _payload(self, item: Json, kind: CallType, path: str) -> str | Json | None:
        """The arguments: JSON text, or fields of the item. `None` if only the deltas had them."""
        self._check_names(item, path)
        if kind.payload is None:
            found = item.get("arguments")
            if isinstance(found, Mapping):
                return found
            return READ.text(found, f"{path}.arguments") or (None if self._arguments.begun else "")
        fields = {name: item[name] for name in kind.payload if item.get(name) is not None}
        empty = all(value in NOTHING for value in fields.values())
        return None if empty and self._arguments.begun else fields

    def _check_names(self, item: Json, path: str) -> None:
        """Refuse arguments under another name: the tool would run without them."""
        required = _REQUIRED.get(self.type)
        if required is None or item.get(required) is not None or self._arguments.begun:
            return
        if any(item[name] not in NOTHING for name in item.keys() - _BESIDE_ARGUMENTS):
            raise READ.fail(f"{path}.{required}", "the arguments", None)

    def _add_result(self, out: Out, item: Json, call_id: str, output: object) -> None:
        error = item.get("error")
        if output is None:
            output = error
        if output is None:
            return
        failed = item.get("status") in ("failed", "incomplete") or error not in NOTHING
        content: Content = {"tool_call_id": call_id, "output": output, PROVIDER_TYPE: self.type}
        if self.id is not None:
            content[ITEM_ID] = self.id
        if error not in NOTHING:
            content[ITEM_ERROR] = error
        content |= {"type": "server_tool_result", "status": "error" if failed else "success"}
        block = self.response.start_block(out, content)
        out.append(events.BlockFinish(block))


class ResultItem(Item):
    """The results of a tool that the provider ran, where they are an item of their own. A shell's grow."""

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        self._commands: dict[int, _CommandOutput] = {}
        self._size = self._emitted = 0  # of their texts
        content = self._content(item)
        content.pop(ITEM_STATUS, None)
        content["output"] = content["output"] or None
        self.block = self.response.start_block(out, content)

    def add_output(self, out: Out, chunk: Json) -> bool:
        command = self._command(chunk)
        delta = object_of(chunk, "delta")
        said = {name: READ.text_of(delta, name, "delta") for name in _STREAMS if name in delta}
        if delta and not said:
            return False
        for name, piece in said.items():
            command.pieces[name].append(piece)
            self._size += len(piece)
        self._emit(out, at_end=False)
        return True

    def end_output(self, out: Out, chunk: Json) -> bool:
        command = self._command(chunk)
        if chunk.get("output") is None:
            if not any(command.pieces.values()):
                raise READ.fail("output", "a list", None)
            return False
        command.whole = READ.items(chunk["output"], "output")
        self._size += 1
        self._emit(out, at_end=False)
        return True

    def _command(self, chunk: Json) -> _CommandOutput:
        at = READ.index(chunk.get("command_index", 0), "command_index")
        return self._commands.setdefault(at, _CommandOutput())

    def _emit(self, out: Out, *, at_end: bool) -> None:
        """Emit the outputs so far, if they have grown enough."""
        if self._size > self._emitted if at_end else due(self._size, self._emitted):
            self._emitted = self._size
            output = [one for _, command in sorted(self._commands.items()) for one in command.output()]
            out.append(events.BlockDelta(self.block, {"output": output}))

    def flush(self, out: Out, /) -> None:
        self._emit(out, at_end=True)

    def finish_blocks(self, out: Out, item: Json | None, _path: str, _wrong: str | None, /) -> None:
        if item is None:
            self.flush(out)
        out.append(events.BlockFinish(self.block, None if item is None else self._content(item)))

    def _content(self, item: Json) -> Content:
        field = result_field(self.type)
        search = self.response.search if self.type == "tool_search_output" else None
        searched = None if search is None else search.call_id or search.id
        content = fields_beside(item, "type", "call_id", field)
        if "status" in content:
            content[ITEM_STATUS] = content["status"]
        return content | {
            "type": "server_tool_result",
            "tool_call_id": given_id_of(item, "call_id") or searched or given_id_of(item, "id"),
            "output": item.get(field),
            PROVIDER_TYPE: self.type,
            "status": "error" if item.get("status") in ("failed", "incomplete") else "success",
        }

    READS = {
        "response.shell_call_output_content.delta": add_output,
        "response.shell_call_output_content.done": end_output,
    }


class _CommandOutput:
    """The output of a shell's command: pieces, and then the whole."""

    __slots__ = ("pieces", "whole")

    def __init__(self) -> None:
        self.pieces: dict[str, list[str]] = {name: [] for name in _STREAMS}
        self.whole: Sequence[Any] | None = None

    def output(self) -> Sequence[Any]:
        """In the form of the item's `output`, but for the outcome, which is not known yet."""
        if self.whole is not None:
            return self.whole
        return [{name: "".join(pieces) for name, pieces in self.pieces.items()}]


_STREAMS = ("stdout", "stderr")

_REQUIRED: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "mcp_call": "arguments",
    APPROVAL_REQUEST: "arguments",
}
"""Where a call has its arguments."""

_BESIDE_ARGUMENTS = frozenset([
    "id", "type", "name", "call_id", "status", "namespace", "caller", "created_by", "server_label", "output", "error",
    "approval_request_id", "agent", "metadata",
])  # fmt: skip

_NAMED_BY_CALL_ID = frozenset(["function_call", "custom_tool_call"])
"""Calls whose results name them by `call_id` only. Any other may be named by the id of its item."""
