"""One subscription of an operator: where its values go, and its turns.

It gives an operator's state one notification at a time, from any threads and also if an observer emits into the source; it
ends the subscription once, disposes the source at the end, and tells the two kinds of exceptions apart. An exception of
the operator's own code becomes `on_error`. An exception of an observer ends the subscription, as if the reader had left,
and goes on to the caller: a source, or for a timer the reader's session.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock, get_ident
from typing import Any, Protocol, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable, SingleAssignmentDisposable
from reactivex.internal import noop
from reactivex.scheduler import CurrentThreadScheduler

from rxdelta.core import InvalidValueError, Limits, Reads, wrong_value
from rxdelta.runtime.clocks import clock
from rxdelta.runtime.place import Bounds, within
from rxdelta.runtime.reader import is_interrupt, report
from rxdelta.runtime.serial import Serial
from rxdelta.runtime.session import Room, SessionScheduler, bounds_of, session_of

T = TypeVar("T")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)

_CONNECTING = Lock()  # of all sinks, since nobody holds it for long


class State(Protocol[A_contra]):
    """The work of an operator of your own in one subscription; not the state of a reply.

    It may also have `on_error(error)` and `on_completed()`; by default the end is passed on.

    An exception of its own code ends the source, and goes to `on_error` as if the source had failed.
    """

    def on_next(self, value: A_contra, /) -> object:
        """Take a value of the source."""
        ...


class SourceSubscription(SingleAssignmentDisposable):
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
        self._sources: list[SourceSubscription] = []
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
        ended, such as a check. Don't close it if that work needs another value of the source: it won't come.
        Sources that you subscribe for the work don't wait. The end of the subscription opens the room.

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
                    self.dispose()  # Rx's trampoline forgets what waits in it, such as this, at an exception
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
            state: Takes its notifications.
            serial: `False` if it serialises them by itself.
            room: The source waits for it, as for the reader. `lift` gives the operator's own source that of `room()`.
        """
        on_next: Callable[[A], object] = state.on_next
        on_error: Callable[[Exception], object] = getattr(state, "on_error", self.on_error)
        on_completed: Callable[[], object] = getattr(state, "on_completed", self.on_completed)

        upstream = SourceSubscription()

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
        upstream: SourceSubscription,
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
        with _CONNECTING:  # two threads may subscribe sources, and neither may lose the other's
            self._sources = [*(other for other in self._sources if not other.over), upstream]
        if self.closed:
            return
        bounds = self._in_front or self.bounds
        scheduler, session = self.scheduler, self.session if room is None else room.session
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
        upstream: SourceSubscription,
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


class Timer:
    """A timer of one subscription. Its steps are turns; to start it again stops it first."""

    def __init__(self, sink: Sink[Any], time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._time = time
        self._current = SerialDisposable()
        sink.own(self._current)

    def start(self, seconds: float, step: Callable[..., object], *arguments: Any) -> None:
        """Run `step(*arguments)` as a turn after these seconds."""

        def fire(*_: object) -> None:
            self._sink.run(step, *arguments)

        timer = SingleAssignmentDisposable()
        self._current.disposable = timer
        timer.disposable = self._time.schedule_relative(seconds, fire)

    def stop(self) -> None:
        self._current.disposable = Disposable()
