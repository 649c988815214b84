"""The store that a URL names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from rxdelta.relay._store import Store

__all__ = ["store_at"]

_SCHEMES = {"sqlite": "sqlite", "postgresql": "postgres", "postgres": "postgres"}
_WANTED = (
    "must be the URL of a database or a server: sqlite:////path/to/file.db, postgresql://host/database, or "
    "valkey://host:6379 (redis://…)"
)


def store_at(url: str, *, prefix: str, replicas: int) -> Store:
    """The store at a URL, which isn't open yet.

    Raises:
        InvalidValueError: It is no such URL; or a package isn't installed.
    """
    scheme = url.partition("://")[0]
    kind = "valkey" if scheme.startswith(("valkey", "redis")) else _SCHEMES.get(scheme)
    if kind is None:
        named = re.match(r"[a-zA-Z][\w+.-]{0,19}://", url)  # anything else may be a user or a password
        shown = f"{named[0]}…" if named else "…"
        raise InvalidValueError.of([("store", shown, _WANTED)])
    if replicas and kind != "valkey":
        raise InvalidValueError.of([("replicas", replicas, "can only be given for Valkey or Redis")])
    if kind == "sqlite":
        from rxdelta.relay._sqlite import sqlite_store

        return sqlite_store(url, prefix=prefix)
    try:
        if kind == "valkey":
            from rxdelta.relay._valkey._store import ValkeyStore

            return ValkeyStore(url, prefix=prefix, replicas=replicas)
        from rxdelta.relay._postgres import PostgresStore

        return PostgresStore(url, prefix=prefix)
    except ImportError as error:
        extra = "relay" if kind == "valkey" else kind
        needs = f"a relay at such a URL needs packages that aren't here: pip install 'rxdelta[{extra}]'"
        raise InvalidValueError(needs, field="store") from error
