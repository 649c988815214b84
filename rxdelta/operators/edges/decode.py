"""A provider's chunks as events: the way in."""

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
    """The events of a provider's stream.

    The source gives chunks as the provider sent them: dicts, or the SDK's objects. Each chunk's events are
    emitted at once; what the format finishes only when nothing more comes (`Decoder.close`) is emitted before
    the end, whatever that is.

    Completes with the source. An error event in the stream becomes `on_error(ProviderError)`, never both.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`, or a function that makes a decoder of your own. Every
            subscription has a decoder of its own.
        cumulative: `True` for a gateway whose every delta repeats the whole text so far; `"auto"` to find
            out. It is told once then.
        reasoning_tags: Names of tags between which a text is reasoning, `"think"` for `<think>…</think>`;
            `True` for the usual ones.
        options: What the format's decoder, or your function, takes.

    Raises:
        UnknownWireFormatError: At once, if there is no such format.
        InvalidValueError: At once, if it is neither a name nor a function, or an option makes no sense.

    Errors: The source's own. `ProviderError`; `MalformedChunkError`, which names the place in the chunk;
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
        self._busy = True  # the straight way, as nothing else is being told
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
        """One at a time: what an event's observer pushes comes after the other events of its chunk."""
        self._steps.append((step, argument))
        if not self._busy:
            self._drain()

    def _drain(self) -> None:
        self._busy = True
        try:
            while (
                self._steps and not self._ended
            ):  # a synchronous source goes on for a moment after our error
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
        """Emit what is pending, then the end. An error that came first says why the decoder cannot finish."""
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
