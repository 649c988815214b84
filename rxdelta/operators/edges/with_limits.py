"""The limits of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core import InvalidValueError, Limits
from rxdelta.runtime import lift, operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

    from rxdelta.runtime import Sink

__all__ = ["with_limits"]

T = TypeVar("T")


@operator_maker
def with_limits(limits: Limits) -> Callable[[Observable[T]], Observable[T]]:
    """The same values; the limits hold for every operator of this pipeline. It limits no number of values, nor their rate.

    They hold wherever the operator stands: in front, also for a source that is subscribed later, as by a retry or by
    `ops.concat`, and behind, up to the subscriber. Each value is emitted at once.

    Between two `with_limits` the one behind holds. Behind both, the last one holds. Branches that are merged keep their
    own limits; behind the merge the smaller of each bound holds. They take precedence over the limits of a door
    (`rd.stream`, `for_each` and its kin, `EventStreamResponse`, `relay.start`), which hold for its whole pipeline. Without
    either, those of `Limits()` hold.

    An operator of Rx that drops the subscriber's scheduler and changes the thread, such as `ops.subscribe_on`, hides
    what is in front of it; put `with_limits` there, too. What reads the values at a door of its own is another pipeline.

    Completes with the source.

    Args:
        limits: The most that the stream may make us hold.

    Raises:
        InvalidValueError: At once, for another value.

    Errors: The source's own. The operators in front and behind fail with `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> reply = rx.of(rd.events.BlockStart(0, {"type": "text", "text": "Hello"}))
        >>> small = reply.pipe(rd.scan_deltas(), rd.with_limits(rd.Limits(block_chars=4)))
        >>> small.subscribe(on_error=lambda error: print(error.limit)).dispose()
        block_chars
    """
    if not isinstance(limits, Limits):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError.of([("limits", limits, "must be rd.Limits(…)")])

    def begin(sink: Sink[T]) -> _Passing[T]:
        return _Passing(sink, limits)

    return lift("with_limits", begin, serial=False, emits="same")


class _Passing(Generic[T]):
    """One subscription's state."""

    def __init__(self, sink: Sink[T], limits: Limits) -> None:
        sink.hold(limits)
        self.on_next = sink.on_next
