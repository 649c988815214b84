"""One connection to one server, by the connection classes of the package `redis` or `valkey`.

Their clients, pools and retries are left out. A client repeats a command by itself, so that an append happens twice;
and its pools grow with the readers. Timeouts of theirs are off, too: some of them lose a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import InvalidValueError, described

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    """

    package: str
    answered_with_an_error: type[Exception]
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
        return Line(connection, self.answered_with_an_error, address)


class Line:
    """An open connection. Once an exchange has failed or was cancelled, it is closed: an answer may still be under way.

    Attributes:
        address: Where it leads to.
        scripts: The SHA-1 of the scripts that were loaded on this connection. The server process remembers them.
    """

    def __init__(self, connection: Any, answered_with_an_error: type[Exception], address: Address) -> None:
        self.address = address
        self.scripts: set[str] = set()
        self.is_open = True
        self._connection = connection
        self._transport: asyncio.WriteTransport = connection._writer.transport
        self._answered_with_an_error = answered_with_an_error

    async def ask(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        """Send all commands at once, and return the answers. A `Refusal` stands for an error.

        Raises:
            Away: If the answers don't come within `seconds`, or the connection breaks. What ran isn't known then.
        """
        connection, answers = self._connection, list[Any]()
        try:
            async with asyncio.timeout(seconds):
                await connection.send_packed_command(_packed(commands), check_health=False)
                for _ in commands:
                    try:
                        answers.append(await connection.read_response())
                    except self._answered_with_an_error as error:
                        answers.append(_refusal(error))
        except BaseException as error:  # the packages let many kinds of errors through
            await self.close()
            if isinstance(error, Exception):
                raise _away(error, self.address) from error
            raise
        return answers

    def abort(self) -> None:
        """Close it at once. Whoever waits for an answer gets `Away`."""
        self.is_open = False
        self._transport.abort()  # a polite close waits until all is sent, maybe for ever

    async def close(self) -> None:
        """Close it at once, and return when it is closed."""
        self.abort()
        await _close(self._connection)


async def _close(connection: Any) -> None:
    with suppress(Exception):
        await connection.disconnect()
    await asyncio.sleep(0)  # a transport closes its socket with the loop's next round


def dialer(place: Place, *, to_sentinels: bool = False) -> Dialer:
    """What opens the connections to a place.

    Raises:
        InvalidValueError: If neither package is installed.
    """
    name, package = _package(place)
    exceptions = import_module(f"{name}.exceptions")
    tcp = package.SSLConnection if place.tls else package.Connection
    options = place.sentinel_options if to_sentinels else place.options
    return Dialer(name, exceptions.ResponseError, tcp, package.UnixDomainSocketConnection, options)


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
