"""The finished message at the end of the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import IncompleteMessageError, Message, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["to_message"]


def to_message() -> Callable[[Observable[Snapshot]], Observable[Message]]:
    """Emit the last snapshot as a finished message; see `Snapshot.to_message`.

    Emits once, when the source completes, and completes. After an error of the source it emits nothing.

    Errors: The source's own. `IncompleteMessageError` if the stream ended before the message did;
    `InvalidToolCallError` for a call that was left open. Both have the `.snapshot`, or `None` for an empty stream.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> finished = rd.Snapshot(content="Hi", role="assistant", status="complete")
        >>> rx.of(finished).pipe(rd.to_message()).run()
        <Message complete; text 'Hi'>
    """

    def apply(source: Observable[Snapshot]) -> Observable[Message]:
        def subscribe(
            observer: abc.ObserverBase[Message], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            last = _Last(observer)
            return source.subscribe(last.on_next, observer.on_error, last.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return apply


class _Last:
    """One subscription's state."""

    def __init__(self, observer: abc.ObserverBase[Message]) -> None:
        self._observer = observer
        self._snapshot: Snapshot | None = None

    def on_next(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def on_completed(self) -> None:
        try:
            if self._snapshot is None:
                raise IncompleteMessageError("the stream ended before anything of a message came")
            message = self._snapshot.to_message()
        except Exception as error:
            self._observer.on_error(error)
            return
        self._observer.on_next(message)
        self._observer.on_completed()
