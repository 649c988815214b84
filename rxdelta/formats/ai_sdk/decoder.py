"""Vercel's AI SDK: the UI message stream that `useChat` reads, whoever wrote it.

    stream = start? (step | part)* (finish | abort | error)?
    step   = start-step part* finish-step
    part   = text-start text-delta* text-end                   `id`; reasoning likewise
           | tool-input-start tool-input-delta* (tool-input-available | tool-input-error)    `toolCallId`
           | file | source-… | custom | data-…                 whole
    output = tool-output-available | tool-output-error | tool-output-denied    of a `toolCallId`, at any time

Each step is a message. One that another follows has ended with that, so the stream of several is a conversation, for
`group_by_message()`. The last ends with `finish`, which has the reason and, in its metadata, the usage of all.

What `to_ai_sdk` wrote comes back as it was: what its parts have no field for stands as `rxdelta` in their
`providerMetadata`. What another server has there is kept as `provider_metadata`, and a signature in it found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from rxdelta.core import (
    Citation,
    ContentPart,
    Event,
    RxDeltaError,
    ToolResult,
    block_to_wire,
    events,
    is_mapping,
)
from rxdelta.formats.decoding import Fields, as_mapping, kept, usage_of, word

__all__ = ["AiSdkDecoder", "recognises", "written"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

_READ = Fields("ai-sdk")
_REASONS = {"stop": "stop", "length": "length", "tool-calls": "tool_use", "content-filter": "content_filter"}
_FIRST = frozenset(
    [
        "start",
        "start-step",
        "message-metadata",
        "text-start",
        "reasoning-start",
        "tool-input-start",
        "tool-input-available",
    ]
)
_OURS = frozenset(["model", "status", "finishReason", "usage"])
_MEDIA = frozenset(["image", "image_url", "audio", "video", "file", "file_url"])
_DENIED = "The call was not allowed."


def recognises(chunk: Json) -> bool:
    """Whether a stream that begins with this chunk is one of these."""
    kind = chunk.get("type")
    return isinstance(kind, str) and (kind in _FIRST or kind.startswith("data-"))


class AiSdkDecoder:
    """Chunks of one UI message stream in, events out. `[DONE]` is no chunk; `parse_sse()` drops it.

    Example:
        >>> decoder = AiSdkDecoder()
        >>> decoder.decode({"type": "start", "messageId": "m1"})
        [MessageStart(id='m1', model=None, usage=None, metadata={}, choice=0)]
    """

    def __init__(self) -> None:
        self._over = False
        self._begun = False
        self._id: str | None = None
        self._metadata: dict[str, Any] = {}
        self._sources: list[Any] = []
        self._attempts = 0
        self._new()

    def _new(self) -> None:
        """No message yet, or another one."""
        self._begun = False
        self._blocks = 0
        self._texts: dict[tuple[str, str], int] = {}  # those that are open
        self._calls: dict[str, _Call] = {}

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
        """
        found = as_mapping(chunk, "ai-sdk")
        kind = found.get("type")
        if not isinstance(kind, str):
            raise _READ.fail("type", "a string", kind)
        out: Out = []
        if self._over:
            return out
        read = self._READERS.get(kind)
        if read is not None:
            read(self, out, found)
        else:
            out.append(events.ProviderEvent("ai-sdk", kind, kept(found)))
        return out

    def close(self) -> Sequence[Event]:
        """End of input. A stream without its `finish` was cut off."""
        self._over = True
        return ()

    # The message.

    def _start(self, out: Out, found: Json) -> None:
        self._id = word(_READ.text(found.get("messageId"), "messageId")) or self._id
        self._read_metadata(out, found)
        if not self._begun:
            self._begin(out)

    def _begin(self, out: Out) -> None:
        if not self._begun:
            self._new()
            self._begun = True
            message_id, self._id = self._id, None  # the first step's; a later message isn't the same one
            out.append(events.MessageStart(message_id, word(self._metadata.get("model"))))

    def _start_step(self, out: Out, _found: Json) -> None:
        if self._begun and self._blocks:
            self._finish_blocks(out)
            out.append(events.MessageFinish("stop"))
            self._begun = False
        self._begin(out)

    def _finish_step(self, out: Out, _found: Json) -> None:
        self._finish_blocks(out)

    def _finish_blocks(self, out: Out) -> None:
        for number in self._texts.values():
            out.append(events.BlockFinish(number))
        self._texts.clear()
        for call in self._calls.values():
            for part in (call.number, call.output):
                if part is not None and part not in call.finished:
                    call.finished.add(part)
                    out.append(events.BlockFinish(part))

    def _finish(self, out: Out, found: Json) -> None:
        said = word(_READ.text(found.get("finishReason"), "finishReason"))
        self._begin(out)
        self._read_metadata(out, found)
        self._finish_blocks(out)
        metadata = {name: value for name, value in self._metadata.items() if name not in _OURS}
        if self._sources:
            metadata["sources"] = self._sources
        model = word(self._metadata.get("model"))
        if model is not None:
            metadata["model"] = model
        out.append(events.MessageFinish(_REASONS.get(said or "stop", "stop"), said, metadata=kept(metadata)))
        self._over = True

    def _abort(self, out: Out, found: Json) -> None:
        self._begin(out)
        out.append(events.MessageInterrupted(word(found.get("reason"))))
        self._over = True

    def _error(self, out: Out, found: Json) -> None:
        out.append(events.StreamError(_READ.text(found.get("errorText"), "errorText") or "unknown error"))
        self._over = True

    def _message_metadata(self, out: Out, found: Json) -> None:
        self._read_metadata(out, found)

    def _read_metadata(self, out: Out, found: Json) -> None:
        told = found.get("messageMetadata")
        if not is_mapping(told):
            return
        self._metadata.update(kept(told))
        usage = told.get("usage")
        if is_mapping(usage):
            self._begin(out)
            out.append(
                events.UsageUpdate(usage_of(usage, usage.get("inputTokens"), usage.get("outputTokens")))
            )

    def _reset(self, out: Out, attempt: int) -> None:
        self._attempts = attempt
        out.append(events.AttemptReset(attempt))
        self._begun = False
        self._begin(out)

    def _reset_step(self, out: Out, _found: Json) -> None:
        if self._begun and self._blocks:
            self._reset(out, self._attempts + 1)

    # Blocks.

    def _open(self, out: Out, content: Mapping[str, Any]) -> int:
        self._begin(out)
        number, self._blocks = self._blocks, self._blocks + 1
        out.append(events.BlockStart(number, content))
        return number

    def _whole(self, out: Out, content: Mapping[str, Any]) -> None:
        out.append(events.BlockFinish(self._open(out, content)))

    def _text_start(self, out: Out, found: Json) -> None:
        kind = found["type"].removesuffix("-start")
        key = kind, _READ.text(found.get("id"), "id")
        known = self._texts.pop(key, None)
        if known is not None:
            out.append(events.BlockFinish(known))
        refusal = kind == "text" and _ours(found).get("type") == "refusal"
        self._texts[key] = self._open(out, {"type": "refusal" if refusal else kind})

    def _text_delta(self, out: Out, found: Json) -> None:
        kind = found["type"].removesuffix("-delta")
        key = kind, _READ.text(found.get("id"), "id")
        piece = _READ.text(found.get("delta"), "delta")
        number = self._texts.get(key)
        if number is None:
            number = self._texts[key] = self._open(out, {"type": kind})
        if piece:
            make = events.TextDelta if kind == "text" else events.ReasoningDelta
            out.append(make(number, piece))

    def _text_end(self, out: Out, found: Json) -> None:
        kind = found["type"].removesuffix("-end")
        number = self._texts.pop((kind, _READ.text(found.get("id"), "id")), None)
        if number is None:
            return
        fields = _text_fields(kind, found)
        if fields:
            out.append(events.BlockDelta(number, fields))
        out.append(events.BlockFinish(number))

    def _file(self, out: Out, found: Json) -> None:
        self._whole(out, _file_content(found))

    def _custom(self, out: Out, found: Json) -> None:
        content = _stored(found.get("data") if found["type"] == "data-block" else _ours(found))
        if content is None:
            out.append(events.ProviderEvent("ai-sdk", found["type"], kept(found)))
        else:
            self._whole(out, content)

    def _source(self, _out: Out, found: Json) -> None:
        """A source that no text cites stands in the message's metadata."""
        if not _ours(found).get("cited"):
            self._sources.append(found)

    # Tools.

    def _call(self, found: Json) -> _Call:
        call_id = _READ.text(found.get("toolCallId"), "toolCallId")
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = _Call(call_id)
        call.runs_there = call.runs_there or found.get("providerExecuted") is True
        return call

    def _input_start(self, out: Out, found: Json) -> None:
        call = self._call(found)
        if call.number is None:
            call.number = self._open(out, _call_content(call, found))
        self._read_title(out, call, found)

    def _read_title(self, out: Out, call: _Call, found: Json) -> None:
        title = word(found.get("title"))
        if title is not None and title != call.title:
            call.title = title
            out.append(events.ToolUpdate(call.id, display_text=title))

    def _input_delta(self, out: Out, found: Json) -> None:
        call = self._call(found)
        piece = _READ.text(found.get("inputTextDelta"), "inputTextDelta")
        if call.number is None:
            call.number = self._open(out, _call_content(call, found))
        if piece and call.number not in call.finished:
            out.append(events.ToolCallDelta(call.number, piece))

    def _input(self, out: Out, found: Json) -> None:
        """The whole input, or what came in its place."""
        call = self._call(found)
        content = _call_content(call, found)
        given = found.get("input")
        if found["type"] == "tool-input-error":
            content["error"] = _READ.text(found.get("errorText"), "errorText") or "invalid"
            content["args"] = given if isinstance(given, str) or is_mapping(given) else written(given)
            if not call.runs_there:
                content["type"] = "invalid_tool_call"
        else:
            content["args"] = given if is_mapping(given) else {"input": given}
        if call.number is None:
            call.number = self._open(out, content)
            self._read_title(out, call, found)
            out.append(events.BlockFinish(call.number))
        elif call.number not in call.finished:
            self._read_title(out, call, found)
            out.append(events.BlockFinish(call.number, content))
        call.finished.add(call.number)

    def _output(self, out: Out, found: Json) -> None:
        self._begin(out)
        call = self._call(found)
        kind = found["type"]
        failed = kind != "tool-output-available"
        said = found.get("output")
        if failed:
            said = (
                _DENIED if kind == "tool-output-denied" else _READ.text(found.get("errorText"), "errorText")
            )
        more = found.get("preliminary") is True and not failed
        if call.runs_there:
            self._read_output(out, call, found, said, failed=failed, more=more)
            return
        status = "executing" if more else "failed" if failed else "completed"
        out.append(
            events.ToolUpdate(call.id, status, result=ToolResult(call.id, _json(said), is_error=failed))
        )

    def _read_output(
        self, out: Out, call: _Call, found: Json, said: Any, *, failed: bool, more: bool
    ) -> None:
        """What a tool gave back that the provider ran: a block of its own."""
        ours = _ours(found).get("options")
        status = "error" if failed else "success"
        options: dict[str, Any] = {"tool_call_id": call.id, "output": said, "status": status}
        if is_mapping(ours):
            options = {**({} if "output" in ours or failed else {"output": said}), **ours}
        fields = {**options, "type": "server_tool_result"}
        if call.output in call.finished:
            return
        if call.output is None:
            call.output = self._open(out, fields)
        else:
            out.append(events.BlockDelta(call.output, fields))
        if not more:
            call.finished.add(call.output)
            out.append(events.BlockFinish(call.output))

    # What `to_ai_sdk` tells as data.

    def _tool_update(self, out: Out, found: Json) -> None:
        data = found.get("data")
        text = word(data.get("displayText")) if is_mapping(data) else None
        call_id = word(data.get("toolCallId")) if is_mapping(data) else None
        if text is None or call_id is None:
            out.append(events.ProviderEvent("ai-sdk", found["type"], kept(found)))
        else:
            out.append(events.ToolUpdate(call_id, display_text=text))

    def _attempt_reset(self, out: Out, found: Json) -> None:
        data = found.get("data")
        attempt = data.get("attempt") if is_mapping(data) else None
        known = isinstance(attempt, int) and not isinstance(attempt, bool) and 0 < attempt < 2**31
        self._reset(out, attempt if known else self._attempts + 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    _READERS: ClassVar[dict[str, Callable[[AiSdkDecoder, Out, Json], None]]] = {
        "start": _start,
        "start-step": _start_step,
        "finish-step": _finish_step,
        "reset-step": _reset_step,
        "finish": _finish,
        "abort": _abort,
        "error": _error,
        "message-metadata": _message_metadata,
        "text-start": _text_start,
        "text-delta": _text_delta,
        "text-end": _text_end,
        "reasoning-start": _text_start,
        "reasoning-delta": _text_delta,
        "reasoning-end": _text_end,
        "file": _file,
        "reasoning-file": _file,
        "custom": _custom,
        "source-url": _source,
        "source-document": _source,
        "tool-input-start": _input_start,
        "tool-input-delta": _input_delta,
        "tool-input-available": _input,
        "tool-input-error": _input,
        "tool-output-available": _output,
        "tool-output-error": _output,
        "tool-output-denied": _output,
        "data-block": _custom,
        "data-tool-update": _tool_update,
        "data-attempt-reset": _attempt_reset,
    }


class _Call:
    """A call and the block of its output, by their numbers."""

    __slots__ = ("finished", "id", "number", "output", "runs_there", "title")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.number: int | None = None
        self.output: int | None = None
        self.finished: set[int] = set()
        self.runs_there = False
        self.title: str | None = None


def _metadata_of(found: Json) -> Json:
    metadata = found.get("providerMetadata")
    return metadata if is_mapping(metadata) else {}


def _ours(found: Json) -> Json:
    """What `to_ai_sdk` put there."""
    ours = _metadata_of(found).get("rxdelta")
    return ours if is_mapping(ours) else {}


def _theirs(found: Json) -> dict[str, Any]:
    """What another server put there, and the signature in it."""
    theirs = {name: value for name, value in _metadata_of(found).items() if name != "rxdelta"}
    if not theirs:
        return {}
    signatures = [
        value[name]
        for value in theirs.values()
        if is_mapping(value)
        for name in ("signature", "thoughtSignature")
        if word(value.get(name)) is not None
    ]
    return {"provider_metadata": theirs} | ({"signature": signatures[0]} if signatures else {})


def _text_fields(kind: str, found: Json) -> dict[str, Any]:
    """What the end of a text says beyond the text."""
    ours = _ours(found)
    options = ours.get("options")
    citations: Any = ours.get("citations")
    if citations is None:
        listed = _READ.items(found.get("citations"), "citations")
        citations = [_citation(_READ.mapping(one, f"citations[{n}]")) for n, one in enumerate(listed)]
    fields: dict[str, Any] = {**options} if is_mapping(options) else {}
    if citations:
        fields["citations"] = citations
    known = _theirs(found) | fields
    return {name: value for name, value in known.items() if name not in ("type", "index", kind)}


def _citation(found: Json) -> dict[str, Any]:
    source = _READ.mapping(found.get("source"), "source")
    known: dict[str, Any] = {
        "title": source.get("title"),
        "url": source.get("url"),
        "cited_text": found.get("citedText"),
    }
    known |= {"start_index": found.get("startIndex"), "end_index": found.get("endIndex")}
    return Citation.from_dict({name: value for name, value in known.items() if value is not None}).to_dict()


def _file_content(found: Json) -> dict[str, Any]:
    url = _READ.text(found.get("url"), "url")
    media_type = _READ.text(found.get("mediaType"), "mediaType")
    ours = _ours(found)
    options = ours.get("options")
    kind = word(ours.get("type"))
    head, comma, data = url.removeprefix("data:").partition(",")
    here = url.startswith("data:") and comma and head.endswith(";base64")
    if kind in _MEDIA:
        fields = dict(options) if is_mapping(options) else {}
        if "url" not in fields:
            fields["data"] = url if kind.endswith("_url") else data if here else None
        return {**fields, "type": kind}
    major = media_type.partition("/")[0]
    fields = {
        "type": major if major in ("image", "audio", "video") else "file",
        "mime_type": media_type or None,
        "filename": word(found.get("filename")),
        **_theirs(found),
    }
    references = found.get("providerReference")
    if is_mapping(references):
        fields["file_id"] = next((value for value in references.values() if word(value)), None)
    fields["data" if here else "url"] = data if here else url
    return {name: value for name, value in fields.items() if value is not None}


def _stored(found: object) -> dict[str, Any] | None:
    """A block that went whole, in the events' vocabulary; `None` for what is none."""
    if not is_mapping(found) or "type" not in found:
        return None
    try:
        return block_to_wire(ContentPart.from_dict(found))
    except RxDeltaError:
        return None


def _call_content(call: _Call, found: Json) -> dict[str, Any]:
    ours = _ours(found).get("metadata")
    metadata = {
        name: value
        for name, value in (ours.items() if is_mapping(ours) else ())
        if name not in ("type", "index", "id", "call_id", "name", "args", "input", "arguments", "error")
    }
    name = word(_READ.text(found.get("toolName"), "toolName"))
    tool_metadata = found.get("toolMetadata")
    content: dict[str, Any] = {"type": "server_tool_call" if call.runs_there else "tool_call", "id": call.id}
    content |= {"name": name} if name else {}
    content |= {"tool_metadata": tool_metadata} if is_mapping(tool_metadata) else {}
    return {**metadata, **_theirs(found), **content}


def _json(value: Any) -> Any:
    return kept({"value": value})["value"]


def written(value: Any) -> str:
    """As JSON, however deep or large it is."""
    return json.dumps(_json(value), ensure_ascii=False)
