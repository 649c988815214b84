"""The relay's store on a Valkey or Redis server. It needs the extra `rxdelta[relay]`."""

from rxdelta.relay._server._connections import Connections
from rxdelta.relay._server._embedded import embedded, is_embedded
from rxdelta.relay._server._entries import Plain
from rxdelta.relay._server._server import Server
from rxdelta.relay._server._streams import Streams

__all__ = ["open_streams"]


async def open_streams(
    url: str, *, prefix: str, lease: float, keep: float, patience: float, replicas: int
) -> Streams:
    """The store at a URL.

    Raises:
        InvalidValueError: It is no URL of a server.
        StreamInterrupted: The server can't be reached.
    """
    if is_embedded(url):
        url = await embedded(url, patience)
    connections = await Connections.open(url, patience=patience, replicas=replicas)
    server = Server(connections, Plain(), prefix=prefix, lease=lease, keep=keep, patience=patience)
    return Streams(server, patience)
