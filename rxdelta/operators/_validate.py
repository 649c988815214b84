"""The event protocol's promise, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import Event, Lifecycle, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["validate"]


def validate(
    on_violation: Callable[[str, Event | None], object] | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, as long as they keep the protocol's order; see `rxdelta.Lifecycle` for the rules.

    Completes with the source.

    Args:
        on_violation: Called with the name of the rule and the event that broke it (`None` at the end of the stream),
            and then the event is passed on. Without it the first violation is an error, and its event is not emitted.

    Errors: `ProtocolError`, whose `.violation` names the rule; the source's own; what `on_violation` raised.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of(rd.events.MessageStart()).pipe(rd.validate()).subscribe(on_error=lambda error: print(error.violation))
        missing_message_finish
        <reactivex.disposable.disposable.Disposable object at 0x...>
    """

    def apply(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            check = _Check(observer, on_violation)
            return source.subscribe(check.on_next, observer.on_error, check.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return apply


class _Check:
    """One subscription's state."""

    def __init__(
        self, observer: abc.ObserverBase[Event], report: Callable[[str, Event | None], object] | None
    ) -> None:
        self._observer = observer
        self._report = report
        self._lifecycle = Lifecycle()

    def on_next(self, event: Event) -> None:
        violation = self._lifecycle.check(event)
        if violation is None or self._goes_on(violation, event):
            self._observer.on_next(event)

    def on_completed(self) -> None:
        violation = self._lifecycle.close()
        if violation is None or self._goes_on(violation, None):
            self._observer.on_completed()

    def _goes_on(self, violation: str, event: Event | None) -> bool:
        if self._report is None:
            where = "at the end of the stream" if event is None else f"at {event!r}"
            self._observer.on_error(
                ProtocolError(f"{violation} {where}; validate(on_violation=…) reports and goes on", violation=violation)
            )
            return False
        try:
            self._report(violation, event)
        except Exception as error:
            self._observer.on_error(error)
            return False
        return True
