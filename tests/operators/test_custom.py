"""The application's own events: an operator's output is what it is without them, and each of them in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import Any, TypeAlias

import attrs
import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest, TestScheduler
from support.shared import recordings
from support.streams import TOOLS, EventStream, streams

import rxdelta as rd

ev = rd.events
Events: TypeAlias = Sequence[rd.Event]
Operator: TypeAlias = Callable[[Observable[Any]], Observable[Any]]

NOTE = ev.Custom("documents", [{"title": "Ä"}], "d1")
PASSING = ev.Custom("status", "Searching", transient=True)
FORMATS = ("anthropic-messages", "openai-chat", "openai-responses", "gemini", "cohere", "bedrock-converse")

slow = pytest.mark.slow


@cache
def made(seed: int) -> list[EventStream]:
    return list(streams(seed))


@cache
def recorded(wire_format: str) -> list[EventStream]:
    found: list[EventStream] = []
    for one in recordings(wire_format)[::11]:
        chunks = one.values[0]
        if chunks is None or len(chunks) > 150:
            continue
        events: list[rd.Event] = []
        rx.from_iterable(chunks).pipe(rd.decode(wire_format)).subscribe(events.append, lambda _: None)
        found.append(EventStream(one.id, events))
    return found


def places(events: Events, *, most: int) -> Iterator[int]:
    """Both ends and as many others, which a seed chooses."""
    inner = range(1, len(events))
    yield from sorted({0, len(events), *Random(len(events)).sample(inner, min(most, len(inner)))})


def run(operator: Operator, stream: EventStream, place: int | None, own: ev.Custom) -> tuple[Any, int, Any]:
    """What an operator emits, how much of that before the place, and how it ends."""
    source: Subject[rd.Event] = Subject()
    values: list[Any] = []
    ends: list[Any] = []
    source.pipe(operator).subscribe(
        values.append, lambda error: ends.append(str(error)), lambda: ends.append(0)
    )
    before = 0
    for number in range(len(stream.events) + 1):
        if number == place:
            before = len(values) if not ends else -1
            source.on_next(own)
        if number < len(stream.events):
            source.on_next(stream.events[number])
    if stream.fails:
        source.on_error(ConnectionError("lost"))
    source.on_completed()
    return values, before, ends


# Operators that pass it on.

PASS_IT_ON: dict[str, Callable[[], Operator]] = {
    "cut_text": rd.cut_text,
    "group_by_message": lambda: ops.compose(rd.group_by_message(), ops.merge_all()),
    "group_by_run": lambda: ops.compose(rd.group_by_run(), ops.merge_all()),
    "guard": lambda: rd.guard(lambda _: True),
    "map_text": lambda: rd.map_text(str.upper),
    "on_settled": lambda: rd.on_settled(lambda *_: None),
    "redact": lambda: rd.redact("well"),
    "retry_stream": lambda: lambda source: rd.retry_stream(lambda: source, attempts=1),
    "run_tools": lambda: rd.run_tools(TOOLS, scheduler=TestScheduler()),
    "run_tools(message)": lambda: rd.run_tools(TOOLS, start="message", scheduler=TestScheduler()),
    "share_events": rd.share_events,
    "stall_timeout": lambda: rd.stall_timeout(idle=1e5),
    "tap_metrics": lambda: rd.tap_metrics(lambda _: None),
    "until_sequence": lambda: rd.until_sequence("well"),
    "until_stopped": lambda: rd.until_stopped(rx.never()),
    "validate": lambda: rd.validate(on_violation=lambda *_: None),
    "with_custom": lambda: rd.with_custom(rx.never()),
    "with_run": lambda: rd.with_run("agent"),
}


def check_passing(name: str, stream: EventStream, most: int, own: ev.Custom) -> None:
    plain, _, end = run(PASS_IT_ON[name](), stream, None, own)
    for place in places(stream.events, most=most):
        values, before, ended = run(PASS_IT_ON[name](), stream, place, own)
        assert ended == end
        if name == "group_by_run" and not before:  # it waits for the first run
            assert values in ([own, *plain], [])
            continue
        out = attrs.evolve(own, run_id="agent") if name == "with_run" else own
        assert values == (plain if before < 0 else [*plain[:before], out, *plain[before:]]), place


@pytest.mark.parametrize("name", PASS_IT_ON)
def test_it_is_passed_on_at_once_and_changes_nothing_else(name: str) -> None:
    for kind, stream in enumerate(made(1)):
        check_passing(name, stream, 1, NOTE if kind % 2 else PASSING)


@slow
@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize("name", PASS_IT_ON)
def test_it_is_passed_on_in_any_place_of_recorded_streams(name: str, wire_format: str) -> None:
    for stream in recorded(wire_format):
        check_passing(name, stream, 6, NOTE)


# Operators that hold text.

HOLD_TEXT: dict[str, Callable[[Any], Operator]] = {
    "compact_deltas": lambda clock: rd.compact_deltas(5, scheduler=clock),
    "smooth": lambda clock: rd.smooth("word", rate=0.5, max_lag=9, scheduler=clock),
    "tap_metrics(through)": lambda clock: rd.tap_metrics(
        lambda _: None, through=rd.compact_deltas(3, scheduler=clock), scheduler=clock
    ),
}


def paced(name: str, events: Events, gap: float) -> Events:
    clock = TestScheduler()
    messages = [ReactiveTest.on_next(210 + gap * place, event) for place, event in enumerate(events)]
    source = clock.create_hot_observable(*messages, ReactiveTest.on_completed(210 + gap * len(events)))
    values: list[rd.Event] = []
    source.pipe(HOLD_TEXT[name](clock)).subscribe(values.append, scheduler=clock)
    clock.start()
    return values


def states(events: Events) -> list[Any]:
    """The message of each lane."""
    lanes: dict[Any, rd.Fold] = {}
    for event in events:
        lane = getattr(event, "choice", None)
        if lane is not None and lane not in lanes:
            lanes[lane] = rd.Fold(choice=lane)
        for choice, fold in lanes.items():
            if fold.begins_another(event):
                fold = lanes[choice] = rd.Fold(choice=choice)
            if not isinstance(event, ev.Custom):
                fold.step(event)
    return [(choice, fold.snapshot) for choice, fold in lanes.items()]


@pytest.mark.parametrize("kind", range(0, len(made(2)), 3))
@pytest.mark.parametrize("name", HOLD_TEXT)
@pytest.mark.parametrize("gap", [0, 1])
def test_text_that_came_before_it_is_emitted_before_it(name: str, kind: int, gap: float) -> None:
    stream = made(2)[kind]
    if any(isinstance(event, ev.StreamError) for event in stream.events):
        return
    for place in places(stream.events, most=3):
        values = paced(name, [*stream.events[:place], NOTE, PASSING, *stream.events[place:]], gap)
        at = values.index(NOTE)
        assert values[at + 1] == PASSING
        assert states(values[:at]) == states(stream.events[:place])
        assert states(values) == states(stream.events)
        assert sum(isinstance(event, ev.Custom) for event in values) == 2


# Operators that read something else.

READ_ON: dict[str, Callable[[], Operator]] = {
    "completed_tool_calls": rd.completed_tool_calls,
    "group_by_block": lambda: ops.compose(rd.group_by_block(), ops.merge_all()),
    "json_items": rd.json_items,
    "partial_arguments": rd.partial_arguments,
    "partial_json": rd.partial_json,
    "per_block": lambda: rd.per_block(lambda block: block),
    "reasoning_deltas": partial(rd.text_deltas, of="reasoning"),
    "sentences": rd.sentences,
    "stable_blocks": rd.stable_blocks,
    "text_deltas": rd.text_deltas,
}


@pytest.mark.parametrize("kind", range(0, len(made(1)), 2))
@pytest.mark.parametrize("name", READ_ON)
def test_no_projection_of_the_reply_sees_it(name: str, kind: int) -> None:
    stream = made(1)[kind]
    plain, _, end = run(READ_ON[name](), stream, None, NOTE)
    for place in places(stream.events, most=2):
        values, _, ended = run(READ_ON[name](), stream, place, NOTE)
        assert (values, ended) == (plain, end)


def plain_dict(snapshot: rd.Snapshot | rd.Message | None) -> Any:
    return snapshot and {name: value for name, value in snapshot.to_dict().items() if name != "custom"}


def check_snapshots(stream: EventStream, most: int) -> None:
    plain, _, end = run(rd.scan_deltas(), stream, None, NOTE)
    for place in places(stream.events, most=most):
        values, before, ended = run(rd.scan_deltas(), stream, place, NOTE)
        assert ended == end
        if before < 0:
            continue
        assert [plain_dict(one) for one in [*values[:before], *values[before + 1 :]]] == [
            *map(plain_dict, plain)
        ]
        assert all(one.custom_events == (NOTE,) for one in values[before:])
        assert run(rd.scan_deltas(), stream, place, PASSING)[0] == plain
        for reader in (rd.until_all_tools_terminal(), rd.to_message()) if plain else ():
            read, without = (told(rx.from_iterable(one).pipe(reader)) for one in (values, plain))
            assert plain_dict(read[-1] if read else None) == plain_dict(without[-1] if without else None)


def told(source: Observable[Any]) -> list[Any]:
    values: list[Any] = []
    source.subscribe(values.append, lambda _: None)
    return values


@pytest.mark.parametrize("kind", range(0, len(made(1)), 2))
def test_a_snapshot_has_it_beside_the_reply(kind: int) -> None:
    check_snapshots(made(1)[kind], 3)


@slow
@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_snapshot_of_a_recorded_stream_has_it_beside_the_reply(wire_format: str) -> None:
    for stream in recorded(wire_format):
        check_snapshots(stream, 8)


@pytest.mark.parametrize("kind", range(len(made(1))))
def test_each_choice_of_its_message_has_it(kind: int) -> None:
    stream = made(1)[kind]
    if stream.is_conversation or any(isinstance(event, ev.StreamError) for event in stream.events):
        return
    for place in places(stream.events, most=4):
        events = [*stream.events[:place], NOTE, *stream.events[place:]]
        choices = rx.from_iterable(events).pipe(
            rd.group_by_choice(), ops.flat_map(lambda one: one.pipe(rd.scan_deltas(choice=one.choice)))
        )
        newest = {snapshot.choice: snapshot for snapshot in told(choices)}
        for choice, snapshot in newest.items():
            assert snapshot == told(rx.from_iterable(events).pipe(rd.scan_deltas(choice=choice)))[-1]
            assert snapshot.custom_events == (NOTE,)


@pytest.mark.parametrize("kind", range(len(made(3))))
def test_the_stored_reply_has_it(kind: int) -> None:
    stream = made(3)[kind]
    for place in places(stream.events, most=3):
        kept: list[Any] = []
        keep = rd.on_settled(lambda *told, kept=kept: kept.extend(told))
        _, before, _ = run(keep, stream, place, NOTE)
        run(keep, stream, None, NOTE)
        snapshot, outcome, without, expected = kept
        assert outcome.kind == expected.kind
        assert plain_dict(snapshot) == plain_dict(without) or not stream.events
        if before >= 0 and not stream.is_conversation:
            assert snapshot.custom_events == (NOTE,)


# Readers that come late.


def check_late_readers(stream: EventStream, most: int) -> None:
    events = stream.events
    for place in places(events, most=most):
        for late in places(events, most=most):
            readings = []
            for own in ([], [NOTE, PASSING]):
                source: Subject[rd.Event] = Subject()
                shared = source.pipe(rd.share_events(unread="keep"))
                shared.subscribe(on_error=lambda _: None)
                reading: list[rd.Event] = []
                for number in range(len(events) + 1):
                    if number == late:
                        shared.subscribe(reading.append, lambda _: None)
                    if number == place:
                        for event in own:
                            source.on_next(event)
                    if number < len(events):
                        source.on_next(events[number])
                readings.append(reading)
            without, reading = readings
            assert [event for event in reading if not isinstance(event, ev.Custom)] == without
            ended = any(isinstance(event, ev.StreamError) for event in events[:place])
            assert reading.count(NOTE) == (not ended)
            assert reading.count(PASSING) == (late <= place and not ended)


@pytest.mark.parametrize("kind", range(len(made(1))))
def test_a_late_reader_gets_it_once_if_it_stays(kind: int) -> None:
    check_late_readers(made(1)[kind], 1)


@slow
@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_late_reader_of_a_recorded_stream_gets_it_once_if_it_stays(wire_format: str) -> None:
    for stream in recorded(wire_format):
        check_late_readers(stream, 4)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_late_reader_has_the_snapshot_of_an_early_one(wire_format: str) -> None:
    for stream in recorded(wire_format)[:2]:
        for place in places(stream.events, most=2):
            events = [*stream.events[:place], NOTE, *stream.events[place:]]
            for late in places(events, most=2):
                source: Subject[rd.Event] = Subject()
                shared = source.pipe(rd.share_events(unread="keep"))
                early: list[rd.Snapshot] = []
                newest: list[rd.Snapshot] = []
                shared.pipe(rd.scan_deltas()).subscribe(early.append, lambda _: None)
                for event in events[:late]:
                    source.on_next(event)
                shared.pipe(rd.scan_deltas()).subscribe(newest.append, lambda _: None)
                for event in events[late:]:
                    source.on_next(event)
                assert early[-1:] == newest[-1:]
                again = rd.Snapshot.from_dict(early[-1].to_dict()) if early else None
                assert again == (early[-1] if early else None)


def test_share_latest_gives_a_late_reader_the_snapshot_with_it() -> None:
    source: Subject[rd.Event] = Subject()
    shared = source.pipe(rd.scan_deltas(), rd.share_latest())
    shared.subscribe()
    source.on_next(NOTE)
    (first,) = told(shared)
    assert (first.custom_events, first.blocks) == ((NOTE,), ())
    source.on_next(ev.MessageFinish("stop"))
    source.on_next(ev.Custom("title", "Tides"))
    (last,) = told(shared)
    assert [event.name for event in last.custom_events] == ["documents", "title"]


# Several runs.


def in_runs(said_in: str | None, place: int) -> Events:
    lanes = [
        [attrs.evolve(event, run_id=run_id) for event in made(1)[kind].events]
        for run_id, kind in (("north", 0), ("south", 22))
    ]
    events = [event for pair in zip(*lanes, strict=False) for event in pair]
    return [*events[:place], attrs.evolve(NOTE, run_id=said_in), *events[place:]]


@pytest.mark.parametrize("said_in", ["north", "south"])
@pytest.mark.parametrize("split", ["group_by_run", "group_by_message"])
def test_the_run_that_it_names_has_it(split: str, said_in: str) -> None:
    for place in range(0, len(in_runs(None, 0)), 4):
        found: dict[str | None, list[rd.Event]] = {}
        streams = rx.from_iterable(in_runs(said_in, place)).pipe(getattr(rd, split)())
        streams.subscribe(lambda one: one.subscribe(found.setdefault(one.run_id, []).append))  # noqa: B023
        own = {
            run: [event for event in events if isinstance(event, ev.Custom)] for run, events in found.items()
        }
        assert own == {"north": [], "south": [], said_in: [attrs.evolve(NOTE, run_id=said_in)]}


def test_with_run_names_it_at_once() -> None:
    events = [NOTE, attrs.evolve(NOTE, run_id="n"), *in_runs(None, 0)[1:9], NOTE, ev.MessageFinish(), NOTE]
    named = told(rx.from_iterable(events).pipe(rd.with_run("graph")))
    assert [event.run_id for event in named if isinstance(event, ev.Custom)] == [
        "graph", "graph/n", "graph/south", "graph",
    ]  # fmt: skip
    assert len(named) == len(events)


@pytest.mark.parametrize("split", ["group_by_run", "group_by_choice"])
def test_of_those_that_wait_the_newest_of_each_name_and_id_stays(split: str) -> None:
    own = [ev.Custom("bar", number, name) for number in range(3) for name in "ab"]
    plain = [ev.Custom("line", number) for number in range(2)]
    for end in (rx.empty(), rx.throw(ConnectionError())):
        begun = [ev.MessageStart()] if split == "group_by_choice" else []
        source = rx.concat(rx.from_iterable([*own, *plain, *begun]), end)
        found: list[rd.Event] = []
        source.pipe(getattr(rd, split)()).subscribe(
            lambda one, found=found: one.subscribe(found.append, lambda _: None), lambda _: None
        )
        assert found == [*own[-2:], *plain, *begun]


def test_the_next_message_of_a_choice_has_none_of_the_last_one() -> None:
    turn = [ev.MessageStart("m1"), NOTE, ev.MessageFinish("stop")]
    source = rx.from_iterable([*turn, ev.MessageStart("m2"), ev.MessageStart("m2", choice=1)])
    found: dict[int, list[rd.Event]] = {}
    source.pipe(rd.group_by_choice()).subscribe(
        lambda one: one.subscribe(found.setdefault(one.choice, []).append)
    )
    assert NOTE in found[0]
    assert found[1] == [ev.MessageStart("m2", choice=1)]


def test_one_of_a_run_whose_message_has_completed_goes_to_the_newest_message() -> None:
    def turn(run_id: str) -> Events:
        return [ev.MessageStart(run_id, run_id=run_id), ev.MessageFinish("stop", run_id=run_id)]

    late = ev.Custom("title", "Tides", run_id="a")
    messages = rx.from_iterable([*turn("a"), *turn("b"), late]).pipe(
        rd.group_by_message(), ops.flat_map(lambda one: one.pipe(rd.scan_deltas(), rd.to_message()))
    )
    assert [(one.id, one.custom_events) for one in told(messages)] == [("a", ()), ("b", (late,))]


def test_one_behind_another_run_stays_with_the_stored_reply() -> None:
    kept: list[Any] = []
    turn = [
        ev.MessageStart("m1", run_id="a"),
        ev.BlockStart(0, {"type": "text", "text": "Hi"}, run_id="a"),
        ev.MessageFinish("stop", run_id="a"),
    ]
    title, more = ev.Custom("title", "Tides", run_id="a"), ev.Custom("title", "Moon")
    events = [*turn, NOTE, ev.ProviderEvent("x", "y", run_id="b"), title, more]
    rx.from_iterable(events).pipe(rd.on_settled(lambda *told: kept.append(told[0]))).subscribe()
    assert (kept[0].text, kept[0].custom_events) == ("Hi", (NOTE, title, more))


def test_it_begins_no_reply() -> None:
    """A message that has only these is no message, for each that counts or repeats them."""
    own = [PASSING, NOTE, attrs.evolve(NOTE, run_id="nobody")]
    assert told(rx.from_iterable(own).pipe(rd.scan_deltas(), rd.until_all_tools_terminal()))[-1].blocks == ()
    errors: list[Exception] = []
    rx.from_iterable(own).pipe(rd.validate()).subscribe(on_error=errors.append)
    assert [getattr(error, "violation", None) for error in errors] == ["missing_message_start"]
    requests = iter(
        [rx.concat(rx.from_iterable(own), rx.throw(ConnectionError())), rx.of(*made(1)[0].events)]
    )
    events = told(rd.retry_stream(lambda: next(requests), backoff=lambda *_: 0))
    assert events == [*own, ev.AttemptReset(1, "ConnectionError"), *made(1)[0].events]


# Another attempt.

BEGUN = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "The tide comes in twice a day"),
]
WHOLE = [
    ev.MessageStart("m2"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "comes in "),
    ev.TextDelta(0, "twice a "),
    ev.TextDelta(0, "day, with the moon."),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]


def attempts(first: Events, second: Events, resume: bool) -> list[rd.Event]:
    requests = iter(
        [rx.concat(rx.from_iterable(first), rx.throw(ConnectionError())), rx.from_iterable(second)]
    )
    return told(rd.retry_stream(lambda: next(requests), backoff=lambda *_: 0, resume=resume))


@pytest.mark.parametrize("resume", [False, True])
def test_that_of_a_failed_attempt_stays(resume: bool) -> None:
    plain = attempts(BEGUN, WHOLE, resume)
    for place in range(len(BEGUN) + 1):
        events = attempts([*BEGUN[:place], NOTE, *BEGUN[place:]], WHOLE, resume)
        assert events == [*plain[:place], NOTE, *plain[place:]]
        snapshot = told(rx.from_iterable(events).pipe(rd.scan_deltas()))[-1]
        assert snapshot.to_message().custom_events == (NOTE,)
        assert rd.Snapshot.from_dict(snapshot.to_dict()) == snapshot


def test_in_a_continuation_it_comes_behind_the_text_that_was_held() -> None:
    plain = attempts(BEGUN, WHOLE, True)
    for place in range(len(WHOLE) + 1):
        events = attempts(BEGUN, [*WHOLE[:place], NOTE, PASSING, *WHOLE[place:]], True)
        assert [event for event in events if not isinstance(event, ev.Custom)] == plain
        at = events.index(NOTE)
        assert events[at + 1] == PASSING
        said = rd.Fold()
        for event in events[:at]:
            said.step(event)
        came = "".join(event.text for event in WHOLE[:place] if isinstance(event, ev.TextDelta))
        held = len("comes in twice a day")
        assert said.snapshot.text == "The tide comes in twice a day" + came[held:] or len(came) < held


def test_held_text_that_is_no_repetition_comes_before_it() -> None:
    second = [*WHOLE[:3], NOTE, ev.TextDelta(0, "often."), *WHOLE[-2:]]
    events = attempts(BEGUN, second, True)
    at = events.index(NOTE)
    assert "".join(event.text for event in events[:at] if isinstance(event, ev.TextDelta)).endswith(
        "comes in often."
    )
    assert isinstance(events[at + 1], ev.BlockFinish)


def test_one_behind_held_text_is_not_dropped_with_it() -> None:
    second = rx.concat(rx.from_iterable([*WHOLE[:3], NOTE]), rx.throw(ConnectionError()))
    requests = iter(
        [rx.concat(rx.from_iterable(BEGUN), rx.throw(ConnectionError())), second, rx.from_iterable(WHOLE)]
    )
    events = told(rd.retry_stream(lambda: next(requests), backoff=lambda *_: 0, resume=True))
    assert events[len(BEGUN)] == NOTE
    assert events.count(NOTE) == 1
    whole = rd.Fold()
    for event in events:
        whole.step(event)
    assert whole.snapshot.text == "The tide comes in twice a day, with the moon."


# The provider's life.


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("limits", [{"first": 25}, {"idle": 25}])
def test_it_is_no_sign_of_the_providers_life(limits: dict[str, float], folded: bool) -> None:
    clock = TestScheduler()
    own = [ReactiveTest.on_next(210 + 10 * n, ev.Custom("status", n)) for n in range(20)]
    begun = [ReactiveTest.on_next(205, event) for event in BEGUN] if "idle" in limits else []
    source: Observable[Any] = clock.create_hot_observable(*begun, *own)
    if folded:
        source = source.pipe(rd.scan_deltas())
    values: list[Any] = []
    errors: list[tuple[float, Exception]] = []
    clock.schedule_absolute(
        200,
        lambda *_: source.pipe(rd.stall_timeout(**limits, scheduler=clock)).subscribe(
            values.append, lambda error: errors.append((clock.clock, error)), scheduler=clock
        ),
    )
    clock.start()
    ((when, error),) = errors
    assert isinstance(error, rd.errors.StallTimeoutError)
    assert when == (230 if begun else 225)
    assert len(values) > len(begun)


@pytest.mark.parametrize("folded", [False, True])
def test_it_is_no_chunk_of_the_metrics(folded: bool) -> None:
    clock = TestScheduler()
    own = [ReactiveTest.on_next(210 + 10 * n, ev.Custom("status", n)) for n in range(20)]
    reply = [ReactiveTest.on_next(255 + 20 * n, event) for n, event in enumerate(BEGUN)]
    found: list[list[rd.types.StreamMetrics]] = []
    for messages in (reply, sorted([*own, *reply], key=lambda one: one.time)):
        source: Observable[Any] = clock.create_cold_observable(*messages, ReactiveTest.on_completed(500))
        measured: list[rd.types.StreamMetrics] = []
        found.append(measured)
        tapped = source.pipe(rd.scan_deltas() if folded else ops.map(lambda event: event))
        slow = ops.delay(7, scheduler=clock)
        tapped.pipe(rd.tap_metrics(measured.append, through=slow, scheduler=clock)).subscribe(scheduler=clock)
        clock.start()
        clock = TestScheduler()
    assert (found[0][-1].chunks > 0, found[0][-1].mean_lag) == (True, 7)
    assert found[0] == found[1]
