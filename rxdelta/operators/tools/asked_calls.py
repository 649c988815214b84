"""Decides which calls of a stream are to be run, and when: each call once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from rxdelta.core import BlockFold, Event, Limits, ToolCall, begins_another, check_place, is_mapping
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Index,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolCallDelta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["AskedCall", "AskedCalls", "Change"]

Change: TypeAlias = "tuple[AskedCall, Literal['identified', 'asked', 'failed', 'gone'], str]"


class AskedCall:
    """One call, from the start of its block.

    Attributes:
        call_id, name: The call's current id and name.
        identified: Whether it has an id and is for us; other calls are not reported.
        asked: The whole call, as soon as it is to be run.
    """

    __slots__ = ("asked", "call_id", "fold", "identified", "index", "message", "name")

    def __init__(self, message: _Message, index: Index, fold: BlockFold) -> None:
        self.message = message
        self.index = index
        self.fold = fold
        self.call_id: str | None = None
        self.name = ""
        self.identified = False
        self.asked: ToolCall | None = None


class _Message:
    """The current message and its calls."""

    __slots__ = ("begun", "grown", "id", "known", "open", "over", "places", "started", "waiting")

    def __init__(self) -> None:
        self.id: str | None = None
        self.started = self.begun = self.over = False
        self.open: dict[Index, AskedCall] = {}  # calls whose block has not ended
        self.grown: dict[Index, AskedCall] = {}  # calls that have grown since the newest block began
        self.waiting: dict[AskedCall, None] = {}  # undecided calls, in the order of their blocks
        self.places: set[Index] = set()  # indexes whose newest block is, or was, a call
        self.known: dict[tuple[Index, str], AskedCall] = {}  # other calls with these keys are ignored


class AskedCalls:
    """The calls of one choice, message by message.

    A call's key is its index and its id, as soon as the id is known. A start with the same key in the same message is
    the same call: it restarts an open call, and is ignored after the call's end. A second finish of a block is ignored
    too, and so is everything after the message's end. So each call is decided once.

    Args:
        is_ours: Whether a call by this name is for us; other calls are not reported.
        at_once: Whether a call is to be run when it is whole, or with the end of its message.
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold.
    """

    def __init__(self, is_ours: Callable[[str], bool], *, at_once: bool, choice: int, limits: Limits) -> None:
        self._is_ours = is_ours
        self._at_once = at_once
        self._choice = choice
        self._limits = limits
        self._message = _Message()
        self._changes: list[Change] = []

    def step(self, event: Event) -> Sequence[Change]:
        """Fold an event, and return the changed calls.

        `identified`: the call has an id. `asked`: run it. `failed`, with the reason: don't run it, or stop it.
        `gone`: stop it, without an outcome.

        Raises:
            LimitExceededError: An index is too large, there are too many calls, or a call is too large.
        """
        step = self._STEPS.get(type(event))
        if step is None or getattr(event, "choice", None) not in (None, self._choice):
            return ()
        step(self, event)
        return self._changed()

    def give_up(self, why: str) -> Sequence[Change]:
        """Fail all undecided calls."""
        for call in [*self._message.waiting]:
            self._fail(call, why)
        self._message.open.clear()
        return self._changed()

    def _changed(self) -> Sequence[Change]:
        changes, self._changes = self._changes, []
        return changes

    # Messages.

    def _message_start(self, event: MessageStart) -> None:
        message = self._message
        begun = message.started and message.begun
        if begins_another(event, id=message.id, begun=begun, over=message.over):
            for call in [*message.waiting]:
                self._fail(call, "the message ended before the call was complete")
            message = self._message = _Message()
        message.id = message.id or event.id
        message.started = message.started or not event.assumed

    def _message_finish(self, event: MessageFinish) -> None:
        message = self._message
        if message.over:
            return
        message.over = True
        cut = "the message was cut short by the token limit" if event.reason == "length" else None
        for call in message.open.values():
            call.fold.finish(cut=cut)
        message.open.clear()
        for call in [*message.waiting]:
            self._close(call, ask=True)

    def _interrupted(self, _: MessageInterrupted) -> None:
        self._message.over = True
        for call in [*self._message.waiting]:
            self._fail(call, "the message was interrupted")
        self._message.open.clear()

    def _reset(self, _: AttemptReset) -> None:
        """Forget the failed attempt's calls, as the snapshot does.

        After the end of a message the reset belongs to the next message, which has no calls yet.
        """
        message, self._message = self._message, _Message()
        if not message.over:
            self._changes.extend((call, "gone", "") for call in message.known.values())

    # Blocks.

    def _block_start(self, event: BlockStart) -> None:
        message, index = self._message, event.index
        if message.over:
            return
        message.begun = True
        message.places.discard(index)
        message.grown.pop(index, None)
        replaced = message.open.pop(index, None)
        self._ask_whole_calls()
        fold = BlockFold(event, limits=self._limits)
        block = fold.block
        call_id = block.call_id if isinstance(block, ToolCall) else None
        if replaced is not None and replaced.call_id is not None and replaced.call_id == call_id:
            replaced.fold = fold  # if its tool is already running, the arguments must still match at the end
            self._open(replaced)
            return
        if replaced is not None:
            self._fail(replaced, "the call was begun again")
        if isinstance(block, ToolCall):  # also if the provider seems to run it: a later event may change that
            self._begin(index, fold)

    def _arguments(self, event: ToolCallDelta) -> None:
        call = self._message.open.get(event.index)
        if call is not None:
            call.fold.step(event)
            self._message.grown[event.index] = call

    def _block_delta(self, event: BlockDelta) -> None:
        call = self._message.open.get(event.index)
        if call is not None:
            call.fold.step(event)
            self._message.grown[event.index] = call
            self._identify(call)

    def _block_finish(self, event: BlockFinish) -> None:
        message, index = self._message, event.index
        if message.over:
            return
        call = message.open.get(index) or self._finish_without_start(event)
        if call is None:
            return
        del message.open[index]
        message.grown.pop(index, None)
        call.fold.step(event)
        if self._identify(call):
            self._close(call, ask=self._at_once)

    def _finish_without_start(self, event: BlockFinish) -> AskedCall | None:
        if event.content is None or event.index in self._message.places:
            return None
        self._message.begun = True
        fold = BlockFold(BlockStart(event.index, event.content, choice=event.choice), limits=self._limits)
        return self._begin(event.index, fold) if isinstance(fold.block, ToolCall) else None

    # Calls.

    def _begin(self, index: Index, fold: BlockFold) -> AskedCall | None:
        """Add a call; `None` if its key turns out to be known."""
        call = AskedCall(self._message, index, fold)
        self._open(call)
        self._message.waiting[call] = None
        return call if self._identify(call) else None

    def _open(self, call: AskedCall) -> None:
        message = call.message
        check_place(call.index, len(message.places), self._limits)
        message.places.add(call.index)
        message.open[call.index] = message.grown[call.index] = call

    def _identify(self, call: AskedCall) -> bool:
        """Read the call's id and name. Return `False` for a known key: then the call is dropped."""
        block = call.fold.block
        if not isinstance(block, ToolCall):
            return True
        call.call_id, call.name = block.call_id, block.name or ""
        if call.call_id is None:
            return True
        message = call.message
        if message.known.setdefault((call.index, call.call_id), call) is not call:
            message.open.pop(call.index, None)
            message.grown.pop(call.index, None)
            self._forget(call)
            return False
        if not call.identified and block.type != "server_tool_call" and self._is_ours(call.name):
            call.identified = True
            self._changes.append((call, "identified", ""))
        return True

    def _close(self, call: AskedCall, *, ask: bool) -> None:
        """Decide a call at the end of its block or of its message."""
        block = call.fold.block
        theirs = isinstance(block, ToolCall) and block.type == "server_tool_call"
        if theirs and call.asked is None:
            self._forget(call)
        elif theirs or not isinstance(block, ToolCall):
            self._fail(call, "it turned out to be no call")
        elif block.type != "tool_call" or not is_mapping(block.arguments):
            self._fail(call, f"invalid arguments: {block.error}")
        elif call.asked is not None:
            if block.arguments != call.asked.arguments:
                self._fail(call, "the arguments changed after the call had begun")
        elif ask:
            self._ask(call, block)

    def _ask_whole_calls(self) -> None:
        """Decide to run the calls whose arguments are whole, because the provider goes on to the next block.

        A call that has not grown since the last block began was not whole then, and still isn't.
        """
        grown, self._message.grown = self._message.grown, {}
        for call in grown.values() if self._at_once else ():
            block: Any = call.fold.block
            if call.asked is not None or not (call.identified and call.name) or block.type != "tool_call":
                continue
            if block.arguments and block.is_final() and is_mapping(arguments := block.arguments_so_far):
                self._ask(call, attrs.evolve(block, arguments=arguments, status="complete", open=False))

    def _ask(self, call: AskedCall, asked: ToolCall) -> None:
        if call.identified:
            call.asked = asked
            self._changes.append((call, "asked", ""))
        call.message.waiting.pop(call, None)

    def _fail(self, call: AskedCall, why: str) -> None:
        if call.identified:
            self._changes.append((call, "failed", why))
        call.message.waiting.pop(call, None)

    def _forget(self, call: AskedCall) -> None:
        if call.asked is not None:
            self._changes.append((call, "gone", ""))
        call.message.waiting.pop(call, None)

    _STEPS: ClassVar[dict[type, Callable[[AskedCalls, Any], None]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        ToolCallDelta: _arguments,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        MessageFinish: _message_finish,
        MessageInterrupted: _interrupted,
        AttemptReset: _reset,
    }
    EVENTS: ClassVar[frozenset[type]] = frozenset(_STEPS)
    """The kinds of event that may change a call."""
