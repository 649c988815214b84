"""Mistral: a dialect of OpenAI's chat completions, whose grammar is in `openai_chat/decoder.py`.

    content   = text | [part*]               both within one stream
    part      = text | thinking | reference | image_url | document_url | file | input_audio | …
    thinking  = thinking: [text | reference | tool_reference]* signature? closed?
    reference = reference_ids: [id*]         to what a tool or the request gave; in the text where it stands

A thinking is open until another part begins: every piece of it has `closed`, which means nothing. A reference is a
citation of the current text or thinking. Without such a block a reference becomes a block. The deltas of several
messages in one choice have different values of an `index` of their own; each message begins a new block.

Calls come whole, all in the chunk of the finish reason. Those of models that Mistral hosts for others come in
fragments, which repeat neither id nor name. The usage comes with the finish reason. `p` is padding. The SDK emits
events that hold the chunk as `data`.

A refused request is answered with one of the service's own errors, `{"object": "error", …}`, or with one of its
framework's, `{"detail": …}`.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rxdelta.core import Event, MalformedChunkError, thaw
from rxdelta.formats.decoding import Fields, Json, as_mapping, kept, others, word
from rxdelta.formats.notes import MISTRAL
from rxdelta.formats.openai_chat.calls import index_of
from rxdelta.formats.openai_chat.choice import Choice
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder
from rxdelta.framing import DONE

REFERENCE: Final = "reference"
TOOL_REFERENCE: Final = "tool_reference"


_READ = Fields("mistral")


class _MistralChoice(Choice):
    """A choice that has references, and may hold several messages."""

    signed_by = MISTRAL
    provider = "mistral"
    _message: int | None = None

    def read(self, choice: Json, path: str) -> None:
        delta = choice.get("delta")
        if isinstance(delta, Mapping) and delta.get("index") is not None:
            message = index_of(delta["index"], f"{path}.delta.index")
            if None not in (self._message, message) and self._message != message:
                self.blocks.end_current()
            self._message = message
            delta = {name: value for name, value in delta.items() if name != "index"}
            choice = {**choice, "delta": delta}
        super().read(choice, path)

    def read_part(self, found: object, path: str) -> None:
        part = found if isinstance(found, Mapping) else {}
        read = _PARTS.get(str(part.get("type")))
        if read is None or not read(self, part, path):
            super().read_part(found, path)

    def read_thinking(self, thinking: object, path: str) -> None:
        for place, found in enumerate(
            [thinking] if isinstance(thinking, str) else _READ.items(thinking, path)
        ):
            is_reference = isinstance(found, Mapping) and found.get("type") in (REFERENCE, TOOL_REFERENCE)
            if not (is_reference and self.read_reference(found, path)):
                super().read_thinking([found], f"{path}[{place}]")

    def read_reference(self, part: Json, _: str) -> bool:
        """Read a citation of the current block. Return whether there is one."""
        if self.blocks.type is None:
            return False
        known = {name: part[name] for name in ("title", "url") if word(part.get(name))}
        self.blocks.cite([{**known, "raw": kept(part)}])
        return True

    def read_document(self, part: Json, path: str) -> bool:
        url = _READ.text_of(part, "document_url", path)
        return self._read_media(part, {"type": "file", "url": url, "filename": part.get("document_name")})

    def read_file(self, part: Json, path: str) -> bool:
        return self._read_media(part, {"type": "file", "file_id": _READ.text_of(part, "file_id", path)})

    def read_input_audio(self, part: Json, path: str) -> bool:
        found = part.get("input_audio")
        inner: Json = found if isinstance(found, Mapping) else {"data": found}
        data = _READ.text_of(inner, "data", f"{path}.input_audio")
        more = others(inner, frozenset(["data"]))
        if data.startswith(("https://", "http://")):
            return self._read_media(part, {"type": "audio", "url": data, **more})
        return self._read_media(part, {"type": "audio", **more}, data)

    def _read_media(self, part: Json, content: Json, data: str = "") -> bool:
        known = {name: value for name, value in content.items() if value}
        self.blocks.whole({**others(part, _MEDIA), **known}, data)
        return True


class MistralDecoder(OpenAIChatDecoder):
    """Chunks of Mistral's chat completions in, events out. A block's `index` is its place in its choice.

    Example:
        >>> decoder = MistralDecoder()
        >>> thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        >>> choice = {"index": 0, "delta": {"content": [thinking]}, "finish_reason": None}
        >>> [event.event for event in decoder.decode({"id": "c1", "model": "m", "choices": [choice]})]
        ['message-start', 'content-block-start', 'content-block-delta']
    """

    choice_type = _MistralChoice

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or the SDK's `CompletionEvent`, `CompletionChunk` or response.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a choice or a call is absurd.
        """
        if chunk is DONE:
            return super().decode(chunk)
        found = as_mapping(chunk, "mistral")
        if "choices" not in found:
            found = _error_in(_data_of(found))
        try:
            return super().decode(found)
        except MalformedChunkError as error:
            raise _ours(error) from None


def _data_of(found: Json) -> Json:
    """The chunk that an event of the SDK holds."""
    data = found.get("data")
    if data is None or isinstance(data, (str, bytes)):
        return found
    return as_mapping(data, "mistral")


def _error_in(found: Json) -> Json:
    """An error as `openai_chat` reads it: a message that is a list of faults becomes text."""
    detail = found.get("detail")
    if "error" not in found and found.get("object") != "error" and detail:
        found = {**found, "error": {"message": detail, "type": "invalid_request_error"}}
    error = found.get("error", found if found.get("object") == "error" else None)
    if isinstance(error, Mapping) and error.get("message") and not isinstance(error["message"], str):
        said = {**error, "message": json.dumps(thaw(kept(error)["message"]), ensure_ascii=False)}
        return said if error is found else {**found, "error": said}
    return found


def _ours(error: MalformedChunkError) -> MalformedChunkError:
    said = str(error).replace("malformed openai-chat chunk", "malformed mistral chunk", 1)
    return MalformedChunkError(said, wire_format="mistral", path=error.path, found=error.found)


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Mistral's chunks have no mark. They lack fields that other vendors send, and have Mistral's ids or models.

    Example:
        >>> chunk = {"id": "6dc321029f5d4aa5899c1b38c9657a61", "object": "chat.completion.chunk", "model": "mistral-tiny"}
        >>> recognises({**chunk, "choices": [{"index": 0, "delta": {"content": "Hi"}}]})
        True
        >>> recognises({**chunk, "choices": [{"index": 0, "delta": {"content": "Hi"}}], "system_fingerprint": "fp"})
        False
    """
    if "choices" not in chunk and isinstance(chunk.get("data"), Mapping):
        chunk = chunk["data"]
        return isinstance(chunk.get("choices"), (list, tuple)) and "model" in chunk
    choices = chunk.get("choices")
    if not _CHUNK.issuperset(chunk) or not isinstance(choices, (list, tuple)) or not choices:
        return False
    if "usage" in chunk and not isinstance(chunk["usage"], Mapping):
        return False
    first: Any = choices[0]
    if not isinstance(first, Mapping) or not _CHOICE.issuperset(first):
        return False
    delta = first.get("delta", first.get("message"))
    if not isinstance(delta, Mapping) or not _DELTA.issuperset(delta):
        return False
    found, model = str(chunk.get("id")), str(chunk.get("model"))
    return bool(_ID.fullmatch(found) or (_MODEL.match(model) and (_OLD_ID.fullmatch(found) or "p" in chunk)))


_PARTS: Mapping[str, Callable[[_MistralChoice, Json, str], bool]] = {
    REFERENCE: _MistralChoice.read_reference,
    TOOL_REFERENCE: _MistralChoice.read_reference,
    "document_url": _MistralChoice.read_document,
    "file": _MistralChoice.read_file,
    "input_audio": _MistralChoice.read_input_audio,
}
"""The parts that other vendors don't send."""

_MEDIA = frozenset(["type", "document_url", "document_name", "file_id", "input_audio"])

_CHUNK = frozenset(["id", "object", "created", "model", "choices", "usage", "p", "_event"])
_CHOICE = frozenset(["index", "delta", "message", "finish_reason", "logprobs", "prompt_logprobs"])
_DELTA = frozenset(["role", "content", "tool_calls", "index", "tool_call_id", "metadata", "prefix"])
_ID = re.compile("[0-9a-f]{32}")
_OLD_ID = re.compile("(cmpl|chatcmpl)-[0-9a-f]{32}")
_MODEL = re.compile(
    "(open-)?(mistral|mixtral|magistral|ministral|codestral|devstral|pixtral|voxtral)(-[^/]*)?$"
)
