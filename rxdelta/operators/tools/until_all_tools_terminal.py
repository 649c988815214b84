"""The end of a stream of snapshots when its last tool has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rxdelta.core import TERMINAL, Snapshot, ToolCall, another_run, wrong_value
from rxdelta.runtime import Sink, lift, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def until_all_tools_terminal() -> Callable[[Observable[Snapshot]], Observable[Snapshot]]:
    """The same snapshots, until the message is finished and all its tools have ended; no terminal is asked.

    ::

        events     (call:look{})     (finish:tool_use)   (tool:call_0,executing)--(tool:call_0,completed,"high")
                   scan_deltas(), until_all_tools_terminal()
        snapshots  <look: identified><look: identified ✓><look: executing ✓>    --[<look: completed ✓>|]

    Each snapshot is emitted at once. A message is finished when it is `complete`, `length` or `interrupted`; a call
    has ended when its execution status is `completed` or `failed`. A call that must not be run, because it is
    invalid or was cut off with the message, counts as failed. Calls that the provider runs itself don't
    count, unless they wait for approval, and a reply without tool calls ends when it is finished.

    Disposes the source and completes right after that snapshot. So the source may never complete by itself:
    `rx.merge(events, updates).pipe(rd.scan_deltas(), rd.until_all_tools_terminal())`. Otherwise completes with the
    source. Works before and after `throttle_latest`.

    Errors: The source's own. `InvalidValueError` for a value that is no snapshot; `ProtocolError` for a snapshot of
    another run than the first.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> call = rd.ToolCall(call_id="c1", name="look", arguments={}, status="complete")
        >>> asked = rd.MessageDelta(tool_calls=[call], status="complete")
        >>> runs, ended = (asked.set_tool_execution_status("c1", word) for word in ("executing", "completed"))
        >>> replies = rx.concat(rx.of(asked, runs, ended), rx.never()).pipe(rd.until_all_tools_terminal())
        >>> replies.subscribe(
        ...     lambda reply: print(reply.tool_calls[0].execution_status()), on_completed=lambda: print("over")
        ... ).dispose()
        identified
        executing
        completed
        over
    """

    return lift("until_all_tools_terminal", _Until, emits="same")


class _Until:
    """One subscription's state."""

    def __init__(self, sink: Sink[Snapshot]) -> None:
        self._sink = sink
        self._run_id: str | None = None

    def on_next(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, Snapshot):
            raise wrong_value("until_all_tools_terminal", snapshot, "snapshots")
        if snapshot.run_id != self._run_id:
            if self._run_id is not None:
                raise another_run(snapshot.run_id, self._run_id)
            self._run_id = snapshot.run_id
        self._sink.on_next(snapshot)
        if _is_over(snapshot):
            self._sink.on_completed()


def _is_over(snapshot: Snapshot) -> bool:
    """Like `all_tools_terminal()`, but true without calls, and it stops at the first running call."""
    if snapshot.status == "incomplete":
        return False
    cut = snapshot.status != "complete"
    return not snapshot.waiting_calls and all(
        call.execution_status() in TERMINAL or (cut and _was_open(call)) for call in snapshot.tool_calls
    )


def _was_open(call: ToolCall) -> bool:
    """Whether the call is invalid in the message, because the message was cut off."""
    return call.status == "incomplete" or not isinstance(call.arguments, Mapping)
