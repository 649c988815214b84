"""OpenAI's older completions, streamed or whole: a prompt goes on as text. vLLM and many others still speak it.

    stream  = chunk*            without a mark of the first or last; `[DONE]` belongs to the framing
    chunk   = id model created object: "text_completion" choices: [choice*] usage? error? extras
    choice  = index text finish_reason? logprobs? extras

A choice has one text, and no roles, calls or reasoning. A body that was not streamed looks like one chunk with all of
the text.

The finish reason comes with the last text or with an empty one. If the request asked for usage, a chunk with
`choices: []` and the usage follows, and all other chunks have `usage: null`. vLLM can send a running usage with each
chunk. The end is that of chat completions (`openai_chat/decoder.py`): the message finishes with a usage and
`choices: []` behind its finish reason, with `DONE`, or with the input. Text behind the finish reason is a new block.

`logprobs` are lists side by side (`tokens`, `token_logprobs`, `top_logprobs`, `text_offset`) that continue with each
chunk, and so do vLLM's `token_ids`. vLLM's `stop_reason` is the string or the token's id that stopped it, or null.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import Event, text_delta
from rxdelta.formats.choices import APPENDED, PLAIN_CHUNK, ChoiceReader, ChoicesDecoder
from rxdelta.formats.decoding import Fields, Json, by_word, remember
from rxdelta.formats.endings import OF_OPEN_SERVERS

_READ = Fields("openai-completions")
_CHOICE = frozenset(["index", "text", "finish_reason", *APPENDED])
_PLAIN_CHUNK = PLAIN_CHUNK  # CPython is slower at methods of imported names
_PLAIN_CHOICE = _CHOICE - {"token_ids"}

BROKEN = OF_OPEN_SERVERS


class _Choice(ChoiceReader):
    """Reads one of the alternative texts."""

    provider = "openai"
    fields = _READ
    broken = BROKEN
    reasons = by_word(
        {
            "stop": "stop eos eos_token stop_sequence end_turn completed",
            "length": "length max_tokens model_length max_length",
            "content_filter": "content_filter",
        }
    )

    def read(self, choice: Json, path: str) -> None:
        text = _READ.text_of(choice, "text", path)
        if self.message.finished:
            self.is_late |= bool(text)
            return
        if text:
            self.blocks.write("text", text)
        remember(self.message.metadata, {name: choice[name] for name in choice if name not in _CHOICE})
        for name in APPENDED:
            self.message.append(name, choice.get(name))
        self.is_late |= "text" not in choice and not _CHOICE.issuperset(choice)


class OpenAICompletionsDecoder(ChoicesDecoder[_Choice]):
    """Text completion chunks of one stream in, events out. Each choice has one block of text, and one more if text
    comes behind its finish reason.

    Example:
        >>> decoder = OpenAICompletionsDecoder()
        >>> choice = {"index": 0, "text": " there", "finish_reason": "stop"}
        >>> [event.event for event in decoder.decode({"id": "c1", "object": "text_completion", "choices": [choice]})]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish']
        >>> [event.event for event in decoder.close()]
        ['message-finish']
    """

    fields = _READ
    choice_type = _Choice

    def _plain(self, chunk: Any) -> Sequence[Event] | None:
        if type(chunk) is not dict or not _PLAIN_CHUNK.issuperset(chunk) or chunk.get("usage") is not None:
            return None
        choices: Any = chunk.get("choices")
        choice: Any = choices[0] if type(choices) is list and len(choices) == 1 else None
        if type(choice) is not dict or not _PLAIN_CHOICE.issuperset(choice):
            return None
        index: Any = choice.get("index")
        text: Any = choice.get("text")
        state = self._choices.get(index) if type(index) is int else None
        if state is None or state.blocks.type is None or type(text) is not str or not text:
            return None
        if choice.get("finish_reason") is not None or choice.get("logprobs") is not None:
            return None
        return (text_delta(state.blocks.current, text, index),)

    def _is_empty(self, choice: object) -> bool:
        return isinstance(choice, Mapping) and not choice.get("text")


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]})
        True
        >>> recognises({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
        False
    """
    choices = chunk.get("choices")
    if not isinstance(choices, (list, tuple)):
        return False
    first: Any = choices[0] if choices else {}
    if not isinstance(first, Mapping) or "delta" in first or "message" in first:
        return False
    return chunk.get("object") == "text_completion" or isinstance(first.get("text"), str)
