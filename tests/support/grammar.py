"""A source that keeps no rule, and an observer that fails at what Rx's grammar forbids.

The source hands its values to whoever ever subscribed it, also behind its end and behind a disposal. Rx's own Observables and
Subjects hide both, so what an operator must leave out itself isn't seen behind them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.internal import noop
from reactivex.testing import TestScheduler

import rxdelta as rd

__all__ = ["ACTS", "Bench", "Boom", "Plan", "Probe", "Source", "Subscription"]

LIMIT = 30.0
"""Seconds for another thread; what takes longer hangs."""


class Boom(Exception):
    """What an observer raises."""


@attrs.define(eq=False)
class Subscription:
    """One subscription of the source.

    Attributes:
        sent: What it was sent while it had neither ended nor been disposed.
        scheduler: The one that came with it.
    """

    on_next: Callable[[Any], None]
    on_error: Callable[[Exception], None]
    on_completed: Callable[[], None]
    disposed: bool = False
    sent: list[Any] = attrs.Factory(list[Any])
    scheduler: abc.SchedulerBase | None = None


class Source(Observable[Any]):
    """A source of some values, which a test pushes.

    Args:
        values: What it emits, one after the other.
        opening: How many of them its first subscriber gets while it subscribes.
        end: How it ends directly behind these: an exception, `"completed"` or not at all.
        restarts: Whether a subscriber behind an end gets all anew, as of a request that is sent again.
    """

    def __init__(
        self,
        values: Sequence[Any],
        opening: int = 0,
        end: Exception | str | None = None,
        *,
        restarts: bool = False,
    ) -> None:
        super().__init__()
        self.subscriptions: list[Subscription] = []
        self.errors: list[Exception] = []
        self.place = 0
        self.repeats = False  # whether it has had more to emit than there is
        self.ended: Exception | str | None = None
        self._values = values
        self._opening, self._end = opening, end
        self._restarts = restarts

    def subscribe(
        self,
        on_next: Any = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        if callable(getattr(on_next, "on_next", None)):
            on_next, on_error, on_completed = on_next.on_next, on_next.on_error, on_next.on_completed
        subscription = Subscription(
            on_next or noop, on_error or noop, on_completed or noop, scheduler=scheduler
        )
        if self.ended is not None and self._restarts:
            self.place, self.ended = 0, None
        self.subscriptions.append(subscription)
        try:
            self._open(subscription)
        except BaseException:  # whoever gets that instead of a disposable can't dispose
            subscription.disposed = True
            raise
        return Disposable(partial(setattr, subscription, "disposed", True))

    def _open(self, subscription: Subscription) -> None:
        if self.ended is not None:
            self._tell_end(subscription)
        while self.place < self._opening and self.ended is None:
            self.push()
        if self._end is not None and self.ended is None and self.place >= self._opening:
            self.finish(self._end)
            if self._values and not self._restarts:  # and it isn't over then, before it has returned
                self.emit(self._values[-1])
                self.finish("completed")

    @property
    def open(self) -> list[Subscription]:
        return [one for one in self.subscriptions if not one.disposed]

    @property
    def rest(self) -> int:
        """How many values are left."""
        return max(0, len(self._values) - self.place)

    def push(self) -> None:
        """Emit the next value, or the last one again."""
        if self._values:
            self.place += 1
            self.repeats |= self.place > len(self._values) and self.ended is None
            self.emit(self._values[min(self.place, len(self._values)) - 1])

    def emit(self, value: Any) -> None:
        for one in [*self.subscriptions]:
            if not one.disposed and self.ended is None:
                one.sent.append(value)
            one.on_next(value)

    def finish(self, end: Exception | str) -> None:
        """End, which a rude source does more than once."""
        if self.ended is None:
            self.ended = end
        if isinstance(end, Exception):
            self.errors.append(end)
        for one in [*self.subscriptions]:
            self._tell_end(one, end)

    def _tell_end(self, subscription: Subscription, end: Exception | str | None = None) -> None:
        end = self.ended if end is None else end
        if isinstance(end, Exception):
            subscription.on_error(end)
        else:
            subscription.on_completed()


ACTS = ("push", "push all", "rubbish", "complete", "fail", "dispose", "dispose twice", "subscribe", "raise")


@attrs.frozen
class Plan:
    """What an observer does inside one of its notifications.

    Attributes:
        at: In the `on_next` of this number, or in `on_error` and `on_completed`, which are the end.
        act: One of `ACTS`.
        elsewhere: Whether another thread does it meanwhile, on which the notification waits.
    """

    at: int | str = "end"
    act: str = "push"
    elsewhere: bool = False


class Bench:
    """One pipeline under test: its source, a second stream for signals, a clock, and everybody who reads.

    Attributes:
        side: Gives the signals.
        faults: What has broken a rule. An observer can't raise it: an operator would take it for the observer's leaving.
    """

    def __init__(self, source: Source, make: Callable[[Bench], Observable[Any]], *, queued: bool) -> None:
        self.source = source
        self.side = Source(())
        self.scheduler = TestScheduler()
        self.queued = queued
        self.faults: list[str] = []
        self.probes: list[Probe] = []
        self.raised: list[BaseException] = []
        self.escaped: list[BaseException] = []  # to whoever had called
        self.is_racing = False  # threads that nobody waits for: what one has begun to emit may come when another has disposed
        self.is_disturbed = False  # so that nobody can say what must come out
        self.pipeline = make(self)

    def do(self, what: str, act: Callable[..., object], *arguments: Any) -> None:
        """Do something from outside. Nothing may be raised but what an observer has raised."""
        try:
            act(*arguments)
        except BaseException as error:
            if error in self.raised:
                self.escaped.append(error)
            else:
                self.faults.append(f"{what} raised {error!r}")

    def subscribe(self, plan: Plan | None = None, inner: Plan | None = None) -> None:
        probe = Probe(self, f"observer {len(self.probes)}", plan, inner)
        probe.read(self.pipeline)

    def perform(self, act: str, probe: Probe) -> None:
        """Do what a plan says."""
        match act:
            case "push":
                self.do("a push", self.source.push)
            case "push all":
                while self.source.ended is None and self.source.rest:
                    self.do("a push", self.source.push)
                self.do("the source's end", self.source.finish, "completed")
            case "rubbish":
                self.is_disturbed = True
                self.do("a push", self.source.emit, object())
            case "complete":
                self.do("the source's end", self.source.finish, "completed")
            case "fail":
                self.do("the source's error", self.source.finish, ValueError("of the source"))
            case "dispose":
                probe.dispose()
            case "dispose twice":
                probe.dispose()
                probe.dispose()
            case "subscribe":
                self.do("subscribe", self.subscribe)
            case "raise":
                self.is_disturbed = probe.left = True
                boom = Boom(f"{probe.name} raised")
                self.raised.append(boom)
                raise boom

    def advance(self, seconds: float) -> None:
        self.do("a timer", self.scheduler.advance_by, seconds)

    @property
    def readers(self) -> list[Probe]:
        """Those who are still there."""
        return [probe for probe in self.probes if probe.is_there]

    def timers(self) -> int:
        """How many timers are set."""
        return sum(not item.is_cancelled() for item, _ in self.scheduler._queue.items)


class Probe:
    """An observer that notes what it gets, does what it has planned, and tells the bench what breaks the grammar.

    Args:
        inner: The plan of those that it subscribes to the streams that it gets.
    """

    def __init__(self, bench: Bench, name: str, plan: Plan | None = None, inner: Plan | None = None) -> None:
        self.bench, self.name = bench, name
        self.got: list[Any] = []
        self.end: Exception | str | None = None
        self.left = False
        self.whole = False  # whether it has subscribed before the source's first value
        self.ends_with_source = False  # and then got the end because the source has ended
        self.judged = False
        self._plan, self._inner = plan, inner
        self._subscription: abc.DisposableBase | None = None
        self._inside: list[int] = []
        self._lock = threading.Lock()
        bench.probes.append(self)

    @property
    def is_there(self) -> bool:
        return not (self.left or self.end is not None)

    def read(self, source: Observable[Any]) -> None:
        bench = self.bench
        self.whole = bench.source.place == 0
        bench.do(
            "subscribe",
            lambda: setattr(self, "_subscription", source.subscribe(self, scheduler=bench.scheduler)),
        )
        if self._subscription is None:
            self.left = True

    def dispose(self) -> None:
        """Leave. Behind a return of this nothing may come."""
        if self._subscription is not None:
            self.bench.do("dispose", self._subscription.dispose)
            self.left = True

    def on_next(self, value: Any) -> None:
        with self._notified("a value"):
            self.got.append(value)
            if isinstance(value, Observable):
                Probe(self.bench, f"{self.name}, stream {len(self.got)}", self._inner).read(value)
            if self._plan is not None and self._plan.at == len(self.got) - 1:
                self._act(self._plan)

    def on_error(self, error: Exception) -> None:
        with self._notified("an error"):
            self._note_end(error)
            if not isinstance(error, rd.RxDeltaError) and error not in [
                *self.bench.source.errors,
                *self.bench.side.errors,
            ]:
                self._broken(f"got an error that is neither of rxdelta nor of its source: {error!r}")
            self._act_at_end()

    def on_completed(self) -> None:
        with self._notified("a completion"):
            self._note_end("completed")
            self._act_at_end()

    def _note_end(self, end: Exception | str) -> None:
        self.ends_with_source = self.whole and self.bench.source.ended is not None
        self.end = end

    def _act_at_end(self) -> None:
        if self._plan is not None and self._plan.at == "end":
            self._act(self._plan)

    def _act(self, plan: Plan) -> None:
        self._plan = None
        if not plan.elsewhere or plan.act == "raise" or not (self.bench.queued or "dispose" in plan.act):
            self.bench.perform(plan.act, self)
            return
        thread = threading.Thread(target=self.bench.perform, args=(plan.act, self), daemon=True)
        thread.start()
        thread.join(LIMIT)
        if thread.is_alive():
            self._broken(f"waits for ever in a notification: another thread's {plan.act} doesn't return")

    def _notified(self, what: str) -> _Notification:
        if self.end is not None:
            self._broken(f"got {what} behind its end, {self.end!r}")
        elif self.left and not self.bench.is_racing:
            self._broken(f"got {what} after it had left")
        if self._inside and (self.bench.queued or {*self._inside} != {threading.get_ident()}):
            self._broken(f"got {what} inside of another notification")
        return _Notification(self._inside)

    def _broken(self, how: str) -> None:
        self.bench.faults.append(f"{self.name} {how}")


class _Notification:
    def __init__(self, inside: list[int]) -> None:
        self._inside = inside

    def __enter__(self) -> None:
        self._inside.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        self._inside.pop()
