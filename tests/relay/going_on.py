"""How a program goes on with a reply whose worker has died, as docs/reference/relay-workers.md shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import reactivex as rx

import rxdelta as rd
from rxdelta.relay import Relay, StreamUnreadableError

__all__ = ["Tools", "finish", "reply"]

Tools = Callable[[rx.Observable[rd.Event]], rx.Observable[rd.Event]]


async def reply(
    left: rd.Snapshot, tools: Tools, ask: Callable[[], rx.Observable[rd.Event]]
) -> AsyncIterator[rd.Event]:
    """The events of a reply, or those behind what a dead worker has left of it."""
    known = rd.to_events(left) if left.blocks else []
    events = rx.from_iterable(known) if known else ask()
    async for event in rd.iterate(events.pipe(tools)):
        if not any(event is one for one in known):  # readers have these
            yield event


async def finish(
    relay: Relay,
    reply_id: str,
    tools: Tools,
    won: Callable[[str], Any] = lambda _: None,
    ask: Callable[[], rx.Observable[rd.Event]] = rx.empty,
) -> tuple[str, rd.Snapshot]:
    """Begin a reply, wait for it, and go on with it if its worker dies. Returns its last stream, and the newest message."""
    fold = rd.Fold()

    def step(event: rd.Event) -> None:
        nonlocal fold
        if isinstance(event, rd.events.MessageStart):
            fold = rd.Fold()
        fold.step(event)

    attempt = 1
    while attempt < 10:
        stream_id, left = f"{reply_id}.{attempt}", fold.snapshot
        if await relay.start(stream_id, rd.from_async_iterable(reply(left, tools, ask))):
            won(stream_id)
        try:
            await rd.for_each(relay.watch(stream_id), step)
        except StreamUnreadableError:
            raise  # the stream may be live
        except rd.errors.EmptyStreamError:
            continue  # its worker has died before the first event, and the name is free
        except rd.StreamInterrupted:
            attempt += 1  # its worker has died
            continue
        return stream_id, fold.snapshot
    raise AssertionError("all workers died")
