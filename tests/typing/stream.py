"""What the checkers infer of `rd.stream`. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, assert_type

from reactivex import Observable, compose, operators as ops

import rxdelta as rd


def draw(snapshot: rd.Snapshot) -> None: ...


async def ask(
    create: Callable[[], Awaitable[AsyncIterator[dict[str, Any]]]], events: Observable[rd.Event]
) -> rd.Message:
    async with rd.stream(create) as reply:
        assert_type(reply, rd.types.Reply)
        async for snapshot in reply:
            assert_type(snapshot, rd.Snapshot)
            draw(snapshot)
        async for piece in reply.text_deltas:
            assert_type(piece, str)
        assert_type(reply.events, Observable[rd.Event])
        assert_type(reply.snapshot, rd.Snapshot)
        assert_type(await reply.result(), rd.Message)
        reply.emit(rd.events.Custom("status", "Reading"))
        reply.stop("enough")
    assert_type(reply.message, rd.Message)
    assert_type(await rd.stream(events, every=0.05, timeout=30, tools={"add": max}), rd.Message)
    tools = rd.run_tools({"add": max}, max_concurrency=2)
    assert_type(
        await rd.stream(create, through=[rd.smooth(), ops.take_while(is_text)], tools=tools), rd.Message
    )
    rd.stream(
        create, decode=rd.decode("auto", reasoning_tags=True), through=(rd.stall_timeout(30), ops.take(9))
    )
    rd.stream(create, decode=decoded, through=[compose(rd.compact_deltas(0.05), rd.smooth())])
    return await rd.stream(create())


def is_text(event: rd.Event) -> bool:
    return isinstance(event, rd.events.TextDelta)


def decoded(source: Observable[Any]) -> Observable[rd.Event]:
    return source.pipe(rd.parse_sse(), rd.decode("openai-chat"))


# What the doors return fits standard types.


def asked(chunks: list[dict[str, Any]]) -> AbstractAsyncContextManager[rd.types.Reply]:
    return rd.stream(chunks)


def asked_blocking(chunks: list[dict[str, Any]]) -> AbstractContextManager[rd.types.BlockingReply]:
    return rd.stream(chunks)


def answer(chunks: list[dict[str, Any]]) -> Awaitable[rd.Message]:
    return rd.stream(chunks)


def read(events: Observable[rd.Event]) -> AbstractAsyncContextManager[AsyncIterator[rd.Event]]:
    return rd.to_async_iterable(events)


def read_blocking(events: Observable[rd.Event]) -> AbstractContextManager[Iterator[rd.Event]]:
    return rd.to_iterable(events)


def ask_blocking(create: Callable[[], Iterator[dict[str, Any]]], body: bytes) -> rd.Message:
    with rd.stream(create, "openai-chat") as reply:
        assert_type(reply, rd.types.BlockingReply)
        for snapshot in reply:
            assert_type(snapshot, rd.Snapshot)
            draw(snapshot)
        for piece in reply.text_deltas:
            assert_type(piece, str)
        assert_type(reply.result(), rd.Message)
    with rd.stream(body) as reply:
        pass
    assert_type(reply.message, rd.Message)
    return reply.message


async def clients() -> None:
    import anthropic
    import httpx
    import openai

    claude, other = anthropic.AsyncAnthropic(), openai.OpenAI()
    async with rd.stream(claude.messages.create(model="m", max_tokens=1, messages=[], stream=True)) as reply:
        assert_type([snapshot.text async for snapshot in reply], list[str])
    rd.stream(claude.messages.stream(model="m", max_tokens=1, messages=[]))
    rd.stream(lambda: claude.messages.stream(model="m", max_tokens=1, messages=[]))
    rd.stream(
        claude.messages.with_streaming_response.create(model="m", max_tokens=1, messages=[], stream=True)
    )
    rd.stream(lambda: other.chat.completions.create(model="m", messages=[], stream=True))
    rd.stream(other.responses.stream(model="m", input=""))
    rd.stream(httpx.get("http://localhost"))
    rd.stream(httpx.AsyncClient().stream("POST", "http://localhost"))


async def wrong(create: Callable[[], AsyncIterator[bytes]]) -> None:
    rd.stream(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.stream(create, through=rd.smooth())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.stream(create, through=[rd.scan_deltas()])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    rd.stream(create, decode="auto")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.stream(create, tools=rd.scan_deltas())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.stream(create, choice=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    for _ in rd.stream(create):  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
        pass
    async for _ in rd.stream(create):  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
        pass
    async with rd.stream(create) as reply:
        for _ in reply:  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
            pass
    with rd.stream(create) as blocking:
        async for _ in blocking:  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
            pass
