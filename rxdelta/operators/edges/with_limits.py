"""The limits of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core import InvalidValueError, Limits
from rxdelta.runtime import Sink, lift, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


T = TypeVar("T")


@operator_maker
def with_limits(limits: Limits) -> Callable[[Observable[T]], Observable[T]]:
    """Set the most that the operators of a pipeline may hold in memory. It limits no number of values, nor their rate.

    Every value is emitted unchanged, at once. The limits hold for each operator of the pipeline, wherever this one stands:
    for those in front, also if they are subscribed later, as by a retry or by `ops.concat`; and for those behind, up to
    the subscriber.

    Between two `with_limits` the limits of the second hold, and behind both, too. Branches that are merged keep their own
    limits; behind the merge the smaller of each bound holds. A reader has `limits`, too (`rd.stream`, `for_each` and its
    kin, `EventStreamResponse`, `relay.start`). They hold where no `with_limits` does. Without either, `Limits()` holds.

    An operator of Rx that drops the subscriber's scheduler and changes the thread, such as `ops.subscribe_on`, hides
    what is in front of it; put `with_limits` there, too. A part that reads the values by a reader function of its own is
    another pipeline.

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
