"""Gemini's generateContent, streamed or whole, as AI Studio and Vertex AI send it.

    stream    = response*        without a mark of the last
    response  = candidates: [candidate*]? usageMetadata? promptFeedback? modelVersion? responseId? extras
    candidate = index? content: {role? parts: [part*]?}? finishReason? citationMetadata? extras
    part      = thoughtSignature? thought? extras
                (text | functionCall | executableCode | codeExecutionResult | toolCall | toolResponse
                | inlineData | fileData)?
    call      = (name args? | name willContinue fragment*) id?
    fragment  = partialArgs: [{jsonPath, a value, willContinue?}*]? willContinue?      without a name

Each response is complete in itself and has only the new parts. Texts have no marks of their start or end. So blocks
are numbered in the order in which they appear, for each candidate separately. A text, a thought (a text with
`thought`) or an audio is open until another block begins. All other parts come whole, except a call with streamed
arguments. An absent `index` is 0.

**The end** is the end of input: older models and proxies send `STOP` with every response, and text follows. So a
`finishReason` ends calls, which must not wait, and `close()` finishes the message. `STOP` comes with calls too. A
refused prompt has no candidate, but a `promptFeedback.blockReason`: that is a complete reply, though an empty one. An
error is an object of its own.

**Usage** is a running total that comes with every response. The newest value of each figure counts, whether it is
higher or lower. A response with only a `trafficType` removes no figure.

**Arguments** come whole, or value by value with their paths, a string in pieces. The values come in the order of a JSON
text, so the decoder emits this text as it grows. Values that break the order are emitted with the whole arguments.
`functionCall: {}` ends the call, unless a fragment without `willContinue` has ended it. If neither comes, another call
or the finish reason ends it.

**Signatures** hang on any part, often on an empty text behind the signed one. They have to be sent back. So a signature
belongs to the block of its own text, else to the current one, else to an empty one of its own.

Other accepted forms: the SDK's objects; their dumps in snake case, with bytes and enums; enums as integers; a list of
responses, which the API sends when it streams without `alt=sse`.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import ByChoice, Event, TokenUsage, events, reasoning_delta, text_delta
from rxdelta.formats.block_events import take_all
from rxdelta.formats.calls import KnowsCalls
from rxdelta.formats.decoding import NOTHING, Fields, Json, kept, remember, word
from rxdelta.formats.endings import error_events, error_in
from rxdelta.formats.gemini.candidate import Candidate
from rxdelta.formats.gemini.tables import FORMAT, SDKS_OWN, UNSPECIFIED, other_fields, wire_form
from rxdelta.formats.usage import GEMINI, RunningUsage
from rxdelta.framing import DONE

_READ = Fields(FORMAT)


class GeminiDecoder(KnowsCalls):
    """Responses of one stream in, events out. A block's `index` is its place in its candidate.

    Example:
        >>> decoder = GeminiDecoder()
        >>> candidate = {"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP"}
        >>> [event.event for event in decoder.decode({"candidates": [candidate], "responseId": "r1"})]
        ['message-start', 'content-block-start', 'content-block-delta']
        >>> [event.event for event in decoder.close()]
        ['content-block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._figures = RunningUsage(GEMINI)
        self._usage: TokenUsage | None = None
        self._newest_usage: object = None  # as the provider sent it
        self._is_blocked = False
        self._candidates: dict[int, Candidate] = ByChoice()
        self._out: list[Event] = []
        self._over = self._failed = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, the SDK's `GenerateContentResponse`, or a list of them.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A candidate's index is absurd, or a value of arguments lies absurdly deep.

        Example:
            >>> GeminiDecoder().decode({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
            [StreamError(message='Overloaded', type='UNAVAILABLE', code='503', choice=0)]
        """
        plain = None if self._out else self._plain(chunk)
        if plain is not None:
            return plain
        if chunk is DONE:
            if self._candidates:
                self._finish(whole=True)
                self._end()
            return self._checked(take_all(self._out))
        # The API sends a list when it streams without `alt=sse`.
        for response in chunk if isinstance(chunk, (list, tuple)) else (chunk,):
            self._read(wire_form(response))
        return self._checked(take_all(self._out))

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each candidate that has a finish reason. One without was cut off."""
        self._finish(whole=False)
        self._end()
        return self._checked_last(take_all(self._out))

    def _plain(self, chunk: Any) -> Sequence[Event] | None:
        """The events of a plain response: more of a text or a thought, and perhaps a usage.

        They are those of `_read`: `tests/formats/test_plain_chunks.py` compares the two.
        """
        if type(chunk) is not dict or not _PLAIN.issuperset(chunk) or chunk.get("responseId") != self._id:
            return None
        if self._model is None and "modelVersion" in chunk:
            return None
        if "createTime" in chunk and "createTime" not in self._metadata:
            return None
        usage: Any = chunk.get("usageMetadata")
        if usage == self._newest_usage:
            usage = None
        if usage is not None and type(usage) is not dict:
            return None
        found: Any = chunk.get("candidates")
        candidate: Any = found[0] if type(found) is list and len(found) == 1 else None
        if type(candidate) is not dict or not _PLAIN_CANDIDATE.issuperset(candidate):
            return None
        content, index = candidate.get("content"), candidate.get("index", 0)
        parts: Any = content.get("parts") if type(content) is dict and _CONTENT.issuperset(content) else None
        part: Any = parts[0] if type(parts) is list and len(parts) == 1 else None
        state = self._candidates.get(index) if type(index) is int else None
        if state is None or type(part) is not dict or not _PLAIN_PART.issuperset(part):
            return None
        text, blocks = part.get("text"), state.blocks
        if type(text) is not str or not text:
            return None
        is_thought = part.get("thought") is True
        if blocks.type != ("reasoning" if is_thought else "text"):
            return None
        event = (reasoning_delta if is_thought else text_delta)(blocks.current, text, index)
        if usage is None:
            return (event,)
        self._read_usage(usage)
        self._out.append(event)
        self._show_usage()
        return take_all(self._out)

    def _read(self, chunk: Json) -> None:
        if self._over:
            if chunk and not self._failed:
                self._out.append(events.ProviderEvent("google", "chunk", kept(chunk)))
            return
        error = error_in(chunk)
        if error is None and all(chunk.get(name) is None for name in _ENVELOPE):
            self._out.append(events.ProviderEvent("google", "chunk", kept(chunk)))
            return
        found = _READ.items(chunk.get("candidates"), "candidates")
        self._read_envelope(chunk)
        # A refused prompt has no candidate, and is a complete reply.
        if not found and not self._candidates and error is None:
            self._candidate(0)
        is_foreign = False
        try:
            for place, candidate in enumerate(found):
                path = f"candidates[{place}]" if place else "candidates[0]"
                fields = _READ.mapping(candidate, path)
                index = fields.get("index")
                number = 0 if index is None else _READ.index(index, f"{path}.index")
                self._candidate(number).read(fields, path)
                is_foreign |= _brings_nothing(fields)
        finally:
            self._show_usage()  # that of a malformed response, too: the next one may be plain and without a usage
        if is_foreign:
            self._out.append(events.ProviderEvent("google", "chunk", kept(chunk)))
        if error is not None:
            self._failed = True
            self._finish(whole=False)
            self._out += error_events("google", error, error.get("status"), _ERROR)
            self._end()

    def _candidate(self, number: int) -> Candidate:
        state = self._candidates.get(number)
        if state is None:
            state = Candidate(self._out, number, self._id, self._model, self._usage)
            self._candidates[number] = state
            state.message.start(self._metadata)
        return state

    def _read_envelope(self, chunk: Json) -> None:
        """Read the fields of the whole reply."""
        self._id = self._id or word(chunk.get("responseId"))
        self._model = self._model or word(chunk.get("modelVersion"))
        if "createTime" not in self._metadata and word(chunk.get("createTime")):
            self._metadata["createTime"] = chunk["createTime"]
        usage = chunk.get("usageMetadata")
        if usage is not None and usage != self._newest_usage:
            self._read_usage(_READ.mapping(usage, "usageMetadata"))
        feedback = _READ.mapping(chunk.get("promptFeedback"), "promptFeedback")
        self._is_blocked |= feedback.get("blockReason") not in UNSPECIFIED
        if not _FIELDS.issuperset(chunk):
            remember(self._metadata, other_fields(chunk, _FIELDS))

    def _read_usage(self, usage: Json) -> None:
        said = (
            usage if all(usage.values()) else {name: one for name, one in usage.items() if one not in NOTHING}
        )
        self._usage, self._newest_usage = self._figures.read(said), usage

    def _show_usage(self) -> None:
        for state in self._candidates.values():
            state.message.show_usage(self._usage)

    def _finish(self, *, whole: bool) -> None:
        """Finish the candidates. Those without a reason were cut off, unless the reply is whole."""
        failures: list[Event] = []
        for state in self._candidates.values():
            has_reason = state.word is not None or self._is_blocked
            if has_reason or whole:
                failures += state.finish(
                    self._id,
                    self._model,
                    self._metadata,
                    is_broken_off=self._failed,
                    assumed=not has_reason,
                )
            else:
                state.cut_off()
        self._failed |= bool(failures)
        self._out += failures

    def _end(self) -> None:
        self._over = True
        self._candidates = {}


def recognises(chunk: Json) -> bool:
    """Whether a stream of this format, or a body of it that was not streamed, begins with this chunk.

    Example:
        >>> recognises({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]})
        True
        >>> recognises({"error": {"code": 400, "message": "…", "status": "INVALID_ARGUMENT"}})
        True
        >>> recognises({"error": {"message": "…", "type": "invalid_request_error", "code": None}})
        False
    """
    error, found = chunk.get("error"), chunk.get("candidates")
    if isinstance(error, Mapping) and found is None:
        status = error.get("status")
        return isinstance(status, str) and status.isupper() and type(error.get("code")) is int
    if isinstance(found, (list, tuple)):
        return all(isinstance(candidate, Mapping) for candidate in found)
    if not _ANOTHERS.isdisjoint(chunk):
        return False
    return any(isinstance(chunk.get(name), Mapping) for name in _SIGNS)


def _brings_nothing(candidate: Json) -> bool:
    """Whether a candidate has fields that are unknown, and no parts."""
    content = candidate.get("content")
    fields: Json = content if isinstance(content, Mapping) else {}
    if fields.get("parts"):
        return False
    return not (_CONTENT.issuperset(fields) and _CANDIDATE.issuperset(candidate))


_ERROR = frozenset(["message", "code", "status"])
_ENVELOPE = frozenset(
    ["candidates", "usageMetadata", "promptFeedback", "modelVersion", "responseId", "createTime"]
)
_FIELDS = (_ENVELOPE - {"promptFeedback"}) | {"error", "_event"} | SDKS_OWN

# A response of no more than these is a piece of text or of a thought.
_PLAIN = _ENVELOPE - {"promptFeedback"}
_PLAIN_CANDIDATE = frozenset(["content", "index"])
_PLAIN_PART = frozenset(["text", "thought"])

_CONTENT = frozenset(["role", "parts"])
_CANDIDATE = frozenset(
    [
        "avgLogprobs", "citationMetadata", "content", "continuationToken", "finishMessage", "finishReason",
        "groundingAttributions", "groundingMetadata", "index", "logprobsResult", "safetyRatings", "tokenCount", "urlContextMetadata",
    ]
)  # fmt: skip
"""The fields of a candidate in https://ai.google.dev/api/generate-content#candidate."""

_SIGNS = ("usageMetadata", "promptFeedback", "usage_metadata", "prompt_feedback")
_ANOTHERS = frozenset(["type", "content", "choices", "serverContent", "event_type", "name"])
"""Fields that a first response of this format never has, but other formats', and bodies that are no reply, have."""
