"""What holds for every operator, because each has the same shell."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.encoded import encoded

import rxdelta as rd
from rxdelta import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

BOOM = ValueError("boom")

EVENTS = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "a"),
    ev.TextDelta(0, "b"),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]
SNAPSHOTS = [rd.MessageDelta(content=text) for text in "abc"]
CHUNKS = [
    {"id": "c1", "choices": [{"index": 0, "delta": {"content": "a"}}]},
    {"id": "c1", "choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}]},
]
FRAMES = [{"type": "a"}, {"type": "b"}]
ENTRIES = [SimpleNamespace(id=str(number), event=event) for number, event in enumerate(EVENTS)]
LINES = [b"1\n2\n", b"3\n", b"4"]

OPERATORS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "parse_sse": (rd.parse_sse, [b"data: " + line.strip() + b"\n\n" for line in LINES[1:]]),
    "parse_ndjson": (rd.parse_ndjson, LINES),
    "decode": (lambda: rd.decode("openai-chat"), CHUNKS),
    "scan_deltas": (rd.scan_deltas, EVENTS),
    "to_message": (rd.to_message, [rd.MessageDelta(content="a", status="complete", role="assistant")]),
    "validate": (rd.validate, EVENTS),
    "throttle_latest": (lambda: rd.throttle_latest(5), SNAPSHOTS),
    "debounce_latest": (lambda: rd.debounce_latest(5), SNAPSHOTS),
    "conflate": (rd.conflate, SNAPSHOTS),
    "compact_deltas": (lambda: rd.compact_deltas(5), EVENTS),
    "smooth": (rd.smooth, EVENTS),
    "redact": (lambda: rd.redact("x"), EVENTS),
    "map_text": (lambda: rd.map_text(str), EVENTS),
    "cut_text": (rd.cut_text, EVENTS),
    "sentences": (rd.sentences, EVENTS),
    "until_sequence": (lambda: rd.until_sequence("x"), EVENTS),
    "guard": (lambda: rd.guard(lambda _: True), EVENTS),
    "stall_timeout": (lambda: rd.stall_timeout(idle=5), EVENTS),
    "until_stopped": (lambda: rd.until_stopped(rx.never()), EVENTS),
    "retry_stream": (lambda: lambda source: rd.retry_stream(lambda: source), EVENTS),
    "fallback": (lambda: lambda source: rd.fallback(source), EVENTS),
    "race": (lambda: lambda source: rd.race(source, rx.never()), EVENTS),
    "on_settled": (lambda: rd.on_settled(lambda *_: None), EVENTS),
    "tap_metrics": (lambda: rd.tap_metrics(lambda _: None), EVENTS),
    "record": (lambda: rd.record(os.devnull), EVENTS),
    "share_events": (rd.share_events, EVENTS),
    "share_latest": (rd.share_latest, SNAPSHOTS),
    "to_ai_sdk": (rd.to_ai_sdk, EVENTS),
    "to_ag_ui": (lambda: rd.to_ag_ui(thread_id="t", run_id="r"), EVENTS),
    "to_langchain_events": (
        lambda: encoded(lambda: rd.wire.LangChainEncoder(now=lambda: 0.0, new_id=lambda: "m")),
        EVENTS,
    ),
    "to_openai_chat": (
        lambda: encoded(lambda: rd.wire.OpenAiChatEncoder(now=lambda: 0.0, new_id=lambda: "m")),
        EVENTS,
    ),
    "to_openai_responses": (
        lambda: encoded(lambda: rd.wire.OpenAiResponsesEncoder(now=lambda: 0.0, new_id=lambda: "m")),
        EVENTS,
    ),
    "to_anthropic_messages": (
        lambda: encoded(lambda: rd.wire.AnthropicMessagesEncoder(now=lambda: 0.0, new_id=lambda: "m")),
        EVENTS,
    ),
    "to_ollama": (lambda: encoded(lambda: rd.wire.OllamaEncoder(now=lambda: 0.0)), EVENTS),
    "to_sse": (rd.to_sse, FRAMES),
    "to_sse with comments": (lambda: rd.to_sse(5), FRAMES),
    "to_ndjson": (rd.to_ndjson, FRAMES),
    "to_ndjson with spaces": (lambda: rd.to_ndjson(5), FRAMES),
    "to_resumable_sse": (lambda: rd.to_resumable_sse(rd.to_ai_sdk()), ENTRIES),
    "to_resumable_sse behind an id": (lambda: rd.to_resumable_sse(rd.to_ai_sdk(), "1"), ENTRIES),
}
ALL = pytest.mark.parametrize(("make", "values"), OPERATORS.values(), ids=OPERATORS)
IN_ORDER = {name: case for name, case in OPERATORS.items() if name != "conflate"}  # which drops what is old
ONE_AT_MOST = {
    *("scan_deltas", "validate", "to_message", "to_sse", "to_ndjson"),
    *("on_settled", "tap_metrics", "record"),
}
"""They have no queue: their source must not emit on two threads at once, as everywhere in Rx."""
WITH_QUEUE = {name: case for name, case in OPERATORS.items() if name not in ONE_AT_MOST}


def plain(make: Callable[[], Any], values: list[Any]) -> list[Any]:
    got, source = list[Any](), Subject[Any]()
    source.pipe(make()).subscribe(got.append, got.append, lambda: got.append("|"), scheduler=TestScheduler())
    for value in values:
        source.on_next(value)
    source.on_completed()
    return got


@pytest.mark.parametrize(("make", "values"), IN_ORDER.values(), ids=IN_ORDER)
def test_what_an_observer_pushes_into_the_source_keeps_its_order(
    make: Callable[[], Any], values: list[Any]
) -> None:
    got, source = list[Any](), Subject[Any]()
    rest = iter(values)

    def draw(value: Any) -> None:
        got.append(value)
        for more in rest:
            source.on_next(more)
        source.on_completed()

    source.pipe(make()).subscribe(draw, got.append, lambda: got.append("|"), scheduler=TestScheduler())
    for value in rest:
        source.on_next(value)
    source.on_completed()
    expected = plain(make, values)
    if len(expected) > 2:
        assert got[0] == expected[0]
    assert got[-2:] == expected[-2:]
    assert got.count("|") == 1


@pytest.mark.parametrize(("make", "values"), WITH_QUEUE.values(), ids=WITH_QUEUE)
def test_a_second_thread_waits_for_no_observer(make: Callable[[], Any], values: list[Any]) -> None:
    source, seen = Subject[Any](), list[str]()
    entered, go_on = threading.Event(), threading.Event()

    def draw(_: Any) -> None:
        seen.append("in")
        entered.set()
        assert go_on.wait(10)
        seen.append("out")

    def push() -> None:
        read = source.pipe(make())
        read.subscribe(draw, on_completed=lambda: seen.append("|"), scheduler=TestScheduler())
        for value in values[:-1]:
            if entered.is_set():  # also by what an operator emits when its reader comes
                return
            source.on_next(value)
        if entered.is_set():
            return
        source.on_next(values[-1])
        source.on_completed()

    thread = threading.Thread(target=push)
    thread.start()
    assert entered.wait(10)
    source.on_next(values[-1])
    source.on_completed()
    assert seen == ["in"]
    go_on.set()
    thread.join(10)
    assert not thread.is_alive()


@ALL
def test_behind_a_synchronous_source_nothing_follows_the_reader(
    make: Callable[[], Any], values: list[Any]
) -> None:
    left: list[int] = []

    def subscribe(observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        for value in values:
            observer.on_next(value)
        observer.on_completed()
        return Disposable(lambda: left.append(1))

    got: list[Any] = []
    Observable(subscribe).pipe(make(), ops.take(1)).subscribe(got.append, got.append, lambda: got.append("|"))
    assert len(got) == 2
    assert got[1] == "|"
    assert left == [1]


@ALL
def test_an_observer_that_raises_has_left(make: Callable[[], Any], values: list[Any]) -> None:
    errors, seen, source = list[Exception](), list[Any](), Subject[Any]()

    def draw(value: Any) -> None:
        seen.append(value)
        raise BOOM

    def begin() -> None:
        source.pipe(make()).subscribe(draw, errors.append, scheduler=TestScheduler())

    raised = 0
    for act in [
        begin,
        *(lambda value=value: source.on_next(value) for value in values),
        source.on_completed,
    ]:
        try:
            act()
        except ValueError:
            raised += 1
    assert len(seen) == 1
    assert errors == []
    assert source.observers == []
    assert raised <= 1


@pytest.mark.parametrize(
    "source", [rx.of, lambda *values: rx.from_iterable(values)], ids=["of", "from_iterable"]
)
@pytest.mark.parametrize(
    "make",
    [rd.group_by_block, rd.group_by_message, rd.group_by_choice, rd.scan_deltas, lambda: rd.run_tools({})],
)
def test_a_source_that_catches_an_observers_exception_gets_it_back(make: Any, source: Any) -> None:
    errors: list[Exception] = []

    def draw(_: Any) -> None:
        raise BOOM

    with pytest.raises(ValueError, match="boom"):
        source(*EVENTS).pipe(make()).subscribe(draw, errors.append)
    assert errors == []


def test_a_request_is_not_repeated_for_a_reader_that_has_left() -> None:
    requests: list[int] = []

    def factory() -> Observable[rd.Event]:
        def subscribe(
            observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            requests.append(1)
            observer.on_next(EVENTS[0])
            observer.on_error(TimeoutError())
            return Disposable()

        return Observable(subscribe)

    rd.retry_stream(factory, 3, lambda *_: 0).pipe(ops.take(1)).subscribe()
    assert requests == [1]
    rd.retry_stream(factory, 3, lambda *_: 0).subscribe(on_error=lambda _: None)
    assert requests == [1] * 4


def test_a_reader_that_has_left_a_synchronous_source_counts_as_having_disposed() -> None:
    outcomes: list[str] = []

    def subscribe(observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        for event in EVENTS:
            observer.on_next(event)
        observer.on_completed()
        return Disposable()

    source = Observable(subscribe)
    source.pipe(rd.on_settled(lambda _, outcome: outcomes.append(outcome.kind)), ops.take(1)).subscribe()
    source.pipe(
        rd.tap_metrics(lambda metrics: outcomes.append(metrics.outcome.kind)), ops.take(1)
    ).subscribe()
    assert outcomes == ["disposed", "disposed"]
