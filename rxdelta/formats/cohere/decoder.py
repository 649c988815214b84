"""Cohere's chat API, version 2.

    stream    = message-start (plan | content | call | citation)* message-end        debug: anywhere
    plan      = tool-plan-delta*
    content   = content-start content-delta* content-end          a text or a thinking
    call      = tool-call-start tool-call-delta* tool-call-end
    citation  = citation-start citation-end

**Blocks.** Cohere counts contents, calls and citations separately, so that index 0 may be one of each. A block's
place is therefore its kind and Cohere's index; its own index is its number in the message. Calls without
arguments, starts sent twice and missing ends are described in `formats/block_events.py`.

**The plan** for the calls becomes a reasoning whose provider type is `tool_plan`. The format doesn't mark its end,
so it stays open until another block begins.

**Citations** are whole and refer to offsets in the reply. A citation belongs to a block that is still open; one that
is too late for its block is kept in the message's metadata.

**The end.** `message-end` has the reason and the usage, and ends open blocks. The usage is `tokens`, not
`billed_units`. An `error`, or a reason that is an error, breaks the message off. The model is never named.

A body that was not streamed, with `finish_reason` and `message`, is read like its stream. Version 1, whose
events have an `event_type`, is another format.
"""

# Chunks are untyped JSON; each value that is read from one is checked.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import Event, TokenUsage, events, finish_reason, freeze, real_id
from rxdelta.formats.block_events import take_all
from rxdelta.formats.cohere.blocks import BROKEN, FORMAT, PLAN, REASONS, Blocks
from rxdelta.formats.decoding import NOTHING, Fields, Json, as_mapping, kept, others, remember, word
from rxdelta.formats.endings import Broken, assumed_finish, broken_events
from rxdelta.formats.usage import COHERE, usage_of
from rxdelta.framing import DONE

Out: TypeAlias = list[Event]

_PROVIDER = "cohere"
_READ = Fields(FORMAT)


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
        self._out: Out = []
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or an event or response of the `cohere` package.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a block is absurd.

        Example:
            >>> CohereDecoder().decode({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "Oops"}})
            [StreamError(message='Oops', type=None, code='ERROR', transient=True, choice=0)]
        """
        event = None if self._out else self._message.blocks.plain(chunk)
        if event is not None:
            return (event,)
        if chunk is DONE:
            return self._finish()
        fields = as_mapping(chunk, FORMAT)
        if "type" not in fields and isinstance(named := getattr(chunk, "type", None), str):
            fields = {**fields, "type": named}  # a default of the SDK's class
        return self._decode(fields)

    def close(self) -> Sequence[Event]:
        """End of input. Nothing to finish: what has no `message-end` was cut off."""
        out = take_all(self._out)
        self._message.blocks.flush(out)
        self._end()
        return out

    def _finish(self) -> Sequence[Event]:
        """Finish a message that has no `message-end`, but is whole."""
        message = self._message
        out = take_all(self._out)
        if message.blocks.message_started and not message.finished:
            message.finish(out, None, None, ended=False)
        return out

    def _end(self) -> None:
        self._over = True
        self._message = _Message()

    def _decode(self, chunk: Json) -> Sequence[Event]:
        if self._over:
            return ()
        read: Callable[[_Message, Out, Json], None]
        out, kind = self._out, chunk.get("type")
        if kind is None and isinstance(chunk.get("message"), (Mapping, str)) and "done" not in chunk:
            read, kind = (_Message.refusal if isinstance(chunk["message"], str) else _Message.body), "body"
        elif isinstance(kind, str):
            read = _EVENTS.get(kind, _Message.unknown)
        else:
            raise _READ.fail("type", "the type of an event", kind)
        message = self._message
        if message.finished:
            if read not in _BEGINS:
                read = _Message.unknown
            elif message.blocks.message_id is not None and message.blocks.message_id == word(chunk.get("id")):
                return ()
            else:
                message = self._message = _Message()
        read(message, out, chunk)
        if message.blocks.foreign:
            message.blocks.foreign = False
            out.append(events.ProviderEvent(_PROVIDER, kind, kept(chunk)))
        if message.failure:
            out += message.failure
            self._end()
        return take_all(out)


class _Message:
    """The state of one message, beside its blocks."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.finished = False
        self.failure: Out = []  # the events with which it breaks off
        self._metadata: dict[str, Any] = {}
        self._logprobs: list[Any] = []

    def start(self, out: Out, chunk: Json) -> None:
        message = _message(chunk)
        if self.blocks.message_started:  # sent twice, or another message within this one
            self.blocks.foreign |= self.blocks.message_id != real_id(word(chunk.get("id")))
            return
        self._begin(out, chunk, message)
        self._read(out, message, "delta.message")

    def end(self, out: Out, chunk: Json) -> None:
        self._end(out, _READ.mapping(chunk.get("delta"), "delta"), "delta")

    def body(self, out: Out, chunk: Json) -> None:
        """A reply that was not streamed. Within a stream it is no event of it."""
        if self.blocks.message_started:
            self.blocks.foreign = True
            return
        message = _READ.mapping(chunk["message"], "message")
        self._begin(out, chunk, message)
        self._read(out, message, "message")
        self._logprobs.extend(_READ.items(freeze(chunk.get("logprobs"), lenient=True), "logprobs"))
        self._end(out, {name: value for name, value in chunk.items() if name not in _BODY_FIELDS}, "")

    def refusal(self, out: Out, chunk: Json) -> None:
        """The bare body of a response with an HTTP error."""
        self._break_off(out, chunk["message"], None)

    def report_error(self, out: Out, chunk: Json) -> None:
        sentence = word(chunk.get("message")) or word(chunk.get("error"))
        self.blocks.foreign = sentence is None
        self._break_off(out, sentence, "error")

    def _break_off(self, out: Out, sentence: str | None, kind: str | None) -> None:
        self.blocks.flush(out)
        self.failure = [events.StreamError(sentence or "unknown error", kind)]

    def unknown(self, _: Out, _chunk: Json) -> None:
        self.blocks.foreign = True

    def plan_delta(self, out: Out, chunk: Json) -> None:
        message = _message(chunk)
        self.blocks.foreign |= PLAN not in message
        self.blocks.plan(out, _READ.text_of(message, PLAN, "delta.message"))

    def content_start(self, out: Out, chunk: Json) -> None:
        self.blocks.content_start(out, _index(chunk), _part(chunk, "content"))

    def content_delta(self, out: Out, chunk: Json) -> None:
        self.blocks.content_delta(out, _index(chunk), _part(chunk, "content"))
        if chunk.get("logprobs") is not None:
            self._logprobs.append(freeze(chunk["logprobs"], lenient=True))

    def content_end(self, out: Out, chunk: Json) -> None:
        self.blocks.stop(out, ("content", _index(chunk)))

    def citation_start(self, out: Out, chunk: Json) -> None:
        self.blocks.start_message(out)
        self.blocks.citation(out, _part(chunk, "citations"))

    def citation_end(self, out: Out, chunk: Json) -> None:
        """The citation was whole in its start."""

    def call_start(self, out: Out, chunk: Json) -> None:
        self.blocks.call(out, _index(chunk), _part(chunk, "tool_calls"), "delta.message.tool_calls")

    def call_delta(self, out: Out, chunk: Json) -> None:
        self.blocks.call_delta(out, _index(chunk), _part(chunk, "tool_calls"))

    def call_end(self, out: Out, chunk: Json) -> None:
        self.blocks.stop(out, ("call", _index(chunk)))

    def _begin(self, out: Out, chunk: Json, message: Json) -> None:
        message_id = self.blocks.message_id = real_id(word(chunk.get("id")))
        metadata = others(message, _MESSAGE_FIELDS)
        self.blocks.start_message(out, events.MessageStart(message_id, None, None, metadata))

    def _read(self, out: Out, message: Json, path: str) -> None:
        """Blocks that are whole in the message. In a stream it is empty at its start."""
        blocks = self.blocks
        plan = _READ.text_of(message, PLAN, path)
        content = message.get("content")
        content = [{"text": content}] if isinstance(content, str) else content
        content = _READ.items(content, f"{path}.content")
        citations = _READ.items(message.get("citations"), f"{path}.citations")
        calls = _READ.items(message.get("tool_calls"), f"{path}.tool_calls")
        blocks.plan(out, plan)
        for index, item in enumerate(content):
            at = f"{path}.content[{index}]"
            blocks.content(out, index, _READ.mapping(item, at), at)
        for index, citation in enumerate(citations):
            blocks.citation(out, _READ.mapping(citation, f"{path}.citations[{index}]"))
        for index in range(len(content)):
            blocks.stop(out, ("content", index))
        for index, call in enumerate(calls):
            at = f"{path}.tool_calls[{index}]"
            blocks.call(out, index, _READ.mapping(call, at), at)
            blocks.stop(out, ("call", index))

    def _end(self, out: Out, end: Json, path: str) -> None:
        blocks = self.blocks
        at = f"{path}." if path else ""
        provider_reason = _READ.text_of(end, "finish_reason", path) or None
        found = _READ.mapping(end.get("usage"), f"{at}usage")
        usage = usage_of(found, COHERE) if found else None
        error = end.get("error")
        remember(self._metadata, {name: value for name, value in end.items() if name not in _END_FIELDS})
        if error in NOTHING and provider_reason not in BROKEN:
            self.finish(out, provider_reason, usage, ended=path != "")
            return
        blocks.break_off(out)
        blocks.foreign |= error not in NOTHING and not isinstance(error, str)
        reason = provider_reason or "ERROR"
        known = BROKEN.get(reason, BROKEN["ERROR"])
        broken = Broken(word(error) or known.sentence, known.transient)
        usage = usage if blocks.message_started else None
        self.failure = broken_events(_PROVIDER, reason, broken, usage, self._all_metadata())

    def finish(self, out: Out, provider_reason: str | None, usage: TokenUsage | None, *, ended: bool) -> None:
        """Finish the message. `ended` says whether a `message-end` has come."""
        self.blocks.start_message(out)
        reason = finish_reason(REASONS.get(provider_reason or ""), asked=self.blocks.calls_client)
        self.blocks.cut = reason == "length"
        self.blocks.finish_all(out)
        self.finished = True
        metadata = self._all_metadata()
        if provider_reason is None and not ended:
            out.append(assumed_finish(usage, metadata, asked=self.blocks.calls_client))
        else:
            out.append(events.MessageFinish(reason, provider_reason, usage, metadata))

    def _all_metadata(self) -> Json:
        remember(self._metadata, {"logprobs": self._logprobs, "citations": self.blocks.late_citations})
        return self._metadata


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
        return type(chunk.get("index")) is int and _INDEX_FIELDS.issuperset(chunk)
    if kind == "debug":
        return "prompt" in chunk
    message = chunk.get("message")
    is_body = kind is None and isinstance(message, Mapping) and message.get("role") == "assistant"
    return is_body and isinstance(chunk.get("finish_reason"), str)


def _index(chunk: Json) -> int:
    return _READ.index(chunk.get("index"), "index")


def _message(chunk: Json) -> Json:
    return _READ.mapping(_READ.mapping(chunk.get("delta"), "delta").get("message"), "delta.message")


def _part(chunk: Json, name: str) -> Json:
    return _READ.mapping(_message(chunk).get(name), f"delta.message.{name}")


_EVENTS: Mapping[str, Callable[[_Message, Out, Json], None]] = {
    "message-start": _Message.start,
    "tool-plan-delta": _Message.plan_delta,
    "content-start": _Message.content_start,
    "content-delta": _Message.content_delta,
    "content-end": _Message.content_end,
    "tool-call-start": _Message.call_start,
    "tool-call-delta": _Message.call_delta,
    "tool-call-end": _Message.call_end,
    "citation-start": _Message.citation_start,
    "citation-end": _Message.citation_end,
    "message-end": _Message.end,
    "error": _Message.report_error,
    # debug: passed on
}
_BEGINS = (_Message.start, _Message.body)
_ENDS = frozenset(["content-end", "tool-call-end", "citation-end"])
_WITH_A_MESSAGE = frozenset(_EVENTS) - _ENDS - {"message-end", "error"}

# The fields that are read; others are kept as metadata.
_MESSAGE_FIELDS = frozenset(["role", "content", PLAN, "tool_calls", "citations"])
_BODY_FIELDS = frozenset(["id", "type", "message", "logprobs"])
_END_FIELDS = frozenset(["finish_reason", "usage", "error"])
_INDEX_FIELDS = frozenset(["type", "index", "_event"])
