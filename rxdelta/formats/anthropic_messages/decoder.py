"""Anthropic Messages API, streamed, as Anthropic, Bedrock's InvokeModel and Vertex send it.

    stream   message_start block* message_delta* message_stop       ping, error: anywhere
    block    content_block_start content_block_delta* content_block_stop

A block's `index` is its place in the message; deltas name their block, and blocks may interleave. Texts and
argument text come in pieces, citations one by one; a signature and a compaction come whole. The usage of
`message_delta` replaces, key by key, what was known before. `stop_reason` comes with it.

Some blocks come whole in their start (redacted thinking, results of the provider's own tools). A message may
come whole in its `message_start`: content, `stop_reason` and all, then `message_stop` at once (programmatic
tool calling). A body that was not streamed, `{"type": "message", …}`, is read like that.

What goes beyond it, because of what is really sent:

- A call without argument text that has been stopped is one without arguments, or one that the token limit cut
  off before they came. Only what follows tells, so its finish waits for it.
- An index may be used again: by a start that is sent twice (ignored), by another block whose predecessor was
  never stopped, or by another message spliced into this one. What came under it before is kept, and the new
  block gets an index of its own.
- The events that the SDK's `messages.stream()` adds (`text`, `input_json`, …) repeat what the others said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import (
    Event,
    TokenUsage,
    block_from_wire,
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
    Fields,
    as_mapping,
    due,
    invalid_call,
    made_up_id,
    usage_of,
)
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SYNTHETIC_ID

__all__ = ["AnthropicMessagesDecoder", "recognises"]

Chunk = Mapping[str, Any]
Content = dict[str, Any]

_FORMAT = "anthropic-messages"
_PROVIDER = "anthropic"
_F = Fields(_FORMAT)
_NOTHING: Chunk = {}
_NEVER = object()  # no delta's type


class AnthropicMessagesDecoder:
    """Messages stream events in, events of the chat stream protocol out.

    A block's index is passed on as it is, unless it had been used before. What the format doesn't know
    becomes a `ProviderEvent` that holds it whole. A message that is cut off gets no `MessageFinish`.

    Example:
        >>> import rxdelta as rd
        >>> decoder = rd.providers.decoder("anthropic-messages")
        >>> chunks = [
        ...     {"type": "message_start", "message": {"id": "msg_1", "model": "claude"}},
        ...     {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        ...     {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        ...     {"type": "content_block_stop", "index": 0},
        ...     {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ...     {"type": "message_stop"},
        ... ]
        >>> fold = rd.Fold()
        >>> for event in [event for chunk in chunks for event in decoder.decode(chunk)]:
        ...     snapshot = fold.step(event)
        >>> snapshot
        <Snapshot complete; text 'Hi'>
    """

    def __init__(self) -> None:
        self._message = _Message()

    def decode(self, chunk: Any, /) -> Sequence[Event]:
        """The events of one chunk.

        Args:
            chunk: A dict, or an event or message of the `anthropic` package.

        Returns:
            Nothing for a ping, nor for what comes after the message's end, except for another message.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A block's index is 2**31 or more, or the chunk is nested absurdly deep.

        Example:
            >>> error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
            >>> AnthropicMessagesDecoder().decode(error)
            (StreamError(message='Overloaded', type='overloaded_error', code=None, choice=0),)
        """
        fields: Any = chunk
        if not isinstance(chunk, dict):
            fields = as_mapping(chunk, _FORMAT)
        kind: object = fields.get("type")
        if not isinstance(kind, str):
            raise _F.fail("type", "the type of an event", kind)
        message = self._message
        if message.ended:
            return self._next_message(kind, fields)
        decoded = _ON_EVENT.get(kind, _Message.unknown)(message, fields)
        return [*message.left_over(), *decoded] if message.begun else decoded

    def close(self) -> Sequence[Event]:
        """End of input: finishes the message if `stop_reason` has come, only `message_stop` having been lost.

        Example:
            >>> decoder = AnthropicMessagesDecoder()
            >>> _ = decoder.decode({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}})
            >>> [event.reason for event in decoder.close()]
            ['length']
        """
        message = self._message
        decoded = message.cut_off() if message.ended or message.stop_reason is None else message.finish()
        message.ended = True
        return [*message.left_over(), *decoded]

    def _next_message(self, kind: str, fields: Chunk) -> Sequence[Event]:
        """After the end only another message means something: a conversation. The same one again doesn't."""
        if kind not in _BEGINS:
            return ()
        following = _Message()
        decoded = _ON_EVENT[kind](following, fields)
        if following.id is not None and following.id == self._message.id:
            return ()
        self._message = following
        return decoded


class _Message:
    """What is to be remembered of one message: which blocks are where, and what comes with its finish."""

    def __init__(self) -> None:
        self.started = self.ended = False
        self.unheralded = False  # started without its message_start
        self.begun: list[Event] = []  # what a malformed start held before its fault comes out with the next
        self.id: str | None = None
        self.stop_reason: str | None = None
        self.usage: Content = {}
        self.metadata: Content = {}  # for the finish
        self.blocks: dict[int, _Block] = {}  # by the wire's index: the newest there
        self.unfinished: dict[int, _Block] = {}  # by our index: started, and no BlockFinish emitted
        self.held: _Block | None = None  # the call whose BlockFinish waits for what follows
        self.used: set[int] = set()  # our indexes
        self.next = self.offset = 0

    # -- the message

    def message_start(self, chunk: Chunk) -> Sequence[Event]:
        return self._begin(_object(_frozen(chunk), "message"), "message.")

    def body(self, chunk: Chunk) -> Sequence[Event]:
        """A message that was not streamed. Amid a stream it is no event of it."""
        if self.started:
            return self.unknown(chunk)
        return (*self._begin(_frozen(chunk), ""), *self.finish())

    def _begin(self, message: Chunk, path: str) -> Sequence[Event]:
        message_id = real_id(_F.text(message.get("id"), f"{path}id"))
        model = _F.text(message.get("model"), f"{path}model") or None
        usage = _F.mapping(message.get("usage"), f"{path}usage")
        stop_reason = _F.text(message.get("stop_reason"), f"{path}stop_reason") or None
        content = _F.items(message.get("content"), f"{path}content")
        begun = self.begun
        if self.started and not self.unheralded:
            if message_id == self.id:
                return ()
            self._splice()
        else:
            late, self.started, self.unheralded, self.id = self.started, True, False, message_id
            self.stop_reason = self.stop_reason or stop_reason
            self.metadata |= {name: message[name] for name in _OF_THE_FINISH if message.get(name) is not None}
            changed = self._add_usage(usage)
            said = _others(message, *_OF_A_MESSAGE)
            if not late:
                begun.append(events.MessageStart(message_id, model, self._usage(), said))
            else:  # the start has been told, so that the finish has to tell what it was to say
                self.metadata |= said | _others({"id": message_id, "model": model})
                begun += [] if changed is None else [events.UsageUpdate(changed)]
        for place, block in enumerate(content):
            where = f"{path}content[{place}]"
            begun += self._start_block(place, _F.mapping(block, where), where)
            begun += self._stop_block(place)
        self.begun = []
        return begun

    def left_over(self) -> Sequence[Event]:
        begun, self.begun = self.begun, []
        return begun

    def _begin_unheralded(self) -> Sequence[Event]:
        """A stream whose beginning was lost still begins with a start."""
        if self.started:
            return ()
        self.started = self.unheralded = True
        return (events.MessageStart(),)

    def _splice(self) -> None:
        """Another message goes on amid this one. Its indexes begin anew, and nothing is overwritten."""
        for block in self.unfinished.values():
            block.abandoned = True
        self.blocks, self.held, self.offset = {}, None, self.next

    def message_delta(self, chunk: Chunk) -> Sequence[Event]:
        chunk = _frozen(chunk)
        delta = _object(chunk, "delta") if "delta" in chunk else _NOTHING
        usage = _F.mapping(chunk.get("usage"), "usage")
        stop_reason = _F.text(delta.get("stop_reason"), "delta.stop_reason") or None
        self.stop_reason = self.stop_reason or stop_reason
        self.metadata |= _others(delta, "stop_reason") | _others(chunk, "type", "delta", "usage")
        begun = self._begin_unheralded()
        released = () if self.stop_reason is None else self._release()
        changed = self._add_usage(usage)
        return (*begun, *released, *([events.UsageUpdate(changed)] if changed else []))

    def message_stop(self, chunk: Chunk) -> Sequence[Event]:
        if not self.started:
            return ()
        self.metadata |= _others(_frozen(chunk), "type", "message")  # the SDK adds the message
        return self.finish()

    def finish(self) -> Sequence[Event]:
        self.ended = True
        finished = [event for block in list(self.unfinished.values()) for event in self._finish_block(block)]
        reason = _REASONS.get(self.stop_reason or "", "stop")
        return (*finished, events.MessageFinish(reason, self.stop_reason, self._usage(), self.metadata))

    def cut_off(self) -> Sequence[Event]:
        """What had come and was held back. After an end nothing is."""
        return () if self.ended else [event for block in self.unfinished.values() for event in block.tell()]

    def _add_usage(self, usage: Chunk) -> TokenUsage | None:
        """The running usage if it has changed. A null says nothing."""
        before = self.usage
        self.usage = before | {
            name: value for name, value in usage.items() if value is not None or name not in before
        }
        return None if self.usage == before else self._usage()

    def _usage(self) -> TokenUsage | None:
        usage = self.usage
        return usage_of(usage, usage.get("input_tokens"), usage.get("output_tokens")) if usage else None

    # -- its blocks

    def content_block_start(self, chunk: Chunk) -> Sequence[Event]:
        chunk = _frozen(chunk)
        place = _F.index(chunk.get("index"), "index")
        started = self._start_block(place, _object(chunk, "content_block"), "content_block")
        return (*self._begin_unheralded(), *started)

    def _start_block(self, place: int, block: Chunk, path: str) -> Sequence[Event]:
        kind = _word(block, "type", path)
        content = _content(kind, block, path)
        block_id = content.get("id") or content.get("tool_call_id")
        known = self.blocks.get(place)
        if known is not None and known.is_again(kind, block_id, block):
            return ()
        index = place + self.offset
        if index in self.used:
            index = self.next
        if content["type"] in _CALLS and block_id is None:
            content |= {"id": made_up_id(self.id, index), SYNTHETIC_ID: True}
        start = events.BlockStart(index, content)
        finished = self._finish_block(known) if known is not None and known.open else ()
        if kind == "fallback":
            self.metadata |= _fallback(block)
        self.blocks[place] = self.unfinished[index] = _Block(index, kind, block_id, block, content)
        self.used.add(index)
        self.next = max(self.next, index + 1)
        return (*self._release(), *finished, start)

    def content_block_delta(self, chunk: Chunk) -> Sequence[Event]:
        # This runs once a token: a piece that is as it should be passes, everything else is looked at below.
        place, delta = chunk.get("index"), chunk.get("delta")
        if type(place) is int and isinstance(delta, dict) and self.held is None:
            block = self.blocks.get(place)
            if block is not None and delta.get("type") == block.takes:  # pyright: ignore[reportUnknownMemberType]
                piece: Any = delta.get(block.field)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                if type(piece) is str:  # pyright: ignore[reportUnknownArgumentType]
                    if not piece:
                        return ()
                    block.fed = True
                    return (block.grow(block.index, piece),)
        return self._other_delta(_frozen(chunk))

    def _other_delta(self, chunk: Chunk) -> Sequence[Event]:
        place = _F.index(chunk.get("index"), "index")
        delta = _object(chunk, "delta")
        on_delta = _ON_DELTA.get(_word(delta, "type", "delta"))
        block = self.blocks.get(place)
        if block is not None and not block.open:
            block = None
        decoded = None if on_delta is None else on_delta(block, delta)
        if decoded is None:
            return self.unknown(chunk)
        return (*self._release(), *decoded) if block is not None else ()

    def content_block_stop(self, chunk: Chunk) -> Sequence[Event]:
        return self._stop_block(_F.index(chunk.get("index"), "index"))

    def _stop_block(self, place: int) -> Sequence[Event]:
        block = self.blocks.get(place)
        if block is None or not block.open:
            return ()
        released = self._release()
        block.stop()
        if block.is_call and not block.fed and self.stop_reason is None:
            self.held = block
            return released
        return (*released, *self._finish_block(block))

    def _release(self) -> Sequence[Event]:
        """Finish the call that was held back: by now it is known whether the message went on behind it."""
        held, self.held = self.held, None
        return () if held is None else self._finish_block(held)

    def _finish_block(self, block: _Block) -> Sequence[Event]:
        """A call that was cut off, or may have been, is marked invalid: it must never look executable."""
        cut = self.stop_reason in _CUT
        wrong = None
        if block.is_call and block.abandoned:
            wrong = "another message began before the call had come whole"
        elif block.is_call and cut and not block.fed:
            wrong = CUT_OFF_BEFORE_ARGUMENTS
        elif block.is_call and cut and block.open:
            wrong = CUT_OFF_AMID_ARGUMENTS
        block.stop()
        del self.unfinished[block.index]
        content = invalid_call(wrong) if wrong else None
        return (*block.tell(), events.BlockFinish(block.index, content))

    # -- all else

    def error(self, chunk: Chunk) -> Sequence[Event]:
        chunk = _frozen(chunk)
        error = chunk.get("error")
        more = _others(chunk, "type", "error", "_event")
        if isinstance(error, str):  # some gateways send the sentence alone
            decoded = events.StreamError(error)
        else:
            error = _object(chunk, "error")
            said = _F.text(error.get("message"), "error.message") or "unknown error"
            decoded = events.StreamError(said, _F.text(error.get("type"), "error.type") or None)
            more |= _others(error, "type", "message")
        told = self.cut_off()
        self.ended = True
        return (*told, *(self.unknown(chunk) if more else ()), decoded)

    def repeated(self, chunk: Chunk) -> Sequence[Event]:
        """An event of the SDK's making; or something new that merely has the same name."""
        return () if "snapshot" in chunk or chunk["type"] == "signature" else self.unknown(chunk)

    def unknown(self, chunk: Chunk) -> Sequence[Event]:
        chunk = _frozen(chunk)
        return (events.ProviderEvent(_PROVIDER, str(chunk["type"]), chunk),)


class _Block:
    """A block that has started: where it goes, and what it takes."""

    def __init__(self, index: int, kind: str, block_id: str | None, start: Chunk, content: Content) -> None:
        self.index, self.kind, self.id = index, kind, block_id
        self.start: Chunk | None = start  # while it is open
        self.takes, self.field, self.grow = _GROWS.get(kind, _DOES_NOT_GROW)
        self.is_call = kind == "tool_use"
        self.open = True
        self.abandoned = False
        self.citations: list[Content] = content.get("citations", []) if kind == "text" else []
        self.told = len(self.citations)
        args: Any = content.get("args", "")
        self.fed = bool(args)
        if isinstance(args, Mapping):
            self.takes = _NEVER  # they came whole: text behind them belongs to nothing

    def is_again(self, kind: str, block_id: str | None, start: Chunk) -> bool:
        """Whether this start is the block's own, sent twice. Without an id only while the block is open."""
        if (kind, block_id) != (self.kind, self.id):
            return False
        return block_id is not None or start == self.start

    def tell(self) -> Sequence[Event]:
        """The citations that have not been told: the protocol has only the whole list again for them."""
        if len(self.citations) == self.told:
            return ()
        self.told = len(self.citations)
        return (events.BlockDelta(self.index, {"citations": self.citations}),)

    def stop(self) -> None:
        self.open = False
        self.takes, self.start = _NEVER, None


# -- a block's content, from Anthropic's words to the protocol's


def _content(kind: str, block: Chunk, path: str) -> Content:
    if kind in _ON_BLOCK:
        return _ON_BLOCK[kind](block, path)
    if kind.endswith("_tool_result"):
        return _tool_result(block, path)
    # One of Anthropic's that is called as one of the protocol's would be taken for that.
    as_it_is = block_from_wire(events.BlockStart(0, block).content, 0).type == "unsupported"
    return dict(block) if as_it_is else {"type": "non_standard", "value": block}


def _text(block: Chunk, path: str) -> Content:
    citations = [
        _citation(_F.mapping(citation, f"{path}.citations[{n}]"))
        for n, citation in enumerate(_F.items(block.get("citations"), f"{path}.citations"))
    ]
    text = _F.text(block.get("text"), f"{path}.text")
    content = _others(block, "type", "text", "citations") | {"type": "text", "text": text}
    return content | {"citations": citations} if citations else content


def _thinking(block: Chunk, path: str) -> Content:
    thinking = _F.text(block.get("thinking"), f"{path}.thinking")
    signature = _F.text(block.get("signature"), f"{path}.signature")
    content = _others(block, "type", "thinking", "signature") | {"type": "reasoning", "reasoning": thinking}
    return content | {"signature": signature} if signature else content


def _redacted_thinking(block: Chunk, path: str) -> Content:
    _F.text(block.get("data"), f"{path}.data")
    return _others(block, "type") | {"type": "reasoning", "reasoning": "", REDACTED: True}


def _tool_use(block: Chunk, path: str) -> Content:
    """A call's fields. An `input` that isn't empty is all of its arguments; else their text may follow."""
    whole = block.get("input")
    args = whole if isinstance(whole, str) else _F.mapping(whole, f"{path}.input") or ""
    return _others(block, "type", "input", *_NOT_A_CALLS_OWN) | {
        "type": "tool_call_chunk",
        "id": real_id(_F.text(block.get("id"), f"{path}.id")),
        "name": _F.text(block.get("name"), f"{path}.name"),
        "args": args,
    }


def _server_tool_use(block: Chunk, path: str) -> Content:
    return _tool_use(block, path) | {"type": "server_tool_call_chunk", PROVIDER_TYPE: block["type"]}


def _tool_result(block: Chunk, path: str) -> Content:
    output = block.get("content")
    failed = block.get("is_error") is True or (
        isinstance(output, Mapping) and str(output.get("type")).endswith("_error")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    )
    return _others(block, "type", "tool_use_id", "content") | {
        "type": "server_tool_result",
        "tool_call_id": real_id(_F.text(block.get("tool_use_id"), f"{path}.tool_use_id")),
        "output": output,
        PROVIDER_TYPE: block["type"],
        "status": "error" if failed else "success",
    }


def _citation(citation: Chunk) -> Content:
    """A citation in our words. Its positions are in the source, ours are in the reply: they stay in `raw`."""
    title = citation.get("title") or citation.get("document_title")
    known = {"cited_text": citation.get("cited_text"), "title": title, "url": citation.get("url")}
    return {name: value for name, value in known.items() if isinstance(value, str)} | {"raw": citation}


def _fallback(block: Chunk) -> Content:
    """The model that took over. A fallback block of another make says nothing."""
    to = block.get("to")
    model = to.get("model") if isinstance(to, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return {"model_fallback": model} if isinstance(model, str) else {}


# -- a delta's events, for the open block that it is meant for, if there is one; `None` if nothing can take it


def _piece(field: str) -> Callable[[_Block | None, Chunk], Sequence[Event] | None]:
    def piece(block: _Block | None, delta: Chunk) -> Sequence[Event] | None:
        text = _F.text(delta.get(field), f"delta.{field}")
        if not text:
            return ()
        if block is None or block.takes != delta["type"]:
            return None
        block.fed = True
        return (block.grow(block.index, text),)

    return piece


def _signature(block: _Block | None, delta: Chunk) -> Sequence[Event] | None:
    signature = _F.text(delta.get("signature"), "delta.signature")
    if not signature:
        return ()
    return None if block is None else (events.BlockDelta(block.index, {"signature": signature}),)


def _citations(block: _Block | None, delta: Chunk) -> Sequence[Event] | None:
    citation = _citation(_object(delta, "citation", "delta."))
    if block is None:
        return None
    block.citations.append(citation)
    return block.tell() if due(len(block.citations), block.told) else ()


def _compaction(block: _Block | None, delta: Chunk) -> Sequence[Event] | None:
    if block is None or block.kind != "compaction":
        return None
    return (events.BlockDelta(block.index, _others(delta, "type")),)


# -- reading


def _frozen(chunk: Chunk) -> Chunk:
    """The chunk as it goes into events: read-only, bounded, and all its text fit for UTF-8."""
    frozen: Chunk = freeze(chunk, "the chunk", lenient=True)
    return frozen


def _object(fields: Chunk, name: str, path: str = "") -> Chunk:
    """An object that has to be there."""
    value = fields.get(name)
    if value is None:
        raise _F.fail(f"{path}{name}", "an object", None)
    return _F.mapping(value, f"{path}{name}")


def _word(fields: Chunk, name: str, path: str) -> str:
    """A text that has to be there."""
    value = _F.text(fields.get(name), f"{path}.{name}")
    if not value:
        raise _F.fail(f"{path}.{name}", "a word", fields.get(name))
    return value


def _others(fields: Chunk, *names: str) -> Content:
    return {name: value for name, value in fields.items() if name not in names and value is not None}


def _nothing(*_: object) -> Sequence[Event]:
    return ()


def recognises(chunk: Chunk) -> bool:
    """Whether a stream, or a body that was not streamed, of this format can begin with this chunk.

    Example:
        >>> recognises({"type": "message_start", "message": {"id": "msg_1"}})
        True
        >>> recognises({"type": "message-start"})
        False
    """
    match chunk.get("type"):
        case "ping" | "message_stop":
            return True
        case "message_start":
            return isinstance(chunk.get("message"), Mapping)
        case "message_delta":
            return isinstance(chunk.get("delta"), Mapping)
        case "content_block_start" | "content_block_delta" | "content_block_stop":
            return "index" in chunk
        case "message":  # an item of OpenAI's Responses has a status
            return (
                chunk.get("role") == "assistant"
                and isinstance(chunk.get("content"), list)
                and "status" not in chunk
            )
        case "error":  # OpenAI numbers its events
            error = chunk.get("error")
            return isinstance(error, Mapping) and "message" in error and "sequence_number" not in chunk
        case _:
            return False


# -- the format, as on the API's page

_ON_EVENT: Mapping[str, Callable[[_Message, Chunk], Sequence[Event]]] = {
    "message_start": _Message.message_start,
    "content_block_start": _Message.content_block_start,
    "content_block_delta": _Message.content_block_delta,
    "content_block_stop": _Message.content_block_stop,
    "message_delta": _Message.message_delta,
    "message_stop": _Message.message_stop,
    "ping": _nothing,
    "error": _Message.error,
    # a whole message
    "message": _Message.body,
    # the SDK's own
    "text": _Message.repeated,
    "thinking": _Message.repeated,
    "signature": _Message.repeated,
    "citation": _Message.repeated,
    "input_json": _Message.repeated,
}
_BEGINS = frozenset(["message_start", "message"])

_ON_BLOCK: Mapping[str, Callable[[Chunk, str], Content]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    "server_tool_use": _server_tool_use,
    "mcp_tool_use": _server_tool_use,
    # *_tool_result: _tool_result; any other is kept whole
}

_GROWS: Mapping[str, tuple[object, str, Callable[[int, str], Event]]] = {
    # block: the delta it grows by, the field with the piece, the event
    "text": ("text_delta", "text", text_delta),
    "thinking": ("thinking_delta", "thinking", reasoning_delta),
    "tool_use": ("input_json_delta", "partial_json", tool_call_delta),
    "server_tool_use": ("input_json_delta", "partial_json", tool_call_delta),
    "mcp_tool_use": ("input_json_delta", "partial_json", tool_call_delta),
}
_DOES_NOT_GROW: tuple[object, str, Callable[[int, str], Event]] = (_NEVER, "", text_delta)

_ON_DELTA: Mapping[str, Callable[[_Block | None, Chunk], Sequence[Event] | None]] = {
    "text_delta": _piece("text"),
    "thinking_delta": _piece("thinking"),
    "input_json_delta": _piece("partial_json"),
    "signature_delta": _signature,
    "citations_delta": _citations,
    "compaction_delta": _compaction,
}

_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_CUT = frozenset(word for word, reason in _REASONS.items() if reason == "length")

_OF_THE_FINISH = ("stop_sequence", "stop_details")
# A message's fields that have a place of their own in the events.
_OF_A_MESSAGE = ("id", "type", "role", "model", "content", "usage", "stop_reason", *_OF_THE_FINISH)
_CALLS = frozenset(["tool_call_chunk", "server_tool_call_chunk"])
# Words by which the protocol would read something into a call that Anthropic didn't say.
_NOT_A_CALLS_OWN = ("args", "arguments", "call_id", "error", "execution_status", "index")
