"""The base of `share_latest` and `share_events`: one subscription to the source for any number of readers."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.core import Snapshot, StreamInterrupted
from rxdelta.runtime import SharedSession, create, current_session, is_interrupt, report, subscribing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from reactivex import Observable, abc

    from rxdelta.core import Limits
    from rxdelta.runtime import Emits, Sink

__all__ = ["Replay", "share"]

T = TypeVar("T")


class Replay(Protocol[T]):
    """The values that are replayed to a late reader."""

    def take(self, value: T) -> None:
        """Remember the value, or raise an error that ends the stream in its place."""
        ...

    def so_far(self) -> Sequence[T]: ...

    def snapshot(self) -> Snapshot | None: ...


def share(
    name: str,
    replay: Callable[[Limits], Replay[T]],
    keep: bool,
    restart: bool,
    limits: Limits | None = None,
    *,
    emits: Emits,
) -> Callable[[Observable[T]], Observable[T]]:
    """The operator. Its state belongs to the Observable that it returns, not to a subscription."""

    def apply(source: Observable[T]) -> Observable[T]:
        shared = _Shared(name, source, replay, keep, restart, limits)
        return create(name, shared.begin, emits=emits)

    return apply


class _Shared(Generic[T]):
    """One shared source and its current connection. One lock guards the readers, the replayed values and the end."""

    def __init__(
        self,
        name: str,
        source: Observable[T],
        replay: Callable[[Limits], Replay[T]],
        keep: bool,
        restart: bool,
        limits: Limits | None,
    ) -> None:
        self._new_connection = partial(_Connection[T], name, source, replay, keep, limits)
        self._restart = restart
        self._lock = RLock()
        self._connection: _Connection[T] | None = None

    def begin(self, reader: Sink[T]) -> None:
        with self._lock:
            connection = self._connection
            first = connection is None or (connection.left and self._restart)
            if connection is None or first:
                connection = self._connection = self._new_connection(self._lock)
            connection.enter(reader)
        reader.own(Disposable(partial(connection.leave, reader)))
        if first:
            connection.connect(reader.scheduler)
        reader.set_limits(connection.limits)
        connection.notify(reader)
        connection.release()


class _Connection(Generic[T]):
    """One subscription to the source."""

    def __init__(
        self,
        name: str,
        source: Observable[T],
        replay: Callable[[Limits], Replay[T]],
        keep: bool,
        limits: Limits | None,
        lock: AbstractContextManager[object],
    ) -> None:
        self._name = name
        self._source: Observable[T] = create(name, partial(self._begin, source), limits=limits)
        self._new_replay = replay
        self._replay: Replay[T] | None = None  # from the first value on, when the limits are known
        self._keep = keep
        self._lock = lock
        self._readers: tuple[Sink[T], ...] = ()
        self._ended = False
        self._error: Exception | None = None
        self._upstream = SingleAssignmentDisposable()
        self._session = SharedSession(self.on_error)
        self.left = False
        self.limits: Limits | None = None

    def connect(self, scheduler: abc.SchedulerBase | None) -> None:
        if self._upstream.is_disposed:
            return
        with subscribing(self._session, scheduler) as ours:
            self._upstream.disposable = self._source.subscribe(scheduler=ours)

    def _begin(self, source: Observable[T], sink: Sink[T]) -> None:
        self._sink = sink
        sink.subscribe(source, self, serial=False)
        self.limits = sink.limits

    def enter(self, reader: Sink[T]) -> None:
        for value in () if self._replay is None else self._replay.so_far():
            reader.put(reader.on_next, value)
        if self._ended:
            reader.put(self._end, reader)
        else:
            self._readers = (*self._readers, reader)
            self._session.join(reader.session)

    def leave(self, reader: Sink[T]) -> None:
        with self._lock:
            if reader not in self._readers:
                return
            self._readers = tuple(other for other in self._readers if other is not reader)
            self._session.leave(reader.session)
            abandoned = not (self._readers or self._keep or self._ended)
            if abandoned:
                self.left = self._ended = True
                self._error = StreamInterrupted(
                    f"all readers had left, and the source was closed; {self._name}(keep=True) lets it go "
                    "on, restart=True begins it anew for the next one",
                    snapshot=None if self._replay is None else self._replay.snapshot(),
                )
        if abandoned:
            self._upstream.dispose()
        self.release()

    def release(self) -> None:
        """Let operators upstream emit what they hold, if nobody is busy any more. Called without the lock."""
        self._session.idleness.notify()

    def on_next(self, value: T) -> None:
        with self._lock:
            if self._ended:
                return
            if self._replay is None:
                self._replay = self._new_replay(self._sink.limits)
            self._replay.take(value)
            readers = self._readers
            for reader in readers:
                reader.put(reader.on_next, value)
        for reader in readers:
            self.notify(reader)
        self._session.check_lag()

    def on_error(self, error: Exception | None) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended, self._error = True, error
            readers, self._readers = self._readers, ()
            for reader in readers:
                reader.put(self._end, reader)
                self._session.leave(reader.session)
        self._upstream.dispose()
        for reader in readers:
            self.notify(reader)

    def on_completed(self) -> None:
        self.on_error(None)

    def _end(self, reader: Sink[T]) -> None:
        if self._error is None:
            reader.on_completed()
        else:
            reader.on_error(self._error)

    def notify(self, reader: Sink[T]) -> None:
        """Deliver a reader's queue. A reader that raises is removed; the others are not affected.

        The reader's session is current meanwhile, so that Observables which it subscribes belong to it alone.
        """
        token = current_session.set(reader.session)
        try:
            reader.flush()
        except BaseException as error:
            report(error, f"a reader of {self._name} raised, and is not told any more", reader.session)
            if is_interrupt(error):
                raise
        finally:
            current_session.reset(token)
