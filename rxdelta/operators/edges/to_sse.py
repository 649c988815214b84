"""Frames as the bytes of a streaming response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.frame_bytes import frames_as_bytes
from rxdelta.runtime import operator_maker
from rxdelta.wire import KEEP_ALIVE, sse_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core import Seconds

__all__ = ["to_sse"]


@operator_maker
def to_sse(
    keep_alive: Seconds | None = None, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Encode each frame as the bytes of one server-sent event: UTF-8, with LF as the only line end.

    ::

        frames  <{'type': 'start'}>         ------                 -<{'type': 'finish'}>         |
                to_sse(keep_alive=0.3)
        bytes   <data: {"type":"start"}\\n\\n>-----<: keep-alive\\n\\n>-<data: {"type":"finish"}\\n\\n>|

    The source emits frames: JSON objects, `ag_ui.core` events, or `wire.DONE`, which becomes `data: [DONE]`. Each
    frame is emitted at once. With `keep_alive`, a comment breaks a silence of that many seconds, after twice as
    many at the latest, so that proxies keep the connection; clients skip comments. The type of a `wire.NamedFrame` is
    also written as the name of the event.
    Completes with the source.

    Args:
        keep_alive: Seconds of silence that proxies tolerate; `None` for no comments.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `keep_alive` isn't a positive number.

    Errors: The source's own. `InvalidValueError` for any other frame.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of({"type": "start"}, rd.wire.DONE).pipe(rd.to_sse()).subscribe(print).dispose()
        b'data: {"type":"start"}\\n\\n'
        b'data: [DONE]\\n\\n'
    """
    return frames_as_bytes("to_sse", sse_frame, KEEP_ALIVE, keep_alive, scheduler)
