"""The asyncio loop of this thread, calls on another thread's loop, and other async libraries."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_on", "other_library", "running_loop"]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return this thread's running loop, or `None`."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Call on the loop's thread: immediately if it is the current thread. A closed loop ignores the call."""
    if running_loop() is loop:
        call()
    else:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call)


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
