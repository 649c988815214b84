"""The answer of a check, which may come later."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any

from reactivex import Observable
from reactivex import operators as ops
from reactivex.disposable import Disposable, SerialDisposable

from rxdelta.core import InvalidValueError
from rxdelta.runtime import call_on, is_interrupt, running_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rxdelta.runtime import Sink

__all__ = ["Checks"]

_LOG = logging.getLogger("rxdelta")


class Checks:
    """Asks a check, and tells its answer: at once, or later as a turn of the sink. One check runs at a time.

    A check that raises, ends without an answer, or returns what is neither true nor false says no. What is awaitable runs
    on the loop that was running at the subscription. It is cancelled when the subscription ends.
    """

    def __init__(
        self, sink: Sink[Any], check: Callable[[str], object], answered: Callable[[bool], object]
    ) -> None:
        self._sink = sink
        self._check = check
        self._answered = answered
        self._loop = running_loop()
        self._asked: object = None  # by which an answer is known that comes too late
        self._running = SerialDisposable()
        sink.own(self._running)

    def ask(self, text: str) -> bool | None:
        """Return the answer, or `None` if it will be told later.

        Raises:
            InvalidValueError: The answer must be awaited, and there is no loop.
        """
        try:
            answer = self._check(text)
            if not isinstance(answer, Observable) and not inspect.isawaitable(answer):
                return _truth(answer)
        except BaseException as error:
            return _refused_by(error)
        if isinstance(answer, Observable):
            answers: Observable[object] = answer  # pyright: ignore[reportUnknownVariableType]
            self._asked = asked = _Answer(self, self._sink)
            self._running.disposable = self._sink.subscribe(answers.pipe(ops.take(1)), asked)
            return None
        loop = self._loop
        if loop is None or loop.is_closed():
            if inspect.iscoroutine(answer):
                answer.close()
            raise InvalidValueError(
                "an asynchronous check needs a running asyncio loop: read the pipeline inside a coroutine, or with "
                "to_iterable()",
                field="check",
            )
        self._asked = task = _Task(lambda ended: self._sink.run(self._ended, task, ended))
        self._running.disposable = Disposable(lambda: call_on(loop, task.cancel))
        call_on(loop, lambda: task.begin(loop, answer))
        return None

    def leave(self) -> None:
        """Cancel the check that runs. Its answer isn't told."""
        self._asked = None
        self._running.disposable = Disposable()

    def tell(self, asked: object, passes: bool) -> None:
        """Tell an answer in a turn, unless it isn't waited for any more."""
        if asked is self._asked:
            self.leave()
            self._answered(passes)

    def _ended(self, asked: object, task: asyncio.Task[object]) -> None:
        try:
            passes = _truth(task.result())
        except BaseException as error:
            passes = _refused_by(error)
        self.tell(asked, passes)


def _truth(answer: object) -> bool:
    """Whether the answer is yes.

    No answer is what is true whatever it says: a service's reply or its JSON, a model's "no", a score, a thread's future.
    """
    kind = type(answer)
    try:
        is_score = isinstance(answer, (int, float)) and answer not in (0, 1)
        if answer is not None and (is_score or not hasattr(kind, "__bool__")):
            return _refused(f"returned a {kind.__name__}, which is neither true nor false")
        return bool(answer)
    except Exception as error:
        return _refused(f"returned a {kind.__name__}, whose truth raised {type(error).__name__}")


def _refused_by(error: BaseException) -> bool:
    """No, unless the error ends the program: nothing would end a reply whose check has no answer."""
    if is_interrupt(error):
        raise error
    return _refused(f"raised {type(error).__name__}")


def _refused(why: str) -> bool:
    # Without the text of an exception, which may quote what nobody is to see.
    _LOG.warning("the check of guard() %s, which counts as no", why)
    return False


async def _value(answer: Awaitable[object]) -> object:
    return await answer


class _Task:
    """A task that may be cancelled before it has begun. All happens on its loop."""

    def __init__(self, ended: Callable[[asyncio.Task[object]], object]) -> None:
        self._ended = ended
        self._task: asyncio.Task[object] | None = None
        self._is_cancelled = False

    def begin(self, loop: asyncio.AbstractEventLoop, answer: Awaitable[object]) -> None:
        # A coroutine itself becomes the task: in `_value` it would stay unawaited if cancelled at once.
        if not self._is_cancelled:
            self._task = loop.create_task(answer if inspect.iscoroutine(answer) else _value(answer))
            self._task.add_done_callback(self._end)
        elif inspect.iscoroutine(answer):
            answer.close()

    def _end(self, task: asyncio.Task[object]) -> None:
        if not self._is_cancelled:
            self._ended(task)
        elif not task.cancelled():
            task.exception()  # nobody else looks at it

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


class _Answer:
    """The first value of an Observable is the answer."""

    def __init__(self, checks: Checks, sink: Sink[Any]) -> None:
        self._checks = checks
        self._sink = sink
        self._is_over = False

    def on_next(self, passes: object) -> None:
        self._is_over = True
        self._checks.tell(self, _truth(passes))

    def on_error(self, error: Exception) -> None:
        if self._is_over:  # it is that of our own code, which took the answer
            self._sink.on_error(error)
        else:
            self._checks.tell(self, _refused(f"failed with {type(error).__name__}"))

    def on_completed(self) -> None:
        if not self._is_over:
            self._checks.tell(self, _refused("completed without an answer"))
