"""Which server has a key: the only one, the master that Sentinels name, or a node of a Cluster."""

from __future__ import annotations

from binascii import crc_hqx
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from rxdelta.relay._valkey._lines import Away, Refusal, connect
from rxdelta.relay._valkey._urls import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rxdelta.relay._metrics import Tally
    from rxdelta.relay._valkey._lines import Line
    from rxdelta.relay._valkey._urls import Place, Way

__all__ = ["Topology", "slot", "topology"]

_ASK_SECONDS = 1.0  # one of several is asked; the next may answer
_SLOTS = 16384


class Topology:
    """Where the servers of a store are, as far as it is known now: here, the only one."""

    is_cluster = False

    def __init__(self, place: Place, tally: Tally) -> None:
        self._place = place
        self._tally = tally
        self._address = place.addresses[0]

    async def learn(self) -> None:
        """Ask anew.

        Raises:
            Away: If nobody can tell. What was known stays.
        """

    def address(self, key: bytes) -> Address:  # noqa: ARG002
        """The server that has this key. Called after the first `learn`."""
        return self._address

    def knows(self, address: Address) -> bool:
        """Whether this is a server of the store now."""
        return address == self._address

    async def dial(self, address: Address, seconds: float) -> Line:
        """Connect to a server of the store.

        Raises:
            Away: If it can't be reached within `seconds` or isn't the master.
        """
        return await connect(self._place.way, address, seconds, self._tally)

    async def renewed(self, line: Line | None, address: Address, seconds: float) -> Line:
        """A connection to there: this one, if it can be used, else a new one as `dial` makes it."""
        if line is not None and line.address == address and line.is_open:
            return line
        if line is not None:
            await line.close()  # the server may have closed it while nothing was asked
        return await self.dial(address, seconds)

    def _seen(self, host: str, port: int) -> Address:
        seen = self._place.seen
        return Address(host, port) if seen is None else Address(*seen((host, port)))

    async def _first_answer(
        self, way: Way, addresses: Sequence[Address], *question: str
    ) -> tuple[Any, Address]:
        failure = Away("nobody was asked")
        for address in addresses:
            try:
                line = await connect(way, address, _ASK_SECONDS, self._tally)
                [answer] = await line.ask([question], _ASK_SECONDS)
                await line.close()
            except Away as away:
                failure = away
                continue
            if not isinstance(answer, Refusal):
                return answer, address
            failure = Away(f"{address} answers: {answer}")
            failure.__cause__ = answer.__cause__
        raise failure


class _Sentinel(Topology):
    """The master that the Sentinels name."""

    def __init__(self, place: Place, tally: Tally) -> None:
        super().__init__(place, tally)
        self._sentinels = list(place.addresses)

    async def learn(self) -> None:
        name, way = self._place.master, self._place.sentinels or self._place.way
        answer, sentinel = await self._first_answer(
            way, self._sentinels, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name
        )
        if answer is None:
            raise Away(f"the Sentinel {sentinel} knows no master {name!r}")
        self._sentinels.remove(sentinel)
        self._sentinels.insert(0, sentinel)  # it answers; the others may be gone
        self._address = self._seen(answer[0].decode(), int(answer[1]))

    async def dial(self, address: Address, seconds: float) -> Line:
        line = await super().dial(address, seconds)
        [role] = await line.ask([("ROLE",)], seconds)
        if isinstance(role, Refusal) or role[0] != b"master":  # the Sentinels haven't told it yet
            await line.close()
            raise Away(f"{address} isn't the master")
        return line


class _Cluster(Topology):
    """The nodes of a Cluster, each with a part of the slots."""

    is_cluster = True

    def __init__(self, place: Place, tally: Tally) -> None:
        super().__init__(place, tally)
        self._first_slots: list[int] = []
        self._owners: list[Address] = []
        self._turn = 0

    async def learn(self) -> None:
        nodes = list(dict.fromkeys((*self._owners, *self._place.addresses)))
        begin = self._turn % len(nodes)
        self._turn += 1  # a node that was cut off from the others tells what was true once
        order = [*nodes[begin:], *nodes[:begin]]
        ranges, asked = await self._first_answer(self._place.way, order, "CLUSTER", "SLOTS")
        if not ranges:
            raise Away(f"the node {asked} knows no slots")
        found = sorted((first, self._node_address(node, asked)) for first, _, node, *_ in ranges)
        self._first_slots = [first for first, _ in found]
        self._owners = [owner for _, owner in found]

    def address(self, key: bytes) -> Address:
        # In a gap between two ranges this is a wrong node, which says that the Cluster is down.
        place = bisect_right(self._first_slots, slot(key)) - 1
        return self._owners[max(place, 0)]

    def knows(self, address: Address) -> bool:
        return address in self._owners

    def _node_address(self, node: Any, asked: Address) -> Address:
        host = (node[0] or b"").decode()
        # No host: the one that was asked.
        return self._seen(asked.host if host in ("", "?") else host, int(node[1]))


def topology(place: Place, tally: Tally) -> Topology:
    """What is at a place. The bytes of its connections are counted."""
    return {"one": Topology, "sentinel": _Sentinel, "cluster": _Cluster}[place.kind](place, tally)


def slot(key: bytes) -> int:
    """The slot of a key: of what stands between the first { and the next }, if there is something, else of all."""
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1)
    if begin >= 0 and end > begin + 1:
        key = key[begin + 1 : end]
    return crc_hqx(key, 0) % _SLOTS
