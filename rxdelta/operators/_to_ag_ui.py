"""Events for a front end that speaks AG-UI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.operators._encode import encode
from rxdelta.wire import AgUiEncoder, Masked, masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ag_ui.core import BaseEvent
    from reactivex import Observable

    from rxdelta.core import Event

__all__ = ["to_ag_ui"]


def to_ag_ui(
    thread_id: str,
    run_id: str,
    *,
    choice: int = 0,
    serialize_tool_calls: bool = False,
    on_error: Masked = masked,
    messages: Iterable[Any] | None = None,
    reasoning: bool = True,
    provider_events: bool = False,
) -> Callable[[Observable[Event]], Observable[BaseEvent]]:
    """One run of AG-UI 1.0, as events of the package `ag-ui-protocol` (`pip install 'rxdelta[ag-ui]'`).

    In: events, of one message or of a conversation, which is one run. Out: `ag_ui.core` events for `to_sse()`;
    the response needs `rd.wire.AG_UI_HEADERS`. Each comes at once with the event that it tells; a text's end
    when it is known that no other text goes on with it, a block that isn't text, reasoning or a call when it is
    whole, RUN_FINISHED when the source completes, because results of tools come until then.

    However the source ends, what is open is closed first. RUN_FINISHED is last, with the outcome `cancelled` for
    a `MessageInterrupted` and otherwise with the calls that wait for the client; or RUN_ERROR, where the source
    fails or completes before its message has finished. Then the output completes; it never fails.

    What was said and is taken back (by an `AttemptReset` above all) is gone from the client with a
    MESSAGES_SNAPSHOT. That replaces all that the client has, so give the request's `messages`.

    Args:
        thread_id: The conversation's id, as in the request.
        run_id: The run's id, as in the request.
        choice: Which of several alternative replies to tell.
        serialize_tool_calls: Whether to keep back all else while a call is open, for clients before 1.0, which
            don't take calls that overlap.
        on_error: What the client may know of an error; by default that there was one, which is logged.
        messages: The request's messages, objects or JSON. Without them a snapshot holds this run's only.
        reasoning: `False` keeps reasoning on the server, with the signatures that some providers want back.
        provider_events: Whether to pass the provider's own events on, as RAW. They may tell more than a front
            end should know.

    Raises:
        ImportError: At once, where `ag-ui-protocol` 1.0 isn't installed.
        InvalidValueError: At once, for an argument that makes no sense.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rd.to_events(rd.MessageDelta(merged_content=[rd.ContentPart("text", "Hi")], status="complete"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_ag_ui("t1", "r1"))
        >>> frames.subscribe(lambda frame: print(frame.type.value, getattr(frame, "delta", ""))).dispose()
        RUN_STARTED
        TEXT_MESSAGE_START
        TEXT_MESSAGE_CONTENT Hi
        TEXT_MESSAGE_END
        RUN_FINISHED
    """
    known = None if messages is None else [*messages]

    def make() -> AgUiEncoder:
        return AgUiEncoder(
            thread_id,
            run_id,
            choice=choice,
            serialize_tool_calls=serialize_tool_calls,
            on_error=on_error,
            messages=known,
            reasoning=reasoning,
            provider_events=provider_events,
        )

    make()  # an argument that makes no sense
    return encode(make)
