"""The items of a response that is written to a client: of each block, what the client has."""

# Items are untyped JSON.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from rxdelta.core import Block, BlockFold, Citation, ContentPart, Limits, ToolCall, thaw
from rxdelta.formats.conversation import Turn
from rxdelta.formats.media import medium_of
from rxdelta.formats.notes import ITEM_ID
from rxdelta.formats.openai_responses.reading import FORMAT
from rxdelta.formats.openai_responses.request import ANNOTATIONS, ReplyItems, call_type, written_call
from rxdelta.formats.openai_responses.response_frames import ResponseFrames
from rxdelta.formats.reply import CallItem, Item, Part, Reply, Run, TextItem, Writer
from rxdelta.formats.signatures import signature_of
from rxdelta.framing import NamedFrame

__all__ = ["Response", "own_items", "written_annotation"]

Json: TypeAlias = dict[str, Any]

_READERS: Final = frozenset([FORMAT])


class _ItemFrames(Item):
    """What all items have.

    Attributes:
        id: The item's id, once it has begun.
    """

    prefix = "item"
    id = ""

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self.frames = cast("ResponseFrames", run.choice.writer)

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.frames.emit(kind, item_id=self.id, output_index=self.place, **fields)

    def added(self, found: object, item: Json) -> None:
        self.id = self.frames.own_id(found, self.prefix, self.place)
        self.frames.emit("response.output_item.added", output_index=self.place, item={**item, "id": self.id})

    def ended(self, item: Json) -> None:
        item = {**item, "id": self.id}
        self.frames.output.append(item)
        self.frames.emit("response.output_item.done", output_index=self.place, item=item)


class TextFrames(_ItemFrames, TextItem):
    """A message with one text."""

    prefix = "msg"

    def part(self, text: str) -> Json:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def item(self, status: str, *parts: Json) -> Json:
        phase = self.block.options.get("phase")
        more = {"phase": phase} if phase in _PHASES else {}
        return {"type": "message", "status": status, "role": "assistant", "content": [*parts], **more}

    def write_start(self) -> None:
        self.added(self.block.options.get(ITEM_ID), self.item("in_progress"))
        self.emit("response.content_part.added", content_index=0, part=self.part(""))

    def write_piece(self, piece: str, /) -> None:
        frames = self.frames
        frames.out.append(
            NamedFrame(  # not by `emit`, because most frames are these
                type="response.output_text.delta",
                sequence_number=frames.next_number(),
                item_id=self.id,
                output_index=self.place,
                content_index=0,
                delta=piece,
                logprobs=[],
            )
        )

    def write_end(self) -> None:
        text = self.block.text or ""
        part = self.part(text)
        cited = (written_annotation(citation, text) for citation in self.block.citations)
        part["annotations"] = annotations = [one for one in cited if one is not None]
        for place, annotation in enumerate(annotations):
            self.emit(
                "response.output_text.annotation.added",
                content_index=0,
                annotation_index=place,
                annotation=annotation,
            )
        self.emit("response.output_text.done", content_index=0, text=text, logprobs=[])
        self.emit("response.content_part.done", content_index=0, part=part)
        self.ended(self.item("completed", part))


class RefusalFrames(TextFrames):
    """A message with one refusal."""

    def part(self, text: str) -> Json:
        return {"type": "refusal", "refusal": text}

    def write_piece(self, piece: str, /) -> None:
        self.emit("response.refusal.delta", content_index=0, delta=piece)

    def write_end(self) -> None:
        part = self.part(self.block.text or "")
        self.emit("response.refusal.done", content_index=0, refusal=part["refusal"])
        self.emit("response.content_part.done", content_index=0, part=part)
        self.ended(self.item("completed", part))


class ReasoningFrames(_ItemFrames, TextItem):
    """A reasoning, as a summary of one part: clients show nothing else, and the lengths of parts are known at the end only."""

    prefix = "rs"
    _has_part = False

    def is_shown(self) -> bool:
        return ITEM_ID in self.block.options or self._encrypted() is not None

    def _encrypted(self) -> str | None:
        """What the vendor has encrypted, for a client whose own vendor can read it."""
        return signature_of(self.block, _READERS)

    def write_start(self) -> None:
        self.added(self.block.options.get(ITEM_ID), {"type": "reasoning", "summary": []})

    def write_piece(self, piece: str, /) -> None:
        if not self._has_part:
            self._has_part = True
            self.emit("response.reasoning_summary_part.added", summary_index=0, part=_summary(""))
        self.emit("response.reasoning_summary_text.delta", summary_index=0, delta=piece)

    def write_end(self) -> None:
        text, encrypted = self.block.text or "", self._encrypted()
        if self._has_part:
            self.emit("response.reasoning_summary_text.done", summary_index=0, text=text)
            self.emit("response.reasoning_summary_part.done", summary_index=0, part=_summary(text))
        more = {} if encrypted is None else {"encrypted_content": encrypted}
        self.ended({"type": "reasoning", "summary": [_summary(text)] if text else [], **more})


class CallFrames(_ItemFrames, CallItem):
    """A call that the client may have to run."""

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._pieces: list[str] = []  # of the arguments, which the end repeats to the letter
        self._is_whole = False

    def _type(self) -> str:
        return _CUSTOM if self._is_custom() else call_type(self.call)

    def _is_custom(self) -> bool:
        """Whether the client's tool takes a text, which another provider's model has written as the one argument."""
        return self._wanted().get("type") == "custom"

    def _wanted(self) -> Mapping[str, str]:
        """What the client's tool is beyond a function, of which another provider's model knows nothing."""
        return {} if ITEM_ID in self.call.metadata else self.frames.custom.get(self.call.name or "", {})

    def comes_whole(self) -> bool:
        return self._type() != _FUNCTION

    def _item(self) -> Json:
        item = written_call(self.call)
        if self._is_custom():
            given: Any = thaw(self.call.arguments)
            text = given.get("input") if isinstance(given, dict) else given
            text = text if isinstance(text, str) else self.arguments()
            item = {"type": _CUSTOM, "name": self.call.name, "input": text}
        namespace = self._wanted().get("namespace")
        return {**item, "call_id": self.call_id, **({"namespace": namespace} if namespace else {})}

    def write_start(self) -> None:
        item = self._item()
        self._is_whole = item["type"] != _FUNCTION
        self.prefix = _PREFIXES.get(item["type"], "fc")
        empty = {_FUNCTION: "arguments", _CUSTOM: "input"}.get(item["type"])
        self.added(item.get("id"), {**item, empty: "", "status": "in_progress"} if empty else item)

    def write_piece(self, piece: str, /) -> None:
        if not self._is_whole:
            self._pieces.append(piece)
            self.emit("response.function_call_arguments.delta", delta=piece)

    def write_end(self) -> None:
        item = self._item()
        if item["type"] == _FUNCTION:
            item["arguments"] = "".join(self._pieces)
            item["status"] = "completed" if self.call.type == "tool_call" else "incomplete"
            self.emit("response.function_call_arguments.done", arguments=item["arguments"], name=item["name"])
        elif item["type"] == _CUSTOM:
            self.emit("response.custom_tool_call_input.delta", delta=item["input"])
            self.emit("response.custom_tool_call_input.done", input=item["input"])
        self.ended({**_REQUIRED.get(item["type"], {}), **item})


class OwnFrames(_ItemFrames):
    """An item that OpenAI has made beside texts and calls for the client: its own tools' calls with their results, …

    Without it the next request would have reasoning without the item that it led to, which OpenAI refuses. A call waits for
    its result, which is another block of the same item.
    """

    _result: Block | None = None

    def items(self) -> list[Json]:
        return own_items(self.fold.block, *([] if self._result is None else [self._result]))

    def catch_up(self) -> None:
        block = self.fold.block
        if self.done or self.waits or block.open:
            return
        self.done = self._joins_its_call(block) or not self.items()
        if self.done or not self.run.choice.turn(self):
            return
        self.told = True
        self.waits = isinstance(block, ToolCall) and self._result is None
        if not self.waits:
            self.end()

    def _joins_its_call(self, block: Block) -> bool:
        """Whether the block is the result of a call that isn't written yet."""
        calls = cast("Response", self.run.choice).own_calls
        if isinstance(block, ToolCall):
            calls[block.metadata.get(ITEM_ID)] = self
            return False
        call = calls.get(block.options.get(ITEM_ID)) if block.type == "server_tool_result" else None
        if call is None or call.done:
            return False
        call._result = block
        if call.waits:
            call.end()
        return True

    def end(self) -> None:
        self.begin()
        super().end()

    def write_end(self) -> None:
        item = self.items()[0]
        item = {**_REQUIRED.get(item["type"], {}), **item}
        self.added(item.get("id"), item)
        if item["type"] == "code_interpreter_call":
            # Clients take the code from these, and only the outputs from the item.
            code = item.get("code") or ""
            self.emit("response.code_interpreter_call_code.delta", delta=code)
            self.emit("response.code_interpreter_call_code.done", code=code)
        self.ended(item)


class ImageFrames(OwnFrames):
    """An image of any provider, in the form of an image by OpenAI's tool."""

    prefix = "ig"

    def items(self) -> list[Json]:
        own = super().items()
        block = self.fold.block
        medium = medium_of(block) if isinstance(block, ContentPart) and not own else None
        if medium is None or medium.data is None:
            return own
        return [{"type": "image_generation_call", "status": "completed", "result": medium.data}]


class Response(Reply):
    """What the client has of the response.

    Attributes:
        own_calls: The calls of OpenAI's own tools, by the ids of their items.
    """

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self.own_calls: dict[object, OwnFrames] = {}

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type == "reasoning" and not self.writer.reasoning:
            return Part(run, fold)
        if isinstance(block, ToolCall):
            return OwnFrames(run, fold) if block.type == "server_tool_call" else CallFrames(run, fold)
        return _ITEMS.get(block.type, OwnFrames)(run, fold)


def own_items(*blocks: Block) -> list[Json]:
    """The items that OpenAI has made, of a call that it ran and the result, or of another block."""
    items = ReplyItems(Turn("assistant", blocks)).items()
    # A call of xAI's own search has a client's type: a client would run it.
    return [
        item for item in items if "id" in item and isinstance(item["type"], str) and item["type"] != _CUSTOM
    ]


def _summary(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def written_annotation(citation: Citation, text: str) -> Json | None:
    """A citation in the API's form: its own, or an address in the text; `None` for a source without one."""
    raw: Json = thaw(citation.raw)
    needed = ANNOTATIONS.get(str(raw.get("type")))
    if needed is not None and needed <= raw.keys():
        return raw
    if not citation.url:
        return None
    start = 0 if citation.start_index is None else citation.start_index
    end = len(text) if citation.end_index is None else citation.end_index
    named = {"url": citation.url, "title": citation.title or citation.url}
    return {"type": "url_citation", **named, "start_index": start, "end_index": end}


_FUNCTION: Final = "function_call"
_CUSTOM: Final = "custom_tool_call"
_PREFIXES: Final = {_CUSTOM: "ctc"}
_SEARCHED: Final[Json] = {"execution": "server", "call_id": None, "status": "completed"}
_REQUIRED: Final[Mapping[str, Json]] = {
    _CUSTOM: {"status": "completed"},
    "tool_search_call": _SEARCHED,
    "tool_search_output": _SEARCHED,
}
"""The fields that clients require of an item beyond those of a request."""

_PHASES: Final = ("commentary", "final_answer")

_ITEMS: Final[Mapping[str, Callable[[Run, BlockFold], Part]]] = {
    "text": TextFrames,
    "refusal": RefusalFrames,
    "reasoning": ReasoningFrames,
    "image": ImageFrames,
}
