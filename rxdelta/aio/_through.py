"""The user's own operators in front of a reply, and the places at which it is broken off around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from reactivex import Observable

from rxdelta.core import Event, InvalidValueError
from rxdelta.runtime import all_events, call_on, create, mark_of, running_loop

if TYPE_CHECKING:
    import asyncio

    from rxdelta.runtime import Sink

__all__ = ["Front", "Operator", "Place", "applied", "fail"]

Operator: TypeAlias = Callable[[Observable[Event]], Observable[Event]]
"""An operator from events to events."""


def applied(
    field: str, operator: Callable[[Observable[Any]], Observable[Any]], source: Observable[Any]
) -> Observable[Event]:
    """What the operator makes of the source: events, as far as it tells.

    Raises:
        InvalidValueError: It is no operator, or what it emits are no events, or not all of them.
    """
    wanted = f"must be an operator that emits events, such as {'rd.decode(…)' if field == 'decode' else 'rd.smooth()'}"
    if isinstance(operator, (Observable, type)) or not callable(operator):
        raise InvalidValueError.of([(field, operator, wanted)])  # pyright: ignore[reportUnknownArgumentType]
    made: Observable[Any] = operator(source)
    if not isinstance(made, Observable):
        raise InvalidValueError.of(
            [(field, operator, f"{wanted}; this returned none: is it to be called first?")]
        )
    mark = mark_of(made)
    if mark is not None and mark.emits != "events":
        what = "only the newest" if mark.emits == "newest" else mark.emits
        cure = f"put it behind the reply: reply.events.pipe({mark.operator}(…))"
        if mark.emits == "chunks":
            cure = "put it into decode=, with decode() behind it"
        raise InvalidValueError(
            f"{field}: must emit events, and {mark.operator}() emits {what}; {cure}", field=field
        )
    return all_events("rd.stream", _unchanged)(made)


def _unchanged(source: Observable[Event]) -> Observable[Event]:
    return source


class Place:
    """A place in the pipeline at which the reply can be broken off: the source is closed, and the rest gets an end.

    The next place behind it serves when this one has had its end already, because the provider has ended, say.
    """

    def __init__(self, behind: Place | None = None) -> None:
        self.sink: Any = None  # of the one subscription
        self._behind = behind
        self._end: Callable[[Sink[Event]], object] | None = None  # with which it was broken off

    def put(self, source: Observable[Event]) -> Observable[Event]:
        """The same events, up to here."""
        return create("rd.stream", partial(self._begin, source), emits="events")

    def _begin(self, source: Observable[Event], sink: Sink[Event]) -> None:
        self.sink, self.on_next = sink, self._taking(sink)
        sink.subscribe(source, self)

    def _taking(self, sink: Sink[Event]) -> Callable[[Event], object]:
        return sink.on_next

    def on_error(self, error: Exception) -> None:
        self.sink.on_error(error)
        self._go_on()

    def on_completed(self) -> None:
        self.sink.on_completed()
        self._go_on()

    def close(self) -> None:
        """Close the source."""
        if self.sink is not None:
            self.sink.dispose_source()

    def break_off(self, end: Callable[[Sink[Event]], object]) -> None:
        """End the rest by this function of a place's sink. It may be called on any thread."""
        self._end = end
        self.close()
        if self.sink is None or self.sink.closed:
            self._go_on()
        else:  # an end of the source that waits for its turn comes first, and then goes on to the next place
            self._turn()

    def _turn(self) -> None:
        self.sink.run(self._finish)

    def _finish(self) -> None:
        if self._end is not None:
            self._end(self.sink)

    def _go_on(self) -> None:
        if self._end is not None and self._behind is not None:
            self._behind.break_off(self._end)


class Front(Place):
    """The place in front of the user's operators.

    When the reply is broken off, these emit what they hold, but nothing waits for them: the next place is broken off as
    well. The operators run on the loop, if there is one. Their exceptions end the reply.
    """

    _behind: Place
    _loop: asyncio.AbstractEventLoop | None

    def _begin(self, source: Observable[Event], sink: Sink[Event]) -> None:
        if self.sink is not None:
            raise InvalidValueError(
                "an operator of through= subscribes the reply again, which is requested once: put share_events() in "
                "front of it, or give rd.retry_stream(…) as the source",
                field="through",
            )
        self._loop = running_loop()
        super()._begin(source, sink)

    def _taking(self, sink: Sink[Event]) -> Callable[[Event], object]:
        return partial(self._guarded, sink.on_next)

    def on_error(self, error: Exception) -> None:
        self._guarded(super().on_error, error)

    def on_completed(self) -> None:
        self._guarded(super().on_completed)

    def _turn(self) -> None:
        if self._loop is None:
            super()._turn()
        else:
            call_on(self._loop, super()._turn)

    def _finish(self) -> None:
        self._guarded(super()._finish)
        self._go_on()

    def _guarded(self, step: Callable[..., object], *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as error:
            self._behind.break_off(partial(fail, error))


def fail(error: Exception, sink: Sink[Event]) -> None:
    """End a reply with an error, for `break_off`."""
    sink.on_error(error)
