"""The base of `group_by_block`, `group_by_choice` and `group_by_message`: one source split into hot streams.

A `Split` is one subscription of such an operator, a `Branch` one of its streams. The source is subscribed once. It
stays subscribed while the outer stream or one of the branches has a subscriber. An event that a subscriber pushes into
the source during a notification waits until all subscribers have got the current event. As everywhere in Rx, a source
that emits on several threads must serialise its emissions. Branches are subscribed on its thread; any thread may
dispose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, RefCountDisposable

from rxdelta.core import PIECE_FIELDS, Event, EventsSoFar, StreamInterrupted, refusal
from rxdelta.core.events import Custom
from rxdelta.runtime import Mark, OwnObservable, Sink, Taker, calling_for, create, report

T = TypeVar("T")
S = TypeVar("S", bound="Branch[Any]")
B = TypeVar("B", bound="EventBranch")


class Branch(OwnObservable[T]):
    """A hot stream that replays its current state to a late subscriber.

    A subscriber that raises is removed, and its exception is reported once; the others are not affected.
    """

    def __init__(self, split: Split[Any]) -> None:
        super().__init__()
        self._split: Split[Any] | None = split  # `None` after the end
        self._failure: Exception | None = None
        self._readers: tuple[Sink[T], ...] = ()

    @property
    def _label(self) -> str:
        """The branch's description, for messages."""
        raise NotImplementedError

    def _so_far(self) -> Sequence[T]:
        """The values that are replayed to a late subscriber."""
        raise NotImplementedError

    def _start(self, taker: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        branch = create(type(self).__name__, self._begin)
        return branch.subscribe(*taker, scheduler=scheduler)

    def _begin(self, reader: Sink[T]) -> None:
        split = self._split
        if split is not None:
            reader.bounds.follow(split.sink.bounds)
            reader.own(split.room.follow(reader.session))
            reader.own(Disposable(partial(self._leave, reader, split.readers.disposable)))
            if self._so_far():
                split.sink.turn(self._join, reader)  # the source's events wait until the reader has caught up
        self._join(reader)  # now, if that turn comes later because the source is emitting

    def _join(self, reader: Sink[T]) -> None:
        if reader.closed or reader in self._readers:
            return
        with self.lock:
            self._readers = (*self._readers, reader)
        for value in self._so_far():
            self._notify(reader, reader.on_next, value)
        if self._split is None:
            self._notify_end(reader)

    def _leave(self, reader: Sink[T], lease: abc.DisposableBase) -> None:
        with self.lock:
            self._readers = tuple(one for one in self._readers if one is not reader)
        lease.dispose()

    def _emit(self, value: T) -> None:
        for reader in self._readers:  # later subscribers get the value by their replay
            try:
                reader.on_next(value)
            except Exception as error:
                self._report(reader, error)

    def _end(self, failure: Exception | None) -> None:
        self._split, self._failure = None, failure
        for reader in self._readers:
            self._notify_end(reader)

    def _notify_end(self, reader: Sink[T]) -> None:
        if self._failure is None:
            self._notify(reader, reader.on_completed)
        else:
            self._notify(reader, reader.on_error, self._failure)

    def _notify(self, reader: Sink[T], notify: Callable[..., None], *arguments: Any) -> None:
        try:
            notify(*arguments)
        except Exception as error:
            self._report(reader, error)

    def _report(self, reader: Sink[T], error: Exception) -> None:
        report(error, f"a subscriber of {self._label} raised, and was removed", reader.session)


class Split(Generic[S]):
    """One subscription's state. It emits branches, and ends them before the outer stream ends.

    Args:
        sink: Takes the source's events in turns, and emits the branches. It outlives the outer stream's subscriber while
            a branch has one.
    """

    def __init__(self, sink: Sink[S]) -> None:
        self.sink = sink
        self.room = sink.room()  # closed while an operator in a branch has closed its own
        self.readers = RefCountDisposable(sink)
        sink.own(Disposable(self._abandon))

    @property
    def _outer_left(self) -> bool:
        """Whether the outer stream has no subscriber. No new branches are emitted then; the open ones go on."""
        return self.readers.is_primary_disposed

    def on_next(self, event: Event) -> None:
        raise NotImplementedError

    def _forget(self) -> Iterable[S]:
        """Drop the state. Return the branches that were open."""
        raise NotImplementedError

    def _completion_error(self, stream: S) -> Exception | None:  # noqa: ARG002
        """The error of a branch that is open when the source completes; `None` to complete it."""
        return None

    def on_error(self, error: Exception) -> None:
        for stream in self._forget():
            stream._end(error)
        self.sink.on_error(error)

    def on_completed(self) -> None:
        for stream in self._forget():
            stream._end(self._completion_error(stream))
        self.sink.on_completed()

    def _abandon(self) -> None:
        """The last reader has left: end the branches, so that later subscribers get an error and don't wait."""
        for stream in self._forget():
            stream._end(StreamInterrupted(f"the source was left while {stream._label} was open"))

    def _announce(self, stream: S) -> None:
        """Emit a branch. Its subscribers belong to our session, in whatever context the event arrives."""
        calling_for(self.sink.session, self.sink.bounds, partial(self.sink.on_next, stream))


def split_by(name: str, begin: Callable[[Sink[S]], Split[S]]) -> Callable[[Observable[Event]], Observable[S]]:
    """The operator whose subscriptions are such splits."""

    def apply(source: Observable[Event]) -> Observable[S]:
        def connect(outer: Sink[S]) -> None:
            def start(sink: Sink[S]) -> None:
                split = begin(sink)

                def leave() -> None:
                    if (
                        outer.raised is None
                    ):  # else the exception ends this subscription on its way to the source
                        split.readers.dispose()

                outer.own(Disposable(leave))
                sink.subscribe(source, split, room=split.room)

            create(name, start).subscribe(outer, scheduler=outer.scheduler)

        return create(name, connect, emits="streams")

    return apply


class EventBranch(Branch[Event]):
    """A branch of events. It replays the shortest list of events that folds to its current state."""

    def __init__(self, split: Split[Any], choice: int = 0) -> None:
        super().__init__(split)
        self._mark = Mark("events", split.sink.name)
        self._replay = EventsSoFar(split.sink.limits, choice=choice)

    def _so_far(self) -> Sequence[Event]:
        return self._replay.so_far()

    def _deliver(self, event: Event) -> None:
        self._replay.take(event)
        self._emit(event)


def hold(waiting: dict[object, Event], event: Event) -> None:
    """Add an event to those that wait. An event of the application's has newer data of one with its name and id."""
    subject: object = object()
    if isinstance(event, Custom) and event.id is not None:
        subject = (event.name, event.id, event.run_id, event.transient)
    waiting[subject] = event


class EventSplit(Split[B]):
    """A split into branches of events."""

    def on_next(self, event: Event) -> None:
        if type(event) not in PIECE_FIELDS:  # a delta is never refused
            failure = refusal(event, self.sink.name)
            if failure is not None:
                raise failure
        self._route(event)

    def _route(self, event: Event) -> None:
        raise NotImplementedError
