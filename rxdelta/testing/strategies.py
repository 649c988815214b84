"""Strategies of Hypothesis: replies as messages, as events, and as the chunks of a format.

Needs the package `hypothesis`, and is the only module here that does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs
from hypothesis import strategies as st

from rxdelta.core import (
    Event,
    Fold,
    InvalidValueError,
    Message,
    TokenUsage,
    ToolResult,
    block_from_wire,
    check_word,
    events as ev,
    grows_by,
)
from rxdelta.providers import WireFormat
from rxdelta.wire import carried_by, write

__all__ = ["End", "Kind", "chunk_streams", "event_streams", "messages"]

Kind: TypeAlias = Literal[
    "text", "reasoning", "redacted_reasoning", "refusal", "citation", "citation_without_url", "tool_call",
    "invalid_tool_call", "tool_result", "server_tool_call", "image", "image_url", "audio", "audio_url", "video",
    "video_url", "file", "file_url", "file_id",
]  # fmt: skip
"""What a reply may have, in the words of the table in docs/reference/written-formats.md.

A `citation` is a text that cites something. A `tool_result` is a call that has its result. A `server_tool_call` is one of the
provider's own tools, with its result.
"""

End: TypeAlias = Literal["whole", "cut", "failed", "interrupted"]
"""How a stream ends: with the end of its message, or before it: without a word, with a `StreamError`, with a
`MessageInterrupted`."""

Events: TypeAlias = "list[Event]"

_KINDS: Final[Sequence[Kind]] = get_args(Kind)
_ENDS: Final[Sequence[End]] = get_args(End)
_WHOLE: Final[Sequence[End]] = ("whole",)
_MIME_TYPES: Final = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/pdf",
}

_LETTERS = st.characters(exclude_categories=["Cs"])
_NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
_LINKS = st.sampled_from(["https://a.example/1", "https://b.example/2"])
_DATA = st.binary(min_size=1, max_size=12).map(lambda found: base64.b64encode(found).decode())
_SIGNERS = st.sampled_from(["anthropic", "google", "openai-responses", "google via openai-chat"])
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(_LETTERS, max_size=9),
    lambda some: st.lists(some, max_size=2) | st.dictionaries(_NAMES, some, max_size=2),
    max_leaves=4,
)
_RESULTS = _JSON.filter(lambda result: result is not None)  # of which formats make a text
_ARGUMENTS = st.dictionaries(_NAMES, _JSON, max_size=3).map(json.dumps)
_NO_ARGUMENTS = st.sampled_from(['{"a": ', "{a: 1}", "no JSON"])


def messages(
    *,
    kinds: Collection[Kind] | None = None,
    wire_format: WireFormat | str | None = None,
    max_blocks: int = 4,
    max_text: int = 40,
) -> st.SearchStrategy[Message]:
    """A strategy of finished replies: assistant messages, as they are folded from a stream.

    Args:
        kinds: What they may have; by default, everything that the format can carry.
        wire_format: A format that must be able to carry them, for `rd.wire.write`; `None` for no such limit.
        max_blocks: How many blocks a message has at most.
        max_text: How many characters a text has at most.

    Raises:
        InvalidValueError: A kind that doesn't exist, or that the format can't carry; a wrong size.
        UnknownWireFormatError: There is no such format.

    Example:
        >>> from hypothesis import find
        >>> from rxdelta.testing.strategies import messages
        >>> find(messages(), lambda message: "b" in message.text).blocks
        (ContentPart('text', 'b'),)
    """
    how = _checked(kinds, max_blocks, max_text, wire_format)
    return _replies(how, 1, False).map(_message)


def event_streams(
    *,
    kinds: Collection[Kind] | None = None,
    wire_format: WireFormat | str | None = None,
    choices: int = 1,
    interleaved: bool = True,
    ends: Collection[End] = _WHOLE,
    max_blocks: int = 4,
    max_text: int = 40,
) -> st.SearchStrategy[list[Event]]:
    """A strategy of streams of events, each of one reply in any pieces, which `rd.validate()` accepts.

    Args:
        kinds, wire_format, max_blocks, max_text: As of `messages`, for each choice.
        choices: How many choices it has at most, which come at a time.
        interleaved: Whether blocks may be open together, such as parallel calls.
        ends: How a stream may end. All but `whole` need an `rd.validate` that lets an end be missing.

    Raises:
        InvalidValueError: A kind or an end that doesn't exist, or that the format can't carry; a wrong size.
        UnknownWireFormatError: There is no such format.

    Example:
        >>> from hypothesis import find
        >>> from rxdelta.testing.strategies import event_streams
        >>> found = find(event_streams(ends={"cut"}), lambda events: len(events) == 3)
        >>> [event.event for event in found]
        ['message-start', 'content-block-start', 'content-block-finish']
    """
    how = _checked(kinds, max_blocks, max_text, wire_format)
    _check_size("choices", choices, 1)
    chosen = [end for end in _ENDS if end in _words("ends", ends, _ENDS)]
    if wire_format is not None:
        carries = carried_by(wire_format)
        if choices > 1 and "choices" not in carries:
            raise InvalidValueError.of([("choices", choices, f"must be 1 in a stream of {wire_format}")])
        if "interrupted" in chosen and "interruption" not in carries:
            raise InvalidValueError.of([("ends", "interrupted", _not_carried(wire_format))])
    whole = _replies(how, choices, interleaved)
    return whole if chosen == ["whole"] else _broken(whole, chosen)


def chunk_streams(
    wire_format: WireFormat | str,
    *,
    kinds: Collection[Kind] | None = None,
    choices: int = 1,
    interleaved: bool = True,
    ends: Collection[End] = _WHOLE,
    max_blocks: int = 4,
    max_text: int = 40,
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """A strategy of streams of a provider's chunks, as `rd.wire.write` writes them: JSON objects.

    Args:
        wire_format: The format, one of `rd.providers.FORMATS`.
        kinds, choices, interleaved, ends, max_blocks, max_text: As of `event_streams`.

    Raises:
        InvalidValueError: As by `event_streams`, or the format has no writer.
        UnknownWireFormatError: There is no such format.

    Example:
        >>> from hypothesis import find
        >>> from rxdelta.testing.strategies import chunk_streams
        >>> chunks = chunk_streams("ollama", kinds={"text"})
        >>> [chunk["message"]["content"] for chunk in find(chunks, lambda chunks: len(chunks) == 2)]
        ['0', '']
    """
    streams = event_streams(
        kinds=kinds,
        wire_format=wire_format,
        choices=choices,
        interleaved=interleaved,
        ends=ends,
        max_blocks=max_blocks,
        max_text=max_text,
    )
    return streams.map(lambda events: write(events, wire_format))


# Requested sizes and shapes.


@attrs.frozen
class _How:
    """What the replies of a strategy may have."""

    kinds: Sequence[Kind]
    max_blocks: int
    max_text: int


def _checked(
    kinds: Collection[Kind] | None, max_blocks: int, max_text: int, wire_format: str | None = None
) -> _How:
    _check_size("max_blocks", max_blocks, 0)
    _check_size("max_text", max_text, 1)
    wanted = _KINDS if kinds is None else _words("kinds", kinds, _KINDS)
    if wire_format is None:
        return _How([kind for kind in _KINDS if kind in wanted], max_blocks, max_text)
    carried = [kind for kind in _KINDS if kind in carried_by(wire_format)]
    for kind in wanted if kinds is not None else ():
        if kind not in carried:
            raise InvalidValueError.of([("kinds", kind, _not_carried(wire_format))])
    return _How([kind for kind in carried if kind in wanted], max_blocks, max_text)


def _not_carried(wire_format: str) -> str:
    return f"must be something that a stream of {wire_format} can carry"


def _words(field: str, chosen: Any, known: Sequence[str]) -> Sequence[str]:
    is_some = isinstance(chosen, (set, frozenset, list, tuple))
    words: list[Any] = [*chosen] if is_some else []
    if not words:
        raise InvalidValueError.of([(field, chosen, "must be a set of words, and not empty")])
    for word in words:
        check_word(field, word, known)
    return words


def _check_size(field: str, size: Any, least: int) -> None:
    if type(size) is not int or size < least:
        raise InvalidValueError.of([(field, size, f"must be a whole number, {least} or more")])


# Drawn values.


def _message(events: Iterable[Event]) -> Message:
    fold = Fold()
    for event in events:
        fold.step(event)
    return fold.snapshot.to_message()


@st.composite
def _replies(draw: st.DrawFn, how: _How, choices: int, interleaved: bool) -> Events:
    count = draw(st.integers(1, choices)) if choices > 1 else 1
    together = interleaved and draw(st.booleans())
    head = _Head(draw(_or_none("m1")), draw(_or_none("model-1")), draw(_usages()))
    return _woven(draw, [_Teller(how, choice).choice(draw, head, together) for choice in range(count)])


@st.composite
def _broken(draw: st.DrawFn, whole: st.SearchStrategy[Events], ends: Sequence[End]) -> Events:
    events, end = draw(whole), draw(st.sampled_from(ends))
    if end != "whole":
        events = events[: draw(st.integers(1, len(events) - 1))]
    if end == "failed":
        return [*events, ev.StreamError("Overloaded", "overloaded_error")]
    return [*events, ev.MessageInterrupted("stopped")] if end == "interrupted" else events


def _woven(draw: st.DrawFn, streams: Iterable[Events]) -> Events:
    """All events of the streams, those of each in their order."""
    left, woven = [[*events] for events in streams if events], list[Event]()
    while left:
        place = draw(st.integers(0, len(left) - 1)) if len(left) > 1 else 0
        woven.append(left[place].pop(0))
        left = [events for events in left if events]
    return woven


@attrs.frozen
class _Head:
    """What all choices of a reply have."""

    id: str | None
    model: str | None
    usage: TokenUsage | None


@st.composite
def _block(draw: st.DrawFn, teller: _Teller) -> Events:
    return teller.block(draw)


class _Teller:
    """Draws the events of one choice."""

    def __init__(self, how: _How, choice: int) -> None:
        self._how = how
        self._choice = choice
        self._count = 0  # of blocks
        self._drawn = set[Kind]()

    def choice(self, draw: st.DrawFn, head: _Head, together: bool) -> Events:
        blocks = draw(st.lists(_block(self), max_size=self._how.max_blocks))
        body = _woven(draw, blocks) if together else [event for block in blocks for event in block]
        asks = not self._drawn.isdisjoint(("tool_call", "invalid_tool_call", "tool_result"))
        reasons = ["tool_use", "length"] if asks else ["stop", "length", "content_filter", "pause"]
        start = ev.MessageStart(head.id, head.model, choice=self._choice)
        end = ev.MessageFinish(draw(st.sampled_from(reasons)), usage=head.usage, choice=self._choice)
        return [start, *body, end]

    def block(self, draw: st.DrawFn) -> Events:
        """The events of the next block, and of another that belongs to it."""
        kind = draw(st.sampled_from(self._how.kinds))
        if kind == "audio" and kind in self._drawn:
            return []  # a model says one sound; formats don't tell where another would begin
        self._drawn.add(kind)
        if kind in ("text", "refusal"):
            return self._events(draw, {"type": kind}, draw(self._texts()))
        if kind == "reasoning":
            signature = draw(st.just(dict[str, str]()) | self._signatures())
            return self._events(
                draw, {"type": kind, **signature}, draw(self._texts(min_size=1 if signature else 0))
            )
        if kind == "redacted_reasoning":
            hidden = {"redacted": True, "data": draw(_DATA), "signed_by": draw(_SIGNERS)}
            return self._events(draw, {"type": "reasoning", **hidden})
        if kind in ("citation", "citation_without_url"):
            text, cited = draw(self._texts(min_size=1)), draw(_citations(kind == "citation"))
            return self._events(draw, {"type": "text"}, text, {"citations": cited})
        if kind in ("tool_call", "invalid_tool_call"):
            return self._call(draw, "tool_call_chunk", _ARGUMENTS if kind == "tool_call" else _NO_ARGUMENTS)
        if kind == "tool_result":
            outcome = self._outcome(draw, failed=draw(st.booleans()))
            return [*self._call(draw, "tool_call_chunk", _ARGUMENTS), outcome]
        if kind == "server_tool_call":
            output = draw(st.dictionaries(_NAMES, _JSON, max_size=2))
            result = {"type": "server_tool_result", "tool_call_id": self._call_id, "output": output}
            return [*self._call(draw, "server_tool_call_chunk", _ARGUMENTS), *self._events(draw, result)]
        if kind == "file_id":
            return self._events(draw, {"type": "file", "file_id": "file_1"})
        name, _, is_url = kind.partition("_")
        content = {"type": name, "mime_type": _MIME_TYPES[name]}
        if is_url:
            return self._events(draw, {**content, "url": draw(_LINKS)})
        return self._events(draw, content, draw(_DATA))

    @property
    def _call_id(self) -> str:
        """The id of the next block, if it is a call."""
        return f"call_{self._choice}_{self._count}"

    def _call(self, draw: st.DrawFn, kind: str, arguments: st.SearchStrategy[str]) -> Events:
        content = {"type": kind, "id": self._call_id, "name": draw(_NAMES)}
        return self._events(draw, content, draw(arguments))

    def _outcome(self, draw: st.DrawFn, *, failed: bool) -> Event:
        """The end of the next call. What a tool that failed says is a text."""
        content: Any = draw(self._texts(min_size=1) if failed else _RESULTS)
        result = ToolResult(self._call_id, content, is_error=failed)
        status: Literal["failed", "completed"] = "failed" if failed else "completed"
        return ev.ToolUpdate(self._call_id, status, result=result, choice=self._choice)

    def _events(
        self, draw: st.DrawFn, content: dict[str, Any], said: str = "", more: dict[str, Any] | None = None
    ) -> Events:
        """The next block, which says a text in pieces, and then has more fields."""
        index, choice = self._count, self._choice
        self._count += 1
        start = ev.BlockStart(index, content, choice=choice)
        delta = grows_by(block_from_wire(start.content, index))
        pieces = _pieces(draw, said, 4 if delta is ev.DataDelta else 1)
        deltas = [delta(index, piece, choice=choice) for piece in pieces]
        fields = [] if more is None else [ev.BlockDelta(index, more, choice=choice)]
        return [start, *deltas, *fields, ev.BlockFinish(index, choice=choice)]

    def _signatures(self) -> st.SearchStrategy[dict[str, str]]:
        """Each signs its own block."""
        signature = base64.b64encode(f"{self._choice}.{self._count}".encode()).decode()
        return st.fixed_dictionaries({"signature": st.just(signature)}, optional={"signed_by": _SIGNERS})

    def _texts(self, min_size: int = 0) -> st.SearchStrategy[str]:
        return st.text(_LETTERS, min_size=min_size, max_size=self._how.max_text)


def _pieces(draw: st.DrawFn, text: str, unit: int) -> list[str]:
    """The text, cut at random between units of so many characters."""
    if not text:
        return []
    cuts = draw(st.lists(st.integers(0, len(text) // unit), max_size=3))
    return [text[a:b] for a, b in pairwise([0, *sorted(unit * cut for cut in cuts), len(text)])]


def _or_none(value: str) -> st.SearchStrategy[str | None]:
    return st.sampled_from([None, value])


def _citations(has_url: bool) -> st.SearchStrategy[list[dict[str, str]]]:
    title = st.just("A title")
    linked = st.fixed_dictionaries({"url": _LINKS}, optional={"title": title})
    one = linked if has_url else st.fixed_dictionaries({"title": title})
    return st.lists(one, min_size=1, max_size=2)


@st.composite
def _usages(draw: st.DrawFn) -> TokenUsage | None:
    if not draw(st.booleans()):
        return None
    asked, said = draw(st.integers(0, 99)), draw(st.integers(0, 99))
    cached, thought = draw(st.integers(0, asked)), draw(st.integers(0, said))
    return TokenUsage(asked, said, cache_read_tokens=cached or None, reasoning_tokens=thought or None)
