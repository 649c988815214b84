"""A provider's chunks as events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from rxdelta.core import Event, InvalidValueError, ProviderError
from rxdelta.core.events import Custom, StreamError
from rxdelta.providers import Cumulative, Decoder, WireFormat, decoder_factory
from rxdelta.runtime import Sink, lift_machine, lift_opening, operator_maker
from rxdelta.wire import DONE

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def decode(
    wire_format: WireFormat | str | Callable[..., Decoder],
    *,
    cumulative: Cumulative = False,
    reasoning_tags: bool | str | Iterable[str] = False,
    **options: Any,
) -> Callable[[Observable[Any]], Observable[Event]]:
    """Decode a provider's chunks into events.

    ::

        chunks  <{'message': {'content': 'Hel'}}><{'message': {'content': 'lo'}}>-<{'done': True, 'done_reason': 'stop'}>|
                decode("ollama")
        events  Hel                              lo                              -(finish:stop,stop)                     |

    The source emits chunks as the provider sent them: dicts, or the SDK's objects. A chunk may be wrapped in an item of an
    agent's SDK, for example. Each chunk's events are emitted at once. Events that the format can finish only at the end
    (`Decoder.close`) are emitted before the source's completion or error. An `events.Custom` among the chunks is the
    application's own and passes unchanged, so one function may yield both.

    Completes with the source. An error event in the stream becomes `on_error(ProviderError)` and isn't emitted.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`; `"auto"`; or a function that makes a decoder of your own.
            Every subscription makes its own decoder. `"auto"` finds the format by the first chunks, and holds up to 20
            until one shows it. It also takes bytes and text of SSE or NDJSON, and passes events on.
        cumulative: `True` for a gateway whose every delta repeats the whole text so far; `"auto"` detects
            such a gateway. Each piece of text is then emitted once.
        reasoning_tags: Names of tags that enclose reasoning within a text, `"think"` for `<think>…</think>`;
            `True` for the usual ones. If only the closing tag comes, the text before it becomes reasoning at the tag.
        options: Passed to the format's decoder or to your function. `"auto"` takes `only="openai-chat"`, say, if the
            format is known, and `loads` for bytes, see `parse_sse`.

    Raises:
        UnknownWireFormatError: At once, if there is no such format.
        InvalidValueError: At once, if `wire_format` is neither a name nor a function, or for an invalid option.

    Errors: The source's own. `ProviderError`; `MalformedChunkError`, which names the position in the chunk, or the
    format that fits if the named one doesn't, or says at the end that nothing could be read; `UnknownWireFormatError` of
    `"auto"`; `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
        >>> events = rx.of({"id": "c1", "choices": [choice]}).pipe(rd.decode("openai-chat"))
        >>> events.pipe(rd.scan_deltas(), rd.to_message()).run().text
        'Hi'
    """
    if "limits" in options:
        raise InvalidValueError("decode() has no limits: put with_limits(limits) behind it", field="limits")
    factory = partial(decoder_factory, wire_format, cumulative=cumulative, reasoning_tags=reasoning_tags)
    make = factory(**options)  # raises for a wrong option at once
    machine = _Decoding if isinstance(wire_format, str) else _OwnDecoding
    takes_limits = _takes_limits(wire_format)

    def begin(sink: Sink[Event]) -> _Decoding:
        return machine(factory(**options, limits=sink.limits)() if takes_limits else make())

    if takes_limits:  # which are known with the first chunk
        return lift_machine("decode", begin, emits="events", needs_all=True)
    return lift_opening("decode", begin, emits="events")


def _takes_limits(wire_format: str | Callable[..., Decoder]) -> bool:
    """Whether the decoder has an option of that name: that of `"auto"`, or of a function of the user's own."""
    return wire_format == "auto" or (callable(wire_format) and "limits" in signature(wire_format).parameters)


class _Decoding:
    """One subscription's state."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def step(self, chunk: Any) -> Iterable[Event]:
        if type(chunk) is Custom:
            return (chunk,)
        events = self._decoder.decode(chunk)
        for event in events:
            if type(event) is StreamError:
                return _until_error(events)
        return events

    def close(self) -> Iterable[Event]:
        return _until_error(self._decoder.close())

    def fail(self, error: Exception) -> tuple[Iterable[Event], Exception]:
        pending: list[Event] = []
        with suppress(Exception):  # an earlier error explains more than a decoder that can't finish
            pending.extend(self.close())
        return pending, error


class _OwnDecoding(_Decoding):
    """With a decoder of the user's own, which doesn't know `DONE`."""

    def step(self, chunk: Any) -> Iterable[Event]:
        return () if chunk is DONE else super().step(chunk)


def _until_error(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, StreamError):
            raise ProviderError.by(event)
        yield event
