"""The open streams. They are ended when the server stops, because it would wait for them."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["OpenStream", "end_streams", "opened"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING_SECONDS = 5.0
"""For how long after such a signal a server may still take requests. A page whose stream has ended asks again at once."""


class OpenStream(Protocol):
    def end(self) -> None: ...


_streams: dict[asyncio.AbstractEventLoop, set[OpenStream]] = {}
_stopping: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = (
    WeakKeyDictionary()
)  # until when, by its clock
_lock = threading.RLock()  # reentrant: a signal may arrive while this thread holds it
_chained: dict[
    int, tuple[Callable[..., object], Any]
] = {}  # by signal: our handler, and the server's that it calls


def end_streams() -> None:
    """End every open response, on any loop, as each does when the server stops. May be called from any thread.

    Where the server runs on the main thread of the process that gets Ctrl-C or `SIGTERM`, the streams end by themselves:
    under `uvicorn`, also with `--workers`, and under `hypercorn --workers 0`. Without that option hypercorn's command runs the
    application in a child that gets no signal, so its streams aren't ended. Call this for a server that is stopped in
    another way or isn't on the main thread, before it waits for its connections to close, such as in the
    `shutdown_trigger` of `hypercorn.asyncio.serve`.
    """
    with _lock:
        loops = [(loop, list(streams)) for loop, streams in _streams.items()]
    for loop, streams in loops:
        for stream in streams:
            if not loop.is_closed():
                loop.call_soon_threadsafe(stream.end)


@contextmanager
def opened(stream: OpenStream) -> Generator[None]:
    """Register the stream as open within the `with` block."""
    loop = asyncio.get_running_loop()
    with _lock:
        _chain_handlers()
        _streams.setdefault(loop, set()).add(stream)
        if loop.time() < _stopping.get(loop, 0):
            loop.call_soon(stream.end)
    try:
        yield
    finally:
        with _lock:
            _streams[loop].discard(stream)
            if not _streams[loop]:
                del _streams[loop]
            if not _streams:
                _restore_handlers()


def _chain_handlers() -> None:
    """Put our handler behind the server's, for the signals that stop a server."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        ours = _chained.get(number)
        if callable(handler) and (ours is None or handler is not ours[0]):
            chain = partial(_on_signal, handler)
            _chained[number] = chain, handler
            signal.signal(number, chain)


def _on_signal(handler: Callable[..., object], *arguments: Any) -> None:
    try:
        handler(*arguments)
    finally:
        with _lock:
            for loop in _streams:
                _stopping[loop] = loop.time() + _STOPPING_SECONDS
        end_streams()


def _restore_handlers() -> None:
    """Restore the server's handlers, except where somebody has replaced ours."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, (chain, handler) in _chained.items():
        if signal.getsignal(number) is chain:
            signal.signal(number, handler)
    _chained.clear()
