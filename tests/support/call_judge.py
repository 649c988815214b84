"""Decides which calls of a stream are complete, independently of the library: the law of a block's life, written again.

Reads choice 0. It knows the calls' ids and arguments and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import attrs

import rxdelta as rd

__all__ = ["Judge", "Life"]

ev = rd.events
Call: TypeAlias = tuple[str, str]  # its id, and its arguments as JSON


@attrs.define(eq=False)
class Block:
    """One block, from a start to the next start of its index."""

    index: int
    call_id: str | None  # None: no call
    args: Any = ""  # text, or an object that came whole
    open: bool = True
    shown: Call | None = None  # to the fold: the last finish
    first: Call | None = None  # to whoever acts on a finish: the first one
    renamed: bool = False  # while it was open
    repeats: bool = False  # a call with this id has ended at this index before
    early: list[Call] = attrs.field(factory=list)  # when another block began

    def take(self, content: Any) -> None:
        is_call = "call" in content["type"]
        self.call_id = content["id"] if is_call else None
        self.args = content["args"] if is_call else ""

    def rename(self, call_id: str | None) -> None:
        self.renamed = self.renamed or (self.call_id is not None and self.call_id != call_id)
        self.call_id = call_id

    def complete(self) -> Call | None:
        if self.call_id is None:
            return None
        args = self.args
        if isinstance(args, str):
            try:
                args = json.loads(args or "{}", strict=False)
            except ValueError:
                return None
        args = {} if args is None else args
        return (self.call_id, json.dumps(args)) if isinstance(args, dict) else None


@attrs.define(eq=False)
class Life:
    """One message, or one attempt at it."""

    events: list[rd.Event] = attrs.field(factory=list)
    id: str | None = None
    started: bool = False
    ended_by: str | None = None  # "finish", "interrupted"
    dropped: bool = False  # by a reset
    blocks: dict[int, Block] = attrs.field(factory=dict)
    all: list[Block] = attrs.field(factory=list)
    ended: set[tuple[int, str]] = attrs.field(factory=set)

    def add(self, index: int, content: Any) -> Block:
        for other in self.blocks.values():
            if other.open and other.index != index and other.args != "":
                other.early += filter(None, [other.complete()])
        block = self.blocks[index] = Block(index, None)
        block.take(content)
        self.all.append(block)
        return block

    def close(self, block: Block, *, cut: bool = False) -> None:
        block.open = False
        if block.call_id is not None:
            block.repeats = (block.index, block.call_id) in self.ended
            self.ended.add((block.index, block.call_id))
        block.first = block.shown = None if cut else block.complete()

    def complete(self) -> list[Call]:
        """The complete calls of the fold."""
        return sorted(block.shown for block in self.blocks.values() if block.shown)

    def acted(self) -> list[Block]:
        """The calls that are to be run."""
        return [block for block in self.all if block.first and not block.repeats]


class Judge:
    """Reads all events of a stream.

    Attributes:
        lives: All attempts at all messages.
    """

    def __init__(self, events: Iterable[rd.Event]) -> None:
        self.lives = [Life()]
        for event in events:
            self._step(event)

    def messages(self) -> list[Life]:
        return [life for life in self.lives if life.events and not life.dropped]

    def blocks(self) -> Iterator[Block]:
        return (block for life in self.lives for block in life.all)

    def _step(self, event: Any) -> None:
        life = self.lives[-1]
        if isinstance(event, ev.MessageStart):
            repeated = event.id is not None and event.id == life.id
            if life.ended_by or (life.started and life.blocks and not repeated):
                life = self._next(life, [])
            life.id, life.started = life.id or event.id, True
        elif isinstance(event, ev.AttemptReset):
            life.dropped = life.ended_by is None
            life = self._next(life, life.events if life.dropped else [])
        elif life.ended_by is None:
            self._go_on(life, event)
        life.events.append(event)

    def _next(self, life: Life, events: list[rd.Event]) -> Life:
        self.lives.append(Life(events=events))
        return self.lives[-1]

    def _go_on(self, life: Life, event: Any) -> None:
        block = life.blocks.get(getattr(event, "index", -1))
        if isinstance(event, ev.BlockStart):
            self._start(life, event)
        elif isinstance(event, ev.BlockFinish):
            self._finish(life, block, event)
        elif isinstance(event, (ev.MessageFinish, ev.MessageInterrupted)):
            life.ended_by = "finish" if isinstance(event, ev.MessageFinish) else "interrupted"
            for block in life.blocks.values():
                if block.open:
                    life.close(block, cut=life.ended_by == "interrupted" or event.reason == "length")
        elif block is not None and block.open and block.call_id is not None:
            if isinstance(event, ev.ToolCallDelta) and isinstance(block.args, str):
                block.args += event.args
            elif isinstance(event, ev.BlockDelta):
                block.rename(event.fields.get("id", block.call_id))
                block.args = event.fields.get("args", block.args)

    def _start(self, life: Life, event: Any) -> None:
        before = life.blocks.get(event.index)
        block = life.add(event.index, event.content)
        if before is not None and before.open and before.call_id == block.call_id:
            block.early, before.early = before.early, []  # it is the same call

    def _finish(self, life: Life, block: Block | None, event: Any) -> None:
        if block is None and event.content is not None:
            life.close(life.add(event.index, event.content))
        elif block is None:
            pass
        elif block.open:
            if event.content is not None:
                block.rename(event.content.get("id"))
                block.take(event.content)
            life.close(block)
        elif event.content is not None:
            block.take(event.content)
            block.shown = block.complete()
