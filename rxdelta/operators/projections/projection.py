"""What the projections share: the way of one subscription through a message's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from reactivex import Observable, abc

from rxdelta.core import (
    Event,
    InvalidValueError,
    ProviderError,
    begins_another,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    AttemptReset,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    StreamError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChangeKind", "Projection", "project"]

T = TypeVar("T")

ChangeKind: TypeAlias = Literal["begun", "more", "replaced"]
"""What a piece of a growing text is: its beginning, more of it, or all of it anew."""


def project(
    begin: Callable[[abc.ObserverBase[T]], Projection[T]],
) -> Callable[[Observable[Event]], Observable[T]]:
    """The operator that goes through each subscription's events with a projection of its own."""

    def apply(source: Observable[Event]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            projection = begin(observer)
            return source.subscribe(
                projection.on_next, observer.on_error, observer.on_completed, scheduler=scheduler
            )

        return Observable(subscribe)

    return apply


class Projection(Generic[T]):
    """One subscription's state: which events of the stream count, and what they bring to light.

    Those of one choice, until its message has finished. Another attempt begins anew, and so does another
    message: the projection of a conversation is that of its messages, one after the other.
    """

    def __init__(self, observer: abc.ObserverBase[T], choice: int) -> None:
        self._observer = observer
        self._choice = choice
        self._message_id: str | None = None
        self._started = self._has_block = self._ended = False
        self.begin()

    def begin(self) -> None:
        """Know nothing yet."""
        raise NotImplementedError

    def step(self, event: Event, emit: Callable[[T], None]) -> None:
        """Take in an event of the message. What is emitted goes out when the state has been settled."""
        raise NotImplementedError

    def on_next(self, event: Event) -> None:
        found: list[T] = []
        failure: Exception | None = None
        try:
            self._take(event, found.append)
        except Exception as error:
            failure = error
        for value in found:
            self._observer.on_next(value)
        if failure is not None:
            self._observer.on_error(failure)

    def _take(self, event: Event, emit: Callable[[T], None]) -> None:
        kind = type(event)
        if kind not in EVENT_TYPES:
            raise InvalidValueError.of(
                [("event", event, "must be an event; chunks go through decode() first")]
            )
        if isinstance(event, StreamError):
            raise ProviderError(event.message, type=event.type, code=event.code)
        if getattr(event, "choice", self._choice) != self._choice:
            return
        if kind is AttemptReset:
            self._restart()
            return
        if isinstance(event, MessageStart):
            self._message_start(event)
        if not self._ended:
            self._has_block = self._has_block or _is_block(event)
            self._ended = kind is MessageFinish or kind is MessageInterrupted
            self.step(event, emit)

    def _message_start(self, event: MessageStart) -> None:
        begun = self._started and self._has_block
        if begins_another(event, id=self._message_id, begun=begun, over=self._ended):
            self._restart()
        self._started = self._started or not event.assumed
        self._message_id = self._message_id or event.id

    def _restart(self) -> None:
        self._message_id = None
        self._started = self._has_block = self._ended = False
        self.begin()


def _is_block(event: Event) -> bool:
    """Whether the message has a block from here on, if it had none."""
    return isinstance(event, BlockStart) or (isinstance(event, BlockFinish) and event.content is not None)


def names_any(fields: Any, names: tuple[str, ...]) -> bool:
    """Whether the fields of a block say something under one of these names."""
    return any(fields.get(name) is not None for name in names)
