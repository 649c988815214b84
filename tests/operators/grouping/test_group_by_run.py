"""`group_by_run` and `with_run` in virtual time, and the messages of several runs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import Subject
from support.bounded import bounded
from support.cost import lines_run

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

BOOM = ValueError("boom")

MARKS: dict[str, Any] = {
    "A": ev.MessageStart("m1", run_id="a"),
    "s": ev.BlockStart(0, {"type": "text"}, run_id="a"),
    "a": ev.TextDelta(0, "a", run_id="a"),
    "E": ev.MessageFinish("stop", run_id="a"),
    "B": ev.MessageStart("m1", run_id="b", parent_run_id="a"),
    "t": ev.BlockStart(0, {"type": "text"}, run_id="b"),
    "b": ev.TextDelta(0, "b", run_id="b"),
    "F": ev.MessageFinish("stop", run_id="b"),
    "C": ev.BlockStart(1, {"type": "tool_call", "id": "c1", "name": "f", "args": {}}, run_id="a"),
    "N": ev.MessageStart("m0"),
    "n": ev.MessageFinish("stop"),
    "e": ev.ToolUpdate("c1", "executing"),
    "d": ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", 1)),
    "p": ev.ProviderEvent("x", "ping", {}),
    "I": ev.MessageInterrupted("enough"),
    "i": ev.MessageInterrupted("enough", run_id="a"),
    "R": ev.AttemptReset(1),
    "r": ev.AttemptReset(1, run_id="b"),
    "!": ev.StreamError("overloaded"),
    "?": {"choices": []},
}
ERROR = type(BOOM).__name__
NAMES = {id(event): mark for mark, event in MARKS.items()}


def watch(operator: Any, source: str) -> str:
    """What each stream's subscriber sees, as "run@tick: marks end", then the end of the outer stream."""
    scheduler = VirtualTimeScheduler()
    cold = marbles.cold(source, scheduler, values=MARKS, frame=1, error=BOOM)
    seen: list[list[str]] = []

    def start(stream: Any) -> None:
        mine = [f"{stream.run_id}@{scheduler.clock:.0f}: "]
        seen.append(mine)
        stream.subscribe(
            lambda event: mine.append(NAMES[id(event)]),
            lambda error: mine.append(f" {type(error).__name__}"),
            lambda: mine.append(f"|{scheduler.clock:.0f}"),
        )

    *_, (_, kind, end) = marbles.records(cold.pipe(operator, ops.do_action(start)), scheduler)
    last = {"completed": "|", "error": type(end).__name__}.get(kind, "…")
    return "; ".join(["".join(one) for one in seen] + [last])


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("AsBatbEF|", "a@0: AsaE|8; b@2: BtbF|8; |"),
        ("AEAE|", "a@0: AEAE|4; |"),  # a run has several messages
        ("NABnEF|", "None@0: Nn|6; a@1: AE|6; b@2: BF|6; |"),
        ("ApBeRI|", "a@0: ApeRI|6; b@2: BeRI|6; |"),  # what names no run goes to the runs that have begun
        ("pRAB|", "a@2: pRA|4; b@3: B|4; |"),  # and waits for the first
        ("ABir|", "a@0: Ai|4; b@1: Br|4; |"),
        ("pI|", "None@2: pI|2; |"),  # the stream has no run at all
        ("AB#", f"a@0: A {ERROR}; b@1: B {ERROR}; {ERROR}"),
        ("|", "|"),
    ],
)
def test_group_by_run(source: str, seen: str) -> None:
    assert watch(rd.group_by_run(), source) == seen


@pytest.mark.parametrize(("mark", "error"), [("!", "ProviderError"), ("?", "InvalidValueError")])
def test_a_run_gets_the_error_first(mark: str, error: str) -> None:
    assert watch(rd.group_by_run(), f"AB{mark}") == f"a@0: A {error}; b@1: B {error}; {error}"


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("AsBatbEF|", "a@0: AsaE|8; b@2: BtbF|8; |"),
        ("AEAE|", "a@0: AE|2; a@2: AE|4; |"),
        ("AEBF|", "a@0: AE|2; b@2: BF|4; |"),  # as of model, tool, model, each in a run of its own
        ("AsCEBeFd|", "a@0: AsCEed|8; b@4: BF|8; |"),  # a call has no outcome yet
        ("AsCEedBF|", "a@0: AsCEed|6; b@6: BF|8; |"),
        ("ABEpFI|", "a@0: AEpI|6; b@1: BpFI|6; |"),
        ("pRABEF|", "None@0: pRAE|6; b@3: BF|6; |"),  # its run isn't known yet
        ("ABERbF|", "a@0: AE|6; b@1: BRbF|6; |"),  # a run that is over isn't taken back with the others
        ("ABEFRB|", "a@0: AE|4; b@1: BF|4; None@4: RB|6; |"),  # after all, a reset is the next message's
        (
            "AEBaF|",
            "a@0: AE|2; b@2: BF|5; |",
        ),  # what comes for a message after its stream's end changes nothing
    ],
)
def test_messages_of_several_runs(source: str, seen: str) -> None:
    assert watch(rd.group_by_message(), source) == seen


def test_the_beginning_of_a_message_costs_the_same_however_many_are_open() -> None:
    """Also where the others have finished, but not their calls."""
    call = ev.BlockFinish(0, {"type": "tool_call", "id": "c1", "name": "f", "args": {}})

    def lines_for(runs: int) -> int:
        said = [
            attrs.evolve(event, run_id=f"{run}")
            for run in range(runs)
            for event in (ev.MessageStart(), call, ev.MessageFinish("tool_use"))[: 3 if run % 2 else 2]
        ]
        streams: list[rd.types.MessageStream] = []
        source = rx.concat(rx.from_iterable(said), rx.never())
        lines = lines_run(source.pipe(rd.group_by_message(), ops.do_action(streams.append)).subscribe)
        assert len(streams) == runs
        return lines

    assert lines_for(80) < 2.2 * lines_for(40)


def test_a_run_tells_its_parent_as_soon_as_its_start_has_come() -> None:
    source: rx.Subject[rd.Event] = rx.Subject()
    runs: list[rd.types.RunStream] = []
    source.pipe(rd.group_by_run()).subscribe(runs.append)
    source.on_next(ev.BlockStart(0, {"type": "text"}, run_id="b"))
    assert runs[0].parent_run_id is None
    source.on_next(ev.MessageStart("m", run_id="b", parent_run_id="a"))
    source.on_next(ev.MessageStart("m", run_id="b", parent_run_id="c"))
    assert runs[0].parent_run_id == "a"


def test_a_run_tells_its_parent() -> None:
    told: list[Any] = []
    events = [MARKS[mark] for mark in "AB"]
    rx.from_iterable(events).pipe(rd.group_by_run()).subscribe(
        lambda run: told.append((run.run_id, run.parent_run_id, repr(run)))
    )
    rx.from_iterable(events).pipe(rd.group_by_message()).subscribe(
        lambda one: told.append((one.run_id, one.parent_run_id, one.id))
    )
    assert told == [
        ("a", None, "<RunStream a>"),
        ("b", "a", "<RunStream b>"),
        ("a", None, "m1"),
        ("b", "a", "m1"),
    ]


def test_a_late_subscriber_gets_the_newest_message_so_far() -> None:
    source: Subject[rd.Event] = Subject()
    runs: list[rd.types.RunStream] = []
    source.pipe(rd.group_by_run()).subscribe(runs.append)
    for mark in "AsaEBtbAsaa":
        source.on_next(MARKS[mark])
    late: list[rd.Event] = []
    runs[0].subscribe(late.append)
    assert [event.event for event in late] == ["message-start", "content-block-start"]
    source.on_next(MARKS["a"])
    fold = rd.Fold()
    for event in late:
        fold.step(event)
    assert (fold.snapshot.text, fold.snapshot.run_id) == ("aaa", "a")


def test_there_are_no_more_runs_than_the_limit() -> None:
    for operator in (rd.group_by_run, rd.group_by_message, rd.group_by_block, rd.share_events):
        failures: list[Exception] = []
        events = [ev.MessageStart(run_id=name) for name in "abc"]
        source = rx.from_iterable(events).pipe(bounded(operator, limits=rd.Limits(runs=2)))
        source.subscribe(lambda _: None, failures.append)
        assert [type(failure) for failure in failures] == [rd.errors.LimitExceededError]


def test_a_block_tells_its_run() -> None:
    blocks: list[rd.types.BlockStream] = []
    rx.from_iterable([MARKS[mark] for mark in "AsBt"]).pipe(rd.group_by_block()).subscribe(blocks.append)
    assert [block.run_id for block in blocks] == ["a", "b"]
    assert "of run 'b'" in repr(blocks[1])


# with_run


def named(*events: rd.Event, run_id: str = "x", parent: str | None = None) -> list[rd.Event]:
    got: list[rd.Event] = []
    rx.from_iterable(events).pipe(rd.with_run(run_id, parent)).subscribe(got.append)
    return got


def test_events_get_the_run_and_messages_their_parent() -> None:
    events = [ev.MessageStart(), ev.TextDelta(0, "a", choice=1), ev.MessageFinish("stop")]
    got = named(*events, parent="p")
    assert got == [
        ev.MessageStart(run_id="x", parent_run_id="p"),
        ev.TextDelta(0, "a", choice=1, run_id="x"),
        ev.MessageFinish("stop", run_id="x"),
    ]
    assert events[0] == ev.MessageStart()  # the source's own aren't changed


def test_a_run_within_is_kept_apart() -> None:
    start = ev.MessageStart(run_id="n", parent_run_id="g")
    assert named(start, ev.MessageStart(run_id="m"), parent="p") == [
        ev.MessageStart(run_id="x/n", parent_run_id="x/g"),
        ev.MessageStart(run_id="x/m", parent_run_id="p"),
    ]


def test_an_event_of_any_run_goes_to_the_runs_of_this_stream_only() -> None:
    started = [ev.MessageStart(run_id="n"), ev.MessageStart()]
    for event in (ev.MessageInterrupted("no"), ev.AttemptReset(1), ev.ToolUpdate("c", "executing")):
        told = named(*started, event)[2:]
        assert told == [attrs.evolve(event, run_id="x/n"), attrs.evolve(event, run_id="x")]
        assert named(event, *started)[0] == attrs.evolve(event, run_id="x/n")  # it waits for the first
        assert named(event) == [attrs.evolve(event, run_id="x")]
    ping, error = ev.ProviderEvent("p", "ping"), ev.StreamError("no")
    assert named(*started, ping)[2:] == [attrs.evolve(ping, run_id="x")]
    assert named(error) == [attrs.evolve(error, run_id="x")]


def test_what_waits_for_a_run_comes_before_the_error() -> None:
    got: list[Any] = []
    source = rx.concat(rx.of(ev.AttemptReset(1)), rx.throw(BOOM))
    source.pipe(rd.with_run("x")).subscribe(got.append, got.append)
    assert got == [ev.AttemptReset(1, run_id="x"), BOOM]


def test_every_event_gets_a_name_that_can_be_written() -> None:
    reply = [
        ev.MessageStart(),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "Hi"),
        ev.MessageFinish("stop"),
    ]
    names = {event.run_id for event in named(*reply, run_id="a\ud83d")}
    assert names == {"a\ufffd"}


@pytest.mark.parametrize("name", ["", None, 3, b"x"])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="run_id: must be a string that is not empty"):
        rd.with_run(name)
    if name is not None:
        with pytest.raises(rd.InvalidValueError, match="parent"):
            rd.with_run("x", name)


def test_two_replies_that_are_merged_are_read_one_by_one() -> None:
    reply = [
        ev.MessageStart(),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "Hi"),
        ev.MessageFinish("stop"),
    ]
    both = rx.merge(*(rx.from_iterable(reply).pipe(rd.with_run(name)) for name in "ab"))
    failures: list[Exception] = []
    both.pipe(rd.scan_deltas()).subscribe(on_error=failures.append)
    assert "group_by_run()" in str(failures[0])
    texts: list[Any] = []
    replies = both.pipe(
        rd.group_by_run(), ops.flat_map(lambda run: run.pipe(rd.scan_deltas(), rd.to_message()))
    )
    replies.subscribe(lambda message: texts.append((message.run_id, message.text)))
    assert sorted(texts) == [("a", "Hi"), ("b", "Hi")]
