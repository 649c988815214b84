"""What `group_by_block`, `group_by_choice` and `group_by_message` share: one source split into hot streams.

A `Split` is one subscription of such an operator, a `Branch` one of the streams that it gives. The source is
subscribed once and stays so while anybody reads the streams' stream or one of them. What a reader pushes into the
source from within a notification waits until everybody has heard the event before it. One thread at a time, as
everywhere in Rx: a source that emits on several must serialise, and subscribing belongs to its thread; disposing may
come from any.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import (
    CompositeDisposable,
    Disposable,
    RefCountDisposable,
    SingleAssignmentDisposable,
)

from rxdelta.core import (
    DEFAULT_LIMITS,
    ByChoice,
    Event,
    Fold,
    InvalidValueError,
    Limits,
    MessageDelta,
    ProviderError,
    StreamInterrupted,
    to_events,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    AttemptReset,
    MessageInterrupted,
    MessageStart,
    StreamError,
    ToolUpdate,
)
from rxdelta.operators._session import current_session
from rxdelta.operators._stray import report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Branch", "EventBranch", "EventSplit", "Split", "Story", "is_over", "refusal"]

T = TypeVar("T")
S = TypeVar("S", bound="Branch[Any]")
B = TypeVar("B", bound="EventBranch")


class _Reader(Generic[T]):
    """A subscriber of one of the streams, and the session to which what it raises belongs."""

    __slots__ = ("observer", "session")

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self.observer = observer
        self.session = current_session.get()


class Branch(Observable[T]):
    """One of the streams: hot, but who comes late is told where it is.

    A subscriber that raises is not told any more, and its exception is reported once; the others don't notice.
    """

    def __init__(self, split: Split[Any]) -> None:
        super().__init__()
        self._split: Split[Any] | None = split  # none once it has ended
        self._failure: Exception | None = None
        self._leases: dict[_Reader[T], abc.DisposableBase] = {}
        self._readers: tuple[_Reader[T], ...] = ()

    @property
    def _what(self) -> str:
        """What it is, for messages."""
        raise NotImplementedError

    def _so_far(self) -> Sequence[T]:
        """What a late subscriber is told first."""
        raise NotImplementedError

    def _subscribe_core(
        self,
        observer: abc.ObserverBase[T],
        scheduler: abc.SchedulerBase | None = None,  # noqa: ARG002
    ) -> abc.DisposableBase:
        split, reader = self._split, _Reader(observer)
        if split is None:
            self._catch_up(reader)
            return Disposable()
        with self.lock:
            self._leases[reader] = split.readers.disposable
            self._readers = tuple(self._leases)
        split.uninterrupted(self._catch_up, reader)
        return Disposable(partial(self._leave, reader))

    def _catch_up(self, reader: _Reader[T]) -> None:
        told = all(self._tell(reader, partial(reader.observer.on_next, value)) for value in self._so_far())
        if told and self._split is None:
            self._tell_end(reader)

    def _emit(self, value: T) -> None:
        for reader in self._readers:  # who subscribes meanwhile has caught up with this value
            try:
                reader.observer.on_next(value)
            except Exception as error:
                self._drop(reader, error)

    def _end(self, failure: Exception | None) -> None:
        self._split, self._failure = None, failure
        for reader in self._readers:
            self._tell_end(reader)

    def _tell_end(self, reader: _Reader[T]) -> None:
        failure, observer = self._failure, reader.observer
        self._tell(reader, observer.on_completed if failure is None else partial(observer.on_error, failure))

    def _tell(self, reader: _Reader[T], notify: Callable[[], None]) -> bool:
        """Whether it could be told."""
        try:
            notify()
        except Exception as error:
            self._drop(reader, error)
            return False
        return True

    def _drop(self, reader: _Reader[T], error: Exception) -> None:
        self._leave(reader)
        report(error, f"a subscriber of {self._what} raised, and is not told any more", reader.session)

    def _leave(self, reader: _Reader[T]) -> None:
        with self.lock:
            lease = self._leases.pop(reader, None)
            self._readers = tuple(self._leases)
        if lease is not None:
            lease.dispose()


class Split(Generic[S]):
    """One subscription's state: the open streams, who reads, and whose turn it is."""

    def __init__(self, observer: abc.ObserverBase[S]) -> None:
        self._observer = observer
        self._open: dict[S, None] = {}
        self._ended = False
        self._unread = False  # the streams' stream: whoever reads on will not hear of new ones
        self._busy = False
        self._waiting: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._session = current_session.get()
        self._upstream = SingleAssignmentDisposable()
        self.readers = RefCountDisposable(CompositeDisposable(Disposable(self._abandon), self._upstream))

    def connect(self, source: Observable[Event], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        self._upstream.disposable = source.subscribe(
            self.on_next, self.on_error, self.on_completed, scheduler=scheduler
        )
        return CompositeDisposable(Disposable(self._leave), self.readers)

    def on_next(self, event: Event) -> None:
        if self._busy or self._waiting:
            self._take(self._step, event)
            return
        self._busy = True
        try:
            self._step(event)
        finally:
            self._busy = False
        if self._waiting:
            self._work_off()

    def on_error(self, error: Exception) -> None:
        self._take(self._finish, error)

    def on_completed(self) -> None:
        self._take(self._finish, None)

    def uninterrupted(self, call: Callable[[Any], None], argument: Any) -> None:
        """Call it now, and let the source's events wait until it has returned."""
        if self._busy:
            call(argument)
        else:
            self._take(call, argument)

    def _take(self, step: Callable[[Any], None], argument: Any) -> None:
        self._waiting.append((step, argument))
        if not self._busy:
            self._work_off()

    def _work_off(self) -> None:
        self._busy = True
        try:
            while self._waiting:
                step, argument = self._waiting.popleft()
                step(argument)
        finally:
            self._busy = False

    def _step(self, event: Event) -> None:
        raise NotImplementedError

    def _last_word(self, stream: S) -> Exception | None:  # noqa: ARG002
        """With what a stream ends that is open when the source completes."""
        return None

    def _forget(self) -> None:
        """Free what was kept for the streams."""

    def _announce(self, stream: S) -> None:
        """Whoever subscribes the stream at once reads for our session, in whatever context the event comes."""
        token = current_session.set(self._session)
        try:
            self._observer.on_next(stream)
        finally:
            current_session.reset(token)

    def _close(self, stream: S, failure: Exception | None = None) -> None:
        self._open.pop(stream, None)
        stream._end(failure)

    def _finish(self, error: Exception | None) -> None:
        """The end, for the streams first."""
        self._ended = True
        for stream in list(self._open):
            self._close(stream, self._last_word(stream) if error is None else error)
        self._forget()
        if error is None:
            self._observer.on_completed()
        else:
            self._observer.on_error(error)

    def _leave(self) -> None:
        self._unread = True

    def _abandon(self) -> None:
        """Nobody reads any more: whoever finds one of the streams later is told so, and doesn't wait."""
        if self._ended:
            return
        self._ended = True
        for stream in list(self._open):
            self._close(stream, StreamInterrupted(f"the source was left while {stream._what} was open"))
        self._forget()


class EventBranch(Branch[Event]):
    """A stream of events. A late subscriber gets the shortest list that leads to where it is."""

    def __init__(self, split: Split[Any], limits: Limits, choice: int = 0) -> None:
        super().__init__(split)
        self._story = Story(limits, choice=choice)

    def _take_in(self, event: Event) -> None:
        self._story.take(event)

    def _so_far(self) -> Sequence[Event]:
        return self._story.so_far()


class Story:
    """What has come, as folds: from them a late reader is told the shortest list of events that leads to now.

    Whose an `AttemptReset` is: while a choice is open, it is of that message, and takes back what its choices have
    said. When all are over it is of the next message, whose first attempt has failed, and the message stays.

    Args:
        limits: What the stream may make us hold.
        whole: Whether messages that others have followed are told too; else the newest alone.
        choice: Which is interrupted where none has begun.

    Raises:
        LimitExceededError, ProtocolError: Of `take`, as of a fold.
    """

    def __init__(self, limits: Limits, *, whole: bool = False, choice: int = 0) -> None:
        self._limits = limits
        self._whole = whole
        self._first = choice
        self._before: list[list[_Choice]] = []  # messages that are over, or were cut off
        self._now: dict[int, _Choice] = ByChoice(limits)
        self._resets: list[Event] = []  # of the message that is told now, or will be next

    def take(self, value: Event) -> None:
        event, number = value, getattr(value, "choice", None)
        if number is not None:
            self._step(number, event)
        elif isinstance(event, AttemptReset):
            self._reset(event)
        elif isinstance(event, ToolUpdate):
            for choice in chain(*self._before, self._now.values()):
                choice.fold.step(event)
        else:
            if isinstance(event, MessageInterrupted) and not self._now:
                self._begin(self._first)
            for choice in self._now.values():
                choice.fold.step(event)

    def _step(self, number: int, event: Event) -> None:
        known, cut = self._now.get(number), None
        if known is not None and known.fold.begins_another(event):
            cut = None if is_over(known.fold.snapshot) else event
            self._follow(known)
            known = None
        if known is None:
            known = self._begin(number)
            known.cut = cut
        known.fold.step(event)
        known.began = True

    def _reset(self, event: AttemptReset) -> None:
        if self.is_over():
            self._follow(*self._now.values())
        self._resets.append(event)
        for choice in self._now.values():
            choice.fold.step(event)
            choice.began = False

    def _begin(self, number: int) -> _Choice:
        choice = _Choice(Fold(choice=number, limits=self._limits))
        self._now[number] = choice
        if not self._whole:
            self._before.clear()
        for reset in self._resets:
            choice.fold.step(reset)
        return choice

    def _follow(self, *known: _Choice) -> None:
        """Another message begins behind these, and behind all choices that are over."""
        ended = [
            number for number, choice in self._now.items() if choice in known or is_over(choice.fold.snapshot)
        ]
        self._before.append([self._now.pop(number) for number in ended])
        self._resets.clear()

    def is_over(self) -> bool:
        """Whether every choice that has begun is over."""
        return bool(self._now) and all(is_over(choice.fold.snapshot) for choice in self._now.values())

    def begins_another(self, event: Event) -> bool:
        """Whether the event is of the next message."""
        if isinstance(event, AttemptReset):
            return self.is_over()
        known = self._now.get(getattr(event, "choice", -1))
        return known is not None and known.fold.begins_another(event)

    def so_far(self) -> Sequence[Event]:
        events = [event for message in (*self._before, self._now.values()) for event in _told(message)]
        return events if self._now else [*events, *self._resets]

    def snapshot(self) -> MessageDelta | None:
        """The newest message, of its first choice."""
        messages = (self._now.values(), *reversed(self._before))
        return next((choice.fold.snapshot for message in messages for choice in message), None)


class _Choice:
    """One choice of one message."""

    __slots__ = ("began", "cut", "fold")

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.cut: Event | None = None  # the start that cut off the message before
        self.began = False  # in this attempt

    def events(self) -> list[Event]:
        events = to_events(self.fold.snapshot)
        if self.began:
            return events
        return [event for event in events if not isinstance(event, MessageStart)]


def _told(message: Iterable[_Choice]) -> Sequence[Event]:
    """The events of a message's choices. A reset in front of them would be that of a message that was cut off."""
    choices = list(message)
    lists = [events for choice in choices if (events := choice.events())]
    events = _joined(lists[0], lists[1:]) if lists else []
    if events and isinstance(events[0], AttemptReset):
        events = [choice.cut for choice in choices if choice.cut is not None][:1] + events
    return events


def _joined(first: list[Event], others: list[list[Event]]) -> list[Event]:
    """The choices one after another, and what speaks of all of them said once: resets first, interruptions last."""
    last = [
        event
        for event in (first[-1], *(other[-1] for other in others))
        if isinstance(event, MessageInterrupted)
    ]
    events = [event for event in first if not isinstance(event, MessageInterrupted)]
    for other in others:
        events += [event for event in other if not isinstance(event, (AttemptReset, MessageInterrupted))]
    return events + last[:1]


class EventSplit(Split[B]):
    """A split into streams of events."""

    def __init__(self, observer: abc.ObserverBase[B], limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(observer)
        self._limits = limits

    def _step(self, event: Event) -> None:
        if self._ended:
            return
        failure = refusal(event)
        if failure is None:
            self._pass_on(event)
        else:
            self._finish(failure)

    def _pass_on(self, event: Event) -> None:
        raise NotImplementedError

    def _begin(self, stream: B, first: Sequence[Event] = ()) -> None:
        self._open[stream] = None
        self._announce(stream)
        for event in first:
            self._give(stream, event)

    def _give(self, stream: B, event: Event) -> None:
        try:
            stream._take_in(event)
        except Exception as error:
            self._finish(error)
            return
        stream._emit(event)


def is_over(message: MessageDelta) -> bool:
    return message.status != "incomplete"


def refusal(event: object) -> Exception | None:
    """The error that ends the stream in place of this event, if it is one."""
    if isinstance(event, StreamError):
        return ProviderError(event.message, type=event.type, code=event.code)
    if type(event) in EVENT_TYPES:
        return None
    return InvalidValueError.of([("event", event, "must be an event; chunks go through decode() first")])
