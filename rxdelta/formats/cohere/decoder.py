"""Cohere's chat API, version 2.

    stream    = message-start (plan | content | call | citation)* message-end        debug: anywhere
    plan      = tool-plan-delta*
    content   = content-start content-delta* content-end          a text or a thinking
    call      = tool-call-start tool-call-delta* tool-call-end
    citation  = citation-start citation-end

Contents, calls and citations are counted each for themselves, so that index 0 may be all three: blocks are
known by kind and index, and are numbered here as they appear. The plan for the calls is a reasoning, marked
as what it was; nothing says where it ends, so it is open until something else begins. A citation comes whole,
while the block that it belongs to is still open; one that comes later is kept in the message's metadata. Its
offsets are in the reply.

`message-end` has the reason and the usage, and ends what is open. There are two usages; what counts is
`tokens`, not what is billed. An `error` there, or a reason that is one, breaks the message off. The model is
never named.

A call without argument text that has ended is one without arguments, or one that the token limit cut off
before they came. Only what follows tells, so its finish waits for it.

A body that was not streamed, with `finish_reason` and `message`, is read like its stream. Version 1, whose
events have an `event_type`, is another format.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import (
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
    CUT_OFF_AMID_ARGUMENTS,
    CUT_OFF_BEFORE_ARGUMENTS,
    NOTHING,
    Fields,
    as_mapping,
    due,
    invalid_call,
    kept,
    made_up_id,
    others,
    remember,
    usage_of,
    word,
)
from rxdelta.formats.notes import PROVIDER_TYPE, SYNTHETIC_ID

__all__ = ["CohereDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

_FORMAT = "cohere"
_PROVIDER = "cohere"
_READ = Fields(_FORMAT)


class CohereDecoder:
    """Events of a chat stream in, events of the chat stream protocol out.

    Example:
        >>> decoder = CohereDecoder()
        >>> chunks = [
        ...     {"type": "message-start", "id": "m1", "delta": {"message": {"role": "assistant"}}},
        ...     {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will roll."}}},
        ...     {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
        ... ]
        >>> [event.event for chunk in chunks for event in decoder.decode(chunk)]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._message = _Message()
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or an event or response of the `cohere` package.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a block is absurd.

        Example:
            >>> CohereDecoder().decode({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "Oops"}})
            [StreamError(message='Oops', type='ERROR', code=None, choice=0)]
        """
        event = None if self._out else self._message.plain(chunk)
        if event is not None:
            return (event,)
        fields = as_mapping(chunk, _FORMAT)
        if "type" not in fields and isinstance(named := getattr(chunk, "type", None), str):
            fields = {**fields, "type": named}  # to the SDK's objects it is a default, unless it was sent
        return self._decode(fields)

    def close(self) -> Sequence[Event]:
        """End of input. Nothing to finish: what has no `message-end` was cut off."""
        out, self._out = self._out, []
        self._end()
        return out

    def _end(self) -> None:
        self._over = True
        self._message = _Message()

    def _decode(self, chunk: Json) -> Sequence[Event]:
        if self._over:
            return ()
        read: Callable[[_Message, Out, Json], None]
        out, kind = self._out, chunk.get("type")
        if kind is None and isinstance(chunk.get("message"), (Mapping, str)):
            read, kind = (_Message.refusal if isinstance(chunk["message"], str) else _Message.body), "body"
        elif isinstance(kind, str):
            read = _EVENTS.get(kind, _Message.unknown)
        else:
            raise _READ.fail("type", "the type of an event", kind)
        message = self._message
        if message.finished:
            if read not in _BEGINS:
                read = _Message.unknown
            elif message.id is not None and message.id == word(chunk.get("id")):
                return ()
            else:
                message = self._message = _Message()
        read(message, out, chunk)
        if message.foreign:
            message.foreign = False
            out.append(events.ProviderEvent(_PROVIDER, kind, kept(chunk)))
        if message.error is not None:
            out.append(message.error)
            self._end()
        self._out = []
        return out


class _Message:
    """What is to be remembered of one message: which blocks are where, and what comes with its finish."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.started = self.finished = False
        self.error: events.StreamError | None = None
        self.foreign = False  # the chunk holds something that has no place here
        self._metadata: dict[str, Any] = {}
        self._logprobs: list[Any] = []
        self._citations: list[Any] = []  # those that came too late for their block
        self._blocks = 0
        self._at: dict[tuple[str, int], _Block] = {}  # by kind and the wire's index: the newest there
        self._newest: dict[str, _Block] = {}  # of the texts and of the thinkings
        self._open: dict[int, _Block] = {}
        self._held: _Block | None = None  # the call whose finish waits for what follows

    def plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more of a content, as nearly all are."""
        if type(chunk) is not dict or len(chunk) != 3 or chunk.get("type") != "content-delta":
            return None
        delta, place = chunk.get("delta"), chunk.get("index")
        message = delta.get("message") if type(delta) is dict and len(delta) == 1 else None
        content = message.get("content") if type(message) is dict and len(message) == 1 else None
        if type(place) is not int or type(content) is not dict or len(content) != 1 or self._held is not None:
            return None
        block = self._at.get(("content", place))
        if block is None or not block.open:
            return None
        text = content.get(_SAID.get(block.kind, ""))
        if type(text) is not str or not text:
            return None
        return (text_delta if block.kind == "text" else reasoning_delta)(block.index, text)

    # The message.

    def message_start(self, out: Out, chunk: Json) -> None:
        message = _message(chunk)
        if self.started:  # sent twice, or another one amid this
            self.foreign |= self.id != real_id(word(chunk.get("id")))
            return
        self._begin_message(out, chunk, others(message, _OF_A_MESSAGE))
        self._read_message(out, message, "delta.message")

    def message_end(self, out: Out, chunk: Json) -> None:
        delta = _READ.mapping(chunk.get("delta"), "delta")
        self._end(out, delta, "delta")

    def body(self, out: Out, chunk: Json) -> None:
        """A reply that was not streamed. Amid a stream it is no event of it."""
        if self.started:
            self.foreign = True
            return
        message = _READ.mapping(chunk["message"], "message")
        self._begin_message(out, chunk, others(message, _OF_A_MESSAGE))
        self._read_message(out, message, "message")
        self._logprobs.extend(_READ.items(freeze(chunk.get("logprobs"), lenient=True), "logprobs"))
        self._end(out, {name: value for name, value in chunk.items() if name not in _OF_A_BODY}, "")

    def refusal(self, _: Out, chunk: Json) -> None:
        """The bare body of an answer that was refused."""
        self._break_off(chunk["message"], None)

    def report_error(self, _: Out, chunk: Json) -> None:
        said = word(chunk.get("message")) or word(chunk.get("error"))
        self.foreign = said is None
        self._break_off(said or "unknown error", "error")

    def unknown(self, _: Out, _chunk: Json) -> None:
        self.foreign = True

    def _begin_message(self, out: Out, chunk: Json, metadata: Json | None = None) -> None:
        if self.started:
            return
        self.started = True
        self.id = real_id(word(chunk.get("id")))
        out.append(events.MessageStart(self.id, None, None, metadata or {}))

    def _read_message(self, out: Out, message: Json, path: str) -> None:
        """What a message holds whole; in a stream it begins empty."""
        plan = _READ.text_of(message, "tool_plan", path)
        content = message.get("content")
        content = [{"text": content}] if isinstance(content, str) else content
        content = _READ.items(content, f"{path}.content")
        citations = _READ.items(message.get("citations"), f"{path}.citations")
        calls = _READ.items(message.get("tool_calls"), f"{path}.tool_calls")
        if plan:
            self._write(out, ("plan", 0), "reasoning", plan)
        for place, item in enumerate(content):
            at = f"{path}.content[{place}]"
            self._start_content(out, place, _READ.mapping(item, at), at)
        for place, citation in enumerate(citations):
            self._cite(out, _READ.mapping(citation, f"{path}.citations[{place}]"))
        for place in range(len(content)):
            self._stop(out, ("content", place))
        for place, call in enumerate(calls):
            at = f"{path}.tool_calls[{place}]"
            self._start_call(out, place, _READ.mapping(call, at), at)
            self._stop(out, ("call", place))

    def _end(self, out: Out, end: Json, path: str) -> None:
        at = f"{path}." if path else ""
        reason = _READ.text_of(end, "finish_reason", path) or None
        usage = _usage(_READ.mapping(end.get("usage"), f"{at}usage"))
        error = end.get("error")
        if error not in NOTHING or reason in _BROKEN:
            if usage is not None and self.started:
                out.append(events.UsageUpdate(usage))
            if error not in NOTHING and not isinstance(error, str):
                self.foreign = True
            self._break_off(word(error) or _BROKEN.get(reason or "", "unknown error"), reason)
            return
        self._begin_message(out, {})
        remember(self._metadata, {name: value for name, value in end.items() if name not in _OF_AN_END})
        remember(self._metadata, {"logprobs": self._logprobs, "citations": self._citations})
        self._held = None
        for block in list(self._open.values()):
            self._finish_block(out, block, reason)
        self.finished = True
        out.append(events.MessageFinish(_REASONS.get(reason or "", "stop"), reason, usage, self._metadata))

    def _break_off(self, said: str, kind: str | None) -> None:
        self.error = events.StreamError(said or "unknown error", kind)

    # Its blocks.

    def plan_delta(self, out: Out, chunk: Json) -> None:
        text = _READ.text_of(_message(chunk), "tool_plan", "delta.message")
        if text:
            self._write(out, ("plan", 0), "reasoning", text)

    def content_start(self, out: Out, chunk: Json) -> None:
        path = "delta.message.content"
        place, content = _READ.index(chunk.get("index"), "index"), _part(chunk, "content")
        known = self._at.get(("content", place))
        if known is not None and known.open and known.start == content:
            return  # sent twice
        self._start_content(out, place, content, path)

    def _start_content(self, out: Out, place: int, content: Json, path: str) -> None:
        kind = word(content.get("type")) or ("thinking" if content.get("thinking") else "text")
        fields, key = others(content, _OF_A_CONTENT), ("content", place)
        if kind not in _KINDS:
            self._begin(out, key, "other", {"type": "non_standard", "value": kept(content)})
            return
        own = _KINDS[kind]
        text = _READ.text_of(content, kind, path)
        self._begin(out, key, own, {**fields, "type": own, own: ""}).start = kept(content)
        if text:
            self._write(out, key, own, text)

    def content_delta(self, out: Out, chunk: Json) -> None:
        path = "delta.message.content"
        place, content = _READ.index(chunk.get("index"), "index"), _part(chunk, "content")
        for kind, own in _KINDS.items():
            text = _READ.text_of(content, kind, path)
            if text:
                self._write(out, ("content", place), own, text)
        if not _OF_A_CONTENT.issuperset(content):
            self.foreign = True
        if chunk.get("logprobs") is not None:
            self._logprobs.append(freeze(chunk["logprobs"], lenient=True))

    def content_end(self, out: Out, chunk: Json) -> None:
        self._stop(out, ("content", _READ.index(chunk.get("index"), "index")))

    def citation_start(self, out: Out, chunk: Json) -> None:
        self._begin_message(out, {})
        self._cite(out, _part(chunk, "citations"))

    def citation_end(self, out: Out, chunk: Json) -> None:
        """It has come whole."""

    def _cite(self, out: Out, citation: Json) -> None:
        if not citation:
            return
        block = self._cited(citation)
        if block is None:
            self._citations.append(freeze(citation, lenient=True))
            return
        block.citations.append(_citation(citation))
        if due(len(block.citations), block.told):
            self._tell(out, block)

    def _cited(self, citation: Json) -> _Block | None:
        """The block that a citation belongs to, if that is still open."""
        kind, place = citation.get("type"), citation.get("content_index")
        if kind == "PLAN":
            block = self._at.get(("plan", 0))
            return block if block is not None and block.open else None
        block = self._at.get(("content", place)) if type(place) is int else None
        if block is None:
            block = self._newest.get("reasoning" if kind == "THINKING_CONTENT" else "text")
        return block if block is not None and block.open else None

    def call_start(self, out: Out, chunk: Json) -> None:
        place = _READ.index(chunk.get("index"), "index")
        self._start_call(out, place, _part(chunk, "tool_calls"), "delta.message.tool_calls")

    def _start_call(self, out: Out, place: int, call: Json, path: str) -> None:
        function = _READ.mapping(call.get("function"), f"{path}.function")
        call_id, name = real_id(_READ.text_of(call, "id", path)), _READ.text_of(function, "name", path)
        arguments = function.get("arguments")
        known = self._at.get(("call", place))
        if known is not None and call_id is not None and known.id == call_id:
            return  # sent twice
        fields = others(call, _OF_A_CALL) | others(function, _OF_A_FUNCTION)
        if word(call.get("type")) not in (None, "function"):
            fields[PROVIDER_TYPE] = call["type"]
        ours = call_id or made_up_id(self.id, self._blocks)
        fields |= {"type": "tool_call_chunk", "id": ours, "name": name or None, "args": ""}
        if call_id is None:
            fields[SYNTHETIC_ID] = True
        block = self._begin(out, ("call", place), "call", fields)
        block.id = call_id
        self._add_arguments(out, block, arguments, f"{path}.function.arguments")

    def call_delta(self, out: Out, chunk: Json) -> None:
        path = "delta.message.tool_calls.function"
        place = _READ.index(chunk.get("index"), "index")
        arguments = _READ.mapping(_part(chunk, "tool_calls").get("function"), path).get("arguments")
        block = self._at.get(("call", place))
        if block is None or not block.open or block.has_object:
            self.foreign |= bool(arguments)
            return
        self._release(out)
        self._add_arguments(out, block, arguments, f"{path}.arguments")

    def _add_arguments(self, out: Out, block: _Block, found: Any, path: str) -> None:
        if found is None or found == "":
            return
        block.fed = True
        if isinstance(found, str):
            out.append(tool_call_delta(block.index, found))
        elif isinstance(found, Mapping):  # the format says text; the object says the same
            block.has_object = True
            out.append(events.BlockDelta(block.index, {"args": freeze(found, lenient=True)}))
        else:
            raise _READ.fail(path, "a string or an object", found)

    def call_end(self, out: Out, chunk: Json) -> None:
        self._stop(out, ("call", _READ.index(chunk.get("index"), "index")))

    def _write(self, out: Out, key: tuple[str, int], kind: str, text: str) -> None:
        self._release(out)
        block = self._at.get(key)
        if block is None or not block.open or block.kind != kind:
            plan: Json = {PROVIDER_TYPE: "tool_plan"} if key[0] == "plan" else {}
            block = self._begin(out, key, kind, {"type": kind, kind: "", **plan})
        out.append((text_delta if kind == "text" else reasoning_delta)(block.index, text))

    def _begin(self, out: Out, key: tuple[str, int], kind: str, content: Json) -> _Block:
        """A new block. It ends the plan, and what is still open under its own key."""
        self._begin_message(out, {})
        self._release(out)
        for ended in (("plan", 0), key):
            known = self._at.get(ended)
            if known is not None and known.open:
                known.abandoned = True
                self._finish_block(out, known, None)
        block = self._at[key] = self._open[self._blocks] = _Block(self._blocks, kind)
        self._blocks += 1
        if key[0] == "content":
            self._newest[kind] = block
        out.append(events.BlockStart(block.index, content))
        return block

    def _stop(self, out: Out, key: tuple[str, int]) -> None:
        block = self._at.get(key)
        if block is None or not block.open:
            return
        self._release(out)
        if block.kind == "call" and not block.fed:
            block.open, self._held = False, block
        else:
            block.open = False
            self._finish_block(out, block, None)

    def _release(self, out: Out) -> None:
        """Finish the call that was held back: by now it is known whether the message went on behind it."""
        held, self._held = self._held, None
        if held is not None:
            self._finish_block(out, held, None)

    def _finish_block(self, out: Out, block: _Block, reason: str | None) -> None:
        """A call that was cut off, or may have been, is marked invalid: it must never look executable."""
        cut = _REASONS.get(reason or "") == "length"
        wrong = None
        if block.kind == "call":
            if block.abandoned and not block.fed:
                wrong = "another call took its place before its arguments came"
            elif cut and not block.fed:
                wrong = CUT_OFF_BEFORE_ARGUMENTS
            elif cut and block.open:
                wrong = CUT_OFF_AMID_ARGUMENTS
        block.open = False
        del self._open[block.index]
        self._tell(out, block)
        content = invalid_call(wrong) if wrong else None
        out.append(events.BlockFinish(block.index, content))

    def _tell(self, out: Out, block: _Block) -> None:
        if len(block.citations) > block.told:
            block.told = len(block.citations)
            out.append(events.BlockDelta(block.index, {"citations": block.citations}))


class _Block:
    """A block that has started: where it goes, and what is known of it."""

    __slots__ = (
        "abandoned",
        "citations",
        "fed",
        "has_object",
        "id",
        "index",
        "kind",
        "open",
        "start",
        "told",
    )

    def __init__(self, index: int, kind: str) -> None:
        self.index, self.kind = index, kind
        self.id: str | None = None
        self.start: Json | None = None  # a content's
        self.open = True
        self.fed = self.has_object = self.abandoned = False
        self.citations: list[Json] = []  # of which the first `told` are known
        self.told = 0


def recognises(chunk: Json) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"type": "message-start", "id": "m1", "delta": {"message": {"role": "assistant"}}})
        True
        >>> recognises({"event_type": "stream-start", "generation_id": "g1"})
        False
    """
    kind, delta = word(chunk.get("type")), chunk.get("delta")
    if kind in _WITH_A_MESSAGE:
        return isinstance(delta, Mapping) and isinstance(delta.get("message"), Mapping)
    if kind == "message-end":
        return isinstance(delta, Mapping) and "finish_reason" in delta
    if kind in _ENDS:
        return type(chunk.get("index")) is int and _OF_AN_EVENT.issuperset(chunk)
    if kind == "debug":
        return "prompt" in chunk
    message = chunk.get("message")
    is_body = kind is None and isinstance(message, Mapping) and message.get("role") == "assistant"
    return is_body and isinstance(chunk.get("finish_reason"), str)


def _message(chunk: Json) -> Json:
    return _READ.mapping(_READ.mapping(chunk.get("delta"), "delta").get("message"), "delta.message")


def _part(chunk: Json, name: str) -> Json:
    return _READ.mapping(_message(chunk).get(name), f"delta.message.{name}")


def _usage(usage: Json) -> TokenUsage | None:
    if not usage:
        return None
    tokens = usage.get("tokens")
    tokens = tokens if isinstance(tokens, Mapping) else {}
    return usage_of(usage, _count(tokens.get("input_tokens")), _count(tokens.get("output_tokens")))


def _count(value: Any) -> Any:
    """Cohere's own types have counts as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _citation(citation: Json) -> Json:
    """A citation in our words. A source's name and address are those of the first that has them."""
    found: dict[str, Any] = {"cited_text": citation.get("text")}
    found |= {"start_index": citation.get("start"), "end_index": citation.get("end")}
    sources = citation.get("sources")
    for source in sources if isinstance(sources, (list, tuple)) else ():
        document = source.get("document") if isinstance(source, Mapping) else None
        if isinstance(document, Mapping):
            for name in ("title", "url"):
                found.setdefault(name, word(document.get(name)))
    return kept({name: value for name, value in found.items() if value is not None} | {"raw": citation})


# The format, as on the API's page.

_EVENTS: Mapping[str, Callable[[_Message, Out, Json], None]] = {
    "message-start": _Message.message_start,
    "tool-plan-delta": _Message.plan_delta,
    "content-start": _Message.content_start,
    "content-delta": _Message.content_delta,
    "content-end": _Message.content_end,
    "tool-call-start": _Message.call_start,
    "tool-call-delta": _Message.call_delta,
    "tool-call-end": _Message.call_end,
    "citation-start": _Message.citation_start,
    "citation-end": _Message.citation_end,
    "message-end": _Message.message_end,
    "error": _Message.report_error,
    # debug: passed on
}
_BEGINS = (_Message.message_start, _Message.body)
_ENDS = frozenset(["content-end", "tool-call-end", "citation-end"])
_WITH_A_MESSAGE = frozenset(_EVENTS) - _ENDS - {"message-end", "error"}

_KINDS: Mapping[str, str] = {"text": "text", "thinking": "reasoning"}
_SAID = {own: kind for kind, own in _KINDS.items()}

_REASONS: Mapping[str, str] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_use",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
}
_BROKEN: Mapping[str, str] = {
    "ERROR": "unknown error",
    "TIMEOUT": "the generation timed out",
}

# What is read.
_OF_A_MESSAGE = frozenset(["role", "content", "tool_plan", "tool_calls", "citations"])
_OF_A_BODY = frozenset(["id", "type", "message", "logprobs"])
_OF_AN_END = frozenset(["finish_reason", "usage", "error"])
_OF_AN_EVENT = frozenset(["type", "index", "_event"])
_OF_A_CONTENT = frozenset(["type", *_KINDS])
_OF_A_CALL = frozenset(["id", "type", "function", "index"])
_OF_A_FUNCTION = frozenset(["name", "arguments"])
