"""The fields of a message as a whole: its id, model, metadata, usage and finish reason, as the chunks give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rxdelta.core import Event, FrozenDict, TokenUsage, events, freeze, is_mapping
from rxdelta.formats.calls import BROKEN_OFF, CUT_OFF
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.endings import Broken, assumed_finish, broken_events
from rxdelta.formats.langchain.blocks import add_usage, merge, remember
from rxdelta.formats.langchain.tables import (
    BROKEN,
    FINISH_REASONS,
    MESSAGE_FIELDS,
    MODEL_FIELDS,
    READ,
    REASON_FIELDS,
    SIGNERS,
)
from rxdelta.formats.notes import via
from rxdelta.formats.usage import usage_of_langchain


class Envelope:
    """A message without its content.

    Attributes:
        id: The best id so far.
        finish_reason: Ours; `None` until the provider gives one.
        broken: The failure that the provider's reason stands for, if it is one.
        own_id, provider_id: LangChain's id of the run, and the first of the provider's, as far as chunks have had them.
        started: Whether the message's start has been emitted.
        start_id: The id that it had.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.own_id: str | None = None
        self.provider_id: str | None = None
        self.finish_reason: str | None = None
        self.broken: Broken | None = None
        self.started = False
        self.start_id: str | None = None
        self._start_model: str | None = None
        self._provider_reason: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._kwargs: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._emitted_usage: TokenUsage | None = None

    @property
    def fault(self) -> str | None:
        """Why an open call is invalid: the reply was cut off, or broke off."""
        return CUT_OFF if self.finish_reason == "length" else None if self.broken is None else BROKEN_OFF

    @property
    def signed_by(self) -> str:
        """Whose the signatures of the message are."""
        return via("langchain", SIGNERS.get(str(self._metadata.get("model_provider"))))

    def read(self, message: Json, path: str) -> bool:
        """Take a chunk's id, model and metadata. Returns whether the finish reason is among them."""
        found = READ.text(message.get("id"), f"{path}id")
        if found and is_own(found):
            self.own_id = self.own_id or found
        elif found:
            self.provider_id = self.provider_id or found
        if found and id_rank(found) > id_rank(self.id):
            self.id = found
        metadata = READ.mapping(message.get("response_metadata"), f"{path}response_metadata")
        self._model = self._model or word(metadata.get("model_name")) or word(metadata.get("model"))
        remember(
            self._metadata, {name: value for name, value in metadata.items() if name not in MODEL_FIELDS}
        )
        remember(
            self._metadata,
            {
                name: value
                for name, value in message.items()
                if name not in MESSAGE_FIELDS and value is not False
            },
        )
        reason = reason_word(metadata)
        if reason is None or self.finish_reason is not None:
            return False
        self._provider_reason = reason
        self.finish_reason, self.broken = (
            FINISH_REASONS.get(reason.lower(), "stop"),
            BROKEN.get(reason.lower()),
        )
        return True

    def is_of_another(self, found: str, *, ended: bool) -> bool:
        """Whether the id of a chunk is that of another message: it has another id of LangChain's.

        Another id of the provider's says so only behind the end: some servers have a new one for each chunk.
        """
        known = self.own_id if is_own(found) else self.provider_id if ended else None
        return known is not None and known != found

    def read_kwargs(self, kwargs: Json, path: str) -> None:
        """Merge what is left of `additional_kwargs`."""
        merge(self._kwargs, kwargs, path)

    def read_usage(self, usage: Json) -> events.UsageUpdate | None:
        """Add a usage to the sum. Returns the event of the new sum, if it is another."""
        if not usage:
            return None
        add_usage(self._usage, freeze(usage, "usage", lenient=True))
        total = usage_of_langchain(FrozenDict(self._usage))
        if total is None or total == self._emitted_usage:
            return None
        self._emitted_usage = total
        return events.UsageUpdate(total)

    def begin(self) -> events.MessageStart:
        self.started, self.start_id, self._start_model = True, self.id, self._model
        plain = {name: value for name, value in self._metadata.items() if isinstance(value, str)}
        return events.MessageStart(self.id, self._model, None, plain)

    def finish(self, *, assumed: bool, asked: bool) -> Sequence[Event]:
        """The finish, with the id and the model in its metadata if they came after the start; or the provider's failure.

        Args:
            assumed: Whether the message is whole, though there is no reason.
            asked: Whether the message has calls for the client.
        """
        late: dict[str, Any] = {} if self._model == self._start_model else {"model": self._model}
        if self.id != self.start_id:
            late["message_id"] = self.id
        if self._kwargs:
            late["additional_kwargs"] = self._kwargs
        word, metadata = self._provider_reason, {**self._metadata, **late}
        if self.broken is not None and word is not None:
            return broken_events("langchain", word, self.broken, None, metadata)
        if assumed and word is None:
            return (assumed_finish(self._emitted_usage, metadata, asked=asked),)
        return (events.MessageFinish(self.finish_reason, word, self._emitted_usage, metadata),)


def id_rank(found: object) -> int:
    """How good an id is: best is a provider's, then that of a run, then any other of LangChain's."""
    if not found:
        return 0
    if not (isinstance(found, str) and found.startswith("lc_")):
        return 3
    return 2 if found.startswith("lc_run-") else 1


def is_own(message_id: str) -> bool:
    """Whether LangChain made the id of a run's message."""
    return message_id.startswith(("lc_run-", "run-"))


def reason_word(metadata: Json) -> str | None:
    """The provider's finish reason, whichever name it has."""
    for name in REASON_FIELDS:
        if found := word(metadata.get(name)):
            return found
    status = word(metadata.get("status"))  # of OpenAI's Responses
    if status not in ("completed", "incomplete", "failed"):
        return None
    details = metadata.get("incomplete_details")
    return word(details.get("reason") if is_mapping(details) else None) or status
