"""The events of one of several alternative replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core import InvalidValueError
from rxdelta.core.events import StreamError
from rxdelta.runtime import Sink, lift, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


T = TypeVar("T")


@operator_maker
def only_choice(n: int) -> Callable[[Observable[T]], Observable[T]]:
    """Emit the events of one of several alternative replies. The operators behind it read that reply.

    ::

        events  Yes(choice:1)No(choice:0)_sir(choice:1)_way-|
                only_choice(1)
        events  -  (choice:1)No-             _way          -|

    Events of other choices are left out. Events that name no choice concern every reply and pass, as a `StreamError`
    does. The runs of events don't matter. Each event is emitted at once.

    An operator that reads one reply (a projection, an encoder, `scan_deltas`, `run_tools`, `on_settled`, `tap_metrics`,
    `tap_otel`) reads the reply of the nearest `only_choice` in front, or of the stream of `group_by_choice` that it
    stands behind. Without either it reads the first reply, 0, and also where streams of several choices were merged. A
    `Subject` of Rx, and a reader, begin a pipeline of their own: put `only_choice` behind them.

    Completes with the source.

    Args:
        n: The number of the reply, from 0. It isn't how many there are.

    Raises:
        InvalidValueError: At once, if it is no whole number from 0.

    Errors: The source's own.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> first = rd.events.BlockStart(0, {"type": "text", "text": "A"})
        >>> events = rx.of(first, rd.events.BlockStart(0, {"type": "text", "text": "B"}, choice=1))
        >>> events.pipe(rd.only_choice(1), rd.text_deltas()).subscribe(print).dispose()
        B
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError.of([("n", n, "must be a whole number from 0")])

    def begin(sink: Sink[T]) -> _Choosing[T]:
        return _Choosing(sink, n)

    return lift("only_choice", begin, serial=False, emits="same")


class _Choosing(Generic[T]):
    """One subscription's state."""

    def __init__(self, sink: Sink[T], choice: int) -> None:
        sink.bounds.choose(choice)
        self._sink = sink
        self._shown = (None, choice)

    def on_next(self, value: T) -> None:
        if getattr(value, "choice", None) in self._shown or isinstance(value, StreamError):
            self._sink.on_next(value)
