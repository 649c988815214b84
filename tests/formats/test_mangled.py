"""Recorded streams that went wrong on the way: cut off, or with a chunk lost, doubled or out of place.

Nothing but our own errors comes out, the events still keep the protocol, and what was said stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.security_page import says
from support.shared import recordings
from support.small_replies import REPLIES, folded

import rxdelta as rd

FORMATS = tuple(
    name for name in rd.providers.FORMATS if name not in ("ag-ui", "ai-sdk", "langchain")
)  # of which none was recorded
CASES = [
    pytest.param(wire_format, *case.values, id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in FORMATS
    for case in recordings(wire_format)
]
SAYS_STOP_ALL_ALONG = {"gemini"}  # so that nothing in a stream that was cut off tells it from a whole one
PLACES = 16
"""At most so many places of a stream, its beginning and its end among them."""


def places(chunks: list[Any], most: int = PLACES) -> list[int]:
    count = len(chunks)
    if count <= most:
        return list(range(count))
    step = count / (most - 10)
    return sorted({*range(5), *(int(n * step) for n in range(most - 10)), *range(count - 5, count)})


def fold(wire_format: str, chunks: list[Any]) -> tuple[rd.Snapshot, rd.RxDeltaError | None]:
    """The last snapshot, and the error that ended the stream. Asserts that the events kept the protocol."""
    decoder, lifecycles, snapshots = (
        rd.providers.decoder(wire_format),
        rd.core.ProtocolChecker(),
        rd.Fold(choice=0),
    )
    failure: rd.RxDeltaError | None = None

    def take(events: Any) -> None:
        nonlocal failure
        for event in events:
            if isinstance(event, rd.events.StreamError):
                failure = rd.ProviderError(event.message)
                return
            assert lifecycles.check(event) is None, event
            snapshots.step(event)

    for chunk in chunks:
        try:
            take(decoder.decode(chunk))
        except rd.RxDeltaError as error:
            failure = failure or error
        if failure is not None:
            break
    try:
        take(decoder.close())
    except rd.errors.MalformedChunkError as error:  # nothing could be read
        failure = failure or error
    snapshot = snapshots.snapshot
    assert rd.Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict()))) == snapshot
    return snapshot, failure


def complete_calls(snapshot: rd.Snapshot) -> Iterator[tuple[Any, Any, Any]]:
    for call in snapshot.tool_calls:
        if call.status == "complete":
            yield call.call_id, call.name, call.arguments


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_cut_off_after_any_chunk_it_is_a_snapshot_of_what_had_come(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    whole, ended = fold(wire_format, chunks)
    known = list(complete_calls(whole))
    for place in places(chunks):
        cut, failure = fold(wire_format, chunks[:place])
        assert failure is None or type(failure) is type(ended)
        for call in complete_calls(cut):
            assert call in known, f"after {place} chunks a call is complete that isn't one"
        if cut.status != "incomplete" and wire_format not in SAYS_STOP_ALL_ALONG:
            assert (cut.status, cut.finish_reason) == (whole.status, whole.finish_reason)
        if cut.status == "incomplete":
            with pytest.raises((rd.IncompleteMessageError, rd.errors.InvalidToolCallError)):
                cut.to_message()


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_with_a_chunk_lost_doubled_or_out_of_place_it_keeps_the_protocol(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    for place in places(chunks, 20):
        before, here, after = chunks[:place], chunks[place], chunks[place + 1 :]
        fold(wire_format, [*before, *after])
        fold(wire_format, [*before, here, here, *after])
        if after:
            fold(wire_format, [*before, after[0], here, *after[1:]])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@says("Nothing that arrives")
@pytest.mark.slow
@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
def test_any_json_at_all_is_events_or_our_error(wire_format: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(chunks=st.lists(JSON, max_size=5))
    def check(chunks: list[Any]) -> None:
        fold(wire_format, chunks)

    check()


@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
@pytest.mark.parametrize("chunk", [{3: {"message": "x"}}, {None: None}, {b"type": "x"}])
def test_a_name_that_no_json_has_is_events_or_our_error(wire_format: str, chunk: Any) -> None:
    fold(wire_format, [chunk, chunk])


@pytest.mark.parametrize("wire_format", REPLIES)
def test_a_field_that_is_nested_absurdly_deep_costs_nothing_else(wire_format: str) -> None:
    deep: Any = 0
    for _ in range(5000):
        deep = {"a": [deep]}
    reply = REPLIES[wire_format]
    chunks = [{**chunk, "new": deep} for chunk in (*reply.begin, *reply.text, *reply.end(reply.stop))]
    assert folded(wire_format, *chunks)[1].text == "Hi"


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from paths(inner, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    if not path:
        return by
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


@says("Nothing that arrives")
@pytest.mark.slow
@pytest.mark.parametrize("wire_format", FORMATS)
def test_any_json_in_any_place_of_a_real_chunk_is_events_or_our_error(wire_format: str) -> None:
    streams = [case.values[0] for case in recordings(wire_format) if not case.marks]
    if not streams:
        pytest.skip("no recorded streams here")

    @settings(max_examples=300, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        chunks = data.draw(st.sampled_from(streams))[:60]
        place = data.draw(st.integers(0, len(chunks) - 1))
        where = data.draw(st.sampled_from(list(paths(chunks[place]))))
        mangled = replaced(chunks[place], where, data.draw(JSON))
        fold(wire_format, [*chunks[:place], mangled, *chunks[place + 1 :]])

    check()
