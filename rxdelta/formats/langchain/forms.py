"""The forms in which a message comes (LangChain's objects, stored and dumped messages, and generations), what LangGraph puts
around it in each of its modes, and the reports of tools.

    item     = (message, metadata)                astream(stream_mode="messages")
             | (namespace, payload)               … subgraphs=True
             | (mode, payload)                    … stream_mode=[…]
             | (namespace, mode, payload)         … both
             | type: mode ns data: payload        … version="v2"
             | type: `event` method: mode params  astream_events(version="v3")
    params   = namespace data: payload
    payload  = (message | event, metadata) | event    in the mode `messages`; on the wire without metadata

A server sends the same as JSON, where tuples are lists.

Tools report by messages, and by events while they run:

    tool    = event: `tool-started` | `tool-output-delta` | `tool-finished` | `tool-error`  tool_call_id …
    run     = event: `on_tool_end` data: output | `on_tool_error` data: error tool_call_id
    message = type: `tool` tool_call_id content status?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    InvalidValueError,
    LimitExceededError,
    ToolResult,
    events,
    freeze,
    is_list,
    is_mapping,
)
from rxdelta.formats.decoding import Json, as_mapping, kept, word
from rxdelta.formats.langchain.tables import (
    DISPLAY_TEXT,
    IN_RUN,
    MESSAGE_CLASSES,
    PARENT_RUN_ID,
    READ,
    RESULT,
    SYNTHETIC,
    TOOL_EVENTS,
    is_json_object,
)


def fields_of(chunk: object) -> Json:
    """A mapping as it is; of LangChain's objects all fields, also those that were never set."""
    if type(chunk) is dict:
        return chunk  # pyright: ignore[reportUnknownVariableType]
    if is_object(chunk):
        extra = getattr(chunk, "model_extra", None)
        return {**extra, **vars(chunk)} if extra else vars(chunk)
    message = None if is_mapping(chunk) else getattr(chunk, "message", None)
    if message is not None:
        return {"message": message, "generation_info": getattr(chunk, "generation_info", None)}
    return as_mapping(chunk, "langchain")


def message_in(found: Json, path: str = "") -> tuple[Json, str]:
    """The message that a chunk holds, and its path in the chunk."""
    if "message" in found and "content" not in found and "done" not in found:  # Ollama's lines have `done`
        inner, at = message_in(fields_of(found["message"]), f"{path}message.")
        info = found.get("generation_info")
        if is_mapping(info) and info:
            metadata = READ.mapping(inner.get("response_metadata"), f"{at}response_metadata")
            inner = {**inner, "response_metadata": {**info, **metadata}}
        return inner, at
    if found.get("type") == "constructor" and is_mapping(found.get("kwargs")):
        name = class_name(found)
        kind = MESSAGE_CLASSES.get(name, name) if isinstance(name, str) else name
        return {"type": kind, **found["kwargs"]}, f"{path}kwargs."
    data = found.get("data")
    if is_mapping(data) and "content" not in found:
        return {"type": found.get("type"), **data}, f"{path}data."
    return found, path


def is_message(value: object) -> bool:
    """Whether this can be a message: LangChain's object, or a mapping."""
    return is_object(value) or is_json_object(value)


def is_object(value: object) -> bool:
    """Whether this is a message as LangChain's object."""
    return "content" in getattr(value, "__dict__", ()) and isinstance(getattr(value, "type", None), str)


def message_of(value: object) -> Json:
    """The fields of a message in any form."""
    return message_in(fields_of(value))[0]


def class_name(stored: Json) -> object:
    """The class of a stored object, the last item of its `id`."""
    found = stored.get("id")
    return found[-1] if is_list(found) and found else None


class GraphItem(NamedTuple):
    """An item without its shape.

    Attributes:
        mode: LangGraph's stream mode; empty where the item doesn't say it.
        namespace: Which graph it comes from; empty for the outermost.
        payload: The content, by the mode.
        path: Where the payload stands in the item.
    """

    mode: str
    namespace: tuple[str, ...]
    payload: Any
    path: str


def graph_item(item: object) -> GraphItem | None:
    """The item without its shape; `None` if it has none of LangGraph's.

    Raises:
        MalformedChunkError: It is a tuple or a list, but none of LangGraph's.
    """
    if is_list(item):
        return _tuple(item)
    if not is_json_object(item) or ("params" not in item and "ns" not in item):
        return None
    params, mode = item.get("params"), item.get("type")
    if is_mapping(params) and mode == "event" and isinstance(item.get("method"), str):
        return GraphItem(
            item["method"], _namespace(params.get("namespace")), params.get("data"), "params.data"
        )
    if isinstance(mode, str) and "data" in item and is_list(item.get("ns")):
        return GraphItem(mode, _namespace(item["ns"]), item["data"], "data")
    return None


def message_pair(payload: object) -> tuple[object, Json] | None:
    """The message or event, and its metadata, of a payload in the mode `messages`; `None` if it is no such pair."""
    if not is_list(payload) or len(payload) != 2:
        return None
    found, metadata = payload
    return (found, metadata) if is_message(found) and is_mapping(metadata) else None


def _tuple(item: Sequence[Any]) -> GraphItem:
    match item:
        case [str(mode), payload]:
            return GraphItem(mode, (), payload, "[1]")
        case [namespace, payload] if is_list(namespace):
            return GraphItem(_mode_of(payload), _namespace(namespace), payload, "[1]")
        case [namespace, str(mode), payload] if is_list(namespace):
            return GraphItem(mode, _namespace(namespace), payload, "[2]")
        case _ if message_pair(item) is not None:
            return GraphItem("messages", (), item, "")
        case _:
            raise READ.fail("", "an object or one of LangGraph's tuples", item)


def _mode_of(payload: object) -> str:
    """The mode of an item of one mode, which doesn't name it."""
    if message_pair(payload) is not None:
        return "messages"
    return "tools" if is_mapping(payload) and word(payload.get("event")) in TOOL_EVENTS else ""


def _namespace(found: object) -> tuple[str, ...]:
    return tuple(part for part in found if isinstance(part, str)) if is_list(found) else ()


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
