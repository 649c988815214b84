"""The keys of a stream on the server.

The kind of a key stands in front of the name, and the name is percent-encoded. So no name reaches another stream's key,
or a key of another kind. All keys of a stream have one hash tag, of which there are only a few: a Cluster then needs only
that many blocking reads.
"""

from __future__ import annotations

from urllib.parse import quote, unquote
from zlib import crc32

import attrs

__all__ = ["TAGS", "Keys", "bytes_keys", "id_of", "inbox_key", "names_key"]

TAGS = 16
"""It is a part of the stored form: with another number no stream would be found again."""


@attrs.frozen
class Keys:
    """The keys of one name.

    Attributes:
        tag: Which of the hash tags they have.
        head: Who publishes the stream now, as a stream of one entry: so that a reader can wait for it.
        id: The encoded id, as the tenant's index has it.
        names: That index.
        sums: The keys of the bytes.
    """

    tag: int
    head: bytes
    id: str
    names: bytes
    sums: tuple[bytes, bytes]
    _front: str
    _name: str

    @classmethod
    def of(cls, prefix: str, tenant: str, id: str) -> Keys:
        stream = quote(id, safe="")
        full = f"{quote(tenant, safe='')}/{stream}"
        tag = crc32(full.encode()) % TAGS
        front = _front(prefix, tag)
        names = names_key(prefix, tag, tenant)
        return cls(tag, f"{front}head:{full}".encode(), stream, names, bytes_keys(prefix, tag), front, full)

    def log(self, epoch: str) -> bytes:
        """The entries of one publication."""
        return f"{self._front}log:{epoch}:{self._name}".encode()

    def own(self, epoch: str) -> bytes:
        """The lease of one publication."""
        return f"{self._front}own:{epoch}:{self._name}".encode()


def names_key(prefix: str, tag: int, tenant: str) -> bytes:
    """The index of a tenant's streams with this tag."""
    return f"{_front(prefix, tag)}names:{quote(tenant, safe='')}".encode()


def inbox_key(prefix: str, tag: int, token: str) -> bytes:
    """What a process is told about its publications with this tag."""
    return f"{_front(prefix, tag)}inbox:{token}".encode()


def bytes_keys(prefix: str, tag: int) -> tuple[bytes, bytes]:
    """How many bytes the streams with this tag have, and until when."""
    front = _front(prefix, tag)
    return f"{front}bytes".encode(), f"{front}until".encode()


def id_of(member: bytes) -> tuple[str, str]:
    """When a stream of an index began, as text that sorts, and its id."""
    began, _, encoded = member.decode(errors="replace").partition(":")
    return began, unquote(encoded)


def _front(prefix: str, tag: int) -> str:
    return f"{{{prefix}:{tag}}}:"
