"""The tool calls of an interaction, and the results of the provider's own tools."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import events, freeze, real_id, tool_call_delta
from rxdelta.formats.decoding import due, kept, others, word
from rxdelta.formats.gemini_interactions.steps import READ, Json, Out, Step
from rxdelta.formats.notes import PROVIDER_TYPE, SYNTHETIC_ID, call_identity

if TYPE_CHECKING:
    from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder

__all__ = ["add_arguments", "grow_tool", "ignore", "start_call", "start_result", "start_server_call"]


def start_call(decoder: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, path: str) -> None:
    name = READ.text_of(fields, "name", path)
    args = _arguments(fields.get("arguments"), f"{path}.arguments")
    content = {
        **_common(decoder, fields, path),
        "type": "tool_call_chunk",
        "name": name or None,
        "args": args,
    }
    decoder.start_block(out, step, "call", content)
    step.fed = bool(args)


def start_server_call(
    decoder: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, path: str
) -> None:
    name = READ.text_of(fields, "name", path) or step.kind.removesuffix("_call")
    args = _arguments(fields.get("arguments"), f"{path}.arguments")
    known = {"name": name, "args": args, PROVIDER_TYPE: step.kind}
    content = {**_common(decoder, fields, path), "type": "server_tool_call_chunk", **known}
    decoder.start_block(out, step, "server_call", content)


def _common(decoder: GeminiInteractionsDecoder, fields: Json, path: str) -> dict[str, Any]:
    call_id = real_id(READ.text_of(fields, "id", path))
    known = call_identity(call_id, decoder.made_up_id())
    return {**others(fields, _CALL), **known}


def start_result(decoder: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, path: str) -> None:
    call_id = real_id(READ.text_of(fields, "call_id", path)) or real_id(READ.text_of(fields, "id", path))
    output = freeze(fields.get("result"), lenient=True)
    known = {"tool_call_id": call_id, PROVIDER_TYPE: step.kind, "status": _status(fields), "output": output}
    decoder.start_block(
        out, step, "result", {**others(fields, _RESULT), "type": "server_tool_result", **known}
    )
    step.output = [] if output is None else [output]


def ignore(_: GeminiInteractionsDecoder, out: Out, step: Step, fields: Json, _path: str) -> None:
    """What the client put in is no part of the reply, and passes."""
    out.append(events.ProviderEvent("google", step.kind, kept(fields)))


def add_arguments(decoder: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    return step.writes in ("call", "server_call") and grow_tool(decoder, out, step, delta)


def grow_tool(_: GeminiInteractionsDecoder, out: Out, step: Step, delta: Json) -> bool:
    """More fields of a call, of a tool's call or of its result."""
    if step.writes not in ("call", "server_call", "result"):
        return False
    fields = others(delta, _TOOL_DELTA)
    args: str | Json = ""
    if word(delta.get("name")):
        fields["name"] = delta["name"]
    if step.writes == "result":
        call_id = real_id(word(delta.get("call_id")) or "")
        fields |= {"tool_call_id": call_id} if call_id else {}
        fields |= {"status": _status(delta)} if delta.get("is_error") is not None else {}
        if delta.get("result") is not None:
            _add_output(out, step, freeze(delta["result"], lenient=True))
    else:
        call_id = real_id(word(delta.get("id")) or "")
        fields |= {"id": call_id, SYNTHETIC_ID: False} if call_id and step.id is None else {}
        args = _arguments(delta.get("arguments", delta.get("partial_arguments")), "delta.arguments")
        fields |= {} if isinstance(args, str) else {"args": args}
        step.fed |= bool(args)
    if fields:
        out.append(events.BlockDelta(step.block, fields))
    if isinstance(args, str) and args:
        out.append(tool_call_delta(step.block, args))
    return True


def _add_output(out: Out, step: Step, result: Any) -> None:
    """A text goes on, and so does a list; anything else is replaced."""
    if isinstance(result, (str, list)) and step.output and isinstance(step.output[0], type(result)):
        step.output.append(result)
    else:
        step.output, step.size, step.told = [result], 0, 0
    step.size += len(result) if isinstance(result, (str, list)) else 1
    if due(step.size, step.told):
        step.tell(out)


def _status(fields: Json) -> str | None:
    failed = fields.get("is_error")
    return "error" if failed is True else "success" if failed is False else None


def _arguments(value: object, path: str) -> str | Json:
    """A call's arguments: a piece of their text, or the object."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    found: Json = freeze(READ.mapping(value, path), lenient=True)
    return found or ""


_CALL = frozenset(["type", "id", "name", "arguments"])


_RESULT = frozenset(["type", "id", "call_id", "result", "is_error"])


_TOOL_DELTA = frozenset(
    ["type", "id", "call_id", "name", "arguments", "partial_arguments", "result", "is_error"]
)
