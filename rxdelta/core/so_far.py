"""The events of a snapshot, and of a conversation so far, for a late subscriber."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import dropwhile, takewhile
from typing import Any

import attrs

from rxdelta.core.block_fold import grows_by
from rxdelta.core.blocks import Block, block_to_wire, has_text_field
from rxdelta.core.content_part import change_part
from rxdelta.core.custom import Placed, place_custom
from rxdelta.core.event_classes import (
    AttemptReset,
    BlockFinish,
    BlockStart,
    Custom,
    Event,
    Index,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolUpdate,
)
from rxdelta.core.fast_constructor import set_field
from rxdelta.core.fold import Fold, Tail
from rxdelta.core.message import Message
from rxdelta.core.message_delta import as_snapshot
from rxdelta.core.options import ByChoice, Limits
from rxdelta.core.refusal import refusal
from rxdelta.core.runs import PerRun
from rxdelta.core.snapshot import Head, Snapshot, is_over, is_settled, make_snapshot
from rxdelta.core.tool_call import ToolCall
from rxdelta.core.values import check, one_of


def to_events(snapshot: Snapshot | Message) -> list[Event]:
    """The shortest legal list of events that folds to this snapshot, or to a finished message.

    The start of a block carries all of its text so far. So a block is one event, or two if it has ended, and one more
    if a tool has news. Blocks that were folded from events keep their index. Blocks of a snapshot that was merged from
    small deltas have no index and are numbered, as are those of a message.

    `run_tools` continues with the calls of a reply that was stored: those that wait for approval are decided, and those
    that have an outcome or had been started are not run again.

    Raises:
        InvalidValueError: A message of another role than `assistant`.

    Example:
        >>> import rxdelta as rd
        >>> snapshot = rd.apply_event(None, rd.events.BlockStart(0, {"type": "text", "text": "Hi"}))
        >>> [event.event for event in rd.to_events(snapshot)]
        ['message-start', 'content-block-start']
    """
    snapshot = _of_message(snapshot) if isinstance(snapshot, Message) else as_snapshot(snapshot)
    choice, metadata = snapshot.choice, dict(snapshot.metadata)
    interrupted, ended = snapshot.status == "interrupted", snapshot.status != "incomplete"
    why = metadata.get("interrupted")
    if interrupted and isinstance(why, str):
        del metadata["interrupted"]
    found: list[Event] = []
    if snapshot.attempt or snapshot.failed_usage:
        found.append(AttemptReset(snapshot.attempt, usage=snapshot.failed_usage))
    start = MessageStart(
        snapshot.id,
        snapshot.model,
        snapshot.usage,
        metadata,
        choice=choice,
        parent_run_id=snapshot.parent_run_id,
        violations=snapshot.violations,
        assumed=_lacks_start(snapshot),
    )
    found.append(start)
    own: list[tuple[int, Event]] = []  # of the application, each with its place among the others
    custom = deque(snapshot._custom)
    for number, (index, block) in enumerate(_indexed(snapshot.blocks)):
        while custom and custom[0][0] <= number:
            own.append((len(found), custom.popleft()[1]))
        found += _block_events(index, block, choice, ended)
    while custom and custom[0][0] <= len(snapshot.blocks):
        own.append((len(found), custom.popleft()[1]))
    if interrupted:
        found.append(MessageInterrupted(why if isinstance(why, str) else None))
    elif ended:
        reason = snapshot.finish_reason or ("length" if snapshot.status == "length" else None)
        found.append(MessageFinish(reason, snapshot.provider_finish_reason, choice=choice))
    if snapshot.run_id is not None:
        for event in found:
            set_field(event, "run_id", snapshot.run_id)
    for place, event in reversed(own):
        found.insert(place, event)
    return [*found, *(event for _, event in custom)]


def _of_message(message: Message) -> Snapshot:
    check([one_of("role", message.role, ("assistant",))])
    head = Head(
        role="assistant",
        status=message.status,
        metadata=message.metadata,
        usage=message.usage,
        choice=message.choice,
        id=message.id,
        model=message.model,
        finish_reason=message.finish_reason,
        provider_finish_reason=message.provider_finish_reason,
        attempt=message.attempt,
        failed_usage=message.failed_usage,
        run_id=message.run_id,
        parent_run_id=message.parent_run_id,
        custom=message._custom,
        violations=message.violations,
    )
    return make_snapshot(head, message.blocks)


def _lacks_start(snapshot: Snapshot) -> bool:
    """Whether the message's start may still come. Blocks that broke no rule were merged, and have no start."""
    return not snapshot._head.started and (bool(snapshot.violations) or not snapshot.blocks)


def _indexed(blocks: tuple[Block, ...]) -> list[tuple[Index, Block]]:
    """The blocks with their own indexes, or numbered if those would not give the same order again."""
    kept = [(block.key, block) for block in blocks if isinstance(block.key, (int, str))]
    numbers = [index for index, _ in kept if isinstance(index, int)]
    if len({index for index, _ in kept}) == len(blocks) and numbers == sorted(numbers):
        return kept
    return list(enumerate(blocks))


def _block_events(index: Index, block: Block, choice: int, ended: bool) -> list[Event]:
    if not isinstance(block, ToolCall):
        finish = [] if block.open and not ended else [BlockFinish(index, choice=choice)]
        if block.text is None or has_text_field(block):
            return [BlockStart(index, block_to_wire(block), choice=choice), *finish]
        start = BlockStart(index, block_to_wire(change_part(block, text=None)), choice=choice)
        return [start, grows_by(block)(index, block.text, choice=choice), *finish]
    unparsed = block.open or (block.type == "tool_call" and block.status == "incomplete")
    finish = [] if unparsed and not ended else [BlockFinish(index, choice=choice)]
    # News come before the finish: a reader of single blocks takes a call without news to be over at its finish.
    return [BlockStart(index, block_to_wire(block), choice=choice), *_news(block), *finish]


def _news(call: ToolCall) -> list[Event]:
    known: Any = call.metadata.get("execution_status")
    status: Any = known if isinstance(known, str) else None
    if call.call_id is None or (status, call.display_text, call.result) == (None, None, None):
        return []
    return [ToolUpdate(call.call_id, status, call.display_text, call.result)]


class EventsSoFar:
    """Keeps a stream as folds, and gives the shortest list of events that leads to the present state.

    Each run, and each choice in it, has its own messages, by the law of `Walk`. The runs follow one another in the list.

    Args:
        limits: Bounds on the kept messages.
        whole: Whether to keep the earlier messages of each run too, not only the newest.
        choice: The choice that an interruption before any other event belongs to.
        name: The operator that refuses values that are no events; by default nobody asks.

    Raises:
        ProviderError, InvalidValueError: From `take` with a name, as `refusal`.
        LimitExceededError, ProtocolError: From `take`, as from a fold.
    """

    def __init__(
        self, limits: Limits, *, whole: bool = False, choice: int = 0, name: str | None = None
    ) -> None:
        self._name = name
        self._runs = PerRun(partial(_Run, limits, whole, choice), limits, name=_Run.name)
        self._tail = Tail(self._step, self._lane)
        self.take = self._tail.feed
        self.keeps = self._tail.take
        """Keep a delta, or return `False`: then `take` it."""

    def _step(self, value: Event) -> None:
        failure = None if self._name is None else refusal(value, self._name)
        if failure is not None:
            raise failure
        if isinstance(value, Custom) and value.transient:
            return  # no replay has it, so it begins no run
        runs = self._runs.of(value)
        if isinstance(value, Custom) and len(runs) > 1:
            # Replayed once: in its place, or else by the run that began last.
            runs = [run for run in runs if run.has_custom(value)][:1] or runs[-1:]
        for run in runs:
            run.take(value)

    def _lane(self, delta: Any) -> Fold | None:
        run = self._runs.get(delta.run_id)
        known = None if run is None else run._now.get(delta.choice)
        return None if known is None else known.fold

    def begins_another(self, event: Event) -> bool:
        """Whether the event belongs to the next message, by the law of its lane."""
        return any(run.begins_another(event) for run in self._runs.known())

    def has_call(self, update: ToolUpdate) -> bool:
        """Whether a message that is kept has the call of this update."""
        return any(run.has_call(update) for run in self._runs.known())

    def is_settled(self) -> bool:
        """Whether the newest messages are over, and each call has an outcome."""
        return all(run.is_settled() for run in self._runs.known())

    def so_far(self) -> Sequence[Event]:
        """The events that a late subscriber gets first.

        The run without a name is the first: its events about any run must not concern others that are replayed.
        """
        self._tail.settle()
        runs = sorted(self._runs.known(), key=lambda run: run.run_id is not None)
        return [event for run in runs for event in run.so_far()]

    def snapshot(self) -> Snapshot | None:
        """The first choice of the newest message of the run that began last."""
        self._tail.settle()
        return next(
            (found for run in reversed(self._runs.known()) if (found := run.snapshot()) is not None), None
        )


class _Run:
    """The messages of one run."""

    def __init__(self, limits: Limits, whole: bool, choice: int, run_id: str | None) -> None:
        self.run_id = run_id
        self._limits = limits
        self._whole = whole
        self._first = choice
        self._before: list[list[_Choice]] = []  # earlier messages, finished or cut off
        self._now: dict[int, _Choice] = ByChoice(limits)
        self._for_all: list[
            Event
        ] = []  # the message's resets and interruptions, for choices that begin later
        self._early: tuple[Placed, ...] = ()  # the application's events, until a choice begins

    def name(self, run_id: str | None) -> None:
        self.run_id = run_id

    def take(self, value: Event) -> None:
        event, number = value, getattr(value, "choice", None)
        if isinstance(event, ToolUpdate):
            self._tool_update(event)
        elif isinstance(event, Custom):
            self._custom(event)
        elif isinstance(event, AttemptReset) and number is None:
            self._reset(event)
        elif number is not None:
            self._step(number, event)
        else:
            if isinstance(event, MessageInterrupted):
                if not self._now:
                    self._begin(self._first)
                self._for_all.append(event)
            for choice in self._now.values():
                choice.fold.step(event)

    def _step(self, number: int, event: Event) -> None:
        known, cut = self._now.get(number) or self._begin(number), None
        if known.fold.begins_another(event):
            cut = None if is_over(known.fold.snapshot) else event
            self._follow(known)
            known = self._begin(number)
            known.cut = cut
        known.fold.step(event)
        known.began = not isinstance(event, AttemptReset)

    def _custom(self, event: Custom) -> None:
        """Keep it with the first choice."""
        if self._now:
            next(iter(self._now.values())).fold.step(event)
        else:
            self._early = place_custom(self._early, event, 0, self._limits)

    def has_custom(self, event: Custom) -> bool:
        """Whether a choice has older data of its name and id."""
        placed = (self._early, *(choice.fold.snapshot._custom for choice in self._now.values()))
        return event.id is not None and any(
            (known.name, known.id) == (event.name, event.id) for custom in placed for _, known in custom
        )

    def has_call(self, update: ToolUpdate) -> bool:
        messages = (self._now.values(), *self._before)
        return any(choice.fold.has_call(update) for message in messages for choice in message)

    def is_settled(self) -> bool:
        return bool(self._now) and all(is_settled(choice.fold.snapshot) for choice in self._now.values())

    def _tool_update(self, event: ToolUpdate) -> None:
        """Apply the update to the newest message that has the call."""
        for message in (self._now.values(), *reversed(self._before)):
            found = [choice for choice in message if choice.fold.has_call(event)]
            for choice in found:
                choice.fold.step(event)
            if found:
                return

    def _reset(self, event: AttemptReset) -> None:
        """Reset the choices that are open. To those that are over the reset is the next message's."""
        over = [choice for choice in self._now.values() if choice.fold.begins_another(event)]
        if over:
            self._follow(*over)
        self._for_all.append(event)
        for choice in self._now.values():
            choice.fold.step(event)
            choice.began = False

    def _begin(self, number: int) -> _Choice:
        begin = partial(Fold, choice=number, run_id=self.run_id, limits=self._limits)
        fold = begin()
        for event in self._for_all:
            if fold.begins_another(event):
                fold = begin()
            fold.step(event)
        for _, event in self._early:
            fold.step(event)
        self._early = ()
        self._now[number] = choice = _Choice(fold)
        if not self._whole:
            self._before.clear()
        return choice

    def _follow(self, *known: _Choice) -> None:
        """Another message begins: file away these choices, and all that are over."""
        ended = [
            number for number, choice in self._now.items() if choice in known or is_over(choice.fold.snapshot)
        ]
        self._before.append([self._now.pop(number) for number in ended])
        self._for_all.clear()

    def begins_another(self, event: Event) -> bool:
        number = getattr(event, "choice", None)
        known = self._now.values() if number is None else [self._now[number]] if number in self._now else []
        return any(choice.fold.begins_another(event) for choice in known)

    def so_far(self) -> Sequence[Event]:
        messages = [*self._before, [*self._now.values()]]
        events = [
            event for place, message in enumerate(messages) for event in _events_of(message, first=not place)
        ]
        if self._now:
            return events
        for_all = (attrs.evolve(event, run_id=self.run_id) for event in self._for_all)
        return [*events, *for_all, *(event for _, event in self._early)]

    def snapshot(self) -> Snapshot | None:
        messages = (self._now.values(), *reversed(self._before))
        return next((choice.fold.snapshot for message in messages for choice in message), None)


class _Choice:
    """One choice of one message."""

    __slots__ = ("began", "cut", "fold")

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.cut: Event | None = None  # the start that cut off the previous message
        self.began = False  # whether this attempt has had an event

    def events(self) -> list[Event]:
        events = to_events(self.fold.snapshot)
        if self.began:
            return events
        return [event for event in events if not isinstance(event, MessageStart)]

    def named(self, events: Iterable[Event], *, first: bool) -> Iterator[Event]:
        """The events, of which those without a choice get ours."""
        number = self.fold.snapshot.choice
        for event in events:
            if isinstance(event, AttemptReset) and not first:
                yield MessageStart(choice=number, run_id=self.fold.snapshot.run_id)
            if isinstance(event, (AttemptReset, MessageInterrupted, ToolUpdate)):
                yield attrs.evolve(event, choice=number)
            else:
                yield event


def _events_of(choices: Sequence[_Choice], *, first: bool) -> Sequence[Event]:
    """The events of a message's choices in turn.

    Events about the whole message come once: resets first, interruptions last. If the choices differ in them, these
    events name their choice. Updates of tools do so if there are several choices, whose calls may have the same ids.

    Args:
        choices: The choices.
        first: Whether it is the first message. A reset that belonged to the message before needs a start before it.
    """
    lists = [(choice, events) for choice in choices if (events := choice.events())]
    if not lists:
        return ()
    resets = [[event for event in events if isinstance(event, AttemptReset)] for _, events in lists]
    tails = [tail for _, events in lists if (tail := [*dropwhile(_is_no_stop, events)])]
    stops = [tail[0] for tail in tails]
    all_over = all(is_over(choice.fold.snapshot) for choice in choices)
    if any(one != resets[0] for one in resets) or (stops and not all_over):
        return [event for choice, events in lists for event in choice.named(events, first=first)]
    found: list[Event] = [choice.cut for choice in choices if resets[0] and choice.cut is not None][:1]
    found += resets[0]
    for choice, events in lists:
        own = choice.named(events, first=True) if len(lists) > 1 else events
        found += [event for event in takewhile(_is_no_stop, own) if not isinstance(event, AttemptReset)]
    return [*found, *stops[:1], *(event for tail in tails for event in tail[1:])]


def _is_no_stop(event: Event) -> bool:
    return not isinstance(event, MessageInterrupted)
