"""An error for a stream that has gone silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from rxdelta.core import InvalidValueError, Seconds, Snapshot, StallTimeoutError, check_seconds
from rxdelta.runtime import ABOUT_NOW, Pings, Sink, Timer, create, keeps_newest, operator_maker, seconds

if TYPE_CHECKING:
    from reactivex import Observable, abc


T = TypeVar("T")

_MOMENT = 0.01  # seconds in which a free loop reads the waiting data
_MAX_CHECKS = 8  # a busy loop runs one callback per check, which moves a received chunk one step on


@operator_maker
def stall_timeout(
    first: Seconds | None = None,
    idle: Seconds | Literal["first"] | None = "first",
    total: Seconds | None = None,
    *,
    is_ping: Callable[[Any], bool] | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values, and an error when the source has been silent for too long.

    ::

        values  a-b----                 ---c|
                stall_timeout(0.4)
        values  a-b---#StallTimeoutError

    Every value is emitted at once, pings too. But a ping is no sign of life: a provider that sends only pings has
    stalled. A ping is a chunk whose `type` is `ping` or `keepalive`; bytes that contain only comments and blank lines
    of server-sent events (they never pass `parse_sse`); a `ProviderEvent` of such a name; or an empty delta. Neither is a
    `Custom`, or a snapshot that has nothing else new: the application said it. A value that arrives exactly at the limit
    is in time.

    Put it behind `from_async_iterable` or behind `decode`. At the first place it sees every chunk, and `decode` behind
    it can still finish a whole message if the provider merely leaves the connection open. A reader's own time is no
    silence. While the source waits, because the reader has no room (`overflow="block"`) or because an operator behind
    this one works on what it holds, or while an observer works, no limit expires, and `idle` starts again afterwards.
    Directly behind `throttle_latest` and its kin, which hold their value for a busy reader, `first` and `idle` don't
    expire until the reader asks for the next one. A timer that is late, because a reader has blocked the loop, checks
    again before it fails. The source is disposed before the error is passed on.

    Completes with the source.

    Args:
        first: Seconds from the subscription to the first value. By default the same as `idle`.
        idle: Seconds from one value to the next. By default the same as `first`; `None` is no limit.
        total: Seconds from the subscription to the end.
        is_ping: Whether a value is no sign of life, in place of the rules above.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, without a limit, or for a limit that isn't a positive number.

    Errors: The source's own. `StallTimeoutError`, which names the limit; its `.snapshot` is the reply so far, from a
    `scan_deltas` behind this operator, or the last snapshot that has passed. The exception of `is_ping`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> silent = rx.concat(rx.of(rd.events.BlockStart(0, {"type": "text", "text": "Hel"})), rx.never())
        >>> try:
        ...     silent.pipe(rd.stall_timeout(0.1), rd.scan_deltas()).run()
        ... except rd.errors.StallTimeoutError as error:
        ...     print(error.limit, error.snapshot.text)
        idle Hel
    """
    given = {"first": first, "idle": first if idle == "first" else idle, "total": total}
    limits = {
        name: None if seconds is None else check_seconds(name, seconds) for name, seconds in given.items()
    }
    if not any(limits.values()):
        raise InvalidValueError("stall_timeout needs at least one limit: first, idle or total", field="idle")

    def apply(source: Observable[T]) -> Observable[T]:
        is_held = keeps_newest(source)

        def begin(sink: Sink[T]) -> None:
            watch = _Watch(sink, limits, is_ping or Pings(), sink.clock(scheduler), is_held=is_held)
            sink.subscribe(source, watch)
            sink.turn(watch.begin)

        return create("stall_timeout", begin, emits="same", source=source)

    return apply


class _Watch(Generic[T]):
    """One subscription's state. A value only records the time; a timer that finds a newer value starts again.

    The reader's session signals the time without room; our own clock measures it.
    """

    def __init__(
        self,
        sink: Sink[T],
        limits: Mapping[str, float | None],
        is_ping: Callable[[Any], bool],
        time: abc.SchedulerBase,
        *,
        is_held: bool,
    ) -> None:
        self._sink, self._emit = sink, sink.on_next
        self._limits = limits
        self._is_ping = is_ping
        self._now = seconds(time)
        self._is_held = is_held  # values wait in front of us for an idle reader
        self._subscribed_at = self._last_sign = self._blocked_since = self._now()
        self._has_sign = False  # of life
        self._timers_run = False  # timers start when the source has been subscribed
        self._snapshot: Snapshot | None = None
        self._silence, self._total = sink.timer(time), sink.timer(time)
        if sink.session is not None:
            sink.own(sink.session.backpressure.watch(self._backpressure_changed))

    def begin(self) -> None:
        self._timers_run = True
        self._start_silence_timer()
        if self._limits["total"] is not None:
            self._start_timer(self._total, "total", self._remaining("total"))

    def on_next(self, value: T) -> None:
        if isinstance(value, Snapshot):
            self._snapshot = value
        if self._is_ping(value):
            self._emit(value)
        elif self._has_sign:
            self._emit(value)
            self._last_sign = self._now()
        else:
            self._has_sign = True
            self._emit(value)
            self._last_sign = self._now()
            if self._timers_run and not self._sink.closed:
                self._start_silence_timer()

    def _backpressure_changed(self) -> None:
        now = self._now()
        if self._has_room():
            self._subscribed_at += now - self._blocked_since
            self._last_sign = now
        else:
            self._blocked_since = now

    def _has_room(self) -> bool:
        session = self._sink.session
        return session is None or session.backpressure.is_ready()

    def _may_be_held(self) -> bool:
        session = self._sink.session
        return self._is_held and session is not None and not session.idleness.is_idle()

    def _start_silence_timer(self) -> None:
        limit = "idle" if self._has_sign or self._limits["first"] is None else "first"
        if self._limits[limit] is None:
            self._silence.stop()
        else:
            self._start_timer(self._silence, limit, self._remaining(limit))

    def _start_timer(self, timer: Timer, limit: str, wait: float, *, checks: int = 0) -> None:
        """Start a timer for a check."""
        wait = max(wait, 0.0)
        timer.start(wait, self._check, timer, limit, self._now() + wait, checks, self._last_sign)

    def _remaining(self, limit: str) -> float:
        since = self._last_sign if limit == "idle" else self._subscribed_at
        return (self._limits[limit] or 0.0) - (self._now() - since)

    def _check(self, timer: Timer, limit: str, due: float, checks: int, last_sign: float) -> None:
        if limit == "first" and self._has_sign:
            return
        if limit == "idle" and self._last_sign != last_sign:
            checks = 0  # something has come since the last check, however many there were before it
        wait = self._limits[limit] or 0.0
        late = self._now() - due
        if not self._has_room() or (limit != "total" and self._may_be_held()):
            self._start_timer(timer, limit, wait)
        elif (remaining := self._remaining(limit)) > ABOUT_NOW:
            self._start_timer(timer, limit, remaining)
        elif (
            self._sink.session is not None
            and checks < _MAX_CHECKS
            and late > (_MOMENT if checks else ABOUT_NOW)
        ):
            # A reader has blocked the loop, so data that arrived meanwhile may still be unread.
            self._start_timer(timer, limit, max(_MOMENT, min(late, wait)), checks=checks + 1)
        else:
            message = _MESSAGES[limit].format(wait)
            raise StallTimeoutError(message, limit=limit, seconds=wait, snapshot=self._snapshot)


_MESSAGES = {
    "first": "nothing came within {:g} seconds (first)",
    "idle": "nothing came for {:g} seconds (idle)",
    "total": "the stream did not end within {:g} seconds (total)",
}
