"""On every recorded stream, in any pieces and cut anywhere: a word that is redacted is nowhere in what comes out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
from support.rechunk import single_characters
from support.shared import RECORDED, recordings
from support.streams import streams
from support.tellings import Told, after, cut_off, final, replies, strings, taken_back

import rxdelta as rd

ev = rd.events

CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]
ENCODERS: dict[str, Callable[[], Any]] = {
    "to_ai_sdk": rd.to_ai_sdk,
    "to_ag_ui": rd.to_ag_ui,
    "to_openai_chat": rd.to_openai_chat,
    "to_langchain_events": rd.to_langchain_events,
}
NAMES = frozenset(
    [
        "type",
        "id",
        "name",
        "model",
        "call_id",
        "tool_call_id",
        "event",
        "provider",
        "signature",
        "encrypted_content",
        "role",
    ]
)
"""Where an event has words of the protocol and names, which stay."""
DELTAS: dict[type, str] = {ev.TextDelta: "text", ev.ReasoningDelta: "reasoning", ev.ToolCallDelta: "args"}
ENDS = ("completed", "interrupted", "failed", "broken")
LONGEST = 2_000  # events of a stream that is cut


def decoded(wire_format: str, chunks: list[Any]) -> Told:
    return after(Told(chunks), rd.decode(wire_format))


def framed(told: Told, encode: Callable[[], Any]) -> Any:
    """The frames as JSON, and the error behind them. Those for AG-UI are objects of its package."""
    frames: Any = after(told, encode())
    return Told([as_json(frame) for frame in frames.events], frames.error)


def as_json(frame: Any) -> Any:
    if isinstance(frame, dict):
        return frame  # pyright: ignore[reportUnknownVariableType]
    return frame.model_dump(mode="json") if hasattr(frame, "model_dump") else str(frame)


# The words that are redacted.


@cache
def protocol() -> frozenset[str]:
    """What is in events and frames whatever the model says."""
    found = set[str]()
    for stream in streams(1):
        if stream.is_conversation:
            continue
        told = Told(stream.events)
        found.update(one for event in told.events for one in strings(event.to_dict()))
        for encode in ENCODERS.values():
            found.update(one for frame in framed(told, encode).events for one in strings(frame))
        for seen in replies(told).values():
            found.update(strings(seen[-1].to_dict()))
        for end in ENDS:
            found.update(told_by(after(cut_off(Random(1), told, end), rd.scan_deltas()).error))
    return frozenset(found)


def names(value: Any) -> Iterator[str]:
    """The keys and names in an event, and what is no text at all."""
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield str(key)  # pyright: ignore[reportUnknownArgumentType]
            if key in NAMES:
                yield from strings(item)  # pyright: ignore[reportUnknownArgumentType]
            else:
                yield from names(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from names(item)
    elif isinstance(value, str) and len(value) > 100 and " " not in value:
        yield value


def said(told: Told) -> Iterator[str]:
    """The texts of the reply: what the model says, thinks and asks its tools."""
    for seen in replies(told).values():
        for block in seen[-1].blocks:
            if isinstance(block, rd.ToolCall):
                yield from strings(rd.core.thaw(block.arguments))
            elif block.type in ("text", "reasoning", "refusal"):
                yield block.text or ""


def words(told: Told, draw: Random, count: int) -> list[str]:
    """Some words of the reply that are nothing else."""
    frames = [frame for encode in ENCODERS.values() for frame in framed(told, encode).events]
    values: list[Any] = [*(event.to_dict() for event in told.events), *frames]
    kept = "\n".join({*protocol(), *(name for value in values for name in names(value))})
    texts = [*said(told)]
    for pattern in (r"[^\W\d_]{4,}", r"[^\W\d_]{2,}"):
        found = sorted({one for text in texts for one in re.findall(pattern, text) if one not in kept})
        if found:
            return draw.sample(found, min(count, len(found)))
    return []


# Where they might be.


class Pieces:
    """What a reader of frames joins: the strings at each place."""

    def __init__(self) -> None:
        self.joined: dict[tuple[str, ...], list[str]] = {}

    def add(self, value: Any, path: tuple[str, ...] = ()) -> None:
        if isinstance(value, str):
            self.joined.setdefault(path, []).append(value)
        elif isinstance(value, dict):
            ids = tuple(str(value[name]) for name in ("type", "id", "messageId", "index") if name in value)  # pyright: ignore[reportUnknownArgumentType]
            for name, item in value.items():  # pyright: ignore[reportUnknownVariableType]
                self.add(item, (*path, *ids, str(name)))  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, (list, tuple)):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                self.add(item, path)

    def with_word(self, word: str) -> dict[tuple[str, ...], str]:
        joined = {path: "".join(pieces) for path, pieces in self.joined.items()}
        return {path: text for path, text in joined.items() if word in text}


def told_by(error: BaseException | None) -> Iterator[str]:
    """All that an error says, and the reply that it has."""
    if error is not None:
        yield from (str(error), repr(error), *getattr(error, "__notes__", ()))
        snapshot = getattr(error, "snapshot", None)
        if snapshot is not None:
            yield from strings(snapshot.to_dict())
        for other in (error.__cause__, error.__context__):
            yield from told_by(other)


def logged(records: Sequence[logging.LogRecord]) -> Iterator[str]:
    """What records say of a stream, without their own sentences and the lines of tracebacks."""
    for record in records:
        yield from map(str, record.args or ())
        if record.exc_info:
            yield from told_by(record.exc_info[1])


def nowhere(word: str, redacted: Told, encoders: Any = ENCODERS) -> None:
    for event in redacted.events:
        assert not any(word in one for one in strings(event.to_dict())), event
    for seen in replies(redacted).values():
        for snapshot in [*seen[:: len(seen) // 20 + 1], seen[-1]]:
            assert not any(word in one for one in strings(snapshot.to_dict())), snapshot
        assert not any(word in one for event in rd.to_events(seen[-1]) for one in strings(event.to_dict()))
    assert not any(word in one for one in told_by(after(redacted, rd.scan_deltas()).error))
    for encode in encoders.values():
        told = framed(redacted, encode)
        assert not any(word in one for one in told_by(told.error))
        pieces = Pieces()
        for frame in told.events:
            pieces.add(frame)
        assert pieces.with_word(word) == {}


def as_wanted(word: str, source: Told, redacted: Told, whole: Told | None = None) -> None:
    """The texts are those of the source with the word replaced; or of a stream cut off, a beginning of them."""
    excused = taken_back(whole or source)
    wanted = final(whole or source)
    for place, (_, text) in final(redacted).items():
        want = wanted[place][1].replace(word, "[redacted]")
        if whole is None:
            assert text == want
        elif place not in excused:
            assert want.startswith(text)


def recut(draw: Random, told: Told) -> Told:
    """The same events, with deltas of other sizes."""
    events: list[rd.Event] = []
    for event in told.events:
        field = DELTAS.get(type(event), "")
        piece: str = getattr(event, field) if field else ""
        where: Any = {"choice": getattr(event, "choice", 0), "run_id": event.run_id}
        make: Any = type(event)
        while len(piece) > 1:
            size = draw.randint(1, len(piece))
            events.append(make(getattr(event, "index", 0), piece[:size], **where))
            piece = piece[size:]
            event = make(getattr(event, "index", 0), piece, **where)
        if not field or piece:
            events.append(event)
    return Told(events, told.error)


def redacted(word: str, told: Told) -> Told:
    return after(told, rd.redact(re.escape(word), arguments=True))


@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_a_word_that_is_redacted_is_nowhere(
    wire_format: str, chunks: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    draw = Random(f"{wire_format} {len(chunks)}")
    told = decoded(wire_format, chunks)
    for word in words(told, draw, 1):
        caplog.clear()  # it may be of the whole reply
        result = redacted(word, told)
        as_wanted(word, told, result)
        nowhere(word, result)
        if len(told.events) <= LONGEST:
            other = recut(draw, told)
            nowhere(word, redacted(word, other), {})
            cut = cut_off(draw, other)
            result = redacted(word, cut)
            as_wanted(word, cut, result, told)
            nowhere(word, result)
        assert not any(word in one for one in logged(caplog.records))


def test_most_recorded_streams_have_such_a_word() -> None:
    known: list[Any] = [case.values for case in CASES[::4] if not case.marks]
    have = [bool(words(decoded(*stream), Random(0), 1)) for stream in known]
    assert have.count(True) >= 0.8 * len(have)


@pytest.mark.soak
@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_words_that_are_redacted_are_nowhere_at_every_cut(
    wire_format: str, chunks: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    draw = Random(f"{wire_format} {len(chunks)}")
    told = decoded(wire_format, chunks)
    single = decoded(wire_format, single_characters(wire_format, chunks))
    for word in words(told, draw, 5):
        caplog.clear()  # it may be of the whole reply, and of other words
        for source in (told, recut(draw, told), single):
            result = redacted(word, source)
            as_wanted(word, source, result)
            nowhere(word, result)
        step = max(1, len(told.events) ** 2 // 60_000)  # a long stream isn't read from its beginning at each
        for k in range(draw.randrange(step), len(told.events), step):
            cut = cut_off(draw, Told(told.events[:k]), ENDS[k % 4])
            result = redacted(word, cut)
            as_wanted(word, cut, result, told)
            nowhere(word, result, {} if k % 7 else ENCODERS)
        assert not any(word in one for one in logged(caplog.records))
