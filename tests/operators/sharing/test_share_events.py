"""`share_events`: a late reader is told all so far. What it has in common with `share_latest` is tested there."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import reactivex as rx
from core.strategies import events as any_event
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.lines import line_of
from support.loops import Stream, run as run_loop, turns
from support.replies import ANTHROPIC, OPENAI

import rxdelta as rd
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
TEXT = ev.BlockStart(0, {"type": "text"})
MARKS: dict[str, Any] = {
    "m": ev.MessageStart("m1", "small"),
    "s": TEXT,
    **{mark: ev.TextDelta(0, mark) for mark in "abc"},
    "f": ev.BlockFinish(0),
    "M": ev.MessageFinish("stop"),
}


def watch(shared: Observable[Any]) -> tuple[list[Any], abc.DisposableBase]:
    got: list[Any] = []
    return got, shared.subscribe(got.append, got.append, lambda: got.append("|"))


def late(told: list[rd.Event]) -> list[Any]:
    """What somebody hears who comes after these."""
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events())
    watch(shared)
    for event in told:
        source.on_next(event)
    return watch(shared)[0]


def folded(told: list[Any], choice: int = 0) -> rd.Snapshot:
    fold = rd.Fold(choice=choice)
    for event in told:
        fold.step(event)
    return fold.snapshot


@pytest.mark.parametrize(
    ("second_at", "first_heard", "then"),
    [
        (1, [], "msabcfM|"),
        (4, ["m", "s", "a"], "bcfM|"),
        (7, ["m", "s", "abc", "f"], "M|"),
        (9, ["m", "s", "abc", "f", "M"], "|"),
    ],
)
def test_who_comes_late_hears_all_so_far_and_then_what_comes(
    second_at: int, first_heard: list[str], then: str
) -> None:
    scheduler = TestScheduler()
    cold = marbles.cold("-msabcfM|", scheduler, values=MARKS, frame=1)
    shared = cold.pipe(rd.share_events())
    first, second = scheduler.create_observer(), scheduler.create_observer()
    scheduler.schedule_absolute(200, lambda *_: shared.subscribe(first, scheduler=scheduler) and None)
    scheduler.schedule_absolute(
        200 + second_at, lambda *_: shared.subscribe(second, scheduler=scheduler) and None
    )
    scheduler.start()
    assert line_of(first.messages, values=MARKS, start=200) == "-msabcfM|"
    heard = [message.value.value for message in second.messages if message.value.kind == "N"]
    assert [message.time for message in second.messages if message.time == 200 + second_at]
    assert folded(heard) == folded([message.value.value for message in first.messages[:-1]])
    assert len(second.messages) <= len(first_heard) + len(then)
    assert len(cold.subscriptions) == 1


def test_what_is_told_first_is_the_shortest_list() -> None:
    told = [MARKS[mark] for mark in "msabc"]
    assert late(told) == rd.to_events(folded(told))
    assert [event.event for event in late(told)] == ["message-start", "content-block-start"]


def test_usage_tools_and_attempts_are_told_too() -> None:
    told = [
        ev.MessageStart("m0", usage=rd.TokenUsage(5, 1)),
        TEXT,
        ev.AttemptReset(1, "overloaded"),
        ev.MessageStart("m1", usage=rd.TokenUsage(3, 0)),
        ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "look"}),
        ev.ToolCallDelta(0, '{"at": "sea"}'),
        ev.BlockFinish(0),
        ev.ToolUpdate("c1", "executing", "Looking"),
        ev.UsageUpdate(rd.TokenUsage(3, 7)),
    ]
    snapshot = folded(late(told))
    assert snapshot == folded(told)
    assert snapshot.total_usage == rd.TokenUsage(8, 8)
    assert (snapshot.attempt, snapshot.tool_calls[0].display_text) == (1, "Looking")


def test_between_two_attempts_a_start_is_not_told_before_it_comes() -> None:
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events())
    watch(shared)
    told = [ev.MessageStart("m0", usage=rd.TokenUsage(5, 1)), TEXT, ev.AttemptReset(1, "overloaded")]
    for event in told:
        source.on_next(event)
    got, _ = watch(shared.pipe(rd.validate()))
    assert [type(event) for event in got] == [ev.AttemptReset]
    again = [ev.MessageStart("m1"), TEXT, ev.BlockFinish(0), ev.MessageFinish("stop")]
    for event in again:
        source.on_next(event)
    source.on_completed()
    assert got[-1] == "|"
    assert folded(got[:-1]) == folded([*told, *again])


def test_each_choice_is_told() -> None:
    told: list[rd.Event] = []
    for choice in (0, 1, 2):
        told += [ev.MessageStart("m", choice=choice), ev.BlockStart(0, {"type": "text"}, choice=choice)]
    for number in range(30):
        told.append(ev.TextDelta(0, str(number), choice=number % 3))
    told += [ev.MessageFinish("stop", choice=1), ev.MessageInterrupted("stopped")]
    heard = late(told)
    for choice in (0, 1, 2):
        assert folded(heard, choice) == folded(told, choice)
    assert [event for event in heard if isinstance(event, ev.MessageInterrupted)] == told[-1:]
    assert len(heard) < 12


def message(number: int, choice: int = 0) -> list[rd.Event]:
    return [
        ev.MessageStart(f"m{number}", choice=choice),
        ev.BlockStart(0, {"type": "text", "text": f"{number}/{choice}"}, choice=choice),
        ev.BlockFinish(0, choice=choice),
        ev.MessageFinish("stop", choice=choice),
    ]


def by_message(told: list[rd.Event]) -> list[list[str]]:
    texts: list[list[str]] = []

    def note(stream: rd.types.MessageStream) -> None:
        heard: list[rd.Event] = []
        stream.subscribe(
            heard.append, on_completed=lambda: texts.append([folded(heard, c).text for c in (0, 1)])
        )

    rx.from_iterable(told).pipe(rd.group_by_message()).subscribe(note)
    return texts


def by_message_all(told: list[rd.Event]) -> list[rd.Snapshot]:
    messages: list[rd.Snapshot] = []
    rx.from_iterable(told).pipe(
        rd.group_by_message(), ops.flat_map(lambda one: one.pipe(rd.scan_deltas(), ops.last()))
    ).subscribe(messages.append)
    return messages


@pytest.mark.parametrize("cut", [4, 6, 8, 10, 12])
def test_each_message_of_a_conversation_is_told(cut: int) -> None:
    told = [*message(1), *message(2), *message(3)][:cut]
    assert by_message(late(told)) == by_message(told)


@pytest.mark.parametrize("cut", [4, 8, 10, 12, 14, 16])
def test_each_message_of_several_choices_is_told(cut: int) -> None:
    told = [*message(1), *message(1, 1), *message(2), *message(2, 1)][:cut]
    assert by_message(late(told)) == by_message(told)


AGENT = [
    *message(1),
    ev.AttemptReset(1, "overloaded", rd.TokenUsage(5, 1)),
    ev.AttemptReset(2, "overloaded"),
    *message(2)[:2],
    ev.AttemptReset(3, "cut"),
    *message(2),
]


@pytest.mark.parametrize("cut", range(len(AGENT) + 1))
def test_a_finished_message_stays_when_the_next_one_is_retried(cut: int) -> None:
    heard = [*late(AGENT[:cut]), *AGENT[cut:]]
    messages = by_message_all(heard)
    assert messages == by_message_all(AGENT)
    assert [(one.text, one.attempt, one.total_usage) for one in messages] == [
        ("1/0", 0, None),
        ("2/0", 3, rd.TokenUsage(5, 1)),
    ]


@pytest.mark.parametrize("choices", [1, 2])
def test_a_message_that_was_cut_off_stays_when_the_next_one_is_retried(choices: int) -> None:
    cut_off = [event for choice in range(choices) for event in message(1, choice)[:2]]
    follows = [event for choice in range(choices) for event in message(2, choice)]
    told = [*cut_off, *follows[:2], ev.AttemptReset(1, "cut"), *follows]
    for cut in range(len(told) + 1):
        heard = [*late(told[:cut]), *told[cut:]]
        assert [(one.text, one.attempt) for one in by_message_all(heard)] == [("1/0", 0), ("2/0", 1)], cut


def test_resets_that_name_their_choices_take_back_the_finished_ones_too() -> None:
    told = [*message(1), *message(1, 1)[:2], ev.AttemptReset(1, choice=0), ev.AttemptReset(1, choice=1)]
    assert [type(event) for event in late(told)] == [ev.AttemptReset]
    assert folded(late([*told, *message(2)])) == folded([*told, *message(2)])


def test_choices_that_were_reset_differently_keep_their_own_attempts() -> None:
    told = [*message(1)[:2], *message(1, 1)[:2], ev.AttemptReset(1, choice=1), *message(2, 1)]
    for choice in (0, 1):
        folds = rd.Fold(choice=choice), rd.Fold(choice=choice)
        for fold, heard in zip(folds, (late(told), told), strict=True):
            for event in heard:
                fold.step(event)
        assert folds[0].snapshot == folds[1].snapshot
        assert folds[0].snapshot.attempt == choice


def test_a_reset_of_one_message_is_not_replayed_in_the_next() -> None:
    told = [*message(1)[:2], ev.AttemptReset(1), *message(1), *message(2)[:1], *message(2, 1)[:2]]
    heard = late(told)
    assert [event.attempt for event in heard if isinstance(event, ev.AttemptReset)] == [1]
    assert folded(heard, 1) == folded(told, 1)


def test_an_interruption_or_update_that_names_its_choice_leaves_the_others_alone() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "f", "args": {}}
    told: list[rd.Event] = [ev.BlockFinish(0, call, choice=choice) for choice in (0, 1)]
    told += [ev.ToolUpdate("c1", "executing", choice=0), ev.MessageInterrupted(choice=1)]
    for choice, status in ((0, "incomplete"), (1, "interrupted")):
        assert folded(late(told), choice) == folded(told, choice)
        assert folded(told, choice).status == status


def test_an_interruption_is_told_with_its_own_message() -> None:
    told = [*message(1)[:2], *message(1, 1)[:2], ev.MessageInterrupted("stopped"), *message(2)[:2]]
    heard = late(told)
    assert [type(event) for event in heard].count(ev.MessageInterrupted) == 1
    assert heard.index(ev.MessageStart("m1", choice=1)) < heard.index(ev.MessageInterrupted("stopped"))
    assert heard.index(ev.MessageInterrupted("stopped")) < heard.index(ev.MessageStart("m2"))


def test_a_message_that_was_cut_is_told_before_the_next() -> None:
    told = [*message(1)[:2], *message(2)]
    assert by_message(late(told)) == by_message(told) == [["1/0", ""], ["2/0", ""]]


def test_news_of_an_earlier_messages_tool_are_told() -> None:
    asked = [
        ev.MessageStart("m1"),
        ev.BlockStart(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {}}),
        ev.BlockFinish(0),
        ev.MessageFinish("tool_use"),
    ]
    heard = late([*asked, *message(2), ev.ToolUpdate("c1", "completed")])
    first = folded(heard[: heard.index(ev.MessageStart("m2"))])
    assert first.tool_calls[0].execution_status() == "completed"


def test_the_end_and_the_error_are_told_after_it() -> None:
    for end in ("|", BOOM):
        source = Subject[rd.Event]()
        shared = source.pipe(rd.share_events())
        watch(shared)
        source.on_next(TEXT)
        source.on_completed() if end == "|" else source.on_error(BOOM)
        got, _ = watch(shared)
        assert [type(event) for event in got[:-1]] == [ev.MessageStart, ev.BlockStart]
        assert got[-1] is end


def test_who_comes_after_all_have_left_is_told_what_came_and_that() -> None:
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events())
    _, subscription = watch(shared)
    source.on_next(TEXT)
    subscription.dispose()
    assert source.observers == []
    got, _ = watch(shared)
    assert type(got[-1]) is rd.StreamInterrupted
    assert "share_events(unread='keep')" in str(got[-1])
    assert len(got[-1].snapshot.blocks) == 1


def test_it_may_be_kept_and_begun_anew() -> None:
    source = Subject[rd.Event]()
    kept, anew = source.pipe(rd.share_events(unread="keep")), source.pipe(rd.share_events(unread="restart"))
    for shared in (kept, anew):
        watch(shared)[1].dispose()
    assert len(source.observers) == 1
    source.on_next(TEXT)
    assert len(watch(kept)[0]) == 2
    assert watch(anew)[0] == []
    assert len(source.observers) == 2


def test_behind_run_tools_the_tools_run_once() -> None:
    runs: list[int] = []
    shared = rx.from_iterable(OPENAI).pipe(
        rd.decode("openai-chat"), rd.run_tools({"look": lambda at: runs.append(1) or at}), rd.share_events()
    )
    snapshots = [watch(shared.pipe(rd.scan_deltas(), ops.last()))[0][0] for _ in range(3)]
    assert runs == [1]
    assert snapshots[0] == snapshots[1] == snapshots[2]
    assert snapshots[0].tool_calls[0].result.content == "sea"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"type": "ping"}, rd.InvalidValueError),
        (ev.StreamError("no"), rd.ProviderError),
        (rd.Snapshot(), rd.InvalidValueError),
    ],
)
def test_what_ends_the_stream(value: Any, kind: type[Exception]) -> None:
    source = Subject[Any]()
    got, _ = watch(source.pipe(rd.share_events()))
    source.on_next(value)
    assert [type(one) for one in got] == [kind]
    assert source.observers == []


def test_what_is_held_is_limited() -> None:
    source = Subject[rd.Event]()
    got, _ = watch(source.pipe(rd.share_events(), rd.with_limits(rd.Limits(blocks=1))))
    source.on_next(TEXT)
    source.on_next(ev.BlockStart(1, {"type": "text"}))
    assert got[0] is TEXT
    assert type(got[1]) is rd.errors.LimitExceededError


def test_a_provider_event_is_told_to_those_who_are_there() -> None:
    news = ev.ProviderEvent("anthropic", "news")
    assert late([news]) == []


def test_a_reader_may_come_inside_on_next() -> None:
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events())
    others: list[list[Any]] = []
    shared.subscribe(lambda event: others.append(watch(shared)[0]))
    told = [MARKS[mark] for mark in "msab"]
    for event in told:
        source.on_next(event)
    assert [folded(heard) for heard in others] == [folded(told)] * 4


def test_53_readers_come_on_many_threads_and_all_fold_the_same() -> None:
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events(unread="keep"))
    heard: list[list[Any]] = []
    stop = threading.Event()

    def come() -> None:
        while not stop.is_set() and len(heard) < 60:
            heard.append(watch(shared)[0])

    told: list[rd.Event] = [TEXT, *(ev.TextDelta(0, str(number)) for number in range(200))]
    threads = [threading.Thread(target=come) for _ in range(3)]
    for thread in threads:
        thread.start()
    for event in told:
        source.on_next(event)
    stop.set()
    for thread in threads:
        thread.join()
    source.on_completed()
    assert all(got[-1] == "|" for got in heard)
    assert all(folded(got[:-1]).text == folded(told).text for got in heard if got != ["|"])


def test_on_a_loop_one_request_for_all() -> None:
    async def main() -> None:
        stream = Stream(*ANTHROPIC)
        asked: list[int] = []
        shared = rd.from_async_iterable(lambda: (asked.append(1), stream)[1]).pipe(
            rd.decode("anthropic-messages"), rd.share_events()
        )
        messages = [
            asyncio.create_task(rd.last_value(shared.pipe(rd.scan_deltas(), rd.to_message())))
            for _ in range(2)
        ]
        await turns(8)
        messages.append(asyncio.create_task(rd.last_value(shared.pipe(rd.scan_deltas(), rd.to_message()))))
        first, *others = await asyncio.gather(*messages)
        assert others == [first, first]
        assert await rd.last_value(shared.pipe(rd.scan_deltas(), rd.to_message())) == first
        assert asked == [1]

    run_loop(main)


def test_a_slow_reader_is_ended_alone() -> None:
    async def main() -> None:
        shared = rd.from_async_iterable(Stream(*ANTHROPIC)).pipe(
            rd.decode("anthropic-messages"), rd.share_events()
        )
        async with (
            rd.to_async_iterable(shared, "error", maxsize=2) as slow,
            rd.to_async_iterable(shared, "buffer") as other,
        ):
            await turns(60)
            assert len([event async for event in other]) > 8
            assert len([await anext(slow), await anext(slow)]) == 2
            with pytest.raises(rd.errors.BufferOverflowError):
                await anext(slow)

    run_loop(main)


@given(st.lists(any_event(), max_size=30), st.integers(0, 30), st.booleans())
def test_whenever_somebody_comes_the_fold_is_the_same_and_the_last_event_comes_before_the_end(
    told: list[rd.Event], at: int, error: bool
) -> None:
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events())
    all_, _ = watch(shared)
    for event in told[:at]:
        source.on_next(event)
    heard, _ = watch(shared)
    for event in told[at:]:
        source.on_next(event)
    if error:
        source.on_error(BOOM)
    else:
        source.on_completed()
    assert all_[-1] == heard[-1] == (BOOM if error else "|")
    assert heard[len(heard) - 1 - len(told[at:]) : -1] == told[at:]
    assert all_[:-1] == told
    try:
        whole = folded(told)
    except rd.ProtocolError:
        return  # two messages, which no fold takes
    over = [n for n, event in enumerate(told) if isinstance(event, (ev.MessageFinish, ev.MessageInterrupted))]
    if over and any(isinstance(event, ev.AttemptReset) for event in told[over[0] :]):
        return  # nor these: the attempt is the next message's
    assert folded(heard[:-1]).to_dict() == whole.to_dict()


def test_the_number_of_choices_is_limited() -> None:
    source = Subject[rd.Event]()
    got, _ = watch(source.pipe(rd.share_events(), rd.with_limits(rd.Limits(choices=2))))
    told = [ev.MessageStart(choice=0), ev.MessageStart(choice=9), ev.MessageFinish("stop")]
    for event in [*told, *message(2), ev.MessageStart(choice=1)]:
        source.on_next(event)
    assert got[:-1] == [*told, *message(2)]
    assert (type(got[-1]), got[-1].limit) == (rd.errors.LimitExceededError, "choices")
