"""LangChain's event protocol: events of ours by its names, the agent protocol's envelope, and runs that hold chunks.

    envelope = type: `event` method params
    params   = data: (event | tool | custom)    by the method: `messages`, `tools`, `custom`; any other is passed on
    tool     = event: `tool-started` | `tool-output-delta` | `tool-finished` | `tool-error`
    run      = event: `on_chat_model_stream` data: chunk          of `astream_events`; other runs are passed on

What `to_langchain_events` adds is in `marks.py`.
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
    is_mapping,
)
from rxdelta.formats.json_values import kept, word
from rxdelta.formats.langchain.envelope import reason_word
from rxdelta.formats.langchain.fields import READ, Index, Json
from rxdelta.formats.langchain.forms import fields_of, message_in
from rxdelta.formats.langchain.marks import (
    ATTEMPT_RESET,
    CUSTOM_NAME,
    DISPLAY_TEXT,
    FOLDED,
    INTERRUPTED,
    RESULT,
    SOURCE_INDEX,
    SYNTHETIC,
)
from rxdelta.formats.langchain.messages import MessageReader
from rxdelta.formats.langchain.protocol_content import read_content, without_assumed
from rxdelta.formats.langchain.tables import (
    DELTA_TYPES,
    EVENT_FIELDS,
    EVENT_NAMES,
    FINISH_REASONS,
    TOOL_EVENTS,
)
from rxdelta.formats.notes import SYNTHETIC_ID

__all__ = ["ProtocolReader"]

_ADDED = frozenset([SOURCE_INDEX, SYNTHETIC_ID, FOLDED])


class ProtocolReader:
    """Reads events, alone or in an envelope.

    Attributes:
        failed: Whether an error has ended the stream.
    """

    def __init__(self, messages: MessageReader) -> None:
        self.failed = False
        self._messages = messages
        self._source_indexes: dict[int, Index] = {}  # by the index in the frames, where it is another
        self._outputs: dict[str, str] = {}  # of the tools that run, so far

    def read_event(self, found: Json, path: str = "") -> Sequence[Event]:
        if found["event"].startswith("on_"):
            return self._read_run(found)
        event = _event(found, path)
        more = {name: value for name, value in found.items() if name not in EVENT_FIELDS}
        passed_on: Sequence[Event] = ()
        if more and not isinstance(event, events.ProviderEvent):
            passed_on = (events.ProviderEvent("langchain", event.event, kept(more)),)
        if isinstance(event, events.StreamError):
            self.failed = True
            return (*passed_on, event)
        return (event, *passed_on)

    def _read_run(self, found: Json) -> Sequence[Event]:
        data = READ.mapping(found.get("data"), "data")
        chunk = data.get("chunk")
        if found["event"] == "on_chat_model_stream" and chunk is not None:
            return self._messages.read(*message_in(fields_of(chunk), "data.chunk."))
        return (events.ProviderEvent("langchain", found["event"], kept(found)),)

    def read_envelope(self, found: Json) -> Sequence[Event]:
        method, data = found["method"], READ.mapping(found.get("params"), "params").get("data")
        if is_mapping(data):
            if method == "messages" and isinstance(data.get("event"), str):
                return self._read_message_event(data, "params.data.")
            if method == "tools" and word(data.get("event")) in TOOL_EVENTS:
                return self._read_tool_event(data)
            payload = data.get("payload")
            if method == "custom" and data.get("name") == CUSTOM_NAME and is_mapping(payload):
                event = {"event": "", **payload}
                if isinstance(event["event"], str):
                    return (_event(event, "params.data.payload."),)
        return (events.ProviderEvent("langchain", method, kept(found)),)

    def _read_message_event(self, data: Json, path: str) -> Sequence[Event]:
        """An event without the marks, and as they say."""
        name, index = data["event"], data.get("index")
        if name == "content-block-delta" and not self._source_indexes:
            return self.read_event(data, path)
        if name == "message-start":
            self._source_indexes = {}
        elif name == "content-block-start" and type(index) is int:
            self._source_indexes.pop(index, None)
            if isinstance(data.get(SOURCE_INDEX), (int, str)):
                self._source_indexes[index] = data[SOURCE_INDEX]
        if data.get(SYNTHETIC) is True:
            return ()
        reset = data.get(ATTEMPT_RESET)
        if name == "error" and is_mapping(reset):
            return (_event({**reset, "event": "attempt-reset"}, f"{path}{ATTEMPT_RESET}."),)
        if name == "message-finish" and INTERRUPTED in data:
            return (events.MessageInterrupted(word(data[INTERRUPTED])),)
        wire = {name: value for name, value in data.items() if name not in _ADDED}
        if type(index) is int and index in self._source_indexes:
            wire["index"] = self._source_indexes[index]
        if data.get(SYNTHETIC_ID) is True:
            wire.pop("id", None)
        if is_mapping(data.get("usage")):
            wire["usage"] = without_assumed(data["usage"])
        if data.get(FOLDED) is True:
            wire.pop("content", None)
        return self.read_event(wire, path)

    def _read_tool_event(self, data: Json) -> Sequence[Event]:
        """An event of a call that runs. The tool's input is not read: the call has it."""
        if data.get(SYNTHETIC) is True:
            return ()
        name, call_id = data["event"], data.get("tool_call_id")
        if not isinstance(call_id, str):
            raise READ.fail("params.data.tool_call_id", "a string", call_id)
        try:
            result = self._tool_result(data, name, call_id)
            update = events.ToolUpdate(call_id, TOOL_EVENTS[name], data.get(DISPLAY_TEXT), result)
        except InvalidValueError as error:
            raise READ.fail(f"params.data.{error.field}", f"what a {name} has there", error.value) from None
        if update.execution_status != "executing":
            self._outputs.pop(call_id, None)
        return (update,)

    def _tool_result(self, data: Json, name: str, call_id: str) -> ToolResult | None:
        if name == "tool-output-delta":
            output = self._outputs.get(call_id, "") + READ.text(data.get("delta"), "params.data.delta")
            if len(output) > DEFAULT_LIMITS.block_chars:
                limit = DEFAULT_LIMITS.block_chars
                raise LimitExceededError.of("block_chars", limit, "the output of one tool")
            self._outputs[call_id] = output
            return ToolResult(call_id, output)
        if RESULT in data:
            found = data[RESULT]
            path = f"params.data.{RESULT}"
            return None if found is None else ToolResult.from_dict(READ.mapping(found, path))
        if name == "tool-finished":
            return ToolResult(call_id, data.get("output"))
        if name == "tool-error":
            return ToolResult(call_id, data.get("message"), is_error=True)
        return None


def _event(found: Json, path: str) -> Event:
    """The event of a wire form, in today's spelling or an older one, in our names or the protocol's."""
    name, delta = found["event"].replace("_", "-"), found.get("delta")
    wire = dict(found)
    if name in EVENT_NAMES:
        wire["event"] = name
    if is_mapping(delta) and isinstance(delta.get("type"), str):
        kind = delta["type"].replace("_", "-")
        wire["delta"] = delta = {**delta, "type": kind} if kind in DELTA_TYPES else delta
        if kind == "block-delta" and is_mapping(delta.get("fields")):
            wire["delta"] = {**delta, "fields": read_content(delta["fields"])}
    if is_mapping(wire.get("content")):
        wire["content"] = read_content(wire["content"])
    more = wire.get("additional_kwargs", wire.get("additionalKwargs"))
    if name == "message-finish" and is_mapping(more) and more:
        metadata = wire.get("metadata")
        wire["metadata"] = {**(metadata if is_mapping(metadata) else {}), "additional_kwargs": more}
    try:
        event = events.from_dict(wire)
    except InvalidValueError as error:
        raise READ.fail(f"{path}{error.field}", f"what an event of {name} has there", error.value) from None
    return _with_reason(event) if isinstance(event, events.MessageFinish) else event


def _with_reason(event: events.MessageFinish) -> Event:
    """Translate the reason. Python's events have none of their own, only the provider's in the metadata."""
    found = event.reason or reason_word(event.metadata)
    reason = None if found is None else FINISH_REASONS.get(found.lower())
    if found is None or (event.reason is not None and reason not in ("length", "content_filter")):
        return event  # whether there are calls decides between the other reasons
    provider_reason = event.provider_reason if reason == event.reason else event.provider_reason or found
    return events.MessageFinish(
        reason or found, provider_reason, event.usage, event.metadata, choice=event.choice
    )
