"""Ollama's own API, `/api/chat` and `/api/generate`: a JSON object a line.

    stream   = line* last                       an error line instead of any of them
    line     = model created_at (chat | generate) logprobs? done: false
    chat     = message: thinking? content images? tool_calls: [call*]?
    generate = thinking? response tool_calls?    or, of an image: completed total, at last image
    call     = id? function: name arguments      `arguments` is the object
    last     = a line with done: true done_reason? context? counts and durations

Nothing says where a text begins or ends, so blocks are numbered as they appear; a text or a thinking is open
until something else begins. Calls and images come whole, one block each. Only newer servers give calls an
id; one that has none gets one made from the time of the message's first line.

The usage is all that the last line has of counts and durations: a count that is missing was zero, or, for the
prompt, was in the cache. `context`, which `/api/generate` wants back, is kept in the message's metadata. The
progress of an image is passed on. An error is a line with a sentence in it. A reply that was not streamed is
one last line with all of it.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import Event, TokenUsage, events, freeze, real_id, reasoning_delta, text_delta
from rxdelta.formats.decoding import (
    NOTHING,
    Fields,
    as_mapping,
    error_code,
    kept,
    others,
    remember,
    usage_of,
    word,
)
from rxdelta.formats.notes import PROVIDER_TYPE, SYNTHETIC_ID

__all__ = ["OllamaDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Out: TypeAlias = list[Event]

_FORMAT = "ollama"
_PROVIDER = "ollama"
_READ = Fields(_FORMAT)


class OllamaDecoder:
    """Lines of one reply in, events out. A block's `index` is its place in the message.

    Example:
        >>> decoder = OllamaDecoder()
        >>> line = {"model": "llama", "message": {"role": "assistant", "content": "Hi"}, "done": False}
        >>> [event.event for event in decoder.decode(line)]
        ['message-start', 'content-block-start', 'content-block-delta']
        >>> [event.event for event in decoder.decode({"model": "llama", "done": True, "done_reason": "stop"})]
        ['content-block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._started = self._finished = self._over = False
        self._foreign = False  # the line holds something that has no place here
        self._metadata: dict[str, Any] = {}
        self._logprobs: list[Any] = []
        self._blocks = 0
        self._writes: str | None = None  # the type of the block that prose goes to, which is the newest
        self._made_of = ""  # what ids are made of
        self._out: Out = []  # what a malformed line held before its fault comes out with the next

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one line: a mapping, or a `ChatResponse` or `GenerateResponse` of the `ollama` package.

        Raises:
            MalformedChunkError: The line is not what the format says; names the path and what stood there.

        Example:
            >>> OllamaDecoder().decode({"error": "model runner has stopped"})
            [StreamError(message='model runner has stopped', type=None, code=None, choice=0)]
        """
        event = None if self._out else self._plain(chunk)
        return self._decode(as_mapping(chunk, _FORMAT)) if event is None else (event,)

    def close(self) -> Sequence[Event]:
        """End of input. Nothing to finish: what has no last line was cut off."""
        out, self._out = self._out, []
        self._over = True
        return out

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a line that is nothing but more of what is being written, as nearly all are."""
        if type(chunk) is not dict or self._writes is None or self._finished or self._over:
            return None
        if chunk.get("done") is not False or not _PLAIN.issuperset(chunk):
            return None
        writes_text, text, message = self._writes == "text", chunk.get("response"), chunk.get("message")
        if type(message) is dict and text is None:
            field = "content" if writes_text else "thinking"
            for name, value in message.items():
                if name != field and name != "role" and value not in NOTHING:
                    return None
            text = message.get(field)
        elif message is not None or not writes_text:
            return None
        if type(text) is not str or not text:
            return None
        return (text_delta if writes_text else reasoning_delta)(self._blocks - 1, text)

    def _decode(self, line: Json) -> Sequence[Event]:
        if self._over:
            return ()
        out, error = self._out, line.get("error")
        if self._finished:
            error, self._foreign = None, True
        elif not _OURS.isdisjoint(line):
            self._read(out, line)
            if line.get("done") is True and error is None:
                self._finish(out, line)
        else:
            self._foreign = error is None
        if self._foreign:
            self._foreign = False
            out.append(events.ProviderEvent(_PROVIDER, "progress" if "total" in line else "line", kept(line)))
        if error is not None:
            self._break_off(out, line, error)
        self._out = []
        return out

    def _read(self, out: Out, line: Json) -> None:
        if not self._started:
            self._started = True
            made_at = word(line.get("created_at")) or ""
            self._made_of = "".join(filter(str.isalnum, made_at))
            metadata = kept({"created_at": made_at}) if made_at else {}
            out.append(events.MessageStart(None, word(line.get("model")), None, metadata))
        message, path = line.get("message"), "message"
        if message is not None:
            self._read_message(out, _READ.mapping(message, path), path)
        self._read_message(out, line, "")
        if line.get("logprobs") is not None:
            self._logprobs.extend(_READ.items(freeze(line["logprobs"], lenient=True), "logprobs"))
        self._foreign |= line.get("completed") is not None and not line.get("image")
        remember(self._metadata, {name: value for name, value in line.items() if not _has_a_place(name)})

    def _read_message(self, out: Out, message: Json, path: str) -> None:
        at = f"{path}." if path else ""
        self._write(out, "reasoning", _READ.text_of(message, "thinking", path))
        self._write(out, "text", _READ.text_of(message, "content" if path else "response", path))
        for place, image in enumerate(_READ.items(message.get("images"), f"{at}images")):
            self._image(out, _READ.text(image, f"{at}images[{place}]"))
        self._image(out, _READ.text_of(message, "image", path))
        for place, call in enumerate(_READ.items(message.get("tool_calls"), f"{at}tool_calls")):
            self._call(out, call, f"{at}tool_calls[{place}]")
        if path:
            remember(self._metadata, others(message, _OF_A_MESSAGE))

    def _write(self, out: Out, kind: str, text: str) -> None:
        if not text:
            return
        if self._writes != kind:
            self._begin(out, {"type": kind, kind: ""})
            self._writes = kind
        out.append((text_delta if kind == "text" else reasoning_delta)(self._blocks - 1, text))

    def _image(self, out: Out, data: str) -> None:
        if data:
            index = self._begin(out, {"type": "image"})
            out.append(events.DataDelta(index, data))
            out.append(events.BlockFinish(index))

    def _call(self, out: Out, found: Any, path: str) -> None:
        call = _READ.mapping(found, path)
        function = _READ.mapping(call.get("function"), f"{path}.function")
        call_id, name = real_id(_READ.text_of(call, "id", path)), _READ.text_of(function, "name", path)
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, (str, Mapping)):
            raise _READ.fail(f"{path}.function.arguments", "an object", arguments)
        fields = others(call, _OF_A_CALL) | others(function, _OF_A_FUNCTION)
        if word(call.get("type")) not in (None, "function"):
            fields[PROVIDER_TYPE] = call["type"]
        if call_id is None:
            ours = "-".join(filter(None, ["call", self._made_of, str(self._blocks)]))
            fields |= {"id": ours, SYNTHETIC_ID: True}
        else:
            fields["id"] = call_id
        arguments = {} if arguments is None else freeze(arguments, lenient=True)
        index = self._begin(
            out, {**fields, "type": "tool_call_chunk", "name": name or None, "args": arguments}
        )
        out.append(events.BlockFinish(index))

    def _begin(self, out: Out, content: Json) -> int:
        """A new block, which ends the prose before it."""
        self._end_prose(out)
        out.append(events.BlockStart(self._blocks, content))
        self._blocks += 1
        return self._blocks - 1

    def _end_prose(self, out: Out) -> None:
        if self._writes is not None:
            self._writes = None
            out.append(events.BlockFinish(self._blocks - 1))

    def _finish(self, out: Out, line: Json) -> None:
        self._end_prose(out)
        self._finished = True
        said = _READ.text_of(line, "done_reason", "") or None
        usage = _usage(line)
        remember(self._metadata, {"logprobs": self._logprobs})
        out.append(events.MessageFinish(_REASONS.get(said or "", "stop"), said, usage, self._metadata))

    def _break_off(self, out: Out, line: Json, error: Any) -> None:
        said = error.get("message") if isinstance(error, Mapping) else error
        more = {name: value for name, value in line.items() if not _has_a_place(name) and name not in _ERROR}
        if word(said) is None or isinstance(error, Mapping) or more:  # such as where to sign in
            out.append(events.ProviderEvent(_PROVIDER, "error", kept(line)))
        code = line.get("status_code", line.get("status"))
        out.append(events.StreamError(word(said) or "unknown error", None, error_code(code)))
        self._over = True


def recognises(chunk: Json) -> bool:
    """Whether a reply of this format, streamed or not, can begin with this line.

    Example:
        >>> recognises({"model": "llama", "created_at": "2025-01-01T00:00:00Z", "response": "Hi", "done": False})
        True
        >>> recognises({"model": "llama", "embeddings": [[0.1]]})
        False
    """
    if type(chunk.get("done")) is bool and "choices" not in chunk:
        if isinstance(chunk.get("message"), Mapping) or isinstance(chunk.get("response"), str):
            return True
        return isinstance(chunk.get("model"), str) and isinstance(chunk.get("created_at"), str)
    return len(chunk) == 1 and isinstance(chunk.get("error"), str)


def _usage(line: Json) -> TokenUsage | None:
    raw = {name: value for name, value in line.items() if _is_of_the_usage(name) and value is not None}
    return usage_of(raw, raw.get("prompt_eval_count"), raw.get("eval_count")) if raw else None


def _is_of_the_usage(name: object) -> bool:
    return isinstance(name, str) and name.endswith(("_count", "_duration"))


def _has_a_place(name: object) -> bool:
    return name in _LINE or _is_of_the_usage(name)


_REASONS: Mapping[str, str] = {
    "stop": "stop",
    "load": "stop",  # there was no prompt: the model has been loaded
    "unload": "stop",
    "length": "length",
    "tool_calls": "tool_use",
}

# What is read.
_OURS = frozenset(["done", "message", "response", "thinking", "tool_calls", "image"])
_LINE = _OURS | {
    "model",
    "created_at",
    "done_reason",
    "logprobs",
    "completed",
    "total",
    "images",
    "error",
    "_event",
}
_OF_A_MESSAGE = frozenset(["role", "content", "thinking", "images", "image", "tool_calls"])
_OF_A_CALL = frozenset(["id", "type", "function"])
_OF_A_FUNCTION = frozenset(["name", "arguments", "index"])
_ERROR = frozenset(["status_code", "status"])

# A line of no more than these is a piece of text. What is the same in all is read from the others.
_PLAIN = frozenset(["model", "created_at", "message", "response", "done", "remote_model", "remote_host"])
