"""Events for a reader that speaks LangChain's agent protocol."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from rxdelta.operators.edges.encode import encode
from rxdelta.operators.edges.made_ids import made_id
from rxdelta.runtime import operator_maker
from rxdelta.wire import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.wire import LangChainEncoder, LangChainFrame, Masked

__all__ = ["to_langchain_events"]


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

    def make(limits: Limits, choice: int) -> LangChainEncoder:
        return LangChainEncoder(
            now=time,
            new_id=_random_id,
            choice=choice,
            namespace=namespace,
            on_error=on_error,
            limits=limits,
        )

    return encode("to_langchain_events", make)


def _random_id() -> str:
    return f"run-{made_id()}"
