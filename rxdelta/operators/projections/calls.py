"""The client's calls of a message, each with its own fold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from rxdelta.core import Block, CallIndex, Event, Fold, FrozenDict, Limits, ToolCall, check_place
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Index,
    MessageFinish,
    MessageInterrupted,
    ToolCallDelta,
    ToolUpdate,
)
from rxdelta.operators.projections.projection import ChangeKind, names_any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Calls", "argument_text"]

Change: TypeAlias = "tuple[Index, ToolCall, ChangeKind, str]"

_ARGUMENTS = ("args", "input", "arguments")


class Calls:
    """The calls that the client is to run, in the same state as in the message's fold.

    Each call has its own fold until it has ended, so that the cost of a step doesn't grow with the number of calls.
    Calls that the provider runs are folded too, because a later event may turn one into the client's.
    """

    def __init__(self, choice: int, limits: Limits) -> None:
        self._choice = choice
        self._limits = limits
        self._open: dict[Index, Fold] = {}
        self._closed: set[Index] = set()  # indexes whose newest block was a call
        self._ended: set[tuple[Index, str | None]] = set()  # calls that are ignored later
        self._ids = CallIndex[Index]()

    def step(self, event: Event) -> Sequence[Change]:
        """Fold an event. Return the changed calls, each with the change of its argument text.

        A call that is no longer open has ended, complete or invalid, and is never returned again.

        Raises:
            LimitExceededError: An index is too large, there are too many blocks, or a block is too large.
        """
        if isinstance(event, ToolCallDelta):
            fold = self._open.get(event.index)
            before = fold.snapshot if fold else None
            if fold is None or fold.step(event) is before:
                return ()
            return _changed(event.index, _call(fold), "more", event.args)
        if isinstance(event, BlockStart):
            return self._start(event)
        if isinstance(event, BlockDelta):
            return self._change(event)
        if isinstance(event, BlockFinish):
            return self._finish(event)
        if isinstance(event, (MessageFinish, MessageInterrupted)):
            return [change for index in self._in_order() for change in self._end(index, event)]
        if isinstance(event, ToolUpdate):
            for index in self._ids.of(event.call_id):
                self._open[index].step(event)
        return ()

    def _start(self, event: BlockStart) -> Sequence[Change]:
        index = event.index
        if index in self._open:
            self._remove_open(index)
        fold = self._folded(event)
        call = _call(fold)
        self._closed.discard(index)
        if call is None:
            return ()
        if self._has_ended(index, call):
            self._closed.add(index)
            return ()
        check_place(index, len(self._open) + len(self._closed), self._limits)
        self._open[index] = fold
        self._ids.note(index, None, call.call_id)
        return _changed(index, call, "begun", argument_text(call))

    def _change(self, event: BlockDelta) -> Sequence[Change]:
        fold = self._open.get(event.index)
        before = _call(fold)
        if fold is None or before is None:
            return ()
        names_arguments = names_any(event.fields, _ARGUMENTS)
        text = argument_text(before) if names_arguments else ""
        fold.step(event)
        call = _call(fold)
        self._ids.note(event.index, before.call_id, call and call.call_id)
        whole = argument_text(call) if names_arguments and call is not None else ""
        if whole.startswith(text):
            return _changed(event.index, call, "more", whole[len(text) :])
        return _changed(event.index, call, "replaced", whole)

    def _finish(self, event: BlockFinish) -> Sequence[Change]:
        index = event.index
        if index in self._open:
            return self._end(index, event)
        if event.content is None or index in self._closed:
            return ()
        call = _call(self._folded(event))
        if call is None or self._has_ended(index, call):
            return ()
        check_place(index, len(self._open) + len(self._closed), self._limits)
        self._close(index, call)
        return _changed(index, call, "begun", argument_text(call))

    def _end(self, index: Index, event: BlockFinish | MessageFinish | MessageInterrupted) -> Sequence[Change]:
        fold = self._remove_open(index)
        fold.step(event)
        call = _call(fold)
        if call is None:  # a later event has changed the block's type
            return ()
        self._close(index, call)
        content = event.content if isinstance(event, BlockFinish) else None
        if content is not None and names_any(content, _ARGUMENTS):
            return _changed(index, call, "replaced", argument_text(call))
        return _changed(index, call, "more", "")

    def _remove_open(self, index: Index) -> Fold:
        """Remove a call from the open ones."""
        fold = self._open.pop(index)
        call = _call(fold)
        self._ids.note(index, call and call.call_id, None)
        return fold

    def _close(self, index: Index, call: ToolCall) -> None:
        self._closed.add(index)
        self._ended.add((index, call.call_id))

    def _has_ended(self, index: Index, call: ToolCall) -> bool:
        return call.call_id is not None and (index, call.call_id) in self._ended

    def _folded(self, event: BlockStart | BlockFinish) -> Fold:
        fold = Fold(choice=self._choice, limits=self._limits)
        fold.step(event)
        return fold

    def _in_order(self) -> list[Index]:
        """The open calls in the message's order: numbered ones first, by number."""
        return sorted(self._open, key=lambda index: (0, index) if isinstance(index, int) else (1, 0))


def argument_text(call: ToolCall) -> str:
    """The arguments as text. An object is written as JSON, unless it is empty and the call may still get arguments."""
    arguments = call.arguments
    if isinstance(arguments, FrozenDict):
        return json.dumps(arguments) if arguments or not call.open else ""
    return arguments or ""


def _call(fold: Fold | None) -> ToolCall | None:
    blocks: tuple[Block, ...] = fold.snapshot.blocks if fold else ()
    block = blocks[0] if blocks else None
    return block if isinstance(block, ToolCall) else None


def _changed(index: Index, call: ToolCall | None, how: ChangeKind, text: str) -> Sequence[Change]:
    if call is None or call.type == "server_tool_call":
        return ()
    return ((index, call, how, text),)
