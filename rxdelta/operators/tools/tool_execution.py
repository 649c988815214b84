"""One run of one tool: a function, a coroutine, an async iterator or an Observable."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import closing
from threading import Event as ThreadEvent
from typing import Any, Literal, cast

import attrs
from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.core import InvalidValueError, ToolResult, is_mapping
from rxdelta.core.events import Custom
from rxdelta.runtime import call_on, is_interrupt

__all__ = ["ToolOutcome", "Tool", "ToolProgress", "bind_error", "execute", "result_of"]

Tool = Callable[..., object]
_PLAIN = frozenset([str, int, float, bool, type(None)])


@attrs.frozen
class ToolProgress:
    """An update from a running tool, emitted by its Observable or async iterator.

    Attributes:
        display_text: A better line for people.
        result: The result so far.

    Raises:
        InvalidValueError: A display text that is no text.

    Example:
        >>> import rxdelta as rd
        >>> async def read(path: str):
        ...     yield rd.ToolProgress(display_text=f"Reading {path}")
        ...     yield "the text"
    """

    display_text: str | None = None
    result: Any = None

    def __attrs_post_init__(self) -> None:
        text: object = self.display_text
        if text is not None and not isinstance(text, str):
            raise InvalidValueError.of([("display_text", text, "must be text")])


@attrs.frozen
class ToolOutcome:
    """The end of a run: a value, an exception, or the cancellation of its task by others than the tool itself."""

    value: Any = None
    error: BaseException | None = None
    cancelled: bool = False


def bind_error(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return why the tool's signature doesn't accept these arguments, or `None` if it does."""
    try:
        signature = inspect.signature(tool)
    except Exception:
        return None  # no signature, as of some built-in functions: the call itself will show
    try:
        signature.bind(**arguments)
    except TypeError as error:
        return str(error)
    return None


def result_of(call_id: str, value: Any, duration: float | None) -> ToolResult:
    """Convert a tool's value to a `ToolResult`: records become objects, a `ToolResult` gets its call's id.

    Raises:
        InvalidValueError: The value is no record, JSON value or `ToolResult`.
    """
    if isinstance(value, ToolResult):
        return attrs.evolve(
            value, call_id=call_id, duration=duration if value.duration is None else value.duration
        )
    return ToolResult(call_id, _without_records(value), duration=duration)


def _without_records(value: Any) -> Any:
    """The value with an object in place of each record, at every depth. A value of ours has private fields."""
    if type(value) in _PLAIN:  # a long list has a million of them
        return value
    if is_mapping(value):
        return {key: _without_records(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_records(item) for item in cast("list[Any]", value)]
    kind = cast("Any", type(value))
    if kind is not type and callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if attrs.has(kind):
        names = [field.name for field in attrs.fields(kind)]
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        return value
    if callable(getattr(value, "to_dict", None)):
        return value.to_dict()
    return {name: _without_records(getattr(value, name)) for name in names}


def execute(
    tool: Tool,
    arguments: Mapping[str, Any],
    loop: asyncio.AbstractEventLoop | None,
    progress: Callable[[Any], None],
    ended: Callable[[ToolOutcome], None],
    what: Literal["tool", "approve"] = "tool",
) -> abc.DisposableBase:
    """Run a tool. Call `progress` with each value of an iterator or Observable, and `ended` with any outcome.

    On a loop, coroutines and async iterators run as a task; plain functions and generators run on a thread. Without a
    loop, plain functions, generators and Observables run in the caller. Disposing cancels; neither function is called
    after that. An exception that interrupts the program is an outcome too, and is also raised.

    Raises:
        InvalidValueError: The tool is asynchronous, and there is no loop. `what` names it there.
    """
    if loop is None:
        return _run_here(tool, arguments, progress, ended, what)
    return _run_on(loop, tool, arguments, progress, ended)


def _run_here(
    tool: Tool,
    arguments: Mapping[str, Any],
    progress: Callable[[Any], None],
    ended: Callable[[ToolOutcome], None],
    what: Literal["tool", "approve"],
) -> abc.DisposableBase:
    value: Any = None
    asynchronous = False
    try:
        value = tool(**arguments)
        if isinstance(value, Observable):
            return _follow(value, progress, ended)  # pyright: ignore[reportUnknownArgumentType]
        if inspect.isgenerator(value):
            value = _generated(value, progress)
        asynchronous = inspect.isawaitable(value) or hasattr(value, "__aiter__")
        if inspect.iscoroutine(value):
            value.close()
    except BaseException as error:
        ended(ToolOutcome(error=error))
        if is_interrupt(error):
            raise
        return Disposable()
    if asynchronous:
        raise InvalidValueError(
            f"an asynchronous {what} needs a running asyncio loop: read the pipeline inside a coroutine, or with "
            "to_iterable()",
            field="tools" if what == "tool" else what,
            value=tool,
        )
    ended(ToolOutcome(value))
    return Disposable()


def _follow(
    values: Observable[Any], progress: Callable[[Any], None], ended: Callable[[ToolOutcome], None]
) -> abc.DisposableBase:
    last: Any = None

    def on_next(value: Any) -> None:
        nonlocal last
        last = _latest_result(last, value)
        progress(value)

    subscription = SingleAssignmentDisposable()
    subscription.disposable = values.subscribe(
        on_next, lambda error: ended(ToolOutcome(error=error)), lambda: ended(ToolOutcome(last))
    )
    return subscription


def _latest_result(last: Any, value: Any) -> Any:
    """The result so far, after one more value."""
    if isinstance(value, Custom):
        return last
    if isinstance(value, ToolProgress):
        return last if value.result is None else value.result
    return value


def _run_on(
    loop: asyncio.AbstractEventLoop,
    tool: Tool,
    arguments: Mapping[str, Any],
    progress: Callable[[Any], None],
    ended: Callable[[ToolOutcome], None],
) -> abc.DisposableBase:
    stopped = False
    tasks: list[_ToolTask] = []

    def begin() -> None:
        if not stopped:
            task = _ToolTask(_outcome(tool, arguments, progress), loop=loop)
            task.add_done_callback(end)  # called for any end of the task
            tasks.append(task)

    def end(task: _ToolTask) -> None:
        if task.cancelled():
            outcome = ToolOutcome(error=asyncio.CancelledError(), cancelled=task.cancelled_by_others)
        else:
            error = task.exception()
            outcome = task.result() if error is None else ToolOutcome(error=error)
        if not stopped:
            ended(outcome)

    def stop() -> None:
        nonlocal stopped
        stopped = True
        call_on(loop, lambda: [task.cancel() for task in tasks])

    call_on(loop, begin)
    return Disposable(stop)


class _ToolTask(asyncio.Task[ToolOutcome]):
    """The task of a tool, which knows whether others than the tool have cancelled it.

    The end of the program cancels all tasks, and always from outside of them.
    """

    cancelled_by_others = False

    def cancel(self, msg: Any | None = None) -> bool:
        if asyncio.current_task(self.get_loop()) is not self:
            self.cancelled_by_others = True
        return super().cancel(msg)

    def uncancel(self) -> int:
        left = super().uncancel()
        if not left:  # such as behind a time limit within the tool
            self.cancelled_by_others = False
        return left


async def _outcome(tool: Tool, arguments: Mapping[str, Any], progress: Callable[[Any], None]) -> ToolOutcome:
    """Run the tool and return its outcome. Raises only the task's cancellation and interrupts of the program."""
    loop, left = asyncio.get_running_loop(), ThreadEvent()

    def from_thread(value: Any) -> None:
        if left.is_set():
            raise asyncio.CancelledError  # the generator is closed on its own thread
        call_on(loop, functools.partial(progress, value))

    try:
        if _is_async(tool):
            called = _call(tool, arguments, progress)
        else:
            called = await asyncio.to_thread(_call, tool, arguments, from_thread)
        value = called.value
        followed = isinstance(value, Observable)  # it is awaitable too, but that gives its last value only
        if inspect.isawaitable(value) and not followed:
            value = await value
        if isinstance(value, Observable):
            return await _observed(value, progress)  # pyright: ignore[reportUnknownArgumentType]
        if hasattr(value, "__aiter__"):
            value = await _iterated(value, progress)
        return ToolOutcome(value, called.error)
    except asyncio.CancelledError:
        left.set()
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        return ToolOutcome(error=error)


def _call(tool: Tool, arguments: Mapping[str, Any], progress: Callable[[Any], None]) -> ToolOutcome:
    """Call the tool and return an exception as a value: `StopIteration` can't be raised from a thread."""
    try:
        value = tool(**arguments)
        return ToolOutcome(_generated(value, progress) if inspect.isgenerator(value) else value)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return ToolOutcome(error=error)


def _generated(values: Any, progress: Callable[[Any], None]) -> Any:
    """The result of a generator: what it returns, or else its last value."""
    last: Any = None
    with closing(values):
        while True:
            try:
                value = next(values)
            except StopIteration as end:
                if isinstance(end.value, Custom):  # said last, and no part of the result
                    progress(end.value)
                    return last
                return last if end.value is None else end.value
            last = _latest_result(last, value)
            progress(value)


async def _iterated(values: Any, progress: Callable[[Any], None]) -> Any:
    last: Any = None
    try:
        async for value in values:
            last = _latest_result(last, value)
            progress(value)
    finally:
        close = getattr(values, "aclose", None)
        if close is not None:
            await close()
    return last


async def _observed(values: Observable[Any], progress: Callable[[Any], None]) -> ToolOutcome:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ToolOutcome] = loop.create_future()

    def settle(outcome: ToolOutcome) -> None:
        call_on(loop, lambda: None if done.done() else done.set_result(outcome))

    subscription = _follow(values, lambda value: call_on(loop, lambda: progress(value)), settle)
    try:
        return await done
    finally:
        subscription.dispose()


def _is_async(tool: Any) -> bool:
    while isinstance(tool, functools.partial):
        tool = tool.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    called: Any = tool if inspect.isroutine(tool) else getattr(tool, "__call__", tool)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
