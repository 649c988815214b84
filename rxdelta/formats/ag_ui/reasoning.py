"""Reasoning messages of AG-UI."""

from __future__ import annotations

from typing import Any

from rxdelta.core import thaw
from rxdelta.formats.ag_ui.blocks import StreamedBlock
from rxdelta.formats.ag_ui.marks import ENCRYPTED, OPTIONS, SIGNATURE, marked

__all__ = ["ReasoningBlock"]

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
        self.reply.lane.open_texts.end_complete()
        if not self.id:
            reusable, reply.reusable_reasoning_id = reply.reusable_reasoning_id, None
            self._reuses_id = reusable is not None
            self.id = reusable or reply.ids.next()
        self._is_open = True
        self.run.open_reasoning[self] = None
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
        """Send the reasoning under another id. What was open is open again."""
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
        self.run.open_reasoning.pop(self, None)

    def _retract(self) -> bool:
        reply = self.reply
        self.pause()
        seen = self in reply.entries
        if seen:
            del reply.entries[self]
            self.run.stale_ids.append(self.id)
        if (seen or self._reuses_id) and reply.reusable_reasoning_id is None:
            reply.reusable_reasoning_id = self.id
        else:
            reply.lane.free_id(self.id)
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
