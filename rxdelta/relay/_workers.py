"""Whether this process is one of several workers, which don't share their memory."""

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
from typing import Any

__all__ = ["warn_of_workers"]

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
    yield from _told(sys.argv[1:], short=program in _SHORT_OPTION)
    with suppress(ValueError):
        yield from _told(shlex.split(os.environ.get("GUNICORN_CMD_ARGS", "")), short=True)
    started: Any = getattr(multiprocessing.current_process(), "_kwargs", {})
    count = getattr(started.get("config"), "workers", None)
    if isinstance(count, int):
        yield count


def _told(arguments: Sequence[str], *, short: bool) -> Iterator[int]:
    option = "--workers|-w" if short else "--workers"
    for found in re.finditer(rf"(?:^|\0)(?:{option})[=\0]?(\d+)(?=\0|$)", "\0".join(arguments)):
        yield int(found[1])
