"""What one delta costs with 1, 8, 64 and 512 parallel tool calls in one reply.

Through `group_by_block` and `per_block` every call has a subscriber of its own; `scan_deltas` stands beside them. The
events are ready, the deltas come in turn, and starts and finishes aren't timed. Machines differ and are noisy, so every
figure is also a ratio to one call of the same run.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reactivex.subject import Subject

import rxdelta as rd

Subscribe = Callable[[Subject[Any]], object]
WAYS: dict[str, Subscribe] = {
    "group_by_block": lambda source: source.pipe(rd.group_by_block()).subscribe(
        lambda block: block.subscribe(lambda call: None)
    ),
    "per_block": lambda source: source.pipe(rd.per_block(lambda block: block)).subscribe(lambda call: None),
    "scan_deltas": lambda source: source.pipe(rd.scan_deltas()).subscribe(lambda snapshot: None),
}


def starts(calls: int) -> Iterator[rd.Event]:
    yield rd.events.MessageStart(id="m")
    for index in range(calls):
        content = {"type": "tool_call_chunk", "id": f"call_{index}", "name": "edit", "args": ""}
        yield rd.events.BlockStart(index, content)


def measure(subscribe: Subscribe, calls: int, deltas: int) -> float:
    """Nanoseconds a delta: the best of five runs."""
    events = [rd.events.ToolCallDelta(place % calls, '{"a"') for place in range(deltas)]
    best = float("inf")
    for _ in range(5):
        source = Subject[Any]()
        subscribe(source)
        (observer,) = source.observers  # past the lock of the subject
        for event in starts(calls):
            observer.on_next(event)
        push = observer.on_next
        gc.collect()
        began = time.perf_counter()
        for event in events:
            push(event)
        best = min(best, (time.perf_counter() - began) / deltas * 1e9)
        observer.on_next(rd.events.MessageFinish("stop"))
        observer.on_completed()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("calls", nargs="*", type=int, default=[1, 8, 64, 512])
    parser.add_argument("--deltas", type=int, default=100_000)
    options = parser.parse_args()
    results = {
        name: {calls: measure(subscribe, calls, options.deltas) for calls in options.calls}
        for name, subscribe in WAYS.items()
    }
    print("ns a delta (ratio to the first column)\n")
    print("| parallel calls | " + " | ".join(map(str, options.calls)) + " |")
    print("|---|" + "---|" * len(options.calls))
    for name, row in results.items():
        first = row[options.calls[0]]
        cells = (f"{taken:,.0f} ({taken / first:.1f}×)" for taken in row.values())
        print(f"| {name} | " + " | ".join(cells) + " |")
    out = Path(__file__).parent / "results" / "blocks.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
