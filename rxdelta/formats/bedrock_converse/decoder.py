"""Amazon Bedrock's ConverseStream, and Amazon Nova's InvokeModelWithResponseStream, which sends the same events.

    stream  = messageStart block* messageStop metadata?          an exception instead of any of them
    block   = contentBlockStart? contentBlockDelta* contentBlockStop
    start   = toolUse | toolResult | image
    delta   = text | reasoningContent | toolUse | toolResult | citation | image

An event is an object with one key, its name; what else stands beside that name is InvokeModel's own
(`amazon-bedrock-invocationMetrics`, the guardrail's action and trace) and belongs to the message. On the wire
every event also carries `p`, padding against eavesdroppers, which boto3 takes away. Bytes are bytes in boto3
and base64 on the wire; they are base64 here.

**Blocks.** A text, a reasoning and a block of citations have no start, their first delta is it; one without
text opens nothing. `contentBlockIndex` is passed on as the block's index. Nova through InvokeModel numbers
each piece of a text as a block and stops it: so they are many blocks, whose texts joined are the text.
A citation comes whole. A reasoning is text, then its signature, or is redacted and is bytes alone. The result
of a tool that Nova ran itself is a list that goes on.

**The end.** `messageStop` has the reason, and ends what was never stopped. `metadata` with the usage follows,
and the message finishes with it; where it came first, with `messageStop`; where there is none, with the input.

A call without argument text that has been stopped is one without arguments, or one that the token limit cut
off before they came. Only what follows tells, so its finish waits for it.

A body that was not streamed, `{"output": {"message": …}, "stopReason": …}`, is read like its stream.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
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
    Fields,
    as_mapping,
    due,
    error_code,
    invalid_call,
    kept,
    made_up_id,
    others,
    remember,
    usage_of,
    word,
)
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SYNTHETIC_ID

__all__ = ["BedrockConverseDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

_FORMAT = "bedrock-converse"
_PROVIDER = "bedrock"
_READ = Fields(_FORMAT)


class BedrockConverseDecoder:
    """Events of a ConverseStream in, events of the chat stream protocol out.

    Example:
        >>> decoder = BedrockConverseDecoder()
        >>> chunks = [
        ...     {"messageStart": {"role": "assistant"}},
        ...     {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}},
        ...     {"contentBlockStop": {"contentBlockIndex": 0}},
        ...     {"messageStop": {"stopReason": "end_turn"}},
        ... ]
        >>> [event.event for chunk in chunks for event in decoder.decode(chunk)]
        ['message-start', 'content-block-start', 'content-block-delta', 'content-block-finish']
        >>> [event.event for event in decoder.decode({"metadata": {"usage": {"inputTokens": 3, "outputTokens": 1}}})]
        ['message-finish']
    """

    def __init__(self) -> None:
        self._message = _Message()
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: an object as boto3 gives it, or as it is on the wire.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a block is absurd.

        Example:
            >>> BedrockConverseDecoder().decode({"throttlingException": {"message": "Too many requests"}})
            [StreamError(message='Too many requests', type='throttlingException', code=None, choice=0)]
        """
        event = None if self._out else self._message.plain(chunk)
        return self._decode(as_mapping(chunk, _FORMAT)) if event is None else (event,)

    def close(self) -> Sequence[Event]:
        """End of input: the finish of a message that has stopped, and whose usage never came."""
        out, self._out = self._out, []
        if not self._over and self._message.stopped:
            self._message.finish(out)
        self._end()
        return out

    def _end(self) -> None:
        self._over = True
        self._message = _Message()

    def _decode(self, chunk: Json) -> Sequence[Event]:
        if self._over:
            return ()
        out = self._out
        if self._message.finished and not _BEGINS.isdisjoint(chunk):
            self._message = _Message()
        if self._message.finished:
            out.append(events.ProviderEvent(_PROVIDER, _name(chunk), _readable(chunk)))
        else:
            self._read(out, chunk)
        self._out = []
        return out

    def _read(self, out: Out, chunk: Json) -> None:
        message = self._message
        if _is_body(chunk) and not message.started:
            message.body(out, chunk)
            return
        fault = _fault(chunk)
        known = [name for name in _EVENTS if chunk.get(name) is not None]
        siblings = {name: value for name, value in chunk.items() if name not in _NOT_SIBLINGS}
        if not all(isinstance(name, str) for name in siblings):
            raise _READ.fail("", "an object whose names are strings", chunk)
        if known or (siblings and all(name.startswith("amazon-bedrock-") for name in siblings)):
            remember(message.metadata, _readable(siblings))
        elif fault is None:
            message.foreign = bool(siblings)
        for name in known:
            _EVENTS[name](message, out, _READ.mapping(chunk[name], name))
        if message.foreign:
            message.foreign = False
            out.append(events.ProviderEvent(_PROVIDER, _name(chunk), _readable(chunk)))
        if fault is not None:
            self._break_off(out, *fault)

    def _break_off(self, out: Out, name: str, error: Json) -> None:
        said = word(error.get("message")) or word(error.get("Message"))
        code = error.get("originalStatusCode")
        if not _ERROR.issuperset(error):
            out.append(events.ProviderEvent(_PROVIDER, name, _readable(error)))
        said = said or word(error.get("originalMessage")) or "unknown error"
        kind = word(error.get("__type")) or (name if name != "message" else None)
        out.append(events.StreamError(said, kind, error_code(code)))
        self._end()


class _Message:
    """What is to be remembered of one message: which blocks are where, and what comes with its finish."""

    def __init__(self) -> None:
        self.started = self.stopped = self.finished = False
        self.foreign = False  # the chunk holds something that has no place here
        self.metadata: dict[str, Any] = {}
        self._reason: str | None = None
        self._usage: TokenUsage | None = None
        self._at: dict[int, _Block] = {}  # by the wire's index: the newest there
        self._open: dict[int, _Block] = {}  # by our index: started, and no finish emitted
        self._held: _Block | None = None  # the call whose finish waits for what follows
        self._used: set[int] = set()
        self._next = 0

    def plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more of a block's text, as nearly all are."""
        if type(chunk) is not dict or len(chunk) != 1 or self._held is not None:
            return None
        event: Any = chunk.get("contentBlockDelta")
        if type(event) is not dict or not _PLAIN.issuperset(event):
            return None
        place, delta = event.get("contentBlockIndex"), event.get("delta")
        if type(place) is not int or type(delta) is not dict or len(delta) != 1:
            return None
        block = self._at.get(place)
        if block is None or not block.open or block.kind not in _GROWS:
            return None
        name, field, grow = _GROWS[block.kind]
        text = delta.get(name)
        if field is not None:
            if (
                type(text) is not dict
                or len(text) != 1
                or (block.is_call and not block.fed)
                or block.has_object
            ):
                return None
            text = text.get(field)
        return grow(block.index, text) if type(text) is str and text else None

    # The events.

    def message_start(self, out: Out, event: Json) -> None:
        if not self.started:
            self.started = True
            out.append(events.MessageStart(None, None, None, others(event, _OF_THE_START)))

    def block_start(self, out: Out, event: Json) -> None:
        path = "contentBlockStart"
        place = _READ.index(event.get("contentBlockIndex"), f"{path}.contentBlockIndex")
        start = _READ.mapping(event.get("start"), f"{path}.start")
        for name, value in start.items():
            if value is not None:
                self._start(out, place, name, value, f"{path}.start.{name}")

    def block_delta(self, out: Out, event: Json) -> None:
        path = "contentBlockDelta"
        place = _READ.index(event.get("contentBlockIndex"), f"{path}.contentBlockIndex")
        delta = _READ.mapping(event.get("delta"), f"{path}.delta")
        for name, value in delta.items():
            if value is not None:
                self._delta(out, place, name, value, f"{path}.delta.{name}")

    def block_stop(self, out: Out, event: Json) -> None:
        self._stop(out, _READ.index(event.get("contentBlockIndex"), "contentBlockStop.contentBlockIndex"))

    def message_stop(self, out: Out, event: Json) -> None:
        reason = _READ.text_of(event, "stopReason", "messageStop") or None
        self._begin_unheralded(out)
        remember(self.metadata, _readable(_without(event, "stopReason", "p")))
        self._end(out, reason)
        if self._usage is not None:
            self.finish(out)

    def read_metadata(self, out: Out, event: Json) -> None:
        usage = self._take_usage(event.get("usage"), "metadata.usage")
        self._begin_unheralded(out)
        remember(self.metadata, _readable(_without(event, "usage", "p")))
        if usage is None:
            return
        if self.stopped:
            self.finish(out)
        else:
            out.append(events.UsageUpdate(usage))

    def body(self, out: Out, chunk: Json) -> None:
        """A reply that was not streamed."""
        path = "output.message"
        message = _READ.mapping(chunk["output"].get("message"), path)
        content = _READ.items(message.get("content"), f"{path}.content")
        self.message_start(out, _without(message, "content"))
        for place, block in enumerate(content):
            at = f"{path}.content[{place}]"
            for name, value in _READ.mapping(block, at).items():
                if value is not None:
                    self._whole(out, place, name, value, f"{at}.{name}")
            self._stop(out, place)
        self._take_usage(chunk.get("usage"), "usage")
        remember(self.metadata, _readable(_without(chunk, *_OF_A_BODY)))
        self._end(out, _READ.text_of(chunk, "stopReason", "") or None)
        self.finish(out)

    # Blocks.

    def _start(self, out: Out, place: int, name: str, value: Any, path: str) -> None:
        if name in ("toolUse", "toolResult"):
            found = _READ.mapping(value, path)
            if name == "toolUse":
                self._start_call(out, place, found, path)
            else:
                self._start_result(out, place, found, path)
        elif name in _MEDIA:
            self._media(out, place, name, others(_READ.mapping(value, path), _OF_A_MEDIUM))
        else:
            self._begin(out, place, "other", {"type": "non_standard", "value": _readable({name: value})})

    def _start_call(self, out: Out, place: int, start: Json, path: str) -> _Block | None:
        call_id = real_id(_READ.text_of(start, "toolUseId", path))
        name = _READ.text_of(start, "name", path)
        kind = _READ.text_of(start, "type", path)
        known = self._at.get(place)
        if known is not None and known.is_call and call_id is not None and known.id == call_id:
            return known if known.open else None  # sent twice
        server = kind.endswith("_tool_use")
        fields = kept(_without(start, "toolUseId", "name", "type", "input", *_NOT_A_CALLS_OWN))
        if server:
            fields[PROVIDER_TYPE] = kind
        type_ = "server_tool_call_chunk" if server else "tool_call_chunk"
        fields |= {"type": type_, "name": name or None, "args": "", "id": call_id}
        if call_id is None:
            fields |= {"id": made_up_id(None, self._index(place)), SYNTHETIC_ID: True}
        block = self._begin(out, place, "toolUse", fields)
        block.id, block.is_call, block.server = call_id, True, server
        self._arguments(out, block, start.get("input"), f"{path}.input")
        return block

    def _start_result(self, out: Out, place: int, start: Json, path: str) -> None:
        call_id = real_id(_READ.text_of(start, "toolUseId", path))
        known = self._at.get(place)
        if known is not None and known.open and known.kind == "toolResult" and known.id == call_id:
            return
        fields = kept(_without(start, "toolUseId", "type", "content", "output"))
        fields |= {"type": "server_tool_result", "tool_call_id": call_id, "output": []}
        if word(start.get("type")):
            fields[PROVIDER_TYPE] = start["type"]
        self._begin(out, place, "toolResult", fields).id = call_id

    def _delta(self, out: Out, place: int, name: str, value: Any, path: str) -> None:
        read = _DELTAS.get(name)
        if read is not None:
            read(self, out, place, value, path)
        elif name in _MEDIA:
            self._media_delta(out, place, name, _READ.mapping(value, path), path)
        else:
            self.foreign = True

    def read_text(self, out: Out, place: int, value: Any, path: str) -> None:
        text = _READ.text(value, path)
        if text:
            out.append(text_delta(self._prose(out, place, "text").index, text))

    def read_reasoning(self, out: Out, place: int, value: Any, path: str) -> None:
        said = _READ.mapping(value, path)
        text, signature = _READ.text_of(said, "text", path), _READ.text_of(said, "signature", path)
        redacted = _base64(said.get("redactedContent"), f"{path}.redactedContent")
        if text:
            out.append(reasoning_delta(self._prose(out, place, "reasoning").index, text))
        for name, piece in (("signature", signature), ("data", redacted)):
            if piece:
                block = self._prose(out, place, "reasoning")
                block.opaque.setdefault(name, _Opaque(name)).add(piece)
                self._tell(out, block, at_once=False)
        if not _OF_A_REASONING.issuperset(said):
            self.foreign = True

    def read_citation(self, out: Out, place: int, value: Any, path: str) -> None:
        citation = _citation(_READ.mapping(value, path), path)
        block = self._prose(out, place, "text")
        block.items.append(citation)
        self._tell(out, block, at_once=False)

    def read_tool_use(self, out: Out, place: int, value: Any, path: str) -> None:
        block = self._at.get(place)
        arguments = _READ.mapping(value, path).get("input")
        if block is None or not block.open or not block.is_call or block.has_object:
            self.foreign |= bool(arguments)
        else:
            self._arguments(out, block, arguments, f"{path}.input")

    def _arguments(self, out: Out, block: _Block, found: Any, path: str) -> None:
        """Text, a piece of it; or from a reply that was not streamed the object, of which an empty one says nothing."""
        if not found:
            return
        if not isinstance(found, (str, Mapping)):
            raise _READ.fail(path, "a string or an object", found)
        self._release(out)
        block.fed = True
        if isinstance(found, str):
            out.append(tool_call_delta(block.index, found))
        else:
            block.has_object = True
            out.append(events.BlockDelta(block.index, {"args": freeze(found, lenient=True)}))

    def read_tool_result(self, out: Out, place: int, value: Any, path: str) -> None:
        block, items = self._at.get(place), _READ.items(value, path)
        if block is None or not block.open or block.kind != "toolResult":
            self.foreign |= bool(items)
            return
        self._release(out)
        block.items.extend(_readable({"": item})[""] for item in items)
        self._tell(out, block, at_once=False)

    def _media(self, out: Out, place: int, name: str, fields: dict[str, Any]) -> _Block:
        known = self._at.get(place)
        if known is not None and known.open and known.kind == name:
            return known
        kind = _MEDIA[name]
        if kind == "image" and word(fields.get("format")):  # of a sound or a film it is no type of the web's
            fields["mime_type"] = f"image/{fields['format']}"
        return self._begin(out, place, name, {**fields, "type": kind})

    def _media_delta(self, out: Out, place: int, name: str, delta: Json, path: str) -> None:
        source = _READ.mapping(delta.get("source"), f"{path}.source")
        data = _base64(source.get("bytes"), f"{path}.source.bytes")
        elsewhere, fields = _without(source, "bytes"), others(delta, _OF_A_MEDIUM)
        if not (data or elsewhere or fields):
            return
        block = self._media(out, place, name, {})
        self._release(out)
        if elsewhere:
            fields["source"] = _readable(elsewhere)
        if fields:
            out.append(events.BlockDelta(block.index, fields))
        if data := block.align(data):
            out.append(events.DataDelta(block.index, data))

    def _whole(self, out: Out, place: int, name: str, value: Any, path: str) -> None:
        """A block of a reply that was not streamed."""
        if name in _MEDIA:
            found = _READ.mapping(value, path)
            self._start(out, place, name, _without(found, "source", "error"), path)
            self._media_delta(out, place, name, found, path)
        elif name == "toolUse":
            self._start(out, place, name, value, path)
        elif name == "toolResult":
            result = _READ.mapping(value, path)
            self._start_result(out, place, result, path)
            self.read_tool_result(out, place, result.get("content"), f"{path}.content")
        elif name == "reasoningContent":
            said = _READ.mapping(value, path)
            text = _READ.mapping(said.get("reasoningText"), f"{path}.reasoningText")
            self.read_reasoning(out, place, {**_without(said, "reasoningText"), **text}, path)
        elif name == "citationsContent":
            said = _READ.mapping(value, path)
            for n, piece in enumerate(_READ.items(said.get("content"), f"{path}.content")):
                at = f"{path}.content[{n}]"
                self.read_text(out, place, _READ.mapping(piece, at).get("text"), f"{at}.text")
            for n, citation in enumerate(_READ.items(said.get("citations"), f"{path}.citations")):
                self.read_citation(out, place, citation, f"{path}.citations[{n}]")
        elif name == "text":
            self.read_text(out, place, value, path)
        else:
            self._start(out, place, name, value, path)

    def _prose(self, out: Out, place: int, kind: str) -> _Block:
        self._release(out)
        block = self._at.get(place)
        if block is not None and block.open and block.kind == kind:
            return block
        return self._begin(out, place, kind, {"type": kind, kind: ""})

    def _index(self, place: int) -> int:
        return self._next if place in self._used else place

    def _begin(self, out: Out, place: int, kind: str, content: Json) -> _Block:
        """A new block. What is still open at its place is finished: an index is one block's at a time."""
        self._begin_unheralded(out)
        self._release(out)
        known = self._at.get(place)
        if known is not None and known.open:
            known.abandoned = True
            self._finish_block(out, known)
        index = self._index(place)
        self._used.add(index)
        self._next = max(self._next, index + 1)
        block = self._at[place] = self._open[index] = _Block(index, kind)
        out.append(events.BlockStart(index, content))
        return block

    def _stop(self, out: Out, place: int) -> None:
        block = self._at.get(place)
        if block is None or not block.open:
            return
        self._release(out)
        if block.is_call and not block.server and not block.fed and not self.stopped:
            block.open = False
            self._held = block
        else:
            block.open = False
            self._finish_block(out, block)

    def _release(self, out: Out) -> None:
        """Finish the call that was held back: by now it is known whether the message went on behind it."""
        held, self._held = self._held, None
        if held is not None:
            self._finish_block(out, held)

    def _finish_block(self, out: Out, block: _Block) -> None:
        """A call that was cut off, or may have been, is marked invalid: it must never look executable."""
        cut = self._reason in _CUT
        wrong = None
        if block.is_call and not block.server:
            if block.abandoned and not block.fed:
                wrong = "another block took its place before its arguments came"
            elif cut and not block.fed:
                wrong = CUT_OFF_BEFORE_ARGUMENTS
            elif cut and block.open:
                wrong = CUT_OFF_AMID_ARGUMENTS
        block.open = False
        del self._open[block.index]
        self._tell(out, block, at_once=True)
        if data := block.flush():
            out.append(events.DataDelta(block.index, data))
        content = invalid_call(wrong) if wrong else None
        out.append(events.BlockFinish(block.index, content))

    def _tell(self, out: Out, block: _Block, *, at_once: bool) -> None:
        """What a block has that can only be told whole: when it has grown by enough, and at its end."""
        fields: dict[str, Any] = {}
        for name, opaque in block.opaque.items():
            if opaque.size > opaque.told and (at_once or due(opaque.size, opaque.told)):
                fields[name] = opaque.tell()
                if name == "data":
                    fields[REDACTED] = True
        if len(block.items) > block.told and (at_once or due(len(block.items), block.told)):
            block.told = len(block.items)
            fields["output" if block.kind == "toolResult" else "citations"] = block.items
        if fields:
            out.append(events.BlockDelta(block.index, fields))

    # The end.

    def _begin_unheralded(self, out: Out) -> None:
        """A stream whose beginning was lost still begins with a start."""
        if not self.started:
            self.message_start(out, {})

    def _take_usage(self, found: Any, path: str) -> TokenUsage | None:
        usage = _READ.mapping(found, path)
        if not usage:
            return None
        self._usage = usage_of(usage, usage.get("inputTokens"), usage.get("outputTokens"))
        return self._usage

    def _end(self, out: Out, reason: str | None) -> None:
        if not self.stopped:
            self.stopped, self._reason = True, reason
            self._end_blocks(out)

    def _end_blocks(self, out: Out) -> None:
        self._held = None
        for block in list(self._open.values()):
            self._finish_block(out, block)

    def finish(self, out: Out) -> None:
        if self.finished:
            return
        self._end_blocks(out)
        self.finished = True
        reason = _REASONS.get(self._reason or "", "stop")
        out.append(events.MessageFinish(reason, self._reason, self._usage, self.metadata))


class _Block:
    """A block that has started: where it goes, and what of it can only be told whole."""

    __slots__ = (
        "_rest",
        "abandoned",
        "fed",
        "has_object",
        "id",
        "index",
        "is_call",
        "items",
        "kind",
        "opaque",
        "open",
        "server",
        "told",
    )

    def __init__(self, index: int, kind: str) -> None:
        self.index, self.kind = index, kind
        self.id: str | None = None
        self.open = True
        self.is_call = self.server = False
        self.fed = self.has_object = self.abandoned = False
        self.items: list[Any] = []  # its citations, or the parts of its result; the first `told` are known
        self.told = 0
        self.opaque: dict[str, _Opaque] = {}
        self._rest = b""

    def align(self, data: str) -> str:
        """Each piece of base64 ends with its own padding: what comes out can be joined."""
        try:
            found = self._rest + base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return self.flush() + data
        whole = len(found) - len(found) % 3
        self._rest = found[whole:]
        return base64.b64encode(found[:whole]).decode()

    def flush(self) -> str:
        rest, self._rest = self._rest, b""
        return base64.b64encode(rest).decode()


class _Opaque:
    """A signature, or encrypted reasoning: what a delta has of it is all, or a piece."""

    __slots__ = ("name", "pieces", "size", "told")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[str] = []
        self.size = self.told = 0

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def tell(self) -> str:
        self.told = self.size
        if len(self.pieces) > 1:
            self.pieces = [_join(self.pieces) if self.name == "data" else "".join(self.pieces)]
            self.told = self.size = len(self.pieces[0])
        return self.pieces[0]


def recognises(chunk: Json) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"messageStart": {"role": "assistant", "p": "abc"}})
        True
        >>> recognises({"outputText": "Hi", "index": 0})
        False
    """
    for name, field in _FIRST.items():
        event = chunk.get(name)
        if isinstance(event, Mapping) and field in event:
            usage = event.get("usage")
            return name != "metadata" or (isinstance(usage, Mapping) and "inputTokens" in usage)
    if _is_body(chunk):
        return "stopReason" in chunk
    return len(chunk) == 1 and any(isinstance(chunk.get(name), Mapping) for name in _EXCEPTIONS)


def _is_body(chunk: Json) -> bool:
    output = chunk.get("output")
    return isinstance(output, Mapping) and isinstance(output.get("message"), Mapping)


def _name(chunk: Json) -> str:
    return next((str(name) for name in chunk if name not in _NOT_NAMES), "chunk")


def _fault(chunk: Json) -> tuple[str, Json] | None:
    """The exception that a chunk is, if it is one; also as the bare body of an answer that was refused."""
    for name, value in chunk.items():
        if isinstance(name, str) and name.lower().endswith("exception") and isinstance(value, (Mapping, str)):
            return name, value if isinstance(value, Mapping) else {"message": value}
    if _REFUSED.issuperset(chunk) and isinstance(chunk.get("message"), str):
        return "message", chunk
    return None


def _citation(citation: Json, path: str) -> Json:
    """A citation in our words. Its positions are in the source, ours are in the reply: they stay in `raw`."""
    location = _READ.mapping(citation.get("location"), f"{path}.location")
    web = location.get("web")
    url = word(web.get("url")) if isinstance(web, Mapping) else None
    cited = "".join(
        _READ.text_of(
            _READ.mapping(piece, f"{path}.sourceContent[{n}]"), "text", f"{path}.sourceContent[{n}]"
        )
        for n, piece in enumerate(_READ.items(citation.get("sourceContent"), f"{path}.sourceContent"))
    )
    found = {"cited_text": cited or None, "title": word(citation.get("title")), "url": url}
    return kept({name: value for name, value in found.items() if value is not None} | {"raw": citation})


def _base64(value: Any, path: str) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return _READ.text(value, path)


def _join(pieces: Sequence[str]) -> str:
    """Pieces of base64, each with its own padding, as one."""
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)


def _without(source: Json, *names: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in names}


def _readable(source: Json) -> dict[str, Any]:
    """A copy that nobody can change, in which bytes are base64."""
    return kept({str(name): _no_bytes(value, 0) for name, value in source.items()})


def _no_bytes(value: Any, depth: int) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= DEFAULT_LIMITS.json_depth:
            return None
        if isinstance(value, Mapping):
            return {name: _no_bytes(item, depth + 1) for name, item in value.items()}
        return [_no_bytes(item, depth + 1) for item in value]
    return value


# The format, as on the API's page.

_EVENTS: Mapping[str, Callable[[_Message, Out, Json], None]] = {
    "messageStart": _Message.message_start,
    "contentBlockStart": _Message.block_start,
    "contentBlockDelta": _Message.block_delta,
    "contentBlockStop": _Message.block_stop,
    "messageStop": _Message.message_stop,
    "metadata": _Message.read_metadata,
}

_DELTAS: Mapping[str, Callable[[_Message, Out, int, Any, str], None]] = {
    "text": _Message.read_text,
    "reasoningContent": _Message.read_reasoning,
    "toolUse": _Message.read_tool_use,
    "toolResult": _Message.read_tool_result,
    "citation": _Message.read_citation,
}
_MEDIA: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}

_WORDS = {
    "stop": "end_turn stop_sequence pause_turn malformed_model_output malformed_tool_use",
    "tool_use": "tool_use",
    "length": "max_tokens model_context_window_exceeded",
    "content_filter": "content_filtered guardrail_intervened refusal",
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_CUT = frozenset(_WORDS["length"].split())

_EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "modelTimeoutException",
    "serviceUnavailableException",
    "throttlingException",
    "validationException",
)
_FIRST: Mapping[str, str] = {
    # event: what it has at least
    "messageStart": "role",
    "contentBlockStart": "contentBlockIndex",
    "contentBlockDelta": "contentBlockIndex",
    "contentBlockStop": "contentBlockIndex",
    "messageStop": "stopReason",
    "metadata": "usage",
}

# What is read, or is nothing: padding against eavesdroppers, the name of an SSE event, the HTTP answer's own.
_NOT_NAMES = frozenset(["p", "_event"])
_NOT_SIBLINGS = _NOT_NAMES | set(_EVENTS)
_BEGINS = frozenset(["messageStart", "output"])
_OF_A_BODY = ("output", "stopReason", "usage", "ResponseMetadata", "$metadata", "p", "_event")
_OF_THE_START = frozenset(["role", "p"])
_OF_A_MEDIUM = frozenset(["source"])
_OF_A_REASONING = frozenset(["text", "signature", "redactedContent"])
_ERROR = frozenset(["message", "Message", "originalStatusCode", "code", "__type", "p"])
_REFUSED = frozenset(["message", "__type", "code"])
# Words by which the protocol would read something into a call that Bedrock didn't say.
_NOT_A_CALLS_OWN = ("args", "arguments", "call_id", "error", "execution_status", "id", "index")

_GROWS: Mapping[str, tuple[str, str | None, Callable[[int, str], Event]]] = {
    # block: the member of a delta, its field, the event
    "text": ("text", None, text_delta),
    "reasoning": ("reasoningContent", "text", reasoning_delta),
    "toolUse": ("toolUse", "input", tool_call_delta),
}

# A delta of no more than these is a piece of text.
_PLAIN = frozenset(["contentBlockIndex", "delta", "p"])
