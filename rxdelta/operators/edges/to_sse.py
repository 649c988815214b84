"""Frames as the bytes of a streaming response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import check_seconds
from rxdelta.runtime import lift, lift_map, operator_maker
from rxdelta.wire import KEEP_ALIVE, sse_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core import Seconds
    from rxdelta.runtime import Sink

__all__ = ["to_sse"]


@operator_maker
def to_sse(
    keep_alive: Seconds | None = None, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Encode each frame as the bytes of one server-sent event: UTF-8, with LF as the only line end.

    The source emits frames: JSON objects, `ag_ui.core` events, or `wire.DONE`, which becomes `data: [DONE]`. Each
    frame is emitted at once. With `keep_alive`, a comment breaks a silence of that many seconds, after twice as
    many at the latest, so that proxies keep the connection; clients skip comments.
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
    if keep_alive is not None:
        keep_alive = check_seconds("keep_alive", keep_alive)

    if keep_alive is None:
        return lift_map("to_sse", lambda _: _Writer(), emits="frames")
    silence = keep_alive
    return lift("to_sse", lambda sink: _Writing(sink, silence, sink.clock(scheduler)), emits="frames")


class _Writer:
    """The state without keep-alive comments."""

    def __init__(self) -> None:
        self.step = sse_frame


class _Writing:
    """One subscription's state with keep-alive comments."""

    def __init__(self, sink: Sink[bytes], keep_alive: float, time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._keep_alive = keep_alive
        self._timer = sink.timer(time)
        self._silent = True
        self._wait()

    def _wait(self) -> None:
        """Start the timer. When it fires, it checks whether a frame was written meanwhile."""
        self._timer.start(self._keep_alive, self._on_timer)

    def _on_timer(self) -> None:
        if self._silent:
            self._sink.on_next(KEEP_ALIVE)
        self._silent = True
        self._wait()

    def on_next(self, frame: Any) -> None:
        self._silent = False
        self._sink.on_next(sse_frame(frame))
