"""`group_by_message` in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import Subject
from support.replies import REPLIES

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

BOOM = ValueError("boom")

CALL = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": "{}"}
MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "N": ev.MessageStart(id="m2"),
    "O": ev.MessageStart(),
    "S": ev.BlockStart(0, {"type": "text"}),
    "a": ev.TextDelta(0, "a"),
    "b": ev.TextDelta(0, "b"),
    "F": ev.BlockFinish(0),
    "E": ev.MessageFinish("stop"),
    "m": ev.MessageStart(id="m1", choice=1),
    "n": ev.MessageStart(id="m2", choice=1),
    "C": ev.BlockStart(0, CALL, choice=1),
    "H": ev.MessageFinish("tool_use", choice=1),
    "e": ev.ToolUpdate("c1", "executing"),
    "p": ev.ProviderEvent("x", "ping", {}),
    "I": ev.MessageInterrupted("enough"),
    "R": ev.AttemptReset(1),
    "Q": ev.AttemptReset(2),
    "!": ev.StreamError("overloaded"),
    "?": {"choices": []},
}
NAMES = {id(event): mark for mark, event in MARKS.items()}


def watch(source: str) -> tuple[str, list[Any]]:
    """The messages' events in brackets at the tick where each begins, with their ends, and when it was read."""
    scheduler = VirtualTimeScheduler()
    cold = marbles.cold(source, scheduler, values=MARKS, frame=1, error=BOOM)
    messages: list[list[str]] = []
    outer: list[str] = []

    def start(stream: rd.types.MessageStream) -> None:
        messages.append([f"{scheduler.clock:.0f}:"])
        mine = messages[-1]
        stream.subscribe(
            lambda event: mine.append(NAMES[id(event)]),
            lambda error: mine.append(f" {type(error).__name__}"),
            lambda: mine.append(f"|{scheduler.clock:.0f}"),
        )

    cold.pipe(rd.group_by_message()).subscribe(
        start, lambda error: outer.append(type(error).__name__), lambda: outer.append("|")
    )
    scheduler.advance_to(100)
    return " ".join(["".join(mine) for mine in messages] + outer), cold.subscriptions


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("MSaFE|", "0:MSaFE|5 |", id="one"),
        pytest.param("MSaFENSbFE|", "0:MSaFE|5 5:NSbFE|10 |", id="two"),
        pytest.param("OSEOSE|", "0:OSE|3 3:OSE|6 |", id="without ids"),
        pytest.param("MSaNSbE|", "0:MSa|3 3:NSbE|7 |", id="a cut one, then another"),
        pytest.param("MSaMbE|", "0:MSaMbE|6 |", id="a start that repeats the message's own id"),
        pytest.param("MNOSaE|", "0:MNOSaE|6 |", id="before the first block any start"),
        pytest.param("MSaOSbE|", "0:MSa|3 3:OSbE|7 |", id="a start without an id repeats none"),
        pytest.param("OSaOSbE|", "0:OSa|3 3:OSbE|7 |", id="also where the message has none"),
        pytest.param("OSaNSbE|", "0:OSa|3 3:NSbE|7 |", id="nor does an id repeat none"),
        pytest.param(
            "MSEMSaNS|",
            "0:MSE|3 3:MSa|6 6:NS|8 |",
            id="after the finish any start: some gateways have one id for all",
        ),
        pytest.param("SaMbENE|", "0:SaMbE|5 5:NE|7 |", id="blocks before the start"),
        pytest.param(
            "mCMHSaFEeNn|", "0:mCMHSaFEe|9 9:Nn|11 |", id="several choices, and tools after the finish"
        ),
        pytest.param("MmEHnNEH|", "0:MmEH|4 4:nNEH|8 |", id="whichever choice comes first"),
        pytest.param("pMSEpNE|", "0:pMSEp|5 5:NE|7 |", id="what comes between belongs to the one before"),
        pytest.param("MSaINSE|", "0:MSaI|4 4:NSE|7 |", id="an interrupted one"),
        pytest.param("MSaRNSE|", "0:MSaRNSE|7 |", id="another attempt at the same one"),
        pytest.param("RMSE|", "0:RMSE|4 |", id="at the first one"),
        pytest.param("MSERQNSE|", "0:MSE|3 3:RQNSE|8 |", id="at the next one, before it has begun"),
        pytest.param("MmERNSE|", "0:MmE|3 3:RNSE|7 |", id="at the next one, if a choice is over"),
        pytest.param("|", "|", id="empty"),
        pytest.param("MSEN#", "0:MSE|3 3:N ValueError ValueError", id="an error"),
        pytest.param("MS!", "0:MS ProviderError ProviderError", id="an error event"),
        pytest.param("M?", "0:M InvalidValueError InvalidValueError", id="a chunk"),
        pytest.param("#", "ValueError", id="an error at once"),
    ],
)
def test_a_stream_for_each_message(source: str, expected: str) -> None:
    got, reads = watch(source)
    assert got == expected
    assert reads == [(0, len(source) - 1)]


def push(source: Subject[Any], marks: str) -> None:
    for mark in marks:
        source.on_next(MARKS[mark])


def test_the_id_is_known_as_soon_as_it_is() -> None:
    source, seen = Subject[Any](), list[Any]()
    streams: list[rd.types.MessageStream] = []

    def start(stream: rd.types.MessageStream) -> None:
        streams.append(stream)
        seen.append((stream.id, repr(stream)))

    source.pipe(rd.group_by_message()).subscribe(start)
    push(source, "pMSEN")
    assert seen == [(None, "<MessageStream None>"), ("m2", "<MessageStream m2>")]
    assert streams[0].id == "m1"


def late(marks: str, more: str = "") -> list[list[Any]]:
    source, streams = Subject[Any](), list[rd.types.MessageStream]()
    source.pipe(rd.group_by_message()).subscribe(streams.append)
    push(source, marks)
    got: list[list[Any]] = []
    for stream in streams:
        mine: list[Any] = []
        got.append(mine)
        stream.subscribe(mine.append, mine.append, lambda mine=mine: mine.append("|"))  # type: ignore[misc]
    push(source, more)
    return got


def folded(events: list[Any], choice: int = 0) -> rd.Snapshot:
    fold = rd.Fold(choice=choice)
    for event in events:
        fold.step(event)
    return fold.snapshot


def test_a_late_subscriber_gets_the_shortest_way_to_now_and_then_what_comes() -> None:
    first, second = late("MSabFENSa", "bE")
    assert first[-1] == "|"
    assert (folded(first[:-1]).text, folded(first[:-1]).status) == ("ab", "complete")
    assert [event.event for event in second] == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "message-finish",
    ]
    assert folded(second).text == "ab"


def test_of_several_choices_one_after_another_with_what_speaks_of_all_said_once() -> None:
    (got,) = late("QMmSCabIe")
    assert [type(event) for event in got].count(ev.AttemptReset) == 1
    assert [type(event) for event in got].count(ev.MessageInterrupted) == 1
    assert isinstance(got[0], ev.AttemptReset)
    for choice in (0, 1):
        assert folded(got, choice).status == "interrupted"
        assert folded(got, choice).attempt == 2
    assert folded(got, 0).text == "ab"
    assert folded(got, 1).blocks[0].type == "invalid_tool_call"


def test_a_late_subscriber_before_the_message_has_started_gets_the_attempts() -> None:
    (got,) = late("RQ", "M")
    assert got == [MARKS["R"], MARKS["Q"], MARKS["M"]]


def test_the_source_is_read_as_long_as_anybody_reads_and_no_further_than_their_message() -> None:
    source, got, readers = Subject[Any](), list[str](), list[Any]()
    outer = source.pipe(rd.group_by_message()).subscribe(
        lambda one: readers.append(
            one.subscribe(lambda event: got.append(NAMES[id(event)]), None, lambda: got.append("|"))
        )
    )
    push(source, "MS")
    outer.dispose()
    push(source, "aE")
    assert len(source.observers) == 1
    push(source, "NSb")
    assert got == ["M", "S", "a", "E", "|"]
    assert source.observers == []


def test_whoever_starts_the_next_message_inside_the_finish_does_not_mix_the_two() -> None:
    source, got = Subject[Any](), list[str]()

    def start(stream: rd.types.MessageStream) -> None:
        def read(event: Any) -> None:
            got.append(f"{stream.id}{NAMES[id(event)]}")
            if event is MARKS["E"] and stream.id == "m1":
                push(source, "NSE")

        stream.subscribe(read, None, lambda: got.append("|"))
        stream.subscribe(lambda event: got.append(f"{stream.id}{NAMES[id(event)]}'"))

    source.pipe(rd.group_by_message()).subscribe(start)
    push(source, "ME")
    assert got == ["m1M", "m1M'", "m1E", "m1E'", "|", "m2N", "m2N'", "m2S", "m2S'", "m2E", "m2E'"]


def test_limits() -> None:
    ends: list[Any] = []
    source = rx.of(MARKS["M"], MARKS["S"], MARKS["a"], MARKS["b"])
    source.pipe(rd.group_by_message(), rd.with_limits(rd.Limits(block_chars=1))).subscribe(
        lambda one: one.subscribe(on_error=ends.append), ends.append
    )
    assert [type(end) for end in ends] == [rd.errors.LimitExceededError] * 2


def test_a_conversation_of_recorded_replies() -> None:
    turns = [
        rx.from_iterable(chunks).pipe(rd.decode(wire_format))
        for wire_format, chunks in sorted(REPLIES.items())
    ]
    messages = [turn.pipe(rd.scan_deltas(), rd.to_message()).run() for turn in turns]
    conversation = rx.concat(*turns, *turns)
    got: list[rd.Message] = []
    conversation.pipe(rd.group_by_message()).subscribe(
        lambda one: one.pipe(rd.scan_deltas(), rd.to_message()).subscribe(got.append)
    )
    assert got == messages * 2


def test_the_blocks_of_a_conversation_by_message() -> None:
    turn = rx.from_iterable(REPLIES["openai-chat"]).pipe(rd.decode("openai-chat"))
    seen: list[Any] = []

    def blocks(message: rd.types.MessageStream) -> Any:
        return message.pipe(rd.per_block(lambda block: block.pipe(ops.last())))

    rx.concat(turn, turn).pipe(rd.group_by_message(), ops.flat_map(blocks)).subscribe(seen.append)
    assert seen[:2] == seen[2:]
    assert [block.type for block in seen] == ["text", "tool_call"] * 2


@given(st.lists(st.lists(st.sampled_from("SabFpe"), max_size=6), max_size=5), st.booleans())
def test_every_event_is_in_one_message_in_order(bodies: list[list[str]], finished: bool) -> None:
    starts = "MN" * 3
    turns = [
        [start, *body, *("E" if finished else "S")] for start, body in zip(starts, bodies, strict=False)
    ]  # each over, or with a block: before that another start would be the message's own
    got: list[list[str]] = []

    def start(stream: rd.types.MessageStream) -> None:
        got.append([])
        mine = got[-1]
        stream.subscribe(lambda event: mine.append(NAMES[id(event)]))

    events = rx.from_iterable([MARKS[mark] for turn in turns for mark in turn])
    events.pipe(rd.group_by_message()).subscribe(start)
    assert got == turns
