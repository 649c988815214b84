"""LangChain: the chunks of its chat models, whole messages, and the event protocol that its newer models speak.

    stream  = message* | event*
    message = type? content: text | [text | part]* tool_call_chunks? tool_calls? invalid_tool_calls? usage_metadata?
              additional_kwargs? response_metadata? id? chunk_position?
    part    = type index? id? …                 `text`, `reasoning`, `tool_call_chunk`, …, or a provider's own
    event   = event: `message-start` | `content-block-start` | `content-block-delta` | …

An event is one of ours already and passes as it is, in today's spelling or an older one. All else here is of
messages. They come as LangChain's objects, as what `model_dump`, `messages_to_dict` and `toDict` make of them, as
the form in which Python and JavaScript store them (`lc`, `kwargs`), within a generation (`message`), or within
an event of `astream_events` or of the agent protocol.

In that protocol's envelope an event has the protocol's words (`base64`, `annotations`), and beside them what
`to_langchain_events` adds, by which all that it was told comes back. Its channel `tools` tells the news of the calls
that are run.

**What belongs together** is as LangChain's own `+` has it. Two parts of a list, or two fragments of calls, are
one if they have the same `index`, a whole number or a string that begins with `lc_`, and no two ids that differ.
One without such an index is whole: nothing continues it. Texts are joined, other strings of a part too (but not
a name or a type that is repeated), lists are appended, numbers added, and a field that changes its type is an
error. A content that is a string is one text, until a part of a list comes between.

Where that would lose something it is not followed. Fragments of one call within the first chunk are joined, a
part of another type begins a new block, and a fragment without an id at the index of several calls belongs to the
first whose arguments go on. Of metadata the last value counts: `+` would make `mm` of a model that is named
twice. Usage is added up, as it is there, and each event has the sum so far.

**Calls** stand in `tool_call_chunks` and again in the content, as the provider or the standard has them; they are
told once, where the content has them. A chunk's `tool_calls` are read only where there are no fragments, since
they are what LangChain makes of half of them.

**What the provider adds** outside of the content is told as what it is: `reasoning_content`, `refusal`, `audio`
and the old `function_call` of `additional_kwargs`. The rest of it stays there, in the message's metadata.

**The end** is the chunk with `chunk_position: "last"`, or a whole message. A finish reason (which each provider
writes under a name of its own into `response_metadata`) ends the blocks, but the message only at the end of
input, since the usage may follow.

A block's `index` is a string that says where LangChain has it: `part:1` is the part of the content with that
index, `call:0` the call with that one, `call:~3` a call without an index that is the message's fourth block,
`text:0` a content that is a string and the first block.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    InvalidValueError,
    LimitExceededError,
    TokenUsage,
    ToolResult,
    events,
    freeze,
    is_mapping,
    real_id,
    reasoning_delta,
    text_delta,
    thaw,
    tool_call_delta,
)
from rxdelta.formats.decoding import NOTHING, Fields, as_mapping, due, kept, usage_of, word
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, REDACTED, SYNTHETIC_ID, call_identity

__all__ = ["LangChainDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]
Index: TypeAlias = int | str

_READ = Fields("langchain")


class LangChainDecoder:
    """Message chunks, messages and protocol events of one stream in, events out.

    Example:
        >>> decoder = LangChainDecoder()
        >>> chunk = {"type": "AIMessageChunk", "content": "Hi", "id": "m1", "chunk_position": "last"}
        >>> [event.event for event in decoder.decode(chunk)][:3]
        ['message-start', 'content-block-start', 'content-block-delta']
        >>> decoder.decode({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "Hi"}})
        (TextDelta(index=0, text='Hi', choice=0),)
    """

    def __init__(self) -> None:
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self._over = False
        self._started = False
        self._finished = False
        self._id: str | None = None
        self._told_id: str | None = None
        self._model: str | None = None
        self._told_model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._kwargs: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._told_usage: TokenUsage | None = None
        self._word: str | None = None
        self._reason: str | None = None
        self._blocks = 0
        self._open: dict[str, _Block] = {}
        self._at: dict[tuple[str, Index], list[_Block]] = {}
        self._prose: _Block | None = None
        self._keys: dict[int, Index] = {}  # of blocks that were told under another index than their own
        self._outputs: dict[str, str] = {}  # of tools that are running, so far

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or LangChain's `AIMessageChunk`, `AIMessage` or generation.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: An index is absurd.
        """
        if self._over:
            return ()
        found = _fields_of(chunk)
        event = self._plain(found)
        if event is not None:
            return (event,)
        if isinstance(found.get("event"), str):
            return self._decode_event(found, "")
        if found.get("type") == "event" and isinstance(found.get("method"), str):
            return self._decode_envelope(found)
        return self._decode_message(*_message_in(found))

    def close(self) -> Sequence[Event]:
        """End of input: the message's finish, if the provider gave a reason. One without was cut off."""
        out, self._out = self._out, []
        if self._reason is not None and self._started and not self._over:
            self._finish(out)
        self._over = True
        return out

    def _plain(self, found: Json) -> Event | None:
        """The event of a chunk that is nothing but more text, as nearly all are."""
        prose, text = self._prose, found.get("content")
        if type(text) is not str or not text or prose is None or prose.space not in ("text", "item"):
            return None
        for name, value in found.items():
            if value and name not in _PLAIN:
                return None
        kind, said = found.get("type", "AIMessageChunk"), found.get("id")
        if (
            kind != "AIMessageChunk"
            or (said and said != self._id and _rank(said) > _rank(self._id))
            or self._out
        ):
            return None
        return text_delta(prose.key, text)

    # Events.

    def _decode_event(self, found: Json, path: str) -> Sequence[Event]:
        name = found["event"]
        if name.startswith("on_"):
            return self._decode_run(found)
        event = _event(found, path)
        if isinstance(event, events.StreamError):
            self._over = True
        more = {key: value for key, value in found.items() if key not in _EVENT_FIELDS}
        if not more or isinstance(event, events.ProviderEvent):
            return (event,)
        passed_on = events.ProviderEvent("langchain", event.event, kept(more))
        return (passed_on, event) if self._over else (event, passed_on)

    def _decode_run(self, found: Json) -> Sequence[Event]:
        """An event of `astream_events`: those of a chat model hold its chunks."""
        data = _READ.mapping(found.get("data"), "data")
        chunk = data.get("chunk")
        if found["event"] == "on_chat_model_stream" and chunk is not None:
            return self._decode_message(*_message_in(_fields_of(chunk), "data.chunk."))
        return (events.ProviderEvent("langchain", found["event"], kept(found)),)

    def _decode_envelope(self, found: Json) -> Sequence[Event]:
        """An event of the agent protocol: those of the method `messages` hold the ones of a message."""
        method, data = found["method"], _READ.mapping(found.get("params"), "params").get("data")
        if isinstance(data, Mapping):
            payload = data.get("payload")
            if method == "messages" and isinstance(data.get("event"), str):
                return self._decode_framed(data, "params.data.")
            if method == "tools" and data.get("event") in _TOOLS:
                return self._decode_tool(data)
            if method == "custom" and data.get("name") == "rxdelta" and isinstance(payload, Mapping):
                return (_event({"event": "", **payload}, "params.data.payload."),)
        return (events.ProviderEvent("langchain", method, kept(found)),)

    def _decode_framed(self, data: Json, path: str) -> Sequence[Event]:
        """An event of a message, without what our own encoder adds to it for other readers' sake."""
        name, index = data["event"], data.get("index")
        if name == "content-block-delta" and not self._keys:
            return self._decode_event(data, path)
        if name == "message-start":
            self._keys = {}
        elif name == "content-block-start" and type(index) is int:
            self._keys.pop(index, None)
            if isinstance(data.get("key"), (int, str)):
                self._keys[index] = data["key"]
        if data.get("synthetic") is True:
            return ()
        reset = data.get("attempt_reset")
        if name == "error" and isinstance(reset, Mapping):
            return (_event({**reset, "event": "attempt-reset"}, f"{path}attempt_reset."),)
        if name == "message-finish" and "interrupted" in data:
            return (events.MessageInterrupted(word(data["interrupted"])),)
        wire = {key: value for key, value in data.items() if key not in _ADDED}
        if type(index) is int and index in self._keys:
            wire["index"] = self._keys[index]
        if data.get(SYNTHETIC_ID) is True:
            wire.pop("id", None)
        if isinstance(data.get("usage"), Mapping):
            wire["usage"] = _without_assumed(data["usage"])
        if data.get("folded") is True:
            wire.pop("content", None)
        return self._decode_event(wire, path)

    def _decode_tool(self, data: Json) -> Sequence[Event]:
        """News of a call that is run. What the tool is given is known from the call."""
        if data.get("synthetic") is True:
            return ()
        name, call_id = data["event"], data.get("tool_call_id")
        if not isinstance(call_id, str):
            raise _READ.fail("params.data.tool_call_id", "a string", call_id)
        result: ToolResult | None = None
        try:
            if name == "tool-output-delta":
                text = self._outputs.get(call_id, "") + _READ.text(data.get("delta"), "params.data.delta")
                if len(text) > DEFAULT_LIMITS.block_chars:
                    raise LimitExceededError.of(
                        "block_chars", DEFAULT_LIMITS.block_chars, "the output of one tool"
                    )
                self._outputs[call_id] = text
                result = ToolResult(call_id, text)
            elif "result" in data:
                found = data["result"]
                result = (
                    None
                    if found is None
                    else ToolResult.from_dict(_READ.mapping(found, "params.data.result"))
                )
            elif name == "tool-finished":
                result = ToolResult(call_id, data.get("output"))
            elif name == "tool-error":
                result = ToolResult(call_id, data.get("message"), is_error=True)
            update = events.ToolUpdate(call_id, _TOOLS[name], data.get("display_text"), result)
        except InvalidValueError as error:
            raise _READ.fail(f"params.data.{error.field}", f"what a {name} has there", error.value) from None
        if update.execution_status != "executing":
            self._outputs.pop(call_id, None)
        return (update,)

    # Messages.

    def _decode_message(self, message: Json, path: str) -> Sequence[Event]:
        kind = word(message.get("type"))
        if (kind is not None and kind not in _OURS) or self._finished:
            return self._pass_on(message)
        whole = kind in _WHOLE and "tool_call_chunks" not in message
        if whole and self._started:  # the same again, as the end of a run has it
            return self._pass_on(message)
        out = self._out
        ended = self._read_envelope(message, path) or whole or message.get("chunk_position") == "last"
        if not self._started and (ended or _says_something(message)):
            self._start(out)
        if self._started:
            self._read(out, message, path)
            if self._reason is not None or ended:
                self._end_blocks(out)
            if whole or message.get("chunk_position") == "last":
                self._finish(out)
        self._out = []
        return out

    def _pass_on(self, message: Json) -> Sequence[Event]:
        says = [value for name, value in message.items() if name not in ("type", "id", "chunk_position")]
        if all(value in NOTHING for value in says):
            return ()
        return (events.ProviderEvent("langchain", word(message.get("type")) or "message", kept(message)),)

    def _read_envelope(self, message: Json, path: str) -> bool:
        """Take what is said of the whole message. Whether the finish reason is in it."""
        found = _READ.text(message.get("id"), f"{path}id")
        if found and _rank(found) > _rank(self._id):
            self._id = found
        metadata = _READ.mapping(message.get("response_metadata"), f"{path}response_metadata")
        named = word(metadata.get("model_name")) or word(metadata.get("model"))
        self._model = self._model or named
        said = _reason_of(metadata)
        known = {name: value for name, value in metadata.items() if name not in _MODEL_NAMES}
        _remember(self._metadata, known)
        _remember(
            self._metadata,
            {name: value for name, value in message.items() if name not in _MESSAGE and value is not False},
        )
        if said is None or self._reason is not None:
            return False
        self._word, self._reason = said, _REASONS.get(said.lower(), "stop")
        return True

    def _start(self, out: Out) -> None:
        self._started = True
        self._told_id, self._told_model = self._id, self._model
        out.append(events.MessageStart(self._id, self._model, None, _known_at_start(self._metadata)))

    def _read(self, out: Out, message: Json, path: str) -> None:
        calls = self._calls_of(message, path)
        self._read_kwargs(out, message, calls.ever, f"{path}additional_kwargs")
        content = message.get("content")
        if isinstance(content, str):
            if content:  # behind a string in a list it is more of that
                space = "item" if self._prose is not None and self._prose.space == "item" else "text"
                self._write(out, space, "text", content)
        else:
            for place, part in enumerate(_READ.items(content, f"{path}content")):
                self._read_item(out, part, calls, f"{path}content[{place}]")
        for call in calls.left:
            self._read_call(out, call)
        usage = message.get("usage_metadata")
        if usage is not None:
            self._add_usage(out, _READ.mapping(usage, f"{path}usage_metadata"))

    def _add_usage(self, out: Out, usage: Json) -> None:
        self._usage = _sum(self._usage or {}, usage)
        told = usage_of(self._usage, self._usage.get("input_tokens"), self._usage.get("output_tokens"))
        if usage and told != self._told_usage:
            self._told_usage = told
            out.append(events.UsageUpdate(told))

    def _read_kwargs(self, out: Out, message: Json, has_calls: bool, path: str) -> None:
        kwargs = _READ.mapping(message.get("additional_kwargs"), path)
        rest: dict[str, Any] = {}
        for name, value in kwargs.items():
            at = f"{path}.{name}"
            if name in _PROSE_KWARGS and isinstance(value, str):
                if value:
                    self._write(out, f"kwargs:{name}", _PROSE_KWARGS[name], value)
            elif name == "function_call" and isinstance(value, Mapping):
                entry = {"name": value.get("name"), "args": value.get("arguments")}
                more = {key: one for key, one in value.items() if key not in ("name", "arguments")}
                self._read_call(out, _Fragment("kwargs:function_call", 0, entry, more, at, "arguments"))
            elif name == "audio" and isinstance(value, Mapping):
                self._read_indexed(out, "kwargs:audio", 0, {**value, "type": "audio"}, at)
            elif not (name == "tool_calls" and has_calls):
                rest[name] = value
        _merge(self._kwargs, rest, path)

    # Parts of a content.

    def _read_item(self, out: Out, found: object, calls: _Calls, path: str) -> None:
        if isinstance(found, str):
            self._end_prose(out)
            if found:
                self._write(out, "item", "text", found)
            return
        part = _READ.mapping(found, path)
        kind = _kind(part)
        if kind in _CALLS:
            self._read_call_part(out, part, calls, path)
        else:
            self._read_indexed(out, "part", part.get("index"), part, path)

    def _read_call_part(self, out: Out, part: Json, calls: _Calls, path: str) -> None:
        """A call in the content: the same as one of `tool_call_chunks`, if there is one that it can be."""
        own = _fragment_of(part, self._index(part.get("index"), path), path)
        same = None if own.grows == "server_tool_call" else calls.take(own)
        if same is not None:
            same.entry = {**same.entry, "id": same.entry.get("id") or own.entry.get("id")}
            same.fields = {**own.fields, **same.fields}
            self._read_call(out, same)
        elif own.entry.get("id") or not calls.ever:
            self._read_call(out, own)

    def _index(self, value: object, path: str, *, strings: bool = True) -> Index | None:
        """The index by which a part is found again; `None` for one that nothing continues."""
        if value is None:
            return None
        if isinstance(value, str):
            if value.removeprefix("-").isdecimal() and not strings and len(value) < 20:
                value = int(value)
            elif strings:
                return value if value.startswith("lc_") else None
            else:
                raise _READ.fail(f"{path}.index", "a whole number", value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _READ.fail(f"{path}.index", 'a whole number or a string that begins with "lc_"', value)
        if abs(value) >= DEFAULT_LIMITS.index:
            raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the index at {path}.index")
        return value

    def _find(self, space: str, index: Index | None, part_id: str | None) -> _Block | None:
        """The block that a part or fragment continues, as LangChain's `merge_lists` finds it."""
        if index is None:
            return None
        found = [
            block
            for block in self._at.get((space, index), ())
            if part_id is None or block.id is None or block.id == part_id
        ]
        if len(found) > 1 and part_id is None:
            return next((block for block in found if block.goes_on), found[-1])
        if len(found) > 1:
            return next((block for block in found if block.id == part_id), found[0])
        return found[0] if found else None

    def _read_indexed(self, out: Out, space: str, at: object, part: Json, path: str) -> None:
        index = self._index(at, path)
        part_id = word(part.get("id"))
        kind = _kind(part)
        block = self._find(space, index, part_id)
        if block is not None and kind == "non_standard" and block.kind != "non_standard":
            value = part.get("value")
            extras = {name: one for name, one in value.items() if name != "type"} if is_mapping(value) else {}
            self._change(out, block, {"extras": extras}, path)
            return
        read = _piece_of(part, kind, path)
        if block is not None and part.get("type") is not None and block.grows != read.grows:
            block = None
        if block is None:
            self._end_prose(out)
            citations = [_citation(one) for one in read.citations]
            said = at if isinstance(at, str) else ""  # a string that nothing goes by
            block = self._begin(out, space, index, read.content, read.grows, part_id, said)
            block.kind = kind
            block.citations = list(read.citations)
            if citations:
                out.append(events.BlockDelta(block.key, {"citations": citations}))
                block.told_citations = len(citations)
        else:
            if block.id is None:
                block.id = part_id
            self._change(out, block, read.content, path)
            block.citations.extend(read.citations)
            if due(len(block.citations), block.told_citations):
                self._tell_citations(out, block)
        if read.text:
            joint = "\n\n" if read.group is not None and block.group not in (None, read.group) else ""
            out.append(_GROWTH[block.grows](block.key, joint + read.text))
        if read.group is not None:
            block.group = read.group
        if index is None:
            self._finish_block(out, block)

    # Calls.

    def _calls_of(self, message: Json, path: str) -> _Calls:
        """What the message says of calls outside of its content."""
        found: list[_Fragment] = []
        names = (
            ("tool_call_chunks",) if message.get("tool_call_chunks") else ("tool_calls", "invalid_tool_calls")
        )
        for name in names:
            for place, item in enumerate(_READ.items(message.get(name), f"{path}{name}")):
                at = f"{path}{name}[{place}]"
                entry = _READ.mapping(item, at)
                index = (
                    self._index(entry.get("index"), at, strings=False) if name == "tool_call_chunks" else None
                )
                fields = {key: value for key, value in entry.items() if key not in _CALL_FIELDS}
                if name == "invalid_tool_calls":
                    entry = {**entry, "type": "invalid_tool_call"}
                found.append(_Fragment("call", index, entry, fields, at, "args"))
        return _Calls(found)

    def _read_call(self, out: Out, call: _Fragment) -> None:
        path = call.path
        call_id = real_id(_READ.text_of(call.entry, "id", path).strip())
        name = _READ.text_of(call.entry, "name", path)
        args = call.entry.get("args")
        if isinstance(args, Mapping):
            args = freeze(args, lenient=True)
        elif args is not None and not isinstance(args, str):
            raise _READ.fail(f"{path}.{call.said}", "a string or an object", args)
        block = self._find(call.space, call.index, call_id)
        if block is not None and block.grows != call.grows and (call.grows or block.grows not in _WHOSE):
            block = None
        if block is None:
            self._end_prose(out)
            call.grows = call.grows or "tool_call"
            known: dict[str, Any] = call_identity(call_id, self._made_up_id())
            kind = f"{call.grows}_chunk"
            content = {**call.fields, "type": kind, "name": call.entry.get("name"), **known}
            if isinstance(args, str):
                content["args"] = ""
            block = self._begin(out, call.space, call.index, content, call.grows, call_id, call.at)
            block.name = name
            block.error = _READ.text_of(call.entry, "error", path) if call.is_invalid else None
            block.invalid = call.is_invalid
        else:
            new: dict[str, Any] = {}
            if call_id is not None and block.id is None:
                block.id = call_id
                new |= {"id": call_id, SYNTHETIC_ID: False}
            if name and name != block.name:
                block.name += name
                new["name"] = block.name
            self._change(out, block, call.fields, path)
            if new:
                out.append(events.BlockDelta(block.key, new))
        self._add_arguments(out, block, args)
        if call.index is None:
            self._finish_block(out, block)

    def _add_arguments(self, out: Out, block: _Block, args: Any) -> None:
        if isinstance(args, str):
            if args or not block.has_arguments:
                out.append(tool_call_delta(block.key, args))
            block.has_arguments = True
            if args and not args.isspace():
                block.goes_on = not args.rstrip().endswith("}")
        elif args:
            block.has_arguments, block.goes_on = True, False
            out.append(events.BlockDelta(block.key, {"args": args}))

    def _made_up_id(self) -> str:
        return f"{self._told_id or 'call'}-{self._blocks}"

    # Blocks.

    def _begin(
        self,
        out: Out,
        space: str,
        index: Index | None,
        content: Json,
        grows: str,
        block_id: str | None,
        at: str = "",
    ) -> _Block:
        place = None if index is None else (space, index)
        key = f"{space}:{at if index is None else index}"
        if place is None or place in self._at:
            key += f"~{self._blocks}"
        block = _Block(key, grows, block_id)
        self._blocks += 1
        if place is not None:
            self._at.setdefault(place, []).append(block)
        self._open[block.key] = block
        known: Json = content.get("value", {}) if grows == "other" else content
        block.fields = {name: thaw(freeze(value, lenient=True)) for name, value in known.items()}
        out.append(events.BlockStart(block.key, content))
        return block

    def _write(self, out: Out, space: str, grows: str, text: str) -> None:
        """A piece of a text that has no index: to the block being written, if that is the same."""
        prose = self._prose
        if prose is None or prose.space != space:
            self._end_prose(out)
            content = {"type": grows, grows: ""}
            key = f"{space}:{self._blocks}"
            prose = self._prose = _Block(key, grows, None)
            prose.space = space
            self._blocks += 1
            self._open[key] = prose
            out.append(events.BlockStart(key, content))
        out.append(_GROWTH[grows](prose.key, text))

    def _end_prose(self, out: Out) -> None:
        if self._prose is not None:
            self._finish_block(out, self._prose)

    def _change(self, out: Out, block: _Block, content: Json, path: str) -> None:
        """Merge what a later piece says beyond its text, and tell what is new."""
        known: Json = content.get("value", {}) if block.grows == "other" else content
        own = ("type", "index") if block.grows == "other" else ("type", "index", block.grows)
        changed = block.grow_fields({name: known[name] for name in known if name not in own}, path)
        if changed:
            out.append(events.BlockDelta(block.key, {name: block.fields[name] for name in changed}))

    def _tell_citations(self, out: Out, block: _Block) -> None:
        if len(block.citations) > block.told_citations:
            block.told_citations = len(block.citations)
            out.append(
                events.BlockDelta(block.key, {"citations": [_citation(one) for one in block.citations]})
            )

    def _finish_block(self, out: Out, block: _Block) -> None:
        del self._open[block.key]
        if block is self._prose:
            self._prose = None
        self._tell_citations(out, block)
        late = block.tell_late()
        if late:
            out.append(events.BlockDelta(block.key, late))
        content: Json | None = None
        if block.grows == "tool_call":
            wrong = "cut off by the token limit" if self._reason == "length" else None
            wrong = wrong or (block.error or "marked invalid by its source" if block.invalid else None)
            if wrong is None and not block.name.strip():
                wrong = "the call has no name"
            content = None if wrong is None else {"type": "invalid_tool_call", "error": wrong}
        out.append(events.BlockFinish(block.key, content))

    # The end.

    def _end_blocks(self, out: Out) -> None:
        for block in list(self._open.values()):
            self._finish_block(out, block)
        self._at = {place: [] for place in self._at}  # their keys stay taken

    def _finish(self, out: Out) -> None:
        if self._finished:
            return
        self._end_blocks(out)
        self._finished = True
        late: dict[str, Any] = {} if self._model == self._told_model else {"model": self._model}
        if self._id != self._told_id:
            late["message_id"] = self._id
        if self._kwargs:
            late["additional_kwargs"] = self._kwargs
        out.append(
            events.MessageFinish(
                self._reason or "stop", self._word, self._told_usage, {**self._metadata, **late}
            )
        )


class _Block:
    """What must be known of a block to find and continue it."""

    __slots__ = (
        "_growing",
        "citations",
        "error",
        "fields",
        "goes_on",
        "group",
        "grows",
        "has_arguments",
        "id",
        "invalid",
        "key",
        "kind",
        "name",
        "space",
        "told_citations",
    )

    def __init__(self, key: str, grows: str, block_id: str | None) -> None:
        self.key = key
        self.grows = grows
        self.id = block_id
        self.kind = grows
        self.space = ""
        self.name = ""
        self.fields: dict[str, Any] = {}
        self.citations: list[Json] = []
        self.told_citations = 0
        self.group: object = None  # the part of a summary that was written last
        self.has_arguments = False
        self.goes_on = False
        self.invalid = False
        self.error: str | None = None
        self._growing: dict[str, tuple[list[str], int, int]] = {}

    def grow_fields(self, fields: Json, path: str) -> list[str]:
        """The names of the fields that are to be told, merged as `merge_dicts` does it.

        A string that grows is told whole, each time that it has grown by an eighth.
        """
        changed: list[str] = []
        for name, value in fields.items():
            before = self.fields.get(name)
            if value is None or (value == before and (not isinstance(value, str) or name in _SAID_ONCE)):
                continue
            if isinstance(before, str) and isinstance(value, str):
                if not value:
                    continue
                pieces, length, told = self._growing.get(name, ([before], len(before), len(before)))
                pieces.append(value)
                length += len(value)
                if due(length, told):
                    self.fields[name] = "".join(pieces)
                    pieces, told = [self.fields[name]], length
                    changed.append(name)
                self._growing[name] = pieces, length, told
            else:
                _merge(self.fields, {name: value}, path)
                changed.append(name)
        return changed

    def tell_late(self) -> dict[str, Any]:
        """What has grown since it was told."""
        return {
            name: "".join(pieces) for name, (pieces, length, told) in self._growing.items() if length > told
        }


class _Fragment:
    """What one chunk says of a call."""

    __slots__ = ("at", "entry", "fields", "grows", "index", "is_invalid", "path", "said", "space")

    def __init__(
        self, space: str, index: Index | None, entry: Json, fields: Json, path: str, said: str
    ) -> None:
        self.space = space
        self.index = index
        self.entry = entry
        own = {name: value for name, value in fields.items() if name != "extras"}
        self.fields = {
            f"provider_{name}" if name in _NOT_A_CALLS_OWN else name: value
            for name, value in {**own, **_extras(fields.get("extras"))}.items()
            if value is not None
        }
        self.path = path
        self.said = said
        self.grows = "tool_call"
        self.at = ""
        self.is_invalid = entry.get("type") == "invalid_tool_call"

    def is_same(self, part: _Fragment) -> bool:
        """Whether a call in the content is this one."""
        mine, its = self.entry.get("id") or None, part.entry.get("id") or None
        if mine is not None and its is not None:
            return bool(mine == its)
        return self.index == part.index or isinstance(part.index, str) or part.index is None


class _Calls:
    """What a message says of calls outside of its content, each until it is told."""

    def __init__(self, found: list[_Fragment]) -> None:
        self.ever = bool(found)
        self.left = found

    def take(self, part: _Fragment) -> _Fragment | None:
        """The one that this call in the content is."""
        same = next((call for call in self.left if call.is_same(part)), None)
        if same is not None:
            self.left.remove(same)
        return same


class _Piece:
    """What a part of a content says: its text, and as content what else."""

    __slots__ = ("citations", "content", "group", "grows", "text")

    def __init__(self, grows: str, text: str, content: Json) -> None:
        self.grows = grows
        self.text = text
        self.content = content
        self.citations: Sequence[Json] = ()
        self.group: object = None


# What a chunk is.


def _fields_of(chunk: object) -> Json:
    """A mapping as it is; of LangChain's objects the fields, whether they were set or not."""
    if isinstance(chunk, Mapping):
        return chunk
    if isinstance(getattr(chunk, "type", None), str) and "content" in getattr(chunk, "__dict__", ()):
        extra = getattr(chunk, "model_extra", None)
        return {**extra, **vars(chunk)} if extra else vars(chunk)
    message = getattr(chunk, "message", None)
    if message is not None:
        return {"message": message, "generation_info": getattr(chunk, "generation_info", None)}
    return as_mapping(chunk, "langchain")


def _message_in(found: Json, path: str = "") -> tuple[Json, str]:
    """The message that a chunk holds, and the path to it."""
    if "message" in found and "content" not in found:
        inner, at = _message_in(_fields_of(found["message"]), f"{path}message.")
        info = found.get("generation_info")
        if isinstance(info, Mapping) and info:
            metadata = _READ.mapping(inner.get("response_metadata"), f"{at}response_metadata")
            inner = {**inner, "response_metadata": {**info, **metadata}}
        return inner, at
    if found.get("type") == "constructor" and isinstance(found.get("kwargs"), Mapping):
        name = found.get("id")
        name = name[-1] if isinstance(name, (list, tuple)) and name else None
        kwargs: Json = found["kwargs"]
        return {
            "type": _CLASSES.get(name, name) if isinstance(name, str) else name,
            **kwargs,
        }, f"{path}kwargs."
    data = found.get("data")
    if isinstance(data, Mapping) and "content" not in found:
        return {"type": found.get("type"), **data}, f"{path}data."
    return found, path


def _says_something(message: Json) -> bool:
    """A chunk without content, and with LangChain's own id alone, may come before the one that has the provider's."""
    if not _is_made_up(message.get("id")):
        return bool(message.get("id")) or any(message.get(name) for name in _SAYING)
    return any(message.get(name) for name in _SAYING)


def _is_made_up(found: object) -> bool:
    return isinstance(found, str) and found.startswith("lc_")


def _rank(found: str | None) -> int:
    """How good an id is: a provider's, that of a run, any other of LangChain's, none."""
    if not found:
        return 0
    return 3 if not _is_made_up(found) else 2 if found.startswith("lc_run-") else 1


def _kind(part: Json) -> str:
    kind = part.get("type")
    if isinstance(kind, str) and kind:
        return kind
    return "text" if isinstance(part.get("text"), str) else ""


# What a part says.


def _piece_of(part: Json, kind: str, path: str) -> _Piece:
    read = _PARTS.get(kind) or (_result if kind.endswith("_tool_result") else _other)
    return read(part, kind, path)


def _rest(part: Json, *read: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in read and name not in ("type", "index")}


def _text(part: Json, _: str, path: str) -> _Piece:
    piece = _Piece("text", _READ.text_of(part, "text", path), {})
    content = _rest(part, "text", "annotations", "citations", "extras") | _extras(part.get("extras"))
    piece.content = {"type": "text", "text": "", **content}
    piece.citations = [
        _READ.mapping(one, f"{path}.{name}[{place}]")
        for name in ("annotations", "citations")
        for place, one in enumerate(_READ.items(part.get(name), f"{path}.{name}"))
    ]
    return piece


def _reasoning(part: Json, _: str, path: str) -> _Piece:
    """`reasoning` of the standard, `thinking` of Anthropic, `reasoning_content` of Bedrock, a summary of OpenAI."""
    nested = part.get("reasoning_content")
    if isinstance(nested, Mapping):
        part = {**nested, **_rest(part, "reasoning_content")}
        path = f"{path}.reasoning_content"
    name = next(
        (one for one in ("reasoning", "thinking", "text") if isinstance(part.get(one), str)), "reasoning"
    )
    text, group = _READ.text_of(part, name, path), None
    summary = part.get("summary")
    if isinstance(summary, (list, tuple)):
        for place, found in enumerate(summary):
            entry = _READ.mapping(found, f"{path}.summary[{place}]")
            said = _READ.text_of(entry, "text", f"{path}.summary[{place}]")
            text += ("\n\n" if text and said else "") + said
            group = entry.get("index", place)
    content = _rest(
        part,
        "reasoning",
        "thinking",
        name,
        "extras",
        *(["summary"] if isinstance(summary, (list, tuple)) else []),
    )
    content |= _extras(part.get("extras"))
    piece = _Piece("reasoning", text, {"type": "reasoning", "reasoning": "", **content})
    piece.group = group
    return piece


def _extras(extras: object) -> dict[str, Any]:
    """What the standard puts aside. A signature, which the provider wants back, is where all others have theirs."""
    if not isinstance(extras, Mapping):
        return {} if extras is None else {"extras": extras}
    signed = {name: extras[name] for name in ("signature",) if isinstance(extras.get(name), str)}
    more = {name: value for name, value in extras.items() if name not in signed}
    return {**signed, **({"extras": more} if more else {})}


def _redacted(part: Json, *_: str) -> _Piece:
    content = {"type": "reasoning", "reasoning": "", REDACTED: True, **_rest(part)}
    return _Piece("reasoning", "", content)


def _refusal(part: Json, _: str, path: str) -> _Piece:
    content = {"type": "refusal", "refusal": "", **_rest(part, "refusal", "text")}
    return _Piece("refusal", _READ.text_of(part, "refusal", path), content)


def _media(part: Json, kind: str, path: str) -> _Piece:
    """The standard has `base64`, the protocol and older standards have `data`."""
    name = "base64" if isinstance(part.get("base64"), str) else "data"
    if not isinstance(part.get(name, ""), str):
        return _other(part, kind, path)
    return _Piece("data", part.get(name, ""), {"type": kind, **_rest(part, name, "data")})


def _image_url(part: Json, kind: str, path: str) -> _Piece:
    found = part.get("image_url")
    url = found if isinstance(found, str) else found.get("url") if isinstance(found, Mapping) else None
    if not isinstance(url, str):
        return _other(part, kind, path)
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        mime_type = head[len("data:") : -len(";base64")].partition(";")[0] or None
        return _Piece("data", data, {"type": "image", "mime_type": mime_type, **_rest(part, "image_url")})
    return _Piece("data", "", {"type": "image", "url": url, **_rest(part, "image_url")})


def _result(part: Json, kind: str, _: str) -> _Piece:
    """What a tool of the provider gave back, in the standard's words or in Anthropic's."""
    standard = kind in ("server_tool_result", "server_tool_call_result")
    said, named = ("output", "tool_call_id") if standard else ("content", "tool_use_id")
    call_id = part.get(named, part.get("toolCallId"))
    content = {
        **_rest(part, said, named, "toolCallId"),
        "type": "server_tool_result",
        "tool_call_id": call_id if isinstance(call_id, str) else None,
        "output": part.get(said),
        **({} if standard else {PROVIDER_TYPE: kind, "status": _status(part)}),
    }
    return _Piece("data", "", content)


def _status(result: Json) -> str:
    output = result.get("content")
    failed = isinstance(output, Mapping) and str(output.get("type")).endswith("_error")
    return "error" if failed or result.get("is_error") is True else "success"


def _other(part: Json, kind: str, _: str) -> _Piece:
    """Any other is kept whole; `index` is where it stands, not what it is."""
    if kind == "non_standard" and isinstance(part.get("value"), Mapping) and not _rest(part, "value"):
        if part["value"].get("type") == "redacted_thinking":  # the standard has no word for it
            return _redacted(part["value"])
        return _Piece("other", "", {"type": "non_standard", "value": kept(part["value"])})
    return _Piece(
        "other", "", {"type": "non_standard", "value": kept(_rest(part)) | ({"type": kind} if kind else {})}
    )


def _fragment_of(part: Json, index: Index | None, path: str) -> _Fragment:
    """A call in the content, of any make, as a fragment of one."""
    kind = _kind(part)
    # What is whole is named first: a part that has been added up has an empty `input` beside the text.
    said = next((name for name in _ARGUMENTS if part.get(name) not in NOTHING), "args")
    args = part.get(said)
    if kind == "custom_tool_call" and isinstance(args, str):
        args = {"input": args}
    call_id = part.get("call_id") or part.get("id")
    item = {ITEM_ID: part["id"]} if part.get("call_id") and part.get("id") else {}
    entry = {"type": kind, "id": call_id, "name": part.get("name"), "args": args, "error": part.get("error")}
    fields = _rest(part, "id", "call_id", "name", "error", *_ARGUMENTS) | item
    call = _Fragment("part", index, entry, fields, path, said)
    call.grows = _CALLS[kind]
    call.at = part["index"] if isinstance(part.get("index"), str) else ""
    if kind in ("server_tool_use", "mcp_tool_use"):
        call.fields[PROVIDER_TYPE] = kind
    return call


def _citation(annotation: Json) -> Json:
    known = {name: annotation.get(name) for name in ("cited_text", "title", "url")}
    found: dict[str, Any] = {name: value for name, value in known.items() if isinstance(value, str)}
    for name in ("start_index", "end_index"):
        value = annotation.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            found[name] = value
    return found | {"raw": kept(annotation)}


# Merging.


def _merge(known: dict[str, Any], found: Json, path: str) -> None:
    """LangChain's `merge_dicts`, but that what is said once stays so."""
    for name, value in found.items():
        before = known.get(name)
        if value is None:
            known.setdefault(name, None)
            continue
        now = thaw(freeze(value, lenient=True))
        if before is None:
            known[name] = now
            continue
        at = f"{path}.{name}"
        if isinstance(before, bool) or isinstance(now, bool) or isinstance(before, float):
            if type(before) is not type(now) or before != now:
                raise _READ.fail(at, f"{_shown(before)} again, as an earlier chunk has it", value)
        elif type(before) is not type(now):
            raise _READ.fail(at, f"{_JSON_TYPES.get(type(before), 'what')}, as in an earlier chunk", value)
        elif isinstance(before, str):
            if name not in _SAID_ONCE or before != now:
                known[name] = before + now
        elif isinstance(before, dict):
            _merge(before, now, at)
        elif isinstance(before, list):
            _merge_items(before, now, at)
        elif isinstance(before, int):
            known[name] = now if name in _LAST_WINS or before == now else before + now


def _merge_items(known: list[Any], found: list[Any], path: str) -> None:
    """LangChain's `merge_lists`."""
    for place, item in enumerate(found):
        same = None
        index = item.get("index") if isinstance(item, dict) else None
        if (isinstance(index, int) and not isinstance(index, bool)) or (
            isinstance(index, str) and index.startswith("lc_")
        ):
            same = next((one for one in known if isinstance(one, dict) and _same_item(one, item)), None)
        if same is None:
            known.append(item)
        else:
            _merge(
                same,
                {name: value for name, value in item.items() if name not in ("type", "index")},
                f"{path}[{place}]",
            )


def _same_item(one: dict[str, Any], other: dict[str, Any]) -> bool:
    ids = one.get("id") or None, other.get("id") or None
    return one.get("index") == other["index"] and (None in ids or ids[0] == ids[1])


def _remember(known: dict[str, Any], found: Json) -> None:
    """Metadata: of each field the last value that says something, of an object its fields, of lists all items."""
    for name, value in found.items():
        before = known.get(name)
        if value in NOTHING:
            continue
        now = thaw(freeze(value, lenient=True))
        if isinstance(before, dict) and isinstance(now, dict):
            _remember(before, now)
        elif isinstance(before, list) and isinstance(now, list):
            before.extend(now)
        elif now is not None:
            known[name] = now


def _sum(left: Json, right: Json) -> dict[str, Any]:
    """Two usages added up, as LangChain adds them."""
    total = dict(left)
    for name, value in right.items():
        before = total.get(name)
        if isinstance(value, Mapping):
            total[name] = _sum(before if isinstance(before, Mapping) else {}, value)
        elif _is_number(value) and _is_number(before):
            total[name] = before + value
        elif value is not None:
            total[name] = value
    return total


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# The reason.


def _reason_of(metadata: Json) -> str | None:
    for name in _REASON_NAMES:
        if found := word(metadata.get(name)):
            return found
    status = word(metadata.get("status"))  # OpenAI's Responses
    if status not in ("completed", "incomplete"):
        return None
    details = metadata.get("incomplete_details")
    return word(details.get("reason") if isinstance(details, Mapping) else None) or status


def _known_at_start(metadata: Json) -> Json:
    return {name: value for name, value in metadata.items() if isinstance(value, str)}


# Events.


def _event(found: Json, path: str) -> Event:
    """An event of ours of its wire form, whatever its spelling."""
    name, delta = found["event"].replace("_", "-"), found.get("delta")
    wire = dict(found)
    if name in _EVENTS:
        wire["event"] = name
    if isinstance(delta, Mapping) and isinstance(delta.get("type"), str):
        kind = delta["type"].replace("_", "-")
        wire["delta"] = delta = {**delta, "type": kind} if kind in _DELTAS else delta
        if kind == "block-delta" and isinstance(delta.get("fields"), Mapping):
            wire["delta"] = {**delta, "fields": _standard(delta["fields"])}
    if isinstance(wire.get("content"), Mapping):
        wire["content"] = _standard(wire["content"])
    more = wire.get("additional_kwargs", wire.get("additionalKwargs"))
    if name == "message-finish" and isinstance(more, Mapping) and more:
        metadata = wire.get("metadata")
        wire["metadata"] = {**(metadata if isinstance(metadata, Mapping) else {}), "additional_kwargs": more}
    try:
        event = events.from_dict(wire)
    except InvalidValueError as error:
        raise _READ.fail(f"{path}{error.field}", f"what an event of {name} has there", error.value) from None
    return _with_reason(event) if isinstance(event, events.MessageFinish) else event


def _standard(content: Json) -> Json:
    """The content of a block, or new fields of one, in our words where the protocol has others."""
    kind, media = content.get("type"), content.get("base64")
    if kind == "non_standard" and content.get("unwrap") is True and isinstance(content.get("value"), Mapping):
        unwrapped: Json = content["value"]
        return unwrapped
    known = _without_assumed(content)
    if kind == "text" and content.get("refusal") is True:
        known["type"] = "refusal"
        del known["refusal"]
    if kind in _MEDIA and isinstance(media, str) and "data" not in content:
        known["data"] = known.pop("base64")
    annotations = content.get("annotations")
    if isinstance(annotations, (list, tuple)) and all(isinstance(one, Mapping) for one in annotations):
        del known["annotations"]
        if "citations" not in content:
            known["citations"] = [_cited(one) for one in annotations]
    return known


def _without_assumed(found: Json) -> dict[str, Any]:
    """What the source said of a block or a usage, without what `to_langchain_events` adds because others want it."""
    assumed = found.get("assumed")
    if not isinstance(assumed, (list, tuple)):
        return dict(found)
    return {name: value for name, value in found.items() if name != "assumed" and name not in assumed}


def _cited(annotation: Json) -> Json:
    """An annotation as a citation: one that is nothing else is it without its type, and else it is kept whole."""
    if annotation.get("type") != "citation" or not _CITATION.issuperset(annotation):
        return annotation
    return {name: value for name, value in annotation.items() if name != "type"}


def _with_reason(event: events.MessageFinish) -> Event:
    """The finish in our words: Python has no reason of its own, only what the provider wrote into the metadata."""
    said = event.reason or _reason_of(event.metadata)
    reason = None if said is None else _REASONS.get(said.lower())
    if said is None or (event.reason is not None and reason not in ("length", "content_filter")):
        return event  # of these the calls decide
    known = event.provider_reason if reason == event.reason else event.provider_reason or said
    return events.MessageFinish(reason or said, known, event.usage, event.metadata, choice=event.choice)


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format, or a message that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"type": "AIMessageChunk", "content": "Hi"})
        True
        >>> recognises({"event": "message-start", "id": "m1", "role": "ai"})
        True
        >>> recognises({"type": "message_start", "message": {"id": "m1", "content": []}})
        False
    """
    name, kind = chunk.get("event"), chunk.get("type")
    if isinstance(name, str):
        return name.replace("_", "-") in _EVENTS or name.startswith("on_chat_model_")
    if kind in ("ChatGenerationChunk", "ChatGeneration"):
        return "message" in chunk
    if kind == "constructor":
        found = chunk.get("id")
        last = found[-1] if isinstance(found, (list, tuple)) and found else None
        return last in ("AIMessage", "AIMessageChunk") and isinstance(chunk.get("kwargs"), Mapping)
    if kind == "event":
        return isinstance(chunk.get("method"), str) and isinstance(chunk.get("params"), Mapping)
    if kind in ("AIMessageChunk", "ai"):
        return "content" in chunk or isinstance(chunk.get("data"), Mapping)
    if kind is None and isinstance(chunk.get("message"), Mapping):
        return "content" not in chunk and recognises(chunk["message"])
    says = ("response_metadata", "usage_metadata", "tool_call_chunks")
    return kind is None and "content" in chunk and any(one in chunk for one in says)


_GROWTH: Mapping[str, Callable[[str, str], Event]] = {
    "text": text_delta,
    "refusal": text_delta,
    "reasoning": reasoning_delta,
    "tool_call": tool_call_delta,
    "server_tool_call": tool_call_delta,
    "data": events.DataDelta,
    "other": events.DataDelta,
}

_PARTS: Mapping[str, Callable[[Json, str, str], _Piece]] = {
    "text": _text,
    "reasoning": _reasoning,
    "thinking": _reasoning,
    "reasoning_content": _reasoning,
    "redacted_thinking": _redacted,
    "refusal": _refusal,
    "image": _media,
    "audio": _media,
    "video": _media,
    "file": _media,
    "image_url": _image_url,
    "server_tool_result": _result,
    "server_tool_call_result": _result,
    # *_tool_result: _result; any other is kept whole
}
"""How a part of a content is read, by its type."""

_CALLS: Mapping[str, str] = {
    "tool_call": "tool_call",
    "tool_call_chunk": "tool_call",
    "invalid_tool_call": "tool_call",
    "tool_use": "tool_call",
    "input_json_delta": "",  # whose that is
    "function_call": "tool_call",
    "custom_tool_call": "tool_call",
    "server_tool_call": "server_tool_call",
    "server_tool_call_chunk": "server_tool_call",
    "server_tool_use": "server_tool_call",
    "mcp_tool_use": "server_tool_call",
}
"""The parts that are calls, and whose."""
_WHOSE = frozenset(["tool_call", "server_tool_call"])

_PROSE_KWARGS = {"reasoning_content": "reasoning", "refusal": "refusal"}

_WORDS = {
    "stop": "stop end_turn stop_sequence complete completed eos pause_turn",
    "tool_use": "tool_calls tool_use tool_call function_call",
    "length": "length max_tokens max_output_tokens model_length model_context_window_exceeded error_limit",
    "content_filter": "content_filter content_filtered refusal safety recitation blocklist prohibited_content spii"
    " image_safety guardrail_intervened error_toxic",
}
_REASONS = {said: reason for reason, words in _WORDS.items() for said in words.split()}
_REASON_NAMES = ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason")
_MODEL_NAMES = ("model_name", "model", *_REASON_NAMES)

_EVENTS = frozenset(
    [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "usage",
        "message-finish",
        "error",
        "provider",
        "tool-update",
        "message-interrupted",
        "attempt-reset",
    ]
)
_DELTAS = frozenset(["text-delta", "reasoning-delta", "data-delta", "tool-call-delta", "block-delta"])
_EVENT_FIELDS = frozenset(
    [
        "event",
        "id",
        "role",
        "index",
        "choice",
        "content",
        "content_block",
        "delta",
        "usage",
        "metadata",
        "responseMetadata",
        "reason",
        "message",
        "type",
        "code",
        "provider",
        "name",
        "payload",
        "call_id",
        "execution_status",
        "display_text",
        "result",
        "attempt",
        "error",
        "additional_kwargs",
        "additionalKwargs",
    ]
)

_ADDED = frozenset(["key", SYNTHETIC_ID, "folded"])
"""What `to_langchain_events` adds to an event for other readers' sake, or for ours."""
_TOOLS = {
    "tool-started": "executing",
    "tool-output-delta": "executing",
    "tool-finished": "completed",
    "tool-error": "failed",
}
_MEDIA = frozenset(["image", "audio", "video", "file"])
_CITATION = frozenset(["type", "cited_text", "title", "url", "start_index", "end_index", "raw"])

_WHOLE = ("ai", "assistant")
_OURS = ("AIMessageChunk", *_WHOLE)
_CLASSES = {"AIMessage": "ai", "AIMessageChunk": "AIMessageChunk"}
_SAYING = (
    "content",
    "tool_call_chunks",
    "tool_calls",
    "additional_kwargs",
    "response_metadata",
    "usage_metadata",
)
_PLAIN = frozenset(["content", "type", "id"])
_MESSAGE = frozenset(
    [
        *_SAYING,
        *_PLAIN,
        "invalid_tool_calls",
        "chunk_position",
        "example",
        "lc_kwargs",
        "lc_namespace",
        "lc_serializable",
    ]
)
_CALL_FIELDS = frozenset(["type", "index", "id", "name", "args", "error"])

# What stands in every piece of a block is said once, not doubled.
_SAID_ONCE = frozenset(
    [
        "id",
        ITEM_ID,
        "output_version",
        "model_provider",
        "type",
        "name",
        "mime_type",
        "mimeType",
        "url",
        "title",
        "status",
        "tool_call_id",
        "encoding",
        "format",
        "filename",
        "phase",
        PROVIDER_TYPE,
    ]
)
# Words by which the protocol would read something into a call that the provider didn't say.
_ARGUMENTS = ("args", "partial_json", "input", "arguments")
_NOT_A_CALLS_OWN = ("args", "arguments", "input", "call_id", "error", "execution_status")
_LAST_WINS = ("index", "created", "timestamp")
_JSON_TYPES: Mapping[type, str] = {str: "a string", int: "a number", dict: "an object", list: "a list"}
