"""A reply as a provider streams it, block after block: the base of the writers that are no encoders for clients.

ProviderWriter   what a format says when the reply begins, grows and ends
ProviderEncoder  events in, chunks out
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, ClassVar, Final, cast

from rxdelta.core import DEFAULT_LIMITS, Block, BlockFold, Citation, ContentPart, ToolCall
from rxdelta.formats.conversation import Medium, medium_of
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked
from rxdelta.formats.notes import REDACTED, readable, signature_of
from rxdelta.formats.reply import CallItem, Item, Part, Reply, ReplyEncoder, Run, TextItem, Writer

REPLY_ID: Final = "reply-1"
"""The id of a reply that has none, where a format needs one."""
CREATED: Final = 1_700_000_000
"""The time of a reply that has none."""


class ProviderWriter(Writer):
    """Writes the chunks of one reply. A format says how, in `start`, `end`, `fail` and in these three.

    Attributes:
        signers: The vendors whose signatures the format has.
    """

    signers: ClassVar[Set[str]] = frozenset()

    def __init__(self) -> None:
        super().__init__(now=lambda: CREATED, new_id=lambda: REPLY_ID, model=None, tools=(), reasoning=True)
        self.is_provider = True

    def block_start(self, item: BlockItem, /) -> None:
        """A block begins, which is `item.content`."""

    def block_piece(self, item: BlockItem, piece: str, /) -> None:
        """More of a text, or of the arguments of a call."""

    def block_end(self, item: BlockItem, /) -> None:
        """A block has ended."""

    def write(self, **chunk: Any) -> None:
        self.out.append(chunk)


class BlockItem(Item):
    """A block whose chunks its writer knows."""

    @property
    def writer(self) -> ProviderWriter:
        return cast("ProviderWriter", self.run.choice.writer)

    @property
    def content(self) -> Block:
        return self.fold.block

    @property
    def as_call(self) -> CallBlock | None:
        return None

    @property
    def medium(self) -> Medium | None:
        return medium_of(self.content) if isinstance(self.content, ContentPart) else None

    @property
    def signature(self) -> str | None:
        """The signature of the block, if it is one of the format's vendors'."""
        signers = self.writer.signers
        return signature_of(self.content, signers) if signers else None

    @property
    def redacted(self) -> str | None:
        """The reasoning that only its vendor can read, in base64, if that is one of the format's."""
        block = readable(self.content, self.writer.signers)
        if not isinstance(block, ContentPart) or not block.options.get(REDACTED):
            return None
        found = block.options.get("data")
        return found if isinstance(found, str) else None

    @property
    def citations(self) -> Sequence[Citation]:
        return self.content.citations if isinstance(self.content, ContentPart) else ()

    def write_start(self) -> None:
        self.writer.block_start(self)

    def write_piece(self, piece: str, /) -> None:
        self.writer.block_piece(self, piece)

    def write_end(self) -> None:
        self.writer.block_end(self)

    def is_shown(self) -> bool:
        return self.medium is not None


class TextBlock(BlockItem, TextItem):
    """A text, a refusal or a reasoning."""

    def is_shown(self) -> bool:
        return self.signature is not None or self.redacted is not None or bool(self.citations)


class CallBlock(BlockItem, CallItem):
    """A call."""

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._pieces: list[str] = []

    @property
    def written(self) -> str:
        """The arguments so far, as a text of JSON."""
        return "".join(self._pieces)

    def write_piece(self, piece: str, /) -> None:
        self._pieces.append(piece)
        super().write_piece(piece)

    @property
    def as_call(self) -> CallBlock | None:
        return self


class _Reply(Reply):
    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if isinstance(block, ToolCall):
            return CallBlock(run, fold)
        return (
            TextBlock(run, fold) if block.type in ("text", "reasoning", "refusal") else BlockItem(run, fold)
        )


class ProviderEncoder(ReplyEncoder[JsonObject]):
    """Events in, chunks out."""

    def __init__(self, writer: ProviderWriter, on_error: Masked) -> None:
        super().__init__(writer, _Reply, on_error=on_error, limits=DEFAULT_LIMITS)
