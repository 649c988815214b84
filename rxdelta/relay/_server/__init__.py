"""The relay's store on a Valkey or Redis server. It needs the extra `rxdelta[relay]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.relay._server._connections import Connections
from rxdelta.relay._server._entries import Plain
from rxdelta.relay._server._sealed import Sealed
from rxdelta.relay._server._server import Server
from rxdelta.relay._server._streams import Streams
from rxdelta.relay._server._urls import parse_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.relay._metrics import Tally

__all__ = ["open_streams", "parse_url"]


async def open_streams(
    url: str,
    *,
    prefix: str,
    lease: float,
    keep: float,
    patience: float,
    replicas: int,
    encrypt: Callable[[bytes], bytes] | None,
    decrypt: Callable[[bytes], bytes] | None,
    max_total_bytes: int | None = None,
    tally: Tally,
) -> Streams:
    """The store at a URL.

    Raises:
        InvalidValueError: It is no URL of a server.
        StreamInterrupted: The server can't be reached.
    """
    connections = await Connections.open(url, patience=patience, replicas=replicas, lease=lease, tally=tally)
    values = Sealed(Plain(), encrypt, decrypt) if encrypt is not None and decrypt is not None else Plain()
    server = Server(
        connections,
        values,
        prefix=prefix,
        lease=lease,
        keep=keep,
        patience=patience,
        max_total_bytes=max_total_bytes,
    )
    return Streams(server, patience)
