"""The life of a message and of its blocks: from an event to the changes that it makes. Every reader stands on this.

A stream is read lane by lane: each run (`runs.py`) and each choice in it. In a lane one message follows another. A
message is *empty* until its first block begins, then *open*, then *over*. A block is *unknown*, then *open*, then *ended*.
The tables say what an event changes in each state. `-` means that it changes nothing.

    event of the message    empty                     open                           over
    MessageStart            started                   started, or another: below     another, started
    a block's event         the second table          the second table               -
    UsageUpdate             usage, unless empty       usage, unless empty            -
    MessageFinish           ended                     all open blocks closed, ended  -
    MessageInterrupted      ended                     all open blocks closed, ended  -
    AttemptReset            reset                     reset                          another, reset; or reset: below
    ToolUpdate              noted, for every call with its id, also after the call's end and the message's
    ProviderEvent           -                         -                              -
    Custom                  -                         -                              -
    StreamError             ProviderError is raised, in every state, for every choice and run

    event of a block        unknown                   open                           ended
    BlockStart              opened                    restarted                      restarted
    the block's own delta   -                         grown                          -
    another block's delta   -                         -                              -
    BlockDelta              -                         changed                        -
    BlockFinish             -                         closed                         -
    ... with content        opened, closed            closed                         overruled

*When another message begins.* After the end, any `MessageStart` begins another message, whatever its id: some gateways
have one id for all messages. While the message is open, a start begins another message unless it repeats the message's
own id; a start without an id repeats none. There are two exceptions, in which the start only adds what the message
lacks: the message has had no start yet, because it came late or was lost; or no block has begun. An `AttemptReset` that
names no choice and comes after the end is the next message's: its first attempt has failed. A reset that names a choice
takes that choice back, in any state. What *another* means is the reader's: a fold reads one message and refuses it; a
reader of a conversation puts the old message away and continues.

*Another run.* A walk takes the run of its first event, or of its choice's first event. An event of another run is
refused, not ignored: a choice is passed over because it wasn't asked for, but a second run is a surprise, and a reader
that passes over it loses a reply. The unnamed run becomes the walk's once it has a start, an id, a block, usage or a finish;
a reset forgets it, because a snapshot doesn't hold it. Events that name no run and are of `FOR_ANY_RUN` belong to every run.

*What these rules may depend on.* Only what a snapshot holds: its id, status, blocks, and whether a start has come. So a stored
fold continues as if it had never been stored. And only their own choice: `group_by_choice` in front of a reader
changes nothing for it. A walk remembers more only for readers that act: which calls have ended, and which calls of
earlier messages still run.

*Ignored events* would damage a block: a delta of the wrong type, or without a block. Everything else is applied: a
block that starts again begins afresh, in its place; a second finish with content overrules the first. `broken_rule`
names the rules that such events break: `ProtocolChecker` reports them, and a fold counts them in the snapshot.

*A call's second life.* Tools run at a call's first end, and once for a message, block and call id. A call that closes
once more under its id is `repeated`; readers that act pass over it, readers that show don't. A call that begins again
under its id keeps its tool's status and result. If it ends with other arguments than those that a tool has got, its
metadata have `arguments_changed_after_run`.

*The application's own data* (`Custom`) change no message. A fold keeps them beside the blocks, whatever run they name:
they are no part of a reply that could be mixed with another, so they neither begin a run nor are refused.

*Limits* are checked where something is added: a block's index and the number of blocks when it opens, its length
whenever it grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args

from rxdelta.core.block_fold import PIECE_FIELDS, BlockFold
from rxdelta.core.blocks import Block, block_from_wire
from rxdelta.core.content_part import Origin
from rxdelta.core.errors import ProviderError
from rxdelta.core.event_classes import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    DataDelta,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.core.json_values import EMPTY, FrozenDict
from rxdelta.core.literals import TERMINAL
from rxdelta.core.options import DEFAULT_LIMITS, ByChoice, Limits, check_place
from rxdelta.core.refusal import wrong_value
from rxdelta.core.runs import PerRun, another_run, concerns_any_run, concerns_choice
from rxdelta.core.tool_call import ToolCall, begun_again, ended_again, with_news
from rxdelta.core.values import Key, add_violations, message_order, usage_or_none

if TYPE_CHECKING:
    from rxdelta.core.snapshot import Snapshot


Owner = TypeVar("Owner")

Kind: TypeAlias = Literal[
    "another", "started", "usage", "ended", "reset",
    "opened", "restarted", "grown", "changed", "closed", "overruled", "noted",
]  # fmt: skip

CUT = {
    "length": "the message was cut short by the token limit while the call was open",
    "interrupted": "the message was interrupted while the call was open",
}
_NO_BLOCK: Any = None


class Change:
    """What an event has changed.

    Attributes:
        kind: `another`, `started`, `usage`, `ended` or `reset`, of the message; else of a block.
        fold: The block, as all changes of the event have left it; `None` if the message has changed.
        before: The block as it was before; `None` for one that has just opened, and for the message.
        repeated: Whether a call has closed that had ended before under its id in this message.
    """

    __slots__ = ("before", "fold", "kind", "repeated")

    def __init__(
        self, kind: Kind, fold: BlockFold = _NO_BLOCK, before: Block | None = None, repeated: bool = False
    ) -> None:
        self.kind: Kind = kind
        self.fold = fold
        self.before = before
        self.repeated = repeated

    def __repr__(self) -> str:
        return (
            f"Change({self.kind!r})" if self.fold is None else f"Change({self.kind!r}, {self.fold.block!r})"
        )


class ChangeReader:
    """The base of whoever acts on each change: a method for each kind, with the change and the event that has made it.

    Pieces that continue a block are no changes to a reader that takes them with `Walk.grow`, which costs no call here.

    Example:
        >>> import rxdelta as rd
        >>> class Prints(rd.core.ChangeReader):
        ...     def on_closed(self, change: Change, event: Event) -> None:
        ...         print(change.fold.block.text, "by", event.event)
        >>> finish = rd.events.BlockFinish(0, {"type": "text", "text": "Hi"})
        >>> _ = Prints().read_changes(rd.core.Walk().step(finish), finish)
        Hi by content-block-finish
    """

    _readers: ClassVar[Mapping[str, Callable[[Any, Change, Any], Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._readers = {kind: getattr(cls, f"on_{kind}") for kind in get_args(Kind)}

    def read_changes(self, changes: Iterable[Change], event: Event) -> list[Any]:
        """Read the changes of an event, one after the other. Return what the methods return."""
        return [self._readers[change.kind](self, change, event) for change in changes]

    def _passes_by(self, change: Change, event: Any, /) -> Any:
        """The change means nothing to this reader."""

    on_another = on_started = on_usage = on_ended = on_reset = _passes_by
    on_opened = on_restarted = on_grown = on_changed = on_closed = on_overruled = on_noted = _passes_by


_NOTHING: Sequence[Change] = ()
_STARTED = (Change("started"),)
_ANOTHER = (Change("another"), Change("started"))
USAGE = (Change("usage"),)
_ENDED = Change("ended")
_RESET = (Change("reset"),)
_ANOTHER_ATTEMPT = (Change("another"), Change("reset"))


class Walk:
    """Follows one lane of a conversation, a choice of a run, message by message.

    Args:
        choice: The choice; events of others change nothing. `None` is the choice of the first event.
        run_id: The run. `None` is the run of the first event.
        limits: Bounds on the size of a message.
        keep_calls: Whether a call without an outcome is still found when the next message has begun, also if no
            tool is known to run for it.

    Attributes:
        blocks: The message's blocks by index, in the order in which they began, but for those that were let go. It is
            always the same mapping.
        count: How many blocks have begun.
        run_id: The run, as far as it is known; `None` is the run without a name.
        id: The message's id, as far as it is known.
        started: Whether the message's start has come.
        over: Whether the message has finished or was interrupted.
        violations: The rules that its events broke, as far as its reader has counted them.

    Example:
        >>> import rxdelta as rd
        >>> walk = rd.core.Walk()
        >>> [change.kind for change in walk.step(rd.events.BlockFinish(0, {"type": "text", "text": "Hi"}))]
        ['opened', 'closed']
    """

    __slots__ = (
        "_calls",
        "_closed_calls",
        "_doubled",
        "_gone",
        "_gone_below",
        "_has_facts",
        "_keep_calls",
        "blocks",
        "choice",
        "count",
        "id",
        "limits",
        "origin",
        "over",
        "run_id",
        "started",
        "violations",
    )  # fmt: skip

    def __init__(
        self,
        choice: int | None = None,
        *,
        run_id: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        keep_calls: bool = False,
    ) -> None:
        self.choice = choice
        self.run_id = run_id
        self.limits = limits
        self._keep_calls = keep_calls
        self.blocks: dict[Key, BlockFold] = {}
        self._calls: CallIndex[BlockFold] | None = None  # from the first ToolUpdate on
        self.origin: Origin | None = Origin()
        self._begin()

    def _begin(self) -> None:
        self.id: str | None = None
        self.started = self.over = self._has_facts = False
        self.count = 0
        self.violations: FrozenDict[int] = EMPTY
        self.blocks.clear()
        self._doubled: Sequence[BlockFold] = ()  # of a snapshot: blocks whose key a later block has too
        self._closed_calls: set[tuple[Key, str]] = set()
        self._gone: set[Key] = set()
        self._gone_below = 0  # all lower numbers are gone too, so that numbers in order take no memory

    def load(self, snapshot: Snapshot) -> list[BlockFold]:
        """Continue from this snapshot. Return its blocks in their order."""
        self._begin()
        self._calls = None
        self.id, self.over = snapshot.id, snapshot.status != "incomplete"
        self.run_id = snapshot.run_id
        self.origin = snapshot._head.origin
        self._has_facts = snapshot.status in ("complete", "length") or _has_facts(snapshot)
        self.started = snapshot._head.started
        self.violations = snapshot.violations
        folds = [BlockFold(block, limits=self.limits) for block in snapshot.blocks]
        self.count = len(folds)
        for fold in folds:
            self.blocks[fold.block.key] = fold
            call_id = call_id_of(fold.block)
            if call_id is not None and not fold.block.open:
                self._closed_calls.add((fold.block.key, call_id))
            if self.over:
                fold.grows = None
        if len(self.blocks) != len(folds):
            self._doubled = [fold for fold in folds if self.blocks[fold.block.key] is not fold]
        return folds

    def step(self, event: Event) -> Sequence[Change]:
        """Apply an event, and return what it changes.

        Raises:
            ProviderError: The event is a `StreamError`.
            ProtocolError: The event is of another run.
            LimitExceededError: An index that is too large, too many blocks, or one too large.
            InvalidValueError: `event` is not an event.
        """
        step = self._STEPS.get(type(event))
        if step is None:
            raise wrong_value("Walk.step", event)
        if event.run_id != self.run_id and type(event) is not Custom:
            self._take_run(event)
        choice = getattr(event, "choice", None)
        if choice is not None and choice != self.choice:
            if self.choice is None:
                self.choice = choice
            elif not isinstance(event, StreamError):
                return _NOTHING
        changes = step(self, event)
        if self._calls is not None and type(event) is not ToolUpdate:  # which changes no id
            for change in changes:
                if change.fold is not None:
                    before = change.before and call_id_of(change.before)
                    self._calls.note(change.fold, before, call_id_of(change.fold.block))
        return changes

    def _take_run(self, event: Event) -> None:
        """Take the run of the first event, or refuse that of a later one."""
        if concerns_any_run(event) or isinstance(event, StreamError):
            return
        if not self._takes_any_run():
            raise another_run(event.run_id, self.run_id)
        if self.choice is None or concerns_choice(event, self.choice):
            self.run_id = event.run_id

    def _takes_any_run(self) -> bool:
        return self.run_id is None and not self._shows_any()

    def _shows_any(self) -> bool:
        return bool(self.started or self.count or self._has_facts or self.id is not None)

    def lacks_start(self) -> bool:
        """Whether an event now would come before the message's start. True at most once for each message."""
        return not self._shows_any() and "missing_message_start" not in self.violations

    def count_violation(self, name: str) -> None:
        """Note that an event has broken this rule."""
        self.violations = add_violations(self.violations, {name: 1})

    def grow(self, event: Any) -> BlockFold | None:
        """Apply a delta that only adds a piece; return the block if it has grown.

        Raises:
            ProtocolError: The event is of another run.
            LimitExceededError: The block has become too large.
        """
        fold = self.blocks.get(event.index)  # as in `_grown_by`, which would cost a call
        if event.run_id != self.run_id:
            self._take_run(event)
        if fold is None or fold.grows is not type(event) or event.choice != self.choice:
            return None
        piece = getattr(event, PIECE_FIELDS[type(event)])
        if not piece:
            return None
        fold.grow(piece)
        return fold

    def _grown_by(self, event: Any) -> BlockFold | None:
        """The open block of this lane that a delta continues."""
        fold = self.blocks.get(event.index)
        ours = event.choice == self.choice and event.run_id == self.run_id
        return fold if ours and fold is not None and fold.grows is type(event) else None

    def begins_another(self, event: Event) -> bool:
        """Whether the event begins another message of this choice and run."""
        if isinstance(event, MessageStart) and self.choice in (None, event.choice):
            repeats = event.id is not None and event.id == self.id
            another = self.over or (self.started and self.count > 0 and not repeats)
            return another and (event.run_id == self.run_id or self._takes_any_run())
        if isinstance(event, AttemptReset) and event.choice is None and self.over:
            return event.run_id in (None, self.run_id) or self._takes_any_run()
        return False

    def has_ended(self, call: ToolCall) -> bool:
        """Whether a call of this block has ended under this call's id, so that an end would be `repeated`."""
        return (call.key, call.call_id) in self._closed_calls

    def let_go(self, fold: BlockFold, *, acts: bool = True) -> None:
        """Forget a block that has ended, for a reader that needs no more of it. Only a start opens it again.

        Args:
            fold: The block.
            acts: Whether the reader acts on calls, so that a later end of this call must be `repeated`.
        """
        key, call_id = fold.block.key, call_id_of(fold.block)
        if self._calls is not None:
            self._calls.note(fold, call_id, None)
        if not acts and call_id is not None:
            self._closed_calls.discard((key, call_id))
        if self.blocks.get(key) is not fold:
            return
        del self.blocks[key]
        if not self._is_gone(key):
            self._gone.add(key)
        while self._gone_below in self._gone:
            self._gone.remove(self._gone_below)
            self._gone_below += 1

    def _is_gone(self, key: Key) -> bool:
        return key in self._gone or (isinstance(key, int) and 0 <= key < self._gone_below)

    # The message.

    def _message_start(self, event: MessageStart) -> Sequence[Change]:
        another = self.begins_another(event)
        if another:
            self._begin_another()
        self.started = self.started or not event.assumed
        self._has_facts = self._has_facts or _has_facts(event)
        self.id = event.id if self.id is None else self.id
        self.violations = add_violations(self.violations, event.violations)
        return _ANOTHER if another else _STARTED

    def _begin_another(self) -> None:
        if self._keep_calls:
            self._calls = self._index().kept(_has_no_outcome)
        elif self._calls is not None:
            self._calls = self._calls.kept(_is_running)
        self.origin = Origin()
        self._begin()

    def _usage_update(self, event: UsageUpdate) -> Sequence[Change]:
        if self.over or usage_or_none(event.usage) is None:
            return _NOTHING
        # From here on an unnamed run is taken, as a snapshot with usage shows.
        self._has_facts = True
        return USAGE

    def _message_finish(self, event: MessageFinish) -> Sequence[Change]:
        if self.over:
            return _NOTHING
        self._has_facts = True
        self.id = event.id if self.id is None else self.id
        return self._end(CUT.get(event.reason or ""))

    def _message_interrupted(self, _: MessageInterrupted) -> Sequence[Change]:
        return _NOTHING if self.over else self._end(CUT["interrupted"])

    def break_off(self) -> Sequence[Change]:
        """End an open message, because its stream has broken off."""
        return _NOTHING if self.over else self._end("the message broke off while the call was open")

    def _end(self, cut: str | None) -> Sequence[Change]:
        self.over = True
        still_open = [fold for fold in self.blocks.values() if fold.block.open]
        if len(still_open) > 1:
            still_open.sort(key=lambda fold: message_order(fold.block.key))
        # The protocol's order: each block ends before the message.
        return [*(self._close(fold, cut=cut) for fold in still_open), _ENDED]

    def _attempt_reset(self, event: AttemptReset) -> Sequence[Change]:
        if self.begins_another(event):
            self._begin_another()
            return _ANOTHER_ATTEMPT
        if self._calls is not None:
            taken_back = {*self.blocks.values(), *self._doubled}
            # The attempt's blocks are taken back; news of earlier messages' calls must still find these.
            self._calls = self._calls.kept(lambda fold: fold not in taken_back)
        self._begin()
        return _RESET

    def _stream_error(self, event: StreamError) -> Sequence[Change]:
        raise ProviderError.by(event)

    def _passes_by(self, _: ProviderEvent | Custom) -> Sequence[Change]:
        return _NOTHING

    def has_call(self, call_id: str) -> bool:
        """Whether a `ToolUpdate` of this call finds it."""
        return bool(self._index().of(call_id))

    def _index(self) -> CallIndex[BlockFold]:
        if self._calls is None:
            self._calls = CallIndex()
            for fold in (*self._doubled, *self.blocks.values()):
                self._calls.note(fold, None, call_id_of(fold.block))
        return self._calls

    def _tool_update(self, event: ToolUpdate) -> Sequence[Change]:
        changes: list[Change] = []
        for fold in self._index().of(event.call_id):
            before = fold.block
            if isinstance(before, ToolCall):
                fold.block = with_news(
                    before,
                    execution_status=event.execution_status,
                    display_text=event.display_text,
                    result=event.result,
                )
                if fold.block is not before:
                    changes.append(Change("noted", fold, before))
        return changes

    # Blocks.

    def _block_start(self, event: BlockStart) -> Sequence[Change]:
        if self.over:
            return _NOTHING
        fold = self.blocks.get(event.index)
        if fold is None:
            return (self._open(event.index, event),)
        before = fold.block
        block = fold.reset(event)
        # A tool may already run, or have run, for the call under its id: its status and result stay.
        if isinstance(before, ToolCall) and isinstance(block, ToolCall):
            fold.block = begun_again(before, block)
        return (Change("restarted", fold, before),)

    def _open(self, key: Key, start: BlockStart | Block) -> Change:
        fold = BlockFold(start, limits=self.limits, origin=self.origin)
        if not self._is_gone(key):
            check_place(key, self.count, self.limits)
            self.count += 1
        self.blocks[key] = fold
        return Change("opened", fold)

    def _delta(self, event: Any) -> Sequence[Change]:
        fold = self.blocks.get(event.index)
        if fold is None or self.over:
            return _NOTHING
        before = fold.block
        if fold.step(event) is before:
            return _NOTHING
        return (Change("changed" if type(event) is BlockDelta else "grown", fold, before),)

    def _block_finish(self, event: BlockFinish) -> Sequence[Change]:
        if self.over:
            return _NOTHING
        key, content = event.index, event.content
        fold = self.blocks.get(key)
        if fold is not None and fold.block.open:
            return (self._close(fold, content),)
        if content is None or self._is_gone(key):
            return _NOTHING
        if fold is None:
            opened = self._open(key, block_from_wire(content, key, origin=self.origin))
            return (opened, self._close(opened.fold))
        before = fold.block
        block = fold.finish(content)
        if isinstance(before, ToolCall) and isinstance(block, ToolCall):
            fold.block = ended_again(before, block)
        return (Change("overruled", fold, before),)

    def _close(self, fold: BlockFold, content: Any = None, *, cut: str | None = None) -> Change:
        before = fold.block
        block = fold.finish(content, cut=cut)
        repeated = False
        if isinstance(block, ToolCall):
            if isinstance(before, ToolCall):
                fold.block = ended_again(before, block)
            if block.call_id is not None:
                repeated = self.has_ended(block)
                self._closed_calls.add((block.key, block.call_id))
        return Change("closed", fold, before, repeated)

    _STEPS: ClassVar[dict[type, Callable[[Walk, Any], Sequence[Change]]]] = {
        TextDelta: _delta,
        ReasoningDelta: _delta,
        DataDelta: _delta,
        ToolCallDelta: _delta,
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage_update,
        MessageFinish: _message_finish,
        StreamError: _stream_error,
        ProviderEvent: _passes_by,
        Custom: _passes_by,
        ToolUpdate: _tool_update,
        MessageInterrupted: _message_interrupted,
        AttemptReset: _attempt_reset,
    }


class Walks:
    """A walk for each lane of a stream: each choice of each run.

    An event that names no run, if it is of `FOR_ANY_RUN`, concerns the runs that have begun, or the first if none has.
    One that names no choice concerns every choice of its run; an interruption also those that begin later, until a
    reset.

    Args:
        limits: Bounds on the number of lanes and on the size of each message.

    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._runs = PerRun(partial(_Choices, limits), limits, name=_Choices.name)

    def of(self, event: Event) -> Iterable[Walk]:
        """The walks of the lanes that the event concerns.

        Raises:
            LimitExceededError: There are too many runs, or too many choices in one.
        """
        runs = self._runs.of(event)
        return runs[0].of(event) if len(runs) == 1 else [walk for run in runs for walk in run.of(event)]

    @property
    def interrupted(self) -> bool:
        """Whether all runs have been interrupted, also the choices that begin later."""
        known = self._runs.known()
        return bool(known) and all(choices.interrupted for choices in known)


class _Choices(ByChoice[Walk]):
    """A walk for each choice of a run."""

    __slots__ = ("_limits", "_run_id", "interrupted")

    def __init__(self, limits: Limits, run_id: str | None) -> None:
        super().__init__(limits)
        self._limits = limits
        self._run_id = run_id
        self.interrupted = False  # also the choices that begin later

    def name(self, run_id: str | None) -> None:
        self._run_id = run_id
        for walk in self.values():
            walk.run_id = run_id

    def of(self, event: Event) -> Sequence[Walk]:
        """The walks of the choices that the event concerns."""
        choice = getattr(event, "choice", None)
        if choice is None:
            if isinstance(event, (MessageInterrupted, AttemptReset)):
                self.interrupted = isinstance(event, MessageInterrupted)
            return tuple(self.values())
        walk = self.get(choice)
        if walk is None:
            self[choice] = walk = Walk(choice, run_id=self._run_id, limits=self._limits)
            # A stop concerns the choices that begin later, too.
            walk.over = self.interrupted
        return (walk,)


def _has_facts(head: Snapshot | MessageStart) -> bool:
    """Whether it has what only an event of the message's own run can have said: not why it was interrupted."""
    return bool(head.usage or head.model or head.metadata.keys() - {"interrupted"})


def _is_running(fold: BlockFold) -> bool:
    return isinstance(_status(fold), str) and _has_no_outcome(fold)


def _has_no_outcome(fold: BlockFold) -> bool:
    status = _status(fold)
    return isinstance(fold.block, ToolCall) and not (isinstance(status, str) and status in TERMINAL)


def _status(fold: BlockFold) -> object:
    return fold.block.metadata.get("execution_status") if isinstance(fold.block, ToolCall) else None


class CallIndex(Generic[Owner]):
    """Finds the owners of the calls with an id without a search. An owner is, for example, a block's place."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Owner, None]] = {}
        self._earlier: dict[str, dict[Owner, None]] = {}  # of earlier messages

    def of(self, call_id: str) -> Sequence[Owner]:
        return tuple(self._known.get(call_id) or self._earlier.get(call_id) or ())

    def kept(self, still_needed: Callable[[Owner], bool]) -> CallIndex[Owner]:
        """The index of another message, in which these owners are found if no call of that message has the id."""
        another = CallIndex[Owner]()
        for known in (self._earlier, self._known):
            for call_id, owners in known.items():
                if needed := {owner: None for owner in owners if still_needed(owner)}:
                    another._earlier[call_id] = needed
        return another

    def note(self, owner: Owner, before: str | None, now: str | None) -> None:
        """Record that the owner's call had the id `before` and has the id `now`; `None` is no id, or no call."""
        if before == now:
            return
        if before is not None:
            for all_known in (self._known, self._earlier):
                known = all_known.get(before, {})
                known.pop(owner, None)
                if not known:
                    all_known.pop(before, None)
        if now is not None:
            self._known.setdefault(now, {})[owner] = None


def call_id_of(block: Block) -> str | None:
    return block.call_id if isinstance(block, ToolCall) else None
