"""Events → the UI message stream of Vercel's AI SDK, which `useChat` reads.

    stream = start step* (finish | abort | error) DONE
    step   = start-step part* finish-step                      one message of the conversation
    part   = text-start text-delta* text-end                   also of a refusal; reasoning likewise
           | (tool-input-start tool-input-delta*)? (tool-input-available | tool-input-error)
           | source-url | source-document | file | custom | data-…

Parts overlap freely, each with its own id. A call's `tool-output-available` (any number of `preliminary` ones, then one
that isn't) or `tool-output-error` follows its input, possibly after the end of its step. `reset-step` removes the
step's parts and leaves the step open, or opens it again. `marks.py` has what the protocol has no field for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias, cast

from rxdelta.core import (
    DEFAULT_LIMITS,
    PIECE_FIELDS,
    Block,
    BlockFold,
    Change,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    ToolCall,
    Walk,
    clean_text,
    freeze,
    is_mapping,
    thaw,
)
from rxdelta.core.events import EVENT_TYPES, BlockDelta, BlockFinish, MessageFinish, ToolUpdate
from rxdelta.formats.ai_sdk.calls import CallPart, OutputPart
from rxdelta.formats.ai_sdk.chunks import AiSdkFrame
from rxdelta.formats.ai_sdk.marks import ATTEMPT, ATTEMPT_RESET, FINISH_REASON, MODEL, STATUS, USAGE
from rxdelta.formats.ai_sdk.parts import Out, Part, TextPart, WholePart, kind_of
from rxdelta.formats.ai_sdk.stream import Step, Stream, add_usage, usage_figures
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
        self._on_error = on_error
        self._show_reasoning = reasoning
        self._metadata: dict[str, Any] = thaw(freeze(metadata or {}, "metadata"))
        self._started = False
        self._over = False
        self._walk = Walk(choice, limits=limits, keep_calls=True)
        self._blocks = self._walk.blocks
        self._stream = Stream(sdk_version, self._walk)
        self._step = Step()  # of the message that the walk is in
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
        if field is not None:  # as in `Walk.grow`, but the part grows its block and sends the piece
            fold = self._blocks.get(given.index)
            if fold is not None and fold.grows is kind and given.choice == self._choice:
                fold.place.grow(out, getattr(given, field))
            return out
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        try:
            changes = self._walk.step(event)
        except ProviderError as error:
            return self.fail(error)
        for change in changes:
            self._CHANGES[change.kind](self, out, given, change)
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
        if not self._walk.over:
            self._fail(out, cut_off())
            return out
        step, summary = self._step, self._summary()
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
        out.append(DONE)

    def _fail(self, out: Out, error: Exception) -> None:
        if self._started:
            self._finish_step(out, CUT_OFF)
            summary = {STATUS: "incomplete", **self._summary()}  # a message that had ended has its status
            out.append({"type": "message-metadata", "messageMetadata": summary})
        self._start(out)
        out.append({"type": "error", "errorText": shown_error(self._on_error, error)})
        self._end(out)

    def _summary(self) -> dict[str, Any]:
        """The message's metadata at its end."""
        step = self._step
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

    def _open_step(self, out: Out, model: str | None = None) -> Step:
        """The step of the message, which begins now if it hasn't."""
        step = self._step
        if not step.open:
            step.open = True
            self._start(out, model)
            out.append({"type": "start-step"})
        return step

    def _finish_step(self, out: Out, cut: str | None) -> None:
        step = self._step
        for part in step.parts:
            part.end(out, cut)
        if step.open:
            step.open = False
            out.append({"type": "finish-step"})

    def _put_away(self, *, open: bool) -> None:
        """Go on with another message, or another attempt at this one."""
        self._past_usage = add_usage(self._past_usage, self._step.usage)
        self._step = Step(open=open)

    def _another(self, out: Out, _event: Any, _: Change) -> None:
        self._finish_step(out, CUT_OFF)
        self._put_away(open=False)

    def _message_started(self, out: Out, event: Any, _: Change) -> None:
        self._open_step(out, event.model).start(event)

    def _usage(self, out: Out, event: Any, _: Change) -> None:
        self._open_step(out).usage = usage_figures(event.usage)

    def _ended(self, out: Out, event: Any, _: Change) -> None:
        step = self._open_step(out)
        self._finish_step(out, None)
        if not isinstance(event, MessageFinish):
            step.status, step.reason = "interrupted", event.reason
            return
        step.finish(event)
        calls = (fold.block for fold in self._blocks.values() if isinstance(fold.block, ToolCall))
        called = "tool_use" if any(call.type != "server_tool_call" for call in calls) else "stop"
        limit = event.reason if event.reason in ("length", "content_filter") else None
        step.status = "length" if limit == "length" else "complete"
        step.reason = TO_FINISH_REASON[limit or called]

    def _reset(self, out: Out, event: Any, _: Change) -> None:
        step = self._step
        if event.usage is not None:
            step.usage = usage_figures(event.usage)
        if step.parts and self._stream.can_reset:
            self._drop_parts(step)
            step.open = True
            out.append({"type": "reset-step"})
        elif step.parts:
            for part in step.parts:
                part.end(out, _ATTEMPT_FAILED)
            data = {ATTEMPT: event.attempt}
            out.append({"type": ATTEMPT_RESET, "id": self._stream.new_id(), "data": data})
            self._finish_step(out, _ATTEMPT_FAILED)
        self._put_away(open=step.open)

    def _drop_parts(self, step: Step) -> None:
        """The client drops the parts of the step, so their ids can be used again."""
        for part in step.parts:
            part.release_id()
        self._stream.calls.forget(step)
        self._stream.sources.forget(step)

    # Blocks.

    def _opened(self, out: Out, _event: Any, change: Change) -> None:
        self._begin_part(out, change.fold)

    def _restarted(self, out: Out, _event: Any, change: Change) -> None:
        self._leave_part(out, change.fold.place)
        self._begin_part(out, change.fold)

    def _begin_part(self, out: Out, fold: BlockFold) -> None:
        step = self._open_step(out)
        fold.place = part = self._new_part(step, fold)
        step.parts[part] = None
        part.begin(out)

    def _leave_part(self, out: Out, part: Part) -> None:
        """The block is not this part any more."""
        part.abandon(out)
        if not part.must_stay:
            part.step.parts.pop(part, None)

    def _new_part(self, step: Step, fold: BlockFold) -> Part:
        kind = kind_of(fold.block)
        if kind == "reasoning" and not self._show_reasoning:
            return Part(self._stream, step, fold)
        if kind == "text" or kind == "reasoning":
            return TextPart(self._stream, step, fold, kind)
        part_class = CallPart if kind == "call" else OutputPart if kind == "output" else WholePart
        return part_class(self._stream, step, fold)

    def _changed(self, out: Out, event: BlockDelta, change: Change) -> None:
        self._follow(out, change, event.fields)

    def _follow(self, out: Out, change: Change, fields: Mapping[str, Any]) -> None:
        """Send a change of the block by an event whose fields may replace text that the client has."""
        fold, before = change.fold, cast("Block", change.before)
        part: Part = fold.place
        if kind_of(fold.block) != kind_of(before):
            self._leave_part(out, part)
            self._begin_part(out, fold)
        elif not part.follow(out, before, fields):
            parts = part.step.parts
            if self._stream.can_reset and not any(one.must_stay for one in parts):
                out.append({"type": "reset-step"})
                self._stream.sources.forget(part.step)
                for one in parts:
                    one.send_again(out)
            else:
                part.restart(out)

    def _closed(self, out: Out, event: Any, change: Change) -> None:
        finish = isinstance(event, BlockFinish)
        if finish and event.content is not None:
            self._follow(out, change, event.content)
        part: Part = change.fold.place
        if change.repeated:
            self._leave_part(out, part)
        else:
            whole = finish or (isinstance(event, MessageFinish) and event.reason != "length")
            part.end(out, None if whole else CUT_OFF)

    def _overruled(self, out: Out, event: BlockFinish, change: Change) -> None:
        """A call that another end overrules is not shown: the client may be running it."""
        if event.content is not None and not isinstance(change.fold.block, ToolCall):
            self._follow(out, change, event.content)
            change.fold.place.end(out, None)

    def _noted(self, out: Out, event: ToolUpdate, _: Change) -> None:
        for call in self._stream.calls.named(event.call_id):
            call.update(out)

    _CHANGES: ClassVar[dict[str, Callable[[AiSdkEncoder, Out, Any, Change], None]]] = {
        "another": _another,
        "started": _message_started,
        "usage": _usage,
        "ended": _ended,
        "reset": _reset,
        "opened": _opened,
        "restarted": _restarted,
        "changed": _changed,
        "closed": _closed,
        "overruled": _overruled,
        "noted": _noted,
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
