"""Events → the UI message stream of Vercel's AI SDK, which `useChat` reads.

    stream = start step* (finish | abort | error) DONE
    step   = start-step part* finish-step                      one message of the conversation
    part   = text-start text-delta* text-end                   also of a refusal; reasoning likewise
           | tool-input-start tool-input-delta* (tool-input-available | tool-input-error)
           | source-url | source-document | file | custom | data-…

Parts overlap freely, each under its own id. `tool-output-available` (any number `preliminary`, then one that is
not) or `tool-output-error` follow their call's input, also behind its step. `reset-step` takes the step's parts
back and leaves it open.

What a part has no field for travels in its `providerMetadata`, under `rxdelta`, and comes back with the next
turn's messages: signatures, encrypted reasoning, citations as the provider gave them, a call's metadata.

A part remembers what it has told. A piece of text is passed on as it is; whatever else happens to the block, the
part tells what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from rxdelta.core import (
    DEFAULT_LIMITS,
    BlockFold,
    ContentPart,
    Event,
    InvalidValueError,
    LimitExceededError,
    ProviderError,
    ToolCall,
    begins_another,
    clean_text,
    freeze,
    is_mapping,
    thaw,
    with_news,
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
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.ai_sdk.chunks import AiSdkFrame, ProviderMetadata
from rxdelta.formats.encoding import MASKED, Masked, cut_off, masked, whole_characters
from rxdelta.framing import DONE, SSE_HEADERS, Done

__all__ = ["AI_SDK_HEADERS", "AiSdkEncoder"]

AI_SDK_HEADERS: Final[Mapping[str, str]] = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""Headers of a response that is a UI message stream."""

Frame: TypeAlias = AiSdkFrame | Done
Out: TypeAlias = list[Any]
"""Frames, built by what they are known to hold; their types are for those who read them."""
Index: TypeAlias = int | str

_REASONS = {"stop": "stop", "length": "length", "tool_use": "tool-calls", "content_filter": "content-filter"}
_TERMINAL = ("completed", "failed")
_MEDIA = {
    "image": "image/png",
    "image_url": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/octet-stream",
    "file_url": "application/octet-stream",
}
_TEXT_FIELDS = frozenset(["text", "reasoning", "thinking", "refusal"])
_CUT = "The message ended before the call did."
_TOO_LONG = "The message was cut short by the token limit before the call ended."
_AGAIN = "The attempt failed before the call ended."


class AiSdkEncoder:
    """The frames of one UI message stream.

    Args:
        message_id, choice, sdk_version, on_error, reasoning, metadata: As of `rxdelta.to_ai_sdk`.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.AiSdkEncoder()
        >>> encoder.encode(rd.events.MessageStart())
        [{'type': 'start'}, {'type': 'start-step'}]
    """

    def __init__(
        self,
        *,
        message_id: str | None = None,
        choice: int = 0,
        sdk_version: int = 7,
        on_error: Masked = masked,
        reasoning: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        _check_options(message_id, choice, sdk_version, metadata)
        self._message_id = None if message_id is None else clean_text(message_id)
        self._choice = choice
        self._can_reset = self._has_custom = self._has_citations = sdk_version >= 7
        self._on_error = on_error
        self._reasoning = reasoning
        self._metadata: dict[str, Any] = thaw(freeze(metadata or {}, "metadata"))
        self._started = False
        self._over = False
        self._step: _Step | None = None
        self._parts: dict[Index, _Part] = {}  # of the step that is open
        self._calls: dict[str, list[_Call]] = {}  # by the id that a result names
        self._ids: set[str] = set()
        self._sources: dict[str, str] = {}
        self._number = 0
        self._spent: dict[str, int] = {}

    def encode(self, event: Event, /) -> Sequence[Frame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: A block, or their number, is too large.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        out: Out = []
        field = _GROWTH.get(kind)
        if field is not None:
            if given.choice == self._choice:
                part = self._parts.get(given.index)
                if part is not None and part.fold.grows is kind:
                    part.grow(out, getattr(given, field))
            return out
        take = self._STEPS.get(kind)
        if take is not None:
            if getattr(event, "choice", self._choice) == self._choice or kind is StreamError:
                take(self, out, given)
        elif not isinstance(event, Event):
            raise InvalidValueError.of(
                [("event", event, "must be an event; chunks go through decode() first")]
            )
        return out

    def fail(self, error: Exception, /) -> Sequence[Frame]:
        """What is open is closed, then the `error` chunk and `DONE`."""
        out: Out = []
        if not self._over:
            self._fail(out, error)
        return out

    def close(self) -> Sequence[Frame]:
        """`finish` or `abort`, and `DONE`. A message that hadn't ended was cut off, which is an error."""
        out: Out = []
        if self._over:
            return out
        step = self._step
        if step is None or step.status is None:
            self._fail(out, cut_off())
            return out
        told = self._summary(step)
        if step.status == "interrupted":
            out.append({"type": "message-metadata", "messageMetadata": told})
            out.append({"type": "abort", "reason": step.reason} if step.reason else {"type": "abort"})
        else:
            out.append({"type": "finish", "finishReason": step.reason or "stop", "messageMetadata": told})
        self._end(out)
        return out

    # The stream.

    def _start(self, out: Out, model: str | None = None) -> None:
        if self._started:
            return
        self._started = True
        metadata = {**self._metadata, **({"model": model} if model else {})}
        named = {"messageId": self._message_id} if self._message_id is not None else {}
        told = {"messageMetadata": metadata} if metadata else {}
        out.append({"type": "start", **named, **told})

    def _end(self, out: Out) -> None:
        self._over = True
        self._parts = {}
        out.append(DONE)

    def _fail(self, out: Out, error: Exception) -> None:
        self._start(out)
        step = self._step
        if step is not None:
            self._finish_step(out, step, _CUT)
            told = {"status": "incomplete", **self._summary(step)}  # unless the message itself had ended
            out.append({"type": "message-metadata", "messageMetadata": told})
        out.append({"type": "error", "errorText": self._say(error)})
        self._end(out)

    def _say(self, error: Exception) -> str:
        try:
            return clean_text(str(self._on_error(error)))
        except Exception as failure:  # what may be said isn't known, so nothing is
            masked(failure)
            return MASKED

    def _summary(self, step: _Step) -> dict[str, Any]:
        usage = _sum(self._spent, step.usage)
        if len(usage) == 2:
            usage["totalTokens"] = usage["inputTokens"] + usage["outputTokens"]
        known = {
            "model": step.model,
            "status": step.status,
            "finishReason": None if step.status == "interrupted" else step.reason,
            "usage": usage or None,
        }
        return {name: value for name, value in known.items() if value is not None}

    # Messages.

    def _message_start(self, out: Out, event: MessageStart) -> None:
        step = self._step
        if step is not None:
            begun, over = step.started and bool(step.parts), step.status is not None
            if not begins_another(event, id=step.id, begun=begun, over=over):
                step.take(event)
                return
            self._finish_step(out, step, _CUT)
        self._begin(out, event.model).take(event)

    def _begin(self, out: Out, model: str | None = None) -> _Step:
        """A new step, behind the one before."""
        self._start(out, model)
        if self._step is not None:
            self._spent = _sum(self._spent, self._step.usage)
        self._step = step = _Step()
        self._parts = step.parts
        out.append({"type": "start-step"})
        return step

    def _open_step(self, out: Out) -> _Step | None:
        """The step that takes blocks, one that begins unheralded if need be; `None` once it has ended."""
        step = self._step
        if step is None:
            return self._begin(out)
        return step if step.status is None else None

    def _finish_step(self, out: Out, step: _Step, cut: str | None) -> None:
        if step.ended:
            return
        step.ended = True
        for part in step.parts.values():
            part.end(out, cut)
        out.append({"type": "finish-step"})

    def _message_finish(self, out: Out, event: MessageFinish) -> None:
        step = self._open_step(out)
        if step is None:
            return
        step.take(event)
        asked = any(part.asks for part in step.parts.values())
        said = event.reason if event.reason in ("length", "content_filter") else None
        self._finish_step(out, step, _TOO_LONG if said == "length" else None)
        step.status = "length" if said == "length" else "complete"
        step.reason = _REASONS[said or ("tool_use" if asked else "stop")]

    def _interrupted(self, out: Out, event: MessageInterrupted) -> None:
        step = self._open_step(out)
        if step is None:
            return
        self._finish_step(out, step, _CUT)
        step.status, step.reason = "interrupted", event.reason

    def _attempt_reset(self, out: Out, event: AttemptReset) -> None:
        step = self._step
        if step is None:
            return
        if step.status is not None:  # it is the next message's first attempt that failed
            if event.usage is not None:
                self._spent = _sum(self._spent, _figures(event.usage))
            return
        if event.usage is not None:
            step.usage = _figures(event.usage)
        if not step.parts:
            self._renew(step)
        elif self._can_reset:
            self._forget(step)
            self._renew(step)
            out.append({"type": "reset-step"})
        else:
            for part in step.parts.values():
                part.end(out, _AGAIN)
            reset = {"attempt": event.attempt}
            out.append({"type": "data-attempt-reset", "id": self.new_id(), "data": reset})
            self._finish_step(out, step, _AGAIN)
            self._begin(out)

    def _renew(self, step: _Step) -> None:
        self._spent = _sum(self._spent, step.usage)
        step.usage, step.id, step.model = {}, None, None

    def _forget(self, step: _Step) -> None:
        """The client drops the parts of the step, so their ids are free."""
        for part in step.parts.values():
            part.forget()
        for call_id in [key for key, calls in self._calls.items() if calls[0].step is step]:
            del self._calls[call_id]
        for key in step.sources:
            self._sources.pop(key, None)
        step.sources.clear()
        step.parts.clear()

    def _usage(self, out: Out, event: UsageUpdate) -> None:
        step = self._open_step(out)
        if step is not None:
            step.usage = _figures(event.usage)

    def _stream_error(self, out: Out, event: StreamError) -> None:
        self._fail(out, ProviderError(event.message, type=event.type, code=event.code))

    # Blocks.

    def _block_start(self, out: Out, event: BlockStart) -> None:
        step = self._open_step(out)
        if step is None:
            return
        fold = BlockFold(event)
        known = step.parts.pop(event.index, None)
        if known is not None:
            known.end(out, _CUT)
        self._add(out, step, event.index, fold)

    def _add(self, out: Out, step: _Step, index: Index, fold: BlockFold) -> _Part:
        if len(step.parts) >= DEFAULT_LIMITS.blocks:
            raise LimitExceededError.of(
                "blocks", DEFAULT_LIMITS.blocks, "the number of blocks in one message"
            )
        step.parts[index] = part = self._part(step, fold)
        part.catch_up(out)
        return part

    def _part(self, step: _Step, fold: BlockFold) -> _Part:
        kind = _kind(fold.block)
        if kind == "reasoning" and not self._reasoning:
            return _Part(self, step, fold)
        if kind == "text" or kind == "reasoning":
            return _Text(self, step, fold, kind)
        return (_Call if kind == "call" else _Output if kind == "output" else _Whole)(self, step, fold)

    def _block_delta(self, out: Out, event: BlockDelta) -> None:
        part = self._parts.get(event.index)
        if part is not None and part.fold.block.open:
            self._change(out, part, event)

    def _block_finish(self, out: Out, event: BlockFinish) -> None:
        part = self._parts.get(event.index)
        if part is None:
            step = self._open_step(out) if event.content is not None else None
            if step is None:
                return
            fold = BlockFold(BlockStart(event.index, event.content, choice=event.choice))
            part = self._add(out, step, event.index, fold)
        if part.ended:
            return
        if event.content is not None:
            kind = _kind(part.fold.block)
            self._change(out, part, event)
            if _kind(part.fold.block) != kind:  # it turned out to be something else altogether
                part.end(out, None)
                part = self._add(out, part.step, event.index, part.fold)
        part.end(out, None)

    def _change(self, out: Out, part: _Part, event: BlockDelta | BlockFinish) -> None:
        """Take an event that may replace what has been told."""
        fields: Mapping[str, Any] = event.fields if isinstance(event, BlockDelta) else event.content or {}
        if not part.retells(fields):
            part.fold.step(event)
            part.catch_up(out)
            return
        kind, told = _kind(part.fold.block), part.told()
        part.fold.step(event)
        if _kind(part.fold.block) != kind:
            return
        if part.goes_on(out, told):
            part.catch_up(out)
            return
        parts = part.step.parts.values()
        if self._can_reset and not any(one.must_stay for one in parts):
            out.append({"type": "reset-step"})
            for key in part.step.sources:
                self._sources.pop(key, None)
            part.step.sources.clear()
            for one in parts:
                one.tell_again(out)
        else:
            part.begin_again(out)

    # What the parts ask for.

    def new_id(self) -> str:
        self._number += 1
        return str(self._number)

    def register(self, call: _Call, call_id: str | None) -> str:
        """The id that this call has here: its own, unless another had it before."""
        wanted = call_id or f"call-{self.new_id()}"
        self.know(call, wanted)
        found = wanted
        while found in self._ids:
            found = f"{wanted}-{self.new_id()}"
        self._ids.add(found)
        return found

    def know(self, call: _Call, call_id: str) -> None:
        """Results that name this id are for this call, and for others of its message that have it too."""
        known = self._calls.get(call_id)
        if known is None or known[0].step is not call.step:
            self._calls[call_id] = [call]
        elif call not in known:
            known.append(call)

    def free(self, wire_id: str) -> None:
        self._ids.discard(wire_id)

    def find(self, call_id: object) -> _Call | None:
        """The provider's own call that a result is for."""
        for call in self._calls.get(call_id, ()) if isinstance(call_id, str) else ():
            if call.runs_there:
                return call
        return None

    def source(self, out: Out, step: _Step, citation: Any) -> dict[str, Any] | None:
        """The source that a citation names, told once."""
        if not citation.url and not citation.title:
            return None
        key = f"url {citation.url}" if citation.url else f"title {citation.title}"
        known = self._sources.get(key)
        source_id = known or f"source-{self.new_id()}"
        where: dict[str, Any] = {"url": citation.url} if citation.url else {"mediaType": "text/plain"}
        if citation.title:
            where["title"] = citation.title
        kind = "url" if citation.url else "document"
        told: dict[str, Any] = {"type": f"source-{kind}", "sourceId": source_id, **where}
        if known is None:
            self._sources[key] = source_id
            step.sources.append(key)
            told["providerMetadata"] = {"rxdelta": {"cited": True}}  # so it is told with the text already
            out.append(told)
        return {"type": "source", "sourceType": kind, "id": source_id, **where}

    @property
    def shows_citations(self) -> bool:
        return self._has_citations

    def other(self, extra: dict[str, Any]) -> Frame:
        """A block that no part is like, whole."""
        if self._has_custom:
            return {"type": "custom", "kind": "rxdelta.block", "providerMetadata": {"rxdelta": extra}}
        return {"type": "data-block", "id": self.new_id(), "data": extra}

    def _tool_update(self, out: Out, event: ToolUpdate) -> None:
        for call in self._calls.get(event.call_id, ()):
            call.hear(out, event)

    _STEPS: ClassVar[dict[type, Callable[[AiSdkEncoder, Out, Any], None]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage,
        MessageFinish: _message_finish,
        StreamError: _stream_error,
        ToolUpdate: _tool_update,
        MessageInterrupted: _interrupted,
        AttemptReset: _attempt_reset,
    }


_GROWTH: Mapping[type, str] = {
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    DataDelta: "data",
    ToolCallDelta: "args",
}


class _Step:
    """One message: its parts by index, in the order in which they appeared."""

    def __init__(self) -> None:
        self.parts: dict[Index, _Part] = {}
        self.sources: list[str] = []
        self.id: str | None = None
        self.model: str | None = None
        self.usage: dict[str, int] = {}
        self.started = self.ended = False
        self.status: str | None = None
        self.reason: str | None = None

    def take(self, event: MessageStart | MessageFinish) -> None:
        if isinstance(event, MessageStart):
            self.id = self.id or event.id
            self.started = self.started or not event.assumed
        self.model = self.model or event.model
        if event.usage is not None and (isinstance(event, MessageFinish) or not self.usage):
            self.usage = _figures(event.usage)


class _Part:
    """A block, and what of it has been told. By itself one that nobody is told of."""

    asks = False
    """Whether it is a call that the client is asked to run."""
    must_stay = False
    """Whether taking it back would have effects, as a call would be run again."""

    def __init__(self, encoder: AiSdkEncoder, step: _Step, fold: BlockFold) -> None:
        self.encoder = encoder
        self.step = step
        self.fold = fold
        self.ended = False

    def grow(self, _out: Out, piece: str, /) -> None:
        """One more piece, of the kind that the block grows by."""
        self.fold.grow(piece)

    def catch_up(self, _out: Out, /) -> None:
        """Tell what hasn't been told."""

    def retells(self, _fields: Mapping[str, Any], /) -> bool:
        """Whether such fields replace what has been told."""
        return False

    def told(self) -> str:
        return ""

    def goes_on(self, _out: Out, _told: str, /) -> bool:
        """Tell what follows what has been told; `False` where the block says something else now."""
        return True

    def begin_again(self, out: Out, /) -> None:
        """Tell the block as a part of its own, where what was told can't be taken back."""

    def tell_again(self, out: Out, /) -> None:
        """Tell all that is known: the client has dropped what was told."""

    def forget(self) -> None:
        """The client has dropped what was told, and another attempt begins."""

    def end(self, out: Out, cut: str | None, /) -> None:
        """Nothing more comes. `cut` says why, if the block hadn't ended."""
        if self.ended:
            return
        self.ended = True
        self.fold.finish(cut=cut)
        self._close(out, cut)

    def _close(self, _out: Out, _cut: str | None, /) -> None: ...


class _Text(_Part):
    """A text, a refusal, or a reasoning."""

    def __init__(
        self,
        encoder: AiSdkEncoder,
        step: _Step,
        fold: BlockFold,
        kind: Literal["text", "reasoning"] = "text",
    ) -> None:
        super().__init__(encoder, step, fold)
        self._kind: Literal["text", "reasoning"] = kind
        self._more = f"{kind}-delta"
        self._id: str | None = None
        self._half = ""  # of a surrogate pair
        self._cited = 0

    @property
    def _block(self) -> ContentPart:
        return cast("ContentPart", self.fold.block)

    def _is_mine(self) -> bool:
        return _kind(self.fold.block) == self._kind

    def grow(self, out: Out, piece: str, /) -> None:
        self.fold.grow(piece)
        self._say(out, piece)

    def _say(self, out: Out, piece: str) -> None:
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece and self._id is not None:
            out.append({"type": self._more, "id": self._id, "delta": piece})

    def catch_up(self, out: Out, /) -> None:
        if not self._is_mine():
            return
        if self._id is None:
            self._id = self.encoder.new_id()
            named = {"type": "refusal"} if self._block.type == "refusal" else {}
            out.append({"type": f"{self._kind}-start", "id": self._id, **_provider_metadata(named)})
            self._say(out, self._block.text or "")
        self._show_sources(out)

    def _show_sources(self, out: Out) -> None:
        citations = self._block.citations
        for citation in citations[self._cited :]:
            self.encoder.source(out, self.step, citation)
        self._cited = len(citations)

    def retells(self, fields: Mapping[str, Any], /) -> bool:
        return not _TEXT_FIELDS.isdisjoint(fields)

    def told(self) -> str:
        text = self._block.text or ""
        return text[:-1] if self._half else text

    def goes_on(self, out: Out, told: str, /) -> bool:
        now = self._block.text or ""
        if not now.startswith(told):
            return False
        self._half = ""
        self._say(out, now[len(told) :])
        return True

    def begin_again(self, out: Out, /) -> None:
        out.append({"type": f"{self._kind}-end", "id": self._id})
        self._id, self._half, self._cited = None, "", 0
        self.catch_up(out)

    def tell_again(self, out: Out, /) -> None:
        ended, self._id, self._half, self._cited = self.ended, None, "", 0
        self.catch_up(out)
        if ended:
            self._close(out, None)

    def _close(self, out: Out, _cut: str | None, /) -> None:
        if not self._is_mine():
            self._finish(out, {}, [])
            return
        if self._half:
            self._half = ""
            out.append({"type": self._more, "id": self._id, "delta": "\ufffd"})
        block = self._block
        self._cited = 0  # the list may have been replaced; what is known isn't told again
        self._show_sources(out)
        citations = [shown for one in block.citations if (shown := self._citation(out, one)) is not None]
        extra = _extra(block, () if block.type == self._kind else ("type",))
        self._finish(out, extra, citations if self.encoder.shows_citations else [])

    def _finish(self, out: Out, extra: dict[str, Any], citations: list[dict[str, Any]]) -> None:
        frame: dict[str, Any] = {"type": f"{self._kind}-end", "id": self._id}
        if citations:
            frame["citations"] = citations
        out.append(frame | _provider_metadata(extra))

    def _citation(self, out: Out, citation: Any) -> dict[str, Any] | None:
        source = self.encoder.source(out, self.step, citation)
        if source is None:
            return None
        known = {
            "startIndex": citation.start_index,
            "endIndex": citation.end_index,
            "citedText": citation.cited_text,
        }
        return {"source": source, **{name: value for name, value in known.items() if value is not None}}


class _Call(_Part):
    """A call: its input as it grows, then whole or as an error; then what its tool gave back."""

    def __init__(self, encoder: AiSdkEncoder, step: _Step, fold: BlockFold) -> None:
        super().__init__(encoder, step, fold)
        self._id: str | None = None
        self._call_id: str | None = None
        self._half = ""
        self._told = 0
        self._streams = True  # until the text is replaced by another
        self._started = False
        self._available = False
        self._done = False
        self._title: str | None = None
        self._result: Any = None
        self._output: ContentPart | None = None  # of a tool that the provider runs

    @property
    def _call(self) -> ToolCall:
        return cast("ToolCall", self.fold.block)

    @property
    def asks(self) -> bool:  # type: ignore[override]
        return isinstance(self.fold.block, ToolCall) and not self.runs_there

    @property
    def must_stay(self) -> bool:  # type: ignore[override]
        return self._available

    @property
    def runs_there(self) -> bool:
        return self._call.type == "server_tool_call"

    def _about(self) -> dict[str, Any]:
        call = self._call
        about: dict[str, Any] = {"toolCallId": self._id, "toolName": call.name or "invalid"}
        if call.display_text:
            about["title"] = self._title = call.display_text
        return about | self._executed()

    def _executed(self) -> dict[str, Any]:
        return {"providerExecuted": True} if self.runs_there else {}

    def grow(self, out: Out, piece: str, /) -> None:
        self.fold.grow(piece)
        if self._started:
            self._say(out, piece)

    def _say(self, out: Out, piece: str) -> None:
        if not self._streams:
            return
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece and self._id is not None:
            out.append({"type": "tool-input-delta", "toolCallId": self._id, "inputTextDelta": piece})

    def catch_up(self, out: Out, /) -> None:
        """The start waits for the id and the name, which some gateways send behind it."""
        if not isinstance(self.fold.block, ToolCall):
            return
        call = self._call
        if call.call_id is not None and call.call_id != self._call_id:
            self._call_id = call.call_id
            if self._id is None:
                self._id = self.encoder.register(self, call.call_id)
            else:
                self.encoder.know(self, call.call_id)
        if not self._started and self._id is not None and call.name and not self.ended:
            self._started = True
            out.append({"type": "tool-input-start", **self._about()})
            if isinstance(call.arguments, str):
                self._say(out, call.arguments)

    def retells(self, fields: Mapping[str, Any], /) -> bool:
        return self._started and not {"args", "input", "arguments"}.isdisjoint(fields)

    def told(self) -> str:
        text = self._call.arguments
        text = text if isinstance(text, str) else ""
        return text[:-1] if self._half else text

    def goes_on(self, out: Out, told: str, /) -> bool:
        """Another text is no matter: the whole input comes at the end."""
        now = self._call.arguments
        if isinstance(now, str) and now.startswith(told):
            self._half = ""
            self._say(out, now[len(told) :])
        else:
            self._streams = isinstance(now, Mapping) and not told
        return True

    def tell_again(self, out: Out, /) -> None:
        ended, self._started, self._half, self._streams = self.ended, False, "", True
        self.ended = False
        self.catch_up(out)
        self.ended = ended
        if ended:
            self._close(out, None)

    def forget(self) -> None:
        if self._id is not None:
            self.encoder.free(self._id)

    def _close(self, out: Out, _cut: str | None, /) -> None:
        block = self.fold.block
        if not isinstance(block, ToolCall):  # it turned out to be no call at all
            if self._started:
                about = {"toolCallId": self._id, "toolName": "invalid", "input": "", "errorText": _CUT}
                out.append({"type": "tool-input-error", **about})
            self._done = True
            return
        if self._id is None:
            self._id = self.encoder.register(self, block.call_id)
        extra = _extra(block, ("type",) if block.type == "invalid_tool_call" else ())
        told = {**self._about(), "input": thaw(block.arguments), **_provider_metadata(extra)}
        if block.status == "complete":
            self._available = True
            out.append({"type": "tool-input-available", **told})
            self._tell_result(out)
            return
        self._done = True
        told["input"] = told["input"] if told["input"] is not None else ""
        out.append({"type": "tool-input-error", **told, "errorText": block.error or _CUT})

    def hear(self, out: Out, event: ToolUpdate) -> None:
        if not isinstance(self.fold.block, ToolCall):
            return
        call = with_news(
            self._call,
            execution_status=event.execution_status,
            display_text=event.display_text,
            result=event.result,
        )
        if call is self._call:
            return
        self.fold.block = call
        if (self._started or self._available) and call.display_text not in (None, self._title):
            self._title = call.display_text
            data = {"toolCallId": self._id, "displayText": call.display_text}
            out.append({"type": "data-tool-update", "id": cast("str", self._id), "data": data})
        self._tell_result(out)

    def _tell_result(self, out: Out) -> None:
        """What the tool has given back so far, once its input has been told."""
        if not self._available or self._done:
            return
        call, result = self._call, self._call.result
        terminal = call.execution_status() in _TERMINAL
        if self._output is not None:
            self._tell_output(out, self._output)
        elif terminal and (call.execution_status() == "failed" or (result is not None and result.is_error)):
            self._done = True
            self._tell(
                out, "tool-output-error", errorText=_text(result and result.content) or "The tool failed."
            )
        elif terminal:
            self._done = True
            self._tell(out, "tool-output-available", output=thaw(result and result.content))
        elif result is not None and result is not self._result:
            self._result = result
            self._tell(out, "tool-output-available", output=thaw(result.content), preliminary=True)

    def _tell(self, out: Out, kind: str, **fields: Any) -> None:
        out.append({"type": kind, "toolCallId": self._id, **fields, **self._executed()})

    def take(self, out: Out, output: ContentPart) -> bool:
        """What the provider's own tool gave back; `False` if it has given something already, or never ran."""
        if self._done or self._output is not None:
            return False
        self._output = output
        self._tell_result(out)
        return True

    def _tell_output(self, out: Out, output: ContentPart) -> None:
        self._done = True
        options = output.options
        failed = options.get("status") == "error" or options.get("is_error") is True
        extra = _extra(output, ())
        said = options.get("output")
        if failed:
            self._tell(
                out,
                "tool-output-error",
                errorText=_text(said) or "The tool failed.",
                **_provider_metadata(extra),
            )
            return
        del extra["options"]
        rest = {name: value for name, value in thaw(options).items() if name != "output"}
        metadata = _provider_metadata({**extra, "options": rest} if rest else extra)
        self._tell(out, "tool-output-available", output=thaw(said), **metadata)


class _Output(_Part):
    """What the provider's own tool gave back: its call's output, where that call is known."""

    def _close(self, out: Out, cut: str | None, /) -> None:
        block = self.fold.block
        if cut is not None or not isinstance(block, ContentPart):
            return
        call = self.encoder.find(block.options.get("tool_call_id"))
        if call is None or not call.take(out, block):
            out.append(self.encoder.other(_extra(block, ("type", "text"))))

    def tell_again(self, out: Out, /) -> None:
        if self.ended:
            self._close(out, None)


class _Whole(_Part):
    """A file, or a block that no part is like: told when it is whole, or not at all."""

    def _close(self, out: Out, cut: str | None, /) -> None:
        block = self.fold.block
        if cut is not None or not isinstance(block, ContentPart):
            return
        url, media_type = _address(block)
        if url is None:
            out.append(self.encoder.other(_extra(block, ("type", "text"))))
            return
        extra = _extra(block, ("type",))
        out.append({"type": "file", "url": url, "mediaType": media_type, **_provider_metadata(extra)})

    def tell_again(self, out: Out, /) -> None:
        if self.ended:
            self._close(out, None)


def _kind(block: ContentPart | ToolCall) -> Literal["text", "reasoning", "call", "output", "whole"]:
    """Which sort of part tells the block."""
    if isinstance(block, ToolCall):
        return "call"
    if block.type == "reasoning":
        return "reasoning"
    if block.type in ("text", "refusal"):
        return "text"
    return "output" if block.type == "server_tool_result" else "whole"


def _check_options(message_id: object, choice: object, sdk_version: object, metadata: object) -> None:
    """Raise `InvalidValueError` for what makes no sense."""
    wrong: list[tuple[str, object, str]] = []
    if message_id is not None and (not isinstance(message_id, str) or not message_id):
        wrong.append(("message_id", message_id, "must be a string that says something"))
    if isinstance(choice, bool) or not isinstance(choice, int) or choice < 0:
        wrong.append(("choice", choice, "must be a whole number from 0"))
    if isinstance(sdk_version, bool) or sdk_version not in (5, 6, 7):
        wrong.append(("sdk_version", sdk_version, "must be 5, 6 or 7"))
    if metadata is not None and not is_mapping(metadata):
        wrong.append(("metadata", metadata, "must be a mapping"))
    if wrong:
        raise InvalidValueError.of(wrong)


def _extra(block: ContentPart | ToolCall, also: tuple[str, ...]) -> dict[str, Any]:
    """What a part has no field of its own for, as `to_dict` has it."""
    whole = block.to_dict()
    wanted = ("options", "citations", *also) if isinstance(block, ContentPart) else ("metadata", *also)
    extra = {name: whole[name] for name in wanted if name in whole}
    if "metadata" in extra:
        extra["metadata"].pop("execution_status", None)
    return {name: value for name, value in extra.items() if value}


def _provider_metadata(extra: dict[str, Any]) -> dict[str, ProviderMetadata]:
    return {"providerMetadata": {"rxdelta": extra}} if extra else {}


def _address(block: ContentPart) -> tuple[str | None, str]:
    """Where a medium is, or the medium itself as an address, and its type."""
    known = _MEDIA.get(block.type)
    if known is None:
        return None, ""
    said = block.options.get("mime_type")
    media_type = said if isinstance(said, str) and said else known
    url = block.options.get("url")
    if isinstance(url, str) and url:
        return url, media_type
    if not block.text:
        return None, media_type
    return (
        block.text if block.type.endswith("_url") else f"data:{media_type};base64,{block.text}"
    ), media_type


def _text(value: Any) -> str:
    """What a tool's error says, as a text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(thaw(value), ensure_ascii=False)


def _figures(usage: Any) -> dict[str, int]:
    known = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
    return {name: count for name, count in known.items() if count is not None}


def _sum(mine: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    return {name: mine.get(name, 0) + theirs.get(name, 0) for name in {**mine, **theirs}}
