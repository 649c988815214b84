"""A line and the records it tells are the same: `draw` loses nothing, and writes one form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from support.shared import RECORDED, recordings
from support.streams import streams

import rxdelta as rd
from rxdelta.testing import marbles

if TYPE_CHECKING:
    from collections.abc import Sequence

ev = rd.events
NOTATION = "-|/#()[]<>\"_ @:,{}+\\\n\ud83d\ude00é'\u200d0s"


class OddError(Exception):
    """What the notation knows nothing of."""


texts = st.text(st.sampled_from(NOTATION), max_size=6) | st.text(
    st.characters(exclude_categories=()), max_size=6
)
names = st.none() | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, values, max_size=2)
usages = st.builds(rd.TokenUsage, st.none() | st.integers(0, 9), st.integers(0, 9))
index = st.integers(0, 2) | st.sampled_from(["a", "1", "x y"])
lane: dict[str, Any] = {"choice": st.integers(0, 1), "run_id": st.sampled_from([None, "agent", ")"])}
any_lane: dict[str, Any] = {**lane, "choice": st.sampled_from([None, 0, 1])}
any_run: dict[str, Any] = {"run_id": lane["run_id"]}
contents = st.sampled_from(
    [
        {"type": "text", "text": ""},
        {"type": "text"},
        {"type": "reasoning", "reasoning": ""},
        {"type": "tool_call_chunk", "id": "c)", "name": "na#me", "args": ""},
        {"type": "tool_call_chunk", "id": "call_0", "name": "look", "args": ""},
        {"type": "tool_call_chunk", "name": "look"},
        {"type": "image", "mime_type": "image/png"},
        {"type": "text", "text": "", "citations": [{"url": "http://a", "title": "(1)"}]},
    ]
)
pieces = texts | st.sampled_from(['{"a": 1}', '{"a": ")"}', "{", "aGk="])
any_event: st.SearchStrategy[Any] = st.one_of(
    st.builds(ev.MessageStart, names, names, st.none() | usages, objects, **lane),
    st.builds(ev.BlockStart, index, contents, **lane),
    st.builds(ev.TextDelta, index, texts, **lane),
    st.builds(ev.ReasoningDelta, index, texts, **lane),
    st.builds(ev.ToolCallDelta, index, pieces, **lane),
    st.builds(ev.DataDelta, index, pieces, **lane),
    st.builds(ev.BlockDelta, index, objects, **lane),
    st.builds(ev.BlockFinish, index, st.none() | contents, **lane),
    st.builds(ev.UsageUpdate, usages, **lane),
    st.builds(ev.MessageFinish, names, names, st.none() | usages, objects, **lane),
    st.builds(ev.StreamError, texts, names, names, **lane),
    st.builds(ev.ProviderEvent, texts, texts, objects, **any_run),
    st.builds(ev.Custom, texts.filter(bool), values, names, **any_run),
    st.builds(ev.ToolUpdate, texts, names, names, st.none() | st.builds(rd.ToolResult, texts, values), **any_lane),
    st.builds(ev.MessageInterrupted, names, **any_lane),
    st.builds(ev.AttemptReset, st.integers(0, 3), names, st.none() | usages, **any_lane),
)  # fmt: skip
simple_event: st.SearchStrategy[Any] = st.one_of(  # what a model's reply most often has
    st.builds(ev.TextDelta, st.integers(0, 1), texts),
    st.builds(ev.ToolCallDelta, st.integers(0, 1), pieces),
    st.builds(ev.BlockStart, st.integers(0, 1), contents),
    st.builds(ev.BlockFinish, st.integers(0, 1)),
    st.sampled_from([ev.MessageStart(), ev.MessageFinish("stop"), ev.MessageFinish("tool_use")]),
)
gaps = st.sampled_from([0, 0, 0, 1, 50_000, 99_999, 100_000, 100_000, 200_000, 340_000, 7_000_001])
errors = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from(
        [ValueError, KeyError, ConnectionError, rd.ProviderError, rd.errors.GuardError, OddError]
    ),
    texts,
) | st.sampled_from(
    [
        OSError(104, "reset"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"),
        ExceptionGroup("two", [ValueError("a")]),
        rd.errors.StallTimeoutError("slow", limit="idle", seconds=3),
        StopIteration(3),
    ]
)
ends: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.just(("", None)), st.just(("completed", None)), st.tuples(st.just("error"), errors)
)


@st.composite
def some_records(draw: st.DrawFn, events: st.SearchStrategy[Any]) -> list[marbles.Record]:
    found: list[Any] = []
    time = 0
    for event in draw(st.lists(events, max_size=8)):
        time += draw(gaps)
        found.append((time / 1e6, "next", event))
    kind, error = draw(ends)
    return [*found, ((time + draw(gaps)) / 1e6, kind, error)] if kind else found


def told(records: Sequence[marbles.Record]) -> list[Any]:
    """What the records say, also in the fields that events don't compare by; an error its class name and its text."""
    return [
        (time, kind, type(value).__name__, says(value))
        if kind == "error"
        else (time, kind, value, None if value is None else (type(value), value.to_dict()))
        for time, kind, value in records
    ]


def says(error: Exception) -> str:
    if isinstance(error, rd.ProviderError):
        return error.message
    return error.args[0] if [type(one) for one in error.args] == [str] else str(error)


def holds_for(records: Sequence[marbles.Record], **options: Any) -> str:
    line = marbles.draw(records, **options)
    assert line.isprintable() or "\ude00" in line
    assert told(marbles.parse(line, **options)) == told(records)
    return line


@given(records=some_records(any_event))
def test_what_is_drawn_is_read_back_whatever_the_events_are(records: list[marbles.Record]) -> None:
    holds_for(records)


@given(records=some_records(simple_event), frame=st.sampled_from([0.1, 1, 0.05]))
def test_what_is_drawn_is_read_back_where_starts_and_ends_are_nearly_those_implied(
    records: list[marbles.Record], frame: float
) -> None:
    holds_for(records, frame=frame)


@pytest.mark.parametrize("frames", [0, 0.3, 1])
def test_every_kind_of_stream_is_read_back(frames: float) -> None:
    for stream in streams(4):
        records: list[Any] = [
            (round(number * frames / 10, 6), "next", event) for number, event in enumerate(stream.events)
        ]
        holds_for([*records, (len(records), "completed", None)])


@pytest.mark.parametrize("wire_format", RECORDED)
def test_recorded_streams_are_read_back(wire_format: str) -> None:
    for recording in recordings(wire_format)[::4]:
        chunks, _ = recording.values
        if chunks is None:
            pytest.skip("no recordings")
        decoder = rd.providers.decoder(wire_format)
        records: list[Any] = []
        for number, chunk in enumerate(chunks[:100]):
            try:
                records += [(number / 10, "next", event) for event in decoder.decode(chunk)]
            except rd.RxDeltaError as error:
                records.append((number / 10, "error", error))
                break
        holds_for(records)


@given(marks=st.lists(st.tuples(gaps, texts | st.integers() | st.sampled_from("abc!?_/")), max_size=8))
def test_values_are_read_back_with_their_marks_or_as_literals(marks: list[tuple[int, Any]]) -> None:
    records: list[Any] = []
    time = 0
    for gap, value in marks:
        time += gap
        records.append((time / 1e6, "next", value))
    line = marbles.draw(records, values=str)
    assert marbles.parse(line, values=str) == records


@settings(max_examples=50)
@given(line=st.text(st.sampled_from("ab-|/#[]() <>\"'_@:+s10{}texhinkargscl,"), max_size=25))
def test_a_text_is_a_line_with_one_form_or_is_refused_in_words(line: str) -> None:
    for options in ({}, {"values": str}):
        try:
            records = marbles.parse(line, **options)
        except rd.InvalidValueError:
            continue
        drawn = marbles.draw(records, **options)
        assert marbles.draw(marbles.parse(drawn, **options), **options) == drawn
