"""Decides which calls of a stream are to be run, and when: each call once.

Somebody else may have run a call: the source's own `ToolUpdate`s tell of it, as those of a stored reply do. A call with an
outcome is never decided. One that has been started fails when the source has ended without its outcome. A call that
waits for approval is decided like any other if a person is asked here, and otherwise stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import attrs

from rxdelta.core import (
    TERMINAL,
    Block,
    BlockFold,
    Change,
    Event,
    FrozenDict,
    Limits,
    PerRun,
    ToolCall,
    Walk,
    concerns_choice,
    is_mapping,
    is_waiting,
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
    ToolUpdate,
)

Decision: TypeAlias = "tuple[AskedCall, Literal['identified', 'asked', 'failed', 'gone'], str]"

WholeCall: TypeAlias = ToolCall[FrozenDict[Any], Literal["tool_call", "server_tool_call"]]
"""A call with its arguments, which we are to run, or its provider."""

_OUTCOME_UNKNOWN = "the tool had been started, and its outcome isn't known"


class AskedCall:
    """One call of a message: a block and an id.

    Attributes:
        run: The calls of its run.
        call_id: The call's current id. A block that begins again under another id is another call.
        identified: Whether it is for us; other calls are not reported.
        asked: The whole call, as soon as it is to be run.
        open: Whether the call has neither ended nor failed. A call that has is never decided again.
        taken: Whether its tool has been started here, or it has its outcome from here. Later events of the
            source about this call are ignored.
    """

    __slots__ = ("asked", "call_id", "identified", "open", "run", "taken")

    def __init__(self, run: CallsOfRun, call_id: str) -> None:
        self.run = run
        self.call_id = call_id
        self.identified = False
        self.asked: WholeCall | None = None
        self.open = True
        self.taken = False


class AskedCalls:
    """The calls of one choice of each run. Each call is decided once, at its first end; a later one may withdraw it.

    Args:
        is_ours: Whether a call by this name is for us; other calls are not reported.
        approves: Whether somebody is asked for calls. Those that wait in the source are then decided, also those that
            the provider will run.
        rerun: The names of tools that run again for a call that had been started.
        at_once: Whether a call is to be run when it is whole, or with the end of its message.
        limits: The most that the stream may make us hold.
    """

    EVENTS = frozenset(
        (
            MessageStart, BlockStart, ToolCallDelta, BlockDelta, BlockFinish, MessageFinish, MessageInterrupted,
            AttemptReset, ToolUpdate,
        )
    )  # fmt: skip
    """The kinds of event that may change a call."""

    def __init__(
        self,
        is_ours: Callable[[str], bool],
        *,
        approves: bool,
        rerun: Collection[str],
        at_once: bool,
        choice: int,
        limits: Limits,
    ) -> None:
        begin = partial(
            CallsOfRun,
            is_ours=is_ours,
            approves=approves,
            rerun=rerun,
            at_once=at_once,
            choice=choice,
            limits=limits,
        )
        self._runs = PerRun(begin, limits, name=CallsOfRun.name)

    def step(self, event: Event) -> Sequence[Decision]:
        """Apply one of `EVENTS`, and return what it decides.

        `identified`: the call has an id. `asked`: run it. `failed`, with the reason: don't run it, or stop it. `gone`:
        don't run it, or stop it, without an outcome.

        Raises:
            LimitExceededError: There are too many runs or blocks, an index is too large, or a block is too large.
        """
        runs = self._runs.of(event)
        return runs[0].step(event) if len(runs) == 1 else [one for run in runs for one in run.step(event)]

    def begins_another(self, start: MessageStart) -> bool:
        """Whether another message begins, in front of which the undecided calls of its run fail."""
        return any(run.begins_another(start) for run in self._runs.of(start))

    def give_up(self, why: str) -> Sequence[Decision]:
        """Fail all undecided calls, and those that somebody else has started, because the stream is over."""
        return [decision for run in self._runs.known() for decision in run.end(why)]


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
        approves: bool,
        rerun: Collection[str],
        at_once: bool,
        choice: int,
        limits: Limits,
    ) -> None:
        self.run_id = run_id
        self.choice: int | None = None
        self._is_ours = is_ours
        self._approves = approves
        self._rerun = rerun
        self._at_once = at_once
        self._walk = Walk(choice, run_id=run_id, limits=limits)
        self._calls: dict[tuple[BlockFold, str], AskedCall] = {}  # of the current message
        self._waiting: dict[AskedCall, ToolCall | None] = {}  # undecided calls; the whole call after its end
        self._named: dict[str, AskedCall] = {}  # by id, the first that was asked for in the message
        self._elsewhere: dict[tuple[BlockFold, str], AskedCall] = {}  # started by others, in any message
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
        if not concerns_choice(event, self._walk.choice):
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

    def end(self, why: str) -> Sequence[Decision]:
        for call in self._elsewhere.values():
            self._fail(call, _OUTCOME_UNKNOWN)
        self._elsewhere.clear()
        return self.give_up(why)

    def _decided(self) -> Sequence[Decision]:
        decisions, self._decisions = self._decisions, []
        return decisions

    def _apply(self, change: Change) -> None:
        match change.kind:
            case "opened" | "restarted" | "changed" | "closed":
                self._block(change)
            case "overruled":
                self._withdraw(change.fold)
            case "noted":
                self._note(change.fold)
            case "ended":
                whole = [(call, block) for call, block in self._waiting.items() if block is not None]
                for call, block in sorted(whole, key=lambda one: message_order(one[1].key)):
                    self._ask(call, block)
            case "another":
                for call in [*self._waiting]:
                    self._fail(call, "the message ended before the call was complete")
                self._forget()
            case "reset":
                for key, call in self._calls.items():
                    self._elsewhere.pop(key, None)
                    self._decisions.append((call, "gone", ""))
                self._forget()
            case _:
                pass

    def _forget(self) -> None:
        self._calls.clear()
        self._named.clear()
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
        self._note(fold)
        if kind != "closed":
            self._grown[fold] = None
        elif call is not None and call.open and isinstance(fold.block, ToolCall):
            self._close(call, fold.block)

    def _note(self, fold: BlockFold) -> None:
        """Read what the source says of a call's execution. It comes too late for a call that is taken here."""
        block, call = fold.block, self._find(fold, fold.block)
        if call is None or call.taken or not isinstance(block, ToolCall):
            return
        known = block.metadata.get("execution_status")
        status = known if isinstance(known, str) else "identified"
        # A program that adds a result to a message by itself says nothing else of the call.
        if status in TERMINAL or (status == "identified" and block.result is not None):
            self._elsewhere.pop((fold, call.call_id), None)
            self._let_go(call)
        elif status == "awaiting_approval":
            if not self._approves:
                self._let_go(call)
            elif block.type == "server_tool_call" and not (block.open or call.identified):
                self._close(call, block)
                if self._walk.over and call in self._waiting:
                    self._ask(call, block)
        elif status != "identified" and block.name not in self._rerun:
            self._let_go(call)
            self._elsewhere[fold, call.call_id] = call

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
        if call_id is None:
            return None
        return self._calls.get((fold, call_id)) or self._elsewhere.get((fold, call_id))

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
        is_first = self._named.get(call.call_id, call) is call  # see `_ask`
        if call.open and not call.identified and not theirs and is_first and self._is_ours(block.name or ""):
            call.identified = True
            self._decisions.append((call, "identified", ""))
        return call

    def _close(self, call: AskedCall, block: ToolCall) -> None:
        """Decide a call at its first end."""
        call.open = False
        asks = (
            self._approves and block.type == "server_tool_call" and call.asked is None and is_waiting(block)
        )
        call.identified = call.identified or asks
        if block.type == "server_tool_call" and not asks:
            if call.asked is None:
                del self._waiting[call]
            else:
                self._fail(call, "it turned out to be no call")
        elif block.type == "invalid_tool_call" or not is_mapping(block.arguments):
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
        if call in self._waiting or (call.asked is not None and not call.taken):
            self._fail(call, f"invalid arguments: {block.error}")

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
                self._ask(call, attrs.evolve(block, arguments=arguments, status="complete", _open=False))

    def _ask(self, call: AskedCall, whole: ToolCall) -> None:
        # A block that has got its id late may be an earlier call again. The outcome of an id is the outcome of both.
        if call.identified and self._named.setdefault(call.call_id, call) is call:
            call.asked = cast("WholeCall", whole)
            self._decisions.append((call, "asked", ""))
        self._waiting.pop(call, None)

    def _let_go(self, call: AskedCall) -> None:
        """Leave a call to somebody else."""
        call.open = False
        self._waiting.pop(call, None)
        if call.asked is not None:
            call.asked = None
            self._decisions.append((call, "gone", ""))

    def _fail(self, call: AskedCall, why: str) -> None:
        call.open = False
        if call.identified:
            self._decisions.append((call, "failed", why))
        self._waiting.pop(call, None)
