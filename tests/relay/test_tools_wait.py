"""When `run_tools` waits until the log of its stream says that a call is executing, and when it doesn't."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import Context, copy_context
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from reactivex.subject import Subject
from relay.later import Later
from support.loops import run, turns
from support.runs import call, turn

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.testing import VirtualTime

ev = rd.events
ONE = turn(call(0, "c1", "here"), reason="tool_use")
THREE = turn(*(call(n, f"c{n}", "here") for n in (1, 2, 3)), reason="tool_use")
AWAY = rd.StreamInterrupted("the server can't be reached")


class Tool:
    """A tool that notes when it is called."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.calls = 0
        self.seconds = seconds

    async def look(self, at: str) -> str:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        return "seen"

    def here(self, at: str) -> str:
        """The same without a loop."""
        self.calls += 1
        return "seen"

    def run(self, **options: Any) -> Callable[[Observable[rd.Event]], Observable[rd.Event]]:
        return rd.run_tools({"look": self.look}, **options)  # type: ignore[no-any-return]


def opened() -> tuple[Relay, Later]:
    later = Later(asyncio.get_running_loop(), ("claim", "append", "end"))
    return Relay(later, 10.0, 1_000_000), later


async def published(events: Observable[rd.Event]) -> tuple[Relay, Later]:
    """A stream whose log has begun and has no event yet."""
    relay, later = opened()
    starting = asyncio.create_task(relay.start("chat", events))
    await asyncio.sleep(1)
    later.answer(1)
    assert await starting
    await asyncio.sleep(1)
    return relay, later


def of(*events: rd.Event) -> Observable[rd.Event]:
    async def items() -> AsyncIterator[rd.Event]:
        for event in events:
            yield event

    return rd.from_async_iterable(items)


def results(events: list[rd.Event]) -> list[Any]:
    return [e.result.content for e in events if isinstance(e, ev.ToolUpdate) and e.result is not None]


async def rest(relay: Relay, later: Later, seconds: float = 1.0) -> list[rd.Event]:
    """The whole stream, when everything is answered."""
    told: list[rd.Event] = []
    reading = asyncio.create_task(rd.for_each(relay.watch("chat"), told.append))
    while not reading.done():
        later.answer()
        await asyncio.sleep(seconds)
    await reading
    return told


# Memory and pipelines without a relay: nothing waits.


def test_with_memory_a_tool_is_called_in_the_same_turn_as_without_a_relay() -> None:
    async def main() -> None:
        async with Relay.open() as relay:

            async def turns_until_called(*publish: Any) -> int:
                tool, source = Tool(), Subject[rd.Event]()
                reading = source.pipe(tool.run(), *publish).subscribe()
                for event in ONE:
                    source.on_next(event)
                count = 0
                while not tool.calls:
                    await asyncio.sleep(0)
                    count += 1
                reading.dispose()
                await turns()
                return count

            assert await turns_until_called() == await turns_until_called(relay.publish("chat")) == 1

    run(main)


def test_without_a_loop_memory_calls_a_tool_in_the_call_of_its_source() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            tool = Tool()

            def publish() -> int:
                source = Subject[rd.Event]()
                source.pipe(rd.run_tools({"look": tool.here}), relay.publish("chat")).subscribe()
                for event in ONE[:5]:
                    source.on_next(event)
                return tool.calls

            assert await asyncio.to_thread(publish) == 1

    run(main)


# A store that answers later.


def test_a_tool_is_called_when_the_log_has_its_update_and_not_before() -> None:
    async def main() -> None:
        tool = Tool()
        relay, later = await published(of(*ONE).pipe(tool.run()))
        while True:
            later.answer(1)
            await asyncio.sleep(0)
            events: list[rd.Event] = []
            reading = Relay(later.memory, 1.0, 1_000_000).watch("chat").subscribe(events.append)
            await asyncio.sleep(1)
            reading.dispose()
            written = any(isinstance(e, ev.ToolUpdate) and e.execution_status == "executing" for e in events)
            assert tool.calls == int(written)
            if written:
                break
        assert results(await rest(relay, later)) == ["seen"]

    VirtualTime().run(main())


def test_without_a_door_and_without_a_loop_a_tool_waits_too() -> None:
    async def main() -> None:
        relay, later = opened()
        tool, got = Tool(), list[Any]()

        def publish() -> None:
            pipeline = rx.of(*ONE).pipe(rd.run_tools({"look": tool.here}), relay.publish("chat"))
            pipeline.subscribe(got.append, got.append, lambda: got.append("|"))

        await asyncio.to_thread(publish)
        later.answer(1)
        while len(later.asked) < len(ONE) + 2:  # identified, executing
            await asyncio.sleep(0.001)
        assert tool.calls == 0
        later.answer(5)  # up to the end of the block
        await asyncio.sleep(0.05)
        assert tool.calls == 0
        while "|" not in got:
            later.answer()
            await asyncio.sleep(0.001)
        assert (tool.calls, results(got)) == (1, ["seen"])

    run(main)


def test_neither_the_time_limit_nor_the_duration_counts_the_waiting() -> None:
    async def main() -> None:
        tool = Tool(seconds=3)
        relay, later = await published(of(*ONE).pipe(tool.run(timeout=5)))
        await asyncio.sleep(25)  # the store is away
        assert tool.calls == 0
        told = await rest(relay, later)
        (result,) = [e.result for e in told if isinstance(e, ev.ToolUpdate) and e.result]
        assert (result.content, result.duration) == ("seen", 3.0)

    VirtualTime().run(main())


def test_a_call_that_waits_for_the_log_has_its_place_among_those_that_run() -> None:
    """Otherwise calls behind it would be `executing` in the log, and lost with the worker, before they could run."""

    async def main() -> None:
        tool = Tool(seconds=1)
        relay, later = await published(of(*THREE).pipe(tool.run(max_concurrency=2)))
        for most in (0, 2):
            kinds = [e.execution_status for e in await seen(later) if isinstance(e, ev.ToolUpdate)]
            assert (kinds.count("executing"), tool.calls) == (most, most)
            later.answer(len(later.asked))
            await asyncio.sleep(0.1)
        assert len(results(await rest(relay, later))) == 3

    async def seen(later: Later) -> list[rd.Event]:
        events: list[rd.Event] = []
        reading = Relay(later.memory, 1.0, 1_000_000).watch("chat").subscribe(events.append)
        await asyncio.sleep(0.1)
        reading.dispose()
        return events

    VirtualTime().run(main())


@pytest.mark.parametrize("end", ["cancelled", "failed", "left", "deleted"])
def test_a_tool_is_not_called_when_the_log_ends_before(end: str) -> None:
    async def main() -> None:
        tool = Tool()
        relay, later = await published(of(*ONE).pipe(tool.run()))
        assert "append" in later.asked
        if end == "cancelled":
            assert await relay.cancel("chat", "enough")
        elif end == "deleted":
            deleting = asyncio.create_task(relay.delete("chat"))
            await asyncio.sleep(1)
            assert deleting.done()
        elif end == "left":
            for task in relay._runs:
                task.cancel()
        else:
            later.fail(AWAY)
        await asyncio.sleep(1)
        later.answer()
        await asyncio.sleep(1)
        assert tool.calls == 0

    VirtualTime().run(main())


def test_a_call_that_a_person_stops_while_it_waits_for_the_log_is_not_made() -> None:
    async def main() -> None:
        tool, source = Tool(), Subject[rd.Event]()
        relay, later = await published(source.pipe(tool.run()))
        for event in ONE[:-1]:
            source.on_next(event)
        source.on_next(ev.MessageInterrupted("no"))
        source.on_completed()
        told = await rest(relay, later)
        assert (tool.calls, results(told)) == (0, ["the message was interrupted"])

    VirtualTime().run(main())


# Which log it is.


def test_calls_of_two_runs_with_one_id_wait_until_each_has_its_update_in_the_log() -> None:
    """Behind `with_run` an update is a copy, and nobody can tell which of the two it is."""

    async def main() -> None:
        tool, sources = Tool(), {"a": Subject[rd.Event](), "b": Subject[rd.Event]()}
        named = [
            source.pipe(tool.run(), rd.with_run(name), ops.delay(2.0 if name == "a" else 5.0))
            for name, source in sources.items()
        ]
        relay, later = await published(rx.merge(*named))
        for count in (0, 2):
            for source in sources.values():
                for event in ONE:
                    source.on_next(event)
            await asyncio.sleep(3)
            later.answer()  # the first run's
            await asyncio.sleep(1)
            assert tool.calls == count
            await asyncio.sleep(3)
            assert tool.calls == count
            later.answer()
            await asyncio.sleep(1)
            assert tool.calls == count + 2
        for source in sources.values():
            source.on_completed()
        assert results(await rest(relay, later)) == ["seen"] * 4

    VirtualTime().run(main())


def test_a_later_call_with_an_id_that_was_there_before_waits_for_its_own_update() -> None:
    async def main() -> None:
        tool, source = Tool(), Subject[rd.Event]()
        relay, later = await published(source.pipe(tool.run(), rd.with_run("a")))
        for count in (1, 2):
            for event in ONE:
                source.on_next(event)
            await asyncio.sleep(1)
            assert tool.calls == count - 1
            later.answer()
            await asyncio.sleep(1)
            assert tool.calls == count
        source.on_completed()
        assert results(await rest(relay, later)) == ["seen", "seen"]

    VirtualTime().run(main())


def test_a_pipeline_that_another_ones_source_sets_off_does_not_wait_for_that_log() -> None:
    async def main() -> None:
        mine, other, begin = Tool(), Tool(), Subject[int]()

        async def agent() -> AsyncIterator[rd.Event]:
            begin.on_next(1)  # another reader's pipeline is subscribed here
            for event in ONE:
                yield event

        begun = begin.pipe(ops.take(1), ops.flat_map(lambda _: rx.of(*ONE).pipe(other.run())))
        reading = asyncio.create_task(rd.for_each(begun, lambda _: None))
        await asyncio.sleep(1)
        relay, later = await published(rd.from_async_iterable(agent).pipe(mine.run()))
        await reading
        assert (mine.calls, other.calls) == (0, 1)
        await rest(relay, later)
        assert mine.calls == 1

    VirtualTime().run(main())


def test_tools_behind_publish_do_not_wait() -> None:
    async def main() -> None:
        relay, later = opened()
        tool = Tool()
        reading = asyncio.create_task(
            rd.for_each(of(*ONE).pipe(relay.publish("chat"), tool.run()), lambda _: None)
        )
        await asyncio.sleep(1)
        later.answer()
        await asyncio.sleep(1)
        later.answer()
        await asyncio.sleep(1)
        assert tool.calls == 1
        await reading

    VirtualTime().run(main())


def test_tools_in_front_of_share_events_do_not_wait() -> None:
    async def main() -> None:
        tool = Tool()
        relay, later = await published(of(*ONE).pipe(tool.run(), rd.share_events()))
        assert tool.calls == 1
        assert results(await rest(relay, later)) == ["seen"]

    VirtualTime().run(main())


def test_a_generator_behind_share_events_has_no_log_either() -> None:
    async def main() -> None:
        tool = Tool()
        agent = rd.from_async_iterable(lambda: rd.iterate(of(*ONE).pipe(tool.run())))
        relay, later = await published(agent.pipe(rd.share_events()))
        assert tool.calls == 1
        assert results(await rest(relay, later)) == ["seen"]

    VirtualTime().run(main())


@pytest.mark.parametrize("how", ["stream", "last_value", "for_each", "schedulerless", "snapshots", "texts"])
def test_what_a_generator_reads_for_itself_does_not_wait_for_its_log(how: str) -> None:
    async def main() -> None:
        tool = Tool()

        async def agent() -> AsyncIterator[rd.Event]:
            yield ev.MessageStart("m1")
            events = of(*ONE)
            if how == "stream":
                await rd.stream(events, tools={"look": tool.look})
            elif how == "last_value":
                await rd.last_value(events.pipe(tool.run(), rd.scan_deltas(), rd.to_message()))
            elif how == "for_each":
                await rd.for_each(events.pipe(tool.run()), lambda _: None)
            elif how == "schedulerless":
                asked = rx.create(lambda observer, _: events.pipe(tool.run()).subscribe(observer))
                await rd.for_each(asked, lambda _: None)
            elif how == "snapshots":
                assert [one async for one in rd.iterate(events.pipe(tool.run(), rd.scan_deltas()))]
            else:
                assert not [one async for one in rd.iterate(events.pipe(tool.run(), rd.text_deltas()))]
            yield ev.MessageFinish("stop")

        relay, later = await published(rd.from_async_iterable(agent))
        assert tool.calls == 1
        await rest(relay, later)

    VirtualTime().run(main())


@pytest.mark.parametrize("where", ["tool", "approve"])
def test_an_agent_that_a_tool_or_a_question_is_does_not_wait_within_its_call(where: str) -> None:
    async def main() -> None:
        inner = Tool()

        async def agent(at: str) -> AsyncIterator[rd.Event]:
            async for event in rd.iterate(of(*ONE).pipe(inner.run())):
                yield event

        async def look(at: str) -> str:
            return "seen"

        async def approve(_: object) -> bool:
            return len([one async for one in agent("")]) > 0

        outer: Any = (
            rd.run_tools({"look": agent})
            if where == "tool"
            else rd.run_tools({"look": look}, approve=approve)
        )
        contexts: list[Context] = []

        async def told() -> AsyncIterator[rd.Event]:
            contexts.append(copy_context())
            for event in ONE:
                yield event

        relay, later = await published(rd.from_async_iterable(told).pipe(outer))
        for _ in range(3):
            contexts[0].run(later.answer)  # a server's answer has the context of its question
            await asyncio.sleep(1)
        assert inner.calls == 1
        await rest(relay, later)

    VirtualTime().run(main())


def test_a_stream_that_a_generator_begins_has_its_own_log() -> None:
    async def main() -> None:
        tool, other = Tool(), opened()

        async def agent() -> AsyncIterator[rd.Event]:
            starting = asyncio.create_task(other[0].start("second", of(*ONE).pipe(tool.run())))
            await asyncio.sleep(1)
            other[1].answer(1)
            await starting
            yield ev.MessageStart("m1")

        relay, later = await published(rd.from_async_iterable(agent))
        await asyncio.sleep(5)
        later.answer()
        await asyncio.sleep(1)
        assert tool.calls == 0
        other[1].answer()
        await asyncio.sleep(1)
        assert tool.calls == 1
        await rest(relay, later)
        for task in other[0]._runs:
            task.cancel()

    VirtualTime().run(main())


@pytest.mark.parametrize("reader", [rd.iterate, rd.to_async_iterable, rd.to_iterable])
def test_a_tool_in_a_generator_that_reads_events_waits_for_the_log_of_what_it_yields(reader: Any) -> None:
    tool = Tool()

    async def agent() -> AsyncIterator[rd.Event]:
        if reader is rd.iterate:
            async for event in rd.iterate(of(*ONE).pipe(tool.run())):
                yield event
        else:
            async with rd.to_async_iterable(of(*ONE).pipe(tool.run())) as events:
                async for event in events:
                    yield event

    def blocking() -> Iterator[rd.Event]:
        with rd.to_iterable(of(*ONE).pipe(tool.run())) as events:
            yield from events

    async def main() -> None:
        source = rd.from_iterable(blocking) if reader is rd.to_iterable else rd.from_async_iterable(agent)
        relay, later = await published(source)
        assert tool.calls == 0
        assert results(await rest(relay, later, seconds=0.05)) == ["seen"]
        assert tool.calls == 1

    # A blocking reader's thread waits for the log, and virtual time would wait for the thread.
    asyncio.run(main()) if reader is rd.to_iterable else VirtualTime().run(main())


@pytest.mark.parametrize("moment", ["before the end", "behind it"])
def test_tools_that_outlive_their_log_are_not_called(moment: str) -> None:
    async def main() -> None:
        tool, told = Tool(), list[rd.Event]()
        go_on, ended = asyncio.Event(), asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def aside() -> None:
            await go_on.wait()
            async for event in rd.iterate(of(*ONE).pipe(tool.run())):
                told.append(event)

        async def agent() -> AsyncIterator[rd.Event]:
            tasks.append(asyncio.create_task(aside()))
            yield ev.MessageStart("m1")
            await ended.wait()

        relay, later = await published(rd.from_async_iterable(agent))
        if moment == "before the end":
            go_on.set()
            await asyncio.sleep(1)
        ended.set()
        await rest(relay, later)
        go_on.set()
        await tasks[0]
        assert tool.calls == 0
        assert results(told) == ["the log of the stream had ended before the tool could be called"]

    VirtualTime().run(main())


def test_an_update_that_never_reaches_the_log_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tool = Tool()
        without = ops.filter(lambda event: not isinstance(event, ev.ToolUpdate))
        relay, later = await published(of(*ONE).pipe(tool.run(), without))
        later.answer()
        await asyncio.sleep(5)
        assert caplog.text == ""
        await asyncio.sleep(10)
        later.answer()
        assert tool.calls == 0
        assert "doesn't reach the stream chat" in caplog.text
        assert await relay.cancel("chat")
        await rest(relay, later)

    with caplog.at_level(logging.WARNING, "rxdelta"):
        VirtualTime().run(main())


def test_a_slow_store_is_no_reason_for_that_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tool = Tool(seconds=60)
        relay, later = await published(of(*ONE).pipe(tool.run()))
        await asyncio.sleep(25)
        assert results(await rest(relay, later, 30)) == ["seen"]

    with caplog.at_level(logging.WARNING, "rxdelta"):
        VirtualTime().run(main())
    assert caplog.text == ""
