"""One connection to one server, and which server has a key: the only one, Sentinels' master, or a node of a Cluster.

Connections are of the classes of the package `redis` or `valkey`.

Their clients, pools and retries are left out. A client repeats a command by itself, so that an append happens twice;
and its pools grow with the readers. Timeouts of theirs are off, too: some of them lose a cancellation.
"""

from __future__ import annotations

import asyncio
import socket
from binascii import crc_hqx
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rxdelta.core import described
from rxdelta.relay.valkey.urls import Address, Place, Way

if TYPE_CHECKING:
    from rxdelta.relay.metrics import Tally

Command = Sequence[bytes | int | str]
_CODES = {"NOPERMISSION": "NOPERM", "OUTOFMEMORY": "OOM"}
"""The packages cut some codes off, and tell them by the class of the error: `NoScriptError`. These have other names there."""
_LEFT_OUT = (
    *(
        "cache_",
        "client_cache",
        "connection_",
        "event_dispatcher",
        "himport_",
        "host",
        "maint",
        "max_connections",
    ),
    *("orig_", "oss_", "path", "port", "response_callbacks", "retry"),
)
"""Beginnings of a client's options that aren't for our connections: the address, and the client's own work."""
_PIECE = 1 << 16
_HELD = 1 << 18
_SECONDS_A_BYTE = 1e-6
"""What may be on its way of a question, without a word from the server: a megabyte a second, beside the limit of silence."""
_FEW_BYTES = 1 << 13
"""Errors alone are shorter than this, so more bytes than these are a part of what was asked for."""


class Away(Exception):
    """The store couldn't be reached, or asks to try again. The cause is `__cause__`."""


class Refusal(Away):
    """An error as the answer to one command.

    Attributes:
        code: The first word of what the server said, such as `READONLY`.
    """

    def __init__(self, code: str, rest: str, error: Exception) -> None:
        """Args: the other words, and what the package makes of it."""
        super().__init__(f"{code} {rest}".strip())
        self.code = code
        self.__cause__ = error


async def connect(way: Way, address: Address, seconds: float, tally: Tally) -> Line:
    """Open a connection, whose bytes are counted.

    Raises:
        Away: If nobody answers there within `seconds`, or the server wants another user or password.
    """
    connection: Any = None
    try:
        connection = way.connection(
            **({"host": address.host, "port": address.port} if address.port else {"path": address.host}),
            **{name: value for name, value in way.options.items() if not name.startswith(_LEFT_OUT)}
            | {
                "socket_timeout": None,  # what it is built on loses a cancellation in Python 3.11 (asyncio.wait_for)
                "socket_connect_timeout": seconds,
                "health_check_interval": 0,
                "decode_responses": False,
            },
        )
        async with asyncio.timeout(seconds):
            await connection.connect()
        return Line(connection, address, tally)
    except BaseException as error:
        await _close(connection)
        if isinstance(error, Exception):
            raise _away(error, address) from error
        raise


class Line:
    """An open connection. Once an exchange has failed or was cancelled, it is closed: an answer may still be under way.

    Attributes:
        address: Where it leads to.
        scripts: The SHA-1 of the scripts that were loaded on this connection. The server process remembers them.
        grew: The loop's time at which bytes of an exchange went or came that is longer than errors are.
    """

    def __init__(self, connection: Any, address: Address, tally: Tally) -> None:
        self.address = address
        self.scripts: set[str] = set()
        self.grew = 0.0
        self._connection = connection
        self._reader: asyncio.StreamReader = connection._reader
        self._writer: asyncio.StreamWriter = connection._writer
        self._tally = tally
        self._is_closed = False
        self._now = asyncio.get_running_loop().time
        self._came = 0  # bytes of the exchange
        self._limit: asyncio.Timeout | None = None  # of the silence in it
        self._silence = 0.0
        # What the system holds of a long question must not look like silence.
        known: socket.socket | None = self._writer.get_extra_info("socket")
        if known is not None:
            known.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _HELD)
        # The packages don't tell what has come of an answer that isn't complete.
        self._feed = self._reader.feed_data
        self._reader.feed_data = self._fed

    @property
    def is_open(self) -> bool:
        return not (self._is_closed or self._writer.is_closing() or self._reader.at_eof())

    def _fed(self, data: Any) -> None:
        self._came += len(data)
        self._tally.received += len(data)
        self._moves()
        self._feed(data)

    def _moves(self) -> None:
        now = self._now()
        if self._came > _FEW_BYTES:
            self.grew = now
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(now + self._silence)

    async def ask(
        self, commands: Sequence[Command], seconds: float, took: Callable[[int, Any], None] | None = None
    ) -> list[Any]:
        """Send all commands at once, and return the answers. A `Refusal` stands for an error.

        Args:
            commands: They run one after the other.
            seconds: How long nothing may go or come. A long answer may take its time; a long question gets more of it,
                because bytes on their way can't be seen.
            took: Called with the place of a command and its answer as soon as that has come.

        Raises:
            Away: If nothing moved for so long, or the connection breaks. What ran isn't known then.
        """
        answers, self._came, packed = list[Any](), 0, _packed(commands)
        self._silence = seconds + len(packed) * _SECONDS_A_BYTE
        try:
            async with asyncio.timeout(self._silence) as self._limit:
                await self._send(memoryview(packed))
                for place in range(len(commands)):
                    try:
                        answer = await self._connection.read_response()
                    except Exception as error:
                        answer = _refusal(error)
                        if answer is None:
                            raise
                    answers.append(answer)
                    if took is not None:
                        took(place, answer)
        except BaseException as error:  # the packages let many kinds of errors through
            await self.close()
            if isinstance(error, Exception):
                raise _away(error, self.address) from error
            raise
        finally:
            self._limit = None
        return answers

    async def _send(self, packed: memoryview) -> None:
        for begin in range(0, len(packed), _PIECE):
            piece = packed[begin : begin + _PIECE]
            self._writer.write(piece)
            await self._writer.drain()
            self._tally.sent += len(piece)
            if begin:
                self._came += len(piece)
            self._moves()

    def abort(self) -> None:
        """Close it at once. Calls that wait for an answer get `Away`."""
        self._is_closed, self._limit = True, None
        self._writer.transport.abort()  # a polite close waits until all is sent, maybe for ever

    async def close(self) -> None:
        """Close it at once, and return when it is closed."""
        self.abort()
        await _close(self._connection)


async def _close(connection: Any) -> None:
    with suppress(Exception):
        await connection.disconnect()
    await asyncio.sleep(0)  # a transport closes its socket with the loop's next round


def _packed(commands: Iterable[Command]) -> bytes:
    """The bytes of commands. The packages need three to six times as long for them."""
    parts = list[bytes]()
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for word in command:
            written = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(written), written))
    return b"".join(parts)


def _refusal(error: Exception) -> Refusal | None:
    """What the server said, if the package makes an error of an answer."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if "ResponseError" not in kinds:
        return None
    text, code = str(error), kinds[0].removesuffix("Error").upper()
    code, rest = (_CODES.get(code, code), text) if kinds[0] != "ResponseError" else text.partition(" ")[::2]
    return Refusal(code, rest.removeprefix(code).lstrip(), error)


def _away(error: Exception, address: Address) -> Away:
    if isinstance(error, TimeoutError):
        return Away(f"{address} doesn't answer")
    return Away(f"{address}: {described(error)}")


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
        """Ask again.

        Raises:
            Away: If nobody can tell. The last known servers stay.
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
        if isinstance(role, Refusal) or role[0] != b"master":  # the Sentinels haven't promoted it yet
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
    """The servers at a place. The bytes of its connections are counted."""
    return {"one": Topology, "sentinel": _Sentinel, "cluster": _Cluster}[place.kind](place, tally)


def slot(key: bytes) -> int:
    """The slot of a key: of what stands between the first { and the next }, if there is something, else of all."""
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1)
    if begin >= 0 and end > begin + 1:
        key = key[begin + 1 : end]
    return crc_hqx(key, 0) % _SLOTS
