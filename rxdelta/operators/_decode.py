"""A provider's chunks as events: the way in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc

from rxdelta.core import Event, ProviderError
from rxdelta.core.events import StreamError
from rxdelta.providers import Decoder, decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["decode"]


def decode(
    wire_format: str | Callable[[], Decoder], **options: Any
) -> Callable[[Observable[Any]], Observable[Event]]:
    """The events of a provider's stream.

    The source gives chunks as the provider sent them: dicts, or the SDK's objects. Each chunk's events are emitted at
    once; what the format finishes only when nothing more comes (`Decoder.close`) is emitted before the end.

    Completes with the source. An error event in the stream becomes `on_error(ProviderError)`, never both; a source's
    own error is passed on after what is pending.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`, or a factory of a decoder of your own.
        options: What the format's decoder takes.

    Raises:
        UnknownWireFormatError: At once, if there is no such format.

    Errors: `MalformedChunkError`, which names the place in the chunk; `LimitExceededError`; `ProviderError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> chunk = {"id": "c1", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
        >>> rx.of(chunk).pipe(rd.decode("openai-chat"), rd.scan_deltas(), rd.to_message()).run().text
        'Hi'
    """
    make: Callable[[], Decoder] = partial(decoder, wire_format, **options) if isinstance(wire_format, str) else wire_format
    if isinstance(wire_format, str):
        make()  # a misspelt name fails here, where it was written

    def apply(source: Observable[Any]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            decoding = _Decoding(observer, make())
            return source.subscribe(
                decoding.on_next, decoding.on_error, decoding.on_completed, scheduler=scheduler
            )

        return Observable(subscribe)

    return apply


class _Decoding:
    """One subscription's state. An error that it emits disposes the source, by the contract of `Observable`."""

    def __init__(self, observer: abc.ObserverBase[Event], decoder: Decoder) -> None:
        self._observer = observer
        self._decoder = decoder
        self._ended = False

    def on_next(self, chunk: Any) -> None:
        if self._ended:  # a synchronous source goes on for a moment after our error
            return
        try:
            events = self._decoder.decode(chunk)
        except Exception as error:
            self._fail(error)
            return
        for event in events:
            if type(event) is StreamError:
                self._fail(ProviderError(event.message, type=event.type, code=event.code))
                return
            self._observer.on_next(event)

    def on_error(self, error: Exception) -> None:
        if not self._ended:
            self._flush()
            self._fail(error)

    def on_completed(self) -> None:
        if not self._ended and self._flush():
            self._ended = True
            self._observer.on_completed()

    def _flush(self) -> bool:
        try:
            events: Sequence[Event] = self._decoder.close()
        except Exception as error:
            self._fail(error)
            return False
        for event in events:
            self._observer.on_next(event)
        return True

    def _fail(self, error: Exception) -> None:
        if not self._ended:
            self._ended = True
            self._observer.on_error(error)
