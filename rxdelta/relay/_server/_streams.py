"""The store on a server: Valkey or Redis Streams."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from reactivex.disposable import Disposable

from rxdelta.core import LimitExceededError, RxDeltaError, StreamInterrupted
from rxdelta.relay._server._entries import BEGIN, FORMAT, read_head
from rxdelta.relay._server._feed import EARLY, Feed
from rxdelta.relay._server._hub import Follower
from rxdelta.relay._server._keys import TAGS, id_of, names_key
from rxdelta.relay._server._scripts import (
    CLAIM,
    DELETE,
    DROP,
    HEAD,
    LIST,
    READ_INBOX,
    REPLICATES,
    SIGNS,
    TELL,
)
from rxdelta.relay._server._writer import Writer
from rxdelta.runtime import call_on, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from reactivex import abc

    from rxdelta.relay._server._connections import Word
    from rxdelta.relay._server._server import Run, Server
    from rxdelta.relay._store import Name, Publisher, Seeker

__all__ = ["Streams"]

T = TypeVar("T")

_CLOSED = "the relay was closed"
_LIVE = "it is live"
_KEPT = "it has ended, and is kept until it is deleted or its time is over"
_CLOSE_SECONDS = 5.0
_INBOX_MILLISECONDS = 86_400_000


class _Taken(Exception):
    """The name is that of another log."""


class Streams:
    """Logs on a server. Everything happens in one loop's thread; calls may come from any."""

    def __init__(self, server: Server, patience: float) -> None:
        self._server = server
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._writers: dict[str, Writer] = {}  # by epoch
        self._claiming: dict[str, Writer] = {}  # by epoch: a cancel may be faster than the claim's answer
        self._claims: set[asyncio.Task[None]] = set()
        self._lost: dict[
            Name, tuple[Run, float]
        ] = {}  # claims that may have succeeded, and until when that counts
        self._seekers: dict[Name, dict[Seeker, None]] = {}
        self._seeking: dict[Name, asyncio.Task[None]] = {}
        self._begun: dict[Name, asyncio.Future[Run]] = {}  # logs that readers wait for
        self._feeds: dict[str, Feed] = {}  # by epoch
        self._inboxes: set[int] = set()  # the tags of those that are followed
        self._tasks: set[asyncio.Task[None]] = set()
        self._signs = self._spawn(self._give_signs())

    # the publisher's side

    def claim(self, name: Name, publisher: Publisher) -> None:
        self._do(partial(self._begin_claim, name, publisher))

    def _begin_claim(self, name: Name, publisher: Publisher) -> None:
        if self._is_closed:
            publisher.refused(_CLOSED, taken=False)
            return
        task = self._spawn(self._claim(name, publisher))
        self._claims.add(task)
        task.add_done_callback(self._claims.discard)

    async def _claim(self, name: Name, publisher: Publisher) -> None:
        # The answer to an earlier claim may have been lost, and the log have begun: then it is ours, and goes on.
        run, _ = self._lost.pop(name, (self._server.run(name, token_hex(8)), 0.0))
        try:
            while (writer := await self._claimed(run, publisher)) is None:
                run = self._server.run(name, token_hex(8))
        except _Taken as taken:
            publisher.refused(str(taken), taken=True)
            return
        except LimitExceededError as full:
            publisher.failed(full)
            return
        except RxDeltaError as error:
            self._lost[name] = run, self._loop.time() + self._server.live_for / 1000
            publisher.failed(error)
            return
        except asyncio.CancelledError:
            publisher.failed(StreamInterrupted(_CLOSED))
            raise
        self._writers[run.epoch] = writer
        publisher.claimed(writer)
        if self._is_closed:
            publisher.tell(_CLOSED)

    async def _claimed(self, run: Run, publisher: Publisher) -> Writer | None:
        """Begin a log, and return what writes it; or `None` if the name had to be freed first.

        Raises:
            _Taken: There is a log with this name.
            LimitExceededError: The store has no room for another log.
        """
        server = self._server
        full = None if server.total is None else await server.total.refusal()
        if full is not None and await self._head(run.name) is None:
            raise full
        self._open_inbox(run.tag)
        arguments: list[Word] = [
            FORMAT,
            run.epoch,
            server.lease_for,
            server.live_for,
            server.inbox(run.tag),
            run.id,
        ]
        writer = self._claiming[run.epoch] = Writer(server, run, publisher, self._forget_writer)
        try:
            answer = await server.call(run.tag, CLAIM, run.head_first, arguments)
        finally:
            del self._claiming[run.epoch]
        if answer == 1:
            return writer
        await self._free(server.run(run.name, answer.decode()))
        return None

    async def _free(self, run: Run) -> None:
        """Free the name of a log whose publisher has died before the first event.

        Raises:
            _Taken: It is another log.
        """
        state, last, left = await run.decide(0)
        while state == 1 and last == BEGIN and left < self._server.lease_for / 4:
            await asyncio.sleep(left / 1000 + EARLY)  # the publisher's sign is missed
            state, last, left = await run.decide(0)
        if state == 1:
            raise _Taken(_LIVE)
        which: list[Word] = [run.epoch, run.id, self._server.lease_for, "unused"]
        if not await self._server.call(run.tag, DELETE, run.head_first, which):
            raise _Taken(_KEPT)

    def _forget_writer(self, writer: Writer) -> None:
        self._writers.pop(writer.run.epoch, None)

    def _open_inbox(self, tag: int) -> None:
        if tag not in self._inboxes:
            self._inboxes.add(tag)
            follower = Follower(b"0-0", self._take_messages, partial(self._lose_inbox, tag))
            self._server.hub.follow(tag, self._server.inbox(tag), follower)

    def _lose_inbox(self, tag: int, _: RxDeltaError) -> None:
        self._inboxes.discard(tag)

    def _take_messages(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        for _, fields in entries:
            epoch = fields.get(b"p", b"").decode(errors="replace")
            writer = self._writers.get(epoch) or self._claiming.get(epoch)
            if writer is not None:
                writer.tell(fields.get(b"r"))

    async def _give_signs(self) -> None:
        while True:
            await asyncio.sleep(self._server.lease / SIGNS)
            now = self._loop.time()
            self._lost = {name: lost for name, lost in self._lost.items() if lost[1] > now}
            for tag in [*{writer.run.tag for writer in self._writers.values()}]:
                self._open_inbox(tag)  # again, if the server was away for too long
            for writer in [*self._writers.values()]:
                writer.renew()
            if self._writers and self._server.total is not None:
                self._server.total.ask()

    # the reader's side

    def find(self, name: Name, seeker: Seeker) -> abc.DisposableBase:
        self._do(partial(self._find, name, seeker))
        return Disposable(partial(call_on, self._loop, partial(self._forget_seeker, name, seeker)))

    def _find(self, name: Name, seeker: Seeker) -> None:
        if self._is_closed:
            seeker.failed(StreamInterrupted(_CLOSED))
            return
        self._seekers.setdefault(name, {})[seeker] = None
        if name not in self._seeking:
            self._seeking[name] = self._spawn(self._seek(name))
        elif name in self._begun:
            self._spawn(self._look(name, seeker, self._begun[name]))

    def _feed(self, run: Run) -> Feed:
        feed = self._feeds.get(run.epoch)
        if feed is None:
            feed = self._feeds[run.epoch] = Feed(self._server, run, self._forget_feed)
        return feed

    def _forget_feed(self, feed: Feed) -> None:
        if self._feeds.get(feed.run.epoch) is feed:
            del self._feeds[feed.run.epoch]

    def _forget_seeker(self, name: Name, seeker: Seeker) -> None:
        seekers = self._seekers.get(name, {})
        seekers.pop(seeker, None)
        if not seekers:
            self._seekers.pop(name, None)
            task = self._seeking.pop(name, None)
            if task is not None:
                task.cancel()

    async def _seek(self, name: Name) -> None:
        """Find the log of a name, and give it to all who look for it."""
        try:
            while name in self._seekers:
                known = [*self._seekers[name]]
                run = await self._head(name)
                were_early = run is None
                if run is None:
                    run = await self._begins(name)
                    known = [*self._seekers.get(name, ())]
                feed = self._feed(run)
                log = feed.enter()  # so that the feed isn't forgotten before the first reader has it
                try:
                    await feed.catch_up()
                    news = feed.events.none_yet() if were_early else feed.events.news()
                    for seeker in known:
                        if self._seekers.get(name, {}).pop(seeker, self) is None:
                            seeker.found(feed.enter(), news)
                finally:
                    log.leave()
                if not self._seekers.get(name):
                    self._seekers.pop(name, None)
        except RxDeltaError as error:
            for seeker in self._seekers.pop(name, ()):
                seeker.failed(error)
        finally:
            if self._seeking.get(name) is asyncio.current_task():
                del self._seeking[name]

    async def _look(self, name: Name, seeker: Seeker, begun: asyncio.Future[Run]) -> None:
        """Find out for one more seeker whether the log is still awaited: the news of it may be late."""
        try:
            run = await self._head(name)
        except RxDeltaError as error:
            if self._seekers.get(name, {}).pop(seeker, self) is None:
                seeker.failed(error)
            return
        if begun.done():
            return
        if run is not None:
            begun.set_result(run)
        elif seeker in self._seekers.get(name, ()):
            seeker.awaits()

    async def _begins(self, name: Name) -> Run:
        """Wait for the next publication of a name."""
        server, keys = self._server, self._server.keys(name)
        begun: asyncio.Future[Run] = self._loop.create_future()
        self._begun[name] = begun

        def take(entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
            if not begun.done():
                begun.set_result(server.run(name, read_head(entries[-1][1])))

        def fail(error: RxDeltaError) -> None:
            if not begun.done():
                begun.set_exception(error)

        for seeker in self._seekers.get(name, ()):
            seeker.awaits()
        server.hub.follow(keys.tag, keys.head, Follower(b"0-0", take, fail))
        try:
            return await begun
        finally:
            del self._begun[name]
            server.hub.leave(keys.tag, keys.head)

    async def _head(self, name: Name) -> Run | None:
        keys = self._server.keys(name)
        page = await self._server.call(keys.tag, HEAD, [keys.head], [])
        if not page:
            return None
        fields: list[bytes] = page[-1][1]
        return self._server.run(name, read_head(dict(zip(fields[::2], fields[1::2]))))

    async def _state(self, run: Run) -> int:
        """The state of a log as `CHECK` returns it, without a 3."""
        return int((await run.decide(0))[0])

    # both

    async def tell(self, name: Name, reason: str | None) -> bool:
        return await self._here(partial(self._tell, name, reason))

    async def _tell(self, name: Name, reason: str | None) -> bool:
        for writer in self._writers.values():
            if writer.run.name == name:
                return writer.publisher.tell(reason)
        run = await self._head(name)
        if run is None:
            return False
        server = self._server
        reading = server.call(run.tag, READ_INBOX, [run.own], [])
        state, (inbox,) = await asyncio.gather(self._state(run), reading)
        if state != 1 or not inbox:
            return False
        arguments: list[Word] = [
            token_hex(8),
            run.epoch,
            server.values.dump([reason], run.place(0)),
            _INBOX_MILLISECONDS,
        ]
        return bool(await server.call(run.tag, TELL, [run.own, inbox], arguments))

    async def is_live(self, name: Name) -> bool:
        return await self._here(partial(self._is_live, name))

    async def _is_live(self, name: Name) -> bool:
        run = await self._head(name)
        return run is not None and await self._state(run) == 1

    async def names(self, tenant: str) -> list[str]:
        return await self._here(partial(self._names, tenant))

    async def _names(self, tenant: str) -> list[str]:
        server = self._server
        calls = [server.call(tag, LIST, [names_key(server.prefix, tag, tenant)], []) for tag in range(TAGS)]
        members = [member for members in await asyncio.gather(*calls) for member in members]
        return [stream_id for _, stream_id in sorted(map(id_of, members))]

    async def delete(self, name: Name) -> bool:
        return await self._here(partial(self._delete, name))

    async def _delete(self, name: Name) -> bool:
        run = await self._head(name)
        if run is None:
            return False
        await self._server.call(
            run.tag, DELETE, run.head_first, [run.epoch, run.id, self._server.lease_for, ""]
        )
        return True  # the answer is of the last attempt; an earlier one may have deleted it

    async def probe(self, seconds: float) -> float:
        return await self._here(partial(self._probe, seconds))

    async def _probe(self, seconds: float) -> float:
        server, begin = self._server, self._loop.time()
        tags = {server.connections.lane_of(tag) for tag in range(TAGS)}  # one, but in a Cluster all
        calls = [server.call(tag, REPLICATES, [server.inbox(tag) + b":probe"], []) for tag in tags]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*calls)
        except TimeoutError:
            why = server.connections.traffic.why()
            raise StreamInterrupted(
                f"the relay's server hasn't written for {seconds:g} seconds{why}"
            ) from None
        return self._loop.time() - begin

    def away(self) -> float:
        return self._server.connections.traffic.away()

    def kept_bytes(self) -> int:
        total = self._server.total
        return 0 if total is None else total.bytes

    async def close(self) -> None:
        """Stop the publishers of this process, and let go of the server. Streams of others go on, and all are kept."""
        self._is_closed = True
        for writer in [*self._writers.values()]:
            writer.publisher.tell(_CLOSED)
        with suppress(RxDeltaError, TimeoutError):
            async with asyncio.timeout(min(_CLOSE_SECONDS, self._patience)):
                await self._finish()
        for seekers in [*self._seekers.values()]:
            for seeker in [*seekers]:
                seeker.failed(StreamInterrupted(_CLOSED))
        self._seekers.clear()
        for feed in [*self._feeds.values()]:
            feed.fail(StreamInterrupted(_CLOSED))
        while self._tasks:
            for task in [*self._tasks]:
                task.cancel()
            await asyncio.wait([*self._tasks], timeout=0.1)
        await self._server.hub.aclose()
        await self._server.connections.aclose()
        for writer in [*self._writers.values()]:
            writer.lose(StreamInterrupted(_CLOSED))

    async def _finish(self) -> None:
        """Wait until the ends of this process's streams are written, and read by its readers."""
        while self._claims or self._writers:
            await asyncio.wait([*self._claims, *(writer.ended for writer in self._writers.values())])
        await asyncio.gather(*(feed.catch_up() for feed in [*self._feeds.values()]))
        for tag in [*self._inboxes]:
            await self._server.call(tag, DROP, [self._server.inbox(tag)], [])

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _do(self, step: Callable[[], None]) -> None:
        """Take a step on the store's loop. Once closed it only says so, and the loop may be closed, too."""
        if self._is_closed:
            step()
        else:
            call_on(self._loop, step)

    async def _here(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work on the store's loop, for a caller on any."""
        if self._is_closed:
            raise StreamInterrupted(_CLOSED)
        if running_loop() is self._loop:
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))
