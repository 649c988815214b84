"""From events to snapshots: the one door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import DEFAULT_LIMITS, Event, Fold, Limits, MessageDelta, RxDeltaError, StreamInterrupted

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["scan_deltas"]


def scan_deltas(
    seed: MessageDelta | None = None, choice: int = 0, *, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event | MessageDelta]], Observable[MessageDelta]]:
    """The reply so far, after each event or small delta that changed it.

    Events are folded as by `apply_event`, small `MessageDelta`s as by `merge_delta`. Snapshots share what didn't
    change and may all be kept. What changes nothing (a ping, an empty delta) emits nothing.

    Completes with the source; a stream that was cut off leaves the last snapshot `incomplete`.

    Args:
        seed: Where to begin, e.g. a stored half of the reply; not emitted by itself.
        choice: Which of several alternative replies to fold.
        limits: What the stream may make us hold.

    Errors: Every error from here on has `.snapshot`. `ProviderError` for a `StreamError`, `LimitExceededError`,
    `ProtocolError` for a second message; ours from upstream as they are; anything else becomes `StreamInterrupted`
    with the original as `__cause__`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = [rd.MessageDelta(content="Hel"), rd.MessageDelta(content="lo")]
        >>> rx.from_iterable(pieces).pipe(rd.scan_deltas()).subscribe(lambda snapshot: print(snapshot.text)).dispose()
        Hel
        Hello
    """

    def apply(source: Observable[Event | MessageDelta]) -> Observable[MessageDelta]:
        def subscribe(
            observer: abc.ObserverBase[MessageDelta], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            scan = _Scan(observer, Fold(seed, choice=choice, limits=limits))
            return source.subscribe(scan.on_next, scan.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return apply


class _Scan:
    """One subscription's state."""

    def __init__(self, observer: abc.ObserverBase[MessageDelta], fold: Fold) -> None:
        self._observer = observer
        self._fold = fold
        self._latest = fold.snapshot

    def on_next(self, event: Event | MessageDelta) -> None:
        try:
            snapshot = self._fold.step(event)
        except Exception as error:
            self.on_error(error)
            return
        if snapshot is not self._latest:
            self._latest = snapshot
            self._observer.on_next(snapshot)

    def on_error(self, error: Exception) -> None:
        snapshot = self._fold.snapshot
        if isinstance(error, RxDeltaError):
            if error.snapshot is None:
                error.snapshot = snapshot
            self._observer.on_error(error)
            return
        interrupted = StreamInterrupted(f"the stream broke off: {type(error).__name__}: {error}", snapshot=snapshot)
        interrupted.__cause__ = error
        self._observer.on_error(interrupted)
