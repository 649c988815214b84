"""LangChain: the chunks of its chat models, whole messages, and the event protocol that its newer models speak.

    stream  = message* | event*
    message = type? content: text | [text | part]* tool_call_chunks? tool_calls? invalid_tool_calls? usage_metadata?
              additional_kwargs? response_metadata? id? chunk_position?
    part    = type index? id? …                 `text`, `reasoning`, `tool_call_chunk`, …, or a provider's own
    event   = event: `message-start` | `content-block-start` | `content-block-delta` | …

**Events** (`protocol.py`) are our own events in today's spelling or an older one, and pass unchanged. In the envelope
of the agent protocol they use the protocol's names (`base64`, `annotations`), and `to_langchain_events` adds marks
(`marks.py`) from which the original events are restored. The channel `tools` reports on the calls that run.

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
whose arguments are incomplete. Of metadata the last value counts: `+` would make `mm` of a model that is named twice.
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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import Event
from rxdelta.formats.langchain.forms import class_name, fields_of, is_object
from rxdelta.formats.langchain.graph_items import graph_item
from rxdelta.formats.langchain.messages import MessageReader
from rxdelta.formats.langchain.protocol import ProtocolReader
from rxdelta.formats.langchain.tables import EVENT_FIELDS, EVENT_NAMES
from rxdelta.framing import DONE

__all__ = ["LangChainDecoder", "recognises"]


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
