"""One connection to one server, by the connection classes of the package `redis` or `valkey`.

Their clients, pools and retries are left out. A client repeats a command by itself, so that an append happens twice;
and its pools grow with the readers. Timeouts of theirs are off, too: some of them lose a cancellation.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rxdelta.core import described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rxdelta.relay._metrics import Tally
    from rxdelta.relay._valkey._urls import Address, Way

__all__ = ["Away", "Command", "Line", "Refusal", "connect"]

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
"""What the options of a client begin with that aren't for our connections: where to connect to, and what is a client's work."""
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
            seconds: How long nothing may go or come. What is long may take its time; a long question gets more of it, because
                what is still on its way can't be seen.
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
        """Close it at once. Whoever waits for an answer gets `Away`."""
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
