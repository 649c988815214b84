"""Which server has a key: the only one, that of a folder, the master that Sentinels name, or a node of a Cluster."""

from __future__ import annotations

from binascii import crc_hqx
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.core import StreamInterrupted
from rxdelta.relay._server._embedded import embedded
from rxdelta.relay._server._lines import Away, Refusal, dialer
from rxdelta.relay._server._urls import Address, parse_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rxdelta.relay._metrics import Tally
    from rxdelta.relay._server._lines import Dialer, Line
    from rxdelta.relay._server._urls import Place

__all__ = ["Topology", "topology"]

_ASK_SECONDS = 1.0  # one of several is asked; the next may answer
_JOIN_SECONDS = 5.0
_START_SECONDS = 30.0  # a folder's server reads some gigabytes in that time
_SLOTS = 16384


class Topology(Protocol):
    """Where the servers of a store are, as far as it is known now."""

    @property
    def is_cluster(self) -> bool: ...

    async def learn(self) -> None:
        """Ask anew.

        Raises:
            Away: If nobody can tell. What was known stays.
        """
        ...

    def address(self, key: bytes) -> Address:
        """The server that has this key. Called after the first `learn`."""
        ...

    def knows(self, address: Address) -> bool:
        """Whether this is a server of the store now."""
        ...

    async def dial(self, address: Address, seconds: float) -> Line:
        """Connect to a server of the store.

        Raises:
            Away: If it can't be reached within `seconds` or isn't the master.
        """
        ...


def topology(place: Place, tally: Tally) -> Topology:
    """What a URL describes. The bytes of its connections are counted.

    Raises:
        InvalidValueError: If no client package is installed.
    """
    if place.kind == "cluster":
        return _Cluster(dialer(place, tally), place.addresses)
    if place.kind == "sentinel":
        return _Sentinel(
            dialer(place, tally), dialer(place, tally, to_sentinels=True), place.addresses, place.master
        )
    if place.kind == "embedded":
        return _Embedded(dialer(place, tally), place.url)
    return _One(dialer(place, tally), place.addresses[0])


class _One:
    """One server."""

    is_cluster = False

    def __init__(self, dialer: Dialer, address: Address) -> None:
        self._dialer = dialer
        self._address = address

    async def learn(self) -> None:
        pass

    def address(self, key: bytes) -> Address:  # noqa: ARG002
        return self._address

    def knows(self, address: Address) -> bool:
        return address == self._address

    async def dial(self, address: Address, seconds: float) -> Line:
        return await self._dialer.dial(address, seconds)


class _Embedded(_One):
    """The server of a folder: found, or started, whenever it can't be reached."""

    def __init__(self, dialer: Dialer, url: str) -> None:
        super().__init__(dialer, Address("", 0))  # until the first `learn`
        self._url = url

    async def learn(self) -> None:
        # The first time somebody waits for it to read its files; later others wait for us, and ask again.
        patience = _JOIN_SECONDS if self._address.host else _START_SECONDS
        try:
            self._address = parse_url(await embedded(self._url, patience)).addresses[0]
        except StreamInterrupted as error:
            raise Away(str(error)) from error


class _Sentinel:
    """The master that the Sentinels name."""

    is_cluster = False

    def __init__(
        self, dialer: Dialer, to_sentinels: Dialer, sentinels: Sequence[Address], master: str
    ) -> None:
        self._dialer = dialer
        self._to_sentinels = to_sentinels
        self._sentinels = list(sentinels)
        self._name = master
        self._master = Address("", 0)  # until the first `learn`

    async def learn(self) -> None:
        answer, sentinel = await _first_answer(
            self._to_sentinels, self._sentinels, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)
        )
        if answer is None:
            raise Away(f"the Sentinel {sentinel} knows no master {self._name!r}")
        self._sentinels.remove(sentinel)
        self._sentinels.insert(0, sentinel)  # it answers; the others may be gone
        self._master = Address(answer[0].decode(), int(answer[1]))

    def address(self, key: bytes) -> Address:  # noqa: ARG002
        return self._master

    def knows(self, address: Address) -> bool:
        return address == self._master

    async def dial(self, address: Address, seconds: float) -> Line:
        line = await self._dialer.dial(address, seconds)
        [role] = await line.ask([("ROLE",)], seconds)
        if isinstance(role, Refusal) or role[0] != b"master":  # the Sentinels haven't told it yet
            await line.close()
            raise Away(f"{address} isn't the master")
        return line


class _Cluster:
    """The nodes of a Cluster, each with a part of the slots."""

    is_cluster = True

    def __init__(self, dialer: Dialer, seeds: Sequence[Address]) -> None:
        self._dialer = dialer
        self._seeds = seeds
        self._first_slots: list[int] = []
        self._owners: list[Address] = []
        self._turn = 0

    async def learn(self) -> None:
        nodes = list(dict.fromkeys((*self._owners, *self._seeds)))
        begin = self._turn % len(nodes)
        self._turn += 1  # a node that was cut off from the others tells what was true once
        ranges, asked = await _first_answer(
            self._dialer, [*nodes[begin:], *nodes[:begin]], ("CLUSTER", "SLOTS")
        )
        if not ranges:
            raise Away(f"the node {asked} knows no slots")
        found = sorted((first, _node_address(node, asked)) for first, _, node, *_ in ranges)
        self._first_slots = [first for first, _ in found]
        self._owners = [owner for _, owner in found]

    def address(self, key: bytes) -> Address:
        # In a gap between two ranges this is a wrong node, which says that the Cluster is down.
        place = bisect_right(self._first_slots, slot(key)) - 1
        return self._owners[max(place, 0)]

    def knows(self, address: Address) -> bool:
        return address in self._owners

    async def dial(self, address: Address, seconds: float) -> Line:
        return await self._dialer.dial(address, seconds)


def slot(key: bytes) -> int:
    """The slot of a key: of what stands between the first { and the next }, if there is something, else of all."""
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1)
    if begin >= 0 and end > begin + 1:
        key = key[begin + 1 : end]
    return crc_hqx(key, 0) % _SLOTS


def _node_address(node: Any, asked: Address) -> Address:
    host = (node[0] or b"").decode()
    return Address(asked.host if host in ("", "?") else host, int(node[1]))  # no host: the one that was asked


async def _first_answer(
    dialer: Dialer, addresses: Sequence[Address], question: tuple[str, ...]
) -> tuple[Any, Address]:
    failure = Away("nobody was asked")
    for address in addresses:
        try:
            line = await dialer.dial(address, _ASK_SECONDS)
            [answer] = await line.ask([question], _ASK_SECONDS)
            await line.close()
        except Away as away:
            failure = away
            continue
        if not isinstance(answer, Refusal):
            return answer, address
        failure = Away(f"{address} answers: {answer}")
        failure.__cause__ = answer.error
    raise failure
