"""The message of an interaction."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core import Event, TokenUsage, events, real_id
from rxdelta.formats.block_writer import BlockWriter
from rxdelta.formats.gemini_interactions.reading import READ, Json
from rxdelta.formats.gemini_interactions.tables import REASONS
from rxdelta.formats.json_values import NOTHING, others, remember, word
from rxdelta.formats.notes import FINISH_REASON_ASSUMED
from rxdelta.formats.usage import INTERACTIONS, RunningUsage

__all__ = ["Interaction"]


class Interaction:
    """What is known of an interaction as a whole, and the start and finish of its message."""

    def __init__(self, out: list[Event]) -> None:
        self.blocks = BlockWriter(out, 0)
        self.id: str | None = None
        self.model: str | None = None
        self.status: str | None = None
        self.metadata: dict[str, Any] = {}
        self.calls_client = False
        self.started = False
        self._out = out
        self._emitted: tuple[str | None, str | None] = (None, None)  # the id and model
        self._usage = _RunningUsage()

    def read(self, fields: Json, path: str) -> None:
        self.id = self.id or real_id(READ.text_of(fields, "id", path))
        self.model = self.model or word(fields.get("model"))
        self.status = READ.text_of(fields, "status", path) or self.status
        self.read_usage(fields.get("usage"), f"{path}.usage" if path else "usage")
        remember(self.metadata, others(fields, _INTERACTION))

    def read_usage(self, found: object, path: str) -> None:
        self._usage.read(found, path)

    def read_metadata(self, chunk: Json) -> None:
        """Read the usage that any chunk may have."""
        metadata = chunk.get("metadata")
        if isinstance(metadata, Mapping):
            for name in ("usage", "total_usage"):
                self.read_usage(metadata.get(name), f"metadata.{name}")

    def begin(self) -> None:
        if not self.started:
            self.started = True
            self._emitted = self.id, self.model
            self._out.append(events.MessageStart(self.id, self.model, self._usage.news(), self.metadata))

    def show_usage(self) -> None:
        """Emit the usage if it has changed."""
        usage = self._usage.news()
        if usage is not None:
            self._out.append(events.UsageUpdate(usage))

    def finish(self, *, assumed: bool) -> None:
        """Emit the finish. `assumed` says whether the provider gave no status of the end."""
        reason = "stop" if assumed else REASONS.get(self.status or "", "stop")
        if reason == "stop" and self.calls_client:
            reason = "tool_use"
        if assumed:
            self.metadata[FINISH_REASON_ASSUMED] = True
        emitted_id, emitted_model = self._emitted
        late = {} if self.id == emitted_id else {"id": self.id}
        late |= {} if self.model == emitted_model else {"model": self.model}
        metadata = {**late, **self.metadata}
        word = None if assumed else self.status
        self._out.append(events.MessageFinish(reason, word, self._usage.latest, metadata))

    def interrupt(self) -> None:
        """Emit the end of an interaction that the client has stopped."""
        self.show_usage()
        if self.metadata:
            self._out.append(events.ProviderEvent("google", f"interaction.{self.status}", self.metadata))
        self._out.append(events.MessageInterrupted(self.status, choice=0))


class _RunningUsage:
    """The usage, of which chunks have totals so far, in parts."""

    def __init__(self) -> None:
        self.latest: TokenUsage | None = None
        self._figures = RunningUsage(INTERACTIONS)
        self._emitted: TokenUsage | None = None

    def read(self, found: object, path: str) -> None:
        usage = READ.mapping(found, path)
        self.latest = self._figures.read({name: one for name, one in usage.items() if one not in NOTHING})

    def news(self) -> TokenUsage | None:
        """The latest usage, unless this has returned it before."""
        if self.latest is self._emitted:
            return None
        self._emitted = self.latest
        return self.latest


_INTERACTION = frozenset(["id", "model", "status", "usage", "steps", "outputs", "object", "input"])
