"""The base of `share_latest` and `share_events`: one subscription to the source for any number of readers."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.core import Snapshot, StreamInterrupted
from rxdelta.runtime import Outlet, SharedSession, current_session, report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from rxdelta.runtime import Session

__all__ = ["Replay", "share"]

T = TypeVar("T")


class Replay(Protocol[T]):
    """The values that are replayed to a late reader."""

    name: str
    """The operator's name, for messages."""

    def take(self, value: T) -> None:
        """Remember the value, or raise an error that ends the stream in its place."""
        ...

    def so_far(self) -> Sequence[T]: ...

    def snapshot(self) -> Snapshot | None: ...


def share(
    replay: Callable[[], Replay[T]], keep: bool, restart: bool
) -> Callable[[Observable[T]], Observable[T]]:
    """The operator. Its state belongs to the Observable that it returns, not to a subscription."""

    def apply(source: Observable[T]) -> Observable[T]:
        return Observable(_Shared(source, replay, keep, restart).subscribe)

    return apply


class _Shared(Generic[T]):
    """One shared source and its current connection. One lock guards the readers, the replayed values and the end."""

    def __init__(
        self, source: Observable[T], replay: Callable[[], Replay[T]], keep: bool, restart: bool
    ) -> None:
        self._source = source
        self._new_replay = replay
        self._keep = keep
        self._restart = restart
        self.lock = RLock()
        self._connection: _Connection[T] | None = None

    def subscribe(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        with self.lock:
            connection = self._connection
            first = connection is None or (connection.left and self._restart)
            if connection is None or first:
                connection = self._connection = _Connection(self._new_replay(), self._keep, self.lock)
            reader = connection.enter(observer)
        if first:
            connection.connect(self._source, scheduler)
        connection.notify(reader)
        return Disposable(partial(connection.leave, reader))


class _Reader(Generic[T]):
    """One subscriber of the shared source."""

    __slots__ = ("outlet", "session")

    def __init__(self, outlet: Outlet[T], session: Session | None) -> None:
        self.outlet = outlet
        self.session = session


class _Connection(Generic[T]):
    """One subscription to the source."""

    def __init__(self, replay: Replay[T], keep: bool, lock: AbstractContextManager[object]) -> None:
        self._replay = replay
        self._keep = keep
        self._lock = lock
        self._readers: tuple[_Reader[T], ...] = ()
        self._ended = False
        self._error: Exception | None = None
        self._upstream = SingleAssignmentDisposable()
        self._session = SharedSession(self._finish)
        self.left = False

    def connect(self, source: Observable[T], scheduler: abc.SchedulerBase | None) -> None:
        if self._upstream.is_disposed:
            return
        token = current_session.set(self._session)
        try:
            self._upstream.disposable = source.subscribe(
                self.on_next, self._finish, self._finish, scheduler=scheduler
            )
        finally:
            current_session.reset(token)

    def enter(self, observer: abc.ObserverBase[T]) -> _Reader[T]:
        reader = _Reader(Outlet(observer, self._lock), current_session.get())
        reader.outlet.put(self._replay.so_far())
        if self._ended:
            reader.outlet.put_end(error=self._error)
        else:
            self._readers = (*self._readers, reader)
            self._session.join(reader.session)
        return reader

    def leave(self, reader: _Reader[T]) -> None:
        with self._lock:
            reader.outlet.stop()
            if reader not in self._readers:
                return
            self._readers = tuple(other for other in self._readers if other is not reader)
            self._session.leave(reader.session)
            abandoned = not (self._readers or self._keep or self._ended)
            if abandoned:
                self.left = self._ended = True
                self._error = StreamInterrupted(
                    f"all readers had left, and the source was closed; {self._replay.name}(keep=True) lets it go "
                    "on, restart=True begins it anew for the next one",
                    snapshot=self._replay.snapshot(),
                )
        if abandoned:
            self._upstream.dispose()

    def on_next(self, value: T) -> None:
        failure: Exception | None = None
        with self._lock:
            if self._ended:
                return
            readers = self._readers
            try:
                self._replay.take(value)
            except Exception as error:
                failure = error
            else:
                for reader in readers:
                    reader.outlet.put((value,))
        if failure is None:
            for reader in readers:
                self.notify(reader)
            self._session.check_lag()
        else:
            self._finish(failure)

    def _finish(self, error: Exception | None = None) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended, self._error = True, error
            readers, self._readers = self._readers, ()
            for reader in readers:
                reader.outlet.put_end(error=error)
                self._session.leave(reader.session)
        self._upstream.dispose()
        for reader in readers:
            self.notify(reader)

    def notify(self, reader: _Reader[T]) -> None:
        """Deliver a reader's queue. A reader that raises is removed; the others are not affected.

        The reader's session is current meanwhile, so that Observables which it subscribes belong to it alone.
        """
        token = current_session.set(reader.session)
        try:
            reader.outlet.flush()
        except Exception as error:
            self.leave(reader)
            report(error, f"a reader of {self._replay.name} raised, and is not told any more", reader.session)
        finally:
            current_session.reset(token)
