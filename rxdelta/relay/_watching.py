"""A reader of a stream: one subscription of `watch` or `entries`."""

from __future__ import annotations

import sys
from collections import deque
from contextvars import copy_context
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex.disposable import Disposable, SerialDisposable, SingleAssignmentDisposable

from rxdelta.core import EmptyStreamError, quote
from rxdelta.relay._failures import unreadable, with_snapshot
from rxdelta.relay._ids import number_of
from rxdelta.relay._replay import AT_ONCE, from_the_start, in_short, without_transient
from rxdelta.relay._store import News
from rxdelta.relay._turns import taken, turns_on
from rxdelta.runtime import loop_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rxdelta.core import Event, RxDeltaError
    from rxdelta.relay._metrics import Tally
    from rxdelta.relay._store import End, Log, Name, Store
    from rxdelta.runtime import Sink

__all__ = ["Reader"]

T = TypeVar("T")

_BEHIND = 50
"""Events. A reader that finds so many new ones gets them in short."""
_A_LOOK = (
    16  # what it costs of a turn to look through some of a log, or to emit an event that stands for so many
)
_ALONE = 256  # what a turn may cost on a clock that isn't a loop's


class Reader(Generic[T]):
    """One subscription's state: it reads the log by position, at its own pace and on its own clock.

    At each moment one thing is under way: a question to the store, the wait for room, or a turn that emits. The store
    answers on the publisher's thread and in its turn, and a reader must not hold that up. So an answer only asks for a turn.
    """

    def __init__(
        self,
        sink: Sink[T],
        name: Name,
        after: str | None,
        split_at: str | None,
        lease: float,
        make: Callable[[str, int, Event], T],
        tally: Tally,
    ) -> None:
        self._sink = sink
        self._name = name
        self._after = after
        self._split_at = split_at
        self._lease = lease
        self._make = make
        self._tally = tally
        self._time = sink.clock()
        loop = loop_of(self._time)
        self._turns = None if loop is None else turns_on(loop)
        self.context = copy_context()
        self._left = 0  # of what the turn may cost
        self._giving_up = sink.timer(self._time)
        self._question = SerialDisposable()
        sink.own(self._question)
        self._answers: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()  # at most one
        self._waits = True  # for an answer
        self._step: Callable[[News], None] | None = None  # what the news that are asked for are for
        self._asleep = deque([True])  # empty while a turn is due: to take the item is atomic
        self._asking: int | None = None  # the thread that is in a call of the store
        self._seeks = deque([True])  # empty once the store has said where the log is: it may do so twice
        self._has_waited = False  # for a lease
        self._log: Any = None
        self._epoch = ""
        self._entries: Iterator[tuple[int, Event] | None] = iter(())  # None: some were looked through
        self._emitted = 0  # the number of the last that was emitted
        self._position = 0  # the number of the last of them
        self._end: End | None = None  # comes behind them

    def begin(self, store: Store) -> None:
        self._tally.reads(readers=1)
        self._sink.own(Disposable(partial(self._tally.reads, readers=-1)))
        if self._sink.session is not None:
            self._sink.own(self._sink.session.backpressure.watch(self._wake))
        self._store = store
        self._find()

    def _find(self) -> None:
        self._waits = True
        self._asking = get_ident()
        # Assigned first, which forgets an earlier question: the store knows both by the same seeker.
        asked = SingleAssignmentDisposable()
        self._question.disposable = asked
        asked.disposable = self._store.find(self._name, self)
        self._asking = None

    def awaits(self) -> None:
        if self._asking == get_ident():
            self._wait()
        else:
            self._time.schedule_relative(0, self._wait_soon)

    def _wait_soon(self, *_: object) -> None:
        self._sink.run(self._wait)

    def _wait(self) -> None:
        if not self._has_waited:
            self._giving_up.start(self._lease, self._give_up)
        elif taken(self._seeks):
            self._answer(self._fail_empty)

    def found(self, log: Log, news: News) -> None:
        if not taken(self._seeks):
            log.leave()
            return
        self._sink.own(Disposable(partial(self._leave, log)))
        self._answer(self._begin_reading, log, news)

    def _leave(self, log: Log) -> None:
        self._forget(log)
        log.leave()

    def failed(self, error: RxDeltaError) -> None:
        if taken(self._seeks):
            self._answer(self._fail, unreadable(error), News((), 0, None))

    def _give_up(self) -> None:
        if self._seeks:
            self._has_waited = True
            self._find()  # again: the news of a stream may be late

    def _fail_empty(self) -> None:
        raise EmptyStreamError(f"there is no stream {quote(self._name.id)}: nobody has published it")

    def _read(self, log: Log, after: int, step: Callable[[News], None]) -> None:
        self._waits, self._step = True, step
        log.read(after, self._take)
        if self._sink.closed:  # by another thread, which may have forgotten it before it was asked
            self._forget(log)

    def _forget(self, log: Log) -> None:
        log.forget(self._take)
        self._step = None  # it holds this reader

    def _take(self, news: News) -> None:
        step = self._step
        if step is not None:
            self._answer(step, news)

    def _answer(self, step: Callable[..., None], *arguments: Any) -> None:
        self._answers.append((step, arguments))
        self._wake()

    def _wake(self) -> None:
        if self._asleep and taken(self._asleep):
            if self._turns is None:
                self._time.schedule_relative(0, self._wake_up)
            else:
                self._turns.add(self)

    def _wake_up(self, *_: object) -> None:
        self.take_turn(_ALONE)

    def take_turn(self, most: int) -> int:
        """Emit for at most this cost, and return the cost: 1 for an event, and more for one that stands for many."""
        self._asleep.append(True)
        self._left = most
        self._sink.run(self._turn)
        return most - self._left

    def _turn(self) -> None:
        if self._answers:
            self._waits = False
            step, arguments = self._answers.popleft()
            step(*arguments)
        if not self._waits:
            self._emit()

    def _begin_reading(self, log: Log, news: News) -> None:
        self._giving_up.stop()
        self._log, self._epoch = log, log.epoch
        known = any(given and given.startswith(log.epoch) for given in (self._after, self._split_at))
        if known and not news.newest and news.end is None:
            # The store was asked before the log had begun, and answers with it. The entry was read elsewhere meanwhile.
            self._read(log, 0, partial(self._begin_reading, log))
            return
        newest = sys.maxsize if known and news.end is not None and news.end.is_cut else news.newest
        after, split_at = (
            None if given is None else number_of(name, given, log.epoch, newest)
            for name, given in (("after", self._after), ("split_at", self._split_at))
        )
        if after is None:
            self._entries = from_the_start(news.events, split_at)
        else:
            self._entries = without_transient(news.events[after:], after + 1)
        self._position, self._end = news.newest, news.end

    def _go_on(self, news: News) -> None:
        entries = enumerate(news.events, self._position + 1)
        is_behind = self._after is None and news.newest - self._position >= _BEHIND
        self._entries = in_short(entries) if is_behind else entries
        self._position, self._end = news.newest, news.end

    def _emit(self) -> None:
        sink, make, epoch, entries = self._sink, self._make, self._epoch, self._entries
        room = None if sink.session is None else sink.session.backpressure
        left, emitted, count = self._left, self._emitted, 0
        try:
            while left > 0:
                if sink.closed or (room is not None and not room.is_ready()):
                    return  # more room wakes us
                try:
                    entry = next(entries)
                except StopIteration:
                    self._read_on()
                    return
                if entry is None:
                    left -= _A_LOOK
                    continue
                number, event = entry
                left -= 1 + (number - emitted) * _A_LOOK // AT_ONCE
                emitted = number
                count += 1
                sink.on_next(make(epoch, number, event))
        finally:
            self._left, self._emitted = left, emitted
            if count:
                self._tally.reads(events=count)
        self._wake()

    def _read_on(self) -> None:
        end, log = self._end, self._log
        if end is None:
            self._read(log, self._position, self._go_on)
        elif end.error is None:
            self._sink.on_completed()
        else:
            error = unreadable(end.error) if end.is_cut else end.error
            self._read(log, 0, partial(self._fail, error))

    def _fail(self, error: RxDeltaError, news: News) -> None:
        self._entries = self._failing(error, news)

    def _failing(self, error: RxDeltaError, news: News) -> Iterator[None]:
        own = yield from with_snapshot(error, news.events, self._sink.limits)
        self._sink.on_error(own)
        yield
