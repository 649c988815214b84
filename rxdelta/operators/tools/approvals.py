"""Asking a person whether a call may run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

import attrs
from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

from rxdelta.core import (
    Approval,
    Event,
    ToolError,
    approved_result,
    check_function,
    denied_result,
    is_mapping,
    is_waiting,
)
from rxdelta.operators.tools.asked_calls import WholeCall
from rxdelta.operators.tools.tool_execution import ToolOutcome, execute

if TYPE_CHECKING:
    from rxdelta.operators.tools.tool_runs import ToolRun, ToolRuns
    from rxdelta.runtime import Sink

_LOG = logging.getLogger("rxdelta")

Answer: TypeAlias = bool | Approval | None
Approve: TypeAlias = Callable[[WholeCall], Answer | Awaitable[Answer] | Observable[Answer]]
Answers: TypeAlias = Mapping[str, Approval] | Mapping[str, bool]
"""A person's earlier answers, by the ids of the calls."""


def answered_by(approve: object) -> Approve | None:
    """The function of `approve=`. Answers that are known decide about their own calls, and about no others.

    Raises:
        InvalidValueError: It is neither a function nor a mapping.
    """
    if is_mapping(approve):
        answers = approve
        return lambda call: answers.get(call.call_id or "")
    if approve is not None:
        check_function("approve", approve, _WANTED)
    return cast("Approve | None", approve)


_WANTED = "a function of a call, which returns True, False, an rd.Approval or None; or such answers by the calls' ids"


def ask(
    approve: Approve,
    call: WholeCall,
    loop: asyncio.AbstractEventLoop | None,
    answer: Callable[[Approval | None], None],
) -> abc.DisposableBase:
    """Ask about a call, and call `answer` with the decision, or with `None` if there is none here.

    `approve` runs as a tool does: on the loop, on a thread, or without a loop in the caller. The first value ends it.
    Only the first call of `answer` counts: an Observable may emit several values before it is disposed. An exception is a
    refusal, and so is a value that is no answer. If `approve` is cancelled, or the program is interrupted, nobody has
    decided. Disposing withdraws the question.

    Raises:
        InvalidValueError: `approve` is asynchronous, and there is no loop.
    """
    question = SerialDisposable()

    def settle(outcome: ToolOutcome) -> None:
        question.dispose()
        answer(_decision(call, outcome))

    asked = partial(approve, call)
    question.disposable = execute(
        asked, {}, loop, lambda value: settle(ToolOutcome(value)), settle, "approve"
    )
    return question


def _decision(call: WholeCall, outcome: ToolOutcome) -> Approval | None:
    value, error = cast("object", outcome.value), outcome.error
    if error is not None and not isinstance(error, Exception):
        return None
    if isinstance(error, ToolError):
        return Approval(False, str(error) or None)
    if error is not None:
        _LOG.error("approve() failed for the tool %r, whose call is refused", call.name, exc_info=error)
        return Approval(False)
    if value is None or isinstance(value, Approval):
        return value
    if isinstance(value, bool):
        return Approval(value)
    wrong = "approve() must return True, False, an rd.Approval or None for the tool %r, not %r"
    _LOG.error(wrong, call.name, type(value))
    return Approval(False)


@attrs.define(eq=False)
class Approvals:
    """The questions of one subscription. While a call waits for its answer it is among the runs, so the stream waits.

    Args:
        allow: Lets a call run.
    """

    _sink: Sink[Event]
    _runs: ToolRuns
    _loop: asyncio.AbstractEventLoop | None
    _approve: Approve
    _allow: Callable[[ToolRun], None]

    def ask(self, run: ToolRun) -> None:
        run.waits = True
        if not is_waiting(run.asked):  # otherwise the source has said so
            self._runs.update(run.call, "awaiting_approval")
        self._sink.effect(self._begin, run)

    def _begin(self, run: ToolRun) -> None:
        if run in self._runs:
            answer = partial(self._runs.turn, self._answer, run)
            self._runs.begin(run, partial(ask, self._approve, run.asked, self._loop, answer))

    def _answer(self, run: ToolRun, decision: Approval | None) -> None:
        call = run.call
        if run not in self._runs or not run.waits:
            return
        run.waits = False
        if decision is None:
            self._runs.remove(call)
        elif not decision.approved:
            self._runs.settle(call, "failed", denied_result(call.call_id, decision.reason))
        elif run.asked.type == "server_tool_call":
            self._runs.settle(call, "completed", approved_result(call.call_id, decision.reason))
        else:
            self._allow(run)
