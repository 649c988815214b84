"""A pipeline for each block, merged into one stream."""

from __future__ import annotations

from collections import deque
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SingleAssignmentDisposable

from rxdelta.core import DEFAULT_LIMITS, Event, InvalidValueError, Limits
from rxdelta.operators.grouping.group_by_block import BlockStream, group_by_block
from rxdelta.runtime import report

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["per_block"]

R = TypeVar("R")


def per_block(
    fn: Callable[[BlockStream], Observable[R]], *, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[R]]:
    """Map each block's stream to an Observable by `fn`, and merge the results.

    `fn` is called at a block's start with its `BlockStream` (see `group_by_block`). The returned pipeline is
    subscribed at once with the subscriber's scheduler, so that it misses nothing. Pipelines may emit on threads
    of their own: emissions are serialised. An observer that raises ends the pipeline that emitted. Its exception is
    raised by the `for_each` or `async for` that reads the result. Without such a reader, and during an emission of the
    source, it goes once to the running asyncio loop's exception handler, or to the log `rxdelta`.

    Completes when the source and all pipelines have completed.

    Args:
        fn: Maps a block's stream to an Observable.
        limits: The most that the stream may make us hold.

    Errors: Only when all pipelines have ended, so that none affects another. First the source's own. Else the error
    of the first pipeline that failed by itself, or of `fn` (further ones are reported like an observer's). Else
    `StreamInterrupted` if the source completed with an open block and the block's pipeline passed that error on. The
    error of a block whose attempt was given up doesn't count.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> ev = rd.events
        >>> events = rx.of(ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi"), ev.BlockFinish(0))
        >>> paced = events.pipe(rd.per_block(lambda block: block.pipe(rd.throttle_latest(0.05))))
        >>> paced.subscribe(lambda part: print(part.text)).dispose()
        None
        Hi
    """

    def apply(source: Observable[Event]) -> Observable[R]:
        blocks = source.pipe(group_by_block(limits=limits))

        def subscribe(
            observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            merging = _Merging(observer, fn, scheduler)
            upstream = SingleAssignmentDisposable()
            everything = CompositeDisposable(upstream, Disposable(merging.stop))
            upstream.disposable = blocks.subscribe(
                merging.on_next, merging.on_error, merging.on_completed, scheduler=scheduler
            )
            return everything

        return Observable(subscribe)

    return apply


class _Merging(Generic[R]):
    """One subscription's state. All notifications are queued and run by one thread at a time."""

    def __init__(
        self,
        observer: abc.ObserverBase[R],
        fn: Callable[[BlockStream], Observable[R]],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self._observer = observer
        self._fn = fn
        self._scheduler = scheduler
        self._pipelines: dict[_Pipeline[R], None] = {}
        self._stopped = False
        self._source_ended = False
        self._error: Exception | None = None  # of the source
        self._failure: Exception | None = None  # of the first pipeline that failed by itself
        self._cut_error: Exception | None = None  # of a pipeline whose block was cut off
        self._queue: deque[Callable[[], None]] = deque()
        self._turn = Lock()

    def stop(self) -> None:
        self._stopped = True
        for pipeline in list(self._pipelines):
            pipeline.subscription.dispose()
        self._pipelines.clear()

    def on_next(self, block: BlockStream) -> None:
        if self._stopped:
            return
        pipeline = _Pipeline(self, block)
        self._pipelines[pipeline] = None
        try:
            result = self._fn(block)
            if not isinstance(result, Observable):
                raise InvalidValueError.of([("fn", result, "must return an Observable")])
        except Exception as error:
            pipeline.on_error(error)
            return
        pipeline.subscription.disposable = result.subscribe(
            pipeline.on_next, pipeline.on_error, pipeline.on_completed, scheduler=self._scheduler
        )

    def on_error(self, error: Exception) -> None:
        self.run_in_turn(partial(self._end_source, error))

    def on_completed(self) -> None:
        self.run_in_turn(partial(self._end_source, None))

    def run_in_turn(self, step: Callable[[], None]) -> None:
        """Run the step now, or leave it to the running call: on another thread, or further up the stack."""
        self._queue.append(step)
        raised: Exception | None = None
        while self._queue and self._turn.acquire(blocking=False):
            try:
                while self._queue:
                    try:
                        self._queue.popleft()()
                    except Exception as error:
                        if raised is not None:
                            report(error, "an observer of per_block raised again")
                        raised = raised or error
            finally:
                self._turn.release()
        if raised is not None:
            raise raised

    def emit(self, pipeline: _Pipeline[R], value: R) -> None:
        try:
            self._observer.on_next(value)
        except BaseException:
            pipeline.subscription.dispose()
            self.pipeline_ended(pipeline, None, cut=False)
            raise

    def pipeline_ended(self, pipeline: _Pipeline[R], error: Exception | None, cut: bool) -> None:
        if pipeline not in self._pipelines:
            return
        del self._pipelines[pipeline]
        if error is not None and not cut:
            if self._failure is None:
                self._failure = error
            else:
                report(error, f"another pipeline of per_block failed, that of {pipeline.block!r}")
        elif error is not None and self._cut_error is None and not pipeline.block._given_up:
            self._cut_error = error
        self._end_if_over()

    def _end_source(self, error: Exception | None) -> None:
        self._source_ended = True
        self._error = error
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not self._source_ended or self._pipelines or self._stopped:
            return
        self._stopped = True
        error = self._error or self._failure or self._cut_error
        if self._failure is not None and error is not self._failure:
            report(self._failure, "a pipeline of per_block failed before the source did")
        if error is None:
            self._observer.on_completed()
        else:
            self._observer.on_error(error)


class _Pipeline(Generic[R]):
    """One block's pipeline."""

    def __init__(self, merging: _Merging[R], block: BlockStream) -> None:
        self._merging = merging
        self.block = block
        self.subscription = SingleAssignmentDisposable()

    def on_next(self, value: R) -> None:
        self._merging.run_in_turn(partial(self._merging.emit, self, value))

    def on_error(self, error: Exception) -> None:
        cut = self.block._failure is not None  # a pipeline's error after its block's failure is a consequence
        self._merging.run_in_turn(partial(self._merging.pipeline_ended, self, error, cut))

    def on_completed(self) -> None:
        self._merging.run_in_turn(partial(self._merging.pipeline_ended, self, None, cut=False))
