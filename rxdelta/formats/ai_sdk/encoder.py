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
parts of all runs but the first are marked, and `data-run` parts list the messages of a run.
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
from rxdelta.formats.ai_sdk.calls import Outcome, title_chunk
from rxdelta.formats.ai_sdk.chunks import AiSdkFrame
from rxdelta.formats.ai_sdk.marks import FINISH_REASON, MODEL, STATUS, USAGE
from rxdelta.formats.ai_sdk.run_parts import RunParts
from rxdelta.formats.ai_sdk.stream import SOURCE, Shown, Stream
from rxdelta.formats.ai_sdk.tables import (
    FINISH_REASONS,
    PAUSE,
    add_usage,
    read_usage,
    usage_figures,
    written_usage,
)
from rxdelta.formats.ai_sdk.tool_parts import ToolPart, last_reply, parts_of, tool_parts
from rxdelta.formats.decoding import word
from rxdelta.formats.encoding import Masked, cut_off, masked, not_an_event, number_problems, shown_error
from rxdelta.formats.format import Endpoint, plain_error
from rxdelta.formats.front_ends import ids_in
from rxdelta.formats.runs import Lanes
from rxdelta.framing import DONE, SSE_HEADERS, Done, add_form, sse_frame


class ContinuedMessage:
    """The assistant's message that the client already has, and that a reply continues.

    Args:
        messages: The UI messages of the request. If the last one isn't the assistant's, nothing is continued.

    Attributes:
        id: The message's id.
        usage: The figures that its metadata have.
        reason: Why its last step ended, in the SDK's words.
        had_news: Whether a tool of the message had news.

    Raises:
        InvalidValueError: They are no UI messages.
    """

    def __init__(self, messages: Iterable[Mapping[str, Any]]) -> None:
        message = last_reply(messages) or {}
        metadata = message.get("metadata")
        known: Mapping[str, Any] = metadata if is_mapping(metadata) else {}
        usage, reason = known.get(USAGE), known.get(FINISH_REASON)
        self.id = word(message.get("id"))
        self.usage = usage_figures(read_usage(usage)) if is_mapping(usage) else {}
        self.reason = reason if word(reason) in FINISH_REASONS else "tool-calls"
        self.had_news = False
        self._parts = parts_of(message)
        self._calls = {found.call_id: found for found in tool_parts(self._parts)}
        self._names: dict[str, list[ToolPart]] = {}  # by either id
        for found in self._calls.values():
            for name in {*ids_in(found.approval_id)}:
                self._names.setdefault(name, []).append(found)
        self._outcomes: dict[str, Outcome] = {}

    @property
    def call_ids(self) -> Iterable[str]:
        """The ids of the calls that the client has."""
        return self._calls.keys()

    @property
    def part_ids(self) -> set[str]:
        """The ids of the parts that the client has, as `Stream.new_id` makes them."""
        ids = (word(part.get("sourceId")) or word(part.get("id")) for part in self._parts if is_mapping(part))
        return {known.removeprefix(SOURCE) for known in ids if known is not None}

    def send_news(self, event: ToolUpdate, stream: Stream) -> bool:
        """Send the news of a call, by either of its ids; `False` if the message has no such call."""
        named = [(found, self._outcome(found, stream)) for found in self._names.get(event.call_id, ())]
        # A provider that numbers again has used the id for an earlier call, which has its outcome.
        for found, outcome in [one for one in named if not one[1].settled] or named[-1:]:
            self.had_news = True
            if event.display_text is not None:
                stream.out.append(title_chunk(found.call_id, event.display_text, {}))
            outcome.send_news(event.execution_status, event.result)
        return bool(named)

    def _outcome(self, found: ToolPart, stream: Stream) -> Outcome:
        outcome = self._outcomes.get(found.call_id)
        if outcome is None:
            outcome = self._outcomes[found.call_id] = Outcome(
                stream,
                found.call_id,
                found.approval_id,
                at_provider=found.at_provider,
                asked=found.asked,
                answer=None if found.answer is None else found.answer.approved,
            )
            outcome.settled = found.settled or found.state == "input-streaming"
        return outcome


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
        stream = self._stream
        stream.out = []
        stream.start_early()
        return stream.out

    def encode(self, event: Event, /) -> Sequence[Frame]:
        """The frames of one event; none after the end, nor for an event of another choice.

        Raises:
            InvalidValueError: It is not an event.
            LimitExceededError: A block is too long, or there are too many, or too many runs.
        """
        if self._over:
            return ()
        out = self._stream.out = []  # a list of its own, so an event that fails leaves no frames to the next
        given: Any = event
        kind: Any = type(event)
        field = _piece_field(kind)
        runs = self._runs
        if field is not None and (given.run_id == runs.newest_id or runs.turn_to(given.run_id)):
            if (fold := runs.grow(event)) is not None:
                fold.place.grow(getattr(given, field))
            return out
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        if kind is ProviderEvent:
            return out
        if kind is Custom:
            run = runs.find(given.run_id) or runs.first
            if not given.transient:
                for one in runs:
                    one.end_text()  # the data are a part, behind the text
            self._stream.say(given, run.marks)
            return out
        if kind is ToolUpdate and self._send_continued(given):
            return self._stream.out
        try:
            concerned = runs.of(event)
        except ProviderError as error:
            return self.fail(error)
        for run in concerned:
            was_over = run.walk.over
            run.encode(event)
            if run.walk.over and not was_over and not run.identity.subagent:
                self._last = run
        return out

    def _send_continued(self, event: ToolUpdate) -> bool:
        """Send the news of a call that the client has of an earlier stream; `False` if the call isn't one of those."""
        if any(run.walk.has_call(event.call_id) for run in self._runs):
            return False
        stream = self._stream
        if not self._continued.send_news(event, stream):
            return False
        if news := stream.out:
            stream.out = []
            stream.start_early()  # in front of the news, and only if there are any
            stream.out += news
        return True

    def fail(self, error: Exception, /) -> Sequence[Frame]:
        """The stream ended with an error: close what is open, then send `error` and `DONE`."""
        if self._over:
            return ()
        self._stream.out = []
        self._fail(error)
        return self._stream.out

    def close(self) -> Sequence[Frame]:
        """The stream completed: `finish` or `abort`, and `DONE`. If a message hadn't ended, it was cut off."""
        if self._over:
            return ()
        out = self._stream.out = []
        if not self._runs.over:
            if self._continued.had_news and not self._runs:
                self._stream.start()
                out.append({"type": "finish", "finishReason": self._continued.reason, "messageMetadata": {}})
                self._end()
            else:
                self._fail(cut_off())
            return out
        step, summary = self._last.step, self._summary(self._last)
        if step.status == "interrupted":
            out.append({"type": "message-metadata", "messageMetadata": summary})
            reason = {"reason": step.reason} if step.reason and self._stream.since_6 else {}
            out.append({"type": "abort", **reason})
        else:
            word = "other" if step.reason == PAUSE else step.reason or "stop"
            out.append({"type": "finish", "finishReason": word, "messageMetadata": summary})
        self._end()
        return out

    def _end(self) -> None:
        self._over = True
        self._stream.out.append(DONE)

    def _fail(self, error: Exception) -> None:
        out = self._stream.out
        if self._stream.started:
            broken = [run for run in self._runs if not run.walk.over]
            for run in self._runs:
                run.break_off()
            summary = self._summary(broken[0] if broken else self._last)
            summary = {STATUS: "incomplete", **summary}  # a message that had ended has its status
            out.append({"type": "message-metadata", "messageMetadata": summary})
        self._stream.start()
        out.append({"type": "error", "errorText": shown_error(self._on_error, error)})
        self._end()

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


ENDPOINT: Final = Endpoint(headers=AI_SDK_HEADERS, last=sse_frame(DONE), error=plain_error)


def writer(on_error: Masked) -> AiSdkEncoder:
    return AiSdkEncoder(on_error=on_error, provider_items=True)
