"""The base of the operators that encode events for front ends, and the ids that encoders make up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import NAMESPACE_OID, uuid4, uuid5

from rxdelta.core import DEFAULT_LIMITS, CallIdentity, Event, InvalidValueError
from rxdelta.runtime import (
    Machine,
    Sink,
    all_events,
    lift_machine,
    lift_opening,
    refuse_all_but_events,
    sent_with,
)
from rxdelta.wire import SSE_HEADERS, Encoder

if TYPE_CHECKING:
    from reactivex import Observable


F = TypeVar("F")


def encode(
    name: str,
    make: Callable[..., Encoder[F]],
    *,
    open: Callable[[Any], Sequence[F]] | None = None,
) -> Callable[[Observable[Event]], Observable[F]]:
    """Encode the source's events into frames, by an encoder that `make()` returns for each subscription.

    A front end knows no `on_error`: an error becomes frames, and the output completes.

    Args:
        name: The operator's name.
        make: Makes an encoder, by the `limits` and the `choice` of the pipeline.
        open: Returns the encoder's frames that come before any event: they are emitted as soon as a reader is there. They
            are the same for all encoders that `make` returns.
    """
    encoder = make(limits=DEFAULT_LIMITS, choice=0)  # raises for an invalid argument at once
    encoding: Callable[[Observable[Event]], Observable[F]]
    if open is None:
        encoding = lift_machine(
            name,
            lambda sink: _Encoding(sink, make(limits=sink.limits, choice=sink.choice)),
            emits="frames",
            needs_all=True,
        )
        return _reading_events(name, encoding, encoder)
    frames = open(encoder)

    def begin(sink: Sink[F]) -> Machine[Event, F]:
        def opened() -> Encoder[F]:
            encoder = make(limits=sink.limits, choice=sink.choice)
            open(encoder)
            return encoder

        return cast("Machine[Event, F]", _OpeningEncoding(sink, frames, opened))  # its `step` is a property

    encoding = lift_opening(name, begin, emits="frames")
    return _reading_events(name, encoding, encoder)


def _reading_events(
    name: str, encoding: Callable[[Observable[Event]], Observable[F]], encoder: Encoder[F]
) -> Callable[[Observable[Event]], Observable[F]]:
    def apply(events: Observable[Event]) -> Observable[F]:
        frames = encoding(events)
        refuse_all_but_events(events, f"{name}()")
        return frames

    return all_events(name, sent_with(apply, getattr(encoder, "headers", SSE_HEADERS)))


class _Encoding(Generic[F]):
    """One subscription's state."""

    def __init__(self, sink: Sink[F], encoder: Encoder[F]) -> None:
        self._sink = sink
        self._encoder = encoder
        self._calls = CallIdentity(sink.limits)

    def step(self, event: Event) -> Sequence[F]:
        if type(event) not in CallIdentity.EVENTS:
            return self._encoder.encode(event)
        return self._encoded(self._calls.step(event))

    def close(self) -> Sequence[F]:
        return [*self._encoded(self._calls.close()), *self._encoder.close()]

    def fail(self, error: Exception) -> tuple[Sequence[F], None]:
        if (
            isinstance(error, InvalidValueError) and error.field == "event"
        ):  # the log should name the operator
            error = self._sink.refusal(error.value)
        return [*self._encoded(self._calls.close()), *self._encoder.fail(error)], None

    def _encoded(self, events: Sequence[Event]) -> Sequence[F]:
        return [frame for event in events for frame in self._encoder.encode(event)]


class _OpeningEncoding(Generic[F]):
    """One subscription's state that is made at once, and emits the first frames. The rest is `_Encoding`'s.

    A source that emits while it is subscribed comes before the effect. Then its first notification emits them.
    """

    def __init__(self, sink: Sink[F], frames: Sequence[F], make: Callable[[], Encoder[F]]) -> None:
        self._sink = sink
        self._frames = frames
        self._make = make
        self._made: _Encoding[F] | None = None
        sink.effect(sink.turn, self._open)

    def _open(self) -> None:
        frames, self._frames = self._frames, ()
        for frame in frames:
            self._sink.on_next(frame)

    @property
    def _encoding(self) -> _Encoding[F]:
        """The state with an encoder, made when the first notification arrives: only then limits and choice are known.

        Not a `cached_property`: before Python 3.12 one lock of all subscriptions is held while it calls the observer.
        """
        if self._made is None:
            self._open()
            self._made = _Encoding(self._sink, self._make())
        return self._made

    @property
    def step(self) -> Callable[[Event], Sequence[F]]:
        return self._encoding.step

    @property
    def close(self) -> Callable[[], Sequence[F]]:
        return self._encoding.close

    @property
    def fail(self) -> Callable[[Exception], tuple[Sequence[F], None]]:
        return self._encoding.fail


_make: ContextVar[Callable[[], str] | None] = ContextVar("rxdelta_made_ids", default=None)


def made_id(prefix: str = "") -> str:
    """An id: a random one, or within `IdsOf.made` the stream's next one."""
    return prefix + (_make.get() or _random)()


class IdsOf:
    """The ids that are made up for one stream: every encoder of the stream makes the same.

    An encoder that goes on for another one must name the messages that this one has begun.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._numbers = count()

    @contextmanager
    def made(self) -> Generator[None]:
        """Within the `with` block `made_id` makes this stream's ids."""
        token = _make.set(self._next)
        try:
            yield
        finally:
            _make.reset(token)

    def _next(self) -> str:
        return str(uuid5(NAMESPACE_OID, f"{self._stream}\n{next(self._numbers)}"))


def _random() -> str:
    return str(uuid4())
