"""The readers of a pipeline: each door, and readers that are slow, leave, raise, join late or are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import attrs
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import SingleAssignmentDisposable

import rxdelta as rd
from simulation.lane import END
from simulation.pipeline import STREAM, Played
from simulation.world import Reader

PATIENCE = 3000.0  # virtual seconds after which a reader hangs


class ReaderError(Exception):
    """What a reader raises."""


@attrs.define
class Log:
    """What a reader got, and how its reading ended."""

    reader: Reader
    got: list[Any] = attrs.field(factory=list)
    end: Any = None
    """`|`, `left`, `cancelled`, `hangs`, or the error."""
    wrong: list[str] = attrs.field(factory=list)
    """What a reader alone can see: a value behind the end, or within another."""


class Left(Exception):
    pass


def note(log: Log, item: Any) -> None:
    log.got.append(item)
    if log.reader.leaves and len(log.got) >= log.reader.leaves:
        raise Left


async def take(log: Log, item: Any) -> None:
    note(log, item)
    if log.reader.naps:
        await asyncio.sleep(log.reader.naps)


async def _iterable(log: Log, source: rx.Observable[Any], overflow: Any) -> None:
    size = 4 if overflow == "block" else 1024
    async with rd.to_async_iterable(source, overflow, maxsize=size) as values:
        async for item in values:
            await take(log, item)


async def _block(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await _iterable(log, snapshots, "block")


async def _buffer(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await _iterable(log, snapshots, "buffer")


async def _latest(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await _iterable(log, snapshots, "latest")


async def _joined(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    """Events, of which those that wait are joined, in a fold of the reader's own."""
    fold = rd.Fold()
    async with rd.to_async_iterable(events, "join", maxsize=4) as values:
        async for item in values:
            await take(log, fold.step(item))


async def _for_each(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await rd.for_each(snapshots, lambda item: take(log, item))


async def _raises(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    def raise_behind(item: Any) -> None:
        log.got.append(item)
        if len(log.got) > log.reader.leaves:
            raise ReaderError

    await rd.for_each(snapshots, raise_behind)


async def _iterate(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    async for item in rd.iterate(snapshots):
        await take(log, item)


async def _last(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    log.got.append(await rd.last_value(snapshots))


async def _texts(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await rd.for_each(events.pipe(rd.text_deltas()), lambda item: take(log, item))


async def _sentences(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await rd.for_each(events.pipe(rd.sentences()), lambda item: take(log, item))


async def _calls(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await rd.for_each(events.pipe(rd.completed_tool_calls()), lambda item: take(log, item))


async def _markdown(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    """The whole text so far, in blocks of which only the last may change."""
    sealed: tuple[str, ...] = ()

    def take_markdown(markdown: rd.types.StableMarkdown) -> Any:
        nonlocal sealed
        if markdown.sealed[: len(sealed)] != sealed and not played.world.is_asked_again:
            log.wrong.append("a sealed block has changed")
        sealed = markdown.sealed
        return take(log, "".join(sealed) + markdown.tail)

    await rd.for_each(events.pipe(rd.stable_blocks()), take_markdown)


async def _arguments(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    await rd.for_each(events.pipe(rd.partial_arguments()), lambda item: take(log, item))


async def _front(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    """What a front end reads of the response's bytes; it decodes them as a client of that protocol would."""
    wire = log.reader.door.removeprefix("front: ")
    to, parse = FRONTS[f"front: {wire}"]
    snapshots = events.pipe(*to(), parse(), rd.decode(wire), rd.scan_deltas())
    await rd.for_each(snapshots, lambda item: take(log, item))


FRONTS: dict[str, Any] = {
    "front: ai-sdk": (lambda: (rd.to_ai_sdk(), rd.to_sse()), rd.parse_sse),
    "front: ag-ui": (lambda: (rd.to_ag_ui(thread_id="t", run_id="r"), rd.to_sse()), rd.parse_sse),
    "front: langchain": (lambda: (rd.to_langchain_events(), rd.to_sse()), rd.parse_sse),
    "front: openai-chat": (lambda: (rd.to_openai_chat(), rd.to_sse()), rd.parse_sse),
    "front: openai-responses": (lambda: (rd.to_openai_responses(), rd.to_sse()), rd.parse_sse),
    "front: anthropic-messages": (lambda: (rd.to_anthropic_messages(), rd.to_sse()), rd.parse_sse),
    "front: ollama": (lambda: (rd.to_ollama(), rd.to_ndjson()), rd.parse_ndjson),
}


async def _per_block(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    """The text of each block, as it grows."""

    def texts(block: rd.types.BlockStream) -> rx.Observable[Any]:
        return block.pipe(ops.map(lambda part: (block.index, part)))

    await rd.for_each(events.pipe(rd.per_block(texts)), lambda item: take(log, item))


async def _resumes(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    """From a relay: a reader that leaves after each few entries, and comes again with the id of the last one."""
    assert played.relay is not None
    fold, last = rd.Fold(), None
    every = max(2, log.reader.leaves)
    while True:
        taken = 0
        async with rd.to_async_iterable(played.relay.entries(STREAM, last)) as entries:
            async for entry in entries:
                last, taken = entry.id, taken + 1
                log.got.append(fold.step(entry.event))
                if taken == every:
                    break
            else:
                return


async def _observer(log: Log, played: Played, events: Any, snapshots: Any) -> None:
    """An observer of Rx, which subscribes once more within its second value, and disposes within its last one."""
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    subscription = SingleAssignmentDisposable()
    is_inside = is_subscribed = is_over = False

    def over(how: Any) -> None:
        nonlocal is_over
        if is_over and is_subscribed:
            log.wrong.append("an end behind the end, or behind dispose")
        is_over = True
        if not ended.done():
            ended.set_result(how)

    def on_next(item: Any) -> None:
        nonlocal is_inside, is_over
        if is_over and is_subscribed:
            log.wrong.append("a value behind the end, or behind dispose")
        if is_inside:
            log.wrong.append("a value within a value")
        is_inside = True
        log.got.append(item)
        if len(log.got) == 2:
            snapshots.subscribe(lambda _: None, lambda _: None).dispose()
        if log.reader.leaves and len(log.got) >= log.reader.leaves:
            subscription.dispose()
            if not ended.done():
                ended.set_result("left")
            is_over = True
        is_inside = False

    subscription.disposable = snapshots.subscribe(on_next, over, lambda: over(END))
    is_subscribed = True
    try:
        how = await ended
    finally:
        subscription.dispose()
        is_over = True
        await asyncio.sleep(0)
    if isinstance(how, BaseException):
        raise how
    if how == "left":
        raise Left


DOORS: dict[str, Callable[[Log, Played, Any, Any], Coroutine[Any, Any, None]]] = {
    "for_each": _for_each,
    "iterate": _iterate,
    "block": _block,
    "buffer": _buffer,
    "latest": _latest,
    "joined": _joined,
    "last": _last,
    "observer": _observer,
    "raises": _raises,
    "texts": _texts,
    "sentences": _sentences,
    "calls": _calls,
    "markdown": _markdown,
    "arguments": _arguments,
    "per_block": _per_block,
    "resumes": _resumes,
} | dict.fromkeys(FRONTS, _front)
OF_EVENTS = (
    "joined",
    "texts",
    "sentences",
    "calls",
    "markdown",
    "arguments",
    "per_block",
    "resumes",
    *FRONTS,
)
"""These don't read the snapshots."""


async def read(reader: Reader, reading: Callable[[Log], Coroutine[Any, Any, None]]) -> Log:
    """Let one reader read, to its end."""
    log = Log(reader)
    if reader.joins:
        await asyncio.sleep(reader.joins)
    task = asyncio.ensure_future(_until_end(log, reading))
    done, _ = await asyncio.wait([task], timeout=reader.cancelled or PATIENCE)
    if not done:
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        log.end = "cancelled" if reader.cancelled else "hangs"
        if not done:
            log.wrong.append("it can't be cancelled")
    elif task.cancelled():
        log.end = "cancelled"
    return log


async def _until_end(log: Log, reading: Callable[[Log], Coroutine[Any, Any, None]]) -> None:
    try:
        await reading(log)
    except Left:
        log.end = "left"
    except asyncio.CancelledError as error:
        log.end = error
        raise
    except BaseException as error:
        log.end = error
    else:
        log.end = END
