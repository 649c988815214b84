"""What a newer value replaces, and what it doesn't: the newest of each thing."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.loops import run

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reactivex import Observable

ev = rd.events
Policy = Any


def throttled(values: Iterable[Any], **options: Any) -> list[Any]:
    return kept(rd.throttle_latest(4, **options), values)


def debounced(values: Iterable[Any], **options: Any) -> list[Any]:
    return kept(rd.debounce_latest(4, **options), values)


def kept(operator: Callable[[Observable[Any]], Observable[Any]], values: Iterable[Any]) -> list[Any]:
    """What is emitted of values that all come at once and don't end, when time has passed."""
    scheduler, source, got = TestScheduler(), Subject[Any](), list[Any]()
    source.pipe(operator).subscribe(got.append, scheduler=scheduler)
    for value in values:
        source.on_next(value)
    scheduler.advance_by(100)
    return got


def conflated(values: Iterable[Any], **options: Any) -> list[Any]:
    """What an observer gets that is busy with its first value while all others come."""
    source, got = Subject[Any](), list[Any]()
    first, *others = values

    def draw(value: Any) -> None:
        got.append(value)
        if len(got) == 1:
            for one in others:
                source.on_next(one)

    source.pipe(rd.conflate(**options)).subscribe(draw)
    source.on_next(first)
    return got


def latest(values: Iterable[Any], **options: Any) -> list[Any]:
    """What a reader gets that begins to read when all has come."""

    async def main() -> list[Any]:
        source = Subject[Any]()
        async with rd.to_async_iterable(source, "latest", **options) as read:
            for value in values:
                source.on_next(value)
            source.on_completed()
            return [value async for value in read]

    return asyncio.run(main())


POLICIES: list[Policy] = [throttled, debounced, conflated, latest]
each_policy = pytest.mark.parametrize("policy", POLICIES)


def text(*marks: str, id: str | None = None, end: bool = True, run_id: str | None = None) -> list[rd.Event]:
    """The events of a reply of one text."""
    start = [ev.MessageStart(id=id, run_id=run_id), ev.BlockStart(0, {"type": "text"}, run_id=run_id)]
    deltas = [ev.TextDelta(0, mark, run_id=run_id) for mark in marks]
    finish = [ev.BlockFinish(0, run_id=run_id), ev.MessageFinish("stop", run_id=run_id)]
    return [*start, *deltas, *(finish if end else [])]


def snapshots(events: Iterable[rd.Event]) -> list[rd.Snapshot]:
    got: list[rd.Snapshot] = []
    rx.from_iterable(events).pipe(rd.scan_deltas()).subscribe(got.append, print)
    return got


def blocks(events: Iterable[rd.Event]) -> list[rd.Block]:
    got: list[rd.Block] = []
    rx.from_iterable(events).pipe(rd.per_block(lambda block: block)).subscribe(got.append, lambda _: None)
    return got


def woven(*lists: list[Any]) -> list[Any]:
    """The values of several streams in turns."""
    return [one[n] for n in range(max(map(len, lists))) for one in lists if n < len(one)]


def calls(*ids: str) -> list[rd.Event]:
    """Calls whose pieces come in turns, and that all finish at once."""
    numbered = [*enumerate(ids)]
    return [
        ev.MessageStart(),
        *(ev.BlockStart(n, {"type": "tool_call", "id": call_id, "name": "f"}) for n, call_id in numbered),
        *(ev.ToolCallDelta(n, piece) for piece in ('{"a"', ": 1}") for n, _ in numbered),
        *(ev.BlockFinish(n) for n, _ in numbered),
        ev.MessageFinish("tool_use"),
    ]


@each_policy
def test_snapshots_of_one_reply_are_one_thing(policy: Policy) -> None:
    of_one = snapshots(text("a", "b", "c"))
    assert policy(of_one)[-1] is of_one[-1]
    assert len(policy(of_one)) <= 2


@each_policy
@pytest.mark.parametrize("ends", [True, False], ids=["complete", "cut"])
@pytest.mark.parametrize(
    "names",
    [
        [{}, {}],
        [{"id": "m"}, {"id": "m"}],
        [{"id": "a"}, {"id": "b"}],
        [{"run_id": "a"}, {"run_id": "b"}],
    ],
    ids=["nameless", "one id", "ids", "runs"],
)
def test_two_merged_replies_each_keep_their_last_state(policy: Policy, names: Any, ends: bool) -> None:
    first = snapshots(text("a", "b", "c", end=ends, **names[0]))
    second = snapshots(text("x", "y", end=ends, **names[1]))
    got = policy(woven(first, second))
    for of_one in (first, second):
        assert any(one is of_one[-1] for one in got)
    assert len(got) <= 3


@each_policy
def test_blocks_of_one_reply_each_keep_their_last_state(policy: Policy) -> None:
    of_calls = blocks(calls("c1", "c2", "c3"))
    got = policy(of_calls)
    assert {block.key: block for block in got} == {0: of_calls[-3], 1: of_calls[-2], 2: of_calls[-1]}
    assert all(block.status == "complete" for block in got[-3:])
    assert len(got) <= 4


@each_policy
@pytest.mark.parametrize("ends", [True, False], ids=["complete", "cut"])
def test_blocks_of_two_merged_replies_are_told_apart_although_their_keys_are_equal(
    policy: Policy, ends: bool
) -> None:
    first, second = blocks(text("a", "b", "c", end=ends)), blocks(text("x", "y", end=ends))
    got = policy(woven(first, second))
    assert any(one is first[-1] for one in got)
    assert any(one is second[-1] for one in got)


@each_policy
def test_blocks_of_two_messages_of_a_conversation_are_told_apart(policy: Policy) -> None:
    of_both = blocks([*text("a", "b"), *text("x", "y")])
    last = [block for block in of_both if not block.open]
    got = policy(of_both)
    assert [block for block in got if not block.open] == last


@each_policy
def test_a_value_of_arguments_is_of_its_call(policy: Policy) -> None:
    got: list[rd.types.PartialValue[Any]] = []
    rx.from_iterable(calls("c1", "c2")).pipe(rd.partial_arguments()).subscribe(got.append)
    shown = policy(got)
    assert {one.call_id: one.complete for one in shown} == {"c1": True, "c2": True}
    assert len(shown) <= 3


@each_policy
def test_each_message_is_a_thing_of_its_own(policy: Policy) -> None:
    messages = [snapshots(text(mark))[-1].to_message() for mark in "abc"]
    assert policy(messages) == messages


@each_policy
def test_values_of_the_users_are_one_thing_whatever_their_types(policy: Policy) -> None:
    values = ["a", 1, ("b",), {"c": 2}, b"d", None]
    assert policy(values)[-1] is None
    assert len(policy(values)) <= 2


@each_policy
def test_a_text_that_was_made_of_snapshots_is_one_thing(policy: Policy) -> None:
    texts = [snapshot.text for snapshot in snapshots(text("a", "b", "c"))]
    assert policy(texts)[-1] == "abc"


@each_policy
def test_the_users_key_tells_values_apart(policy: Policy) -> None:
    got = policy(["a1", "b1", "a2", "b2", "a3"], key=lambda value: value[0])
    assert dict(got[-2:]) == {"a": "3", "b": "2"}
    assert len(got) <= 3


@each_policy
def test_with_a_key_nothing_is_refused(policy: Policy) -> None:
    events = text("a", "b")
    assert policy(events, key=type)[-1] is events[-1]
    assert policy(events, key=lambda _: None)[-1] is events[-1]


@each_policy
def test_a_restored_snapshot_is_known_by_its_ids(policy: Policy) -> None:
    """A copy belongs to no fold. Were each a thing of its own, a throttle would be a queue."""
    for restore in (
        lambda one: rd.Snapshot.from_dict(one.to_dict()),
        lambda one: pickle.loads(pickle.dumps(one)),
    ):
        of_one = [restore(one) for one in snapshots(text(*"abcdef", id="m"))]
        other = [restore(one) for one in snapshots(text(*"xyz", id="n"))]
        got = policy([*of_one, *other])
        assert got[-1] is other[-1]
        assert any(one is of_one[-1] for one in got)
        assert len(got) <= 3


@each_policy
def test_a_finished_reply_without_an_origin_is_not_replaced_by_an_open_one(policy: Policy) -> None:
    of_one = [pickle.loads(pickle.dumps(one)) for one in snapshots(text(*"ab"))]
    other = [pickle.loads(pickle.dumps(one)) for one in snapshots(text(*"xy"))]
    got = policy([*of_one, *other])
    assert any(one is of_one[-1] for one in got)
    assert got[-1] is other[-1]


@each_policy
def test_a_new_attempt_replaces_the_failed_one(policy: Policy) -> None:
    events = [*text("a", "b", end=False), ev.AttemptReset(1), *text("x")]
    got = policy(snapshots(events))
    assert got[-1].text == "x"
    assert len(got) <= 2


@each_policy
@pytest.mark.parametrize(
    "value", [ev.MessageStart(), rx.never(), Subject()], ids=["event", "observable", "subject"]
)
def test_an_event_or_an_observable_is_refused_at_once(policy: Policy, value: Any) -> None:
    if policy is latest:
        with pytest.raises(rd.InvalidValueError, match="latest"):
            policy([value])
        return
    got: list[Any] = []
    operator = {throttled: rd.throttle_latest(4), debounced: rd.debounce_latest(4), conflated: rd.conflate()}
    source = Subject[Any]()
    source.pipe(operator[policy]).subscribe(got.append, got.append, scheduler=TestScheduler())
    source.on_next(value)
    (error,) = got
    assert type(error) is rd.InvalidValueError
    assert error.value is value
    assert "would drop a MessageStart" in str(error) or not isinstance(value, ev.MessageStart)


def test_a_key_that_raises_ends_the_stream() -> None:
    got: list[Any] = []
    boom = ZeroDivisionError()

    def key(_: object) -> None:
        raise boom

    rx.of(1).pipe(rd.throttle_latest(4, key=key)).subscribe(got.append, got.append)
    assert got == [boom]


@pytest.mark.parametrize("make", [lambda key: rd.throttle_latest(1, key=key), lambda key: rd.debounce_latest(1, key=key),
                                  lambda key: rd.conflate(key=key), lambda key: rd.share_latest(key=key)])  # fmt: skip
def test_a_key_that_is_no_function_is_refused(make: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="key: must be a function of a value"):
        make("id")


def test_a_key_belongs_to_latest_only() -> None:
    with pytest.raises(rd.InvalidValueError, match="with overflow='latest'"):
        rd.to_async_iterable(rx.of(1), key=str)


# Late readers.


def late(values: Iterable[Any], **options: Any) -> list[Any]:
    """What `share_latest` replays to a reader that comes last."""
    source, got = Subject[Any](), list[Any]()
    shared = source.pipe(rd.share_latest(**options))
    shared.subscribe(lambda _: None)
    for value in values:
        source.on_next(value)
    shared.subscribe(got.append)
    return got


def test_share_latest_replays_all_that_is_open() -> None:
    first, second = snapshots(text("a", "b", end=False)), snapshots(text("x", end=False))
    assert late(woven(first, second)) == [second[-1], first[-1]]


def test_share_latest_replays_the_newest_of_what_has_finished() -> None:
    replies = [snapshots(text(mark)) for mark in "abc"]
    still = snapshots(text("x", end=False))
    assert late([*still, *(one for reply in replies for one in reply)]) == [still[-1], replies[-1][-1]]


def test_share_latest_replays_open_blocks() -> None:
    events = calls("c1", "c2")
    of_calls = blocks(events[:-3])
    assert late(of_calls) == [of_calls[-2], of_calls[-1]]
    whole = blocks(events)
    assert late(whole) == [whole[-1]]


def test_share_latest_by_key_replays_the_newest_of_each() -> None:
    assert late(["a1", "b1", "a2"], key=lambda value: value[0]) == ["b1", "a2"]
    assert late(["a1", "b1", "a2"]) == ["a2"]


def test_share_latest_goes_on_with_what_seemed_finished() -> None:
    """Without an origin a reply may have the name of one that has finished."""
    done, more = (
        [pickle.loads(pickle.dumps(one)) for one in snapshots(text(*marks))] for marks in ("ab", "xy")
    )
    assert late([*done, more[0]]) == [done[-1], more[0]]
    assert late([*done, *more]) == [more[-1]]


# Time.


def test_values_that_come_while_others_go_out_are_debounced_again() -> None:
    scheduler, source, got = TestScheduler(), Subject[str](), list[tuple[float, str]]()

    def draw(value: str) -> None:
        got.append((scheduler.clock, value))
        if value == "a1":
            source.on_next("c1")

    source.pipe(rd.debounce_latest(4, key=lambda value: value[0])).subscribe(draw, scheduler=scheduler)
    source.on_next("a1")
    source.on_next("b1")
    scheduler.advance_by(50)
    assert got == [(4, "a1"), (4, "b1"), (8, "c1")]


def test_a_window_lets_the_newest_of_each_go() -> None:
    scheduler, source, got = TestScheduler(), Subject[str](), list[tuple[float, str]]()
    throttle = rd.throttle_latest(4, key=lambda value: value[0])
    source.pipe(throttle).subscribe(lambda value: got.append((scheduler.clock, value)), scheduler=scheduler)
    for value in ("a1", "b1", "a2", "b2"):
        source.on_next(value)
    scheduler.advance_by(50)
    assert got == [(0, "a1"), (4, "a2"), (4, "b2")]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30),
    st.sampled_from([rd.throttle_latest, rd.debounce_latest]),
)
def test_whatever_comes_when_the_last_of_each_is_the_last(steps: list[tuple[str, bool]], make: Any) -> None:
    scheduler, source = TestScheduler(), Subject[tuple[str, int]]()
    got: list[tuple[str, int]] = []
    source.pipe(make(3, key=lambda value: value[0])).subscribe(got.append, scheduler=scheduler)
    for number, (name, waits) in enumerate(steps):
        source.on_next((name, number))
        if waits:
            scheduler.advance_by(2)
    scheduler.advance_by(100)
    last = {name: number for number, (name, _) in enumerate(steps)}
    assert dict(got) == last
    for name in last:
        of_one = [number for other, number in got if other == name]
        assert of_one == sorted(of_one)


def test_two_replies_merged_and_throttled_at_a_door() -> None:
    async def reply(mark: str, count: int) -> Any:
        for number in range(count):
            await asyncio.sleep(0)
            yield {"message": {"content": mark}, "done": number == count - 1, "done_reason": "stop"}

    def ask(mark: str, count: int) -> Observable[rd.Snapshot]:
        chunks = rd.from_async_iterable(lambda: reply(mark, count))
        return chunks.pipe(rd.decode("ollama"), rd.scan_deltas())

    async def main() -> list[rd.Snapshot]:
        seen: list[rd.Snapshot] = []
        both = rx.merge(ask("a", 5), ask("b", 9)).pipe(rd.throttle_latest(0.01))
        await rd.for_each(both, seen.append, overflow="latest")
        return seen

    whole = {snapshot.text for snapshot in run(main) if snapshot.status == "complete"}
    assert whole == {"aaaaa", "bbbbbbbbb"}


def test_copies_of_a_fold_are_of_the_same_reply() -> None:
    of_one = snapshots(text(*"abc"))
    got = throttled([one for snapshot in of_one for one in (snapshot, copy.deepcopy(snapshot))])
    assert got[-1] is of_one[-1]
    assert len(got) == 2


def test_rx_map_in_front_leaves_the_choice_to_the_user() -> None:
    events = rx.from_iterable(text("a", "b", "c"))
    texts = events.pipe(rd.text_deltas(), ops.scan(lambda so_far, piece: so_far + piece, ""))
    got: list[str] = []
    texts.pipe(rd.throttle_latest(4)).subscribe(got.append)
    assert got[-1] == "abc"
