"""The base of the operators that write frames as bytes, with something harmless in a silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import check_seconds
from rxdelta.runtime import lift, lift_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core import Seconds
    from rxdelta.runtime import Sink

__all__ = ["frames_as_bytes"]


def frames_as_bytes(
    name: str,
    write: Callable[[Any], bytes],
    comment: bytes,
    keep_alive: Seconds | None,
    scheduler: abc.SchedulerBase | None,
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Write each frame, and after a silence of `keep_alive` seconds the comment.

    Raises:
        InvalidValueError: `keep_alive` isn't a positive number.
    """
    if keep_alive is None:
        return lift_map(name, lambda _: _Writer(write), emits="frames")
    silence = check_seconds("keep_alive", keep_alive)
    return lift(
        name, lambda sink: _Writing(sink, write, comment, silence, sink.clock(scheduler)), emits="frames"
    )


class _Writer:
    """The state without comments."""

    def __init__(self, write: Callable[[Any], bytes]) -> None:
        self.step = write


class _Writing:
    """One subscription's state with comments."""

    def __init__(
        self,
        sink: Sink[bytes],
        write: Callable[[Any], bytes],
        comment: bytes,
        keep_alive: float,
        time: abc.SchedulerBase,
    ) -> None:
        self._sink = sink
        self._write = write
        self._comment = comment
        self._keep_alive = keep_alive
        self._timer = sink.timer(time)
        self._silent = True
        self._wait()

    def _wait(self) -> None:
        """Start the timer. When it fires, it checks whether a frame was written meanwhile."""
        self._timer.start(self._keep_alive, self._on_timer)

    def _on_timer(self) -> None:
        if self._silent:
            self._sink.on_next(self._comment)
        self._silent = True
        self._wait()

    def on_next(self, frame: Any) -> None:
        self._silent = False
        self._sink.on_next(self._write(frame))
