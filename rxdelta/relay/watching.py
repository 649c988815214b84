"""A reader of a stream: one subscription of `watch` or `entries`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from reactivex.disposable import Disposable, SerialDisposable

from rxdelta.core import EmptyStreamError, Event, RxDeltaError, quote
from rxdelta.relay.replay import (
    AT_ONCE,
    from_the_start,
    in_short,
    unreadable,
    with_snapshot,
    without_transient,
)
from rxdelta.relay.scope import number_of
from rxdelta.relay.turns import TakesTurns

if TYPE_CHECKING:
    from rxdelta.relay.logs import Log, Logs, Name, News
    from rxdelta.relay.metrics import Tally
    from rxdelta.runtime import Sink


T = TypeVar("T")

_BEHIND = 50
"""Events. A reader that finds so many new ones gets them in short."""
_A_LOOK = 16
"""What it costs of a turn to look through some of a log, or to emit an event that stands for so many."""


class Reader(TakesTurns[T]):
    """One subscription's state: it reads the log by position, at its own pace and on its own clock.

    `_read_stream` is all that it does, from top to bottom. A `yield` in it ends a turn, and the next turn continues from there.
    A turn may have another reason, such as a reader that is ready again: so it looks whether its own news is there.

    The store answers on the publisher's thread and in its turn, and a reader must not hold that up. So an answer is put down,
    and wakes the reader.
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
        super().__init__(sink, shares=True)
        self._name = name
        self._given = {"after": after, "split_at": split_at}
        self._lease = lease
        self._make = make
        self._tally = tally
        self._giving_up = sink.timer(self._time)
        self._has_waited = False  # for a lease
        self._question = SerialDisposable()
        sink.own(self._question)
        self._found: list[tuple[Log, News] | RxDeltaError] = []  # the first counts: a store may answer twice
        self._news: News | None = None
        self._epoch = ""
        self._emitted = 0  # the number of the last event that was emitted
        self._stream: Iterator[None] = self._read_stream()

    def begin(self, store: Logs) -> None:
        self._tally.reads(readers=1)
        self._sink.own(Disposable(self._close))
        if self._sink.session is not None:
            self._sink.own(self._sink.session.backpressure.watch(self._wake))
        self._store = store
        self._find()

    def _turn(self) -> None:
        next(self._stream, None)

    def _close(self) -> None:
        self._tally.reads(readers=-1)
        self._stream = iter(())  # it holds this reader

    def _read_stream(self) -> Generator[None]:
        while not self._found:
            yield
        found = self._found[0]
        if isinstance(found, RxDeltaError):
            yield from self._fail(found, ())
            return
        self._giving_up.stop()

        log, news = found
        self._epoch = log.epoch
        is_known = any(given and given.startswith(log.epoch) for given in self._given.values())
        if is_known and not news.newest and news.end is None:
            # The store was asked before the log had begun, and answers with it. The entry was read elsewhere meanwhile.
            news = yield from self._read(log, 0)
        # A log that is cut here may lack the event of a right id: the reader gets the log's error, none about its id.
        newest = sys.maxsize if is_known and news.end is not None and news.end.is_cut else news.newest
        after, split_at = (
            None if given is None else number_of(name, given, log.epoch, newest)
            for name, given in self._given.items()
        )
        if after is None:
            entries = from_the_start(news.events, split_at)
        else:
            entries = without_transient(news.events[after:], after + 1)
        while not self._emit(entries):
            yield
        while news.end is None:
            last = news.newest
            news = yield from self._read(log, last)
            entries = enumerate(news.events, last + 1)
            # A reader after an id continues a list of its own, and may count: it gets events as they were published.
            if after is None and news.newest - last >= _BEHIND:
                entries = in_short(entries)
            while not self._emit(entries):
                yield

        if news.end.error is None:
            self._sink.on_completed()
        else:
            error = unreadable(news.end.error) if news.end.is_cut else news.end.error
            # The error's snapshot folds the whole log: this reader may have begun in the middle.
            whole = yield from self._read(log, 0)
            yield from self._fail(error, whole.events)

    # Where the log is: what the store calls, on any thread.

    def _find(self) -> None:
        # An earlier question is forgotten first: the store knows both by the same seeker.
        self._question.disposable = Disposable()
        self._question.disposable = self._store.find(self._name, self)

    def awaits(self) -> None:
        if not self._has_waited:
            self._giving_up.start(self._lease, self._find_again)
        else:
            why = f"there is no stream {quote(self._name.id)}: nobody has published it"
            self._answer(EmptyStreamError(why))

    def _find_again(self) -> None:
        self._has_waited = True
        self._find()  # the news of a stream may be late

    def found(self, log: Log, news: News) -> None:
        self._sink.own(Disposable(partial(self._leave, log)))
        self._answer((log, news))

    def _leave(self, log: Log) -> None:
        log.forget(self._take)
        log.leave()

    def failed(self, error: RxDeltaError) -> None:
        self._answer(unreadable(error))

    def _answer(self, found: tuple[Log, News] | RxDeltaError) -> None:
        self._found.append(found)
        self._wake()

    # What the log has.

    def _read(self, log: Log, after: int) -> Generator[None, None, News]:
        self._news = None
        log.read(after, self._take)
        if self._sink.closed:  # by another thread, which may have forgotten it before it was asked
            log.forget(self._take)
        yield  # an answer in the call waits for its turn, too
        while self._news is None:
            yield
        return self._news

    def _take(self, news: News) -> None:
        self._news = news
        self._wake()

    # What the reader gets.

    def _emit(self, entries: Iterator[tuple[int, Event] | None]) -> bool:
        """Emit as much as the turn allows and the reader takes, and return whether that was all.

        Args:
            entries: The entries that are left. `None` stands for some that were looked through.
        """
        sink, make, epoch = self._sink, self._make, self._epoch
        backpressure = None if sink.session is None else sink.session.backpressure
        left, emitted, count = self._left, self._emitted, 0
        try:
            while left > 0:
                if sink.closed or (backpressure is not None and not backpressure.is_ready()):
                    return False  # a reader that is ready again wakes us
                try:
                    entry = next(entries)
                except StopIteration:
                    return True
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
        return False

    def _fail(self, error: RxDeltaError, events: Sequence[Event]) -> Generator[None]:
        """End with this reader's own copy of an error, which has the fold of these events."""

        def end() -> Generator[None]:
            self._sink.on_error((yield from with_snapshot(error, events, self._sink.limits)))

        ending = end()
        while not self._emit(ending):
            yield
