"""What one delta costs, from 1,000 to 1,000,000 of them, for us and for others, in one run.

Machines differ and are noisy, so every figure is also given as a ratio to the plain loop of the same run: a loop over
the same parsed chunks that appends each piece to a list and keeps no snapshot. A peer is stopped after `--cap` seconds;
its figure is then the mean so far, which for one that grows is too kind.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import reactivex as rx
from streams import STREAMS

import rxdelta as rd

Chunks = list[dict[str, Any]]
Run = Callable[[float], int]
PEERS: dict[str, Callable[[Chunks], Run | None]] = {}
FLOOR = "plain loop, no snapshot"


def peer(name: str) -> Callable[[Callable[[Chunks], Run | None]], Callable[[Chunks], Run | None]]:
    """A peer prepares what isn't timed, and gives a run that stops at a deadline and says how many chunks it took."""

    def add(prepare: Callable[[Chunks], Run | None]) -> Callable[[Chunks], Run | None]:
        PEERS[name] = prepare
        return prepare

    return add


def each(items: list[Any], step: Callable[[Any], object]) -> Run:
    def run(deadline: float) -> int:
        for n, item in enumerate(items):
            step(item)
            if not n % 256 and time.perf_counter() > deadline:
                return n + 1
        return len(items)

    return run


@peer(FLOOR)
def plain(chunks: Chunks) -> Run:
    texts: list[str] = []
    calls: dict[int, list[str]] = {}

    def step(chunk: dict[str, Any]) -> None:
        delta = chunk["choices"][0]["delta"]
        if delta.get("content"):
            texts.append(delta["content"])
        for call in delta.get("tool_calls") or ():
            calls.setdefault(call["index"], []).append(call["function"]["arguments"])

    return each(chunks, step)


@peer("rxdelta, latest snapshot")
def latest(chunks: Chunks) -> Run:
    decoder, fold = rd.providers.decoder("openai-chat"), rd.Fold(choice=0)

    def step(chunk: dict[str, Any]) -> None:
        for event in decoder.decode(chunk):
            fold.step(event)

    return each(chunks, step)


@peer("rxdelta, every snapshot kept")
def kept(chunks: Chunks) -> Run:
    decoder, fold, snapshots = rd.providers.decoder("openai-chat"), rd.Fold(choice=0), []

    def step(chunk: dict[str, Any]) -> None:
        for event in decoder.decode(chunk):
            snapshots.append(fold.step(event))  # noqa: PERF401

    return each(chunks, step)


@peer("rxdelta, text and arguments read every 50th")
def read(chunks: Chunks) -> Run:
    decoder, fold, count = rd.providers.decoder("openai-chat"), rd.Fold(choice=0), 0

    def step(chunk: dict[str, Any]) -> None:
        nonlocal count
        for event in decoder.decode(chunk):
            snapshot = fold.step(event)
            count += 1
            if not count % 50:
                _ = snapshot.text
                for call in snapshot.tool_calls:
                    _ = call.arguments_so_far

    return each(chunks, step)


@peer("rxdelta, fold alone (events ready)")
def fold_alone(chunks: Chunks) -> Run:
    decoder, fold = rd.providers.decoder("openai-chat"), rd.Fold(choice=0)
    return each([event for chunk in chunks for event in decoder.decode(chunk)], fold.step)


@peer("rxdelta, as a reactivex pipeline")
def pipeline(chunks: Chunks) -> Run:
    def run(deadline: float) -> int:
        rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas()).subscribe(
            lambda snapshot: None
        )
        return len(chunks)

    return run


@peer("langchain-core, chunk + chunk")
def langchain(chunks: Chunks) -> Run | None:
    try:
        from langchain_core.messages import AIMessageChunk
    except ImportError:
        return None
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
    whole: Any = None

    def step(chunk: Any) -> None:
        nonlocal whole
        whole = chunk if whole is None else whole + chunk

    return each(built, step)


@peer("openai SDK, its own accumulator (mutable)")
def openai(chunks: Chunks) -> Run | None:
    try:
        from openai.lib.streaming.chat import ChatCompletionStreamState
        from openai.types.chat import ChatCompletionChunk
    except ImportError:
        return None
    state = ChatCompletionStreamState()
    return each([ChatCompletionChunk.model_validate(chunk) for chunk in chunks], state.handle_chunk)


@peer("anthropic SDK, its own accumulator (mutable)")
def anthropic(chunks: Chunks) -> Run | None:
    try:
        from anthropic.lib.streaming._messages import accumulate_event
        from anthropic.types import RawMessageStreamEvent
        from pydantic import TypeAdapter
    except ImportError:
        return None
    read = TypeAdapter(RawMessageStreamEvent).validate_python
    snapshot: Any = None
    buffers: dict[int, bytes] = {}

    def step(event: Any) -> None:
        nonlocal snapshot
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)

    return each([read(event) for event in _as_anthropic(chunks)], step)


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
                yield {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "text", "text": ""},
                }
            yield {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": delta["content"]},
            }
        for call in delta.get("tool_calls") or ():
            index, function = call["index"], call["function"]
            if index not in started:
                started.add(index)
                block = {"type": "tool_use", "id": call["id"], "name": function["name"], "input": {}}
                yield {"type": "content_block_start", "index": index, "content_block": block}
                continue
            piece = {"type": "input_json_delta", "partial_json": function["arguments"]}
            yield {"type": "content_block_delta", "index": index, "delta": piece}


def measure(prepare: Callable[[Chunks], Run | None], chunks: Chunks, cap: float) -> float | None:
    """Nanoseconds a chunk: the best of some runs, as many as a short while allows."""
    best: float | None = None
    began = time.perf_counter()
    for _ in range(max(1, min(7, 200_000 // len(chunks)))):
        run = prepare(chunks)
        if run is None:
            return None
        gc.collect()
        start = time.perf_counter()
        count = run(start + cap)
        taken = (time.perf_counter() - start) / count * 1e9
        best = taken if best is None else min(best, taken)
        if time.perf_counter() - began > cap:
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--cap", type=float, default=10.0, help="seconds after which a peer is stopped")
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), choices=STREAMS)
    parser.add_argument(
        "--only", default="", help="only rows whose name has this in it (the plain loop stays)"
    )
    options = parser.parse_args()
    results: dict[str, dict[str, dict[int, float]]] = {}
    for stream in options.streams:
        rows = results[stream] = {}
        for size in options.sizes:
            chunks = list(STREAMS[stream](size))
            for name, prepare in PEERS.items():
                if options.only not in name and name != FLOOR:
                    continue
                if size > 100_000 and not name.startswith(("rxdelta", FLOOR)):
                    continue  # a million prepared SDK objects fill the memory before anything is measured
                taken = measure(prepare, chunks, options.cap)
                if taken is not None:
                    rows.setdefault(name, {})[size] = taken
        print(f"\n**{stream}**: ns a chunk (ratio to the plain loop)\n")
        print(table(rows, options.sizes))
    out = Path(__file__).parent / "results" / "fold.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(results, indent=1))


def table(rows: dict[str, dict[int, float]], sizes: list[int]) -> str:
    lines = [
        "| | " + " | ".join(f"{size:,}" for size in sizes) + " | growth |",
        "|---|" + "---|" * (len(sizes) + 1),
    ]
    for name, row in rows.items():
        cells = [
            f"{row[size]:,.0f} ({row[size] / rows[FLOOR][size]:.1f}×)" if size in row else "–"
            for size in sizes
        ]
        known = sorted(row)
        growth = "–"
        if len(known) > 1:
            first, last = known[0], known[-1]
            growth = f"{1 + math.log(row[last] / row[first]) / math.log(last / first):.2f}"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {growth} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
