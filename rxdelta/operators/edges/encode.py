"""The base of `to_ai_sdk`, `to_ag_ui` and `to_langchain_events`: a sans-IO encoder for a stream of events."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

from rxdelta.core import Event
from rxdelta.wire import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["encode"]

F = TypeVar("F")


def encode(make: Callable[[], Encoder[F]]) -> Callable[[Observable[Event]], Observable[F]]:
    """Encode the source's events into frames, by an encoder that `make()` returns for each subscription.

    A front end knows no `on_error`: an error becomes frames, and the output completes.
    """

    def apply(source: Observable[Event]) -> Observable[F]:
        def subscribe(
            observer: abc.ObserverBase[F], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            encoding = _Encoding(observer, make())
            encoding.upstream = source.subscribe(
                encoding.on_next, encoding.on_error, encoding.on_completed, scheduler=scheduler
            )
            if encoding.ended:
                encoding.upstream.dispose()
            return CompositeDisposable(Disposable(encoding.stop), encoding.upstream)

        return Observable(subscribe)

    return apply


class _Encoding(Generic[F]):
    """One subscription. Events that an observer pushes into the source during a notification are queued."""

    def __init__(self, observer: abc.ObserverBase[F], encoder: Encoder[F]) -> None:
        self._observer = observer
        self._encoder = encoder
        self._steps: deque[Callable[[], Sequence[F]]] = deque()
        self._busy = False
        self._ending = False
        self.ended = False
        self.upstream: abc.DisposableBase | None = None

    def stop(self) -> None:
        self.ended = True
        self._steps.clear()

    def on_next(self, event: Event) -> None:
        self._enqueue(lambda: self._encode(event))

    def on_error(self, error: Exception) -> None:
        self._enqueue(lambda: self._end_with(self._encoder.fail(error)))

    def on_completed(self) -> None:
        self._enqueue(lambda: self._end_with(self._encoder.close()))

    def _encode(self, event: Event) -> Sequence[F]:
        try:
            return self._encoder.encode(event)
        except Exception as error:
            return self._end_with(self._encoder.fail(error))

    def _end_with(self, frames: Sequence[F]) -> Sequence[F]:
        self._ending = True
        return frames

    def _enqueue(self, step: Callable[[], Sequence[F]]) -> None:
        if self.ended:
            return
        self._steps.append(step)
        if self._busy:
            return
        self._busy = True
        try:
            while self._steps and not self.ended:
                for frame in self._steps.popleft()():
                    if self.ended:
                        return
                    self._observer.on_next(frame)
                if self._ending and not self.ended:
                    self.stop()
                    self._observer.on_completed()
                    if self.upstream is not None:
                        self.upstream.dispose()
        finally:
            self._busy = False
