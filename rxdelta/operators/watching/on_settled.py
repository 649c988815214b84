"""A function that is called once, at any end of a stream."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs
from reactivex.disposable import Disposable

from rxdelta.core import check_function
from rxdelta.operators.watching.reply_so_far import ReplySoFar
from rxdelta.operators.watching.side_call import SideCall
from rxdelta.runtime import lift, operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

    from rxdelta.core import Snapshot
    from rxdelta.runtime import Sink

__all__ = ["StreamOutcome", "on_settled"]

T = TypeVar("T")


@attrs.frozen
class StreamOutcome:
    """How a stream ended.

    Attributes:
        kind: `completed`, `failed`, or `disposed` by its reader.
        error: The error of a failed stream.
    """

    kind: Literal["completed", "failed", "disposed"]
    error: Exception | None = None


@operator_maker
def on_settled(
    fn: Callable[[Snapshot | None, StreamOutcome], object],
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values; `fn` is called once, at the stream's end, not at that of each tool or block.

    ::

        events   The _tide-#
                 on_settled(store)
        events   The _tide-#
        store()  -   -    -<failed>

    `fn` gets the last snapshot and a `StreamOutcome`. It is called exactly once for each subscription:
    before the source's completion or error is passed on, after the
    subscription and the source were disposed, or when an observer raises, which ends the subscription. So it is the
    place to store a reply, whether it is complete, cut off, or disposed by its reader.

    In a stream of snapshots `fn` gets the last one; in a stream of events, their fold (the last message of a
    conversation); in any other stream, `None`.

    `fn` may be a coroutine function: it then runs as a task on the loop that was running at the subscription,
    and isn't awaited. A loop that is shutting down may cancel the task; a plain function always runs to its end. An
    exception of `fn` goes to that loop's exception handler, or without a loop to the log `rxdelta`, never to the
    observer.

    Completes with the source.

    Args:
        fn: Called with the last snapshot, or `None` without one, and a `StreamOutcome`.

    Raises:
        InvalidValueError: At once, if `fn` can't be called.

    Errors: The source's own.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = rx.of(rd.MessageDelta(content="Hel"), rd.MessageDelta(content="lo"))
        >>> def store(snapshot, outcome):
        ...     print(outcome.kind, snapshot.text)
        >>> pieces.pipe(rd.scan_deltas(), rd.on_settled(store)).subscribe().dispose()
        completed Hello
    """
    check_function("fn", fn, "a function of a snapshot and an outcome")

    return lift("on_settled", lambda sink: _Settling(sink, fn), serial=False, emits="same")


class _Settling(Generic[T]):
    """One subscription's state. It may be disposed from another thread than the source's."""

    def __init__(self, sink: Sink[T], fn: Callable[[Snapshot | None, StreamOutcome], object]) -> None:
        self._sink = sink
        self._fn = SideCall(fn, "on_settled")
        self._reply = ReplySoFar(sink)
        self._lock = Lock()
        self._settled = False
        sink.own(Disposable(self._disposed))

    def on_next(self, value: T) -> None:
        if not self._reply.keeps(value):
            self._reply.note(value)
        self._sink.on_next(value)

    def on_error(self, error: Exception) -> None:
        self._sink.effect(self._fail, error)

    def on_completed(self) -> None:
        self._sink.effect(self._complete)

    def _fail(self, error: Exception) -> None:
        self._settle(StreamOutcome("failed", error))
        self._sink.on_error(error)

    def _complete(self) -> None:
        self._settle(StreamOutcome("completed"))
        self._sink.on_completed()

    def _disposed(self) -> None:
        self._settle(outcome_of_leaving(self._sink))

    def _settle(self, outcome: StreamOutcome) -> None:
        with self._lock:
            if self._settled:
                return
            self._settled = True
        self._fn(self._reply.snapshot, outcome)


def outcome_of_leaving(sink: Sink[Any]) -> StreamOutcome:
    """The outcome for a reader that has left: it disposed, or its observer raised."""
    return (
        StreamOutcome("failed", sink.raised)
        if isinstance(sink.raised, Exception)
        else StreamOutcome("disposed")
    )
