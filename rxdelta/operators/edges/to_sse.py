"""Frames as the bytes of a streaming response."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc
from reactivex.disposable import (
    CompositeDisposable,
    Disposable,
    SerialDisposable,
    SingleAssignmentDisposable,
)

from rxdelta.runtime import Outlet, check_seconds, clock, current_session, errors_to_session
from rxdelta.wire import KEEP_ALIVE, sse_frame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["to_sse"]


def to_sse(
    keep_alive: float | None = None, *, scheduler: abc.SchedulerBase | None = None
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

    def apply(source: Observable[Any]) -> Observable[bytes]:
        def subscribe(
            observer: abc.ObserverBase[bytes], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = (None, Disposable()) if keep_alive is None else clock(scheduler, inherited)
            writing = _Writing(observer, keep_alive, time)
            upstream = SingleAssignmentDisposable()
            everything = CompositeDisposable(Disposable(writing.stop), writing.timer, upstream, owned)
            writing.everything = everything
            writing.wait()
            upstream.disposable = source.subscribe(
                writing.on_next, writing.on_error, writing.on_completed, scheduler=inherited
            )
            return everything

        return Observable(subscribe)

    return apply


class _Writing:
    """One subscription's state."""

    everything: abc.DisposableBase

    def __init__(
        self, observer: abc.ObserverBase[bytes], keep_alive: float | None, time: abc.SchedulerBase | None
    ) -> None:
        self._out: Outlet[bytes] = Outlet(observer)
        self._keep_alive = keep_alive
        self._time = time
        self._frames = 0
        self._session = current_session.get()
        self.timer = SerialDisposable()

    def stop(self) -> None:
        self._out.stop()

    def wait(self) -> None:
        """Start the timer. When it fires, it checks whether a frame was written meanwhile."""
        if self._keep_alive is None or self._time is None or self._out.closed:
            return
        timer = SingleAssignmentDisposable()
        self.timer.disposable = timer
        silent_since = partial(self._after_silence, self._frames)
        timer.disposable = self._time.schedule_relative(self._keep_alive, silent_since)

    def _after_silence(self, frames: int, *_: Any) -> None:
        if self._frames == frames:
            with errors_to_session(self.everything, self._session):
                self._out.on_next(KEEP_ALIVE)
        self.wait()

    def on_next(self, frame: Any) -> None:
        try:
            data = sse_frame(frame)
        except Exception as error:
            self._out.on_error(error)
            self.everything.dispose()
            return
        self._frames += 1
        self._out.on_next(data)

    def on_error(self, error: Exception) -> None:
        self._out.on_error(error)

    def on_completed(self) -> None:
        self._out.on_completed()
