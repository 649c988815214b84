"""Which store a relay gets from a URL, and the warning of a process that may be one of several workers without a store.

Workers do not share their memory."""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from rxdelta.relay.store import Store

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
        from rxdelta.relay.sqlite import sqlite_store

        return sqlite_store(url, prefix=prefix)
    try:
        if kind == "valkey":
            from rxdelta.relay.valkey.store import ValkeyStore

            return ValkeyStore(url, prefix=prefix, replicas=replicas)
        from rxdelta.relay.postgres import PostgresStore

        return PostgresStore(url, prefix=prefix)
    except ImportError as error:
        extra = "relay" if kind == "valkey" else kind
        needs = f"a relay at such a URL needs packages that aren't here: pip install 'rxdelta[{extra}]'"
        raise InvalidValueError(needs, field="store") from error


_SHORT_OPTION = ("gunicorn", "hypercorn")  # programs whose `-w` is the number of workers


def warn_of_workers() -> None:
    """Warn if several worker processes show. Python shows a warning of one place once."""
    if any(count > 1 for count in _counts()):
        warnings.warn(
            "several worker processes serve this application, and a relay without a URL is in the memory of one: a "
            "stream that is published in one worker can't be watched or cancelled in another. Run one worker, or give "
            "Relay.open the URL of a server.",
            RuntimeWarning,
            stacklevel=4,  # where the relay is opened: contextlib stands between
        )


def _counts() -> Iterator[int]:
    """The numbers of workers that show: in the environment, in the command line, and in what uvicorn gives its workers."""
    with suppress(ValueError):
        yield int(os.environ.get("WEB_CONCURRENCY", ""))
    program = Path(sys.argv[0]).name if sys.argv else ""  # a spawned worker has its parent's arguments
    yield from _counts_in(sys.argv[1:], short=program in _SHORT_OPTION)
    with suppress(ValueError):
        yield from _counts_in(shlex.split(os.environ.get("GUNICORN_CMD_ARGS", "")), short=True)
    started: Any = getattr(multiprocessing.current_process(), "_kwargs", {})
    count = getattr(started.get("config"), "workers", None)
    if isinstance(count, int):
        yield count


def _counts_in(arguments: Sequence[str], *, short: bool) -> Iterator[int]:
    option = "--workers|-w" if short else "--workers"
    for found in re.finditer(rf"(?:^|\0)(?:{option})[=\0]?(\d+)(?=\0|$)", "\0".join(arguments)):
        yield int(found[1])
