"""Ollama's own API, `/api/chat` and `/api/generate`: a JSON object a line.

    stream   = line* last                       an error line instead of any of them
    line     = model created_at (chat | generate) logprobs? done: false
    chat     = message: thinking? content images? tool_calls: [call*]?
    generate = thinking? response tool_calls?    or, of an image: completed total, at last image
    call     = id? function: name arguments      `arguments` is the object
    last     = a line with done: true done_reason? context? counts and durations

Lines do not mark where a text begins or ends, so blocks are numbered as they appear, and a text or thinking is open
until another block begins. Calls and images come whole, one block each. Only newer servers give calls an id; any
other call gets one made from the time in the message's first line.

The usage is the counts and durations of the last line: a count that is missing was zero, or, for the prompt, was in
the cache. `context`, which `/api/generate` wants back, is kept in the message's metadata. The progress of an image is
passed on. An error is a line with a sentence in it. A reply that was not streamed is one last line.
"""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import (
    Event,
    TokenUsage,
    events,
    finish_reason,
    freeze,
    real_id,
    reasoning_delta,
    text_delta,
)
from rxdelta.formats.block_events import BlockWriter, take_all
from rxdelta.formats.calls import call_identity, made_up_id
from rxdelta.formats.decoding import NOTHING, Fields, Json, as_mapping, kept, others, remember, word
from rxdelta.formats.endings import PROVIDER_ERROR, Broken, assumed_finish, broken_events, error_code
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.usage import OLLAMA, usage_of
from rxdelta.framing import DONE

_FORMAT = "ollama"
_PROVIDER = "ollama"
_READ = Fields(_FORMAT)

REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_use",
    "content_filter": "content_filter",
}

BROKEN: Mapping[str, Broken] = {
    "load": Broken("the request had no prompt: the model was loaded, and wrote nothing", False),
    "unload": Broken("the request had no prompt: the model was unloaded, and wrote nothing", False),
}
"""The reasons of an answer that is no reply. The same request has the same answer.

https://docs.ollama.com/api/chat and https://github.com/ollama/ollama/blob/main/docs/api.md#load-a-model
"""


class OllamaDecoder:
    """Lines of one reply in, events of the chat stream protocol out.

    Example:
        >>> decoder = OllamaDecoder()
        >>> line = {"model": "llama", "message": {"role": "assistant", "content": "Hi"}, "done": False}
        >>> [event.event for event in decoder.decode(line)]
        ['message-start', 'content-block-start', 'content-block-delta']
        >>> [event.event for event in decoder.decode({"model": "llama", "done": True, "done_reason": "stop"})]
        ['content-block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._out: list[Event] = []
        self._blocks = BlockWriter(self._out, 0)
        self._started = self._finished = self._over = self._has_calls = False
        self._metadata: dict[str, Any] = {}
        self._logprobs: list[Any] = []
        self._time = ""  # of the first line, for ids

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one line: a mapping, or a `ChatResponse` or `GenerateResponse` of the `ollama` package.

        Raises:
            MalformedChunkError: The line is not what the format says; names the path and what stood there.

        Example:
            >>> OllamaDecoder().decode({"error": "model runner has stopped"})
            [StreamError(message='model runner has stopped', type=None, code=None, choice=0)]
        """
        event = None if self._out else self._plain(chunk)
        if event is not None:
            return (event,)
        if chunk is not DONE:
            self._decode(as_mapping(chunk, _FORMAT))
        elif self._started and not self._finished:
            self._finish(None, None, assumed=True)
        return take_all(self._out)

    def close(self) -> Sequence[Event]:
        """End of input. There is nothing to finish: a message without its last line was cut off."""
        self._over = True
        return take_all(self._out)

    def _plain(self, chunk: Any) -> Event | None:
        """The event of a line that only continues a text or thinking, as nearly all lines do.

        It is that of `_decode`: `tests/formats/test_plain_chunks.py` compares the two.
        """
        writes = self._blocks.type
        if type(chunk) is not dict or writes is None or self._finished or self._over:
            return None
        if chunk.get("done") is not False or not _PLAIN.issuperset(chunk):
            return None
        writes_text, text, message = writes == "text", chunk.get("response"), chunk.get("message")
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
        return (text_delta if writes_text else reasoning_delta)(self._blocks.current, text)

    def _decode(self, line: Json) -> None:
        if self._over:
            return
        error = None if self._finished else line.get("error")
        if self._finished or _READ_NAMES.isdisjoint(line):
            foreign = error is None
        else:
            is_first = not self._started
            foreign = self._read(line)
            if line.get("done") is True and error is None:
                reason = _READ.text_of(line, "done_reason", "") or None
                self._finish(reason, _usage(line), assumed=is_first and reason is None)
        if foreign:
            name = "progress" if "total" in line else "line"
            self._out.append(events.ProviderEvent(_PROVIDER, name, kept(line)))
        if error is not None:
            self._break_off(line, error)

    def _read(self, line: Json) -> bool:
        """Read the message in a line. True if the line has progress, or no content that is known: it is passed on."""
        is_first = not self._started
        if is_first:
            self._started = True
            made_at = word(line.get("created_at")) or ""
            self._time = "".join(filter(str.isalnum, made_at))
            metadata = kept({"created_at": made_at}) if made_at else {}
            self._out.append(events.MessageStart(None, word(line.get("model")), None, metadata))
        message, foreign = line.get("message"), False
        if message is not None:
            fields = _READ.mapping(message, "message")
            self._read_message(fields, "message")
            foreign = _brings_nothing(fields, last=line.get("done") is True)
        elif _BESIDE_A_MESSAGE.isdisjoint(line):
            foreign = is_first or line.get("done") is not True
        self._read_message(line, "")
        if line.get("logprobs") is not None:
            self._logprobs.extend(_READ.items(freeze(line["logprobs"], lenient=True), "logprobs"))
        remember(self._metadata, {name: value for name, value in line.items() if not _has_a_place(name)})
        return foreign or (line.get("completed") is not None and not line.get("image"))

    def _read_message(self, message: Json, path: str) -> None:
        at = f"{path}." if path else ""
        self._write("reasoning", _READ.text_of(message, "thinking", path))
        self._write("text", _READ.text_of(message, "content" if path else "response", path))
        for place, image in enumerate(_READ.items(message.get("images"), f"{at}images")):
            self._add_image(_READ.text(image, f"{at}images[{place}]"))
        self._add_image(_READ.text_of(message, "image", path))
        for place, call in enumerate(_READ.items(message.get("tool_calls"), f"{at}tool_calls")):
            self._add_call(call, f"{at}tool_calls[{place}]")
        if path:
            remember(self._metadata, others(message, _OF_A_MESSAGE))

    def _write(self, type: str, text: str) -> None:
        if text:
            self._blocks.write(type, text)

    def _add_image(self, data: str) -> None:
        if data:
            self._blocks.whole({"type": "image"}, data.removesuffix("\n"))  # which `written_image` adds

    def _add_call(self, found: Any, path: str) -> None:
        call = _READ.mapping(found, path)
        function = _READ.mapping(call.get("function"), f"{path}.function")
        call_id, name = real_id(_READ.text_of(call, "id", path)), _READ.text_of(function, "name", path)
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, (str, Mapping)):
            raise _READ.fail(f"{path}.function.arguments", "an object", arguments)
        if not _OF_A_FUNCTION.issuperset(function):
            _READ.require(function, ("arguments",), f"{path}.function")
        content = others(call, _OF_A_CALL) | others(function, _OF_A_FUNCTION)
        # Only newer servers give calls an id.
        content |= call_identity(call_id, made_up_id(self._time, self._blocks.count))
        if word(call.get("type")) not in (None, "function"):
            content[PROVIDER_TYPE] = call["type"]
        arguments = {} if arguments is None else freeze(arguments, lenient=True)
        self._has_calls = True
        self._blocks.whole({**content, "type": "tool_call_chunk", "name": name or None, "args": arguments})

    def _finish(self, reason: str | None, usage: TokenUsage | None, *, assumed: bool) -> None:
        """Finish the message. `assumed` says whether it is whole without a last line of its stream."""
        self._blocks.end_current()
        self._finished = True
        remember(self._metadata, {"logprobs": self._logprobs})
        if reason is not None and reason in BROKEN:
            self._out += broken_events(_PROVIDER, reason, BROKEN[reason], usage, self._metadata)
            self._over = True
        elif assumed:
            self._out.append(assumed_finish(usage, self._metadata, asked=self._has_calls))
        else:
            ours = finish_reason(REASONS.get(reason or ""), asked=self._has_calls)
            self._out.append(events.MessageFinish(ours, reason, usage, self._metadata))

    def _break_off(self, line: Json, error: Any) -> None:
        message = word(error.get("message") if isinstance(error, Mapping) else error)
        more = any(not _has_a_place(name) and name not in _ERROR for name in line)
        if message is None or isinstance(error, Mapping) or more:  # such as where to sign in
            self._out.append(events.ProviderEvent(_PROVIDER, PROVIDER_ERROR, kept(line)))
        code = line.get("status_code", line.get("status"))
        self._out.append(events.StreamError(message or "unknown error", None, error_code(code)))
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
    return usage_of(raw, OLLAMA) if raw else None


def _brings_nothing(message: Json, *, last: bool) -> bool:
    """Whether a message has no content under a known name. Empty content counts, but not beside unknown fields."""
    content = [message[name] for name in _CONTENT if name in message]
    if any(one not in NOTHING for one in content):
        return False
    return bool(others(message, _OF_A_MESSAGE)) or not (content or last)


def _is_of_the_usage(name: object) -> bool:
    return isinstance(name, str) and name.endswith(("_count", "_duration"))


def _has_a_place(name: object) -> bool:
    return name in _LINE or _is_of_the_usage(name)


_READ_NAMES = frozenset(["done", "message", "response", "thinking", "tool_calls", "image"])
_LINE = _READ_NAMES | {
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
_CONTENT = frozenset(["content", "thinking", "images", "image", "tool_calls"])
_OF_A_MESSAGE = _CONTENT | {"role"}
_BESIDE_A_MESSAGE = frozenset(["response", "thinking", "images", "image", "tool_calls", "completed"])
_OF_A_CALL = frozenset(["id", "type", "function"])
_OF_A_FUNCTION = frozenset(["name", "arguments", "index"])
_ERROR = frozenset(["status_code", "status"])

# A line of no more than these only continues a block. Fields that are the same in all lines are read from others.
_PLAIN = frozenset(["model", "created_at", "message", "response", "done", "remote_model", "remote_host"])
