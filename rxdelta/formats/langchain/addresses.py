"""To which run an item of a stream belongs.

| item                                           | run                                       | its parent              |
| ---------------------------------------------- | ----------------------------------------- | ----------------------- |
| `astream_events` v1, v2: `on_chat_model_…`     | the `run_id`                              | first of `parent_ids`   |
| v3: an event with metadata                     | the metadata's `run_id`                   | `langgraph_checkpoint_ns` |
| a message of the model with metadata           | `langgraph_checkpoint_ns`/id of the message | `langgraph_checkpoint_ns` |
| the agent protocol on the wire                 | the namespace, joined by bars             | the namespace above     |
| … of `to_langchain_events`, in all its modes   | the same                                  | as the message's start says |
| anything else: a tool's message, a state, …    | none                                      |                         |

**A message's id changes** while it streams: some providers give an id with the first chunk or a later one, and the other
chunks have LangChain's, `lc_run--…`. Two models that one node calls at a time have one namespace. So an id that is new is
not always that of a new message. LangGraph gives all chunks of a message the very same metadata object: a chunk with a
new id continues the open message that has this object. Where the objects are copies (as JSON), an id of LangChain's
continues the one open message of equal metadata that has no such id yet. Without such evidence the chunk begins a
message: two messages are never woven, though one that no chunk continues remains incomplete. A message has one id of
LangChain's, so one with another is another message.
"""

from __future__ import annotations

from rxdelta.core import is_list
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.langchain.envelope import is_own
from rxdelta.formats.langchain.forms import GraphItem, graph_item, is_object, message_of, message_pair
from rxdelta.formats.langchain.tables import (
    CUSTOM_NAME,
    IN_RUN,
    MESSAGE_TYPES,
    PARENT_RUN_ID,
    SEPARATOR,
    WHOLE_MESSAGE_TYPES,
    is_json_object,
)
from rxdelta.formats.runs import Address

_ENDED = 4_096
"""So many messages that have ended are remembered, in order to recognise what repeats them."""

_COMPARED = 8
"""The most open messages of a node whose metadata are compared by value."""


class Addresses:
    """Says of each item of one stream to which run it belongs."""

    def __init__(self) -> None:
        self._messages = _Messages()

    def __call__(self, item: object) -> Address | None:
        if is_object(item):
            return None
        if is_json_object(item) and isinstance(event := item.get("event"), str):
            return _of_run(item, event) if event.startswith("on_chat_model_") else None
        found = graph_item(item)
        if found is None or found.mode != "messages":
            return None if found is None else _of_ours(found)
        pair = message_pair(found.payload)
        if pair is not None:
            message, metadata = pair
            if is_json_object(message) and isinstance(event := message.get("event"), str):
                return _of_event(event, metadata)
            return self._messages.address(message, metadata)
        if not found.namespace or not is_json_object(found.payload):
            return None
        above = SEPARATOR.join(found.namespace[:-1])
        parent = word(found.payload.get(PARENT_RUN_ID, above))
        return Address(
            SEPARATOR.join(found.namespace), parent, found.payload.get("event") == "message-finish"
        )


def _of_ours(found: GraphItem) -> Address | None:
    """The frames that `to_langchain_events` writes beside the messages of a run."""
    payload, run_id = found.payload, SEPARATOR.join(found.namespace)
    if not is_json_object(payload) or not run_id:
        return None
    if found.mode == "custom" and payload.get("name") == CUSTOM_NAME:
        event = payload.get("payload")
        return Address(run_id, word(event.get(PARENT_RUN_ID)) if is_json_object(event) else None)
    return Address(run_id) if found.mode in ("tools", "custom") and payload.get(IN_RUN) is True else None


def _of_run(item: Json, event: str) -> Address | None:
    run_id, parents = word(item.get("run_id")), item.get("parent_ids")
    if run_id is None:
        return None
    return Address(
        run_id, word(parents[0]) if is_list(parents) and parents else None, event == "on_chat_model_end"
    )


def _of_event(event: str, metadata: Json) -> Address | None:
    run_id = word(metadata.get("run_id"))
    if run_id is None:
        return None
    return Address(run_id, _checkpoint(metadata), event in ("message-finish", "error"))


def _checkpoint(metadata: Json) -> str | None:
    return word(metadata.get("langgraph_checkpoint_ns")) or word(metadata.get("checkpoint_ns"))


class _Message:
    """A message that streams.

    Attributes:
        metadata: The metadata of its first chunk.
        ids: The ids of its chunks; empty for a first chunk that has none.
        has_own: Whether one of them is LangChain's.
    """

    __slots__ = ("address", "checkpoint", "has_own", "ids", "metadata")

    def __init__(self, checkpoint: str, message_id: str | None, metadata: Json) -> None:
        self.checkpoint = checkpoint
        self.metadata = metadata
        self.ids: list[str] = []
        self.has_own = False
        self.address = Address(f"{checkpoint}/{message_id}" if message_id else checkpoint, checkpoint)


class _Messages:
    """The messages of all nodes, by the ids of their chunks."""

    def __init__(self) -> None:
        self._open: dict[str, dict[_Message, None]] = {}
        self._by_id: dict[tuple[str, str], _Message] = {}
        self._ended: dict[tuple[str, str], Address] = {}

    def address(self, found: object, metadata: Json) -> Address | None:
        """The run of a chunk or a message of the model; of any other message `None`."""
        checkpoint = _checkpoint(metadata)
        fields = message_of(found)
        kind = word(fields.get("type")) or "AIMessageChunk"
        if checkpoint is None or kind not in MESSAGE_TYPES:
            return None
        whole = kind in WHOLE_MESSAGE_TYPES and "tool_call_chunks" not in fields
        message_id = word(fields.get("id"))
        key = (checkpoint, message_id or "")
        message = self._by_id.get(key)
        if message is None:
            if key in self._ended:
                return self._ended[key]
            continued = None if whole else self._continued(checkpoint, message_id, metadata)
            message = continued or _Message(checkpoint, message_id, metadata)
            self._open.setdefault(checkpoint, {})[message] = None
            if message_id is not None or continued is None:
                message.ids.append(key[1])
                message.has_own = message.has_own or is_own(key[1])
                self._by_id[key] = message
        if whole or fields.get("chunk_position") == "last":
            self._end(message)
            return message.address._replace(last=True)
        return message.address

    def _continued(self, checkpoint: str, message_id: str | None, metadata: Json) -> _Message | None:
        """The open message that a chunk with a new id, or with none, continues."""
        own = message_id is not None and is_own(message_id)
        fit = [one for one in self._open.get(checkpoint, ()) if not (own and one.has_own)]
        same = [one for one in fit if one.metadata is metadata]
        if not same and (own or message_id is None) and len(fit) <= _COMPARED:
            same = [one for one in fit if one.metadata == metadata]
        return same[0] if len(same) == 1 else None

    def _end(self, message: _Message) -> None:
        still_open = self._open[message.checkpoint]
        del still_open[message]
        if not still_open:
            del self._open[message.checkpoint]
        for message_id in message.ids:
            key = (message.checkpoint, message_id)
            del self._by_id[key]
            if message_id:
                self._ended[key] = message.address._replace(repeated=True)
        while len(self._ended) > _ENDED:
            del self._ended[next(iter(self._ended))]
