"""Anthropic Messages API, streamed, as Anthropic, Bedrock's InvokeModel and Vertex send it.

    stream   message_start block* message_delta* message_stop       ping, error: anywhere
    block    content_block_start content_block_delta* content_block_stop

A block's `index` is its place in the message; deltas name their block, and blocks may interleave. Texts and
argument text come in pieces, citations one by one, a signature and a compaction whole. `message_delta` has the
`stop_reason`, and a usage that replaces the one before key by key, except that a zero replaces no figure.

Some blocks are whole in their start (redacted thinking, results of the provider's own tools). A message may
be whole in its `message_start`: with content, `stop_reason` and all, and `message_stop` next (programmatic
tool calling). A body that was not streamed, `{"type": "message", …}`, is read like that.

Real streams go beyond the API's page:

- An index may be used again: by a start that is sent twice (ignored), by another block whose predecessor was
  never stopped, or by another message spliced into this one. Earlier blocks are kept, and the new block gets an
  index of its own. That, and what happens to calls without arguments, is described in `formats/block_events.py`.
- A delta isn't of its block's kind, or has no block (sgl-project/sglang#24293): it begins a block of its own kind,
  beside the one at its index, and the next such deltas there continue it. A `content_block_stop` ends both.
- Arguments at an index where no call waits for them are those of the newest call, if that has none yet. Else they are
  a call without a name, which is invalid.
- A delta without the field that its type promises is malformed, and so is a block that came whole without it.
- Errors have OpenAI's form, or one of those in `formats/endings.py`, and perhaps no type.
- The events that the SDK's `messages.stream()` adds (`text`, `input_json`, …) repeat others and are ignored.
"""

# A chunk is untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    check_members,
    events,
    finish_reason,
    freeze,
    real_id,
    tool_call_delta,
)
from rxdelta.formats.anthropic_messages.blocks import FORMAT, READ, REASONS, Blocks, others, required_object
from rxdelta.formats.block_events import take_all
from rxdelta.formats.calls import KnowsCalls
from rxdelta.formats.decoding import Json, as_mapping, word
from rxdelta.formats.endings import assumed_finish, error_events, error_in, failure_in
from rxdelta.formats.usage import ANTHROPIC, RunningUsage
from rxdelta.framing import DONE

Out = list[Event]

_PROVIDER = "anthropic"
_EMPTY: Json = {}

_DELTA: Final = "content_block_delta"


class AnthropicMessagesDecoder(KnowsCalls):
    """Messages stream events in, events of the chat stream protocol out.

    A block's index is passed on as it is, unless it had been used before. An unknown event
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
        self._out: Out = []

    def decode(self, chunk: Any, /) -> Sequence[Event]:
        """The events of one chunk.

        Args:
            chunk: A dict, or an event or message of the `anthropic` package.

        Returns:
            Nothing for a ping. After the message's end, another message may begin; the rest is passed on.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A block's index is 2**31 or more, or the chunk is nested absurdly deep.

        Example:
            >>> error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
            >>> AnthropicMessagesDecoder().decode(error)
            [StreamError(message='Overloaded', type='overloaded_error', code=None, choice=0)]
        """
        message, blocks = self._message, self._message.blocks
        # Most chunks only continue a block. `tests/formats/test_plain_chunks.py` compares this with `_decode`.
        block, piece = None, None
        if type(chunk) is dict and blocks.held is None and not (message.ended or self._out):
            try:
                place, delta = chunk["index"], chunk["delta"]
                if type(place) is int and type(delta) is dict and chunk["type"] == _DELTA:
                    block = blocks.newest[place]
                    if block.open and delta["type"] == block.takes:
                        piece = delta[block.field]
            except KeyError:
                pass
        if block is not None and type(piece) is str and piece:
            said = block.said
            if said is None:
                block.has_arguments = True
                return (block.grow(block.index, piece),)
            pieces = said.pieces
            if pieces is not None and ((pieces and "{" not in piece) or said.goes_on(piece)):
                block.has_arguments = True
                pieces.append(piece)
                return self._checked_piece(tool_call_delta(block.index, piece))
        if chunk is DONE:
            return self._checked(self._end(whole=True))
        fields = as_mapping(chunk, FORMAT)
        if fields is not chunk:  # of an object
            return self.decode(fields)
        return self._checked(self._decode(fields))

    def close(self) -> Sequence[Event]:
        """End of input: finishes the message if `stop_reason` has come, only `message_stop` having been lost.

        Example:
            >>> decoder = AnthropicMessagesDecoder()
            >>> _ = decoder.decode({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}})
            >>> [event.reason for event in decoder.close()]
            ['length']
        """
        return self._checked_last(self._end(whole=False))

    def _decode(self, fields: Json) -> Sequence[Event]:
        message, out, kind = self._message, self._out, fields.get("type")
        if _is_failure(kind, fields):
            kind = "error"
        elif not isinstance(kind, str):
            raise READ.fail("type", "the type of an event", kind)
        if message.ended:
            out += self._next_message(kind, fields)
        else:
            _EVENTS.get(kind, _Message.unknown)(message, out, fields)
        return take_all(out)

    def _end(self, *, whole: bool) -> Sequence[Event]:
        out = take_all(self._out)
        if not self._message.ended:
            self._message.close(out, whole=whole)
        return out

    def _next_message(self, kind: str, fields: Json) -> Sequence[Event]:
        """After the end another message may begin: a conversation. The same one again doesn't; the rest is passed on."""
        out: Out = []
        if kind not in _BEGINS:
            _AFTER_THE_END.get(kind, _Message.unknown)(self._message, out, fields)
            return out
        following = _Message()
        _EVENTS[kind](following, out, fields)
        message_id = following.blocks.message_id
        if message_id is not None and message_id == self._message.blocks.message_id:
            return ()
        self._message = following
        return out


class _Message:
    """The state of one message, beside its blocks."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.ended = False
        self._start_is_known = False  # else, once it has started, its `message_start` was lost or is late
        self._provider_reason: str | None = None
        self._usage = RunningUsage(ANTHROPIC)
        self._metadata: dict[str, Any] = {}  # for the finish

    def start(self, out: Out, chunk: Json) -> None:
        self._begin(out, required_object(_frozen(chunk), "message"), "message.")

    def body(self, out: Out, chunk: Json) -> None:
        """A message that was not streamed. Within a stream it is no event of it."""
        if self.blocks.message_started:
            self.unknown(out, chunk)
        else:
            self._begin(out, _frozen(chunk), "")
            self._finish(out, stopped=False)

    def _begin(self, out: Out, message: Json, path: str) -> None:
        blocks = self.blocks
        message_id = real_id(READ.text(message.get("id"), f"{path}id"))
        model = READ.text(message.get("model"), f"{path}model") or None
        usage = READ.mapping(message.get("usage"), f"{path}usage")
        provider_reason = READ.text(message.get("stop_reason"), f"{path}stop_reason")
        content = READ.items(message.get("content"), f"{path}content")
        if self._start_is_known:
            if message_id == blocks.message_id:
                return
            blocks.splice()
        else:
            self._start_is_known, blocks.message_id = True, message_id
            blocks.know_model(model)
            self._end(provider_reason)
            self._metadata |= {
                name: message[name] for name in _FINISH_FIELDS if message.get(name) is not None
            }
            changed = self._add_usage(usage)
            metadata = others(message, *_MESSAGE_FIELDS)
            if not blocks.message_started:
                start = events.MessageStart(message_id, model, self._usage.latest, metadata)
                blocks.start_message(out, start)
            else:  # a start has been emitted, so that the finish has to have what this one says
                self._describe(metadata | others({"id": message_id, "model": model}))
                out += changed
        for place, block in enumerate(content):
            where = f"{path}content[{place}]"
            self._start_block(out, place, READ.mapping(block, where), where, whole=True)
            blocks.stop(out, place)

    def block_start(self, out: Out, chunk: Json) -> None:
        chunk = _frozen(chunk)
        place = READ.index(chunk.get("index"), "index")
        self._start_block(out, place, required_object(chunk, "content_block"), "content_block")

    def _start_block(self, out: Out, place: int, block: Json, path: str, *, whole: bool = False) -> None:
        if self.blocks.start(out, place, block, path, whole=whole) and block["type"] == "fallback":
            self._metadata |= _fallback(block)

    def block_delta(self, out: Out, chunk: Json) -> None:
        chunk = _frozen(chunk)
        place = READ.index(chunk.get("index"), "index")
        if not self.blocks.delta(out, place, required_object(chunk, "delta")):
            self.unknown(out, chunk)

    def block_stop(self, out: Out, chunk: Json) -> None:
        self.blocks.stop(out, READ.index(chunk.get("index"), "index"))

    def delta(self, out: Out, chunk: Json) -> None:
        chunk = _frozen(chunk)
        delta = required_object(chunk, "delta") if "delta" in chunk else _EMPTY
        usage = READ.mapping(chunk.get("usage"), "usage")
        self._end(READ.text(delta.get("stop_reason"), "delta.stop_reason"))
        self._describe(others(delta, "stop_reason") | others(chunk, "type", "delta", "usage"))
        self.blocks.start_message(out)
        if self._provider_reason is not None:
            self.blocks.release(out)
        out += self._add_usage(usage)

    def stop(self, out: Out, chunk: Json) -> None:
        if self.blocks.message_started:
            self._describe(others(_frozen(chunk), "type", "message"))  # the SDK adds the message
            self._finish(out, stopped=True)

    def error(self, out: Out, chunk: Json) -> None:
        """An error in Anthropic's form, or in one of another server."""
        chunk = _frozen(chunk)
        before: Sequence[Event] = ()
        more: Mapping[str, Any] = {}
        if error := error_in(chunk):
            if not isinstance(chunk["error"], str):  # some gateways send the sentence alone
                READ.text(required_object(chunk, "error").get("message"), "error.message")
                READ.text(error.get("type"), "error.type")
            more = others(chunk, "type", "error", "_event")
            *before, end = error_events(_PROVIDER, error, error.get("type"), _ERROR)
        elif failure_in(chunk, *_ANSWERS):
            kind = chunk.get("type")
            *before, end = error_events(_PROVIDER, chunk, None if kind == "error" else kind, _ERROR)
        else:
            more = others(required_object(chunk, "error")) | others(chunk, "type", "error", "_event")
            end = events.StreamError("unknown error")
        self.ended = True
        self.blocks.flush(out)
        if before or more:
            self.unknown(out, chunk)
        out.append(end)

    def nothing(self, out: Out, chunk: Json) -> None:
        """A ping."""

    def repeated(self, out: Out, chunk: Json) -> None:
        """An event that the SDK adds; or a new one of Anthropic's, if it only has the same name."""
        if "snapshot" not in chunk and chunk["type"] != "signature":
            self.unknown(out, chunk)

    def unknown(self, out: Out, chunk: Json) -> None:
        out.append(events.ProviderEvent(_PROVIDER, word(chunk.get("type")) or "error", _frozen(chunk)))

    def close(self, out: Out, *, whole: bool) -> None:
        """End of input, or of the reply, which is `whole` then, also without a reason."""
        if self._provider_reason is not None or (whole and self.blocks.message_started):
            self._finish(out, stopped=False)
        else:
            self.ended = True
            self.blocks.flush(out)

    def _end(self, provider_reason: str) -> None:
        """Note the reason. The first one counts."""
        if provider_reason and self._provider_reason is None:
            self._provider_reason = provider_reason
            self.blocks.cut = REASONS.get(provider_reason) == "length"

    def _finish(self, out: Out, *, stopped: bool) -> None:
        """Finish the message. `stopped` says whether a `message_stop` has come."""
        self.ended = True
        self.blocks.finish_all(out)
        usage, reason = self._usage.latest, self._provider_reason
        if reason is None and not stopped:
            out.append(assumed_finish(usage, self._metadata, asked=self.blocks.calls_client))
        else:
            ours = finish_reason(REASONS.get(reason or ""), asked=self.blocks.calls_client)
            out.append(events.MessageFinish(ours, reason, usage, self._metadata))

    def _add_usage(self, usage: Json) -> Sequence[Event]:
        """The running usage if it has changed."""
        before, now = self._usage.latest, self._usage.read(usage)
        return () if now is None or now is before else (events.UsageUpdate(now),)

    def _describe(self, fields: Mapping[str, Any]) -> None:
        self._metadata |= fields
        check_members(self._metadata, DEFAULT_LIMITS, "the metadata")


def _fallback(block: Json) -> dict[str, Any]:
    """The model that took over. A fallback block of another make says nothing."""
    to = block.get("to")
    model = to.get("model") if isinstance(to, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return {"model_fallback": model} if isinstance(model, str) else {}


def _is_failure(kind: object, chunk: Json) -> bool:
    """Whether an event without a type, or with that of an error, is the error of another server."""
    if kind is None:
        return bool(error_in(chunk) or failure_in(chunk, *_ANSWERS))
    return isinstance(kind, str) and kind.endswith("_error") and bool(failure_in(chunk, *_ANSWERS))


def _frozen(chunk: Json) -> Json:
    """The chunk as it goes into events: read-only, bounded, and all its text fit for UTF-8."""
    frozen: Json = freeze(chunk, "the chunk", lenient=True)
    return frozen


def recognises(chunk: Json) -> bool:
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
        case "error" if "sequence_number" in chunk or "code" in chunk:  # OpenAI's
            return False
        case "error":
            error = chunk.get("error", chunk)
            return isinstance(error, Mapping) and "message" in error
        case _:
            return False


_OF_THE_SDK = dict.fromkeys(("text", "thinking", "signature", "citation", "input_json"), _Message.repeated)
_EVENTS: Mapping[str, Callable[[_Message, Out, Json], None]] = {
    "message_start": _Message.start,
    "content_block_start": _Message.block_start,
    _DELTA: _Message.block_delta,
    "content_block_stop": _Message.block_stop,
    "message_delta": _Message.delta,
    "message_stop": _Message.stop,
    "ping": _Message.nothing,
    "error": _Message.error,
    # a whole message
    "message": _Message.body,
    # the SDK's own
    **_OF_THE_SDK,
}
_BEGINS = frozenset(["message_start", "message"])
_AFTER_THE_END = {"ping": _Message.nothing, "message_stop": _Message.nothing, **_OF_THE_SDK}
"""The events that are not passed on after the end."""

_ERROR = frozenset(["message", "type", "code"])
_ANSWERS = ("content", "delta", "content_block")

_FINISH_FIELDS = ("stop_sequence", "stop_details")
# A message's fields that have a place of their own in the events.
_MESSAGE_FIELDS = ("id", "type", "role", "model", "content", "usage", "stop_reason", *_FINISH_FIELDS)
