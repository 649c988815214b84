"""What one delta costs, from 1,000 to 1,000,000 of them, for us and for others' accumulators.

The base is a loop over the same parsed chunks that appends each piece to a list and keeps no snapshot. Rows of rxdelta
include the decoding of the chunks unless they say otherwise; the chunks of others were objects before the clock started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import reactivex as rx
from harness import Table, each
from streams import STREAMS, Chunks

import rxdelta as rd

Act = Callable[[], Any]
ROWS: dict[str, tuple[Callable[[Chunks], Act], bool]] = {}
BASE = "a plain loop, no snapshot"
SIZES = (1_000, 10_000, 100_000)
MOST_FOR_PEERS = 10_000  # to make a hundred thousand objects of an SDK takes minutes
ALONE = 1_000_000  # the fold alone


def row(name: str, peer: bool = False) -> Callable[[Callable[[Chunks], Act]], Callable[[Chunks], Act]]:
    """A row prepares what isn't timed, and gives what is."""

    def add(prepare: Callable[[Chunks], Act]) -> Callable[[Chunks], Act]:
        ROWS[name] = prepare, peer
        return prepare

    return add


@row(BASE)
def plain(chunks: Chunks) -> Act:
    def act() -> int:
        texts: list[str] = []
        calls: dict[int, list[str]] = {}

        def step(chunk: dict[str, Any]) -> None:
            delta = chunk["choices"][0]["delta"]
            if delta.get("content"):
                texts.append(delta["content"])
            for call in delta.get("tool_calls") or ():
                calls.setdefault(call["index"], []).append(call["function"]["arguments"])

        return each(chunks, step)()

    return act


def folding(chunks: Chunks, look: Callable[[rd.Snapshot], object] | None) -> int:
    decoder, fold = rd.providers.decoder("openai-chat"), rd.Fold(choice=0)

    def step(chunk: dict[str, Any]) -> None:
        for event in decoder.decode(chunk):
            snapshot = fold.step(event)
            if look is not None:
                look(snapshot)

    return each(chunks, step)()


@row("rxdelta, latest snapshot")
def latest(chunks: Chunks) -> Act:
    return lambda: folding(chunks, None)


@row("rxdelta, every snapshot kept")
def kept(chunks: Chunks) -> Act:
    def act() -> list[rd.Snapshot]:
        snapshots: list[rd.Snapshot] = []
        folding(chunks, snapshots.append)
        return snapshots

    return act


@row("rxdelta, text and arguments read every 50th")
def read(chunks: Chunks) -> Act:
    def act() -> int:
        count = 0

        def look(snapshot: rd.Snapshot) -> None:
            nonlocal count
            count += 1
            if not count % 50:
                _ = snapshot.text
                for call in snapshot.tool_calls:
                    _ = call.arguments_so_far

        return folding(chunks, look)

    return act


@row("rxdelta, fold alone (events ready)")
def fold_alone(chunks: Chunks) -> Act:
    decoder = rd.providers.decoder("openai-chat")
    events = [event for chunk in chunks for event in decoder.decode(chunk)]
    return lambda: each(events, rd.Fold(choice=0).step)()


@row("rxdelta, as a reactivex pipeline")
def pipeline(chunks: Chunks) -> Act:
    def act() -> None:
        snapshots = rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas())
        snapshots.subscribe(lambda snapshot: None)

    return act


@row("langchain-core, chunk + chunk", peer=True)
def langchain(chunks: Chunks) -> Act:
    from langchain_core.messages import AIMessageChunk

    built: list[Any] = []
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        fragments = [
            {
                "index": call["index"],
                "id": call.get("id"),
                "name": call["function"].get("name"),
                "args": call["function"]["arguments"],
            }
            for call in delta.get("tool_calls") or ()
        ]
        built.append(AIMessageChunk(content=delta.get("content") or "", tool_call_chunks=fragments))

    def act() -> int:
        whole: Any = None

        def step(chunk: Any) -> None:
            nonlocal whole
            whole = chunk if whole is None else whole + chunk

        return each(built, step)()

    return act


@row("openai SDK, its own accumulator (mutable)", peer=True)
def openai(chunks: Chunks) -> Act:
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    built = [ChatCompletionChunk.model_validate(chunk) for chunk in chunks]
    return lambda: each(built, ChatCompletionStreamState().handle_chunk)()


@row("anthropic SDK, its own accumulator (mutable)", peer=True)
def anthropic(chunks: Chunks) -> Act:
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import RawMessageStreamEvent
    from pydantic import TypeAdapter

    read = TypeAdapter[Any](RawMessageStreamEvent).validate_python
    built = [read(event) for event in _as_anthropic(chunks)]

    def act() -> int:
        snapshot: Any = None
        buffers: dict[int, bytes] = {}

        def step(event: Any) -> None:
            nonlocal snapshot
            snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)

        return each(built, step)()

    return act


@row("litellm, its chunk builder (once, at the end)", peer=True)
def litellm(chunks: Chunks) -> Act:
    from litellm import stream_chunk_builder
    from litellm.types.utils import ModelResponseStream

    built = [ModelResponseStream(**chunk) for chunk in chunks]
    return lambda: (stream_chunk_builder(built), None)[1]


def _as_anthropic(chunks: Chunks) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}}
    started: set[int] = set()
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        if delta.get("content"):
            if 0 not in started:
                started.add(0)
                text = {"type": "text", "text": ""}
                yield {"type": "content_block_start", "index": 0, "content_block": text}
            piece = {"type": "text_delta", "text": delta["content"]}
            yield {"type": "content_block_delta", "index": 0, "delta": piece}
        for call in delta.get("tool_calls") or ():
            index, function = call["index"], call["function"]
            if index not in started:
                started.add(index)
                block = {"type": "tool_use", "id": call["id"], "name": function["name"], "input": {}}
                yield {"type": "content_block_start", "index": index, "content_block": block}
                continue
            piece = {"type": "input_json_delta", "partial_json": function["arguments"]}
            yield {"type": "content_block_delta", "index": index, "delta": piece}


def tables() -> Iterator[Table]:
    for title, stream in STREAMS.items():
        table = Table(
            title[0].upper() + title[1:], f"µs a chunk: least / median (× {BASE})", growth=True, rounds=7
        )
        for size in SIZES:
            chunks = [*stream(size)]
            for name, (prepare, peer) in ROWS.items():
                if peer and size > MOST_FOR_PEERS:
                    continue
                table.row(name, prepared(prepare, chunks), len(chunks), column=f"{size:,}", peer=peer)
        yield table
    table = Table(
        "A million deltas of one text", "µs a chunk: least / median (× the loop)", growth=True, rounds=3
    )
    for size in (SIZES[0], ALONE):
        chunks = [*STREAMS["text"](size)]
        for name, prepare in ((BASE, plain), ("rxdelta, fold alone (events ready)", fold_alone)):
            table.row(name, prepared(prepare, chunks), len(chunks), column=f"{size:,}")
    yield table


def prepared(prepare: Callable[[Chunks], Act], chunks: Chunks) -> Act:
    """A package that is missing is told when the row is measured."""
    try:
        return prepare(chunks)
    except ImportError as error:
        missing = error

    def act() -> None:
        raise missing

    return act
