"""The calls of a reply, each when it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core import DEFAULT_LIMITS, Event, Limits, ToolCall
from rxdelta.operators.projections.calls import Calls
from rxdelta.operators.projections.projection import Projection, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

__all__ = ["completed_tool_calls"]


def completed_tool_calls(
    *, choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[ToolCall]]:
    """Emit each call that the client is to run, once, when the provider has finished it.

    A call is emitted at the finish of its block or of its message, whichever comes first. It is complete, with its
    `arguments` as a read-only mapping, or of type `invalid_tool_call`, with the raw text and an `.error` that says why
    it must not be run. The snapshot of `scan_deltas` holds the same value at that moment. Calls that the provider runs
    itself are left out. A second finish, or a second start of the same call, is ignored.

    Completes with the source; a call without a finish is not emitted. Another attempt, or another message, emits its
    own calls.

    Args:
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    a value that is no event. An invalid call is no error.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "search"})
        >>> args = [rd.events.ToolCallDelta(0, '{"query": '), rd.events.ToolCallDelta(0, '"tides"}')]
        >>> events = rx.of(start, *args, rd.events.BlockFinish(0))
        >>> events.pipe(rd.completed_tool_calls()).subscribe(lambda call: print(call.name, call.arguments)).dispose()
        search {'query': 'tides'}
    """
    return project(lambda observer: _Completed(observer, choice, limits))


class _Completed(Projection[ToolCall]):
    """One subscription's state."""

    def __init__(self, observer: abc.ObserverBase[ToolCall], choice: int, limits: Limits) -> None:
        self._limits = limits
        super().__init__(observer, choice)

    def begin(self) -> None:
        self._calls = Calls(self._choice, self._limits)

    def step(self, event: Event, emit: Callable[[ToolCall], None]) -> None:
        for _, call, _, _ in self._calls.step(event):
            if not call.open:
                emit(call)
