"""Running tools: functions, coroutines, async iterators and Observables."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from threading import Event as ThreadEvent
from typing import TYPE_CHECKING, Any, Literal, cast

import attrs
from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.core import Event, InvalidValueError, Message, Snapshot, ToolResult, is_mapping, quote
from rxdelta.core.events import Custom
from rxdelta.operators.tools.sub_agent import AgentUpdates, is_of_agent
from rxdelta.operators.tools.tool_runs import CANCELLED, ToolRun, ToolRuns
from rxdelta.runtime import Journal, Sink, call_on, is_interrupt

if TYPE_CHECKING:
    from rxdelta.operators.tools.asked_calls import AskedCall

Tool = Callable[..., object]
_LOG = logging.getLogger("rxdelta")
_NO_LOG = "the log of the stream had ended before the tool could be called"
_NOT_JSON = "The tool's result cannot be written as JSON."
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


@attrs.define(eq=False)
class ToolExecution:
    """Runs the tools of one subscription, in the order in which their calls became ready.

    Args:
        sink: Gets the start of each tool, as an effect.
        runs: The calls.
        time: The clock of time limits.
        loop: The running loop, if there is one.
        journal: The log of the stream, which gets `executing` before a tool starts.
        tools: The functions by the names that the model uses.
        max_concurrency: How many tools may run at once.
        timeout: Seconds after which a call fails.
    """

    _sink: Sink[Event]
    _runs: ToolRuns
    _time: abc.SchedulerBase
    _loop: asyncio.AbstractEventLoop | None
    _journal: Journal | None
    _tools: Mapping[str, Tool]
    _max_concurrency: int | None
    _timeout: float | None
    _ready: deque[ToolRun] = attrs.field(init=False, factory=deque[ToolRun])

    def fits(self, run: ToolRun) -> bool:
        """Whether the call's name and arguments fit a tool; otherwise the call fails."""
        tool = self._tools.get(run.name)
        if tool is None:
            _LOG.warning("the model called the tool %r, which run_tools() doesn't have", run.name)
            self._runs.fail(run.call, f"there is no tool {run.name!r}")
            return False
        wrong = bind_error(tool, run.asked.arguments_as_map())
        if wrong is not None:
            _LOG.warning("the arguments of a call don't fit the tool %r: %s", run.name, quote(wrong))
            self._runs.fail(run.call, f"invalid arguments: {wrong}")
        return wrong is None

    def add(self, run: ToolRun) -> None:
        """Start the tool at the end of this turn, or when another one has ended."""
        self._ready.append(run)

    def start_ready(self) -> None:
        while self._ready and (self._max_concurrency is None or self._runs.running < self._max_concurrency):
            run = self._ready.popleft()
            if run in self._runs:
                self._start(run)

    def _start(self, run: ToolRun) -> None:
        self._runs.running += 1
        run.began = self._time.now
        run.call.taken = True
        update = self._runs.update(run.call, "executing")
        if self._journal is None:
            self._sink.effect(self._run, run)
        else:
            run.cancel.add(self._journal.when_written(update, partial(self._announced, run)))

    def _announced(self, run: ToolRun, is_written: bool) -> None:
        """The stream's log has the call's `executing`, so nobody else will run the call; or the log has ended."""
        if is_written:
            self._runs.turn(self._begin, run)
        else:
            self._runs.turn(self._runs.fail, run.call, _NO_LOG)

    def _begin(self, run: ToolRun) -> None:
        run.began = self._time.now  # again: the wait for the log is no time of the tool
        self._sink.effect(self._run, run)

    def _run(self, run: ToolRun) -> None:
        if run not in self._runs:
            return
        if self._timeout is not None:
            why = f"the tool did not end within {self._timeout:g} seconds"
            run.cancel.add(self._later(self._timeout, partial(self._runs.fail, run.call, why)))
        self._runs.begin(
            run,
            lambda: execute(
                self._tools[run.name],
                run.asked.arguments_as_map(),
                self._loop,
                partial(self._progress, run),
                partial(self._ended, run),
            ),
        )

    def _later(self, seconds: float, step: Callable[[], None]) -> abc.DisposableBase:
        def fire(*_: object) -> None:
            self._runs.turn(step)

        return self._time.schedule_relative(seconds, fire)

    def _progress(self, run: ToolRun, value: Any) -> None:
        """A tool's value before its end, on the tool's thread."""
        if run not in self._runs or self._sink.closed:
            return
        runs = self._runs
        if isinstance(value, Custom):
            runs.turn(self._say, run, value)
            return
        text = value.display_text if isinstance(value, ToolProgress) else None
        value = value.result if isinstance(value, ToolProgress) else value
        if is_of_agent(value):
            runs.turn(self._follow_agent, run, text, value)
            return
        result = None if value is None else self._to_result(run, value)
        if value is not None and result is None:
            runs.turn(runs.fail, run.call, _NOT_JSON)
        elif text or result is not None:
            runs.turn(self._add_update, run, text, result)

    def _say(self, run: ToolRun, event: Custom) -> None:
        """Emit an event of the application's own, which a tool says, or an agent that a tool is."""
        if run in self._runs:
            self._runs.updates.append(attrs.evolve(event, run_id=run.call.run.run_id))

    def _add_update(self, run: ToolRun, text: str | None, result: ToolResult | None) -> None:
        if run in self._runs:
            self._runs.update(run.call, None, text, result and run.with_messages(result))

    def _follow_agent(self, run: ToolRun, text: str | None, value: Any) -> None:
        if run not in self._runs:
            return
        agent = self._agent_of(run)
        try:
            agent.step(value)
        except Exception as error:
            self._runs.fail(run.call, self._runs.error_text(run, error))
            return
        if text:
            self._add_update(run, text, None)
        agent.update()

    def _agent_of(self, run: ToolRun) -> AgentUpdates:
        if run.agent is None:

            def show(text: str, metadata: Mapping[str, Any]) -> None:
                duration = self._runs.seconds(run.call)
                self._runs.update(
                    run.call,
                    None,
                    None,
                    ToolResult(run.call.call_id, text, metadata=metadata, duration=duration),
                )

            run.agent = AgentUpdates(self._sink.limits, show, self._later)
            run.cancel.add(run.agent.pause)
        return run.agent

    def _end_agent(self, run: ToolRun, last: Any) -> None:
        """The end of a tool that is an agent. Its last value is new if the tool returned it."""
        if run not in self._runs:
            return
        agent = self._agent_of(run)
        try:
            if isinstance(last, (Snapshot, Message)):
                agent.step(last)
            text = agent.answer()
        except Exception as error:
            self._runs.fail(run.call, self._runs.error_text(run, error))
        else:
            result = ToolResult(run.call.call_id, text, duration=self._runs.seconds(run.call))
            self._runs.settle(run.call, "completed", result)

    def _ended(self, run: ToolRun, outcome: ToolOutcome) -> None:
        """The end of a tool, on the tool's thread."""
        if run not in self._runs or self._sink.closed:
            return
        runs, call = self._runs, run.call
        if outcome.cancelled:
            runs.turn(self._cancelled, call)
        elif outcome.error is not None:
            runs.turn(runs.fail, call, runs.error_text(run, outcome.error))
        elif isinstance(outcome.value, Custom):  # returned, not yielded
            runs.turn(self._say, run, outcome.value)
            self._ended(run, ToolOutcome())
        elif is_of_agent(outcome.value):
            runs.turn(self._end_agent, run, outcome.value)
        elif (result := self._to_result(run, outcome.value)) is None:
            runs.turn(runs.fail, call, _NOT_JSON)
        else:
            runs.turn(runs.settle, call, "failed" if result.is_error else "completed", result)

    def _cancelled(self, call: AskedCall) -> None:
        """Others than the tool cancelled its task. The program may be ending, so no further tool is started."""
        self._runs.fail(call, CANCELLED)
        while self._ready:
            self._runs.fail(self._ready.popleft().call, CANCELLED)

    def _to_result(self, run: ToolRun, value: Any) -> ToolResult | None:
        try:
            return result_of(run.call.call_id, value, self._runs.seconds(run.call))
        except BaseException as error:
            if is_interrupt(error):
                raise
            _LOG.error("the result of the tool %r cannot be written as JSON", run.name, exc_info=error)
            return None
