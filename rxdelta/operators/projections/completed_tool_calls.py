"""The calls of a reply, each when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from rxdelta.core import Change, CompleteToolCall, Event, InvalidToolCall
from rxdelta.core.events import ToolCallDelta
from rxdelta.operators.projections.projection import Projection, call_of, project
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


_Ended: TypeAlias = CompleteToolCall | InvalidToolCall


@operator_maker
def completed_tool_calls() -> Callable[[Observable[Event]], Observable[CompleteToolCall | InvalidToolCall]]:
    """Emit each call that the client is to run, once, when the provider has finished it.

    ::

        events  (call:look)(args:{"at":)(args:"\\"sea\\"}")(end)           -|
                completed_tool_calls()
        calls   -          -            -                <look(at='sea')>-|

    A call is emitted at the finish of its block or of its message, whichever comes first. It is complete, with its
    `arguments` as a read-only mapping, or of type `invalid_tool_call`, with the raw text and an `.error` that says why
    it must not be run; type checkers tell the two apart by `type`. The snapshot of `scan_deltas` holds the same value at that moment. Calls that the provider runs
    itself are left out. A second finish, or a second start of the same call, is ignored.

    Completes with the source; a call without a finish is not emitted. Another attempt, or another message, emits its
    own calls.

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
    return project(
        "completed_tool_calls",
        lambda name, walk: _Completed(name, walk, ToolCallDelta),
        emits="items",
    )


class _Completed(Projection[_Ended]):
    """One subscription's state."""

    def changed(self, changes: Sequence[Change], _: Event) -> Iterator[_Ended]:
        for change in changes:
            call = call_of(change.fold)
            if call is not None and change.kind == "closed" and not change.repeated:
                yield cast("_Ended", call)
