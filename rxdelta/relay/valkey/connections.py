"""The connections of a process to a store on a server: one for each kind of calls, one for all blocking reads.

In a Cluster they are one for each kind of calls to each node, and one for the blocking reads of each tag.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from rxdelta.core import StreamInterrupted
from rxdelta.relay.metrics import Tally
from rxdelta.relay.shared.asking import Traffic
from rxdelta.relay.valkey.calls import Call, Kind, Node, Script, Terms, Word
from rxdelta.relay.valkey.lines import Away, Command, Line, Refusal, Topology, topology
from rxdelta.relay.valkey.urls import Address, place_of

Entries = list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]

_MOST_ENTRIES = 64
_CONNECT_SECONDS = 5.0


class Connections:
    """Everything is called on the loop on which it was opened."""

    def __init__(self, where: Topology, terms: Terms, traffic: Traffic) -> None:
        self._where = where
        self.renewed = where.renewed
        self.terms = terms
        self.traffic = traffic
        self._nodes: dict[tuple[Address, Kind], Node] = {}
        # Where the calls of a tag are, as long as one of them has no answer: so they keep their order when slots move.
        self._routes: dict[tuple[int, Kind], Node] = {}
        self._lanes: dict[int, _Lane] = {}
        self._learning: asyncio.Task[None] | None = None
        self._reads: set[asyncio.Task[Any]] = set()
        self._endings: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(
        cls, at: object, *, patience: float, replicas: int = 0, lease: float = inf, tally: Tally | None = None
    ) -> Connections:
        """Connect, in one attempt.

        Args:
            at: See `place_of`.
            patience: Seconds for which a call is tried while the store is away.
            lease: Seconds in which several attempts must be possible.
            tally: Counts what goes over the connections.
            replicas: How many replicas must have what a call wrote, before it is answered.

        Raises:
            InvalidValueError: See `place_of`.
            StreamInterrupted: If the store can't be reached.
        """
        place = place_of(at)
        traffic = Traffic(place.shown, tally or Tally())
        servers = topology(place, traffic.tally)
        opened = cls(servers, Terms(place.shown, patience, replicas, servers.is_cluster, lease), traffic)
        try:
            await servers.learn()
            if not servers.is_cluster:
                address = servers.address(b"")
                line = await servers.dial(address, _CONNECT_SECONDS)
                opened._node(address, Kind.SHORT, line)
                [answer] = await line.ask([("PING",)], _CONNECT_SECONDS)
                if isinstance(answer, Refusal):
                    raise answer
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
        call = Call(tag, script, keys, make, self._loop.time() + self.terms.patience, answer, kind)
        if self._closed:
            answer.set_exception(StreamInterrupted(self.terms.closed))
        else:
            self.send(call)
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
            raise StreamInterrupted(self.terms.closed)
        here = self._lanes.get(lane)
        if here is None:
            here = self._lanes[lane] = _Lane(self.terms.pauses())
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
            raise Away(self.terms.closed)
        entries: Entries = task.result()
        return entries

    def rest(self, lane: int) -> None:
        """Close the connection of a lane that nobody reads any more. A read that is under way raises `Away`."""
        here = self._lanes.pop(lane, None)
        if here is not None:
            self._drop(here)

    def _drop(self, lane: _Lane) -> None:
        lane.is_dropped = True
        if lane.line is not None:
            self._started(lane.line.close(), self._endings)

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
            # With a limit: a package may have lost the cancellation.
            await asyncio.wait(self._reads, timeout=0.5)
        if self._endings:
            await asyncio.wait(self._endings)

    def _started(self, work: Coroutine[Any, Any, Any], among: set[asyncio.Task[Any]]) -> asyncio.Task[Any]:
        def ended(task: asyncio.Task[Any]) -> None:
            among.discard(task)
            if not task.cancelled():
                task.exception()  # its caller may have left

        task = self._loop.create_task(work)
        among.add(task)
        task.add_done_callback(ended)
        return task

    # calls

    def send(self, call: Call) -> None:
        """Give a call to the node that has those of its tag, or else to that of the server that has its keys."""
        key = call.tag, call.kind
        node = self._routes.get(key)
        if node is None or node.is_idle or not (self._where.knows(node.address) or node.holds(call.tag)):
            node = self._routes[key] = self._node(self._where.address(call.keys[0]), call.kind)
        node.add(call)

    def _node(self, address: Address, kind: Kind, line: Line | None = None) -> Node:
        node = self._nodes.get((address, kind))
        if node is None:
            node = self._nodes[address, kind] = Node(self, address, kind, line)
        return node

    async def moved(self, node: Node) -> None:
        """Calls have failed at a node: learn where the servers are now, and send everything that waits there."""
        with suppress(Away):
            await self._learn()
        self._routes = {key: other for key, other in self._routes.items() if other is not node}
        for call in node.release():
            self.send(call)
        for key, old in list(self._nodes.items()):
            if old.is_idle and not self._where.knows(old.address):
                del self._nodes[key]
                self.traffic.forget(old.address)
                self._started(old.close(), self._endings)

    async def _learn(self) -> None:
        """Where the servers are. Calls that ask meanwhile get the same answer."""
        if self._learning is None or self._learning.done():
            self._learning = self._started(self._ask_where(), self._reads)
        task = self._learning
        await asyncio.wait([task])
        if task.cancelled():
            raise Away(self.terms.closed)
        task.result()

    async def _ask_where(self) -> None:
        await self._where.learn()
        for lane in self._lanes.values():  # a server that is no longer the master may stay silent for ever
            if lane.line is not None and not self._where.knows(lane.line.address):
                lane.line.abort()

    # blocking reads

    async def _read(self, lane: _Lane, cursors: Mapping[bytes, bytes], block: float) -> Entries:
        if lane.has_failed:
            await asyncio.sleep(next(lane.pauses))
            with suppress(Away):
                await self._learn()
        lane.has_failed = True
        begin, address = time.monotonic(), self._where.address(next(iter(cursors)))
        milliseconds = max(1, round(block * 1000))  # 0 is for ever
        # COUNT holds for each key: one long log doesn't make the answer long for all.
        bounds = "COUNT", _MOST_ENTRIES, "BLOCK", milliseconds
        question: Command = ("XREAD", *bounds, "STREAMS", *cursors, *cursors.values())
        try:
            line = lane.line = await self.renewed(lane.line, address, self.terms.seconds)
            if lane.is_dropped:
                await line.close()
                raise Away(self.terms.closed)
            [answer] = await line.ask([question], block + self.terms.seconds)
            if isinstance(answer, Refusal):
                await line.close()
                if not self.terms.is_passing(answer.code):
                    raise StreamInterrupted(self.terms.refused(answer)) from answer.__cause__
                raise answer
        except Away as away:
            if not lane.is_dropped:
                self.traffic.failed(address, away)
            raise
        self.traffic.worked(address, begin)
        lane.has_failed, lane.pauses = False, self.terms.pauses()
        return _entries(answer)


class _Lane:
    """One connection for blocking reads.

    Attributes:
        has_failed: Whether the last read failed, or one is under way.
        is_dropped: Whether nobody reads any more.
    """

    def __init__(self, pauses: Iterator[float]) -> None:
        self.line: Line | None = None
        self.has_failed = False
        self.is_dropped = False
        self.pauses = pauses


def _entries(answer: Any) -> Entries:
    pairs: Any = answer.items() if hasattr(answer, "items") else answer or ()  # RESP 3 has maps
    return [(key, [(id_, _fields(flat)) for id_, flat in entries]) for key, entries in pairs]


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
