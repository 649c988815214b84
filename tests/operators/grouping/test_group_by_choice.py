"""`group_by_choice` in virtual time."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import Subject

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

BOOM = ValueError("boom")

CALL = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": "{}"}
MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "N": ev.MessageStart(id="m1", choice=1),
    "S": ev.BlockStart(0, {"type": "text"}),
    "a": ev.TextDelta(0, "a"),
    "b": ev.TextDelta(0, "b"),
    "F": ev.BlockFinish(0),
    "E": ev.MessageFinish("stop"),
    "C": ev.BlockStart(0, CALL, choice=1),
    "G": ev.BlockFinish(0, choice=1),
    "H": ev.MessageFinish("tool_use", choice=1),
    "e": ev.ToolUpdate("c1", "executing"),
    "p": ev.ProviderEvent("x", "ping", {}),
    "I": ev.MessageInterrupted("enough"),
    "R": ev.AttemptReset(1),
    "O": ev.MessageStart(id="m2"),
    "i": ev.MessageInterrupted("enough", choice=0),
    "r": ev.AttemptReset(1, choice=1),
    "t": ev.ToolUpdate("c1", "executing", choice=1),
    "!": ev.StreamError("overloaded"),
    "?": {"choices": []},
}
NAMES = {id(event): mark for mark, event in MARKS.items()}


def watch(source: str) -> tuple[dict[Any, str], list[Any]]:
    """What each choice's subscriber sees, as "tick:mark …", what the outer one sees, and when the source was read."""
    scheduler = VirtualTimeScheduler()
    cold = marbles.cold(source, scheduler, values=MARKS, frame=1, error=BOOM)
    got: dict[Any, list[str]] = {"": []}

    def note(who: Any, what: str) -> None:
        got[who].append(f"{scheduler.clock:.0f}:{what}")

    def start(stream: rd.types.ChoiceStream) -> None:
        note("", str(stream.choice))
        got[stream.choice] = []
        stream.subscribe(
            lambda event: note(stream.choice, NAMES[id(event)]),
            lambda error: note(stream.choice, type(error).__name__),
            lambda: note(stream.choice, "|"),
        )

    cold.pipe(rd.group_by_choice()).subscribe(
        start, lambda error: note("", type(error).__name__), lambda: note("", "|")
    )
    scheduler.advance_to(100)
    return {who: " ".join(what) for who, what in got.items()}, cold.subscriptions


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("MNSCaFE|", {"": "0:0 1:1 7:|", 0: "0:M 2:S 4:a 5:F 6:E 7:|", 1: "1:N 3:C 7:|"}, id="each its own"),
        pytest.param("MSp-aFE|", {"": "0:0 7:|", 0: "0:M 1:S 2:p 4:a 5:F 6:E 7:|"}, id="a single choice"),
        pytest.param("MNpeI|", {"": "0:0 1:1 5:|", 0: "0:M 2:p 3:e 4:I 5:|", 1: "1:N 2:p 3:e 4:I 5:|"}, id="those without a choice go to all"),
        pytest.param("ppMNa|", {"": "2:0 3:1 5:|", 0: "2:p 2:p 2:M 4:a 5:|", 1: "3:N 5:|"}, id="or wait for the first"),
        pytest.param("pRMaN|", {"": "2:0 4:1 5:|", 0: "2:p 2:R 2:M 3:a 5:|", 1: "4:R 4:N 5:|"}, id="a choice that begins later knows of the attempts"),
        pytest.param("MRMN|", {"": "0:0 3:1 4:|", 0: "0:M 1:R 2:M 4:|", 1: "3:R 3:N 4:|"}, id="of a later one too"),
        pytest.param("MIC|", {"": "0:0 2:1 3:|", 0: "0:M 1:I 3:|", 1: "2:I 2:C 3:|"}, id="and of an interruption"),
        pytest.param("MIRC|", {"": "0:0 3:1 4:|", 0: "0:M 1:I 2:R 4:|", 1: "3:I 3:R 3:C 4:|"}, id="and of both"),
        pytest.param("MRMSEIOC|", {"": "0:0 7:1 8:|", 0: "0:M 1:R 2:M 3:S 4:E 5:I 6:O 8:|", 1: "7:R 7:I 7:C 8:|"}, id="whatever another choice does"),
        pytest.param("IS-C|", {"": "1:0 3:1 4:|", 0: "1:I 1:S 4:|", 1: "3:I 3:C 4:|"}, id="of every choice that begins"),
        pytest.param("IR-C|", {"": "3:1 4:|", 1: "3:I 3:R 3:C 4:|"}, id="also before the first choice"),
        pytest.param("MirtN|", {"": "0:0 2:1 5:|", 0: "0:M 1:i 5:|", 1: "2:r 3:t 4:N 5:|"}, id="those that name a choice go to that one"),
        pytest.param("MEHGe|", {"": "0:0 2:1 5:|", 0: "0:M 1:E 4:e 5:|", 1: "2:H 3:G 4:e 5:|"}, id="finished, and still there for tools"),
        pytest.param("pp|", {"": "2:|"}, id="no choice at all"),
        pytest.param("|", {"": "0:|"}, id="empty"),
        pytest.param("MN#", {"": "0:0 1:1 2:ValueError", 0: "0:M 2:ValueError", 1: "1:N 2:ValueError"}, id="an error"),
        pytest.param("MN!", {"": "0:0 1:1 2:ProviderError", 0: "0:M 2:ProviderError", 1: "1:N 2:ProviderError"}, id="an error event"),
        pytest.param("M?", {"": "0:0 1:InvalidValueError", 0: "0:M 1:InvalidValueError"}, id="a chunk"),
    ],
)  # fmt: skip
def test_a_stream_for_each_choice(source: str, expected: dict[Any, str]) -> None:
    got, reads = watch(source)
    assert got == expected
    assert reads == [(0, len(source) - 1)]


def push(source: Subject[Any], marks: str) -> None:
    for mark in marks:
        source.on_next(MARKS[mark])


@pytest.mark.slow
def test_choices_that_nobody_can_reach_are_not_kept() -> None:
    def alive() -> int:
        gc.collect()
        return sum(isinstance(thing, rd.types.ChoiceStream) for thing in gc.get_objects())

    source = Subject[Any]()
    outer = source.pipe(rd.group_by_choice()).subscribe(lambda one: one.subscribe())
    push(source, "M")
    before = alive()
    outer.dispose()
    push(source, "NH")
    assert alive() == before


def late(marks: str, more: str, end: str = "on_completed") -> dict[int, list[Any]]:
    """What subscribers see who come after `marks`."""
    source, streams = Subject[Any](), list[rd.types.ChoiceStream]()
    source.pipe(rd.group_by_choice()).subscribe(streams.append, lambda _: None)
    push(source, marks)
    got: dict[int, list[Any]] = {stream.choice: [] for stream in streams}

    def subscribe() -> None:
        for stream in streams:
            mine = got[stream.choice]
            stream.subscribe(mine.append, mine.append, lambda mine=mine: mine.append("|"))  # type: ignore[misc]

    if end == "first":
        source.on_completed()
    subscribe()
    push(source, more)
    if end == "on_error":
        source.on_error(BOOM)
    elif end == "on_completed":
        source.on_completed()
    return got


def folded(events: list[Any], choice: int) -> rd.Snapshot:
    fold = rd.Fold(choice=choice)
    for event in events:
        fold.step(event)
    return fold.snapshot


def test_a_late_subscriber_gets_the_shortest_way_to_now_and_then_what_comes() -> None:
    got = late("MNSCab", "aG")
    assert [event.event for event in got[0][:-2]] == ["message-start", "content-block-start"]
    assert got[0][-2:] == [MARKS["a"], "|"]
    assert got[1][-2:] == [MARKS["G"], "|"]
    assert folded(got[0][:-1], 0).text == "aba"
    assert folded(got[1][:-1], 1).tool_calls[0].arguments == {}


def test_a_late_subscriber_in_a_conversation_begins_with_the_newest_message() -> None:
    got = late("MSaFEOS", "b")
    assert [getattr(event, "id", None) for event in got[0]][:1] == ["m2"]
    assert folded(got[0][:-1], 0).text == "b"


def test_a_finished_message_stays_until_the_next_one_begins_also_when_that_is_retried() -> None:
    got = late("MSaFER", "")[0][:-1]
    assert got[-1] == MARKS["R"]
    before = folded(got[:-1], 0)
    assert (before.text, before.status, before.attempt) == ("a", "complete", 0)
    assert folded(late("MSaFEROSb", "")[0][:-1], 0).attempt == 1
    assert folded(late("MSaFEROSb", "")[0][:-1], 0).text == "b"


def test_a_late_subscriber_begins_with_the_newest_message_where_the_one_before_was_cut() -> None:
    assert folded(late("MSaOS", "b")[0][:-1], 0).text == "b"


def test_the_attempts_at_an_earlier_message_are_not_those_of_the_newest() -> None:
    assert folded(late("MRMSEOS", "b")[0][:-1], 0).attempt == 0


def test_a_late_subscriber_that_emits_while_it_catches_up_sees_all_in_order() -> None:
    source, streams, got = Subject[Any](), list[rd.types.ChoiceStream](), list[str]()
    source.pipe(rd.group_by_choice()).subscribe(streams.append)
    push(source, "MSa")

    def read(event: Any) -> None:
        got.append(event.event)
        if isinstance(event, ev.MessageStart):
            push(source, "bF")

    streams[0].subscribe(read)
    assert got == ["message-start", "content-block-start", "content-block-delta", "content-block-finish"]


def test_51_a_subscriber_that_raises_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    source, got = Subject[Any](), list[str]()

    def fail(event: Any) -> None:
        raise BOOM

    def start(stream: rd.types.ChoiceStream) -> None:
        stream.subscribe(fail)
        stream.subscribe(lambda event: got.append(NAMES[id(event)]))

    source.pipe(rd.group_by_choice()).subscribe(start)
    push(source, "MNSa")
    assert got == ["M", "N", "S", "a"]
    assert [record.message.split(" raised")[0] for record in caplog.records] == [
        "a subscriber of choice 0",
        "a subscriber of choice 1",
    ]


@pytest.mark.parametrize("ended", [False, True])
def test_51_one_that_raises_while_it_catches_up_is_told_nothing_more(
    ended: bool, caplog: pytest.LogCaptureFixture
) -> None:
    source, streams, got = Subject[Any](), list[rd.types.ChoiceStream](), list[Any]()
    source.pipe(rd.group_by_choice()).subscribe(streams.append)
    push(source, "MSaF")
    if ended:
        source.on_completed()

    def fail(event: Any) -> None:
        got.append(event)
        raise BOOM

    streams[0].subscribe(fail, got.append, lambda: got.append("|"))
    push(source, "E")
    assert len(got) == len(caplog.records) == 1


def test_limits() -> None:
    ends: list[Any] = []
    source = rx.of(MARKS["M"], MARKS["S"], MARKS["a"], MARKS["b"])
    source.pipe(rd.group_by_choice(), rd.with_limits(rd.Limits(block_chars=1))).subscribe(
        lambda one: one.subscribe(on_error=ends.append), ends.append
    )
    assert [type(end) for end in ends] == [rd.errors.LimitExceededError] * 2


@given(st.lists(st.sampled_from("MNSabFECGHepR"), max_size=25), st.integers(0, 25))
def test_a_choice_folds_to_what_the_whole_does_early_or_late(marks: list[str], cut: int) -> None:
    events = [MARKS[mark] for mark in marks]
    if any(mark in marks[marks.index(end) :] for mark, end in ("ME", "NH") if end in marks):
        return  # a second message; one of the two would be refused
    snapshots: dict[int, rd.Snapshot] = {}
    streams: list[rd.types.ChoiceStream] = []
    source = Subject[Any]()

    def start(stream: rd.types.ChoiceStream) -> None:
        streams.append(stream)
        stream.pipe(rd.scan_deltas(choice=stream.choice), ops.last_or_default(None)).subscribe(
            lambda snapshot: snapshots.__setitem__(stream.choice, snapshot)
        )

    source.pipe(rd.group_by_choice()).subscribe(start)
    late: dict[int, list[Any]] = {}
    for place, event in enumerate(events):
        if place == cut:
            for stream in streams:
                stream.subscribe(late.setdefault(stream.choice, []).append)
        source.on_next(event)
    source.on_completed()
    for choice, snapshot in snapshots.items():
        whole = folded(events, choice)
        assert (snapshot.blocks if snapshot else ()) == whole.blocks
        if choice in late:
            assert folded(late[choice], choice).blocks == whole.blocks
            assert folded(late[choice], choice).status == whole.status
            assert folded(late[choice], choice).attempt == whole.attempt


def test_the_number_of_choices_is_limited() -> None:
    source, ends, choices = Subject[Any](), list[Any](), list[int]()
    source.pipe(rd.group_by_choice(), rd.with_limits(rd.Limits(choices=1))).subscribe(
        lambda one: choices.append(one.choice), ends.append
    )
    push(source, "MSaN")
    assert choices == [0]
    assert [(type(end), end.limit) for end in ends] == [(rd.errors.LimitExceededError, "choices")]
