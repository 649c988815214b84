"""Google's Interactions API (Gemini models and agents), streamed or whole.

    stream   interaction.created interaction.status_update? step* interaction.completed        error: anywhere
    step     step.start step.delta* step.stop

A step's `index` is its place in the interaction. Its `type` is `thought`, `model_output`, `function_call`, a call of
one of the provider's own tools (`…_call`) or its result (`…_result`). A step's start may hold the beginning of its
content, or all of it. A model's output is a list of texts, images and so on, so a step is one block or several, which
are numbered as they appear.

    delta    text, text_annotation_delta, image, audio, video, document                        of model_output
             thought_summary, thought_signature                                                of thought
             arguments_delta                                                                   of function_call
             <the step's type>                        fields of a tool's call or result

Arguments are JSON text; the start has an empty object in their place. A thought often is only a signature.
`interaction.completed` has the usage and the status, not the steps. If it has steps and none was streamed, they are
read. Chunks also have the usage so far, in `metadata`.

Real streams go beyond this grammar:

- Older events have contents in place of steps: `interaction.start`, `content.start`, `content.delta`, `content.stop`,
  `interaction.complete`. A content is read as a step. Its deltas may lack an index.
- A call that stops without arguments needs none, or was cut off before they came. Its finish waits for the next
  event, which shows which of the two it is.
- The steps that the client put in (`user_input`, `function_result`) are no part of the reply.
- A body that was not streamed, `{"object": "interaction", "steps": […], …}`, is read like its stream; so is an older
  one, with `outputs`.
"""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import Event, events, text_delta, tool_call_delta
from rxdelta.formats.block_events import take_all
from rxdelta.formats.calls import BROKEN_OFF, CUT_OFF
from rxdelta.formats.decoding import Json, as_mapping, kept, others, remember, word
from rxdelta.formats.endings import broken_events, error_events
from rxdelta.formats.gemini_interactions.interaction import Interaction
from rxdelta.formats.gemini_interactions.steps import Steps
from rxdelta.formats.gemini_interactions.tables import BROKEN, CANCELLED, ENDED, FORMAT, READ, type_of
from rxdelta.framing import DONE


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
        self._out: list[Event] = []
        self._interaction = Interaction(self._out)
        self._steps = Steps(self._interaction)
        self._steps_at = self._steps.at
        self._over = self._failed = False

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
        if chunk is DONE:
            if self._interaction.started and not self._over:
                self._finish(assumed=self._interaction.status not in ENDED)
        else:
            self._read(as_mapping(chunk, FORMAT))
        return take_all(self._out)

    def close(self) -> Sequence[Event]:
        """End of input: finishes the message if its status has come, only the last event having been lost."""
        if not self._over and self._interaction.started and self._interaction.status in ENDED:
            self._finish()
        self._steps.flush()
        self._over = True
        return take_all(self._out)

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a chunk that only continues a text or arguments, as nearly all chunks do.

        It is that of `_read`: `tests/formats/test_plain_chunks.py` compares the two.
        """
        if type(chunk) is not dict or not _PLAIN.issuperset(chunk) or chunk.get("event_type") not in _DELTAS:
            return None
        delta: Any = chunk.get("delta")
        index = chunk.get("index")
        step = self._steps_at.get(index) if type(index) is int else None
        if step is None or self._steps.held is not None or type(delta) is not dict or len(delta) != 2:
            return None
        kind = delta.get("type")
        if step.writes == "text" and kind == "text":
            text = delta.get("text")
            return text_delta(step.block, text) if type(text) is str and text else None
        if step.writes == "arguments" and kind == "arguments_delta":
            piece = delta.get("arguments")
            return tool_call_delta(step.block, piece) if type(piece) is str and piece else None
        return None

    def _read(self, chunk: Json) -> None:
        kind = chunk.get("event_type", chunk.get("_event"))
        if self._over:
            if chunk and not self._failed:
                self._pass_on(chunk, word(kind) or "chunk")
            return
        if kind is None:
            kind = "error" if chunk.get("error") else _BODY if _is_body(chunk) else None
        if not isinstance(kind, str):
            raise READ.fail("event_type", "the type of an event", kind)
        read, interaction = _EVENTS.get(kind), self._interaction
        if read is None:
            interaction.begin()
            self._pass_on(chunk, kind)
        else:
            read(self, chunk)
        interaction.read_metadata(chunk)
        if interaction.started and not self._over:
            interaction.show_usage()

    # The message.

    def read_created(self, chunk: Json) -> None:
        self._interaction.read_metadata(chunk)
        self._interaction.read(READ.mapping(chunk.get("interaction"), "interaction"), "interaction")
        self._interaction.begin()

    def read_status(self, chunk: Json) -> None:
        interaction = self._interaction
        interaction.begin()
        status = READ.text_of(chunk, "status", "")  # or else the event's name has it
        interaction.status = status or _STATUS_OF.get(chunk.get("event_type") or "", interaction.status)
        interaction.read_usage(chunk.get("usage"), "usage")
        remember(interaction.metadata, others(chunk, _STATUS))

    def read_completed(self, chunk: Json) -> None:
        self._interaction.read_metadata(chunk)
        interaction = READ.mapping(chunk.get("interaction"), "interaction")
        self._interaction.read(interaction, "interaction")
        self._interaction.begin()
        if not self._interaction.blocks.count:
            self._read_steps(interaction, "interaction.")
        self._finish()

    def read_body(self, chunk: Json) -> None:
        """Read an interaction that was not streamed. One that is still running has no end yet."""
        self._interaction.read(chunk, "")
        self._interaction.begin()
        self._read_steps(chunk, "")
        if self._interaction.status is None or self._interaction.status in ENDED:
            self._finish(assumed=self._interaction.status is None)

    def read_error(self, chunk: Json) -> None:
        found = chunk.get("error")
        self._break_off(found if isinstance(found, Mapping) else {"message": found})

    def _finish(self, *, assumed: bool = False) -> None:
        """Finish the message. `assumed` says whether the provider gave no status of its end."""
        interaction = self._interaction
        status = interaction.status or ""
        broken = BROKEN.get(status)
        if broken is not None:
            errors = interaction.metadata.get("errors")
            first: Any = errors[0] if isinstance(errors, (list, tuple)) and errors else None
            interaction.show_usage()
            self._steps.finish(BROKEN_OFF)
            if isinstance(first, Mapping):
                self._break_off({"status": status, **first})
                return
            self._out += broken_events("google", status, broken, metadata=interaction.metadata)
            self._failed = True
        elif status == CANCELLED:
            self._steps.finish(status)
            interaction.interrupt()
        else:
            self._steps.finish(_CUT_OFF.get(status))
            interaction.finish(assumed=assumed)
        self._end()

    def _break_off(self, error: Json) -> None:
        self._steps.flush()
        self._out += error_events("google", error, error.get("status"), _ERROR)
        self._failed = True
        self._end()

    def _end(self) -> None:
        self._over = True
        self._steps.clear()

    def _pass_on(self, chunk: Json, name: str) -> None:
        self._out.append(events.ProviderEvent("google", name, kept(chunk)))

    # Its steps.

    def read_start(self, chunk: Json) -> None:
        name = "step" if "step" in chunk else "content"
        fields = READ.mapping(chunk.get(name), name)
        index = self._steps.index_of(chunk)
        kind = type_of(fields, name)
        before = self._steps_at.get(index)
        self._interaction.begin()
        if before is None or not before.is_again(kind, fields):
            self._steps.begin(index, kind, fields, name)
        else:
            before.begin_again()

    def read_delta(self, chunk: Json) -> None:
        delta = READ.mapping(chunk.get("delta"), "delta")
        self._interaction.begin()
        kind = delta.get("type")
        if kind is None and isinstance(delta.get("text"), str):
            kind = "text"
        if not isinstance(kind, str):
            raise READ.fail("delta.type", "the type of a delta", kind)
        step = self._steps.for_delta(self._steps.index_of(chunk), kind)
        if step is None or not step.read(kind, delta):
            self._pass_on(chunk, kind)

    def read_stop(self, chunk: Json) -> None:
        self._interaction.begin()
        self._interaction.read_usage(chunk.get("usage"), "usage")
        remember(self._interaction.metadata, others(chunk, _STOP))
        self._steps.stop(self._steps.index_of(chunk))

    def _read_steps(self, interaction: Json, path: str) -> None:
        name = "steps" if interaction.get("steps") is not None else "outputs"
        for place, found in enumerate(READ.items(interaction.get(name), f"{path}{name}")):
            at = f"{path}{name}[{place}]"
            fields = READ.mapping(found, at)
            self._steps.begin(place, type_of(fields, at), fields, at)
            self._steps.stop(place)


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

_EVENTS: Mapping[str, Callable[[GeminiInteractionsDecoder, Json], None]] = {
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
_STATUS_OF = {
    "interaction.in_progress": "in_progress",
    "interaction.requires_action": "requires_action",
}
_DELTAS = ("step.delta", "content.delta")
_CUT_OFF: Mapping[str, str] = {
    "incomplete": CUT_OFF,
    "budget_exceeded": CUT_OFF,
    "requires_continuation": CUT_OFF,
}

_STATUS = frozenset(["event_type", "_event", "event_id", "interaction_id", "status", "usage", "metadata"])
_STOP = frozenset(["event_type", "_event", "event_id", "index", "usage", "metadata", "step_usage"])
_ERROR = frozenset(["message", "code", "status"])

# A chunk of no more than these only continues a block.
_PLAIN = frozenset(["event_type", "index", "delta", "event_id"])
