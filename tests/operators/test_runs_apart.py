"""Several runs in one stream: each reader gives of each run what it gives of that run alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from random import Random
from typing import Any, TypeAlias

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.shared import recordings
from support.streams import TOOLS, streams

import rxdelta as rd

ev = rd.events
Events: TypeAlias = Sequence[rd.Event]
ByRun: TypeAlias = dict[str | None, Any]

FORMATS = ("openai-chat", "anthropic-messages", "openai-responses", "gemini", "mistral", "cohere", "ollama")


def told(source: rx.Observable[Any]) -> list[Any]:
    values: list[Any] = []
    failures: list[Exception] = []
    source.subscribe(values.append, failures.append)
    assert not failures, failures
    return values


def named(events: Events, run_id: str) -> Events:
    return told(rx.from_iterable(events).pipe(rd.with_run(run_id)))


def woven(draw: Random, lists: Sequence[Events]) -> list[rd.Event]:
    left = [[*events] for events in lists if events]
    events: list[rd.Event] = []
    while left:
        one = draw.choice(left)
        events.extend(one[: (size := draw.randint(1, 4))])
        del one[:size]
        left = [one for one in left if one]
    return events


# The streams that are merged: made ones of every kind that doesn't fail, and recorded ones.


@cache
def made(seed: int) -> list[Events]:
    whole = [
        stream for stream in streams(seed) if not stream.fails and stream.name not in ("failed", "empty")
    ]
    return [stream.events for stream in whole]


@cache
def recorded(wire_format: str) -> list[Events]:
    found: list[Events] = []
    for one in recordings(wire_format)[::9][:6]:
        chunks = one.values[0]
        if chunks is None or len(chunks) > 300:
            continue
        events: list[rd.Event] = []
        source = rx.from_iterable(chunks).pipe(rd.decode(wire_format))
        source.subscribe(events.append, lambda _: None)
        found.append(events)
    return found


# The readers: of events, what they give of each run.


def replies_of(source: rx.Observable[rd.Event]) -> ByRun:
    """The newest message of each run, by `group_by_message`."""
    newest: ByRun = {}

    def read(message: rd.types.MessageStream) -> None:
        choices: dict[int, rd.Snapshot] = {}
        newest[message.run_id] = choices

        def read_choice(one: rd.types.ChoiceStream) -> None:
            fold = rd.Fold(choice=one.choice)
            one.subscribe(lambda event: choices.update({one.choice: fold.step(event)}))

        message.pipe(rd.group_by_choice()).subscribe(read_choice)

    failures: list[Exception] = []
    source.pipe(rd.group_by_message()).subscribe(read, failures.append)
    assert not failures, failures
    assert all(reply.run_id == run_id for run_id, choices in newest.items() for reply in choices.values())
    return newest


def by_message(events: Events) -> ByRun:
    return replies_of(rx.from_iterable(events))


def by_run(events: Events) -> ByRun:
    found: ByRun = {}
    runs: list[rd.types.RunStream] = []
    rx.from_iterable(events).pipe(rd.group_by_run(), ops.do_action(runs.append)).subscribe(
        lambda run: found.update({run.run_id: kept(run)})
    )
    assert len({run.run_id for run in runs}) == len(runs)
    return {run_id: by_message(one)[run_id] for run_id, one in found.items()}


def kept(source: rx.Observable[rd.Event]) -> list[rd.Event]:
    events: list[rd.Event] = []
    source.subscribe(events.append)
    return events


def late(split: Any) -> Callable[[Events], ByRun]:
    """The newest message of each run, read from streams that were subscribed in the middle."""

    def read(events: Events) -> ByRun:
        source: Subject[rd.Event] = Subject()
        streams: list[Any] = []
        source.pipe(split()).subscribe(streams.append)
        for event in events[: len(events) // 2]:
            source.on_next(event)
        early = {stream: kept(stream) for stream in streams}
        for event in events[len(events) // 2 :]:
            source.on_next(event)
        early |= {stream: kept(stream) for stream in streams if stream not in early}
        source.on_completed()
        return {
            stream.run_id: by_message(early[stream])[stream.run_id] for stream in streams if early[stream]
        }

    return read


def shared(events: Events) -> ByRun:
    """What a reader gets that comes in the middle, and one that comes at the end."""
    source: Subject[rd.Event] = Subject()
    shared = source.pipe(rd.share_events(unread="keep"))
    shared.subscribe()
    for event in events[: len(events) // 2]:
        source.on_next(event)
    middle = kept(shared)
    for event in events[len(events) // 2 :]:
        source.on_next(event)
    source.on_completed()
    end = by_message(kept(shared))
    assert by_message(middle) == end
    return end


def blocks(events: Events) -> ByRun:
    found: ByRun = {}

    def last(block: rd.types.BlockStream) -> rx.Observable[Any]:
        told = block.pipe(ops.catch(lambda *_: rx.empty()), ops.last_or_default())
        return told.pipe(ops.map(lambda value: (block.run_id, block.choice, str(block.index), value)))

    for run_id, *what in told(rx.from_iterable(events).pipe(rd.per_block(last))):
        found.setdefault(run_id, []).append(what)
    return {
        run_id: sorted(values, key=lambda value: (value[:2], repr(value[2])))
        for run_id, values in found.items()
    }


def after(*operators: Callable[[], Any]) -> Callable[[Events], ByRun]:
    """The newest message of each run behind an operator, in virtual time."""

    def read(events: Events) -> ByRun:
        time, got = TestScheduler(), list[rd.Event]()
        source = rx.from_iterable(events).pipe(*(make() for make in operators))
        source.subscribe(got.append, lambda error: pytest.fail(repr(error)), scheduler=time)
        time.start()
        return by_run(got)

    return read


READERS: dict[str, Callable[[Events], ByRun]] = {
    "group_by_message": by_message,
    "group_by_message, late": late(rd.group_by_message),
    "group_by_run": by_run,
    "group_by_run, late": late(rd.group_by_run),
    "share_events": shared,
    "per_block": blocks,
    "run_tools": after(lambda: rd.run_tools(TOOLS)),
    "run_tools(message)": after(lambda: rd.run_tools(TOOLS, start="message")),
    "compact_deltas": after(lambda: rd.compact_deltas(5)),
    "smooth": after(lambda: rd.smooth("word", rate=0.5)),
    "redact": after(lambda: rd.redact("e", "E")),
    "map_text": after(lambda: rd.map_text(str.upper)),
    "cut_text": after(rd.cut_text),
    "until_sequence": after(lambda: rd.until_sequence("\0")),
    "guard": after(lambda: rd.guard(lambda text: "s" not in text, on_hit="…")),
    "tap_metrics": after(lambda: rd.tap_metrics(lambda _: None)),
    "with_run twice": after(lambda: rd.with_run("outer")),
}


def holds(reader: str, draw: Random, sources: Sequence[Events]) -> None:
    labels = [f"run {number}" for number in range(len(sources))]
    lists = [named(events, label) for events, label in zip(sources, labels, strict=True)]
    read = READERS[reader]
    together = read(woven(draw, lists))
    alone = [read(events) for events in lists]
    assert together == {run_id: value for one in alone for run_id, value in one.items()}


@pytest.mark.parametrize("reader", READERS)
def test_each_run_is_read_as_if_it_were_alone(reader: str) -> None:
    for seed in range(6):
        draw = Random(seed)
        holds(reader, draw, draw.sample(made(seed), k=draw.randint(2, 5)))


@pytest.mark.parametrize("reader", READERS)
def test_each_recorded_run_is_read_as_if_it_were_alone(reader: str) -> None:
    replies = [events for wire_format in FORMATS for events in recorded(wire_format)]
    if not replies:
        pytest.skip("no recordings")
    for seed in range(2):
        draw = Random(seed)
        holds(reader, draw, [*draw.sample(replies, k=3), draw.choice(made(seed))])


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("seed", range(6, 40))
def test_each_run_is_read_as_if_it_were_alone_for_many(reader: str, seed: int) -> None:
    draw = Random(seed)
    holds(reader, draw, draw.sample(made(seed), k=draw.randint(2, 5)))


# Readers of one run.

REPLY = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "[1]"),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "f"}),
    ev.ToolCallDelta(1, "{}"),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
]
OF_ONE_RUN: dict[str, Callable[[], Any]] = {
    "scan_deltas": rd.scan_deltas,
    "sentences": rd.sentences,
    "text_deltas": rd.text_deltas,
    "reasoning_deltas": partial(rd.text_deltas, of="reasoning"),
    "completed_tool_calls": rd.completed_tool_calls,
    "partial_arguments": rd.partial_arguments,
    "partial_json": rd.partial_json,
    "json_items": rd.json_items,
    "stable_blocks": rd.stable_blocks,
}


@pytest.mark.parametrize("operator", OF_ONE_RUN)
def test_a_reader_of_one_run_refuses_another(operator: str) -> None:
    one, two = named(REPLY, "one"), named(REPLY, "two")
    for place, other in product(range(1, len(one) + 1), two):
        if isinstance(other, (ev.TextDelta, ev.ToolCallDelta)) and operator != "scan_deltas":
            continue  # a projection doesn't read every delta; the start before it is refused
        failures: list[Exception] = []
        source = rx.from_iterable([*one[:place], other])
        source.pipe(OF_ONE_RUN[operator]()).subscribe(on_error=failures.append)
        assert [type(failure) for failure in failures] == [rd.ProtocolError], (place, other)
        assert "group_by_run()" in str(failures[0])


@pytest.mark.parametrize("operator", ["text_deltas", "partial_json", "json_items", "stable_blocks"])
def test_a_text_of_another_run_is_refused_without_its_start_too(operator: str) -> None:
    events = [*named(REPLY, "one")[:3], ev.TextDelta(0, "2", run_id="two")]
    failures: list[Exception] = []
    rx.from_iterable(events).pipe(OF_ONE_RUN[operator]()).subscribe(on_error=failures.append)
    assert "group_by_run()" in str(failures[0])


def test_validate_checks_each_run() -> None:
    one, two = named(REPLY, "one"), named(REPLY, "two")
    assert told(rx.from_iterable(woven(Random(1), [one, two])).pipe(rd.validate()))
    for events, violation in (
        ([*one, *two[:-1]], "missing_message_finish"),
        ([*one, *two[1:]], "missing_message_start"),
        ([*one, two[0], two[1], two[1]], "duplicate_block_start"),
    ):
        failures: list[Any] = []
        rx.from_iterable(events).pipe(rd.validate()).subscribe(on_error=failures.append)
        assert failures[0].violation == violation


def test_a_slow_reader_gets_each_run_with_its_deltas_joined() -> None:
    async def read(source: rx.Observable[rd.Event]) -> list[rd.Event]:
        async with rd.to_async_iterable(source, overflow="join") as events:
            return [event async for event in events]

    for seed in range(4):
        draw = Random(seed)
        lists = [
            named(events, name) for name, events in zip("abc", draw.sample(made(seed), k=3), strict=True)
        ]
        woven_events = woven(draw, lists)
        got = asyncio.run(read(rx.from_iterable(woven_events)))
        assert len(got) < len(woven_events)
        alone = [by_message(events) for events in lists]
        assert by_message(got) == {run_id: value for one in alone for run_id, value in one.items()}
    for make in (
        lambda run_id: ev.BlockDelta(0, {"signature": "s"}, run_id=run_id),
        lambda run_id: ev.ToolUpdate("c", "executing", run_id=run_id),
        lambda run_id: ev.UsageUpdate(rd.TokenUsage(1), run_id=run_id),
    ):
        events = [make("a"), make("b")]
        assert asyncio.run(read(rx.from_iterable(events))) == events


def test_metrics_add_up_the_usage_of_the_runs() -> None:
    usage = [ev.MessageStart(), ev.UsageUpdate(rd.TokenUsage(7, 1)), ev.UsageUpdate(rd.TokenUsage(7, 2))]
    lists = [named([*usage, ev.MessageFinish("stop")], name) for name in "abc"]
    metrics: list[rd.types.StreamMetrics] = []
    told(rx.from_iterable(woven(Random(1), lists)).pipe(rd.tap_metrics(metrics.append)))
    told(
        rx.from_iterable([event for events in lists for event in events]).pipe(rd.tap_metrics(metrics.append))
    )
    assert [one.usage for one in metrics] == [rd.TokenUsage(21, 6)] * 2


def test_metrics_have_the_newest_usage_of_a_run_whose_message_ended_before_another_run_began() -> None:
    def reply(run_id: str, tokens: int) -> Events:
        usage = rd.TokenUsage(tokens)
        return named([ev.MessageStart(), ev.MessageFinish("stop", usage=usage)], run_id)

    for order in ("a1 b10 a100", "a1 b10 a100 b1000", "a1 a100 b10"):
        events = [event for one in order.split() for event in reply(one[0], int(one[1:]))]
        newest = {one[0]: int(one[1:]) for one in order.split()}
        metrics: list[rd.types.StreamMetrics] = []
        told(rx.from_iterable(events).pipe(rd.tap_metrics(metrics.append)))
        assert metrics[-1].usage is not None
        assert metrics[-1].usage.input_tokens == sum(newest.values()), order
