"""The base of `share_latest` and `share_events`: one subscription to the source for any number of readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

import attrs
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.core import (
    InvalidValueError,
    Limits,
    Seconds,
    Snapshot,
    StreamInterrupted,
    check_seconds,
    check_word,
)
from rxdelta.runtime import (
    Bounds,
    Emits,
    SharedSession,
    Sink,
    calling_for,
    clock,
    create,
    deadline,
    is_interrupt,
    report,
    subscribing,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from reactivex import Observable, abc


T = TypeVar("T")


class Replay(Protocol[T]):
    """The values that are replayed to a late reader."""

    def take(self, value: T, /) -> None:
        """Remember the value, or raise an error that ends the stream in its place."""
        ...

    def so_far(self) -> Sequence[T]: ...

    def snapshot(self) -> Snapshot | None: ...


Unread: TypeAlias = Literal["close", "keep", "restart"]
"""The fate of a source that nobody reads any more."""


def _grace(given: Seconds | None) -> float | None:
    return None if given is None else check_seconds("grace", given)


@attrs.frozen(kw_only=True)
class Rules:
    """When the source is closed without readers, and when it is subscribed again."""

    unread: Unread
    grace: float | None = attrs.field(converter=_grace)
    reset_on_error: bool
    scheduler: abc.SchedulerBase | None

    def __attrs_post_init__(self) -> None:
        check_word("unread", self.unread, get_args(Unread))
        if self.grace is not None and self.unread == "keep":
            wanted = 'must be left out with unread="keep", which never closes the source for want of readers'
            raise InvalidValueError.of([("grace", self.grace, wanted)])


def share(
    name: str,
    replay: Callable[[Limits], Replay[T]],
    rules: Rules,
    *,
    emits: Emits,
) -> Callable[[Observable[T]], Observable[T]]:
    """The operator. Its state belongs to the Observable that it returns, not to a subscription."""

    def apply(source: Observable[T]) -> Observable[T]:
        shared = _Shared(name, source, replay, rules)
        return create(name, shared.begin, emits=emits)

    return apply


class _Shared(Generic[T]):
    """One shared source and its current connection. One lock guards the readers, the replayed values and the end."""

    def __init__(
        self,
        name: str,
        source: Observable[T],
        replay: Callable[[Limits], Replay[T]],
        rules: Rules,
    ) -> None:
        self._new_connection = partial(_Connection[T], name, source, replay, rules)
        self._rules = rules
        self._lock = RLock()
        self._connection: _Connection[T] | None = None

    def begin(self, reader: Sink[T]) -> None:
        time = None
        if self._rules.grace is not None:  # known now, because the reader may leave on any thread
            time = clock(self._rules.scheduler, reader.scheduler)
        with self._lock:
            connection = self._connection
            first = connection is None or connection.begins_anew()
            if connection is None or first:
                connection = self._connection = self._new_connection(self._lock)
            absence = connection.enter(reader)
        absence.dispose()
        reader.own(Disposable(partial(connection.leave, reader, time)))
        if first:
            connection.connect(reader.scheduler, reader.bounds)
        else:
            reader.bounds.follow(connection.bounds)
        connection.notify(reader)
        connection.release()


class _Connection(Generic[T]):
    """One subscription to the source."""

    def __init__(
        self,
        name: str,
        source: Observable[T],
        replay: Callable[[Limits], Replay[T]],
        rules: Rules,
        lock: AbstractContextManager[object],
    ) -> None:
        self._name = name
        self._source: Observable[T] = create(name, partial(self._begin, source))
        self._new_replay = replay
        self._replay: Replay[T] | None = None  # from the first value on, when the limits are known
        self._rules = rules
        self._lock = lock
        self._readers: tuple[Sink[T], ...] = ()
        self._takers: tuple[Sink[T], ...] = ()  # the readers that take the values, and not only the end
        self._ended = False
        self._error: Exception | None = None
        self._upstream = SingleAssignmentDisposable()
        self._session = SharedSession(self.on_error)
        self._absence = SingleAssignmentDisposable()  # the timer that runs while nobody reads
        self._left = False  # by all readers
        self._is_announced = False  # that all have left, to a reader that came later
        self.bounds = Bounds()

    def connect(self, scheduler: abc.SchedulerBase | None, bounds: Bounds) -> None:
        if self._upstream.is_disposed:
            return
        with subscribing(self._session, scheduler, bounds) as ours:
            self._upstream.disposable = self._source.subscribe(scheduler=ours)

    def _begin(self, source: Observable[T], sink: Sink[T]) -> None:
        self._sink, self.bounds = sink, sink.bounds
        sink.subscribe(source, self, serial=False)

    def begins_anew(self) -> bool:
        """Whether the next reader gets a new connection.

        One reader learns first that all have left: only one that comes again after that, such as a retry, asks for a
        new request.
        """
        if self._left:
            return self._rules.unread == "restart" or (self._rules.reset_on_error and self._is_announced)
        return self._rules.reset_on_error and self._error is not None

    def enter(self, reader: Sink[T]) -> abc.DisposableBase:
        """Add a reader. Return the timer that ran while there was none, which is to be disposed without the lock."""
        for value in self._replay.so_far() if self._replay is not None and reader.takes_values else ():
            reader.put_next(value)
        if self._ended:
            self._is_announced = True
            reader.put(self._end, reader)
        else:
            self._read_by((*self._readers, reader))
            self._session.join(reader.session)
        absence, self._absence = self._absence, SingleAssignmentDisposable()
        return absence

    def _read_by(self, readers: tuple[Sink[T], ...]) -> None:
        self._readers = readers
        self._takers = tuple(reader for reader in readers if reader.takes_values)

    def leave(self, reader: Sink[T], time: tuple[abc.SchedulerBase, abc.DisposableBase] | None) -> None:
        with self._lock:
            if reader not in self._readers:
                return
            self._read_by(tuple(other for other in self._readers if other is not reader))
            self._session.leave(reader.session)
            absence = self._absence
            abandoned = not (self._readers or self._rules.unread == "keep" or self._ended)
        if abandoned and time is not None and self._rules.grace is not None:
            # A reader that has come meanwhile has disposed this absence already, and so the timer is stopped at once.
            absence.disposable = deadline(time, self._rules.grace, partial(self._abandon, absence))
        elif abandoned:
            self._abandon(absence)
        self.release()

    def _abandon(self, absence: abc.DisposableBase) -> None:
        """Close the source, unless somebody has come since the absence began."""
        with self._lock:
            if absence is not self._absence or self._ended:
                return
            self._left = self._ended = True
            self._error = StreamInterrupted(
                f"all readers had left, and the source was closed; {self._name}(unread='keep') lets it go "
                "on, grace=30.0 lets it go on for so many seconds, unread='restart' begins it anew for the next one",
                snapshot=None if self._replay is None else self._replay.snapshot(),
            )
        absence.dispose()
        self._upstream.dispose()

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
            readers = self._takers
            for reader in readers:
                reader.put_next(value)
        # Without the lock, since a reader may wait for a thread that needs it. The order is that of the queues.
        for reader in readers:
            self.notify(reader)
        self._session.check_lag()

    def on_error(self, error: Exception | None) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended, self._error = True, error
            readers = self._readers
            self._read_by(())
            for reader in readers:
                reader.put(self._end, reader)
                self._session.leave(reader.session)
        self._absence.dispose()
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
        try:
            calling_for(reader.session, reader.bounds, reader.flush)
        except BaseException as error:
            report(error, f"a reader of {self._name} raised, and gets nothing more", reader.session)
            if is_interrupt(error):
                raise
