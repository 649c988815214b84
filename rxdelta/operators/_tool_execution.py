"""One run of one tool, whatever shape the tool has."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.core import RxDeltaError, ToolResult

__all__ = ["Outcome", "Tool", "ToolProgress", "bind_error", "execute", "result_of"]

Tool = Callable[..., object]


@attrs.frozen
class ToolProgress:
    """What a running tool has to tell before it is done, given by an Observable or an async iterator.

    Attributes:
        display_text: A better line for people.
        result: What there is of the result so far.

    Example:
        >>> import rxdelta as rd
        >>> async def read(path: str):
        ...     yield rd.ToolProgress(display_text=f"Reading {path}")
        ...     yield "the text"
    """

    display_text: str | None = None
    result: Any = None


@attrs.frozen
class Outcome:
    """How a run ended: with a value, or with an exception."""

    value: Any = None
    error: BaseException | None = None


def bind_error(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Why a tool cannot be called with these arguments, judged by its signature before it is called."""
    try:
        signature = inspect.signature(tool)
    except (TypeError, ValueError):
        return None  # some built-in functions have none
    try:
        signature.bind(**arguments)
    except TypeError as error:
        return str(error)
    return None


def result_of(call_id: str, value: Any, duration: float | None) -> ToolResult:
    """A tool's value as a result: a `ToolResult` as it is, records as objects, any JSON value.

    Raises:
        InvalidValueError: The value is none of these.
    """
    if isinstance(value, ToolResult):
        return attrs.evolve(
            value, call_id=call_id, duration=duration if value.duration is None else value.duration
        )
    kind = cast("Any", type(value))
    if kind is not type and callable(getattr(value, "model_dump", None)):
        value = value.model_dump(mode="json")
    elif attrs.has(kind):
        value = attrs.asdict(value)
    elif dataclasses.is_dataclass(kind):
        value = dataclasses.asdict(value)
    return ToolResult(call_id, value, duration=duration)


def execute(
    tool: Tool,
    arguments: Mapping[str, Any],
    loop: asyncio.AbstractEventLoop | None,
    progress: Callable[[Any], None],
    ended: Callable[[Outcome], None],
) -> abc.DisposableBase:
    """Run a tool; tell each value of one that gives several as progress, and once how it ended.

    On a loop, coroutines and async iterators run as a task and plain functions on a thread. Without one, plain
    functions and Observables run where they are called, and the others end with an error that says what is missing.
    Disposing cancels; nothing is told after that.
    """
    if loop is not None:
        return _run_on(loop, tool, arguments, progress, ended)
    try:
        value: Any = tool(**arguments)
    except Exception as error:
        ended(Outcome(error=error))
        return Disposable()
    if isinstance(value, Observable):
        return _follow(value, progress, ended)  # pyright: ignore[reportUnknownArgumentType]
    if inspect.isawaitable(value) or hasattr(value, "__aiter__"):
        if inspect.iscoroutine(value):
            value.close()
        ended(Outcome(error=RxDeltaError("an asynchronous tool needs a running asyncio loop")))
    else:
        ended(Outcome(value))
    return Disposable()


def _follow(
    values: Observable[Any], progress: Callable[[Any], None], ended: Callable[[Outcome], None]
) -> abc.DisposableBase:
    last: Any = None

    def on_next(value: Any) -> None:
        nonlocal last
        last = _kept(last, value)
        progress(value)

    subscription = SingleAssignmentDisposable()
    subscription.disposable = values.subscribe(
        on_next, lambda error: ended(Outcome(error=error)), lambda: ended(Outcome(last))
    )
    return subscription


def _kept(last: Any, value: Any) -> Any:
    """The result so far, after one more value."""
    if isinstance(value, ToolProgress):
        return last if value.result is None else value.result
    return value


def _run_on(
    loop: asyncio.AbstractEventLoop,
    tool: Tool,
    arguments: Mapping[str, Any],
    progress: Callable[[Any], None],
    ended: Callable[[Outcome], None],
) -> abc.DisposableBase:
    stopped = False

    async def run() -> None:
        if stopped:
            return
        try:
            value = await _value(tool, arguments, progress)
        except asyncio.CancelledError:
            if stopped:
                return
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # not the tool's doing: the loop is shutting down
            outcome = Outcome(error=RxDeltaError("the tool was cancelled"))
        except Exception as error:
            outcome = Outcome(error=error)
        else:
            outcome = Outcome(value)
        if not stopped:
            ended(outcome)

    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        if not stopped:
            tasks.append(loop.create_task(run()))

    def stop() -> None:
        nonlocal stopped
        stopped = True
        _on(loop, lambda: [task.cancel() for task in tasks if task is not asyncio.current_task()])

    _on(loop, begin)
    return Disposable(stop)


def _on(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Act on the loop's own thread: at once if that is this one."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        act()
    elif not loop.is_closed():
        loop.call_soon_threadsafe(act)


async def _value(tool: Tool, arguments: Mapping[str, Any], progress: Callable[[Any], None]) -> Any:
    value: Any = tool(**arguments) if _is_async(tool) else await asyncio.to_thread(tool, **arguments)
    if inspect.isawaitable(value):
        value = await value
    if isinstance(value, Observable):
        return await _observed(value, progress)  # pyright: ignore[reportUnknownArgumentType]
    if hasattr(value, "__aiter__"):
        return await _iterated(value, progress)
    return value


async def _iterated(values: Any, progress: Callable[[Any], None]) -> Any:
    last: Any = None
    try:
        async for value in values:
            last = _kept(last, value)
            progress(value)
    finally:
        close = getattr(values, "aclose", None)
        if close is not None:
            await close()
    return last


async def _observed(values: Observable[Any], progress: Callable[[Any], None]) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome) -> None:
        _on(loop, lambda: None if done.done() else done.set_result(outcome))

    subscription = _follow(values, lambda value: _on(loop, lambda: progress(value)), settle)
    try:
        outcome = await done
    finally:
        subscription.dispose()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _is_async(tool: Any) -> bool:
    while isinstance(tool, functools.partial):
        tool = tool.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    called: Any = tool if inspect.isroutine(tool) else getattr(tool, "__call__", tool)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
