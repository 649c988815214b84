"""A law, and the bench on which it is tried: several stores of one place, as several processes have them.

Some publishers are processes of their own and are killed: an entry that was acknowledged must be there for others.

As a program it is such a publisher: `python -m rxdelta.testing.stores.bench module:function stream-id`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib import import_module
from random import Random
from secrets import token_hex
from threading import get_ident
from typing import Any, Self, TypeAlias, TypeVar

import attrs

from rxdelta.core import InvalidValueError
from rxdelta.relay import LogKey, Page, Record, Store, Terms, Topic
from rxdelta.testing.stores.traced import Broken, Traced, shown

T = TypeVar("T")
Check: TypeAlias = "Callable[[Bench], Awaitable[None]]"

SOON = 10.0
"""Seconds in which news must come, and in which a log must have expired."""
_LONG = Terms(lease=60.0, keep=60.0, patience=5.0, counts=True)
_TRACED = 14


@attrs.frozen
class Law:
    """A sentence that must hold for each store.

    Attributes:
        part: Which part of a store it is about, such as `"append"`.
        says: The sentence.
        check: Raises `Broken` if it doesn't hold.
        waits: Whether it does little but wait, so that it's tried beside others.
    """

    part: str
    says: str
    check: Check
    waits: bool = False


LAWS: list[Law] = []


def law(part: str, says: str, *, waits: bool = False) -> Callable[[Check], Check]:
    """Put a check on the list of laws."""

    def add(check: Check) -> Check:
        LAWS.append(Law(part, says, check, waits))
        return check

    return add


def broken_unless(holds: object, seen: str) -> None:
    if not holds:
        raise Broken(seen)


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise Broken(f"{what}: {shown(got)} and not {shown(wanted)}")


def made(make: Callable[[], Store]) -> Store:
    """A store of the function's."""
    store: object = make()
    if not isinstance(store, Store):
        raise InvalidValueError.of([("make", store, "must return a rxdelta.relay.Store")])
    return store


def records(count: int, *, each: int = 1, end: bytes | None = None) -> list[Record]:
    """Records of some events each. The last one has `end`."""
    numbers = range(each, (count + 1) * each, each)
    last = numbers[-1]
    return [
        Record(number, each, f"events to {number}".encode(), end if number == last else None)
        for number in numbers
    ]


class Bench:
    """Two stores on one place, `a` and `b`, and what laws do again and again.

    Args:
        make: Makes a store.
    """

    a: Store
    b: Store

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self._opened: list[Store] = []
        self._tenant = token_hex(4)
        self.trace: deque[str] = deque(maxlen=_TRACED)

    async def __aenter__(self) -> Self:
        self.a, self.b = await self.store("a"), await self.store("b")
        return self

    async def __aexit__(self, *_: object) -> None:
        for store in [*self._opened]:
            await self.close(store)

    async def store(self, name: str, lease: float = 60.0, keep: float = 60.0) -> Store:
        """One more store on the same place. It's closed at the end."""
        store = Traced(name, made(self._make), self.trace)
        await store.open(attrs.evolve(_LONG, lease=lease, keep=keep))
        self._opened.append(store)
        return store

    async def close(self, store: Store) -> None:
        self._opened.remove(store)
        await store.close()

    async def short(self) -> tuple[Store, Store]:
        """Two more stores, whose logs expire soon: a lease is half a second, and an end is kept for as long."""
        return await self.store("c", 0.5, 0.5), await self.store("d", 0.5, 0.5)

    def key(self, id: str | None = None, tenant: str = "") -> LogKey:
        """The key of a log that hasn't begun, with a name that only this bench uses."""
        return LogKey(tenant, id or f"{self._tenant}-{token_hex(3)}", token_hex(8))

    def tenant(self) -> str:
        """A tenant that has no logs."""
        return f"tenant-{token_hex(6)}"

    async def log(self, *records: Record, key: LogKey | None = None, store: Store | None = None) -> LogKey:
        """A log that has begun and has these records."""
        key, store = key or self.key(), store or self.a
        expect("begin of a name that is free", await store.begin(key), None)
        before = 0
        for record in records:
            answer = await store.append(key, before, record)
            expect("the state that append answers", answer.state, "written")
            before = record.number
        return key

    async def page(self, key: LogKey, after: int = 0, most: int = 2**24, store: Store | None = None) -> Page:
        """What another store reads of a log that must be there."""
        page = await (store or self.b).read(*key, after, most)
        if page is None:
            raise Broken("read: a log that has begun isn't there for a reader in another store")
        return page

    async def holds(self, key: LogKey, *records: Record, what: str, store: Store | None = None) -> Page:
        """The log must have just these records for another store."""
        found: list[Record] = []
        while page := await self.page(key, found[-1].number if found else 0, store=store):
            if not page.records:
                break
            found += page.records
            broken_unless(
                len(found) <= len(records), f"read: {what}: there are more than {len(records)} records"
            )
        missing = [record.number for record in records if record.number not in {one.number for one in found}]
        broken_unless(not missing, f"read: {what}: a record that was acknowledged is missing: {missing}")
        for got, wanted in zip(found, records):
            for field, value in attrs.asdict(wanted).items():
                expect(f"read: {what}: `{field}` of record {wanted.number}", getattr(got, field), value)
        expect(f"read: {what}: `newest`", page.newest, records[-1].number if records else 0)
        expect(f"read: {what}: `has_ended`", page.has_ended, bool(records) and records[-1].end is not None)
        return page


class News:
    """Follows a topic.

    Attributes:
        count: How often it was called.
        end: Ends it.
    """

    def __init__(self, store: Store, what: Any, key: LogKey) -> None:
        self.count = 0
        self._came = asyncio.Event()
        self._thread = get_ident()
        self._topic = Topic(what, key.tenant, key.id, "" if what == "begun" else key.epoch)
        self.end = store.follow(self._topic, self._changed)

    def _changed(self) -> None:
        self.count += get_ident() == self._thread  # else it isn't on the loop
        self._came.set()

    async def comes(self, where: str) -> None:
        """Wait for the next piece of news, or for one that has come since the last."""
        try:
            async with asyncio.timeout(SOON):
                await self._came.wait()
        except TimeoutError:
            raise Broken(
                f"follow: the news `{self._topic.what}` hasn't woken a follower in {where}"
            ) from None
        broken_unless(self.count, "follow: `changed` was called on another thread than the loop's")
        self._came.clear()


async def follow(store: Store, what: Any, key: LogKey) -> News:
    """Follow a topic, and read then, as each follower does: what came before may be missing."""
    news = News(store, what, key)
    await store.read(key.tenant, key.id, None if what == "begun" else key.epoch, 0, 2**24)
    return news


async def gathered(calls: Sequence[Awaitable[T]]) -> list[T]:
    """Return the answers of all calls. If one fails, the others are cancelled."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Callable[[], Awaitable[object]], seen: str) -> None:
    """Ask again until it holds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SOON):
            while not await holds():
                await asyncio.sleep(0.05)
            return
    raise Broken(seen)


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
        expect("begin: processes whose log has begun, by the answer", len(begun), 1)
        (winner,) = begun
        epoch = said[winner].split()[1]
        expect("begin: the answers to processes", {line.split()[1] for line in said}, {epoch})
        acknowledged = 0
        for _ in range(chance.randrange(1, 60)):
            acknowledged = int(await _said(processes[winner]))
        processes[winner].kill()
        rest, _ = await processes[winner].communicate()
        numbers = rest.rpartition(b"\n")[0].split()  # acknowledged since then
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
    missing = (
        f"append: of {acknowledged} records that a killed process had acknowledged, {len(log) - 1} are there"
    )
    broken_unless(len(log) - 1 >= acknowledged, missing)
    broken_unless(
        log == [*map(_record, range(1, len(log))), end],
        "read: a killed process's records aren't what it wrote",
    )
    expect("begin of the name of a killed process", await bench.a.begin(bench.key(key.id)), key.epoch)


async def _publish(path: str, name: str) -> None:
    """Begin on a signal, and write until the process is killed."""
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
