"""Fewer, larger deltas: neighbours of one block are joined."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rxdelta.core import JOINABLE, Event, Joined, Seconds, check_pace
from rxdelta.operators.pacing.paced import Paced
from rxdelta.runtime import Sink, lift, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable, abc


@operator_maker
def compact_deltas(
    seconds: Seconds, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with neighbouring deltas of one block joined if they come within `seconds`.

    ::

        events  The _ti de _is     _hi gh-    --_now|
                compact_deltas(0.3)
        events  The -   -  _tide_is-   - _high--_now|

    The first delta is emitted at once and opens a window. Deltas within the window are held until it closes, which
    opens the next one. Two held deltas become one if they have the same kind, block and choice and are neighbours.
    Text, reasoning, argument text and base64 data are joined; after each window the events fold to the same reply
    as the source's. The order of events never changes: an event of another kind (a block's start or finish, a tool's
    update, usage, …) is not held, and held deltas are emitted right before it. They are also emitted before the
    source's completion or error.

    Use it for events on their way to a browser, a store or a slow reader. While the observer is busy on another
    thread, neighbours are joined as well.

    Args:
        seconds: The longest time that a delta is held.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.

    Errors: The source's own. `InvalidValueError` for a value that is no event.

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
    interval = check_pace("seconds", seconds)

    return lift(
        "compact_deltas",
        lambda sink: _Compaction(sink, interval, sink.clock(scheduler)),
        serial=False,
        emits="events",
    )


class _Compaction(Paced[Event]):
    """One subscription's state."""

    def __init__(self, sink: Sink[Event], interval: float, time: abc.SchedulerBase) -> None:
        super().__init__(sink, time)
        self._interval = interval
        self._queue: deque[Joined | Event] = deque()
        self._due_count = 0  # how many of the queue may be emitted now
        self._window_open = False

    def on_next(self, event: Event) -> None:
        with self._lock:
            if self._end is not None:
                return
            known = JOINABLE.get(type(event))
            if known is None:
                self._add(event)
            elif self._hold(event, getattr(event, known[0])):
                return
        self._emit()

    def _add(self, event: Event) -> None:
        wrong = self._refuse(event)
        if wrong is None:
            self._queue.append(event)
            self._due_count = len(self._queue)
        else:
            self._end = partial(self._sink.on_error, wrong)

    def _hold(self, delta: Event, piece: str) -> bool:
        """Queue a delta, and return whether it has to wait for the window's end."""
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
        self._start_timer(self._interval)

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
