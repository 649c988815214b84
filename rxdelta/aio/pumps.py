"""An SDK's stream, or any async iterable, as an Observable: a task pumps its items.

A reader that leaves cancels the source's current await. That is right while the source waits for a chunk, and wrong
inside a `finally`: the rest of the block would be skipped, and a connection might never be returned. A coroutine
has no attribute for this, so the suspended frames are examined, at the moment of leaving only. Where Python can't
show the frames (no source text, a coroutine of a C extension) the source counts as waiting for a chunk.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError, StreamInterrupted, as_exception
from rxdelta.runtime import (
    Journal,
    Session,
    SourceObservable,
    Taker,
    call_on,
    is_interrupt,
    journal_of,
    journaling,
    needed_loop,
    report,
    session_of,
)

if TYPE_CHECKING:
    from types import CodeType, FrameType

T = TypeVar("T")
Source: TypeAlias = AsyncIterable[T] | Awaitable[AsyncIterable[T]]

_YIELD_EVERY = 64  # items after which a source that is always ready lets the loop's timers run
_CHECK_SECONDS = 0.01  # between two checks of a source that was left while it was closing by itself
_running: set[asyncio.Task[None]] = set()  # the loop itself holds its tasks only weakly


def from_async_iterable(source: Source[T] | Callable[[], Source[T]]) -> Observable[T]:
    """Emit the items of an async iterable as they arrive.

    Subscribing starts a task on the running loop, in the subscriber's context. Disposing, from any thread,
    cancels the task and closes the iterable (by its `aclose()` or `close()`, or that of its `response`). An iterable
    that is closing by itself at that moment, in a `finally` of its own, is not cancelled. An observer that raises
    closes the iterable too. Its exception is raised by the `for_each` or `async for` that reads the pipeline; without
    such a reader it goes to the loop's exception handler.

    Completes with the iterable. The iterable's exception is passed on unchanged, with its traceback.

    Args:
        source: An async iterable; an awaitable of one, such as an SDK's `create(stream=True)`; or a function
            that returns either. With a function every subscription makes its own request. Without one, a source
            that can be iterated once can be subscribed once.

    Errors: The iterable's own. `InvalidValueError` for any other `source`, for a second subscription to a one-shot
    source, and without a running asyncio loop. `StreamInterrupted` when other code cancels the task or something
    that the source awaits, and when the iterable raises an exception that is no `Exception`.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> async def chunks():
        ...     yield {"n": 1}
        >>> asyncio.run(rd.last_value(rd.from_async_iterable(chunks)))
        {'n': 1}
    """
    used = False

    def begin(observer: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        nonlocal used
        loop = needed_loop("from_async_iterable", "subscribe inside a coroutine, e.g. with for_each()")
        if used and _is_one_shot(source):
            raise InvalidValueError(
                "this source has been subscribed before and gives its items once; pass a function that makes "
                "one, e.g. from_async_iterable(lambda: client.create(…)), or share the pipeline",
                field="source",
                value=source,
            )
        used = True
        pump = TaskPump(
            observer, source, loop, session_of(scheduler), journal_of(scheduler), "from_async_iterable"
        )
        return Disposable(pump.stop)

    return SourceObservable("rd.from_async_iterable(…)", begin)


def _is_iterable(source: object) -> bool:
    return hasattr(source, "__aiter__") and not isinstance(source, type)


def _is_one_shot(source: object) -> bool:
    if _is_iterable(source):
        return hasattr(source, "__anext__") or closer(source) is not None
    return inspect.isawaitable(source)


def closer(iterable: object, *, names: Sequence[str] = ("aclose", "close")) -> Callable[[], object] | None:
    """Return the method that closes the iterable, its own or its `response`'s, or `None`."""
    for owner in (iterable, getattr(iterable, "response", None)):
        for name in names:
            close: Callable[[], object] | None = getattr(owner, name, None)
            if callable(close):
                return close
    return None


class TaskPump(Generic[T]):
    """One subscription: a task that takes items out of the iterable and emits them."""

    def __init__(
        self,
        observer: Taker[T],
        source: Any,
        loop: asyncio.AbstractEventLoop,
        session: Session | None,
        journal: Journal | None,
        maker: str,
    ) -> None:
        self._observer = observer
        self._source = source
        self._loop = loop
        self._session = session
        self._maker = maker  # the function that made the source, for messages
        self._begun = False
        self._awaited: object = None  # a cancellation may interrupt this await
        self._check_timer: asyncio.TimerHandle | None = None  # for a source that is closing by itself
        self._opened: list[Any] = []  # to be closed in reverse order
        self.stopped = False
        with journaling(journal):
            self.task = loop.create_task(self._run())
        _running.add(self.task)
        self.task.add_done_callback(self._ended)
        if self._session is not None:
            self._session.register(self)

    def stop(self) -> None:
        """Stop the task. May be called on any thread, during our own `on_next`, and more than once."""
        self.stopped = True
        call_on(self._loop, self._cancel)  # a loop that is closed has ended the task

    def _cancel(self) -> None:
        # Outside of such an await the task sees `stopped` by itself, and its closing must not be cancelled.
        # Neither must a source that is closing by itself. It may await the next chunk afterwards, so check again.
        if self._awaited is None:
            return
        if is_finishing(self._awaited):
            self._check_again()
            return
        self._awaited = None
        self.task.cancel()

    def _check_again(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
        self._check_timer = self._loop.call_later(_CHECK_SECONDS, self._cancel)

    async def _run(self) -> None:
        self._begun = True
        try:
            await self._pass_on(await self._open())
        except asyncio.CancelledError as cancelled:
            if self.stopped:
                self.task.uncancel()  # the cancellation is our own: close the source and end normally
            else:
                self._interrupt(cancelled)
                raise
        except BaseException as error:
            self._end(self._observer.on_error, as_exception(error))
            if is_interrupt(error):
                raise
        finally:
            await self._close()

    async def _open(self) -> Any:
        source = self._source
        if not _is_iterable(source) and callable(source):
            if self.stopped:
                return None
            source = source()
        if not _is_iterable(source) and inspect.isawaitable(source):
            if self.stopped:
                self._abandon(source)
                return None
            try:
                source = await self._breakable(source)
            except asyncio.CancelledError:
                self._abandon(source)
                raise
        self._opened.append(source)
        if not _is_iterable(source):
            wanted = "must be an async iterable, an awaitable of one, or a function that gives either"
            raise InvalidValueError.of(
                [("source", source, f"{wanted}; from_iterable() reads a sync client's stream")]
            )
        return source

    def _abandon(self, awaitable: Any) -> None:
        """Close an awaitable unawaited: without Python's warning, and without leaving a request open."""
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        elif asyncio.isfuture(awaitable) and not awaitable.cancel():  # already done
            with suppress(asyncio.CancelledError, Exception):
                self._opened.append(awaitable.result())

    async def _pass_on(self, iterable: AsyncIterable[T]) -> None:
        if self.stopped:
            return
        items = aiter(iterable)
        if items is not iterable:
            self._opened.append(items)
        count, on_next = 0, self._observer.on_next
        backpressure = None if self._session is None else self._session.backpressure
        while not self.stopped:
            try:  # as `_breakable` and `_notify`, which would cost two calls for each item
                self._awaited = awaited = anext(items)
                item = await awaited
            except StopAsyncIteration:
                self._awaited = None
                self._end(self._observer.on_completed)
                return
            finally:
                self._awaited = None
            if self.stopped:
                return
            try:
                on_next(item)
            except BaseException as error:
                self.raised(error)
                return
            count += 1
            if count % _YIELD_EVERY == 0:
                await self._breakable(asyncio.sleep(0))
            if backpressure is not None and not backpressure.is_ready():
                await self._breakable(backpressure.wait())

    async def _breakable(self, awaitable: Awaitable[Any]) -> Any:
        self._awaited = awaitable
        try:
            return await awaitable
        finally:
            self._awaited = None

    def _interrupt(self, cancelled: BaseException | None) -> None:
        error = StreamInterrupted("the task that reads the source, or one that it waits for, was cancelled")
        error.__cause__ = cancelled
        self._end(self._observer.on_error, error)

    def _end(self, notify: Callable[..., object], *arguments: object) -> None:
        if not self.stopped:
            self.stopped = True
            self._notify(notify, *arguments)

    def _notify(self, notify: Callable[..., object], *arguments: object) -> None:
        """Notify the observer. If it raises, stop and report the exception, since no caller would do so."""
        try:
            notify(*arguments)
        except BaseException as error:
            self.raised(error, *arguments)

    def raised(self, error: BaseException, *arguments: object) -> None:
        """Stop, because the observer has raised."""
        self.stopped = True
        # Our own interruption, which an observer without `on_error` raises while the loop shuts down.
        unheard = self.task.cancelling() and error in arguments
        if not unheard:
            report(error, f"an observer of {self._maker} raised; its source was closed", self._session)
        if is_interrupt(error):
            raise error

    async def _close(self) -> None:
        while self._opened:
            close = closer(self._opened.pop())
            if close is None:
                continue
            try:
                closing = close()
                if inspect.isawaitable(closing):
                    await closing
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) or is_interrupt(error):
                    await self._close()
                    raise
                report(error, f"closing the source of {self._maker} failed")

    def _ended(self, task: asyncio.Task[None]) -> None:
        _running.discard(task)
        if self._check_timer is not None:
            self._check_timer.cancel()
        if not self._begun:  # cancelled before its first step, so its `finally` hasn't run
            if _is_iterable(self._source):
                self._opened.append(self._source)
            elif inspect.isawaitable(self._source):
                self._abandon(self._source)
            self._interrupt(None)
            if self._opened:
                _running.add(closing := self._loop.create_task(self._close()))
                closing.add_done_callback(_running.discard)


_CLOSING = ("aclose", "close")
_STEP = "async_generator_asend"  # a type without a public name; an object of it, made here, would stay with the running loop
_GROUPS = ("create_task", "start_soon")  # the methods of asyncio's and anyio's task groups
_DEPTH = 64  # awaits within awaits


def is_finishing(awaited: object) -> bool:
    """Whether one of the suspended frames below `awaited` is in a `finally` or in a method that closes something.

    The exit of an `async with` counts as closing, except for a task group, whose exit waits for its tasks' work.
    """
    closing = False
    for _ in range(_DEPTH):
        frame, awaited = _suspended(awaited)
        if frame is not None:
            name = frame.f_code.co_name
            if name in _CLOSING or _in_finally(frame):
                return True
            if name == "__aexit__":
                closing = not any(hasattr(frame.f_locals.get("self"), method) for method in _GROUPS)
        if awaited is None:
            break
    return closing


def _suspended(awaited: Any) -> tuple[FrameType | None, object]:
    """The frame of a coroutine or a generator, and the object that it awaits."""
    if inspect.iscoroutine(awaited):
        return awaited.cr_frame, awaited.cr_await
    if inspect.isasyncgen(awaited):
        return awaited.ag_frame, awaited.ag_await
    if type(awaited).__name__ == _STEP:  # it has no attribute for its generator
        return None, next(filter(inspect.isasyncgen, gc.get_referents(awaited)), None)
    return None, None


def _in_finally(frame: FrameType) -> bool:
    return any(first <= frame.f_lineno <= last for first, last in _finally_lines(frame.f_code))


@lru_cache(maxsize=256)
def _finally_lines(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The first and last line of each `finally` in a function's text."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse("if 1:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
    except (OSError, SyntaxError, ValueError, IndexError):
        return ()
    above = first - 2
    return tuple(
        (node.finalbody[0].lineno + above, (node.finalbody[-1].end_lineno or 0) + above)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Try, ast.TryStar)) and node.finalbody
    )
