"""Who follows which topics of a store, in this process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.relay._store import Topic

__all__ = ["Followers"]


class Followers:
    """For a store's `follow`. All is called on the store's loop, if nothing else is said.

    Args:
        first: Called when somebody follows a topic that nobody followed.
        last: Called when nobody follows it any more.
    """

    def __init__(
        self, first: Callable[[Topic], object] | None = None, last: Callable[[Topic], object] | None = None
    ) -> None:
        self._first, self._last = first, last
        self._followers: dict[Topic, dict[object, Callable[[], None]]] = {}

    def add(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        """See `Store.follow`."""
        who = object()
        is_first = topic not in self._followers
        self._followers.setdefault(topic, {})[who] = changed
        if is_first and self._first is not None:
            self._first(topic)
        return partial(self._leave, topic, who)

    def _leave(self, topic: Topic, who: object) -> None:
        followers = self._followers.get(topic, {})
        if followers.pop(who, None) is not None and not followers:
            del self._followers[topic]
            if self._last is not None:
                self._last(topic)

    def wake(self, topic: Topic) -> None:
        """Say that there is news of a topic."""
        for changed in [*self._followers.get(topic, {}).values()]:
            changed()

    def clear(self) -> None:
        self._followers.clear()

    def __contains__(self, topic: Topic) -> bool:
        """Whether anybody follows a topic. Any thread may ask."""
        return topic in self._followers

    def __bool__(self) -> bool:
        return bool(self._followers)
