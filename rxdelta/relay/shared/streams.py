"""The logs that several processes share, over a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from reactivex.disposable import Disposable

from rxdelta.core import LimitExceededError, RxDeltaError, StreamInterrupted
from rxdelta.relay.logs import Name, Publisher, Seeker
from rxdelta.relay.scope import is_name
from rxdelta.relay.shared.feed import EARLY, Feed, Pace
from rxdelta.relay.shared.place import SIGNS, Place
from rxdelta.relay.shared.records import DIED_UNUSED
from rxdelta.relay.shared.writer import Writer
from rxdelta.relay.store import LogKey, Topic
from rxdelta.runtime import call_on, running_loop

if TYPE_CHECKING:
    from reactivex import abc


T = TypeVar("T")

_CLOSED = "the relay was closed"
_LIVE = "it is live"
_KEPT = "it has ended, and is kept until it is deleted or its time is over"
_CLOSE_SECONDS = 5.0


class _Taken(Exception):
    """The name is that of another log."""


class _Search:
    """The search for the log of one name, for all readers of this process that look for it."""

    def __init__(self) -> None:
        self.seekers: dict[Seeker, bool] = {}  # True: it knows that the log hasn't begun
        self.look = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Streams:
    """Logs in a store. Everything happens in one loop's thread; calls may come from any."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._terms = place.terms
        self._pace = Pace()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._writers: dict[LogKey, Writer] = {}
        self._claims: set[asyncio.Task[None]] = set()
        self._lost: dict[Name, tuple[LogKey, float]] = {}
        """Claims that may have succeeded, and until when that counts."""
        self._searches: dict[Name, _Search] = {}
        self._feeds: dict[LogKey, Feed] = {}
        self._signs = place.spawn(self._give_signs())

    # the publisher's side

    def claim(self, name: Name, publisher: Publisher) -> None:
        self._do(partial(self._begin_claim, name, publisher))

    def _begin_claim(self, name: Name, publisher: Publisher) -> None:
        if self._is_closed:
            publisher.refused(_CLOSED, taken=False)
            return
        task = self._place.spawn(self._claim(name, publisher))
        self._claims.add(task)
        task.add_done_callback(self._claims.discard)

    async def _claim(self, name: Name, publisher: Publisher) -> None:
        # The answer to an earlier claim may have been lost, and the log have begun: then it is ours, and continues.
        key, _ = self._lost.pop(name, (LogKey(*name, token_hex(8)), 0.0))
        try:
            while (writer := await self._claimed(key, publisher)) is None:
                key = LogKey(*name, token_hex(8))
        except _Taken as taken:
            publisher.refused(str(taken), taken=True)
        except LimitExceededError as full:
            publisher.failed(full)
        except RxDeltaError as error:
            self._lost[name] = key, self._loop.time() + self._terms.lease + self._terms.keep
            publisher.failed(error)
        except asyncio.CancelledError:
            publisher.failed(StreamInterrupted(_CLOSED))
            raise
        else:
            self._writers[key] = writer
            publisher.claimed(writer)
            writer.begin()
            if self._is_closed:
                publisher.tell(_CLOSED)

    async def _claimed(self, key: LogKey, publisher: Publisher) -> Writer | None:
        """Begin a log, and return what writes it; or `None` if the name had to be freed first.

        Raises:
            _Taken: There is a log with this name.
            LimitExceededError: The store is too full for another log.
        """
        place = self._place
        full = None if place.total is None else await place.total.refusal()
        # A taken name is refused as taken, also while the store is full.
        if full is not None and await place.find(_name(key)) is None:
            raise full
        # Before the log begins: a stop may be faster than the answer.
        writer = Writer(place, key, publisher, self._forget_writer)
        holder: str | None = key.epoch
        try:
            holder = await place.ask(place.store.begin, key)
        finally:
            if holder is not None:
                writer.leave()
        if holder is None:
            await writer.listen()
            return writer
        await self._free(LogKey(key.tenant, key.id, holder))
        return None

    async def _free(self, key: LogKey) -> None:
        """Free the name of a log whose publisher has died before the first event.

        Raises:
            _Taken: It is another log.
        """
        place = self._place
        while True:
            page, left = await place.read(key)
            if page is None:  # it has expired just now; or the store has lost it, which this raises
                await place.find(_name(key))
                return
            if left is None:
                if page.newest == 1:  # which tells an end without events from others
                    page, _ = await place.read(key, 0)
                if page is None or not page.records or page.records[-1].dead != DIED_UNUSED:
                    raise _Taken(_KEPT)
                await place.ask(place.store.free, key)
                return
            if page.newest or left > page.lease / 4:
                raise _Taken(_LIVE)
            await asyncio.sleep(left + EARLY)  # the publisher's sign is missed

    def _forget_writer(self, writer: Writer) -> None:
        self._writers.pop(writer.key, None)

    async def _give_signs(self) -> None:
        while True:
            await asyncio.sleep(self._terms.lease / SIGNS)
            now = self._loop.time()
            self._lost = {name: lost for name, lost in self._lost.items() if lost[1] > now}
            for writer in [*self._writers.values()]:
                writer.renew()
            if self._writers and self._place.total is not None:
                self._place.total.ask()

    # the reader's side

    def find(self, name: Name, seeker: Seeker) -> abc.DisposableBase:
        self._do(partial(self._find, name, seeker))
        return Disposable(partial(call_on, self._loop, partial(self._forget_seeker, name, seeker)))

    def _find(self, name: Name, seeker: Seeker) -> None:
        if self._is_closed:
            seeker.failed(StreamInterrupted(_CLOSED))
            return
        search = self._searches.get(name)
        if search is None:
            search = self._searches[name] = _Search()
            search.task = self._place.spawn(self._seek(name, search))
        search.seekers[seeker] = False
        search.look.set()  # what it knows may be old, and news of the log late

    def _forget_seeker(self, name: Name, seeker: Seeker) -> None:
        search = self._searches.get(name)
        if search is not None:
            search.seekers.pop(seeker, None)
            if not search.seekers:
                self._end_search(name, search)

    def _end_search(self, name: Name, search: _Search) -> None:
        if self._searches.get(name) is search:
            del self._searches[name]
            if search.task is not None and search.task is not asyncio.current_task():
                search.task.cancel()

    async def _seek(self, name: Name, search: _Search) -> None:
        """Find the log of a name, and give it to all readers that look for it."""
        place, seekers = self._place, search.seekers
        unfollow = place.store.follow(Topic("begun", *name), search.look.set)
        try:
            while seekers:
                # Cleared before the look: a log that begins during it is looked for again.
                search.look.clear()
                # A later seeker needs a later answer: the log may begin meanwhile.
                known = [*seekers]
                key = await place.find(name)
                if key is not None:
                    await self._give(self._feed(key), seekers, known)
                    continue
                for seeker in known:
                    if seekers.get(seeker) is False:
                        seekers[seeker] = True
                        seeker.awaits()
                await search.look.wait()
        except RxDeltaError as error:
            for seeker in [*seekers]:
                seeker.failed(error)
        finally:
            unfollow()
            self._end_search(name, search)

    async def _give(self, feed: Feed, seekers: dict[Seeker, bool], known: list[Seeker]) -> None:
        """Give a log to the readers that looked for it before it was found."""
        log = feed.enter()  # so that the feed isn't forgotten before the first reader has it
        try:
            await feed.catch_up()
            for seeker in known:
                was_early = seekers.pop(seeker, None)
                if was_early is not None:
                    seeker.found(feed.enter(), feed.events.none_yet() if was_early else feed.events.news())
        finally:
            log.leave()

    def _feed(self, key: LogKey) -> Feed:
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(self._place, key, self._pace, self._forget_feed)
        return feed

    def _forget_feed(self, feed: Feed) -> None:
        if self._feeds.get(feed.key) is feed:
            del self._feeds[feed.key]

    # both

    async def tell(self, name: Name, reason: str | None) -> bool:
        return await self._here(partial(self._tell, name, reason))

    async def _tell(self, name: Name, reason: str | None) -> bool:
        # A publisher of this process needs no round trip, and stops also while the store is away.
        for own, writer in self._writers.items():
            if _name(own) == name:
                return writer.publisher.tell(reason)
        key = await self._place.live(name)
        if key is None:
            return False
        said = self._place.form(key).reason(reason)
        return await self._place.ask(self._place.store.stop, key, token_hex(8), said)

    async def is_live(self, name: Name) -> bool:
        return await self._here(partial(self._is_live, name))

    async def _is_live(self, name: Name) -> bool:
        return await self._place.live(name) is not None

    async def names(self, tenant: str) -> list[str]:
        return await self._here(partial(self._names, tenant))

    async def _names(self, tenant: str) -> list[str]:
        found = await self._place.ask(self._place.store.names, tenant)
        return [name for name in found if is_name(name)]  # somebody else may have written others

    async def delete(self, name: Name) -> bool:
        return await self._here(partial(self._delete, name))

    async def _delete(self, name: Name) -> bool:
        key = await self._place.find(name)
        if key is not None:
            await self._place.ask(self._place.store.free, key)
        return key is not None

    async def probe(self, seconds: float) -> float:
        return await self._here(partial(self._probe, seconds))

    async def _probe(self, seconds: float) -> float:
        begin = self._loop.time()
        try:
            async with asyncio.timeout(seconds):
                await self._place.ask(self._place.store.probe)
        except TimeoutError:
            why = self._place.traffic.why()
            raise StreamInterrupted(
                f"the relay's store hasn't written for {seconds:g} seconds{why}"
            ) from None
        return self._loop.time() - begin

    def away(self) -> float:
        return self._place.traffic.away()

    def kept_bytes(self) -> int:
        total = self._place.total
        return 0 if total is None else total.bytes

    async def close(self) -> None:
        """Stop the publishers of this process, and let go of the store. Streams of others continue, and all are kept."""
        self._is_closed = True
        for writer in [*self._writers.values()]:
            writer.publisher.tell(_CLOSED)
        with suppress(RxDeltaError, TimeoutError):
            async with asyncio.timeout(min(_CLOSE_SECONDS, self._terms.patience)):
                await self._finish()
        for search in [*self._searches.values()]:
            for seeker in [*search.seekers]:
                seeker.failed(StreamInterrupted(_CLOSED))
            search.seekers.clear()
        for feed in [*self._feeds.values()]:
            feed.fail(StreamInterrupted(_CLOSED))
        while self._place.tasks:
            for task in [*self._place.tasks]:
                task.cancel()
            await asyncio.wait([*self._place.tasks], timeout=0.1)
        for writer in [*self._writers.values()]:
            writer.lose(StreamInterrupted(_CLOSED))
        await self._place.close()

    async def _finish(self) -> None:
        """Wait until the ends of this process's streams are written, and read by its readers."""
        while self._claims or self._writers:
            await asyncio.wait([*self._claims, *(writer.ended for writer in self._writers.values())])
        await asyncio.gather(*(feed.catch_up() for feed in [*self._feeds.values()]))

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


def _name(key: LogKey) -> Name:
    return Name(key.tenant, key.id)
