"""The relay's store on Valkey or Redis servers. It needs the extra `rxdelta[relay]`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from rxdelta.core import RxDeltaError, StreamInterrupted
from rxdelta.relay.shared.asking import Patient
from rxdelta.relay.store import Answer, Followers, LogKey, Page, Record, Terms, Topic
from rxdelta.relay.valkey.calls import Kind, Word
from rxdelta.relay.valkey.connections import Connections
from rxdelta.relay.valkey.hub import Follower, Hub
from rxdelta.relay.valkey.scripts import (
    APPEND,
    BURY,
    BYTES,
    CLAIM,
    DELETE,
    DROP,
    HEAD,
    LIST,
    LOOK,
    READ,
    READ_INBOX,
    REPLICATES,
    TAGS,
    TELL,
    Keys,
    bytes_keys,
    id_of,
    inbox_key,
    names_key,
)
from rxdelta.relay.valkey.urls import place_of

if TYPE_CHECKING:
    Entry = tuple[bytes, Mapping[bytes, bytes]]


_FORMAT = 1
_EPOCH = re.compile("[0-9a-f]{16}")
_BEGIN = b"0-1"
"""The first entry's id: the stream has begun."""
_MOST_ENTRIES = 500
"""How many entries of a log are read at once."""
_MOST_HELD = 1000
"""How many records that were heard wait to be read."""
_INBOX_MILLISECONDS = 86_400_000
_STATES: Mapping[int, Any] = {1: "written", 2: "written", -1: "gone", -2: "ended", -3: "lost"}


class ValkeyStore(Patient):
    """Logs on Valkey or Redis: one server, the master that Sentinels name, or a Cluster.

    Args:
        where: A URL, see `Relay.open`; or an asyncio client or connection pool of the package `valkey` or `redis`.
        prefix: What the names of all keys begin with.
        replicas: How many replicas must have an event before it counts as written.
    """

    def __init__(self, where: Any, *, prefix: str = "rxdelta", replicas: int = 0) -> None:
        self._where = where
        self._shown = place_of(where).shown  # raises
        self._prefix = prefix
        self._replicas = replicas
        self._signs = count(-1, -1)

    def __repr__(self) -> str:
        return f"ValkeyStore({self._shown!r})"

    async def open(self, terms: Terms) -> None:
        self._terms = terms
        self._token = token_hex(8)  # names this relay there
        self._followers = Followers(self._begin_to_follow, self._stop_to_follow)
        self._heard: dict[Topic, _Heard] = {}  # what the hub follows for somebody, or did
        self._inboxes: set[int] = set()  # the tags of those that are followed
        self._stops: dict[str, Topic] = {}  # by epoch
        self._lease = max(1, round(terms.lease * 1000))
        self._kept = max(1, round(terms.keep * 1000))
        self._connections = await Connections.open(
            self._where,
            patience=terms.patience,
            replicas=self._replicas,
            lease=terms.lease,
            tally=terms.tally,
        )
        self.traffic = self._connections.traffic
        self._call = self._connections.call
        self._hub = Hub(self._connections, self._inbox, patience=terms.patience, lease=terms.lease)

    async def close(self) -> None:
        if not hasattr(self, "_hub"):
            return
        with suppress(RxDeltaError, TimeoutError):
            async with asyncio.timeout(1.0):
                for tag in [*self._inboxes]:  # one whose reading fails meanwhile leaves
                    await self._call(tag, DROP, [self._inbox(tag)], [])
        await self._hub.aclose()
        await self._connections.aclose()

    # the publisher

    async def begin(self, key: LogKey) -> str | None:
        run = self._run(key)
        self._open_inbox(run.keys.tag)
        arguments: list[Word] = [
            _FORMAT,
            key.epoch,
            self._lease,
            self._lease + self._kept,
            self._inbox(run.keys.tag),
            run.keys.id,
        ]
        answer = await self._call(run.keys.tag, CLAIM, run.head_first, arguments)
        return None if answer == 1 else answer.decode()

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        run, written = self._run(key), record or Record(0, 0)
        tag = run.keys.tag
        self._open_inbox(tag)  # again, if the server was away for too long
        arguments: list[Word] = [
            _FORMAT,
            key.epoch,
            self._lease,
            self._lease + self._kept,
            self._inbox(tag),
            run.keys.id,
            -1 if before is None else before,
            written.count,
            written.events,
            written.end or b"",
            self._kept,
            written.size,
            int(record is None),
        ]
        # A server that is nearly full refuses a sign that comes with an append as it refuses the append.
        kind = Kind.SIGN if before is None else Kind.SHORT
        code, *stop = await self._call(tag, APPEND, run.log_first, arguments, kind)
        return Answer(_STATES[code], stop[0] if stop else None, code != 2)

    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        run = self._run(key)
        (inbox,) = await self._call(run.keys.tag, READ_INBOX, [run.own], [])
        if not inbox:
            return False
        arguments: list[Word] = [token, key.epoch, reason, _INBOX_MILLISECONDS]
        return bool(await self._call(run.keys.tag, TELL, [run.own, inbox], arguments))

    async def free(self, key: LogKey) -> bool:
        run = self._run(key)
        await self._call(run.keys.tag, DELETE, run.head_first, [key.epoch, run.keys.id, self._lease])
        return True

    # the reader

    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        if epoch is not None:
            return await self._read(LogKey(tenant, id, epoch), after, most)
        named = await self._epoch(tenant, id)
        page = None if named is None else await self._read(LogKey(tenant, id, named), after, most)
        if page is None and named is not None and await self._epoch(tenant, id) == named:  # nothing expired
            raise StreamInterrupted("the relay's store has this log no more")
        return page

    async def _read(self, key: LogKey, after: int, most: int) -> Page | None:
        run, topic = self._run(key), Topic("written", *key)
        heard = self._heard.get(topic)
        if heard is not None and (news := heard.taken(after)):
            last, sign = news[-1], next(self._signs)
            return Page(key.epoch, news, last.number, last.end is not None, sign, 0.0, self._terms.lease)
        look = self._call(run.keys.tag, LOOK, [run.log, run.own], [])
        entries: Sequence[Any] = ()
        if after:
            said = await look
        else:  # there is something, so in the same round trip
            said, entries = await asyncio.gather(look, self._page(run, after, most))
        if not said:
            return None
        last_id, ended, until, length, now = said
        newest = _number(last_id)
        if newest > after and not entries[1:] and most:
            entries = await self._page(run, after, most)
        found = _records([(entry_id, _fields(flat)) for entry_id, flat in entries], from_start=not after)
        if heard is not None:
            self._hear(run, topic, heard, found[-1].number if found else min(after, newest))
        lease = int(length) / 1000 or self._terms.lease
        age = (int(now) - int(until)) / 1000 + lease
        return Page(key.epoch, found, newest, bool(ended), int(until), age, lease)

    async def _epoch(self, tenant: str, id: str) -> str | None:
        keys, topic = Keys.of(self._prefix, tenant, id), Topic("begun", tenant, id)
        heard = self._heard.get(topic)
        if heard is not None:
            heard.check()
            self._hear_head(keys, topic, heard)
        page = await self._call(keys.tag, HEAD, [keys.head], [])
        if not page:
            return None
        fields = _checked(_fields(page[-1][1]))
        epoch = fields.get(b"p", b"").decode(errors="replace")
        if not _EPOCH.fullmatch(epoch):
            raise StreamInterrupted("the stream has a head that can't be read here")
        return epoch

    def _page(self, run: _Run, after: int, most: int) -> asyncio.Future[Any]:
        start = f"({after}-0" if after else "-"
        return self._call(run.keys.tag, READ, [run.log], [start, _MOST_ENTRIES, most])

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        run = self._run(key)
        if sign is not None:
            # A master that was replaced and doesn't know it hears no publisher, and has no replicas either. An end that it
            # writes would be read there at once. Calls for the log don't wait for this one: its key is none of theirs.
            await self._call(run.keys.tag, REPLICATES, [run.own + b":"], [])
        arguments: list[Word] = [
            _FORMAT,
            key.epoch,
            self._kept,
            run.keys.id,
            record.number,
            record.end or b"",
            record.dead,
            "" if sign is None else sign,
        ]
        return bool(await self._call(run.keys.tag, BURY, run.log_first, arguments))

    # both

    async def names(self, tenant: str) -> Sequence[str]:
        calls = (self._call(tag, LIST, [names_key(self._prefix, tag, tenant)], []) for tag in range(TAGS))
        members = [member for members in await asyncio.gather(*calls) for member in members]
        return [stream_id for _, stream_id in sorted(map(id_of, members))]

    async def total(self) -> int:
        calls = (self._call(tag, BYTES, bytes_keys(self._prefix, tag), []) for tag in range(TAGS))
        return sum(await asyncio.gather(*calls))

    async def probe(self) -> None:
        tags = {self._connections.lane_of(tag) for tag in range(TAGS)}  # one, but in a Cluster all
        calls = (self._call(tag, REPLICATES, [self._inbox(tag) + b":probe"], []) for tag in tags)
        await asyncio.gather(*calls)

    def _run(self, key: LogKey) -> _Run:
        return _Run(Keys.of(self._prefix, key.tenant, key.id), key.epoch, self._terms.counts)

    # news

    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        return self._followers.add(topic, changed)

    def _begin_to_follow(self, topic: Topic) -> None:
        keys = Keys.of(self._prefix, topic.tenant, topic.id)
        if topic.what == "stopped":
            self._stops[topic.epoch] = topic
            self._open_inbox(keys.tag)
            return
        heard = self._heard[topic] = _Heard()
        if topic.what == "begun":
            self._hear_head(keys, topic, heard)
        # A log is followed from the first reading on: before that no cursor is known.

    def _stop_to_follow(self, topic: Topic) -> None:
        self._stops.pop(topic.epoch, None)
        heard = self._heard.pop(topic, None)
        if heard is not None and heard.key is not None:
            self._hub.leave(Keys.of(self._prefix, topic.tenant, topic.id).tag, heard.key)

    def _hear_head(self, keys: Keys, topic: Topic, heard: _Heard) -> None:
        if heard.key is None:
            heard.key = keys.head
            follower = Follower(
                b"0-0", lambda _: self._followers.wake(topic), partial(self._lose, topic, heard)
            )
            self._hub.follow(keys.tag, keys.head, follower)

    def _hear(self, run: _Run, topic: Topic, heard: _Heard, number: int) -> None:
        """Follow a log from behind a number."""

        def take(entries: Sequence[Entry]) -> None:
            try:
                stays = heard.adds(_records(entries))
            except StreamInterrupted as error:
                heard.key, heard.error, stays = None, error, False
            if not stays:
                self._hub.leave(run.keys.tag, run.log)
            self._followers.wake(topic)

        if heard.key is None:
            heard.key = run.log
            cursor = b"%d-0" % number if number else _BEGIN
            follower = Follower(cursor, take, partial(self._lose, topic, heard))
            self._hub.follow(run.keys.tag, run.log, follower)

    def _lose(self, topic: Topic, heard: _Heard, error: RxDeltaError) -> None:
        """Nothing of a topic is heard any more: the next reader gets the error."""
        heard.key, heard.error = None, error
        self._followers.wake(topic)

    def _inbox(self, tag: int) -> bytes:
        return inbox_key(self._prefix, tag, self._token)

    def _open_inbox(self, tag: int) -> None:
        if tag not in self._inboxes:
            self._inboxes.add(tag)
            follower = Follower(b"0-0", self._take_messages, lambda _: self._inboxes.discard(tag))
            self._hub.follow(tag, self._inbox(tag), follower)

    def _take_messages(self, entries: Sequence[Entry]) -> None:
        for _, fields in entries:
            topic = self._stops.get(fields.get(b"p", b"").decode(errors="replace"))
            if topic is not None:
                self._followers.wake(topic)


class _Heard:
    """The news of a key that a follower waits for.

    Attributes:
        key: The key, while the hub follows it.
        error: Why it doesn't any more.
    """

    def __init__(self) -> None:
        self.key: bytes | None = None
        self.error: RxDeltaError | None = None
        self._records: list[Record] = []

    def adds(self, records: Sequence[Record]) -> bool:
        """Keep records for the next reading. Returns whether more may come: nobody may read them."""
        self._records.extend(records)
        if len(self._records) > _MOST_HELD:
            self._records.clear()
            self.key = None
        return self.key is not None

    def taken(self, after: int) -> list[Record]:
        """The records behind a number, if they are here."""
        self.check()
        records = [record for record in self._records if record.number > after]
        if records and records[0].number - max(records[0].count, 1) > after:
            return []
        self._records = []
        return records

    def check(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


class _Run:
    """The keys of one publication, as the scripts take them."""

    def __init__(self, keys: Keys, epoch: str, counts: bool) -> None:
        self.keys = keys
        self.log, self.own = keys.log(epoch), keys.own(epoch)
        rest = (keys.names, *(keys.sums if counts else ()))
        self.log_first = (self.log, self.own, keys.head, *rest)
        self.head_first = (keys.head, self.log, self.own, *rest)


def _number(entry_id: bytes) -> int:
    """The number of an entry's last event."""
    return int(entry_id.partition(b"-")[0])


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2]))


def _checked(fields: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    form = fields.get(b"f", b"")
    if form != b"%d" % _FORMAT:
        form_text = form.decode(errors="replace")[:20]
        raise StreamInterrupted(
            f"the log has an entry of format {form_text!r}, and this rxdelta reads format {_FORMAT}"
        )
    return fields


def _records(entries: Sequence[Entry], *, from_start: bool = False) -> list[Record]:
    """The records of entries, up to the first that can't be read here. The first entry of a log has none.

    Raises:
        StreamInterrupted: That is the first of these, or the log's first is missing.
    """
    if from_start and entries and entries[0][0] != _BEGIN:
        gone = f"events 1 to {_number(entries[0][0])} or less are no longer in the log"
        raise StreamInterrupted(gone)
    records = list[Record]()
    for entry_id, fields in entries:
        try:
            record = _record(entry_id, fields)
        except StreamInterrupted:
            if not records:
                raise
            break  # the next reading begins with it
        if entry_id != _BEGIN:
            records.append(record)
    return records


def _record(entry_id: bytes, fields: Mapping[bytes, bytes]) -> Record:
    _checked(fields)
    try:
        counted, dead = int(fields[b"c"]), int(fields.get(b"d", b"0"))
    except (KeyError, ValueError) as error:
        raise StreamInterrupted("the log has an entry that can't be read here") from error
    return Record(_number(entry_id), counted, fields.get(b"e", b""), fields.get(b"z"), dead)
