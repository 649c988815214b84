"""A reader of a stream: one subscription of `watch` or `entries`."""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex.disposable import Disposable, SerialDisposable, SingleAssignmentDisposable

from rxdelta.core import EmptyStreamError, quote
from rxdelta.relay._failures import unreadable, with_snapshot
from rxdelta.relay._ids import number_of
from rxdelta.relay._replay import from_the_start, without_transient
from rxdelta.relay._store import News

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reactivex import abc

    from rxdelta.core import Event, RxDeltaError
    from rxdelta.relay._store import End, Log, Name, Store
    from rxdelta.runtime import Sink

__all__ = ["Reader"]

T = TypeVar("T")

_AT_ONCE = 256  # events, after which other readers and timers have their turn


class Reader(Generic[T]):
    """One subscription's state: it reads the log by position, at its own pace and on its own clock.

    At each moment one thing is under way: a question to the store, the wait for room, or a turn that emits. The store
    answers on the publisher's thread and in its turn, and a reader must not hold that up. So an answer only starts a timer.
    """

    def __init__(
        self,
        sink: Sink[T],
        name: Name,
        after: str | None,
        split_at: str | None,
        lease: float,
        make: Callable[[str, int, Event], T],
    ) -> None:
        self._sink = sink
        self._name = name
        self._after = after
        self._split_at = split_at
        self._lease = lease
        self._make = make
        self._time = sink.clock()
        self._giving_up = sink.timer(self._time)
        self._question = SerialDisposable()
        sink.own(self._question)
        self._answers: deque[Callable[[], None]] = deque()  # at most one
        self._waits = True  # for an answer
        self._asleep = deque([True])  # empty while a turn is due: to take the item is atomic
        self._asking: int | None = None  # the thread that is in a call of the store
        self._seeks = deque([True])  # empty once the store has said where the log is: it may do so twice
        self._has_waited = False  # for a lease
        self._log: Any = None
        self._entries: Iterator[tuple[int, Event] | None] = iter(())  # None: others have their turn
        self._position = 0  # the number of the last of them
        self._end: End | None = None  # comes behind them

    def begin(self, store: Store) -> None:
        if self._sink.session is not None:
            self._sink.own(self._sink.session.backpressure.watch(self._wake))
        self._store = store
        self._find()

    def _find(self) -> None:
        self._asking = get_ident()
        self._ask(lambda: self._store.find(self._name, self))
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
        elif _taken(self._seeks):
            self._answer(self._fail_empty)

    def found(self, log: Log, news: News) -> None:
        if not _taken(self._seeks):
            log.leave()
            return
        self._sink.own(Disposable(log.leave))
        self._answer(self._begin_reading, log, news)

    def failed(self, error: RxDeltaError) -> None:
        if _taken(self._seeks):
            self._answer(self._fail, unreadable(error), News((), 0, None))

    def _give_up(self) -> None:
        if self._seeks:
            self._has_waited = True
            self._find()  # again: the news of a stream may be late

    def _fail_empty(self) -> None:
        raise EmptyStreamError(f"there is no stream {quote(self._name.id)}: nobody has published it")

    def _ask(self, question: Callable[[], abc.DisposableBase]) -> None:
        self._waits = True
        # Assigned first: another thread may answer, and the reader's may ask the next question, before `question` returns.
        asked = SingleAssignmentDisposable()
        self._question.disposable = asked
        asked.disposable = question()

    def _answer(self, step: Callable[..., None], *arguments: Any) -> None:
        self._answers.append(partial(step, *arguments))
        self._wake()

    def _wake(self) -> None:
        if _taken(self._asleep):
            self._time.schedule_relative(0, self._wake_up)

    def _wake_up(self, *_: object) -> None:
        self._asleep.append(True)
        self._sink.run(self._turn)

    def _turn(self) -> None:
        if self._answers:
            self._waits = False
            self._answers.popleft()()
        if not self._waits:
            self._emit()

    def _begin_reading(self, log: Log, news: News) -> None:
        self._giving_up.stop()
        self._log = log
        known = any(given and given.startswith(log.epoch) for given in (self._after, self._split_at))
        if known and not news.newest and news.end is None:
            # The store was asked before the log had begun, and answers with it. The entry was read elsewhere meanwhile.
            self._ask(lambda: log.read(0, partial(self._answer, self._begin_reading, log)))
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
        self._entries = enumerate(news.events, self._position + 1)
        self._position, self._end = news.newest, news.end

    def _emit(self) -> None:
        sink, make = self._sink, self._make
        room = None if sink.session is None else sink.session.backpressure
        for _ in range(_AT_ONCE):
            if sink.closed or (room is not None and not room.is_ready()):
                return  # more room wakes us
            try:
                entry = next(self._entries)
            except StopIteration:
                self._read_on()
                return
            if entry is None:
                break
            sink.on_next(make(self._log.epoch, *entry))
        self._wake()

    def _read_on(self) -> None:
        end, log = self._end, self._log
        if end is None:
            self._ask(lambda: log.read(self._position, partial(self._answer, self._go_on)))
        elif end.error is None:
            self._sink.on_completed()
        else:
            error = unreadable(end.error) if end.is_cut else end.error
            failed = partial(self._answer, self._fail, error)
            self._ask(lambda: log.read(0, failed))

    def _fail(self, error: RxDeltaError, news: News) -> None:
        self._entries = self._failing(error, news)

    def _failing(self, error: RxDeltaError, news: News) -> Iterator[None]:
        own = yield from with_snapshot(error, news.events, self._sink.limits)
        self._sink.on_error(own)
        yield


def _taken(ticket: deque[bool]) -> bool:
    try:
        return ticket.pop()
    except IndexError:
        return False
