"""How a reply grows by events: one step is O(1) in the text received so far.

`Walk` has the law: what an event changes. A fold shows the changes as snapshots, and counts the events that break a
rule. A fold reads one message, and refuses the start of another one: their blocks would be mixed.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from rxdelta.core._block_key import Key
from rxdelta.core._blocks import Block
from rxdelta.core._custom import numbers, place_custom
from rxdelta.core._errors import LimitExceededError, ProtocolError, RxDeltaError
from rxdelta.core._events import (
    EVENT_TYPES,
    AttemptReset,
    Custom,
    DataDelta,
    Event,
    MessageInterrupted,
    MessageStart,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from rxdelta.core._fast_constructor import blank
from rxdelta.core._frozen import FrozenDict
from rxdelta.core._limits import DEFAULT_LIMITS, Limits, check_members
from rxdelta.core._literals import both_finish_reasons
from rxdelta.core._message import add_attempt
from rxdelta.core._message_delta import as_snapshot, merge_snapshots
from rxdelta.core._protocol_checker import broken_rule
from rxdelta.core._refusal import wrong_value
from rxdelta.core._snapshot import Head, Snapshot, empty_head, make_snapshot
from rxdelta.core._tool_call import ToolCall
from rxdelta.core._walk import USAGE, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.core._block_fold import BlockFold
    from rxdelta.core._events import ToolUpdate


__all__ = ["Fold"]

_BlankSnapshot = blank(Snapshot)


class Fold:
    """Folds the events of one message. It remembers the place of each block, so that a step needs no search.

    Args:
        snapshot: The snapshot to begin with; `None` is an empty assistant message.
        choice: The alternative reply to fold; events of others are ignored. `None` is the choice of `snapshot`, or of
            the first event.
        run_id: The run to fold; an event of another one is refused. `None` is the run of `snapshot`, or of the first
            event.
        limits: Bounds on the size of the message.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.Fold()
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), rd.events.TextDelta(0, "Hi")]:
        ...     snapshot = fold.step(event)
        >>> snapshot.text
        'Hi'
    """

    def __init__(
        self,
        snapshot: Snapshot | None = None,
        *,
        choice: int | None = None,
        run_id: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._walk = Walk(
            choice if snapshot is None or choice is not None else snapshot.choice,
            run_id=run_id,
            limits=limits,
        )
        self._open = self._walk.blocks
        if snapshot is None:
            self._begin(make_snapshot(empty_head(choice or 0, run_id, self._walk.origin), ()))
        else:
            self._load(as_snapshot(snapshot))

    def _load(self, snapshot: Snapshot) -> None:
        folds = self._walk.load(snapshot)
        for place, fold in enumerate(folds):
            fold.place = place
        self._begin(snapshot)
        self._highest = max((key for key in self._open if isinstance(key, int)), default=None)

    def _begin(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._head: Head = snapshot._head
        self._blocks = list(snapshot.blocks)  # in the order of their arrival
        self._order: _Order | None = None  # if that differs from the order in the message
        self._quick = self._walk.choice  # whose deltas `step` handles itself; None if there is an order
        self._run_id = self._walk.run_id
        self._highest = None
        self._custom: dict[tuple[str, str], int] | None = None  # from the first `Custom` on
        self._settled = 0  # how many of the application's events failed attempts have left at the beginning

    def step(self, event: Event | Snapshot) -> Snapshot:
        """The snapshot after one event, or one small delta; the same object if nothing changed.

        Every error has the snapshot so far as `.snapshot`.

        Raises:
            ProviderError: The event is a `StreamError`.
            ProtocolError: The event is of another run, or another message begins; see `begins_another`.
            LimitExceededError: An index that is too large, too many blocks, or one too large.
            InvalidValueError: `event` is not an event.
        """
        given: Any = event  # type checkers do not narrow by `type(…) is`, which is faster than isinstance
        kind: Any = type(event)
        if kind is TextDelta:
            piece = given.text
        elif kind is ToolCallDelta:
            piece = given.args
        elif kind is ReasoningDelta:
            piece = given.reasoning
        elif kind is DataDelta:
            piece = given.data
        else:
            return self._step_with_care(event)
        if given.choice != self._quick or given.run_id != self._run_id:
            is_ignored = (
                self._quick is not None and given.run_id == self._run_id
            )  # as a delta of another choice
            return self.snapshot if is_ignored else self._step_with_care(event)
        fold = self._open.get(given.index)  # as in `Walk.grow`, which would cost a sixth more
        if not piece:
            return self.snapshot
        if fold is None or fold.grows is not kind:
            return self._step_with_care(event)
        blocks = self._blocks
        try:
            blocks[fold.place] = fold.grow(piece)
        except LimitExceededError as error:
            error.snapshot = self.snapshot
            raise
        # `make_snapshot(self._head, tuple(blocks))`, written out: the call would add 20 ns to 640.
        snapshot: Any = _BlankSnapshot()
        snapshot._head = self._head
        snapshot.blocks = tuple(blocks)
        snapshot.__class__ = Snapshot
        self.snapshot = snapshot
        return self.snapshot

    def _step_with_care(self, event: Event | Snapshot) -> Snapshot:
        walk, kind = self._walk, type(event)
        try:
            if isinstance(event, Snapshot):
                return self._merge(event)
            if (kind is MessageStart or kind is AttemptReset) and walk.begins_another(event):
                raise self._another(event)
            if kind not in EVENT_TYPES:
                raise wrong_value("Fold.step", event, "events or snapshots")
            broken = broken_rule(walk, event)
            changes = walk.step(event)
            if broken is not None:
                walk.count_violation(broken)
            if kind is Custom:
                self._keep(event)
        except RxDeltaError as error:
            error.snapshot = self.snapshot
            raise
        if walk.choice != self._quick or walk.run_id != self._run_id:
            self._take_lane()
        if not changes and broken is None:
            return self.snapshot
        head, blocks = self._head, self._blocks
        for change in changes:
            fold = change.fold
            if fold is None:
                self._HEADS[change.kind](self, event)
                self._check_head(head)
            elif change.kind == "opened":
                self._insert(fold)
            else:
                blocks[fold.place] = fold.block
                if self._order is not None:
                    self._order.put(fold.place, fold.block)
        if walk.violations is not self._head.violations:
            self._head = attrs.evolve(self._head, violations=walk.violations)
        if changes is not USAGE or head is not self._head:
            shown = self._blocks if self._order is None else self._order.blocks
            self.snapshot = make_snapshot(self._head, tuple(shown))
        return self.snapshot

    def begins_another(self, event: Event | Snapshot) -> bool:
        """Whether another message begins, which `step` refuses."""
        return not isinstance(event, Snapshot) and self._walk.begins_another(event)

    def has_call(self, update: ToolUpdate) -> bool:
        """Whether the message has the call of this update."""
        walk = self._walk
        concerned = update.choice in (None, walk.choice) and update.run_id in (None, walk.run_id)
        return concerned and walk.has_call(update.call_id)

    def _another(self, event: Event) -> ProtocolError:
        what = "another attempt" if isinstance(event, AttemptReset) else "a second message"
        when = "after the first has finished" if self._walk.over else "while the first is open"
        return ProtocolError(
            f"{what} begins {when}; split a conversation with group_by_message(); to try a failed reply again use "
            "retry_stream(), which takes back what came",
            violation="duplicate_message_start",
        )

    def _keep(self, event: Any) -> None:
        if not event.transient:
            place, known = len(self._blocks) + self._walk.over, self._head.custom
            if self._custom is None:
                self._custom = numbers(known)
            custom = place_custom(known, event, place, self._walk.limits, known_numbers=self._custom)
            if event.id is not None and len(custom) > len(known):
                self._custom[event.name, event.id] = len(known)
            self._head = attrs.evolve(self._head, custom=custom)
            self.snapshot = make_snapshot(self._head, self.snapshot.blocks)

    def _check_head(self, before: Head) -> None:
        """Check what the head has got. If it is too much, the reply stays as it was."""
        head, limits = self._head, self._walk.limits
        try:
            if head.metadata is not before.metadata:
                check_members(head.metadata, limits, "the metadata")
            if head.usage is not None and head.usage is not before.usage:
                check_members(head.usage.raw, limits, "the usage")
        except LimitExceededError as error:
            self._head, error.snapshot = before, self.snapshot
            raise

    def _take_lane(self) -> None:
        """Show the choice and the run that the walk has taken from an event."""
        walk, head = self._walk, self._head
        self._run_id = walk.run_id
        if self._order is None:
            self._quick = walk.choice
        choice = head.choice if walk.choice is None else walk.choice
        if (choice, walk.run_id) != (head.choice, head.run_id):
            self._head = attrs.evolve(head, choice=choice, run_id=walk.run_id)
            self.snapshot = make_snapshot(self._head, self.snapshot.blocks)

    def _merge(self, delta: Snapshot) -> Snapshot:
        if self._walk.choice is None:
            self._walk.choice = delta.choice
            self._take_lane()
        if delta.choice == self._walk.choice:
            before = self._head
            self._load(merge_snapshots(self.snapshot, delta))
            self._check_head(before)
        return self.snapshot

    def _insert(self, fold: BlockFold) -> None:
        """Insert a new block. Integer keys stand in their order, all other keys in the order of arrival."""
        key = fold.block.key
        fold.place = len(self._blocks)
        if isinstance(key, int):
            if self._highest is not None and key < self._highest and self._order is None:
                self._order = _Order(self._blocks)
                self._quick = None
            self._highest = key if self._highest is None else max(key, self._highest)
        if self._order is not None:
            self._order.add(key, fold.place, fold.block)
        self._blocks.append(fold.block)

    # The head of the message, after a change of the message.

    def _started(self, event: Any) -> None:
        head = self._head
        self._head = attrs.evolve(
            head,
            started=head.started or not event.assumed,
            id=event.id if head.id is None else head.id,
            model=event.model if head.model is None else head.model,
            usage=event.usage if head.usage is None else head.usage,
            metadata=FrozenDict({**event.metadata, **head.metadata}),
            parent_run_id=event.parent_run_id if head.parent_run_id is None else head.parent_run_id,
        )

    def _usage(self, event: Any) -> None:
        if event.usage != self._head.usage:
            self._head = attrs.evolve(self._head, usage=event.usage)

    def _ended(self, event: Any) -> None:
        head = self._head
        if isinstance(event, MessageInterrupted):
            why = {} if event.reason is None else {"interrupted": event.reason}
            self._head = attrs.evolve(
                head, status="interrupted", metadata=FrozenDict({**head.metadata, **why})
            )
            return
        calls = (block for block in self._blocks if isinstance(block, ToolCall))
        asked = any(call.type != "server_tool_call" for call in calls)
        reason, word = both_finish_reasons(event.reason, event.provider_reason, asked=asked)
        own_fields = ("model", "id") if head.id in (None, event.id) and event.id is not None else ("model",)
        self._head = attrs.evolve(
            head,
            status="length" if reason == "length" else "complete",
            finish_reason=reason,
            provider_finish_reason=word,
            usage=event.usage or head.usage,
            metadata=FrozenDict(
                {k: v for k, v in {**head.metadata, **event.metadata}.items() if k not in own_fields}
            ),
            id=event.id if head.id is None else head.id,
            model=event.model if head.model is None else head.model,
        )

    def _reset(self, event: Any) -> None:
        head = self._head
        failed = add_attempt(head.failed_usage, event.usage or head.usage)
        if failed is not None:
            self._head = attrs.evolve(head, usage=failed)
            self._check_head(head)
        fresh = Head(
            role="assistant",
            choice=head.choice,
            attempt=event.attempt,
            failed_usage=failed,
            run_id=head.run_id,
            parent_run_id=head.parent_run_id,
            started=False,
            origin=head.origin,
            # The failed attempt didn't say them. Those of earlier attempts are there already.
            custom=head.custom[: self._settled]
            + tuple((0, event) for _, event in head.custom[self._settled :]),
        )
        self._begin(make_snapshot(fresh, ()))
        self._settled = len(fresh.custom)

    _HEADS: ClassVar[dict[str, Callable[[Fold, Any], None]]] = {
        "started": _started,
        "usage": _usage,
        "ended": _ended,
        "reset": _reset,
    }


class _Order:
    """The blocks in the order of the message, if they arrived in another order.

    It searches and inserts in lists, which is fast. To renumber all blocks at each insertion could take minutes.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self._places = list(range(len(blocks)))  # the place of each block by arrival
        self._at = {block.key: place for place, block in enumerate(blocks) if isinstance(block.key, int)}
        self._numbers = sorted(self._at)

    def add(self, key: Key, place: int, block: Block) -> None:
        """Insert a block: an integer key before the next higher one, any other key at the end."""
        behind = len(self._places)
        if isinstance(key, int):
            number = bisect_right(self._numbers, key)
            if number < len(self._numbers):
                behind = self._places.index(self._at[self._numbers[number]])
            self._numbers.insert(number, key)
            self._at[key] = place
        self._places.insert(behind, place)
        self.blocks.insert(behind, block)

    def put(self, place: int, block: Block) -> None:
        self.blocks[self._places.index(place)] = block
