"""A step of an interaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rxdelta.core import events
from rxdelta.formats.gemini_interactions.interaction import Interaction
from rxdelta.formats.gemini_interactions.reading import READ, Json
from rxdelta.formats.json_values import kept, word
from rxdelta.formats.signatures import GOOGLE, signed

__all__ = ["ClientStep", "Step"]


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
