"""Events for a browser that speaks Vercel's AI SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.encode import encode
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import AiSdkEncoder, AiSdkFrame, Done, Masked, ShownSources

__all__ = ["to_ai_sdk"]


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

    def make(limits: Limits, choice: int) -> AiSdkEncoder:
        return AiSdkEncoder(
            message_id=message_id,
            choice=choice,
            sdk_version=sdk_version,
            on_error=on_error,
            reasoning=reasoning,
            provider_items=provider_items,
            sources=sources,
            metadata=metadata,
            messages=known,
            limits=limits,
        )

    return encode("to_ai_sdk", make, open=AiSdkEncoder.open)
