"""Operators that follow a reply make no block of each delta: they fold when somebody looks, or when the block ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable
from reactivex.subject import Subject

import rxdelta as rd
from rxdelta.core import BlockFold

ev = rd.events
N = 2_000
START = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text"})]
DELTAS = [ev.TextDelta(0, "ab")] * N
END = [ev.BlockFinish(0), ev.MessageFinish("stop")]


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the pieces by which blocks grow."""
    lengths: list[int] = []
    grow = BlockFold.grow

    def counted(self: BlockFold, piece: str) -> object:
        lengths.append(len(piece))
        return grow(self, piece)

    monkeypatch.setattr(BlockFold, "grow", counted)
    return lengths


def otel() -> Any:
    pytest.importorskip("opentelemetry")
    return rd.tap_otel("openai")


OPERATORS: dict[str, Callable[[], Any]] = {
    "on_settled": lambda: rd.on_settled(lambda *_: None),
    "tap_metrics": lambda: rd.tap_metrics(lambda *_: None),
    "tap_otel": otel,
    "text_deltas": rd.text_deltas,
    "redact": lambda: rd.redact("x"),
    "map_text": lambda: rd.map_text(str, 2),
    "cut_text": lambda: rd.cut_text(2),
    "sentences": rd.sentences,
    "until_sequence": lambda: rd.until_sequence("x"),
    "guard": lambda: rd.guard(bool, 2, context=9),
    "share_events": rd.share_events,
    "group_by_message": lambda: rx.compose(rd.group_by_message(), rx.operators.merge_all()),
    "group_by_choice": lambda: rx.compose(rd.group_by_choice(), rx.operators.merge_all()),
    "group_by_run": lambda: rx.compose(rd.group_by_run(), rx.operators.merge_all()),
    "retry_stream": lambda: lambda source: rd.retry_stream(lambda: source),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_many_deltas_make_few_blocks(name: str, grown: list[int]) -> None:
    source, got = Subject[Any](), list[Any]()
    reading: Observable[Any] = source.pipe(OPERATORS[name]())
    reading.subscribe(got.append, lambda error: pytest.fail(repr(error)))
    for event in [*START, *DELTAS, *END]:
        source.on_next(event)
    source.on_completed()
    assert len(got) >= (1 if name == "sentences" else N)
    assert len(grown) < N / 100
    assert sum(grown) == 2 * N


@pytest.mark.parametrize("operator", [rd.share_events, rd.group_by_message])
def test_who_comes_late_hears_all_so_far_by_one_block(operator: Any, grown: list[int]) -> None:
    source, late = Subject[Any](), list[Any]()
    shared = source.pipe(operator())
    readings: list[Any] = [shared]
    shared.subscribe(readings.append)
    for event in [*START, *DELTAS[:100]]:
        source.on_next(event)
    reading = shared if operator is rd.share_events else readings[1]
    reading.subscribe(late.append)
    before = len(grown)
    reading.subscribe(lambda _: None)  # nothing has come since
    assert len(grown) == before == 3
    assert [event.to_dict().get("content") for event in late if isinstance(event, ev.BlockStart)] == [
        {"type": "text", "text": "ab" * 100}
    ]
    for event in END:
        source.on_next(event)
    assert late[-2:] == END


@pytest.mark.parametrize("name", OPERATORS)
def test_a_limit_ends_the_stream_at_the_event_that_is_too_much(name: str) -> None:
    source, got, errors = Subject[Any](), list[Any](), list[Exception]()
    operator = OPERATORS[name]()
    reading: Observable[Any] = source.pipe(operator, rd.with_limits(rd.Limits(block_chars=25)))
    reading.subscribe(got.append, errors.append)
    for event in [*START, *DELTAS[:12]]:
        source.on_next(event)
    assert not errors
    before = len(got)
    source.on_next(ev.TextDelta(0, "a"))
    assert not errors
    source.on_next(ev.TextDelta(0, "a"))
    if name in (
        "on_settled",
        "tap_metrics",
        "tap_otel",
    ):  # they keep the last snapshot, and pass on everything
        assert (errors, len(got)) == ([], before + 2)
    else:
        assert [type(error) for error in errors] == [rd.errors.LimitExceededError]
        held = name in ("map_text", "cut_text")  # they flush it
        assert len(got) == before + 1 + held
