"""Publishers that are processes of their own and are killed: what they were told is written must be there for others.

As a program it is such a publisher: `python -m rxdelta.testing.stores._processes module:function stream-id`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from importlib import import_module
from random import Random
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from rxdelta.core import InvalidValueError
from rxdelta.relay import LogKey, Record, Terms
from rxdelta.testing.stores._bench import Bench, broken_unless, expect, gathered, made

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.relay import Store

__all__ = ["function_of", "play_killed"]

_COMPETITORS = 2


def function_of(path: str) -> Callable[[], Store]:
    """The function of a path `module:function`.

    Raises:
        InvalidValueError: There is none.
    """
    module, _, name = path.partition(":")
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidValueError.of(
            [("make", path, "must be a function, or where one is: module:function")]
        ) from error
    made_by: Callable[[], Store] = found
    return made_by


def _record(number: int) -> Record:
    return Record(number, 1, f"event {number} ".encode() * (1 + number % 50))


async def play_killed(path: str, bench: Bench, seed: int) -> None:
    """Let processes publish under one name at once, kill the one that has begun, and compare.

    Raises:
        Broken: Something doesn't hold.
    """
    chance, name = Random(seed), bench.key().id  # noqa: S311
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = sys.executable, "-m", __name__, path, name
    processes = [
        await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment)
        for _ in range(_COMPETITORS)
    ]
    try:
        said = [await _said(process) for process in processes]  # each is open
        for process in processes:
            if process.stdin is not None:
                process.stdin.write(b"begin\n")
        said = await gathered([_said(process) for process in processes])
        begun = [at for at, line in enumerate(said) if line.startswith("begun ")]
        expect("begin: processes that were told that their log has begun", len(begun), 1)
        (winner,) = begun
        epoch = said[winner].split()[1]
        expect("begin: what processes are told", {line.split()[1] for line in said}, {epoch})
        acknowledged = 0
        for _ in range(chance.randrange(1, 60)):
            acknowledged = int(await _said(processes[winner]))
        processes[winner].kill()
        rest, _ = await processes[winner].communicate()
        numbers = rest.rpartition(b"\n")[0].split()  # what it was told since then
        acknowledged = int(numbers[-1]) if numbers else acknowledged
        await _compare(bench, LogKey("", name, epoch), acknowledged)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.communicate()


async def _said(process: Process) -> str:
    """The next line that a process writes."""
    line = (await process.stdout.readline()).decode().strip() if process.stdout is not None else ""
    broken_unless(line, "a process that publishes has ended by itself; see what it wrote to stderr")
    return line


async def _compare(bench: Bench, key: LogKey, acknowledged: int) -> None:
    end, sign = Record(10**6, 0, b"", b"killed", dead=1), -1
    while not await bench.b.bury(key, sign, end):  # until what was under way has arrived
        page = await bench.page(key)
        broken_unless(not page.has_ended, "bury: a log has an end that nobody has written")
        sign = page.sign
        await asyncio.sleep(0.05)
    log: list[Record] = []
    while (page := await bench.page(key, log[-1].number if log else 0)).records:
        log += page.records
    missing = f"append: of {acknowledged} records that a killed process was told are written, {len(log) - 1} are there"
    broken_unless(len(log) - 1 >= acknowledged, missing)
    broken_unless(
        log == [*map(_record, range(1, len(log))), end],
        "read: a killed process's records aren't what it wrote",
    )
    expect("begin of the name of a killed process", await bench.a.begin(bench.key(key.id)), key.epoch)


async def _publish(path: str, name: str) -> None:
    """Begin when told to, and write until the process is killed."""
    store, key = made(function_of(path)), LogKey("", name, token_hex(8))
    await store.open(Terms(lease=60.0, keep=60.0, patience=5.0))
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    owner = await store.begin(key)
    print(f"taken {owner}" if owner else f"begun {key.epoch}", flush=True)
    number = 0
    while owner is None:
        number += 1
        answer = await store.append(key, number - 1, _record(number))
        if answer.state != "written":
            break
        print(number, flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(_publish(*sys.argv[1:]))
