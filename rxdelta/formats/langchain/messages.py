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
    """The events of one message's chunks, or of a message that is whole."""

    def __init__(self) -> None:
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
        kind, chunk_id, known_id = chunk.get("type", "AIMessageChunk"), chunk.get("id"), self._envelope.id
        if kind != "AIMessageChunk" or self._blocks.events:
            return None
        if chunk_id and chunk_id != known_id and id_rank(chunk_id) > id_rank(known_id):
            return None
        return text_delta(prose.key, text)

    def _read(self, message: Json, path: str) -> Sequence[Event]:
        if self._failed:
            return ()
        kind = word(message.get("type"))
        update = update_of_message(message)
        if update is not None:
            return (update,)
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
            if ended or self._envelope.finish_reason is not None:
                self._blocks.finish_all(self._envelope.fault)
            if last:
                self._finish(assumed=whole)
        return self._blocks.take_events()

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


def _pass_on(message: Json) -> Sequence[Event]:
    if all(
        value in NOTHING for name, value in message.items() if name not in ("type", "id", "chunk_position")
    ):
        return ()
    return (events.ProviderEvent("langchain", word(message.get("type")) or "message", kept(message)),)
