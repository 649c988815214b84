"""Which wire formats there are: one line each. The formats themselves don't know one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import MalformedChunkError, UnknownWireFormatError
from rxdelta.providers import _anthropic_messages, _openai_chat
from rxdelta.providers._decoder import Decoder, as_mapping

__all__ = ["FORMATS", "decoder", "detect"]

_FORMATS: Mapping[str, tuple[Callable[..., Decoder], Callable[[Mapping[str, Any]], bool]]] = {
    "anthropic-messages": (_anthropic_messages.AnthropicMessagesDecoder, _anthropic_messages.recognises),
    "openai-chat": (_openai_chat.OpenAIChatDecoder, _openai_chat.recognises),
}

FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The names that `decode` takes."""


def decoder(wire_format: str, **options: Any) -> Decoder:
    """A new decoder for one stream of this format.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`.
        options: What the format's own decoder takes.

    Raises:
        UnknownWireFormatError: There is no such format; the error lists those there are.

    Example:
        >>> import rxdelta as rd
        >>> chat = rd.providers.decoder("openai-chat")
        >>> events = chat.decode({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}}]})
        >>> [event.event for event in events]
        ['message-start', 'content-block-start', 'content-block-delta']
    """
    known = _FORMATS.get(wire_format)
    if known is None:
        raise UnknownWireFormatError(
            f"no wire format is called {wire_format!r}; there are {', '.join(FORMATS)}"
        )
    return known[0](**options)


def detect(chunk: object) -> str:
    """The name of the wire format whose stream begins with this chunk.

    Raises:
        UnknownWireFormatError: It looks like none; the error lists the formats known and what was seen.

    Example:
        >>> import rxdelta as rd
        >>> rd.providers.detect({"type": "message_start", "message": {"id": "m1", "content": []}})
        'anthropic-messages'
    """
    try:
        fields = as_mapping(chunk, "unknown")
    except MalformedChunkError as error:
        raise UnknownWireFormatError(f"a chunk is an object, this is {error.found}") from None
    for name, (_, recognises) in _FORMATS.items():
        if recognises(fields):
            return name
    seen = ", ".join(sorted(map(str, fields))[:20]) or "no fields"
    raise UnknownWireFormatError(
        f"no known wire format begins so (known: {', '.join(FORMATS)}; seen: {seen})"
    )
