"""How a reply grows by events: one step is O(1) in the text received so far.

`Walk` has the law: what an event changes. A fold shows the changes as snapshots, and counts the events that break a
rule. A fold reads one message, and refuses the start of another one: their blocks would be mixed.

An operator that follows a reply needs no snapshot after each delta. A tail keeps the deltas that only continue the newest
block. It folds them as one delta when somebody looks, or before another event comes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias, TypeVar, Union, overload

import attrs

from rxdelta.core.block_fold import JOINABLE, PIECE_FIELDS, BlockFold
from rxdelta.core.blocks import Block
from rxdelta.core.custom import numbers, place_custom
from rxdelta.core.errors import LimitExceededError, ProtocolError, RxDeltaError
from rxdelta.core.event_classes import (
    EVENT_TYPES,
    AttemptReset,
    Custom,
    DataDelta,
    Event,
    MessageInterrupted,
    MessageStart,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
)
from rxdelta.core.fast_constructor import blank
from rxdelta.core.json_values import FrozenDict, is_list
from rxdelta.core.literals import both_finish_reasons
from rxdelta.core.message import add_attempt
from rxdelta.core.message_delta import MessageDelta, as_snapshot, merge_snapshots
from rxdelta.core.options import DEFAULT_LIMITS, Limits, check_members
from rxdelta.core.protocol_checker import broken_rule
from rxdelta.core.refusal import wrong_value
from rxdelta.core.snapshot import Head, Snapshot, empty_head, make_snapshot, with_usage
from rxdelta.core.tool_call import ToolCall
from rxdelta.core.values import Key
from rxdelta.core.walk import USAGE, Walk

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
            # Before the step: the rule depends on the state that the event finds.
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
                # After the change, which shows how much the event adds; too much takes it back.
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

    def _grown_by(self, event: Any) -> BlockFold | None:
        """The open block of this reply that a delta continues."""
        return self._walk._grown_by(event)

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
            self._head = with_usage(self._head, event.usage)

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


S = TypeVar("S", bound=Snapshot)
Nested: TypeAlias = Union[Snapshot, Event, "Sequence[Nested]"]


def apply_event(snapshot: Snapshot | None, event: Event) -> Snapshot:
    """The snapshot after one event of the chat stream event protocol.

    One step of a `Fold`. For many events, keep a `Fold`, which is faster.

    Args:
        snapshot: The reply so far; `None` is an empty assistant message. An event of another choice changes
            nothing.
        event: The event.

    Raises:
        ProviderError: The event is a `StreamError`; the error's `.snapshot` is `snapshot`.
        ProtocolError: The event is of another run. Or another message begins: a start comes after the end, or once a
            block has begun, unless it repeats the message's own id.
        LimitExceededError: An index that is too large, too many blocks, or one too large.
        InvalidValueError: `event` is not an event.

    Example:
        >>> import rxdelta as rd
        >>> rd.apply_event(None, rd.events.MessageStart(id="m1")).id
        'm1'
    """
    return Fold(snapshot).step(event)


@overload
def merge_delta(primary: None, delta: Snapshot | Event) -> MessageDelta: ...
@overload
def merge_delta(primary: S, delta: Snapshot | Event) -> S: ...
def merge_delta(primary: Snapshot | None, delta: Snapshot | Event) -> Snapshot:
    """The reply `primary` with one more delta merged into it: a `MessageDelta`, unless `primary` is a `Snapshot`.

    Content goes to the slot `delta.index` (0 if it has none). A part of the same type as the newest part of the slot
    is joined to that part; a part of another type becomes a new block behind it; empty text is ignored. The fragment
    of a call is merged, among the calls of the same index, into the call with the same id; else into an open call
    without an id; else, if the fragment has no id, into the newest call; else it begins a new call. The blocks of a
    delta that is itself a snapshot are merged one by one. The status never goes back, usage is added, and of other
    metadata the later value wins. A delta of another choice changes nothing.

    Args:
        primary: The reply so far; `None` is an empty assistant message, whatever role the delta has.
        delta: A `MessageDelta`, a snapshot, or an event. A `StreamError` changes nothing; any other event is applied as
            by `apply_event`.

    Raises:
        MergeError: The role of `primary` is not `assistant`.
        ProtocolError: The delta is of another run. A snapshot without a run belongs to any.

    Example:
        >>> import rxdelta as rd
        >>> start = rd.MessageDelta(tool_calls=[rd.ToolCall(call_id="c1", name="add", index=0)])
        >>> more = rd.MessageDelta(tool_calls=[rd.ToolCall(arguments='{"a":1}', index=0)])
        >>> rd.merge_deltas([start, more]).tool_calls[0].arguments
        '{"a":1}'
    """
    if primary is None:
        primary = MessageDelta._made(empty_head(getattr(delta, "choice", 0)), ())
    if isinstance(delta, StreamError):
        return primary
    if isinstance(delta, Snapshot):
        return merge_snapshots(primary, delta)
    after = apply_event(primary, delta)
    return primary._made(after._head, after.blocks, None, getattr(primary, "index", None))


@overload
def merge_deltas(deltas: Sequence[Nested], /) -> MessageDelta | None: ...
@overload
def merge_deltas(accumulated: None, deltas: Sequence[Nested], /) -> MessageDelta | None: ...
@overload
def merge_deltas(accumulated: S, deltas: Sequence[Nested], /) -> S: ...
def merge_deltas(*arguments: Any) -> Snapshot | None:
    """Merge many deltas: `merge_deltas(deltas)` or `merge_deltas(accumulated, deltas)`.

    Lists may be nested to any depth. If there are no deltas, the result is `accumulated`, or `None`.

    Raises:
        MergeError: As `merge_delta`.
    """
    accumulated, deltas = arguments if len(arguments) == 2 else (None, arguments[0])
    snapshot: Snapshot | None = accumulated
    for delta in _flat(deltas):
        snapshot = merge_delta(snapshot, delta)
    return snapshot


def _flat(deltas: Iterable[Any]) -> Iterable[Snapshot | Event]:
    pending = [iter(deltas)]
    while pending:  # a loop, because recursion would limit the depth
        for delta in pending[-1]:
            if is_list(delta):
                pending.append(iter(delta))
                break
            yield delta
        else:
            pending.pop()


Snapshot._merged = merge_delta


_MOST, _EACH = 1 << 12, 8
"""The characters that a tail keeps at most. Each piece counts some more, because short strings take memory too."""

_PIECES: dict[type, Callable[[Any], str]] = {kind: attrgetter(field) for kind, field in PIECE_FIELDS.items()}


class Tail:
    """Keeps deltas in front of a fold. The owner offers it each event, and settles it before each look at the fold.

    Errors come at the same events as without a tail: it keeps no delta that is too long for the block, and none that
    the fold would refuse or ignore. Events come from one thread at a time; with a lock, any thread may settle
    meanwhile.

    Args:
        step: Folds an event. The tail calls it for joined deltas, the owner for the events that the tail doesn't take.
        lane: Finds the fold, or the walk, of a delta's lane; `None` if it isn't known.
        lock: Held while the tail steps, so that several threads may settle. The owner's own steps don't need it.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.Fold()
        >>> tail = rd.core.Tail(fold.step, lambda _: fold)
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), *(rd.events.TextDelta(0, x) for x in "abcd")]:
        ...     tail.feed(event)
        >>> fold.snapshot.text
        'ab'
        >>> tail.settle()
        >>> fold.snapshot.text
        'abcd'
    """

    __slots__ = ("_kind", "_lane", "_last", "_left", "_lock", "_piece", "_pieces", "_step")

    def __init__(
        self,
        step: Callable[[Any], object],
        lane: Callable[[Any], Fold | Walk | None],
        lock: AbstractContextManager[object] = nullcontext(),  # noqa: B008
    ) -> None:
        self._step = step
        self._lane = lane
        self._lock = lock
        self._pieces: list[str] = []
        self._last: Any = None  # the delta that was followed last, if it is the newest event
        self._kind: Any = None  # its type
        self._piece: Any = None
        self._left = 0  # below 0: the event that wasn't kept is one more delta of the block

    def take(self, event: Any) -> bool:
        """Keep a delta that only continues the newest block, or return `False`. Then call `follow`, and step the event."""
        kind: type = event.__class__
        if kind is self._kind:
            last = self._last
            if (  # as `Joined.takes`, which would cost a call
                event.index == last.index and event.choice == last.choice and event.run_id == last.run_id
            ):
                piece = event.text if kind is TextDelta else self._piece(event)  # text comes most often
                self._left -= len(piece) + _EACH
                if self._left < 0:
                    return False
                self._pieces.append(piece)
                return True
        self._left = 0
        return False

    def follow(self, event: Any) -> None:
        """Settle before an event that wasn't taken; the owner steps it next."""
        if self._pieces:
            self.settle()
        if self._left >= 0:
            self._piece = _PIECES.get(event.__class__)
            if self._piece is None:
                self._kind = self._last = None
            else:
                self._kind, self._last = type(event), event
        else:  # looked up at a block's second delta: deltas of several blocks in turn cost no search
            lane = self._lane(event)
            walk = lane._walk if isinstance(lane, Fold) else lane
            block = None if walk is None else walk._grown_by(event)
            left = 0 if block is None else block._most - block._size - len(self._piece(event))
            self._left = max(0, min(_MOST, left))

    def feed(self, event: Any) -> None:
        """Take an event, or follow and step it."""
        if not self.take(event):
            self.follow(event)
            self._step(event)

    def settle(self) -> None:
        """Fold the kept deltas, so that the fold has all events."""
        pieces = self._pieces
        if not pieces:
            return
        with self._lock:
            count = len(pieces)
            if count:  # else another thread has settled meanwhile
                _, make = JOINABLE[self._kind]
                text, last = "".join(pieces[:count]), self._last
                self._step(make(last.index, text, choice=last.choice, run_id=last.run_id))
                del pieces[:count]  # after the step: a thread that finds no pieces reads a complete fold
