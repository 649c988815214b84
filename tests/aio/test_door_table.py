"""Reader function by output of an operator by pace: what arrives. docs/reference/slow-readers.md has the table."""

from __future__ import annotations

import asyncio
import json
import operator
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from support.loops import run

import rxdelta as rd
from rxdelta.testing import VirtualTime, sample_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

TOOLS = {"get_tides": lambda **_: "high", "get_tide_times": lambda **_: "noon"}
CHUNK = 0.001  # seconds between two chunks
SLOW = 0.02  # seconds for which a slow reader is busy with a value


def events() -> Observable[rd.Event]:
    chunks = rd.from_async_iterable(lambda: sample_chunks("tides", pause=CHUNK))
    return chunks.pipe(rd.decode("openai-chat"))


def blocks() -> Observable[rd.Block]:
    return events().pipe(rd.per_block(lambda one: one))


def snapshots() -> Observable[rd.Snapshot]:
    return events().pipe(rd.scan_deltas())


# Nothing replaces these values.
PIECES: dict[str, Callable[[], Observable[Any]]] = {
    "decode": events,
    "run_tools": lambda: events().pipe(rd.run_tools(TOOLS)),
    "share_events": lambda: events().pipe(rd.share_events()),
    "text_deltas": lambda: events().pipe(rd.text_deltas()),
    "completed_tool_calls": lambda: events().pipe(rd.completed_tool_calls()),
    "json_items": lambda: rx.of(*map(str, range(9))).pipe(
        ops.map(lambda text: rd.events.BlockStart(int(text), {"type": "text", "text": f"[{text},"})),
        rd.json_items(()),
    ),
    "group_by_block": lambda: events().pipe(rd.group_by_block()),
    "parse_ndjson": lambda: rx.of(*(json.dumps({"n": n}) + "\n" for n in range(9))).pipe(rd.parse_ndjson()),
    "to_ai_sdk": lambda: events().pipe(rd.to_ai_sdk()),
    "to_ag_ui": lambda: events().pipe(rd.to_ag_ui()),
    "to_langchain_events": lambda: events().pipe(rd.to_langchain_events()),
    "to_openai_responses": lambda: events().pipe(rd.to_openai_responses()),
    "to_anthropic_messages": lambda: events().pipe(rd.to_anthropic_messages()),
    "to_ollama": lambda: events().pipe(rd.to_ollama()),
    "to_sse": lambda: events().pipe(rd.to_ai_sdk(), rd.to_sse()),
    "to_ndjson": lambda: events().pipe(rd.to_ollama(), rd.to_ndjson()),
}  # fmt: skip
# A newer one replaces these.
STATES: dict[str, Callable[[], Observable[Any]]] = {
    "scan_deltas": snapshots,
    "per_block": blocks,
    "partial_arguments": lambda: events().pipe(rd.partial_arguments()),
    "stable_blocks": lambda: events().pipe(rd.stable_blocks()),
    "map": lambda: snapshots().pipe(ops.map(lambda snapshot: snapshot.text)),
    "scan": lambda: events().pipe(rd.text_deltas(), ops.scan(operator.add)),
}
# These have dropped values already, if the reader is slow.
NEWEST: dict[str, Callable[[], Observable[Any]]] = {
    "throttle_latest": lambda: blocks().pipe(rd.throttle_latest(3 * CHUNK)),
    "debounce_latest": lambda: blocks().pipe(rd.debounce_latest(3 * CHUNK)),
    "conflate": lambda: blocks().pipe(rd.conflate()),
    "per_block | throttle_latest": lambda: events().pipe(
        rd.per_block(lambda one: one.pipe(rd.throttle_latest(3 * CHUNK)))
    ),
    "share_latest": lambda: snapshots().pipe(rd.share_latest()),
}


async def for_each(source: Observable[Any], draw: Callable[[Any], Any], **options: Any) -> None:
    await rd.for_each(source, draw, **options)


async def iterate(source: Observable[Any], draw: Callable[[Any], Any], **options: Any) -> None:
    async for value in rd.iterate(source, **options):
        await draw(value)


async def to_async_iterable(source: Observable[Any], draw: Callable[[Any], Any], **options: Any) -> None:
    async with rd.to_async_iterable(source, **options) as values:
        async for value in values:
            await draw(value)


DOORS = [for_each, iterate, to_async_iterable]
each_door = pytest.mark.parametrize("door", DOORS)
paces = pytest.mark.parametrize("slow", [0, SLOW], ids=["quick", "slow"])


@cache
def all_of(make: Callable[[], Observable[Any]]) -> list[Any]:
    """Every value that the pipeline emits."""

    async def main() -> list[Any]:
        got: list[Any] = []
        ended = asyncio.Event()
        make().subscribe(got.append, print, ended.set)
        await ended.wait()
        return got

    return VirtualTime().run(main())


def read(door: Any, make: Callable[[], Observable[Any]], slow: float, **options: Any) -> list[Any]:
    got: list[Any] = []

    async def draw(value: Any) -> None:
        got.append(value)
        if slow:
            await asyncio.sleep(slow)

    VirtualTime().run(door(make(), draw, **options))
    return got


def thing(value: Any) -> object:
    return getattr(value, "call_id", None) or getattr(value, "key", None)


def last_of_each(values: list[Any]) -> dict[object, Any]:
    return {thing(value): value for value in values}


def comparable(values: list[Any]) -> list[Any]:
    return [re.sub(r"[0-9a-f]{8}[-0-9a-f]+", "#", repr(value)) for value in values]  # ids that are made up


@each_door
@paces
@pytest.mark.parametrize("name", [*PIECES, *STATES, "share_latest"])
def test_by_default_every_value_arrives(name: str, slow: float, door: Any) -> None:
    make = {**PIECES, **STATES, **NEWEST}[name]
    assert comparable(read(door, make, slow)) == comparable(all_of(make))


@each_door
@paces
@pytest.mark.parametrize("name", NEWEST)
@pytest.mark.parametrize("overflow", ["block", "latest", "buffer"])
def test_what_keeps_the_newest_keeps_the_last_of_each(
    name: str, slow: float, door: Any, overflow: Any
) -> None:
    expected = last_of_each(all_of(snapshots if name == "share_latest" else blocks))
    assert last_of_each(read(door, NEWEST[name], slow, overflow=overflow)) == expected


@each_door
@paces
@pytest.mark.parametrize("name", STATES)
def test_a_reader_of_the_latest_gets_the_last_of_each(name: str, slow: float, door: Any) -> None:
    every, got = all_of(STATES[name]), read(door, STATES[name], slow, overflow="latest")
    assert last_of_each(got) == last_of_each(every)
    if slow:
        assert len(got) < len(every)


@pytest.mark.parametrize("name", PIECES)
def test_a_reader_of_the_latest_is_refused_what_nothing_replaces(name: str) -> None:
    for door in (rd.to_async_iterable, rd.to_iterable):
        with pytest.raises(rd.InvalidValueError, match="which no later value contains"):
            door(PIECES[name](), overflow="latest")
    for door in (for_each, iterate):
        with pytest.raises(rd.InvalidValueError, match="which no later value contains"):
            read(door, PIECES[name], 0, overflow="latest")


@pytest.mark.parametrize("name", [*PIECES, *STATES, *NEWEST])
def test_the_door_without_asyncio(name: str) -> None:
    """Its reader is on another thread, so this test waits in real time, but only now and then."""
    make = {**PIECES, **STATES, **NEWEST}[name]
    loops: list[Any] = []

    async def main() -> None:
        def read_all() -> list[Any]:
            with rd.to_iterable(make()) as values:
                return list(values)

        loops.append(await asyncio.to_thread(read_all))

    run(main)
    (got,) = loops
    if name in NEWEST and name != "share_latest":
        assert last_of_each(got) == last_of_each(all_of(blocks))
    else:
        assert comparable(got) == comparable(all_of(make))


@each_door
def test_a_key_says_what_the_latest_is_of(door: Any) -> None:
    got = read(door, PIECES["decode"], SLOW, overflow="latest", key=type)
    every = all_of(PIECES["decode"])
    assert {type(event): event for event in got} == {type(event): event for event in every}
    assert len(got) < len(every)


# A slow reader, and an operator that could still replace what it emits.


def pictures(*behind: Any, overflow: Any = "block", pace: Any = None) -> tuple[list[int], float]:
    """What a reader draws that takes 60 ms, of a reply of one second; and how long after its end the last is drawn."""
    lengths: list[int] = []
    times: list[float] = []

    async def chunks() -> Any:
        for _ in range(100):
            await asyncio.sleep(0.01)
            yield rd.MessageDelta(content="x")
        times.append(asyncio.get_running_loop().time())

    async def draw(text: str) -> None:
        lengths.append(len(text))
        await asyncio.sleep(0.06)

    async def main() -> None:
        texts = rd.from_async_iterable(chunks).pipe(
            rd.scan_deltas(), pace or rd.throttle_latest(0.05), ops.map(lambda snapshot: snapshot.text)
        )
        await rd.for_each(texts.pipe(*behind) if behind else texts, draw, overflow=overflow)
        times.append(asyncio.get_running_loop().time())

    VirtualTime().run(main())
    assert lengths[-1] == 100
    return lengths, times[1] - times[0]


@pytest.mark.parametrize("overflow", ["block", "latest"])
@pytest.mark.parametrize(
    "pace",
    [rd.throttle_latest(0.05), rd.conflate(), rd.debounce_latest(0.005, max_wait=0.05)],
    ids=["throttle", "conflate", "debounce"],
)
def test_a_picture_does_not_fall_behind_a_slow_draw(pace: Any, overflow: Any) -> None:
    lengths, late = pictures(pace=pace, overflow=overflow)
    assert late <= 0.121  # the drawing that was going on, and the last
    assert lengths == sorted(set(lengths))


def test_it_does_not_fall_behind_through_a_shared_source_either() -> None:
    _, late = pictures(rd.share_latest())
    assert late <= 0.121


def test_a_queue_that_was_asked_for_is_filled() -> None:
    lengths, late = pictures(overflow="buffer")
    assert late > 0.121
    assert len(lengths) > 18


def test_a_draw_that_blocks_the_loop_gets_the_newest_next() -> None:
    virtual = VirtualTime()
    seen: list[int] = []

    async def chunks() -> Any:
        for _ in range(100):
            await asyncio.sleep(0.01)
            yield rd.MessageDelta(content="x")

    def draw(snapshot: rd.Snapshot) -> None:
        seen.append(len(snapshot.text))
        virtual.advance(0.06)

    async def main() -> None:
        paced = rd.from_async_iterable(chunks).pipe(rd.scan_deltas(), rd.throttle_latest(0.05))
        await rd.for_each(paced, draw)

    virtual.run(main())
    assert seen[-1] == 100


def test_each_panel_that_is_paced_by_itself_gets_its_turn() -> None:
    """One reader, several operators that hold something back for it."""
    drawn: list[rd.Block] = []

    async def draw(one: rd.Block) -> None:
        drawn.append(one)
        await asyncio.sleep(SLOW)

    async def main() -> None:
        panels = events().pipe(rd.per_block(lambda one: one.pipe(rd.throttle_latest(CHUNK))))
        await rd.for_each(panels, draw)

    VirtualTime().run(main())
    assert last_of_each(drawn) == last_of_each(all_of(blocks))


def test_a_plain_subscriber_is_never_waited_for() -> None:
    got: list[str] = []
    rx.of("a", "b", "c").pipe(rd.throttle_latest(1)).subscribe(got.append)
    assert got == ["a", "c"]


def test_a_reader_that_does_not_read_gets_what_is_newest_when_it_does() -> None:
    async def main() -> list[int]:
        async def numbers() -> Any:
            for number in range(50):
                await asyncio.sleep(0.01)
                yield number
            await asyncio.sleep(9)

        throttled = rd.from_async_iterable(numbers).pipe(rd.throttle_latest(0.05))
        async with rd.to_async_iterable(throttled) as values:
            await asyncio.sleep(0.3)
            return [await anext(values), await anext(values)]

    first, second = VirtualTime().run(main())
    assert first >= 27
    assert second > first


def test_two_readers_of_a_shared_source_are_served_as_the_idle_one_asks() -> None:
    async def main() -> tuple[list[int], list[int]]:
        async def numbers() -> Any:
            for number in range(100):
                await asyncio.sleep(0.01)
                yield number

        shared = rd.from_async_iterable(numbers).pipe(rd.throttle_latest(0.02), rd.share_latest())
        quick: list[int] = []
        slow: list[int] = []

        async def draw_slowly(number: int) -> None:
            slow.append(number)
            await asyncio.sleep(0.5)

        await asyncio.gather(
            rd.for_each(shared, quick.append), rd.for_each(shared, draw_slowly, overflow="latest")
        )
        return quick, slow

    quick, slow = VirtualTime().run(main())
    assert len(quick) >= 45
    assert slow[-1] == 99
    assert len(slow) <= 4


def share_by_rx(source: Any) -> Any:
    return source.pipe(ops.share())


@pytest.mark.parametrize("share", [rd.share_latest(unread="keep"), share_by_rx], ids=["share_latest", "rx"])
def test_what_is_held_for_a_reader_goes_out_when_it_leaves(share: Any) -> None:
    passed: list[int] = []
    numbers = Subject[int]()
    shared = numbers.pipe(rd.conflate(), ops.do_action(passed.append), share)

    async def main() -> None:
        async with rd.to_async_iterable(shared):
            if share is share_by_rx:
                shared.subscribe()
            numbers.on_next(1)
            numbers.on_next(2)
            assert passed == []
        assert passed == [2]

    VirtualTime().run(main())


def test_what_is_held_for_a_reader_goes_out_to_a_subscriber_that_is_never_busy() -> None:
    got: list[int] = []
    numbers = Subject[int]()
    shared = numbers.pipe(rd.conflate(), rd.share_latest())

    async def main() -> None:
        async with rd.to_async_iterable(shared):
            numbers.on_next(1)
            shared.subscribe(got.append)
            assert got == [1]

    VirtualTime().run(main())
