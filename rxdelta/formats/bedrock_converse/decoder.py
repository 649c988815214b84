"""Amazon Bedrock's ConverseStream, and Amazon Nova's InvokeModelWithResponseStream, which sends the same events.

    stream  = messageStart block* messageStop metadata?          an exception instead of any of them
    block   = contentBlockStart? contentBlockDelta* contentBlockStop
    start   = toolUse | toolResult | image
    delta   = text | reasoningContent | toolUse | toolResult | citation | image

An event is an object with one key, its name. InvokeModel adds keys of its own
(`amazon-bedrock-invocationMetrics`, the guardrail's action and trace); they are the message's metadata. On the wire
every event also has `p`, padding against eavesdroppers, which boto3 removes. Bytes are bytes in boto3
and base64 on the wire; events have base64.

**Blocks.** A text, a reasoning and a block of citations begin with their first delta; one without text begins
nothing. A block keeps `contentBlockIndex` as its index, unless another block has it. Nova through InvokeModel starts
and stops a block for each piece of a text, so that the text is that of many blocks. A citation is whole.
A reasoning is text and then its signature, or it is redacted and only bytes. The result of a tool that Nova ran
itself is a list in pieces. Calls without arguments, starts sent twice and missing stops are
described in `formats/block_events.py`.

**The end.** `messageStop` has the reason, and ends open blocks. `metadata` with the usage comes before or after it.
The message finishes with the second of the two, or at the end of input if there is no `metadata`.

A body that was not streamed, `{"output": {"message": …}, "stopReason": …}`, is read like its stream.
"""

# Chunks are untyped JSON; each value that is read from one is checked.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import Event, TokenUsage, events, finish_reason
from rxdelta.core.events import ToolCallDelta
from rxdelta.formats.bedrock_converse.blocks import BROKEN, FORMAT, REASONS, Blocks, readable, without
from rxdelta.formats.block_events import take_all
from rxdelta.formats.calls import KnowsCalls
from rxdelta.formats.decoding import Fields, Json, as_mapping, others, remember, word
from rxdelta.formats.endings import PROVIDER_ERROR, assumed_finish, broken_events, error_code
from rxdelta.formats.usage import BEDROCK, RunningUsage
from rxdelta.framing import DONE

Out: TypeAlias = list[Event]

_PROVIDER = "bedrock"
_READ = Fields(FORMAT)


class BedrockConverseDecoder(KnowsCalls):
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
        self._out: Out = []
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
        event = None if self._out else self._message.blocks.plain(chunk)
        if event is not None:
            return self._checked_piece(event) if type(event) is ToolCallDelta else (event,)
        events = self._finish(whole=True) if chunk is DONE else self._decode(as_mapping(chunk, FORMAT))
        return self._checked(events)

    def close(self) -> Sequence[Event]:
        """End of input: the finish of a message that has stopped, and whose usage never came."""
        out = [*self._finish(whole=False)]
        self._message.blocks.flush(out)
        self._end()
        return self._checked_last(out)

    def _finish(self, *, whole: bool) -> Sequence[Event]:
        """Finish the message if the provider has stopped it, or has said that it is whole."""
        message = self._message
        out = take_all(self._out)
        if message.stopped or (whole and message.blocks.message_started):
            message.finish(out)
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
            out.append(events.ProviderEvent(_PROVIDER, _name(chunk), readable(chunk)))
        else:
            self._read(out, chunk)
        self._over |= self._message.broken
        return take_all(out)

    def _read(self, out: Out, chunk: Json) -> None:
        message, blocks = self._message, self._message.blocks
        if len(chunk) == 1:
            ((name, event),) = chunk.items()
            if name in _EVENTS and event is not None:  # as in most chunks
                _EVENTS[name](message, out, _READ.mapping(event, name))
                if blocks.foreign:
                    self._pass_on_foreign(out, chunk)
                return
        if _is_body(chunk) and not blocks.message_started:
            message.body(out, chunk)
            self._pass_on_foreign(out, chunk)
            return
        fault = _fault(chunk)
        known = [name for name in _EVENTS if chunk.get(name) is not None]
        siblings = {name: value for name, value in chunk.items() if name not in _NOT_SIBLINGS}
        if not all(isinstance(name, str) for name in siblings):
            raise _READ.fail("", "an object whose names are strings", chunk)
        # InvokeModel adds keys of its own beside an event.
        if known or (siblings and all(name.startswith("amazon-bedrock-") for name in siblings)):
            remember(message.metadata, readable(siblings))
        elif fault is None:
            blocks.foreign = bool(siblings)
        for name in known:
            _EVENTS[name](message, out, _READ.mapping(chunk[name], name))
        if blocks.foreign:
            self._pass_on_foreign(out, chunk)
        if fault is not None:
            self._break_off(out, *fault)

    def _pass_on_foreign(self, out: Out, chunk: Json) -> None:
        """Pass the chunk on if it has something unknown."""
        if self._message.blocks.foreign:
            self._message.blocks.foreign = False
            out.append(events.ProviderEvent(_PROVIDER, _name(chunk), readable(chunk)))

    def _break_off(self, out: Out, name: str, error: Json) -> None:
        self._message.blocks.flush(out)
        if not _ERROR_FIELDS.issuperset(error):
            out.append(events.ProviderEvent(_PROVIDER, PROVIDER_ERROR, readable(error)))
        sentences = map(word, map(error.get, ("message", "Message", "originalMessage")))
        sentence = next(filter(None, sentences), "unknown error")
        kind = word(error.get("__type")) or (name if name != "message" else None)
        out.append(events.StreamError(sentence, kind, error_code(error.get("originalStatusCode"))))
        self._end()


class _Message:
    """The state of one message, beside its blocks."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.stopped = self.finished = self.broken = False
        self.metadata: dict[str, Any] = {}
        self._provider_reason: str | None = None
        self._usage: TokenUsage | None = None
        self._running_usage = RunningUsage(BEDROCK, whole=True)

    def start(self, out: Out, event: Json) -> None:
        self.blocks.start_message(out, events.MessageStart(None, None, None, others(event, _START_FIELDS)))

    def block_start(self, out: Out, event: Json) -> None:
        path = "contentBlockStart"
        place = _READ.index(event.get("contentBlockIndex"), f"{path}.contentBlockIndex")
        _READ.require(event, ("start",), path)  # an empty one is that of a text
        start = _READ.mapping(event["start"], f"{path}.start")
        for name, value in start.items():
            if value is not None:
                self.blocks.start(out, place, name, value, f"{path}.start.{name}")

    def block_delta(self, out: Out, event: Json) -> None:
        path = "contentBlockDelta"
        place = _READ.index(event.get("contentBlockIndex"), f"{path}.contentBlockIndex")
        _READ.require(event, ("delta",), path)
        delta = _READ.mapping(event["delta"], f"{path}.delta")
        self.blocks.foreign |= not delta
        for name, value in delta.items():
            if value is not None:
                self.blocks.delta(out, place, name, value, f"{path}.delta.{name}")

    def block_stop(self, out: Out, event: Json) -> None:
        place = _READ.index(event.get("contentBlockIndex"), "contentBlockStop.contentBlockIndex")
        self.blocks.stop(out, place)

    def stop(self, out: Out, event: Json) -> None:
        provider_reason = _READ.text_of(event, "stopReason", "messageStop") or None
        self.blocks.start_message(out)
        remember(self.metadata, readable(without(event, "stopReason", "p")))
        self._stop(out, provider_reason)
        if self._usage is not None:
            self.finish(out)

    def read_metadata(self, out: Out, event: Json) -> None:
        usage = self._take_usage(event.get("usage"), "metadata.usage")
        self.blocks.start_message(out)
        remember(self.metadata, readable(without(event, "usage", "p")))
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
        self.start(out, without(message, "content"))
        for place, block in enumerate(content):
            at = f"{path}.content[{place}]"
            for name, value in _READ.mapping(block, at).items():
                if value is not None:
                    self.blocks.whole(out, place, name, value, f"{at}.{name}")
            self.blocks.stop(out, place)
        self._take_usage(chunk.get("usage"), "usage")
        remember(self.metadata, readable(without(chunk, *_BODY_FIELDS)))
        if provider_reason := _READ.text_of(chunk, "stopReason", ""):
            self._stop(out, provider_reason)
        self.finish(out)

    def finish(self, out: Out) -> None:
        if self.finished:
            return
        self.blocks.finish_all(out)
        self.finished = True
        word, usage = self._provider_reason, self._usage
        if word is None and not self.stopped:
            out.append(assumed_finish(usage, self.metadata, asked=self.blocks.calls_client))
        elif word is not None and word in BROKEN:
            self.broken = True
            out += broken_events(_PROVIDER, word, BROKEN[word], usage, self.metadata)
        else:
            reason = finish_reason(REASONS.get(word or ""), asked=self.blocks.calls_client)
            out.append(events.MessageFinish(reason, word, usage, self.metadata))

    def _stop(self, out: Out, provider_reason: str | None) -> None:
        if not self.stopped:
            self.stopped, self._provider_reason = True, provider_reason
            if provider_reason in BROKEN:
                self.blocks.break_off(out)
            self.blocks.cut = REASONS.get(provider_reason or "") == "length"
            self.blocks.finish_all(out)

    def _take_usage(self, found: Any, path: str) -> TokenUsage | None:
        usage = _READ.mapping(found, path)
        if not usage:
            return None
        self._usage = self._running_usage.read(usage)
        return self._usage


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
    """The exception that a chunk is, if it is one; also as the bare body of a response with an HTTP error."""
    for name, value in chunk.items():
        if isinstance(name, str) and name.lower().endswith("exception") and isinstance(value, (Mapping, str)):
            return name, value if isinstance(value, Mapping) else {"message": value}
    if _REFUSAL_FIELDS.issuperset(chunk) and isinstance(chunk.get("message"), str):
        return "message", chunk
    return None


_EVENTS: Mapping[str, Callable[[_Message, Out, Json], None]] = {
    "messageStart": _Message.start,
    "contentBlockStart": _Message.block_start,
    "contentBlockDelta": _Message.block_delta,
    "contentBlockStop": _Message.block_stop,
    "messageStop": _Message.stop,
    "metadata": _Message.read_metadata,
}

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

# Keys that are no event: padding against eavesdroppers, the name of an SSE event.
_NOT_NAMES = frozenset(["p", "_event"])
_NOT_SIBLINGS = _NOT_NAMES | set(_EVENTS)
_BEGINS = frozenset(["messageStart", "output"])

# The fields that are read, or belong to the HTTP response; others are kept.
_BODY_FIELDS = ("output", "stopReason", "usage", "ResponseMetadata", "$metadata", "p", "_event")
_START_FIELDS = frozenset(["role", "p"])
_ERROR_FIELDS = frozenset(["message", "Message", "originalStatusCode", "code", "__type", "p"])
_REFUSAL_FIELDS = frozenset(["message", "__type", "code"])
