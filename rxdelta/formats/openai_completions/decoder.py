"""OpenAI's older completions, streamed or whole: a prompt goes on as text. vLLM and many others still speak it.

    stream  = chunk*            without a mark of the first or last; `[DONE]` belongs to the framing
    chunk   = id model created object: "text_completion" choices: [choice*] usage? error? extras
    choice  = index text finish_reason? logprobs? extras

A choice has one text, and no roles, calls or reasoning. A body that was not streamed looks like one chunk with all of
the text.

The finish reason comes with the last text or with an empty one. If the request asked for usage, a chunk with
`choices: []` and the usage follows, and all other chunks have `usage: null`. vLLM can send a running usage with each
chunk. So the message finishes with the first usage on or after its finish reason's chunk (only after it, if an earlier
chunk had usage too), or with the input.

`logprobs` are lists side by side (`tokens`, `token_logprobs`, `top_logprobs`, `text_offset`) that continue with each
chunk, and so do vLLM's `token_ids`. vLLM's `stop_reason` is the string or the token's id that stopped it, or null.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import ByChoice, Event, TokenUsage, events, text_delta
from rxdelta.formats.block_writer import BlockWriter, MessageWriter, take_all
from rxdelta.formats.decoding import Fields, as_mapping
from rxdelta.formats.json_values import NOTHING, by_word, kept, remember, word
from rxdelta.formats.provider_errors import error_events, error_in
from rxdelta.formats.usage import CHAT, usage_of

__all__ = ["OpenAICompletionsDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields("openai-completions")


class OpenAICompletionsDecoder:
    """Text completion chunks of one stream in, events out. Each choice has one block, of text.

    Example:
        >>> decoder = OpenAICompletionsDecoder()
        >>> choice = {"index": 0, "text": " there", "finish_reason": "stop"}
        >>> [event.event for event in decoder.decode({"id": "c1", "object": "text_completion", "choices": [choice]})]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish']
        >>> [event.event for event in decoder.close()]
        ['message-finish']
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._has_running_usage = False  # then the usage beside the finish reason may not be the last
        self._choices: dict[int, _Choice] = ByChoice()
        self._out: list[Event] = []
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or the SDK's `Completion`.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a choice is absurd.
        """
        event = None if self._out else self._plain(chunk)
        return self._decode(as_mapping(chunk, "openai-completions")) if event is None else (event,)

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each message whose finish reason has come. One without was cut off."""
        self._finish()
        self._end()
        return take_all(self._out)

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that has nothing but more text, as most chunks do."""
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
        return text_delta(0, text, index)

    def _decode(self, chunk: Json) -> Sequence[Event]:
        if self._over:
            return ()
        choices = _READ.items(chunk.get("choices"), "choices")
        # vLLM's error is the chunk itself.
        error = error_in(chunk) or (chunk if chunk.get("object") == "error" else None)
        has_usage = self._read_usage(chunk)
        is_foreign = self._read_envelope(chunk, bool(choices) or has_usage or error is not None)
        has_finish_reason = False
        for place, found in enumerate(choices):
            path = f"choices[{place}]"
            choice = _READ.mapping(found, path)
            state = self._choice(choice, path)
            is_foreign |= state.read(choice, path)
            if error is None:  # a reply that breaks off isn't finished, though it may have a finish reason
                has_finish_reason |= state.read_finish_reason(choice, path)
        if has_usage:
            shown = [state.message.show_usage(self._usage) for state in self._choices.values()]
            is_foreign |= not all(shown)
        all_ended = all(state.reason is not None for state in self._choices.values())
        is_last_usage = has_usage and not (has_finish_reason and self._has_running_usage)
        if error is not None or (is_last_usage and all_ended):
            self._finish()
        self._has_running_usage |= has_usage
        if is_foreign:
            name = word(chunk.get("object")) or "chunk"
            self._out.append(events.ProviderEvent("openai", name, kept(chunk)))
        if error is not None:
            self._out += error_events("openai", error, error.get("type"), _ERROR)
            self._end()
        return take_all(self._out)

    def _choice(self, choice: Json, path: str) -> _Choice:
        index = choice.get("index")
        number = 0 if index is None else _READ.index(index, f"{path}.index")
        state = self._choices.get(number)
        if state is None:
            state = _Choice(self._out, number, self._id, self._model, self._usage)
            self._choices[number] = state
            state.message.start(self._metadata)
        return state

    def _read_usage(self, chunk: Json) -> bool:
        """Read the usage, which replaces an earlier one. Return whether there is one."""
        raw = _READ.mapping(chunk.get("usage"), "usage")
        if not raw:
            return False
        self._usage = usage_of(raw, CHAT)
        return True

    def _read_envelope(self, chunk: Json, is_of_the_message: bool) -> bool:
        """Read the fields of the whole message. Return `True` for a chunk of something else, which is passed on."""
        self._id = self._id or word(chunk.get("id"))
        self._model = self._model or word(chunk.get("model"))
        if not self._metadata.get("created") and type(chunk.get("created")) in (int, float):
            self._metadata["created"] = chunk["created"]
        extras = {name: value for name, value in chunk.items() if name not in _ENVELOPE}
        if not is_of_the_message and any(
            value not in NOTHING for name, value in extras.items() if name not in _OF_THE_MESSAGE
        ):
            return True
        remember(self._metadata, extras)
        return False

    def _finish(self) -> None:
        for state in self._choices.values():
            if state.reason is not None and not state.message.finished:
                state.message.finish(state.reason, state.word, self._metadata, self._model)

    def _end(self) -> None:
        self._over, self._choices = True, {}


class _Choice:
    """Reads one of the alternative texts.

    Attributes:
        message: Writes its start, usage and finish.
        blocks: Writes its text.
        reason, word: Why it ended, in the protocol's words and in the provider's; `None` before its finish reason.
    """

    __slots__ = ("blocks", "message", "reason", "word")

    def __init__(
        self,
        out: list[Event],
        number: int,
        message_id: str | None,
        model: str | None,
        usage: TokenUsage | None,
    ) -> None:
        self.message = MessageWriter(out, number, message_id, model, usage)
        self.blocks = BlockWriter(out, number)
        self.reason: str | None = None
        self.word: str | None = None

    def read(self, choice: Json, path: str) -> bool:
        """Read the text and the lists. Return whether there is text behind the end, which is passed on, not lost."""
        text = _READ.text_of(choice, "text", path)
        if self.reason is not None and text:
            return True
        if self.message.finished:
            return False
        if text:
            self.blocks.write("text", text)
        remember(self.message.metadata, {name: choice[name] for name in choice if name not in _CHOICE})
        for name in _APPENDED:
            self.message.append(name, choice.get(name))
        return False

    def read_finish_reason(self, choice: Json, path: str) -> bool:
        """Read the finish reason. Return whether this is the first reason, which counts."""
        found = _READ.text_of(choice, "finish_reason", path)
        if not found or self.reason is not None:
            return False
        self.word, self.reason = found, _REASONS.get(found.lower(), "stop")
        self.blocks.end_current()
        return True


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


_REASONS = by_word(
    {
        "stop": "stop eos eos_token stop_sequence end_turn completed",
        "length": "length max_tokens model_length max_length",
        "content_filter": "content_filter",
    }
)
_APPENDED = ("logprobs", "token_ids")

_ENVELOPE = frozenset(
    ["id", "model", "created", "object", "choices", "usage", "error", "obfuscation", "_event"]
)
_OF_THE_MESSAGE = frozenset(["system_fingerprint", "service_tier", "provider", "prompt_filter_results"])
_CHOICE = frozenset(["index", "text", "finish_reason", *_APPENDED])
_ERROR = frozenset(["message", "type", "code", "object", "param"])

# A chunk of no more than these is a piece of text. Fields that repeat in every chunk
# are read from other chunks.
_PLAIN_CHUNK = (_ENVELOPE - {"error"}) | {"system_fingerprint", "service_tier", "provider"}
_PLAIN_CHOICE = frozenset(["index", "text", "finish_reason", "logprobs"])
