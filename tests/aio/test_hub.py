"""What is behind `rd.stream`: what a delta costs, what is kept for a slow reader, and who calls whom on which thread."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from support.cost import lines_run
from support.loops import Stream, run, turns

import rxdelta as rd
from rxdelta.aio.reading import Latch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

ev = rd.events


def chunk(text: str, *, last: bool = False) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop" if last else None}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}


async def words(count: int, *, a_turn_each: bool = False) -> AsyncIterator[Any]:
    for number in range(count):
        if a_turn_each:
            await asyncio.sleep(0)
        yield chunk(f"{number} ")
    yield chunk("", last=True)


# What a delta costs, as a multiple of a loop by hand.


async def by_hand(source: Any) -> None:
    decoder, fold = rd.providers.decoder("openai-chat"), rd.Fold(choice=0)
    async for one in source:
        for event in decoder.decode(one):
            fold.step(event)


async def looped(source: Any) -> None:
    async with rd.stream(source, "openai-chat") as reply:
        async for _ in reply:
            pass


async def awaited(source: Any) -> None:
    await rd.stream(source, "openai-chat")


async def piped(source: Any) -> None:
    snapshots = rd.from_async_iterable(source).pipe(rd.decode("openai-chat"), rd.scan_deltas())
    await rd.for_each(snapshots, lambda _: None)


def lines_a_delta(read: Callable[[Any], Any], *, a_turn_each: bool) -> float:
    def act(count: int) -> int:
        return lines_run(lambda: asyncio.run(read(words(count, a_turn_each=a_turn_each))))

    act(1)
    return (act(200) - act(100)) / 100


@pytest.mark.parametrize("read", [looped, awaited, piped])
@pytest.mark.parametrize(("a_turn_each", "most"), [(False, 2.0), (True, 2.5)])
def test_a_delta_costs_little_more_than_by_hand(read: Any, a_turn_each: bool, most: float) -> None:
    """Counted in lines of Python; they once were seven times as many."""
    hand = lines_a_delta(by_hand, a_turn_each=a_turn_each)
    assert lines_a_delta(read, a_turn_each=a_turn_each) <= most * hand


def test_what_nobody_looks_at_is_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    step = rd.Fold.step

    def counting(fold: Any, event: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(fold, event)

    monkeypatch.setattr(rd.Fold, "step", counting)

    async def main() -> None:
        nonlocal steps
        message = await rd.stream(words(2000), "openai-chat")
        assert message.text == "".join(f"{number} " for number in range(2000))
        assert steps < 100
        steps = 0
        async with rd.stream(words(2000), "openai-chat") as reply:
            seen = [snapshot async for snapshot in reply]
        assert seen[-1].to_message() == reply.message
        assert steps < 400

    run(main)


# What is kept.


def kept(kind: type) -> int:
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


def test_nothing_waits_for_a_slow_loop_but_the_newest() -> None:
    async def main() -> None:
        async with rd.stream(words(2000), "openai-chat") as reply:
            looks = aiter(reply)
            await anext(looks)
            before = kept(rd.Snapshot), kept(ev.TextDelta)
            await reply.result()
            assert kept(rd.Snapshot) <= before[0] + 2
            assert kept(ev.TextDelta) <= before[1] + 2
            assert [snapshot.status async for snapshot in looks] == ["complete"]

    run(main)


def test_a_turn_needs_no_queue_until_a_step_has_to_wait() -> None:
    serial, got = rd.building.Serial(), list[str]()

    def queues() -> int:
        return sum(isinstance(one, deque) for one in gc.get_referents(serial))

    for text in "ab":
        serial.run(got.append, text)
    assert queues() == 0
    serial.put(got.append, "c")
    assert queues() == 1
    serial.flush()
    assert got == ["a", "b", "c"]


def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    async def main() -> None:
        latch = Latch()
        waiting = [asyncio.create_task(latch.wait(asyncio.get_running_loop(), 0)) for _ in range(3)]
        await turns()
        assert len(latch.waiting) == 3
        waiting[1].cancel()
        await turns()
        assert len(latch.waiting) == 2
        latch.wait_here(0, 0.001)
        assert len(latch.waiting) == 2
        latch.changed()
        assert latch.waiting == []
        await asyncio.gather(waiting[0], waiting[2])
        await latch.wait(asyncio.get_running_loop(), 0)  # not again for a change that has been made

    run(main)


def test_a_change_wakes_readers_on_other_loops_and_threads() -> None:
    latch = Latch()
    woken: list[str] = []

    def here() -> None:
        latch.wait_here(0, 30)
        woken.append("thread")

    async def elsewhere() -> None:
        await latch.wait(asyncio.get_running_loop(), 0)
        woken.append("loop")

    readers = [threading.Thread(target=here), threading.Thread(target=lambda: asyncio.run(elsewhere()))]
    for reader in readers:
        reader.start()
    while len(latch.waiting) < 2:
        pass
    latch.changed()
    for reader in readers:
        reader.join(30)
    assert sorted(woken) == ["loop", "thread"]


@pytest.mark.parametrize("end", ["error", "cut off", "left", "stopped"])
def test_what_was_not_folded_yet_is_there_at_every_end(end: str) -> None:
    async def main() -> None:
        pieces = [f"{number} " for number in range(50)]
        error = ConnectionResetError() if end == "error" else None
        source: Stream[Any] = Stream(*map(chunk, pieces), hold=end in ("left", "stopped"), end=error)
        async with rd.stream(source, "openai-chat") as reply:
            while source.given < len(pieces):
                await asyncio.sleep(0)
            await turns()
            if end == "stopped":
                reply.stop()
            if end != "left":
                with pytest.raises(rd.RxDeltaError):
                    await reply.result()
        with pytest.raises(rd.RxDeltaError) as caught:
            _ = reply.message
        assert caught.value.snapshot is reply.snapshot
        assert reply.snapshot.text == "".join(pieces)

    run(main)


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), st.integers(0, 400), st.booleans()), max_size=30),
    st.booleans(),
)
def test_a_limit_ends_it_at_the_same_event_whoever_looks_when(
    sizes: list[tuple[int, int, bool]], is_looped: bool
) -> None:
    limits = rd.Limits(block_chars=2000)
    events: list[tuple[rd.Event, bool]] = [(ev.MessageStart(id="m"), False)]
    events += [
        (ev.BlockStart(index, {"type": kind}), False) for index, kind in enumerate(["text", "reasoning"])
    ]
    events += [
        (ev.ReasoningDelta(index, "r" * size) if index else ev.TextDelta(index, "t" * size), turn)
        for index, size, turn in sizes
    ]
    fold, failed = rd.Fold(choice=0, limits=limits), False
    for event, _ in events:
        try:
            fold.step(event)
        except rd.errors.LimitExceededError:
            failed = True
            break

    async def source() -> AsyncIterator[Any]:
        for event, turn in events:
            if turn:
                await asyncio.sleep(0)
            yield event

    errors: list[rd.RxDeltaError] = []

    async def main() -> None:
        async with rd.stream(source(), limits=limits) as reply:
            try:
                if is_looped:
                    async for _ in reply:
                        pass
                else:
                    await reply.result()
            except rd.RxDeltaError as error:
                errors.append(error)
            if failed:
                assert isinstance(errors[0], rd.errors.LimitExceededError)
                assert errors[0].snapshot is reply.snapshot
            else:
                assert not any(isinstance(error, rd.errors.LimitExceededError) for error in errors)
            late = [event async for event in rd.iterate(reply.events.pipe(ops.catch(rx.empty())))]
        assert reply.snapshot.to_dict() == fold.snapshot.to_dict()
        again = rd.Fold(choice=0)
        for event in late:
            again.step(event)
        assert again.snapshot.to_dict() == fold.snapshot.to_dict()

    asyncio.run(main())


# A fold that refuses the events.


def two_messages() -> list[rd.Event]:
    return [
        *(
            ev.MessageStart(id="a"),
            ev.BlockStart(0, {"type": "text", "text": "one"}),
            ev.MessageFinish("stop"),
        ),
        *(
            ev.MessageStart(id="b"),
            ev.BlockStart(0, {"type": "text", "text": "two"}),
            ev.MessageFinish("stop"),
        ),
    ]


@pytest.mark.parametrize("late", [False, True])
def test_a_conversation_is_no_reply_and_its_events_go_on_for_who_reads_them(late: bool) -> None:
    async def main() -> None:
        go_on, last = asyncio.Event(), asyncio.Event()

        async def source() -> AsyncIterator[Any]:
            *events, end = two_messages()
            await go_on.wait()
            for event in events:
                yield event
            await last.wait()
            yield end

        async with rd.stream(source()) as reply:

            async def read() -> list[Any]:
                return [event async for event in rd.iterate(reply.events)]

            reading = asyncio.create_task(read())
            await turns()
            go_on.set()
            if late:
                await turns()
            seen: list[rd.Snapshot] = []
            with pytest.raises(rd.ProtocolError) as caught:
                async for snapshot in reply:
                    seen += [snapshot]
            assert seen[-1].text == "one"
            assert caught.value.snapshot is seen[-1]
            with pytest.raises(rd.ProtocolError):
                await reply.result()
            last.set()
            events = await reading
            assert [event.id for event in events if isinstance(event, ev.MessageStart)] == ["a", "b"]
            assert events[-1] == two_messages()[-1]

    run(main)


def test_a_conversation_whose_events_nobody_reads_is_closed() -> None:
    async def main() -> None:
        source: Stream[Any] = Stream(*two_messages()[:4], hold=True)
        async with rd.stream(source) as reply:
            with pytest.raises(rd.ProtocolError):
                await reply.result()
            await turns()
            assert source.closed == 1

    run(main)


# A blocking source in a blocking block.


def test_a_blocking_source_goes_on_when_its_chunk_has_been_taken() -> None:
    seen: list[str] = []

    def source() -> Iterator[Any]:
        for number in range(100):
            yield chunk(f"{number} ")
            seen.append(reply.snapshot.text)
            if number == 50:
                reply.emit(ev.Custom("half", number))
        yield chunk("", last=True)

    with rd.stream(source) as reply:
        message = reply.result()
    assert seen == ["".join(f"{number} " for number in range(end)) for end in range(1, 101)]
    assert [event.name for event in message.custom_events] == ["half"]


def test_a_blocking_source_is_read_in_turns_of_its_thread_and_not_of_the_loop() -> None:
    threads: set[str] = set()

    class Noting(dict[str, Any]):
        def get(self, *key: Any) -> Any:
            threads.add(threading.current_thread().name)
            return super().get(*key)

    with rd.stream([Noting(chunk("Hi")), chunk("", last=True)], "openai-chat") as reply:
        assert reply.result().text == "Hi"
    assert threads == {"rxdelta-source"}


def test_who_reads_its_events_is_called_on_the_loop() -> None:
    go_on = threading.Event()
    loops: list[bool] = []

    def source() -> Iterator[Any]:
        yield chunk("Hel")
        go_on.wait(30)
        yield chunk("lo")
        yield chunk("", last=True)

    with rd.stream(source) as reply:
        for snapshot in reply:
            if snapshot.text == "Hel":
                break

        def note(_: rd.Event) -> None:
            loops.append(
                threading.current_thread().name == "rxdelta-loop" and bool(asyncio.get_running_loop())
            )

        subscription = reply.events.subscribe(note)
        loops.clear()  # what had come already was told here
        go_on.set()
        assert reply.result().text == "Hello"
        subscription.dispose()
    assert loops
    assert all(loops)


def test_stopping_while_the_source_emits_takes_no_more_of_it() -> None:
    def source() -> Iterator[Any]:
        number = 0
        while True:
            yield chunk(f"{number} ")
            number += 1

    with rd.stream(source) as reply:
        for snapshot in reply:
            if len(snapshot.text) > 100:
                reply.stop("enough")
                break
        stopped = reply.snapshot
        assert stopped.status == "interrupted"
        assert list(reply)[-1] is stopped
    assert reply.snapshot is stopped


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException])
def test_what_breaks_the_thread_of_a_blocking_source_ends_the_reply(kind: type[BaseException]) -> None:
    def loads(_: str) -> Any:
        raise kind("broken")

    with rd.stream([b'{"choices": []}\n'], "openai-chat", loads=loads) as reply:
        with pytest.raises(rd.StreamInterrupted):
            reply.result()
        with pytest.raises(rd.StreamInterrupted):
            list(reply)
