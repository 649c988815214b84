"""What becomes of the calls: the messages of tools, and the events of tools that run.

tool    = event: `tool-started` | `tool-output-delta` | `tool-finished` | `tool-error`  tool_call_id …
run     = event: `on_tool_end` data: output | `on_tool_error` data: error tool_call_id
message = type: `tool` tool_call_id content status?
"""

from __future__ import annotations

from collections.abc import Sequence

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    InvalidValueError,
    LimitExceededError,
    ToolResult,
    events,
    freeze,
    is_mapping,
)
from rxdelta.formats.json_values import kept, word
from rxdelta.formats.langchain.fields import READ, Json, is_list
from rxdelta.formats.langchain.forms import is_message, message_of
from rxdelta.formats.langchain.marks import DISPLAY_TEXT, IN_RUN, PARENT_RUN_ID, RESULT, SYNTHETIC
from rxdelta.formats.langchain.tables import TOOL_EVENTS

__all__ = ["ToolReader", "update_of_message", "update_of_run"]


def update_of_message(message: Json) -> events.ToolUpdate | None:
    """The call's end, of a tool's message; `None` for a message that answers no call."""
    call_id = word(message.get("tool_call_id"))
    if message.get("type") != "tool" or call_id is None:
        return None
    failed = message.get("status") == "error"
    result = ToolResult(call_id, freeze(message.get("content"), lenient=True), failed)
    return events.ToolUpdate(call_id, "failed" if failed else "completed", None, result)


def update_of_run(name: str, data: Json) -> events.ToolUpdate | None:
    """The call's end, of an event of `astream_events`; `None` if it has no call's id or ends no call."""
    if name == "on_tool_end":
        message = _tool_message(data.get("output"))
        return None if message is None else update_of_message(message)
    call_id = word(data.get("tool_call_id"))
    if name != "on_tool_error" or call_id is None:
        return None
    result = ToolResult(call_id, str(data.get("error") or ""), is_error=True)
    return events.ToolUpdate(call_id, "failed", None, result)


class ToolReader:
    """Reads the events of tools that run."""

    def __init__(self) -> None:
        self._outputs: dict[str, str] = {}  # so far, by the call's id

    def read(self, data: Json, path: str) -> Sequence[Event]:
        """The tool's input is not read: the call has it."""
        if data.get(SYNTHETIC) is True:
            return ()
        name, call_id = data["event"], data.get("tool_call_id")
        if not isinstance(call_id, str):
            raise READ.fail(f"{path}tool_call_id", "a string", call_id)
        message = _tool_message(data.get("output")) if name == "tool-finished" else None
        update = None if message is None else update_of_message({**message, "tool_call_id": call_id})
        try:
            update = update or events.ToolUpdate(
                call_id, TOOL_EVENTS[name], data.get(DISPLAY_TEXT), self._result(data, name, call_id, path)
            )
        except InvalidValueError as error:
            raise READ.fail(f"{path}{error.field}", f"what a {name} has there", error.value) from None
        if update.execution_status != "executing":
            self._outputs.pop(call_id, None)
        if name == "tool-finished" and "output" not in data and not _FINISHED.issuperset(data):
            return update, events.ProviderEvent("langchain", name, kept(data))  # a tool may return nothing
        return (update,)

    def _result(self, data: Json, name: str, call_id: str, path: str) -> ToolResult | None:
        if name == "tool-output-delta":
            READ.require(data, ("delta",), path.removesuffix("."))
            delta = data.get("delta")
            if not isinstance(delta, str):  # a tool may write anything
                return ToolResult(call_id, freeze(delta, lenient=True))
            output = self._outputs.get(call_id, "") + delta
            if len(output) > DEFAULT_LIMITS.block_chars:
                limit = DEFAULT_LIMITS.block_chars
                raise LimitExceededError.of("block_chars", limit, "the output of one tool")
            self._outputs[call_id] = output
            return ToolResult(call_id, output)
        if RESULT in data:
            found = data[RESULT]
            return None if found is None else ToolResult.from_dict(READ.mapping(found, f"{path}{RESULT}"))
        if name == "tool-finished":
            return ToolResult(call_id, freeze(data.get("output"), lenient=True))
        if name == "tool-error":
            READ.require(data, ("message",), path.removesuffix("."))
            return ToolResult(call_id, data.get("message"), is_error=True)
        return None


_FINISHED = frozenset(
    ["event", "tool_call_id", "tool_name", DISPLAY_TEXT, IN_RUN, PARENT_RUN_ID, RESULT, SYNTHETIC]
)


def _tool_message(output: object) -> Json | None:
    """The message in what a tool returned: alone, or in the update of a command."""
    update = getattr(output, "update", None)
    if not is_mapping(output) and is_mapping(update):
        messages = update.get("messages")
        found = [_tool_message(one) for one in messages] if is_list(messages) else []
        return next(filter(None, found), None)
    if not is_message(output) or (is_mapping(output) and output.get("type") not in ("tool", "constructor")):
        return None
    message = message_of(output)
    return message if message.get("type") == "tool" else None
