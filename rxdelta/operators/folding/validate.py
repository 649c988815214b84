"""The check of the event protocol's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rxdelta.core import Event, Limits, ProtocolChecker, ProtocolError, wrong_value
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import lift_map, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def validate(
    on_violation: Callable[[str, Event | None], object] | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events; their order is checked, not their content: see `rxdelta.core.ProtocolChecker`.

    ::

        events  The _tide/
                validate()
        events  The _tide#ProtocolError

    Each event is emitted at once. Completes with the source.

    Args:
        on_violation: Called with the name of the rule and the event that broke it (`None` at the end of the
            stream); then the event is passed on. Without this function the first violation is an error, and its
            event is not emitted.

    Errors: The source's own, unchecked. `ProtocolError`, whose `.violation` names the rule; the exception of
    `on_violation`; `LimitExceededError`, by the pipeline's limits.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> checked = rx.of(rd.events.MessageStart()).pipe(rd.validate())
        >>> checked.subscribe(on_error=lambda error: print(error.violation)).dispose()
        missing_message_finish
    """

    return lift_map("validate", lambda sink: _Check(on_violation, sink.limits), emits="events")


class _Check:
    """One subscription's state."""

    def __init__(self, report: Callable[[str, Event | None], object] | None, limits: Limits) -> None:
        self._report = report
        self._lifecycle = ProtocolChecker(limits=limits)

    def step(self, event: Event) -> Event:
        if type(event) not in EVENT_TYPES:
            raise wrong_value("validate", event)
        self._handle(self._lifecycle.check(event), event)
        return event

    def close(self) -> Sequence[Event]:
        self._handle(self._lifecycle.close(), None)
        return ()

    def _handle(self, violation: str | None, event: Event | None) -> None:
        if violation is None:
            return
        if self._report is not None:
            self._report(violation, event)
            return
        where = "at the end of the stream" if event is None else f"at a {type(event).__name__}"
        raise ProtocolError(
            f"{violation} {where}; validate(on_violation=…) reports and goes on", violation=violation
        )
