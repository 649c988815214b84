"""Gemini's generateContent, streamed or whole, as AI Studio and Vertex AI send it.

    stream    = response*        no response says that it is the last
    response  = candidates: [candidate*]? usageMetadata? promptFeedback? modelVersion? responseId? extras
    candidate = index? content: {role? parts: [part*]?}? finishReason? citationMetadata? extras
    part      = thoughtSignature? thought? extras
                (text | functionCall | executableCode | codeExecutionResult | toolCall | toolResponse
                | inlineData | fileData)?
    call      = (name args? | name willContinue fragment*) id?
    fragment  = partialArgs: [{jsonPath, a value, willContinue?}*]? willContinue?      without a name

A response is a whole one each time, with the new parts only. Nothing says where a text begins or ends, so blocks
are numbered as they appear, each candidate for itself. A text, a thought (a text with `thought`) or an audio
goes on until something else begins; anything else comes whole, but for a call whose arguments are streamed.
An absent `index` is 0.

**The end** is the end of input: older models and proxies say `STOP` with every response, and text follows it.
So a `finishReason` ends calls, which must not wait, and the message is finished by `close()`. `STOP` is said
with calls too. A prompt that was refused has no candidate, but a `promptFeedback.blockReason`: that is a whole
reply, if an empty one. An error is an object of its own.

**Usage** is a running total that comes with every response, each of its figures for itself: the newest that is
there counts, up or down, and one with nothing but a `trafficType` takes back none.

**Arguments** come whole, or value by value with their paths, a string in pieces. They come in the order of the
JSON text that they are taken from, so that this text is told as it grows. What breaks the order is told whole.
`functionCall: {}` ends the call, unless a fragment without `willContinue` did; if neither comes, another call
or the finish reason does.

**Signatures** hang on any part, often on an empty text behind what they sign. They have to be sent back, so the
block keeps it in whose text it comes, or that was being written; else it makes an empty one.

What goes beyond it, because of what is really sent: the SDK's objects and their dumps in snake case, with bytes
and enums; enums as integers; a list of responses, which is how the API streams without `alt=sse`.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import datetime as dt
import enum
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    ByChoice,
    Event,
    LimitExceededError,
    TokenUsage,
    events,
    freeze,
    real_id,
    reasoning_delta,
    text_delta,
    thaw,
    tool_call_delta,
)
from rxdelta.formats.base64_pieces import Base64Pieces
from rxdelta.formats.decoding import (
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
from rxdelta.formats.notes import PROVIDER_TYPE, SYNTHETIC_ID, call_identity

__all__ = ["GeminiDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]
Step: TypeAlias = str | int

_READ = Fields("gemini")


class GeminiDecoder:
    """Responses of one stream in, events out. A block's `index` is its place in its candidate.

    Example:
        >>> decoder = GeminiDecoder()
        >>> candidate = {"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP"}
        >>> [event.event for event in decoder.decode({"candidates": [candidate], "responseId": "r1"})]
        ['message-start', 'content-block-start', 'content-block-delta']
        >>> [event.event for event in decoder.close()]
        ['content-block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._extras: dict[str, Any] = {}
        self._figures: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._told_usage: TokenUsage | None = None
        self._usage_sent: object = None  # as it came last
        self._blocked = False
        self._candidates: dict[int, _Candidate] = ByChoice()
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, the SDK's `GenerateContentResponse`, or a list of them.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A candidate's index is absurd, or a value of arguments lies absurdly deep.

        Example:
            >>> GeminiDecoder().decode({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
            [StreamError(message='Overloaded', type='UNAVAILABLE', code='503', choice=0)]
        """
        event = None if self._out else self._plain(chunk)
        if event is not None:
            return (event,)
        for response in chunk if isinstance(chunk, (list, tuple)) else (chunk,):
            self._read(_wire_form(response))
        out, self._out = self._out, []
        return out

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each candidate that has a finish reason. One without was cut off."""
        out, self._out = self._out, []
        self._finish(out)
        self._end()
        return out

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more text, or more of a thought."""
        if type(chunk) is not dict or not _PLAIN.issuperset(chunk):
            return None
        if chunk.get("usageMetadata") != self._usage_sent or chunk.get("responseId") != self._id:
            return None
        found: Any = chunk.get("candidates")
        candidate: Any = found[0] if type(found) is list and len(found) == 1 else None
        if type(candidate) is not dict or not _PLAIN_CANDIDATE.issuperset(candidate):
            return None
        content, index = candidate.get("content"), candidate.get("index", 0)
        parts: Any = content.get("parts") if type(content) is dict else None
        part: Any = parts[0] if type(parts) is list and len(parts) == 1 else None
        state = self._candidates.get(index) if type(index) is int else None
        if state is None or type(part) is not dict or not _PLAIN_PART.issuperset(part):
            return None
        text = part.get("text")
        if type(text) is not str or not text:
            return None
        if part.get("thought") is True:
            return reasoning_delta(state.writes_to, text, index) if state.writes == "reasoning" else None
        return text_delta(state.writes_to, text, index) if state.writes == "text" else None

    def _read(self, chunk: Json) -> None:
        if self._over:
            return
        out = self._out
        error = _error_of(chunk)
        if error is None and all(chunk.get(name) is None for name in _ENVELOPE):
            out.append(events.ProviderEvent("google", "chunk", kept(chunk)))
            return
        found = _READ.items(chunk.get("candidates"), "candidates")
        self._read_envelope(chunk)
        if not found and not self._candidates and error is None:
            self._candidate(out, 0)
        for place, candidate in enumerate(found):
            path = f"candidates[{place}]" if place else "candidates[0]"
            fields = _READ.mapping(candidate, path)
            index = fields.get("index")
            number = 0 if index is None else _READ.index(index, f"{path}.index")
            self._candidate(out, number).read(out, fields, path)
        if self._usage is not self._told_usage:
            self._told_usage = self._usage
            for state in self._candidates.values():
                state.show_usage(out, self._usage)
        if error is not None:
            self._finish(out, broken_off=True)
            self._break_off(out, error)

    def _candidate(self, out: Out, number: int) -> _Candidate:
        state = self._candidates.get(number)
        if state is None:
            state = self._candidates[number] = _Candidate(number, self._id, self._model, self._usage)
            out.append(events.MessageStart(self._id, self._model, self._usage, self._extras, choice=number))
        return state

    def _read_envelope(self, chunk: Json) -> None:
        """Take what is said of the whole reply."""
        self._id = self._id or word(chunk.get("responseId"))
        self._model = self._model or word(chunk.get("modelVersion"))
        if "createTime" not in self._extras and word(chunk.get("createTime")):
            self._extras["createTime"] = chunk["createTime"]
        usage = chunk.get("usageMetadata")
        if usage != self._usage_sent:
            self._read_usage(_READ.mapping(usage, "usageMetadata"))
            self._usage_sent = usage
        feedback = _READ.mapping(chunk.get("promptFeedback"), "promptFeedback")
        self._blocked |= feedback.get("blockReason") not in _UNSPECIFIED
        if not _READ_HERE.issuperset(chunk):
            remember(self._extras, _told(chunk, _READ_HERE))

    def _read_usage(self, usage: Json) -> None:
        before = dict(self._figures)
        remember(self._figures, usage)
        if self._figures != before:
            figures = self._figures
            self._usage = usage_of(
                figures, figures.get("promptTokenCount"), figures.get("candidatesTokenCount")
            )

    def _finish(self, out: Out, *, broken_off: bool = False) -> None:
        for state in self._candidates.values():
            if state.word is None and not self._blocked:
                state.cut_off(out)
            else:
                state.finish(out, self._id, self._model, self._extras, broken_off=broken_off)

    def _break_off(self, out: Out, error: Json) -> None:
        out += told_error("google", error, error.get("status"), _ERROR)
        self._end()

    def _end(self) -> None:
        self._over = True
        self._candidates = {}


class _Candidate:
    """One of the alternative replies: what is being written, and which call's arguments go on."""

    def __init__(
        self, number: int, response_id: str | None, model: str | None, usage: TokenUsage | None
    ) -> None:
        self.blocks = 0
        self.writes: str | None = None  # "text", "reasoning" or "audio", and the block that it goes to
        self.writes_to = -1
        self.word: str | None = None
        self._number = number
        self._response_id = response_id
        self._model = model
        self._usage = usage
        self._extras: dict[str, Any] = {}
        self._lists: dict[str, dict[str, Any]] = {}
        self._described: dict[str, Any] = {}  # what is known of the block being written
        self._citations: list[Json] = []  # of the text being written; the first `_cited` have been told
        self._cited = 0
        self._audio = Base64Pieces()
        self._call: _Call | None = None
        self._call_goes_on = False  # by the word of this very chunk
        self._has_calls = False
        self._running: dict[
            str, str
        ] = {}  # the newest of the provider's own calls of a kind, until its result

    # Blocks.

    def _start(self, out: Out, content: Json) -> int:
        number = self.blocks
        self.blocks += 1
        out.append(events.BlockStart(number, content, choice=self._number))
        return number

    def _whole(self, out: Out, content: Json, data: str = "") -> None:
        """A block that comes in one piece."""
        self._end_writing(out)
        number = self._start(out, content)
        if data:
            out.append(events.DataDelta(number, data, choice=self._number))
        out.append(events.BlockFinish(number, choice=self._number))

    def _change(self, out: Out, block: int, fields: Json) -> None:
        out.append(events.BlockDelta(block, fields, choice=self._number))

    def _begin(self, out: Out, type: str, content: Json, fields: Json) -> None:
        self._end_writing(out)
        self.writes_to = self._start(out, {**fields, "type": type, **content})
        self.writes, self._described = type, {**fields}

    def _describe(self, out: Out, fields: Json) -> None:
        new = {name: value for name, value in fields.items() if self._described.get(name) != value}
        if new:
            self._described.update(new)
            self._change(out, self.writes_to, new)

    def _signed_otherwise(self, fields: Json) -> bool:
        """Whether the block being written has another signature: then both are needed, each on its own."""
        before, now = self._described.get("signature"), fields.get("signature")
        return before is not None and now is not None and before != now

    def _end_writing(self, out: Out) -> None:
        if self.writes is None:
            return
        rest = self._audio.rest()
        if rest:
            out.append(events.DataDelta(self.writes_to, rest, choice=self._number))
        self._tell_citations(out)
        out.append(events.BlockFinish(self.writes_to, choice=self._number))
        self.writes, self._described, self._citations, self._cited = None, {}, [], 0

    def _made_up_id(self) -> str:
        return f"{self._response_id or 'call'}-{self._number}-{self.blocks}"

    # What a candidate says, in the order in which it is read.

    def read(self, out: Out, candidate: Json, path: str) -> None:
        content = _READ.mapping(candidate.get("content"), f"{path}.content")
        self._call_goes_on = False
        for place, part in enumerate(_READ.items(content.get("parts"), f"{path}.content.parts")):
            at = f"{path}.content.parts[{place}]"
            self.read_part(out, _READ.mapping(part, at), at)
        self.read_citations(out, candidate.get("citationMetadata"), f"{path}.citationMetadata")
        if not _CONTENT.issuperset(content):
            remember(self._extras, others(content, _CONTENT))
        if not _CANDIDATE.issuperset(candidate):
            remember(self._extras, _told(candidate, _CANDIDATE))
        if candidate.get("logprobsResult") is not None:
            self._append(
                "logprobsResult", _READ.mapping(candidate["logprobsResult"], f"{path}.logprobsResult")
            )
        self.read_finish_reason(out, candidate.get("finishReason"), f"{path}.finishReason")

    def read_part(self, out: Out, part: Json, path: str) -> None:
        fields = others(part, _PART)
        signature = _READ.text_of(part, "thoughtSignature", path)
        if signature:
            fields["signature"] = signature
        thought = part.get("thought") is True
        kinds = [name for name in _PARTS if part.get(name) is not None]
        if thought and kinds and kinds != ["text"]:
            fields["thought"] = True  # of an image or a call: it was made while thinking
        for name in kinds:
            if name == "text":
                text = _READ.text(part["text"], f"{path}.text")
                self.read_text(out, "reasoning" if thought else "text", text, fields)
            else:
                at = f"{path}.{name}"
                _PARTS[name](self, out, _READ.mapping(part[name], at), fields, at)
        if not kinds and fields.keys() <= {"signature"}:
            self.read_text(out, "reasoning" if thought else "text", "", fields)
        elif not kinds:
            self._whole(out, {"type": "non_standard", "value": kept(part)})

    def read_text(self, out: Out, type: str, text: str, fields: Json) -> None:
        if not text:
            self._sign(out, type, fields)
            return
        if self.writes != type or self._signed_otherwise(fields):
            self._begin(out, type, {type: ""}, fields)
        elif fields:
            self._describe(out, fields)
        delta = reasoning_delta if type == "reasoning" else text_delta
        out.append(delta(self.writes_to, text, self._number))

    def _sign(self, out: Out, type: str, fields: Json) -> None:
        """An empty part makes no block, but what it says of the text before it must not be lost."""
        if not fields:
            return
        before = self.writes == type or (self.writes is not None and type == "text")
        if before and not self._signed_otherwise(fields):
            self._describe(out, fields)
        else:
            self._whole(out, {**fields, "type": type, type: ""})

    def read_inline_data(self, out: Out, blob: Json, fields: Json, path: str) -> None:
        mime_type, data = _READ.text_of(blob, "mimeType", path), _READ.text_of(blob, "data", path)
        kind = _media(mime_type)
        fields = {**fields, **others(blob, _BLOB)} | ({"mime_type": mime_type} if mime_type else {})
        if kind != "audio":
            self._whole(out, {**fields, "type": kind}, data)
            return
        # Speech comes in pieces, of which nothing says that they are one.
        same = self.writes == "audio" and self._described.get("mime_type") == (mime_type or None)
        if not same or self._signed_otherwise(fields):
            self._begin(out, "audio", {}, fields)
        else:
            self._describe(out, fields)
        piece = self._audio.add(data)
        if piece:
            out.append(events.DataDelta(self.writes_to, piece, choice=self._number))

    def read_file_data(self, out: Out, file: Json, fields: Json, path: str) -> None:
        mime_type, url = _READ.text_of(file, "mimeType", path), _READ.text_of(file, "fileUri", path)
        known = {"mime_type": mime_type or None, "url": url or None}
        self._whole(out, {**fields, **others(file, _FILE), "type": _media(mime_type), **known})

    # Calls.

    def read_function_call(self, out: Out, found: Json, fields: Json, path: str) -> None:
        name, call_id = _READ.text_of(found, "name", path), _id(_READ.text_of(found, "id", path))
        args = None if found.get("args") is None else _READ.mapping(found["args"], f"{path}.args")
        pieces = _READ.items(found.get("partialArgs"), f"{path}.partialArgs")
        goes_on = found.get("willContinue") is True
        fields = {**fields, **others(found, _CALL)}
        call = self._call
        if call is not None and call.goes_on_with(name, call_id):
            if fields or (call_id and call.call_id is None):
                self._change_call(out, call, call_id, fields)
        elif name or call_id or args is not None or pieces or goes_on:
            call = self._begin_call(out, name, call_id, args, fields, streamed=goes_on or bool(pieces))
            args = None
        else:  # the end of a call that has ended
            self._sign(out, "text", fields)
            return
        if call is None:
            return
        if args:
            call.arguments.take(args)
        for place, piece in enumerate(pieces):
            at = f"{path}.partialArgs[{place}]"
            self._add_argument(out, call, _READ.mapping(piece, at), at)
        self._call_goes_on = goes_on
        if not goes_on:
            self._end_call(out)

    def _begin_call(
        self, out: Out, name: str, call_id: str | None, args: Json | None, fields: Json, *, streamed: bool
    ) -> _Call | None:
        """The open call, if its arguments are still to come."""
        self._end_writing(out)
        self._end_call(out)
        self._has_calls = True
        known: dict[str, Any] = call_identity(call_id, self._made_up_id())
        if not streamed or args:
            known["args"] = freeze(args or {}, "args", lenient=True)
        number = self._start(
            out, {**fields, "type": "tool_call_chunk", "name": name or None, "args": "", **known}
        )
        if not streamed:
            out.append(events.BlockFinish(number, choice=self._number))
            return None
        self._call = _Call(number, call_id, name)
        if args:
            self._call.arguments.take(args)
        return self._call

    def _change_call(self, out: Out, call: _Call, call_id: str | None, fields: Json) -> None:
        new = dict(fields)
        if call_id is not None and call.call_id is None:
            call.call_id = call_id
            new |= {"id": call_id, SYNTHETIC_ID: False}
        self._change(out, call.block, new)

    def _add_argument(self, out: Out, call: _Call, piece: Json, path: str) -> None:
        said = [name for name in _VALUES if piece.get(name) is not None]
        if not said and piece.keys() - {"jsonPath", "willContinue"} != {"nullValue"}:
            return
        json_path = _READ.text_of(piece, "jsonPath", path)
        steps = _steps(json_path)
        if steps is None:
            raise _READ.fail(f"{path}.jsonPath", "a path from $ to a value in an object", json_path)
        value = None
        if said and said[0] != "nullValue":
            value = _VALUES[said[0]](piece[said[0]], f"{path}.{said[0]}")
        text = call.arguments.add(steps, value, goes_on=piece.get("willContinue") is True)
        if text:
            out.append(tool_call_delta(call.block, text, self._number))
        elif text is None and call.arguments.is_due():
            self._change(out, call.block, {"args": call.arguments.whole()})

    def _end_call(self, out: Out, cut: str | None = None) -> None:
        call, self._call = self._call, None
        if call is None:
            return
        content = None
        if cut is not None:  # it must not look as if it could be run
            content = {"type": "invalid_tool_call", "error": cut}
        elif call.arguments.in_order:
            text = call.arguments.rest()
            if text:
                out.append(tool_call_delta(call.block, text, self._number))
        else:
            self._change(out, call.block, {"args": call.arguments.whole()})
        out.append(events.BlockFinish(call.block, content, choice=self._number))

    def read_executable_code(self, out: Out, code: Json, fields: Json, path: str) -> None:
        call = {"name": "code_execution", "args": others(code, _ID)}
        self._server_call(out, "executableCode", code, call, fields, path)

    def read_tool_call(self, out: Out, found: Json, fields: Json, path: str) -> None:
        kind = found.get("toolType")
        args = _READ.mapping(found.get("args"), f"{path}.args")
        call = {**others(found, _TOOL_CALL), "name": word(kind) or str(kind or "tool"), "args": kept(args)}
        self._server_call(out, "toolCall", found, call, fields, path)

    def _server_call(self, out: Out, kind: str, found: Json, call: Json, fields: Json, path: str) -> None:
        """A call of a tool that the provider runs itself."""
        call_id = _id(_READ.text_of(found, "id", path))
        known: dict[str, Any] = call_identity(call_id, self._made_up_id())
        self._running[kind] = known["id"]
        own = {"type": "server_tool_call", PROVIDER_TYPE: kind}
        self._whole(out, {**fields, **call, **known, **own})

    def read_code_result(self, out: Out, result: Json, fields: Json, path: str) -> None:
        status = None
        if result.get("outcome") not in _UNSPECIFIED:
            status = "success" if result["outcome"] in ("OUTCOME_OK", 1) else "error"
        own = {PROVIDER_TYPE: "codeExecutionResult", "output": others(result, _ID), "status": status}
        self._server_result(out, "executableCode", result, {**fields, **own}, path)

    def read_tool_response(self, out: Out, response: Json, fields: Json, path: str) -> None:
        output = freeze(response.get("response"), lenient=True)
        own = {**others(response, _TOOL_RESPONSE), PROVIDER_TYPE: "toolResponse", "output": output}
        self._server_result(out, "toolCall", response, {**fields, **own}, path)

    def _server_result(self, out: Out, kind: str, found: Json, content: Json, path: str) -> None:
        call_id = _id(_READ.text_of(found, "id", path)) or self._running.get(kind)
        self._running.pop(kind, None)
        self._whole(out, {**content, "type": "server_tool_result", "tool_call_id": call_id})

    # Sources.

    def read_citations(self, out: Out, found: object, path: str) -> None:
        metadata = _READ.mapping(found, path)
        for name in ("citations", "citationSources"):
            for place, entry in enumerate(_READ.items(metadata.get(name), f"{path}.{name}")):
                citation = _READ.mapping(entry, f"{path}.{name}[{place}]")
                if self.writes == "text":
                    self._citations.append(_citation(citation))
                else:
                    self._append("citationMetadata", {"citations": [citation]})
        if due(len(self._citations), self._cited):
            self._tell_citations(out)

    def _tell_citations(self, out: Out) -> None:
        if len(self._citations) > self._cited:
            self._cited = len(self._citations)
            self._change(out, self.writes_to, {"citations": self._citations})

    def _append(self, name: str, found: Json) -> None:
        """An object of lists that go on with every chunk; of anything else in it the newest counts."""
        known = self._lists.setdefault(name, {})
        for key, items in kept(found).items():
            if isinstance(items, (list, tuple)):
                before = known.get(key)
                known[key] = [*(before if isinstance(before, list) else ()), *items]
            elif items is not None:
                known[key] = items

    # The end.

    def read_finish_reason(self, out: Out, said: object, path: str) -> None:
        """The newest counts, as a reason of every chunk is none, until the last."""
        if type(said) is int:
            said = _NUMBERED.get(said, str(said) if abs(said) < 2**31 else "")
        found = _READ.text(said, path)
        if found in _UNSPECIFIED:
            return
        self.word = str.__str__(found)
        if not self._call_goes_on:
            self._end_call(out, self._cut())

    def _cut(self) -> str | None:
        """Why a call that goes on is not whole; by `STOP` it is, though nothing ended it."""
        if self.word == "STOP":
            return None
        return "cut off by the token limit" if self.word == "MAX_TOKENS" else f"broken off ({self.word})"

    def show_usage(self, out: Out, usage: TokenUsage | None) -> None:
        if usage is not None and usage is not self._usage:
            self._usage = usage
            out.append(events.UsageUpdate(usage, choice=self._number))

    def cut_off(self, out: Out) -> None:
        """What had come and was held back."""
        self._tell_citations(out)
        if self._call is not None and not self._call.arguments.in_order:
            self._change(out, self._call.block, {"args": self._call.arguments.whole()})

    def finish(
        self, out: Out, response_id: str | None, model: str | None, extras: Json, *, broken_off: bool
    ) -> None:
        if self.writes == "text":
            self._citations += _grounding(self._extras.get("groundingMetadata"))
        self._end_writing(out)
        self._end_call(out, "broken off by an error" if broken_off else self._cut())
        reason = "content_filter" if self.word is None else _REASONS.get(self.word, "stop")
        if reason == "stop" and self._has_calls:
            reason = "tool_use"
        late = {} if response_id == self._response_id else {"id": response_id}
        late |= {} if model == self._model else {"model": model}
        metadata = {**late, **extras, **self._extras, **self._lists}
        out.append(events.MessageFinish(reason, self.word, self._usage, metadata, choice=self._number))


class _Call:
    """A call whose arguments are streamed."""

    __slots__ = ("arguments", "block", "call_id", "name")

    def __init__(self, block: int, call_id: str | None, name: str) -> None:
        self.block = block
        self.call_id = call_id
        self.name = name
        self.arguments = _Arguments()

    def goes_on_with(self, name: str, call_id: str | None) -> bool:
        """Whether a fragment is of this call. One that has a name begins a call, unless it repeats both."""
        if name and name != self.name:
            return False
        if call_id is None:
            return not name
        return call_id == self.call_id or (self.call_id is None and not name)


class _Array(dict[Step, Any]):
    """The items of an array by their index: what an absurd one leaves out costs nothing."""


class _Arguments:
    """The arguments of a call from values that come one by one, as JSON text that only grows.

    A path may lead anywhere, also back to where the text has gone on from. So the values are kept (strings in
    their pieces) until the call ends; they are needed only if that happens.
    """

    __slots__ = ("_at", "_open_string", "_size", "_told", "_values", "in_order")

    def __init__(self) -> None:
        self.in_order = True
        self._values: dict[Step, Any] = {}
        self._at: tuple[Step, ...] = ()  # where the text ends
        self._open_string = False
        self._size = self._told = 0

    def take(self, args: Json) -> None:
        """Arguments that come whole, before those that come one by one."""
        self.in_order = False
        self._values.update(_opened(thaw(freeze(args, lenient=True))))

    def add(self, steps: tuple[Step, ...], value: str | float | None, *, goes_on: bool) -> str | None:
        """The text that a value adds; `None` if that doesn't say it, and the whole has to be told again."""
        self._size += len(value) if isinstance(value, str) else 1
        node, fresh, replaced = self._values, len(steps) - 1, False
        for place, step in enumerate(steps[:-1]):
            kind = _Array if isinstance(steps[place + 1], int) else dict
            within: Any = node.get(step)
            if type(within) is not kind:
                replaced |= step in node
                fresh = min(fresh, place)
                within = node[step] = kind()
            node = within
        last, known = steps[-1], node.get(steps[-1])
        goes_on = goes_on and isinstance(value, str)
        if isinstance(value, str) and isinstance(known, list):
            known.append(value)
            self.in_order &= self._open_string and steps == self._at
            if self.in_order:
                self._open_string = goes_on
                return _escaped(value) + ("" if goes_on else '"')
            return None
        replaced |= last in node
        node[last] = [value] if isinstance(value, str) else value
        self.in_order &= not replaced and self._follows(steps, fresh)
        if not self.in_order:
            return None
        text = self._lead(steps, fresh)
        self._at, self._open_string = steps, goes_on
        if isinstance(value, str):
            return f'{text}"{_escaped(value)}' + ("" if goes_on else '"')
        return text + json.dumps(value)

    def _follows(self, steps: tuple[Step, ...], fresh: int) -> bool:
        """Whether the value is the next in the text: in what is still open there, and in arrays the next item."""
        if steps[:fresh] != self._at[:fresh] or (self._at and len(self._at) <= fresh):
            return False
        node: Any = self._values
        for place, step in enumerate(steps):
            if place >= fresh and isinstance(step, int) and step != len(node) - 1:
                return False
            node = node[step]
        return True

    def _lead(self, steps: tuple[Step, ...], fresh: int) -> str:
        """The text from the newest value to the next: what has to be closed and opened."""
        text = self._closed(fresh) + ("," if self._at else "{")
        for place in range(fresh, len(steps)):
            step = steps[place]
            if isinstance(step, str):
                text += json.dumps(step, ensure_ascii=False) + ":"
            if place + 1 < len(steps):
                text += "[" if isinstance(steps[place + 1], int) else "{"
        return text

    def _closed(self, depth: int) -> str:
        closing = ["]" if isinstance(step, int) else "}" for step in reversed(self._at[depth + 1 :])]
        return ('"' if self._open_string else "") + "".join(closing)

    def rest(self) -> str:
        """What the text lacks to be whole."""
        return self._closed(0) + "}" if self._at else ""

    def is_due(self) -> bool:
        if not due(self._size, self._told):
            return False
        self._told = self._size
        return True

    def whole(self) -> Json:
        found: Json = _closed(self._values)
        return found


def _opened(value: Any) -> Any:
    """A JSON value so that it can be added to."""
    if isinstance(value, dict):
        return {name: _opened(item) for name, item in value.items()}
    if isinstance(value, list):
        return _Array({place: _opened(item) for place, item in enumerate(value)})
    return [value] if isinstance(value, str) else value


def _closed(value: Any) -> Any:
    if isinstance(value, _Array):
        return [_closed(value[index]) for index in sorted(value)]  # pyright: ignore[reportArgumentType]
    if isinstance(value, dict):
        return {name: _closed(item) for name, item in value.items()}
    return "".join(value) if isinstance(value, list) else value


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>[0-9]+)\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""
)


def _steps(json_path: str) -> tuple[Step, ...] | None:
    """`$.a[0].b` or `$['a'][0]['b']` as its steps; `None` if it is no path to a value in an object."""
    if len(json_path) > 4 * DEFAULT_LIMITS.line_bytes or not json_path.startswith("$"):
        return None
    steps: list[Step] = []
    at = 1
    while at < len(json_path):
        found = _STEP.match(json_path, at)
        if found is None:
            return None
        name, index, quoted = found.group("name", "index", "quoted")
        if index is not None:
            steps.append(_READ.index(int(index[:20]), "jsonPath"))
        else:
            steps.append(name if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1:-1]))
        at = found.end()
        if len(steps) > DEFAULT_LIMITS.json_depth:
            raise LimitExceededError.of("json_depth", DEFAULT_LIMITS.json_depth, "the path of an argument")
    return tuple(steps) if steps and isinstance(steps[0], str) else None


def _number(value: object, path: str) -> float:
    """A number as JSON would write it: the SDK makes a float of every one."""
    known = (
        None
        if isinstance(value, bool) or not isinstance(value, (int, float))
        else freeze(value, lenient=True)
    )
    if known is None:
        raise _READ.fail(path, "a number", value)
    return int(known) if isinstance(known, float) and known.is_integer() and abs(known) < 2**53 else known


def _nothing(*_: object) -> None:
    """What is read elsewhere, or has no value to be read."""


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise _READ.fail(path, "true or false", value)
    return value


def recognises(chunk: Json) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]})
        True
        >>> recognises({"error": {"code": 400, "message": "…", "status": "INVALID_ARGUMENT"}})
        True
        >>> recognises({"error": {"message": "…", "type": "invalid_request_error", "code": None}})
        False
    """
    error, found = chunk.get("error"), chunk.get("candidates")
    if isinstance(error, Mapping) and found is None:
        status = error.get("status")
        return isinstance(status, str) and status.isupper() and type(error.get("code")) is int
    if isinstance(found, (list, tuple)):
        return all(isinstance(candidate, Mapping) for candidate in found)
    if not _ANOTHERS.isdisjoint(chunk):
        return False
    return any(isinstance(chunk.get(name), Mapping) for name in _SIGNS)


# What the SDK makes of a response is made the wire's again.


def _wire_form(chunk: object) -> Json:
    fields = as_mapping(chunk, "gemini")
    if fields is not chunk or _is_dump(fields):
        fields = {name: value for name, value in fields.items() if name not in _SDKS_OWN}
        translated: Json = _translated(fields, 0)
        return translated
    return fields


def _is_dump(fields: Json) -> bool:
    """Whether names are in snake case, as in what the SDK's objects dump."""
    if _in_snake_case(fields):
        return True
    found = fields.get("candidates")
    for candidate in found if isinstance(found, (list, tuple)) else ():
        if isinstance(candidate, Mapping):
            content = candidate.get("content")
            parts = content.get("parts") if isinstance(content, Mapping) else None
            if _in_snake_case(candidate):
                return True
            if any(map(_in_snake_case, parts if isinstance(parts, (list, tuple)) else ())):
                return True
    return False


def _in_snake_case(fields: object) -> bool:
    return isinstance(fields, Mapping) and any("_" in name[1:] for name in fields if isinstance(name, str))


def _translated(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        if depth > DEFAULT_LIMITS.json_depth:
            return None
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = _camel(str(key))
            if item is None and name != "nullValue":  # a dump has every field that there is
                continue
            if name in _THE_USERS:
                found[name] = item
            elif name in _BASE64 and isinstance(item, str):
                found[name] = item.translate(_STANDARD)
            else:
                found[name] = _translated(item, depth + 1)
        return found
    if isinstance(value, (list, tuple)):
        return None if depth > DEFAULT_LIMITS.json_depth else [_translated(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest) if head else name


def _told(fields: Json, read: frozenset[str]) -> Json:
    """What else an object says; in the objects of it, too, what is empty says nothing."""
    return {
        name: others(value, _NONE) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if name not in read
    }


def _id(value: str) -> str | None:
    """An id, unless it says in any of the known ways that there is none."""
    found: str | None = real_id(value.strip())
    return None if found is None else value


def _media(mime_type: str) -> str:
    kind = mime_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


def _citation(citation: Json) -> Json:
    names = {"title": "title", "url": "uri", "start_index": "startIndex", "end_index": "endIndex"}
    known = {name: citation[theirs] for name, theirs in names.items() if citation.get(theirs) is not None}
    return kept({**known, "raw": citation})


def _grounding(metadata: object) -> list[Json]:
    """Citations from a web search and the like: which piece of the text rests on which of the sources."""
    if not isinstance(metadata, Mapping):
        return []
    sources, supports = (metadata.get(name) for name in ("groundingChunks", "groundingSupports"))
    if not isinstance(sources, (list, tuple)) or not isinstance(supports, (list, tuple)):
        return []
    found: list[Json] = []
    for support in supports:
        said: Json = support if isinstance(support, Mapping) else {}
        segment, indexes = said.get("segment"), said.get("groundingChunkIndices")
        place: Json = segment if isinstance(segment, Mapping) else {}
        for index in indexes if isinstance(indexes, (list, tuple)) else ():
            if type(index) is not int or not 0 <= index < len(sources):
                continue
            whole: Any = sources[index]
            kinds = list(whole.values()) if isinstance(whole, Mapping) else []
            source: Json = kinds[0] if kinds and isinstance(kinds[0], Mapping) else {}
            citation = {
                "title": source.get("title"),
                "url": source.get("uri"),
                "cited_text": source.get("text"),
            }
            citation |= {"start_index": place.get("startIndex"), "end_index": place.get("endIndex")}
            known = {name: value for name, value in citation.items() if value is not None}
            found.append(kept({**known, "raw": {**said, "groundingChunk": whole}}))
    return found


def _error_of(chunk: Json) -> Json | None:
    error = chunk.get("error")
    if not error:
        return None
    if isinstance(error, Mapping):
        return error
    return {"message": error} if isinstance(error, str) else {"error": error}


_PARTS: Mapping[str, Callable[[_Candidate, Out, Json, Json, str], None]] = {
    "text": _nothing,  # is read with the part, as a thought is one too
    "functionCall": _Candidate.read_function_call,
    "executableCode": _Candidate.read_executable_code,
    "codeExecutionResult": _Candidate.read_code_result,
    "toolCall": _Candidate.read_tool_call,
    "toolResponse": _Candidate.read_tool_response,
    "inlineData": _Candidate.read_inline_data,
    "fileData": _Candidate.read_file_data,
}
"""The kinds of parts; one of another kind is kept whole."""

_VALUES: Mapping[str, Callable[[object, str], Any]] = {
    "stringValue": _READ.text,
    "numberValue": _number,
    "boolValue": _flag,
    "nullValue": _nothing,
}

_WORDS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR"
    " IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION",
}
_REASONS = {said: reason for reason, words in _WORDS.items() for said in words.split()}
_IN_ORDER = "STOP MAX_TOKENS SAFETY RECITATION OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL MODEL_ARMOR"
# Vertex's numbers, as it is the one that sends them. AI Studio's differ from 6 on.
_NUMBERED = {0: "", **dict(enumerate(_IN_ORDER.split(), 1))}
_UNSPECIFIED = (None, "", 0, "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED", "OUTCOME_UNSPECIFIED")

# What is read.
_ENVELOPE = frozenset(
    ["candidates", "usageMetadata", "promptFeedback", "modelVersion", "responseId", "createTime"]
)
_READ_HERE = (_ENVELOPE - {"promptFeedback"}) | {"error", "_event"}
_CANDIDATE = frozenset(["index", "content", "finishReason", "citationMetadata", "logprobsResult"])
_CONTENT = frozenset(["role", "parts"])
_PART = frozenset(["thought", "thoughtSignature", *_PARTS])
_CALL = frozenset(["id", "name", "args", "partialArgs", "willContinue"])
_NONE: frozenset[str] = frozenset()
_ID = frozenset(["id"])
_TOOL_CALL = frozenset(["id", "toolType", "args"])
_TOOL_RESPONSE = frozenset(["id", "response"])
_BLOB = frozenset(["mimeType", "data"])
_FILE = frozenset(["mimeType", "fileUri"])
_ERROR = frozenset(["message", "code", "status"])

# A chunk of no more than these is a piece of text.
_PLAIN = _ENVELOPE - {"promptFeedback"}
_PLAIN_CANDIDATE = frozenset(["content", "index"])
_PLAIN_PART = frozenset(["text", "thought"])

_SIGNS = ("usageMetadata", "promptFeedback", "usage_metadata", "prompt_feedback")
_ANOTHERS = frozenset(["type", "content", "choices", "serverContent", "event_type"])
_SDKS_OWN = frozenset(
    [
        "sdk_http_response",
        "automatic_function_calling_history",
        "sdkHttpResponse",
        "automaticFunctionCallingHistory",
        "parsed",
    ]
)
_THE_USERS = frozenset(["args", "response", "partMetadata"])  # their names are nobody's to translate
_BASE64 = frozenset(["thoughtSignature", "data", "continuationToken"])
_STANDARD = str.maketrans("-_", "+/")
