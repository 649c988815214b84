"""What a relay asks of the place where several processes keep its logs.

The relay has the law: events, deaths, waiting times, and the form that readers get. A store keeps records, one log
a publication, and says when there is news. So it never looks into a record, and decides nothing but what each method says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from secrets import token_hex
from typing import Literal, NamedTuple

import attrs

from rxdelta.relay.metrics import Tally

_PROBE = "\x7f"
"""A name that no user's stream has, because it isn't printable."""


class LogKey(NamedTuple):
    """Which log: one publication of a stream.

    Attributes:
        tenant: Empty for an application without tenants. Else 1 to 256 printable characters.
        id: The stream's id: 1 to 256 printable characters. Two tenants' streams with one id are two.
        epoch: 16 hexadecimal digits that no other log has.
    """

    tenant: str
    id: str
    epoch: str


@attrs.frozen
class Record:
    """The unit of writing: some events, or the log's end, or both. A store keeps all fields as they are.

    Attributes:
        number: The number of its last event: that of the record before it, and `count`. A record that has only an end has
            the next number.
        count: How many events it has.
        events: The events, as bytes; empty without any.
        end: How the log ended, as bytes, if this is its last record. Never empty.
        dead: 0, but for the end that `bury` writes.
        size: What the record counts of `max_total_bytes`, which is for `total` alone: `read` may leave it out.
    """

    number: int
    count: int
    events: bytes = b""
    end: bytes | None = None
    dead: int = 0
    size: int = 0


@attrs.frozen
class Page:
    """What a log has behind a number.

    Attributes:
        epoch: The log's.
        records: The records behind that number, in order and without a gap, as many as were asked for.
        newest: The number of the log's last record; 0 without any.
        has_ended: Whether that has an end.
        sign: Another one after each sign of the publisher, which are `begin` and `append`.
        age: Seconds since its last sign, by the store's clock. A clock that was wrong may make it anything.
        lease: Seconds for which a sign counts: those of the store that began the log.
    """

    epoch: str
    records: Sequence[Record]
    newest: int
    has_ended: bool
    sign: int
    age: float
    lease: float


@attrs.frozen
class Answer:
    """The answer to a publisher.

    Attributes:
        state: `"written"`; `"gone"`: there is no such log any more; `"ended"`: it has ended with another record than this
            one; `"lost"`: its last record isn't the one that the publisher wrote before.
        stop: The first reason that `stop` was called with, if it was. The answer to a sign alone says so; that to a record
            may leave it out.
        is_named: Whether the log still has its name. The same holds for this.
    """

    state: Literal["written", "gone", "ended", "lost"]
    stop: bytes | None = None
    is_named: bool = True


class Topic(NamedTuple):
    """What somebody wants to know the news of.

    Attributes:
        what: `"begun"`: a log of this name has begun. `"written"`: a record was written into this log. `"stopped"`: the
            publisher of this log gets a stop; asked for only where the log has begun.
        tenant, id: The name.
        epoch: The log's; empty for `"begun"`.
    """

    what: Literal["begun", "written", "stopped"]
    tenant: str
    id: str
    epoch: str = ""


@attrs.frozen
class Terms:
    """The terms of a store from the relay's opening on.

    Attributes:
        lease: Seconds for which a sign of a publisher counts.
        keep: Seconds that a log is kept after its end. A live one is kept for `lease` and `keep` after its last sign.
        patience: Seconds for which the relay calls again while the store is away.
        counts: Whether `total` will be asked, so that the sizes of records count.
        tally: What the relay counts for `Relay.metrics`. A store may add the bytes that it sends and receives.
    """

    lease: float
    keep: float
    patience: float
    counts: bool = False
    tally: Tally = attrs.field(factory=Tally, repr=False, eq=False)


class Store(ABC):
    """The logs of a relay, for all processes that open the same place: give one to `Relay.open`, which opens and closes it.

    A store of your own has the eight abstract methods. `rxdelta.testing.check_store` says whether they are right.

    - **Each call is one step.** Two calls at the same moment, in whatever processes, have an order. What a call has
      answered is there for all later calls, in each process, also after a crash of the caller.
    - **Each call may come twice**, because the answer was lost with the connection; the second time it answers as the
      first, and changes nothing. Each method says how it knows.
    - **A call that can't be answered now raises an `OSError`** (a `ConnectionError`, a `TimeoutError`): soon, so with a
      limit of its own of some seconds. The relay calls again, for `patience` seconds. Another exception ends the stream
      of the call with a `StreamInterrupted` at once.
    - **Clocks.** A store has one clock for all processes, if it can. A clock that jumps makes `Page.age` wrong and
      lets logs expire early or late, and must do nothing else: a death isn't decided by an age alone.

    All methods are called on the loop on which the relay was opened; many calls are under way at once, but for one log
    at most one `append` with a record. A cancelled call may or may not be carried out.
    """

    async def open(self, terms: Terms) -> None:  # noqa: B027 - a store may have nothing to open
        """Connect, and make what must be there, such as tables. Called once, before everything else.

        Raises:
            OSError: The place can't be reached.
        """

    async def close(self) -> None:  # noqa: B027
        """Let go of everything. Called once; no call comes behind it. Logs are kept."""

    @abstractmethod
    async def begin(self, key: LogKey) -> str | None:
        """Begin a log, if its name is free, which is a sign of its publisher. Wakes `begun`.

        If several logs begin with one name, one wins. A name is free again when the log that had it has expired, or by
        `free`, after which this log doesn't take it back.

        Returns:
            `None` if this log has begun, or had begun and hasn't ended, with or without its name. Else the epoch of the log
            that has the name; that of `key` if this log has ended.
        """

    @abstractmethod
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        """Write a record behind that with the number `before` (0: the first), which is a sign of the publisher; or give only a sign.

        Any answer but `"written"` means that nothing has changed. If the last record is this one (it has the same
        number, count and end, and isn't `dead`), it was written by an earlier call, whose answer was lost. With its end
        a log is kept for `keep` seconds, and at least for a lease; if it has no name, for a lease. The name is free
        after `keep`. Wakes `written`.

        Args:
            key: The log.
            before: For a sign `None`, too, if a record of this publisher is under way: then the log's end and numbers say
                nothing, and the answer isn't `"lost"` or `"ended"`, unless the end is `dead`.
            record: The record to write. `None` is a sign alone.
        """

    @abstractmethod
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        """Write the end of a publisher that is dead or has given up, if the log hasn't ended and `sign` is still its sign.

        The sign and the end are compared and the record is written in one step: it's what keeps a publisher that comes back
        alive, or out. The number of the record may leave a gap. Wakes `written`.

        Args:
            key: The log.
            sign: `Page.sign`; `None` for any.
            record: Without events; its `dead` isn't 0.

        Returns:
            Whether this record is the log's end. `False` also if the log has a number as high as the record's.
        """

    @abstractmethod
    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        """Read a log: the records with a higher number than `after`, up to about `most` bytes, at least one if there is one.

        The page is of one moment, or its records are of a later one than the rest.

        Args:
            tenant, id: The name.
            epoch: Which log; `None` for the one that has the name now. A log without a name can be read, too.
            after: The number of a record, or any other.
            most: Bytes. A slow reader asks for the next page when it has this one; its process keeps no more.

        Returns:
            `None` if there is no such log.
        """

    @abstractmethod
    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        """Tell the publisher of a live log to stop: note the reason, which its `append` answers from then on. Wakes `stopped`.

        Returns:
            `True` if the log is there, hasn't ended, and nobody has said so before, or the same token has.
        """

    @abstractmethod
    async def free(self, key: LogKey) -> bool:
        """Take the name from a log, so that another one can have it. The log itself is kept for a lease after this.

        Returns:
            Whether the name isn't this log's now.
        """

    @abstractmethod
    async def names(self, tenant: str) -> Sequence[str]:
        """The ids of all of a tenant's logs that have their name, live or kept, in the order in which they began."""

    @abstractmethod
    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` on the loop soon after each piece of news of a topic, also of another process, until the
        returned function is called.

        It may be called for nothing, and once for several. A follower of `written` reads the log then, and again after
        each call: news of events before the first reading can be missing. A call that is lost costs a reader up to a
        lease.

        Returns:
            What ends it. It may be called twice.
        """

    async def total(self) -> int:
        """The sizes of all logs that are there. Asked for `max_total_bytes`, as often as a publisher gives signs."""
        raise NotImplementedError

    async def probe(self) -> None:
        """Write something and remove it again, for `Relay.health`. Raises an `OSError` if that can't be done now."""
        probe = LogKey(_PROBE, _PROBE, token_hex(8))
        await self.begin(probe)
        await self.free(probe)


class Followers:
    """For a store's `follow`. All is called on the store's loop, if nothing else is said.

    Args:
        first: Called when somebody follows a topic that nobody followed.
        last: Called when nobody follows it any more.
    """

    def __init__(
        self, first: Callable[[Topic], object] | None = None, last: Callable[[Topic], object] | None = None
    ) -> None:
        self._first, self._last = first, last
        self._followers: dict[Topic, dict[object, Callable[[], None]]] = {}

    def add(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        """See `Store.follow`."""
        who = object()
        is_first = topic not in self._followers
        self._followers.setdefault(topic, {})[who] = changed
        if is_first and self._first is not None:
            self._first(topic)
        return partial(self._leave, topic, who)

    def _leave(self, topic: Topic, who: object) -> None:
        followers = self._followers.get(topic, {})
        if followers.pop(who, None) is not None and not followers:
            del self._followers[topic]
            if self._last is not None:
                self._last(topic)

    def wake(self, topic: Topic) -> None:
        """Say that there is news of a topic."""
        for changed in [*self._followers.get(topic, {}).values()]:
            changed()

    def clear(self) -> None:
        self._followers.clear()

    def __contains__(self, topic: Topic) -> bool:
        """Whether anybody follows a topic. Any thread may ask."""
        return topic in self._followers

    def __bool__(self) -> bool:
        return bool(self._followers)
