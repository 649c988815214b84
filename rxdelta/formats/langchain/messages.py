"""Messages: how the chunks of one message begin it, add to it and end it."""

from __future__ import annotations

from collections.abc import Sequence

from rxdelta.core import Event, events, text_delta
from rxdelta.formats.json_values import NOTHING, kept, word
from rxdelta.formats.langchain.blocks import Blocks
from rxdelta.formats.langchain.content import ContentReader
from rxdelta.formats.langchain.envelope import Envelope, id_rank
from rxdelta.formats.langchain.fields import READ, Json
from rxdelta.formats.langchain.forms import message_in
from rxdelta.formats.langchain.tables import (
    CONTENT_FIELDS,
    MESSAGE_FIELDS,
    MESSAGE_TYPES,
    TEXT_CHUNK_FIELDS,
    WHOLE_MESSAGE_TYPES,
)
from rxdelta.formats.langchain.tool_reports import update_of_message

__all__ = ["MessageReader"]


class MessageReader:
    """The events of a message's chunks, or of a message that is whole; then of the next message."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._envelope = Envelope()
        self._blocks = Blocks()
        self._content = ContentReader(self._envelope, self._blocks)
        self._finished = False
        self._failed = False  # the message's reason said that the provider failed: the stream is over

    @property
    def started(self) -> bool:
        """Whether the message has begun."""
        return self._envelope.started

    def read(self, found: Json, path: str = "") -> Sequence[Event]:
        """The events of a chunk or a whole message, in any form. One that belongs to no reply of the model is passed on."""
        more_text = self._more_text(found)
        return self._read(*message_in(found, path)) if more_text is None else (more_text,)

    def _more_text(self, chunk: Json) -> Event | None:
        """The event of a chunk that is nothing but more of the current text, as nearly all are; else `None`."""
        text, prose = chunk.get("content"), self._blocks.prose
        if type(text) is not str or not text or prose is None or prose.space not in ("text", "item"):
            return None
        for name, value in chunk.items():
            if value and name not in TEXT_CHUNK_FIELDS:
                return None
        kind, chunk_id, envelope = chunk.get("type", "AIMessageChunk"), chunk.get("id"), self._envelope
        if kind != "AIMessageChunk" or self._blocks.events:
            return None
        if chunk_id and chunk_id != envelope.own_id and chunk_id != envelope.provider_id:
            return None
        return text_delta(prose.key, text)

    def _read(self, message: Json, path: str) -> Sequence[Event]:
        if self._failed:
            return ()
        kind = word(message.get("type"))
        update = update_of_message(message)
        if update is not None:
            return (update,)
        if self._begins_another(message, kind, path):
            return [*self._end(), *self._read(message, path)]
        if (kind is not None and kind not in MESSAGE_TYPES) or self._finished:
            return _pass_on(message)
        if kind is None and MESSAGE_FIELDS.isdisjoint(message):  # a graph's state
            return _pass_on(message)
        whole = kind in WHOLE_MESSAGE_TYPES and "tool_call_chunks" not in message
        if whole and self._envelope.started:  # the end of a run repeats the message
            return _pass_on(message)
        last = whole or message.get("chunk_position") == "last"
        ended = self._envelope.read(message, path) or last
        if not self._envelope.started and (ended or _begins_message(message)):
            self._blocks.events.append(self._envelope.begin())
        if self._envelope.started:
            self._content.read(message, path)
            self._read_usage(message, path)
            if _brings_nothing(message):
                self._blocks.events += _pass_on(message)
            if ended or self._envelope.finish_reason is not None:
                self._blocks.finish_all(self._envelope.fault)
            if last:
                self._finish(assumed=whole)
        return self._blocks.take_events()

    def _begins_another(self, message: Json, kind: str | None, path: str) -> bool:
        """Whether a chunk is of another message than the one before, which has ended.

        Raises:
            MalformedChunkError: The one before has not ended. Without their metadata the two would be woven.
        """
        message_id, envelope = word(message.get("id")), self._envelope
        if message_id is None or not envelope.started or (kind is not None and kind not in MESSAGE_TYPES):
            return False
        ended = self._finished or envelope.finish_reason is not None
        if not envelope.is_of_another(message_id, ended=ended) or not _has_content(message):
            return False
        if not ended:
            wanted = "the id of the message that is still open (of several at a time keep LangGraph's tuples)"
            raise READ.fail(f"{path}id", wanted, message_id)
        return True

    def _end(self) -> Sequence[Event]:
        """The end of the message, for which nothing more comes. The next one begins."""
        self._finish(assumed=False)
        out = self._blocks.take_events()
        if not self._failed:
            self._reset()
        return out

    def close(self, *, whole: bool) -> Sequence[Event]:
        """End of input: the finish, if the provider gave a reason, or if the message is whole without one."""
        if self._envelope.started and (whole or self._envelope.finish_reason is not None):
            self._finish(assumed=whole)
        return self._blocks.take_events()

    def _read_usage(self, message: Json, path: str) -> None:
        usage = message.get("usage_metadata")
        if usage is not None:
            update = self._envelope.read_usage(READ.mapping(usage, f"{path}usage_metadata"))
            if update is not None:
                self._blocks.events.append(update)

    def _finish(self, *, assumed: bool) -> None:
        if not self._finished:
            envelope = self._envelope
            self._blocks.finish_all(envelope.fault)
            self._finished, self._failed = True, envelope.broken is not None
            self._blocks.events += envelope.finish(assumed=assumed, asked=self._blocks.calls_client)


def _begins_message(message: Json) -> bool:
    """Whether a chunk begins the message.

    A chunk without content whose id is LangChain's own doesn't: the next one may have the provider's.
    """
    return id_rank(message.get("id")) == 3 or any(message.get(name) for name in CONTENT_FIELDS)


def _has_content(message: Json) -> bool:
    return any(message.get(name) for name in _CONTENT)


def _brings_nothing(message: Json) -> bool:
    """Whether a chunk has no content, but fields that no message has: the content may be among them."""
    if _has_content(message) or message.get("usage_metadata"):
        return False
    return any(value not in NOTHING for name, value in message.items() if name not in _KNOWN)


def _pass_on(message: Json) -> Sequence[Event]:
    if all(
        value in NOTHING for name, value in message.items() if name not in ("type", "id", "chunk_position")
    ):
        return ()
    return (events.ProviderEvent("langchain", word(message.get("type")) or "message", kept(message)),)


_CONTENT = ("content", "tool_call_chunks", "tool_calls", "additional_kwargs")
_KNOWN = MESSAGE_FIELDS | {"name"}
