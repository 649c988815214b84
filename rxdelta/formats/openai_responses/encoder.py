"""Events → the stream of OpenAI's Responses API, which Codex, the Agents SDK and OpenAI's packages read.

    stream = created in_progress item* (completed | incomplete | error failed)
    item   = output_item.added part* output_item.done

A block is an item, and one item is open at a time. The last frame has the whole response, with all items that have ended.
Items are those that a request would send back, so what goes out and what comes back have one spelling.

First the frames that belong to no item, then those of each item, then the stream; at the end the whole body for a client that
doesn't stream, and how the API is served.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, cast

from rxdelta.core import (
    DEFAULT_LIMITS,
    Block,
    BlockFold,
    Citation,
    ContentPart,
    InvalidValueError,
    Limits,
    ToolCall,
    is_mapping,
    thaw,
)
from rxdelta.formats.conversation import Turn, medium_of
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked, masked, named_frames
from rxdelta.formats.format import Endpoint, by_body, named_sse_frame, typed_error
from rxdelta.formats.notes import ITEM_ID, signature_of
from rxdelta.formats.openai_responses.notes import FORMAT, made_id
from rxdelta.formats.openai_responses.request import ANNOTATIONS, ReplyItems, call_type, written_call
from rxdelta.formats.provider_reply import CREATED, REPLY_ID
from rxdelta.formats.reply import (
    CallItem,
    Counts,
    Item,
    Part,
    Reply,
    ReplyEncoder,
    Run,
    TextItem,
    Writer,
    as_provider,
)
from rxdelta.formats.reply.writer import are_names
from rxdelta.framing import NamedFrame


class ResponseFrames(Writer):
    """Writes the frames of one response.

    Attributes:
        custom: The client's tools that aren't plain functions, by their names.
        output: The items that have ended.
    """

    def __init__(self, custom: Mapping[str, Mapping[str, str]], **options: Any) -> None:
        super().__init__(**options)
        self.custom = custom
        self.output: list[Mapping[str, Any]] = []
        self._ids: set[str] = set()
        self._number = 0
        self._has_begun = False

    def next_number(self) -> int:
        """The number of the next frame."""
        self._number += 1
        return self._number - 1

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.out.append(NamedFrame(type=kind, sequence_number=self.next_number(), **fields))

    def start(self, _: Counts, /) -> None:
        self._has_begun = True
        self.emit("response.created", response=self._response("in_progress"))
        self.emit("response.in_progress", response=self._response("in_progress"))

    def end(self, reason: str, counts: Counts, /) -> None:
        cut = _CUT.get(reason)
        status, details = ("completed", None) if cut is None else ("incomplete", {"reason": cut})
        self.emit(
            f"response.{status}",
            response=self._response(status, incomplete_details=details, usage=_usage(counts)),
        )

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        """Write both of the API's ways to say it: of these, some clients read `error`, and others `response.failed`."""
        known = kind if kind in _ERRORS else "server_error"
        if not self._has_begun:
            self.start({})
        self.emit("error", code=(code or kind) if self.is_provider else known, message=message, param=None)
        self.emit(
            "response.failed", response=self._response("failed", error={"code": known, "message": message})
        )

    def own_id(self, found: object, prefix: str, place: int) -> str:
        """The id of an item: its own, if no other item has it; else one by its place."""
        own = found if isinstance(found, str) and found else made_id(prefix, self.id, place)
        if own in self._ids:
            own = made_id(prefix, self.id, place)
        while own in self._ids:  # a gateway's own items may have such ids, too
            own += "_"
        self._ids.add(own)
        return own

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self.model,
            "output": [*self.output],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
            **more,
        }


def _usage(counts: Counts) -> dict[str, Any] | None:
    """The counts as the API's object, all of whose fields are required; `None` if no total is known."""
    if counts.keys().isdisjoint(("input_tokens", "output_tokens")):
        return None
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": counts.get("cache_read_tokens", 0),
            "cache_write_tokens": counts.get("cache_write_tokens", 0),
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": counts.get("output_reasoning_tokens", 0)},
        "total_tokens": given + made,
    }


_CUT: Final[Mapping[str, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by our reason."""

_ERRORS: Final = frozenset(["server_error", "rate_limit_exceeded"])
"""The API's own words that say something of a stream. OpenAI's types know others, which are about a request."""


# Items are untyped JSON.


_READERS: Final = frozenset([FORMAT])


class _ItemFrames(Item):
    """The base of all items.

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

    def added(self, found: object, item: JsonObject) -> None:
        self.id = self.frames.own_id(found, self.prefix, self.place)
        self.frames.emit("response.output_item.added", output_index=self.place, item={**item, "id": self.id})

    def ended(self, item: JsonObject) -> None:
        item = {**item, "id": self.id}
        self.frames.output.append(item)
        self.frames.emit("response.output_item.done", output_index=self.place, item=item)


class TextFrames(_ItemFrames, TextItem):
    """A message with one text."""

    prefix = "msg"

    def part(self, text: str) -> JsonObject:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def item(self, status: str, *parts: JsonObject) -> JsonObject:
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

    def part(self, text: str) -> JsonObject:
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
        """The reasoning that the vendor has encrypted, for a client whose own vendor can read it."""
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
        """The kind of the client's tool if it isn't a function; another provider's model knows functions only."""
        return {} if ITEM_ID in self.call.metadata else self.frames.custom.get(self.call.name or "", {})

    def comes_whole(self) -> bool:
        return self._type() != _FUNCTION

    def _item(self) -> JsonObject:
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

    def items(self) -> list[JsonObject]:
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

    def items(self) -> list[JsonObject]:
        own = super().items()
        block = self.fold.block
        medium = medium_of(block) if isinstance(block, ContentPart) and not own else None
        if medium is None or medium.data is None:
            return own
        return [{"type": "image_generation_call", "status": "completed", "result": medium.data}]


class Response(Reply):
    """The part of the response that the client has.

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


def own_items(*blocks: Block) -> list[JsonObject]:
    """The items that OpenAI has made, of a call that it ran and the result, or of another block."""
    items = ReplyItems(Turn("assistant", blocks)).items()
    # A call of xAI's own search has a client's type: a client would run it.
    return [
        item for item in items if "id" in item and isinstance(item["type"], str) and item["type"] != _CUSTOM
    ]


def _summary(text: str) -> JsonObject:
    return {"type": "summary_text", "text": text}


def written_annotation(citation: Citation, text: str) -> JsonObject | None:
    """A citation in the API's form: its own, or an address in the text; `None` for a source without one."""
    raw: JsonObject = thaw(citation.raw)
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
_SEARCHED: Final[JsonObject] = {"execution": "server", "call_id": None, "status": "completed"}
_REQUIRED: Final[Mapping[str, JsonObject]] = {
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


class OpenAiResponsesEncoder(ReplyEncoder[NamedFrame]):
    """The frames of one response.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a reply that has none.
        model, tools, custom, on_error, reasoning, limits: As for `rxdelta.to_openai_responses`.
        choice: Which of several alternative replies is written.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.OpenAiResponsesEncoder(now=lambda: 1.5, new_id=lambda: "resp_1")
        >>> frames = [frame for event in rd.to_events(rd.Message.of("assistant", "Hi")) for frame in encoder.encode(event)]
        >>> [frame["type"] for frame in frames][:3]
        ['response.created', 'response.in_progress', 'response.output_item.added']
        >>> [(frame["type"], frame["response"]["output"][0]["content"][0]["text"]) for frame in encoder.close()]
        [('response.completed', 'Hi')]
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None = None,
        tools: Collection[str] | None = None,
        custom: Collection[str] | Mapping[str, Mapping[str, str]] = (),
        on_error: Masked = masked,
        reasoning: bool = True,
        choice: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        writer = ResponseFrames(
            _tools(custom), now=now, new_id=new_id, model=model, tools=tools, reasoning=reasoning
        )
        super().__init__(writer, Response, on_error=on_error, limits=limits, choice=choice)


def _tools(custom: Any) -> Mapping[str, Mapping[str, str]]:
    """The client's tools that aren't plain functions, by their names."""
    if not are_names(custom) or (is_mapping(custom) and not all(map(is_mapping, custom.values()))):
        wanted = "must be the names of the client's tools that take a text, such as apply_patch"
        advice = "custom_tools_from_openai_responses(body) has them"
        raise InvalidValueError.of([("custom", custom, wanted, advice)])
    if is_mapping(custom):
        return {name: {**found} for name, found in custom.items()}
    return {name: {"type": "custom"} for name in cast("Collection[str]", custom)}


def openai_response(frames: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a response to a request without `stream`: what the frames of `to_openai_responses` say together.

    Returns:
        A `response`; `{"error": …}` alone if the frames end with an error, for a response with the status 500.

    Raises:
        InvalidValueError: The frames have no end, as those of a stream that is still running, or are not the operator's.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_openai_responses("house"), ops.to_list()).run()
        >>> body = rd.wire.openai_response(frames)
        >>> body["status"], body["output"][0]["content"][0]["text"]
        ('completed', 'Hi')
    """
    last: Mapping[str, Any] = {}
    for last in named_frames(frames, "to_openai_responses"):
        if last["type"] == "error":
            error = {name: last[name] for name in ("message", "code", "param")}
            return {"error": {"type": last["code"], **error}}
    if last.get("type") not in ("response.completed", "response.incomplete"):
        raise InvalidValueError.of([("frames", last.get("type"), "must end as a response does")])
    return {**last["response"]}


def writer(on_error: Masked) -> OpenAiResponsesEncoder:
    return as_provider(
        OpenAiResponsesEncoder(now=lambda: CREATED, new_id=lambda: REPLY_ID, tools=(), on_error=on_error)
    )


def owns(block: Block, kind: str) -> bool:
    """Whether the block is an item of OpenAI's own or a part of one, or cites in OpenAI's own form."""
    if isinstance(block, ContentPart) and kind == "citation_without_url":
        return all(written_annotation(citation, block.text or "") is not None for citation in block.citations)
    if isinstance(block, ContentPart) and block.type == "server_tool_result":
        return ITEM_ID in block.options  # its call's item has it
    return bool(own_items(block))


ENDPOINT: Final = Endpoint(
    base="/v1",
    paths=["/responses"],
    streams=by_body(),
    frame=named_sse_frame,
    error=typed_error,
    whole=openai_response,
)
