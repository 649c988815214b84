"""How the work grows with a reply: at most 2.2 times for twice as much of anything, for every operator, decoder and encoder."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import pytest
import reactivex as rx
from reactivex.testing import TestScheduler
from support.cost import work_done
from support.small_replies import REPLIES

import rxdelta as rd
from rxdelta import operators

ev = rd.events
Events: TypeAlias = list[rd.Event]
Act: TypeAlias = Callable[[], Any]

FEW = 64
MOST = 2.2
TEXT = {"type": "text", "text": ""}


# The ways to grow.


def reply(*events: rd.Event, reason: str = "stop") -> Events:
    return [ev.MessageStart("m", "x"), *events, ev.MessageFinish(reason)]


def text(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, "some ") for _ in range(n)), ev.BlockFinish(0))


def one_line(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, "abcdefgh") for _ in range(n)), ev.BlockFinish(0))


def paragraphs(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, "- a\n\n") for _ in range(n)), ev.BlockFinish(0))


def reasoning(n: int) -> Events:
    start = ev.BlockStart(0, {"type": "reasoning", "reasoning": ""})
    return reply(start, *(ev.ReasoningDelta(0, "abc ") for _ in range(n)), ev.BlockFinish(0))


def block(index: int | str) -> Events:
    return [ev.BlockStart(index, TEXT), ev.TextDelta(index, "hi"), ev.BlockFinish(index)]


def blocks(n: int) -> Events:
    return reply(*(event for i in range(n) for event in block(i)))


def descending_blocks(n: int) -> Events:
    return reply(*(event for i in reversed(range(n)) for event in block(i)))


def named_blocks(n: int) -> Events:
    return reply(*(event for i in range(n) for event in block(f"b{i}")))


def open_blocks(n: int) -> Events:
    return reply(*(ev.BlockStart(i, TEXT) for i in range(n)), *(ev.TextDelta(i, "hi") for i in range(n)))


def call(index: int, *pieces: str) -> Events:
    start = ev.BlockStart(index, {"type": "tool_call_chunk", "id": f"c{index}", "name": "f", "args": ""})
    return [start, *(ev.ToolCallDelta(index, piece) for piece in pieces), ev.BlockFinish(index)]


def calls(n: int) -> Events:
    return reply(*(event for i in range(n) for event in call(i, '{"a":1}')), reason="tool_use")


def open_calls(n: int) -> Events:
    columns = zip(*(call(i, '{"a":1}') for i in range(n)), strict=True)
    return reply(*(event for column in columns for event in column), reason="tool_use")


def long_argument(n: int) -> Events:
    return reply(*call(0, '{"a":"', *["abcdefgh"] * n, '"}'), reason="tool_use")


def argument_keys(n: int) -> Events:
    return reply(*call(0, '{"a":0', *(f',"k{i}":{i}' for i in range(n)), "}"), reason="tool_use")


def argument_items(n: int) -> Events:
    return reply(*call(0, '{"a":[0', *(f",{i}" for i in range(n)), "]}"), reason="tool_use")


def json_text(n: int) -> Events:
    pieces = ['{"a":[0', *(f',{{"k":{i}}}' for i in range(n)), "]}"]
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, piece) for piece in pieces), ev.BlockFinish(0))


def fields(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.BlockDelta(0, {f"k{i}": i}) for i in range(n)), ev.BlockFinish(0))


def call_fields(n: int) -> Events:
    start, *rest = call(0, "{}")
    return reply(start, *(ev.BlockDelta(0, {f"k{i}": i}) for i in range(n)), *rest, reason="tool_use")


def metadata(n: int) -> Events:
    return [
        *(ev.MessageStart("m", "x", metadata={f"k{i}": i}, assumed=True) for i in range(n)),
        *reply(*block(0)),
    ]


def usages(n: int) -> Events:
    return reply(*(ev.UsageUpdate(rd.TokenUsage(1, i)) for i in range(n)))


def custom(n: int) -> Events:
    return reply(*(ev.Custom("status", i, id=str(i)) for i in range(n)))


def nameless_custom(n: int) -> Events:
    return reply(*(ev.Custom("status", i) for i in range(n)))


def provider_events(n: int) -> Events:
    return reply(*(ev.ProviderEvent("x", "ping", {"n": i}) for i in range(n)))


def updates(n: int) -> Events:
    told = (ev.ToolUpdate("c0", "executing", display_text=str(i)) for i in range(n))
    return [*reply(*call(0, "{}"), reason="tool_use"), *told, ev.ToolUpdate("c0", "completed")]


def updates_of_calls(n: int) -> Events:
    return [*calls(n), *(ev.ToolUpdate(f"c{i}", "completed") for i in range(n))]


def restarts(n: int) -> Events:
    return reply(*(ev.BlockStart(0, TEXT) for _ in range(n)), ev.BlockFinish(0))


def attempts(n: int) -> Events:
    said = (event for i in range(n) for event in (*block(0), ev.AttemptReset(i + 2), ev.MessageStart("m", "x")))
    return reply(*said, *block(0))


def messages(n: int) -> Events:
    return [
        event for i in range(n) for event in (ev.MessageStart(f"m{i}"), *block(0), ev.MessageFinish("stop"))
    ]


def choices(n: int) -> Events:
    def told(i: int) -> Events:
        return [
            ev.MessageStart("m", choice=i),
            ev.BlockStart(0, TEXT, choice=i),
            ev.TextDelta(0, "hi", choice=i),
            ev.BlockFinish(0, choice=i),
            ev.MessageFinish("stop", choice=i),
        ]

    return [event for i in range(n) for event in told(i)]


def runs(n: int) -> Events:
    def told(run: str) -> Events:
        return [
            ev.MessageStart("m", run_id=run),
            ev.BlockStart(0, TEXT, run_id=run),
            ev.TextDelta(0, "hi", run_id=run),
            ev.BlockFinish(0, run_id=run),
            ev.MessageFinish("stop", run_id=run),
        ]

    return [event for i in range(n) for event in told(f"r{i}")]


SHAPES: dict[str, Callable[[int], Events]] = {
    one.__name__.replace("_", " "): one
    for one in (
        text,
        one_line,
        paragraphs,
        reasoning,
        blocks,
        descending_blocks,
        named_blocks,
        open_blocks,
        calls,
        open_calls,
        long_argument,
        argument_keys,
        argument_items,
        json_text,
        fields,
        call_fields,
        metadata,
        usages,
        custom,
        nameless_custom,
        provider_events,
        updates,
        updates_of_calls,
        restarts,
        attempts,
        messages,
        choices,
        runs,
    )
}


# What is done with them.


class Refused(Exception):
    """The stream ended with an error, so nothing was measured."""


def refuse(error: Exception) -> None:
    raise Refused(repr(error)) from error


def read(value: Any) -> None:
    """A stream in the stream is read, too."""
    if isinstance(value, rx.Observable):
        value.subscribe(lambda _: None, refuse)


def through(
    make: Callable[[], Any], given: Callable[[Events], Iterable[Any]] = lambda events: events
) -> Callable[[Events], Act]:
    def prepare(events: Events) -> Act:
        values = [*given(events)]
        return lambda: rx.from_iterable(values).pipe(make()).subscribe(read, refuse)

    return prepare


def timed(
    make: Callable[[Any], Any], given: Callable[[Events], Iterable[Any]] = lambda events: events
) -> Callable[[Events], Act]:
    """One value each millisecond of virtual time."""

    def prepare(events: Events) -> Act:
        values = [*given(events)]

        def act() -> None:
            scheduler = TestScheduler()
            source = rx.zip(rx.from_iterable(values), rx.interval(0.001, scheduler=scheduler))
            source.pipe(rx.operators.map(lambda pair: pair[0]), make(scheduler)).subscribe(
                read, refuse, scheduler=scheduler
            )
            scheduler.start()

        return act

    return prepare


def snapshots(events: Events) -> Iterable[rd.Snapshot]:
    folds: dict[Any, rd.Fold] = {}
    for event in events:
        lane = (getattr(event, "choice", None) or 0, event.run_id)
        fold = folds.get(lane)
        if fold is None or fold.begins_another(event):
            fold = folds[lane] = rd.Fold(choice=lane[0], run_id=lane[1])
        yield fold.step(event)


def framed(events: Events) -> Iterable[bytes]:
    return (b"data: %s\n\n" % json.dumps(event.to_dict()).encode() for event in events)


def lined(events: Events) -> Iterable[bytes]:
    return (b"%s\n" % json.dumps(event.to_dict()).encode() for event in events)


def chunks(events: Events) -> Iterable[Any]:
    return [event.to_dict() for event in events]


class Entry(NamedTuple):
    id: str
    event: rd.Event


def nothing(*_: Any) -> None:
    pass


OPERATORS: dict[str, Callable[[Events], Act]] = {
    "parse_sse": through(rd.parse_sse, framed),
    "parse_ndjson": through(rd.parse_ndjson, lined),
    "decode": through(lambda: rd.decode("langchain"), chunks),
    "retry_stream": lambda events: lambda: rd.retry_stream(lambda: rx.from_iterable(events)).subscribe(read, refuse),
    "stall_timeout": timed(lambda scheduler: rd.stall_timeout(1, 1, scheduler=scheduler)),
    "until_stopped": through(lambda: rd.until_stopped(rx.never())),
    "validate": through(lambda: rd.validate(nothing)),
    "run_tools": through(lambda: rd.run_tools({"f": lambda **_: 1})),
    "smooth": timed(lambda scheduler: rd.smooth(scheduler=scheduler)),
    "compact_deltas": timed(lambda scheduler: rd.compact_deltas(0.05, scheduler=scheduler)),
    "share_events": through(rd.share_events),
    "text_deltas": through(rd.text_deltas),
    "stable_blocks": through(rd.stable_blocks),
    "partial_json": through(rd.partial_json),
    "partial_arguments": through(rd.partial_arguments),
    "json_items": through(lambda: rd.json_items("a")),
    "completed_tool_calls": through(rd.completed_tool_calls),
    "group_by_block": through(rd.group_by_block),
    "only_choice": through(lambda: rd.only_choice(0)),
    "per_block": through(lambda: rd.per_block(lambda block: block)),
    "group_by_choice": through(rd.group_by_choice),
    "group_by_message": through(rd.group_by_message),
    "group_by_run": through(rd.group_by_run),
    "with_custom": through(lambda: rd.with_custom(rx.empty())),
    "with_limits": through(lambda: rd.with_limits(rd.Limits())),
    "with_run": through(lambda: rd.with_run("r")),
    "scan_deltas": through(rd.scan_deltas),
    "throttle_latest": timed(lambda scheduler: rd.throttle_latest(0.05, scheduler=scheduler), snapshots),
    "debounce_latest": timed(lambda scheduler: rd.debounce_latest(0.05, 0.2, scheduler=scheduler), snapshots),
    "conflate": timed(lambda scheduler: rd.conflate(scheduler=scheduler), snapshots),
    "share_latest": through(rd.share_latest, snapshots),
    "until_all_tools_terminal": through(rd.until_all_tools_terminal, snapshots),
    "to_message": through(rd.to_message, snapshots),
    "on_settled": through(lambda: rd.on_settled(nothing)),
    "tap_metrics": through(lambda: rd.tap_metrics(nothing)),
    "tap_otel": through(lambda: rd.tap_otel("openai")),
    "to_ai_sdk": through(rd.to_ai_sdk),
    "to_ag_ui": through(lambda: rd.to_ag_ui(thread_id="t", run_id="r")),
    "to_langchain_events": through(rd.to_langchain_events),
    "to_openai_chat": through(lambda: rd.to_openai_chat("x")),
    "to_sse": through(rd.to_sse),
    "to_resumable_sse": through(lambda: rd.to_resumable_sse(rd.to_ai_sdk()), lambda events: [Entry(f"e{n}", event) for n, event in enumerate(events)]),
}


def growth(prepare: Callable[[Events], Act], shape: str) -> float:
    prepare(SHAPES[shape](1))()  # what is imported or cached for good
    none, some, twice = (work_done(prepare(SHAPES[shape](n))) for n in (1, FEW, 2 * FEW))
    return (twice - none) / (some - none) if some > none else 1
