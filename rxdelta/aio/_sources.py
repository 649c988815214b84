"""What `rd.stream` takes, as an Observable of chunks, bytes or events."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from typing import Any, Protocol, TypeAlias

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from rxdelta.aio._from_async_iterable import closer, from_async_iterable
from rxdelta.aio._from_iterable import from_iterable
from rxdelta.aio._to_async_iterable import to_async_iterable
from rxdelta.core import InvalidValueError

__all__ = ["Opener", "Source", "check_stream", "forget", "read"]


class Response(Protocol):
    """A response of httpx, or of an SDK built on it, whose body hasn't been read."""

    def iter_bytes(self) -> Any: ...


Source: TypeAlias = (
    AsyncIterable[Any]
    | Iterable[Any]
    | Awaitable[Any]
    | AbstractAsyncContextManager[Any]
    | AbstractContextManager[Any]
    | Response
    | Observable[Any]
)
Opener: TypeAlias = Callable[[], Source]


def check_stream(source: object) -> None:
    """Refuse an object whose type shows that it is no stream.

    Raises:
        InvalidValueError: Names what is wrong.
    """
    whole = "is one whole value, not a stream: ask the client for a stream (stream=True)"
    if isinstance(source, str):
        raise InvalidValueError.of([("source", source, whole)])
    if isinstance(source, Mapping) or _has(source, "model_dump"):
        whole = f"{whole}, or put chunks into a list"
        raise InvalidValueError.of([("source", source, whole)])  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(source, type) or not (callable(source) or any(_has(source, name) for name in _STREAMS)):
        wanted = "an iterable of chunks, async or not; an SDK's stream or stream manager; or a function that opens one"
        raise InvalidValueError.of([("source", source, f"must be {wanted}")])


_STREAMS = ("__aiter__", "__aenter__", "__await__", "__iter__", "__enter__", "aiter_bytes", "iter_bytes")


def _has(source: object, name: str) -> bool:
    """Whether the class has this method. An instance may answer to any name, as a mock does."""
    return hasattr(type(source), name)


def read(source: Any) -> Observable[Any]:
    """Read a source once. A plain function, and a blocking source, are read on a thread."""
    if isinstance(source, Observable):
        return source  # pyright: ignore[reportUnknownVariableType]
    if isinstance(source, (bytes, bytearray)):
        return rx.of(bytes(source))
    check_stream(source)
    if _is_async(source):
        return from_async_iterable(_async_items(source))
    if inspect.iscoroutinefunction(source) or inspect.isasyncgenfunction(source):
        return read(source())
    return from_iterable(_OnThread(source)).pipe(ops.catch(_read_elsewhere))


def forget(source: object) -> None:
    """Close a coroutine that nobody has awaited, so that Python doesn't warn about it."""
    if inspect.iscoroutine(source) and inspect.getcoroutinestate(source) == inspect.CORO_CREATED:
        source.close()


def _is_async(source: Any) -> bool:
    """Whether it is read on the loop."""
    if _has(source, "__aiter__") or _has(source, "__aenter__") or inspect.isawaitable(source):
        return True
    if _has(source, "aiter_bytes"):  # an `httpx.Response`, which reads its stream in one of the two ways
        return _has(getattr(source, "stream", None), "__aiter__")
    return inspect.isasyncgenfunction(getattr(source, "iter_bytes", None))


def _async_items(source: Any) -> AsyncIterable[Any] | Awaitable[AsyncIterable[Any]]:
    """A source that is read on the loop, as `from_async_iterable` takes it."""
    check_stream(source)
    if isinstance(source, Observable) or not _is_async(source):
        return _entered(to_async_iterable(read(source), maxsize=1))
    if _has(source, "__aiter__"):
        return source  # type: ignore[no-any-return]
    if _has(source, "__aenter__"):
        return _entered(source)
    if inspect.isawaitable(source):
        return _awaited(source)
    body = source.aiter_bytes if _has(source, "aiter_bytes") else source.iter_bytes
    return _closing(body(), source)


async def _awaited(source: Awaitable[Any]) -> AsyncIterable[Any]:
    items = _async_items(await source)
    return await items if inspect.isawaitable(items) else items


async def _entered(manager: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    async with manager as source:
        items = _async_items(source)
        async for item in await items if inspect.isawaitable(items) else items:
            yield item


async def _closing(items: AsyncIterable[Any], owner: Any) -> AsyncIterator[Any]:
    try:
        async for item in items:
            yield item
    finally:
        close = closer(owner)
        closed = None if close is None else close()
        if inspect.isawaitable(closed):
            await closed


class _Elsewhere(Exception):
    """What was opened on a thread is not read there."""

    def __init__(self, source: object) -> None:
        self.source = source


def _read_elsewhere(error: Exception, _: object) -> Observable[Any]:
    return read(error.source) if isinstance(error, _Elsewhere) else rx.throw(error)


class _OnThread:
    """A blocking source for `from_iterable`, which opens, reads and closes it on one thread.

    To open it means to call it, to enter it, or to take the body of a response. `response` is that of an SDK's stream, by
    which `from_iterable` ends the wait for its next chunk.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._opened = ExitStack()
        self.response: Any = None

    def __iter__(self) -> Iterator[Any]:
        source = self._source
        while not _has(source, "__iter__"):
            source = self._open(source)
            if isinstance(source, (Observable, bytes, bytearray)) or _is_async(source):
                raise _Elsewhere(source)  # pyright: ignore[reportUnknownArgumentType]
            check_stream(source)
        self._close_with(source)
        for name in ("_response", "response"):  # OpenAI's stream helpers have no public one
            self.response = getattr(source, name, self.response)
        return iter(source)

    def _open(self, source: Any) -> Any:
        if _has(source, "iter_bytes"):
            self._close_with(source)
            self.response = source
            return source.iter_bytes()
        return self._opened.enter_context(source) if _has(source, "__enter__") else source()

    def _close_with(self, source: object) -> None:
        close = closer(source, names=("close",))
        if close is not None:
            self._opened.callback(close)

    def close(self) -> None:
        self._opened.close()
