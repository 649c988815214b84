"""The calls of `run_tools` from the decision to run them until their outcomes, and the updates about them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import attrs
from reactivex.disposable import CompositeDisposable
from reactivex.internal import noop

from rxdelta.core import CompleteToolCall, ExecutionStatus, InvalidValueError, ToolError, ToolResult
from rxdelta.core.events import Custom, ToolUpdate
from rxdelta.runtime import is_interrupt, journaling

if TYPE_CHECKING:
    from datetime import datetime

    from reactivex import abc

    from rxdelta.operators.tools.asked_calls import AskedCall, WholeCall
    from rxdelta.operators.tools.sub_agent import AgentUpdates

_LOG = logging.getLogger("rxdelta")
_FAILED = "The tool failed."
CANCELLED = "the tool was cancelled"


class ToolRun:
    """A call from the decision to run it until its outcome."""

    __slots__ = ("agent", "asked", "began", "call", "cancel", "name", "waits")

    def __init__(self, call: AskedCall, asked: WholeCall) -> None:
        self.call = call
        self.asked = asked
        self.name = asked.name or ""
        self.waits = False  # for a person's answer
        self.began: datetime | None = None
        self.agent: AgentUpdates | None = None  # if the tool is an agent
        self.cancel = CompositeDisposable()

    def with_messages(self, result: ToolResult) -> ToolResult:
        """The result with the messages of the agent that the tool is."""
        if self.agent is None:
            return result
        return attrs.evolve(result, metadata={**self.agent.metadata(), **result.metadata})


class ToolRuns:
    """The runs of one subscription. All but `begin` and `error_text` is called in turns.

    Attributes:
        updates: The updates that the current turn has made. They are emitted at its end.
        running: How many tools have been started and have no outcome.
        turn: Takes a turn for a tool, a timer or a person.

    Args:
        time: The clock of durations.
        turn: See above.
        refuse: Ends the stream with an error of its caller's making.
        on_error: Returns the text for the model about a tool's exception.
    """

    def __init__(
        self,
        time: abc.SchedulerBase,
        turn: Callable[..., None],
        refuse: Callable[[InvalidValueError], None],
        on_error: Callable[[CompleteToolCall, Exception], str] | None,
    ) -> None:
        self.updates: deque[ToolUpdate | Custom] = deque()
        self.running = 0
        self.turn = turn
        self._time = time
        self._refuse = refuse
        self._on_error = on_error
        self._runs: dict[AskedCall, ToolRun] = {}

    def __contains__(self, run: ToolRun) -> bool:
        """Whether the run has no outcome yet."""
        return self._runs.get(run.call) is run

    def __iter__(self) -> Iterator[ToolRun]:
        return iter([*self._runs.values()])

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, call: AskedCall, asked: WholeCall) -> ToolRun:
        run = self._runs[call] = ToolRun(call, asked)
        return run

    def begin(self, run: ToolRun, work: Callable[[], abc.DisposableBase]) -> None:
        """Begin work for a run that has no outcome yet. The work is disposed with the run."""
        try:
            with journaling(
                None
            ):  # the events that the work reads become its result: no log has each of them
                running = work()
        except InvalidValueError as error:
            self._refuse(error)
        else:
            run.cancel.add(running)

    def update(
        self,
        call: AskedCall,
        status: ExecutionStatus | None,
        text: str | None = None,
        result: ToolResult | None = None,
    ) -> ToolUpdate:
        known = call.run
        update = ToolUpdate(call.call_id, status, text, result, choice=known.choice, run_id=known.run_id)
        self.updates.append(update)
        return update

    def fail_all(self, why: str, run_id: str | None = None) -> None:
        """Fail the calls whose tools run, or those of one run of the stream."""
        for call in [*self._runs]:
            if run_id in (None, call.run.run_id):
                self.fail(call, why)

    def fail(self, call: AskedCall, why: str) -> None:
        failure = ToolResult(call.call_id, why, is_error=True, duration=self.seconds(call))
        self.settle(call, "failed", failure)

    def settle(self, call: AskedCall, status: ExecutionStatus, result: ToolResult) -> None:
        """Emit the call's outcome; only the first counts."""
        run = self._runs.get(call)
        if call.asked is None or self.remove(call):
            call.taken = True
            self.update(call, status, None, result if run is None else run.with_messages(result))

    def remove(self, call: AskedCall) -> bool:
        """Stop a call's tool. Return whether the call had no outcome yet."""
        run = self._runs.pop(call, None)
        if run is None:
            return False
        if run.began is not None:
            self.running -= 1
        run.cancel.dispose()
        return True

    def seconds(self, call: AskedCall) -> float | None:
        """How long a call's tool has been running."""
        run = self._runs.get(call)
        if run is None or run.began is None:
            return None
        return max(0.0, (self._time.now - run.began).total_seconds())

    def error_text(self, run: ToolRun, error: BaseException) -> str:
        """The text for the model about a tool's exception. The exception's own text may contain secrets."""
        if isinstance(error, asyncio.CancelledError):
            return CANCELLED
        try:
            if isinstance(error, ToolError):
                return str(error) or _FAILED
            _LOG.error("the tool %r failed", run.name, exc_info=error)
            if self._on_error is None or not isinstance(error, Exception):
                return _FAILED
            text: object = self._on_error(cast("CompleteToolCall", run.asked), error)
            if isinstance(text, str):
                return text
            raise InvalidValueError.of([("on_error", text, "must return the text for the model")])
        except BaseException as failure:
            if is_interrupt(failure):
                raise
            _LOG.error("the tool %r failed, and what to say of it did, too", run.name, exc_info=failure)
            return _FAILED

    def close(self) -> None:
        """Cancel all tools and questions. The subscription has ended, so there are no further turns."""
        for run in self:
            run.cancel.dispose()
        self.turn = self._refuse = noop  # a circle of references would keep the reader alive
