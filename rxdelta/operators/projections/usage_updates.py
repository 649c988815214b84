"""The token usage of a reply while it streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core import Fold, TokenUsage
from rxdelta.core.events import MessageFinish, MessageStart, UsageUpdate
from rxdelta.operators.projections.projection import Projection, project
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

    from rxdelta.core import Change, Event, Limits

__all__ = ["usage_updates"]


@operator_maker
def usage_updates(
    *, choice: int = 0, limits: Limits | None = None
) -> Callable[[Observable[Event]], Observable[TokenUsage]]:
    """Emit the message's usage whenever the provider changes it.

    Each value is the whole usage so far, not an increment. It may come with the message's start, its updates and its
    finish. Repeated usage is not emitted.

    Completes with the source. Another attempt, or another message, begins with its own usage, without the earlier
    one's.

    Args:
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold; by default the pipeline's, see `decode`.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    a value that is no event.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> told = [rd.TokenUsage(3, 1), rd.TokenUsage(3, 1), rd.TokenUsage(3, 8)]
        >>> events = rx.from_iterable([rd.events.UsageUpdate(usage) for usage in told])
        >>> events.pipe(rd.usage_updates()).subscribe(lambda usage: print(usage.output_tokens)).dispose()
        1
        8
    """
    return project("usage_updates", _Usage, choice, limits)


class _Usage(Projection[TokenUsage]):
    """One subscription's state."""

    def begin(self) -> None:
        self._head = Fold(choice=self.walk.choice)  # of no blocks
        self._last: TokenUsage | None = None

    def changed(self, _: Sequence[Change], event: Event) -> Sequence[TokenUsage]:
        if not isinstance(event, (MessageStart, UsageUpdate, MessageFinish)):
            return ()
        usage = self._head.step(event).usage
        if usage is None or usage == self._last:
            return ()
        self._last = usage
        return (usage,)
