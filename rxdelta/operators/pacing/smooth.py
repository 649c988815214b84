"""Text at an even pace from an uneven source."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import Event, InvalidValueError, Seconds, check_seconds
from rxdelta.core.events import MessageInterrupted, ReasoningDelta, TextDelta, reasoning_delta, text_delta
from rxdelta.cutting import Chunking, Cutter, Rule, rule_of
from rxdelta.operators.pacing.paced import Paced
from rxdelta.runtime import ABOUT_NOW, Sink, lift, operator_maker, seconds

if TYPE_CHECKING:
    from reactivex import Observable, abc


_SHORTEST = 0.001  # seconds between two timers; higher rates release several pieces at a time
_DEADLINES = 128  # roughly the most at a time, because each turn examines all of them


@operator_maker
def smooth(
    chunking: Chunking = "word",
    rate: float = 100.0,
    max_lag: Seconds = 0.4,
    *,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with text and reasoning cut into pieces that are emitted evenly.

    ::

        events  The_tide_is_high_now.--    --  --    -|
                smooth(rate=5, max_lag=2)
        events  The_                 -tide_-is_-high_-[now.|]

    While there is enough text, `rate` pieces are emitted per second, the first at once. If that is too slow for
    `max_lag`, each delta gets more pieces: a burst is spread evenly over the remaining time. A piece waits until its
    end is certain (a word for the white space after it and the next letter), but not beyond `max_lag`. The cuts depend
    on the text that has arrived, not on its deltas. One grapheme (an emoji with all its parts, a letter with its marks,
    a flag, a Hangul syllable, CR LF) is never in two deltas, unless its parts arrive further apart than `max_lag`.

    Other events keep their place: an event after text waits until that text has been emitted, so that the start of a
    tool call isn't shown before the end of the sentence. No event waits longer than `max_lag`. Put `run_tools()` in
    front, and tools don't wait at all; and what holds text, such as `redact` and `guard`, which behind it would join its
    pieces again.

    When the source completes, pending text is emitted at its pace, then completion is passed on. When the source
    fails, or the message is interrupted, pending text is emitted at once, before the error or the interruption.

    Args:
        chunking: The kind of pieces.
            `word`: a word and the white space after it; each letter in scripts without spaces. `line`: a line and its
            end. `char`: one grapheme. A compiled pattern: the text up to the end of its next match. A function: it is
            called with the text since the last cut, one more character each time, and returns `None` until it returns
            the piece at the beginning of that text. Words are cut after 256 characters, lines after 4,096, and text
            without an end for a pattern or function after 256. A pattern with nested repetition, such as `(a+)+`, gets
            20 characters; a pattern that is still too slow is replaced by words.
        rate: Pieces per second while the text is in time.
        max_lag: The longest time, in seconds, that an event is held.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, for a `rate` or `max_lag` that isn't a positive number, an unknown `chunking`, or a
            pattern that matches the empty text.

    Errors: The source's own. `InvalidValueError` for a value that is no event, and for a result of the function that
    isn't a piece; the function's own exception. All come after the pending text.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = [rd.events.TextDelta(0, piece) for piece in ("Let me lo", "ok.")]
        >>> even = rx.from_iterable([*pieces, rd.events.BlockFinish(0)]).pipe(rd.smooth())
        >>> async def main():
        ...     await rd.for_each(even, print)
        >>> asyncio.run(main())
        TextDelta(index=0, text='Let ', choice=0)
        TextDelta(index=0, text='me ', choice=0)
        TextDelta(index=0, text='look.', choice=0)
        BlockFinish(index=0, content=None, choice=0)
    """
    make_rule, longest = rule_of(chunking)
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate <= sys.float_info.max:
        raise InvalidValueError.of([("rate", rate, "must be a positive number of pieces a second")])
    interval = max(1 / rate, _SHORTEST)
    at_a_time = ceil(rate * interval - 1e-9)
    lag = check_seconds("max_lag", max_lag)

    return lift(
        "smooth",
        lambda sink: _Smoothing(sink, make_rule(), longest, interval, at_a_time, lag, sink.clock(scheduler)),
        serial=False,
        emits="events",
    )


class _TextRun:
    """Adjacent text of one kind and block."""

    __slots__ = ("choice", "index", "kind", "run_id", "text")

    def __init__(self, delta: TextDelta | ReasoningDelta, text: Cutter) -> None:
        self.kind = type(delta)
        self.index = delta.index
        self.choice = delta.choice
        self.run_id = delta.run_id
        self.text = text

    def delta(self, text: str) -> Event:
        make = text_delta if self.kind is TextDelta else reasoning_delta
        return make(self.index, text, self.choice, run_id=self.run_id)


class _Turn(NamedTuple):
    """The text that one turn releases. The limits are positions: characters counted from the stream's beginning."""

    pieces: int  # at the requested rate
    at_least: int  # release text up to here, in whole pieces
    by_force: int  # release text up to here, even if a piece is cut short: its deadline has come


class _Smoothing(Paced[Event]):
    """One subscription's state. `_received` and `_released` count all code points from the stream's beginning.

    Source and timer only mark the work. The emitting thread does it outside of the lock, because cutting may call the
    user's function; that thread alone takes text out of a run.
    """

    def __init__(
        self,
        sink: Sink[Event],
        rule: Rule,
        longest: int,
        interval: float,
        at_a_time: int,
        lag: float,
        time: abc.SchedulerBase,
    ) -> None:
        super().__init__(sink, time)
        self._now = seconds(time)
        self._rule = rule
        self._longest = longest
        self._interval = interval
        self._at_a_time = at_a_time
        self._lag = lag
        self._queue: deque[_TextRun | Event] = deque()
        self._ready: deque[Event] = deque()
        self._received = self._released = 0
        self._deadlines: deque[tuple[float, int]] = deque()  # (time, position up to which text is due then)
        # Text of this span shares the earliest deadline, so that no text is late. A quarter of a turn (or of a shorter
        # lag) is too short to be seen; the other bound keeps the number of deadlines small.
        self._deadline_step = max(min(interval, lag) / 4, lag / _DEADLINES)
        self._step_began = float("-inf")
        self._next_turn: float | None = None  # until then only overdue text is released
        self._timer_due: float | None = None
        self._work_pending = False  # the emitting thread must call `_release_due`
        self._timer_fired = False
        self._handled_until = float("-inf")  # the deadlines up to this time need no further timer
        self._flush_all = False  # release everything

    def on_next(self, event: Event) -> None:
        with self._lock:
            if self._end is not None:
                return
            if isinstance(event, TextDelta):
                self._add_text(event, event.text)
            elif isinstance(event, ReasoningDelta):
                self._add_text(event, event.reasoning)
            else:
                wrong = self._refuse(event)
                if wrong is None:
                    self._queue.append(event)
                    self._work_pending = True
                    self._flush_all = self._flush_all or type(event) is MessageInterrupted
                else:
                    self._fail(wrong)
            if not self._work_pending:
                return  # it is text for a later turn
        self._emit()

    def on_error(self, error: Exception) -> None:
        with self._lock:
            if self._end is None:
                self._fail(error)
        self._emit()

    def on_completed(self) -> None:
        with self._lock:
            if self._end is None:
                self._end = self._sink.on_completed
                self._work_pending = True
        self._emit()

    def _add_text(self, delta: TextDelta | ReasoningDelta, text: str) -> None:
        if not text:
            return
        last = self._queue[-1] if self._queue else None
        if (
            type(last) is not _TextRun
            or last.kind is not type(delta)
            or last.index != delta.index
            or last.choice != delta.choice
            or last.run_id != delta.run_id
        ):
            last = _TextRun(delta, Cutter(self._rule, self._longest))
            self._queue.append(last)
        last.text.feed(text)
        self._received += len(text)
        now = self._now()
        if now - self._step_began > self._deadline_step:
            self._step_began = now
        due = self._step_began + self._lag
        if self._deadlines and self._deadlines[-1][0] == due:
            self._deadlines[-1] = (due, self._received)
        else:
            self._deadlines.append((due, self._received))
            self._set_timer(now)
        self._work_pending = self._work_pending or self._next_turn is None

    def _fail(self, error: Exception) -> None:
        self._end = partial(self._sink.on_error, error)
        self._work_pending = self._flush_all = True

    def _on_timer(self) -> None:
        self._timer_due = None
        self._work_pending = self._timer_fired = True

    def _next_call(self) -> Callable[[], None] | None:
        with self._lock:
            if self._work_pending and not self._ready and not self._sink.closed:
                self._work_pending = False
                return self._release_due
            return super()._next_call()

    def _take_due(self) -> tuple[Event] | tuple[()]:
        return (self._ready.popleft(),) if self._ready else ()

    def _is_empty(self) -> bool:
        return not self._queue

    def _clear(self) -> None:
        self._queue.clear()
        self._ready.clear()

    def _release_due(self) -> None:
        """Move the due text to the ready events. Called by the emitting thread, without the lock."""
        with self._lock:
            turn = self._plan()
        before = self._released
        try:
            self._release(turn)
        except Exception as error:  # the user's function
            with self._lock:
                self._fail(error)
            return
        with self._lock:
            if self._end is None:
                self._flush_all = False  # behind an interruption: other runs go on
            while self._deadlines and self._deadlines[0][1] <= self._released:
                self._deadlines.popleft()
            now = self._now()
            if turn.pieces and self._released > before:
                self._next_turn = now + self._interval
            self._set_timer(now)

    def _plan(self) -> _Turn:
        released = self._released
        if self._flush_all:
            return _Turn(0, self._received, released)
        timer_fired, self._timer_fired = self._timer_fired, False
        if not timer_fired:  # new text: at most its first piece leaves now, and the next turn plans the rest
            return _Turn(int(self._next_turn is None), released, released)
        now = self._handled_until = self._now()
        overdue = (received for due, received in self._deadlines if due - now < ABOUT_NOW)
        by_force = max(overdue, default=released)
        if self._next_turn is not None and self._next_turn - now >= ABOUT_NOW:
            return _Turn(0, by_force, by_force)
        self._next_turn = None
        return _Turn(self._at_a_time, max(by_force, released + self._even_share(now)), by_force)

    def _even_share(self, now: float) -> int:
        """The characters that each turn must release, from now on, so that all text meets its deadline."""
        share = 0
        for due, received in self._deadlines:
            turns = max(1, int((due - now + ABOUT_NOW) / self._interval) + 1)
            share = max(share, ceil((received - self._released) / turns))
        return share

    def _release(self, turn: _Turn) -> None:
        pieces = turn.pieces
        while True:
            with self._lock:
                while self._queue and not isinstance(self._queue[0], _TextRun):
                    self._ready.append(self._queue.popleft())  # type: ignore[arg-type]
                head: Any = self._queue[0] if self._queue else None
                if head is None:
                    return
                final = len(self._queue) > 1 or self._end is not None
                head.text.join()
            out: list[str] = []
            try:
                pieces = self._take_pieces(head.text, out, final, turn, pieces)
            finally:
                with self._lock:
                    if out and not self._sink.closed:
                        self._ready.append(head.delta("".join(out)))
                    empty = head.text.is_empty
                    if empty and self._queue:
                        self._queue.popleft()
            if not empty:
                return

    def _take_pieces(self, text: Cutter, out: list[str], final: bool, turn: _Turn, pieces: int) -> int:
        """Take pieces of one run into `out`, which keeps them if the user's function raises.

        Returns:
            How many of the turn's `pieces` are left.
        """
        while text.has_some and (pieces > 0 or self._released < turn.at_least):
            if self._flush_all:
                piece = text.all()
            else:
                piece = text.piece(final=final) or (text.rest() if self._released < turn.by_force else "")
            if not piece:
                break
            out.append(piece)
            self._released += len(piece)
            pieces -= 1
        return pieces

    def _set_timer(self, now: float) -> None:
        """Start the timer for the next turn, or for the next deadline if that is sooner."""
        times = [due for due, _ in self._deadlines if due - self._handled_until >= ABOUT_NOW][:1]
        if self._next_turn is not None:
            times.append(self._next_turn)
        if times and min(times) != self._timer_due and not self._sink.closed:
            self._timer_due = min(times)
            self._start_timer(max(0.0, self._timer_due - now))
