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
from typing import Any, TypeAlias

from rxdelta.core import ByChoice, Event, TokenUsage, events, text_delta
from rxdelta.formats.block_writer import BlockWriter, MessageWriter, take_all
from rxdelta.formats.decoding import Fields, as_mapping
from rxdelta.formats.endings import broken_events
from rxdelta.formats.json_values import NOTHING, by_word, kept, remember, word
from rxdelta.formats.notes import FINISH_REASON_ASSUMED
from rxdelta.formats.provider_errors import OF_OPEN_SERVERS, error_events, error_in
from rxdelta.formats.usage import CHAT, RunningUsage
from rxdelta.framing import DONE

__all__ = ["OpenAICompletionsDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields("openai-completions")


class OpenAICompletionsDecoder:
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

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._running_usage = RunningUsage(CHAT, whole=True)
        self._has_closing_usage = False  # the newest chunk had the usage and no choices
        self._choices: dict[int, _Choice] = ByChoice()
        self._out: list[Event] = []
        self._over = self._failed = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or the SDK's `Completion`.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a choice is absurd.
        """
        event = None if self._out or self._has_closing_usage else self._plain(chunk)
        if event is not None:
            return (event,)
        if chunk is DONE:
            return self._end(assumed=True) if self._choices else ()
        return self._decode(as_mapping(chunk, "openai-completions"))

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each message whose finish reason has come. One without was cut off."""
        return self._end(assumed=self._has_closing_usage)

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
        return text_delta(state.blocks.current, text, index)

    def _decode(self, chunk: Json) -> Sequence[Event]:
        choices = _READ.items(chunk.get("choices"), "choices")
        # vLLM's error is the chunk itself.
        error = error_in(chunk) or (chunk if chunk.get("object") == "error" else None)
        if self._over:
            says = error or chunk.get("usage") or any(map(_has_text, choices))
            return [_passed_on(chunk)] if says and not self._failed else ()
        has_usage = self._read_usage(chunk)
        is_foreign = self._read_envelope(chunk, bool(choices) or has_usage or error is not None)
        for place, found in enumerate(choices):
            path = f"choices[{place}]"
            choice = _READ.mapping(found, path)
            state = self._choice(choice, path)
            is_foreign |= state.read(choice, path)
            if error is None:  # a reply that breaks off isn't finished, though it may have a finish reason
                state.read_finish_reason(choice, path)
        if has_usage:
            shown = [state.message.show_usage(self._usage) for state in self._choices.values()]
            is_foreign |= not all(shown)
        is_closing = has_usage and not choices
        if choices or is_closing:
            self._has_closing_usage = is_closing
        if error is not None:
            self._finish(is_broken_off=True)
        elif is_closing and all(state.word for state in self._choices.values()):
            self._finish()
        if is_foreign:
            self._out.append(_passed_on(chunk))
        if error is not None:
            self._fail(error_events("openai", error, error.get("type"), _ERROR))
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
        self._usage = self._running_usage.read(raw)
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

    def _finish(self, *, assumed: bool = False, is_broken_off: bool = False) -> None:
        failed: list[Event] = []
        for number, state in self._choices.items():
            if state.message.finished or not (assumed or state.word):
                continue
            state.blocks.end_current()
            if failure := BROKEN.get(state.word.lower()):
                metadata = {**self._metadata, **state.message.metadata}
                failed = failed or broken_events("openai", state.word, failure, None, metadata, choice=number)
            else:
                state.finish(self._model, self._metadata)
        if failed and not is_broken_off:
            self._fail(failed)

    def _fail(self, error: Sequence[Event]) -> None:
        self._out += error
        self._failed = self._over = True
        self._choices = {}

    def _end(self, *, assumed: bool) -> Sequence[Event]:
        self._finish(assumed=assumed)
        self._over, self._choices = True, {}
        return take_all(self._out)


class _Choice:
    """Reads one of the alternative texts.

    Attributes:
        message: Writes its start, usage and finish.
        blocks: Writes its text.
        word: Why it ended, in the provider's word; empty before its finish reason.
    """

    __slots__ = ("blocks", "message", "word")

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
        self.word = ""

    def read(self, choice: Json, path: str) -> bool:
        """Read the text and the lists. Return whether there is text behind the end, or none by its name, but other fields."""
        text = _READ.text_of(choice, "text", path)
        if self.message.finished:
            return bool(text)
        if text:
            self.blocks.write("text", text)
        remember(self.message.metadata, {name: choice[name] for name in choice if name not in _CHOICE})
        for name in _APPENDED:
            self.message.append(name, choice.get(name))
        return "text" not in choice and not _CHOICE.issuperset(choice)

    def read_finish_reason(self, choice: Json, path: str) -> None:
        """Read the finish reason. The first one counts."""
        found = _READ.text_of(choice, "finish_reason", path)
        if found and not self.word:
            self.word = found
            self.blocks.end_current()

    def finish(self, model: str | None, metadata: Json) -> None:
        reason = _REASONS.get(self.word.lower(), "stop")
        if not self.word:
            metadata = {**metadata, FINISH_REASON_ASSUMED: True}
        self.message.finish(reason, self.word or None, metadata, model)


def _passed_on(chunk: Json) -> Event:
    return events.ProviderEvent("openai", word(chunk.get("object")) or "chunk", kept(chunk))


def _has_text(choice: object) -> bool:
    return not isinstance(choice, Mapping) or bool(choice.get("text"))


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
BROKEN = OF_OPEN_SERVERS
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
