"""`overflow="join"`: events that wait for a slow reader are joined, and fold to the same."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
import reactivex as rx
from core.strategies import events as any_event
from hypothesis import given, strategies as st
from reactivex.subject import Subject
from support.loops import run
from support.security_page import says

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.aio.queues import Backlog

TEXT = {"type": "text", "text": ""}


def waiting(*given: rd.Event) -> list[rd.Event]:
    """What a reader gets who comes when all has."""
    backlog: Backlog[rd.Event] = Backlog()
    for event in given:
        backlog.append(event)
    return [backlog.popleft() for _ in range(len(backlog))]


def test_pieces_of_one_block_are_joined() -> None:
    assert waiting(*(ev.TextDelta(0, one) for one in "abc")) == [ev.TextDelta(0, "abc")]
    assert waiting(*(ev.ToolCallDelta(0, one) for one in "abc")) == [ev.ToolCallDelta(0, "abc")]
    assert waiting(*(ev.DataDelta("a", one, choice=1) for one in "abc")) == [
        ev.DataDelta("a", "abc", choice=1)
    ]


def test_parallel_blocks_are_joined_each_for_itself() -> None:
    pieces = [ev.ToolCallDelta(index, one) for one in "abc" for index in (0, 1)]
    assert waiting(*pieces) == [ev.ToolCallDelta(0, "abc"), ev.ToolCallDelta(1, "abc")]


def test_choices_stay_apart() -> None:
    pieces = [ev.TextDelta(0, "a"), ev.TextDelta(0, "b", choice=1)]
    assert waiting(*pieces) == pieces


def test_usage_between_the_pieces_is_the_newest_and_parts_nothing() -> None:
    told = [
        one for n in range(3) for one in (ev.TextDelta(0, "ab"[n % 2]), ev.UsageUpdate(rd.TokenUsage(n, n)))
    ]
    assert waiting(*told) == [ev.TextDelta(0, "aba"), ev.UsageUpdate(rd.TokenUsage(2, 2))]


def test_a_usage_without_figures_takes_none_back() -> None:
    known = ev.UsageUpdate(rd.TokenUsage(output_tokens=0))
    assert waiting(known, ev.UsageUpdate(rd.TokenUsage())) == [known]


def test_nothing_passes_another_event_of_its_block() -> None:
    for between in (
        ev.BlockDelta(0, {"a": 1}),
        ev.BlockFinish(0),
        ev.BlockStart(0, TEXT),
        ev.ReasoningDelta(0, "r"),
    ):
        given = [ev.TextDelta(0, "a"), between, ev.TextDelta(0, "b")]
        assert waiting(*given) == given


def test_nothing_passes_the_end_of_a_message() -> None:
    for between in (ev.MessageFinish(), ev.MessageStart("n"), ev.MessageInterrupted(), ev.AttemptReset(1)):
        given = [ev.TextDelta(0, "a"), ev.UsageUpdate(rd.TokenUsage(1, 1)), between]
        given += [ev.TextDelta(0, "b"), ev.UsageUpdate(rd.TokenUsage(2, 2))]
        assert waiting(*given) == given


def test_nothing_passes_an_event_of_the_application_which_may_have_newer_data() -> None:
    a, b = ev.TextDelta(0, "a"), ev.TextDelta(0, "b")
    for own in (
        ev.Custom("status", 1),
        ev.Custom("status", 1, "s", transient=True),
        ev.Custom("status", 1, "s"),
    ):
        assert waiting(a, own, b) == [a, own, b]
    plain = [ev.Custom("status", number) for number in range(3)]
    assert waiting(*plain) == plain
    bars = [ev.Custom("bar", number, name) for number in range(3) for name in "ab"]
    assert waiting(a, *bars, b) == [a, *bars[-2:], b]
    passing = ev.Custom("bar", 3, "b", transient=True)
    assert waiting(*bars, passing) == [*bars[-2:], passing]
    others = [ev.Custom("bar", 1, "a", run_id=run_id) for run_id in (None, "north")]
    assert waiting(*others) == others


def test_fields_of_a_block_are_merged() -> None:
    given = [ev.BlockDelta(0, {"a": 1, "b": 1}), ev.BlockDelta(0, {"b": 2, "a": None})]
    assert waiting(*given) == [ev.BlockDelta(0, {"a": 1, "b": 2})]


def test_news_of_a_tool_are_merged_within_one_status() -> None:
    first, second = rd.ToolResult("c1", "a"), rd.ToolResult("c1", "")
    assert waiting(
        ev.ToolUpdate("c1", "identified"),
        ev.ToolUpdate("c1", "executing", "Looking", first),
        ev.ToolUpdate("c2", "executing"),
        ev.ToolUpdate("c1", "executing", "", second),
        ev.ToolUpdate("c1", "completed", None, first),
        ev.ToolUpdate("c1", "completed", None, second),
    ) == [
        ev.ToolUpdate("c1", "identified"),
        ev.ToolUpdate("c1", "executing", "Looking", second),
        ev.ToolUpdate("c2", "executing"),
        ev.ToolUpdate("c1", "completed", None, first),
        ev.ToolUpdate("c1", "completed", None, second),
    ]


def test_what_has_been_read_takes_no_more() -> None:
    backlog: Backlog[rd.Event] = Backlog()
    backlog.append(ev.TextDelta(0, "a"))
    assert backlog.popleft() == ev.TextDelta(0, "a")
    backlog.append(ev.TextDelta(0, "b"))
    assert backlog.popleft() == ev.TextDelta(0, "b")
    with pytest.raises(IndexError):
        backlog.popleft()


def legal(given: list[rd.Event]) -> list[rd.Event]:
    """A message of these, without those that no fold would take."""
    kept: list[rd.Event] = [ev.MessageStart("m")]
    fold, calls = rd.Fold(), set[str | None]()
    fold.step(kept[0])
    for event in given:
        if isinstance(event, (ev.MessageFinish, ev.MessageInterrupted, ev.AttemptReset)):
            continue
        if isinstance(event, ev.MessageStart) and event.id != "m":
            continue  # that of another message
        if isinstance(event, ev.ToolUpdate) and event.call_id not in calls:
            continue
        try:
            fold.step(event)
        except rd.RxDeltaError:
            continue
        if isinstance(event, ev.BlockStart):
            calls.add(event.content.get("id"))
        kept.append(event)
    return kept


def folded(given: list[rd.Event]) -> rd.Snapshot:
    fold = rd.Fold()
    for event in given:
        fold.step(event)
    return fold.snapshot


@given(st.lists(any_event(), max_size=30), st.lists(st.integers(0, 4), max_size=30))
def test_whatever_the_reader_does_the_reply_is_the_same(given: list[rd.Event], reads: list[int]) -> None:
    events = legal(given)
    backlog: Backlog[rd.Event] = Backlog()
    got: list[rd.Event] = []
    for place, event in enumerate(events):
        backlog.append(event)
        many = min(len(backlog), reads[place] if place < len(reads) else 0)
        got += [backlog.popleft() for _ in range(many)]
    got += [backlog.popleft() for _ in range(len(backlog))]
    assert folded(got) == folded(events)


def test_a_reader_gets_what_waits_joined_and_then_the_end() -> None:
    async def main() -> None:
        source = Subject[rd.Event]()
        async with rd.to_async_iterable(source, "join") as events:
            for one in "abc":
                source.on_next(ev.TextDelta(0, one))
            assert await anext(events) == ev.TextDelta(0, "abc")
            source.on_next(ev.TextDelta(0, "d"))
            source.on_error(ValueError("end"))
            assert await anext(events) == ev.TextDelta(0, "d")
            with pytest.raises(ValueError, match="end"):
                await anext(events)

    run(main)


def test_a_source_waits_only_where_nothing_can_be_joined() -> None:
    async def main() -> None:
        pulled = 0

        async def events(make: Any) -> Any:
            nonlocal pulled
            for number in range(100):
                pulled += 1
                yield make(number)

        def ping(number: int) -> rd.Event:
            return ev.ProviderEvent("p", "ping", {"n": number})

        for make, most in ((ping, 5), (lambda number: ev.TextDelta(0, str(number)), 100)):
            pulled = 0
            async with rd.to_async_iterable(
                rd.from_async_iterable(lambda make=make: events(make)), "join", maxsize=5
            ) as reading:
                for _ in range(500):
                    await asyncio.sleep(0)
                assert pulled == most
                assert len([one async for one in reading]) == (100 if make is ping else 1)

    run(main)


@says("text that waits")
@pytest.mark.parametrize("piece", ["x" * 30_000, "x"])
def test_a_source_waits_for_a_reader_for_whom_much_text_waits(piece: str) -> None:
    """Short pieces count with the memory that they take."""
    given = 100_000 if piece == "x" else 3_000

    async def main() -> None:
        pulled = 0

        async def events() -> Any:
            nonlocal pulled
            for _ in range(given):
                pulled += 1
                yield ev.TextDelta(0, piece)

        async with rd.to_async_iterable(rd.from_async_iterable(events), "join") as reading:
            known = -1
            while known != pulled:
                known = pulled
                for _ in range(100):
                    await asyncio.sleep(0)
            assert 300_000 < pulled * sys.getsizeof(piece) < 1_200_000
            got = [event async for event in reading]
            assert 1 < len(got) < given / 10
            assert sum(len(event.text) for event in got if isinstance(event, ev.TextDelta)) == given * len(
                piece
            )

    run(main)


def test_a_reader_whose_queue_was_full_of_text_has_room_when_it_has_read() -> None:
    async def main() -> None:
        given = [ev.TextDelta(index, "x" * 600_000) for index in range(9)]
        async with rd.to_async_iterable(rd.from_async_iterable(lambda: each(given)), "join") as reading:
            assert [event async for event in reading] == given

    async def each(given: list[ev.TextDelta]) -> Any:
        for event in given:
            yield event

    run(main)


def test_without_asyncio_too() -> None:
    given = [ev.TextDelta(0, one) for one in "abc"]
    with rd.to_iterable(rx.from_iterable(given), overflow="join") as events:
        assert list(events) == [ev.TextDelta(0, "abc")]
