"""Running the tools that a reply calls for, while the rest of it still streams."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock, get_ident
from typing import Any, ClassVar, Literal

import attrs
from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SingleAssignmentDisposable
from reactivex.scheduler import CurrentThreadScheduler

from rxdelta.core import (
    DEFAULT_LIMITS,
    BlockFold,
    Event,
    InvalidValueError,
    Limits,
    ToolCall,
    ToolError,
    ToolResult,
    is_mapping,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Index,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolCallDelta,
    ToolUpdate,
)
from rxdelta.operators._clock import check_seconds, clock
from rxdelta.operators._outlet import Outlet
from rxdelta.operators._projection import check_place
from rxdelta.operators._session import current_session
from rxdelta.operators._stray import report
from rxdelta.operators._tool_execution import (
    Outcome,
    Tool,
    ToolProgress,
    bind_error,
    execute,
    is_interrupt,
    result_of,
)

__all__ = ["run_tools"]

_LOG = logging.getLogger("rxdelta")
_FAILED = "The tool failed."
_CANCELLED = "the tool was cancelled"
_NOT_JSON = "The tool's result cannot be written as JSON."


def run_tools(
    tools: Mapping[str, Tool],
    max_concurrency: int | None = None,
    timeout: float | None = None,
    start: Literal["ready", "message"] = "ready",
    *,
    unknown: Literal["fail", "leave"] = "fail",
    on_error: Callable[[ToolCall, Exception], str] | None = None,
    choice: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with `ToolUpdate`s woven in: each call's tool is run as soon as the call is complete.

    A call is `identified` when its block begins, `executing` when its tool starts, and ends `completed` or `failed`,
    with a `ToolResult` that can be sent to the model: the tool's value, or what went wrong. Events are passed on
    before what they start. A call is acted on once: what repeats it in its message, or comes behind the message's
    end, starts nothing.

    A tool is called with the call's arguments as keywords. It may be a coroutine function; a plain function, which
    runs on a thread if there is a running loop (without one where it is called, and then no time limit can end it);
    or one that returns an Observable or an async iterator, whose values are partial results, the last being the
    result, and whose `ToolProgress`es refine the display text. A value is any JSON value, a record (attrs, dataclass,
    Pydantic), or a `ToolResult`.

    What a tool raises is logged (`rxdelta`) and stays here: the result says "The tool failed.", or what `on_error`
    makes of it. What a tool has to say of its failure it says by `ToolError`, or by a `ToolResult` with `is_error`.

    Calls start in the order in which they became ready, at most `max_concurrency` at a time; the next one starts as
    soon as one ends. The time limit counts from a tool's own start.

    Completes when the source has and all tools have ended. A call whose block the stream cut off fails. Another
    attempt cancels the tools of the one before.

    Args:
        tools: The functions by the names that the model calls them by.
        max_concurrency: How many may run at once; `None` doesn't limit.
        timeout: Seconds after which a tool is cancelled and its call fails. A thread cannot be stopped; its result is
            ignored.
        start: `ready`: when the provider has ended the call's block, or begun the next one with this call's arguments
            whole. `message`: when the message has finished. Never merely because the arguments so far happen to parse.
        unknown: What becomes of a call whose name is not in `tools`. `fail`: it fails, for the model to read. `leave`:
            it is somebody else's, such as the browser's or another `run_tools`'; nothing is told of it, and the stream
            doesn't wait for it.
        on_error: The text for the model, and for whoever sees the result, of an exception that a tool raised. It
            is not asked about a `ToolError`, which has its text, nor about what is no `Exception`.
        choice: Which of several alternative replies the tools are run for.
        limits: What the stream may make us hold.
        scheduler: Whose time the limits and durations are in.

    Raises:
        InvalidValueError: At once, for an argument that cannot be.

    Errors: The source's, after the running tools were cancelled and their calls have failed; in the same way
    `LimitExceededError`, and `InvalidValueError` for an asynchronous tool where no asyncio loop is running. A tool's
    failure is a value. Disposing cancels what runs, and so does an observer that raises; what it raises while it is
    told a tool's news is raised by the `for_each` or `async for` that reads the pipeline.

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
    if unknown not in ("fail", "leave"):
        raise InvalidValueError.of([("unknown", unknown, "must be 'fail' or 'leave'")])
    if on_error is not None and not callable(on_error):
        raise InvalidValueError.of([("on_error", on_error, "must be a function of the call and the error")])
    rules = _Rules(
        tools=dict(tools),
        most=max_concurrency,
        timeout=None if timeout is None else check_seconds("timeout", timeout),
        at_once=start == "ready",
        leaves_unknown=unknown == "leave",
        on_error=on_error,
        choice=choice,
        limits=limits,
    )

    def apply(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = clock(scheduler, inherited)
            weaving = _Weaving(observer, rules, time)
            weaving.upstream.disposable = source.subscribe(
                weaving.on_next, weaving.on_error, weaving.on_completed, scheduler=inherited
            )
            weaving.subscribed()
            return CompositeDisposable(Disposable(weaving.stop), owned)

        return Observable(subscribe)

    return apply


@attrs.frozen(kw_only=True)
class _Rules:
    """What one `run_tools(…)` asks for."""

    tools: Mapping[str, Tool]
    most: int | None
    timeout: float | None
    at_once: bool
    leaves_unknown: bool
    on_error: Callable[[ToolCall, Exception], str] | None
    choice: int
    limits: Limits


class _Message:
    """What is known of the message that is coming in."""

    __slots__ = ("begun", "grown", "id", "known", "open", "over", "places", "waiting")

    def __init__(self) -> None:
        self.id: str | None = None
        self.begun = self.over = False
        self.open: dict[Index, _Call] = {}  # calls whose block has not ended
        self.grown: dict[Index, _Call] = {}  # those that have come or grown since the newest block began
        self.waiting: dict[
            _Call, None
        ] = {}  # calls that have not been acted on, in the order of their blocks
        self.places: set[Index] = set()  # where the newest block is, or was, a call
        self.known: dict[tuple[Index, str], _Call] = {}  # no other call with such a key is acted on


class _Call:
    """One call, from the start of its block to its outcome."""

    __slots__ = (
        "asked",
        "began",
        "call_id",
        "fold",
        "identified",
        "index",
        "message",
        "name",
        "run",
        "terminal",
    )

    def __init__(self, message: _Message, index: Index, fold: BlockFold) -> None:
        self.message = message
        self.index = index
        self.fold = fold
        self.call_id: str | None = None
        self.name = ""
        self.identified = self.terminal = False
        self.asked: ToolCall | None = None  # the whole call, once it has been acted on
        self.began: Any = None
        self.run = CompositeDisposable()


class _Turns(abc.ObserverBase[Callable[[], None]]):
    """What is to be done, one thing at a time and in the order in which it came, whatever threads it came on."""

    def on_next(self, value: Callable[[], None]) -> None:
        value()

    def on_error(self, error: Exception) -> None:
        pass

    def on_completed(self) -> None:
        pass


class _Weaving:
    """One subscription's state. Tools may answer at any time, from within their own start, and from other threads.

    All that happens takes its turn: the state is changed, and the observer told, by one thread at a time, and no
    lock is held meanwhile. A turn changes the state first; then what came of it is told, and then the tools start
    whose `executing` has been told. They start between two turns, so that their news are told while they run.
    """

    def __init__(self, observer: abc.ObserverBase[Event], rules: _Rules, time: abc.SchedulerBase) -> None:
        self._observer = observer
        self._rules = rules
        self._time = time
        self._loop = _running_loop()
        self._session = current_session.get()
        self._turns: Outlet[Callable[[], None]] = Outlet(_Turns())
        self._message = _Message()
        self._pending: dict[_Call, None] = {}  # calls without an outcome, in the order of their blocks
        self._ready: deque[_Call] = deque()
        self._running = 0
        self._news: deque[ToolUpdate] = deque()  # what came of this turn
        self._due: deque[_Call] = deque()  # whose tools start when nobody is told anything
        self._starting = Lock()  # only tried, never waited for
        self._starter: int | None = None  # the thread that starts a tool
        self._raised: BaseException | None = (
            None  # what an observer raised when it was told news within that start
        )
        self._subscribing = True
        self._source_ended = False
        self._failure: Exception | None = None
        self.upstream = SingleAssignmentDisposable()

    # What the source says.

    def on_next(self, event: Event) -> None:
        self._take_turn(self._hear, event)

    def on_error(self, error: Exception) -> None:
        self._take_turn(self._act, self._break_off, error)

    def on_completed(self) -> None:
        self._take_turn(self._act, self._end_source)

    def subscribed(self) -> None:
        """A source that says all of it while it is being subscribed to can't be told that the reader has gone.

        So its calls have waited, and go on waiting until the whole chain has been subscribed.
        """
        self._subscribing = False
        if self._ready:
            CurrentThreadScheduler.singleton().schedule(lambda *_: self._take_turn(self._act, _nothing))

    def stop(self) -> None:
        """Nobody listens any more."""
        self._turns.stop()
        self.upstream.dispose()
        for call in [*self._pending]:
            call.run.dispose()

    # Turns.

    def _take_turn(self, step: Callable[..., None], *arguments: Any) -> None:
        try:
            self._turns.on_next(partial(step, *arguments))
            self._start_due()
        except BaseException:  # an observer that raises has left
            self.stop()
            raise

    def _take_tools_turn(self, step: Callable[..., None], *arguments: Any) -> None:
        """A turn that a tool or a timer takes, where nobody would catch what the observer raises."""
        try:
            self._take_turn(self._act, step, *arguments)
        except BaseException as error:
            if self._starter == get_ident():
                self._raised = error
                return
            report(error, "an observer of run_tools raised when it was told of a tool", self._session)
            if is_interrupt(error):
                raise

    def _hear(self, event: Event) -> None:
        self._observer.on_next(event)
        step = self._STEPS.get(type(event))
        if (
            step is not None
            and not self._turns.closed
            and getattr(event, "choice", self._rules.choice) == self._rules.choice
        ):
            self._act(step, self, event)

    def _act(self, step: Callable[..., None], *arguments: Any) -> None:
        try:
            step(*arguments)
            self._start_ready()
        except Exception as error:
            self._break_off(error)
        while self._news and not self._turns.closed:
            self._observer.on_next(self._news.popleft())
        if self._turns.closed:
            return
        if self._failure is not None:
            self.stop()
            self._observer.on_error(self._failure)
        elif self._source_ended and not self._pending:
            self.stop()
            self._observer.on_completed()

    # What becomes of a message and its calls.

    def _message_start(self, event: MessageStart) -> None:
        message = self._message
        if message.over or (message.begun and (event.id is None or event.id != message.id)):
            for call in [*message.waiting]:
                self._fail(call, "the message ended before the call was complete")
            message = self._message = _Message()
        message.id = message.id or event.id

    def _block_start(self, event: BlockStart) -> None:
        message, index = self._message, event.index
        if message.over:
            return
        message.begun = True
        message.places.discard(index)
        message.grown.pop(index, None)
        replaced = message.open.pop(index, None)
        self._ask_for_whole()
        fold = BlockFold(event, limits=self._rules.limits)
        block = fold.block
        ours = isinstance(block, ToolCall) and block.type == "tool_call"
        if (
            replaced is not None
            and ours
            and replaced.call_id is not None
            and replaced.call_id == block.call_id
        ):
            replaced.fold = fold  # should its tool run already, it must not end with other arguments
            self._open(replaced)
            return
        if replaced is not None:
            self._fail(replaced, "the call was begun again")
        if ours:
            self._begin(index, fold)

    def _begin(self, index: Index, fold: BlockFold) -> _Call | None:
        """A call that has not been there before; `None` if it turns out that it has."""
        call = _Call(self._message, index, fold)
        self._open(call)
        self._pending[call] = self._message.waiting[call] = None
        return call if self._identify(call) else None

    def _open(self, call: _Call) -> None:
        message = call.message
        check_place(call.index, len(message.places), self._rules.limits)
        message.places.add(call.index)
        message.open[call.index] = message.grown[call.index] = call

    def _arguments(self, event: ToolCallDelta) -> None:
        call = self._message.open.get(event.index)
        if call is not None:
            call.fold.step(event)
            self._message.grown[event.index] = call

    def _block_delta(self, event: BlockDelta) -> None:
        call = self._message.open.get(event.index)
        if call is not None:
            call.fold.step(event)
            self._message.grown[event.index] = call
            self._identify(call)

    def _block_finish(self, event: BlockFinish) -> None:
        message, index = self._message, event.index
        if message.over:
            return
        call = message.open.get(index)
        if call is None:
            if event.content is None or index in message.places:
                return
            message.begun = True
            fold = BlockFold(BlockStart(index, event.content, choice=event.choice), limits=self._rules.limits)
            if not isinstance(fold.block, ToolCall) or fold.block.type == "server_tool_call":
                return
            call = self._begin(index, fold)
            if call is None:
                return
        del message.open[index]
        message.grown.pop(index, None)
        call.fold.step(event)
        if self._identify(call):
            self._close(call, ask=self._rules.at_once)

    def _identify(self, call: _Call) -> bool:
        """Whether the call is still to be followed. It isn't if one with its id has been at its place before."""
        block = call.fold.block
        if not isinstance(block, ToolCall):
            return True
        call.call_id, call.name = block.call_id, block.name or ""
        if call.call_id is None:
            return True
        if call.message.known.setdefault((call.index, call.call_id), call) is not call:
            call.message.open.pop(call.index, None)
            call.message.grown.pop(call.index, None)
            self._let_go(call)
            return False
        if not call.identified and self._is_ours(call):
            call.identified = True
            self._news.append(ToolUpdate(call.call_id, "identified"))
        return True

    def _is_ours(self, call: _Call) -> bool:
        return not self._rules.leaves_unknown or call.name in self._rules.tools

    def _close(self, call: _Call, *, ask: bool) -> None:
        block = call.fold.block
        foreign = isinstance(block, ToolCall) and block.type == "server_tool_call"
        if not self._is_ours(call) or (foreign and call.asked is None):
            self._let_go(call)
        elif foreign or not isinstance(block, ToolCall):
            self._fail(call, "it turned out to be no call")
        elif block.type != "tool_call" or not is_mapping(block.arguments):
            self._fail(call, f"invalid arguments: {block.error}")
        elif call.asked is not None:
            if block.arguments != call.asked.arguments:
                self._fail(call, "the arguments changed after the call had begun")
        elif ask:
            self._ask(call, block)

    def _ask_for_whole(self) -> None:
        """A provider that goes on to the next block is done with a call whose arguments are whole.

        A call that has not grown since the last block began was no whole one then, and is none now.
        """
        grown, self._message.grown = self._message.grown, {}
        if not self._rules.at_once:
            return
        for call in grown.values():
            block: Any = call.fold.block
            if call.asked is not None or not (call.call_id and call.name and self._is_ours(call)):
                continue
            if block.arguments and block.is_final() and is_mapping(arguments := block.arguments_so_far):
                self._ask(call, attrs.evolve(block, arguments=arguments, status="complete", open=False))

    def _ask(self, call: _Call, asked: ToolCall) -> None:
        """Act on the call: from here on its tool runs, or will, and nothing else makes it run."""
        call.asked = asked
        del call.message.waiting[call]
        self._ready.append(call)

    def _message_finish(self, event: MessageFinish) -> None:
        message = self._message
        if message.over:
            return
        message.over = True
        cut = "the message was cut short by the token limit" if event.reason == "length" else None
        for call in message.open.values():
            call.fold.finish(cut=cut)
        message.open.clear()
        for call in [*message.waiting]:
            self._close(call, ask=True)

    def _interrupted(self, _: MessageInterrupted) -> None:
        self._message.over = True
        self._give_up("the message was interrupted")

    def _reset(self, _: AttemptReset) -> None:
        """A new attempt begins without the calls of the last one, and the snapshot has forgotten them too.

        Behind a message that is over it is the next message's, and none of its calls are there yet.
        """
        message, self._message = self._message, _Message()
        for call in [*self._pending]:
            if call.message is message and not message.over:
                self._let_go(call)

    def _end_source(self) -> None:
        self._source_ended = True
        for call in [*self._message.waiting]:
            self._fail(call, "the stream ended before the call was complete")

    def _break_off(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._give_up("the stream broke off")

    def _give_up(self, why: str) -> None:
        self._message.open.clear()
        for call in [*self._pending]:
            self._fail(call, why)

    _STEPS: ClassVar[dict[type, Callable[[_Weaving, Any], None]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        ToolCallDelta: _arguments,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        MessageFinish: _message_finish,
        MessageInterrupted: _interrupted,
        AttemptReset: _reset,
    }

    # What runs.

    def _start_ready(self) -> None:
        most = self._rules.most
        while self._ready and not self._subscribing and (most is None or self._running < most):
            call = self._ready.popleft()
            if call.asked is not None and not call.terminal:
                self._start(call, call.asked)

    def _start(self, call: _Call, asked: ToolCall) -> None:
        tool = self._rules.tools.get(call.name)
        if tool is None:
            self._fail(call, f"there is no tool {call.name!r}")
            return
        wrong = bind_error(tool, asked.arguments_as_map())
        if wrong is not None:
            self._fail(call, f"invalid arguments: {wrong}")
            return
        self._running += 1
        call.began = self._time.now
        self._news.append(ToolUpdate(call.call_id or "", "executing"))
        self._due.append(call)

    def _start_due(self) -> None:
        """Start the tools that are due, unless somebody is told something or starts one: he will see to the rest."""
        while self._due and not self._turns.telling and self._starting.acquire(blocking=False):
            try:
                self._starter = get_ident()
                if self._due:
                    self._run(self._due.popleft())
            finally:
                self._starter = None
                self._starting.release()
            raised, self._raised = self._raised, None
            if raised is not None:
                raise raised

    def _run(self, call: _Call) -> None:
        if call.asked is None or call.terminal or self._turns.closed:
            return
        if self._rules.timeout is not None:
            call.run.add(
                self._time.schedule_relative(
                    self._rules.timeout, lambda *_: self._take_tools_turn(self._timed_out, call)
                )
            )
        try:
            run = execute(
                self._rules.tools[call.name],
                call.asked.arguments_as_map(),
                self._loop,
                partial(self._progress, call),
                partial(self._ended, call),
            )
        except InvalidValueError as error:
            self._take_turn(self._act, self._break_off, error)
        else:
            call.run.add(run)

    def _progress(self, call: _Call, value: Any) -> None:
        """What a tool gives before its end, told on whatever thread it runs."""
        if call.terminal or self._turns.closed:
            return
        text = value.display_text if isinstance(value, ToolProgress) else None
        value = value.result if isinstance(value, ToolProgress) else value
        result = None if value is None else self._written(call, value)
        if value is not None and result is None:
            self._take_tools_turn(self._fail, call, _NOT_JSON)
        elif text or result is not None:
            self._take_tools_turn(self._tell, call, ToolUpdate(call.call_id or "", None, text, result))

    def _ended(self, call: _Call, outcome: Outcome) -> None:
        """How a tool ended, told on whatever thread it ran."""
        if call.terminal or self._turns.closed:
            return
        if outcome.cancelled:
            self._take_tools_turn(self._cancelled, call)
        elif outcome.error is not None:
            self._take_tools_turn(self._fail, call, self._words(call, outcome.error))
        elif (result := self._written(call, outcome.value)) is None:
            self._take_tools_turn(self._fail, call, _NOT_JSON)
        else:
            self._take_tools_turn(self._settle, call, "failed" if result.is_error else "completed", result)

    def _timed_out(self, call: _Call) -> None:
        self._fail(call, f"the tool did not end within {self._rules.timeout:g} seconds")

    def _cancelled(self, call: _Call) -> None:
        """Somebody else cancelled the tool's task. That may be the program's end: nothing more is started."""
        for other in [call, *self._ready]:
            self._fail(other, _CANCELLED)

    def _written(self, call: _Call, value: Any) -> ToolResult | None:
        try:
            return result_of(call.call_id or "", value, self._seconds(call))
        except BaseException as error:
            if is_interrupt(error):
                raise
            _LOG.error("the result of the tool %s cannot be written as JSON", call.name, exc_info=error)
            return None

    def _words(self, call: _Call, error: BaseException) -> str:
        """What the model is told of an exception of the tool's, which may hold secrets."""
        if isinstance(error, asyncio.CancelledError):
            return _CANCELLED
        ask = self._rules.on_error
        try:
            if isinstance(error, ToolError):
                return str(error) or _FAILED
            _LOG.error("the tool %s failed", call.name, exc_info=error)
            if ask is None or call.asked is None or not isinstance(error, Exception):
                return _FAILED
            words: object = ask(call.asked, error)
            if isinstance(words, str):
                return words
            raise InvalidValueError.of([("on_error", words, "must return the text for the model")])
        except BaseException as failure:
            if is_interrupt(failure):
                raise
            _LOG.error("the tool %s failed, and what to say of it did, too", call.name, exc_info=failure)
            return _FAILED

    def _tell(self, call: _Call, update: ToolUpdate) -> None:
        if not call.terminal:
            self._news.append(update)

    def _fail(self, call: _Call, why: str) -> None:
        self._settle(
            call, "failed", ToolResult(call.call_id, why, is_error=True, duration=self._seconds(call))
        )

    def _settle(self, call: _Call, status: str, result: ToolResult) -> None:
        """The call's outcome; the first one stands."""
        if not call.terminal and call.call_id is not None and self._is_ours(call):
            self._news.append(ToolUpdate(call.call_id, status, None, result))
        self._let_go(call)

    def _let_go(self, call: _Call) -> None:
        """Be done with a call, whose tool is cancelled if it runs."""
        if call.terminal:
            return
        call.terminal = True
        self._pending.pop(call, None)
        call.message.waiting.pop(call, None)
        if call.began is not None:
            self._running -= 1
        call.run.dispose()

    def _seconds(self, call: _Call) -> float | None:
        return None if call.began is None else max(0.0, (self._time.now - call.began).total_seconds())


def _nothing() -> None:
    """A turn for what has been waiting."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
