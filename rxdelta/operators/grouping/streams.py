"""The base of `group_by_block`, `group_by_choice` and `group_by_message`: one source split into hot streams.

A `Split` is one subscription of such an operator, a `Branch` one of its streams. The source is subscribed once. It
stays subscribed while the outer stream or one of the branches has a subscriber. An event that a subscriber pushes into
the source during a notification waits until all subscribers have got the current event. As everywhere in Rx, a source
that emits on several threads must serialise its emissions. Branches are subscribed on its thread; any thread may
dispose.
"""

from __future__ import annotations

from collections import deque
from functools import partial
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
    Event,
    EventsSoFar,
    Limits,
    StreamInterrupted,
    refusal,
)
from rxdelta.runtime import current_session, report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Branch", "EventBranch", "EventSplit", "Split"]

T = TypeVar("T")
S = TypeVar("S", bound="Branch[Any]")
B = TypeVar("B", bound="EventBranch")


class _Reader(Generic[T]):
    """A subscriber of a branch, and the session that gets its exceptions."""

    __slots__ = ("observer", "session")

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self.observer = observer
        self.session = current_session.get()


class Branch(Observable[T]):
    """A hot stream that replays its current state to a late subscriber.

    A subscriber that raises is removed, and its exception is reported once; the others are not affected.
    """

    def __init__(self, split: Split[Any]) -> None:
        super().__init__()
        self._split: Split[Any] | None = split  # `None` after the end
        self._failure: Exception | None = None
        self._leases: dict[_Reader[T], abc.DisposableBase] = {}
        self._readers: tuple[_Reader[T], ...] = ()

    @property
    def _label(self) -> str:
        """The branch's description, for messages."""
        raise NotImplementedError

    def _so_far(self) -> Sequence[T]:
        """The values that are replayed to a late subscriber."""
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
        split.run_exclusive(self._catch_up, reader)
        return Disposable(partial(self._leave, reader))

    def _catch_up(self, reader: _Reader[T]) -> None:
        delivered = all(
            self._notify(reader, partial(reader.observer.on_next, value)) for value in self._so_far()
        )
        if delivered and self._split is None:
            self._notify_end(reader)

    def _emit(self, value: T) -> None:
        for reader in self._readers:  # later subscribers get the value by their replay
            try:
                reader.observer.on_next(value)
            except Exception as error:
                self._drop(reader, error)

    def _end(self, failure: Exception | None) -> None:
        self._split, self._failure = None, failure
        for reader in self._readers:
            self._notify_end(reader)

    def _notify_end(self, reader: _Reader[T]) -> None:
        failure, observer = self._failure, reader.observer
        self._notify(
            reader, observer.on_completed if failure is None else partial(observer.on_error, failure)
        )

    def _notify(self, reader: _Reader[T], notify: Callable[[], None]) -> bool:
        """Call `notify`. A reader that raises is removed. Return whether it didn't."""
        try:
            notify()
        except Exception as error:
            self._drop(reader, error)
            return False
        return True

    def _drop(self, reader: _Reader[T], error: Exception) -> None:
        self._leave(reader)
        report(error, f"a subscriber of {self._label} raised, and is not told any more", reader.session)

    def _leave(self, reader: _Reader[T]) -> None:
        with self.lock:
            lease = self._leases.pop(reader, None)
            self._readers = tuple(self._leases)
        if lease is not None:
            lease.dispose()


class Split(Generic[S]):
    """One subscription's state: the open branches, their readers, and the queue of notifications."""

    def __init__(self, observer: abc.ObserverBase[S]) -> None:
        self._observer = observer
        self._open: dict[S, None] = {}
        self._ended = False
        self._outer_disposed = False  # no new branches are emitted then; the open ones go on
        self._busy = False
        self._queue: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._session = current_session.get()
        self._upstream = SingleAssignmentDisposable()
        self.readers = RefCountDisposable(CompositeDisposable(Disposable(self._abandon), self._upstream))

    def connect(self, source: Observable[Event], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        self._upstream.disposable = source.subscribe(
            self.on_next, self.on_error, self.on_completed, scheduler=scheduler
        )
        return CompositeDisposable(Disposable(self._leave), self.readers)

    def on_next(self, event: Event) -> None:
        if self._busy or self._queue:
            self._enqueue(self._step, event)
            return
        self._busy = True
        try:
            self._step(event)
        finally:
            self._busy = False
        if self._queue:
            self._drain()

    def on_error(self, error: Exception) -> None:
        self._enqueue(self._finish, error)

    def on_completed(self) -> None:
        self._enqueue(self._finish, None)

    def run_exclusive(self, call: Callable[[Any], None], argument: Any) -> None:
        """Call now, and queue the source's events until the call has returned."""
        if self._busy:
            call(argument)
        else:
            self._enqueue(call, argument)

    def _enqueue(self, step: Callable[[Any], None], argument: Any) -> None:
        self._queue.append((step, argument))
        if not self._busy:
            self._drain()

    def _drain(self) -> None:
        self._busy = True
        try:
            while self._queue:
                step, argument = self._queue.popleft()
                step(argument)
        finally:
            self._busy = False

    def _step(self, event: Event) -> None:
        raise NotImplementedError

    def _completion_error(self, stream: S) -> Exception | None:  # noqa: ARG002
        """The error of a branch that is open when the source completes; `None` to complete it."""
        return None

    def _forget(self) -> None:
        """Drop the state of the branches."""

    def _announce(self, stream: S) -> None:
        """Emit a branch. Its subscribers belong to our session, in whatever context the event arrives."""
        token = current_session.set(self._session)
        try:
            self._observer.on_next(stream)
        finally:
            current_session.reset(token)

    def _close(self, stream: S, failure: Exception | None = None) -> None:
        self._open.pop(stream, None)
        stream._end(failure)

    def _finish(self, error: Exception | None) -> None:
        """End the branches, then the outer stream."""
        self._ended = True
        for stream in list(self._open):
            self._close(stream, self._completion_error(stream) if error is None else error)
        self._forget()
        if error is None:
            self._observer.on_completed()
        else:
            self._observer.on_error(error)

    def _leave(self) -> None:
        self._outer_disposed = True

    def _abandon(self) -> None:
        """The last reader has left: end the branches, so that later subscribers get an error and don't wait."""
        if self._ended:
            return
        self._ended = True
        for stream in list(self._open):
            self._close(stream, StreamInterrupted(f"the source was left while {stream._label} was open"))
        self._forget()


class EventBranch(Branch[Event]):
    """A branch of events. It replays the shortest list of events that folds to its current state."""

    def __init__(self, split: Split[Any], limits: Limits, choice: int = 0) -> None:
        super().__init__(split)
        self._replay = EventsSoFar(limits, choice=choice)

    def _remember(self, event: Event) -> None:
        self._replay.take(event)

    def _so_far(self) -> Sequence[Event]:
        return self._replay.so_far()


class EventSplit(Split[B]):
    """A split into branches of events."""

    def __init__(self, observer: abc.ObserverBase[B], limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(observer)
        self._limits = limits

    def _step(self, event: Event) -> None:
        if self._ended:
            return
        failure = refusal(event)
        if failure is None:
            self._route(event)
        else:
            self._finish(failure)

    def _route(self, event: Event) -> None:
        raise NotImplementedError

    def _open_stream(self, stream: B, first: Sequence[Event] = ()) -> None:
        self._open[stream] = None
        self._announce(stream)
        for event in first:
            self._deliver(stream, event)

    def _deliver(self, stream: B, event: Event) -> None:
        try:
            stream._remember(event)
        except Exception as error:
            self._finish(error)
            return
        stream._emit(event)
