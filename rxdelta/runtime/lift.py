"""The one shell of operators: an operator is a state, or a machine, and `lift` or `lift_machine` makes it run.

The shell knows Rx, so that states and machines needn't. Each subscription is a `Sink`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler

from rxdelta.core import Reads, is_readable
from rxdelta.runtime.observables import Emits, Mark, OwnObservable, Taker, marked, refuse_newest
from rxdelta.runtime.sink import Sink, SourceSubscription, State

T = TypeVar("T")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")


class Machine(Protocol[A_contra, B_co]):
    """The work of an operator of your own in one subscription, without Rx: values in, values out.

    It may also have two methods for the end. `close()` returns the last values when the source completes. `fail(error)`
    is called for an error of the source or of `step`; it returns the last values, and the error with which the stream
    ends, or `None` to complete it.
    """

    def step(self, value: A_contra, /) -> Iterable[B_co]:
        """Return the values to be emitted for a value of the source. Values before an exception are emitted."""
        ...


class Mapper(Protocol[A_contra, B_co]):
    """A `Machine` with at most one value for each value of the source; `close` and `fail` are the same."""

    def step(self, value: A_contra, /) -> B_co | None:
        """Return the value to be emitted for a value of the source; `None` emits nothing."""
        ...


class _Stream(OwnObservable[T]):
    """An Observable whose subscriptions are `Sink`s. They do the work of Rx's own wrapper, so values take one call less."""

    def __init__(self, name: str, begin: Callable[[Sink[T]], object], mark: Mark | None) -> None:
        super().__init__()
        self._name = name
        self._begin = begin
        self._mark = mark

    def _start(self, taker: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        sink: Sink[T] = Sink(self._name, *taker, scheduler)

        def start(*_: object) -> None:
            try:
                self._begin(sink)
            except BaseException as error:
                if sink.closed or not isinstance(error, Exception):
                    sink.dispose()
                    raise
                sink.on_error(error)
            finally:
                sink._subscribing = False

        # As in Rx: what a source schedules on the current thread runs when the whole chain has been subscribed.
        trampoline = CurrentThreadScheduler.singleton()
        if trampoline.schedule_required():
            trampoline.schedule(start)
        else:
            start()
        return Disposable(sink.dispose)


def create(
    name: str,
    begin: Callable[[Sink[T]], object],
    *,
    emits: Emits | None = None,
    source: Observable[Any] | None = None,
) -> Observable[T]:
    """An Observable of one's own: `begin(sink)` is called for each subscription.

    Args:
        name: The name in messages.
        begin: Begins a subscription; an exception becomes `on_error`.
        emits: The kind of its values, see `observables`.
        source: The source whose values are emitted, for `emits="same"`.
    """
    return _Stream(name, begin, marked(name, emits, source))


def lift(
    name: str,
    begin: Callable[[Sink[B]], State[A]],
    *,
    serial: bool = True,
    emits: Emits | None = None,
) -> Callable[[Observable[A]], Observable[B]]:
    """An operator of your own, not a lifted function: `begin(sink)` makes the state of each subscription.

    Args:
        name: The operator's name in messages.
        begin: Makes a state, which emits by the methods of the `Sink`.
        serial: `False` if the state serialises its notifications by itself, or emits at most one value for each
            value of the source and is ready for the next one before it emits.
        emits: The kind of values, for policies that keep the newest one: `"same"` if they are the source's, or what
            they are if no later value contains them (`"events"`, `"texts"`, `"items"`, …). They are then refused.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> class Twice:
        ...     def __init__(self, sink):
        ...         self.sink = sink
        ...     def on_next(self, value):
        ...         self.sink.on_next(value)
        ...         self.sink.on_next(value)
        >>> rx.of(1, 2).pipe(rd.building.lift("twice", Twice)).subscribe(print).dispose()
        1
        1
        2
        2
    """

    def apply(source: Observable[A]) -> Observable[B]:
        def connect(sink: Sink[B]) -> None:
            state = begin(sink)
            sink.subscribe(source, state, serial=serial, room=sink._room)

        return create(name, connect, emits=emits, source=source)

    return apply


def lift_machine(
    name: str,
    begin: Callable[[Sink[B]], Machine[A, B]],
    *,
    emits: Emits | None = None,
    needs_all: bool = False,
) -> Callable[[Observable[A]], Observable[B]]:
    """An operator whose state is a `Machine`, which knows no Rx: values in, values out.

    Args:
        name: The operator's name in messages.
        begin: Makes the machine of a subscription, when the first notification arrives.
        emits: As in `lift`.
        needs_all: Whether to refuse a source that keeps only the newest value, such as `throttle_latest`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> class Characters:
        ...     def step(self, text):
        ...         return list(text)
        >>> rx.of("ab", "c").pipe(rd.building.lift_machine("characters", lambda sink: Characters())).subscribe(print).dispose()
        a
        b
        c
    """
    return _lifted(name, begin, _take_each, serial=True, emits=emits, needs_all=needs_all)


def lift_opening(
    name: str, begin: Callable[[Sink[B]], Machine[A, B]], *, emits: Emits
) -> Callable[[Observable[A]], Observable[B]]:
    """As `lift_machine` for a machine that needs all values, and that is made at the subscription, where it may emit."""
    return _lifted(name, begin, _take_each, serial=True, emits=emits, needs_all=True, at_once=True)


def lift_map(
    name: str,
    begin: Callable[[Sink[B]], Mapper[A, B]],
    *,
    reads: Reads | None = None,
    emits: Emits | None = None,
    needs_all: bool = False,
) -> Callable[[Observable[A]], Observable[B]]:
    """An operator whose state is a `Mapper`: at most one value out for each value in.

    It needs no queue, and is the fastest form: if an observer emits into the source, the state is whole already.

    Args:
        name: The operator's name in messages.
        begin: Makes the mapper of a subscription, when the first notification arrives.
        reads: The values that `step` can use. If it fails because of another value, the error explains that.
        emits, needs_all: As in `lift_machine`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> class Changes:
        ...     last = None
        ...     def step(self, value):
        ...         same, self.last = value == self.last, value
        ...         return None if same else value
        >>> rx.of(1, 1, 2).pipe(rd.building.lift_map("changes", lambda sink: Changes())).subscribe(print).dispose()
        1
        2
    """

    take = partial(_take_one, reads)
    return _lifted(name, begin, take, serial=False, emits=emits, needs_all=needs_all)


def _lifted(
    name: str,
    begin: Callable[[Sink[B]], Any],
    taking: Callable[[_Running[B], SourceSubscription], Callable[[A], None]],
    *,
    serial: bool,
    emits: Emits | None,
    needs_all: bool,
    at_once: bool = False,
) -> Callable[[Observable[A]], Observable[B]]:
    def apply(source: Observable[A]) -> Observable[B]:
        def connect(sink: Sink[B]) -> None:
            running = _Running(sink, begin)
            if at_once:
                running.machine()
            upstream = SourceSubscription()
            take = taking(running, upstream)
            sink._connect(source, upstream, take, running.on_error, running.on_completed, serial)

        if needs_all:
            refuse_newest(source, name)
        return create(name, connect, emits=emits, source=source)

    return apply


# A value takes one of these two ways through an operator, without another call: they are the same but for the loop.


def _take_each(running: _Running[Any], upstream: SourceSubscription) -> Callable[[Any], None]:
    """The way of a value through a machine."""
    sink, emit = running.sink, running.sink._next
    step: Any = None  # the machine's

    def take(value: Any) -> None:
        nonlocal step
        if upstream.over:
            return
        emitting = False
        try:
            if step is None:
                step = running.machine().step
            for result in step(value):
                emitting = True
                emit(result)
                emitting = False
                if sink.closed:
                    return
        except BaseException as error:
            running.failed(error, upstream, emitting)

    return take


def _take_one(
    reads: Reads | None, running: _Running[Any], upstream: SourceSubscription
) -> Callable[[Any], None]:
    """The way of a value through a mapper."""
    emit = running.sink._next
    step: Any = None  # the mapper's

    def take(value: Any) -> None:
        nonlocal step
        if upstream.over:
            return
        emitting = False
        try:
            if step is None:
                step = running.machine().step
            result = step(value)
            if result is not None:
                emitting = True
                emit(result)
        except BaseException as error:
            own = isinstance(error, Exception) and not emitting
            if own and reads is not None and not is_readable(reads, value):
                error = running.sink.refusal(value, reads)
            running.failed(error, upstream, emitting)

    return take


class _Running(Generic[B]):
    """One subscription of a machine or mapper, which is made when the first notification arrives."""

    def __init__(self, sink: Sink[B], begin: Callable[[Sink[B]], Any]) -> None:
        self.sink = sink
        self._begin = begin
        self._machine: Any = None

    def machine(self) -> Any:
        if self._machine is None:
            self._machine = self._begin(self.sink)
        return self._machine

    def failed(self, error: BaseException, upstream: SourceSubscription, emitting: bool) -> None:
        """Handle an exception of the machine, or of the observer if a value was being emitted."""
        if emitting:
            self.sink._leave(error)
        self.sink._fail(error, upstream, self.on_error)

    def on_error(self, error: Exception) -> None:
        fail = getattr(self.machine(), "fail", None)
        values, end = ((), error) if fail is None else fail(error)
        self._finish(values, end)

    def on_completed(self) -> None:
        close = getattr(self.machine(), "close", None)
        self._finish(() if close is None else close(), None)

    def _finish(self, values: Iterable[B], error: Exception | None) -> None:
        for value in values:
            self.sink.on_next(value)
            if self.sink.closed:
                return
        if error is None:
            self.sink.on_completed()
        else:
            self.sink.on_error(error)
