"""Logs that several processes share over a store.

`streams` has all logs of a process, each with a `writer` or a `feed`; `records` is their stored form; `place` is what they
have in common, `asking` the calls of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rxdelta.core import StreamInterrupted
from rxdelta.relay.shared.asking import Patient
from rxdelta.relay.shared.place import Place
from rxdelta.relay.shared.records import Plain, Sealed
from rxdelta.relay.shared.streams import Streams

if TYPE_CHECKING:
    from rxdelta.relay.store import Store, Terms

__all__ = ["open_streams"]


async def open_streams(
    store: Store,
    terms: Terms,
    *,
    encrypt: Callable[[bytes], bytes] | None,
    decrypt: Callable[[bytes], bytes] | None,
    max_total_bytes: int | None,
) -> Streams:
    """Open a store, and what a relay has over it.

    Raises:
        StreamInterrupted: The store can't be reached.
    """
    try:
        await store.open(terms)
    except BaseException as error:
        with suppress(Exception):
            await store.close()
        if isinstance(error, OSError):
            raise StreamInterrupted(f"the store {store!r} can't be reached: {error}") from error
        raise
    plain = Plain(packs=isinstance(store, Patient))  # the package for it comes with what these stores need
    values = Sealed(plain, encrypt, decrypt) if encrypt is not None and decrypt is not None else plain
    return Streams(Place(store, terms, values, max_total_bytes))
