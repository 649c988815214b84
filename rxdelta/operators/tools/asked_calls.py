"""Decides which calls of a stream are to be run, and when: each call once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import attrs

from rxdelta.core import (
    BlockFold,
    Event,
    Limits,
    PerRun,
    ToolCall,
    Walk,
    is_mapping,
    message_order,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolCallDelta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.core import Block, Change, CompleteToolCall

__all__ = ["AskedCall", "AskedCalls", "Decision"]

Decision: TypeAlias = "tuple[AskedCall, Literal['identified', 'asked', 'failed', 'withdrawn', 'gone'], str]"


class AskedCall:
    """One call of a message: a block and an id.

    Attributes:
        run: The calls of its run.
        call_id: The call's current id. A block that begins again under another id is another call.
        identified: Whether it is for us; other calls are not reported.
        asked: The whole call, as soon as it is to be run.
        open: Whether the call has neither ended nor failed. A call that has is never decided again.
    """

    __slots__ = ("asked", "call_id", "identified", "open", "run")

    def __init__(self, run: CallsOfRun, call_id: str) -> None:
        self.run = run
        self.call_id = call_id
        self.identified = False
        self.asked: CompleteToolCall | None = None
        self.open = True


class AskedCalls:
    """The calls of one choice of each run. Each call is decided once, at its first end; a later one may withdraw it.

    Args:
        is_ours: Whether a call by this name is for us; other calls are not reported.
        at_once: Whether a call is to be run when it is whole, or with the end of its message.
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold.
    """

    EVENTS = frozenset(
        (
            MessageStart, BlockStart, ToolCallDelta, BlockDelta, BlockFinish, MessageFinish, MessageInterrupted,
            AttemptReset,
        )
    )  # fmt: skip
    """The kinds of event that may change a call."""

    def __init__(self, is_ours: Callable[[str], bool], *, at_once: bool, choice: int, limits: Limits) -> None:
        begin = partial(CallsOfRun, is_ours=is_ours, at_once=at_once, choice=choice, limits=limits)
        self._runs = PerRun(begin, limits, name=CallsOfRun.name)

    def step(self, event: Event) -> Sequence[Decision]:
        """Apply one of `EVENTS`, and return what it decides.

        `identified`: the call has an id. `asked`: run it. `failed`, with the reason: don't run it, or stop it.
        `withdrawn`, with the reason: it fails unless its tool has started. `gone`: stop it, without an outcome.

        Raises:
            LimitExceededError: There are too many runs or blocks, an index is too large, or a block is too large.
        """
        runs = self._runs.of(event)
        return runs[0].step(event) if len(runs) == 1 else [one for run in runs for one in run.step(event)]

    def begins_another(self, start: MessageStart) -> bool:
        """Whether another message begins, in front of which the undecided calls of its run fail."""
        return any(run.begins_another(start) for run in self._runs.of(start))

    def give_up(self, why: str) -> Sequence[Decision]:
        """Fail all undecided calls."""
        return [decision for run in self._runs.known() for decision in run.give_up(why)]


class CallsOfRun:
    """The calls of one run, message by message.

    Attributes:
        run_id: The run.
        choice: The choice, if the run has several, whose calls may have the same ids.
    """

    def __init__(
        self,
        run_id: str | None,
        *,
        is_ours: Callable[[str], bool],
        at_once: bool,
        choice: int,
        limits: Limits,
    ) -> None:
        self.run_id = run_id
        self.choice: int | None = None
        self._is_ours = is_ours
        self._at_once = at_once
        self._walk = Walk(choice, run_id=run_id, limits=limits)
        self._calls: dict[tuple[BlockFold, str], AskedCall] = {}  # of the current message
        self._waiting: dict[AskedCall, ToolCall | None] = {}  # undecided calls; the whole call after its end
        self._grown: dict[BlockFold, None] = {}  # blocks that have grown since the newest block began
        self._decisions: list[Decision] = []

    def name(self, run_id: str | None) -> None:
        self.run_id = self._walk.run_id = run_id

    def step(self, event: Event) -> Sequence[Decision]:
        if type(event) is ToolCallDelta:
            fold = self._walk.grow(event)
            if fold is not None:
                self._grown[fold] = None
            return ()
        if getattr(event, "choice", None) not in (None, self._walk.choice):
            self.choice = self._walk.choice
            return ()
        changes = self._walk.step(event)
        if changes and type(event) is MessageInterrupted:
            return self.give_up("the message was interrupted")
        for change in changes:
            self._apply(change)
        return self._decided()

    def begins_another(self, start: MessageStart) -> bool:
        return self._walk.begins_another(start)

    def give_up(self, why: str) -> Sequence[Decision]:
        for call in [*self._waiting]:
            self._fail(call, why)
        return self._decided()

    def _decided(self) -> Sequence[Decision]:
        decisions, self._decisions = self._decisions, []
        return decisions

    def _apply(self, change: Change) -> None:
        match change.kind:
            case "opened" | "restarted" | "changed" | "closed":
                self._block(change)
            case "overruled":
                self._withdraw(change.fold)
            case "ended":
                whole = [(call, block) for call, block in self._waiting.items() if block is not None]
                for call, block in sorted(whole, key=lambda one: message_order(one[1].key)):
                    self._ask(call, block)
            case "another":
                for call in [*self._waiting]:
                    self._fail(call, "the message ended before the call was complete")
                self._forget()
            case "reset":
                self._decisions.extend((call, "gone", "") for call in self._calls.values())
                self._forget()
            case _:
                pass

    def _forget(self) -> None:
        self._calls.clear()
        self._waiting.clear()
        self._grown.clear()

    def _block(self, change: Change) -> None:
        fold, before, kind = change.fold, change.before, change.kind
        self._grown.pop(fold, None)
        if kind in ("opened", "restarted") and self._at_once:
            self._ask_whole_calls()
        former = self._find(fold, before) if before is not None and before.open else None
        if former is not None and former.open and former is not self._find(fold, fold.block):
            self._rename_or_fail(former, change)
        call = self._call(fold)
        if kind != "closed":
            self._grown[fold] = None
        elif call is not None and call.open and isinstance(fold.block, ToolCall):
            self._close(call, fold.block)

    def _rename_or_fail(self, call: AskedCall, change: Change) -> None:
        """Let a call go on under the new id that its block has got, unless the block is another one now."""
        fold, block = change.fold, change.fold.block
        if call.asked is None:
            del self._calls[fold, call.call_id]  # so a call may still begin under this id, and be run
        if change.kind == "restarted":
            self._fail(call, "the call was begun again")
        elif not isinstance(block, ToolCall) or block.call_id is None or self._find(fold, block) is not None:
            self._fail(call, "it turned out to be no call")
        else:
            call.call_id = block.call_id
            self._calls[fold, block.call_id] = call

    def _find(self, fold: BlockFold, block: Block) -> AskedCall | None:
        call_id = block.call_id if isinstance(block, ToolCall) else None
        return None if call_id is None else self._calls.get((fold, call_id))

    def _call(self, fold: BlockFold) -> AskedCall | None:
        """The block's call, which is added if it is new, and identified if it is for us."""
        block = fold.block
        if not isinstance(block, ToolCall) or block.call_id is None:
            return None
        call = self._find(fold, block)
        if call is None:
            call = self._calls[fold, block.call_id] = AskedCall(self, block.call_id)
            self._waiting[call] = None
        theirs = block.type == "server_tool_call"  # as it seems: a later event may change that
        if call.open and not call.identified and not theirs and self._is_ours(block.name or ""):
            call.identified = True
            self._decisions.append((call, "identified", ""))
        return call

    def _close(self, call: AskedCall, block: ToolCall) -> None:
        """Decide a call at its first end."""
        call.open = False
        if block.type == "server_tool_call":
            if call.asked is None:
                del self._waiting[call]
            else:
                self._fail(call, "it turned out to be no call")
        elif block.type != "tool_call" or not is_mapping(block.arguments):
            self._fail(call, f"invalid arguments: {block.error}")
        elif call.asked is not None:
            if block.arguments != call.asked.arguments:
                self._fail(call, "the arguments changed after the call had begun")
        elif self._at_once:
            self._ask(call, block)
        else:
            self._waiting[call] = block

    def _withdraw(self, fold: BlockFold) -> None:
        """Fail a call that its source takes back behind its end, unless its tool has started."""
        block, call = fold.block, self._find(fold, fold.block)
        if call is None or not isinstance(block, ToolCall) or block.type != "invalid_tool_call":
            return
        why = f"invalid arguments: {block.error}"
        if call in self._waiting:
            self._fail(call, why)
        elif call.asked is not None:
            self._decisions.append((call, "withdrawn", why))

    def _ask_whole_calls(self) -> None:
        """Decide to run the calls whose arguments are whole, because the provider goes on to the next block.

        A call that has not grown since the last block began was not whole then, and still isn't.
        """
        grown, self._grown = self._grown, {}
        for fold in grown:
            block, call = fold.block, self._find(fold, fold.block)
            if not isinstance(block, ToolCall) or block.type != "tool_call" or not block.name:
                continue
            if call is None or not call.open or not call.identified or call.asked is not None:
                continue
            if block.arguments and block.is_final() and is_mapping(arguments := block.arguments_so_far):
                self._ask(call, attrs.evolve(block, arguments=arguments, status="complete", open=False))

    def _ask(self, call: AskedCall, whole: ToolCall) -> None:
        if call.identified:
            call.asked = cast("CompleteToolCall", whole)
            self._decisions.append((call, "asked", ""))
        del self._waiting[call]

    def _fail(self, call: AskedCall, why: str) -> None:
        call.open = False
        if call.identified:
            self._decisions.append((call, "failed", why))
        self._waiting.pop(call, None)
