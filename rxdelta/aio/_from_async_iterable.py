"""An SDK's stream, or any async iterable, as an Observable."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.aio._session import current_session
from rxdelta.core import InvalidValueError

__all__ = ["from_async_iterable"]

T = TypeVar("T")
Source: TypeAlias = AsyncIterable[T] | Awaitable[AsyncIterable[T]]

_BREATH = 64  # items after which a source that is always ready lets the loop's timers run


def from_async_iterable(source: Source[T] | Callable[[], Source[T]]) -> Observable[T]:
    """The items of an async iterable, each as it comes.

    Subscribing starts a task on the running loop, in the subscriber's context. Disposing cancels it and closes the
    iterable (its `aclose()`, or the `close()` of an SDK's stream); so does an observer that raises, whose exception
    goes once to the loop's exception handler.

    Completes with the iterable. Its exception is passed on raw, traceback and all.

    Args:
        source: An async iterable; an awaitable of one, such as an SDK's `create(stream=True)`; or a function that
            gives either. With a function every subscription makes a request of its own, and without one an iterator
            can be subscribed once.

    Errors: `InvalidValueError` for what is none of these, for a second subscription to a one-shot source, and where
    no asyncio loop is running.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> async def chunks():
        ...     yield {"n": 1}
        >>> asyncio.run(rd.last_value(rd.from_async_iterable(chunks)))
        {'n': 1}
    """
    used = False

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        nonlocal used
        if used and _is_one_shot(source):
            raise InvalidValueError(
                "this source has been subscribed before and gives its items once; pass a function that makes one, "
                "e.g. from_async_iterable(lambda: client.create(…)), or share the pipeline",
                field="source",
                value=source,
            )
        used = True
        pump = _Pump(observer, source)
        pump.start()
        return Disposable(pump.stop)

    return Observable(subscribe)


def _is_one_shot(source: object) -> bool:
    return not callable(source) and (inspect.isawaitable(source) or hasattr(source, "__anext__"))


class _Pump(Generic[T]):
    """One subscription: a task that takes items out of the iterable and hands them on."""

    def __init__(self, observer: abc.ObserverBase[T], source: Any) -> None:
        self._observer = observer
        self._source = source
        self._session = current_session.get()
        self._stopped = False
        self._waiting = False  # in an await that a cancellation may break off

    def start(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise InvalidValueError(
                "from_async_iterable needs a running asyncio loop: subscribe inside a coroutine, "
                "e.g. with for_each() or last_value()",
                field="source",
            ) from None
        self._task = self._loop.create_task(self._run())
        if self._session is not None:
            self._session.sign_in(self._task)

    def stop(self) -> None:
        """May be called from any thread, from within our own `on_next`, and more than once."""
        self._stopped = True
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self._cancel()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        # Outside of such an await the task sees `_stopped` by itself, and must not be disturbed while it closes.
        if self._waiting:
            self._waiting = False
            self._task.cancel()

    async def _run(self) -> None:
        iterable: Any = None
        try:
            iterable = await self._open()
            if iterable is not None:
                await self._pass_on(iterable)
        except asyncio.CancelledError:
            if not self._stopped:  # the loop is shutting down; a disposal ends the task in peace
                raise
        except Exception as error:
            if not self._stopped:
                self._stopped = True
                self._tell(self._observer.on_error, error)
        finally:
            self._waiting = False
            await self._close(iterable)

    async def _open(self) -> Any:
        source = self._source() if callable(self._source) and not self._stopped else self._source
        if self._stopped:
            if inspect.iscoroutine(source):
                source.close()  # never awaited, which would be warned of
            return None if inspect.isawaitable(source) or callable(source) else source
        if inspect.isawaitable(source):
            source = await self._breakable(source)
        if not hasattr(source, "__aiter__"):
            raise InvalidValueError.of([("source", source, "must be an async iterable")])
        return source

    async def _pass_on(self, iterable: AsyncIterable[T]) -> None:
        items: AsyncIterator[T] = aiter(iterable)
        count = 0
        while not self._stopped:
            try:
                item = await self._breakable(anext(items))
            except StopAsyncIteration:
                if not self._stopped:
                    self._stopped = True
                    self._tell(self._observer.on_completed)
                return
            if self._stopped or not self._tell(self._observer.on_next, item):
                return
            count += 1
            if count % _BREATH == 0:
                await self._breakable(asyncio.sleep(0))
            if self._session is not None:
                await self._breakable(self._session.room())

    async def _breakable(self, awaitable: Awaitable[Any]) -> Any:
        self._waiting = True
        try:
            return await awaitable
        finally:
            self._waiting = False

    def _tell(self, notify: Callable[..., object], *arguments: object) -> bool:
        """An observer that raises has left: nobody else would stop the source, nor hear of it."""
        try:
            notify(*arguments)
        except Exception as error:
            self._stopped = True
            self._loop.call_exception_handler(
                {"message": "an observer of from_async_iterable raised; its source was closed", "exception": error}
            )
            return False
        return True

    async def _close(self, iterable: Any) -> None:
        close = getattr(iterable, "aclose", None) or getattr(iterable, "close", None)
        if close is None:
            return
        try:
            closing = close()
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": "closing the source of from_async_iterable failed", "exception": error}
            )
