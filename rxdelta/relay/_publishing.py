"""The publisher of a stream: one subscription of `publish`."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from reactivex.disposable import Disposable

from rxdelta.core import Event, InvalidValueError, LimitExceededError, quote
from rxdelta.core.events import EVENT_TYPES, MessageInterrupted
from rxdelta.relay._failures import for_readers
from rxdelta.relay._store import End
from rxdelta.runtime import report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

    from rxdelta.relay._store import Store, Writer
    from rxdelta.runtime import Sink

__all__ = ["Publication"]

_LEFT = "publisher left"


class Publication:
    """One subscription's state. Notifications of the source are turns; a stop may come on any thread.

    The source, a stop, or the subscriber that leaves: the first of them ends the log. What the source emits after that is
    neither written nor emitted.

    Args:
        began: Called with whether the name was free. If it was taken, the subscription completes without an error.
    """

    def __init__(
        self,
        sink: Sink[Event],
        source: Observable[Event],
        stream_id: str,
        max_events: int,
        began: Callable[[bool], None] | None = None,
    ) -> None:
        self._sink = sink
        self._source = source
        self._stream_id = stream_id
        self._max_events = max_events
        self._began = began
        self._writer: Writer | None = None
        self._count = 0
        self._lock = Lock()
        self._is_over = False
        self._early: Callable[[Writer], None] | None = None  # an end before the claim was answered

    def begin(self, store: Store) -> None:
        store.claim(self._stream_id, self)

    def refused(self, why: str, *, taken: bool) -> None:
        self._is_over = True
        if taken and self._began is not None:
            self._began(False)
            self._sink.on_completed()
            return
        refusal = f"the stream {quote(self._stream_id)} can't be published: {why}"
        self._sink.on_error(InvalidValueError(refusal, field="stream_id", value=self._stream_id))

    def claimed(self, writer: Writer) -> None:
        with self._lock:
            self._writer = writer
        if self._began is not None:
            self._began(True)
        if self._early is not None:
            self._early(writer)
            return
        self._sink.own(Disposable(self.leave))
        self._sink.subscribe(self._source, self)

    def on_next(self, event: Event) -> None:
        if type(event) not in EVENT_TYPES:
            raise self._sink.refusal(event)
        if self._count >= self._max_events:
            raise _too_long(self._max_events)
        self._count += 1
        if self._writer is not None:
            self._writer.append((event,))

    def written(self, events: Sequence[Event]) -> None:
        for event in events:
            self._sink.on_next(event)

    def on_error(self, error: Exception) -> None:
        self._end((), End(for_readers(error)), partial(self._sink.turn, self._sink.on_error, error))

    def on_completed(self) -> None:
        self._end((), End(), partial(self._sink.turn, self._sink.on_completed))

    def tell(self, reason: str | None) -> bool:
        last = MessageInterrupted(reason)

        def emit() -> None:
            self._sink.on_next(last)
            self._sink.on_completed()

        return self._end((last,), End(), partial(self._sink.run, emit))

    def leave(self) -> None:
        self._end((MessageInterrupted(_LEFT),), End(), lambda: None)

    def _end(self, last: Sequence[Event], end: End, then: Callable[[], None]) -> bool:
        with self._lock:
            first, self._is_over = not self._is_over, True
            writer = self._writer
            if first and writer is None:
                self._early = lambda writer: writer.end(last, end, then)
        if first and writer is not None:
            failed = self._close_source()
            writer.end(last, end, then)
            if failed is not None:
                report(
                    failed,
                    f"the source of the stream {self._stream_id!r} could not be closed",
                    self._sink.session,
                )
        return first

    def _close_source(self) -> Exception | None:
        """Dispose the source, and return the error of one that can't be closed. The log ends all the same."""
        try:
            self._sink.dispose_source()
        except Exception as error:
            return error
        return None


def _too_long(max_events: int) -> LimitExceededError:
    return LimitExceededError(
        f"the stream has more than {max_events:,} events; Relay.open(max_events=…) says how many a relay keeps",
        limit="max_events",
        maximum=max_events,
    )
