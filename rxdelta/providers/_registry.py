"""Which wire formats there are: one line each. The formats themselves don't know one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rxdelta.core import InvalidValueError, MalformedChunkError, UnknownWireFormatError
from rxdelta.providers import (
    _ag_ui,
    _ai_sdk,
    _anthropic_messages,
    _bedrock_converse,
    _cohere,
    _gemini,
    _gemini_interactions,
    _langchain,
    _mistral,
    _ollama,
    _openai_chat,
    _openai_completions,
    _openai_responses,
)
from rxdelta.providers._cumulative import Cumulative, CumulativeDecoder, check_cumulative
from rxdelta.providers._decoder import Decoder, as_mapping
from rxdelta.providers._reasoning_tags import ReasoningTagsDecoder, tag_names

__all__ = ["FORMATS", "decoder", "decoder_factory", "detect"]

_FORMATS: Mapping[str, tuple[Callable[..., Decoder], Callable[[Mapping[str, Any]], bool]]] = {
    "anthropic-messages": (_anthropic_messages.AnthropicMessagesDecoder, _anthropic_messages.recognises),
    "ag-ui": (_ag_ui.AgUiDecoder, _ag_ui.recognises),
    "ai-sdk": (_ai_sdk.AiSdkDecoder, _ai_sdk.recognises),
    "bedrock-converse": (_bedrock_converse.BedrockConverseDecoder, _bedrock_converse.recognises),
    "gemini": (_gemini.GeminiDecoder, _gemini.recognises),
    "gemini-interactions": (
        _gemini_interactions.GeminiInteractionsDecoder,
        _gemini_interactions.recognises,
    ),
    "cohere": (_cohere.CohereDecoder, _cohere.recognises),
    "langchain": (_langchain.LangChainDecoder, _langchain.recognises),
    "openai-responses": (_openai_responses.OpenAIResponsesDecoder, _openai_responses.recognises),
    "ollama": (_ollama.OllamaDecoder, _ollama.recognises),
    "mistral": (_mistral.MistralDecoder, _mistral.recognises),  # before openai-chat, of which it is a dialect
    "openai-completions": (_openai_completions.OpenAICompletionsDecoder, _openai_completions.recognises),
    "openai-chat": (_openai_chat.OpenAIChatDecoder, _openai_chat.recognises),
}

FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The names that `decode` takes."""


def decoder(
    wire_format: str | Callable[..., Decoder],
    *,
    cumulative: Cumulative = False,
    reasoning_tags: bool | str | Iterable[str] = False,
    **options: Any,
) -> Decoder:
    """A new decoder for one stream of this format.

    Args:
        wire_format: One of `rxdelta.providers.FORMATS`, or a function that makes a decoder of your own.
        cumulative: `True` for a gateway whose every delta repeats the whole text so far, which the format
            doesn't intend; `"auto"` to find out from the first two or three deltas. What is repeated is told
            once. It is off unless asked for, because a model may be repeating itself.
        reasoning_tags: Names of tags between which a text is reasoning, `"think"` for `<think>…</think>`;
            `True` for `think` and `thinking`. The blocks are then numbered as they appear.
        options: What the format's own decoder, or your function, takes.

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
    wire_format: str | Callable[..., Decoder],
    *,
    cumulative: Cumulative = False,
    reasoning_tags: bool | str | Iterable[str] = False,
    **options: Any,
) -> Callable[[], Decoder]:
    """A function that makes such decoders, one for each stream. What is wrong is raised here, not by that.

    Example:
        >>> import rxdelta as rd
        >>> make = rd.providers.decoder_factory("openai-chat", reasoning_tags="think")
        >>> make() is make()
        False
    """
    check_cumulative(cumulative)
    tags = tag_names(reasoning_tags)
    maker = _maker(wire_format)

    def make() -> Decoder:
        made = maker(**options)
        if cumulative:
            made = CumulativeDecoder(made, guess=cumulative == "auto")
        return ReasoningTagsDecoder(made, tags) if tags else made

    if isinstance(wire_format, str):
        make()  # an option that the format doesn't know
    return make


def _maker(wire_format: str | Callable[..., Decoder]) -> Callable[..., Decoder]:
    if isinstance(wire_format, str):
        known = _FORMATS.get(wire_format)
        if known is None:
            raise UnknownWireFormatError(
                f"no wire format is called {wire_format!r}; there are {', '.join(FORMATS)}"
            )
        return known[0]
    if callable(wire_format):
        return wire_format
    raise InvalidValueError.of(
        [("wire_format", wire_format, "must be a format's name or a function that makes a decoder")]
    )


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
        raise UnknownWireFormatError(
            f"no known wire format begins so (known: {', '.join(FORMATS)}): a chunk is an object, this is {error.found}"
        ) from None
    for name, (_, recognises) in _FORMATS.items():
        if recognises(fields):
            return name
    seen = ", ".join(_seen(str(name), fields[name]) for name in sorted(fields, key=str)[:20]) or "no fields"
    raise UnknownWireFormatError(
        f"no known wire format begins so (known: {', '.join(FORMATS)}; seen: {seen})"
    )


def _seen(name: str, value: object) -> str:
    """A field by its name; where it names the chunk's kind, by that too."""
    if name in ("type", "object", "event") and isinstance(value, str):
        return f"{name}={value[:60]!r}"
    return name
