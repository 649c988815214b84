"""The asyncio loop of this thread, and calls on another thread's."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_on", "running_loop"]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that is running on this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Call on the loop's own thread: at once if that is this one. A loop that is closed calls nothing any more."""
    if running_loop() is loop:
        call()
    else:
        with suppress(RuntimeError):  # it is closed
            loop.call_soon_threadsafe(call)
