"""Fewer, larger deltas: neighbours that belong together are joined."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import JOINABLE, Event, Joined
from rxdelta.operators.pacing.paced import Paced, not_an_event
from rxdelta.runtime import check_seconds, clock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compact_deltas"]


def compact_deltas(
    seconds: float, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with the deltas of each `seconds` joined where they are neighbours of one block.

    ::

        in   -abc----d|
        out  -a---X---(d|)   compact_deltas(4), where X is bc

    The first delta is emitted at once and opens a window; those that come within it are held until it closes, which
    opens the next one. Two of them become one if they are of the same kind, block and choice and nothing stands
    between them. Text, reasoning, argument text and base64 data are joined; what folds to the same reply does so
    after each window. The order of events never changes: an event of another kind (a block's start or finish, a
    tool's update, usage, …) is not held, and what was held is emitted right before it. So is it before the
    source's completion, or its error.

    For events on their way to another place: a browser, a store, a slow reader. While the observer is busy on another
    thread, neighbours go on being joined.

    Args:
        seconds: The longest that a delta is held.
        scheduler: Whose time it is. By default the subscriber's, else the running asyncio loop's, else that
            of a thread which ends with the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.

    Errors: The source's own. `InvalidValueError` for what is no event.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = [rd.events.TextDelta(0, piece) for piece in ("Let", " me", " look", ".")]
        >>> compacted = rx.from_iterable([*pieces, rd.events.BlockFinish(0)]).pipe(rd.compact_deltas(0.05))
        >>> compacted.subscribe(print).dispose()
        TextDelta(index=0, text='Let', choice=0)
        TextDelta(index=0, text=' me look.', choice=0)
        BlockFinish(index=0, content=None, choice=0)
    """
    interval = check_seconds("seconds", seconds)

    def apply(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = clock(scheduler, inherited)
            return _Compaction(observer, interval, time).connect(source, inherited, owned)

        return Observable(subscribe)

    return apply


class _Compaction(Paced[Event]):
    """One subscription's state."""

    def __init__(self, observer: abc.ObserverBase[Event], interval: float, time: abc.SchedulerBase) -> None:
        super().__init__(observer)
        self._interval = interval
        self._time = time
        self._queue: deque[Joined | Event] = deque()
        self._due_count = 0  # how many of them needn't wait any longer
        self._window_open = False  # a window

    def on_next(self, event: Event) -> None:
        with self._lock:
            if self._stopped or self._end is not None:
                return
            known = JOINABLE.get(type(event))
            if known is None:
                self._add(event)
            elif self._hold(event, getattr(event, known[0])):
                return
        self._emit()

    def _add(self, event: Event) -> None:
        wrong = not_an_event(event)
        if wrong is None:
            self._queue.append(event)
            self._due_count = len(self._queue)
        else:
            self._end = partial(self._observer.on_error, wrong)

    def _hold(self, delta: Event, piece: str) -> bool:
        """Whether it has to wait."""
        last = self._queue[-1] if self._queue else None
        if isinstance(last, Joined) and last.takes(delta):
            last.pieces.append(piece)
        else:
            self._queue.append(Joined(delta, piece))
        if self._window_open:
            return True
        self._due_count = len(self._queue)
        self._open_window()
        return False

    def _open_window(self) -> None:
        self._window_open = True
        self._start_timer(self._time, self._interval)

    def _on_timer(self) -> None:
        self._window_open = False
        if self._due_count < len(self._queue):
            self._due_count = len(self._queue)
            self._open_window()

    def _take_due(self) -> tuple[Event] | tuple[()]:
        if not self._queue or (not self._due_count and self._end is None):
            return ()
        event = self._queue.popleft()
        self._due_count = max(0, self._due_count - 1)
        return (event.event() if isinstance(event, Joined) else event,)

    def _clear(self) -> None:
        self._queue.clear()
        self._due_count = 0
