"""Events → the UI message stream of Vercel's AI SDK, which `useChat` reads.

    stream = start step* (finish | abort | error) DONE
    step   = start-step part* finish-step                      one message of the conversation
    part   = text-start text-delta* text-end                   also of a refusal; reasoning likewise
           | (tool-input-start tool-input-delta*)? (tool-input-available | tool-input-error)
           | source-url | source-document | file | custom | data-…    the application's data-… also outside of steps

Parts overlap freely, each with its own id. A call's `tool-output-available` (any number of `preliminary` ones, then one
that isn't) or `tool-output-error` follows its input, possibly after the end of its step. `reset-step` removes the
step's parts and leaves the step open, or opens it again. `marks.py` has what the protocol has no field for.

The protocol has no runs. Messages of several runs that overlap are in one step, which ends with the last of them. The
parts of all runs but the first are marked, and `data-run` parts tell which messages a run has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    PIECE_FIELDS,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    Walk,
    clean_text,
    freeze,
    is_mapping,
    thaw,
)
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent, ToolUpdate
from rxdelta.formats.ai_sdk.chunks import AiSdkFrame
from rxdelta.formats.ai_sdk.continued import ContinuedMessage
from rxdelta.formats.ai_sdk.marks import FINISH_REASON, MODEL, STATUS, USAGE
from rxdelta.formats.ai_sdk.parts import Out
from rxdelta.formats.ai_sdk.run_parts import RunParts
from rxdelta.formats.ai_sdk.stream import Shown, Stream
from rxdelta.formats.ai_sdk.tables import PAUSE
from rxdelta.formats.ai_sdk.usage import add_usage, written_usage
from rxdelta.formats.encoding import (
    Masked,
    cut_off,
    masked,
    not_an_event,
    number_problems,
    shown_error,
)
from rxdelta.formats.run_lanes import Lanes
from rxdelta.framing import DONE, SSE_HEADERS, Done, add_form

__all__ = ["AI_SDK_HEADERS", "AiSdkEncoder", "ShownSources"]

AI_SDK_HEADERS: Final[Mapping[str, str]] = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""Headers of a response that is a UI message stream."""

Frame: TypeAlias = AiSdkFrame | Done
ShownSources: TypeAlias = Literal["cited", "results"]
"""Which sources a front end gets: those that texts cite, or also what the provider's tools have found."""

add_form({"type": "text-delta", "id": "1", "delta": "2"}, "id", "delta")
add_form({"type": "reasoning-delta", "id": "1", "delta": "2"}, "id", "delta")
_delta = {"type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": "2"}
add_form(_delta, "toolCallId", "inputTextDelta")

_piece_field = PIECE_FIELDS.get  # bound once, because it runs for every event


class AiSdkEncoder:
    """The frames of one UI message stream.

    Args:
        message_id, choice, sdk_version, on_error, reasoning, provider_items, sources, metadata, messages, limits: See
            `rxdelta.to_ai_sdk`.

    Raises:
        InvalidValueError: An argument is invalid.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.AiSdkEncoder()
        >>> encoder.encode(rd.events.MessageStart())
        [{'type': 'start'}, {'type': 'start-step'}]
    """

    headers: ClassVar[Mapping[str, str]] = AI_SDK_HEADERS

    def __init__(
        self,
        *,
        message_id: str | None = None,
        choice: int = 0,
        sdk_version: int = 7,
        on_error: Masked = masked,
        reasoning: bool = True,
        provider_items: bool = False,
        sources: ShownSources = "cited",
        metadata: Mapping[str, Any] | None = None,
        messages: Iterable[Mapping[str, Any]] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        _check_options(message_id, choice, sdk_version, sources, metadata)
        self._continued = ContinuedMessage(messages)
        message_id = message_id or self._continued.id
        start: dict[str, Any] = {"type": "start"}
        if message_id is not None:
            start["messageId"] = clean_text(message_id)
        if metadata:
            start["messageMetadata"] = thaw(freeze(metadata, "metadata"))
        self._on_error = on_error
        self._over = False
        shown = Shown(reasoning, provider_items, found_sources=sources == "results")
        self._stream = Stream(sdk_version, start, limits, shown)
        self._stream.used_call_ids.update(self._continued.call_ids)
        self._stream.used_ids = self._continued.part_ids

        def make(walk: Walk, first: RunParts | None) -> RunParts:
            return RunParts(self._stream, walk, first)

        self._runs = Lanes(make, choice, limits)
        self._last = self._runs.first  # of the runs that aren't sub-agents', the one whose message ended last

    def open(self) -> Sequence[Frame]:
        """The frames before the first event: `start`. Without this call it comes with the first event."""
        out: Out = []
        self._stream.start_early(out)
        return out

    def encode(self, event: Event, /) -> Sequence[Frame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is not an event.
            LimitExceededError: A block is too long, or there are too many, or too many runs.
        """
        out: Out = []
        if self._over:
            return out
        given: Any = event
        kind: Any = type(event)
        field = _piece_field(kind)
        runs = self._runs
        if field is not None and (given.run_id == runs.newest_id or runs.turn_to(given.run_id)):
            if (fold := runs.grow(event)) is not None:
                fold.place.grow(out, getattr(given, field))
            return out
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        if kind is ProviderEvent:
            return out
        if kind is Custom:
            run = runs.find(given.run_id) or runs.first
            if not given.transient:
                for one in runs:
                    one.end_text(out)  # the data are a part, behind the text
            self._stream.say(out, given, run.marks)
            return out
        if kind is ToolUpdate and self._tell_continued(out, given):
            return out
        try:
            concerned = runs.of(event)
        except ProviderError as error:
            return self.fail(error)
        if len(runs) > 1 and not runs.first.noted:
            runs.first.note(out)
        for run in concerned:
            was_over = run.walk.over
            run.encode(out, event)
            if run.walk.over and not was_over and not run.subagent:
                self._last = run
        return out

    def _tell_continued(self, out: Out, event: ToolUpdate) -> bool:
        """Send the news of a call that the client has of an earlier stream; `False` if the call isn't one of those."""
        if any(run.walk.has_call(event.call_id) for run in self._runs):
            return False
        news: Out = []
        if not self._continued.tell(news, event, self._stream):
            return False
        if news:
            self._stream.start_early(out)
            out += news
        return True

    def fail(self, error: Exception, /) -> Sequence[Frame]:
        """The stream ended with an error: close what is open, then send `error` and `DONE`."""
        out: Out = []
        if not self._over:
            self._fail(out, error)
        return out

    def close(self) -> Sequence[Frame]:
        """The stream completed: `finish` or `abort`, and `DONE`. If a message hadn't ended, it was cut off."""
        out: Out = []
        if self._over:
            return out
        if not self._runs.over:
            if self._continued.told and not self._runs:
                self._stream.start(out)
                out.append({"type": "finish", "finishReason": self._continued.reason, "messageMetadata": {}})
                self._end(out)
            else:
                self._fail(out, cut_off())
            return out
        step, summary = self._last.step, self._summary(self._last)
        if step.status == "interrupted":
            out.append({"type": "message-metadata", "messageMetadata": summary})
            reason = {"reason": step.reason} if step.reason and self._stream.since_6 else {}
            out.append({"type": "abort", **reason})
        else:
            word = "other" if step.reason == PAUSE else step.reason or "stop"
            out.append({"type": "finish", "finishReason": word, "messageMetadata": summary})
        self._end(out)
        return out

    def _end(self, out: Out) -> None:
        self._over = True
        out.append(DONE)

    def _fail(self, out: Out, error: Exception) -> None:
        if self._stream.started:
            broken = [run for run in self._runs if not run.walk.over]
            for run in self._runs:
                run.break_off(out)
            summary = self._summary(broken[0] if broken else self._last)
            summary = {STATUS: "incomplete", **summary}  # a message that had ended has its status
            out.append({"type": "message-metadata", "messageMetadata": summary})
        self._stream.start(out)
        out.append({"type": "error", "errorText": shown_error(self._on_error, error)})
        self._end(out)

    def _summary(self, run: RunParts) -> dict[str, Any]:
        """The message's metadata at its end: what the run's last message says, and the usage of all runs."""
        step = run.step
        figures: Mapping[str, int] = self._continued.usage
        for one in self._runs:
            figures = add_usage(figures, one.usage())
        usage = written_usage(figures)
        if usage is not None and {"inputTokens", "outputTokens"} <= usage.keys():
            usage["totalTokens"] = usage["inputTokens"] + usage["outputTokens"]
        known = {
            MODEL: step.model,
            STATUS: step.status,
            FINISH_REASON: None if step.status == "interrupted" else step.reason,
            USAGE: usage,
        }
        return {name: value for name, value in known.items() if value is not None}


def _check_options(
    message_id: object, choice: object, sdk_version: object, sources: object, metadata: object
) -> None:
    """Raise `InvalidValueError` for arguments that are invalid."""
    problems: list[tuple[str, object, str]] = []
    if message_id is not None and (not isinstance(message_id, str) or not message_id):
        problems.append(("message_id", message_id, "must be a string that says something"))
    problems += number_problems("choice", choice)
    if isinstance(sdk_version, bool) or sdk_version not in (5, 6, 7):
        problems.append(("sdk_version", sdk_version, "must be 5, 6 or 7"))
    if sources not in ("cited", "results"):
        problems.append(("sources", sources, "must be 'cited' or 'results'"))
    if metadata is not None and not is_mapping(metadata):
        problems.append(("metadata", metadata, "must be a mapping"))
    if problems:
        raise InvalidValueError.of(problems)
