"""One connection to one server, by the connection classes of the package `redis` or `valkey`.

Their clients, pools and retries are left out. A client repeats a command by itself, so that an append happens twice;
and its pools grow with the readers. Timeouts of theirs are off, too: some of them lose a cancellation.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import InvalidValueError, described

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from rxdelta.relay._metrics import Tally
    from rxdelta.relay._server._urls import Address, Place

__all__ = ["Away", "Command", "Dialer", "Line", "Refusal", "dialer"]

Command = Sequence[bytes | int | str]
_CODES = {  # the packages cut some codes off, and tell them by the class of the error
    "AskError": "ASK",
    "AuthenticationError": "NOAUTH",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
    "NoScriptError": "NOSCRIPT",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}
_PIECE = 1 << 16
_HELD = 1 << 18
_SECONDS_A_BYTE = 1e-6
"""What may be on its way of a question, without a word from the server: a megabyte a second, beside the limit of silence."""
_FEW_BYTES = 1 << 13
"""Errors alone are shorter than this, so more bytes than these are a part of what was asked for."""


class Away(Exception):
    """The store couldn't be reached, or asks to try again. The cause is `__cause__`."""


@attrs.frozen
class Refusal:
    """An error as the answer to one command.

    Attributes:
        code: The first word of what the server said, such as `READONLY`.
        rest: The other words.
        error: What the package makes of it.
    """

    code: str
    rest: str
    error: Exception

    def __str__(self) -> str:
        return f"{self.code} {self.rest}".strip()


@attrs.frozen
class Dialer:
    """Opens connections as a URL says.

    Attributes:
        package: The name of the package in use.
        answered_with_an_error: The package's class for that.
        tally: Counts the bytes of all its connections.
    """

    package: str
    answered_with_an_error: type[Exception]
    tally: Tally
    _tcp: Any
    _unix: Any
    _options: Mapping[str, object] = attrs.field(repr=False)

    async def dial(self, address: Address, seconds: float) -> Line:
        """Connect.

        Raises:
            Away: If nobody answers there within `seconds`, or the server wants another user or password.
        """
        where = {"host": address.host, "port": address.port} if address.port else {"path": address.host}
        connection = (self._tcp if address.port else self._unix)(
            **where,
            **self._options,
            socket_timeout=None,  # what it is built on loses a cancellation in Python 3.11 (asyncio.wait_for)
            socket_connect_timeout=seconds,
            retry_on_timeout=False,
            health_check_interval=0,
            decode_responses=False,
        )
        try:
            async with asyncio.timeout(seconds):
                await connection.connect()
        except BaseException as error:
            await _close(connection)
            if isinstance(error, Exception):
                raise _away(error, address) from error
            raise
        return Line(connection, self.answered_with_an_error, address, self.tally)


class Line:
    """An open connection. Once an exchange has failed or was cancelled, it is closed: an answer may still be under way.

    Attributes:
        address: Where it leads to.
        scripts: The SHA-1 of the scripts that were loaded on this connection. The server process remembers them.
        moved: The loop's time at which bytes went or came.
        grew: The same, of an exchange that is longer than errors are.
    """

    def __init__(
        self, connection: Any, answered_with_an_error: type[Exception], address: Address, tally: Tally
    ) -> None:
        self.address = address
        self.scripts: set[str] = set()
        self.grew = 0.0
        self._connection = connection
        self._reader: asyncio.StreamReader = connection._reader
        self._writer: asyncio.StreamWriter = connection._writer
        self._answered_with_an_error = answered_with_an_error
        self._tally = tally
        self._is_closed = False
        self._now = asyncio.get_running_loop().time
        self.moved = 0.0
        self._came = 0  # bytes of the exchange
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
        self.moved = self._now()
        if self._came > _FEW_BYTES:
            self.grew = self.moved

    async def ask(
        self, commands: Sequence[Command], seconds: float, took: Callable[[int, Any], None] | None = None
    ) -> list[Any]:
        """Send all commands at once, and return the answers. A `Refusal` stands for an error.

        Args:
            commands: They run one after the other.
            seconds: How long nothing may go or come. What is long may take its time; a long question gets more of it, because
                what is still on its way can't be seen.
            took: Called with the place of a command and its answer as soon as that has come.

        Raises:
            Away: If nothing moved for so long, or the connection breaks. What ran isn't known then.
        """
        answers, self._came, self.moved = list[Any](), 0, self._now()
        packed = _packed(commands)
        try:
            async with _while_it_moves(self, seconds + len(packed) * _SECONDS_A_BYTE):
                await self._send(memoryview(packed))
                for place in range(len(commands)):
                    try:
                        answer = await self._connection.read_response()
                    except self._answered_with_an_error as error:
                        answer = _refusal(error)
                    answers.append(answer)
                    if took is not None:
                        took(place, answer)
        except BaseException as error:  # the packages let many kinds of errors through
            await self.close()
            if isinstance(error, Exception):
                raise _away(error, self.address) from error
            raise
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
        """Close it at once. Whoever waits for an answer gets `Away`."""
        self._is_closed = True
        self._writer.transport.abort()  # a polite close waits until all is sent, maybe for ever

    async def close(self) -> None:
        """Close it at once, and return when it is closed."""
        self.abort()
        await _close(self._connection)


@asynccontextmanager
async def _while_it_moves(line: Line, seconds: float) -> AsyncGenerator[None]:
    """`asyncio.timeout` for a line on which nothing goes or comes for so long."""
    loop = asyncio.get_running_loop()
    alarms = list[asyncio.TimerHandle]()

    def look() -> None:
        due = line.moved + seconds
        if loop.time() < due:
            alarms[:] = [loop.call_at(due, look)]
        else:
            limit.reschedule(loop.time())

    try:
        async with asyncio.timeout(None) as limit:
            alarms.append(loop.call_at(line.moved + seconds, look))
            yield
    finally:
        alarms[-1].cancel()


async def _close(connection: Any) -> None:
    with suppress(Exception):
        await connection.disconnect()
    await asyncio.sleep(0)  # a transport closes its socket with the loop's next round


def dialer(place: Place, tally: Tally, *, to_sentinels: bool = False) -> Dialer:
    """What opens the connections to a place.

    Raises:
        InvalidValueError: If neither package is installed.
    """
    name, package = _package(place)
    exceptions = import_module(f"{name}.exceptions")
    tcp = package.SSLConnection if place.tls else package.Connection
    options = place.sentinel_options if to_sentinels else place.options
    return Dialer(name, exceptions.ResponseError, tally, tcp, package.UnixDomainSocketConnection, options)


def _packed(commands: Iterable[Command]) -> bytes:
    """The bytes of commands. The packages need three to six times as long for them."""
    parts = list[bytes]()
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for word in command:
            written = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(written), written))
    return b"".join(parts)


def _package(place: Place) -> tuple[str, Any]:
    for name in place.packages:
        with suppress(ModuleNotFoundError):
            return name, import_module(f"{name}.asyncio")
    raise InvalidValueError.of(
        [("url", place.shown, "needs the package redis or valkey", "run: pip install 'rxdelta[relay]'")]
    )


def _refusal(error: Exception) -> Refusal:
    text = str(error)
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _CODES), None)
    code, rest = (_CODES[kind], text) if kind is not None else text.partition(" ")[::2]
    return Refusal(code, rest.removeprefix(code).lstrip(), error)


def _away(error: Exception, address: Address) -> Away:
    if isinstance(error, TimeoutError):
        return Away(f"{address} doesn't answer")
    return Away(f"{address}: {described(error)}")
