"""Vercel's AI SDK → events: the UI message stream that `useChat` reads, from any server.

    stream = start? (step | part)* (finish | abort | error)?
    step   = start-step part* finish-step
    part   = text-start text-delta* text-end                   `id`; reasoning likewise
           | tool-input-start tool-input-delta* (tool-input-available | tool-input-error)    `toolCallId`
           | file | source-… | custom | data-…                 complete; the application's data-… also elsewhere
    output = tool-approval-request | tool-approval-response    of a person, about a `toolCallId`
           | tool-output-available | tool-output-error | tool-output-denied    of a `toolCallId`, at any time

Each step is a message, which ends when another step follows. A stream of several steps is therefore a conversation,
for `group_by_message()`. The last message ends with `finish`, which has the reason and, in its metadata, the usage of
all.

The protocol has no runs. Where `to_ai_sdk` marks the parts of several (`marks.py`), a decoder reads one run, whose
messages begin and end with `data-run`. The first run, which has no marks, stays without a name. So a reset of it would
be one of every run, and another message begins instead; and its reader doesn't learn that this run alone was interrupted.

`marks.py` has what `to_ai_sdk` writes beside the protocol. The `providerMetadata` of another server become the option
`provider_metadata`; a signature in them becomes the block's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from rxdelta.core import (
    Citation,
    ContentPart,
    Event,
    ExecutionStatus,
    MalformedChunkError,
    RxDeltaError,
    ToolResult,
    approved_result,
    block_to_wire,
    denied_result,
    events,
    is_mapping,
)
from rxdelta.formats.ai_sdk.marks import (
    ATTEMPT,
    ATTEMPT_RESET,
    CITATIONS,
    CITED,
    DATA,
    DISPLAY_TEXT,
    FINISH_REASON,
    FIRST,
    MESSAGE_ID,
    METADATA,
    MODEL,
    OPTIONS,
    REASON,
    RUN,
    RUN_ID,
    RUN_MARKS,
    STATUS,
    SUMMARY,
    TOOL_UPDATE,
    TYPE,
    USAGE,
    WHOLE_BLOCK,
    foreign_metadata,
    is_without_output,
    marks_of,
)
from rxdelta.formats.ai_sdk.tables import (
    BROKEN,
    CUT_OFF,
    FINISH_REASONS,
    MEDIA_TYPES,
    PAUSE,
    REQUIRED,
    SIGNERS,
    is_repeated,
    read_data,
    read_usage,
)
from rxdelta.formats.calls import arguments_after_end, invalid_call
from rxdelta.formats.decoding import Fields, Json, as_mapping, kept, word
from rxdelta.formats.endings import assumed_finish, broken_events
from rxdelta.formats.gateways import refuse_stranger
from rxdelta.formats.notes import signed
from rxdelta.framing import DONE

Out: TypeAlias = list[Event]

_FORMAT = "ai-sdk"
_READ = Fields(_FORMAT)
_OF_AN_OUTPUT = frozenset(
    ["type", "toolCallId", "providerExecuted", "providerMetadata", "toolMetadata", "dynamic", "preliminary"]
)
_CALL_FIELDS = frozenset(
    ["type", "index", "id", "call_id", "name", "args", "input", "arguments", "error"]
)  # fmt: skip
"""The fields of a call that its metadata can't set."""


class AiSdkDecoder:
    """Decode the chunks of one UI message stream. A message that has no `finish` in front of `[DONE]` is whole, too.

    Example:
        >>> decoder = AiSdkDecoder()
        >>> decoder.decode({"type": "start", "messageId": "m1"})
        [MessageStart(id='m1', model=None, usage=None, metadata={}, choice=0)]
    """

    def __init__(self) -> None:
        self._over = self._failed = False
        self._begun = False
        self._id: str | None = None
        self._metadata: dict[str, Any] = {}
        self._sources: list[Any] = []
        self._attempts = 0
        self._noted = False  # messages begin and end with `data-run`
        self._has_no_name = False  # it is one of several runs, and the one without marks
        self._ended = False  # the message, by its `data-run`
        self._asked: dict[str, _Call] = {}  # calls of all steps, by the id of the approval
        self._new()

    def _new(self) -> None:
        """Forget the blocks of the last message."""
        self._begun = False
        self._blocks = 0
        self._texts: dict[tuple[str, str], int] = {}  # the open texts, by kind and id
        self._calls: dict[str, _Call] = {}

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk.

        Raises:
            MalformedChunkError: The chunk breaks the format; the error names the path and quotes the value.
        """
        out: Out = []
        if chunk is DONE:
            self._done(out)
            return out
        found = as_mapping(chunk, _FORMAT)
        kind = found.get("type")
        if not isinstance(kind, str):
            raise _READ.fail("type", "a string", kind)
        if self._failed:
            return out
        read = None if self._over else self._READERS.get(kind)
        if read is None:
            self._other(out, found)
            return out
        try:
            _READ.require(found, REQUIRED.get(kind, ()))
            read(self, out, found)
        except MalformedChunkError:
            refuse_stranger(found)
            raise
        return out

    def close(self) -> Sequence[Event]:
        """End the input. A stream without `finish` was cut off."""
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
            message_id, self._id = (
                self._id,
                None,
            )  # the id is the first step's; later steps are other messages
            out.append(events.MessageStart(message_id, word(self._metadata.get(MODEL))))

    def _start_step(self, out: Out, found: Json) -> None:
        if len(found) > 1:
            refuse_stranger(found)
        if self._begun and self._blocks and not self._noted:
            self._finish_blocks(out)
            out.append(events.MessageFinish())
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
                    is_cut = part == call.number and not call.runs_at_provider
                    out.append(events.BlockFinish(part, invalid_call(CUT_OFF) if is_cut else None))

    def _done(self, out: Out) -> None:
        """Finish a message that has no `finish`."""
        if not self._over and self._begun and not self._ended:
            self._finish_message(out, None, assumed=True)
        self._over = True

    def _finish(self, out: Out, found: Json) -> None:
        self._over = True
        if self._noted:
            return
        reason = word(_READ.text(found.get("finishReason"), "finishReason"))
        self._begin(out)
        self._read_metadata(out, found)
        paused = reason == "other" and self._metadata.get(FINISH_REASON) == PAUSE
        self._finish_message(out, PAUSE if paused else reason)

    def _finish_message(self, out: Out, reason: str | None, *, assumed: bool = False) -> None:
        self._finish_blocks(out)
        metadata = {name: value for name, value in self._metadata.items() if name not in SUMMARY}
        if self._sources:
            metadata["sources"] = self._sources
        model = word(self._metadata.get(MODEL))
        if model is not None:
            metadata[MODEL] = model
        more, broken = kept(metadata), BROKEN.get(reason or "")
        if reason is not None and broken is not None:
            self._failed = True
            out += broken_events(_FORMAT, reason, broken, None, more)
        elif assumed:
            asked = any(not call.runs_at_provider for call in self._calls.values())
            out.append(assumed_finish(None, more, asked=asked))
        else:
            ours = None if reason is None else FINISH_REASONS.get(reason, "stop")
            out.append(events.MessageFinish(ours, reason, None, more))

    def _abort(self, out: Out, found: Json) -> None:
        self._over = True
        if not self._noted:
            self._begin(out)
            out.append(events.MessageInterrupted(word(found.get("reason"))))

    def _run(self, out: Out, found: Json) -> None:
        """A message of this run has begun or ended."""
        data = found.get("data")
        if not is_mapping(data) or word(data.get(RUN_ID)) is None:
            self._other(out, found)
            return
        self._noted = True
        self._has_no_name = data.get(FIRST) is True
        model, status = word(data.get(MODEL)), word(data.get(STATUS))
        if model is not None:
            self._metadata[MODEL] = model
        if self._ended and status is None:
            self._begun = self._ended = False
        if not self._ended:
            self._id = word(data.get(MESSAGE_ID))
            self._begin(out)
        if status is None or self._ended:
            return
        self._ended = True
        self._read_usage(out, data.get(USAGE))
        if status in ("complete", "length"):
            self._finish_message(out, word(data.get(FINISH_REASON)))
        elif status == "interrupted" and not self._has_no_name:
            out.append(events.MessageInterrupted(word(data.get(REASON))))

    def _error(self, out: Out, found: Json) -> None:
        if "errorText" not in found:
            out.append(events.ProviderEvent(_FORMAT, "error", kept(found)))
        out.append(events.StreamError(_READ.text(found.get("errorText"), "errorText") or "unknown error"))
        self._over = self._failed = True

    def _message_metadata(self, out: Out, found: Json) -> None:
        self._read_metadata(out, found)

    def _read_metadata(self, out: Out, found: Json) -> None:
        metadata = found.get("messageMetadata")
        if not is_mapping(metadata):
            if found["type"] == "message-metadata":
                self._other(out, found)
            return
        self._metadata.update(kept(metadata))
        if not self._noted:
            self._read_usage(out, metadata.get(USAGE))

    def _read_usage(self, out: Out, usage: object) -> None:
        if is_mapping(usage):
            self._begin(out)
            out.append(events.UsageUpdate(read_usage(usage)))

    def _reset(self, out: Out, attempt: int) -> None:
        self._attempts = attempt
        if not self._has_no_name:
            out.append(events.AttemptReset(attempt, choice=0 if self._ended else None))
        self._begun = self._ended = False
        if not self._noted:
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
        refusal = kind == "text" and marks_of(found).get(TYPE) == "refusal"
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
        content = _stored(found.get("data") if found["type"] == WHOLE_BLOCK else marks_of(found))
        if content is None:
            self._other(out, found)
        else:
            self._whole(out, content)

    def _source(self, _out: Out, found: Json) -> None:
        """A source that no text and no tool output cites is kept in the message's metadata."""
        if not marks_of(found).get(CITED):
            self._sources.append(found)

    # Tools.

    def _call(self, out: Out, found: Json) -> _Call:
        self._begin(out)
        call_id = _READ.text(found.get("toolCallId"), "toolCallId")
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = _Call(call_id)
        call.runs_at_provider = call.runs_at_provider or found.get("providerExecuted") is True
        return call

    def _input_start(self, out: Out, found: Json) -> None:
        call = self._call(out, found)
        if call.number is None:
            _READ.require(found, ("toolName",))
            call.number = self._open(out, _call_content(call, found))
        self._read_title(out, call, found)

    def _read_title(self, out: Out, call: _Call, found: Json) -> None:
        title = word(found.get("title"))
        if title is not None and title != call.title:
            call.title = title
            out.append(events.ToolUpdate(call.id, display_text=title))

    def _input_delta(self, out: Out, found: Json) -> None:
        call = self._call(out, found)
        piece = _READ.text(found.get("inputTextDelta"), "inputTextDelta")
        if call.number is None:
            call.number = self._open(out, _call_content(call, found))
        if not piece:
            return
        if call.number not in call.finished:
            out.append(events.ToolCallDelta(call.number, piece))
        elif call.runs_at_provider or call.late_is_known:
            out.append(events.ProviderEvent(_FORMAT, found["type"], kept(found)))
        else:
            call.late_is_known = True
            out.append(events.BlockFinish(call.number, arguments_after_end(piece)))

    def _input(self, out: Out, found: Json) -> None:
        """The complete input, or the error in its place."""
        call = self._call(out, found)
        content = _call_content(call, found)
        given = found.get("input")
        takes_back = (
            found["type"] == "tool-input-error" and not call.runs_at_provider and not call.late_is_known
        )
        if found["type"] == "tool-input-error":
            content["error"] = _READ.text(found.get("errorText"), "errorText") or "invalid"
            content["args"] = given if isinstance(given, str) or is_mapping(given) else json_text(given)
            if not call.runs_at_provider:
                content["type"] = "invalid_tool_call"
        else:
            content["args"] = given if is_mapping(given) else {} if given is None else {"input": given}
        if call.number is None:
            _READ.require(found, ("toolName",))
            call.number = self._open(out, content)
            self._read_title(out, call, found)
            out.append(events.BlockFinish(call.number))
        elif call.number not in call.finished or takes_back:
            self._read_title(out, call, found)
            out.append(events.BlockFinish(call.number, content))
        else:
            out.append(events.ProviderEvent(_FORMAT, found["type"], kept(found)))
        call.late_is_known |= takes_back
        call.finished.add(call.number)

    def _output(self, out: Out, found: Json) -> None:
        call = self._call(out, found)
        kind = found["type"]
        failed = kind != "tool-output-available"
        content = found.get("output")
        if not failed and "output" not in found and not _OF_AN_OUTPUT.issuperset(found):
            self._other(out, found)  # a tool may return nothing, but this has something else
        if failed:
            content = _READ.text(found.get("errorText"), "errorText")
        more = found.get("preliminary") is True and not failed
        if call.runs_at_provider:
            self._read_output(out, call, found, content, failed=failed, more=more)
            return
        status: ExecutionStatus = "executing" if more else "failed" if failed else "completed"
        metadata = marks_of(found).get(METADATA)
        result = ToolResult(
            call.id,
            _json(content),
            is_error=failed,
            metadata=kept(metadata) if is_mapping(metadata) else None,
        )
        out.append(events.ToolUpdate(call.id, status, result=result))

    def _approval_request(self, out: Out, found: Json) -> None:
        call = self._call(out, found)
        self._asked[_READ.text(found.get("approvalId"), "approvalId")] = call
        out.append(events.ToolUpdate(call.id, "awaiting_approval"))

    def _approval_response(self, out: Out, found: Json) -> None:
        """A decision. The server runs an allowed call itself; the provider runs its own at the next request."""
        call = self._asked.get(_READ.text(found.get("approvalId"), "approvalId"))
        reason = word(found.get("reason"))
        if call is None:
            self._other(out, found)
            return
        _READ.require(found, ("approved",))
        if found.get("approved") is not True:
            out.append(_refusal(call.id, reason))
        elif call.runs_at_provider:
            out.append(events.ToolUpdate(call.id, "completed", result=approved_result(call.id, reason)))
        else:
            out.append(events.ToolUpdate(call.id, "executing"))

    def _denied(self, out: Out, found: Json) -> None:
        """A refusal, whose reason the response has given: the first of two outcomes counts."""
        out.append(_refusal(self._call(out, found).id, None))

    def _read_output(
        self, out: Out, call: _Call, found: Json, content: Any, *, failed: bool, more: bool
    ) -> None:
        """Read the output of the provider's own tool, which is a block of its own."""
        ours = marks_of(found).get(OPTIONS)
        status = "error" if failed else "success"
        options: dict[str, Any] = {"tool_call_id": call.id, "output": content, "status": status}
        if is_mapping(ours):
            options = {**({} if "output" in ours or failed else {"output": content}), **ours}
        fields = {**options, "type": "server_tool_result"}
        if call.output in call.finished or is_without_output(found):
            return
        if call.output is None:
            call.output = self._open(out, fields)
        else:
            out.append(events.BlockDelta(call.output, fields))
        if not more:
            call.finished.add(call.output)
            out.append(events.BlockFinish(call.output))

    # Other chunks, and chunks of our own.

    def _other(self, out: Out, found: Json) -> None:
        """Data of the application, which may stand anywhere, or a chunk that the protocol doesn't have here."""
        event = None
        if found["type"].startswith(DATA):
            if is_repeated(found):
                return
            event = read_data(found)
        else:
            refuse_stranger(found)
        out.append(event or events.ProviderEvent(_FORMAT, found["type"], kept(found)))

    def _tool_update(self, out: Out, found: Json) -> None:
        data = found.get("data")
        text = word(data.get(DISPLAY_TEXT)) if is_mapping(data) else None
        call_id = word(data.get("toolCallId")) if is_mapping(data) else None
        if text is None or call_id is None:
            self._other(out, found)
        else:
            out.append(events.ToolUpdate(call_id, display_text=text))

    def _attempt_reset(self, out: Out, found: Json) -> None:
        data = found.get("data")
        attempt = data.get(ATTEMPT) if is_mapping(data) else None
        if not isinstance(attempt, int) or isinstance(attempt, bool) or not 0 < attempt < 2**31:
            attempt = self._attempts + 1
        self._reset(out, attempt)

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
        "tool-output-denied": _denied,
        "tool-approval-request": _approval_request,
        "tool-approval-response": _approval_response,
        RUN: _run,
        WHOLE_BLOCK: _custom,
        TOOL_UPDATE: _tool_update,
        ATTEMPT_RESET: _attempt_reset,
    }


class _Call:
    """A call.

    Attributes:
        number: The index of its block; `None` until the block begins.
        output: The index of the block of its output.
        finished: Which of the two have ended.
        runs_at_provider: Whether the provider runs the tool.
        late_is_known: Whether input has come after the call's end.
    """

    __slots__ = ("finished", "id", "late_is_known", "number", "output", "runs_at_provider", "title")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.number: int | None = None
        self.output: int | None = None
        self.finished: set[int] = set()
        self.runs_at_provider = self.late_is_known = False
        self.title: str | None = None


def _refusal(call_id: str, reason: str | None) -> Event:
    return events.ToolUpdate(call_id, "failed", result=denied_result(call_id, reason))


def _foreign_fields(found: Json) -> dict[str, Any]:
    """The metadata that another server wrote, and the signature in them."""
    metadata = foreign_metadata(found)
    if not metadata:
        return {}
    signatures = [
        signed(value[name], SIGNERS.get(vendor))
        for vendor, value in metadata.items()
        if is_mapping(value)
        for name in ("signature", "thoughtSignature")
        if word(value.get(name)) is not None
    ]
    return {"provider_metadata": metadata} | (signatures[0] if signatures else {})


def _text_fields(kind: str, found: Json) -> dict[str, Any]:
    """The fields at the end of a text."""
    marks = marks_of(found)
    options = marks.get(OPTIONS)
    citations: Any = marks.get(CITATIONS)
    if citations is None:
        listed = _READ.items(found.get("citations"), "citations")
        citations = [_citation(_READ.mapping(one, f"citations[{n}]")) for n, one in enumerate(listed)]
    fields: dict[str, Any] = {**options} if is_mapping(options) else {}
    if citations:
        fields[CITATIONS] = citations
    known = _foreign_fields(found) | fields
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
    marks = marks_of(found)
    options = marks.get(OPTIONS)
    kind = word(marks.get(TYPE))
    head, comma, data = url.removeprefix("data:").partition(",")
    inline = url.startswith("data:") and comma and head.endswith(";base64")
    if kind is not None and kind in MEDIA_TYPES:
        fields = dict(options) if is_mapping(options) else {}
        if "url" not in fields:
            fields["data"] = url if kind.endswith("_url") else data if inline else None
        return {**fields, "type": kind}
    major = media_type.partition("/")[0]
    fields = {
        "type": major if major in ("image", "audio", "video") else "file",
        "mime_type": media_type or None,
        "filename": word(found.get("filename")),
        **_foreign_fields(found),
    }
    references = found.get("providerReference")
    if is_mapping(references):
        fields["file_id"] = next((value for value in references.values() if word(value)), None)
    fields["data" if inline else "url"] = data if inline else url
    return {name: value for name, value in fields.items() if value is not None}


def _stored(found: object) -> dict[str, Any] | None:
    """A block that was sent whole, with the fields of events; `None` if it isn't a block."""
    if not is_mapping(found) or "type" not in found:
        return None
    own = {name: value for name, value in found.items() if name not in RUN_MARKS}
    try:
        return block_to_wire(ContentPart.from_dict(own))
    except RxDeltaError:
        return None


def _call_content(call: _Call, found: Json) -> dict[str, Any]:
    marked = marks_of(found).get(METADATA)
    metadata = {
        name: value
        for name, value in (marked.items() if is_mapping(marked) else ())
        if name not in _CALL_FIELDS
    }
    name = word(_READ.text(found.get("toolName"), "toolName"))
    tool_metadata = found.get("toolMetadata")
    content: dict[str, Any] = {
        "type": "server_tool_call" if call.runs_at_provider else "tool_call",
        "id": call.id,
    }
    content |= {"name": name} if name else {}
    content |= {"tool_metadata": tool_metadata} if is_mapping(tool_metadata) else {}
    return {**metadata, **_foreign_fields(found), **content}


def _json(value: Any) -> Any:
    return kept({"value": value})["value"]


def json_text(value: Any) -> str:
    """The value as JSON text, however deep or large it is."""
    return json.dumps(_json(value), ensure_ascii=False)
