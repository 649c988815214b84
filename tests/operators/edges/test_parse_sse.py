"""`parse_sse` and `parse_ndjson` in virtual time: they are one operator over two parsers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import abc, operators as ops
from reactivex.testing import ReactiveTest, TestScheduler
from support.bounded import bounded

from rxdelta.core import LimitExceededError, Limits, MalformedChunkError
from rxdelta.operators import parse_ndjson, parse_sse

if TYPE_CHECKING:
    from collections.abc import Callable

on_next, on_error, on_completed = ReactiveTest.on_next, ReactiveTest.on_error, ReactiveTest.on_completed
subscribed = ReactiveTest.subscribe

Operator = Any
BOTH = pytest.mark.parametrize(
    ("operator", "end"),
    [pytest.param(parse_sse, b"\n\n", id="sse"), pytest.param(parse_ndjson, b"\n", id="ndjson")],
)


def event(value: bytes, end: bytes) -> bytes:
    """A record as either format sends it."""
    return (b"data: " if end == b"\n\n" else b"") + value + end


def run(operator: Operator, *messages: Any, disposed: float = 1000) -> tuple[list[Any], list[Any]]:
    """What the operator emits for a hot source, and when it was subscribed to."""
    scheduler = TestScheduler()
    source = scheduler.create_hot_observable(*messages)
    results = scheduler.start(lambda: source.pipe(operator), disposed=disposed)
    return results.messages, source.subscriptions


def unwrapped(messages: list[Any]) -> list[Any]:
    """(time, value), with an error's type in place of the error."""
    return [
        (message.time, type(message.value.exception) if message.value.kind == "E" else message.value.value)
        for message in messages
        if message.value.kind != "C"
    ] + [(message.time, "|") for message in messages if message.value.kind == "C"]


@BOTH
def test_each_record_is_emitted_as_soon_as_its_bytes_are_there(operator: Operator, end: bytes) -> None:
    one, two = event(b'{"a": 1}', end), event(b'{"b": 2}', end)
    messages, subscriptions = run(
        operator(),
        on_next(210, one[:4]),
        on_next(220, one[4:] + two + one[:2]),
        on_next(230, one[2:-1]),
        on_next(240, one[-1:]),
        on_completed(250),
    )
    assert messages == [
        on_next(220, {"a": 1}),
        on_next(220, {"b": 2}),
        on_next(240, {"a": 1}),
        on_completed(250),
    ]
    assert subscriptions == [subscribed(200, 250)]


@BOTH
def test_one_record_a_piece_stays_so_and_text_is_taken_as_well(operator: Operator, end: bytes) -> None:
    pieces = [on_next(210, event(b"1", end)), on_next(220, event(b"2", end).decode())]
    messages, _ = run(operator(), *pieces, on_completed(230))
    assert messages == [on_next(210, 1), on_next(220, 2), on_completed(230)]


@BOTH
def test_an_empty_source_gives_an_empty_stream(operator: Operator, end: bytes) -> None:
    assert run(operator(), on_completed(210))[0] == [on_completed(210)]
    assert run(operator(), on_next(210, b""), on_next(220, end), on_completed(230))[0] == [on_completed(230)]


@BOTH
def test_a_source_that_never_ends_gives_a_stream_that_never_ends(operator: Operator, end: bytes) -> None:
    assert run(operator()) == ([], [subscribed(200, 1000)])
    assert run(operator(), on_next(210, event(b"1", end)))[0] == [on_next(210, 1)]


@BOTH
def test_the_last_record_comes_before_the_completion(operator: Operator, end: bytes) -> None:
    messages, _ = run(operator(), on_next(210, event(b"1", end)), on_completed(220))
    assert messages == [on_next(210, 1), on_completed(220)]
    messages, _ = run(operator(), on_next(210, event(b'{"a": 1}', end).rstrip()), on_completed(220))
    assert messages == [on_next(220, {"a": 1}), on_completed(220)]


@BOTH
def test_a_last_record_cut_off_by_the_completion_is_malformed(operator: Operator, end: bytes) -> None:
    messages, _ = run(operator(), on_next(210, event(b'{"a": 1}', end)[:-4]), on_completed(220))
    assert unwrapped(messages) == [(220, MalformedChunkError)]


@BOTH
def test_an_error_of_the_source_comes_after_what_is_whole(operator: Operator, end: bytes) -> None:
    broken = ConnectionError("cut")
    messages, subscriptions = run(
        operator(), on_next(210, event(b'{"a": 1}', end).rstrip()), on_error(220, broken)
    )
    assert messages == [on_next(220, {"a": 1}), on_error(220, broken)]
    assert messages[-1].value.exception is broken
    assert subscriptions == [subscribed(200, 220)]


@BOTH
def test_an_error_of_the_source_drops_a_record_that_it_cut_off(operator: Operator, end: bytes) -> None:
    """It says already why the record has no end."""
    broken = ConnectionError("cut")
    piece = event(b"1", end) + event(b'{"a": 1}', end).rstrip()[:-1]
    messages, _ = run(operator(), on_next(210, piece), on_error(220, broken))
    assert messages == [on_next(210, 1), on_error(220, broken)]


@BOTH
def test_what_cannot_be_parsed_ends_the_stream_after_the_records_before_it(
    operator: Operator, end: bytes
) -> None:
    piece = event(b"1", end) + event(b"2", end) + event(b"{x}", end) + event(b"3", end)
    messages, subscriptions = run(
        operator(), on_next(210, piece), on_next(220, event(b"4", end)), on_completed(230)
    )
    assert unwrapped(messages) == [(210, 1), (210, 2), (210, MalformedChunkError)]
    assert subscriptions == [subscribed(200, 210)]


@BOTH
def test_bad_input_30_what_is_too_large_ends_the_stream(operator: Operator, end: bytes) -> None:
    pieces = [on_next(210 + at, b"1") for at in range(30)]
    messages, subscriptions = run(bounded(operator, limits=Limits(line_bytes=20)), *pieces, on_completed(300))
    assert unwrapped(messages) == [(230, LimitExceededError)]
    assert subscriptions == [subscribed(200, 230)]


@BOTH
def test_what_is_neither_bytes_nor_text_ends_the_stream(operator: Operator, end: bytes) -> None:
    messages, subscriptions = run(operator(), on_next(210, {"a": 1}), on_completed(300))
    assert unwrapped(messages) == [(210, MalformedChunkError)]
    assert subscriptions == [subscribed(200, 210)]


class Listener(abc.ObserverBase[Any]):
    """Writes down what comes; a bare observer, without the guard that `subscribe` puts around callbacks."""

    def __init__(self, on_value: Callable[[Any], object] = lambda _: None) -> None:
        self.seen: list[Any] = []
        self.on_value = on_value

    def on_next(self, value: Any) -> None:
        self.seen.append(value)
        self.on_value(value)

    def on_error(self, error: Exception) -> None:
        self.seen.append(type(error))

    def on_completed(self) -> None:
        self.seen.append("|")


@given(st.lists(st.integers(), max_size=6), st.lists(st.integers(0, 10**4), max_size=9), st.booleans())
def test_a_source_cut_anywhere_gives_what_was_whole_and_then_its_error(
    values: list[int], cuts: list[int], named: bool
) -> None:
    """For any split, and an error of the source behind any byte: a prefix of the records, the error last."""
    records = [{"a": value} for value in values]
    body = b"".join((b"event: x\n" if named else b"") + b'data: {"a": %d}\n\n' % value for value in values)
    at = sorted({0, *(cut % (len(body) + 1) for cut in cuts)})
    pieces = [body[start:end] for start, end in pairwise(at)]
    listener = Listener()
    rx.concat(rx.from_iterable(pieces), rx.throw(ConnectionError())).pipe(
        parse_sse(), ops.map(lambda record: {"a": record["a"]})
    ).subscribe(listener)
    assert listener.seen[-1] is ConnectionError
    assert listener.seen[:-1] == records[: len(listener.seen) - 1]
    assert len(listener.seen) - 1 >= body[: at[-1]].count(b"\n\n")
