"""What all parts of the store share: the server, and the names of things there."""

from __future__ import annotations

import logging
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from rxdelta.core import StreamInterrupted, quote
from rxdelta.relay._failures import error_to_dict
from rxdelta.relay._server._entries import FORMAT, Place, Values
from rxdelta.relay._server._feed import Pace
from rxdelta.relay._server._hub import Hub
from rxdelta.relay._server._keys import Keys, bytes_keys, inbox_key, names_key
from rxdelta.relay._server._scripts import CHECK, MARK, REPLICATES
from rxdelta.relay._server._total import Total

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from rxdelta.relay._server._connections import Connections, Word
    from rxdelta.relay._store import Name

__all__ = ["Run", "Server"]

_log = logging.getLogger("rxdelta")
_DEAD = "the publisher gave no sign for its lease, and is taken for dead"


class Server:
    """What the parts of the store share.

    Attributes:
        token: Names this process there.
        lease: Seconds that a publisher's sign counts.
        live_for: Milliseconds that the keys of a live stream last without a sign.
        kept_for: Milliseconds that the keys of an ended stream last.
        total: What counts the bytes of all streams, if these are bounded.
    """

    def __init__(
        self,
        connections: Connections,
        values: Values,
        *,
        prefix: str,
        lease: float,
        keep: float,
        patience: float,
        max_total_bytes: int | None = None,
    ) -> None:
        self.connections = connections
        self.call = connections.call
        self.values = values
        self.prefix = prefix
        self.token = token_hex(8)
        self.lease = lease
        self.lease_for = max(1, round(lease * 1000))
        self.kept_for = max(1, round(keep * 1000))
        self.live_for = self.lease_for + self.kept_for
        self.total = None if max_total_bytes is None else Total(self, max_total_bytes)
        self.hub = Hub(connections, self.inbox, patience=patience, lease=lease)
        self.pace = Pace()

    def inbox(self, tag: int) -> bytes:
        return inbox_key(self.prefix, tag, self.token)

    def keys(self, name: Name) -> Keys:
        return Keys.of(self.prefix, name)

    def run(self, name: Name, epoch: str) -> Run:
        return Run(self, name, epoch)


class Run:
    """One publication of a stream, on the server.

    Attributes:
        keys: The keys that the scripts of a log take: log, lease, head, index, and those of the bytes, if they are counted.
        head_first: The same for the scripts of a name: head, log, lease, index, bytes.
    """

    def __init__(self, server: Server, name: Name, epoch: str) -> None:
        known = server.keys(name)
        self._server = server
        self.name = name
        self.epoch = epoch
        self.tag = known.tag
        self.id = known.id
        self.log = known.log(epoch)
        self.own = known.own(epoch)
        self.head = known.head
        self.names = names_key(server.prefix, known.tag, name.tenant)
        rest = (self.names, *(bytes_keys(server.prefix, known.tag) if server.total is not None else ()))
        self.keys = (self.log, self.own, self.head, *rest)
        self.head_first = (self.head, self.log, self.own, *rest)
        self.place = partial(Place, f"{name.tenant}\0{name.id}", epoch)

    def check(self, newest: int) -> Awaitable[Any]:
        """Ask whether the log is live, for who has the events up to a number. The answer is that of `CHECK`."""
        return self._server.call(self.tag, CHECK, self.keys, self.check_arguments(newest))

    async def decide(self, newest: int) -> Any:
        """Ask as `check` does. If the end is to be written, write it, for which the replicas are needed."""
        answer = await self.check(newest)
        if answer[0] == 3:
            ask = partial(self._server.call, self.tag)
            # A master that was replaced and doesn't know it hears no publisher, and has no replicas either. An end that
            # it writes would be read there at once. Calls for the log don't wait for this one: its key is none of theirs.
            await ask(REPLICATES, [self.own + b":"], [])
            state, last, left, *written = await ask(
                MARK, self.keys, self.check_arguments(newest, writes="may")
            )
            if written:
                self._server.connections.traffic.tally.deaths += 1
                _log.warning(
                    "the publisher of the stream %s gave no sign for its lease, and is taken for dead",
                    quote(self.name.id),
                )
            return state, last, left
        return answer

    def check_arguments(
        self, newest: int, *, writes: str = "", why: StreamInterrupted | None = None
    ) -> Sequence[Word]:
        """What `CHECK` takes from who has the events up to a number, and may know that there will be no more (`why`)."""
        server = self._server
        end = server.values.dump(error_to_dict(why or StreamInterrupted(_DEAD)), self.place(0))
        writes = writes if why is None else "must"
        return [FORMAT, self.epoch, server.lease_for, server.kept_for, self.id, newest, end, writes]
