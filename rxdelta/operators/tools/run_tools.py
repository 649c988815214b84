"""Running a reply's tools while the rest of it still streams."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Literal, cast

import attrs
from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from rxdelta.core import (
    Approval,
    CallIdentity,
    CompleteToolCall,
    Event,
    ExecutionStatus,
    InvalidValueError,
    Message,
    Seconds,
    Snapshot,
    ToolError,
    ToolResult,
    approved_result,
    check_function,
    check_seconds,
    check_word,
    denied_result,
    is_waiting,
    quote,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    Custom,
    MessageInterrupted,
    MessageStart,
    StreamError,
    ToolUpdate,
)
from rxdelta.operators.tools.approvals import Answers, Approve, WholeCall, answered_by, ask
from rxdelta.operators.tools.asked_calls import AskedCall, AskedCalls, Decision
from rxdelta.operators.tools.sub_agent import SubAgent, is_of_agent
from rxdelta.operators.tools.tool_execution import (
    Tool,
    ToolOutcome,
    ToolProgress,
    bind_error,
    execute,
    result_of,
)
from rxdelta.runtime import (
    Sink,
    create,
    is_interrupt,
    journal_of,
    journaling,
    operator_maker,
    running_loop,
)

__all__ = ["run_tools"]

_LOG = logging.getLogger("rxdelta")
_FAILED = "The tool failed."
_CANCELLED = "the tool was cancelled"
_NO_LOG = "the log of the stream had ended before the tool could be called"
_NOT_JSON = "The tool's result cannot be written as JSON."
_PAUSE = 0.1  # the least number of seconds between two pictures of an agent
_RATE = 500_000  # the characters of such pictures in a second: each repeats all of the agent's messages


@operator_maker
def run_tools(
    tools: Mapping[str, Tool],
    max_concurrency: int | None = None,
    timeout: Seconds | None = None,
    start: Literal["ready", "message"] = "ready",
    *,
    unknown: Literal["fail", "leave"] = "fail",
    approve: Approve | Answers | None = None,
    rerun: Collection[str] = (),
    on_error: Callable[[CompleteToolCall, Exception], str] | None = None,
    choice: int | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with added `ToolUpdate`s: each call's tool is run as soon as the call is complete.

    ::

        events  (call:look{})                                                             -                      -|
        look()  -                                                                         <'10 m'>               -<'20 m'>                                  |
                run_tools({"look": look})
        events  [(call:look)(tool:call_0,identified)(args:{})(end)(tool:call_0,executing)](tool:call_0,"","10 m")-[(finish:tool_use)(tool:call_0,"","20 m")][(tool:call_0,completed,"20 m")|]

    A call is `identified` when its block begins and `executing` when its tool starts. It ends `completed` or `failed`,
    with a `ToolResult` for the model: the tool's value, or a text about the failure. Events are passed on before their
    effects. Each call is run once. A call that comes again in its message, under its id and with its name and arguments, is
    left out; another call under that id gets an id of its own, the same with a number. To tell the two apart, such a block
    is held until it has ended. A call after the message's end starts no tool. A call that the provider makes invalid
    after its end fails if its tool has not started.

    A tool is called with the call's arguments as keywords. It may be a coroutine function, or a plain function, which
    runs on a thread if there is a running loop, and otherwise where the event arrives, one after the other. It may also
    return an Observable, an async iterator or a generator: the values are partial results, the last one is the result
    (or what a generator returns), and each `ToolProgress` updates the display text. A value is any JSON value, a record
    (attrs, dataclass, Pydantic), or a `ToolResult`. An `events.Custom` among the values is no part of the result: it is
    emitted at once, in the run of the call.

    A tool may be an agent: a value is then a `Message`, a `Snapshot` or an event. The result is the text of the last
    message, and its `metadata["messages"]` has all messages as JSON. While the agent streams, both are updated at most
    ten times a second, and more rarely if the messages are long. The call fails if the last message has no end, was
    interrupted, or asks for tools that were not run.

    With `approve` a person decides whether a call may run. Each call whose arguments fit a tool is `awaiting_approval`
    first, and `approve` is asked at once: it returns `True`, `False`, or an `Approval` with a reason. The stream waits for
    the answer; neither `timeout` nor `max_concurrency` counts the person. A refused call has `failed`, with a result for the
    model whose `metadata["denied"]` is true. `None` is no decision here: the call stays `awaiting_approval`, and the
    stream doesn't wait for it. So a request ends whose answer comes with the next one. `approve` is also asked for the
    calls that a provider runs itself if it is allowed to; an allowed one is `completed`, and `to_request` says so.

    Somebody else may have run a call, as the `ToolUpdate`s of the source say. `run_tools` doesn't run a call
    that has its outcome there. Nor does it run a call that is `executing` there, which fails if the source ends without
    an outcome. `approve` decides a call that is `awaiting_approval` there; without `approve` the call stays as it is. So a
    stored snapshot or message goes on where it was: `rx.from_iterable(rd.to_events(stored)).pipe(rd.run_tools(tools, approve=answers))`.

    If a relay on a server publishes the events, a tool is called as soon as the stream's log has the call's `executing`,
    and never if the log ends before. So a worker that goes on with the reply of a dead one runs no tool a second time.
    Until then the call has its place among the `max_concurrency`; `timeout` doesn't count the wait.

    A tool's exception is logged (`rxdelta`) and not passed on: the result says "The tool failed.", or the text that
    `on_error` returns. A tool explains its failure to the model by a `ToolError`, or a `ToolResult` with `is_error`. A
    call that no function fits is logged, too: the model gets the reason, but it may be the program that is wrong.

    Calls start in the order in which they became ready, at most `max_concurrency` at a time; the next one starts as
    soon as one ends. The time limit counts from a tool's own start. A tool that cancels its own task fails. If others cancel
    it, as the end of a program does, those that wait for their turn fail, too.

    Each run of the stream has its own calls, and an update names the run of its call, and the choice if the run has
    several. An interruption or a new attempt that names a run concerns that run's calls only.

    Completes when the source and all tools have ended. A call whose block the stream cut off fails. A new attempt
    cancels the tools of the last one.

    Args:
        tools: The functions by the names that the model uses.
        max_concurrency: How many tools may run at once; `None` is no limit.
        timeout: Seconds after which a tool is cancelled and its call fails. A plain function cannot be stopped, and a
            plain generator only between two values; their results are ignored.
        start: `ready`: when the provider has ended the call's block, or begun the next one after this call's whole
            arguments. `message`: when the message has finished. Never merely because the arguments so far are JSON.
        unknown: The policy for a call whose name is not in `tools`. `fail`: it fails, for the model to read. `leave`:
            it belongs to another party, such as the browser or another `run_tools`; it gets no updates, and the stream
            doesn't wait for it.
        approve: Decides whether a call may run: a function, or the known answers by the calls' ids, as
            `approvals_from_ai_sdk` returns them. A function may be a coroutine function, or return an awaitable or an
            Observable, whose first value counts; a plain function runs where a plain tool does. What it raises is a
            refusal: the text of a `ToolError` is the reason, any other exception is logged. So is a value of another
            type. A cancelled `approve` decides nothing. By default every call is allowed.
        rerun: The names of tools that run again for a call that is `executing` in the source, because its program has
            stopped meanwhile. `approve` is asked again, too.
        on_error: Returns the text for the model, and for all readers of the result, about a tool's exception. It
            is not called for a `ToolError`, which has its own text, nor for an exception that is no `Exception`.
        choice: Which of several alternative replies the tools are run for; by default that of `only_choice`.
        scheduler: The scheduler for time limits and durations.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Errors: The source's own; `LimitExceededError`; `InvalidValueError` for a value that is no event, and for an
    asynchronous tool or `approve` without a running asyncio loop. All come after the running tools were cancelled and
    their calls have failed. A tool's failure is no error. Disposing cancels the running tools and questions, and so does
    an observer that raises. If it raises during a tool's update, the `for_each` or `async for` that reads the pipeline
    raises the exception.

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
    check_word("start", start, ("ready", "message"))
    check_word("unknown", unknown, ("fail", "leave"))
    rules = _Rules(
        tools=_checked(tools),
        max_concurrency=max_concurrency,
        timeout=None if timeout is None else check_seconds("timeout", timeout),
        at_once=start == "ready",
        leaves_unknown=unknown == "leave",
        approve=answered_by(approve),
        rerun=_checked_names(rerun),
        on_error=on_error,
        choice=choice,
    )

    def apply(source: Observable[Event]) -> Observable[Event]:
        def begin(sink: Sink[Event]) -> None:
            runner = _ToolRunner(sink, rules, sink.clock(scheduler))
            sink.subscribe(source, runner)

        return create("run_tools", begin, emits="events")

    return apply


def _checked(tools: object) -> dict[str, Tool]:
    if not isinstance(tools, Mapping):
        wanted = (
            'must be a mapping of functions by the names that the model uses: {"get_forecast": get_forecast}'
        )
        raise InvalidValueError.of([("tools", tools, wanted)])
    known: dict[str, Any] = dict(tools)  # pyright: ignore[reportUnknownArgumentType]
    for name, tool in known.items():
        check_function(
            f"tools[{quote(repr(name))}]", tool, "a function, which gets the call's arguments as keywords"
        )
    return known


def _checked_names(rerun: object) -> frozenset[str]:
    wrong = InvalidValueError.of([("rerun", rerun, 'must be names of tools: {"get_forecast"}')])
    if isinstance(rerun, str) or not isinstance(rerun, Collection):
        raise wrong
    names = cast("Collection[object]", rerun)
    if not all(isinstance(name, str) for name in names):
        raise wrong
    return frozenset(cast("Collection[str]", names))


@attrs.frozen(kw_only=True)
class _Rules:
    """The arguments of one `run_tools(…)`."""

    tools: Mapping[str, Tool]
    max_concurrency: int | None
    timeout: float | None
    at_once: bool
    leaves_unknown: bool
    approve: Approve | None
    rerun: frozenset[str]
    on_error: Callable[[CompleteToolCall, Exception], str] | None
    choice: int | None

    def is_ours(self, name: str) -> bool:
        return not self.leaves_unknown or name in self.tools


class _ToolRun:
    """A call from the decision to run it until its outcome."""

    __slots__ = ("agent", "asked", "began", "call", "cancel", "has_news", "name", "pause", "pauses", "waits")

    def __init__(self, call: AskedCall, asked: WholeCall) -> None:
        self.call = call
        self.asked = asked
        self.name = asked.name or ""
        self.waits = False  # for a person's answer
        self.began: datetime | None = None
        self.agent: SubAgent | None = None  # if the tool is an agent
        self.has_news = False  # whether the agent has changed since its last update
        self.pauses = False  # after that update
        self.pause = SerialDisposable()
        self.cancel = CompositeDisposable(self.pause)


class _ToolRunner:
    """One subscription's state. Tools may answer at any time, during their own start, and on other threads.

    A turn of the sink first changes the state, then emits the resulting updates. The start of a tool is an effect: it
    comes after the turn that has emitted `executing`, and outside of it, so the tool's updates are emitted at once.
    """

    def __init__(self, sink: Sink[Event], rules: _Rules, time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._rules = rules
        self._time = time
        self._loop = running_loop()
        self._runs: dict[AskedCall, _ToolRun] = {}
        self._ready: deque[_ToolRun] = deque()
        self._running = 0
        self._journal = journal_of(sink.scheduler)
        self._updates: deque[ToolUpdate | Custom] = deque()  # the results of this turn
        self._source_ended = False
        self._failure: Exception | None = None
        sink.own(Disposable(self._cancel_tools))

    @cached_property
    def _choice(self) -> int:
        chosen = self._rules.choice
        return self._sink.choice if chosen is None else chosen

    @cached_property
    def _calls(self) -> AskedCalls:
        rules, limits = self._rules, self._sink.limits  # the limits are known at the first value
        return AskedCalls(
            rules.is_ours,
            approves=rules.approve is not None,
            rerun=rules.rerun,
            at_once=rules.at_once,
            choice=self._choice,
            limits=limits,
        )

    @cached_property
    def _identity(self) -> CallIdentity:
        return CallIdentity(self._sink.limits)

    # The source's notifications.

    def on_next(self, event: Event) -> None:
        if type(event) in CallIdentity.EVENTS:
            for known in self._identity.step(event):
                self._take(known)
        elif type(event) in EVENT_TYPES:
            self._sink.on_next(event)
        else:
            raise self._sink.refusal(event)

    def _take(self, event: Event) -> None:
        kind: type | None = type(event)
        if kind is StreamError:
            self._apply(self._break_off)
        elif isinstance(event, MessageStart) and self._calls.begins_another(event):
            self._apply(self._step, event)  # the old message's updates come before the new message
            kind = None
        self._sink.on_next(event)
        if kind in AskedCalls.EVENTS and not self._sink.closed:
            self._apply(self._step, event)

    def on_error(self, error: Exception) -> None:
        for event in self._identity.close():
            self._take(event)
        self._apply(self._abort, error)

    def on_completed(self) -> None:
        for event in self._identity.close():
            self._take(event)
        self._apply(self._end_source)

    def _cancel_tools(self) -> None:
        for run in [*self._runs.values()]:
            run.cancel.dispose()

    def _apply(self, step: Callable[..., None], *arguments: Any) -> None:
        """Change the state in a turn, then emit what has come of it."""
        try:
            step(*arguments)
            self._start_ready()
        except Exception as error:
            self._abort(error)
        while self._updates:
            self._sink.on_next(self._updates.popleft())
        if self._failure is not None:
            self._sink.on_error(self._failure)
        elif self._source_ended and not self._runs:
            self._sink.on_completed()

    # The life of a call.

    def _step(self, event: Event) -> None:
        if isinstance(event, MessageInterrupted) and event.choice in (None, self._choice):
            self._fail_all("the message was interrupted", event.run_id)
        self._decide(self._calls.step(event))

    def _decide(self, decisions: Sequence[Decision]) -> None:
        for call, how, why in decisions:
            if how == "identified":
                self._updates.append(_update(call, "identified"))
            elif how == "failed":
                self._fail(call, why)
            elif how == "gone":
                self._remove_run(call)
            elif call.asked is not None:
                run = self._runs[call] = _ToolRun(call, call.asked)
                self._admit(run)

    def _end_source(self) -> None:
        self._source_ended = True
        self._decide(self._calls.give_up("the stream ended before the call was complete"))

    def _abort(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._break_off()

    def _break_off(self) -> None:
        why = "the stream broke off"
        self._fail_all(why)
        self._decide(self._calls.give_up(why))
        self._fail_all(why)  # calls that became ready before a limit was exceeded

    def _fail_all(self, why: str, run_id: str | None = None) -> None:
        """Fail the calls whose tools run, or those of one run of the stream."""
        for call in [*self._runs]:
            if run_id in (None, call.run.run_id):
                self._fail(call, why)

    def _fail(self, call: AskedCall, why: str) -> None:
        self._settle(
            call, "failed", ToolResult(call.call_id, why, is_error=True, duration=self._seconds(call))
        )

    def _settle(self, call: AskedCall, status: ExecutionStatus, result: ToolResult) -> None:
        """Emit the call's outcome; only the first counts."""
        run = self._runs.get(call)
        if call.asked is None or self._remove_run(call):
            call.taken = True
            self._updates.append(_update(call, status, None, _with_agent(run, result)))

    def _remove_run(self, call: AskedCall) -> bool:
        """Stop a call's tool. Return whether the call had no outcome yet."""
        run = self._runs.pop(call, None)
        if run is None:
            return False
        if run.began is not None:
            self._running -= 1
        run.cancel.dispose()
        return True

    def _seconds(self, call: AskedCall) -> float | None:
        run = self._runs.get(call)
        if run is None or run.began is None:
            return None
        return max(0.0, (self._time.now - run.began).total_seconds())

    # What a person decides. The call is in `_runs` meanwhile, so the stream waits, but it has no place among the running.

    def _admit(self, run: _ToolRun) -> None:
        """Let a call run whose arguments fit a tool, or ask a person first."""
        theirs = run.asked.type == "server_tool_call"
        if not theirs and not self._fits(run):
            return
        if self._rules.approve is None:
            self._ready.append(run)
            return
        run.waits = True
        if not is_waiting(run.asked):  # otherwise the source has said so
            self._updates.append(_update(run.call, "awaiting_approval"))
        self._sink.effect(self._ask, run, self._rules.approve)

    def _fits(self, run: _ToolRun) -> bool:
        tool = self._rules.tools.get(run.name)
        if tool is None:
            _LOG.warning("the model called the tool %r, which run_tools() doesn't have", run.name)
            self._fail(run.call, f"there is no tool {run.name!r}")
            return False
        wrong = bind_error(tool, run.asked.arguments_as_map())
        if wrong is not None:
            _LOG.warning("the arguments of a call don't fit the tool %r: %s", run.name, quote(wrong))
            self._fail(run.call, f"invalid arguments: {wrong}")
        return wrong is None

    def _ask(self, run: _ToolRun, approve: Approve) -> None:
        if run.call not in self._runs:
            return
        try:
            with journaling(None):
                question = ask(approve, run.asked, self._loop, partial(self._take_turn, self._answer, run))
        except InvalidValueError as error:
            self._sink.turn(self.on_error, error)
        else:
            run.cancel.add(question)

    def _answer(self, run: _ToolRun, decision: Approval | None) -> None:
        call = run.call
        if call not in self._runs or not run.waits:
            return
        run.waits = False
        if decision is None:
            self._remove_run(call)
        elif not decision.approved:
            self._settle(call, "failed", denied_result(call.call_id, decision.reason))
        elif run.asked.type == "server_tool_call":
            self._settle(call, "completed", approved_result(call.call_id, decision.reason))
        else:
            self._ready.append(run)

    # Running tools.

    def _start_ready(self) -> None:
        max_concurrency = self._rules.max_concurrency
        while self._ready and (max_concurrency is None or self._running < max_concurrency):
            run = self._ready.popleft()
            if run.call in self._runs:
                self._start(run)

    def _start(self, run: _ToolRun) -> None:
        self._running += 1
        run.began = self._time.now
        run.call.taken = True
        update = _update(run.call, "executing")
        self._updates.append(update)
        if self._journal is None:
            self._sink.effect(self._run, run)
        else:
            run.cancel.add(self._journal.when_written(update, partial(self._announced, run)))

    def _announced(self, run: _ToolRun, is_written: bool) -> None:
        """The stream's log has the call's `executing`, so nobody else will run the call; or the log has ended."""
        if is_written:
            self._take_turn(self._begin, run)
        else:
            self._take_turn(self._fail, run.call, _NO_LOG)

    def _begin(self, run: _ToolRun) -> None:
        run.began = self._time.now
        self._sink.effect(self._run, run)

    def _run(self, run: _ToolRun) -> None:
        if run.call not in self._runs:
            return
        call, limit = run.call, self._rules.timeout
        if limit is not None:
            why = f"the tool did not end within {limit:g} seconds"

            def on_timeout(*_: Any) -> None:
                self._take_turn(self._fail, call, why)

            run.cancel.add(self._time.schedule_relative(limit, on_timeout))
        try:
            with journaling(None):  # what the tool reads is its result, which isn't written event by event
                running = execute(
                    self._rules.tools[run.name],
                    run.asked.arguments_as_map(),
                    self._loop,
                    partial(self._progress, run),
                    partial(self._ended, run),
                )
        except InvalidValueError as error:
            self._sink.turn(self.on_error, error)
        else:
            run.cancel.add(running)

    def _take_turn(self, step: Callable[..., None], *arguments: Any) -> None:
        """Take a turn for a tool or a timer."""
        self._sink.run(self._apply, step, *arguments)

    def _progress(self, run: _ToolRun, value: Any) -> None:
        """A tool's value before its end, on the tool's thread."""
        if run.call not in self._runs or self._sink.closed:
            return
        if isinstance(value, Custom):
            self._take_turn(self._say, run, value)
            return
        text = value.display_text if isinstance(value, ToolProgress) else None
        value = value.result if isinstance(value, ToolProgress) else value
        if is_of_agent(value):
            run.agent = run.agent or SubAgent(self._sink.limits)
            self._take_turn(self._follow_agent, run, text, value)
            return
        result = None if value is None else self._to_result(run, value)
        if value is not None and result is None:
            self._take_turn(self._fail, run.call, _NOT_JSON)
        elif text or result is not None:
            self._take_turn(self._add_update, run, text, result)

    def _say(self, run: _ToolRun, event: Custom) -> None:
        """Emit an event of the application's own, which a tool says, or an agent that a tool is."""
        if run.call in self._runs:
            self._updates.append(attrs.evolve(event, run_id=run.call.run.run_id))

    def _add_update(self, run: _ToolRun, text: str | None, result: ToolResult | None) -> None:
        if run.call in self._runs:
            result = result and _with_agent(run, result)
            self._updates.append(_update(run.call, None, text, result))

    def _follow_agent(self, run: _ToolRun, text: str | None, value: Any) -> None:
        if run.call not in self._runs or run.agent is None:
            return
        try:
            run.has_news = run.agent.step(value) or run.has_news
        except Exception as error:
            self._fail(run.call, self._error_text(run, error))
            return
        if text:
            self._add_update(run, text, None)
        self._show_agent(run)

    def _show_agent(self, run: _ToolRun) -> None:
        """Emit the messages of an agent so far, if they have changed, and then pause."""
        if run.agent is None or not run.has_news or run.pauses or run.call not in self._runs:
            return
        picture = ToolResult(run.call.call_id, run.agent.text(), duration=self._seconds(run.call))
        picture = _with_agent(run, picture)
        self._updates.append(_update(run.call, None, None, picture))
        run.has_news, run.pauses = False, True
        seconds = max(_PAUSE, len(str(picture.metadata)) / _RATE)

        def end_pause(*_: object) -> None:
            self._take_turn(self._end_pause, run)

        run.pause.disposable = self._time.schedule_relative(seconds, end_pause)

    def _end_pause(self, run: _ToolRun) -> None:
        run.pauses = False
        self._show_agent(run)

    def _end_agent(self, run: _ToolRun, last: Any) -> None:
        """The end of a tool that is an agent. Its last value is new if the tool returned it."""
        if run.call not in self._runs or run.agent is None:
            return
        try:
            if isinstance(last, (Snapshot, Message)):
                run.agent.step(last)
            text = run.agent.answer()
        except Exception as error:
            self._fail(run.call, self._error_text(run, error))
        else:
            result = ToolResult(run.call.call_id, text, duration=self._seconds(run.call))
            self._settle(run.call, "completed", result)

    def _ended(self, run: _ToolRun, outcome: ToolOutcome) -> None:
        """The end of a tool, on the tool's thread."""
        if run.call not in self._runs or self._sink.closed:
            return
        if outcome.cancelled:
            self._take_turn(self._cancelled, run.call)
        elif outcome.error is not None:
            self._take_turn(self._fail, run.call, self._error_text(run, outcome.error))
        elif isinstance(outcome.value, Custom):  # returned, not yielded
            self._take_turn(self._say, run, outcome.value)
            self._ended(run, ToolOutcome())
        elif is_of_agent(outcome.value):
            run.agent = run.agent or SubAgent(self._sink.limits)
            self._take_turn(self._end_agent, run, outcome.value)
        elif (result := self._to_result(run, outcome.value)) is None:
            self._take_turn(self._fail, run.call, _NOT_JSON)
        else:
            status: ExecutionStatus = "failed" if result.is_error else "completed"
            self._take_turn(self._settle, run.call, status, result)

    def _cancelled(self, call: AskedCall) -> None:
        """Others than the tool cancelled its task. The program may be ending, so no further tool is started."""
        self._fail(call, _CANCELLED)
        while self._ready:
            self._fail(self._ready.popleft().call, _CANCELLED)

    def _to_result(self, run: _ToolRun, value: Any) -> ToolResult | None:
        try:
            return result_of(run.call.call_id, value, self._seconds(run.call))
        except BaseException as error:
            if is_interrupt(error):
                raise
            _LOG.error("the result of the tool %r cannot be written as JSON", run.name, exc_info=error)
            return None

    def _error_text(self, run: _ToolRun, error: BaseException) -> str:
        """The text for the model about a tool's exception. The exception's own text may contain secrets."""
        if isinstance(error, asyncio.CancelledError):
            return _CANCELLED
        on_error = self._rules.on_error
        try:
            if isinstance(error, ToolError):
                return str(error) or _FAILED
            _LOG.error("the tool %r failed", run.name, exc_info=error)
            if on_error is None or not isinstance(error, Exception):
                return _FAILED
            text: object = on_error(cast("CompleteToolCall", run.asked), error)
            if isinstance(text, str):
                return text
            raise InvalidValueError.of([("on_error", text, "must return the text for the model")])
        except BaseException as failure:
            if is_interrupt(failure):
                raise
            _LOG.error("the tool %r failed, and what to say of it did, too", run.name, exc_info=failure)
            return _FAILED


def _with_agent(run: _ToolRun | None, result: ToolResult) -> ToolResult:
    """The result with the messages of the agent that the tool is."""
    if run is None or run.agent is None:
        return result
    return attrs.evolve(result, metadata={**run.agent.metadata(), **result.metadata})


def _update(
    call: AskedCall, status: ExecutionStatus | None, text: str | None = None, result: ToolResult | None = None
) -> ToolUpdate:
    return ToolUpdate(call.call_id, status, text, result, choice=call.run.choice, run_id=call.run.run_id)
