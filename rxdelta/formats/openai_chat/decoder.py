"""OpenAI chat completions, streamed or whole, and the many vendors that speak it.

    stream    = chunk*            no chunk says that it is first or last; `[DONE]` belongs to the framing
    chunk     = id model created choices: [choice*] usage? error? extras
    choice    = index delta finish_reason? logprobs? extras    `message` for `delta` where nothing is streamed
    delta     = role? reasoning? content? annotations? refusal? tool_calls: [tool_call*]? function_call?
                executed_tools? images? audio? extras
    tool_call = index id? type? (function: {name? arguments?} | custom: {name? input?}) extras

Nothing says where a text begins or ends, so blocks are numbered as they appear, each choice for itself. A
text, a reasoning or a refusal is open until something else begins. Calls and audio stay open until the finish
reason, since their fragments may interleave with anything.

**The end** comes in many ways. OpenAI sends a chunk with the finish reason, then one with `choices: []` and
the usage. DeepSeek, Groq and Cerebras send both in one chunk, Groq the usage also, or only, as
`x_groq.usage`. OpenRouter sends the finish reason, then a chunk with an empty delta and the usage, which
repeats the reason or says null. Perplexity and vLLM send a running usage with every chunk. Many send none,
and Snowflake not even a finish reason. And gateways send more behind the chunk that has both, or say `stop` in
every one. So usage beside a choice ends nothing: the message finishes with a usage and `choices: []` behind its
finish reason, with an object that is the last by its name, or with the input. Its blocks finish with the finish
reason, so that tools start, but for calls without arguments, which may still come; what else comes later is in new
blocks.

**Reasoning** is `reasoning_content` (DeepSeek, Alibaba, xAI, Moonshot, Z.ai), `reasoning` (Groq, Cerebras,
Ollama), or `reasoning_details` (Snowflake). OpenRouter sends the same text in the last two, and in the
details alone the signatures and the encrypted reasoning that it wants back; LiteLLM does the same with
`reasoning_content` and `thinking_blocks`. Mistral's way, parts of type `thinking` in a list as `content`, is
read too, and Databricks', of type `reasoning` with a `summary`.

**Calls**: the index comes first, then the id. Another real id at a known index is another call (gateways that
give all parallel calls the index 0). None, or one of the spellings of none (`""` Alibaba, null Writer),
continues the newest there, unless it names another tool when arguments have come. An id that is known means
its call at any index, unless it names a tool at one that no call has (DeepSeek and GLM are said to have given
several calls one id). Arguments with neither id nor name, at an index that no call has, are the newest call's
(Nebius and others count the index up with every chunk). Without an index the id decides, then the newest call
is meant. Id and name may be repeated with every fragment (Kimi) and count once; a name may also come in
pieces, before the arguments. Without ids, a delta that names a tool twice has two calls.

Azure's first chunk has `""` as id and model, and `choices: []`: the first that isn't empty counts. Groq's
compound systems give every chunk another id, and send `executed_tools` whole, again when the output is there.
Perplexity and Writer send `message` beside `delta`, or behind all deltas; then only `delta` is read.
Perplexity's `reasoning_steps` go on with every chunk. OpenRouter's `annotations` may come before the text that
cites them; and it may say of a choice that it failed, which ends the stream like any error.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeAlias

from rxdelta.core import (
    ByChoice,
    Event,
    TokenUsage,
    events,
    freeze,
    real_id,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)
from rxdelta.formats.decoding import (
    NOTHING,
    Fields,
    as_mapping,
    due,
    kept,
    others,
    remember,
    told_error,
    usage_of,
    word,
)
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SENT_AS, SYNTHETIC_ID, call_identity

__all__ = ["Choice", "OpenAIChatDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

_READ = Fields("openai-chat")
_DETAILS = ("reasoning_details", "thinking_blocks")


class OpenAIChatDecoder:
    """Chat completion chunks of one stream in, events out. A block's `index` is its place in its choice.

    Example:
        >>> decoder = OpenAIChatDecoder()
        >>> choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
        >>> [event.event for event in decoder.decode({"id": "c1", "model": "m", "choices": [choice]})]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish']
        >>> [event.event for event in decoder.close()]
        ['message-finish']
    """

    @property
    def _choice_type(self) -> type[Choice]:
        """What reads a choice: a dialect in a file of its own has its own."""
        return Choice

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._extras: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._choices: dict[int, Choice] = ByChoice()
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or the SDK's `ChatCompletionChunk` or `ChatCompletion`.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a choice or a call is absurd.
        """
        event = None if self._out else self._plain(chunk)
        return self._decode(as_mapping(chunk, "openai-chat")) if event is None else (event,)

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each message whose finish reason has come. One without was cut off."""
        out, self._out = self._out, []
        self._finish(out)
        self._end()
        return out

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more text, or more arguments of a call, as nearly all are."""
        if type(chunk) is not dict or not _PLAIN_CHUNK.issuperset(chunk) or chunk.get("usage") is not None:
            return None
        choices: Any = chunk.get("choices")
        if type(choices) is not list or len(choices) != 1:
            return None
        choice: Any = choices[0]
        if type(choice) is not dict or not _PLAIN_CHOICE.issuperset(choice):
            return None
        delta: Any = choice.get("delta")
        index: Any = choice.get("index")
        state = self._choices.get(index) if type(index) is int else None
        if type(delta) is not dict or state is None or choice.get("finish_reason") is not None:
            return None
        if choice.get("logprobs") is not None or choice.get("native_finish_reason") is not None:
            return None
        text = delta.get("content")
        if not text and delta.get("tool_calls"):
            return state.plain_arguments(delta)
        if type(text) is not str or not text or state.writes != "text":
            return None
        if len(delta) > 1:
            for name, value in delta.items():
                if value is not None and name not in _PLAIN_DELTA:
                    return None
        return text_delta(state.writes_to, text, index)

    def _decode(self, chunk: Json) -> Sequence[Event]:
        if self._over:
            return ()
        out = self._out
        choices = _READ.items(chunk.get("choices"), "choices")
        error = _error_of(chunk) or next(filter(None, map(_error_in, choices)), None)
        usage_came = self._read_usage(chunk)
        foreign = self._read_envelope(chunk, bool(choices) or usage_came or error is not None)
        for place, found in enumerate(choices):
            path = f"choices[{place}]" if place else "choices[0]"
            choice = _READ.mapping(found, path)
            if self._id is None and "id" in chunk and error is None and _says_nothing(choice):
                continue  # the message begins with its id, which is yet to come
            state = self._choice(out, choice, path)
            state.read(out, choice, path)
            if error is None:  # what breaks off is not finished, whatever it says
                state.read_finish_reason(out, choice, path)
            foreign |= state.was_late()
        if usage_came:
            foreign |= self._show_usage(out)
        if error is not None:
            self._finish(out)
        elif chunk.get("object") in _LAST_OBJECTS or (usage_came and not choices):
            self._finish_together(out)
        if foreign:
            out.append(events.ProviderEvent("openai", word(chunk.get("object")) or "chunk", kept(chunk)))
        if error is not None:
            self._break_off(out, error)
        self._out = []
        return out

    def _choice(self, out: Out, choice: Json, path: str) -> Choice:
        index = choice.get("index")
        number = 0 if index is None else _READ.index(index, f"{path}.index")
        state = self._choices.get(number)
        if state is None:
            state = self._choices[number] = self._choice_type(number, self._id, self._model, self._usage)
            out.append(events.MessageStart(self._id, self._model, self._usage, self._extras, choice=number))
        return state

    def _read_usage(self, chunk: Json) -> bool:
        """Whether there is one. The last that says something wins whole; Groq may send it twice at once."""
        raw, path = chunk.get("usage"), "usage"
        if not raw and "x_groq" in chunk:
            raw, path = _groq(chunk).get("usage"), "x_groq.usage"
        raw = None if raw is None else _READ.mapping(raw, path)
        if not raw:
            return False
        usage = usage_of(raw, raw.get("prompt_tokens"), raw.get("completion_tokens"))
        if usage != self._usage:
            self._usage = usage
        return True

    def _read_envelope(self, chunk: Json, of_the_message: bool) -> bool:
        """Take what is said of the whole message. True for a chunk that is none of it, to be passed on."""
        if self._id is None:
            self._id = word(chunk.get("id"))
        if self._model is None:
            self._model = word(chunk.get("model"))
        if "created" not in self._extras and chunk.get("created") and type(chunk["created"]) in (int, float):
            self._extras["created"] = chunk["created"]
        if _ENVELOPE.issuperset(chunk):
            return False
        extras = {name: value for name, value in chunk.items() if name not in _ENVELOPE}
        if not of_the_message and "prompt_filter_results" not in chunk:
            foreign = [value for name, value in extras.items() if name not in _PLAIN_CHUNK]
            if any(value not in NOTHING for value in foreign):
                return True
        if "x_groq" in extras:
            extras["x_groq"] = {name: value for name, value in _groq(chunk).items() if name not in _GROQ}
        remember(self._extras, extras)
        return False

    def _show_usage(self, out: Out) -> bool:
        """True if a message that has finished should have had it: then the chunk is passed on."""
        told = [state.show_usage(out, self._usage) for state in self._choices.values()]
        return not all(told)

    def _finish_together(self, out: Out) -> None:
        """The usage is the whole request's: while one choice goes on, it isn't the last."""
        if all(state.reason is not None for state in self._choices.values()):
            self._finish(out)

    def _finish(self, out: Out) -> None:
        for state in self._choices.values():
            if state.reason is not None and not state.finished:
                state.finish(out, self._model, self._extras)

    def _break_off(self, out: Out, error: Json) -> None:
        out += told_error("openai", error, error.get("type"), _ERROR)
        self._end()

    def _end(self) -> None:
        self._over = True
        self._choices = {}


class Choice:
    """One of the alternative replies: which of its blocks are open, and what waits for its finish."""

    def __init__(
        self, number: int, message_id: str | None, model: str | None, usage: TokenUsage | None
    ) -> None:
        self.blocks = 0
        self.writes: str | None = None  # the type of the block that prose goes to, and which that is
        self.writes_to = -1
        self.reason: str | None = None
        self.finished = False
        self._word: str | None = None
        self._number = number
        self._message_id = message_id
        self._model = model
        self._usage = usage
        self._extras: dict[str, Any] = {}
        self._lists: dict[str, dict[str, Any]] = {}
        self._open: dict[int, _Call | _Audio | None] = {}
        self._calls = _Calls()
        self._audio: _Audio | None = None
        self._citations: list[Json] = []  # of the text being written; the first `_cited` have been told
        self._cited = 0
        self._early: list[Json] = []  # what was found before the text that cites it
        self._described: dict[str, Any] = {}  # what the reasoning being written is known to be
        self._signed: int | None = None  # the index of the entry that signed it
        self._tools: dict[object, tuple[str, bool]] = {}
        self._late = False
        self._streamed = False

    # Blocks.

    def _start(self, out: Out, content: Json, state: _Call | _Audio | None = None) -> int:
        number = self.blocks
        self.blocks += 1
        self._open[number] = state
        out.append(events.BlockStart(number, content, choice=self._number))
        return number

    def _whole(self, out: Out, content: Json, data: str = "") -> None:
        """A block that comes in one piece. What is being written goes on, unless the caller ends it."""
        number = self._start(out, content)
        if data:
            out.append(events.DataDelta(number, data, choice=self._number))
        self._finish_block(out, number)

    def _change(self, out: Out, block: int, fields: Json) -> None:
        out.append(events.BlockDelta(block, fields, choice=self._number))

    def _write(self, out: Out, type: str, text: str, fields: Json | None = None) -> None:
        """A piece of prose: to the block being written if that is of this type, else to a new one."""
        if self.writes != type:
            self._begin(out, type, fields or {})
        if type == "reasoning":
            out.append(reasoning_delta(self.writes_to, text, self._number))
        else:
            out.append(text_delta(self.writes_to, text, self._number))

    def _begin(self, out: Out, type: str, fields: Json) -> None:
        self._end_prose(out)
        self.writes_to = self._start(out, {"type": type, type: "", **fields})
        self.writes = type
        if type == "text":
            self._citations = [_citation(annotation) for annotation in self._early]
            self._early = []
            self._tell_citations(out)

    def _end_prose(self, out: Out) -> None:
        if self.writes is not None:
            self._finish_block(out, self.writes_to)

    def _finish_block(self, out: Out, number: int) -> None:
        state = self._open.pop(number)
        content = None
        if isinstance(state, _Call):
            content = self._end_call(out, state)
        elif isinstance(state, _Audio):
            self._tell_transcript(out, state)
            self._audio = None
        elif number == self.writes_to and self.writes is not None:
            self._tell_citations(out)
            self.writes, self._citations, self._cited, self._described, self._signed = None, [], 0, {}, None
        out.append(events.BlockFinish(number, content, choice=self._number))

    # What a choice says, in the order in which it is read.

    def read(self, out: Out, choice: Json, path: str) -> None:
        name = "message" if choice.get("delta") is None and "message" in choice else "delta"
        path = f"{path}.{name}"
        delta = _READ.mapping(choice.get(name), path)
        if name == "delta":
            self._streamed = True
        elif self._streamed:  # it sums up what the deltas have told
            delta = {}
        if self.finished:
            self._late |= any(value not in NOTHING for field, value in delta.items() if field != "role")
            return
        self.read_reasoning(out, delta, path)
        for field, read in _FIELDS.items():
            value = delta.get(field)
            if value is not None:
                read(self, out, value, f"{path}.{field}")
        if not _DELTA.issuperset(delta):
            remember(self._extras, {name: delta[name] for name in delta if name not in _DELTA})
        if delta.get(_STEPS) is not None:
            self._append(_STEPS, delta[_STEPS])
        if not _CHOICE.issuperset(choice):
            remember(self._extras, {name: choice[name] for name in choice if name not in _CHOICE})
        for name in _APPENDED:
            if choice.get(name) is not None:
                self._append(name, choice[name])

    def read_reasoning(self, out: Out, delta: Json, path: str) -> None:
        told = False
        for field in _DETAILS:
            if delta.get(field) is not None and not told:  # a gateway may send both
                at = f"{path}.{field}"
                for place, entry in enumerate(_READ.items(delta[field], at)):
                    told |= self.read_detail(out, entry, f"{at}[{place}]", field)
        for field in _REASONING:
            text = _READ.text_of(delta, field, path)
            if text:
                if not told:  # under which name the vendor wants it back
                    self._write(out, "reasoning", text, {SENT_AS: field})
                break

    def read_detail(self, out: Out, found: object, path: str, sent_as: str = _DETAILS[0]) -> bool:
        """One entry of `reasoning_details` or `thinking_blocks`; whether it had text.

        What follows a signature is another reasoning if the entry has another `index`, of which blocks have none.
        """
        entry = _READ.mapping(found, path)
        fields = others(entry, _DETAIL)
        if sent_as != _DETAILS[0]:
            fields[SENT_AS] = sent_as
        elif word(entry.get("type")) not in (None, "reasoning.text", "reasoning.encrypted"):
            fields[PROVIDER_TYPE] = entry["type"]
        index, data = entry.get("index"), _READ.text_of(entry, "data", path)
        text = next(filter(None, (_READ.text_of(entry, name, path) for name in _SAID)), "")
        signature = _READ.text_of(entry, "signature", path)
        if data:
            self._whole(out, {**fields, "type": "reasoning", REDACTED: True, "data": data})
        if signature:
            fields["signature"] = signature
        if text:
            numbered = type(index) is int or sent_as != _DETAILS[0]
            if self._signed is not None and numbered and index != self._signed:
                self._end_prose(out)
            self._describe(out, fields)
            self._write(out, "reasoning", text, fields)
        elif signature and self.writes not in (None, "reasoning"):  # late; but it mustn't cut a text in two
            self._whole(out, {**fields, "type": "reasoning", "reasoning": ""})
        elif signature:
            self._describe(out, fields)
        if self.writes == "reasoning":
            self._described.update(fields)
            if signature:
                self._signed = index if type(index) is int else -1
        return bool(text)

    def _describe(self, out: Out, fields: dict[str, Any]) -> None:
        if self.writes != "reasoning":
            self._begin(out, "reasoning", fields)
            return
        signature = fields.get("signature")
        if signature is not None and self._described.get("signature", signature) != signature:
            self._whole(out, {**fields, "type": "reasoning", "reasoning": ""})
            fields.clear()
        new = {name: value for name, value in fields.items() if self._described.get(name) != value}
        if new:
            self._change(out, self.writes_to, new)

    def read_content(self, out: Out, content: object, path: str) -> None:
        if isinstance(content, str):
            if content:
                self._write(out, "text", content)
        elif isinstance(content, (list, tuple)):
            for place, part in enumerate(_READ.items(content, path)):
                self.read_part(out, part, f"{path}[{place}]")
        else:
            raise _READ.fail(path, "a string or a list of parts", content)

    def read_part(self, out: Out, found: object, path: str) -> None:
        """A part of a content that is a list."""
        part = {"type": "text", "text": found} if isinstance(found, str) else _READ.mapping(found, path)
        kind = word(part.get("type"))
        if kind == "text":
            text = _READ.text_of(part, "text", path)
            if text:
                self._write(out, "text", text)
            self.read_annotations(out, part.get("annotations"), f"{path}.annotations")
        elif kind in ("thinking", "reasoning"):
            self.read_thinking(out, part.get(kind, part.get("text")), f"{path}.{kind}")
            for place, entry in enumerate(_READ.items(part.get("summary"), f"{path}.summary")):
                self.read_detail(out, entry, f"{path}.summary[{place}]")
            if _READ.text_of(part, "signature", path):
                self._describe(out, {"signature": part["signature"]})
        elif kind == "refusal":
            self.read_refusal(out, part.get("refusal"), f"{path}.refusal")
        elif kind == "image_url":
            self.read_image(out, part, path)
        else:
            self._pass_on(out, part)

    def read_thinking(self, out: Out, said: object, path: str) -> None:
        for place, found in enumerate([said] if isinstance(said, str) else _READ.items(said, path)):
            at = f"{path}[{place}]"
            part = {"type": "text", "text": found} if isinstance(found, str) else _READ.mapping(found, at)
            if part.get("type") != "text":
                self._pass_on(out, part)
            elif text := _READ.text_of(part, "text", at):
                self._write(out, "reasoning", text, {SENT_AS: "thinking"})

    def _pass_on(self, out: Out, part: Json) -> None:
        """A block of a type that isn't ours. What calls itself a call here is none that we could read."""
        self._end_prose(out)
        self._whole(out, {"type": "non_standard", "value": kept(part)})

    def read_annotations(self, out: Out, found: object, path: str) -> None:
        """Citations of the text being written, or else of the next; where there is none they go to the finish."""
        for place, entry in enumerate(_READ.items(found, path)):
            annotation = _READ.mapping(entry, f"{path}[{place}]")
            if self.writes == "text":
                self._citations.append(_citation(annotation))
            else:
                self._early.append(kept(annotation))
        if due(len(self._citations), self._cited):
            self._tell_citations(out)

    def _tell_citations(self, out: Out) -> None:
        if len(self._citations) > self._cited:
            self._cited = len(self._citations)
            self._change(out, self.writes_to, {"citations": self._citations})

    def read_refusal(self, out: Out, refusal: object, path: str) -> None:
        text = _READ.text(refusal, path)
        if text:
            self._write(out, "refusal", text)

    def read_tool_calls(self, out: Out, entries: object, path: str) -> None:
        self._calls.delta += 1
        for place, entry in enumerate(_READ.items(entries, path)):
            at = f"{path}[{place}]"
            fragment = _READ.mapping(entry, at)
            index = fragment.get("index")
            whole = index is None and path.endswith(".message.tool_calls")
            if index is not None:
                index = _READ.index(index, f"{at}.index")
            self.read_fragment(out, fragment, place if whole else index, at, whole=whole)

    def plain_arguments(self, delta: dict[str, Any]) -> Event | None:
        """The event of a delta that is nothing but more arguments of an open call."""
        for name, value in delta.items():
            if value and name not in _PLAIN_ARGUMENTS:
                return None
        entries: Any = delta["tool_calls"]
        entry: Any = entries[0] if type(entries) is list and len(entries) == 1 else None
        if type(entry) is not dict or not _PLAIN_ENTRY.issuperset(entry) or entry.get("id"):
            return None
        function, index = entry.get("function"), entry.get("index")
        if (
            type(function) is not dict
            or type(index) is not int
            or entry.get("type") not in (None, "function")
        ):
            return None
        call, arguments = self._calls.newest_at(index), function.get("arguments")
        if call is None or call.custom or type(arguments) is not str or not arguments:
            return None
        if len(function) > 1 and (function.get("name") or len(function) > 2):
            return None
        call.has_arguments = True
        return tool_call_delta(call.block, arguments, self._number)

    def read_function_call(self, out: Out, function: object, path: str) -> None:
        """The way before there were `tool_calls`: one call, without an id."""
        self.read_fragment(out, {"function": function}, -1, path)

    def read_fragment(
        self, out: Out, entry: Json, index: int | None, path: str, *, whole: bool = False
    ) -> None:
        custom = entry.get("type") == "custom" or entry.get("custom") is not None
        kind, said = ("custom", "input") if custom else ("function", "arguments")
        function = _READ.mapping(entry.get(kind), f"{path}.{kind}")
        call_id, name = (
            _id(_READ.text_of(entry, "id", path)),
            _READ.text_of(function, "name", f"{path}.{kind}"),
        )
        arguments = _arguments(function.get(said), f"{path}.{kind}.{said}")
        fields = _call_fields(entry, function)
        if call_id in self._calls.ended:
            self._late = True
            return
        call = None if whole else self._calls.find(index, call_id, name)
        if call is not None:
            if call_id or name or fields:
                self._change_call(out, call, call_id, name, fields)
        elif call_id or name or arguments or fields:
            call = self._begin_call(out, index, call_id, name, fields, custom)
        if call is not None:
            call.told_in = self._calls.delta
            if arguments:
                self._add_arguments(out, call, arguments)

    def _begin_call(
        self,
        out: Out,
        index: int | None,
        call_id: str | None,
        name: str,
        fields: dict[str, Any],
        custom: bool,
    ) -> _Call:
        self._end_prose(out)
        call = _Call(self.blocks, call_id, name, fields, custom)
        self._calls.add(call, index)
        known: dict[str, Any] = call_identity(call_id, self._made_up_id())
        self._start(
            out, {**fields, "type": "tool_call_chunk", "name": name or None, "args": "", **known}, call
        )
        if custom:
            out.append(tool_call_delta(call.block, '{"input": "', self._number))
        return call

    def _made_up_id(self) -> str:
        return f"{self._message_id or 'call'}-{self._number}-{self.blocks}"

    def _change_call(
        self, out: Out, call: _Call, call_id: str | None, name: str, fields: dict[str, Any]
    ) -> None:
        new = {field: value for field, value in fields.items() if call.fields.get(field) != value}
        call.fields.update(new)
        if call_id is not None and call.call_id is None:
            self._calls.identify(call, call_id)
            new |= {"id": call_id, SYNTHETIC_ID: False}
        if name and name != call.name and not (call.name and call.has_arguments):
            call.name += name
            new["name"] = call.name
        if new:
            self._change(out, call.block, new)

    def _add_arguments(self, out: Out, call: _Call, arguments: str | Json) -> None:
        if not isinstance(arguments, str):
            call.has_arguments, call.custom = True, False
            self._change(out, call.block, {"args": arguments})
        else:
            call.has_arguments = True
            # A free-form text becomes a JSON string on its way, a piece at a time.
            text = json.dumps(arguments, ensure_ascii=False)[1:-1] if call.custom else arguments
            out.append(tool_call_delta(call.block, text, self._number))

    def _end_call(self, out: Out, call: _Call) -> Json | None:
        """What its finish says of a call. One that was cut off must not look as if it could be run."""
        wrong = _CUT.get(self._word or "") or _CUT.get(self.reason or "")
        wrong = wrong or (None if call.name.strip() else "the call has no name")
        if wrong is not None:
            return {"type": "invalid_tool_call", "error": wrong}
        if call.custom:
            out.append(tool_call_delta(call.block, '"}', self._number))
        return None

    def read_executed_tools(self, out: Out, entries: object, path: str) -> None:
        """Tools that the provider ran itself, each whole, and again with its output."""
        for place, found in enumerate(_READ.items(entries, path)):
            entry = _READ.mapping(found, f"{path}[{place}]")
            index = entry.get("index")
            key = (
                index
                if type(index) is int
                else word(entry.get("id")) or word(entry.get("arguments")) or place
            )
            fields = others(entry, _EXECUTED)
            name = word(entry.get("name")) or word(entry.get("type"))
            if key not in self._tools and name is None:
                self._pass_on(out, entry)
                continue
            if key not in self._tools:
                self._end_prose(out)
                call_id = _id(word(entry.get("id")) or "") or self._made_up_id()
                self._tools[key] = call_id, False
                call = {"id": call_id, "name": name, "args": freeze(entry.get("arguments"), lenient=True)}
                self._whole(out, {**fields, "type": "server_tool_call", **call})
            call_id, has_output = self._tools[key]
            if entry.get("output") is not None and not has_output:
                self._end_prose(out)
                self._tools[key] = call_id, True
                result = {"tool_call_id": call_id, "output": freeze(entry["output"], lenient=True)}
                self._whole(out, {**fields, "type": "server_tool_result", **result})

    def read_images(self, out: Out, entries: object, path: str) -> None:
        for place, entry in enumerate(_READ.items(entries, path)):
            self.read_image(out, _READ.mapping(entry, f"{path}[{place}]"), f"{path}[{place}]")

    def read_image(self, out: Out, entry: Json, path: str) -> None:
        found, at = entry.get("image_url"), f"{path}.image_url"
        source: Json = {"url": found} if isinstance(found, str) else _READ.mapping(found, at)
        url = _READ.text_of(source, "url", at)
        fields = others(entry, _IMAGE) | others(source, _URL)
        head, comma, data = url.partition(",")
        self._end_prose(out)
        if not url:
            self._pass_on(out, entry)
        elif comma and head.startswith("data:") and head.endswith(";base64"):
            mime_type = head[len("data:") : -len(";base64")].partition(";")[0]
            self._whole(out, {**fields, "type": "image", "mime_type": mime_type or None}, data)
        else:
            self._whole(out, {**fields, "type": "image", "url": url})

    def read_audio(self, out: Out, found: object, path: str) -> None:
        entry = _READ.mapping(found, path)
        fields = others(entry, _AUDIO)
        data, transcript = _READ.text_of(entry, "data", path), _READ.text_of(entry, "transcript", path)
        if not (fields or data or transcript):
            return
        audio = self._audio
        if audio is None:
            self._end_prose(out)
            audio = self._audio = _Audio(self.blocks, fields)
            self._start(out, {**fields, "type": "audio"}, audio)
        elif new := {name: value for name, value in fields.items() if audio.fields.get(name) != value}:
            audio.fields.update(new)
            self._change(out, audio.block, new)
        if data:
            out.append(events.DataDelta(audio.block, data, choice=self._number))
        if transcript:
            audio.transcript.append(transcript)
            audio.length += len(transcript)
            if due(audio.length, audio.told):
                self._tell_transcript(out, audio)

    def _tell_transcript(self, out: Out, audio: _Audio) -> None:
        if audio.length > audio.told:
            audio.told = audio.length
            audio.transcript = ["".join(audio.transcript)]
            self._change(out, audio.block, {"transcript": audio.transcript[0]})

    def _append(self, name: str, found: Any) -> None:
        """A list that goes on with every chunk, or an object of such lists: `logprobs.content`."""
        found = freeze(found, lenient=True)
        known = self._lists.setdefault(name, {})
        for key, items in (found if isinstance(found, Mapping) else {"": found}).items():
            if items not in NOTHING:
                known.setdefault(key, []).extend(items if isinstance(items, (list, tuple)) else [items])

    # The end.

    def read_finish_reason(self, out: Out, choice: Json, path: str) -> None:
        """The first one ends what has come. Neither null nor another that follows takes it back."""
        said = _READ.text_of(choice, "finish_reason", path)
        if not said or self.reason is not None:
            self._late |= said not in ("", self._word)
            return
        self._word, self.reason = said, _REASONS.get(said.lower(), "stop")
        self._end_blocks(out, {call.block for call in self._calls.end()})

    def _end_blocks(self, out: Out, but: Set[int] = frozenset()) -> None:
        for number in list(self._open):
            if number not in but:
                self._finish_block(out, number)

    def show_usage(self, out: Out, usage: TokenUsage | None) -> bool:
        """Tell the request's usage where it is news. False if it came too late for that."""
        if usage is self._usage or usage is None:
            return True
        self._usage = usage
        if not self.finished:
            out.append(events.UsageUpdate(usage, choice=self._number))
        return not self.finished

    def was_late(self) -> bool:
        """Whether the chunk contradicts an end, of a call or of the message: it is passed on, not lost."""
        late, self._late = self._late, False
        return late

    def finish(self, out: Out, model: str | None, extras: Json) -> None:
        self._end_blocks(out)
        self.finished = True
        reason = self.reason
        if reason in ("stop", "tool_use"):  # the calls decide, as some vendors say one and mean the other
            reason = "tool_use" if self._calls.ever else "stop"
        late = {} if model == self._model else {"model": model}
        if self._early:
            self._append("annotations", self._early)
        lists = {
            name: known[""] if [*known] == [""] else known for name, known in self._lists.items() if known
        }
        metadata = {**late, **extras, **self._extras, **lists}
        out.append(events.MessageFinish(reason, self._word, self._usage, metadata, choice=self._number))


class _Call:
    """What must be known of an open call to tell its fragments from another's."""

    __slots__ = ("block", "call_id", "custom", "fields", "has_arguments", "name", "told_in")

    def __init__(
        self, block: int, call_id: str | None, name: str, fields: dict[str, Any], custom: bool
    ) -> None:
        self.block = block
        self.call_id = call_id
        self.name = name
        self.fields = fields
        self.custom = custom
        self.has_arguments = False
        self.told_in = -1  # the newest delta that spoke of it


class _Calls:
    """The open calls of one choice, and which of them a fragment means."""

    __slots__ = ("_at", "_known", "_left", "_newest", "delta", "ended", "ever")

    def __init__(self) -> None:
        self.ever = False
        self.delta = 0  # the number of the one being read
        self.ended: set[str | None] = set()
        self._at: dict[int | None, _Call] = {}  # the newest at each index
        self._known: dict[tuple[int | None, str], _Call] = {}
        self._left: set[int | None] = set()  # the indexes of those that have ended
        self._newest: _Call | None = None

    def find(self, index: int | None, call_id: str | None, name: str) -> _Call | None:
        """The call that a fragment continues; `None` if it begins one."""
        newest = self._newest if index is None else self._at.get(index)
        if call_id is not None:
            known = self._known.get((index, call_id))
            if known is not None:
                return known
            known = self._known.get((None, call_id))
            if known is not None and self._continues(known, index, name, new_index=newest is None):
                self._at.setdefault(index, known)
                return known
            if index is None or newest is None or newest.call_id is not None:
                return None
        elif newest is None and not name:
            return None if index in self._left else self._newest
        return newest if newest is not None and self._continues(newest, index, name) else None

    def _continues(self, call: _Call, index: int | None, name: str, *, new_index: bool = False) -> bool:
        """Whether the name that a fragment has, if any, can be more of this call's."""
        if not name:
            return True
        if new_index and (call.name != name or call.has_arguments or call.told_in == self.delta):
            return False
        if call.name not in ("", name):
            return not call.has_arguments
        # No delta has two pieces of one call: what is named again in it is another, as Mistral's once were.
        again = call.told_in == self.delta and call.name == name
        return not (again and (call.has_arguments or index is None))

    def newest_at(self, index: int) -> _Call | None:
        return self._at.get(index)

    def add(self, call: _Call, index: int | None) -> None:
        self.ever = True
        self._newest = self._at[index] = call
        if call.call_id is not None:
            self._known[index, call.call_id] = self._known[None, call.call_id] = call

    def identify(self, call: _Call, call_id: str) -> None:
        """The id of a call that began without one has come."""
        call.call_id = call_id
        for index, newest in self._at.items():
            if newest is call:
                self._known[index, call_id] = call
        self._known[None, call_id] = call

    def end(self) -> Sequence[_Call]:
        """End those that have arguments. The others stay open: theirs may come behind the finish reason."""
        self.ended.update(call_id for (_, call_id), call in self._known.items() if call.has_arguments)
        self._known = {key: call for key, call in self._known.items() if not call.has_arguments}
        self._left.update(index for index, call in self._at.items() if call.has_arguments)
        self._at = {index: call for index, call in self._at.items() if not call.has_arguments}
        bare = sorted({*self._known.values(), *self._at.values()}, key=lambda call: call.block)
        self._newest = bare[-1] if bare else None
        return bare


class _Audio:
    __slots__ = ("block", "fields", "length", "told", "transcript")

    def __init__(self, block: int, fields: dict[str, Any]) -> None:
        self.block = block
        self.fields = fields
        self.transcript: list[str] = []  # the protocol has no delta for it, only the whole again
        self.length = self.told = 0


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
        True
        >>> recognises({"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]})
        False
    """
    choices, kind = chunk.get("choices"), chunk.get("object")
    if isinstance(choices, (list, tuple)) and choices:
        first: Any = choices[0]
        said = (first.get("delta"), first.get("message")) if isinstance(first, Mapping) else ()
        return any(isinstance(delta, Mapping) for delta in said)
    if kind in ("chat.completion.chunk", *_LAST_OBJECTS):
        return True
    if isinstance(choices, (list, tuple)):
        return "prompt_filter_results" in chunk and kind in NOTHING
    return "type" not in chunk and isinstance(chunk.get("error"), Mapping) and bool(chunk["error"])


def _id(value: str) -> str | None:
    """An id, unless it says in any of the known ways that there is none."""
    found: str | None = real_id(value.strip())
    return None if found is None else value


def _arguments(value: object, path: str) -> str | Json | None:
    """A call's arguments: text, or from some gateways the object itself."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, Mapping):
        value = freeze(value, lenient=True)
    if value is None or isinstance(value, (str, Mapping)):
        return value
    raise _READ.fail(path, "a string or an object", value)


def _groq(chunk: Json) -> Json:
    found = chunk.get("x_groq")
    return found if found is not None and isinstance(found, Mapping) else {}


def _citation(annotation: Json) -> Json:
    kind = annotation.get("type")
    inner = annotation.get(kind) if isinstance(kind, str) else None
    said: Json = inner if isinstance(inner, Mapping) else annotation
    found = {name: said.get(name) for name in ("title", "url", "start_index", "end_index")}
    found["cited_text"] = said.get("cited_text", said.get("content"))
    return kept({name: value for name, value in found.items() if value is not None} | {"raw": annotation})


def _call_fields(entry: Json, function: Json) -> dict[str, Any]:
    """What a call has beyond the format, such as Gemini's `extra_content` with the thought's signature."""
    fields = others(entry, _FRAGMENT)
    fields |= others(function, _FUNCTION)
    if word(entry.get("type")) not in (None, "function"):
        fields[PROVIDER_TYPE] = entry["type"]
    return fields


def _error_of(chunk: Json) -> Json | None:
    """The error that a chunk reports, if it does. vLLM's is the chunk itself, Groq's once was in `x_groq`."""
    return _error_in(chunk) or _error_in(_groq(chunk)) or (chunk if chunk.get("object") == "error" else None)


def _error_in(source: object) -> Json | None:
    """What an object has as its `error`. OpenRouter's choices may have one."""
    error = source.get("error") if isinstance(source, Mapping) else None
    if not error:
        return None
    if isinstance(error, Mapping):
        return error
    return {"message": error} if isinstance(error, str) else {"error": error}


def _says_nothing(choice: Json) -> bool:
    delta = choice.get("delta")
    fields = delta.items() if isinstance(delta, Mapping) else ()
    said = [*fields, *choice.items()]
    return all(value in NOTHING for name, value in said if name not in ("role", "delta", "index"))


_FIELDS: Mapping[str, Callable[[Choice, Out, Any, str], None]] = {
    "content": Choice.read_content,
    "annotations": Choice.read_annotations,
    "refusal": Choice.read_refusal,
    "tool_calls": Choice.read_tool_calls,
    "function_call": Choice.read_function_call,
    "executed_tools": Choice.read_executed_tools,
    "images": Choice.read_images,
    "audio": Choice.read_audio,
}
"""What a delta says after its reasoning, in the order in which it is read."""

_WORDS = {
    "stop": "stop eos eos_token stop_sequence end_turn completed complete",
    "tool_use": "tool_calls tool_call tool_use function_call",
    "length": "length max_tokens model_length max_output_tokens max_length",
    "content_filter": "content_filter content_filtered safety recitation blocklist prohibited_content spii"
    " sensitive guardrail_intervened",
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_CUT: Mapping[str, str] = {
    "length": "cut off by the token limit",
    "error": "broken off by an error",
    "network_error": "broken off by an error",
    "abort": "broken off by the provider",
    "insufficient_system_resource": "broken off by the provider",
}
_LAST_OBJECTS = ("chat.completion", "chat.completion.done")
_APPENDED = ("logprobs", "token_ids")
_REASONING = ("reasoning_content", "reasoning")
_SAID = ("text", "summary", "thinking")
_STEPS = "reasoning_steps"

# What is read, or is nothing: ids of single tokens, padding against eavesdroppers, a copy of the text.
_ENVELOPE = frozenset(
    ["id", "model", "created", "object", "choices", "usage", "error", "obfuscation", "p", "_event"]
)
_GROQ = frozenset(["usage", "error"])
_CHOICE = frozenset(["index", "delta", "message", "finish_reason", "text", "error", *_APPENDED])
_DELTA = frozenset(["role", "reasoning_content", "reasoning", "token_id", _STEPS, *_DETAILS, *_FIELDS])
_FRAGMENT = frozenset(["index", "id", "type", "function", "custom"])
_FUNCTION = frozenset(["name", "arguments", "input"])
_DETAIL = frozenset(["type", "data", "signature", "index", *_SAID])
_EXECUTED = frozenset(["index", "id", "type", "name", "arguments", "output"])
_IMAGE = frozenset(["type", "index", "image_url"])
_URL = frozenset(["url", "type"])
_AUDIO = frozenset(["data", "transcript", "type", "index"])
_ERROR = frozenset(["message", "type", "code", "object", "param"])

# A chunk of no more than these is a piece of text. What is the same in all is read from the others.
_PLAIN_CHUNK = (_ENVELOPE - {"error"}) | {"system_fingerprint", "service_tier", "provider"}
_PLAIN_CHOICE = frozenset(["index", "delta", "finish_reason", "logprobs", "native_finish_reason"])
_PLAIN_DELTA = frozenset(["role", "content"])
_PLAIN_ARGUMENTS = frozenset(["role", "tool_calls"])
_PLAIN_ENTRY = frozenset(["index", "id", "type", "function"])
