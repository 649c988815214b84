"""The connections of a process to a store on a server: one for each kind of calls, one for all blocking reads.

In a Cluster they are one for each kind of calls to each node, and one for the blocking reads of each tag.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rxdelta.core import StreamInterrupted
from rxdelta.relay._metrics import Tally
from rxdelta.relay._server._calls import Call, Kind, Node, Script, Terms, Word
from rxdelta.relay._server._lines import Away, Refusal
from rxdelta.relay._server._topologies import topology
from rxdelta.relay._server._traffic import Traffic
from rxdelta.relay._server._urls import parse_url

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from rxdelta.relay._server._calls import Pauses
    from rxdelta.relay._server._lines import Command, Line
    from rxdelta.relay._server._topologies import Topology
    from rxdelta.relay._server._urls import Address

__all__ = ["Away", "Connections", "Kind", "Script", "Word"]

_Error = TypeVar("_Error", bound=Exception)
Entries = list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]

_MOST_ENTRIES = 64
_CONNECT_SECONDS = 5.0


@attrs.define
class _Route:
    """Where the calls of a tag and kind go, as long as one of them has no answer: so they keep their order when slots move."""

    node: Node
    calls: int = 0


class Connections:
    """Everything is called on the loop on which it was opened."""

    def __init__(self, where: Topology, terms: Terms, traffic: Traffic) -> None:
        self._where = where
        self._terms = terms
        self.traffic = traffic
        self._nodes: dict[tuple[Address, Kind], Node] = {}
        self._routes: dict[tuple[int, Kind], _Route] = {}
        self._lanes: dict[int, _Lane] = {}
        self._learning: asyncio.Task[None] | None = None
        self._reads: set[asyncio.Task[Any]] = set()
        self._endings: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(
        cls, url: str, *, patience: float, replicas: int = 0, lease: float = inf, tally: Tally | None = None
    ) -> Connections:
        """Connect, in one attempt.

        Args:
            url: See `parse_url`.
            patience: Seconds for which a call is tried while the store is away.
            lease: Seconds in which several attempts must be possible.
            tally: Counts what goes over the connections.
            replicas: How many replicas must have what a call wrote, before it is answered.

        Raises:
            InvalidValueError: For a URL that isn't as described, and if no client package is installed.
            StreamInterrupted: If the store can't be reached.
        """
        place = parse_url(url)
        traffic = Traffic(place.shown, tally or Tally())
        where = topology(place, traffic.tally)
        opened = cls(where, Terms(place.shown, patience, replicas, where.is_cluster, lease), traffic)
        try:
            await opened._where.learn()
            if not opened._where.is_cluster:
                address = opened._where.address(b"")
                line = await opened._where.dial(address, _CONNECT_SECONDS)
                opened._node(address, Kind.SHORT, line)
                [answer] = await line.ask([("PING",)], _CONNECT_SECONDS)
                if isinstance(answer, Refusal):
                    raise Away(str(answer)) from answer.error
        except BaseException as error:
            await opened.aclose()
            if isinstance(error, Away):
                raise StreamInterrupted(f"the store {place.shown} can't be reached: {error}") from error
            raise
        return opened

    def call(
        self,
        tag: int,
        script: Script,
        keys: Sequence[bytes],
        args: Sequence[Word] | Callable[[], Sequence[Word]],
        kind: Kind = Kind.SHORT,
    ) -> asyncio.Future[Any]:
        """Run a script with the next round trip. Short calls with a key in common run in the order in which they are made.

        Args:
            tag: The number of the hash tag that all keys have.
            script: It may run more than once.
            keys: At least one. Calls for the same stream have the same first key.
            args: The script's other arguments, or what makes them when the call is sent for the first time. What that
                raises, the future gets.
            kind: Which connection it takes; a script that reads much, and a call that turns out to be large, take their own.

        Returns:
            What the script returns. While the store is away or can't work, the call is tried again; after `patience`
            seconds, in which nothing of what is long has come on either, the future gets a `StreamInterrupted`. It gets that
            at once for an error of the script. Cancelling it doesn't keep the script from running.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        make = args if callable(args) else lambda: args
        kind = Kind.READ if script.most else kind
        call = Call(tag, script, keys, make, self._loop.time() + self._terms.patience, answer, kind)
        if self._closed:
            answer.set_exception(self._was_closed(StreamInterrupted))
        else:
            self._send(call)
        return answer

    def lane_of(self, tag: int) -> int:
        """Which blocking connection reads the keys of a tag: a read over two slots is refused in a Cluster."""
        return tag if self._where.is_cluster else 0

    async def read(self, lane: int, cursors: Mapping[bytes, bytes], block: float) -> Entries:
        """The entries behind the cursors, as soon as there are some. One read a lane at a time.

        Args:
            lane: See `lane_of`.
            cursors: For each key the id of the last entry that is known.
            block: Seconds to wait for the first entry.

        Returns:
            For each key that has them, at most 64 entries, as id and fields. Nothing if the time is over.

        Raises:
            Away: If the store can't be reached. The next read waits a moment first, so it may be asked at once.
            StreamInterrupted: If the store refuses the read, or was closed before.
        """
        if self._closed:
            raise self._was_closed(StreamInterrupted)
        here = self._lanes.get(lane)
        if here is None:
            here = self._lanes[lane] = _Lane(self._terms.pauses())
        # In a task of its own: a cancellation of the caller ends this wait, whatever a package makes of it.
        task = self._started(self._read(here, cursors, block), self._reads)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if self._lanes.get(lane) is here:
                del self._lanes[lane]
            self._drop(here)
            task.cancel()
            raise
        if task.cancelled():
            raise self._was_closed(Away)
        entries: Entries = task.result()
        return entries

    def rest(self, lane: int) -> None:
        """Close the connection of a lane that nobody reads any more. A read that is under way raises `Away`."""
        here = self._lanes.pop(lane, None)
        if here is not None:
            self._drop(here)

    def _drop(self, lane: _Lane) -> None:
        lane.is_dropped = True
        if lane.used is not None:
            lane.used.abort()
        if lane.idle is not None:
            self._started(lane.idle.close(), self._endings)
            lane.idle = None

    async def aclose(self) -> None:
        """Close all connections. Calls without an answer fail, and so do later ones."""
        self._closed = True
        for lane in list(self._lanes):
            self.rest(lane)
        while self._nodes:
            _, node = self._nodes.popitem()
            await node.close()
        while self._reads:
            for task in self._reads:
                task.cancel()  # once may not be enough: the packages lose some
            await asyncio.wait(self._reads, timeout=0.5)
        if self._endings:
            await asyncio.wait(self._endings)

    def _started(self, work: Coroutine[Any, Any, Any], among: set[asyncio.Task[Any]]) -> asyncio.Task[Any]:
        def ended(task: asyncio.Task[Any]) -> None:
            among.discard(task)
            if not task.cancelled():
                task.exception()  # whoever asked for it may have left

        task = self._loop.create_task(work)
        among.add(task)
        task.add_done_callback(ended)
        return task

    def _was_closed(self, kind: Callable[[str], _Error]) -> _Error:
        return kind(f"the connection to the store {self._terms.shown} was closed")

    # calls

    def _send(self, call: Call) -> None:
        key = call.tag, call.kind
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = _Route(self._node(self._where.address(call.keys[0]), call.kind))
        route.calls += 1
        route.node.add(call)

    def _left(self, call: Call) -> None:
        key = call.tag, call.kind
        route = self._routes[key]
        route.calls -= 1
        if not route.calls:
            del self._routes[key]

    def _send_large(self, call: Call) -> None:
        call.kind = Kind.LARGE
        self._send(call)

    def _node(self, address: Address, kind: Kind, line: Line | None = None) -> Node:
        node = self._nodes.get((address, kind))
        if node is None:
            node = self._nodes[address, kind] = Node(
                address,
                kind,
                line,
                self._terms,
                self.traffic,
                dial=self._where.dial,
                left=self._left,
                large=self._send_large,
                moved=self._moved,
            )
        return node

    async def _moved(self, node: Node) -> None:
        """Calls have failed at a node: learn where the servers are now, and send everything that waits there."""
        with suppress(Away):
            await self._learn()
        for call in node.release():
            self._send(call)
        for key, old in list(self._nodes.items()):
            if old.is_idle and not self._where.knows(old.address):
                del self._nodes[key]
                self.traffic.forget(old.address)
                self._started(old.close(), self._endings)

    async def _learn(self) -> None:
        """Where the servers are. Whoever wants to know meanwhile gets the same answer."""
        if self._learning is None or self._learning.done():
            self._learning = self._started(self._ask_where(), self._reads)
        task = self._learning
        await asyncio.wait([task])
        if task.cancelled():
            raise self._was_closed(Away)
        task.result()

    async def _ask_where(self) -> None:
        await self._where.learn()
        for lane in self._lanes.values():  # a server that is no longer the master may stay silent for ever
            if lane.used is not None and not self._where.knows(lane.used.address):
                lane.used.abort()

    # blocking reads

    async def _read(self, lane: _Lane, cursors: Mapping[bytes, bytes], block: float) -> Entries:
        if lane.has_failed:
            await asyncio.sleep(lane.pauses.take())
            with suppress(Away):
                await self._learn()
        begin, address = time.monotonic(), self._where.address(next(iter(cursors)))
        try:
            entries = await self._read_from(address, lane, cursors, block)
        except Away as away:
            if not lane.is_dropped:
                self.traffic.failed(address, away)
            raise
        self.traffic.worked(address, begin)
        return entries

    async def _read_from(
        self, address: Address, lane: _Lane, cursors: Mapping[bytes, bytes], block: float
    ) -> Entries:
        line, lane.idle = lane.idle, None
        lane.has_failed = True
        if line is not None and (line.address != address or not line.is_open):
            await line.close()
            line = None
        if line is None:
            line = await self._where.dial(address, self._terms.seconds)
        if lane.is_dropped:
            await line.close()
            raise self._was_closed(Away)
        lane.used = line
        milliseconds = max(1, round(block * 1000))  # 0 is for ever
        question: Command = (
            "XREAD",
            "COUNT",
            _MOST_ENTRIES,
            "BLOCK",
            milliseconds,
            "STREAMS",
            *cursors,
            *cursors.values(),
        )
        try:
            [answer] = await line.ask([question], block + self._terms.seconds)
        finally:
            lane.used = None
        if isinstance(answer, Refusal) or lane.is_dropped:
            await line.close()
        else:
            lane.idle = line
        if not isinstance(answer, Refusal):
            lane.has_failed = False
            lane.pauses.reset()
            return _entries(answer)
        if self._terms.is_passing(answer.code):
            raise Away(str(answer)) from answer.error
        raise StreamInterrupted(self._terms.refused(answer)) from answer.error


class _Lane:
    """One connection for blocking reads.

    Attributes:
        idle: The connection, when nobody reads.
        used: The connection, when somebody reads.
        has_failed: Whether the last read failed, or one is under way.
        is_dropped: Whether the connection must be closed after the read that is under way.
    """

    def __init__(self, pauses: Pauses) -> None:
        self.idle: Line | None = None
        self.used: Line | None = None
        self.has_failed = False
        self.is_dropped = False
        self.pauses = pauses


def _entries(answer: Any) -> Entries:
    pairs: Any = answer.items() if hasattr(answer, "items") else answer or ()  # RESP 3 has maps
    return [(key, [(id_, _fields(flat)) for id_, flat in entries]) for key, entries in pairs]


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
