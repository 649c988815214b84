"""Text at an even pace, however unevenly it comes."""

from __future__ import annotations

from collections import deque
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc

from rxdelta.core import Event, InvalidValueError
from rxdelta.core.events import ReasoningDelta, TextDelta, reasoning_delta, text_delta
from rxdelta.operators.pacing.cutting import Chunking, Cutter, Rule, rule_of
from rxdelta.operators.pacing.paced import Paced, no_event
from rxdelta.runtime import check_seconds, clock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["smooth"]

_SHORTEST = 0.001  # seconds between two timers; more pieces a second than that go out several at a time
_DEADLINES = 128  # at a time, about: each turn looks at all of them
_ABOUT_NOW = 2e-6  # seconds; schedulers tell the time in whole microseconds


def smooth(
    chunking: Chunking = "word",
    rate: float = 100.0,
    max_lag: float = 0.4,
    *,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with text and reasoning cut anew and given out evenly.

    ::

        in   -(abcd)-------|
        out  -a-b-c--------(d|)   smooth("char", rate=0.5, max_lag=20)

    While there is enough text, `rate` pieces are given out in a second, the first of them at once. If that is too slow
    for `max_lag`, more go out each time, as one delta: what came in a burst is spread evenly over the time that is
    left. A piece waits for its end to come (a word for the white space behind it and the letter behind that), but not
    beyond `max_lag` either. Where and when the text is cut depends on what had come by then, and not on the deltas
    that it came in; one grapheme (an emoji with all its parts, a letter with its marks, a flag, a Hangul syllable,
    CR LF) is never in two deltas, unless its parts come further apart than `max_lag`.

    Events that are no text keep their place: what comes behind text waits until that has been given out, so that the
    start of a tool call isn't shown before the end of the sentence. Nothing waits longer than `max_lag`. Put
    `run_tools()` in front, and tools don't wait at all.

    When the source completes, the rest goes on at its pace, and then completion is passed on. What is pending when it
    fails is given out at once, before the error.

    Args:
        chunking: What a piece is. `word`: a word and the white space behind it; in writing without spaces, each letter.
            `line`: a line and its end. `char`: one grapheme. A compiled pattern: the text up to the end of its next
            match. A function: it is given the text from the last cut on, one character more each time, until it
            returns the piece that this begins with rather than `None`. Words are cut after 256 characters, and so is
            text that a pattern or function finds no end in; lines after 4,096; a pattern that repeats a repetition,
            as `(a+)+` does, sees 20, and one that takes too long all the same is given up for words.
        rate: Pieces a second, as long as nothing is behind.
        max_lag: The longest, in seconds, that anything is held back.
        scheduler: Whose time it is. By default the subscriber's, else the running asyncio loop's, else that
            of a thread which ends with the subscription.

    Raises:
        InvalidValueError: At once, for a `rate` or `max_lag` that isn't a positive number, a `chunking` that is none
            of these, or a pattern that matches the empty text.

    Errors: The source's own. `InvalidValueError` for what is no event, and for a function's answer that isn't a piece;
    what the function raises. All after what is pending.

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
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < float("inf"):
        raise InvalidValueError.of([("rate", rate, "must be a positive number of pieces a second")])
    interval = max(1 / rate, _SHORTEST)
    at_a_time = ceil(rate * interval - 1e-9)
    lag = check_seconds("max_lag", max_lag)

    def apply(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = clock(scheduler, inherited)
            smoothing = _Smoothing(observer, make_rule(), longest, interval, at_a_time, lag, time)
            return smoothing.connect(source, inherited, owned)

        return Observable(subscribe)

    return apply


class _Run:
    """Text of one kind, block and choice with nothing in between."""

    __slots__ = ("choice", "index", "kind", "text")

    def __init__(self, delta: TextDelta | ReasoningDelta, text: Cutter) -> None:
        self.kind = type(delta)
        self.index = delta.index
        self.choice = delta.choice
        self.text = text

    def goes_on_with(self, delta: TextDelta | ReasoningDelta) -> bool:
        return self.kind is type(delta) and self.index == delta.index and self.choice == delta.choice

    def delta(self, text: str) -> Event:
        make = text_delta if self.kind is TextDelta else reasoning_delta
        return make(self.index, text, self.choice)


class _Smoothing(Paced[Event]):
    """One subscription's state. Text is counted in code points from the beginning: so many came, so many left.

    The source and the timer only say what is to be done. It is done by the thread that emits, because a function of
    the user's may have to be asked; that thread alone takes text out of a run.
    """

    def __init__(
        self,
        observer: abc.ObserverBase[Event],
        rule: Rule,
        longest: int,
        interval: float,
        at_a_time: int,
        lag: float,
        time: abc.SchedulerBase,
    ) -> None:
        super().__init__(observer)
        self._rule = rule
        self._longest = longest
        self._interval = interval
        self._at_a_time = at_a_time
        self._lag = lag
        self._time = time
        self._queue: deque[_Run | Event] = deque()
        self._ready: deque[Event] = deque()
        self._came = self._left = 0
        self._deadlines: deque[tuple[float, int]] = deque()  # by when how much must have left
        self._moment = max(min(interval, lag) / 4, lag / _DEADLINES)  # what comes within it has one deadline
        self._began = float("-inf")  # this moment
        self._next_turn: float | None = None  # until then nothing goes out but what must
        self._alarm: float | None = None
        self._asked = False  # to look what there is to give out
        self._rung = False  # by the timer
        self._seen_to = float("-inf")  # deadlines up to then have been seen to, as far as could be
        self._hurried = False  # give out everything

    def on_next(self, event: Event) -> None:
        with self._lock:
            if self._stopped or self._end is not None:
                return
            if isinstance(event, (TextDelta, ReasoningDelta)):
                self._take_in(event, event.text if isinstance(event, TextDelta) else event.reasoning)
            else:
                wrong = no_event(event)
                if wrong is None:
                    self._queue.append(event)
                    self._asked = True
                else:
                    self._fail(wrong)
        self._emit()

    def on_error(self, error: Exception) -> None:
        with self._lock:
            if self._end is None:
                self._fail(error)
        self._emit()

    def on_completed(self) -> None:
        with self._lock:
            if self._end is None:
                self._end = self._observer.on_completed
                self._asked = True
        self._emit()

    def _take_in(self, delta: TextDelta | ReasoningDelta, text: str) -> None:
        if not text:
            return
        last = self._queue[-1] if self._queue else None
        if not isinstance(last, _Run) or not last.goes_on_with(delta):
            last = _Run(delta, Cutter(self._rule, self._longest))
            self._queue.append(last)
        last.text.feed(text)
        self._came += len(text)
        now = self._now()
        if now - self._began > self._moment:
            self._began = now
        due = self._began + self._lag
        if self._deadlines and self._deadlines[-1][0] == due:
            self._deadlines[-1] = (due, self._came)
        else:
            self._deadlines.append((due, self._came))
            self._set_alarm(now)
        self._asked = self._asked or self._next_turn is None

    def _fail(self, error: Exception) -> None:
        self._end = partial(self._observer.on_error, error)
        self._asked = self._hurried = True

    def _ripen(self) -> None:
        self._alarm = None
        self._asked = self._rung = True

    def _due(self) -> Callable[[], None] | None:
        with self._lock:
            if self._asked and not self._ready and not self._stopped:
                self._asked = False
                return self._work
            return super()._due()

    def _next(self) -> Event:
        return self._ready.popleft()

    def _drained(self) -> bool:
        return not self._queue

    def _let_go(self) -> None:
        self._queue.clear()
        self._ready.clear()

    def _work(self) -> None:
        """Make ready what should go out now. One thread at a time, and not under the lock."""
        with self._lock:
            pieces, share, must = self._plan()
        before = self._left
        try:
            self._make_ready(pieces, share, must)
        except Exception as error:  # the user's function
            with self._lock:
                self._fail(error)
            return
        with self._lock:
            while self._deadlines and self._deadlines[0][1] <= self._left:
                self._deadlines.popleft()
            now = self._now()
            if pieces and self._left > before:
                self._next_turn = now + self._interval
            self._set_alarm(now)

    def _plan(self) -> tuple[int, int, int]:
        """How many pieces, how much text at least, and how much of that whether it is whole pieces or not."""
        if self._hurried:
            return 0, self._came - self._left, 0
        rung, self._rung = self._rung, False
        if not rung:  # something has come; how much should go with it, the next turn will know
            return int(self._next_turn is None), 0, 0
        now = self._seen_to = self._now()
        must = max((came for due, came in self._deadlines if due - now < _ABOUT_NOW), default=self._left)
        must -= self._left
        if self._next_turn is not None and self._next_turn - now >= _ABOUT_NOW:
            return 0, must, must
        self._next_turn = None
        return self._at_a_time, max(must, self._fair_share(now)), must

    def _fair_share(self, now: float) -> int:
        """How much must leave at each turn from now on, evenly, so that all is out in time."""
        share = 0
        for due, came in self._deadlines:
            turns = max(1, int((due - now + _ABOUT_NOW) / self._interval) + 1)
            share = max(share, ceil((came - self._left) / turns))
        return share

    def _make_ready(self, pieces: int, share: int, must: int) -> None:
        done = self._left
        share, must = done + share, done + must
        while True:
            with self._lock:
                while self._queue and not isinstance(self._queue[0], _Run):
                    self._ready.append(self._queue.popleft())  # type: ignore[arg-type]
                head: Any = self._queue[0] if self._queue else None
                if head is None:
                    return
                final = len(self._queue) > 1 or self._end is not None
                head.text.join()
            out: list[str] = []
            try:
                pieces = self._take_out(head.text, out, final, pieces, share, must)
            finally:
                with self._lock:
                    if out and not self._stopped:
                        self._ready.append(head.delta("".join(out)))
                    empty = head.text.is_empty
                    if empty and self._queue:
                        self._queue.popleft()
            if not empty:
                return

    def _take_out(self, text: Cutter, out: list[str], final: bool, pieces: int, share: int, must: int) -> int:
        """Pieces of one run; how many more it may be."""
        while text.has_some and (pieces > 0 or self._left < share):
            if self._hurried:
                piece = text.all()
            else:
                piece = text.piece(final=final) or (text.ripe() if self._left < must else "")
            if not piece:
                break
            out.append(piece)
            self._left += len(piece)
            pieces -= 1
        return pieces

    def _set_alarm(self, now: float) -> None:
        """One timer: for the next turn, or the next deadline if that is sooner."""
        times = [due for due, _ in self._deadlines if due - self._seen_to >= _ABOUT_NOW][:1]
        if self._next_turn is not None:
            times.append(self._next_turn)
        if times and min(times) != self._alarm and not self._stopped:
            self._alarm = min(times)
            self._start_timer(self._time, max(0.0, self._alarm - now))

    def _now(self) -> float:
        return self._time.to_seconds(self._time.now)
