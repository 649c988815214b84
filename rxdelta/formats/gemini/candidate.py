"""One candidate of a response: its parts, the tools that the provider runs itself, its citations and its end."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import Event, TokenUsage, finish_reason, freeze
from rxdelta.formats.block_events import MessageWriter, as_citation
from rxdelta.formats.calls import BROKEN_OFF, CUT_OFF, given_id
from rxdelta.formats.decoding import Fields, Json, kept, others, remember, word
from rxdelta.formats.endings import Broken, broken_events
from rxdelta.formats.gemini.calls import Blocks, Calls
from rxdelta.formats.gemini.tables import (
    BROKEN,
    CODE_RESULT,
    EXECUTABLE_CODE,
    FORMAT,
    NUMBERED_REASONS,
    REASONS,
    SERVER_TOOLS,
    TOOL_CALL,
    TOOL_RESPONSE,
    UNSPECIFIED,
    other_fields,
)
from rxdelta.formats.notes import FINISH_REASON_ASSUMED, GOOGLE, PROVIDER_TYPE, SIGNED_BY, THOUGHT, signed


def citation(found: Json) -> Json:
    names = {"title": "title", "url": "uri", "start_index": "startIndex", "end_index": "endIndex"}
    return as_citation({name: found.get(theirs) for name, theirs in names.items()}, found)


def grounding(metadata: object) -> list[Json]:
    """The citations of a web search and the like: which piece of the text rests on which source."""
    if not isinstance(metadata, Mapping):
        return []
    sources, supports = (metadata.get(name) for name in ("groundingChunks", "groundingSupports"))
    if not isinstance(sources, (list, tuple)) or not isinstance(supports, (list, tuple)):
        return []
    found: list[Json] = []
    for support in supports:
        fields: Json = support if isinstance(support, Mapping) else {}
        segment, indexes = fields.get("segment"), fields.get("groundingChunkIndices")
        place: Json = segment if isinstance(segment, Mapping) else {}
        for index in indexes if isinstance(indexes, (list, tuple)) else ():
            if type(index) is not int or not 0 <= index < len(sources):
                continue
            whole: Any = sources[index]
            kinds = list(whole.values()) if isinstance(whole, Mapping) else []
            source: Json = kinds[0] if kinds and isinstance(kinds[0], Mapping) else {}
            values = {
                "title": source.get("title"),
                "url": source.get("uri"),
                "cited_text": source.get("text"),
                "start_index": place.get("startIndex"),
                "end_index": place.get("endIndex"),
            }
            found.append(as_citation(values, {**fields, "groundingChunk": whole}))
    return found


_READ = Fields(FORMAT)


class ServerTools:
    """Reads the provider's own calls and their results of one candidate, each with the fields of its part."""

    __slots__ = ("_blocks", "_running")

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._running: dict[str, str] = {}  # the id of the newest call of each kind, until its result

    def read(self, kind: str, found: Json, fields: Json, path: str) -> None:
        _READERS[kind](self, found, fields, path)

    def read_executable_code(self, code: Json, fields: Json, path: str) -> None:
        call = {"name": "code_execution", "args": others(code, _ID)}
        self._write_call(EXECUTABLE_CODE, code, {**fields, **call}, path)

    def read_code_result(self, result: Json, fields: Json, path: str) -> None:
        status = None
        if result.get("outcome") not in UNSPECIFIED:
            status = "success" if result["outcome"] in ("OUTCOME_OK", 1) else "error"
        own = {PROVIDER_TYPE: CODE_RESULT, "output": others(result, _ID), "status": status}
        self._write_result(EXECUTABLE_CODE, result, {**fields, **own}, path)

    def read_tool_call(self, found: Json, fields: Json, path: str) -> None:
        kind = found.get("toolType")
        args = _READ.mapping(found.get("args"), f"{path}.args")
        call = {**others(found, _TOOL_CALL), "name": word(kind) or str(kind or "tool"), "args": kept(args)}
        self._write_call(TOOL_CALL, found, {**fields, **call}, path)

    def read_tool_response(self, response: Json, fields: Json, path: str) -> None:
        output = freeze(response.get("response"), lenient=True)
        own = {**others(response, _TOOL_RESPONSE), PROVIDER_TYPE: TOOL_RESPONSE, "output": output}
        self._write_result(TOOL_CALL, response, {**fields, **own}, path)

    def _write_call(self, kind: str, found: Json, content: Json, path: str) -> None:
        known = self._blocks.call_identity(given_id(_READ.text_of(found, "id", path)))
        self._running[kind] = known["id"]
        self._blocks.whole({**content, **known, "type": "server_tool_call", PROVIDER_TYPE: kind})

    def _write_result(self, kind: str, found: Json, content: Json, path: str) -> None:
        """Write a result. One without an id is that of the newest call of its kind."""
        call_id = given_id(_READ.text_of(found, "id", path)) or self._running.get(kind)
        self._running.pop(kind, None)
        self._blocks.whole({**content, "type": "server_tool_result", "tool_call_id": call_id})


_READERS: Mapping[str, Callable[[ServerTools, Json, Json, str], None]] = {
    EXECUTABLE_CODE: ServerTools.read_executable_code,
    CODE_RESULT: ServerTools.read_code_result,
    TOOL_CALL: ServerTools.read_tool_call,
    TOOL_RESPONSE: ServerTools.read_tool_response,
}

_ID = frozenset(["id"])
_TOOL_CALL = frozenset(["id", "toolType", "args"])
_TOOL_RESPONSE = frozenset(["id", "response"])


class Candidate:
    """Reads one of the alternative replies.

    Attributes:
        number: Its index.
        message: Writes its start, usage and finish.
        blocks: Writes its blocks.
        calls, server_tools: Read these parts of its content.
        word: Its newest finish reason, in the provider's words.
    """

    def __init__(
        self,
        out: list[Event],
        number: int,
        response_id: str | None,
        model: str | None,
        usage: TokenUsage | None,
    ) -> None:
        self.message = MessageWriter(out, number, response_id, model, usage)
        self.blocks = Blocks(out, number, response_id)
        self.calls = Calls(self.blocks)
        self.server_tools = ServerTools(self.blocks)
        self.number = number
        self.word: str | None = None
        self._lists: dict[str, dict[str, Any]] = {}

    def read(self, candidate: Json, path: str) -> None:
        """Read what a response has of this candidate."""
        content = _READ.mapping(candidate.get("content"), f"{path}.content")
        self.calls.will_continue = False
        for place, part in enumerate(_READ.items(content.get("parts"), f"{path}.content.parts")):
            at = f"{path}.content.parts[{place}]"
            self._read_part(_READ.mapping(part, at), at)
        if candidate.get("citationMetadata") is not None:
            self._read_citations(candidate["citationMetadata"], f"{path}.citationMetadata")
        if not _CONTENT.issuperset(content):
            remember(self.message.metadata, others(content, _CONTENT))
        if not _CANDIDATE.issuperset(candidate):
            remember(self.message.metadata, other_fields(candidate, _CANDIDATE))
        if candidate.get("logprobsResult") is not None:
            found = _READ.mapping(candidate["logprobsResult"], f"{path}.logprobsResult")
            self._append("logprobsResult", found)
        self._read_finish_reason(candidate.get("finishReason"), f"{path}.finishReason")

    def cut_off(self) -> None:
        """Emit what is held back, of a reply that has no end."""
        self.blocks.flush()
        self.calls.flush()

    def finish(
        self,
        response_id: str | None,
        model: str | None,
        metadata: Json,
        *,
        is_broken_off: bool,
        assumed: bool,
    ) -> list[Event]:
        """Finish the message. Return the events that end the stream, if its reason says that the provider failed.

        Args:
            response_id, model, metadata: Those of the response.
            is_broken_off: Whether an error has ended the stream.
            assumed: Whether the provider gave no reason, but the reply is whole.
        """
        if self.blocks.type == "text":
            self.blocks.cite(grounding(self.message.metadata.get("groundingMetadata")))
        self.blocks.end_current()
        self.calls.end(BROKEN_OFF if is_broken_off else self._cut())
        self.message.metadata |= self._lists
        broken = None if self.word is None or is_broken_off else BROKEN.get(self.word)
        if broken is not None and self.word is not None:
            more = {**metadata, **self.message.metadata}
            broken = Broken(word(more.pop("finishMessage", None)) or broken.sentence, broken.transient)
            return broken_events("google", self.word, broken, None, more, choice=self.number)
        if assumed:
            self.message.metadata[FINISH_REASON_ASSUMED] = True
        # A blocked prompt has no reason of its own.
        reason = None if assumed else REASONS.get(self.word) if self.word else "content_filter"
        reason = finish_reason(reason, asked=self.calls.ever)
        self.message.finish(reason, self.word, metadata, model, response_id)
        return []

    def _read_part(self, part: Json, path: str) -> None:
        fields = others(part, _PART)
        signature = _READ.text_of(part, "thoughtSignature", path)
        if signature:
            fields |= signed(signature, GOOGLE)
        is_thought = part.get("thought") is True
        kind = "reasoning" if is_thought else "text"
        kinds = [name for name in _KINDS if part.get(name) is not None]
        if is_thought and kinds and kinds != ["text"]:
            fields[THOUGHT] = True  # an image or a call that was made while thinking
        for name in kinds:
            at = f"{path}.{name}"
            if name == "text":
                self.blocks.write_text(kind, _READ.text(part["text"], at), fields)
                continue
            found = _READ.mapping(part[name], at)
            if name == "functionCall":
                self.calls.read(found, fields, at)
            elif name in SERVER_TOOLS:
                self.server_tools.read(name, found, fields, at)
            elif name == "inlineData":
                self._read_inline_data(found, fields, at)
            else:
                self._read_file_data(found, fields, at)
        if not kinds and fields.keys() <= {"signature", SIGNED_BY}:
            self.blocks.sign(kind, fields)
        elif not kinds:
            self.blocks.pass_on(part)

    def _read_inline_data(self, blob: Json, fields: Json, path: str) -> None:
        mime_type, data = _READ.text_of(blob, "mimeType", path), _READ.text_of(blob, "data", path)
        kind = _kind_of_media(mime_type)
        fields = {**fields, **others(blob, _BLOB)} | ({"mime_type": mime_type} if mime_type else {})
        if kind == "audio":
            self.blocks.write_audio(data, mime_type, fields)
        else:
            self.blocks.whole({**fields, "type": kind}, data)

    def _read_file_data(self, file: Json, fields: Json, path: str) -> None:
        mime_type, url = _READ.text_of(file, "mimeType", path), _READ.text_of(file, "fileUri", path)
        known = {"mime_type": mime_type or None, "url": url or None}
        self.blocks.whole({**fields, **others(file, _FILE), "type": _kind_of_media(mime_type), **known})

    def _read_citations(self, found: object, path: str) -> None:
        metadata = _READ.mapping(found, path)
        citations = (
            _READ.mapping(entry, f"{path}.{name}[{place}]")
            for name in ("citations", "citationSources")
            for place, entry in enumerate(_READ.items(metadata.get(name), f"{path}.{name}"))
        )
        if self.blocks.type == "text":
            self.blocks.cite(map(citation, citations))
        else:
            for one in citations:
                self._append("citationMetadata", {"citations": [one]})

    def _append(self, name: str, found: Json) -> None:
        """Add to the metadata an object whose lists continue with every response. Its other fields are replaced."""
        known = self._lists.setdefault(name, {})
        for key, value in kept(found).items():
            if isinstance(value, (list, tuple)):
                before = known.get(key)
                known[key] = [*(before if isinstance(before, list) else ()), *value]
            elif value is not None:
                known[key] = value

    def _read_finish_reason(self, found: object, path: str) -> None:
        """Read the finish reason. The newest counts, since some send one with every response."""
        if type(found) is int:
            found = NUMBERED_REASONS.get(found, str(found) if abs(found) < 2**31 else "")
        reason = _READ.text(found, path)
        if reason in UNSPECIFIED:
            return
        # Older models and proxies send `STOP` with every response, so only calls end here: a tool mustn't wait.
        self.word = str.__str__(reason)
        if not self.calls.will_continue:
            self.calls.end(self._cut())

    def _cut(self) -> str | None:
        """Why the open call isn't complete, or `None`: behind a `STOP` it is complete without its own end."""
        if self.word in (None, "STOP"):
            return None
        return CUT_OFF if self.word == "MAX_TOKENS" else f"broken off ({self.word})"


def _kind_of_media(mime_type: str) -> str:
    kind = mime_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


_KINDS = ("text", "functionCall", *SERVER_TOOLS, "inlineData", "fileData")
"""The kinds of parts. A part of another kind is kept whole."""

_CANDIDATE = frozenset(["index", "content", "finishReason", "citationMetadata", "logprobsResult"])
_CONTENT = frozenset(["role", "parts"])
_PART = frozenset(["thought", "thoughtSignature", *_KINDS])
_BLOB = frozenset(["mimeType", "data"])
_FILE = frozenset(["mimeType", "fileUri"])
