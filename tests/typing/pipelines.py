"""What type checkers infer. Never run: `mypy --strict tests/typing` and `pyright tests/typing`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, assert_type

import reactivex as rx
from reactivex import Observable

import rxdelta as rd
from rxdelta.relay import Relay

if TYPE_CHECKING:
    from pathlib import Path

    import msgspec
    import orjson
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI


async def draw(snapshot: rd.Snapshot) -> None: ...


def draw_now(snapshot: rd.Snapshot) -> int:
    raise NotImplementedError


async def generator() -> AsyncIterator[dict[str, Any]]:
    yield {}


async def create() -> AsyncIterator[dict[str, Any]]:
    return generator()


async def create_iterable() -> AsyncIterable[bytes]:
    raise NotImplementedError


def sources(
    iterator: AsyncIterator[int],
    iterable: AsyncIterable[int],
    awaitable: Awaitable[AsyncIterator[int]],
    coroutine: Coroutine[Any, Any, AsyncIterable[int]],
) -> None:
    assert_type(rd.from_async_iterable(iterator), Observable[int])
    assert_type(rd.from_async_iterable(iterable), Observable[int])
    assert_type(rd.from_async_iterable(awaitable), Observable[int])
    assert_type(rd.from_async_iterable(coroutine), Observable[int])
    assert_type(rd.from_async_iterable(lambda: iterator), Observable[int])
    assert_type(rd.from_async_iterable(lambda: awaitable), Observable[int])
    assert_type(rd.from_async_iterable(generator), Observable[dict[str, Any]])
    assert_type(rd.from_async_iterable(generator()), Observable[dict[str, Any]])
    assert_type(rd.from_async_iterable(create), Observable[dict[str, Any]])
    assert_type(rd.from_async_iterable(create()), Observable[dict[str, Any]])
    assert_type(rd.from_async_iterable(create_iterable), Observable[bytes])


def clients(openai: AsyncOpenAI, anthropic: AsyncAnthropic) -> None:
    from anthropic.types import RawMessageStreamEvent
    from openai.types.chat import ChatCompletionChunk

    chat = openai.chat.completions.create(model="m", messages=[], stream=True)
    assert_type(rd.from_async_iterable(chat), Observable[ChatCompletionChunk])
    assert_type(
        rd.from_async_iterable(
            lambda: anthropic.messages.create(model="m", messages=[], max_tokens=1, stream=True)
        ),
        Observable[RawMessageStreamEvent],
    )


def operators(
    chunks: Observable[dict[str, Any]],
    body: Observable[bytes],
    text: Observable[str],
    events: Observable[rd.Event],
    deltas: Observable[rd.Snapshot],
    both: Observable[rd.Event | rd.Snapshot],
    texts: Observable[rd.events.TextDelta],
) -> None:
    assert_type(body.pipe(rd.parse_sse()), Observable[Any])
    assert_type(text.pipe(rd.parse_ndjson()), Observable[Any])
    assert_type(body.pipe(rd.parse_sse(loads=orjson.loads)), Observable[Any])
    assert_type(text.pipe(rd.parse_ndjson(loads=msgspec.json.decode)), Observable[Any])
    assert_type(body.pipe(rd.decode("auto", loads=json.loads)), Observable[rd.Event])
    rd.stream([b""], loads=msgspec.json.Decoder().decode)
    rd.parse_sse(loads=len)
    rd.parse_sse(loads="orjson")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.stream([b""], loads=orjson.dumps(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(chunks.pipe(rd.decode("openai-chat")), Observable[rd.Event])
    assert_type(chunks.pipe(rd.decode(lambda: rd.providers.decoder("openai-chat"))), Observable[rd.Event])
    assert_type(events.pipe(rd.validate()), Observable[rd.Event])
    assert_type(
        events.pipe(rd.validate(lambda name, event: print(name.upper(), event))), Observable[rd.Event]
    )
    assert_type(events.pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(deltas.pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(both.pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(texts.pipe(rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(deltas.pipe(rd.throttle_latest(0.05)), Observable[rd.Snapshot])
    assert_type(text.pipe(rd.throttle_latest(0.05)), Observable[str])
    assert_type(deltas.pipe(rd.to_message()), Observable[rd.Message])


def recordings(chunks: Observable[dict[str, Any]], events: Observable[rd.Event], path: Path) -> None:
    def mask(line: dict[str, Any]) -> dict[str, Any]:
        return line

    assert_type(chunks.pipe(rd.record("run-{n}.jsonl")), Observable[dict[str, Any]])
    assert_type(events.pipe(rd.record(path, mask=mask), rd.scan_deltas()), Observable[rd.Snapshot])
    assert_type(rd.from_recording(path, speed=0), Observable[Any])
    assert_type(rd.from_recording("a.jsonl").pipe(rd.decode("auto")), Observable[rd.Event])
    rd.stream(chunks, record=path)
    rd.stream(rd.from_recording(path), through=[rd.record("events.jsonl")])


def from_a_list(chunks: list[dict[str, Any]]) -> None:
    assert_type(
        rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas(), rd.throttle_latest(0.05)),
        Observable[rd.Snapshot],
    )


async def readers(snapshots: Observable[rd.Snapshot]) -> None:
    assert_type(await rd.first_value(snapshots), rd.Snapshot)
    assert_type(await rd.last_value(snapshots), rd.Snapshot)
    await rd.for_each(snapshots, draw)
    await rd.for_each(snapshots, draw_now, overflow="latest")
    await rd.for_each(snapshots, lambda snapshot: print(snapshot.text.upper()))
    assert_type(rd.iterate(snapshots), AsyncIterator[rd.Snapshot])
    async for snapshot in rd.iterate(snapshots, overflow="latest"):
        assert_type(snapshot, rd.Snapshot)
    async with rd.to_async_iterable(snapshots, overflow="latest") as latest:
        assert_type(latest, AsyncIterator[rd.Snapshot])
        async for snapshot in latest:
            assert_type(snapshot, rd.Snapshot)


async def pipeline_1(chunks: AsyncIterator[dict[str, Any]]) -> None:
    await rd.for_each(
        rd.from_async_iterable(chunks).pipe(
            rd.decode("anthropic-messages"), rd.scan_deltas(), rd.throttle_latest(0.05)
        ),
        draw,
    )


async def pipeline_2(chunks: AsyncIterator[dict[str, Any]]) -> None:
    message = await rd.last_value(
        rd.from_async_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas(), rd.to_message())
    )
    assert_type(message, rd.Message)


def to_resumable(relay: Relay, last_id: str | None) -> None:
    entries = relay.entries("chat", split_at=last_id)
    assert_type(entries.pipe(rd.to_resumable_sse(rd.to_ai_sdk(), last_id)), Observable[bytes])
    assert_type(entries.pipe(rd.to_resumable_sse(rd.to_ag_ui(), retry=2)), Observable[bytes])


def to_openai_chat(events: Observable[rd.Event]) -> None:
    frames = events.pipe(rd.to_openai_chat("house", tools={"look": print}, include_usage=False))
    assert_type(frames, Observable[rd.wire.OpenAiChatFrame | rd.wire.Done])
    assert_type(
        events.pipe(rd.to_openai_chat(tools=["look"], on_error=str), rd.to_sse(15)), Observable[bytes]
    )
    assert_type(rd.wire.openai_chat_completion([rd.wire.DONE]), dict[str, Any])
    assert_type(
        rd.requests.from_openai_chat([{"role": "user", "content": "Hi"}], allow=["s3"]), list[rd.Message]
    )


def to_clients_of_providers(events: Observable[rd.Event]) -> None:
    named = events.pipe(rd.to_openai_responses("house", tools={"look": print}, custom=["patch"]))
    assert_type(named, Observable[rd.wire.NamedFrame])
    assert_type(events.pipe(rd.to_anthropic_messages(tools=["look"])), Observable[rd.wire.NamedFrame])
    lines = events.pipe(rd.to_ollama("house", tools=(), on_error=str, reasoning=False))
    assert_type(lines, Observable[dict[str, Any]])
    assert_type(lines.pipe(rd.to_ndjson(15)), Observable[bytes])
    assert_type(rd.wire.ollama_chat([{"done": True}]), dict[str, Any])


def to_langchain(events: Observable[rd.Event]) -> None:
    assert_type(events.pipe(rd.to_langchain_events()), Observable[rd.wire.LangChainFrame])
    assert_type(events.pipe(rd.to_langchain_events(["a"], str), rd.to_sse(15)), Observable[bytes])
