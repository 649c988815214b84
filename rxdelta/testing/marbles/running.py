"""Lines in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from reactivex.disposable import Disposable, SingleAssignmentDisposable
from reactivex.scheduler import VirtualTimeScheduler

from rxdelta.core import InvalidValueError, Seconds, check_seconds, events
from rxdelta.runtime import Mark, OwnObservable, Taker
from rxdelta.testing.marbles.line import Record, Timed, draw, error_name, error_text, parse, seconds, timed

if TYPE_CHECKING:
    from reactivex import Observable, abc

    from rxdelta.testing.marbles.scanner import Values


_DAY = 86_400.0
_MOST_VALUES = 10_000


class Cold(OwnObservable[Any]):
    """What `cold` returns: an Observable that tells the same records to each subscriber.

    Attributes:
        subscriptions: From when to when it was read each time, in seconds of the scheduler's clock; `None` is still read.
    """

    def __init__(self, records: Sequence[Timed], scheduler: VirtualTimeScheduler) -> None:
        super().__init__()
        self.subscriptions: list[tuple[float, float | None]] = []
        self._name = "marbles.cold"
        self._scheduler = scheduler
        self._by_time: dict[int, list[Timed]] = {}
        for record in records:
            self._by_time.setdefault(record[0], []).append(record)
        values: list[object] = [value for _, kind, value in records if kind == "next"]
        if values and all(map(_is_event, values)):
            self._mark = Mark("events", "marbles.cold")  # as what decodes a provider's stream

    def _start(self, taker: Taker[Any], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:  # noqa: ARG002
        number, begin, is_over = len(self.subscriptions), _now(self._scheduler), False
        self.subscriptions.append((begin, None))

        def end() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self.subscriptions[number] = (begin, _now(self._scheduler))

        def tell(found: Sequence[Timed]) -> Callable[..., None]:
            def notify(*_: object) -> None:
                for _time, kind, value in found:
                    if is_over:
                        return
                    if kind == "next":
                        taker.on_next(value)
                        continue
                    end()
                    if kind == "error":
                        taker.on_error(value)
                    else:
                        taker.on_completed()

            return notify

        # One timer for each time: Rx's scheduler moves its clock on where there are more than a hundred at once.
        for time, found in self._by_time.items():
            self._scheduler.schedule_relative(seconds(time), tell(found))
        return Disposable(end)


def cold(
    line: str | Iterable[Record],
    scheduler: VirtualTimeScheduler,
    *,
    values: Values | None = None,
    frame: Seconds = 0.1,
    error: Exception | None = None,
) -> Cold:
    """An Observable of a line: it tells each subscriber the line from its beginning, in virtual time.

    Disposing a subscription stops it. A source of events is marked as one: an
    operator that would drop some refuses it, as it refuses a decoded reply.

    Args:
        line: The line, or records.
        scheduler: Virtual time: a `TestScheduler`, a `VirtualTimeScheduler`, or the `scheduler` of a `VirtualTime`.
        values, frame, error: As in `parse`.

    Raises:
        InvalidValueError: The line can't be read, or the scheduler has no virtual time.

    Example:
        >>> import reactivex as rx
        >>> from reactivex.scheduler import VirtualTimeScheduler
        >>> from rxdelta.testing import marbles
        >>> time = VirtualTimeScheduler()
        >>> one, other = (marbles.cold(line, time, values=str) for line in ("a--c|", "-b#"))
        >>> marbles.drawn(rx.merge(one, other), time, values=str)
        'ab#'
        >>> one.subscriptions
        [(0.0, 0.2)]
    """
    _check_scheduler(scheduler)
    return Cold(timed(_records(line, values, frame, error)), scheduler)


def _records(
    line: str | Iterable[Record], values: Values | None, frame: Seconds, error: Exception | None
) -> Iterable[Record]:
    return parse(line, values=values, frame=frame, error=error) if isinstance(line, str) else line


def _check_scheduler(scheduler: object) -> None:
    if not isinstance(scheduler, VirtualTimeScheduler):
        raise InvalidValueError.of(
            [("scheduler", scheduler, "must have virtual time, as a TestScheduler has")]
        )


def _now(scheduler: VirtualTimeScheduler) -> float:
    return round(scheduler.to_seconds(scheduler.now), 6)


def drawn(
    source: Observable[Any],
    scheduler: VirtualTimeScheduler,
    *,
    values: Values | None = None,
    frame: Seconds = 0.1,
    error: Exception | None = None,
    until: Seconds | None = None,
) -> str:
    """Subscribe to an Observable now, let virtual time pass, and draw what came.

    The scheduler is given to the subscription, so operators without one of their own take their time from it.

    Args:
        source: The Observable.
        scheduler: As in `cold`.
        values, frame, error: As in `draw`.
        until: The seconds until the subscription is disposed; what comes at that moment isn't seen. By default it is
            disposed when the source ends, or after a day.

    Returns:
        The line; it has no end if the source had none.

    Raises:
        InvalidValueError: The scheduler has no virtual time, or the source emits more than 10,000 values and `until` isn't
            said.

    Example:
        >>> import reactivex as rx
        >>> from reactivex.scheduler import VirtualTimeScheduler
        >>> from rxdelta.testing import marbles
        >>> marbles.drawn(rx.timer(0.2, 0.3), VirtualTimeScheduler(), until=1, values=int)
        '--0--1--2'
    """
    return draw(records(source, scheduler, until=until), values=values, frame=frame, error=error)


def records(
    source: Observable[Any], scheduler: VirtualTimeScheduler, *, until: Seconds | None = None
) -> list[Record]:
    """Subscribe to an Observable now, let virtual time pass, and note what came.

    This is `drawn` for values that are looked into, or that would make a long line.

    Args:
        source, scheduler, until: As in `drawn`.

    Returns:
        The records; their times count from the subscription.

    Raises:
        InvalidValueError: As by `drawn`.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.scheduler import VirtualTimeScheduler
        >>> from rxdelta.testing import marbles
        >>> time = VirtualTimeScheduler()
        >>> snapshots = marbles.cold("Hel lo|", time).pipe(rd.scan_deltas())
        >>> [(at, snapshot.text) for at, kind, snapshot in marbles.records(snapshots, time) if kind == "next"]
        [(0.0, ''), (0.0, ''), (0.0, 'Hel'), (0.1, 'Hello'), (0.2, 'Hello'), (0.2, 'Hello')]
    """
    _check_scheduler(scheduler)
    left = _DAY if until is None else check_seconds("until", until)
    found: list[Record] = []
    begin, subscription, is_over = scheduler.now, SingleAssignmentDisposable(), False

    def passed() -> float:
        return round((scheduler.now - begin).total_seconds(), 6)

    def take(value: Any) -> None:
        found.append((passed(), "next", value))
        if until is None and len(found) > _MOST_VALUES:
            subscription.dispose()
            scheduler.stop()

    def fail(error: Exception) -> None:
        nonlocal is_over
        is_over = True
        found.append((passed(), "error", error))

    def complete() -> None:
        nonlocal is_over
        is_over = True
        found.append((passed(), "completed", None))

    def leave(*_: object) -> None:
        subscription.dispose()

    if until is not None:  # scheduled first, so it comes before what comes at the same time
        scheduler.schedule_relative(left, leave)
    subscription.disposable = source.subscribe(take, fail, complete, scheduler=scheduler)
    step = 1.0
    while left > 0 and not (is_over and until is None):
        before = scheduler.now
        # Step by step, so that little passes behind the end. `start` would move the clock where much happens at once.
        scheduler.advance_by(min(step, left))
        if scheduler.now == before:
            raise InvalidValueError(
                "marbles let time pass by themselves, so the scheduler must not run yet", field="scheduler"
            )
        if until is None and len(found) > _MOST_VALUES:
            raise InvalidValueError(
                f"more than {_MOST_VALUES:,} values came in {found[-1][0]:g} s; say with until= when to stop",
                field="until",
            )
        left, step = left - min(step, left), 2 * step
    subscription.dispose()
    return found


def check(
    line: str | Iterable[Record],
    *operators: Callable[[Observable[Any]], Observable[Any]],
    gives: str | Iterable[Record] | None = None,
    values: Values | None = None,
    frame: Seconds = 0.1,
    error: Exception | None = None,
    until: Seconds | None = None,
    reads: Iterable[tuple[Seconds, Seconds]] | None = None,
) -> None:
    """Check what operators make of a line, in virtual time.

    The drawn lines are compared. An error of `gives` without a text, such as `#StallTimeoutError`, is any error of
    that name.

    Args:
        line: What the source tells, as in `cold`.
        operators: The operators, in their order, as for `pipe`.
        gives: What they should emit; by default the same as the source.
        values, frame, error: As in `parse`, for both lines. Records stay as they are: where the source has events and the
            operators emit other values, `marbles.parse("Hel lo|")` may be the source, and `values` are those that come.
        until: As in `drawn`.
        reads: The seconds from when to when the source should be read, for each time that it is; by default nothing is said
            about that.

    Raises:
        AssertionError: Something else came; the message has three lines: the source, what came, and what didn't. Or the
            source was read at other times.
        InvalidValueError: A line can't be read; or as by `drawn`.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> from rxdelta.testing import marbles
        >>> marbles.check("ab-----c|", rd.throttle_latest(0.3), gives="a--b---c|", values=str)
        >>> marbles.check("a b----c|", rd.stall_timeout(idle=0.3), gives="a b--#StallTimeoutError")
        >>> marbles.check("a-b-c|", ops.take(2), gives="a-[b|]", values=str, reads=[(0, 0.2)])
        >>> marbles.check("ab--|", rd.throttle_latest(0.3), gives="ab--|", values=str)
        Traceback (most recent call last):
        AssertionError: the marbles differ
          from  ab--|
          came  a--b|
          not   ab--|
    """
    source = [*_records(line, values, frame, error)]
    wanted = source if gives is None else [*_records(gives, values, frame, error)]
    scheduler = VirtualTimeScheduler()
    cold = Cold(timed(source), scheduler)
    came = records(cold.pipe(*operators), scheduler, until=until)
    if came and wanted and came[-1][1] == wanted[-1][1] == "error" and _is_any(wanted[-1][2], came[-1][2]):
        came[-1] = (came[-1][0], "error", wanted[-1][2])
    # The values are often those that come of events: the source is then drawn as events.
    of_source = None if any(_is_event(value) for _, _, value in source) else values
    whole, found, missing = (
        draw(each, values=marks, frame=frame, error=error)
        for each, marks in ((source, of_source), (came, values), (wanted, values))
    )
    if found != missing:
        shown = line if isinstance(line, str) else whole
        raise AssertionError(f"the marbles differ\n  from  {shown}\n  came  {found}\n  not   {missing}")
    if reads is not None and cold.subscriptions != (read := [*reads]):
        raise AssertionError(f"the source was read at {cold.subscriptions}, not at {read}")


def _is_event(value: object) -> bool:
    return type(value) in events.EVENT_TYPES


def _is_any(wanted: BaseException, found: BaseException) -> bool:
    """Whether an exception has the class name of one that says nothing."""
    return not error_text(wanted) and error_name(wanted) == error_name(found)
