"""An open step of an interaction."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import Event, events
from rxdelta.formats.base64_pieces import Base64Pieces
from rxdelta.formats.decoding import Fields, word

__all__ = ["READ", "Json", "Out", "Step", "type_of"]

Json: TypeAlias = Mapping[str, Any]


Out: TypeAlias = list[Event]


READ = Fields("gemini-interactions")


class Step:
    """An open step, and the block that it is writing."""

    __slots__ = (
        "audio",
        "block",
        "citations",
        "fed",
        "id",
        "index",
        "kind",
        "mime_type",
        "output",
        "size",
        "stopped",
        "told",
        "writes",
    )

    def __init__(self, index: int, kind: str, step_id: str | None) -> None:
        self.index = index
        self.kind = kind
        self.id = step_id
        self.block = -1
        self.writes: str | None = None  # text, reasoning, audio, call, server_call, result, …
        self.mime_type: str | None = None
        self.audio = Base64Pieces()
        self.fed = False  # a call has arguments
        self.stopped = False
        self.citations: list[Json] = []
        self.output: list[Any] = []  # of a tool, in pieces: the protocol has only the whole again for it
        self.size = self.told = 0

    def is_again(self, kind: str, fields: Json) -> bool:
        """Whether a start is this step's own, sent twice."""
        same = kind == self.kind and word(fields.get("id")) == self.id
        return same and (not self.stopped or self.id is not None)

    def fields_of(self, kind: str) -> bool:
        return self.writes in ("server_call", "result", "call") and kind.endswith(("_call", "_result"))

    def tell(self, out: Out) -> None:
        """What can only be told whole."""
        if self.size > self.told:
            self.told = self.size
            if self.writes == "text":
                out.append(events.BlockDelta(self.block, {"citations": self.citations}))
            elif self.writes == "result":
                out.append(events.BlockDelta(self.block, {"output": _joined(self.output)}))
        if self.writes == "text":
            self.citations, self.size, self.told = [], 0, 0


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], str):
        return "".join(pieces)
    return [item for piece in pieces for item in piece] if isinstance(pieces[0], list) else pieces[0]


def type_of(fields: Json, path: str) -> str:
    """The type of a step, which has to be there."""
    kind = fields.get("type")
    if not isinstance(kind, str) or not kind:
        raise READ.fail(f"{path}.type", "the type of a step", kind)
    return kind
