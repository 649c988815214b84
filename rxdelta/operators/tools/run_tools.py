"""Running a reply's tools while the rest of it still streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, cast

import attrs
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.core import (
    CallIdentity,
    CompleteToolCall,
    Event,
    InvalidValueError,
    Seconds,
    check_function,
    check_seconds,
    check_word,
    quote,
)
from rxdelta.core.events import EVENT_TYPES, MessageInterrupted, MessageStart, StreamError
from rxdelta.operators.tools.approvals import Answers, Approvals, Approve, answered_by
from rxdelta.operators.tools.asked_calls import AskedCalls, Decision
from rxdelta.operators.tools.tool_execution import Tool, ToolExecution
from rxdelta.operators.tools.tool_runs import ToolRun, ToolRuns
from rxdelta.runtime import Sink, create, journal_of, operator_maker, running_loop


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

    The source's `ToolUpdate`s may say that another program has run a call, or runs it. `run_tools` leaves such a call alone;
    an `executing` one fails if the source ends without an outcome. `approve` decides a call that is `awaiting_approval` there; without `approve` the call stays as it is. So a
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
            Observable, whose first value counts; a plain function runs where a plain tool does. An exception is a
            refusal: the text of a `ToolError` is the reason, any other one is logged. So is a value of another
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


class _ToolRunner:
    """One subscription's state. Tools may answer at any time, during their own start, and on other threads.

    A turn of the sink first changes the state, then emits the resulting updates. The start of a tool is an effect: it
    comes after the turn that has emitted `executing`, and outside of it, so the tool's updates are emitted at once.
    """

    def __init__(self, sink: Sink[Event], rules: _Rules, time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._rules = rules
        self._runs = runs = ToolRuns(time, self._take_turn, self._refuse, rules.on_error)
        loop, journal = running_loop(), journal_of(sink.scheduler)
        self._execution = ToolExecution(
            sink, runs, time, loop, journal, rules.tools, rules.max_concurrency, rules.timeout
        )
        approve, allow = rules.approve, self._execution.add
        self._approvals = None if approve is None else Approvals(sink, runs, loop, approve, allow)
        self._source_ended = False
        self._failure: Exception | None = None
        sink.own(Disposable(runs.close))

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

    def _apply(self, step: Callable[..., None], *arguments: Any) -> None:
        """Change the state in a turn, then emit what has come of it."""
        try:
            step(*arguments)
            self._execution.start_ready()  # behind the step: an outcome may have made place for another tool
        except Exception as error:
            self._abort(error)
        while self._runs.updates:
            self._sink.on_next(self._runs.updates.popleft())
        if self._failure is not None:
            self._sink.on_error(self._failure)
        elif self._source_ended and not self._runs:
            self._sink.on_completed()

    # The life of a call.

    def _step(self, event: Event) -> None:
        if isinstance(event, MessageInterrupted) and event.choice in (None, self._choice):
            self._runs.fail_all("the message was interrupted", event.run_id)
        self._decide(self._calls.step(event))

    def _decide(self, decisions: Sequence[Decision]) -> None:
        for call, how, why in decisions:
            if how == "identified":
                self._runs.update(call, "identified")
            elif how == "failed":
                self._runs.fail(call, why)
            elif how == "gone":
                self._runs.remove(call)
            elif call.asked is not None:
                self._admit(self._runs.add(call, call.asked))

    def _admit(self, run: ToolRun) -> None:
        """Let a call run whose arguments fit a tool, or ask a person first."""
        if run.asked.type == "server_tool_call" or self._execution.fits(run):
            if self._approvals is None:
                self._execution.add(run)
            else:
                self._approvals.ask(run)

    def _end_source(self) -> None:
        self._source_ended = True
        self._decide(self._calls.give_up("the stream ended before the call was complete"))

    def _abort(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._break_off()

    def _break_off(self) -> None:
        why = "the stream broke off"
        self._runs.fail_all(why)
        self._decide(self._calls.give_up(why))
        self._runs.fail_all(why)  # calls that became ready before a limit was exceeded

    def _take_turn(self, step: Callable[..., None], *arguments: Any) -> None:
        """Take a turn for a tool, a timer or a person."""
        self._sink.run(self._apply, step, *arguments)

    def _refuse(self, error: InvalidValueError) -> None:
        self._sink.turn(self.on_error, error)
