"""Events → the stream of Ollama's `/api/chat`, which local front ends and Ollama's packages read.

    stream  = line* (last | error)
    line    = model created_at message: role content (thinking | images | tool_calls)? done: false
    last    = model created_at message: role content done: true done_reason prompt_eval_count? eval_count?
    error   = error                              a sentence

A client adds the texts of all lines, so they come in the order of their blocks. A call comes whole. A reply that has broken
off has no last line.

At the end are the whole body for a client that doesn't stream, and how the API is served.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Final, cast

from rxdelta.core import DEFAULT_LIMITS, BlockFold, ContentPart, InvalidValueError, Limits, ToolCall
from rxdelta.formats.conversation import Medium, medium_of
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked, masked
from rxdelta.formats.format import FAKE_MODEL, Endpoint, by_body, plain_error
from rxdelta.formats.ollama.request import written_image
from rxdelta.formats.provider_reply import CREATED
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
    is_whole,
)
from rxdelta.framing import NDJSON_HEADERS, ndjson_line

_BLANK_LINE: Final = "\n\n"
_COUNTS: Final[Mapping[str, str]] = {"prompt_eval_count": "input_tokens", "eval_count": "output_tokens"}


class Lines(Writer):
    """Writes the lines of one reply."""

    def emit(self, message: Mapping[str, Any], *, done: bool = False, **more: Any) -> None:
        said = {"role": "assistant", "content": "", **message}
        line = {"model": self.model, "created_at": self._created_at, "message": said, "done": done, **more}
        self.out.append(line)

    def end(self, reason: str, counts: Counts, /) -> None:
        found = {theirs: counts[ours] for theirs, ours in _COUNTS.items() if ours in counts}
        self.emit({}, done=True, done_reason=WORDS[reason], **found)

    def fail(self, message: str, _kind: str | None, _code: str | None, /) -> None:
        self.out.append({"error": message})

    @cached_property
    def _created_at(self) -> str:
        try:
            time = datetime.fromtimestamp(self.created, UTC)
        except (OverflowError, ValueError, OSError):  # the provider's time has no date
            time = datetime.fromtimestamp(int(self._now()), UTC)
        return time.isoformat().replace("+00:00", "Z")


class Message(Reply):
    """The part of the message that the client has."""

    writer: Lines

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self._written: set[str] = set()  # the fields that have text
        self._breaks: set[str] = set()  # the fields whose next text is another message's

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type in ("text", "refusal"):
            return _Text(run, fold)
        if block.type == "reasoning" and self.writer.reasoning:
            return _Thinking(run, fold)
        if isinstance(block, ToolCall) and block.type != "server_tool_call":
            return _Call(run, fold)
        return (
            _Image(run, fold)
            if isinstance(block, ContentPart) and block.type != "reasoning"
            else Part(run, fold)
        )

    def next_message(self) -> None:
        self._breaks = {*self._written}

    def say(self, field: str, piece: str) -> None:
        """Send a piece of text, behind a blank line if it begins another message's."""
        if field in self._breaks:
            self._breaks.remove(field)
            self.writer.emit({field: _BLANK_LINE})
        self._written.add(field)
        self.writer.emit({field: piece})


class _Text(TextItem):
    field: ClassVar = "content"

    def write_piece(self, piece: str, /) -> None:
        cast("Message", self.run.choice).say(self.field, piece)


class _Thinking(_Text):
    field: ClassVar = "thinking"


class _Image(Item):
    """Another content. The protocol's only media are images, as data."""

    def _medium(self) -> Medium | None:
        medium = medium_of(cast("ContentPart", self.fold.block))
        return medium if medium is not None and medium.kind == "image" and medium.data else None

    def is_shown(self) -> bool:
        return self._medium() is not None

    def write_end(self) -> None:
        if (medium := self._medium()) is not None and medium.data:
            cast("Message", self.run.choice).writer.emit({"images": [written_image(medium.data)]})


class _Call(CallItem):
    """A call, which has its arguments as an object. There is no place for arguments that can't be read."""

    def comes_whole(self) -> bool:
        return True

    def write_end(self) -> None:
        function: JsonObject = {
            "index": self.number,
            "name": self.call.name,
            "arguments": self.arguments_as_object(),
        }
        written = {"id": self.call_id, "function": function}
        cast("Message", self.run.choice).writer.emit({"tool_calls": [written]})

    def send_whole(self) -> None:
        """The call is the client's for certain, but it can't be written: the client must not take the reply for whole."""
        run = self.run
        if run.choice.writer.streams(self.call) and not (is_whole(self.call) or run.reason == "length"):
            run.take_back()
        super().send_whole()


class OllamaEncoder(ReplyEncoder[JsonObject]):
    """The lines of one reply of Ollama's `/api/chat`, as JSON objects.

    Args:
        now: The time, in seconds since 1970, of a reply that has none.
        model, tools, on_error, reasoning, limits: As for `rxdelta.to_ollama`.
        choice: Which of several alternative replies is written.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.OllamaEncoder(now=lambda: 1.5, model="house")
        >>> lines = [line for event in rd.to_events(rd.Message.of("assistant", "Hi")) for line in encoder.encode(event)]
        >>> [line["message"] for line in lines]
        [{'role': 'assistant', 'content': 'Hi'}]
        >>> [(line["done"], line["done_reason"], line["created_at"]) for line in encoder.close()]
        [(True, 'stop', '1970-01-01T00:00:01Z')]
    """

    headers: ClassVar[Mapping[str, str]] = NDJSON_HEADERS

    def __init__(
        self,
        *,
        now: Callable[[], float],
        model: str | None = None,
        tools: Collection[str] | None = None,
        on_error: Masked = masked,
        reasoning: bool = True,
        choice: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        writer = Lines(now=now, new_id=str, model=model, tools=tools, reasoning=reasoning)
        super().__init__(writer, Message, on_error=on_error, limits=limits, choice=choice)


def ollama_chat(frames: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a response to a request with `stream: false`: what the lines of `to_ollama` say together.

    Returns:
        One line that is the last; `{"error": …}` alone if the lines end with an error, for a response with the status 500.

    Raises:
        InvalidValueError: The lines have no end, as those of a stream that is still running.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_ollama("house"), ops.to_list()).run()
        >>> body = rd.wire.ollama_chat(frames)
        >>> body["message"], body["done"], body["done_reason"]
        ({'role': 'assistant', 'content': 'Hi'}, True, 'stop')
    """
    texts: dict[str, list[str]] = {"content": [], "thinking": []}
    lists: dict[str, list[Any]] = {"images": [], "tool_calls": []}
    last: Mapping[str, Any] = {}
    for last in frames:
        if "error" in last:
            return {"error": last["error"]}
        for field, said in last["message"].items():
            if field in texts:
                texts[field].append(said)
            elif field in lists:
                lists[field] += said
    if last.get("done") is not True:
        raise InvalidValueError.of([("frames", last or None, "must end as a reply does")])
    joined = {field: "".join(said) for field, said in texts.items()}
    more = {field: value for field, value in {**joined, **lists}.items() if value}
    return {**last, "message": {"role": "assistant", "content": "", **more}}


def writer(on_error: Masked) -> OllamaEncoder:
    return as_provider(OllamaEncoder(now=lambda: CREATED, tools=(), on_error=on_error))


_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "fake",
    "families": ["fake"],
    "parameter_size": "1B",
    "quantization_level": "F16",
}
_MODEL: Final = {
    "name": FAKE_MODEL,
    "model": FAKE_MODEL,
    "modified_at": "2023-11-14T22:13:20Z",
    "size": 1,
    "digest": "0" * 64,
    "details": _DETAILS,
}

ENDPOINT: Final = Endpoint(
    paths=["/api/chat"],
    streams=by_body(default=True),
    headers=NDJSON_HEADERS,
    frame=ndjson_line,
    error=plain_error,
    whole=ollama_chat,
    lookups={
        "/api/tags": {"models": [_MODEL]},
        "/api/ps": {"models": []},
        "/api/version": {"version": "0.13.0"},
    },
    environment={"OLLAMA_HOST": "{url}"},
)


WORDS: Mapping[str, str] = {
    "stop": "stop",
    "tool_use": "stop",
    "pause": "stop",
    "length": "length",
    "content_filter": "content_filter",
}
"""The ends of a reply that is written to a client. Ollama itself has `stop` and `length` only."""
