"""The one shell of operators: an operator is a state, or a machine, and `lift` or `lift_machine` makes it run.

The shell knows Rx, so that states and machines needn't. It gives them one notification at a time, from any threads and
also if an observer emits into the source; it ends the subscription once, disposes the source at the end, and tells the
two kinds of exceptions apart. An exception of the operator's own code becomes `on_error`. An exception of an observer
ends the subscription, as if the reader had left, and goes on to the caller: a source, or for a timer the reader's session.
"""

from __future__ import annotations

from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable
from reactivex.internal import noop
from reactivex.scheduler import CurrentThreadScheduler

from rxdelta.core import InvalidValueError, Reads, is_readable, wrong_value
from rxdelta.runtime.bounds import Bounds, within
from rxdelta.runtime.clocks import clock
from rxdelta.runtime.marks import Emits, Mark, marked, refuse_newest
from rxdelta.runtime.own_observable import OwnObservable, Taker
from rxdelta.runtime.reporting import is_interrupt, report
from rxdelta.runtime.serial import Serial
from rxdelta.runtime.session import Room, SessionScheduler, bounds_of, session_of
from rxdelta.runtime.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rxdelta.core import Limits

__all__ = [
    "Machine",
    "Mapper",
    "Sink",
    "State",
    "Timer",
    "create",
    "lift",
    "lift_machine",
    "lift_map",
    "lift_opening",
]

T = TypeVar("T")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")


class State(Protocol[A_contra]):
    """What an operator of your own does in one subscription; not the state of a reply.

    It may also have `on_error(error)` and `on_completed()`; by default the end is passed on.

    An exception of its own code ends the source, and goes to `on_error` as if the source had failed.
    """

    def on_next(self, value: A_contra, /) -> object:
        """Take a value of the source."""
        ...


class Machine(Protocol[A_contra, B_co]):
    """What an operator of your own does in one subscription, without Rx: values in, values out.

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


class _Source(SingleAssignmentDisposable):
    """The subscription of one source, which may be disposed before its last values have had their turns."""

    def __init__(self) -> None:
        super().__init__()
        self.over = False  # nothing more is taken

    def end(self) -> None:
        self.over = True
        self.dispose()


class Sink(abc.ObserverBase[T], abc.DisposableBase):
    """Where an operator of your own emits, in one subscription: not a `Subject`, and not a file.

    Notifications belong into a turn: a method of the state, or a step given to `run`. Turns run one at a time.
    """

    def __init__(
        self,
        name: str,
        on_next: Callable[[T], None],
        on_error: Callable[[Exception], None],
        on_completed: Callable[[], None],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self.name = name
        self.scheduler = scheduler
        self.session = session_of(scheduler)
        self.closed = False
        self._next, self._error, self._completed = on_next, on_error, on_completed
        self.takes_values = on_next is not noop
        self._owned: list[abc.DisposableBase] = []
        self._sources: list[_Source] = []
        self._serial = Serial()
        self.raised: BaseException | None = None
        """The exception of the observer that has ended the subscription."""
        self._subscribing = True
        self._effect_thread: int | None = None  # the thread that runs an effect
        self.bounds = Bounds(bounds_of(scheduler))
        self._in_front: Bounds | None = None  # the bounds of the source, if they aren't ours
        self._room: Room | None = None

    @property
    def limits(self) -> Limits:
        """The limits that hold for this operator, see `rd.with_limits`. They are known at the first value."""
        return self.bounds.limits

    @property
    def choice(self) -> int:
        """The alternative reply that this operator reads, see `rd.only_choice`. It is known at the first value."""
        return self.bounds.choice

    def hold(self, limits: Limits) -> None:
        """Let the limits hold for the operators in front and behind. Call it before the source is subscribed."""
        self.bounds.tell_limits(limits)
        self._in_front = Bounds(self.bounds, held=limits)

    def room(self) -> Room:
        """Return the room of this operator. From `close()` to `open()` the sources in front wait before their next value.

        Ask for it when the state is made. Close it while you hold values that can't be emitted before work of your own has
        ended, such as a check. Don't close it if that work needs another value of the source: it won't come. What you
        subscribe for the work doesn't wait. The end of the subscription opens the room.

        Sources wait for it as for a slow reader: `from_async_iterable`, and `from_iterable` in a loop. They still emit the
        value that they have asked for. A source that others share goes on for them, so bound what you keep. Behind a plain
        `subscribe`, which has no session, nothing waits.

        Raises:
            InvalidValueError: The source has been subscribed already.
        """
        if self._room is None:
            if self._sources:
                raise InvalidValueError(f"{self.name} asked for its room after its source was subscribed")
            self._room = Room(self.session)
            self.own(Disposable(self._room.dispose))
        return self._room

    def on_next(self, value: T) -> None:
        """Emit a value."""
        if not self.closed:
            try:
                self._next(value)
            except BaseException as error:
                self._leave(error)
                raise

    def on_error(self, error: Exception) -> None:
        """Dispose the source, then end the stream with an error. Only the first end counts."""
        if not self.closed:
            self.dispose()
            try:
                self._error(error)
            except BaseException as raised:
                self.raised = raised
                raise

    def on_completed(self) -> None:
        """Dispose the source, then complete the stream. Only the first end counts."""
        if not self.closed:
            self.dispose()
            try:
                self._completed()
            except BaseException as raised:
                self.raised = raised
                raise

    def refusal(self, value: object, reads: Reads = "events") -> InvalidValueError:
        """Return the error for a value that the operator can't use: it names the operator, and what would help."""
        return wrong_value(self.name, value, reads)

    def own(self, disposable: abc.DisposableBase) -> None:
        """Dispose this at the end: after any end, or when the reader leaves. The last one is disposed first."""
        self._owned.append(disposable)
        if self.closed:
            self.dispose()

    def dispose(self) -> None:
        """Leave: dispose the source and all that this subscription owns."""
        self.closed = True
        try:
            for source in self._sources:
                source.end()
        finally:  # also behind a source that can't be closed
            self._dispose_owned()

    def _dispose_owned(self) -> None:
        owned = self._owned
        while owned:
            try:
                last = owned.pop()
            except IndexError:  # another thread disposes, too
                return
            last.dispose()

    def dispose_source(self) -> None:
        """Dispose the source now, from any thread. Its values that wait for their turns are still taken."""
        for source in self._sources:
            source.dispose()

    def run(self, step: Callable[..., object], *arguments: Any) -> None:
        """Take a turn for a timer, a task or another thread, which can't handle the exceptions of an observer.

        Such an exception is raised at the reader: by its `for_each` or `async for`. Without such a reader it goes to the
        running loop's exception handler, or without a loop to the log `rxdelta`.
        """
        try:
            self.turn(step, *arguments)
        except BaseException as error:
            if error is self.raised and self._effect_thread == get_ident():
                return  # the effect raises it
            report(error, f"an observer of {self.name} raised", self.session)
            if is_interrupt(error):
                raise

    def turn(self, step: Callable[..., object], *arguments: Any) -> None:
        """Take a turn for a source, which gets the exceptions of an observer."""
        self._serial.run(self._step, (step, arguments))

    def _step(self, call: tuple[Callable[..., object], tuple[Any, ...]]) -> None:
        if not self.closed:
            step, arguments = call
            try:
                step(*arguments)
            except BaseException as error:
                self._end_or_raise(error, self.on_error)

    def effect(self, step: Callable[..., object], *arguments: Any) -> None:
        """Run a step with effects outside of the stream, such as a request, as soon as it is known that a reader is there.

        It runs after the turns that wait, outside of a turn: what it makes a source emit at once is emitted at once. It
        also waits until the whole chain has been subscribed, because a reader such as `take(1)` can't dispose a source
        that emits during its subscription. Effects run one at a time, and none runs once the reader has left. What an
        observer raises meanwhile is raised when the step has ended, also if a `run` or other code has caught it.
        """

        def act() -> None:
            if self.closed:
                return
            self._effect_thread = get_ident()
            try:
                step(*arguments)
            except BaseException as error:
                self._end_or_raise(error, self.turn, self.on_error)
            finally:
                self._effect_thread = None
            if self.raised is not None:
                raise self.raised

        def after_subscription(*_: object) -> None:
            self._serial.after(act)

        if self._subscribing:
            CurrentThreadScheduler.singleton().schedule(after_subscription)
        else:
            self._serial.after(act)

    def put(self, step: Callable[[A], object], argument: A) -> None:
        """Leave a turn for the next call of `flush`. So an owner of several sinks queues in all, then flushes each."""
        self._serial.put(self._step, (step, (argument,)))

    def put_next(self, value: T) -> None:
        """Leave the turn in which this value is emitted."""
        self._serial.put(self.on_next, value)

    def flush(self) -> None:
        """Take the turns that wait, unless a turn is running: its caller then takes them."""
        self._serial.flush()

    def clock(self, chosen: abc.SchedulerBase | None = None) -> abc.SchedulerBase:
        """Return the scheduler of times and timers: the chosen one, the subscriber's, the running loop, or a new thread."""
        time, owned = clock(chosen, self.scheduler)
        self.own(owned)
        return time

    def timer(self, time: abc.SchedulerBase) -> Timer:
        """Return a timer, which stops at the end."""
        return Timer(self, time)

    def subscribe(
        self, source: Observable[A], state: State[A], *, serial: bool = True, room: Room | None = None
    ) -> abc.DisposableBase:
        """Subscribe a state to a source. Each notification is a turn, unless the state serialises by itself.

        Args:
            source: The source.
            state: What takes its notifications.
            serial: `False` if it serialises them by itself.
            room: What the source waits for, beside the reader. `lift` gives the operator's own source that of `room()`.
        """
        on_next: Callable[[A], object] = state.on_next
        on_error: Callable[[Exception], object] = getattr(state, "on_error", self.on_error)
        on_completed: Callable[[], object] = getattr(state, "on_completed", self.on_completed)

        upstream = _Source()

        def take(value: A) -> None:
            if not upstream.over:
                try:
                    on_next(value)
                except BaseException as error:
                    self._fail(error, upstream, on_error)

        self._connect(source, upstream, take, on_error, on_completed, serial, room)
        return upstream

    def _connect(
        self,
        source: Observable[A],
        upstream: _Source,
        take: Callable[[A], None],
        on_error: Callable[[Exception], object],
        on_completed: Callable[[], object],
        serial: bool,
        room: Room | None = None,
    ) -> None:
        def fail(error: Exception) -> None:
            if self.closed and error is self.raised:
                self.dispose()
                raise error  # a source that catches our observer's exception gets it back
            if not upstream.over:
                upstream.end()
                self._guarded(on_error, error)

        def complete(_: object) -> None:
            if not upstream.over:
                upstream.end()
                self._guarded(on_completed)

        calls: tuple[Callable[[A], None], Callable[[Exception], None], Callable[[object], None]]
        calls = take, fail, complete
        if serial:
            run = self._serial.run
            calls = partial(run, take), partial(run, fail), partial(run, complete)
        self._sources = [*(other for other in self._sources if not other.over), upstream]
        if self.closed:
            return
        bounds = self._in_front or self.bounds
        scheduler, session = self.scheduler, self.session
        if room is not None:
            session = room.session
        if (
            scheduler is None
            or self._in_front is not None
            or session is not self.session
            or isinstance(scheduler, SessionScheduler)
        ):
            scheduler = SessionScheduler(session, scheduler, bounds)
        with within(bounds):
            upstream.disposable = source.subscribe(
                calls[0], calls[1], partial(calls[2], None), scheduler=scheduler
            )

    def _leave(self, error: BaseException) -> None:
        """End the subscription, because the observer has raised this.

        A source that emits during its subscription, such as `rx.of`, catches the exception and emits it as its error. It
        could not if it were disposed now, and the exception would be lost.
        """
        self.raised, self.closed = error, True
        trampoline = CurrentThreadScheduler.singleton()
        if trampoline.schedule_required():
            self.dispose()
            return
        for source in self._sources:
            source.over = True
        self._dispose_owned()
        trampoline.schedule(lambda _, __: self.dispose())

    def _fail(
        self,
        error: BaseException,
        upstream: _Source,
        on_error: Callable[[Exception], object],
    ) -> None:
        """Handle an exception in a turn: an error of the operator's own code ends the source."""
        if self.raised is None:
            upstream.end()
        self._end_or_raise(error, self._guarded, on_error)

    def _guarded(self, step: Callable[..., object], *arguments: Any) -> None:
        """Run a step that isn't followed by others. Its own errors end the stream."""
        try:
            step(*arguments)
        except BaseException as error:
            self._end_or_raise(error, self.on_error)

    def _end_or_raise(self, error: BaseException, end: Callable[..., object], *arguments: Any) -> None:
        """End the stream with an error of the operator's own code; raise an exception of the observer again."""
        if self.raised is not None:
            raise error
        if not isinstance(error, Exception):
            self.dispose()
            raise error
        end(*arguments, error)


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
        emits: What the values are, see `marks`.
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
        emits: What a policy that keeps the newest value needs to know: `"same"` if the values are the source's, or what
            they are if no later value contains them (`"events"`, `"texts"`, `"items"`, …). It then refuses them.

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
    return _machine(name, begin, emits, needs_all, at_once=False)


def lift_opening(
    name: str, begin: Callable[[Sink[B]], Machine[A, B]], *, emits: Emits
) -> Callable[[Observable[A]], Observable[B]]:
    """As `lift_machine` for a machine that needs all values, and that is made at the subscription, where it may emit."""
    return _machine(name, begin, emits, True, at_once=True)


def _machine(
    name: str,
    begin: Callable[[Sink[B]], Machine[A, B]],
    emits: Emits | None,
    needs_all: bool,
    *,
    at_once: bool,
) -> Callable[[Observable[A]], Observable[B]]:
    def apply(source: Observable[A]) -> Observable[B]:
        def connect(sink: Sink[B]) -> None:
            running = _Running(sink, begin)
            if at_once:
                running.machine()
            upstream, emit = _Source(), sink._next
            step: Any = None  # the machine's

            def take(value: A) -> None:
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

            sink._connect(source, upstream, take, running.on_error, running.on_completed, serial=True)

        if needs_all:
            refuse_newest(source, name)
        return create(name, connect, emits=emits, source=source)

    return apply


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

    def apply(source: Observable[A]) -> Observable[B]:
        def connect(sink: Sink[B]) -> None:
            running = _Running(sink, begin)
            upstream, emit = _Source(), sink._next
            step: Any = None  # the mapper's

            def take(value: A) -> None:
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
                        error = sink.refusal(value, reads)
                    running.failed(error, upstream, emitting)

            sink._connect(source, upstream, take, running.on_error, running.on_completed, serial=False)

        if needs_all:
            refuse_newest(source, name)
        return create(name, connect, emits=emits, source=source)

    return apply


class _Running(Generic[B]):
    """One subscription of a machine or mapper, which is made when the first notification arrives."""

    def __init__(self, sink: Sink[B], begin: Callable[[Sink[B]], Any]) -> None:
        self._sink = sink
        self._begin = begin
        self._machine: Any = None

    def machine(self) -> Any:
        if self._machine is None:
            self._machine = self._begin(self._sink)
        return self._machine

    def failed(self, error: BaseException, upstream: _Source, emitting: bool) -> None:
        """Handle an exception of the machine, or of the observer if a value was being emitted."""
        if emitting:
            self._sink._leave(error)
        self._sink._fail(error, upstream, self.on_error)

    def on_error(self, error: Exception) -> None:
        fail = getattr(self.machine(), "fail", None)
        values, end = ((), error) if fail is None else fail(error)
        self._finish(values, end)

    def on_completed(self) -> None:
        close = getattr(self.machine(), "close", None)
        self._finish(() if close is None else close(), None)

    def _finish(self, values: Iterable[B], error: Exception | None) -> None:
        for value in values:
            self._sink.on_next(value)
            if self._sink.closed:
                return
        if error is None:
            self._sink.on_completed()
        else:
            self._sink.on_error(error)
