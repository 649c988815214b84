"""Runs in which a process, the server or the line between them fails at a random moment, and what must hold after each.

A run is decided by its seed: one stream, a publisher in a process, readers in other processes that come and go, and one kind
of fault. In the end each reader has what was acknowledged, or a typed error says that something is missing.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import attrs
import reactivex as rx
from relay.server.workers import AWAY, Job, Nursery, Worker, numbers_of
from support.cutting_proxy import CuttingProxy, Fate
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay

__all__ = ["KINDS", "LEASE", "Run", "play", "play_at_once", "play_out"]

ev = rd.events
LEASE = 1.5
LIMIT = 60.0  # seconds of a run: what hangs fails
STREAM = "a stream"


@attrs.define
class Run:
    """One run.

    Attributes:
        lease: Of all relays.
        publishes: More of the publisher's job.
        slow: Seconds that readers take for each entry.
        loses: The fault may lose what was acknowledged. Then a typed error must say so.
        stays: The publisher must end with its source, because nothing happens that may end it.
        closes: Seconds from the publisher's death to the last reader's end.
        notes: What happened, for who looks at a failure.
    """

    seed: int
    nursery: Nursery
    server: ValkeyServer
    proxy: Any
    folder: Path
    chance: Random
    synced: str
    lease: float = LEASE
    patience: float = 10.0
    count: int = 120
    publishes: dict[str, Any] = attrs.Factory(dict)
    slow: float = 0.0
    stays: bool = False
    loses: bool = False
    killed: float | None = None
    closes: float | None = None
    told: bool | None = None
    publisher: Any = None
    readers: list[Worker] = attrs.Factory(list)
    gone: list[Worker] = attrs.Factory(list)
    notes: list[str] = attrs.Factory(list)

    def options(self) -> dict[str, Any]:
        return {"lease": self.lease, "patience": self.patience}

    def url(self, *, directly: bool = False) -> str:
        """Who opens a relay has any of the packages and protocols."""
        package, protocol = self.chance.choice(("valkey", "redis")), self.chance.choice((2, 3))
        return f"{package}{self.place(directly)}?protocol={protocol}"

    def place(self, directly: bool) -> str:
        """What a URL has behind the package."""
        return f"://127.0.0.1:{self.server.port if directly else self.proxy.port}"

    def job(self, does: str, count: int, **more: Any) -> Job:
        number = 1 + len(self.readers) + len(self.gone) if does == "read" else 0
        pauses = (0, 0, 0.002, 0.01, 0.03) if does == "publish" else (0, 0.005, 0.05)
        return Job(
            does=does,
            file=str(self.folder / f"{does}-{number}"),
            url=self.url(),
            stream=STREAM,
            seed=self.seed * 10 + number,
            options=self.options(),
            count=count,
            pauses=pauses,
            **more,
        )

    def read(self, **more: Any) -> Worker:
        restless = self.chance.choice((0, 0.03, 0.1) if not self.slow else (0, 0.005))
        more = {"restless": restless, "slow": self.slow, **more}
        worker = self.nursery.start(self.job("read", self.chance.randrange(1, 4), **more))
        self.readers.append(worker)
        return worker

    def note(self, text: str) -> None:
        self.notes.append(f"{time.monotonic():.3f} {text}")

    async def somewhen(self, longest: float = 1.0) -> None:
        await asyncio.sleep(self.chance.uniform(0, longest))

    async def kill_publisher(self) -> None:
        self.note("kill -9 of the publisher")
        self.killed = time.monotonic()
        self.publisher.send(signal.SIGKILL)

    async def restart_server(self, away: float = 0) -> None:
        self.note(f"kill -9 of the server, away for {away:.1f} s; appendfsync {self.synced}")
        self.loses |= (
            self.synced != "always"
        )  # while its file is synced, it puts off what it writes into that
        await asyncio.to_thread(self.server.kill)
        await asyncio.sleep(away)
        await asyncio.to_thread(self.server.start)
        self.note("the server is back")

    def command(self, *words: str | int) -> Any:
        self.note(" ".join(map(str, words)))
        return self.server.command(*words)

    def keys(self, kind: str) -> list[str]:
        answer = self.server.command("KEYS", f"*}}:{kind}:*")
        assert isinstance(answer, list)
        return [str(key) for key in answer]


async def kill_the_publisher(run: Run) -> None:
    await run.somewhen()
    await run.kill_publisher()


async def kill_a_reader(run: Run) -> None:
    await run.somewhen()
    worker = run.readers.pop(0)
    run.note("kill -9 of readers")
    worker.send(signal.SIGKILL)
    run.gone.append(worker)
    had = [(record.more[0], record.more[1:]) for record in worker.records() if record.what == "got"]
    run.read(have=[(entry, numbers[-1]) for entry, numbers in had if numbers])


async def kill_the_server(run: Run) -> None:
    for _ in range(run.chance.choice((1, 1, 2))):
        await run.somewhen()
        await run.restart_server(run.chance.choice((0, 0, 0.3, LEASE * 1.3)))


async def kill_server_and_publisher(run: Run) -> None:
    await run.somewhen()
    down = asyncio.create_task(run.restart_server(run.chance.choice((0, 0.3))))
    await run.somewhen(0.3)
    await run.kill_publisher()
    await down


async def stop_the_publisher(run: Run) -> None:
    await run.somewhen()
    run.note("SIGSTOP of the publisher")
    run.publisher.send(signal.SIGSTOP)
    await asyncio.sleep(LEASE * run.chance.choice((0.3, 2.2)))
    run.publisher.send(signal.SIGCONT)
    run.note("SIGCONT")


async def stop_the_server(run: Run) -> None:
    await run.somewhen()
    run.note("SIGSTOP of the server")
    run.server.pause()
    await asyncio.sleep(run.chance.choice((0.2, 0.6, LEASE * 1.5)))
    run.server.resume()
    run.note("SIGCONT")


async def cut_the_lines(run: Run) -> None:
    run.proxy.chance = _fates(
        run.chance, ("pass", "pass", "pass", "cut before", "cut after", "cut after", "delay")
    )
    await _disturb(run, 1.2)


async def cut_the_lines_and_kill(run: Run) -> None:
    run.proxy.chance = _fates(run.chance, ("pass", "pass", "pass", "cut before", "cut after", "delay"))
    disturbing = asyncio.create_task(_disturb(run, 1.0))
    await run.somewhen()
    await run.kill_publisher()
    await disturbing


async def be_away_for_too_long(run: Run) -> None:
    run.patience = 0.8
    await run.somewhen(0.5)
    run.note("the line is down for more than the patience")
    run.proxy.is_down = True
    run.proxy.cut()
    await asyncio.sleep(run.chance.choice((1.0, 2.5)))
    run.proxy.is_down = False
    run.note("it is up")


async def cancel_while_lines_are_cut(run: Run) -> None:
    run.proxy.chance = _fates(run.chance, ("pass", "pass", "pass", "cut before", "cut after", "delay"))
    disturbing = asyncio.create_task(_disturb(run, 0.8))
    await run.somewhen(0.7)
    async with Relay.open(run.url(directly=True), **run.options()) as other:
        run.told = await other.cancel(STREAM, "enough")
        run.note(f"cancel: {run.told}")
    await disturbing


async def fill_the_memory(run: Run) -> None:
    await run.somewhen(0.6)
    run.command("CONFIG", "SET", "maxmemory", "1mb")
    await asyncio.sleep(run.chance.choice((0.3, 1.0, LEASE * 1.5)))
    run.command("CONFIG", "SET", "maxmemory", "0")


async def evict_keys(run: Run) -> None:
    run.loses = True
    await run.somewhen(0.8)
    run.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    run.command("CONFIG", "SET", "maxmemory", "1mb")
    await asyncio.sleep(0.3)
    run.command("CONFIG", "SET", "maxmemory", "0")


async def trim_by_hand(run: Run) -> None:
    run.loses = True
    await run.somewhen(0.8)
    for key in run.keys("log"):
        run.command("XTRIM", key, "MAXLEN", run.chance.choice((0, 1, 5)))


async def delete_a_key_by_hand(run: Run) -> None:
    run.loses = True
    await run.somewhen(0.8)
    for key in run.keys(run.chance.choice(("log", "log", "own", "head", "inbox", "*"))):
        run.command("DEL", key)


async def flush_everything(run: Run) -> None:
    run.loses = True
    await run.somewhen(0.8)
    run.command("FLUSHALL")


async def go_silent(run: Run) -> None:
    """A router forgets the connections."""
    for _ in range(run.chance.choice((1, 2))):
        await run.somewhen()
        run.note(f"{run.proxy.silence()} connections are silent; lease {run.lease}")


async def lose_the_claim(run: Run) -> None:
    """The answers to the publisher are lost for longer than its patience, from the beginning."""
    await run.somewhen(1.5 * run.patience)
    await asyncio.sleep(run.patience)
    run.proxy.chance = lambda: "pass"
    run.note("answers come again")


async def read_over_a_slow_line(run: Run) -> None:
    run.note("the line is slow")
    run.proxy.rate = run.chance.choice((1e6, 3e6))
    await run.somewhen(2)


async def drain_the_publisher(run: Run) -> None:
    await run.somewhen()
    run.note("SIGTERM")
    run.publisher.send(signal.SIGTERM)


async def read_slowly(run: Run) -> None:
    await run.somewhen()


async def prepare(run: Run, kind: Callable[[Run], Awaitable[None]]) -> None:
    """What a kind needs before the processes start."""
    if kind is be_away_for_too_long:
        run.patience = 0.8
    elif kind is go_silent:
        run.lease = run.chance.choice((0.6, 1.5, 3.0, 5.0, 10.0))
        run.stays = run.lease >= 3  # a shorter one may be over before the line is given up
    elif kind is lose_the_claim:
        run.patience = 0.8
        run.publishes["begins_again"] = True
        run.proxy.chance = lambda: "cut after"
    elif kind is drain_the_publisher:
        run.publishes["drains"] = run.chance.choice((0.05, 0.5, 20.0))
    elif kind is read_slowly:
        run.slow, run.stays, run.count = run.chance.choice((0.005, 0.02)), True, 300
    elif kind is read_over_a_slow_line:
        run.publishes["herd"], run.stays = 30, True
        run.lease, run.patience = 6.0, 4.0
        page = [ev.Custom("page", "x" * 5000) for _ in range(20)]
        async with Relay.open(run.url(directly=True), **run.options()) as relay:
            for number in range(30):
                events = rx.from_iterable(page).pipe(relay.publish(f"kept-{number}"))
                await rd.for_each(events, lambda _: None)


KINDS: list[Callable[[Run], Awaitable[None]]] = [
    kill_the_publisher,
    kill_a_reader,
    kill_the_server,
    kill_server_and_publisher,
    stop_the_publisher,
    stop_the_server,
    cut_the_lines,
    cut_the_lines_and_kill,
    be_away_for_too_long,
    cancel_while_lines_are_cut,
    fill_the_memory,
    evict_keys,
    trim_by_hand,
    delete_a_key_by_hand,
    flush_everything,
    go_silent,
    lose_the_claim,
    read_over_a_slow_line,
    drain_the_publisher,
    read_slowly,
]


def _fates(chance: Random, fates: tuple[Fate, ...]) -> Callable[[], Fate]:
    return lambda: chance.choice(fates)


async def _disturb(run: Run, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await run.somewhen(0.3)
        what = run.chance.choice(("cut", "cut", "down", "hole"))
        run.note(what)
        if what == "cut":
            run.proxy.cut()
            continue
        setattr(run.proxy, f"is_{what}", True)
        await run.somewhen(0.3)
        setattr(run.proxy, f"is_{what}", False)
        run.proxy.cut()
    run.proxy.chance = lambda: "pass"
    run.note("the lines are whole")


async def play(seed: int, nursery: Nursery) -> None:
    """Play one run and check it. An error names the seed."""
    kind = KINDS[seed % len(KINDS)]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rxf-")))
        chance = Random(seed)
        synced = chance.choice(("always", "always", "everysec"))
        server = ValkeyServer("--appendfsync", synced)
        stack.push_async_callback(asyncio.to_thread, server.remove)
        await asyncio.to_thread(server.start)
        proxy = await stack.enter_async_context(CuttingProxy(server.port))
        run = Run(seed, nursery, server, proxy, folder, chance, synced=synced)
        await prepare(run, kind)
        await play_out(run, kind)


def play_at_once(seeds: range, play: Callable[[int, Nursery], Awaitable[None]], at_once: int) -> None:
    """Play runs, so many at once."""

    async def main(nursery: Nursery) -> None:
        room = asyncio.Semaphore(at_once)

        async def one(seed: int) -> None:
            async with room:
                await play(seed, nursery)

        async with asyncio.TaskGroup() as group:
            for seed in seeds:
                group.create_task(one(seed))

    with Nursery.open() as nursery:
        asyncio.run(main(nursery))


async def play_out(run: Run, kind: Callable[[Any], Awaitable[None]]) -> None:
    """Play a run whose servers are there, and check it. An error says what has happened."""
    try:
        async with asyncio.timeout(LIMIT):
            await _play(run, kind)
    except BaseException as error:
        error.add_note(f"in the run {run.seed}: {kind.__name__}")
        workers = [run.publisher, *run.readers] if run.publisher is not None else []
        lasts = [
            f"{one.job.does} {one.job.url}: {one.records(-1)[-1:] + one.records()[-1:]}" for one in workers
        ]
        for note in (*run.notes, *lasts):
            error.add_note(f"  {note}")
        raise
    finally:
        _end_workers(run)


async def _play(run: Run, kind: Callable[[Any], Awaitable[None]]) -> None:
    run.publisher = run.nursery.start(run.job("publish", run.count, **run.publishes))
    run.read()
    if kind is not lose_the_claim and (kind is not kill_the_publisher or run.chance.random() < 0.8):
        while not run.publisher.records():
            await asyncio.sleep(0.005)
    if run.chance.random() < 0.6:
        run.read()
    await kind(run)
    if run.chance.random() < 0.5:
        run.read()
    for worker in [run.publisher, *run.readers]:
        while worker.runs:
            await asyncio.sleep(0.02)
    await _check(run)


def _end_workers(run: Run) -> None:
    for worker in [run.publisher, *run.readers]:
        if worker is not None:
            worker.send(signal.SIGKILL)


async def _check(run: Run) -> None:
    numbers, end = await _read_whole(run)
    run.note(f"the log has {len(numbers)} events and ends with {end}")
    publisher = run.publisher.records()
    written = [number for record in publisher if record.what == "written" for number in record.more]
    ends = [record.more for record in publisher if record.what == "end"]
    run.note(f"the publisher had {len(written)} written and ended with {ends}")
    assert written == [*range(len(written))]
    kept = [record.more for record in publisher if record.what == "kept"]
    assert kept == [[20]] * run.publishes.get("herd", 0)
    if run.stays:
        assert ends == [["|"]]
        assert len(written) == run.count
    assert ends or run.killed is not None, "the publisher has no end"
    for worker in [run.publisher, *run.readers]:
        if worker is not run.publisher or run.killed is None:
            said = worker.records(-1)
            assert [record.what for record in said if record.what != "waits"] == ["done"], said
    for worker in [*run.readers, *run.gone]:
        for who in range(worker.job.count):
            _check_reader(run, worker, who, numbers, end, len(written))
    if not run.loses:
        _check_log(run, numbers, end, written, ends)
    elif end == ["|"]:
        assert len(numbers) >= len(written)
    if run.killed is not None and end != ["|"]:
        last = [
            record.time
            for worker in run.readers
            for who in range(worker.job.count)
            for record in worker.records(who)
            if record.what == "end"
        ]
        run.closes = max(last) - run.killed
    await asyncio.to_thread(run.server.has_no_clients)


def _check_log(
    run: Run, numbers: list[int], end: list[Any], written: list[int], ends: list[list[Any]]
) -> None:
    assert numbers == [*range(len(numbers))]
    assert len(written) <= len(numbers)
    if ends == [["|"]]:
        assert end == ["|"]
        assert len(numbers) == run.count or run.told or run.publishes.get("drains")
    elif ends:
        assert ends[0][0] == "StreamInterrupted"
        assert end != ["|"] or any(text in ends[0][1] for text in AWAY)
    if end[0] == "EmptyStreamError":
        assert not written
        assert run.killed is not None
    elif end != ["|"]:
        assert end[0] == "StreamInterrupted"
        assert "taken for dead" in end[1]


def _check_reader(run: Run, worker: Worker, who: int, log: list[int], end: list[Any], written: int) -> None:
    expected, seen = 0, -1
    records = worker.records(who)
    for record in records:
        if record.what == "open":
            expected = record.more[0] + 1
        elif record.what == "got":
            numbers = record.more[1:]
            assert numbers == [*range(expected, expected + len(numbers))], (
                f"{worker.job.file} {who}: {record}"
            )
            expected += len(numbers)
            seen = max(seen, expected - 1)
    if worker in run.gone:
        return
    last = records[-1]
    assert last.what == "end", f"{worker.job.file} {who}: {last}"
    if last.more == ["|"]:
        assert expected >= written
    else:
        missing = ("StreamUnreadableError", "EmptyStreamError", "InvalidValueError") if run.loses else ()
        unborn = last.more == end and end[0] == "EmptyStreamError"  # the publisher was killed before it began
        assert unborn or last.more[0] in ("StreamInterrupted", *missing), last
    if not run.loses:
        assert expected == len(log), (
            f"{worker.job.file} {who}: it has {expected} of {len(log)}, and then {last}"
        )
        assert last.more == end, f"{worker.job.file} {who}: {last.more} instead of {end}"


async def _read_whole(run: Run) -> tuple[list[int], list[Any]]:
    """The log as a new reader has it who isn't disturbed, and its end."""
    numbers: list[int] = []
    async with Relay.open(run.url(directly=True), **run.options()) as relay:
        try:
            await rd.for_each(relay.watch(STREAM), lambda event: numbers.extend(numbers_of(event)))
        except rd.RxDeltaError as error:
            return numbers, [type(error).__name__, str(error)]
    return numbers, ["|"]
