"""Calls of the user's function that can't affect the stream."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from rxdelta.core import InvalidValueError
from rxdelta.runtime import is_interrupt, report, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SideCall"]

_tasks: set[asyncio.Task[None]] = set()  # the loop itself holds its tasks only weakly


class SideCall:
    """A function, or a coroutine function, which runs as a task on the loop that was running at the subscription.

    Its exceptions go to that loop's exception handler, or without a loop to the log.
    """

    def __init__(self, fn: Callable[..., object], operator: str) -> None:
        self._fn = fn
        self._raised = f"the function given to {operator} raised"
        self._loop = running_loop()

    def __call__(self, *arguments: object) -> None:
        try:
            done = self._fn(*arguments)
            if inspect.isawaitable(done):
                self._await(done)
        except BaseException as error:
            self._report(error)

    def _await(self, done: Any) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            if inspect.iscoroutine(done):
                done.close()
            raise InvalidValueError(
                "an async function needs a running asyncio loop at the subscription", field="fn"
            )
        if running_loop() is loop:
            self._start(loop, done)
        else:
            loop.call_soon_threadsafe(self._start, loop, done)

    def _start(self, loop: asyncio.AbstractEventLoop, done: Any) -> None:
        task = loop.create_task(self._finish(done))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    async def _finish(self, done: Any) -> None:
        try:
            await done
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._report(error)

    def _report(self, error: BaseException) -> None:
        if is_interrupt(error):
            raise error
        report(error, self._raised)
