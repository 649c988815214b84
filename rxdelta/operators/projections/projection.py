"""The base of the projections: it selects one choice's events, message by message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from rxdelta.core import Event, ProviderError, begins_another, wrong_value
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
from rxdelta.runtime import lift

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

__all__ = ["ChangeKind", "Projection", "project"]

T = TypeVar("T")

ChangeKind: TypeAlias = Literal["begun", "more", "replaced"]
"""The meaning of a piece of text: its beginning, an addition, or a replacement of the whole."""


def project(
    begin: Callable[[abc.ObserverBase[T]], Projection[T]], name: str = "this operator"
) -> Callable[[Observable[Event]], Observable[T]]:
    """The operator that passes the events of each subscription to a new projection."""
    return lift(name, begin)


class Projection(Generic[T]):
    """One subscription's state. It reads the events of one choice until the choice's message has finished.

    Another attempt, or another message, resets the state: a conversation is projected message by message.
    """

    def __init__(self, observer: abc.ObserverBase[T], choice: int) -> None:
        self._observer = observer
        self._choice = choice
        self._message_id: str | None = None
        self._started = self._has_block = self._ended = False
        self.begin()

    def begin(self) -> None:
        """Set the state for a new message."""
        raise NotImplementedError

    def step(self, event: Event, emit: Callable[[T], None]) -> None:
        """Read an event of the message. Values given to `emit` are emitted after this call has returned."""
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
            raise wrong_value("this operator", event)
        if isinstance(event, StreamError):
            raise ProviderError(event.message, type=event.type, code=event.code)
        if getattr(event, "choice", None) not in (None, self._choice):
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
    """Whether the event begins a block."""
    return isinstance(event, BlockStart) or (isinstance(event, BlockFinish) and event.content is not None)


def names_any(fields: Any, names: tuple[str, ...]) -> bool:
    """Whether one of these fields of a block has a value."""
    return any(fields.get(name) is not None for name in names)
