"""The log that a pipeline's events are written into, for operators whose effects must not come before it.

A program may die between an event and the effect that the event announces. Whoever goes on with the log of its stream then
believes the log. So an effect that must not be repeated, such as the call of a tool, waits until the log has the event.

An operator finds the log of its events as it finds its reader: by the subscriber's scheduler, whose session has it, or
else by the context of the subscription. A pump has the context of its own subscription, so a generator that reads events
by an `async for` and yields them finds the log of what it yields.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rxdelta.runtime.place import current_place

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from reactivex import abc

    from rxdelta.core import Event

__all__ = ["Journal", "current_journal", "journaling"]


class Journal(Protocol):
    """The log of a stream that may outlive its program."""

    def when_written(self, event: Event, step: Callable[[bool], object]) -> abc.DisposableBase:
        """Call `step` once, on any thread: with `True` when the log has the event, or with `False` when it has ended.

        Ask before the event is emitted. Operators behind may hold it, or pass on a copy for another run.

        Returns:
            Disposing it forgets the step.
        """
        ...


def current_journal() -> Journal | None:
    return current_place.get()[1]


@contextmanager
def journaling(journal: Journal | None) -> Generator[None]:
    """Make what is subscribed or started in this block belong to the log, or to none."""
    session, _, bounds = current_place.get()
    token = current_place.set((session, journal, bounds))
    try:
        yield
    finally:
        current_place.reset(token)
