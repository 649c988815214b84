"""`decode` in virtual time, over a decoder that does as it is told, and over two real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.subject import Subject
from support.lines import DAY, through
from support.replies import OPENAI, REPLIES

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Sequence
from rxdelta.testing import marbles

BOOM = ValueError("boom")


def text(piece: str) -> rd.events.TextDelta:
    return rd.events.TextDelta(0, piece)


class Obedient:
    """Each letter of a chunk is an event; `!` an error event, `?` a malformed chunk. `close` gives the rest."""

    def __init__(self, rest: str = "") -> None:
        self.rest = rest

    def decode(self, chunk: Any, /) -> Sequence[rd.Event]:
        if "?" in chunk:
            raise rd.errors.MalformedChunkError("malformed")
        return self._events(chunk)

    def close(self) -> Sequence[rd.Event]:
        if "?" in self.rest:
            raise rd.errors.MalformedChunkError("cut off")
        return self._events(self.rest)

    def _events(self, chunk: str) -> Sequence[rd.Event]:
        return [
            rd.events.StreamError("overloaded", "overloaded_error", "529") if mark == "!" else text(mark)
            for mark in chunk
        ]


def shown(records: list[marbles.Record]) -> list[Any]:
    """(tick, text) of each event; an error's type, and `|`."""
    ends: dict[str, Any] = {"error": type, "completed": lambda _: "|"}
    return [
        (time, ends[kind](value) if kind in ends else getattr(value, "text", value))
        for time, kind, value in records
    ]


@pytest.mark.parametrize(
    ("chunks", "rest", "end", "expected"),
    [
        pytest.param(["a", "b"], "", "|", [(1, "a"), (2, "b"), (3, "|")], id="an event a chunk"),
        pytest.param(["abc"], "", "|", [(1, "a"), (1, "b"), (1, "c"), (2, "|")], id="several at once"),
        pytest.param(["", "a", ""], "", "|", [(2, "a"), (4, "|")], id="none"),
        pytest.param([], "", "|", [(1, "|")], id="empty"),
        pytest.param([], "", "-", [], id="never"),
        pytest.param(["a"], "", "-", [(1, "a")], id="a source that goes silent"),
        pytest.param(["a"], "", "#", [(1, "a"), (2, ValueError)], id="an error"),
        pytest.param(["a"], "yz", "|", [(1, "a"), (2, "y"), (2, "z"), (2, "|")], id="pending before the end"),
        pytest.param(
            ["a"], "yz", "#", [(1, "a"), (2, "y"), (2, "z"), (2, ValueError)], id="pending before an error"
        ),
        pytest.param(["a!b", "c"], "", "|", [(1, "a"), (1, rd.ProviderError)], id="an error event"),
        pytest.param(
            ["a!b"], "z", "|", [(1, "a"), (1, "z"), (1, rd.ProviderError)], id="pending before that"
        ),
        pytest.param(
            ["a", "?", "c"], "", "|", [(1, "a"), (2, rd.errors.MalformedChunkError)], id="malformed"
        ),
        pytest.param(
            ["?"], "z", "|", [(1, "z"), (1, rd.errors.MalformedChunkError)], id="pending before malformed"
        ),
        pytest.param(["a"], "?", "|", [(1, "a"), (2, rd.errors.MalformedChunkError)], id="close fails"),
        pytest.param(
            ["a"], "?", "#", [(1, "a"), (2, ValueError)], id="the source's error, not that of close"
        ),
        pytest.param(["!"], "?", "|", [(1, rd.ProviderError)], id="the error event, not that of close"),
        pytest.param(
            ["a"], "y!z", "|", [(1, "a"), (2, "y"), (2, rd.ProviderError)], id="an error event at the end"
        ),
        pytest.param(["a"], "y!", "#", [(1, "a"), (2, "y"), (2, ValueError)], id="never two errors"),
    ],
)
def test_each_chunks_events_come_at_once(chunks: list[str], rest: str, end: str, expected: list[Any]) -> None:
    line = f"-{''.join(f'<{chunk!r}>' for chunk in chunks)}{end}"
    records, reads = through(line, rd.decode(Obedient, rest=rest), error=BOOM)
    assert shown(records) == expected
    ended = bool(expected) and not (isinstance(expected[-1][1], str) and expected[-1][1] != "|")
    assert reads == [(0, expected[-1][0] if ended else DAY)]


def test_ten_thousand_chunks_pushed_from_within_are_no_recursion() -> None:
    source = Subject[str]()
    got: list[str] = []

    def read(event: Any) -> None:
        got.append(event.text)
        if len(got) == 1:
            for _ in range(10_000):
                source.on_next("b")

    source.pipe(rd.decode(Obedient)).subscribe(read)
    source.on_next("a")
    assert len(got) == 10_001


def test_a_provider_error_says_what_the_event_said() -> None:
    ((_, _, error),), _ = through("!", rd.decode(Obedient))
    assert (error.message, error.type, error.code) == ("overloaded", "overloaded_error", "529")


def test_an_unknown_format_and_what_is_no_format_are_refused_at_once() -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError, match="openai_chat"):
        rd.decode("openai_chat")
    with pytest.raises(rd.InvalidValueError, match="wire_format"):
        rd.decode(Obedient())  # type: ignore[arg-type]
    with pytest.raises(rd.InvalidValueError, match="no_such_option"):
        rd.decode("openai-chat", no_such_option=1)


def test_a_factory_that_raises_is_an_error_of_the_stream() -> None:
    def make() -> Obedient:
        raise BOOM

    source = Subject[str]()
    got: list[Any] = []
    source.pipe(rd.decode(make)).subscribe(on_error=got.append)
    assert got == [BOOM]
    assert source.observers == []


def test_33_a_stream_without_its_finish_completes_and_nothing_is_made_up() -> None:
    events = rx.from_iterable(OPENAI[:-2]).pipe(rd.decode("openai-chat"), ops.to_list()).run()
    assert not any(isinstance(event, rd.events.MessageFinish) for event in events)
    snapshot = rd.Fold()
    for event in events:
        snapshot.step(event)
    assert snapshot.snapshot.status == "incomplete"


def test_35_an_error_inside_the_stream_comes_after_what_the_provider_said_was_done() -> None:
    chunks = [*OPENAI[:-1], {"error": {"message": "no more", "type": "server_error"}}]
    got: list[Any] = []
    rx.from_iterable(chunks).pipe(rd.decode("openai-chat")).subscribe(got.append, got.append)
    assert type(got[-1]) is rd.ProviderError
    assert not any(isinstance(event, rd.events.StreamError) for event in got)


@pytest.mark.slow
@given(data=st.data(), wire_format=st.sampled_from(sorted(REPLIES)))
def test_any_chunk_at_all_gives_events_or_one_of_our_errors(data: st.DataObject, wire_format: str) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    )
    chunks = list(REPLIES[wire_format])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(chunks) - 1))
        chunk: Any = chunks[place]
        if isinstance(chunk, dict) and chunk:
            name = data.draw(st.sampled_from(sorted(chunk)))
            chunks[place] = {**chunk, name: data.draw(values)}
        else:
            chunks[place] = data.draw(values)
    got: list[Any] = []
    ends: list[Any] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format)).subscribe(
        got.append, ends.append, lambda: ends.append("|")
    )
    assert len(ends) == 1
    assert ends == ["|"] or isinstance(ends[0], rd.RxDeltaError)


@pytest.mark.parametrize("wire_format", ["auto", "openai-chat", Obedient])
def test_an_event_of_the_application_among_the_chunks_passes_unchanged(wire_format: Any) -> None:
    own = [rd.events.Custom("status", number, transient=number == 1) for number in range(3)]
    chunks: list[Any] = ["ab", "c"] if wire_format is Obedient else OPENAI
    for place in range(len(chunks) + 1):
        values: list[Any] = []
        source: Subject[Any] = Subject()
        source.pipe(rd.decode(wire_format)).subscribe(values.append)
        for chunk in chunks[:place]:
            source.on_next(chunk)
        before = len(values)
        for event in own:
            source.on_next(event)
        assert values[before:] == own
        for chunk in chunks[place:]:
            source.on_next(chunk)
        source.on_completed()
        plain: list[Any] = []
        rx.from_iterable(chunks).pipe(rd.decode(wire_format)).subscribe(plain.append)
        assert [*values[:before], *values[before + 3 :]] == plain
