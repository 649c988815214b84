"""Events → the stream of Anthropic's Messages API, which Claude Code and Anthropic's packages read.

    stream = message_start block* (message_delta message_stop | error)
    block  = content_block_start content_block_delta* content_block_stop

One block is open at a time. A message that has broken off has no `message_stop`, and its open block no end. Blocks are
those that a request would send back, so what goes out and what comes back have one spelling.

First the frames of a block, then those of the stream; at the end the whole body for a client that doesn't stream, and how the
API is served.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
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
    thaw,
)
from rxdelta.core.events import StreamError
from rxdelta.formats.anthropic_messages.blocks import FORMAT, RESULT_SUFFIX, SERVER_CALLS
from rxdelta.formats.anthropic_messages.request import CITATIONS, written_block
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked, masked, named_frames
from rxdelta.formats.format import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, named_sse_frame
from rxdelta.formats.notes import ANTHROPIC, REDACTED, readable, signature_of
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
from rxdelta.framing import NamedFrame

# Blocks are untyped JSON.


_READERS: Final = frozenset([FORMAT, ANTHROPIC])


class Content(Reply):
    """The part of the message that the client has.

    Attributes:
        unseen: The ids of the provider's calls that the client doesn't see.
    """

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self.unseen: set[object] = set()

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type == "reasoning" and not self.writer.reasoning:
            return Part(run, fold)
        if isinstance(block, ToolCall) and block.type != "server_tool_call":
            return _Call(run, fold)
        if block.type in ("text", "refusal"):
            return _Text(run, fold)
        if isinstance(block, ContentPart) and block.type == "reasoning" and not block.options.get(REDACTED):
            return _Thinking(run, fold)
        return _Whole(run, fold)


class _Frames(Item):
    """The base of all blocks."""

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.run.choice.writer.out.append(NamedFrame(type=kind, index=self.place, **fields))

    def write_end(self) -> None:
        self.emit("content_block_stop")


class _Text(_Frames, TextItem):
    def write_start(self) -> None:
        self.emit("content_block_start", content_block={"type": "text", "text": ""})

    def write_piece(self, piece: str, /) -> None:
        self.emit("content_block_delta", delta={"type": "text_delta", "text": piece})

    def write_end(self) -> None:
        for citation in self.block.citations:
            if (written := written_citation(citation)) is not None:
                self.emit("content_block_delta", delta={"type": "citations_delta", "citation": written})
        super().write_end()


class _Thinking(_Frames, TextItem):
    """A reasoning. Without a signature of Anthropic's, the client leaves it out of its next request."""

    def is_shown(self) -> bool:
        return signature_of(self.block, _READERS) is not None

    def write_start(self) -> None:
        self.emit("content_block_start", content_block={"type": "thinking", "thinking": "", "signature": ""})

    def write_piece(self, piece: str, /) -> None:
        self.emit("content_block_delta", delta={"type": "thinking_delta", "thinking": piece})

    def write_end(self) -> None:
        if (signature := signature_of(self.block, _READERS)) is not None:
            self.emit("content_block_delta", delta={"type": "signature_delta", "signature": signature})
        super().write_end()


class _Call(_Frames, CallItem):
    takes_unreadable = (
        False  # the protocol has no place for it, and some clients repair what they can't read, and run it
    )

    def arguments(self) -> str:
        return _json(self.arguments_as_object())

    def write_start(self) -> None:
        block = {**(written_block(self.call) or {}), "type": "tool_use", "id": self.call_id, "input": {}}
        self.emit("content_block_start", content_block=block)

    def write_piece(self, piece: str, /) -> None:
        self.emit("content_block_delta", delta={"type": "input_json_delta", "partial_json": piece})


class _Whole(_Frames):
    """A block that only Anthropic's clients know: redacted thinking, the calls that Anthropic runs, their results, …"""

    def is_shown(self) -> bool:
        block, unseen = self.fold.block, cast("Content", self.run.choice).unseen
        own = own_block(block)
        if own is None:
            if isinstance(block, ToolCall):
                unseen.add(block.call_id)
            return False
        call_id = own.get("tool_use_id", self)  # only a result has it
        is_name = call_id is None or isinstance(call_id, str)
        return not (is_name and call_id in unseen)  # the API refuses a result without its call

    def write_end(self) -> None:
        block = own_block(self.fold.block) or {}
        given: Any = block.get("input")
        if block["type"] == "compaction":
            block, summary = {**block, "content": None}, block.get("content")
            self.emit("content_block_start", content_block=block)
            self.emit("content_block_delta", delta={"type": "compaction_delta", "content": summary})
        else:
            self.emit("content_block_start", content_block=block if given is None else {**block, "input": {}})
        if given:
            self.emit("content_block_delta", delta={"type": "input_json_delta", "partial_json": _json(given)})
        super().write_end()


def own_block(block: Block) -> JsonObject | None:
    """A block of a kind that only Anthropic has, in its form; `None` for other blocks, and for other vendors'."""
    known = readable(block, _READERS)
    found = None if known is None else written_block(known)
    if found is None or not (found["type"] in _OWN or found["type"].endswith(RESULT_SUFFIX)):
        return None
    return found


def written_citation(citation: Citation) -> JsonObject | None:
    """A citation in Anthropic's form: its own, or an address; `None` for a source without one."""
    raw: JsonObject = thaw(citation.raw)
    if raw.get("type") in CITATIONS:
        return raw
    if not citation.url:
        return None
    known = {"cited_text": citation.cited_text or "", "title": citation.title, "url": citation.url}
    return {"type": "web_search_result_location", "encrypted_index": "", **known}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_OWN: Final = frozenset(["redacted_thinking", *SERVER_CALLS, "fallback", "compaction", "container_upload"])


class MessageFrames(Writer):
    """Writes the frames of one message."""

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.out.append(NamedFrame(type=kind, **fields))

    def start(self, counts: Counts, /) -> None:
        usage = {"input_tokens": 0, "output_tokens": 0, **_usage(counts)}
        message: dict[str, Any] = {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        self.emit("message_start", message=message)

    def end(self, reason: str, counts: Counts, /) -> None:
        delta = {"stop_reason": _REASONS[reason], "stop_sequence": None}
        self.emit("message_delta", delta=delta, usage={"output_tokens": 0, **_usage(counts)})
        self.emit("message_stop")

    def fail(self, message: str, kind: str | None, _: str | None, /) -> None:
        known = kind if kind in _ERRORS or (self.is_provider and kind) else "api_error"
        self.emit("error", error={"type": known, "message": message})


class AnthropicMessagesEncoder(ReplyEncoder[NamedFrame]):
    """The frames of one message.

    Args:
        now: The time, in seconds since 1970; not written.
        new_id: An id for a reply that has none.
        model, tools, on_error, reasoning, limits: As for `rxdelta.to_anthropic_messages`.
        choice: Which of several alternative replies is written.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.AnthropicMessagesEncoder(now=lambda: 1.5, new_id=lambda: "msg_1")
        >>> frames = [frame for event in rd.to_events(rd.Message.of("assistant", "Hi")) for frame in encoder.encode(event)]
        >>> [frame["delta"] for frame in frames if frame["type"] == "content_block_delta"]
        [{'type': 'text_delta', 'text': 'Hi'}]
        >>> [frame["type"] for frame in encoder.close()]
        ['message_delta', 'message_stop']
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None = None,
        tools: Collection[str] | None = None,
        on_error: Masked = masked,
        reasoning: bool = True,
        choice: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        writer = MessageFrames(now=now, new_id=new_id, model=model, tools=tools, reasoning=reasoning)
        super().__init__(writer, Content, on_error=on_error, limits=limits, choice=choice)


def _usage(counts: Counts) -> dict[str, Any]:
    """The counts in Anthropic's form, whose input excludes what a cache reads and writes."""
    found: dict[str, Any] = {theirs: counts[ours] for theirs, ours in _COUNTS.items() if ours in counts}
    if "input_tokens" in found:
        cached = counts.get("cache_read_tokens", 0) + counts.get("cache_write_tokens", 0)
        found["input_tokens"] = max(0, found["input_tokens"] - cached)
    if "output_reasoning_tokens" in counts:
        found["output_tokens_details"] = {"thinking_tokens": counts["output_reasoning_tokens"]}
    return found


_COUNTS: Final[Mapping[str, str]] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
_REASONS: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "tool_use": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "pause": "pause_turn",
}
_ERRORS: Final = frozenset(
    ["overloaded_error", "rate_limit_error", "api_error", "timeout_error", "invalid_request_error"]
)
"""The types of errors that say something to Anthropic's clients, such as when to ask again."""


def anthropic_message(frames: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a response to a request without `stream`: what the frames of `to_anthropic_messages` say together.

    A call that the token limit has cut is left out.

    Returns:
        A `message`; `{"type": "error", "error": …}` alone if the frames end with an error, for a response with the status
        500.

    Raises:
        InvalidValueError: The frames have no end, as those of a stream that is still running, or are not the operator's.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_anthropic_messages("house"), ops.to_list()).run()
        >>> body = rd.wire.anthropic_message(frames)
        >>> body["content"], body["stop_reason"]
        ([{'type': 'text', 'text': 'Hi'}], 'end_turn')
    """
    message: dict[str, Any] = {}
    pieces: dict[int, list[Any]] = {}  # what the frames of each block say, in their order
    last = None
    for frame in named_frames(frames, "to_anthropic_messages"):
        last = frame["type"]
        if last == "error":
            return {"type": "error", "error": frame["error"]}
        if last == "message_start":
            message = {**frame["message"], "content": []}
        elif last == "content_block_start":
            pieces[frame["index"]] = [frame["content_block"]]
        elif last == "content_block_delta":
            pieces[frame["index"]].append(frame["delta"])
        elif last == "content_block_stop":
            block = _block(*pieces.pop(frame["index"]))
            message["content"] += [] if block is None else [block]
        elif last == "message_delta":
            message |= frame["delta"]
            message["usage"] = {**message["usage"], **frame["usage"]}
    if last != "message_stop":
        raise InvalidValueError.of([("frames", last, "must end as a message does")])
    return message


def _block(start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> dict[str, Any] | None:
    """A block as its frames say it; `None` for a call that can't be read."""
    block = {**start}
    texts: dict[str, list[str]] = {}
    for delta in deltas:
        if delta["type"] == "citations_delta":
            block["citations"] = [*block.get("citations", ()), delta["citation"]]
        elif delta["type"] == "compaction_delta":
            block["content"] = delta["content"]
        else:
            field = _FIELDS[delta["type"]]
            texts.setdefault(field, []).append(delta[field])
    joined: dict[str, Any] = {field: "".join(said) for field, said in texts.items()}
    if "partial_json" in joined:
        try:
            joined["input"] = json.loads(joined.pop("partial_json"))
        except ValueError:
            return None
    return block | joined


_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


def writer(on_error: Masked) -> AnthropicMessagesEncoder:
    return as_provider(
        AnthropicMessagesEncoder(now=lambda: CREATED, new_id=lambda: REPLY_ID, tools=(), on_error=on_error)
    )


def owns(block: Block, kind: str) -> bool:
    """Whether the block is one of Anthropic's own, or cites in its own form."""
    if isinstance(block, ContentPart) and kind == "citation_without_url":
        return all(written_citation(citation) is not None for citation in block.citations)
    return own_block(block) is not None


def _error(error: StreamError, status: int) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": error.type or _TYPES.get(status, "api_error"), "message": error.message},
    }


_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_MODEL: Final = {
    "type": "model",
    "id": FAKE_MODEL,
    "display_name": FAKE_MODEL,
    "created_at": "2023-11-14T22:13:20Z",
}
_PAGE: Final = {"data": [_MODEL], "has_more": False, "first_id": FAKE_MODEL, "last_id": FAKE_MODEL}

ENDPOINT: Final = Endpoint(
    paths=["/v1/messages"],
    streams=by_body(),
    frame=named_sse_frame,
    error=_error,
    whole=anthropic_message,
    lookups={"/v1/models": _PAGE, f"/v1/models/{FAKE_MODEL}": _MODEL},
    environment={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": FAKE_KEY},
)
