"""The continuation of a message that broke off, as further events of the same message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import ContentPart, Event, FrozenDict, Snapshot, TokenUsage
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageStart,
    TextDelta,
    UsageUpdate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rxdelta.core.events import Index

__all__ = ["Continuation", "can_be_continued"]

_PROSE = ("text", "reasoning", "refusal")  # blocks that are useful although they broke off


def can_be_continued(partial: Snapshot) -> bool:
    """Whether the reply has content, and no open block that is useless when incomplete: a call, an image."""
    has_content = any(
        not block.open or (isinstance(block, ContentPart) and block.text) for block in partial.blocks
    )
    return (
        has_content
        and partial.status == "incomplete"
        and all(
            isinstance(block, ContentPart) and block.type in _PROSE for block in partial.blocks if block.open
        )
    )


class Continuation:
    """Rewrites the events of a second request so that they continue the message of the first.

    Its blocks follow the existing ones. Its first text, if only reasoning comes before it, continues the text that
    broke off. Its usage is added to the message's usage.
    """

    def __init__(self, partial: Snapshot) -> None:
        last = partial.blocks[-1]
        broken = last.open and last.type == "text" and isinstance(last, ContentPart)
        self._choice = partial.choice
        self._usage = partial.usage
        self._broken_text: str = (last.text or "") if broken and isinstance(last, ContentPart) else ""
        self._broken: Any = last.key if broken else None  # the text that broke off
        self._joined: Any = None  # the continuation's index of the block that continues it
        self._unfinished: list[Any] = [
            block.key for block in partial.blocks if block.open and not (broken and block is last)
        ]
        self._used_keys: set[Any] = {block.key for block in partial.blocks}
        self._offset = 1 + max((key for key in self._used_keys if isinstance(key, int)), default=-1)
        self._indexes: dict[Index, Index] = {}

    def first(self) -> Sequence[Event]:
        """Return the events before the continuation: they finish the blocks that it won't continue."""
        return [BlockFinish(key, choice=self._choice) for key in self._unfinished]

    def rewrite(self, event: Event) -> Sequence[Event]:
        if isinstance(event, MessageStart):
            return [] if event.usage is None else [UsageUpdate(self._total(event.usage), choice=self._choice)]
        if isinstance(event, UsageUpdate):
            return [attrs.evolve(event, usage=self._total(event.usage))]
        if isinstance(event, MessageFinish):
            usage = None if event.usage is None else self._total(event.usage)
            return [*self._close(), attrs.evolve(event, usage=usage)]
        if isinstance(event, BlockStart):
            return self._start(event)
        given: Any = event
        index = getattr(given, "index", None)
        if index is None:
            return [event]
        changed = attrs.evolve(given, index=self._index(index))
        if index == self._joined:
            if isinstance(event, BlockFinish) and event.content is not None:
                changed = attrs.evolve(changed, content=self._whole(event.content))
            elif isinstance(event, BlockDelta):
                changed = attrs.evolve(changed, fields=self._whole(event.fields))
        return [changed]

    def _start(self, event: BlockStart) -> Sequence[Event]:
        kind = event.content.get("type", "text")
        if event.index == self._joined:
            return []
        if kind == "text" and self._broken is not None:
            self._joined = event.index
            self._indexes[event.index] = key = self._broken
            self._broken = None
            text = event.content.get("text")
            return [TextDelta(key, text, choice=event.choice)] if isinstance(text, str) and text else []
        closed = [] if kind == "reasoning" else self._close()
        return [*closed, attrs.evolve(event, index=self._index(event.index))]

    def _close(self) -> list[Event]:
        """Finish the text that broke off, if it was not continued."""
        key, self._broken = self._broken, None
        return [] if key is None else [BlockFinish(key, choice=self._choice)]

    def _whole(self, fields: Mapping[str, Any]) -> FrozenDict[Any]:
        text = fields.get("text")
        return FrozenDict({**fields, **({"text": self._broken_text + text} if isinstance(text, str) else {})})

    def _index(self, index: Index) -> Index:
        known = self._indexes.get(index)
        if known is None:
            if isinstance(index, int) and index >= 0:
                behind = (
                    isinstance(self._joined, int) and index > self._joined
                )  # the joined block takes no index of its own
                known = index + self._offset - behind
                while known in self._used_keys:  # e.g. by a block before the joined one
                    known += 1
            else:
                known = next(name for name in _names(str(index)) if name not in self._used_keys)
            self._used_keys.add(known)
            self._indexes[index] = known
        return known

    def _total(self, usage: TokenUsage) -> TokenUsage:
        return usage if self._usage is None else self._usage.add(attrs.evolve(usage, cumulative=False))


def _names(name: str) -> Iterator[str]:
    while True:
        yield name
        name += "'"
