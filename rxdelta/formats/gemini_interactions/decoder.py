"""Google's Interactions API (Gemini models and agents), streamed or whole.

    stream   interaction.created interaction.status_update? step* interaction.completed        error: anywhere
    step     step.start step.delta* step.stop

A step's `index` is its place in the interaction. Its `type` says what it is: `thought`, `model_output`,
`function_call`, one of the provider's own tools (`…_call`) or the result of one (`…_result`). A step's start may
hold the beginning of its content, or all of it. A model's output is a list of texts, images and so on, so that
a step is one block or several, which are numbered as they appear.

    delta    text, text_annotation_delta, image, audio, video, document                        of model_output
             thought_summary, thought_signature                                                of thought
             arguments_delta                                                                   of function_call
             <the step's type>                        fields of a tool's call or result

Arguments come as JSON text; what the start has is an empty object, until there is more. A thought often is
nothing but a signature. `interaction.completed` has the usage and the status, not the steps; where it has them and
none was streamed, they are read. The usage comes also with `metadata` on the way: a running total.

What goes beyond it:

- The events before there were steps: `interaction.start`, `content.start`, `content.delta`, `content.stop`,
  `interaction.complete`, whose contents are read as if they were steps. Their deltas may lack an index.
- A call without argument text that has been stopped is one without arguments, or one that was cut off before
  they came. Only what follows tells, so its finish waits for it.
- The steps that the client put in (`user_input`, `function_result`) are no part of the reply.
- A body that was not streamed, `{"object": "interaction", "steps": […], …}`, is read like its stream; so is one
  with `outputs`, as it was before.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import Event, TokenUsage, events, real_id, text_delta
from rxdelta.formats.decoding import as_mapping, kept, others, remember, told_error, usage_of, word
from rxdelta.formats.gemini_interactions.content import (
    add_annotations,
    add_media,
    add_signature,
    add_text,
    add_thought,
    start_content,
    start_output,
    start_thought,
)
from rxdelta.formats.gemini_interactions.steps import READ, Json, Out, Step, type_of
from rxdelta.formats.gemini_interactions.tools import (
    add_arguments,
    grow_tool,
    ignore,
    start_call,
    start_result,
    start_server_call,
)

__all__ = ["GeminiInteractionsDecoder", "recognises"]


class GeminiInteractionsDecoder:
    """Interactions events of one stream in, events of the chat stream protocol out.

    Example:
        >>> decoder = GeminiInteractionsDecoder()
        >>> chunks = [
        ...     {"event_type": "interaction.created", "interaction": {"id": "v1_1", "model": "gemini"}},
        ...     {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        ...     {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hi"}},
        ...     {"event_type": "step.stop", "index": 0},
        ...     {"event_type": "interaction.completed", "interaction": {"id": "v1_1", "status": "completed"}},
        ... ]
        >>> [event.event for chunk in chunks for event in decoder.decode(chunk)][2:]
        ['content-block-delta', 'content-block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._told: tuple[str | None, str | None] = (None, None)  # the id and the model
        self._status: str | None = None
        self._extras: dict[str, Any] = {}
        self._figures: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._told_usage: TokenUsage | None = None
        self._started = self._over = False
        self._has_calls = False
        self._blocks = 0
        self._steps: dict[int, Step] = {}  # the newest at each index
        self._newest: Step | None = None
        self._held: Step | None = None  # the call whose finish waits for what follows
        self._out: Out = []  # what a malformed chunk held before its fault comes out with the next

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or an event or interaction of the `google-genai` package.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A step's index is absurd.

        Example:
            >>> error = {"event_type": "error", "error": {"code": "unavailable", "message": "Overloaded"}}
            >>> GeminiInteractionsDecoder().decode(error)
            [StreamError(message='Overloaded', type=None, code='unavailable', choice=0)]
        """
        event = None if self._out else self._plain(chunk)
        if event is not None:
            return (event,)
        self._read(as_mapping(chunk, "gemini-interactions"))
        out, self._out = self._out, []
        return out

    def close(self) -> Sequence[Event]:
        """End of input: finishes the message if its status has come, only the last event having been lost."""
        out, self._out = self._out, []
        if not self._over and self._started and self._status in _ENDED:
            self._finish(out)
        self._tell(out)
        self._over = True
        return out

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that is nothing but more text, as nearly all are."""
        if type(chunk) is not dict or not _PLAIN.issuperset(chunk):
            return None
        delta: Any = chunk.get("delta")
        index = chunk.get("index")
        step = self._steps.get(index) if type(index) is int else None
        if step is None or step.writes != "text" or self._held is not None or type(delta) is not dict:
            return None
        text = delta.get("text")
        if len(delta) != 2 or delta.get("type") != "text" or type(text) is not str or not text:
            return None
        return text_delta(step.block, text) if chunk.get("event_type") in _DELTAS else None

    def _read(self, chunk: Json) -> None:
        kind = chunk.get("event_type", chunk.get("_event"))
        if self._over:
            return
        if kind is None:
            kind = "error" if chunk.get("error") else _BODY if _is_body(chunk) else None
        if not isinstance(kind, str):
            raise READ.fail("event_type", "the type of an event", kind)
        read = _EVENTS.get(kind)
        if read is None:
            self._begin(self._out)
            self._pass_on(chunk, kind)
        else:
            read(self, self._out, chunk)
        self._read_metadata(chunk)
        if self._started and not self._over:
            self._show_usage(self._out)

    # The message.

    def read_created(self, out: Out, chunk: Json) -> None:
        self._read_metadata(chunk)
        self._read_interaction(READ.mapping(chunk.get("interaction"), "interaction"), "interaction")
        self._begin(out)

    def read_status(self, out: Out, chunk: Json) -> None:
        self._begin(out)
        said = chunk.get("event_type")  # the status by its name, where nothing else says it
        self._status = READ.text_of(chunk, "status", "") or _SAYS_STATUS.get(said or "", self._status)
        self._read_usage(chunk.get("usage"), "usage")
        remember(self._extras, others(chunk, _STATUS))

    def read_completed(self, out: Out, chunk: Json) -> None:
        self._read_metadata(chunk)
        interaction = READ.mapping(chunk.get("interaction"), "interaction")
        self._read_interaction(interaction, "interaction")
        self._begin(out)
        if not self._blocks:
            self._read_steps(out, interaction, "interaction.")
        self._finish(out)

    def read_body(self, out: Out, chunk: Json) -> None:
        """An interaction that was not streamed. One that is still running has no end yet."""
        self._read_interaction(chunk, "")
        self._begin(out)
        self._read_steps(out, chunk, "")
        if self._status in _ENDED:
            self._finish(out)

    def read_error(self, out: Out, chunk: Json) -> None:
        found = chunk.get("error")
        error = found if isinstance(found, Mapping) else {"message": found}
        self._break_off(out, error)

    def _begin(self, out: Out) -> None:
        if not self._started:
            self._started = True
            self._told_usage, self._told = self._usage, (self._id, self._model)
            out.append(events.MessageStart(self._id, self._model, self._usage, self._extras))

    def _read_interaction(self, interaction: Json, path: str) -> None:
        self._id = self._id or real_id(READ.text_of(interaction, "id", path))
        self._model = self._model or word(interaction.get("model"))
        self._status = READ.text_of(interaction, "status", path) or self._status
        self._read_usage(interaction.get("usage"), f"{path}.usage" if path else "usage")
        remember(self._extras, others(interaction, _INTERACTION))

    def _read_metadata(self, chunk: Json) -> None:
        """What any event may say of the whole."""
        metadata = chunk.get("metadata")
        if isinstance(metadata, Mapping):
            for name in ("usage", "total_usage"):
                self._read_usage(metadata.get(name), f"metadata.{name}")

    def _read_usage(self, found: object, path: str) -> None:
        before = dict(self._figures)
        remember(self._figures, READ.mapping(found, path))
        if self._figures != before:
            known = self._figures
            self._usage = usage_of(known, known.get("total_input_tokens"), known.get("total_output_tokens"))

    def _show_usage(self, out: Out) -> None:
        if self._usage is not None and self._usage is not self._told_usage:
            self._told_usage = self._usage
            out.append(events.UsageUpdate(self._usage))

    def _finish(self, out: Out) -> None:
        if self._status == "failed":
            errors = self._extras.get("errors")
            first: Any = errors[0] if isinstance(errors, (list, tuple)) and errors else None
            self._show_usage(out)
            error = first if isinstance(first, Mapping) else {"message": "the interaction failed"}
            self._break_off(out, {"status": "failed", **error})
            return
        cut = _CUT.get(self._status or "")
        self._release(out, cut)
        for step in list(self._steps.values()):
            self._stop(out, step, cut)
        reason = _REASONS.get(self._status or "", "stop")
        if reason == "stop" and self._has_calls:
            reason = "tool_use"
        told_id, told_model = self._told
        late = {} if self._id == told_id else {"id": self._id}
        late |= {} if self._model == told_model else {"model": self._model}
        metadata = {**late, **self._extras}
        out.append(events.MessageFinish(reason, self._status, self._usage, metadata))
        self._end()

    def _tell(self, out: Out) -> None:
        """What had come and was held back, before a stream is broken off."""
        for step in self._steps.values():
            if step.writes is not None:
                step.tell(out)

    def _break_off(self, out: Out, error: Json) -> None:
        self._tell(out)
        out += told_error("google", error, error.get("status"), _ERROR)
        self._end()

    def _end(self) -> None:
        self._over = True
        self._steps, self._newest, self._held = {}, None, None

    def _pass_on(self, chunk: Json, name: str) -> None:
        self._out.append(events.ProviderEvent("google", name, kept(chunk)))

    # Its steps.

    def read_start(self, out: Out, chunk: Json) -> None:
        name = "step" if "step" in chunk else "content"
        step = READ.mapping(chunk.get(name), name)
        index = self._index(chunk)
        kind = type_of(step, name)
        before = self._steps.get(index)
        self._begin(out)
        if before is not None and before.is_again(kind, step):
            return
        self._start_step(out, index, kind, step, name)

    def _read_steps(self, out: Out, interaction: Json, path: str) -> None:
        name = "steps" if interaction.get("steps") is not None else "outputs"
        for place, found in enumerate(READ.items(interaction.get(name), f"{path}{name}")):
            at = f"{path}{name}[{place}]"
            fields = READ.mapping(found, at)
            self._start_step(out, place, type_of(fields, at), fields, at)
            self._stop_at(out, place)

    def _start_step(self, out: Out, index: int, kind: str, fields: Json, path: str) -> None:
        self._release(out)
        before = self._steps.get(index)
        if before is not None:
            self._stop(out, before)
        step = self._steps[index] = self._newest = Step(index, kind, word(fields.get("id")))
        start = _STEPS.get(kind) or (
            start_server_call
            if kind.endswith("_call")
            else start_result
            if kind.endswith("_result")
            else None
        )
        if start is not None:
            start(self, out, step, fields, path)
        else:
            self.whole(out, step, {"type": "non_standard", "value": kept(fields)})

    def read_delta(self, out: Out, chunk: Json) -> None:
        delta = READ.mapping(chunk.get("delta"), "delta")
        self._begin(out)
        kind = delta.get("type")
        if kind is None and isinstance(delta.get("text"), str):
            kind = "text"
        if not isinstance(kind, str):
            raise READ.fail("delta.type", "the type of a delta", kind)
        index = self._index(chunk)
        step, read = self._steps.get(index), _DELTA_TYPES.get(kind)
        if step is None or step.stopped:  # its start was lost; a text or thought tells what it is of
            begun = _BEGUN_BY.get(kind)
            if step is not None and step is self._held and kind in _OF_CALLS:
                self._held, step.stopped = None, False
            elif begun is not None:
                self._start_step(out, index, begun, {}, "step")
                step = self._steps[index]
            else:
                step = None
        if step is not None and step is not self._held:
            self._release(out)
        if read is None and step is not None and (kind == step.kind or step.fields_of(kind)):
            read = grow_tool
        if step is None or read is None or not read(self, out, step, delta):
            self._pass_on(chunk, kind)

    def read_stop(self, out: Out, chunk: Json) -> None:
        self._begin(out)
        self._read_usage(chunk.get("usage"), "usage")
        remember(self._extras, others(chunk, _STOP))
        self._stop_at(out, self._index(chunk))

    def _stop_at(self, out: Out, index: int) -> None:
        step = self._steps.get(index)
        if step is None or step.stopped:
            return
        if step.writes == "call" and not step.fed:
            self._release(out)
            self._held, step.stopped = step, True
        else:
            self._stop(out, step)

    def _index(self, chunk: Json) -> int:
        """Where an event belongs. Without an index, as events once were, it is to the newest step."""
        index = chunk.get("index")
        if index is None:
            return 0 if self._newest is None else self._newest.index
        return READ.index(index, "index")

    def _release(self, out: Out, cut: str | None = None) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.stopped = False
            self._stop(out, held, cut)

    def _stop(self, out: Out, step: Step, cut: str | None = None) -> None:
        if not step.stopped:
            self.end_block(out, step, cut)
            step.stopped = True

    # Their blocks.

    def start_block(self, out: Out, step: Step, writes: str, content: Json) -> None:
        self.end_block(out, step)
        step.block, step.writes, step.fed = self._blocks, writes, False
        self._blocks += 1
        self._has_calls |= writes == "call"
        out.append(events.BlockStart(step.block, content))

    def end_block(self, out: Out, step: Step, cut: str | None = None) -> None:
        if step.writes is None:
            return
        step.tell(out)
        rest = step.audio.rest()
        if rest:
            out.append(events.DataDelta(step.block, rest))
        wrong = None
        if step.writes == "call" and cut is not None:
            wrong = {"type": "invalid_tool_call", "error": cut}
        out.append(events.BlockFinish(step.block, wrong))
        step.writes, step.mime_type = None, None

    def whole(self, out: Out, step: Step, content: Json, data: str = "") -> None:
        self.start_block(out, step, "whole", content)
        if data:
            out.append(events.DataDelta(step.block, data))
        self.end_block(out, step)

    def made_up_id(self) -> str:
        return f"{self._id or 'call'}-{self._blocks}"


def _is_body(chunk: Json) -> bool:
    return chunk.get("object") == "interaction" or (
        isinstance(chunk.get("status"), str)
        and any(isinstance(chunk.get(name), (list, tuple)) for name in ("steps", "outputs"))
    )


def recognises(chunk: Json) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"event_type": "interaction.created", "interaction": {"id": "v1_1"}})
        True
        >>> recognises({"type": "step.start"})
        False
    """
    kind = chunk.get("event_type")
    if isinstance(kind, str):
        return kind in _EVENTS and kind != _BODY
    return kind is None and _is_body(chunk)


_BODY = ""

_EVENTS: Mapping[str, Callable[[GeminiInteractionsDecoder, Out, Json], None]] = {
    "interaction.created": GeminiInteractionsDecoder.read_created,
    "interaction.status_update": GeminiInteractionsDecoder.read_status,
    "interaction.in_progress": GeminiInteractionsDecoder.read_status,
    "interaction.requires_action": GeminiInteractionsDecoder.read_status,
    "step.start": GeminiInteractionsDecoder.read_start,
    "step.delta": GeminiInteractionsDecoder.read_delta,
    "step.stop": GeminiInteractionsDecoder.read_stop,
    "interaction.completed": GeminiInteractionsDecoder.read_completed,
    "error": GeminiInteractionsDecoder.read_error,
    # before there were steps
    "interaction.start": GeminiInteractionsDecoder.read_created,
    "content.start": GeminiInteractionsDecoder.read_start,
    "content.delta": GeminiInteractionsDecoder.read_delta,
    "content.stop": GeminiInteractionsDecoder.read_stop,
    "interaction.complete": GeminiInteractionsDecoder.read_completed,
    # a whole interaction
    _BODY: GeminiInteractionsDecoder.read_body,
}
_SAYS_STATUS = {
    "interaction.in_progress": "in_progress",
    "interaction.requires_action": "requires_action",
}
_DELTAS = ("step.delta", "content.delta")

_STEPS: Mapping[str, Callable[[GeminiInteractionsDecoder, Out, Step, Json, str], None]] = {
    "thought": start_thought,
    "model_output": start_output,
    "function_call": start_call,
    "mcp_server_tool_call": start_server_call,
    "user_input": ignore,
    "function_result": ignore,
    # a content on its own
    "text": start_content,
    "image": start_content,
    "audio": start_content,
    "video": start_content,
    "document": start_content,
    # *_call: start_server_call; *_result: start_result; any other is kept whole
}

_DELTA_TYPES: Mapping[str, Callable[[GeminiInteractionsDecoder, Out, Step, Json], bool]] = {
    "text": add_text,
    "text_annotation_delta": add_annotations,
    "text_annotation": add_annotations,
    "image": add_media,
    "audio": add_media,
    "video": add_media,
    "document": add_media,
    "thought": add_thought,
    "thought_summary": add_thought,
    "thought_signature": add_signature,
    "arguments_delta": add_arguments,
    # the step's own type: grow_tool
}
_OF_CALLS = ("arguments_delta", "function_call")
_BEGUN_BY = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    "image": "model_output",
    "audio": "model_output",
    "video": "model_output",
    "document": "model_output",
    "thought_summary": "thought",
    "thought_signature": "thought",
}

_REASONS = {
    "completed": "stop",
    "requires_action": "tool_use",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "stop",
    "cancelled": "stop",
}
_ENDED = frozenset([*_REASONS, "failed"])
_CUT: Mapping[str, str] = {
    "incomplete": "cut off by the token limit",
    "budget_exceeded": "cut off by the token limit",
    "cancelled": "cancelled",
}

# What is read.
_INTERACTION = frozenset(["id", "model", "status", "usage", "steps", "outputs", "object", "input"])
_STATUS = frozenset(["event_type", "_event", "event_id", "interaction_id", "status", "usage", "metadata"])
_STOP = frozenset(["event_type", "_event", "event_id", "index", "usage", "metadata", "step_usage"])
_ERROR = frozenset(["message", "code", "status"])

# A chunk of no more than these is a piece of text.
_PLAIN = frozenset(["event_type", "index", "delta", "event_id"])
