"""One choice of a chat completion: its content, its end, and its other fields by way of their readers."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any

from rxdelta.core import Event, TokenUsage, clean_text, events, reasoning_delta
from rxdelta.formats.block_events import as_citation
from rxdelta.formats.calls import BROKEN_OFF, CUT_OFF
from rxdelta.formats.choices import APPENDED, ChoiceReader, meaning
from rxdelta.formats.decoding import NOTHING, Fields, Json, kept, remember, word
from rxdelta.formats.notes import MISTRAL, SENT_AS, via
from rxdelta.formats.openai_chat.calls import Calls
from rxdelta.formats.openai_chat.fields import Audio, Reasoning, ServerTools, read_image, read_images
from rxdelta.formats.openai_chat.tables import (
    BROKEN,
    FORMAT,
    REASONING_DETAILS,
    REASONING_NAMES,
    REASONING_OPAQUE,
    REASONS,
    THINKING,
    THINKING_BLOCKS,
)

_READ = Fields(FORMAT)


class Choice(ChoiceReader):
    """Reads one of the alternative replies. The current block is a text, a reasoning or a refusal.

    Attributes:
        calls, reasoning, audio, server_tools: Read these fields of its deltas.
        has_deltas: Whether a delta had content.
    """

    provider = "openai"
    fields = _READ
    reasons = REASONS
    broken = BROKEN

    signed_by = via(FORMAT, MISTRAL)
    """The vendor of a signature in the content: that is Mistral's way."""

    def __init__(
        self,
        out: list[Event],
        number: int,
        message_id: str | None,
        model: str | None,
        usage: TokenUsage | None,
    ) -> None:
        super().__init__(out, number, message_id, model, usage)
        self.calls = Calls(self.blocks)
        self.reasoning = Reasoning(self.blocks, self.provider)
        self.audio = Audio(self.blocks)
        self.server_tools = ServerTools(self.blocks)
        self._early_annotations: list[Json] = []  # they came before the text that cites them
        self._unknown: dict[str, list[str]] = {}  # the pieces of fields that nobody knows
        self.has_deltas = self._is_whole = False

    def read(self, choice: Json, path: str) -> None:
        delta = _READ.mapping(choice.get("delta"), f"{path}.delta")
        path, of_choice = f"{path}.delta", path
        if not self.has_deltas:
            self.has_deltas = _says_something(delta)
            # Perplexity and Writer send `message` beside `delta`, or behind all deltas, and repeat their text.
            if not self.has_deltas and choice.get("message") is not None:  # else it repeats what deltas had
                path = f"{of_choice}.message"
                delta = _READ.mapping(choice["message"], path)
                self._is_whole = "delta" not in choice or _says_something(delta)
            elif not self.has_deltas and choice.get("text") not in NOTHING:
                self.is_late = True  # it repeats the deltas' text, but no delta had any
        if self.message.finished:
            self.is_late |= _says_something(delta)
            return
        self.reasoning.read(delta, path)
        given = [field for field in delta if field in _FIELDS]
        for field in given if len(given) < 2 else _FIELDS:
            value = delta.get(field)
            if value is not None:
                _FIELDS[field](self, value, f"{path}.{field}")
        metadata = self.message.metadata
        if not _DELTA.issuperset(delta):
            self._read_unknown({name: delta[name] for name in delta if name not in _DELTA})
        if delta.get(_REASONING_STEPS) is not None:
            self.message.append(_REASONING_STEPS, delta[_REASONING_STEPS])
        if not _CHOICE.issuperset(choice):
            remember(metadata, {name: choice[name] for name in choice if name not in _CHOICE})
        for name in APPENDED:
            if choice.get(name) is not None:
                self.message.append(name, choice[name])

    def plain_reasoning(self, delta: Json) -> Event | None:
        """The event of a plain delta: more of the current reasoning, under one name. `tests/formats/test_plain_chunks.py` tests it."""
        blocks, text = self.blocks, None
        if blocks.type != "reasoning" or not self.has_deltas:
            return None
        for name, value in delta.items():
            if value is None or name == "role" or (value == "" and name in _PROSE):
                continue
            if text is not None or name not in REASONING_NAMES or type(value) is not str:
                return None
            text = value
        return None if text is None else reasoning_delta(blocks.current, text, blocks.choice)

    def _read_unknown(self, fields: Json) -> None:
        """Keep what nobody knows. A text may come in pieces, of which each would replace the one before."""
        remember(
            self.message.metadata,
            {name: value for name, value in fields.items() if not isinstance(value, str)},
        )
        for name, value in fields.items():
            if isinstance(value, str) and value:
                self._unknown.setdefault(name, []).append(value)

    def metadata(self) -> Json:
        """The fields of the choice that the format doesn't know, without its lists."""
        joined = {name: clean_text("".join(pieces)) for name, pieces in self._unknown.items()}
        return {**self.message.metadata, **joined}

    # The content.

    def read_content(self, content: object, path: str) -> None:
        if isinstance(content, str):
            self._write_text(content)
        elif isinstance(content, (list, tuple)):
            for place, part in enumerate(_READ.items(content, path)):
                self.read_part(part, f"{path}[{place}]")
        else:
            raise _READ.fail(path, "a string or a list of parts", content)

    def read_part(self, found: object, path: str) -> None:
        """Read a part of a content that is a list."""
        part = {"type": "text", "text": found} if isinstance(found, str) else _READ.mapping(found, path)
        kind = word(part.get("type"))
        if kind in ("text", "output_text"):
            self._require(part, path, "text", "annotations")
            self._write_text(_READ.text_of(part, "text", path))
            self.read_annotations(part.get("annotations"), f"{path}.annotations")
        elif kind in (THINKING, "reasoning"):
            self._require(part, path, kind, "text", "summary", "signature")
            self.read_thinking(part.get(kind, part.get("text")), f"{path}.{kind}")
            for place, entry in enumerate(_READ.items(part.get("summary"), f"{path}.summary")):
                self.reasoning.read_detail(entry, f"{path}.summary[{place}]")
            signature = _READ.text_of(part, "signature", path)
            if signature:
                self.reasoning.sign(signature, self.signed_by)
        elif kind == "refusal":
            self._require(part, path, "refusal")
            self.read_refusal(part.get("refusal"), f"{path}.refusal")
        elif kind == "image_url":
            read_image(self.blocks, part, path)
        else:
            # A part that calls itself a call is passed on too: it has none of the fields of a call.
            self.blocks.pass_on(part)

    def read_thinking(self, thinking: object, path: str) -> None:
        """Read the text of a part that is reasoning, or the list of its texts."""
        for place, found in enumerate(
            [thinking] if isinstance(thinking, str) else _READ.items(thinking, path)
        ):
            at = f"{path}[{place}]"
            part = {"type": "text", "text": found} if isinstance(found, str) else _READ.mapping(found, at)
            if part.get("type") != "text":
                self.blocks.pass_on(part)
                continue
            self._require(part, at, "text")
            if text := _READ.text_of(part, "text", at):
                self.blocks.write("reasoning", text, {SENT_AS: THINKING})

    @staticmethod
    def _require(part: Json, path: str, field: str, *others: str) -> None:
        """Refuse a part that has none of these fields: it would bring nothing of what it says."""
        if part.keys().isdisjoint((field, *others)):
            raise _READ.fail(f"{path}.{field}", "the field that a part of this type has", None)

    def read_refusal(self, refusal: object, path: str) -> None:
        text = _READ.text(refusal, path)
        if text:
            self.blocks.write("refusal", text)

    def read_annotations(self, found: object, path: str) -> None:
        """Read citations of the current text, or else of the next. Without a text they go to the message."""
        entries = enumerate(_READ.items(found, path))
        annotations = (_READ.mapping(entry, f"{path}[{place}]") for place, entry in entries)
        if self.blocks.type == "text":
            self.blocks.cite(map(_citation, annotations))
        else:
            self._early_annotations.extend(map(kept, annotations))

    def _write_text(self, text: str) -> None:
        if not text:
            return
        # OpenRouter's annotations may come before the text that cites them.
        if self._early_annotations and self.blocks.type != "text":
            self.blocks.begin({"type": "text", "text": ""})
            self.blocks.cite(map(_citation, self._early_annotations))
            self._early_annotations = []
        self.blocks.write("text", text)

    # The end.

    def read_joined_finish_reason(self, choice: Json, path: str) -> None:
        """Read the finish reason of another choice that is this reply's. The first one's counts."""
        if self.word and _READ.text_of(choice, "finish_reason", path):
            self.end_blocks()

    def end_blocks(self) -> None:
        self._finish_blocks(keep=self.calls.end_fragments())

    def finish_blocks(self) -> None:
        self._finish_blocks()

    @property
    def has_prose(self) -> bool:
        """Whether it has blocks that are no calls."""
        return self.blocks.count > self.calls.count

    @property
    def asked(self) -> bool:
        return self.calls.ever

    @property
    def has_ended(self) -> bool:
        # A body that wasn't streamed may have no finish reason.
        return bool(self.word) or (self._is_whole and not self.has_deltas)

    def was_late(self) -> bool:
        if not (self.is_late or self.calls.late):
            return False
        self.is_late = self.calls.late = False
        return True

    def finish(self, model: str | None, metadata: Json) -> None:
        self.calls.end()
        if self._early_annotations:
            self.message.append("annotations", self._early_annotations)
        self.message.metadata = {**self.metadata()}
        if self._unknown and not self.blocks.count:  # the reply may stand in them
            unread = {name: self.message.metadata[name] for name in self._unknown}
            self.blocks.out.append(events.ProviderEvent(self.provider, "delta", unread))
        super().finish(model, metadata)

    def _finish_blocks(self, *, keep: Set[int] = frozenset()) -> None:
        """Finish the open blocks in their order."""
        self.calls.settle()
        is_cut = meaning(REASONS, self.word) == "length"
        wrong = BROKEN_OFF if self.failure is not None else CUT_OFF if is_cut else None
        finish: dict[int, Callable[[], None]] = {}
        for block in self.calls.open:
            finish[block] = partial(self.calls.finish, block, wrong)
        if self.audio.block is not None:
            finish[self.audio.block] = partial(self.audio.finish, self.audio.block)
        if self.blocks.type is not None:
            finish[self.blocks.current] = self.blocks.end_current
        for block in sorted(finish.keys() - keep):
            finish[block]()


def _says_something(delta: Json) -> bool:
    return any(value not in NOTHING for field, value in delta.items() if field != "role")


def _citation(annotation: Json) -> Json:
    kind = annotation.get("type")
    inner = annotation.get(kind) if isinstance(kind, str) else None
    source: Json = inner if isinstance(inner, Mapping) else annotation
    found = {name: source.get(name) for name in ("title", "url", "start_index", "end_index")}
    found["cited_text"] = source.get("cited_text", source.get("content"))
    return as_citation(found, annotation)


_FIELDS: Mapping[str, Callable[[Choice, Any, str], None]] = {
    "content": Choice.read_content,
    "annotations": Choice.read_annotations,
    "refusal": Choice.read_refusal,
    "tool_calls": lambda choice, found, path: choice.calls.read(found, path),
    "function_call": lambda choice, found, path: choice.calls.read_function_call(found, path),
    "executed_tools": lambda choice, found, path: choice.server_tools.read(found, path),
    "images": lambda choice, found, path: read_images(choice.blocks, found, path),
    "audio": lambda choice, found, path: choice.audio.read(found, path),
}
"""The readers of a delta's fields, in the order in which they read, behind the reasoning."""

_REASONING_STEPS = "reasoning_steps"
"""Perplexity's list, which continues with every chunk."""

# The fields that are read, here or by the decoder, or mean nothing: the id of a single token, a copy of the text.
_CHOICE = frozenset(["index", "delta", "message", "finish_reason", "text", "error", "usage", *APPENDED])
_DELTA = frozenset([
    "role", "token_id", *REASONING_NAMES, REASONING_DETAILS, REASONING_OPAQUE, THINKING_BLOCKS,
    _REASONING_STEPS, *_FIELDS
])  # fmt: skip
_PROSE = frozenset(["content", *REASONING_NAMES])
