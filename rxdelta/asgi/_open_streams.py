"""The streams that are open, so that they can be ended when the server stops: it would wait for them."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["OpenStream", "end_streams", "opened"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class OpenStream(Protocol):
    def end(self) -> None: ...


_streams: dict[asyncio.AbstractEventLoop, set[OpenStream]] = {}
_lock = threading.RLock()  # a signal may come while this thread holds it
_chained: dict[int, tuple[Callable[..., object], Any]] = {}  # ours, and the server's


def end_streams() -> None:
    """End every open `EventStreamResponse`, on whatever loop it runs, as a stop by the reader would.

    A stream whose server stops on a signal (uvicorn, hypercorn: Ctrl-C, `SIGTERM`) ends by itself. Call this where
    yours is stopped in another way, or where it runs on another thread than the main one, before it waits for its
    connections to close. May be called from any thread.
    """
    with _lock:
        loops = [(loop, list(streams)) for loop, streams in _streams.items()]
    for loop, streams in loops:
        for stream in streams:
            if not loop.is_closed():
                loop.call_soon_threadsafe(stream.end)


@contextmanager
def opened(stream: OpenStream) -> Generator[None]:
    """While the block lasts, the stream is one of those that are open."""
    loop = asyncio.get_running_loop()
    with _lock:
        _listen()
        _streams.setdefault(loop, set()).add(stream)
    try:
        yield
    finally:
        with _lock:
            _streams[loop].discard(stream)
            if not _streams[loop]:
                del _streams[loop]
            if not _streams:
                _leave()


def _listen() -> None:
    """Hear of the signals by which a server is stopped; its own handler goes first."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        ours = _chained.get(number)
        if callable(handler) and (ours is None or handler is not ours[0]):
            chain = partial(_heard, handler)
            _chained[number] = chain, handler
            signal.signal(number, chain)


def _heard(handler: Callable[..., object], *what: Any) -> None:
    try:
        handler(*what)
    finally:
        end_streams()


def _leave() -> None:
    """Give the server its handlers back, unless it, or another, has put others there."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, (chain, handler) in _chained.items():
        if signal.getsignal(number) is chain:
            signal.signal(number, handler)
    _chained.clear()
