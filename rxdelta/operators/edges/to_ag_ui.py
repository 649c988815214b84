"""Events for a front end that speaks AG-UI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.encode import encode
from rxdelta.operators.edges.made_ids import made_id
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ag_ui.core import BaseEvent, RunAgentInput
    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import AgUiEncoder, Masked

__all__ = ["to_ag_ui"]


@operator_maker
def to_ag_ui(
    run_input: RunAgentInput | Mapping[str, Any] | None = None,
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    serialize_tool_calls: bool = False,
    on_error: Masked = masked,
    reasoning: bool = True,
    provider_events: bool = False,
    provider_items: bool = False,
) -> Callable[[Observable[Event]], Observable[BaseEvent]]:
    """Encode one run of AG-UI, as events of the package `ag-ui-protocol` (`pip install 'rxdelta[ag-ui]'`).

    ::

        events  The                                   -_tide                 --|
                to_ag_ui()
        frames  [<RUN_STARTED>…<TEXT_MESSAGE_CONTENT>]-<TEXT_MESSAGE_CONTENT>--[<TEXT_MESSAGE_END>…<RUN_FINISHED>|]

    In: events of one message, or of a conversation, which becomes one run. Out: `ag_ui.core` events for `to_sse()`;
    a response of your own needs `rd.wire.AG_UI_HEADERS`. Most events are encoded at once. A text's end waits until no
    other text can continue it, and a block other than text, reasoning or a call waits until it is whole.
    RUN_FINISHED waits until the source completes, because results of tools may come until then.

    Pass the request. It has the run's ids, the messages, whose ids must not be used again, and the client's
    version: the additions of AG-UI 1.0 break older clients, so only clients that send `protocolVersion` get them.

    At any end of the source, open blocks are closed first. The last event is RUN_FINISHED. Its outcome is `interrupt`
    where calls wait for a person's decision; for clients of 1.0 it is `cancelled` after a `MessageInterrupted`, and has
    otherwise the calls that wait for the client. The last event is RUN_ERROR if the source fails or completes before its
    message has finished. Then the output completes; it never fails.

    Each message is a step, `model-turn-1` and so on. The finish reason is in the metadata of its end, of the run's end,
    and of the text that ended with the message; the sources that a text cites are in its metadata, and in a CUSTOM event
    `rxdelta.sources`.

    A run that answers interrupts begins with the updates of the calls that the person decided about. The request has the
    calls, so that their results are sent although the calls aren't in this stream.

    Several runs become one run of AG-UI. One that has another parent than the first run is a sub-agent's, with
    `subagentRunId`; all others are the agent's own (docs/reference/frames-common.md).

    Text that is taken back (mostly by an `AttemptReset`) is removed from the client by a MESSAGES_SNAPSHOT of the
    request's and the run's messages. Without a request each message of the run is replaced by an activity
    `rxdelta.discarded`, and the text that stays valid is sent again.

    Args:
        run_input: The request: the `RunAgentInput`, or the JSON object that the client posts.
        thread_id: The conversation's id, instead of the request's. Without a request one is made up.
        run_id: The run's id, likewise.
        serialize_tool_calls: Whether to hold back all other events while a call is open, for clients that don't
            support overlapping calls.
        on_error: The text of an error for the client; by default a fixed text, and the error is logged.
        reasoning: `False` keeps reasoning on the server, with the signatures that some providers want back.
        provider_events: Whether to pass the provider's own events on, as RAW. They may reveal more than a front
            end should know.
        provider_items: Whether to send items that only the provider knows, such as the list of an MCP server's tools, or a
            compaction; as activities, which the client sends back.

    Raises:
        ImportError: At once, if `ag-ui-protocol` 1.0 isn't installed.
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_ag_ui({"threadId": "t1", "runId": "r1", "messages": []}))
        >>> frames.subscribe(lambda frame: print(frame.type.value, getattr(frame, "delta", ""))).dispose()
        RUN_STARTED
        STEP_STARTED
        TEXT_MESSAGE_START
        TEXT_MESSAGE_CONTENT Hi
        TEXT_MESSAGE_END
        STEP_FINISHED
        RUN_FINISHED
    """
    from rxdelta.wire import AgUiEncoder  # with the format, when it is named

    def make(limits: Limits, choice: int) -> AgUiEncoder:
        return AgUiEncoder(
            run_input,
            thread_id=thread_id,
            run_id=run_id,
            new_id=made_id,
            choice=choice,
            serialize_tool_calls=serialize_tool_calls,
            on_error=on_error,
            reasoning=reasoning,
            provider_events=provider_events,
            provider_items=provider_items,
            limits=limits,
        )

    return encode("to_ag_ui", make)
