"""Events → LangChain's agent protocol, whose `messages` and `tools` LangGraph's clients read.

    stream   = (message | tool | custom)*
    message  = message-start block* (message-finish | error)
    block    = content-block-start content-block-delta* content-block-finish
    tool     = tool-started tool-output-delta* (tool-finished | tool-error)

Blocks overlap freely, each under its own index, by which readers sort them. Tools run beside the messages. Every
frame is an envelope with the method (`messages`, `tools`, `custom`), a timestamp and `seq`.

The protocol has fewer words than we have, and `decode("langchain")` is to read back all of it. So what has no
place in it travels in one of these ways, none of which disturbs another reader:

* as further fields of a frame or block (the finish's `reason` and `metadata`, a reasoning's `signature`);
* as a `custom` event named `rxdelta`, whose payload is the event whole (usage, a provider's own events);
* in a block of the type `non_standard`, if its own type is none of the protocol's or a field is not what the
  protocol has there. `unwrap` says that the value is the block itself.

What we add for other readers' sake is marked, so that ours can leave it out: `synthetic` is a frame that stands for
no event (it closes what the source left open), `synthetic_id` an id of ours, `assumed` the fields of a block that
only the protocol wants, `folded` a finish that says nothing new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypedDict

import attrs

from rxdelta.core import (
    DEFAULT_LIMITS,
    Block,
    BlockFold,
    Citation,
    ContentPart,
    Event,
    InvalidValueError,
    LimitExceededError,
    ProviderError,
    TokenUsage,
    ToolCall,
    ToolResult,
    begins_another,
    block_to_wire,
    clean_text,
    thaw,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.encoding import Masked, cut_off, masked, whole_characters
from rxdelta.formats.notes import SYNTHETIC_ID
from rxdelta.framing import SSE_HEADERS

__all__ = ["LANGCHAIN_HEADERS", "LangChainEncoder", "LangChainFrame", "LangChainParams"]

LANGCHAIN_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that streams LangChain's protocol: those of any stream of events."""

Json: TypeAlias = dict[str, Any]
Method: TypeAlias = Literal["messages", "tools", "custom"]
Index: TypeAlias = int | str


class LangChainParams(TypedDict):
    """What a frame is about, and when it was written, in milliseconds since 1970."""

    namespace: list[str]
    timestamp: int
    data: dict[str, Any]


class LangChainFrame(TypedDict):
    """One event of the protocol in its envelope."""

    type: Literal["event"]
    seq: int
    method: Method
    params: LangChainParams


Out: TypeAlias = list[LangChainFrame]

_CUT = "The stream ended before the tool did."
_NEW_ATTEMPT = "The attempt failed, and another one begins."
_ANOTHER = "Another message began before this one had ended."


class LangChainEncoder:
    """The frames of one stream.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a message that has none.
        choice, namespace, on_error, first_seq: As of `rxdelta.to_langchain_events`.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.LangChainEncoder(now=lambda: 1.5, new_id=lambda: "m1")
        >>> (frame,) = encoder.encode(rd.events.MessageStart())
        >>> frame["method"], frame["params"]["data"]
        ('messages', {'event': 'message-start', 'role': 'ai', 'id': 'm1', 'synthetic_id': True})
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        choice: int = 0,
        namespace: Sequence[str] = (),
        on_error: Masked = masked,
        first_seq: int = 0,
    ) -> None:
        check_options(choice, namespace, first_seq)
        self._now = now
        self._new_id = new_id
        self._choice = choice
        self._namespace = tuple(map(clean_text, namespace))
        self._on_error = on_error
        self._seq = first_seq
        self._over = False
        self._state: Literal["none", "open", "closed"] = "none"
        self._id: str | None = None
        self._started = False  # by a start that really came
        self._usage: TokenUsage | None = None
        self._blocks: dict[Index, _Block] = {}  # of this message
        self._indexes: set[int] = set()
        self._free = 0  # no index from here on is taken
        self._tools: dict[str, _Tool] = {}  # by the call's id, of all messages

    def encode(self, event: Event, /) -> Sequence[LangChainFrame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: A block, its index or their number is too large.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        delta = _DELTAS.get(kind)
        if delta is not None:
            block = self._blocks.get(given.index) if given.choice == self._choice else None
            piece = getattr(given, delta[0])
            if block is None or block.fold.grows is not kind or not piece:
                return ()
            block.fold.grow(piece)
            return self._grown(block, given, piece)
        take = self._STEPS.get(kind)
        if take is None:
            raise InvalidValueError.of(
                [("event", event, "must be an event; chunks go through decode() first")]
            )
        if kind is not StreamError and getattr(given, "choice", self._choice) != self._choice:
            return ()
        return list(take(self, given))

    def fail(self, error: Exception, /) -> Sequence[LangChainFrame]:
        """The stream ended with an error: what is open is closed, and the message ends with what may be said of it."""
        if self._over:
            return ()
        self._over = True
        said = self._say(error)
        out = [*self._close_message(), *self._close_tools()]
        if self._state != "open":  # an error is always a message's
            out += self._begin(MessageStart(), synthetic=True)
        return [*out, self._message(event="error", message=said)]

    def close(self) -> Sequence[LangChainFrame]:
        """The stream completed. If its message hadn't, it was cut off, and ends as by `fail`."""
        if self._state != "closed":
            return self.fail(cut_off())
        if self._over:
            return ()
        self._over = True
        return list(self._close_tools())

    def _say(self, error: Exception) -> str:
        try:
            return clean_text(str(self._on_error(error)))
        except Exception as wrong:
            wrong.__context__ = error
            return masked(wrong)

    # Frames.

    def _frame(self, method: Method, data: Json) -> LangChainFrame:
        seq, self._seq = self._seq, self._seq + 1
        time = int(self._now() * 1000)
        params: LangChainParams = {"namespace": list(self._namespace), "timestamp": time, "data": data}
        return {"type": "event", "seq": seq, "method": method, "params": params}

    def _message(self, **data: Any) -> LangChainFrame:
        return self._frame("messages", data)

    def _custom(self, event: Event) -> LangChainFrame:
        """The event whole, which other readers skip."""
        payload = event.to_dict()
        payload.pop("choice", None)  # it is the only one that is told
        return self._frame("custom", {"name": "rxdelta", "payload": payload})

    # The message.

    def _begin(self, event: MessageStart, *, synthetic: bool = False) -> Iterator[LangChainFrame]:
        self._state = "open"
        self._id, self._usage = event.id, event.usage
        self._started = not (synthetic or event.assumed)
        self._blocks, self._indexes, self._free = {}, set(), 0
        data = event.to_dict()
        metadata: Json = data.pop("metadata", {})
        data.pop("choice", None)
        told = {name: value for name, value in metadata.items() if _is_told_at_start(name, value)}
        more = {name: value for name, value in metadata.items() if name not in told}
        if event.id is None:
            data |= {"id": clean_text(self._new_id()), SYNTHETIC_ID: True}
        data |= {"metadata": told} if told else {}
        data |= {"responseMetadata": more} if more else {}
        data |= {"synthetic": True} if synthetic else {}
        yield self._frame("messages", data)

    def _message_start(self, event: MessageStart) -> Iterator[LangChainFrame]:
        if self._state == "open":
            begun = self._started and bool(self._blocks)
            if not begins_another(event, id=self._id, begun=begun, over=False):
                self._started = self._started or not event.assumed
                self._id = self._id or event.id
                self._usage = self._usage or event.usage
                yield self._custom(event)
                return
            yield from self._close_message()
            yield self._message(event="error", message=_ANOTHER, synthetic=True)
        yield from self._begin(event)

    def _message_finish(self, event: MessageFinish) -> Iterator[LangChainFrame]:
        if self._state == "closed":
            yield self._custom(event)
            return
        if self._state == "none":
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self._close_message()
        self._state = "closed"
        data = event.to_dict()
        data.pop("choice", None)
        yield self._frame("messages", data | _usage(event.usage or self._usage))

    def _message_interrupted(self, event: MessageInterrupted) -> Iterator[LangChainFrame]:
        if self._state == "open":
            yield from self._close_message()
            why: str | bool = True if event.reason is None else event.reason
            yield self._message(event="message-finish", interrupted=why, **_usage(self._usage))
        else:
            yield self._custom(event)
        self._state = "closed"

    def _attempt_reset(self, event: AttemptReset) -> Iterator[LangChainFrame]:
        """What ended the attempt is not told: nobody has said what may be."""
        event = AttemptReset(event.attempt, usage=event.usage)
        if self._state == "open":
            yield from self._close_message()
            yield from self._close_tools(self._blocks)
            told = {name: value for name, value in event.to_dict().items() if name != "event"}
            yield self._message(event="error", message=_NEW_ATTEMPT, attempt_reset=told)
        else:
            yield self._custom(event)
        self._state = "none"

    def _close_message(self) -> Iterator[LangChainFrame]:
        """Finish the blocks that are open; to ours the end of the message says the same."""
        for block in self._blocks.values():
            if not block.done:
                yield from self._finished(block, synthetic=True)

    def _stream_error(self, event: StreamError) -> Sequence[LangChainFrame]:
        return self.fail(ProviderError(event.message, type=event.type, code=event.code))

    def _usage_update(self, event: UsageUpdate) -> Iterator[LangChainFrame]:
        if self._state == "open":
            self._usage = event.usage
        yield self._custom(event)

    def _provider_event(self, event: ProviderEvent) -> Iterator[LangChainFrame]:
        yield self._custom(event)

    # Blocks.

    def _block_start(self, event: BlockStart) -> Iterator[LangChainFrame]:
        if self._state == "closed":
            return
        fold = self._fold(event)  # before anything is told, since it may refuse
        if self._state == "none":
            yield from self._begin(MessageStart(), synthetic=True)
        known = self._blocks.get(event.index)
        if known is not None and not known.done:
            yield from self._finished(known, synthetic=True)
        block = self._blocks[event.index] = _Block(fold, self._index(event.index))
        self._know_call(fold.block)
        content, block.standard = _content(fold.block, so_far=False)
        key = {} if block.index == event.index else {"key": event.index}
        yield self._message(event="content-block-start", index=block.index, content=content, **key)
        for growth in _begun_with(block, event):
            yield from self._grown(block, growth, getattr(growth, _DELTAS[type(growth)][0]))

    def _fold(self, event: BlockStart) -> BlockFold:
        key = event.index
        if isinstance(key, int) and abs(key) >= DEFAULT_LIMITS.index:
            raise LimitExceededError.of("index", DEFAULT_LIMITS.index, "the block index")
        if len(self._blocks) >= DEFAULT_LIMITS.blocks and key not in self._blocks:
            raise LimitExceededError.of(
                "blocks", DEFAULT_LIMITS.blocks, "the number of blocks in one message"
            )
        return BlockFold(event)

    def _index(self, key: Index) -> int:
        """The source's own number, by which readers sort the blocks, or the next one."""
        index = key if isinstance(key, int) and key >= 0 and key not in self._indexes else self._free
        self._indexes.add(index)
        self._free = max(self._free, index + 1)
        return index

    def _grown(self, block: _Block, event: Any, piece: str) -> Sequence[LangChainFrame]:
        if block.half or not piece.isascii():
            piece, block.half = whole_characters(block.half, piece)
        block.grew_by = type(event)
        if not piece:
            return ()
        if block.standard:
            return [self._piece(block, piece)]
        return [self._custom(attrs.evolve(event, **{_DELTAS[block.grew_by][0]: piece}))]

    def _piece(self, block: _Block, piece: str) -> LangChainFrame:
        field, kind, more = _DELTAS[block.grew_by]
        delta = {"type": kind, field: piece, **more}
        return self._frame("messages", {"event": "content-block-delta", "index": block.index, "delta": delta})

    def _block_delta(self, event: BlockDelta) -> Iterator[LangChainFrame]:
        block = self._blocks.get(event.index)
        if block is None or block.done:
            return
        known = block.fold.block
        if block.fold.step(event) is known:
            return
        self._know_call(block.fold.block)
        fields = _changed(block.fold.block, event) if block.standard else None
        if fields is None:
            yield self._custom(event)
        else:
            delta = {"type": "block-delta", "fields": fields}
            yield self._message(event="content-block-delta", index=block.index, delta=delta)

    def _block_finish(self, event: BlockFinish) -> Iterator[LangChainFrame]:
        block = self._blocks.get(event.index)
        if block is None:
            if event.content is None or self._state == "closed":
                return
            yield from self._block_start(BlockStart(event.index, event.content))
            block = self._blocks[event.index]
        if block.done:
            if event.content is not None and self._state == "open":  # others keep what they were told first
                yield self._custom(event)
            return
        block.fold.finish(event.content)
        yield from self._finished(block, as_folded=event.content is None)

    def _finished(
        self, block: _Block, *, as_folded: bool = False, synthetic: bool = False
    ) -> Iterator[LangChainFrame]:
        finished = block.fold.finish()
        content, standard = _content(finished)
        if block.half and block.standard:  # its other half never came
            block.half = ""
            yield self._piece(block, "\ufffd")
        data: Json = {"event": "content-block-finish", "index": block.index, "content": content}
        if synthetic:
            data["synthetic"] = True
        elif as_folded and not standard and not block.half:
            data["folded"] = True
        self._know_call(finished)
        block.end()
        yield self._frame("messages", data)

    # Tools.

    def _know_call(self, block: Block) -> None:
        if not isinstance(block, ToolCall) or block.call_id is None:
            return
        tool = self._tools.setdefault(block.call_id, _Tool())
        tool.name = block.name or tool.name
        if not block.open:
            tool.arguments = block.arguments
        tool.key = block.key

    def _tool_update(self, event: ToolUpdate) -> Iterator[LangChainFrame]:
        tool, status = self._tools.get(event.call_id), event.execution_status
        ended = status in ("completed", "failed")
        if tool is None or tool.ended or not (ended or status == "executing"):
            yield self._custom(event)
        elif ended:
            if not tool.started:
                yield self._tool_started(event.call_id, tool, synthetic=True)
            tool.ended = True
            yield self._tool_ended(event)
        elif not tool.started:
            shown = {} if event.display_text is None else {"display_text": event.display_text}
            result = {} if event.result is None else {"result": event.result.to_dict()}
            yield self._tool_started(event.call_id, tool, **shown, **result)
        else:
            delta = tool.more(event)
            if delta is None:
                yield self._custom(event)
            else:
                yield self._tool("tool-output-delta", event.call_id, delta=delta)

    def _tool(self, name: str, call_id: str, **data: Any) -> LangChainFrame:
        return self._frame("tools", {"event": name, "tool_call_id": call_id, **data})

    def _tool_started(self, call_id: str, tool: _Tool, **more: Any) -> LangChainFrame:
        tool.started = True
        given = {} if tool.arguments is None else {"input": thaw(tool.arguments)}
        return self._tool("tool-started", call_id, tool_name=tool.name, **given, **more)

    def _tool_ended(self, event: ToolUpdate) -> LangChainFrame:
        """The result's content is the output; what else there is to a result stands beside it."""
        result = event.result
        data: Json = {} if event.display_text is None else {"display_text": event.display_text}
        content = None if result is None else thaw(result.content)
        failed = event.execution_status == "failed"
        if result is None:
            data["result"] = None
        elif result != ToolResult(event.call_id, content, failed) or (
            failed and not isinstance(content, str)
        ):
            data["result"] = result.to_dict()
        if failed:
            said = content if isinstance(content, str) else "" if content is None else _dumped(content)
            return self._tool("tool-error", event.call_id, message=said, **data)
        return self._tool("tool-finished", event.call_id, output=content, **data)

    def _close_tools(self, keys: Mapping[Index, object] | None = None) -> Iterator[LangChainFrame]:
        """End the tools that nobody will hear of any more."""
        for call_id, tool in self._tools.items():
            if tool.started and not tool.ended and (keys is None or tool.key in keys):
                tool.ended = True
                yield self._tool("tool-error", call_id, message=_CUT, synthetic=True)

    _STEPS: ClassVar[Mapping[type, Callable[..., Iterable[LangChainFrame]]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage_update,
        MessageFinish: _message_finish,
        StreamError: _stream_error,
        ProviderEvent: _provider_event,
        ToolUpdate: _tool_update,
        MessageInterrupted: _message_interrupted,
        AttemptReset: _attempt_reset,
    }


_DELTAS: Mapping[type, tuple[str, str, Mapping[str, str]]] = {
    TextDelta: ("text", "text-delta", {}),
    ReasoningDelta: ("reasoning", "reasoning-delta", {}),
    DataDelta: ("data", "data-delta", {"encoding": "base64"}),
    ToolCallDelta: ("args", "tool-call-delta", {}),
}


class _Block:
    """A block of the message that is open."""

    __slots__ = ("done", "fold", "grew_by", "half", "index", "standard")

    def __init__(self, fold: BlockFold, index: int) -> None:
        self.fold = fold
        self.index = index
        self.grew_by: type = TextDelta
        self.half = ""  # of the character that its text ends with so far
        self.standard = True
        self.done = False

    def end(self) -> None:
        """Keep what decides about later events of it, but not its text."""
        self.done = True
        self.fold = _ENDED


_ENDED = BlockFold(ContentPart())


class _Tool:
    """A call, as far as it is to be told when it is run."""

    __slots__ = ("arguments", "ended", "key", "name", "started", "told")

    def __init__(self) -> None:
        self.name = ""
        self.arguments: Any = None
        self.key: Any = None
        self.started = False
        self.ended = False
        self.told = ""

    def more(self, event: ToolUpdate) -> str | None:
        """What a partial result adds to the text told so far, if that is all that the event says."""
        result = event.result
        if result is None or event.display_text is not None or not isinstance(result.content, str):
            return None
        if result != ToolResult(event.call_id, result.content) or not result.content.startswith(self.told):
            return None
        delta = result.content[len(self.told) :]
        self.told = result.content
        return delta or None


# Contents.

_OWN = {"text": "text", "reasoning": "reasoning", "refusal": "text"} | dict.fromkeys(
    ["image", "video", "audio", "file"], "base64"
)
"""Where the text of a part stands, for those that the protocol has; a result has none."""
_STRINGS: Mapping[str, tuple[str, ...]] = {
    "text": ("id",),
    "refusal": ("id",),
    "reasoning": ("id",),
    "server_tool_result": ("id",),
} | dict.fromkeys(["image", "video", "audio", "file"], ("id", "file_id", "url", "mime_type"))
_MARKS = frozenset(["assumed", "unwrap"])
_RESERVED: Mapping[str, frozenset[str]] = {
    "text": frozenset(["text", "refusal", "annotations", *_MARKS]),
    "refusal": frozenset(["text", "refusal", "annotations", *_MARKS]),
    "reasoning": frozenset(["reasoning", "thinking", "annotations", *_MARKS]),
    "server_tool_result": frozenset(["data", "annotations", *_MARKS]),
} | dict.fromkeys(["image", "video", "audio", "file"], frozenset(["base64", "data", "annotations", *_MARKS]))
"""Names that an option of a part can't have beside what the protocol, or we, have under them."""
_CALL_RESERVED = frozenset(["id", "name", "args", "arguments", "input", "error", "assumed", "unwrap"])
_STRING_METADATA = frozenset(
    ["provider", "model", "model_type", "run_id", "thread_id", "system_fingerprint", "service_tier"]
)


def _content(block: Block, *, so_far: bool = True) -> tuple[Json, bool]:
    """A block's content, and whether that is what the protocol has for it. Without `so_far`, its text is left out."""
    if isinstance(block, ToolCall):
        return _call_content(block, so_far)
    options: Json = thaw(block.options)
    text = block.text if so_far or not block.text else ""
    if block.type == "unsupported":
        return {"type": "non_standard", "value": options | ({} if text is None else {"data": text})}, False
    citations = [citation.to_dict() for citation in block.citations]
    if not _has_a_form(block, options):
        said = {"citations": citations} if citations else {}
        value = {"type": block.type, **options, **said}
        if text is not None:
            value.setdefault({"text": "text", "reasoning": "reasoning"}.get(block.type, "data"), text)
        return {"type": "non_standard", "value": value, "unwrap": True}, False
    content: Json = {"type": "text" if block.type == "refusal" else block.type}
    assumed: list[str] = []
    if block.type in _OWN:
        if text is not None:
            content[_OWN[block.type]] = text
        elif _OWN[block.type] == "text":
            content["text"] = ""
            assumed.append("text")
    elif "status" not in options:
        content["status"] = "success"
        assumed.append("status")
    content |= options
    if block.type == "refusal":
        content["refusal"] = True
    if citations:
        content["annotations"] = [{"type": "citation", **citation} for citation in citations]
    if assumed:
        content["assumed"] = assumed
    return content, True


def _has_a_form(part: ContentPart, options: Json) -> bool:
    if part.type not in _STRINGS or not _RESERVED[part.type].isdisjoint(options):
        return False
    if any(not isinstance(options.get(name, ""), str) for name in _STRINGS[part.type]):
        return False
    if part.type != "server_tool_result":
        return True
    status = options.get("status", "success")
    return (
        part.text is None
        and isinstance(options.get("tool_call_id"), str)
        and isinstance(status, str)
        and status in ("success", "error")
    )


def _call_content(call: ToolCall, so_far: bool) -> tuple[Json, bool]:
    wire = block_to_wire(call)
    status = call.metadata.get("execution_status")
    if status is not None:
        wire["execution_status"] = status
    wire = thaw(wire)
    kind, arguments = wire["type"], wire.get("args")
    fits = _CALL_RESERVED.isdisjoint(call.metadata)
    if kind == "invalid_tool_call":
        fits = fits and not call.open  # it would take no more arguments
    elif kind == "server_tool_call":
        fits = fits and "error" not in wire and isinstance(arguments, dict)
        fits = fits and isinstance(wire.get("id"), str) and isinstance(wire.get("name"), str)
    elif kind == "server_tool_call_chunk":
        fits = fits and not isinstance(arguments, dict) and "error" not in wire
    if not fits:
        return {"type": "non_standard", "value": wire, "unwrap": True}, False
    if kind in ("tool_call_chunk", "invalid_tool_call", "tool_call"):
        wire = {"type": kind, "id": None, "name": None, "args": None, **wire}
    if kind == "invalid_tool_call":
        wire.setdefault("error", None)
    if isinstance(arguments, str) and not so_far:
        wire["args"] = ""
    if isinstance(arguments, dict) and kind in ("tool_call_chunk", "invalid_tool_call"):
        wire |= {"args": _dumped(wire["args"]) if arguments else "", "arguments": wire["args"]}
    return wire, True


def _begun_with(block: _Block, event: BlockStart) -> Iterator[Event]:
    """The text with which a block begins, as a delta: readers look for text nowhere else."""
    begun = block.fold.block
    text = begun.text if isinstance(begun, ContentPart) else begun.arguments if block.standard else None
    make = block.fold.grows
    if text and isinstance(text, str) and make is not None:
        yield make(event.index, text)


def _changed(block: Block, event: BlockDelta) -> Json | None:
    """The fields of a delta in the protocol's words; `None` if they say something else there."""
    fields = {
        name: thaw(value)
        for name, value in event.fields.items()
        if value is not None and name not in ("type", "index")
    }
    if isinstance(block, ToolCall):
        kind = block.type if block.type == "invalid_tool_call" else f"{block.type}_chunk"
        return None if not _MARKS.isdisjoint(fields) else {"type": kind, **fields}
    own = _OWN.get(block.type)
    words = {"text": "text", "reasoning": "reasoning", "refusal": "refusal"}
    text = fields.pop(words.get(block.type, "data"), None)
    citations = fields.pop("citations", None)
    if not _RESERVED.get(block.type, _MARKS).isdisjoint(fields):
        return None
    if text is not None:
        if own is None or not isinstance(text, str):
            return None
        fields[own] = text
    if citations is not None:
        known: Sequence[Citation] = block.citations
        fields["annotations"] = [{"type": "citation", **citation.to_dict()} for citation in known]
    return {"type": "text" if block.type == "refusal" else block.type, **fields}


def _is_told_at_start(name: str, value: object) -> bool:
    """Whether it is one of the plain facts that the start of a message may tell."""
    if name in _STRING_METADATA:
        return isinstance(value, str)
    return value is None or isinstance(value, (bool, int, float, str))


def _usage(usage: TokenUsage | None) -> Json:
    """The protocol's counts; the provider's own object beside them, if it is another."""
    if usage is None:
        return {}
    raw: Json = thaw(usage.raw)
    total = raw.get("total_tokens")
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    known = {name: count for name, count in counts.items() if count is not None}
    of_ours = usage.cumulative or "raw" in raw or isinstance(total, bool) or not isinstance(total, int)
    if not of_ours and {name: raw.get(name) for name in counts} == counts and _details_fit(raw):
        return {"usage": {name: value for name, value in raw.items() if name not in counts} | known}
    flag = {"cumulative": True} if usage.cumulative else {}
    unknown = [name for name in counts if name not in known]  # LangChain's messages must have both
    assumed = {"assumed": unknown} if unknown else {}
    told = dict.fromkeys(counts, 0) | known
    return {"usage": told | {"total_tokens": usage.total(), "raw": raw} | flag | assumed}


def _details_fit(raw: Json) -> bool:
    for name, wanted in (
        ("input_token_details", ("audio", "cache_creation", "cache_read")),
        ("output_token_details", ("audio", "reasoning")),
    ):
        details: Any = raw.get(name, {})
        if not isinstance(details, dict):
            return False
        if not all(type(raw[name][one]) is int for one in wanted if one in details):
            return False
    return True


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_options(choice: object, namespace: object, first_seq: object) -> None:
    """Refuse options that make no sense.

    Raises:
        InvalidValueError: Naming the first that is wrong.
    """
    for name, value in (("choice", choice), ("first_seq", first_seq)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidValueError.of([(name, value, "must be a whole number from 0")])
    if isinstance(namespace, (str, bytes)) or not isinstance(namespace, Sequence):
        raise InvalidValueError.of([("namespace", namespace, "must be a list of strings")])
    if not all(isinstance(one, str) for one in namespace):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidValueError.of([("namespace", namespace, "must be a list of strings")])  # pyright: ignore[reportUnknownArgumentType]
