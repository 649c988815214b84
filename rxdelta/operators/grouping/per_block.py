"""A pipeline for each block, merged into one stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reactivex import Observable, compose

from rxdelta.core import Event, InvalidValueError, check_function
from rxdelta.operators.grouping.group_by_block import BlockStream, Grouping
from rxdelta.operators.grouping.streams import split_by
from rxdelta.runtime import Sink, lift, operator_maker, report

R = TypeVar("R")


@operator_maker
def per_block(
    fn: Callable[[BlockStream], Observable[R]],
) -> Callable[[Observable[Event]], Observable[R]]:
    """Map each block's stream to an Observable by `fn`, and merge the results.

    ::

        events  (think:Let)(think: me)The          _tide _is _high             |
                per_block(lambda block: block.pipe(throttle_latest(0.3)))
        blocks  <…>        -          [<Let me><…>]-     -   <The tide is high>[<The tide is high>|]

    `fn` is called at a block's start with its `BlockStream` (see `group_by_block`). The returned pipeline is
    subscribed at once with the subscriber's scheduler, so that it misses nothing. Pipelines may emit on threads
    of their own: emissions are serialised. An observer that raises ends the subscription. Its exception is raised by
    the `for_each` or `async for` that reads the result. Without such a reader, and during an emission of the source, it
    goes once to the running asyncio loop's exception handler, or to the log `rxdelta`.

    Completes when the source and all pipelines have completed.

    Args:
        fn: Maps a block's stream to an Observable.

    Raises:
        InvalidValueError: At once, if `fn` is no function.

    Errors: Only when all pipelines have ended, so that none affects another. First the source's own. Else the error
    of the first pipeline that failed by itself, or of `fn` (further ones are reported like an observer's). Else
    `StreamInterrupted` if the source completed with an open block and the block's pipeline passed that error on. Errors
    of blocks of an abandoned attempt are ignored.

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

    check_function("fn", fn, "a function of a block's stream")

    def begin(sink: Sink[R]) -> _Merging[R]:
        return _Merging(sink, fn)

    return compose(split_by("per_block", Grouping), lift("per_block", begin))


class _Merging(Generic[R]):
    """One subscription's state."""

    def __init__(self, sink: Sink[R], fn: Callable[[BlockStream], Observable[R]]) -> None:
        self.sink = sink
        self._fn = fn
        self._pipelines: dict[_Pipeline[R], None] = {}
        self._source_ended = False
        self._error: Exception | None = None  # of the source
        self._failure: Exception | None = None  # of the first pipeline that failed by itself
        self._cut_error: Exception | None = None  # of a pipeline whose block was cut off

    def on_next(self, block: BlockStream) -> None:
        pipeline = _Pipeline(self, block)
        self._pipelines[pipeline] = None
        try:
            result = self._fn(block)
            if not isinstance(result, Observable):
                raise InvalidValueError.of(
                    [("fn", result, "must return an Observable, such as block.pipe(…)")]
                )
        except Exception as error:
            pipeline.on_error(error)
        else:
            self.sink.subscribe(result, pipeline)

    def on_error(self, error: Exception) -> None:
        self._error = error
        self.on_completed()

    def on_completed(self) -> None:
        self._source_ended = True
        self._end_if_over()

    def pipeline_ended(self, pipeline: _Pipeline[R], error: Exception | None) -> None:
        del self._pipelines[pipeline]
        if error is not None and pipeline.block._failure is None:
            if self._failure is None:
                self._failure = error
            else:
                report(error, f"another pipeline of per_block failed, that of {pipeline.block!r}")
        elif self._cut_error is None and not pipeline.block._given_up:
            self._cut_error = error
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not self._source_ended or self._pipelines:
            return
        error = self._error or self._failure or self._cut_error
        if self._failure is not None and error is not self._failure:
            report(self._failure, "a pipeline of per_block failed before the source did")
        if error is None:
            self.sink.on_completed()
        else:
            self.sink.on_error(error)


class _Pipeline(Generic[R]):
    """One block's pipeline. An error after its block's failure is a consequence of that."""

    def __init__(self, merging: _Merging[R], block: BlockStream) -> None:
        self._merging = merging
        self.block = block
        self.on_next = merging.sink.on_next

    def on_error(self, error: Exception) -> None:
        self._merging.pipeline_ended(self, error)

    def on_completed(self) -> None:
        self._merging.pipeline_ended(self, None)
