"""OpenAI chat completions, streamed or whole, and the many vendors that speak it.

    stream    = chunk*            without a mark of the first or last; `[DONE]` belongs to the framing
    chunk     = id model created choices: [choice*] usage? error? extras
    choice    = index delta finish_reason? logprobs? extras    `message` for `delta` where nothing is streamed
    delta     = role? reasoning? content? annotations? refusal? tool_calls: [tool_call*]? function_call?
                executed_tools? images? audio? extras
    tool_call = index id? type? (function: {name? arguments?} | custom: {name? input?}) extras

Texts have no marks of their start or end. So blocks are numbered in the order in which they appear, for each choice
separately. A text, a reasoning or a refusal is open until another block begins. Calls and audio stay open until the
finish reason, since their fragments may interleave with other blocks.

**The end** has many forms. OpenAI sends a chunk with the finish reason, then one with `choices: []` and the usage.
DeepSeek, Groq and Cerebras send both in one chunk; Groq sends the usage also, or only, as `x_groq.usage`. OpenRouter
sends the finish reason, then a chunk with an empty delta and the usage, which repeats the reason or has null.
Perplexity and vLLM send a running usage with every chunk. Many vendors send no usage, and Snowflake not even a finish
reason. Gateways send more behind the chunk that has both, or send `stop` in every chunk. So usage beside a choice
ends nothing. The message finishes with a usage and `choices: []` behind its finish reason, with an object whose name
marks the last one, with `DONE`, or with the input. Its blocks finish with the finish reason, so that tools start, except
calls without arguments, since these may still come. All other later content is in new blocks.

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
twice are those of one call, and another whole object under its name is another call: see `Arguments` in `formats/calls.py`.

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
from typing import Any

from rxdelta.core import Event, text_delta
from rxdelta.formats.block_events import take_all
from rxdelta.formats.choices import PLAIN_CHUNK, ChoicesDecoder
from rxdelta.formats.decoding import NOTHING, Fields, Json
from rxdelta.formats.endings import error_in, failure_in, is_surely_an_error
from rxdelta.formats.openai_chat.calls import index_of
from rxdelta.formats.openai_chat.choice import Choice
from rxdelta.formats.openai_chat.choice_numbers import ChoiceNumbers, Placed
from rxdelta.formats.openai_chat.tables import FORMAT

_LAST_OBJECTS = ("chat.completion", "chat.completion.done")


class OpenAIChatDecoder(ChoicesDecoder[Choice]):
    """Chat completion chunks of one stream in, events out. A block's `index` is its place in its choice.

    Example:
        >>> decoder = OpenAIChatDecoder()
        >>> choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
        >>> [event.event for event in decoder.decode({"id": "c1", "model": "m", "choices": [choice]})]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish']
        >>> [event.event for event in decoder.close()]
        ['message-finish']
    """

    fields = Fields(FORMAT)
    choice_type = Choice
    last_objects = _LAST_OBJECTS

    def __init__(self) -> None:
        super().__init__()
        self._numbers = ChoiceNumbers(self._choices, lambda: self.choice_type([], 0, None, None, None))

    def _plain(self, chunk: Any) -> Sequence[Event] | None:
        if type(chunk) is not dict or self._numbers.undecided or not _PLAIN_CHUNK.issuperset(chunk):
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
                return None if piece is None else self._checked_piece(piece)
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
        plain = self._plain({**chunk, "usage": None})
        if plain is None:
            return None
        state.message.show_usage(self._usage)
        return (*plain, *take_all(self._out))

    def _read_choices(self, choices: Sequence[Any], chunk: Json, /, *, is_broken_off: bool) -> bool:
        if is_broken_off:
            self._settle()
        was_late = False
        is_first = not self._choices and len(choices) > 1
        for place, found in sorted(enumerate(choices), key=_order) if is_first else enumerate(choices):
            path = f"choices[{place}]" if place else "choices[0]"
            choice = self.fields.mapping(found, path)
            if self._id is None and "id" in chunk and not is_broken_off and self._is_empty(choice):
                continue  # the message starts with its id, which is yet to come (Azure)
            index = choice.get("index")
            state = self._choices.get(index) if type(index) is int and self._numbers.are_right else None
            if state is not None:
                state.read(choice, path)
                if not is_broken_off:
                    state.read_finish_reason(choice, path)
                was_late |= state.was_late()
                continue
            number = index_of(index, f"{path}.index") or 0
            placed = self._numbers.place(number, choice, path, is_alone=len(choices) == 1)
            was_late |= self._read_placed(placed, is_broken_off=is_broken_off)
        return was_late

    def _read_placed(self, placed: Sequence[Placed], *, is_broken_off: bool = False) -> bool:
        """Read choices, and those that have waited for them. Return whether one was late."""
        was_late = False
        while placed:
            for number, choice, path, is_joined in placed:
                state = self._choices.get(number) or self._begin(number)
                state.read(choice, path)
                # A reply that breaks off isn't finished, though it may have a finish reason.
                if is_joined and not is_broken_off:
                    state.read_joined_finish_reason(choice, path)
                elif not is_broken_off:
                    state.read_finish_reason(choice, path)
                was_late |= state.was_late()
            placed = self._numbers.decided()
        return was_late

    def _settle(self, *, is_over: bool = True) -> None:
        self._read_placed(self._numbers.settle(is_over=is_over))

    def _is_empty(self, choice: object) -> bool:
        if not isinstance(choice, Mapping):
            return False
        delta = choice.get("delta")
        fields = delta.items() if isinstance(delta, Mapping) else ()
        found = [*fields, *choice.items()]
        return all(value in NOTHING for name, value in found if name not in ("role", "delta", "index"))

    def _error_of(self, chunk: Json, choices: Sequence[Any], /) -> Json | None:
        # Groq's once was in `x_groq`, OpenRouter's is in a choice, vLLM's is the chunk itself.
        for source in (chunk, _groq(chunk) if "x_groq" in chunk else {}, *choices):
            if type(source) is dict and "error" not in source:
                continue
            found = error_in(source)
            if found is not None:
                return found
        if choices:
            return None
        return chunk if chunk.get("object") == "error" else failure_in(chunk, "choices")

    def _usage_of(self, chunk: Json, choices: Sequence[Any], /) -> tuple[object, str]:
        # Groq may send it under two names in one chunk, or under either. Moonshot sends it with the last choice.
        if chunk.get("usage"):
            return chunk["usage"], "usage"
        if usage := _groq(chunk).get("usage") if "x_groq" in chunk else None:
            return usage, "x_groq.usage"
        for choice in choices:
            if (type(choice) is dict or isinstance(choice, Mapping)) and choice.get("usage"):
                return choice["usage"], "choices[].usage"
        return None, ""

    def _extras(self, chunk: Json) -> dict[str, Any]:
        extras = super()._extras(chunk)
        if "x_groq" in extras:
            extras["x_groq"] = {name: value for name, value in _groq(chunk).items() if name not in _GROQ}
        return extras


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


def _order(found: tuple[int, object]) -> tuple[int, int]:
    """The order in which the choices of a first chunk are read: a reply in two choices has the lower index."""
    place, choice = found
    index = choice.get("index") if isinstance(choice, Mapping) else None
    return (index if type(index) is int else 0), place


_GROQ = frozenset(["usage", "error"])
_PLAIN_CHUNK = PLAIN_CHUNK  # CPython is slower at methods of imported names
_PLAINEST_CHOICE = frozenset(["index", "delta", "finish_reason"])
_PLAIN_CHOICE = _PLAINEST_CHOICE | {"logprobs", "native_finish_reason", "text"}
_PLAIN_DELTA = frozenset(["role", "content", "token_id"])
