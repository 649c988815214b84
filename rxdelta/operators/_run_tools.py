"""Running the tools that a reply calls for, while the rest of it still streams."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import Any, Literal

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from rxdelta.core import BlockFold, Event, InvalidValueError, ToolCall, ToolResult, is_mapping
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    ToolCallDelta,
    ToolUpdate,
)
from rxdelta.operators._clock import check_seconds, clock
from rxdelta.operators._tool_execution import Outcome, Tool, ToolProgress, bind_error, execute, result_of

__all__ = ["run_tools"]

_LOG = logging.getLogger("rxdelta")


def run_tools(
    tools: Mapping[str, Tool],
    max_concurrency: int | None = None,
    timeout: float | None = None,
    start: Literal["ready", "message"] = "ready",
    *,
    choice: int = 0,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with `ToolUpdate`s woven in: each call's tool is run as soon as the call is complete.

    A call is `identified` when its block begins, `executing` when its tool starts, and ends `completed` or `failed`,
    with a `ToolResult` that can be sent to the model: the tool's value, or what went wrong. Events are passed on
    before what they start.

    A tool is called with the call's arguments as keywords. It may be a coroutine function; a plain function, which
    runs on a thread if there is a running loop (without one where it is called); or one that returns an Observable or
    an async iterator, whose values are partial results, the last being the result, and whose `ToolProgress`es refine
    the display text. A value is any JSON value, a record (attrs, dataclass, Pydantic), or a `ToolResult`.

    Calls start in the order in which they became ready, at most `max_concurrency` at a time; the next one starts as
    soon as one ends. The time limit counts from a tool's own start.

    Completes when the source has and all tools have ended. A call whose block the stream cut off fails.

    Args:
        tools: The functions by the names that the model calls them by.
        max_concurrency: How many may run at once; `None` doesn't limit.
        timeout: Seconds after which a tool is cancelled and its call fails. A thread cannot be stopped; its result is
            ignored.
        start: `ready`: when the provider has ended the call's block, or begun the next one with this call's arguments
            whole. `message`: when the message has finished. Never merely because the arguments so far happen to parse.
        choice: Which of several alternative replies the tools are run for.
        scheduler: Whose time the limits and durations are in.

    Raises:
        InvalidValueError: At once, for an argument that cannot be.

    Errors: The source's, after the running tools were cancelled and their calls have failed. A tool's failure is a
    value. Disposing cancels what runs.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> call = {"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 1, "b": 2}}
        >>> events = [rd.events.BlockStart(0, call), rd.events.BlockFinish(0), rd.events.MessageFinish("tool_use")]
        >>> done = rx.from_iterable(events).pipe(rd.run_tools({"add": lambda a, b: a + b}), rd.scan_deltas()).run()
        >>> done.tool_calls[0].execution_status(), done.tool_calls[0].result.content
        ('completed', 3)
    """
    if max_concurrency is not None and (not isinstance(max_concurrency, int) or max_concurrency < 1):
        raise InvalidValueError.of([("max_concurrency", max_concurrency, "must be at least 1")])
    if start not in ("ready", "message"):
        raise InvalidValueError.of([("start", start, "must be 'ready' or 'message'")])
    limit = None if timeout is None else check_seconds("timeout", timeout)
    known = dict(tools)

    def apply(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = clock(scheduler, inherited)
            weaving = _Weaving(observer, known, max_concurrency, limit, start == "ready", choice, time)
            upstream = source.subscribe(
                weaving.on_next, weaving.on_error, weaving.on_completed, scheduler=inherited
            )
            return CompositeDisposable(Disposable(weaving.stop), upstream, owned)

        return Observable(subscribe)

    return apply


class _Call:
    """One call, from the start of its block to its outcome."""

    __slots__ = ("arguments", "began", "call_id", "fold", "identified", "name", "queued", "run", "terminal")

    def __init__(self, fold: BlockFold) -> None:
        self.fold = fold
        self.call_id: str | None = None
        self.name: str = ""
        self.identified = self.queued = self.terminal = False
        self.arguments: Mapping[str, Any] = {}
        self.began: Any = None
        self.run: CompositeDisposable | None = None

    @property
    def block(self) -> Any:
        return self.fold.block


class _Weaving:
    """One subscription's state. Tools may answer at any time, from within their own start, and from other threads."""

    def __init__(
        self,
        observer: abc.ObserverBase[Event],
        tools: Mapping[str, Tool],
        max_concurrency: int | None,
        timeout: float | None,
        at_once: bool,
        choice: int,
        time: abc.SchedulerBase,
    ) -> None:
        self._observer = observer
        self._tools = tools
        self._most = max_concurrency
        self._timeout = timeout
        self._at_once = at_once
        self._choice = choice
        self._time = time
        self._loop = _running_loop()
        self._lock = RLock()
        self._open: dict[int | str, _Call] = {}  # calls whose block has not ended
        self._calls: list[_Call] = []  # calls without an outcome, in the order of their blocks
        self._ready: deque[_Call] = deque()
        self._running = 0
        self._starting = False
        self._source_ended = self._stopped = False

    # What the source says.

    def on_next(self, event: Event) -> None:
        with self._lock:
            if self._stopped:
                return
            self._observer.on_next(event)
            if not self._stopped and getattr(event, "choice", self._choice) == self._choice:
                self._take(event)
                self._start_ready()

    def on_error(self, error: Exception) -> None:
        with self._lock:
            self._give_up("the stream broke off")
            if not self._stopped:
                self._stopped = True
                self._observer.on_error(error)

    def on_completed(self) -> None:
        with self._lock:
            self._source_ended = True
            if self._stopped:
                return
            for call in [*self._calls]:
                if not call.queued:
                    self._fail(call, "the stream ended before the call was complete")
            self._complete_if_done()

    def stop(self) -> None:
        self._stopped = True
        for call in [*self._calls]:
            if call.run is not None:
                call.run.dispose()

    def _take(self, event: Event) -> None:
        if isinstance(event, (ToolCallDelta, BlockDelta)):
            call = self._open.get(event.index)
            if call is not None:
                call.fold.step(event)
                self._identify(call)
        elif isinstance(event, BlockStart):
            self._begun_another(event.index)
            fold = BlockFold(event)
            if isinstance(fold.block, ToolCall) and fold.block.type == "tool_call":
                call = self._open[event.index] = _Call(fold)
                self._calls.append(call)
                self._identify(call)
        elif isinstance(event, BlockFinish):
            self._finish(event)
        elif isinstance(event, MessageFinish):
            self._message_finished(event)
        elif isinstance(event, MessageInterrupted):
            self._give_up("the message was interrupted")
        elif isinstance(event, AttemptReset):
            self._forget()

    def _identify(self, call: _Call) -> None:
        block = call.block
        call.call_id, call.name = block.call_id, block.name or ""
        if call.call_id is not None and not call.identified:
            call.identified = True
            self._tell(ToolUpdate(call.call_id, "identified"))

    def _begun_another(self, index: int | str) -> None:
        """A provider that goes on to the next block is done with a call whose arguments are whole."""
        replaced = self._open.pop(index, None)  # a second start of the same block
        if replaced is not None:
            self._fail(replaced, "the call was begun again")
        if self._at_once:
            for call in self._open.values():
                block = call.block
                if call.queued or not block.arguments or not block.is_final():
                    continue
                arguments: Any = block.arguments_so_far
                if is_mapping(arguments):
                    self._queue(call, arguments)

    def _finish(self, event: BlockFinish) -> None:
        call = self._open.pop(event.index, None)
        if call is None:
            fold = None
            if event.content is not None and not any(known.block.key == event.index for known in self._calls):
                fold = BlockFold(BlockStart(event.index, event.content, choice=event.choice))
            if fold is None or not isinstance(fold.block, ToolCall) or fold.block.type == "server_tool_call":
                return
            call = _Call(fold)
            self._calls.append(call)
        call.fold.step(event)
        self._identify(call)
        self._closed(call, at_once=self._at_once)

    def _closed(self, call: _Call, *, at_once: bool) -> None:
        block = call.block
        arguments: Any = block.arguments
        if block.type != "tool_call" or not is_mapping(arguments):
            self._fail(call, f"invalid arguments: {block.error}")
        elif call.queued:
            if arguments != call.arguments:
                self._fail(call, "the arguments changed after the call had begun")
        elif at_once:
            self._queue(call, arguments)

    def _message_finished(self, event: MessageFinish) -> None:
        cut = "the message was cut short by the token limit" if event.reason == "length" else None
        for call in [*self._open.values()]:
            call.fold.finish(cut=cut)
        self._open.clear()
        for call in [*self._calls]:
            if not call.queued:
                self._closed(call, at_once=True)

    # What runs.

    def _queue(self, call: _Call, arguments: Mapping[str, Any]) -> None:
        call.queued = True
        call.arguments = arguments
        self._ready.append(call)

    def _start_ready(self) -> None:
        if self._starting:  # a tool that answers within its own start must not nest the next start in it
            return
        self._starting = True
        try:
            while self._ready and not self._stopped and (self._most is None or self._running < self._most):
                call = self._ready.popleft()
                if not call.terminal:
                    self._start(call)
        finally:
            self._starting = False

    def _start(self, call: _Call) -> None:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            self._fail(call, f"there is no tool {call.name!r}; there are: {known}")
            return
        wrong = bind_error(tool, call.arguments)
        if wrong is not None:
            self._fail(call, f"invalid arguments: {wrong}")
            return
        self._running += 1
        call.began = self._time.now
        timer = SerialDisposable()
        call.run = CompositeDisposable(timer)
        self._tell(ToolUpdate(call.call_id or "", "executing"))
        if call.terminal or self._stopped:
            return
        if self._timeout is not None:
            timer.disposable = self._time.schedule_relative(self._timeout, partial(self._timed_out, call))
        run = execute(
            tool,
            call.arguments,
            self._loop,
            lambda value: self._progress(call, value),
            lambda outcome: self._ended(call, outcome),
        )
        if call.terminal or self._stopped:
            run.dispose()
        else:
            call.run.add(run)

    def _progress(self, call: _Call, value: Any) -> None:
        with self._lock:
            if call.terminal or self._stopped:
                return
            text = value.display_text if isinstance(value, ToolProgress) else None
            value = value.result if isinstance(value, ToolProgress) else value
            result: ToolResult | None = None
            if value is not None:
                try:
                    result = result_of(call.call_id or "", value, self._seconds(call))
                except Exception as error:
                    self._fail(call, _say(error))
                    self._start_ready()
                    return
            if text or result is not None:
                self._tell(ToolUpdate(call.call_id or "", None, text, result))

    def _ended(self, call: _Call, outcome: Outcome) -> None:
        with self._lock:
            if call.terminal or self._stopped:
                return
            if outcome.error is not None:
                _LOG.info("the tool %s failed", call.name, exc_info=outcome.error)
                self._fail(call, _say(outcome.error))
            else:
                try:
                    result = result_of(call.call_id or "", outcome.value, self._seconds(call))
                except Exception as error:
                    self._fail(call, _say(error))
                else:
                    self._settle(call, "failed" if result.is_error else "completed", result)
            self._go_on()

    def _timed_out(self, call: _Call, *_: Any) -> None:
        with self._lock:
            if not call.terminal and not self._stopped:
                self._fail(call, f"the tool did not end within {self._timeout:g} seconds")
                self._go_on()

    def _go_on(self) -> None:
        self._start_ready()
        self._complete_if_done()

    def _fail(self, call: _Call, why: str) -> None:
        self._settle(
            call, "failed", ToolResult(call.call_id, why, is_error=True, duration=self._seconds(call))
        )

    def _settle(self, call: _Call, status: str, result: ToolResult) -> None:
        """The call's outcome; the first one stands."""
        if call.terminal:
            return
        call.terminal = True
        self._calls.remove(call)
        if call.run is not None:
            self._running -= 1
            call.run.dispose()
        if call.call_id is not None:
            self._tell(ToolUpdate(call.call_id, status, None, result))

    def _seconds(self, call: _Call) -> float | None:
        return None if call.began is None else max(0.0, (self._time.now - call.began).total_seconds())

    def _give_up(self, why: str) -> None:
        self._open.clear()
        self._ready.clear()
        for call in [*self._calls]:
            self._fail(call, why)

    def _forget(self) -> None:
        """A new attempt begins without the calls of the last one, and the snapshot has forgotten them too."""
        calls, self._calls = self._calls, []
        self._open.clear()
        self._ready.clear()
        for call in calls:
            call.terminal = True
            if call.run is not None:
                self._running -= 1
                call.run.dispose()

    def _tell(self, update: ToolUpdate) -> None:
        if not self._stopped:
            self._observer.on_next(update)

    def _complete_if_done(self) -> None:
        if self._source_ended and not self._calls and not self._stopped:
            self._stopped = True
            self._observer.on_completed()


def _say(error: BaseException) -> str:
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
