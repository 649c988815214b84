"""Events → the UI message stream of Vercel's AI SDK, which `useChat` reads.

    stream = start step* (finish | abort | error) DONE
    step   = start-step part* finish-step                      one message of the conversation
    part   = text-start text-delta* text-end                   also of a refusal; reasoning likewise
           | tool-input-start tool-input-delta* (tool-input-available | tool-input-error)
           | source-url | source-document | file | custom | data-…

Parts overlap freely, each with its own id. A call's `tool-output-available` (any number of `preliminary` ones, then one
that isn't) or `tool-output-error` follows its input, possibly after the end of its step. `reset-step` removes the
step's parts and leaves the step open. `marks.py` has what the protocol has no field for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    PIECE_FIELDS,
    BlockFold,
    Event,
    InvalidValueError,
    LimitExceededError,
    Limits,
    ProviderError,
    clean_text,
    freeze,
    is_mapping,
    thaw,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.ai_sdk.calls import CallPart, OutputPart
from rxdelta.formats.ai_sdk.chunks import AiSdkFrame
from rxdelta.formats.ai_sdk.marks import ATTEMPT, ATTEMPT_RESET, FINISH_REASON, MODEL, STATUS, USAGE
from rxdelta.formats.ai_sdk.parts import Out, Part, TextPart, WholePart, kind_of
from rxdelta.formats.ai_sdk.stream import Index, Step, Stream, add_usage, usage_figures
from rxdelta.formats.ai_sdk.tables import CUT_OFF, TO_FINISH_REASON
from rxdelta.formats.encoding import (
    Masked,
    cut_off,
    masked,
    not_an_event,
    number_problems,
    shown_error,
)
from rxdelta.framing import DONE, SSE_HEADERS, Done

__all__ = ["AI_SDK_HEADERS", "AiSdkEncoder"]

AI_SDK_HEADERS: Final[Mapping[str, str]] = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""Headers of a response that is a UI message stream."""

Frame: TypeAlias = AiSdkFrame | Done

_piece_field = PIECE_FIELDS.get  # bound once, because it runs for every event
_CUT_BY_LENGTH: Final = "The message was cut short by the token limit before the call ended."
_ATTEMPT_FAILED: Final = "The attempt failed before the call ended."


class AiSdkEncoder:
    """The frames of one UI message stream.

    Args:
        message_id, choice, sdk_version, on_error, reasoning, metadata, limits: See `rxdelta.to_ai_sdk`.

    Raises:
        InvalidValueError: An argument is invalid.

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
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        _check_options(message_id, choice, sdk_version, metadata)
        self._message_id = None if message_id is None else clean_text(message_id)
        self._choice = choice
        self._limits = limits
        self._on_error = on_error
        self._show_reasoning = reasoning
        self._metadata: dict[str, Any] = thaw(freeze(metadata or {}, "metadata"))
        self._started = False
        self._over = False
        self._stream = Stream(sdk_version)
        self._step: Step | None = None
        self._parts: dict[Index, Part] = {}  # those of the step
        self._past_usage: dict[str, int] = {}  # of the messages and attempts that have ended

    def encode(self, event: Event, /) -> Sequence[Frame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is not an event.
            LimitExceededError: A block is too long, or there are too many.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        out: Out = []
        field = _piece_field(kind)
        if field is not None:
            if given.choice == self._choice:
                part = self._parts.get(given.index)
                if part is not None and part.fold.grows is kind:
                    part.grow(out, getattr(given, field))
            return out
        step = self._STEPS.get(kind)
        if step is not None:
            if getattr(event, "choice", None) in (None, self._choice) or kind is StreamError:
                step(self, out, given)
        elif not isinstance(event, Event):
            raise not_an_event(event)
        return out

    def fail(self, error: Exception, /) -> Sequence[Frame]:
        """The stream ended with an error: close what is open, then send `error` and `DONE`."""
        out: Out = []
        if not self._over:
            self._fail(out, error)
        return out

    def close(self) -> Sequence[Frame]:
        """The stream completed: `finish` or `abort`, and `DONE`. If its message hadn't ended, it was cut off."""
        out: Out = []
        if self._over:
            return out
        step = self._step
        if step is None or step.status is None:
            self._fail(out, cut_off())
            return out
        summary = self._summary(step)
        if step.status == "interrupted":
            out.append({"type": "message-metadata", "messageMetadata": summary})
            out.append({"type": "abort", "reason": step.reason} if step.reason else {"type": "abort"})
        else:
            out.append({"type": "finish", "finishReason": step.reason or "stop", "messageMetadata": summary})
        self._end(out)
        return out

    # The stream.

    def _start(self, out: Out, model: str | None = None) -> None:
        if self._started:
            return
        self._started = True
        frame: dict[str, Any] = {"type": "start"}
        if self._message_id is not None:
            frame["messageId"] = self._message_id
        metadata = {**self._metadata, **({MODEL: model} if model else {})}
        if metadata:
            frame["messageMetadata"] = metadata
        out.append(frame)

    def _end(self, out: Out) -> None:
        self._over = True
        self._parts = {}
        out.append(DONE)

    def _fail(self, out: Out, error: Exception) -> None:
        self._start(out)
        step = self._step
        if step is not None:
            self._finish_step(out, step, CUT_OFF)
            summary = {STATUS: "incomplete", **self._summary(step)}  # a message that had ended has its status
            out.append({"type": "message-metadata", "messageMetadata": summary})
        out.append({"type": "error", "errorText": shown_error(self._on_error, error)})
        self._end(out)

    def _stream_error(self, out: Out, event: StreamError) -> None:
        self._fail(out, ProviderError(event.message, type=event.type, code=event.code))

    def _summary(self, step: Step) -> dict[str, Any]:
        """The message's metadata at its end."""
        usage = add_usage(self._past_usage, step.usage)
        if len(usage) == 2:
            usage["totalTokens"] = usage["inputTokens"] + usage["outputTokens"]
        known = {
            MODEL: step.model,
            STATUS: step.status,
            FINISH_REASON: None if step.status == "interrupted" else step.reason,
            USAGE: usage or None,
        }
        return {name: value for name, value in known.items() if value is not None}

    # Steps.

    def _message_start(self, out: Out, event: MessageStart) -> None:
        step = self._step
        if step is None or step.is_followed_by(event):
            if step is not None:
                self._finish_step(out, step, CUT_OFF)
            step = self._begin_step(out, event.model)
        step.start(event)

    def _begin_step(self, out: Out, model: str | None = None) -> Step:
        self._start(out, model)
        if self._step is not None:
            self._past_usage = add_usage(self._past_usage, self._step.usage)
        self._step = step = Step()
        self._parts = step.parts
        out.append({"type": "start-step"})
        return step

    def _open_step(self, out: Out) -> Step | None:
        """The current step, or the first one, whose message has no start; `None` if the message has ended."""
        step = self._step
        if step is None:
            return self._begin_step(out)
        return step if step.status is None else None

    def _finish_step(self, out: Out, step: Step, cut: str | None) -> None:
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
        step.finish(event)
        requests_tool = any(part.requests_tool for part in step.parts.values())
        limit = event.reason if event.reason in ("length", "content_filter") else None
        self._finish_step(out, step, _CUT_BY_LENGTH if limit == "length" else None)
        step.status = "length" if limit == "length" else "complete"
        step.reason = TO_FINISH_REASON[limit or ("tool_use" if requests_tool else "stop")]

    def _interrupted(self, out: Out, event: MessageInterrupted) -> None:
        step = self._open_step(out)
        if step is None:
            return
        self._finish_step(out, step, CUT_OFF)
        step.status, step.reason = "interrupted", event.reason

    def _usage(self, out: Out, event: UsageUpdate) -> None:
        step = self._open_step(out)
        if step is not None:
            step.usage = usage_figures(event.usage)

    def _attempt_reset(self, out: Out, event: AttemptReset) -> None:
        step = self._step
        if step is None:
            return
        if step.status is not None:  # the first attempt at the next message has failed
            if event.usage is not None:
                self._past_usage = add_usage(self._past_usage, usage_figures(event.usage))
            return
        if event.usage is not None:
            step.usage = usage_figures(event.usage)
        if not step.parts:
            self._begin_attempt(step)
        elif self._stream.can_reset:
            self._drop_parts(step)
            self._begin_attempt(step)
            out.append({"type": "reset-step"})
        else:
            for part in step.parts.values():
                part.end(out, _ATTEMPT_FAILED)
            data = {ATTEMPT: event.attempt}
            out.append({"type": ATTEMPT_RESET, "id": self._stream.new_id(), "data": data})
            self._finish_step(out, step, _ATTEMPT_FAILED)
            self._begin_step(out)

    def _begin_attempt(self, step: Step) -> None:
        self._past_usage = add_usage(self._past_usage, step.usage)
        step.usage, step.id, step.model = {}, None, None

    def _drop_parts(self, step: Step) -> None:
        """The client drops the parts of the step, so their ids can be used again."""
        for part in step.parts.values():
            part.release_id()
        self._stream.calls.forget(step)
        self._stream.sources.forget(step)
        step.parts.clear()

    # Blocks.

    def _block_start(self, out: Out, event: BlockStart) -> None:
        step = self._open_step(out)
        if step is None:
            return
        fold = BlockFold(event, limits=self._limits)
        known = step.parts.pop(event.index, None)
        if known is not None:
            known.end(out, CUT_OFF)
        self._add_part(out, step, event.index, fold)

    def _add_part(self, out: Out, step: Step, index: Index, fold: BlockFold) -> Part:
        if len(step.parts) >= self._limits.blocks:
            raise LimitExceededError.of("blocks", self._limits.blocks, "the number of blocks in one message")
        step.parts[index] = part = self._new_part(step, fold)
        part.catch_up(out)
        return part

    def _new_part(self, step: Step, fold: BlockFold) -> Part:
        kind = kind_of(fold.block)
        if kind == "reasoning" and not self._show_reasoning:
            return Part(self._stream, step, fold)
        if kind == "text" or kind == "reasoning":
            return TextPart(self._stream, step, fold, kind)
        part_class = CallPart if kind == "call" else OutputPart if kind == "output" else WholePart
        return part_class(self._stream, step, fold)

    def _block_delta(self, out: Out, event: BlockDelta) -> None:
        part = self._parts.get(event.index)
        if part is not None and part.fold.block.open:
            self._change(out, part, event, event.fields)

    def _block_finish(self, out: Out, event: BlockFinish) -> None:
        part = self._parts.get(event.index)
        if part is None:
            step = self._open_step(out) if event.content is not None else None
            if step is None:
                return
            fold = BlockFold(BlockStart(event.index, event.content, choice=event.choice), limits=self._limits)
            part = self._add_part(out, step, event.index, fold)
        if part.ended:
            return
        if event.content is not None:
            kind = kind_of(part.fold.block)
            self._change(out, part, event, event.content)
            if kind_of(part.fold.block) != kind:  # it has become another kind of block
                part.end(out, None)
                part = self._add_part(out, part.step, event.index, part.fold)
        part.end(out, None)

    def _change(
        self, out: Out, part: Part, event: BlockDelta | BlockFinish, fields: Mapping[str, Any]
    ) -> None:
        """Apply an event whose fields may replace text that the client has."""
        if not part.is_replaced_by(fields):
            part.fold.step(event)
            part.catch_up(out)
            return
        kind, sent = kind_of(part.fold.block), part.sent_text()
        part.fold.step(event)
        if kind_of(part.fold.block) != kind:
            return
        if part.continue_from(out, sent):
            part.catch_up(out)
            return
        parts = part.step.parts.values()
        if self._stream.can_reset and not any(one.must_stay for one in parts):
            out.append({"type": "reset-step"})
            self._stream.sources.forget(part.step)
            for one in parts:
                one.send_again(out)
        else:
            part.restart(out)

    def _tool_update(self, out: Out, event: ToolUpdate) -> None:
        for call in self._stream.calls.named(event.call_id):
            call.update(out, event)

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


def _check_options(message_id: object, choice: object, sdk_version: object, metadata: object) -> None:
    """Raise `InvalidValueError` for arguments that are invalid."""
    problems: list[tuple[str, object, str]] = []
    if message_id is not None and (not isinstance(message_id, str) or not message_id):
        problems.append(("message_id", message_id, "must be a string that says something"))
    problems += number_problems("choice", choice)
    if isinstance(sdk_version, bool) or sdk_version not in (5, 6, 7):
        problems.append(("sdk_version", sdk_version, "must be 5, 6 or 7"))
    if metadata is not None and not is_mapping(metadata):
        problems.append(("metadata", metadata, "must be a mapping"))
    if problems:
        raise InvalidValueError.of(problems)
