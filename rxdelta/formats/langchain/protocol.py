"""LangChain's event protocol: events of ours by its names, alone or in what LangGraph puts around them, and runs.

    payload = event | message | tool | custom   by the mode: `messages`, `tools`, `custom`; any other is passed on
    custom  = name? payload | anything          the application's; with `id` and `transient` of `to_langchain_events`
    run     = event: `on_chat_model_stream` data: chunk      of `astream_events` v1, v2; others are passed on
            | event: `on_chat_model_end` data: output        read where the model didn't stream
            | event: `on_tool_end` | `on_tool_error`
            | event: `on_custom_event` name data

The shapes around a payload are in `graph_items.py`, what `to_langchain_events` adds in `marks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rxdelta.core import Event, InvalidValueError, events, is_mapping
from rxdelta.formats.endings import assumed_finish, broken_events
from rxdelta.formats.json_values import kept, word
from rxdelta.formats.langchain.envelope import reason_word
from rxdelta.formats.langchain.fields import READ, Index, Json
from rxdelta.formats.langchain.forms import fields_of, is_message
from rxdelta.formats.langchain.graph_items import GraphItem, message_pair
from rxdelta.formats.langchain.marks import (
    ATTEMPT_RESET,
    CUSTOM_NAME,
    FOLDED,
    IN_RUN,
    INTERRUPTED,
    SOURCE_INDEX,
    SYNTHETIC,
)
from rxdelta.formats.langchain.messages import MessageReader
from rxdelta.formats.langchain.protocol_content import read_content, without_assumed
from rxdelta.formats.langchain.tables import (
    BROKEN,
    DELTA_FIELDS,
    EVENT_NAMES,
    FINISH_REASONS,
    TOOL_EVENTS,
)
from rxdelta.formats.langchain.tool_reports import ToolReader, update_of_run
from rxdelta.formats.notes import SYNTHETIC_ID

__all__ = ["ProtocolReader"]

_OF_A_MESSAGE = (events.MessageStart, events.MessageFinish, events.MessageInterrupted, events.StreamError)
_ADDED = frozenset([SOURCE_INDEX, SYNTHETIC_ID, FOLDED])
_CUSTOM_FIELDS = frozenset(["name", "payload", "id", "transient", IN_RUN])
_UNNAMED = "custom"
"""The name of data that LangGraph's `StreamWriter` wrote without one."""


class ProtocolReader:
    """Reads events, alone or in what LangGraph puts around them.

    Attributes:
        failed: Whether an error has ended the stream.
    """

    def __init__(self, messages: MessageReader) -> None:
        self.failed = False
        self._is_open = False  # a message has started and not ended
        self._messages = messages
        self._source_indexes: dict[int, Index] = {}  # by the index in the frames, where it is another
        self._tools = ToolReader()

    def read_event(self, found: Json, path: str = "") -> Sequence[Event]:
        if found["event"].startswith("on_"):
            return self._read_run(found)
        event = _event(found, path)
        if type(event) in _OF_A_MESSAGE:
            self._is_open = isinstance(event, events.MessageStart)
            self.failed = isinstance(event, events.StreamError)
            word = _reason_of(event) if isinstance(event, events.MessageFinish) else None
            broken = None if word is None else BROKEN.get(word.lower())
            if isinstance(event, events.MessageFinish) and word is not None and broken is not None:
                self.failed = True
                return broken_events("langchain", word, broken, event.usage, event.metadata)
        return (event,)

    def close(self) -> Sequence[Event]:
        """The end of a reply that is whole, though its finish hasn't come."""
        is_open, self._is_open = self._is_open, False
        return (assumed_finish(None, {}, asked=False),) if is_open else ()

    def _read_run(self, found: Json) -> Sequence[Event]:
        name = found["event"]
        custom = _custom(found, found.get("data")) if name == "on_custom_event" else None
        if custom is not None:
            return (custom,)
        data = READ.mapping(found.get("data"), "data")
        if name == "on_chat_model_stream" and data.get("chunk") is not None:
            return self._messages.read(fields_of(data["chunk"]), "data.chunk.")
        if name == "on_chat_model_end" and is_message(data.get("output")) and not self._messages.started:
            return self._messages.read(fields_of(data["output"]), "data.output.")  # it didn't stream
        update = update_of_run(name, data)
        return (update or events.ProviderEvent("langchain", name, kept(found)),)

    def read_item(self, item: GraphItem, found: object) -> Sequence[Event]:
        """The events of what LangGraph emits, `found` with its shape."""
        data, path = item.payload, item.path
        if item.mode == "messages":
            pair = message_pair(data)
            if pair is not None:
                data, path = fields_of(pair[0]), f"{path}[0]"
            if is_mapping(data) and isinstance(data.get("event"), str):
                return self._read_message_event(data, f"{path}.")
            if pair is not None:
                return self._messages.read(data, f"{path}.")
        elif item.mode == "tools" and is_mapping(data) and word(data.get("event")) in TOOL_EVENTS:
            return self._tools.read(data, f"{path}.")
        elif item.mode == "custom" and is_mapping(data) and data.get("name") == CUSTOM_NAME:
            payload = data.get("payload")
            if is_mapping(payload) and isinstance(payload.get("event", ""), str):
                return (_event({"event": "", **payload}, f"{path}.payload."),)
        elif item.mode == "custom":
            is_ours = is_mapping(data) and "payload" in data and data.keys() <= _CUSTOM_FIELDS
            custom = _custom(data, data["payload"]) if is_ours else None
            return (custom or events.Custom(_UNNAMED, _json(data)),)
        shown = found if is_mapping(found) else {"type": item.mode, "ns": item.namespace, "data": data}
        return (events.ProviderEvent("langchain", item.mode or "state", kept(shown)),)

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


def _custom(found: Json, data: object) -> events.Custom | None:
    """The application's own data; `None` if a field is none that `to_langchain_events` or LangChain would write."""
    name, own_id = found.get("name", _UNNAMED), found.get("id")
    if not isinstance(name, str) or not name or not isinstance(own_id, (str, type(None))):
        return None
    return events.Custom(name, _json(data), own_id, found.get("transient") is True)


def _json(value: object) -> Any:
    return kept({"": value})[""]


def _event(found: Json, path: str) -> Event:
    """The event of a wire form, in today's spelling or an older one, in our names or the protocol's."""
    name, delta = found["event"].replace("_", "-"), found.get("delta")
    if name == "content-block-start":
        READ.require(found, ("content",) if "content_block" not in found else (), path)
        content = found.get("content") or found.get("content_block")
        READ.require(content if is_mapping(content) else {}, ("type",), f"{path}content")
    wire = dict(found)
    if name in EVENT_NAMES:
        wire["event"] = name
    if is_mapping(delta) and isinstance(delta.get("type"), str):
        kind = delta["type"].replace("_", "-")
        field = DELTA_FIELDS.get(kind)
        if field is not None:
            READ.require(delta, (field,), f"{path}delta")
            wire["delta"] = delta = {**delta, "type": kind}
        if kind == "block-delta" and is_mapping(delta.get("fields")):
            wire["delta"] = {**delta, "fields": read_content(delta["fields"])}
    if is_mapping(wire.get("content")):
        wire["content"] = read_content(wire["content"])
    more = wire.pop("additional_kwargs", wire.pop("additionalKwargs", None))
    if name == "message-finish" and is_mapping(more) and more:
        metadata = wire.get("metadata")
        wire["metadata"] = {**(metadata if is_mapping(metadata) else {}), "additional_kwargs": more}
    try:
        event = events.from_dict(wire)
    except InvalidValueError as error:
        raise READ.fail(f"{path}{error.field}", f"what an event of {name} has there", error.value) from None
    return _with_reason(event) if isinstance(event, events.MessageFinish) else event


def _reason_of(event: events.MessageFinish) -> str | None:
    return event.reason or reason_word(event.metadata)


def _with_reason(event: events.MessageFinish) -> Event:
    """Translate the reason. Python's events have none of their own, only the provider's in the metadata."""
    found = _reason_of(event)
    reason = None if found is None else FINISH_REASONS.get(found.lower())
    if found is None or (event.reason is not None and reason not in ("length", "content_filter")):
        return event  # whether there are calls decides between the other reasons
    provider_reason = event.provider_reason if reason == event.reason else event.provider_reason or found
    return events.MessageFinish(
        reason or found, provider_reason, event.usage, event.metadata, choice=event.choice
    )
