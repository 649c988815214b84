"""One candidate of a response: its parts, by way of their readers, its citations and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import Event, TokenUsage
from rxdelta.formats.block_writer import MessageWriter
from rxdelta.formats.decoding import Fields
from rxdelta.formats.endings import broken_events
from rxdelta.formats.gemini.blocks import Blocks
from rxdelta.formats.gemini.calls import Calls
from rxdelta.formats.gemini.citations import citation, grounding
from rxdelta.formats.gemini.server_tools import ServerTools
from rxdelta.formats.gemini.tables import (
    BROKEN,
    FORMAT,
    NUMBERED_REASONS,
    REASONS,
    SERVER_TOOLS,
    UNSPECIFIED,
)
from rxdelta.formats.gemini.wire_form import other_fields
from rxdelta.formats.json_values import kept, others, remember, word
from rxdelta.formats.notes import FINISH_REASON_ASSUMED, SIGNED_BY, THOUGHT
from rxdelta.formats.provider_errors import Broken
from rxdelta.formats.signatures import GOOGLE, signed
from rxdelta.formats.tool_calls import BROKEN_OFF, CUT_OFF

__all__ = ["Candidate"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields(FORMAT)


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
        reason = "stop" if assumed else REASONS.get(self.word, "stop") if self.word else "content_filter"
        if reason == "stop" and self.calls.ever:
            reason = "tool_use"
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
