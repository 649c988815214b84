"""The base of `to_ai_sdk`, `to_ag_ui` and `to_langchain_events`: a sans-IO encoder for a stream of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core import DEFAULT_LIMITS, Event, InvalidValueError, Limits
from rxdelta.runtime import lift_machine
from rxdelta.wire import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

    from rxdelta.runtime import Sink

__all__ = ["encode"]

F = TypeVar("F")


def encode(
    name: str, make: Callable[[Limits], Encoder[F]], limits: Limits | None
) -> Callable[[Observable[Event]], Observable[F]]:
    """Encode the source's events into frames, by an encoder that `make()` returns for each subscription.

    A front end knows no `on_error`: an error becomes frames, and the output completes.
    """
    make(limits or DEFAULT_LIMITS)  # raises for an invalid argument at once
    return lift_machine(
        name, lambda sink: _Encoding(sink, make(sink.limits)), limits=limits, emits="frames", needs_all=True
    )


class _Encoding(Generic[F]):
    """One subscription's state."""

    def __init__(self, sink: Sink[F], encoder: Encoder[F]) -> None:
        self._sink = sink
        self._encoder = encoder
        self.step = encoder.encode
        self.close = encoder.close

    def fail(self, error: Exception) -> tuple[Sequence[F], None]:
        if (
            isinstance(error, InvalidValueError) and error.field == "event"
        ):  # the log should name the operator
            error = self._sink.refusal(error.value)
        return self._encoder.fail(error), None
