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
from typing import Any, TypeAlias

from rxdelta.core import (
    Event,
    TokenUsage,
    events,
    freeze,
    real_id,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)
from rxdelta.formats.base64_pieces import Base64Pieces
from rxdelta.formats.decoding import (
    Fields,
    as_mapping,
    due,
    kept,
    others,
    remember,
    told_error,
    usage_of,
    word,
)
from rxdelta.formats.notes import PROVIDER_TYPE, SYNTHETIC_ID, call_identity

__all__ = ["GeminiInteractionsDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

_READ = Fields("gemini-interactions")


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
        self._steps: dict[int, _Step] = {}  # the newest at each index
        self._newest: _Step | None = None
        self._held: _Step | None = None  # the call whose finish waits for what follows
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
            raise _READ.fail("event_type", "the type of an event", kind)
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
        self._read_interaction(_READ.mapping(chunk.get("interaction"), "interaction"), "interaction")
        self._begin(out)

    def read_status(self, out: Out, chunk: Json) -> None:
        self._begin(out)
        said = chunk.get("event_type")  # the status by its name, where nothing else says it
        self._status = _READ.text_of(chunk, "status", "") or _SAYS_STATUS.get(said or "", self._status)
        self._read_usage(chunk.get("usage"), "usage")
        remember(self._extras, others(chunk, _STATUS))

    def read_completed(self, out: Out, chunk: Json) -> None:
        self._read_metadata(chunk)
        interaction = _READ.mapping(chunk.get("interaction"), "interaction")
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
        self._id = self._id or real_id(_READ.text_of(interaction, "id", path))
        self._model = self._model or word(interaction.get("model"))
        self._status = _READ.text_of(interaction, "status", path) or self._status
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
        remember(self._figures, _READ.mapping(found, path))
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
        step = _READ.mapping(chunk.get(name), name)
        index = self._index(chunk)
        kind = _word(step, name)
        before = self._steps.get(index)
        self._begin(out)
        if before is not None and before.is_again(kind, step):
            return
        self._start_step(out, index, kind, step, name)

    def _read_steps(self, out: Out, interaction: Json, path: str) -> None:
        name = "steps" if interaction.get("steps") is not None else "outputs"
        for place, found in enumerate(_READ.items(interaction.get(name), f"{path}{name}")):
            at = f"{path}{name}[{place}]"
            fields = _READ.mapping(found, at)
            self._start_step(out, place, _word(fields, at), fields, at)
            self._stop_at(out, place)

    def _start_step(self, out: Out, index: int, kind: str, fields: Json, path: str) -> None:
        self._release(out)
        before = self._steps.get(index)
        if before is not None:
            self._stop(out, before)
        step = self._steps[index] = self._newest = _Step(index, kind, word(fields.get("id")))
        start = _STEPS.get(kind) or (
            _start_server_call
            if kind.endswith("_call")
            else _start_result
            if kind.endswith("_result")
            else None
        )
        if start is not None:
            start(self, out, step, fields, path)
        else:
            self.whole(out, step, {"type": "non_standard", "value": kept(fields)})

    def read_delta(self, out: Out, chunk: Json) -> None:
        delta = _READ.mapping(chunk.get("delta"), "delta")
        self._begin(out)
        kind = delta.get("type")
        if kind is None and isinstance(delta.get("text"), str):
            kind = "text"
        if not isinstance(kind, str):
            raise _READ.fail("delta.type", "the type of a delta", kind)
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
            read = _grow_tool
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
        return _READ.index(index, "index")

    def _release(self, out: Out, cut: str | None = None) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.stopped = False
            self._stop(out, held, cut)

    def _stop(self, out: Out, step: _Step, cut: str | None = None) -> None:
        if not step.stopped:
            self.end_block(out, step, cut)
            step.stopped = True

    # Their blocks.

    def start_block(self, out: Out, step: _Step, writes: str, content: Json) -> None:
        self.end_block(out, step)
        step.block, step.writes, step.fed = self._blocks, writes, False
        self._blocks += 1
        self._has_calls |= writes == "call"
        out.append(events.BlockStart(step.block, content))

    def end_block(self, out: Out, step: _Step, cut: str | None = None) -> None:
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

    def whole(self, out: Out, step: _Step, content: Json, data: str = "") -> None:
        self.start_block(out, step, "whole", content)
        if data:
            out.append(events.DataDelta(step.block, data))
        self.end_block(out, step)

    def made_up_id(self) -> str:
        return f"{self._id or 'call'}-{self._blocks}"


class _Step:
    """An open step, and the block that it is writing."""

    __slots__ = (
        "audio",
        "block",
        "citations",
        "fed",
        "id",
        "index",
        "kind",
        "mime_type",
        "output",
        "size",
        "stopped",
        "told",
        "writes",
    )

    def __init__(self, index: int, kind: str, step_id: str | None) -> None:
        self.index = index
        self.kind = kind
        self.id = step_id
        self.block = -1
        self.writes: str | None = None  # text, reasoning, audio, call, server_call, result, …
        self.mime_type: str | None = None
        self.audio = Base64Pieces()
        self.fed = False  # a call has arguments
        self.stopped = False
        self.citations: list[Json] = []
        self.output: list[Any] = []  # of a tool, in pieces: the protocol has only the whole again for it
        self.size = self.told = 0

    def is_again(self, kind: str, fields: Json) -> bool:
        """Whether a start is this step's own, sent twice."""
        same = kind == self.kind and word(fields.get("id")) == self.id
        return same and (not self.stopped or self.id is not None)

    def fields_of(self, kind: str) -> bool:
        return self.writes in ("server_call", "result", "call") and kind.endswith(("_call", "_result"))

    def tell(self, out: Out) -> None:
        """What can only be told whole."""
        if self.size > self.told:
            self.told = self.size
            if self.writes == "text":
                out.append(events.BlockDelta(self.block, {"citations": self.citations}))
            elif self.writes == "result":
                out.append(events.BlockDelta(self.block, {"output": _joined(self.output)}))
        if self.writes == "text":
            self.citations, self.size, self.told = [], 0, 0


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], str):
        return "".join(pieces)
    return [item for piece in pieces for item in piece] if isinstance(pieces[0], list) else pieces[0]


# How a step starts: with nothing, or with what its deltas would bring.


def _start_thought(
    decoder: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, path: str
) -> None:
    signature = _READ.text_of(fields, "signature", path)
    content = others(fields, _THOUGHT) | ({"signature": signature} if signature else {})
    decoder.start_block(out, step, "reasoning", {**content, "type": "reasoning", "reasoning": ""})
    text = fields.get("text", fields.get("thought"))
    if isinstance(text, str) and text:
        out.append(reasoning_delta(step.block, text))
    summary = fields.get("summary")
    for place, found in enumerate(
        [summary] if isinstance(summary, str) else _READ.items(summary, f"{path}.summary")
    ):
        _think(decoder, out, step, found, f"{path}.summary[{place}]")


def _think(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, found: object, path: str) -> None:
    """A piece of a thought's summary. An image in it is a block of its own, and so is the thought behind it."""
    content = {"type": "text", "text": found} if isinstance(found, str) else _READ.mapping(found, path)
    if content.get("type", "text") != "text":
        _show(decoder, out, step, {"thought": True, **content}, path)
        return
    text = _READ.text_of(content, "text", path)
    if text and step.writes != "reasoning":
        decoder.start_block(out, step, "reasoning", {"type": "reasoning", "reasoning": ""})
    if text:
        out.append(reasoning_delta(step.block, text))


def _start_output(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, path: str) -> None:
    for place, found in enumerate(_READ.items(fields.get("content"), f"{path}.content")):
        at = f"{path}.content[{place}]"
        _show(decoder, out, step, _READ.mapping(found, at), at, new=True)
    said = others(fields, _OUTPUT)
    if said:  # such as the error that ended it
        decoder.whole(out, step, {"type": "non_standard", "value": {"type": step.kind, **said}})


def _start_content(
    decoder: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, path: str
) -> None:
    """A content that is not in a step, as once was usual."""
    if fields.keys() > {"type"}:
        _show(decoder, out, step, fields, path)


def _show(
    decoder: GeminiInteractionsDecoder, out: Out, step: _Step, found: Json, path: str, *, new: bool = False
) -> bool:
    """A text, an image and the like. A text goes on, unless another item of a list begins."""
    kind = word(found.get("type"))
    if kind == "text":
        text = _READ.text_of(found, "text", path)
        if step.writes != "text" or new:
            if not text and not found.get("annotations"):
                return True
            decoder.start_block(out, step, "text", {"type": "text", "text": ""})
        if text:
            out.append(text_delta(step.block, text))
        _annotate(decoder, out, step, found)
        return True
    if kind not in _MEDIA:
        decoder.whole(out, step, {"type": "non_standard", "value": kept(found)})
        return True
    data, url = _READ.text_of(found, "data", path), _READ.text_of(found, "uri", path)
    mime_type = _READ.text_of(found, "mime_type", path)
    known = {"mime_type": mime_type or None, "url": url or None, **others(found, _MEDIUM)}
    content = {**known, "type": _MEDIA[kind]}
    if kind != "audio":
        decoder.whole(out, step, content, data)
    else:  # comes in pieces
        if step.writes != "audio" or new or (mime_type and mime_type != step.mime_type):
            decoder.start_block(out, step, "audio", content)
            step.mime_type = mime_type
        piece = step.audio.add(data)
        if piece:
            out.append(events.DataDelta(step.block, piece))
    return True


def _annotate(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, found: Json) -> bool:
    annotations = _READ.items(found.get("annotations"), "delta.annotations")
    for place, entry in enumerate(annotations):
        annotation = _READ.mapping(entry, f"delta.annotations[{place}]")
        if step.writes != "text":
            decoder.start_block(out, step, "text", {"type": "text", "text": ""})
        step.citations.append(_citation(annotation))
        step.size = len(step.citations)
    if due(step.size, step.told):
        told = step.size
        out.append(events.BlockDelta(step.block, {"citations": step.citations}))
        step.told = told
    return True


def _start_call(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, path: str) -> None:
    name = _READ.text_of(fields, "name", path)
    args = _arguments(fields.get("arguments"), f"{path}.arguments")
    content = {
        **_common(decoder, fields, path),
        "type": "tool_call_chunk",
        "name": name or None,
        "args": args,
    }
    decoder.start_block(out, step, "call", content)
    step.fed = bool(args)


def _start_server_call(
    decoder: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, path: str
) -> None:
    name = _READ.text_of(fields, "name", path) or step.kind.removesuffix("_call")
    args = _arguments(fields.get("arguments"), f"{path}.arguments")
    known = {"name": name, "args": args, PROVIDER_TYPE: step.kind}
    content = {**_common(decoder, fields, path), "type": "server_tool_call_chunk", **known}
    decoder.start_block(out, step, "server_call", content)


def _common(decoder: GeminiInteractionsDecoder, fields: Json, path: str) -> dict[str, Any]:
    call_id = real_id(_READ.text_of(fields, "id", path))
    known = call_identity(call_id, decoder.made_up_id())
    return {**others(fields, _CALL), **known}


def _start_result(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, path: str) -> None:
    call_id = real_id(_READ.text_of(fields, "call_id", path)) or real_id(_READ.text_of(fields, "id", path))
    output = freeze(fields.get("result"), lenient=True)
    known = {"tool_call_id": call_id, PROVIDER_TYPE: step.kind, "status": _status(fields), "output": output}
    decoder.start_block(
        out, step, "result", {**others(fields, _RESULT), "type": "server_tool_result", **known}
    )
    step.output = [] if output is None else [output]


def _ignore(_: GeminiInteractionsDecoder, out: Out, step: _Step, fields: Json, _path: str) -> None:
    """What the client put in is no part of the reply, and passes."""
    out.append(events.ProviderEvent("google", step.kind, kept(fields)))


# What a delta adds. False if the step can't take it.


def _add_text(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    if step.kind == "thought":  # before there were summaries
        _think(decoder, out, step, {"text": delta.get("text")}, "delta")
        return True
    return step.kind in _HAS_CONTENT and _show(decoder, out, step, {"type": "text", **delta}, "delta")


def _add_media(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    return step.kind in _HAS_CONTENT and _show(decoder, out, step, delta, "delta")


def _add_annotations(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    return step.kind in _HAS_CONTENT and _annotate(decoder, out, step, delta)


def _add_thought(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    if step.kind == "thought":
        found = delta.get("content", delta.get("text", delta.get("thought")))
        if found is not None:
            _think(decoder, out, step, found, "delta.content")
    return step.kind == "thought"


def _add_signature(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    signature = _READ.text_of(delta, "signature", "delta")
    if signature and step.writes is None:
        if step.kind != "thought":
            return False
        decoder.start_block(out, step, "reasoning", {"type": "reasoning", "reasoning": ""})
    if signature:
        out.append(events.BlockDelta(step.block, {"signature": signature}))
    return True


def _add_arguments(decoder: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    return step.writes in ("call", "server_call") and _grow_tool(decoder, out, step, delta)


def _grow_tool(_: GeminiInteractionsDecoder, out: Out, step: _Step, delta: Json) -> bool:
    """More fields of a call, of a tool's call or of its result."""
    if step.writes not in ("call", "server_call", "result"):
        return False
    fields = others(delta, _TOOL_DELTA)
    args: str | Json = ""
    if word(delta.get("name")):
        fields["name"] = delta["name"]
    if step.writes == "result":
        call_id = real_id(word(delta.get("call_id")) or "")
        fields |= {"tool_call_id": call_id} if call_id else {}
        fields |= {"status": _status(delta)} if delta.get("is_error") is not None else {}
        if delta.get("result") is not None:
            _add_output(out, step, freeze(delta["result"], lenient=True))
    else:
        call_id = real_id(word(delta.get("id")) or "")
        fields |= {"id": call_id, SYNTHETIC_ID: False} if call_id and step.id is None else {}
        args = _arguments(delta.get("arguments", delta.get("partial_arguments")), "delta.arguments")
        fields |= {} if isinstance(args, str) else {"args": args}
        step.fed |= bool(args)
    if fields:
        out.append(events.BlockDelta(step.block, fields))
    if isinstance(args, str) and args:
        out.append(tool_call_delta(step.block, args))
    return True


def _add_output(out: Out, step: _Step, result: Any) -> None:
    """A text goes on, and so does a list; anything else is replaced."""
    if isinstance(result, (str, list)) and step.output and isinstance(step.output[0], type(result)):
        step.output.append(result)
    else:
        step.output, step.size, step.told = [result], 0, 0
    step.size += len(result) if isinstance(result, (str, list)) else 1
    if due(step.size, step.told):
        step.tell(out)


def _status(fields: Json) -> str | None:
    failed = fields.get("is_error")
    return "error" if failed is True else "success" if failed is False else None


def _arguments(value: object, path: str) -> str | Json:
    """A call's arguments: a piece of their text, or the object."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    found: Json = freeze(_READ.mapping(value, path), lenient=True)
    return found or ""


def _citation(annotation: Json) -> Json:
    found = {name: annotation.get(name) for name in ("title", "url", "start_index", "end_index")}
    found["title"] = found["title"] or annotation.get("file_name") or annotation.get("name")
    found["url"] = found["url"] or annotation.get("document_uri")
    return kept({**{name: value for name, value in found.items() if value is not None}, "raw": annotation})


def _word(fields: Json, path: str) -> str:
    """The type of a step, which has to be there."""
    kind = fields.get("type")
    if not isinstance(kind, str) or not kind:
        raise _READ.fail(f"{path}.type", "the type of a step", kind)
    return kind


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

_STEPS: Mapping[str, Callable[[GeminiInteractionsDecoder, Out, _Step, Json, str], None]] = {
    "thought": _start_thought,
    "model_output": _start_output,
    "function_call": _start_call,
    "mcp_server_tool_call": _start_server_call,
    "user_input": _ignore,
    "function_result": _ignore,
    # a content on its own
    "text": _start_content,
    "image": _start_content,
    "audio": _start_content,
    "video": _start_content,
    "document": _start_content,
    # *_call: _start_server_call; *_result: _start_result; any other is kept whole
}

_DELTA_TYPES: Mapping[str, Callable[[GeminiInteractionsDecoder, Out, _Step, Json], bool]] = {
    "text": _add_text,
    "text_annotation_delta": _add_annotations,
    "text_annotation": _add_annotations,
    "image": _add_media,
    "audio": _add_media,
    "video": _add_media,
    "document": _add_media,
    "thought": _add_thought,
    "thought_summary": _add_thought,
    "thought_signature": _add_signature,
    "arguments_delta": _add_arguments,
    # the step's own type: _grow_tool
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
_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_HAS_CONTENT = frozenset(["model_output", "text", *_MEDIA])

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
_THOUGHT = frozenset(["type", "signature", "summary", "text", "thought"])
_OUTPUT = frozenset(["type", "content"])
_MEDIUM = frozenset(["type", "data", "uri", "mime_type"])
_CALL = frozenset(["type", "id", "name", "arguments"])
_RESULT = frozenset(["type", "id", "call_id", "result", "is_error"])
_TOOL_DELTA = frozenset(
    ["type", "id", "call_id", "name", "arguments", "partial_arguments", "result", "is_error"]
)
_ERROR = frozenset(["message", "code", "status"])

# A chunk of no more than these is a piece of text.
_PLAIN = frozenset(["event_type", "index", "delta", "event_id"])
