"""Frames as the lines of a streaming response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.operators.edges.frame_bytes import frames_as_bytes
from rxdelta.runtime import operator_maker
from rxdelta.wire import NDJSON_KEEP_ALIVE, ndjson_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core import Seconds

__all__ = ["to_ndjson"]


@operator_maker
def to_ndjson(
    keep_alive: Seconds | None = None, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Encode each frame as one line of JSON: UTF-8, with LF as the only line end.

    ::

        frames  <{'done': False}> ------  -<{'done': True}> |
                to_ndjson(keep_alive=0.3)
        bytes   <{"done":false}\\n>-----< >-<{"done":true}\\n>|

    The source emits frames: JSON objects, such as those of `to_ollama()`, or `ag_ui.core` events. Each frame is emitted at
    once. Characters that end a line to some clients, such as U+2028, are escaped. With `keep_alive`, a space in front of the
    next line breaks a silence of that many seconds, after twice as many at the latest, so that proxies keep the connection;
    JSON parsers skip it, but would refuse an empty line. Completes with the source.

    Args:
        keep_alive: Seconds of silence that proxies tolerate; `None` for no spaces.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `keep_alive` isn't a positive number.

    Errors: The source's own. `InvalidValueError` for any other frame, and for `wire.DONE`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of({"done": False}, {"done": True}).pipe(rd.to_ndjson()).subscribe(print).dispose()
        b'{"done":false}\\n'
        b'{"done":true}\\n'
    """
    return frames_as_bytes("to_ndjson", ndjson_line, NDJSON_KEEP_ALIVE, keep_alive, scheduler)
