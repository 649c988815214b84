"""LangChain: the chunks of its chat models, whole messages, and the event protocol that its newer models speak.

    stream  = message* | event*
    message = type? content: text | [text | part]* tool_call_chunks? tool_calls? invalid_tool_calls? usage_metadata?
              additional_kwargs? response_metadata? id? chunk_position?
    part    = type index? id? …                 `text`, `reasoning`, `tool_call_chunk`, …, or a provider's own
    event   = event: `message-start` | `content-block-start` | `content-block-delta` | …

**Events** are our own events in today's spelling or an older one, and pass unchanged. In the envelope
of the agent protocol they use the protocol's names (`base64`, `annotations`), and `to_langchain_events` adds marks
(`tables.py`) from which the original events are restored. The channel `tools` reports on the calls that run.

**Messages** (`messages.py`) come in several forms (`forms.py`): as LangChain's objects, as the results of `model_dump`,
`messages_to_dict` and `toDict`, as Python and JavaScript store them (`lc`, `kwargs`), in a generation (`message`), and
in the events of `astream_events`.

Merging follows LangChain's own `+`. Two parts of a list, or two fragments of calls, are one if they have the same
`index`, a whole number or a string that begins with `lc_`, and no two different ids. A part without such an index is
whole: nothing continues it. Text is appended, and so are the other strings of a part (except a repeated name or type);
lists are appended, numbers are added, and a field that changes its type is an error. A content that is a string is one
text, until a part of a list interrupts it.

Where `+` would lose something, the decoder departs from it. Fragments of one call within the first chunk are joined. A
part of another type begins a new block. A fragment without an id, at the index of several calls, belongs to the first
whose arguments are incomplete. The last value of metadata counts: `+` would make `mm` of a model that is named twice.
Usage is added up as in `+`, and each event has the sum so far.

**Calls** (`calls.py`) stand in `tool_call_chunks` and again in the content, in the standard's form or the provider's.
They are read once, at their place in the content. The `tool_calls` of a chunk are read only if it has no fragments,
because LangChain makes them of half fragments.

**Fields beside the content** become what they mean: `reasoning_content`, `refusal`, `audio` and the old
`function_call` of `additional_kwargs` become blocks. The rest of `additional_kwargs` stays in the message's metadata.

**The end** is the chunk with `chunk_position: "last"`, or a whole message. A finish reason (which each provider writes
into `response_metadata` under a name of its own) ends the blocks, but the message only at the end of input, since the
usage may follow. A chunk with content behind the end, and with another id, begins another message.

The `index` of a block is a string that shows its place in LangChain's message: `part:1` is the part of the content
with that index, `call:0` the call with that one, `call:~3` a call without an index that is the message's fourth
block, `text:0` a content that is a string and the first block.

The event protocol has events of ours by its names, alone or in what LangGraph puts around them, and runs:

    payload = event | message | tool | custom   by the mode: `messages`, `tools`, `custom`; any other is passed on
    custom  = name? payload | anything          the application's; with `id` and `transient` of `to_langchain_events`
    run     = event: `on_chat_model_stream` data: chunk      of `astream_events` v1, v2; others are passed on
            | event: `on_chat_model_end` data: output        read where the model didn't stream
            | event: `on_tool_end` | `on_tool_error`
            | event: `on_custom_event` name data

The shapes around a payload are in `forms.py`, what `to_langchain_events` adds in `tables.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import Event, InvalidValueError, events, is_mapping
from rxdelta.formats.decoding import Json, kept, word
from rxdelta.formats.endings import assumed_finish, broken_events
from rxdelta.formats.langchain.envelope import reason_word
from rxdelta.formats.langchain.forms import (
    GraphItem,
    ToolReader,
    class_name,
    fields_of,
    graph_item,
    is_message,
    is_object,
    message_pair,
    update_of_run,
)
from rxdelta.formats.langchain.messages import MessageReader
from rxdelta.formats.langchain.protocol_content import read_content, without_assumed
from rxdelta.formats.langchain.tables import (
    ATTEMPT_RESET,
    BROKEN,
    CUSTOM_NAME,
    DELTA_FIELDS,
    EVENT_FIELDS,
    EVENT_NAMES,
    FINISH_REASONS,
    FOLDED,
    IN_RUN,
    INTERRUPTED,
    READ,
    SOURCE_INDEX,
    SYNTHETIC,
    TOOL_EVENTS,
    Index,
)
from rxdelta.formats.notes import SYNTHETIC_ID
from rxdelta.framing import DONE

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


class LangChainDecoder:
    """Message chunks, messages and protocol events of one stream in, events out.

    Example:
        >>> decoder = LangChainDecoder()
        >>> chunk = {"type": "AIMessageChunk", "content": "Hi", "id": "m1", "chunk_position": "last"}
        >>> [event.event for event in decoder.decode(chunk)][:3]
        ['message-start', 'content-block-start', 'content-block-delta']
        >>> decoder.decode({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "Hi"}})
        (TextDelta(index=0, text='Hi', choice=0),)
    """

    def __init__(self) -> None:
        self._messages = MessageReader()
        self._protocol = ProtocolReader(self._messages)
        self._closed = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping; LangChain's `AIMessageChunk`, `AIMessage` or generation; LangGraph's tuple.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and the value found there.
            LimitExceededError: An index is absurd.
        """
        if self._closed or self._protocol.failed:
            return ()
        if chunk is DONE:
            return [*self._messages.close(whole=True), *self._protocol.close()]
        item = None if is_object(chunk) else graph_item(chunk)
        if item is not None:
            return self._protocol.read_item(item, chunk)
        found = fields_of(chunk)
        if isinstance(found.get("event"), str):
            return self._protocol.read_event(found)
        return self._messages.read(found)

    def close(self) -> Sequence[Event]:
        """End of input: the message's finish, if the provider gave a reason. A message without one was cut off."""
        if self._closed:
            return ()
        self._closed = True
        return () if self._protocol.failed else self._messages.close(whole=False)


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format, or a message that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"type": "AIMessageChunk", "content": "Hi"})
        True
        >>> recognises({"event": "message-start", "id": "m1", "role": "ai"})
        True
        >>> recognises({"type": "message_start", "message": {"id": "m1", "content": []}})
        False
    """
    name, kind = chunk.get("event"), chunk.get("type")
    if isinstance(name, str):
        if name.startswith(("on_chat_model_", "on_chain_", "on_tool_", "on_custom_event")):
            return True
        name = name.replace("_", "-")
        fields = EVENT_FIELDS.get(name)
        return name in EVENT_NAMES and (fields is None or any(field in chunk for field in fields))
    if graph_item(chunk) is not None:
        return True
    if kind in ("ChatGenerationChunk", "ChatGeneration"):
        return "message" in chunk
    if kind == "constructor":
        is_message = class_name(chunk) in ("AIMessage", "AIMessageChunk")
        return is_message and isinstance(chunk.get("kwargs"), Mapping)
    if kind in ("AIMessageChunk", "ai"):
        return "content" in chunk or isinstance(chunk.get("data"), Mapping)
    if kind is None and isinstance(chunk.get("message"), Mapping):
        return "content" not in chunk and recognises(chunk["message"])
    typical = ("response_metadata", "usage_metadata", "tool_call_chunks", "chunk_position")
    return kind is None and "content" in chunk and any(name in chunk for name in typical)
