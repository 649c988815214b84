"""The tool calls of an interaction, and the results of the provider's own tools."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from typing import Any

from rxdelta.core import events, freeze, real_id, thaw
from rxdelta.formats.gemini_interactions.interaction import Interaction
from rxdelta.formats.gemini_interactions.reading import READ, Json
from rxdelta.formats.gemini_interactions.step import Step
from rxdelta.formats.gemini_interactions.tables import default_tool_name
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import kept, others, word
from rxdelta.formats.notes import PROVIDER_TYPE, SIGNED_BY, SYNTHETIC_ID
from rxdelta.formats.signatures import GOOGLE
from rxdelta.formats.tool_calls import arguments_after_end, call_identity, invalid_call

__all__ = ["Call", "Result", "ServerCall"]


class _Tool(Step):
    """A step whose deltas have fields of the step, under its own type or another one of tools."""

    def read(self, kind: str, delta: Json) -> bool:
        if kind == "arguments_delta" and _ARGUMENTS.isdisjoint(delta):
            return False
        if kind == self.kind or kind.endswith(("_call", "_result")):
            return self.add_fields(delta)
        return super().read(kind, delta)

    def add_fields(self, delta: Json) -> bool:
        if self.writes is None:
            return False
        fields = _signed(others(delta, _TOOL_DELTA))
        if word(delta.get("name")):
            fields["name"] = delta["name"]
        self.add_known(delta, fields)
        return True

    def add_known(self, delta: Json, fields: dict[str, Any]) -> None:
        """Add the fields that this kind of step reads. `fields` are the others, which change the block too."""
        raise NotImplementedError


class _AnyCall(_Tool):
    """A call, whose arguments are JSON text or an object.

    It writes `call`, then `arguments` once there is some of the text, or `object` once there is the object.
    """

    def start(self, fields: Json, path: str, content: Json) -> None:
        args = _arguments(fields.get("arguments"), f"{path}.arguments")
        call_id = real_id(READ.text_of(fields, "id", path))
        identity = call_identity(call_id, f"{self.interaction.id or 'call'}-{self.blocks.count}")
        self.start_block("call", {**_signed(others(fields, _CALL)), **identity, **content, "args": args})
        if args:
            self.writes = _written(args)

    def add_known(self, delta: Json, fields: dict[str, Any]) -> None:
        call_id = real_id(word(delta.get("id")))
        if call_id and self.id is None:
            fields |= {"id": call_id, SYNTHETIC_ID: False}
        args = _arguments(delta.get("arguments", delta.get("partial_arguments")), "delta.arguments")
        if args:
            self.writes = _written(args)
        if not isinstance(args, str):
            fields["args"] = args
        if fields:
            self.blocks.change(self.block, fields)
        if isinstance(args, str):
            self.blocks.add_arguments(self.block, args)

    READS = {**Step.READS, "arguments_delta": _Tool.add_fields}


class Call(_AnyCall):
    """A call for the client."""

    def begin(self, fields: Json, path: str, /) -> None:
        name = READ.text_of(fields, "name", path) or None
        if "arguments" not in fields and not _OF_A_CALL.issuperset(fields):  # the arguments may be among them
            self.blocks.out.append(events.ProviderEvent("google", self.kind, kept(fields)))
        self.start(fields, path, {"type": "tool_call_chunk", "name": name})
        self.interaction.calls_client = True

    def add_fields(self, delta: Json) -> bool:
        """Read a delta. Arguments make the call invalid if it has ended, and a piece of them if it had an object."""
        args = _arguments(delta.get("arguments", delta.get("partial_arguments")), "delta.arguments")
        has_more = self.writes == "object" and isinstance(args, str) and args.strip() != ""
        if self.writes is not None and not has_more:
            return super().add_fields(delta)
        if not args or self.late_is_known:
            return False
        self.late_is_known, self.writes = True, None
        text = args if isinstance(args, str) else json.dumps(thaw(args), ensure_ascii=False)
        self.blocks.finish(self.block, arguments_after_end(text))
        return True

    READS = {**_AnyCall.READS, "arguments_delta": add_fields}

    def is_doubtful(self) -> bool:
        """A call without arguments needs none, or was cut off before they came."""
        return self.writes == "call"

    def finish_block(self, cut: str | None, /) -> None:
        self.blocks.finish(self.block, None if cut is None else invalid_call(cut))


class ServerCall(_AnyCall):
    """A call of one of the provider's own tools."""

    def begin(self, fields: Json, path: str, /) -> None:
        name = READ.text_of(fields, "name", path) or default_tool_name(self.kind)
        self.start(fields, path, {"type": "server_tool_call_chunk", "name": name, PROVIDER_TYPE: self.kind})


class Result(_Tool):
    """The result of one of the provider's own tools. Deltas exist for the step but not for the block."""

    def __init__(self, interaction: Interaction, index: int, kind: str, fields: Json) -> None:
        super().__init__(interaction, index, kind, fields)
        self._output = GrowingList()
        self._type: type | None = None  # of its pieces

    def begin(self, fields: Json, path: str, /) -> None:
        call_id = real_id(READ.text_of(fields, "call_id", path)) or real_id(READ.text_of(fields, "id", path))
        output = freeze(fields.get("result"), lenient=True)
        known = {
            "tool_call_id": call_id,
            PROVIDER_TYPE: self.kind,
            "status": _status(fields),
            "output": output,
        }
        self.start_block(
            "result", {**_signed(others(fields, _RESULT)), "type": "server_tool_result", **known}
        )
        if output is not None:
            self._output, self._type = GrowingList([output]), type(output)

    def add_known(self, delta: Json, fields: dict[str, Any]) -> None:
        call_id = real_id(word(delta.get("call_id")))
        if call_id:
            fields["tool_call_id"] = call_id
        if delta.get("is_error") is not None:
            fields["status"] = _status(delta)
        if delta.get("result") is not None:
            self._add_output(freeze(delta["result"], lenient=True))
        if fields:
            self.blocks.change(self.block, fields)

    def _add_output(self, result: Any) -> None:
        """Add a piece of a text or a list. Any other value replaces the previous value."""
        continues = isinstance(result, (str, list))
        if not continues or type(result) is not self._type:
            self._output, self._type = GrowingList(), type(result)
        self._output.add(result, len(result) if continues else 1)
        self._emit_output(at_end=False)

    def _emit_output(self, *, at_end: bool) -> None:
        output = self._output.take(at_end=at_end)
        if output is not None:
            self.blocks.change(self.block, {"output": _joined(output)})

    def flush(self) -> None:
        self._emit_output(at_end=True)


def _signed(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, SIGNED_BY: GOOGLE} if "signature" in fields else fields


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], str):
        return "".join(pieces)
    return [item for piece in pieces for item in piece] if isinstance(pieces[0], list) else pieces[0]


def _status(fields: Json) -> str | None:
    failed = fields.get("is_error")
    return "error" if failed is True else "success" if failed is False else None


def _written(args: str | Json) -> str:
    return "arguments" if isinstance(args, str) else "object"


def _arguments(value: object, path: str) -> str | Json:
    """The arguments of a call: a piece of their text, or the object if it is not empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    found: Json = freeze(READ.mapping(value, path), lenient=True)
    return found or ""


_ARGUMENTS = frozenset(["arguments", "partial_arguments"])
_CALL = frozenset(["type", "id", "name", "arguments"])
_OF_A_CALL = _CALL | {"signature"}
_RESULT = frozenset(["type", "id", "call_id", "result", "is_error"])
_TOOL_DELTA = frozenset(
    ["type", "id", "call_id", "name", "arguments", "partial_arguments", "result", "is_error"]
)
