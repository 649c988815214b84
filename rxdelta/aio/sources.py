"""What `rd.stream` takes, as an Observable of chunks, bytes or events."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, asynccontextmanager
from typing import Any, Protocol, TypeAlias

import reactivex as rx
from reactivex import Observable, operators as ops

from rxdelta.aio.pumps import closer, from_async_iterable
from rxdelta.aio.reading import to_async_iterable
from rxdelta.aio.threads import Gate, pushed
from rxdelta.core import InvalidValueError


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
        raise _refused(source, whole)
    if isinstance(source, Mapping) or _has(source, "model_dump"):
        name = _stream_inside(source)  # pyright: ignore[reportUnknownArgumentType]
        inside = f"is a response that has its stream inside: give rd.stream() its [{name!r}]"
        raise _refused(source, inside if name else f"{whole}, or put chunks into a list")  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(source, type) or not (callable(source) or any(_has(source, name) for name in _STREAMS)):
        raise _refused(source)


def _stream_inside(response: object) -> str | None:
    """Where a response of boto3 has its stream."""
    fields: Mapping[Any, Any] = response if isinstance(response, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    for name in ("stream", "body"):
        inside = fields.get(name)
        if _has(inside, "__iter__") and not isinstance(inside, (str, bytes, list, Mapping)):
            return name
    return None


def _refused(source: object, wrong: str = "") -> InvalidValueError:
    wanted = (
        "an iterable of chunks, async or not; an SDK's stream or stream manager; or a function that opens one"
    )
    return InvalidValueError.of([("source", source, wrong or f"must be {wanted}")])


_STREAMS = ("__aiter__", "__aenter__", "__await__", "__iter__", "__enter__", "aiter_bytes", "iter_bytes")


def _has(source: object, name: str) -> bool:
    """Whether the class has this method. An instance may answer to any name, as a mock does."""
    return hasattr(type(source), name)


def read(source: Any, gate: Gate | None = None) -> Observable[Any]:
    """Read a source once. A plain function, and a blocking source, are read on a thread, which may emit if the gate is open."""
    if isinstance(source, Observable):
        return source  # pyright: ignore[reportUnknownVariableType]
    if isinstance(source, (bytes, bytearray)):
        return rx.of(bytes(source))
    check_stream(source)
    if _is_async(source):
        return from_async_iterable(_async_items(source))
    if inspect.iscoroutinefunction(source) or inspect.isasyncgenfunction(source):
        return read(source())
    return pushed(_OnThread(source), gate).pipe(ops.catch(_read_elsewhere))


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
        if source is manager:  # a client, say
            raise _refused(source)
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
    """A source that was opened on a thread isn't read there. Managers that were entered there are left after the reading."""

    def __init__(self, source: object, managers: ExitStack | None) -> None:
        self.source = source
        self.managers = managers


def _read_elsewhere(error: Exception, _: object) -> Observable[Any]:
    if not isinstance(error, _Elsewhere):
        return rx.throw(error)
    if error.managers is None:
        return read(error.source)
    return read(_entered(_handed_over(error.source, error.managers.pop_all())))


@asynccontextmanager
async def _handed_over(source: object, managers: ExitStack) -> AsyncGenerator[Any]:
    with managers:
        yield source


class _OnThread:
    """A blocking source for `from_iterable`, which opens, reads and closes it on one thread.

    To open it means to call it, to enter it, or to take the body of a response. `response` is that of an SDK's stream, by
    which `from_iterable` ends the wait for its next chunk.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._opened = ExitStack()
        self._has_managers = False
        self.response: Any = None

    def __iter__(self) -> Iterator[Any]:
        source = self._source
        while not _has(source, "__iter__"):
            opened = self._open(source)
            if opened is source:  # a client, say
                raise _refused(source)
            source = opened
            if isinstance(source, (Observable, bytes, bytearray)) or _is_async(source):
                raise _Elsewhere(source, self._opened if self._has_managers else None)  # pyright: ignore[reportUnknownArgumentType]
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
        if not _has(source, "__enter__"):
            return source()
        self._has_managers = True
        return self._opened.enter_context(source)

    def _close_with(self, source: object) -> None:
        close = closer(source, names=("close",))
        if close is not None:
            self._opened.callback(close)

    def close(self) -> None:
        self._opened.close()
