"""The token usage of a reply while it streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core import Event, Fold, TokenUsage
from rxdelta.core.events import MessageFinish, MessageStart, UsageUpdate
from rxdelta.operators.projections.projection import Projection, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

__all__ = ["usage_updates"]


def usage_updates(*, choice: int = 0) -> Callable[[Observable[Event]], Observable[TokenUsage]]:
    """Emit the message's usage whenever the provider changes it.

    Each value is the whole usage so far, not an increment. It may come with the message's start, its updates and its
    finish. Repeated usage is not emitted.

    Completes with the source. Another attempt, or another message, begins with its own usage, without the earlier
    one's.

    Args:
        choice: Which of several alternative replies.

    Errors: The source's own; `ProviderError` for a `StreamError`; `InvalidValueError` for a value that is no event.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> told = [rd.TokenUsage(3, 1), rd.TokenUsage(3, 1), rd.TokenUsage(3, 8)]
        >>> events = rx.from_iterable([rd.events.UsageUpdate(usage) for usage in told])
        >>> events.pipe(rd.usage_updates()).subscribe(lambda usage: print(usage.output_tokens)).dispose()
        1
        8
    """
    return project(lambda observer: _Usage(observer, choice))


class _Usage(Projection[TokenUsage]):
    """One subscription's state."""

    def begin(self) -> None:
        self._fold = Fold(choice=self._choice)
        self._last: TokenUsage | None = None

    def step(self, event: Event, emit: Callable[[TokenUsage], None]) -> None:
        if isinstance(event, (MessageStart, UsageUpdate, MessageFinish)):
            usage = self._fold.step(event).usage
            if usage is not None and usage != self._last:
                self._last = usage
                emit(usage)
