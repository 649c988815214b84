"""The steps of an interaction: texts, media and thoughts, calls and results, and all steps by their places."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rxdelta.core import events, freeze, real_id, reasoning_delta, text_delta, thaw
from rxdelta.formats.block_events import as_citation
from rxdelta.formats.calls import arguments_after_end, call_identity, invalid_call
from rxdelta.formats.decoding import Base64Pieces, GrowingList, Json, kept, others, word
from rxdelta.formats.gemini_interactions.interaction import ClientStep, Interaction, Step
from rxdelta.formats.gemini_interactions.tables import MEDIA, READ, default_tool_name
from rxdelta.formats.notes import GOOGLE, PROVIDER_TYPE, SIGNED_BY, SYNTHETIC_ID, THOUGHT, signed


class Content(Step):
    """A content that is not in a step, as events once had it."""

    def __init__(self, interaction: Interaction, index: int, kind: str, fields: Json) -> None:
        super().__init__(interaction, index, kind, fields)
        self._citations = GrowingList()
        self._audio = Base64Pieces()
        self._mime_type: str | None = None  # of the open audio

    def begin(self, fields: Json, path: str, /) -> None:
        if fields.keys() > {"type"}:
            self._show(fields, path)

    def _show(self, found: Json, path: str, *, new: bool = False) -> None:
        """Add a text, a medium or another content. A text and audio continue, unless a new content begins."""
        kind = word(found.get("type")) or ""
        if kind == "text" and not (_TEXT.isdisjoint(found) and len(found) > 1):
            self._add_text(found, path, new=new)
        elif kind in MEDIA:
            self._add_medium(MEDIA[kind], found, path, new=new)
        else:
            self.end_block()
            self.blocks.pass_on(found)

    def _add_text(self, found: Json, path: str, *, new: bool) -> None:
        text = READ.text_of(found, "text", path)
        if self.writes != "text" or new:
            if not text and not found.get("annotations"):
                return
            self.start_block("text", {"type": "text", "text": ""})
        if text:
            self.blocks.out.append(text_delta(self.block, text))
        self.add_annotations(found)

    def _add_medium(self, block_type: str, found: Json, path: str, *, new: bool) -> None:
        data, url = READ.text_of(found, "data", path), READ.text_of(found, "uri", path)
        mime_type = READ.text_of(found, "mime_type", path)
        known = {"mime_type": mime_type or None, "url": url or None, **others(found, _MEDIUM)}
        content = {**known, "type": block_type}
        if block_type != "audio":
            self.end_block()
            self.blocks.whole(content, data)
            return
        if self.writes != "audio" or new or (mime_type and mime_type != self._mime_type):
            self.start_block("audio", content)
            self._mime_type = mime_type
        self.blocks.add_data(self.block, self._audio.add(data))

    def add_text(self, delta: Json) -> bool:
        if _TEXT.isdisjoint(delta):
            return False
        self._show({"type": "text", **delta}, "delta")
        return True

    def add_medium(self, delta: Json) -> bool:
        self._show(delta, "delta")
        return True

    def add_annotations(self, found: Json) -> bool:
        for place, entry in enumerate(READ.items(found.get("annotations"), "delta.annotations")):
            annotation = READ.mapping(entry, f"delta.annotations[{place}]")
            if self.writes != "text":
                self.start_block("text", {"type": "text", "text": ""})
            self._citations.add(_citation(annotation))
        self._emit_citations(at_end=False)
        return "annotations" in found

    def _emit_citations(self, *, at_end: bool) -> None:
        citations = self._citations.take(at_end=at_end)
        if citations is not None:
            self.blocks.change(self.block, {"citations": citations})

    def flush(self) -> None:
        self._emit_citations(at_end=True)

    def finish_block(self, cut: str | None, /) -> None:
        self.blocks.add_data(self.block, self._audio.rest())
        super().finish_block(cut)
        self._citations, self._mime_type = GrowingList(), None

    READS = {
        **Step.READS,
        "text": add_text,
        "text_annotation_delta": add_annotations,
        "text_annotation": add_annotations,
        "image": add_medium,
        "audio": add_medium,
        "video": add_medium,
        "document": add_medium,
    }


class Output(Content):
    """A list of contents, each of which is a block."""

    def begin(self, fields: Json, path: str, /) -> None:
        for place, found in enumerate(READ.items(fields.get("content"), f"{path}.content")):
            at = f"{path}.content[{place}]"
            self._show(READ.mapping(found, at), at, new=True)
        more = others(fields, _OUTPUT)
        if more:  # such as an error
            self.end_block()
            self.blocks.pass_on({"type": self.kind, **more})


class Thought(Content):
    """A summary and a signature. An image in the summary is a block of its own, and splits the reasoning in two."""

    def begin(self, fields: Json, path: str, /) -> None:
        signature = READ.text_of(fields, "signature", path)
        self._start_reasoning(others(fields, _THOUGHT) | (signed(signature, GOOGLE) if signature else {}))
        text = fields.get("text", fields.get("thought"))
        if isinstance(text, str):
            self._reason(text)
        summary = fields.get("summary")
        parts = [summary] if isinstance(summary, str) else READ.items(summary, f"{path}.summary")
        for place, found in enumerate(parts):
            if not self._think(found, f"{path}.summary[{place}]") and len(found) > 1:
                self.blocks.pass_on(found)

    def _start_reasoning(self, fields: Json) -> None:
        self.start_block("reasoning", {**fields, "type": "reasoning", "reasoning": ""})

    def _think(self, found: object, path: str) -> bool:
        """Read a part of the summary. False if it says nothing."""
        content = {"type": "text", "text": found} if isinstance(found, str) else READ.mapping(found, path)
        if content.get("type", "text") != "text":
            self._show({THOUGHT: True, **content}, path)
            return True
        self._reason(READ.text_of(content, "text", path))
        return "text" in content

    def _reason(self, text: str) -> None:
        if text and self.writes != "reasoning":
            self._start_reasoning({})
        if text:
            self.blocks.out.append(reasoning_delta(self.block, text))

    def add_thought(self, delta: Json) -> bool:
        found = delta.get("content", delta.get("text", delta.get("thought")))
        return found is not None and self._think(found, "delta.content")

    def add_text(self, delta: Json) -> bool:
        self._reason(READ.text_of(delta, "text", "delta"))
        return "text" in delta

    def sign(self, delta: Json) -> bool:
        if self.writes is None and READ.text_of(delta, "signature", "delta"):
            self._start_reasoning({})
        return super().sign(delta)

    READS = {
        "text": add_text,  # before there were summaries
        "thought": add_thought,
        "thought_summary": add_thought,
        "thought_signature": sign,
    }


def _citation(annotation: Json) -> Json:
    found = {name: annotation.get(name) for name in ("title", "url", "start_index", "end_index")}
    found["title"] = found["title"] or annotation.get("file_name") or annotation.get("name")
    found["url"] = found["url"] or annotation.get("document_uri")
    return as_citation(found, annotation)


_TEXT = frozenset(["text", "annotations"])
_THOUGHT = frozenset(["type", "signature", "summary", "text", "thought"])
_OUTPUT = frozenset(["type", "content"])
_MEDIUM = frozenset(["type", "data", "uri", "mime_type"])


class _Tool(Step):
    """A step whose deltas have fields of the step, under its own type or another one of tools."""

    def read(self, kind: str, delta: Json) -> bool:
        if kind == "arguments_delta" and _ARGUMENTS.isdisjoint(delta):
            return False
        if kind == self.kind or kind.endswith(("_call", "_result")):
            return self.add_fields(delta)
        return super().read(kind, delta)

    def add_fields(self, delta: Json) -> bool:
        if self.writes is None:
            return False
        fields = _signed(others(delta, _TOOL_DELTA))
        if word(delta.get("name")):
            fields["name"] = delta["name"]
        self.add_known(delta, fields)
        return True

    def add_known(self, delta: Json, fields: dict[str, Any]) -> None:
        """Add the fields that this kind of step reads. `fields` are the others, which change the block too."""
        raise NotImplementedError


class _AnyCall(_Tool):
    """A call, whose arguments are JSON text or an object.

    It writes `call`, then `arguments` once there is some of the text, or `object` once there is the object.
    """

    def start(self, fields: Json, path: str, content: Json) -> None:
        args = _arguments(fields.get("arguments"), f"{path}.arguments")
        call_id = real_id(READ.text_of(fields, "id", path))
        identity = call_identity(call_id, f"{self.interaction.id or 'call'}-{self.blocks.count}")
        self.start_block("call", {**_signed(others(fields, _CALL)), **identity, **content, "args": args})
        if args:
            self.writes = _written(args)

    def add_known(self, delta: Json, fields: dict[str, Any]) -> None:
        call_id = real_id(word(delta.get("id")))
        if call_id and self.id is None:
            fields |= {"id": call_id, SYNTHETIC_ID: False}
        args = _arguments(delta.get("arguments", delta.get("partial_arguments")), "delta.arguments")
        if args:
            self.writes = _written(args)
        if not isinstance(args, str):
            fields["args"] = args
        if fields:
            self.blocks.change(self.block, fields)
        if isinstance(args, str):
            self.blocks.add_arguments(self.block, args)

    READS = {**Step.READS, "arguments_delta": _Tool.add_fields}


class Call(_AnyCall):
    """A call for the client."""

    def begin(self, fields: Json, path: str, /) -> None:
        name = READ.text_of(fields, "name", path) or None
        if "arguments" not in fields and not _OF_A_CALL.issuperset(fields):  # the arguments may be among them
            self.blocks.out.append(events.ProviderEvent("google", self.kind, kept(fields)))
        self.start(fields, path, {"type": "tool_call_chunk", "name": name})
        self.interaction.calls_client = True

    def add_fields(self, delta: Json) -> bool:
        """Read a delta. Arguments make the call invalid if it has ended, and a piece of them if it had an object."""
        args = _arguments(delta.get("arguments", delta.get("partial_arguments")), "delta.arguments")
        has_more = self.writes == "object" and isinstance(args, str) and args.strip() != ""
        if self.writes is not None and not has_more:
            return super().add_fields(delta)
        if not args or self.late_is_known:
            return False
        self.late_is_known, self.writes = True, None
        text = args if isinstance(args, str) else json.dumps(thaw(args), ensure_ascii=False)
        self.blocks.finish(self.block, arguments_after_end(text))
        return True

    READS = {**_AnyCall.READS, "arguments_delta": add_fields}

    def is_doubtful(self) -> bool:
        """A call without arguments needs none, or was cut off before they came."""
        return self.writes == "call"

    def finish_block(self, cut: str | None, /) -> None:
        self.blocks.finish(self.block, None if cut is None else invalid_call(cut))


class ServerCall(_AnyCall):
    """A call of one of the provider's own tools."""

    def begin(self, fields: Json, path: str, /) -> None:
        name = READ.text_of(fields, "name", path) or default_tool_name(self.kind)
        self.start(fields, path, {"type": "server_tool_call_chunk", "name": name, PROVIDER_TYPE: self.kind})


class Result(_Tool):
    """The result of one of the provider's own tools. Deltas exist for the step but not for the block."""

    def __init__(self, interaction: Interaction, index: int, kind: str, fields: Json) -> None:
        super().__init__(interaction, index, kind, fields)
        self._output = GrowingList()
        self._type: type | None = None  # of its pieces

    def begin(self, fields: Json, path: str, /) -> None:
        call_id = real_id(READ.text_of(fields, "call_id", path)) or real_id(READ.text_of(fields, "id", path))
        output = freeze(fields.get("result"), lenient=True)
        known = {
            "tool_call_id": call_id,
            PROVIDER_TYPE: self.kind,
            "status": _status(fields),
            "output": output,
        }
        self.start_block(
            "result", {**_signed(others(fields, _RESULT)), "type": "server_tool_result", **known}
        )
        if output is not None:
            self._output, self._type = GrowingList([output]), type(output)

    def add_known(self, delta: Json, fields: dict[str, Any]) -> None:
        call_id = real_id(word(delta.get("call_id")))
        if call_id:
            fields["tool_call_id"] = call_id
        if delta.get("is_error") is not None:
            fields["status"] = _status(delta)
        if delta.get("result") is not None:
            self._add_output(freeze(delta["result"], lenient=True))
        if fields:
            self.blocks.change(self.block, fields)

    def _add_output(self, result: Any) -> None:
        """Add a piece of a text or a list. Any other value replaces the previous value."""
        continues = isinstance(result, (str, list))
        if not continues or type(result) is not self._type:
            self._output, self._type = GrowingList(), type(result)
        self._output.add(result, len(result) if continues else 1)
        self._emit_output(at_end=False)

    def _emit_output(self, *, at_end: bool) -> None:
        output = self._output.take(at_end=at_end)
        if output is not None:
            self.blocks.change(self.block, {"output": _joined(output)})

    def flush(self) -> None:
        self._emit_output(at_end=True)


def _signed(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, SIGNED_BY: GOOGLE} if "signature" in fields else fields


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], str):
        return "".join(pieces)
    return [item for piece in pieces for item in piece] if isinstance(pieces[0], list) else pieces[0]


def _status(fields: Json) -> str | None:
    failed = fields.get("is_error")
    return "error" if failed is True else "success" if failed is False else None


def _written(args: str | Json) -> str:
    return "arguments" if isinstance(args, str) else "object"


def _arguments(value: object, path: str) -> str | Json:
    """The arguments of a call: a piece of their text, or the object if it is not empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    found: Json = freeze(READ.mapping(value, path), lenient=True)
    return found or ""


_ARGUMENTS = frozenset(["arguments", "partial_arguments"])
_CALL = frozenset(["type", "id", "name", "arguments"])
_OF_A_CALL = _CALL | {"signature"}
_RESULT = frozenset(["type", "id", "call_id", "result", "is_error"])
_TOOL_DELTA = frozenset(
    ["type", "id", "call_id", "name", "arguments", "partial_arguments", "result", "is_error"]
)


class Steps:
    """The newest step at each index, and the call whose finish waits for the next step.

    Attributes:
        at: The steps by index.
        held: A call without arguments that has stopped. The next event shows whether it was cut off.
    """

    def __init__(self, interaction: Interaction) -> None:
        self.at: dict[int, Step] = {}
        self.held: Step | None = None
        self._interaction = interaction
        self._newest: Step | None = None

    def index_of(self, chunk: Json) -> int:
        """The index in a chunk. Without one, as chunks once were, it belongs to the newest step."""
        index = chunk.get("index")
        if index is None:
            return 0 if self._newest is None else self._newest.index
        return READ.index(index, "index")

    def begin(self, index: int, kind: str, fields: Json, path: str) -> Step:
        self.release()
        before = self.at.get(index)
        if before is not None:
            before.stop()
        step = self.at[index] = self._newest = _class_of(kind)(self._interaction, index, kind, fields)
        step.begin(fields, path)
        return step

    def for_delta(self, index: int, kind: str) -> Step | None:
        """The step that takes a delta of this type. If its start was lost, content or a thought begins it."""
        step = self.at.get(index)
        if step is None or step.stopped:
            if step is not None and step is self.held and kind in _CALL_DELTAS:
                self.held, step.stopped = None, False
            elif isinstance(step, Call) and kind in _CALL_DELTAS:
                pass
            elif kind in _BEGUN_BY:
                step = self.begin(index, _BEGUN_BY[kind], {}, "step")
            else:
                return None
        self.release()
        return step

    def stop(self, index: int) -> None:
        step = self.at.get(index)
        if step is None or step.stopped:
            return
        if step.is_doubtful():
            self.release()
            self.held, step.stopped = step, True
        else:
            step.stop()

    def release(self, cut: str | None = None) -> None:
        """Finish the held call. `cut` is why it may be cut off."""
        held, self.held = self.held, None
        if held is not None:
            held.stopped = False
            held.stop(cut)

    def finish(self, cut: str | None) -> None:
        self.release(cut)
        for step in self.at.values():
            step.stop(cut)

    def flush(self) -> None:
        for step in self.at.values():
            if step.writes is not None:
                step.flush()

    def clear(self) -> None:
        self.at.clear()
        self.held = self._newest = None


def _class_of(kind: str) -> type[Step]:
    known = _STEPS.get(kind)
    if known is not None:
        return known
    if kind.endswith("_call"):
        return ServerCall
    return Result if kind.endswith("_result") else Step


_STEPS: Mapping[str, type[Step]] = {
    "thought": Thought,
    "model_output": Output,
    "function_call": Call,
    "mcp_server_tool_call": ServerCall,
    "user_input": ClientStep,
    "function_result": ClientStep,
    "text": Content,
    **dict.fromkeys(MEDIA, Content),
}
_CALL_DELTAS = ("arguments_delta", "function_call")
_BEGUN_BY = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    **dict.fromkeys(MEDIA, "model_output"),
    "thought_summary": "thought",
    "thought_signature": "thought",
}
