"""A blocking stream, such as a sync client's, as an Observable: it is read on its own thread."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock, RLock, Thread, current_thread
from typing import Any, Generic, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.aio.pumps import TaskPump, closer
from rxdelta.aio.reading import until_closed
from rxdelta.core import InvalidValueError, StreamInterrupted, as_exception
from rxdelta.runtime import SourceObservable, Taker, from_thread, journal_of, running_loop, session_of

T = TypeVar("T")

_END: Any = object()


def from_iterable(source: Iterable[T] | Callable[[], Iterable[T]]) -> Observable[T]:
    """Emit the items of a blocking iterable as they arrive.

    Subscribing starts a thread, which makes, reads and closes the source in a copy of the subscriber's context.
    With a running asyncio loop, items are emitted on that loop, which is never blocked. The next item is requested
    when the last has been taken, so that `overflow="block"` slows this source too. Without a loop, items are emitted
    on the thread. In both cases `subscribe` returns at once.

    Disposing closes the source on its thread (by its `close()`). A thread that waits for the next item can't be
    stopped: it closes the source when that item arrives, and drops the item. If the source is an SDK's stream, the
    connection below is shut down, which ends the wait at once (not over HTTP/2, where other requests may share the
    connection). The thread doesn't keep the program from ending.

    If an observer raises, the source is closed. The exception is raised by the `for_each` or `async for` that reads
    the pipeline; without such a reader it goes to the loop's exception handler or to `threading.excepthook`.

    Completes with the iterable. The iterable's exception is passed on unchanged, with its traceback.

    Args:
        source: An iterable, or a function that returns one. The function is called on the thread too, so that a sync
            client's request doesn't block either. With a function every subscription makes its own request. Without
            one, a source that can be iterated once can be subscribed once.

    Errors: The iterable's own; `StreamInterrupted` if it raises an exception that is no `Exception`.
    `InvalidValueError` for an object that isn't iterable, for an async iterable (`from_async_iterable` reads it), for
    a text or a mapping (a whole reply, not a stream), and for a second subscription to a one-shot source.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> def chunks():
        ...     yield {"n": 1}
        >>> asyncio.run(rd.last_value(rd.from_iterable(chunks)))
        {'n': 1}
    """
    return pushed(source, None)


class Gate:
    """While it is open, a source's thread calls its observer by itself, which costs no turn of the loop."""

    def __init__(self) -> None:
        self.lock = RLock()  # held while an item is emitted
        self.is_open = True

    def close(self) -> None:
        """Let all that is emitted from now on be emitted on the loop."""
        with self.lock:
            self.is_open = False


def pushed(source: Iterable[T] | Callable[[], Iterable[T]], gate: Gate | None) -> Observable[T]:
    """`from_iterable`, with a gate."""
    used = False

    def begin(observer: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        nonlocal used
        if used and _is_iterable(source) and _is_one_shot(source):
            raise InvalidValueError(
                "this source has been subscribed before and gives its items once; pass a function that makes "
                "one, e.g. from_iterable(lambda: client.create(…)), or share the pipeline",
                field="source",
                value=source,
            )
        used = True
        loop = running_loop()
        if loop is None:
            return Disposable(_Pusher(observer, source).stop)

        def push(item: T) -> bool:
            """Emit an item here, if that is allowed. Otherwise the pump takes it, and the end."""
            if gate is None or (session is not None and not session.backpressure.is_ready()):
                return False  # the pump waits behind its items for more room
            with gate.lock:
                if not gate.is_open or pump.stopped:
                    return False
                try:
                    observer.on_next(item)
                except BaseException as error:  # not the source's, so it isn't the observer's `on_error`
                    pump.raised(error)
                    raise
            return True

        def start() -> _OnThread[T]:
            return _OnThread(source, loop, push)

        session = session_of(scheduler)
        pump = TaskPump(observer, start, loop, session, journal_of(scheduler), "from_iterable")
        return Disposable(pump.stop)

    return SourceObservable("rd.from_iterable(…)", begin)


def _is_iterable(source: object) -> bool:
    return hasattr(source, "__iter__") and not isinstance(source, type)


def _is_one_shot(source: object) -> bool:
    return hasattr(source, "__next__") or closer(source, names=("close",)) is not None


class _Blocking(Generic[T]):
    """The source itself. All methods but `break_off` are called on one thread."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._items: Any = None
        self._opened: list[Any] = []  # to be closed in reverse order
        self._lock = Lock()
        self._waiting: Any = None  # the stream that the thread is waiting for
        self.stopped = False

    def next(self) -> T:
        """Return the next item, and `_END` after the last."""
        if self._items is None:
            self._items = self._open()
        with self._lock:
            if self.stopped:
                return _END  # type: ignore[no-any-return]
            self._waiting = self._opened[0]
        try:
            return next(self._items, _END)  # type: ignore[no-any-return]
        finally:
            with self._lock:
                self._waiting = None

    def _open(self) -> Any:
        source: Any = self._source
        if not _is_iterable(source) and callable(source):
            source = cast("Any", source())
        fault = _fault(source)
        if fault is not None:
            if inspect.iscoroutine(source):
                source.close()
            raise InvalidValueError.of([("source", source, fault)])
        self._opened.append(source)
        items = iter(source)
        if items is not source:
            self._opened.append(items)
        return items

    def break_off(self) -> None:
        """Request no further items, and wake the thread if it waits for a connection. Callable from any thread."""
        with self._lock:
            self.stopped = True
            if self._waiting is not None:
                with suppress(Exception):
                    _shut_down(self._waiting)

    def close(self) -> None:
        """Close everything that was opened, then raise the last failure."""
        failed: BaseException | None = None
        while self._opened:
            close = closer(self._opened.pop(), names=("close",))
            try:
                if close is not None:
                    close()
            except BaseException as error:
                failed = error
        if failed is not None:
            raise failed


def _fault(source: object) -> str | None:
    if hasattr(source, "__aiter__") or inspect.isawaitable(source):
        return "is asynchronous: from_async_iterable() reads it"
    if isinstance(source, (str, bytes, bytearray, Mapping)) or hasattr(source, "model_dump"):
        return "is one whole value, not a stream; ask the client for one (stream=True), or put it into a list"
    if not _is_iterable(source):
        return "must be an iterable, or a function that gives one"
    return None


def _shut_down(stream: Any) -> None:
    """Shut down the socket below a response, which httpx and its kin document as `network_stream`.

    The stream itself must not be closed while another thread reads it. A reader of a socket that was shut down gets
    its end.
    """
    response = getattr(stream, "response", stream)
    if response.is_closed or response.extensions.get("http_version") not in (b"HTTP/1.1", b"HTTP/1.0"):
        return
    below = response.extensions["network_stream"].get_extra_info("socket")
    socket.socket.shutdown(below, socket.SHUT_RDWR)  # an SSL socket's own would end TLS first


class _OnThread(Generic[T]):
    """The source as an async iterator, which requests one item at a time from the thread."""

    def __init__(self, source: Any, loop: asyncio.AbstractEventLoop, push: Callable[[T], bool]) -> None:
        self._loop = loop
        self._push = push
        self._blocking: _Blocking[T] = _Blocking(source)
        self._requests: SimpleQueue[asyncio.Future[T] | None] = SimpleQueue()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._thread = Thread(
            target=copy_context().run, args=(self._run,), name="rxdelta-source", daemon=True
        )
        self._thread.start()

    def __aiter__(self) -> _OnThread[T]:
        return self

    async def __anext__(self) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()
        self._requests.put(answer)
        item = await from_thread(answer)
        if item is _END:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        self._blocking.break_off()
        self._requests.put(None)
        closing = from_thread(self._loop.create_future())
        try:
            await until_closed({self._ended})
        finally:
            closing.cancel()
        if self._ended.done():  # otherwise the thread waits for an item, and closes the source after that
            self._thread.join()  # short, as the result is the thread's last step
            self._ended.result()

    def _run(self) -> None:
        ended = self._ended
        while (answer := self._requests.get()) is not None:
            try:
                item = self._blocking.next()
                while item is not _END and self._push(item):
                    item = self._blocking.next()
            except BaseException as error:
                self._settle(answer, error)
            else:
                self._settle(answer, None, item)
        try:
            self._blocking.close()
        except BaseException as error:
            self._settle(ended, error)
        else:
            self._settle(ended, None, None)

    def _settle(self, answer: asyncio.Future[Any], error: BaseException | None, item: Any = None) -> None:
        if isinstance(error, (StopIteration, StopAsyncIteration)):  # a future refuses it, or it means an end
            error = StreamInterrupted.by(error)

        def settle() -> None:
            if answer.done():  # cancelled: the reader has left
                return
            if error is None:
                answer.set_result(item)
            else:
                answer.set_exception(error)

        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(settle)


class _Pusher(Generic[T]):
    """One subscription without a loop: the thread calls the observer."""

    def __init__(self, observer: Taker[T], source: Any) -> None:
        self._observer = observer
        self._blocking: _Blocking[T] = _Blocking(source)
        self._thread = Thread(
            target=copy_context().run, args=(self._run,), name="rxdelta-source", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop reading. May be called on any thread, during our own `on_next`, and more than once."""
        if current_thread() is self._thread:
            self._blocking.stopped = True
        else:
            self._blocking.break_off()

    def _run(self) -> None:
        blocking, observer = self._blocking, self._observer
        try:
            while not blocking.stopped:
                try:
                    item = blocking.next()
                except BaseException as error:
                    if not blocking.stopped:
                        observer.on_error(as_exception(error))
                    return
                if blocking.stopped:
                    return
                if item is _END:
                    observer.on_completed()
                    return
                observer.on_next(item)
        finally:
            blocking.close()
