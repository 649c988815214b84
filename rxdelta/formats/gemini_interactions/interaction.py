"""The message of an interaction, and the base of its steps."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rxdelta.core import Event, TokenUsage, events, finish_reason, real_id
from rxdelta.formats.block_events import BlockWriter
from rxdelta.formats.decoding import NOTHING, Json, kept, others, remember, word
from rxdelta.formats.gemini_interactions.tables import READ, REASONS
from rxdelta.formats.notes import FINISH_REASON_ASSUMED, GOOGLE, signed
from rxdelta.formats.usage import INTERACTIONS, RunningUsage


class Interaction:
    """The fields of an interaction as a whole, and the start and finish of its message."""

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
        reason = None if assumed else REASONS.get(self.status or "")
        reason = finish_reason(reason, asked=self.calls_client)
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


class Step:
    """A step, which writes one block after another. A step of an unknown type is kept whole."""

    def __init__(self, interaction: Interaction, index: int, kind: str, fields: Json) -> None:
        self.interaction = interaction
        self.blocks = interaction.blocks
        self.index = index
        self.kind = kind
        self.id = word(fields.get("id"))
        self.stopped = False
        self.late_is_known = False  # deltas that come after its end change nothing
        self.writes: str | None = None  # what the open block takes
        self.block = -1

    def is_again(self, kind: str, fields: Json) -> bool:
        """Whether a start is this step's own, sent twice."""
        same = kind == self.kind and word(fields.get("id")) == self.id
        return same and (not self.stopped or self.id is not None)

    def begin_again(self) -> None:
        """The start is sent twice. So are the deltas behind it, if the step has ended."""
        self.late_is_known |= self.stopped

    def begin(self, fields: Json, _path: str, /) -> None:
        """Read the start, which may hold what deltas would bring."""
        self.blocks.pass_on(fields)

    def read(self, kind: str, delta: Json) -> bool:
        """Read a delta of the type `kind`. False if the step has no use for it."""
        reader = self.READS.get(kind)
        return reader is not None and reader(self, delta)

    def is_doubtful(self) -> bool:
        """Whether the step may have been cut off although its stop has come."""
        return False

    def stop(self, cut: str | None = None) -> None:
        """Finish the open block. `cut` is why a call may be cut off."""
        if not self.stopped:
            self.end_block(cut)
            self.stopped = True

    def start_block(self, writes: str, content: Json) -> None:
        self.end_block()
        self.block, self.writes = self.blocks.start(content), writes

    def end_block(self, cut: str | None = None) -> None:
        if self.writes is not None:
            self.flush()
            self.finish_block(cut)
            self.writes = None

    def finish_block(self, _cut: str | None, /) -> None:
        self.blocks.finish(self.block)

    def flush(self) -> None:
        """Emit what has been held back of the open block."""

    def sign(self, delta: Json) -> bool:
        signature = READ.text_of(delta, "signature", "delta")
        if signature and self.writes is not None:
            self.blocks.change(self.block, signed(signature, GOOGLE))
        return "signature" in delta and (not signature or self.writes is not None)

    READS: ClassVar[Mapping[str, Callable[[Any, Json], bool]]] = {"thought_signature": sign}
    """The deltas of the step by type."""


class ClientStep(Step):
    """A step that the client put in. It is no part of the reply and is passed on."""

    def begin(self, fields: Json, _path: str, /) -> None:
        self.blocks.out.append(events.ProviderEvent("google", self.kind, kept(fields)))
