"""The events of one log in this process's memory, for readers that follow it or wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import RLock
from typing import TYPE_CHECKING, overload

from rxdelta.core import Event
from rxdelta.relay._logs import End, News

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Events"]


class Events:
    """Events that only become more, until the end. Every method may be called on any thread."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._events: list[Event] = []
        self._end: End | None = None
        self._waiting: dict[Callable[[News], None], None] = {}

    @property
    def newest(self) -> int:
        """The number of the last event."""
        return len(self._events)

    @property
    def has_ended(self) -> bool:
        return self._end is not None

    def add(self, events: Sequence[Event], end: End | None) -> bool:
        """Add these and the end, if there is one, and tell those who wait. Return whether there was no end before."""
        with self._lock:
            if self._end is not None:
                return False
            after = len(self._events)
            self._events.extend(events)
            self._end = end
            waiting, self._waiting = self._waiting, {}
            news = self._behind(after) if waiting else None
        if news is not None:
            for take in waiting:
                take(news)
        return True

    def news(self) -> News:
        """All events."""
        with self._lock:
            return self._behind(0)

    def none_yet(self) -> News:
        """No events: what was there before the log began."""
        with self._lock:
            return News(_Part(self._events, range(0)), 0, None)

    def read(self, after: int, take: Callable[[News], None]) -> None:
        """See `Log.read`."""
        with self._lock:
            if self._end is None and len(self._events) <= after:
                self._waiting[take] = None
                return
            news = self._behind(after)
        take(news)

    def forget(self, take: Callable[[News], None]) -> None:
        """See `Log.forget`."""
        with self._lock:
            self._waiting.pop(take, None)

    def _behind(self, after: int) -> News:
        newest = len(self._events)
        return News(_Part(self._events, range(after, newest)), newest, self._end)


class _Part(Sequence[Event]):
    """A part of a list that only grows, without a copy: a slow reader costs nothing but the log."""

    __slots__ = ("_all", "_places")

    def __init__(self, events: list[Event], places: range) -> None:
        self._all = events
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | Sequence[Event]:
        if isinstance(place, slice):
            return _Part(self._all, self._places[place])
        return self._all[self._places[place]]

    def __iter__(self) -> Iterator[Event]:
        return map(self._all.__getitem__, self._places)
