"""`rd.stream`: an application's own events, yielded among the chunks or added to a running reply."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support.loops import Stream, run
from support.replies import OPENAI

import rxdelta as rd

ev = rd.events

SEARCHING = ev.Custom("status", "Searching", "s")
ANSWERING = ev.Custom("status", "Answering", "s")
DOCUMENTS = ev.Custom("documents", [{"title": "Tides"}])
TITLE = ev.Custom("title", "The tides")
PASSING = ev.Custom("progress", 0.5, transient=True)


async def answer() -> AsyncIterator[Any]:
    """What a program with retrieval gives: its own events, the provider's chunks, and its own behind them."""
    yield SEARCHING
    await asyncio.sleep(0)
    yield DOCUMENTS
    yield ANSWERING
    yield PASSING
    for chunk in OPENAI:
        yield chunk
    yield TITLE


def answer_here() -> Iterator[Any]:
    yield from (SEARCHING, DOCUMENTS, ANSWERING, PASSING, *OPENAI, TITLE)


def answer_in_bytes() -> Iterator[Any]:
    yield from (SEARCHING, DOCUMENTS, ANSWERING, PASSING)
    for chunk in OPENAI:
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    yield TITLE


async def plain() -> rd.Message:
    return await rd.stream(Stream(*OPENAI))


def without(message: rd.Message) -> dict[str, Any]:
    return {name: value for name, value in message.to_dict().items() if name != "custom"}


@pytest.mark.parametrize("source", [answer, answer_here, answer_in_bytes])
@pytest.mark.parametrize("wire_format", ["auto", "openai-chat"])
def test_a_source_may_yield_them_among_its_chunks(source: Any, wire_format: str) -> None:
    async def main() -> None:
        if source is answer_in_bytes and wire_format != "auto":
            return
        async with rd.stream(source(), wire_format) as reply:
            seen = [event async for event in rd.iterate(reply.events)]
            late = [event async for event in rd.iterate(reply.events)]
        own = [event for event in seen if isinstance(event, ev.Custom)]
        assert own == [SEARCHING, DOCUMENTS, ANSWERING, PASSING, TITLE]
        assert seen[:4] == own[:4]
        assert [event for event in late if isinstance(event, ev.Custom)] == [ANSWERING, DOCUMENTS, TITLE]
        assert reply.message.custom_events == (ANSWERING, DOCUMENTS, TITLE)
        assert without(reply.message) == without(await plain())

    run(main)


def test_a_snapshot_shows_them_before_the_provider_has_said_anything() -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        async def source() -> AsyncIterator[Any]:
            yield SEARCHING
            await go_on.wait()
            for chunk in OPENAI:
                yield chunk

        async with rd.stream(source()) as reply:
            async for snapshot in reply:
                assert snapshot.custom_events == (SEARCHING,)
                if not go_on.is_set():
                    assert not snapshot.blocks
                go_on.set()
        assert "".join([piece async for piece in reply.text_deltas]) == reply.message.text

    run(main)


def test_one_is_added_to_a_running_reply_where_it_is_emitted() -> None:
    async def main() -> None:
        source = Stream(*OPENAI, hold=True)
        async with rd.stream(source) as reply:
            reply.emit(SEARCHING)
            while "look." not in reply.snapshot.text:
                await asyncio.sleep(0)
            reply.emit(DOCUMENTS)
            reply.emit(PASSING)
            assert reply.snapshot.custom_events == (SEARCHING, DOCUMENTS)
            reply.stop()
            reply.emit(TITLE)  # a reply that has ended isn't changed
            events = [event async for event in rd.iterate(reply.events)]
        assert reply.snapshot.custom_events == (SEARCHING, DOCUMENTS)
        assert events.index(SEARCHING) < events.index(DOCUMENTS)
        assert PASSING not in events

    run(main)


def test_it_is_added_while_only_tools_run_and_by_a_tool() -> None:
    async def main() -> None:
        emitted: list[rd.Event] = []

        async def look(at: str) -> AsyncIterator[Any]:
            yield ev.Custom("look", at)
            reply.emit(DOCUMENTS)
            yield "seen"

        async with rd.stream(Stream(*OPENAI), tools={"look": look}) as reply:
            emitted = [event async for event in rd.iterate(reply.events) if isinstance(event, ev.Custom)]
        assert emitted == [ev.Custom("look", "sea"), DOCUMENTS]
        assert reply.message.custom_events == tuple(emitted)
        assert reply.snapshot.tool_calls[0].result.content == "seen"  # type: ignore[union-attr]

    name = next(call.name for call in asyncio.run(plain()).tool_calls)
    assert name == "look"
    run(main)


def test_from_any_thread() -> None:
    numbers = range(100)

    def say(reply: rd.types.BlockingReply, name: str) -> None:
        for number in numbers:
            reply.emit(ev.Custom(name, number))

    chunks: list[Any] = OPENAI[:2]
    go_on = threading.Event()

    def source() -> Iterator[Any]:
        yield from chunks
        go_on.wait()
        yield from OPENAI[2:]

    with rd.stream(source) as reply:
        threads = [threading.Thread(target=say, args=(reply, name)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        go_on.set()
        message = reply.result()
    for name in "ab":
        assert [event.data for event in message.custom_events if event.name == name] == [*numbers]
    assert message.text == asyncio.run(plain()).text


def test_they_are_no_sign_of_the_providers_life() -> None:
    async def main() -> None:
        async def source() -> AsyncIterator[Any]:
            while True:
                yield PASSING
                await asyncio.sleep(0.01)

        with pytest.raises(rd.errors.StallTimeoutError):
            await rd.stream(source(), timeout=0.05)

    run(main)


def test_what_is_none_is_refused() -> None:
    async def main() -> None:
        async with rd.stream(Stream(*OPENAI)) as reply:
            with pytest.raises(rd.InvalidValueError, match="must be an events"):
                reply.emit(ev.MessageFinish("stop"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            await reply.result()

    run(main)
