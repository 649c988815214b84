"""A reader of a stream: one subscription of `watch` or `entries`."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex.disposable import SerialDisposable

from rxdelta.core import EmptyStreamError, quote
from rxdelta.relay._failures import with_snapshot
from rxdelta.relay._ids import number_of
from rxdelta.relay._replay import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reactivex import abc

    from rxdelta.core import Event, RxDeltaError
    from rxdelta.relay._store import End, Log, News, Store
    from rxdelta.runtime import Sink

__all__ = ["Reader"]

T = TypeVar("T")

_AT_ONCE = 256  # events, after which other readers and timers have their turn


class Reader(Generic[T]):
    """One subscription's state: it reads the log by position, at its own pace and on its own clock.

    At each moment one thing is under way: a question to the store, the wait for room, or a turn that emits. The store
    answers on the publisher's thread and in its turn, which a reader must not hold up: an answer only starts a timer.
    """

    def __init__(
        self,
        sink: Sink[T],
        stream_id: str,
        after: str | None,
        split_at: str | None,
        lease: float,
        make: Callable[[str, int, Event], T],
    ) -> None:
        self._sink = sink
        self._stream_id = stream_id
        self._after = after
        self._split_at = split_at
        self._lease = lease
        self._make = make
        time = sink.clock()
        self._waking = sink.timer(time)
        self._giving_up = sink.timer(time)
        self._question = SerialDisposable()
        sink.own(self._question)
        self._answers: deque[Callable[[], None]] = deque()  # at most one, which no thread may overwrite
        self._asked = False
        self._log: Any = None  # a `Log`, when it was found
        self._entries: Iterator[tuple[int, Event]] = iter(())
        self._position = 0  # the number of the last of them
        self._end: End | None = None  # comes behind them

    def begin(self, store: Store) -> None:
        if self._sink.session is not None:
            self._sink.own(self._sink.session.backpressure.watch(self._wake))
        self._giving_up.start(self._lease, self._give_up)
        self._ask(partial(store.find, self._stream_id), self._found)

    def _ask(
        self, question: Callable[[Callable[[Any], None]], abc.DisposableBase], then: Callable[[Any], None]
    ) -> None:
        def answer(value: Any) -> None:
            self._answers.append(partial(then, value))
            self._wake()

        self._asked = True
        self._question.disposable = question(answer)

    def _wake(self) -> None:
        self._waking.start(0, self._turn)

    def _turn(self) -> None:
        if self._answers:
            self._asked = False
            self._answers.popleft()()
        if not self._asked:
            self._emit()

    def _give_up(self) -> None:
        if self._log is None and not self._answers:
            raise EmptyStreamError(f"nobody has published the stream {quote(self._stream_id)}")

    def _found(self, log: Log | None) -> None:
        if log is None:
            raise EmptyStreamError(
                f"the relay was closed, and nobody had published the stream {quote(self._stream_id)}"
            )
        self._giving_up.stop()
        self._log = log
        self._ask(log.look, self._begin_reading)

    def _begin_reading(self, news: News) -> None:
        epoch, newest = self._log.epoch, news.newest
        split_at = None if self._split_at is None else number_of("split_at", self._split_at, epoch, newest)
        if self._after is None:
            self._entries = joined(news.events, split_at)
        else:
            after = number_of("after", self._after, epoch, newest)
            self._entries = enumerate(news.events[after:], after + 1)
        self._position, self._end = newest, news.end

    def _go_on(self, news: News) -> None:
        self._entries = enumerate(news.events, self._position + 1)
        self._position, self._end = news.newest, news.end

    def _emit(self) -> None:
        sink, make, epoch = self._sink, self._make, self._log.epoch
        room = None if sink.session is None else sink.session.backpressure
        for _ in range(_AT_ONCE):
            if sink.closed or (room is not None and not room.is_ready()):
                return  # more room wakes us
            entry = next(self._entries, None)
            if entry is None:
                self._read_on()
                return
            sink.on_next(make(epoch, *entry))
        self._wake()

    def _read_on(self) -> None:
        if self._end is None:
            self._ask(partial(self._log.read, self._position), self._go_on)
        elif self._end.error is None:
            self._sink.on_completed()
        else:
            self._ask(self._log.look, partial(self._fail, self._end.error))

    def _fail(self, error: RxDeltaError, news: News) -> None:
        self._sink.on_error(with_snapshot(error, news.events))
