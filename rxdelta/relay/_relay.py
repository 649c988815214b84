"""The relay: the door to streams that outlive their readers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from reactivex import abc
from reactivex import operators as ops

from rxdelta.aio import for_each
from rxdelta.core import Event, InvalidValueError
from rxdelta.relay._ids import Entry, check_entry_id, check_stream_id, entry_id
from rxdelta.relay._memory import Memory
from rxdelta.relay._publishing import Publication
from rxdelta.relay._watching import Reader
from rxdelta.runtime import check_seconds, create, needed_loop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from reactivex import Observable

    from rxdelta.relay._store import Store

__all__ = ["Relay"]

_CLOSE_SECONDS = 5.0
"""How long closing waits for the sources of runs to close."""


class Relay:
    """Streams of events that outlive their readers."""

    def __init__(self, store: Store, lease: float, max_events: int) -> None:
        self._store = store
        self._lease = lease
        self._max_events = max_events
        self._runs: set[asyncio.Task[None]] = set()

    @staticmethod
    def open(
        url: str | None = None, *, lease: float = 10.0, keep: float = 3600.0, max_events: int = 1_000_000
    ) -> AbstractAsyncContextManager[Relay]:
        """Open a relay for the length of an `async with` block."""
        if url is not None:
            raise InvalidValueError.of([("url", url, "must be None, which is this process's memory")])
        lease, keep = check_seconds("lease", lease), check_seconds("keep", keep)
        if isinstance(max_events, bool) or not isinstance(max_events, int) or max_events < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError.of([("max_events", max_events, "must be a whole number from 1")])
        return _opened(lease, keep, max_events)

    def publish(self, stream_id: str) -> Callable[[Observable[Event]], Observable[Event]]:
        """Write the events to the relay's log of this stream, and emit each when it is there."""
        check_stream_id(stream_id)

        def apply(source: Observable[Event]) -> Observable[Event]:
            return create("publish", lambda sink: self._publication(sink, source, stream_id), emits="events")

        return apply

    def _publication(
        self,
        sink: Any,
        source: Observable[Event],
        stream_id: str,
        began: Callable[[bool], None] | None = None,
    ) -> None:
        Publication(sink, source, stream_id, self._max_events, began).begin(self._store)

    async def start(self, stream_id: str, source: Observable[Event]) -> bool:
        """Publish a stream that goes on without a reader."""
        check_stream_id(stream_id)
        if not isinstance(source, abc.ObservableBase):
            raise InvalidValueError.of([("source", source, "must be an Observable of events")])
        loop = needed_loop("Relay.start", "await it in a coroutine that asyncio.run() runs")
        began: asyncio.Future[bool] = loop.create_future()
        run: Observable[Event] = create(
            "start", lambda sink: self._publication(sink, source, stream_id, began.set_result)
        )
        task = loop.create_task(_run(stream_id, run))
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)
        return await asyncio.shield(began)

    def watch(self, stream_id: str, after: str | None = None) -> Observable[Event]:
        """Emit the events of a stream: those so far, then those that come."""
        return self._read("watch", stream_id, after, None, lambda _, __, event: event)

    def entries(
        self, stream_id: str, after: str | None = None, *, split_at: str | None = None
    ) -> Observable[Entry]:
        """Emit the events of a stream, each with the id behind which a reader can go on."""
        return self._read("entries", stream_id, after, split_at, _entry)

    def _read(
        self,
        name: str,
        stream_id: str,
        after: str | None,
        split_at: str | None,
        make: Callable[[str, int, Event], Any],
    ) -> Observable[Any]:
        check_stream_id(stream_id)
        check_entry_id("after", after)
        check_entry_id("split_at", split_at)

        def begin(sink: Any) -> None:
            Reader(sink, stream_id, after, split_at, self._lease, make).begin(self._store)

        return create(name, begin, emits="events" if name == "watch" else "items")

    async def cancel(self, stream_id: str, reason: str | None = None) -> bool:
        """Stop the publisher of a live stream."""
        check_stream_id(stream_id)
        if reason is not None and not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError.of([("reason", reason, "must be a string")])
        return await self._store.tell(stream_id, reason)

    async def is_live(self, stream_id: str) -> bool:
        """Whether the stream has begun and not ended."""
        return await self._store.is_live(check_stream_id(stream_id))

    async def streams(self) -> list[str]:
        """The ids of all streams that can be watched, live or ended, in the order in which they began."""
        return await self._store.names()

    async def delete(self, stream_id: str) -> bool:
        """Forget a stream. A live one is stopped before."""
        check_stream_id(stream_id)
        await self._store.tell(stream_id, "deleted")
        return await self._store.delete(stream_id)

    async def _close(self) -> None:
        await self._store.close()
        here = asyncio.get_running_loop()
        runs = [task for task in self._runs if task.get_loop() is here]
        if runs:
            _, late = await asyncio.wait(runs, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()


def _entry(epoch: str, number: int, event: Event) -> Entry:
    return Entry(entry_id(epoch, number), event)


async def _run(stream_id: str, run: Observable[Event]) -> None:
    try:
        await for_each(run.pipe(ops.ignore_elements()), lambda _: None)
    except Exception as error:
        logging.getLogger("rxdelta").error("the stream %r ended with an error", stream_id, exc_info=error)


@asynccontextmanager
async def _opened(lease: float, keep: float, max_events: int) -> AsyncGenerator[Relay]:
    loop = needed_loop("Relay.open", "enter it in a coroutine that asyncio.run() runs")
    relay = Relay(Memory(keep, loop), lease, max_events)
    try:
        yield relay
    finally:
        await relay._close()
