"""OpenAI's older completions, streamed or whole: a prompt goes on as text. vLLM and many others still speak it.

    stream  = chunk*            no chunk says that it is first or last; `[DONE]` belongs to the framing
    chunk   = id model created object: "text_completion" choices: [choice*] usage? error? extras
    choice  = index text finish_reason? logprobs? extras

A choice has one text, and no roles, calls or reasoning. A body that was not streamed looks like a chunk that
has it all.

The finish reason comes with the last text or with an empty one. Where it was asked for, a chunk with
`choices: []` and the usage follows, and every other chunk says `usage: null`; vLLM can be told to send a running
usage with each. So the message finishes with the first usage on or after its finish reason's chunk (only after,
where usage was sent before too), or with the input.

`logprobs` are lists side by side (`tokens`, `token_logprobs`, `top_logprobs`, `text_offset`), which go on with
each chunk. vLLM's `token_ids` do as well, and its `stop_reason` is what stopped it: a string, a token's id or null.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import ByChoice, Event, TokenUsage, events, freeze, is_mapping, text_delta
from rxdelta.formats.decoding import NOTHING, Fields, as_mapping, kept, remember, told_error, usage_of, word

__all__ = ["OpenAICompletionsDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

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
        self._extras: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._usage_runs = False  # so the finish reason's own chunk needn't have the last
        self._choices: dict[int, _Choice] = ByChoice()
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next
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
        out, self._out = self._out, []
        self._finish(out)
        self._over, self._choices = True, {}
        return out

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more text, as nearly all are."""
        if type(chunk) is not dict or not _PLAIN_CHUNK.issuperset(chunk) or chunk.get("usage") is not None:
            return None
        choices: Any = chunk.get("choices")
        choice: Any = choices[0] if type(choices) is list and len(choices) == 1 else None
        if type(choice) is not dict or not _PLAIN_CHOICE.issuperset(choice):
            return None
        index: Any = choice.get("index")
        text: Any = choice.get("text")
        state = self._choices.get(index) if type(index) is int else None
        if state is None or not state.writes or type(text) is not str or not text:
            return None
        if choice.get("finish_reason") is not None or choice.get("logprobs") is not None:
            return None
        return text_delta(0, text, index)

    def _decode(self, chunk: Json) -> Sequence[Event]:
        if self._over:
            return ()
        out = self._out
        choices = _READ.items(chunk.get("choices"), "choices")
        error = _error_of(chunk)
        usage_came = self._read_usage(chunk)
        foreign = self._read_envelope(chunk, bool(choices) or usage_came or error is not None)
        ended = False
        for place, found in enumerate(choices):
            path = f"choices[{place}]"
            choice = _READ.mapping(found, path)
            state = self._choice(out, choice, path)
            foreign |= state.read(out, choice, path)
            if error is None:  # what breaks off is not finished, whatever it says
                ended |= state.read_finish_reason(out, choice, path)
        if usage_came:
            told = [state.show_usage(out, self._usage) for state in self._choices.values()]
            foreign |= not all(told)
        all_ended = all(state.reason is not None for state in self._choices.values())
        if error is not None or (usage_came and all_ended and not (ended and self._usage_runs)):
            self._finish(out)
        self._usage_runs |= usage_came
        if foreign:
            out.append(events.ProviderEvent("openai", word(chunk.get("object")) or "chunk", kept(chunk)))
        if error is not None:
            self._break_off(out, error)
        self._out = []
        return out

    def _choice(self, out: Out, choice: Json, path: str) -> _Choice:
        index = choice.get("index")
        number = 0 if index is None else _READ.index(index, f"{path}.index")
        state = self._choices.get(number)
        if state is None:
            state = self._choices[number] = _Choice(number, self._model, self._usage)
            out.append(events.MessageStart(self._id, self._model, self._usage, self._extras, choice=number))
        return state

    def _read_usage(self, chunk: Json) -> bool:
        raw = _READ.mapping(chunk.get("usage"), "usage")
        if not raw:
            return False
        self._usage = usage_of(raw, raw.get("prompt_tokens"), raw.get("completion_tokens"))
        return True

    def _read_envelope(self, chunk: Json, of_the_message: bool) -> bool:
        """Take what is said of the whole message. True for a chunk that is none of it, to be passed on."""
        self._id = self._id or word(chunk.get("id"))
        self._model = self._model or word(chunk.get("model"))
        if not self._extras.get("created") and type(chunk.get("created")) in (int, float):
            self._extras["created"] = chunk["created"]
        extras = {name: value for name, value in chunk.items() if name not in _ENVELOPE}
        if not of_the_message and any(
            value not in NOTHING for name, value in extras.items() if name not in _OF_THE_MESSAGE
        ):
            return True
        remember(self._extras, extras)
        return False

    def _finish(self, out: Out) -> None:
        for state in self._choices.values():
            if state.reason is not None and not state.finished:
                state.finish(out, self._model, self._extras)

    def _break_off(self, out: Out, error: Json) -> None:
        out += told_error("openai", error, error.get("type"), _ERROR)
        self._over, self._choices = True, {}


class _Choice:
    """One of the alternative texts."""

    __slots__ = (
        "_extras",
        "_lists",
        "_model",
        "_number",
        "_started",
        "_usage",
        "_word",
        "finished",
        "reason",
        "writes",
    )

    def __init__(self, number: int, model: str | None, usage: TokenUsage | None) -> None:
        self.writes = False
        self.reason: str | None = None
        self.finished = False
        self._word: str | None = None
        self._started = False
        self._number = number
        self._model = model
        self._usage = usage
        self._extras: dict[str, Any] = {}
        self._lists: dict[str, dict[str, Any]] = {}

    def read(self, out: Out, choice: Json, path: str) -> bool:
        """Whether there was something for a text that has ended, which is passed on rather than lost."""
        text = _READ.text_of(choice, "text", path)
        if self.reason is not None and text:
            return True
        if self.finished:
            return False
        if text:
            if not self._started:
                self._started = self.writes = True
                out.append(events.BlockStart(0, {"type": "text", "text": ""}, choice=self._number))
            out.append(text_delta(0, text, self._number))
        remember(self._extras, {name: value for name, value in choice.items() if name not in _CHOICE})
        for name in _APPENDED:
            self._append(name, freeze(choice.get(name), lenient=True))
        return False

    def _append(self, name: str, found: Any) -> None:
        """A list that goes on with every chunk, or an object of such lists."""
        for key, items in (found if is_mapping(found) else {"": found}).items():
            if items not in NOTHING:
                known = self._lists.setdefault(name, {}).setdefault(key, [])
                known.extend(items if isinstance(items, (list, tuple)) else [items])

    def read_finish_reason(self, out: Out, choice: Json, path: str) -> bool:
        """Whether this chunk has the first one."""
        said = _READ.text_of(choice, "finish_reason", path)
        if not said or self.reason is not None:
            return False
        self._word, self.reason = said, _REASONS.get(said.lower(), "stop")
        if self.writes:
            self.writes = False
            out.append(events.BlockFinish(0, choice=self._number))
        return True

    def show_usage(self, out: Out, usage: TokenUsage | None) -> bool:
        """Tell the request's usage where it is news. False if it came too late for that."""
        if usage == self._usage or usage is None:
            return True
        self._usage = usage
        if not self.finished:
            out.append(events.UsageUpdate(usage, choice=self._number))
        return not self.finished

    def finish(self, out: Out, model: str | None, extras: Json) -> None:
        self.finished = True
        late = {} if model == self._model else {"model": model}
        lists = {name: found[""] if [*found] == [""] else found for name, found in self._lists.items()}
        metadata = {**late, **extras, **self._extras, **lists}
        out.append(events.MessageFinish(self.reason, self._word, self._usage, metadata, choice=self._number))


def _error_of(chunk: Json) -> Json | None:
    """The error that a chunk reports, if it does. vLLM's is the chunk itself."""
    error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
    if not error:
        return None
    if isinstance(error, Mapping):
        return error
    return {"message": error} if isinstance(error, str) else {"error": error}


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


_WORDS = {
    "stop": "stop eos eos_token stop_sequence end_turn completed",
    "length": "length max_tokens model_length max_length",
    "content_filter": "content_filter",
}
_REASONS = {said: reason for reason, words in _WORDS.items() for said in words.split()}
_APPENDED = ("logprobs", "token_ids")

_ENVELOPE = frozenset(
    ["id", "model", "created", "object", "choices", "usage", "error", "obfuscation", "_event"]
)
_OF_THE_MESSAGE = frozenset(["system_fingerprint", "service_tier", "provider", "prompt_filter_results"])
_CHOICE = frozenset(["index", "text", "finish_reason", *_APPENDED])
_ERROR = frozenset(["message", "type", "code", "object", "param"])

# A chunk of no more than these is a piece of text. What is the same in all is read from the others.
_PLAIN_CHUNK = (_ENVELOPE - {"error"}) | {"system_fingerprint", "service_tier", "provider"}
_PLAIN_CHOICE = frozenset(["index", "text", "finish_reason", "logprobs"])
