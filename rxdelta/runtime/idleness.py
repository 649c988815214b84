"""Whether a reader has read all values and waits for the next, and what is held back until then."""

from __future__ import annotations

from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

__all__ = ["Idleness", "SharedIdleness"]


class Idleness:
    """Tells operators that keep the newest value when their reader takes the next one.

    A value that is emitted to a busy reader waits in the reader's queue, and grows old there. The operator that holds it
    back instead can still replace it.

    All may be called on any thread. The reader calls `notify` when it begins to wait, and when it leaves.
    """

    def __init__(self, is_idle: Callable[[], bool]) -> None:
        self.is_idle = is_idle
        self._calls: list[tuple[Context, Callable[[], None]]] = []

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call once, in this context, when the reader waits the next time. Ask `is_idle` again after this call."""
        self._calls.append((copy_context(), call))

    def notify(self) -> None:
        """Call those who asked, until one of them has given the reader a value."""
        while self._calls and self.is_idle():
            try:
                context, call = self._calls.pop(0)
            except IndexError:  # another thread was quicker
                return
            context.run(call)


class SharedIdleness(Idleness):
    """The readers of a shared source as one: idle while any of them is.

    Args:
        always: Whether there is a subscriber that can't say when it is busy, or nobody at all.
        readers: The others.
    """

    def __init__(self, always: Callable[[], bool], readers: Callable[[], Iterable[Idleness]]) -> None:
        super().__init__(lambda: always() or any(reader.is_idle() for reader in readers()))
        self._readers = readers
        self._asked: set[Hashable] = set()

    def when_idle(self, call: Callable[[], None]) -> None:
        super().when_idle(call)
        self.ask()

    def ask(self) -> None:
        """Ask each reader to call us, once, if there is something for it. To be repeated for a new reader."""
        if self._calls:
            for reader in self._readers():
                if reader not in self._asked:
                    self._asked.add(reader)
                    reader.when_idle(partial(self._answered, reader))

    def _answered(self, reader: Idleness) -> None:
        self._asked.discard(reader)
        self.notify()
        self.ask()
