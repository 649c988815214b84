"""A provider's chunks as events."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc

from rxdelta.core import Event, ProviderError
from rxdelta.core.events import StreamError
from rxdelta.providers import Cumulative, Decoder, decoder_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["decode"]


def decode(
    wire_format: str | Callable[..., Decoder],
    *,
    cumulative: Cumulative = False,
    reasoning_tags: bool | str | Iterable[str] = False,
    **options: Any,
) -> Callable[[Observable[Any]], Observable[Event]]:
    """Decode a provider's chunks into events.

    The source emits chunks as the provider sent them: dicts, or the SDK's objects. Each chunk's events are
    emitted at once. Events that the format can finish only at the end (`Decoder.close`) are emitted before the
    source's completion or error.

    Completes with the source. An error event in the stream becomes `on_error(ProviderError)` and isn't emitted.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`, or a function that makes a decoder of your own. Every
            subscription makes its own decoder.
        cumulative: `True` for a gateway whose every delta repeats the whole text so far; `"auto"` detects
            such a gateway. Each piece of text is then emitted once.
        reasoning_tags: Names of tags that enclose reasoning within a text, `"think"` for `<think>…</think>`;
            `True` for the usual ones.
        options: Passed to the format's decoder or to your function.

    Raises:
        UnknownWireFormatError: At once, if there is no such format.
        InvalidValueError: At once, if `wire_format` is neither a name nor a function, or for an invalid option.

    Errors: The source's own. `ProviderError`; `MalformedChunkError`, which names the position in the chunk;
    `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
        >>> events = rx.of({"id": "c1", "choices": [choice]}).pipe(rd.decode("openai-chat"))
        >>> events.pipe(rd.scan_deltas(), rd.to_message()).run().text
        'Hi'
    """
    make = decoder_factory(wire_format, cumulative=cumulative, reasoning_tags=reasoning_tags, **options)

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
    """One subscription's state. An error disposes the source, by the contract of `Observable`."""

    def __init__(self, observer: abc.ObserverBase[Event], decoder: Decoder) -> None:
        self._observer = observer
        self._decoder = decoder
        self._steps: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._busy = False
        self._ended = False

    def on_next(self, chunk: Any) -> None:
        if self._busy or self._steps or self._ended:
            self._enqueue(self._decode, chunk)
            return
        self._busy = True  # the fast path: nothing is queued or being emitted
        try:
            self._decode(chunk)
        finally:
            self._busy = False
        if self._steps:
            self._drain()

    def on_error(self, error: Exception) -> None:
        self._enqueue(self._close, error)

    def on_completed(self) -> None:
        self._enqueue(self._close, None)

    def _enqueue(self, step: Callable[[Any], None], argument: Any) -> None:
        """Queue a step. A chunk that an observer pushes into the source follows the events of the current chunk."""
        self._steps.append((step, argument))
        if not self._busy:
            self._drain()

    def _drain(self) -> None:
        self._busy = True
        try:
            while self._steps and not self._ended:  # a synchronous source may emit after our error
                step, argument = self._steps.popleft()
                step(argument)
        finally:
            self._busy = False

    def _decode(self, chunk: Any) -> None:
        try:
            events = self._decoder.decode(chunk)
        except Exception as error:
            self._close(error)
            return
        failure = self._emit(events)
        if failure is not None:
            self._close(failure)

    def _emit(self, events: Sequence[Event]) -> ProviderError | None:
        for event in events:
            if type(event) is StreamError:
                return ProviderError(event.message, type=event.type, code=event.code)
            self._observer.on_next(event)
        return None

    def _close(self, error: Exception | None) -> None:
        """Emit the pending events, then the end. An earlier error explains more than a decoder that can't finish."""
        try:
            pending = self._decoder.close()
        except Exception as unfinished:
            error = unfinished if error is None else error
            pending = ()
        failure = self._emit(pending)
        self._ended = True
        if error is None and failure is None:
            self._observer.on_completed()
        else:
            self._observer.on_error(failure if error is None else error)  # type: ignore[arg-type]
