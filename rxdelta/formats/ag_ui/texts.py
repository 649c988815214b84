"""Texts and reasonings of AG-UI. Several texts may continue one message, with calls behind them.

AG-UI has no field for the sources that a message cites. They stand in the message's metadata, which clients keep and
send back, and once in a CUSTOM event: assistant-ui reads no metadata, but shows such an event as a part of the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from rxdelta.core import Citation, thaw
from rxdelta.formats.ag_ui.blocks import EncodedReply, StreamedBlock
from rxdelta.formats.ag_ui.marks import (
    CITATIONS,
    ENCRYPTED,
    LENGTH,
    OPTIONS,
    PARTS,
    SHOWN_REASON,
    SIGNATURE,
    SOURCES,
    SOURCES_EVENT,
    SYNTHETIC,
    TYPE,
    marked,
)


class MessageCall(Protocol):
    """A call that stands behind a text."""

    id: str
    done: bool
    answers: list[Any]

    def send_again(self, message: Any, /) -> None:
        """Send the call and its results again, in a message that has got another id."""

    def message_call(self) -> Any:
        """The call as a message in MESSAGES_SNAPSHOT repeats it."""


class TextMessage:
    """An assistant's message: texts one after the other, and the calls behind them.

    Attributes:
        texts: The blocks that the text consists of.
        growing: How many of them are open.
        calls: The calls behind the text.
        is_open: Whether the client waits for TEXT_MESSAGE_END.
    """

    def __init__(self, reply: EncodedReply, own_id: str) -> None:
        self.reply = reply
        self.run = reply.lane.run
        self.id = own_id
        self.texts: dict[TextBlock, None] = {}
        self.growing = 0
        self.calls: dict[MessageCall, None] = {}
        self.is_open = False
        self._reason: str | None = None
        self._told_sources: list[dict[str, Any]] = []

    def can_take(self, block: TextBlock) -> bool:
        """Whether a text may continue this message."""
        return not self.calls and not self.growing and self._kind() in (None, block.part.type)

    def _kind(self) -> str | None:
        """The type that all its texts have; `None` for a message without text."""
        return next((block.part.type for block in self.texts), None)

    def text(self) -> str:
        return "".join(piece for block in self.texts for piece in block.pieces)

    def open(self, kind: str) -> None:
        """Send TEXT_MESSAGE_START, unless the message is open. Opened again, it continues."""
        if self.is_open:
            return
        self.is_open = True
        self.reply.lane.open_texts.add(self)
        metadata = marked({} if kind == "text" else {TYPE: kind})
        self.reply.send(
            self.run.ag.TextMessageStartEvent(message_id=self.id, role="assistant", metadata=metadata)
        )

    def end(self) -> None:
        """Send TEXT_MESSAGE_END, if the message is open."""
        if self.is_open:
            self.is_open = False
            self.reply.lane.open_texts.remove(self)
            self._reason = self.reply.shown_reason()  # none yet, unless the text is the last of its reply
            metadata = self._metadata()
            self.reply.send(self.run.ag.TextMessageEndEvent(message_id=self.id, metadata=metadata))
            sources = (metadata or {}).get(SOURCES, [])
            if sources != self._told_sources:
                self._told_sources = sources
                self._tell_sources(sources)

    def count(self, growing: int) -> None:
        """So many more, or fewer, of its texts are open."""
        self.growing += growing
        self.reply.lane.open_texts.update(self)

    def drop_if_empty(self) -> None:
        """After a block was taken back: remove the message if it has none left."""
        if not self.texts and not self.calls:
            self.end()
            del self.reply.entries[self]
            self.reply.client.let_go_stale(self.id)
            self.run.free_id(self.id)

    def pause(self) -> list[str]:
        """End what is open, before the message is sent again.

        Returns:
            The ids of the messages that the client has of it.
        """
        self.end()
        for call in self.calls:
            if not call.done:
                self.reply.send(self.run.ag.ToolCallEndEvent(tool_call_id=call.id))
        return [self.id, *(answer.id for call in self.calls for answer in call.answers)]

    def send_again(self) -> None:
        """Send the message and its calls under another id. Open messages are opened again."""
        kind = self._kind()
        if kind is not None:
            self.open(kind)
        if text := self.text():
            self.reply.send(self.run.ag.TextMessageContentEvent(message_id=self.id, delta=text))
        if not self.growing:
            self.end()
        for call in self.calls:
            call.send_again(self)

    def messages(self) -> list[Any]:
        """The message and the results of its calls, as MESSAGES_SNAPSHOT repeats them."""
        calls = [call.message_call() for call in self.calls]
        message = self.run.ag.AssistantMessage(
            id=self.id,
            content=self.text() or None,
            tool_calls=calls or None,
            metadata=self._metadata(),
        )
        return [message, *(answer for call in self.calls for answer in call.answers)]

    def _metadata(self) -> dict[str, Any] | None:
        """The fields that a front end may show beside the text, and our marks."""
        cited = (citation for block in self.texts for citation in block.part.citations)
        known: dict[str, Any] = {SOURCES: sources_of(self.id, cited) or None, SHOWN_REASON: self._reason}
        shown = {name: value for name, value in known.items() if value is not None}
        return {**shown, **(marked(self._marks()) or {})} or None

    def _tell_sources(self, sources: list[dict[str, Any]]) -> None:
        value, metadata = {"messageId": self.id, SOURCES: sources}, marked({SYNTHETIC: True})
        self.reply.send(self.run.ag.CustomEvent(name=SOURCES_EVENT, value=value, metadata=metadata))

    def _marks(self) -> dict[str, Any]:
        """Where each text ends, and its fields; nothing if there are only lengths."""
        parts = [block.marks() for block in self.texts]
        return {PARTS: parts} if any(len(part) > 1 for part in parts) else {}


class TextBlock(StreamedBlock):
    """A text, or a refusal."""

    message: TextMessage | None = None

    def finish(self) -> None:
        if self.part.citations or (SIGNATURE in self.part.options and self.run.show_reasoning):
            self._open_message()  # even if it is empty: its end has these fields
        if not self.done and self.message is not None:
            self.message.count(-1)
        self.done = True

    def marks(self) -> dict[str, Any]:
        """The block as one of the parts of its message."""
        part = self.part
        marks: dict[str, Any] = {LENGTH: sum(map(len, self.pieces))}
        if part.type != "text":
            marks[TYPE] = part.type
        options = {
            name: thaw(part.options[name])
            for name in part.options
            if name != SIGNATURE or self.run.show_reasoning
        }
        if options:
            marks[OPTIONS] = options
        if part.citations:
            marks[CITATIONS] = [citation.to_dict() for citation in part.citations]
        return marks

    def _send(self, piece: str) -> None:
        message = self._open_message()
        self.reply.send(self.run.ag.TextMessageContentEvent(message_id=message.id, delta=piece))

    def _open_message(self) -> TextMessage:
        """The message that the text belongs to, opened if it isn't."""
        message = self.message
        if message is None:
            message = self.message = text_message(self.reply, self)
            message.texts[self] = None
            message.count(0 if self.done else 1)
        message.open(self.part.type)
        return message

    def _retract(self) -> bool:
        message = self.message
        if message is None:
            return False
        message.count(0 if self.done else -1)
        del message.texts[self]
        message.drop_if_empty()
        return True


def text_message(reply: EncodedReply, block: TextBlock | None = None) -> TextMessage:
    """The message that a text continues, or a call belongs to; a new one where the last entry can't take it."""
    last = next(reversed(reply.entries), None)
    if isinstance(last, TextMessage) and (block is None or last.can_take(block)):
        return last
    reply.lane.open_texts.end_complete()
    message = TextMessage(reply, reply.ids.first_or_next())
    reply.entries[message] = None
    return message


_ENCRYPTED_OPTIONS = (SIGNATURE, "encrypted_content", "data")
"""The options that only the provider can read. The first one found travels as the encrypted value."""


class ReasoningBlock(StreamedBlock):
    """A reasoning. REASONING_START is sent at once, so that a client can show that the model is thinking."""

    _is_open = False  # the client waits for REASONING_END
    _message_is_open = False  # the client waits for REASONING_MESSAGE_END
    _reuses_id = False  # the client has a message with its id, of a reasoning that was taken back

    def announce(self, *, force: bool = False) -> bool:  # noqa: ARG002
        """Send REASONING_START at once."""
        if not self.id:
            self._open()
        return True

    def _open(self) -> None:
        """Send REASONING_START, unless the reasoning is open. Opened again, it continues."""
        if self._is_open:
            return
        reply = self.reply
        self.lane.open_texts.end_complete()
        if not self.id:
            reusable, reply.reusable_reasoning_id = reply.reusable_reasoning_id, None
            self._reuses_id = reusable is not None
            self.id = reusable or reply.ids.next()
        self._is_open = True
        self.run.floor.begin_reasoning(self.pause)
        self.reply.send(self.run.ag.ReasoningStartEvent(message_id=self.id))

    def finish(self) -> None:
        if self._marks() or self._encrypted_value():
            self._open_message()  # even if it is empty: its end has these fields
        self._end()
        self.done = True

    def pause(self) -> list[str]:
        """End what is open. The reasoning continues when more of it comes.

        Returns:
            The ids of the messages that the client has of it.
        """
        if self._message_is_open:
            self.reply.send(self.run.ag.ReasoningMessageEndEvent(message_id=self.id))
        self._close()
        return [self.id]

    def send_again(self) -> None:
        """Send the reasoning under another id. Open messages are opened again."""
        self._open_message()
        if text := "".join(self.pieces):
            self.reply.send(self.run.ag.ReasoningMessageContentEvent(message_id=self.id, delta=text))
        if self.done:
            self._end()

    def messages(self) -> list[Any]:
        """The message as MESSAGES_SNAPSHOT repeats it."""
        return [
            self.run.ag.ReasoningMessage(
                id=self.id,
                content="".join(self.pieces),
                encrypted_value=self._encrypted_value() if self.done else None,
                metadata=marked(self._marks()) if self.done else None,
            )
        ]

    def _send(self, piece: str) -> None:
        self._open_message()
        self.reply.send(self.run.ag.ReasoningMessageContentEvent(message_id=self.id, delta=piece))

    def _open_message(self) -> None:
        self._open()
        if not self._message_is_open:
            self._message_is_open = True
            self.reply.entries.setdefault(self)
            self.reply.send(self.run.ag.ReasoningMessageStartEvent(message_id=self.id, role="reasoning"))

    def _end(self) -> None:
        """End what is open, with the fields that only a complete reasoning has."""
        if self._message_is_open:
            metadata = marked(self._marks())
            self.reply.send(self.run.ag.ReasoningMessageEndEvent(message_id=self.id, metadata=metadata))
        if (value := self._encrypted_value()) is not None:
            self.reply.send(
                self.run.ag.ReasoningEncryptedValueEvent(
                    subtype="message", entity_id=self.id, encrypted_value=value
                )
            )
        self._close()

    def _close(self) -> None:
        if self._is_open:
            self.reply.send(self.run.ag.ReasoningEndEvent(message_id=self.id))
        self._is_open = self._message_is_open = False
        self.run.floor.end_reasoning(self.pause)

    def _retract(self) -> bool:
        reply = self.reply
        self.pause()
        seen = self in reply.entries
        if seen:
            del reply.entries[self]
            reply.client.let_go_stale(self.id)
        if (seen or self._reuses_id) and reply.reusable_reasoning_id is None:
            reply.reusable_reasoning_id = self.id
        else:
            self.run.free_id(self.id)
        return seen

    def _encrypted_option(self) -> str | None:
        """The name of the option that travels as the encrypted value."""
        options = self.part.options
        for name in _ENCRYPTED_OPTIONS:
            value = options.get(name)
            if isinstance(value, str) and value:
                return name
        return None

    def _encrypted_value(self) -> str | None:
        name = self._encrypted_option()
        return None if name is None else self.part.options[name]

    def _marks(self) -> dict[str, Any]:
        encrypted = self._encrypted_option()
        options = {name: thaw(value) for name, value in self.part.options.items() if name != encrypted}
        marks: dict[str, Any] = {OPTIONS: options} if options else {}
        if encrypted not in (None, SIGNATURE):
            marks[ENCRYPTED] = encrypted
        return marks


def sources_of(message_id: str, citations: Iterable[Citation]) -> list[dict[str, Any]]:
    """The sources of a message, each once, in the order in which they are cited.

    Args:
        message_id: The message's id, with which the sources' ids begin.
        citations: The citations of the message. A citation without an address and a title names no source.

    Example:
        >>> import rxdelta as rd
        >>> sources_of("m1", [rd.Citation(url="https://sea.example", title="The sea")])
        [{'type': 'source', 'sourceType': 'url', 'id': 'm1-source-1', 'url': 'https://sea.example', 'title': 'The sea'}]
    """
    found: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for citation in citations:
        url, title = citation.url or None, citation.title or None
        key = (url, None if url else title)
        if (url or title) and key not in found:
            where = {"url": url} if url else {"mediaType": "text/plain"}
            own_id = f"{message_id}-source-{len(found) + 1}"
            kind = "url" if url else "document"
            found[key] = {"type": "source", "sourceType": kind, "id": own_id, **where}
            if title:
                found[key]["title"] = title
    return [*found.values()]
