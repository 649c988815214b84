"""What a server-sent event costs until it is a chunk, against the least that must be done and the OpenAI SDK's decoder.

The least is to split the bytes at blank lines and to read the JSON behind `data: `, which no real stream allows. Once in
blocks of 16 kB, as a fast reader gets them, and once an event a block. Run with `python benchmarks/framing.py [events]`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator

from openai._streaming import SSEDecoder
from streams import text

from rxdelta.providers import SseParser

BLOCK = 16_384
DONE = b"data: [DONE]\n\n"


def least(blocks: list[bytes]) -> None:
    rest = b""
    for block in blocks:
        *events, rest = (rest + block).split(b"\n\n")
        for event in events:
            data = event.removeprefix(b"data: ")
            if data != b"[DONE]":
                json.loads(data)


def ours(blocks: list[bytes]) -> None:
    parser = SseParser()
    for block in blocks:
        parser.feed(block)
    parser.close()


def openai(blocks: list[bytes]) -> None:
    def body() -> Iterator[bytes]:
        yield from blocks

    for event in SSEDecoder().iter_bytes(body()):
        if event.data != "[DONE]":
            event.json()


def best(run: Callable[[list[bytes]], None], blocks: list[bytes], times: int = 10) -> float:
    found = float("inf")
    for _ in range(times):
        start = time.process_time()
        run(blocks)
        found = min(found, time.process_time() - start)
    return found


def main(count: int) -> None:
    events = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode() for chunk in text(count)] + [DONE]
    whole = b"".join(events)
    print(f"{count} events        least      rxdelta          openai      (µs an event, ratio to the least)")
    cut = [whole[at : at + BLOCK] for at in range(0, len(whole), BLOCK)]
    for name, blocks in (("16 kB a block", cut), ("an event a block", events)):
        floor, we, they = (best(run, blocks) / count * 1e6 for run in (least, ours, openai))
        print(f"{name:20} {floor:5.1f} {we:7.1f} {we / floor:5.1f}× {they:9.1f} {they / floor:5.1f}×")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
