"""The decoder of the formats that have OpenAI's choices: the envelope of a chunk, usage, errors and the end.

    stream = chunk*             without a mark of the first or last; `[DONE]` belongs to the framing
    chunk  = id model created choices: [choice*] usage? error? extras

A format subclasses `ChoiceReader` for its choices, and `ChoicesDecoder` for its plain chunks and its vendors' exceptions.
The many forms of the end are described in `openai_chat/decoder.py`.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from rxdelta.core import ByChoice, Event, TokenUsage, events, finish_reason
from rxdelta.formats.block_events import BlockWriter, MessageWriter, take_all
from rxdelta.formats.calls import KnowsCalls
from rxdelta.formats.decoding import NOTHING, Fields, Json, as_mapping, kept, remember, word
from rxdelta.formats.endings import Broken, broken_events, error_events, error_in
from rxdelta.formats.notes import FINISH_REASON_ASSUMED
from rxdelta.formats.usage import CHAT, RunningUsage
from rxdelta.framing import DONE

T = TypeVar("T")

APPENDED = ("logprobs", "token_ids")
"""The lists of a choice that continue with every chunk."""

# The fields that are read or mean nothing: padding against eavesdroppers, and the name that framing gives to an event.
ENVELOPE = frozenset(
    ["id", "model", "created", "object", "choices", "usage", "error", "obfuscation", "p", "_event"]
)

# A chunk of no more than these is a piece of a block. Fields that repeat in every chunk are read from other chunks.
PLAIN_CHUNK = (ENVELOPE - {"error"}) | {"system_fingerprint", "service_tier", "provider"}

_ERROR = frozenset(["message", "type", "code", "object", "param"])


def meaning(table: Mapping[str, T], word: str) -> T | None:
    """The meaning of a finish reason by a table. Gemini's server adds details: `content_filter: PROHIBITED_CONTENT`.

    Example:
        >>> table = {"content_filter": 1}
        >>> meaning(table, "CONTENT_FILTER: recitation"), meaning(table, "huh")
        (1, None)
    """
    name = word.lower()
    return table.get(name) or table.get(name.partition(":")[0])


class ChoiceReader:
    """Reads one of the alternative replies. A format gives the class variables and `read`.

    Attributes:
        provider: The name under which chunks and parts of chunks are passed on.
        fields: Reads the fields of a chunk; its errors have the format's name.
        reasons: What each finish reason means.
        broken: What the finish reasons mean that say that the vendor failed.
        message: Writes its start, usage and finish.
        blocks: Writes its blocks.
        word: Why it ended, in the vendor's word; empty before its finish reason.
        failure: What that word means if it says that the vendor failed.
        is_late: Whether the chunk contradicts an end that has been emitted; `read` sets it, too.
    """

    provider: ClassVar[str]
    fields: ClassVar[Fields]
    reasons: ClassVar[Mapping[str, str]]
    broken: ClassVar[Mapping[str, Broken]]

    def __init__(
        self,
        out: list[Event],
        number: int,
        message_id: str | None,
        model: str | None,
        usage: TokenUsage | None,
    ) -> None:
        self.message = MessageWriter(out, number, message_id, model, usage)
        self.blocks = BlockWriter(out, number, message_id)
        self.word = ""
        self.failure: Broken | None = None
        self.is_late = False

    def read(self, choice: Json, path: str) -> None:
        """Read all fields but the finish reason."""
        raise NotImplementedError

    def read_finish_reason(self, choice: Json, path: str) -> None:
        """Read the finish reason. The first one counts; a chunk with another one is passed on."""
        if choice.get("finish_reason") is None:
            return
        found = self.fields.text_of(choice, "finish_reason", path)
        if not found or self.word:
            self.is_late |= found not in ("", self.word)
            return
        self.word, self.failure = found, meaning(self.broken, found)
        self.end_blocks()

    def end_blocks(self) -> None:
        """Finish the blocks that end with the finish reason."""
        self.finish_blocks()

    def finish_blocks(self) -> None:
        """Finish all open blocks."""
        self.blocks.end_current()

    @property
    def has_ended(self) -> bool:
        """Whether the reply has its finish reason, or needs none."""
        return bool(self.word)

    @property
    def asked(self) -> bool:
        """Whether the reply has calls for the client."""
        return False

    def was_late(self) -> bool:
        """Whether the chunk contradicted an emitted end. Then the decoder passes the chunk on."""
        late, self.is_late = self.is_late, False
        return late

    def metadata(self) -> Json:
        """The fields of the choice that the format doesn't know, without its lists."""
        return self.message.metadata

    def finish(self, model: str | None, metadata: Json) -> None:
        """Finish the message. Its blocks have finished."""
        reason = finish_reason(meaning(self.reasons, self.word), asked=self.asked)
        if not self.word:
            metadata = {**metadata, FINISH_REASON_ASSUMED: True}
        self.message.finish(reason, self.word or None, metadata, model)


C = TypeVar("C", bound=ChoiceReader)


class ChoicesDecoder(KnowsCalls, Generic[C]):
    """Chunks of one stream in, events out. A block's `index` is its place in its choice.

    A format gives `fields`, `choice_type` and `_is_empty`, and `_plain` for speed; `openai_completions` is the shortest one.
    """

    fields: ClassVar[Fields]
    choice_type: type[C]
    last_objects: ClassVar[tuple[str, ...]] = ()
    """The values of `object` in a chunk behind which nothing follows."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._usage: TokenUsage | None = None
        self._running_usage = RunningUsage(CHAT, whole=True)
        self._choices: dict[int, C] = ByChoice()
        self._out: list[Event] = []
        self._has_closing_usage = False  # the newest chunk had the usage and no choices
        self._over = self._failed = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or an object of the SDK.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: The index of a choice or a call is absurd.
        """
        plain = None if self._out or self._has_closing_usage else self._plain(chunk)
        if plain is not None:
            return plain
        if chunk is DONE:
            return self._checked(self._end(assumed=True)) if self._choices else ()
        return self._checked(self._decode(as_mapping(chunk, self.fields.wire_format)))

    def close(self) -> Sequence[Event]:
        """End of input: the finish of each message that has a finish reason. Others were cut off."""
        return self._checked_last(self._end(assumed=self._has_closing_usage))

    # The exceptions of a format.

    def _plain(self, _: Any, /) -> Sequence[Event] | None:
        """The events of a plain chunk, which only continues a block, as most chunks do; `None` for all others.

        They are those of `_decode`: `tests/formats/test_plain_chunks.py` compares the two for every format.
        """
        return None  # read all chunks the long way

    def _is_empty(self, choice: object) -> bool:
        """Whether a choice behind the end of the reply is empty, and dropped."""
        raise NotImplementedError

    def _error_of(self, chunk: Json, _: Sequence[Any], /) -> Json | None:
        """The error that a chunk reports."""
        # vLLM's is the chunk itself.
        return error_in(chunk) or (chunk if chunk.get("object") == "error" else None)

    def _usage_of(self, chunk: Json, _: Sequence[Any], /) -> tuple[object, str]:
        """The usage in a chunk, and its path."""
        return chunk.get("usage"), "usage"

    def _extras(self, chunk: Json) -> dict[str, Any]:
        """The fields of a chunk that the format doesn't know."""
        return {name: value for name, value in chunk.items() if name not in ENVELOPE}

    def _read_choices(self, choices: Sequence[Any], _: Json, /, *, is_broken_off: bool) -> bool:
        """Read the choices of a chunk. Return whether one came behind its end."""
        was_late = False
        for place, found in enumerate(choices):
            path = f"choices[{place}]"
            choice = self.fields.mapping(found, path)
            index = choice.get("index")
            number = 0 if index is None else self.fields.index(index, f"{path}.index")
            state = self._choices.get(number) or self._begin(number)
            state.read(choice, path)
            if not is_broken_off:  # a reply that breaks off isn't finished, whatever its finish reason
                state.read_finish_reason(choice, path)
            was_late |= state.was_late()
        return was_late

    def _settle(self, *, is_over: bool = True) -> None:
        """Read the choices that have waited for later ones. Without `is_over`, only the usage has come."""

    # The chunk.

    def _decode(self, chunk: Json) -> Sequence[Event]:
        choices = self.fields.items(chunk.get("choices"), "choices")
        error = self._error_of(chunk, choices)
        if self._over:
            has_news = error or chunk.get("usage") or not all(map(self._is_empty, choices))
            return [self._passed_on(chunk)] if has_news and not self._failed else ()
        has_usage = self._read_usage(chunk, choices)
        must_pass_on = self._read_envelope(chunk, bool(choices) or has_usage or error is not None)
        must_pass_on |= self._read_choices(choices, chunk, is_broken_off=error is not None)
        if has_usage:
            shown = [state.message.show_usage(self._usage) for state in self._choices.values()]
            must_pass_on |= not all(shown)
        is_closing = has_usage and not choices
        is_last = is_closing or chunk.get("object") in self.last_objects
        if is_last:
            self._settle(is_over=not is_closing)
        if choices or is_closing:
            # A usage without choices closes a message that has no finish reason only if nothing follows: some vendors send it first,
            # or in between.
            self._has_closing_usage = is_closing
        if error is not None:
            self._finish(is_broken_off=True)
        elif is_last and all(state.has_ended for state in self._choices.values()):
            self._finish()  # the usage is the whole request's: it isn't the last while a choice continues
        if must_pass_on:
            self._out.append(self._passed_on(chunk))
        if error is not None:
            self._fail(error_events(self.choice_type.provider, error, error.get("type"), _ERROR))
        return take_all(self._out)

    def _begin(self, number: int) -> C:
        state = self.choice_type(self._out, number, self._id, self._model, self._usage)
        self._choices[number] = state
        state.message.start(self._metadata)
        return state

    def _read_usage(self, chunk: Json, choices: Sequence[Any]) -> bool:
        """Read the usage, which replaces an earlier one, but for zeros. Return whether there is one."""
        found, path = self._usage_of(chunk, choices)
        usage = None if found is None else self.fields.mapping(found, path)
        if not usage:
            return False
        self._usage = self._running_usage.read(usage)
        return True

    def _read_envelope(self, chunk: Json, is_of_the_message: bool) -> bool:
        """Read the fields of the whole message. Return `True` for a chunk of another kind, which is passed on."""
        # Azure's first chunk has an empty id, Groq's compound systems give every chunk another one: the first word counts.
        if self._id is None:
            self._id = word(chunk.get("id"))
        if self._model is None:
            self._model = word(chunk.get("model"))
        created = chunk.get("created")
        if created and "created" not in self._metadata and type(created) in (int, float):
            self._metadata["created"] = created
        if ENVELOPE.issuperset(chunk):
            return False
        extras = self._extras(chunk)
        # Azure's first chunk has no choices, but what its filter says of the prompt.
        if not is_of_the_message and "prompt_filter_results" not in chunk:
            foreign = [value for name, value in extras.items() if name not in PLAIN_CHUNK]
            if any(value not in NOTHING for value in foreign):
                return True
        remember(self._metadata, extras)
        return False

    # The end.

    def _finish(self, *, assumed: bool = False, is_broken_off: bool = False) -> None:
        """Finish the messages that have ended; with `assumed` also those without a finish reason.

        The error that a finish reason means comes last, unless the stream is broken off by an error of its own.
        """
        failed: list[Event] = []
        for number, state in self._choices.items():
            if state.message.finished or not (assumed or state.has_ended):
                continue
            state.finish_blocks()
            if state.failure is None:
                state.finish(self._model, self._metadata)
            elif not failed:
                metadata = {**self._metadata, **state.metadata()}
                failed = broken_events(
                    state.provider, state.word, state.failure, None, metadata, choice=number
                )
        if failed and not is_broken_off:
            self._fail(failed)

    def _fail(self, error: Sequence[Event]) -> None:
        self._out += error
        self._failed = self._over = True
        self._choices = {}

    def _end(self, *, assumed: bool) -> Sequence[Event]:
        if not self._over:
            self._settle()
        self._finish(assumed=assumed)
        self._over, self._choices = True, {}
        return take_all(self._out)

    def _passed_on(self, chunk: Json) -> Event:
        name = word(chunk.get("object")) or "chunk"
        return events.ProviderEvent(self.choice_type.provider, name, kept(chunk))
