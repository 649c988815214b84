"""The asyncio loop of this thread, calls on another thread's loop, and other async libraries."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from rxdelta.core import InvalidValueError

T = TypeVar("T")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return this thread's running loop, or `None`."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def needed_loop(by: str, otherwise: str) -> asyncio.AbstractEventLoop:
    """Return this thread's running loop, or raise an error that says `otherwise` what to do.

    Raises:
        InvalidValueError: No loop is running, or another library, such as trio, runs this task.
    """
    loop, library = running_loop(), other_library()
    if library is not None:
        otherwise = f"{library} runs this task; read with to_iterable() in a worker thread"
    elif loop is not None:
        return loop
    raise InvalidValueError(f"{by} needs a running asyncio loop: {otherwise}", field="source")


def call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Call on the loop's thread: immediately if it is the current thread. A closed loop ignores the call."""
    if running_loop() is loop:
        call()
    else:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call)


def from_thread(future: asyncio.Future[T]) -> asyncio.Future[T]:
    """Tell the loop that a thread works until the future is done. A loop with virtual time waits for it that long.

    The loop of `rxdelta.testing.VirtualTime` knows by itself only what `run_in_executor` starts.
    """
    loop: Any = future.get_loop()
    wait_for_thread = getattr(loop, "wait_for_thread", None)
    if wait_for_thread is not None:
        wait_for_thread(future)
    return future


def other_library() -> str | None:
    """Return the name of the async library that runs this task, such as trio, unless it is asyncio."""
    sniffio = sys.modules.get("sniffio")  # trio and curio set its mark
    if sniffio is None:
        return None
    try:
        library: str = sniffio.current_async_library()
    except sniffio.AsyncLibraryNotFoundError:
        return None
    return None if library == "asyncio" else library
