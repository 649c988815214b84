"""A decoder by its format's name; an endpoint by that, or by the path of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any

from rxdelta.core import DEFAULT_LIMITS, InvalidValueError, Limits, alternatives
from rxdelta.formats import registry
from rxdelta.formats.calls import knowing_calls
from rxdelta.formats.decoding import Decoder
from rxdelta.formats.format import Endpoint, Format, WireFormat
from rxdelta.formats.gateways import Cumulative, CumulativeDecoder, check_cumulative
from rxdelta.formats.reasoning_tags import ReasoningTagsDecoder, tag_names
from rxdelta.formats.runs import RunsDecoder
from rxdelta.providers.auto import AutoDecoder, AutoParser, NamedDecoder


def decoder(
    wire_format: WireFormat | str | Callable[..., Decoder],
    *,
    cumulative: Cumulative = False,
    reasoning_tags: bool | str | Iterable[str] = False,
    **options: Any,
) -> Decoder:
    """A new decoder for one stream of this format.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`; `"auto"`, which takes bytes and events too; or a function that
            makes a decoder of your own.
        cumulative: `True` for a gateway whose every delta repeats the whole text so far, which the format
            doesn't intend; `"auto"` to find out from the first two or three deltas. Repeated text is emitted
            once. It is off unless asked for, because a model may be repeating itself.
        reasoning_tags: Names of tags between which a text is reasoning, `"think"` for `<think>…</think>`;
            `True` for `think` and `thinking`. The blocks are then numbered as they appear. If only the closing tag
            comes, the message's first text before it becomes reasoning by the finish of its block.
        options: What the format's own decoder, or your function, takes. `"auto"` takes `only`, the format if it is known,
            and for bytes `limits` and `loads`, see `parse_sse`.

    Raises:
        UnknownWireFormatError: There is no such format; the error lists those there are.
        InvalidValueError: An option makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> chat = rd.providers.decoder("openai-chat")
        >>> events = chat.decode({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}}]})
        >>> [event.event for event in events]
        ['message-start', 'content-block-start', 'content-block-delta']
    """
    return decoder_factory(wire_format, cumulative=cumulative, reasoning_tags=reasoning_tags, **options)()


def decoder_factory(
    wire_format: WireFormat | str | Callable[..., Decoder],
    *,
    cumulative: Cumulative = False,
    reasoning_tags: bool | str | Iterable[str] = False,
    **options: Any,
) -> Callable[[], Decoder]:
    """A function that makes such decoders, one for each stream. Wrong arguments raise here, not in the function.

    Example:
        >>> import rxdelta as rd
        >>> make = rd.providers.decoder_factory("openai-chat", reasoning_tags="think")
        >>> make() is make()
        False
    """
    check_cumulative(cumulative)
    tags = tag_names(reasoning_tags)
    if wire_format == "auto":
        return _auto_factory(cumulative, tags, **options)
    make = _factory(wire_format, cumulative, tags, options)
    if not isinstance(wire_format, str):
        return make
    if options:
        make()  # one that the format doesn't know
    return lambda: NamedDecoder(wire_format, make)


def _auto_factory(
    cumulative: Cumulative,
    tags: tuple[str, ...],
    *,
    only: str | Callable[..., Decoder] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    loads: Callable[[str], Any] | None = None,
    **options: Any,
) -> Callable[[], Decoder]:
    def make(wire_format: str | Callable[..., Decoder]) -> Decoder:
        return _factory(wire_format, cumulative, tags, options)()

    AutoParser(loads=loads)  # raises for a wrong one
    if only is not None:
        make(only)  # a format that there isn't, or an option that it doesn't know

    def begin() -> Decoder:
        return AutoDecoder(make, only, AutoParser(limits=limits, loads=loads), begin)

    return begin


def _factory(
    wire_format: str | Callable[..., Decoder],
    cumulative: Cumulative,
    tags: tuple[str, ...],
    options: dict[str, Any],
) -> Callable[[], Decoder]:
    maker, known = _maker(wire_format)

    def of_one_run() -> Decoder:
        made = maker(**options)
        if cumulative:
            made = CumulativeDecoder(made, guess=cumulative == "auto")
        return ReasoningTagsDecoder(made, tags) if tags else made

    address = None if known is None else known.address

    def of_all_runs() -> Decoder:
        return of_one_run() if address is None else RunsDecoder(of_one_run, address())

    if known is None or known.keeps_call_ids:
        return of_all_runs
    return lambda: knowing_calls(of_all_runs())


def _maker(wire_format: str | Callable[..., Decoder]) -> tuple[Callable[..., Decoder], Format | None]:
    """The function that makes a decoder, and its format; `None` for a function of the user's."""
    if isinstance(wire_format, str):
        known = registry.get(wire_format)
        return _with_checked_options(known), known
    if callable(wire_format):
        return wire_format, None
    raise InvalidValueError.of(
        [("wire_format", wire_format, "must be a format's name or a function that makes a decoder")]
    )


def _with_checked_options(known: Format) -> Callable[..., Decoder]:
    def make(**options: Any) -> Decoder:
        if options:
            _check_options(known, options)
        return known.decoder(**options)

    return make


def _check_options(known: Format, options: dict[str, Any]) -> None:
    try:
        parameters = signature(known.decoder).parameters
    except ValueError:  # an installed format's decoder, which is no Python function
        return
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return
    words = {*parameters, "cumulative", "reasoning_tags"}
    for option, value in options.items():
        if option not in words:
            wrong = f"the wire format {known.name!r} has no option {option!r}"
            raise InvalidValueError(f"{wrong}; {alternatives(option, words)}", field=option, value=value)


def endpoint(wire_format: str) -> Endpoint:
    """How a server of this format answers.

    Raises:
        InvalidValueError: The format has no endpoint, or this is no name.
        UnknownWireFormatError: There is no such format; the error lists those there are.
    """
    if not isinstance(wire_format, str):
        raise InvalidValueError.of([("wire_format", wire_format, "must be the name of a format")])
    known = registry.get(wire_format)
    if known.endpoint is None:
        raise InvalidValueError.of([("wire_format", wire_format, "must be a format that has an endpoint")])
    return known.endpoint()


def endpoints() -> dict[str, Endpoint]:
    """The endpoints by their formats' names."""
    return {known.name: known.endpoint() for known in registry.formats() if known.endpoint is not None}


def format_at(path: str) -> str | None:
    """The format to whose clients a path belongs, without a prefix that says so.

    The longest end decides. If two formats have the same path, the one that is asked later whether it recognises a
    chunk counts: the other one is a dialect of it. An installed format never takes a path from the library's own.
    """
    found: dict[str, str] = {}
    for name, one in endpoints().items():
        for end in one.paths:
            if registry.is_own(name) or end not in found:
                found[end] = name
    matching = [end for end in found if path.endswith(end)]
    return found[max(matching, key=len)] if matching else None
