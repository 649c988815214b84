"""Text messages of AG-UI: several texts may continue one message, with calls behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import thaw
from rxdelta.formats.ag_ui.blocks import StreamedBlock
from rxdelta.formats.ag_ui.marks import (
    CITATIONS,
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
from rxdelta.formats.ag_ui.sources import sources_of

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.calls import CallBlock
    from rxdelta.formats.ag_ui.reply import EncodedReply

__all__ = ["OpenTexts", "TextBlock", "TextMessage"]


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
        self.run = reply.run
        self.id = own_id
        self.texts: dict[TextBlock, None] = {}
        self.growing = 0
        self.calls: dict[CallBlock, None] = {}
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
            self.run.stale_ids.append(self.id)
            self.reply.lane.free_id(self.id)

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
        """Send the message and its calls under another id. What was open is open again."""
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
        """What a front end may show beside the text, and our marks."""
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


class OpenTexts:
    """The text messages without TEXT_MESSAGE_END.

    Messages without an open block are kept in a second dict, so that ending them needs no search.
    """

    def __init__(self) -> None:
        self._all: dict[TextMessage, None] = {}
        self._complete: dict[TextMessage, None] = {}

    def add(self, message: TextMessage) -> None:
        self._all[message] = None
        self.update(message)

    def remove(self, message: TextMessage) -> None:
        del self._all[message]
        self._complete.pop(message, None)

    def update(self, message: TextMessage) -> None:
        """The number of open blocks of a message has changed."""
        if message in self._all and not message.growing:
            self._complete[message] = None
        else:
            self._complete.pop(message, None)

    def end_complete(self) -> None:
        """End the messages that no open block continues, because something else follows."""
        for message in [*self._complete]:
            message.end()

    def end_all(self) -> None:
        for message in [*self._all]:
            message.end()


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
            message = self.message = self.reply.text_message(self)
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
