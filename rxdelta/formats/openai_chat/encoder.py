"""Events → chunks of a streamed chat completion, which every client of OpenAI's Chat Completions reads.

    stream = chunk* error? DONE
    chunk  = id object created model choices: [choice?] usage?
    choice = index delta finish_reason
    delta  = role? content? reasoning_content? refusal? tool_calls? annotations? images? audio?

First the types of the chunks, in which a key that may be missing is left out; then the chunks of a block, of a choice and of
the stream; then the whole body for a client that doesn't stream, and how the API is served.

A completion is one message: texts without a mark of their start or end, and calls for the client to run. A client runs all
calls that it sees. So it sees only those of the last message, without those that have begun to run or that are known to be
invalid; unless `tools` names the tools of the server, they wait for the end of the stream, when that is certain. Messages
before the last, such as an agent's turns, are texts in front of its own. A piece of a text is sent at once, any other block
when it has ended.

Nothing can be taken back. If a reply that the client has text of begins again, the stream ends with the error. A text that
its end corrects stays as it was sent.

The finish reasons, the usage of all messages and `DONE` come at the end of the source. A reply that has broken off has
neither reason nor usage, but the error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, cast

from rxdelta.core import DEFAULT_LIMITS, Block, BlockFold, Citation, ContentPart, Limits, ToolCall
from rxdelta.core.events import ToolUpdate
from rxdelta.formats.conversation import data_url, medium_of
from rxdelta.formats.encoding import Masked, masked, whole_characters
from rxdelta.formats.format import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, typed_error
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_chat.request import written_call
from rxdelta.formats.openai_chat.tables import CUSTOM_CALL
from rxdelta.formats.provider_reply import CREATED, REPLY_ID
from rxdelta.formats.reply import CallPart, Choice, Counts, Part, ReplyEncoder, Run, Writer, as_provider
from rxdelta.formats.reply.writer import most_of
from rxdelta.framing import DONE, Done, sse_frame


class Function(TypedDict):
    name: NotRequired[str]
    arguments: NotRequired[str]


class CustomInput(TypedDict):
    name: str
    input: str


class CallPiece(TypedDict):
    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function", "custom"]]
    function: NotRequired[Function]
    custom: NotRequired[CustomInput]
    extra_content: NotRequired[Any]


class UrlCitation(TypedDict):
    url: str
    title: str
    start_index: int
    end_index: int
    content: NotRequired[str]


class Annotation(TypedDict):
    index: int
    type: Literal["url_citation"]
    url_citation: UrlCitation


class Url(TypedDict):
    url: str


class Image(TypedDict):
    index: int
    type: Literal["image_url"]
    image_url: Url


class Audio(TypedDict):
    data: str
    id: NotRequired[str]
    transcript: NotRequired[str]
    expires_at: NotRequired[int]


class Delta(TypedDict, total=False):
    role: Literal["assistant"]
    content: str
    reasoning_content: str
    refusal: str
    tool_calls: list[CallPiece]
    annotations: list[Annotation]
    images: list[Image]
    audio: Audio


class ChoicePiece(TypedDict):
    index: int
    delta: Delta
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "pause"] | None


class Usage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: NotRequired[dict[str, int]]
    completion_tokens_details: NotRequired[dict[str, int]]


class Chunk(TypedDict):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChoicePiece]
    usage: NotRequired[Usage]


class ErrorText(TypedDict):
    message: str
    type: str


class Error(TypedDict):
    error: ErrorText


OpenAiChatFrame: TypeAlias = Chunk | Error
"""A chunk of a streamed chat completion, or the error that ends it."""


FIELDS: Final = {"text": "content", "refusal": "refusal", "reasoning": "reasoning_content"}
_AUDIO: Final = ("id", "transcript", "expires_at")


class TextChunks(Part):
    """A text, a refusal, or a reasoning."""

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._field = FIELDS[cast("ContentPart", fold.block).type]
        self._sent = 0  # characters of the block that the client has
        self._half = ""  # the first half of a character
        self._cited = 0
        self._start = self._end = _choice(self).length(
            self._field
        )  # the range of what the client has, in its content

    def grow(self, piece: str, /) -> None:
        if self.run.speaks:
            if self._half or not piece.isascii():
                piece, self._half = whole_characters(self._half, piece)
            self._send(piece)

    def _send(self, piece: str) -> None:
        if not piece:
            return
        self._end = _choice(self).say(self._field, piece)
        if not self._sent:
            self._start = self._end - len(piece)
        self._sent += len(piece)
        self.told = self._field != "reasoning_content"

    def follow(self, before: Block, /) -> None:
        block = cast("ContentPart", self.fold.block)
        text, sent = block.text or "", cast("ContentPart", before).text or ""
        if not self._sent:
            self._field = FIELDS[block.type]
        if not text.startswith(sent[: self._sent]):  # the client keeps what it has
            self._sent = len(text)

    def catch_up(self) -> None:
        block = cast("ContentPart", self.fold.block)
        text = block.text or ""
        self._send(text[self._sent :])
        self._half = self.fold.half
        if block.open or self._field != "content":
            return
        cited = [
            annotation
            for one in block.citations[self._cited :]
            if (annotation := self._annotation(one)) is not None
        ]
        self._cited = len(block.citations)
        if cited:
            _choice(self).add("annotations", cited)

    def _annotation(self, citation: Citation) -> Any:
        """A citation in OpenAI's form; `None` for a source without an address.

        Its range counts in the whole content, as OpenAI's clients require. Without a range of its own it is the block's.
        """
        if not citation.url:
            return None
        found: dict[str, Any] = {"url": citation.url, "title": citation.title or citation.url}
        if citation.cited_text:
            found["content"] = citation.cited_text
        found |= self._range(citation)
        return {"type": "url_citation", "url_citation": found}

    def _range(self, citation: Citation) -> dict[str, int]:
        start, end = self._start + (citation.start_index or 0), self._end
        if citation.end_index is not None:
            end = min(end, self._start + citation.end_index)
        return {"start_index": min(start, end), "end_index": end}


class MediumChunks(Part):
    """An image or a sound, which is sent when it is complete."""

    def catch_up(self) -> None:
        block = self.fold.block
        medium = medium_of(block) if isinstance(block, ContentPart) else None
        if block.open or self.told or medium is None:
            return
        address = data_url(medium)
        if medium.kind == "image" and address is not None:
            image: Any = {"type": "image_url", "image_url": {"url": address}}
            self.told = True
            _choice(self).add("images", [image])
        elif medium.kind == "audio" and medium.data is not None:
            known = {name: medium.options[name] for name in _AUDIO if name in medium.options}
            self.told = True
            _choice(self).write({"audio": {**known, "data": medium.data}})


class CallChunks(CallPart):
    """A call that the client may have to run."""

    def comes_whole(self) -> bool:
        return self.call.metadata.get(PROVIDER_TYPE) == CUSTOM_CALL

    def arguments(self) -> str:
        written: str = written_call(self.call)["function"]["arguments"]
        return written

    def write_start(self) -> None:
        self._write({**self._written(), "function": {"name": self.call.name, "arguments": ""}})

    def write_piece(self, piece: str, /) -> None:
        _choice(self).write({"tool_calls": [{"index": self.number, "function": {"arguments": piece}}]})

    def write_whole(self) -> None:
        self.claim()
        self._write(self._written())

    def _written(self) -> dict[str, Any]:
        written = written_call(self.call)
        if not self.run.choice.writer.reasoning:
            written.pop("extra_content", None)  # it has the signature of a thought
        return written

    def _write(self, written: Mapping[str, Any]) -> None:
        _choice(self).write({"tool_calls": [{"index": self.number, **written, "id": self.call_id}]})


def _choice(part: Part) -> ChoiceChunks:
    return cast("ChoiceChunks", part.run.choice)


_BLANK_LINE: Final = "\n\n"


class Chunks(Writer):
    """Writes the chunks of one completion."""

    def write(self, choice: int, delta: Any, finish_reason: str | None) -> None:
        self.append([{"index": choice, "delta": delta, "finish_reason": finish_reason}])

    def append(self, choices: list[Any], **more: Any) -> None:
        """Append a chunk with these choices."""
        self.out.append(
            {
                "id": self.id,
                "object": "chat.completion.chunk",
                "created": self.created,
                "model": self.model,
                "choices": choices,
                **more,
            }
        )

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        error: ErrorText = {"message": message, "type": kind if kind == "interrupted" else "server_error"}
        own = {"message": message, "type": kind, "param": None, "code": code}
        self.out += [{"error": own if self.is_provider else error}, DONE]


class ChoiceChunks(Choice):
    """The part of one choice that the client has."""

    writer: Chunks

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self._lengths: dict[str, int] = {}  # of the fields that have text
        self._breaks: set[str] = set()  # the fields whose next text is another message's
        self._listed = Counter[str]()  # how many entries the other lists have
        self._held: Part | None = None  # the call whose end the other calls wait for
        self._is_awaited = False  # whether others wait
        self._is_catching_up = False

    def open(self, _: Run, /) -> None:
        self.write({"role": "assistant", "content": ""})

    def next_message(self) -> None:
        self._breaks = {*self._lengths}

    def end_reply(self, _: Run, reason: str, /) -> None:
        self.write({}, "tool_calls" if reason == "tool_use" else reason)

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type == "server_tool_call" or (block.type == "reasoning" and not self.writer.reasoning):
            return Part(run, fold)
        if isinstance(block, ToolCall):
            return CallChunks(run, fold)
        return TextChunks(run, fold) if block.type in FIELDS else MediumChunks(run, fold)

    # A call that comes whole keeps its place: calls behind it wait.

    def turn(self, part: Any, /) -> bool:
        if self._held is None and part.comes_whole():
            self._held = part
        if self._held in (None, part):
            return True
        self._is_awaited = True
        return False

    def release(self, part: Part, /) -> None:
        if self._held is not part:
            return
        self._held = None
        if not self._is_awaited or self._is_catching_up:  # not from within itself, since thousands may wait
            return
        self._is_awaited, self._is_catching_up = False, True
        try:
            part.run.catch_up()
        finally:
            self._is_catching_up = False

    def forget(self, parts: Sequence[Part], /) -> None:
        if self._held in parts:
            self._held = None

    # Pieces of the message.

    def write(self, delta: Any, finish_reason: str | None = None) -> None:
        self.writer.write(self.index, delta, finish_reason)

    def say(self, field: str, piece: str) -> int:
        """Send a piece of text, behind a blank line if it begins another message's. Return the field's length."""
        if field in self._breaks:
            self._breaks.remove(field)
            self._lengths[field] += len(_BLANK_LINE)
            self.write({field: _BLANK_LINE})
        end = self._lengths[field] = self._lengths.get(field, 0) + len(piece)
        self.write({field: piece})
        return end

    def length(self, field: str) -> int:
        """The length of what the client has in a field."""
        return self._lengths.get(field, 0)

    def add(self, field: str, entries: Iterable[Any]) -> None:
        """Send entries of a list with their numbers, without which OpenAI's helper for streams can't add them up."""
        numbered = [{"index": place, **entry} for place, entry in enumerate(entries, self._listed[field])]
        self._listed[field] += len(numbered)
        self.write({field: numbered})


def written_usage(counts: Counts) -> dict[str, Any] | None:
    """The counts as OpenAI's object, in which a total that isn't known is 0; `None` if neither is known."""
    if counts.keys().isdisjoint(("input_tokens", "output_tokens")):
        return None
    given, generated = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    usage: dict[str, Any] = {
        "prompt_tokens": given,
        "completion_tokens": generated,
        "total_tokens": given + generated,
    }
    for field, names in _DETAILS.items():
        details = {theirs: counts[ours] for theirs, ours in names.items() if ours in counts}
        if details:
            usage[field] = details
    return usage


_DETAILS = {
    "prompt_tokens_details": {
        "cached_tokens": "cache_read_tokens",
        "cache_write_tokens": "cache_write_tokens",
        "audio_tokens": "input_audio_tokens",
    },
    "completion_tokens_details": {
        "reasoning_tokens": "output_reasoning_tokens",
        "audio_tokens": "output_audio_tokens",
    },
}


Frame: TypeAlias = OpenAiChatFrame | Done


class OpenAiChatEncoder(ReplyEncoder[Frame]):
    """The chunks of one chat completion.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a reply that has none.
        model, tools, include_usage, on_error, reasoning, limits: As for `rxdelta.to_openai_chat`.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.OpenAiChatEncoder(now=lambda: 1.5, new_id=lambda: "c1")
        >>> (chunk,) = encoder.encode(rd.events.MessageStart())
        >>> chunk["id"], chunk["choices"]
        ('c1', [{'index': 0, 'delta': {'role': 'assistant', 'content': ''}, 'finish_reason': None}])
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None = None,
        tools: Collection[str] | None = None,
        include_usage: bool = True,
        on_error: Masked = masked,
        reasoning: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        chunks = Chunks(now=now, new_id=new_id, model=model, tools=tools, reasoning=reasoning)
        super().__init__(chunks, ChoiceChunks, on_error=on_error, limits=limits)
        self._chunks = chunks
        self._include_usage = include_usage

    def _concerned(self, event: Any) -> Sequence[Choice]:
        index = getattr(event, "choice", None)
        if index is None and (self._choices or isinstance(event, ToolUpdate)):
            return [*self._choices.values()]
        return [self._choice(index or 0)]

    def _ended(self, choices: Iterable[Choice]) -> None:
        usage = written_usage(most_of(choice.usage() for choice in choices)) if self._include_usage else None
        if usage is not None:
            self._chunks.append([], usage=usage)
        self._chunks.out.append(DONE)


_CALL: Final = frozenset(["index", "function"])


def openai_chat_completion(frames: Iterable[OpenAiChatFrame | Done]) -> dict[str, Any]:
    """The body of a response to a request without `stream`: what the chunks of `to_openai_chat` say together.

    Returns:
        A `chat.completion`; `{"error": …}` alone if the chunks end with an error, for a response with the status 500.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_openai_chat("house"), ops.to_list()).run()
        >>> rd.wire.openai_chat_completion(frames)["choices"]
        [{'index': 0, 'message': {'role': 'assistant', 'content': 'Hi', 'refusal': None}, 'finish_reason': 'stop'}]
    """
    body: dict[str, Any] = {}
    pieces: dict[int, list[Any]] = {}  # the deltas of each choice
    reasons: dict[int, Any] = {}
    known: Iterable[Any] = (frame for frame in frames if not isinstance(frame, Done))
    for frame in known:
        if "error" in frame:
            return {"error": frame["error"]}
        body |= {**frame, "object": "chat.completion"}
        for choice in frame["choices"]:
            pieces.setdefault(choice["index"], []).append(choice["delta"])
            reasons[choice["index"]] = choice["finish_reason"]
    body["choices"] = [
        {"index": index, "message": _message(pieces[index]), "finish_reason": reasons[index]}
        for index in sorted(pieces)
    ]
    return body


def _message(deltas: Iterable[Any]) -> dict[str, Any]:
    texts: dict[str, list[str]] = {}
    more: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        for field, value in delta.items():
            if isinstance(value, str):
                texts.setdefault(field, []).append(value)
            elif field == "tool_calls":
                for piece in value:
                    _add(calls.setdefault(piece["index"], {}), piece)
            elif isinstance(value, list):
                more.setdefault(field, []).extend(value)
            else:
                more[field] = value
    said = {field: "".join(pieces) for field, pieces in texts.items()}
    message = {
        **said,
        "role": "assistant",
        "content": said.get("content") or None,
        "refusal": said.get("refusal"),
    }
    return message | more | ({"tool_calls": [*calls.values()]} if calls else {})


def _add(call: dict[str, Any], piece: Any) -> None:
    """Add a piece of a call to what has come of it."""
    call |= {name: value for name, value in piece.items() if name not in _CALL}
    for name, text in piece.get("function", {}).items():
        function = call.setdefault("function", {})
        function[name] = function.get(name, "") + text


def writer(on_error: Masked) -> OpenAiChatEncoder:
    return as_provider(
        OpenAiChatEncoder(now=lambda: CREATED, new_id=lambda: REPLY_ID, tools=(), on_error=on_error)
    )


_MODEL: Final = {"id": FAKE_MODEL, "object": "model", "created": CREATED, "owned_by": "rxdelta"}

ENDPOINT: Final = Endpoint(
    base="/v1",
    paths=["/chat/completions"],
    streams=by_body(),
    last=sse_frame(DONE),
    error=typed_error,
    whole=openai_chat_completion,
    lookups={"/models": {"object": "list", "data": [_MODEL]}, f"/models/{FAKE_MODEL}": _MODEL},
    environment={"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": FAKE_KEY},
)
