"""The readers, the tools and the relay on other loops than asyncio's usual one, and in anyio's scopes and groups."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from support.loops import Stream, turns
from support.replies import OPENAI

import rxdelta as rd
from rxdelta.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")

TEXT = "Let me look."
EVENTS = rd.decode("openai-chat")
SECONDS = 30


@pytest.fixture(params=["the usual", "the selector's", "the proactor's", "uvloop's"])
def run(request: pytest.FixtureRequest) -> Any:
    """What `main()` returns on such a loop, where no task may be left behind."""
    factory: Any = asyncio.new_event_loop
    if request.param == "the selector's":
        factory = asyncio.SelectorEventLoop
    elif request.param == "the proactor's":
        if sys.platform != "win32":
            pytest.skip("Windows has it")
        factory = asyncio.ProactorEventLoop
    elif request.param == "uvloop's":
        factory = pytest.importorskip("uvloop").new_event_loop

    async def watched(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        result = await asyncio.wait_for(main(), SECONDS)
        await turns()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(watched(main))

    return run


def held() -> Stream[Any]:
    return Stream(*OPENAI[:3], hold=True)


async def shown(reply: rd.types.Reply) -> None:
    while reply.snapshot.text != TEXT:
        await asyncio.sleep(0)


def events(source: Any) -> Any:
    return rd.from_async_iterable(lambda: source).pipe(EVENTS)


async def each(snapshots: Any) -> str:
    texts: list[str] = []
    await rd.for_each(snapshots, lambda snapshot: texts.append(snapshot.text))
    return texts[-1]


async def iterated(snapshots: Any) -> str:
    return [snapshot.text async for snapshot in rd.iterate(snapshots)][-1]


async def entered(snapshots: Any) -> str:
    async with rd.to_async_iterable(snapshots) as values:
        return [snapshot.text async for snapshot in values][-1]


async def last(snapshots: Any) -> str:
    return (await rd.last_value(snapshots)).text


async def on_a_thread(snapshots: Any) -> str:
    def read() -> str:
        with rd.to_iterable(snapshots) as values:
            return [snapshot.text for snapshot in values][-1]

    return await asyncio.to_thread(read)


@pytest.mark.parametrize("reader", [each, iterated, entered, last, on_a_thread])
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_each_reader_gets_the_whole_reply(run: Any, reader: Any, kind: str) -> None:
    async def main() -> str:
        chunks: Any = (
            rd.from_iterable(OPENAI) if kind == "plain" else rd.from_async_iterable(lambda: Stream(*OPENAI))
        )
        got: str = await reader(chunks.pipe(EVENTS, rd.scan_deltas()))
        return got

    assert run(main) == TEXT


def test_a_tool_that_works_on_a_thread_and_one_that_awaits(run: Any) -> None:
    def on_a_thread(at: str) -> str:
        return f"blue {at}"

    async def awaiting(at: str) -> str:
        await asyncio.sleep(0.01)
        return f"green {at}"

    async def main() -> list[Any]:
        found = []
        for look in (on_a_thread, awaiting):
            async with rd.stream(Stream(*OPENAI), tools={"look": look}) as reply:
                message = await reply.result()
            found += [call.result.content for call in message.tool_calls if call.result]
        return found

    assert run(main) == ["blue sea", "green sea"]


def test_chunks_of_a_thread_that_waits_arrive_one_by_one(run: Any) -> None:
    async def main() -> list[str]:
        asked = asyncio.Event()
        loop, texts = asyncio.get_running_loop(), []

        def chunks() -> Iterator[Any]:
            yield from OPENAI[:2]
            asyncio.run_coroutine_threadsafe(asked.wait(), loop).result(SECONDS)
            yield from OPENAI[2:]

        async with rd.stream(chunks()) as reply:
            async for snapshot in reply:
                texts += [snapshot.text]
                if snapshot.text:
                    asked.set()
        return texts

    assert {"Let me ", TEXT} <= set(run(main))


def test_a_timeout_keeps_the_reply_so_far_and_closes_the_request(run: Any) -> None:
    async def main() -> None:
        source = held()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), rd.stream(source) as reply:
                await reply.result()
        assert (reply.snapshot.text, source.closed) == (TEXT, 1)

    run(main)


def test_a_task_that_is_cancelled_closes_the_request(run: Any) -> None:
    async def main() -> None:
        source = held()
        task = asyncio.create_task(rd.last_value(events(source)))
        while source.given < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await turns()
        assert source.closed == 1

    run(main)


def test_a_relay_goes_on_behind_its_readers(run: Any) -> None:
    async def main() -> str:
        async with Relay.open() as relay:
            await relay.start("chat", events(Stream(*OPENAI)))
            assert await rd.first_value(relay.watch("chat"))  # and leaves
            return (await rd.last_value(relay.watch("chat").pipe(rd.scan_deltas()))).text

    assert run(main) == TEXT


# anyio on asyncio: its scopes cancel again at each `await` until the task has left.


def anyio_run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def watched() -> None:
        await main()
        await turns()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    pytest.importorskip("anyio").run(watched, backend="asyncio")


@pytest.mark.parametrize("reader", [each, iterated, entered, last])
def test_a_scope_of_anyio_that_ends_closes_the_request_of_a_reader(reader: Any) -> None:
    async def main() -> None:
        import anyio

        source = held()
        with anyio.move_on_after(0.05) as scope:
            await reader(events(source).pipe(rd.scan_deltas()))
        await turns()
        assert (scope.cancelled_caught, source.closed) == (True, 1)

    anyio_run(main)


def test_fail_after_of_anyio_keeps_the_reply_so_far() -> None:
    async def main() -> None:
        import anyio

        source = held()
        with pytest.raises(TimeoutError), anyio.fail_after(0.05):
            async with rd.stream(source) as reply:
                await reply.result()
        await turns()  # the scope cancels the wait for the close, too
        assert (reply.snapshot.text, source.closed) == (TEXT, 1)

    anyio_run(main)


def test_a_task_group_of_anyio_that_fails_takes_its_readers_along() -> None:
    async def main() -> None:
        import anyio

        source = held()
        replies = []

        async def read() -> None:
            async with rd.stream(source) as reply:
                replies.append(reply)
                await reply.result()

        with pytest.raises(ExceptionGroup) as failed:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                while not replies:
                    await asyncio.sleep(0)
                await shown(replies[0])
                raise ZeroDivisionError
        assert [type(error) for error in failed.value.exceptions] == [ZeroDivisionError]
        assert (replies[0].snapshot.text, source.closed) == (TEXT, 1)

    anyio_run(main)


def test_stream_says_what_to_do_under_trio_and_can_be_read_on_a_thread_there() -> None:
    trio = pytest.importorskip("trio")

    def read() -> str:
        with rd.stream(OPENAI) as reply:
            return reply.result().text

    async def main() -> str:
        with pytest.raises(rd.InvalidValueError, match=r"needs a running asyncio loop: trio runs this task"):
            async with rd.stream(Stream(*OPENAI)):
                pass
        with pytest.raises(rd.InvalidValueError, match=r"needs a running asyncio loop: trio runs this task"):
            await rd.stream(Stream(*OPENAI))
        got: str = await trio.to_thread.run_sync(read)
        return got

    assert trio.run(main) == TEXT
