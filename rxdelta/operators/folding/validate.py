"""The check of the event protocol's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import Event, ProtocolChecker, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["validate"]


def validate(
    on_violation: Callable[[str, Event | None], object] | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, checked for the protocol's order; see `rxdelta.core.ProtocolChecker` for the rules.

    Each event is emitted at once. Completes with the source.

    Args:
        on_violation: Called with the name of the rule and the event that broke it (`None` at the end of the
            stream); then the event is passed on. Without this function the first violation is an error, and its
            event is not emitted.

    Errors: The source's own, unchecked. `ProtocolError`, whose `.violation` names the rule; the exception of
    `on_violation`; `LimitExceededError` for more choices than `Limits` allow by default.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> checked = rx.of(rd.events.MessageStart()).pipe(rd.validate())
        >>> checked.subscribe(on_error=lambda error: print(error.violation)).dispose()
        missing_message_finish
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
        self._lifecycle = ProtocolChecker()
        self._ended = False

    def on_next(self, event: Event) -> None:
        if self._passes(lambda: self._lifecycle.check(event), event):
            self._observer.on_next(event)

    def on_completed(self) -> None:
        if self._passes(self._lifecycle.close, None):
            self._observer.on_completed()

    def _passes(self, check: Callable[[], str | None], event: Event | None) -> bool:
        if self._ended:  # a synchronous source may emit after our error
            return False
        try:
            violation = check()
            if violation is not None:
                self._handle_violation(violation, event)
        except Exception as error:
            self._ended = True
            self._observer.on_error(error)
            return False
        return True

    def _handle_violation(self, violation: str, event: Event | None) -> None:
        if self._report is not None:
            self._report(violation, event)
            return
        where = "at the end of the stream" if event is None else f"at a {type(event).__name__}"
        raise ProtocolError(
            f"{violation} {where}; validate(on_violation=…) reports and goes on", violation=violation
        )
