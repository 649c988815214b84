"""A function that is called once, at any end of a stream, and can't affect the stream."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs
from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError, Snapshot, check_function
from rxdelta.operators.watching.reply_so_far import ReplySoFar
from rxdelta.runtime import Sink, is_interrupt, lift, operator_maker, report, running_loop

if TYPE_CHECKING:
    from reactivex import Observable


T = TypeVar("T")


_tasks: set[asyncio.Task[None]] = set()  # the loop itself holds its tasks only weakly


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

    return lift("on_settled", lambda sink: _Calling(sink, fn), serial=False, emits="same")


class Settling(Generic[T]):
    """The state of one subscription, which the first end of the stream settles. It may be disposed from another thread than the source's."""

    def __init__(self, sink: Sink[T]) -> None:
        self._sink = sink
        self._lock = Lock()
        self._is_settled = False
        sink.own(Disposable(self._disposed))

    def _settled(self, outcome: StreamOutcome) -> None:
        """Called before the end is passed on."""
        raise NotImplementedError

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
        """The observer has left: by disposing the subscription, or by an exception."""
        raised = self._sink.raised
        self._settle(
            StreamOutcome("failed", raised) if isinstance(raised, Exception) else StreamOutcome("disposed")
        )

    def _settle(self, outcome: StreamOutcome) -> None:
        with self._lock:
            if self._is_settled:
                return
            self._is_settled = True
        self._settled(outcome)


class _Calling(Settling[T]):
    def __init__(self, sink: Sink[T], fn: Callable[[Snapshot | None, StreamOutcome], object]) -> None:
        self._fn = SideCall(fn, "on_settled")
        self._reply = ReplySoFar(sink)
        super().__init__(sink)

    def on_next(self, value: T) -> None:
        if not self._reply.keeps(value):
            self._reply.note(value)
        self._sink.on_next(value)

    def _settled(self, outcome: StreamOutcome) -> None:
        self._fn(self._reply.snapshot, outcome)


class SideCall:
    """A function, or a coroutine function, which runs as a task on the loop that was running at the subscription.

    Its exceptions go to that loop's exception handler, or without a loop to the log.
    """

    def __init__(self, fn: Callable[..., object], operator: str) -> None:
        self._fn = fn
        self._raised = f"the function given to {operator} raised"
        self._loop = running_loop()

    def __call__(self, *arguments: object) -> None:
        try:
            done = self._fn(*arguments)
            if inspect.isawaitable(done):
                self._await(done)
        except BaseException as error:
            self._report(error)

    def _await(self, done: Any) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            if inspect.iscoroutine(done):
                done.close()
            raise InvalidValueError(
                "an async function needs a running asyncio loop at the subscription", field="fn"
            )
        if running_loop() is loop:
            self._start(loop, done)
        else:
            loop.call_soon_threadsafe(self._start, loop, done)

    def _start(self, loop: asyncio.AbstractEventLoop, done: Any) -> None:
        task = loop.create_task(self._finish(done))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    async def _finish(self, done: Any) -> None:
        try:
            await done
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._report(error)

    def _report(self, error: BaseException) -> None:
        if is_interrupt(error):
            raise error
        report(error, self._raised)
