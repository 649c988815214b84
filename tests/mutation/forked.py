"""A child process that tells its parent how far it is, and that doesn't hang."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Say = Callable[..., None]

__all__ = ["forked"]

PATIENCE = 5.0  # seconds that a child may sleep without using the processor


def forked(child: Callable[[Say], None], *, watch: bool = True) -> Iterator[dict[str, Any]]:
    """Run `child` in a fork of this process, and give what it says, as keywords.

    The last item has `ended`: "exit", "hang" for one that slept longer than its last `wall` allows, or "signal".

    Args:
        child: Gets a function that tells the parent its keywords.
        watch: Whether a child that sleeps is ended.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _be_child(child, write)
    os.close(write)
    try:
        yield from _heard(pid, read, watch)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # and what it started
        os.close(read)


def _be_child(child: Callable[[Say], None], write: int) -> None:
    def say(**data: Any) -> None:
        line = json.dumps(data).encode() + b"\n"
        while line:
            line = line[os.write(write, line) :]

    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        child(say)
    except BaseException:
        say(crashed=traceback.format_exc())
    finally:
        os._exit(0)


def _heard(pid: int, read: int, watch: bool) -> Iterator[dict[str, Any]]:
    rest, allowed, used, since = b"", PATIENCE, -1, time.monotonic()
    while True:
        if select.select([read], [], [], 0.25)[0]:
            data = os.read(read, 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                said = json.loads(line)
                allowed = max(PATIENCE, 5 * said.get("wall", 0))
                yield said
            since = time.monotonic()
        elif watch:
            now, sleeps = _processor_time(pid)
            if now != used or not sleeps:
                used, since = now, time.monotonic()
            elif time.monotonic() - since > allowed:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                yield {"ended": "hang"}
                return
    _, status = os.waitpid(pid, 0)
    yield {"ended": "signal" if os.WIFSIGNALED(status) else "exit"}


def _processor_time(pid: int) -> tuple[int, bool]:
    """In ticks, for all its threads, and whether they all sleep: one that only waits for a processor doesn't."""
    ticks, sleeps = 0, True
    with suppress(OSError):
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            sleeps = sleeps and fields[0] == "S"
    return ticks, sleeps
