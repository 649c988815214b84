"""What the events of a reply cost beside its text: starts, finishes, whole messages, updates of tools.

Each job is timed in its CPU time, in a process of its own, `--rounds` times, and the best round counts. With
`--against DIRECTORY`, the root of another checkout, the processes of both versions take turns, and the last column is
the ratio to that version. `fold by Walk.grow` is the fold of a text without its own look-up of the block; the line
says what that look-up saves.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time_ns
from typing import Any

Job = Callable[[], tuple[int, Callable[[], object]]]
JOBS: dict[str, Job] = {}
HERE = Path(__file__).resolve().parent.parent


def job(name: str) -> Callable[[Job], Job]:
    """A job prepares what isn't timed, and gives the number of events and what is timed."""

    def add(prepare: Job) -> Job:
        JOBS[name] = prepare
        return prepare

    return add


def text(count: int) -> list[Any]:
    import rxdelta as rd

    ev = rd.events
    return [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text"}), *[ev.TextDelta(0, "word ")] * count]


def arguments(count: int) -> list[Any]:
    import rxdelta as rd

    ev = rd.events
    start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""})
    return [ev.MessageStart("m"), start, *[ev.ToolCallDelta(0, '"a", ')] * count]


def calls(count: int) -> list[Any]:
    import rxdelta as rd

    ev = rd.events
    content = {"type": "tool_call_chunk", "name": "f", "args": ""}
    return [
        event
        for index in range(count)
        for event in (
            ev.BlockStart(index, {**content, "id": f"c{index}"}),
            ev.ToolCallDelta(index, "{}"),
            ev.BlockFinish(index),
        )
    ]


def folded(events: list[Any]) -> Any:
    import rxdelta as rd

    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return fold


def piped(events: list[Any], operator: Any) -> None:
    import reactivex as rx

    rx.from_iterable(events).pipe(operator).subscribe(lambda value: None)


@job("fold, text")
def fold_text() -> tuple[int, Callable[[], object]]:
    events = text(20_000)
    return len(events), lambda: folded(events)


@job("fold, arguments")
def fold_arguments() -> tuple[int, Callable[[], object]]:
    events = arguments(20_000)
    return len(events), lambda: folded(events)


@job("fold by Walk.grow, text")
def fold_by_grow() -> tuple[int, Callable[[], object]]:
    from rxdelta.core import Walk
    from rxdelta.core._snapshot import make_snapshot

    events = text(20_000)

    def run() -> None:
        head = folded(events[:2]).snapshot._head
        walk = Walk(0)
        walk.step(events[0])
        blocks: list[Any] = [change.fold.block for change in walk.step(events[1])]

        def step(event: Any) -> Any:
            fold = walk.grow(event)
            if fold is not None:
                blocks[0] = fold.block
                return make_snapshot(head, tuple(blocks))
            return None

        for event in events[2:]:
            step(event)

    return len(events), run


@job("fold, starts and finishes of texts")
def fold_starts() -> tuple[int, Callable[[], object]]:
    import rxdelta as rd

    pair = [rd.events.BlockStart(0, {"type": "text"}), rd.events.BlockFinish(0)]
    events = pair * 2_000
    return len(events), lambda: folded(events)


@job("fold, 500 calls of one delta")
def fold_calls() -> tuple[int, Callable[[], object]]:
    events = calls(500)
    return len(events), lambda: folded(events)


@job("fold, whole messages of five events")
def fold_messages() -> tuple[int, Callable[[], object]]:
    import rxdelta as rd

    events = [*text(1), rd.events.BlockFinish(0), rd.events.MessageFinish("stop")]
    return 500 * len(events), lambda: [folded(events) for _ in range(500)]


def updates(count: int) -> tuple[int, Callable[[], object]]:
    import rxdelta as rd

    fold = folded(calls(count))
    news = [rd.events.ToolUpdate(f"c{turn % count}", display_text=str(turn)) for turn in range(1_000)]
    fold.step(news[0])

    def run() -> None:
        for event in news:
            fold.step(event)
            fold.step(rd.events.ToolUpdate(event.call_id, display_text="again"))

    return 2 * len(news), run


@job("fold, ToolUpdate of 1 call")
def update_of_one() -> tuple[int, Callable[[], object]]:
    return updates(1)


@job("fold, ToolUpdate of 4,000 calls")
def update_of_many() -> tuple[int, Callable[[], object]]:
    return updates(4_000)


def operators() -> None:
    import rxdelta as rd

    def one(name: str, events: Callable[[], list[Any]], operator: Callable[[], Any]) -> None:
        def prepare() -> tuple[int, Callable[[], object]]:
            ready = events()
            return len(ready), lambda: piped(ready, operator())

        JOBS[name] = prepare

    tools = {"f": lambda: 1}
    one("scan_deltas, text", lambda: text(20_000), rd.scan_deltas)
    one("group_by_block, text", lambda: text(20_000), rd.group_by_block)
    one("group_by_block, 500 calls", lambda: calls(500), rd.group_by_block)
    one("run_tools, arguments", lambda: arguments(20_000), lambda: rd.run_tools(tools))
    one("run_tools, 500 calls", lambda: calls(500), lambda: rd.run_tools(tools))
    one("text_deltas, text", lambda: text(20_000), rd.text_deltas)
    one("completed_tool_calls, arguments", lambda: arguments(20_000), rd.completed_tool_calls)
    one("completed_tool_calls, 500 calls", lambda: calls(500), rd.completed_tool_calls)
    one("share_events, text", lambda: text(20_000), rd.share_events)
    one("to_ai_sdk, text", lambda: text(20_000), rd.to_ai_sdk)


def work() -> None:
    """Time every job once, and print the nanoseconds an event."""
    operators()
    found: dict[str, float] = {}
    for name, prepare in JOBS.items():
        try:
            count, run = prepare()
        except ImportError:  # an older version
            continue
        best = float("inf")
        for _ in range(3):
            began = process_time_ns()
            run()
            best = min(best, (process_time_ns() - began) / count)
        found[name] = best
    print(json.dumps(found))


def measure(root: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--work"],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--against", type=Path, metavar="DIRECTORY")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.work:
        work()
        return
    roots = [HERE] if given.against is None else [HERE, given.against.resolve()]
    best: list[dict[str, float]] = [{} for _ in roots]
    for turn in range(given.rounds):
        print(f"round {turn + 1} of {given.rounds}", file=sys.stderr)
        for known, root in zip(best, roots, strict=True):
            for name, nanoseconds in measure(root).items():
                known[name] = min(nanoseconds, known.get(name, nanoseconds))
    for name, nanoseconds in best[0].items():
        before = best[-1].get(name) if len(best) > 1 else None
        print(f"{name:40} {nanoseconds:8,.0f} ns" + (f"  {nanoseconds / before:5.2f}" if before else ""))


if __name__ == "__main__":
    main()
