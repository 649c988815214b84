"""Events for a front end: one that speaks AG-UI, Vercel's AI SDK, or LangChain's agent protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.encode import encode, made_id
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent, RunAgentInput
    from reactivex import Observable

    from rxdelta.core import Event
    from rxdelta.wire import (  # with their format, so not before it is named
        AiSdkFrame,
        Done,
        LangChainFrame,
        Masked,
        ShownSources,
    )


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

    make = partial(
        AgUiEncoder,
        run_input,
        thread_id=thread_id,
        run_id=run_id,
        new_id=made_id,
        serialize_tool_calls=serialize_tool_calls,
        on_error=on_error,
        reasoning=reasoning,
        provider_events=provider_events,
        provider_items=provider_items,
    )
    return encode("to_ag_ui", make)


@operator_maker
def to_ai_sdk(
    message_id: str | None = None,
    sdk_version: int = 7,
    on_error: Masked = masked,
    *,
    reasoning: bool = True,
    provider_items: bool = False,
    sources: ShownSources = "cited",
    metadata: Mapping[str, Any] | None = None,
    messages: Iterable[Mapping[str, Any]] = (),
) -> Callable[[Observable[Event]], Observable[AiSdkFrame | Done]]:
    """Encode the UI message stream that `useChat` of Vercel's AI SDK reads: JSON objects, then `rd.wire.DONE`.

    ::

        events  The                   -_tide       --|
                to_ai_sdk()
        frames  [<start>…<text-delta>]-<text-delta>--[<text-end>…<DONE>|]

    In: events of one message, of a conversation, or of several runs, whose messages become steps of one UI message.
    Out: frames for `to_sse()`; a response of your own needs `rd.wire.AI_SDK_HEADERS`. `start` comes at once, and
    most events are encoded as they come. A text's end waits until no other text can go on with it, a file until it is whole, and `finish` until the source completes, because results of tools may come until then.

    The parts of another run than the first have `runId` in their `providerMetadata.rxdelta`, and a `data-run` part tells of
    each of its messages (docs/reference/frames-common.md).

    At any end of the source, open parts are closed first and `DONE` is last. Before it comes `finish`; or `abort`
    after a `MessageInterrupted`; or `error` if the source fails, or completes before its message has finished. Then
    the output completes; it never fails.

    Args:
        message_id: The UI message's id. Without one the client makes up an id, or continues its last message,
            as it must when it sends results of its own tools.
        sdk_version: The client's major version: 7 for 7.0.77 or later, 6 for 6.0.120 or later, 5 for 5.0.100 or later.
            Only 7 can take a failed attempt back (`reset-step`) and has `custom` parts and citations. For 5 and 6 a
            failed attempt stays as a step of its own that ends with a `data-attempt-reset`, for the front end to hide.
            5 gets no metadata of results.
        on_error: The text of an error for the browser; by default a fixed text, and the error is logged.
        reasoning: `False` keeps reasoning on the server, with the signatures that some providers want back.
        provider_items: `True` sends the items of the provider that are no text, reasoning, call, result or file, such as
            the list of an MCP server's tools. They come back with `from_ai_sdk`, which some providers need to go on.
        sources: Which sources are sent: those that texts `cited`, or all `results` of the provider's searches too.
        metadata: Your own metadata of the UI message. The stream adds `model`, `status`, `finishReason` and
            `usage` (of all messages and attempts).
        messages: The UI messages of the request. If the last one is the assistant's, the reply goes on with it: its id is
            the default of `message_id`, its usage is added to, and a `ToolUpdate` of one of its calls is sent although
            the call isn't in this stream, such as what a person has decided now.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> rx.from_iterable(reply).pipe(rd.to_ai_sdk("m1")).subscribe(print).dispose()
        {'type': 'start', 'messageId': 'm1'}
        {'type': 'start-step'}
        {'type': 'text-start', 'id': '1'}
        {'type': 'text-delta', 'id': '1', 'delta': 'Hi'}
        {'type': 'text-end', 'id': '1'}
        {'type': 'finish-step'}
        {'type': 'finish', 'finishReason': 'stop', 'messageMetadata': {'status': 'complete', 'finishReason': 'stop'}}
        DONE
    """
    from rxdelta.wire import AiSdkEncoder  # with the format, when it is named

    known = [*messages] if isinstance(messages, Iterator) else messages  # each subscription reads them

    make = partial(
        AiSdkEncoder,
        message_id=message_id,
        sdk_version=sdk_version,
        on_error=on_error,
        reasoning=reasoning,
        provider_items=provider_items,
        sources=sources,
        metadata=metadata,
        messages=known,
    )
    return encode("to_ai_sdk", make, open=AiSdkEncoder.open)


@operator_maker
def to_langchain_events(
    namespace: Sequence[str] = (),
    on_error: Masked = masked,
) -> Callable[[Observable[Event]], Observable[LangChainFrame]]:
    """Encode LangChain's agent protocol (0.0.20), which LangGraph's clients and `decode("langchain")` read.

    In: events of one message, of a conversation or of several runs. Out: frames for `to_sse()`, each an envelope with
    `seq`; a response of your own needs `rd.wire.LANGCHAIN_HEADERS`. Each event is encoded at once. The channel `messages` has the messages
    block by block; a block's finish has its whole content. The channel `tools` has the calls that are run. Events that
    the protocol lacks (usage during a message, a provider's own events) become a `custom` event named `rxdelta`, which
    other readers skip and `decode("langchain")` reads.

    At any end of the source, open blocks are closed first. If the source fails, or completes before its message has
    finished, the last frame is the message's `error`; without an open message an empty one is opened for it. A failed
    attempt ends with an `error` too, and another message follows. Then the output completes; it never fails.

    Args:
        namespace: The path of the model's node in a graph. A run has its own within it: its name, cut at each bar.
        on_error: The text of an error for the reader; by default a fixed text, and the error is logged.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_langchain_events())
        >>> frames.subscribe(lambda frame: print(frame["seq"], frame["params"]["data"]["event"])).dispose()
        0 message-start
        1 content-block-start
        2 content-block-delta
        3 content-block-finish
        4 message-finish
    """
    from rxdelta.wire import LangChainEncoder  # with the format, when it is named

    make = partial(
        LangChainEncoder,
        now=time,
        new_id=partial(made_id, "run-"),
        namespace=namespace,
        on_error=on_error,
    )
    return encode("to_langchain_events", make)
