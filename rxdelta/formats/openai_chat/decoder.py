"""OpenAI chat completions, streamed or whole, and the many vendors that speak it.

    stream    = chunk*            without a mark of the first or last; `[DONE]` belongs to the framing
    chunk     = id model created choices: [choice*] usage? error? extras
    choice    = index delta finish_reason? logprobs? extras    `message` for `delta` where nothing is streamed
    delta     = role? reasoning? content? annotations? refusal? tool_calls: [tool_call*]? function_call?
                executed_tools? images? audio? extras
    tool_call = index id? type? (function: {name? arguments?} | custom: {name? input?}) extras

Texts have no marks of their start or end. So blocks are numbered in the order in which they appear, for each choice
separately. A text, a reasoning or a refusal is open until something else begins. Calls and audio stay open until the
finish reason, since their fragments may interleave with anything.

**The end** has many forms. OpenAI sends a chunk with the finish reason, then one with `choices: []` and the usage.
DeepSeek, Groq and Cerebras send both in one chunk; Groq sends the usage also, or only, as `x_groq.usage`. OpenRouter
sends the finish reason, then a chunk with an empty delta and the usage, which repeats the reason or has null.
Perplexity and vLLM send a running usage with every chunk. Many vendors send no usage, and Snowflake not even a finish
reason. Gateways send more behind the chunk that has both, or send `stop` in every chunk. So usage beside a choice
ends nothing. The message finishes with a usage and `choices: []` behind its finish reason, with an object whose name
marks the last one, with `DONE`, or with the input. Its blocks finish with the finish reason, so that tools start, except
calls without arguments, since these may still come. Anything else that comes later is in new blocks.

Without a finish reason a message is whole if `DONE` has come, if a usage with `choices: []` came last, or if it wasn't
streamed. Then its reason is assumed. Some finish reasons say that the vendor failed: where the message would finish,
the stream ends with an error instead.

**Reasoning** is `reasoning_content` (DeepSeek, Alibaba, xAI, Moonshot, Z.ai), `reasoning` (Groq, Cerebras, Ollama),
`reasoning_text` (GitHub Copilot, which signs it with `reasoning_opaque`, also late), or `reasoning_details` (Snowflake).
OpenRouter sends the same text in `reasoning` and `reasoning_details`. Only its details have the signatures and the
encrypted reasoning that it wants back. LiteLLM does the same with `reasoning_content` and `thinking_blocks`. Mistral's
parts of type `thinking`, in a `content` that is a list, are read too, and Databricks' parts of type `reasoning` with a
`summary`.

**Calls**: a call begins with its name. The index counts first, then the id. A fragment with a name and another real id
than the call at its index begins another call (some gateways give all parallel calls the index 0). One without a name
continues the newest call there, whatever its id (Poolside has two ids for each call, OCI a new one in every chunk). So does
one whose id is absent, also spelled `""` (Alibaba) or null (Writer), unless it names another tool when arguments have
come. A known id means its call at any index, unless the fragment names a tool at an index without a call (DeepSeek and GLM
are reported to give several calls one id), or another tool when arguments have come. Arguments without a name, at an index
without a call, belong to the newest call (Nebius and others increase the index with every chunk). Without an index the id
decides, else the newest call is meant. Id and name may be repeated with every fragment (Kimi) and count once; a name may
also come in pieces, before the arguments. Without ids, a delta that names a tool twice has two calls. Arguments that come
twice are those of one call, and another whole object under its name is another call: see `repeated_arguments`.

**Numbers.** A negative index is none, a whole number may be a text or a float. A choice's index says which reply it
belongs to, unless the choices themselves contradict it: see `choice_numbers`.

**Oddities.** Azure's first chunk has `""` as id and model, and `choices: []`: the first non-empty values count. Groq's
compound systems give every chunk another id, and send `executed_tools` whole, and again with the output. Perplexity
and Writer send `message` beside `delta`, or behind all deltas; then only `delta` is read. Perplexity's
`reasoning_steps` continue with every chunk. OpenRouter's `annotations` may come before the text that cites them. Its
choices may have an `error`, which ends the stream like any error.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import ByChoice, Event, TokenUsage, events, text_delta
from rxdelta.formats.block_writer import take_all
from rxdelta.formats.decoding import Fields, as_mapping
from rxdelta.formats.endings import broken_events
from rxdelta.formats.json_values import NOTHING, kept, remember, word
from rxdelta.formats.known_calls import KnowsCalls
from rxdelta.formats.openai_chat.choice import Choice
from rxdelta.formats.openai_chat.choice_numbers import ChoiceNumbers, Told
from rxdelta.formats.openai_chat.indexes import index_of
from rxdelta.formats.openai_chat.tables import FORMAT
from rxdelta.formats.provider_errors import error_events, error_in, failure_in, is_surely_an_error
from rxdelta.formats.usage import CHAT, RunningUsage
from rxdelta.framing import DONE

__all__ = ["OpenAIChatDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields(FORMAT)


class OpenAIChatDecoder(KnowsCalls):
    """Chat completion chunks of one stream in, events out. A block's `index` is its place in its choice.

    Example:
        >>> decoder = OpenAIChatDecoder()
        >>> choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
        >>> [event.event for event in decoder.decode({"id": "c1", "model": "m", "choices": [choice]})]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish']
        >>> [event.event for event in decoder.close()]
        ['message-finish']
    """

    _choice_type: type[Choice] = Choice
    """The reader of a choice. A dialect has its own."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._running_usage = RunningUsage(CHAT, whole=True)
        self._choices: dict[int, Choice] = ByChoice()
        self._numbers = ChoiceNumbers(self._choices, lambda: self._choice_type([], 0, None, None, None))
        self._out: list[Event] = []
        self._has_closing_usage = False  # the newest chunk had the usage and no choices
        self._over = self._failed = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or the SDK's `ChatCompletionChunk` or `ChatCompletion`.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a choice or a call is absurd.
        """
        is_open = self._out or self._has_closing_usage or self._numbers.undecided
        told = None if is_open else self._plain(chunk)
        if told is not None:
            return told
        if chunk is DONE:
            return self._told(self._end(assumed=True)) if self._choices else ()
        return self._told(self._decode(as_mapping(chunk, FORMAT)))

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each message whose finish reason has come. One without was cut off."""
        return self._told_last(self._end(assumed=self._has_closing_usage))

    def _plain(self, chunk: Any) -> Sequence[Event] | None:
        """What to emit for a chunk that has nothing but more text or more arguments of a call, as most chunks do."""
        if type(chunk) is not dict or not _PLAIN_CHUNK.issuperset(chunk):
            return None
        if chunk.get("usage"):
            return self._plain_with_usage(chunk)
        try:
            choices: Any = chunk["choices"]
            if type(choices) is not list or len(choices) != 1:
                return None
            choice: Any = choices[0]
            if type(choice) is not dict or not (_PLAINEST_CHOICE.issuperset(choice) or _is_plain(choice)):
                return None
            delta: Any = choice["delta"]
            index: Any = choice["index"]
            if type(delta) is not dict or type(index) is not int or choice.get("finish_reason") is not None:
                return None
            state = self._choices[index]
        except KeyError:
            return None
        text = delta.get("content")
        if not text:
            if delta.get("tool_calls"):
                piece = state.calls.plain_arguments(delta)
                return None if piece is None else self._told_piece(piece)
            thought = state.plain_reasoning(delta)
            return None if thought is None else (thought,)
        blocks = state.blocks
        if type(text) is not str or blocks.type != "text":
            return None
        if len(delta) > 1:
            for name, value in delta.items():
                if value is not None and name not in _PLAIN_DELTA:
                    return None
        return (text_delta(blocks.current, text, index),)

    def _plain_with_usage(self, chunk: dict[str, Any]) -> Sequence[Event] | None:
        if len(self._choices) != 1 or not self._numbers.are_right or type(chunk.get("choices")) is not list:
            return None
        (state,) = self._choices.values()
        if state.word or not state.has_deltas:
            return None
        self._read_usage(chunk, ())
        self._read_envelope(chunk, True)
        told = self._plain({**chunk, "usage": None})
        if told is None:
            return None
        state.message.show_usage(self._usage)
        return (*told, *take_all(self._out))

    def _decode(self, chunk: Json) -> Sequence[Event]:
        choices = _READ.items(chunk.get("choices"), "choices")
        error = _error_of(chunk, choices)
        if self._over:
            says = error or chunk.get("usage") or not all(map(_is_empty, choices))
            return [_passed_on(chunk)] if says and not self._failed else ()
        has_usage = self._read_usage(chunk, choices)
        is_foreign = self._read_envelope(chunk, bool(choices) or has_usage or error is not None)
        if error is not None:
            self._settle()
        is_first = not self._choices and len(choices) > 1
        for place, found in sorted(enumerate(choices), key=_order) if is_first else enumerate(choices):
            path = f"choices[{place}]" if place else "choices[0]"
            choice = _READ.mapping(found, path)
            if self._id is None and "id" in chunk and error is None and _is_empty(choice):
                continue  # the message starts with its id, which is yet to come
            index = choice.get("index")
            state = self._choices.get(index) if type(index) is int and self._numbers.are_right else None
            if state is not None:
                state.read(choice, path)
                if error is None:
                    state.read_finish_reason(choice, path)
                is_foreign |= state.was_late()
                continue
            number = index_of(index, f"{path}.index") or 0
            told = self._numbers.place(number, choice, path, is_alone=len(choices) == 1)
            is_foreign |= self._read_choices(told, is_broken_off=error is not None)
        if has_usage:
            shown = [state.message.show_usage(self._usage) for state in self._choices.values()]
            is_foreign |= not all(shown)
        is_closing = has_usage and not choices
        if is_closing or chunk.get("object") in _LAST_OBJECTS:
            self._settle(is_over=not is_closing)
        if choices or is_closing:
            # Without a finish reason it closes only if nothing follows: some vendors send it first, or in between.
            self._has_closing_usage = is_closing
        if error is not None:
            self._finish(is_broken_off=True)
        elif is_closing or chunk.get("object") in _LAST_OBJECTS:
            self._finish_if_all_have_ended()
        if is_foreign:
            self._out.append(_passed_on(chunk))
        if error is not None:
            self._fail(error_events("openai", error, error.get("type"), _ERROR))
        return take_all(self._out)

    def _read_choices(self, told: Sequence[Told], *, is_broken_off: bool = False) -> bool:
        """Read choices, and those that have waited for them. Return whether one was late."""
        was_late = False
        while told:
            for number, choice, path, is_joined in told:
                state = self._choices.get(number) or self._begin(number)
                state.read(choice, path)
                # A reply that breaks off isn't finished, though it may have a finish reason.
                if is_joined and not is_broken_off:
                    state.read_joined_finish_reason(choice, path)
                elif not is_broken_off:
                    state.read_finish_reason(choice, path)
                was_late |= state.was_late()
            told = self._numbers.decided()
        return was_late

    def _settle(self, *, is_over: bool = True) -> None:
        """Read the choices that wait, because nothing follows."""
        if not self._over:
            self._read_choices(self._numbers.settle(is_over=is_over))

    def _begin(self, number: int) -> Choice:
        state = self._choice_type(self._out, number, self._id, self._model, self._usage)
        self._choices[number] = state
        state.message.start(self._metadata)
        return state

    def _read_usage(self, chunk: Json, choices: Sequence[object]) -> bool:
        """Read the usage, which replaces an earlier one, but for zeros. Return whether there is one.

        Groq may send it under two names in one chunk, or under either. Moonshot sends it with the last choice.
        """
        raw, path = chunk.get("usage"), "usage"
        if not raw and "x_groq" in chunk:
            raw, path = _groq(chunk).get("usage"), "x_groq.usage"
        if not raw:
            found = [
                choice
                for choice in choices
                if (type(choice) is dict or isinstance(choice, Mapping)) and choice.get("usage")
            ]
            raw, path = (found[0]["usage"], "choices[].usage") if found else (None, "")
        raw = None if raw is None else _READ.mapping(raw, path)
        if not raw:
            return False
        self._usage = self._running_usage.read(raw)
        return True

    def _read_envelope(self, chunk: Json, is_of_the_message: bool) -> bool:
        """Read the fields of the whole message. Return `True` for a chunk of something else, which is passed on."""
        if self._id is None:
            self._id = word(chunk.get("id"))
        if self._model is None:
            self._model = word(chunk.get("model"))
        if (
            "created" not in self._metadata
            and chunk.get("created")
            and type(chunk["created"]) in (int, float)
        ):
            self._metadata["created"] = chunk["created"]
        if _ENVELOPE.issuperset(chunk):
            return False
        extras = {name: value for name, value in chunk.items() if name not in _ENVELOPE}
        if not is_of_the_message and "prompt_filter_results" not in chunk:
            foreign = [value for name, value in extras.items() if name not in _PLAIN_CHUNK]
            if any(value not in NOTHING for value in foreign):
                return True
        if "x_groq" in extras:
            extras["x_groq"] = {name: value for name, value in _groq(chunk).items() if name not in _GROQ}
        remember(self._metadata, extras)
        return False

    def _finish(self, *, assumed: bool = False, is_broken_off: bool = False) -> None:
        """Finish the messages that have ended; with `assumed` also those that gave no reason.

        The provider's failure, said by a finish reason, comes last, unless the stream is broken off by its error.
        """
        failed: list[Event] = []
        for number, state in self._choices.items():
            if state.message.finished or not (assumed or state.has_ended):
                continue
            if state.failure is None:
                state.finish(self._model, self._metadata)
            else:
                state.finish_blocks()
                metadata = {**self._metadata, **state.metadata()}
                failed = failed or broken_events(
                    "openai", state.word, state.failure, None, metadata, choice=number
                )
        if failed and not is_broken_off:
            self._fail(failed)

    def _finish_if_all_have_ended(self) -> None:
        """The usage is the whole request's: while a choice goes on, it isn't the last."""
        if all(state.has_ended for state in self._choices.values()):
            self._finish()

    def _fail(self, error: Sequence[Event]) -> None:
        self._out += error
        self._failed = self._over = True
        self._choices = {}

    def _end(self, *, assumed: bool) -> Sequence[Event]:
        self._settle()
        self._finish(assumed=assumed)
        self._over, self._choices = True, {}
        return take_all(self._out)


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
        True
        >>> recognises({"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]})
        False
    """
    choices, kind = chunk.get("choices"), chunk.get("object")
    if kind == "chat.completion.chunk" or kind in _LAST_OBJECTS:
        return True  # Azure's filtered body has no message in its choice
    if kind == "error":  # of vLLM and of Mistral
        return isinstance(chunk.get("message"), str)
    if isinstance(choices, (list, tuple)) and choices:
        first: Any = choices[0]
        return isinstance(first, Mapping) and any(
            isinstance(first.get(name), Mapping) for name in ("delta", "message")
        )
    if isinstance(choices, (list, tuple)):
        return "prompt_filter_results" in chunk and kind in NOTHING
    if "error" in chunk:
        return "type" not in chunk and isinstance(chunk["error"], Mapping) and bool(chunk["error"])
    return "type" not in chunk and is_surely_an_error(chunk, "choices")


def _is_plain(choice: Json) -> bool:
    """Whether a choice may be no more than a piece of text or of arguments."""
    if choice.get("logprobs") is not None or choice.get("native_finish_reason") is not None:
        return False
    return _PLAIN_CHOICE.issuperset(choice)


def _groq(chunk: Json) -> Json:
    found = chunk.get("x_groq")
    return found if found is not None and isinstance(found, Mapping) else {}


def _error_of(chunk: Json, choices: Sequence[Any]) -> Json | None:
    """The error that a chunk reports. vLLM's is the chunk itself, Groq's once was in `x_groq`."""
    for source in (chunk, _groq(chunk) if "x_groq" in chunk else {}, *choices):
        if type(source) is dict and "error" not in source:
            continue
        found = error_in(source)
        if found is not None:
            return found
    if choices:
        return None
    return chunk if chunk.get("object") == "error" else failure_in(chunk, "choices")


def _passed_on(chunk: Json) -> Event:
    return events.ProviderEvent("openai", word(chunk.get("object")) or "chunk", kept(chunk))


def _order(found: tuple[int, object]) -> tuple[int, int]:
    """The order in which the choices of a first chunk are read: a reply in two choices has the lower index."""
    place, choice = found
    index = choice.get("index") if isinstance(choice, Mapping) else None
    return (index if type(index) is int else 0), place


def _is_empty(choice: object) -> bool:
    if not isinstance(choice, Mapping):
        return False
    delta = choice.get("delta")
    fields = delta.items() if isinstance(delta, Mapping) else ()
    found = [*fields, *choice.items()]
    return all(value in NOTHING for name, value in found if name not in ("role", "delta", "index"))


_LAST_OBJECTS = ("chat.completion", "chat.completion.done")
_GROQ = frozenset(["usage", "error"])
_ERROR = frozenset(["message", "type", "code", "object", "param"])

# What is read, or says nothing: padding against eavesdroppers, and the name that framing gives to an event.
_ENVELOPE = frozenset(
    ["id", "model", "created", "object", "choices", "usage", "error", "obfuscation", "p", "_event"]
)

# A chunk of no more than these is a piece of text or of arguments. Fields that repeat in every chunk
# are read from other chunks.
_PLAIN_CHUNK = (_ENVELOPE - {"error"}) | {"system_fingerprint", "service_tier", "provider"}
_PLAINEST_CHOICE = frozenset(["index", "delta", "finish_reason"])
_PLAIN_CHOICE = _PLAINEST_CHOICE | {"logprobs", "native_finish_reason", "text"}
_PLAIN_DELTA = frozenset(["role", "content", "token_id"])
