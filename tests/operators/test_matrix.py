"""An operator behaves the same behind any other: two operators that change no message change none together.

Everything is data: `streams` (support), and the operators by a short name. All times are virtual.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count, product
from typing import Any, TypeAlias

import attrs
import pytest
import reactivex as rx
from reactivex import Observable, abc, compose, operators as ops
from reactivex.disposable import CompositeDisposable
from reactivex.testing import ReactiveTest, TestScheduler
from support import ag_ui, ai_sdk
from support.streams import TOOLS, EventStream, streams

import rxdelta as rd

Operator: TypeAlias = Callable[[Observable[Any]], Observable[Any]]
Events: TypeAlias = list[rd.Event]

SEEDS = {1: 0, 2: 1, 3: 3}  # the seconds between two events, for each seed
STREAMS = [[(stream, gap) for stream in streams(seed)] for seed, gap in SEEDS.items()]
KINDS = range(len(STREAMS[0]))


def merged(split: Operator) -> Operator:
    return lambda source: source.pipe(split, ops.merge_all())


def nothing(*_: Any) -> None:
    pass


EVENTS: dict[str, Callable[[], Operator]] = {
    "compact_deltas": lambda: rd.compact_deltas(5),
    "cut_text": rd.cut_text,
    "group_by_choice": lambda: ops.compose(
        merged(rd.group_by_choice()),
        ops.distinct_until_changed(
            comparer=lambda one, other: one is other
        ),  # an event without a choice goes to each choice
        ops.map(lambda event: event),  # which hides what may drop events
    ),
    "group_by_message": lambda: merged(rd.group_by_message()),
    "guard": lambda: rd.guard(lambda _: True, 1),
    "map_text": lambda: rd.map_text(str),
    "on_settled": lambda: rd.on_settled(nothing),
    "record": lambda: rd.record(os.devnull),
    "redact": lambda: rd.redact("\0"),
    "retry_stream": lambda: lambda source: rd.retry_stream(lambda: source, attempts=1),
    "fallback": lambda: lambda source: rd.fallback(source),
    "race": lambda: lambda source: rd.race(source),
    "run_tools(add)": lambda: rd.run_tools({"add": TOOLS["add"]}, unknown="leave"),
    "run_tools(find)": lambda: rd.run_tools({"find": TOOLS["find"]}, unknown="leave", start="message"),
    "share": ops.share,
    "share_events": rd.share_events,
    "smooth": lambda: rd.smooth("word", rate=0.5, max_lag=9),
    "stall_timeout": lambda: rd.stall_timeout(idle=1e5),
    "tap_metrics": lambda: rd.tap_metrics(nothing, every=50),
    "tap_metrics(through)": lambda: rd.tap_metrics(nothing, through=rd.compact_deltas(3)),
    "tap_otel": lambda: rd.tap_otel("house"),
    "until_sequence": lambda: rd.until_sequence("\0"),
    "until_stopped": lambda: rd.until_stopped(rx.never()),
    "validate": lambda: rd.validate(on_violation=nothing),
}
"""Operators on events that change no message, except by the tools that they run."""

HOLD_TEXT = {"cut_text", "guard", "map_text"}
"""They hold each block's text by itself, so texts of blocks that are open at once come in another order."""

UNCHECKED = {
    "another message, or attempt, after one of two choices",
    *("cut", "cut off by the next message", "cut between choices", "broken", "failed", "interrupted"),
    *("interrupted choices", "too long"),
}
"""Streams with text, or arguments, that have no end: a guard drops that, because nothing has checked it."""

SNAPSHOTS: dict[str, Callable[[], Operator]] = {
    "conflate": rd.conflate,
    "debounce_latest": lambda: rd.debounce_latest(4, max_wait=9),
    "on_settled": lambda: rd.on_settled(nothing),
    "share": ops.share,
    "share_latest": rd.share_latest,
    "stall_timeout": lambda: rd.stall_timeout(idle=1e5),
    "tap_metrics": lambda: rd.tap_metrics(nothing),
    "tap_metrics(through)": lambda: rd.tap_metrics(nothing, through=rd.throttle_latest(3)),
    "tap_otel": lambda: rd.tap_otel("house"),
    "throttle_latest": lambda: rd.throttle_latest(4),
    "until_all_tools_terminal": rd.until_all_tools_terminal,
}
"""Operators on snapshots that keep the last one, and the end."""

NEWEST = {"conflate", "debounce_latest", "throttle_latest", "tap_metrics(through)"}


@attrs.frozen
class Outcome:
    """The result of a stream that has ended."""

    last: Any = None
    end: str = "none"
    snapshot: rd.Snapshot | None = None  # of the error


def outcomes(*readers: Operator, summary: Callable[[list[Any]], Any], snapshot: bool = True) -> Operator:
    """The outcomes of readers that all subscribe at once, as one list."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            ends: dict[int, Outcome] = {}

            def read(place: int) -> abc.DisposableBase:
                values: list[Any] = []

                def end(how: str, error: Exception | None = None) -> None:
                    ends[place] = Outcome(
                        summary(values), how, getattr(error, "snapshot", None) if snapshot else None
                    )
                    if len(ends) == len(readers):
                        observer.on_next([ends[place] for place in range(len(readers))])
                        observer.on_completed()

                return source.pipe(readers[place]).subscribe(
                    values.append,
                    lambda error: end(f"{type(error).__name__}: {error}", error),
                    lambda: end("completed"),
                    scheduler=scheduler,
                )

            return CompositeDisposable([read(place) for place in range(len(readers))])

        return Observable(subscribe)

    return apply


def newest(values: list[Any]) -> Any:
    return values[-1] if values else None


def joined(values: list[Any]) -> Any:
    return "".join(values)


def folds(*operators: Operator, choices: Iterable[int] = (0, 1)) -> Operator:
    """The outcome of each choice's fold."""
    readers = [ops.compose(rd.scan_deltas(choice=choice), *operators) for choice in choices]
    return outcomes(*readers, summary=newest)


def messages(source: Observable[Any]) -> Observable[Any]:
    """The outcomes of each message's folds."""
    return source.pipe(rd.group_by_message(), ops.flat_map(folds()))


WHOLE: dict[str, Operator] = {
    "scan_deltas": folds(),
    "messages": outcomes(messages, summary=list, snapshot=False),  # an operator may set the error's snapshot
}
"""A fold of the stream, which refuses a second message, and a fold of each message."""


def records(stream: EventStream, gap: float) -> list[Any]:
    times = [10 + gap * place for place in range(len(stream.events) + 1)]
    events = [ReactiveTest.on_next(time, event) for time, event in zip(times, stream.events, strict=False)]
    if stream.fails:
        return [*events, ReactiveTest.on_error(times[-1], ValueError("boom"))]
    return [*events, ReactiveTest.on_completed(times[-1])]


def play(
    stream: EventStream, gap: float, operators: Iterable[Operator], readers: Mapping[str, Operator]
) -> dict[str, list[Any]]:
    """The values of readers that share one subscription to these operators."""
    scheduler = TestScheduler()
    source = scheduler.create_cold_observable(records(stream, gap)).pipe(*operators, ops.publish())
    values: dict[str, list[Any]] = {name: [] for name in readers}

    def subscribe(*_: Any) -> None:
        for name, reader in readers.items():
            source.pipe(reader).subscribe(values[name].append, values[name].append, scheduler=scheduler)
        source.connect(scheduler)

    scheduler.schedule_absolute(200, subscribe)
    scheduler.schedule_absolute(5000, lambda *_: scheduler.stop())
    scheduler.start()
    return values


def plain(value: Any) -> Any:
    """The value as JSON, for people who look for a difference."""
    if isinstance(value, Outcome):
        return {name: plain(part) for name, part in attrs.asdict(value, recurse=False).items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def differences(got: Any, wanted: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        for name in {**wanted, **got}:
            yield from differences(got.get(name), wanted.get(name), f"{path}.{name}")
    elif isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        for place, (one, other) in enumerate(zip(got, wanted, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif got != wanted:
        yield f"{path}: {got!r:.200} instead of {wanted!r:.200}"


def compared(name: str, got: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each reader with another outcome."""
    return [
        f"- {name}, {reader}: {next(differences(plain(got[reader]), plain(wanted[reader])), 'not in to_dict')}"
        for reader in wanted
        if got[reader] != wanted[reader]
    ]


def projection(*operators: Operator, summary: Callable[[list[Any]], Any] = list) -> Operator:
    return outcomes(ops.compose(*operators), summary=summary, snapshot=False)


def ai_sdk_parts(events: Events, error: Exception | None) -> Any:
    return ai_sdk.read(ai_sdk.frames_of(events, error)).parts


def ag_ui_messages(events: Events, error: Exception | None) -> Any:
    encoder = ag_ui.encoder(new_id=map(str, count()).__next__)
    return ag_ui.read(ag_ui.frames_of(encoder, events, error=error)).messages


def langchain_messages(events: Events, error: Exception | None) -> Any:
    encoder = rd.wire.LangChainEncoder(now=lambda: 0, new_id=map(str, count()).__next__)
    decoder = rd.providers.decoder("langchain")
    frames = [frame for event in events for frame in encoder.encode(event)]
    frames += encoder.close() if error is None else encoder.fail(error)
    decoded = [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]
    return rx.from_iterable(decoded).pipe(WHOLE["messages"]).run()


def openai_chat_message(events: Events, error: Exception | None) -> Any:
    encoder = rd.wire.OpenAiChatEncoder(now=lambda: 0, new_id=lambda: "made")
    frames = [frame for event in events for frame in encoder.encode(event)]
    frames += encoder.close() if error is None else encoder.fail(error)
    deltas = [choice for frame in frames if isinstance(frame, dict) for choice in frame.get("choices", ())]
    return rd.wire.openai_chat_completion(frames), joined([one["delta"].get("content", "") for one in deltas])


def openai_response(events: Events, error: Exception | None) -> Any:
    encoder = rd.wire.OpenAiResponsesEncoder(now=lambda: 0, new_id=lambda: "made")
    frames = [frame for event in events for frame in encoder.encode(event)]
    frames += encoder.close() if error is None else encoder.fail(error)
    body = rd.wire.openai_response(frames)
    return body, joined([one.get("delta", "") for one in frames if "delta" in one])


def anthropic_message(events: Events, error: Exception | None) -> Any:
    encoder = rd.wire.AnthropicMessagesEncoder(now=lambda: 0, new_id=lambda: "made")
    frames = [frame for event in events for frame in encoder.encode(event)]
    frames += encoder.close() if error is None else encoder.fail(error)
    said = [one["delta"].get("text", "") for one in frames if "delta" in one]
    return rd.wire.anthropic_message(frames), joined(said)


def ollama_message(events: Events, error: Exception | None) -> Any:
    encoder = rd.wire.OllamaEncoder(now=lambda: 0)
    lines = [line for event in events for line in encoder.encode(event)]
    lines += encoder.close() if error is None else encoder.fail(error)
    said = [line["message"]["content"] for line in lines if "message" in line]
    return rd.wire.ollama_chat(lines), joined(said)


def client(state: Callable[[Events, Exception | None], Any]) -> Operator:
    """The state of an encoder's client, or the rule of the protocol that the encoder has broken."""

    def summary(values: list[Any]) -> Any:
        error = values.pop() if values and isinstance(values[-1], Exception) else None
        try:
            return state(values, error)
        except AssertionError as broken:
            return f"the client refuses it: {broken}"

    return projection(ops.catch(lambda error, _: rx.of(error)), summary=summary)


PROJECTIONS: dict[str, Operator] = {
    "text_deltas": projection(rd.text_deltas(), summary=joined),
    "reasoning_deltas": projection(rd.text_deltas(of="reasoning"), summary=joined),
    "text_deltas() of choice 1": projection(compose(rd.only_choice(1), rd.text_deltas()), summary=joined),
    "stable_blocks": projection(rd.stable_blocks(), summary=newest),
    "completed_tool_calls": projection(rd.completed_tool_calls()),
    "partial_arguments": projection(rd.partial_arguments(), summary=newest),
    "partial_json": projection(rd.partial_json(), summary=newest),
    "json_items": projection(rd.json_items("n")),
    "per_block": projection(rd.per_block(ops.last()), ops.map(plain)),
    "ai-sdk": client(ai_sdk_parts),
    "ag-ui": client(ag_ui_messages),
    "langchain": client(langchain_messages),
    "openai-chat": client(openai_chat_message),
    "openai-responses": client(openai_response),
    "anthropic-messages": client(anthropic_message),
    "ollama": client(ollama_message),
}

READERS = {"whole": WHOLE, "projections": PROJECTIONS}


Place: TypeAlias = tuple[int, int]  # a seed's and a kind's


def places(number: int) -> list[Place]:
    """A stream of each kind for a test, from the seeds in turn: all seeds for each test would take too long."""
    return [((number + kind) % len(SEEDS), kind) for kind in KINDS]


def some_places(number: int) -> list[Place]:
    """A sixth of them, another one for each test."""
    return places(number)[number // len(SEEDS) % 6 :: 6]


Places: TypeAlias = Callable[[int], list[Place]]
AMOUNTS = pytest.mark.parametrize(
    "chosen", [pytest.param(some_places, id="some"), pytest.param(places, id="all", marks=pytest.mark.soak)]
)


def tools_of(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name.startswith("run_tools"))


@cache
def without(place: Place, tools: tuple[str, ...], readers: str) -> Mapping[str, Any]:
    """The outcome with nothing but the tools in front of the readers."""
    seed, kind = place
    return play(*STREAMS[seed][kind], [EVENTS[name]() for name in tools], READERS[readers])


def check(number: int, names: Sequence[str], readers: str, chosen: Places = places) -> None:
    found: list[str] = []
    for seed, kind in chosen(number):
        stream, gap = STREAMS[seed][kind]
        if "retry_stream" in names and stream.is_conversation:
            continue  # it emits one message, and refuses a second one like a fold
        if "guard" in names and stream.name in UNCHECKED:
            continue
        got = play(stream, gap, [EVENTS[name]() for name in names], READERS[readers])
        found += compared(
            f"{stream.name} (seed {seed})", got, without((seed, kind), tools_of(*names), readers)
        )
    assert not found, " | ".join(names) + ":\n" + "\n".join(found)


def numbered(cases: Iterable[Sequence[str]]) -> list[Any]:
    """The cases as parameters, each with its number."""
    return [pytest.param(number, *names, id="-".join(names)) for number, names in enumerate(cases)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "first", "second"),
    numbered(
        pair
        for pair in product(EVENTS, repeat=2)
        if pair[0] != pair[1] or not tools_of(*pair)  # a call runs once
    ),
)
@AMOUNTS
def test_two_operators_on_events_change_no_message(
    number: int, first: str, second: str, chosen: Places
) -> None:
    check(number, (first, second), "whole", chosen)


@pytest.mark.parametrize(("number", "name"), numbered((name,) for name in EVENTS if name not in HOLD_TEXT))
@AMOUNTS
def test_a_projection_is_the_same_behind_any_operator(number: int, name: str, chosen: Places) -> None:
    check(number, (name,), "projections", chosen)


@pytest.mark.parametrize(
    ("number", "first", "second"),
    numbered(
        pair
        for pair in product(SNAPSHOTS, repeat=2)
        if pair[1] != "until_all_tools_terminal"
        or pair[0] not in NEWEST  # it ends later with fewer snapshots
    ),
)
@AMOUNTS
def test_two_operators_on_snapshots_keep_the_last_one(
    number: int, first: str, second: str, chosen: Places
) -> None:
    found: list[str] = []
    run_tools = rd.run_tools(TOOLS, unknown="leave")
    until = [SNAPSHOTS[name]() for name in {first, second} if name.startswith("until")]
    for seed, kind in chosen(number):
        stream, gap = STREAMS[seed][kind]
        got = play(stream, gap, [run_tools], {"scan_deltas": folds(SNAPSHOTS[first](), SNAPSHOTS[second]())})
        wanted = play(stream, gap, [run_tools], {"scan_deltas": folds(*until)})
        found += compared(f"{stream.name} (seed {seed})", got, wanted)
    assert not found, f"{first} | {second}:\n" + "\n".join(found)


SHARED: dict[str, tuple[Callable[[], Operator], Operator]] = {
    "share_events": (
        lambda: lambda source: rx.of(source.pipe(rd.share_events(unread="keep"))),
        WHOLE["messages"],
    ),
    "group_by_message": (rd.group_by_message, folds()),
    "group_by_choice": (rd.group_by_choice, lambda branch: branch.pipe(folds(choices=[branch.choice]))),
    "group_by_block": (rd.group_by_block, outcomes(ops.map(plain), summary=newest)),
}
"""Operators whose streams have late readers, and a reader of such a stream."""


def late_readers(
    stream: EventStream, gap: float, operators: Iterable[Operator], reader: Operator, first: int
) -> list[str]:
    """The differences between the first reader of a stream and a reader after every second event."""
    scheduler = TestScheduler()
    source = scheduler.create_cold_observable(records(stream, gap)).pipe(*operators)
    branches: list[Observable[Any]] = []
    ends: dict[tuple[int, int], list[Any]] = {}

    def read(place: int, position: int) -> None:
        values = ends[place, position] = []
        branches[place].pipe(reader).subscribe(values.append, values.append, scheduler=scheduler)

    def add(branch: Observable[Any]) -> None:
        branches.append(branch)
        read(len(branches) - 1, -1)

    def read_all(position: int) -> None:
        for place in range(len(branches)):
            read(place, position)

    scheduler.schedule_absolute(200, lambda *_: source.subscribe(add, nothing, scheduler=scheduler) and None)
    for position in range(first, len(stream.events) + 1, 2):
        time = 209 + gap * position + gap / 2
        scheduler.schedule_absolute(time, lambda *_, position=position: read_all(position))
    scheduler.schedule_absolute(5000, lambda *_: scheduler.stop())
    scheduler.start()
    return [
        line
        for (place, position), got in ends.items()
        for line in compared(
            f"{stream.name}, {position + 1} events",
            {str(place): got},
            {str(place): ends[place, -1]},
        )
    ]


IN_FRONT = ("compact_deltas", "run_tools(find)", "share_events", "smooth")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name", "shared"), numbered(product(IN_FRONT, SHARED)))
@AMOUNTS
def test_late_readers_have_the_same_outcome(number: int, name: str, shared: str, chosen: Places) -> None:
    share, reader = SHARED[shared]
    found: list[str] = []
    for seed, kind in chosen(number):
        stream, _ = STREAMS[seed][kind]
        if shared == "group_by_choice" and stream.is_conversation:
            continue  # its late readers get the newest message only
        if shared == "share_events" and stream.takes_back:
            continue  # the replay lacks what the reset took back, and the first reader's message has it
        found += late_readers(stream, 2, [EVENTS[name](), share()], reader, first=(number + kind) % 2)
    assert not found, f"{name} | {shared}:\n" + "\n".join(found)
