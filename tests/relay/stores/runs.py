"""Runs in which a process fails at a random moment, or what lies between it and its store, and what must hold after each.

A run is decided by its seed: one stream, a publisher in a process, readers in other processes that come and go, and one kind
of fault. In the end each reader has what was acknowledged, or a typed error says that something is missing. Here is what is so
for each store; each has kinds of its own beside these.
"""

from __future__ import annotations

import asyncio
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
from relay.stores.workers import AWAY, Job, Nursery, Record, Worker, numbers_of

import rxdelta as rd
from rxdelta.relay import Relay

__all__ = ["KINDS", "LEASE", "STREAM", "Run", "play_at_once", "play_out", "prepare"]

ev = rd.events
LEASE = 1.5
LIMIT = 60.0  # seconds of a run: what hangs fails
STREAM = "a stream"
OTHERS = 10_000  # the first number of another publisher
DEAD = "taken for dead"
GONE = "has this log no more"


@attrs.define(kw_only=True)
class Run(ABC):
    """One run.

    Attributes:
        lease: Of all relays.
        publishes: More of the publisher's job.
        slow: Seconds that readers take for each entry.
        restless: How often a reader leaves, for each entry: one of these.
        is_early: The fault may come before the publisher has begun.
        loses: The fault may lose what was acknowledged. Then a typed error must say so.
        stays: The publisher must end with its source, because nothing happens that may end it.
        killed: When the publisher was killed that has the name, or had it last.
        dead: The publisher that was killed.
        closes: Seconds from the publisher's death to the last reader's end.
        told: The answer of a cancel, if there was one.
        deleted: Whether the stream was deleted while somebody could read it.
        former: The publisher before the one that has the name now, or had it last.
        rival: A publisher that begins at the same moment as the other one.
        notes: What happened, for who looks at a failure.
    """

    seed: int
    nursery: Nursery
    folder: Path
    chance: Random
    lease: float = LEASE
    patience: float = 10.0
    count: int = 120
    publishes: dict[str, Any] = attrs.Factory(dict)
    slow: float = 0.0
    restless: Sequence[float] = (0, 0.03, 0.1)
    is_early: bool = False
    stays: bool = False
    loses: bool = False
    killed: float | None = None
    dead: Any = None
    closes: float | None = None
    told: bool | None = None
    deleted: bool = False
    publisher: Any = None
    former: Any = None
    rival: Any = None
    readers: list[Worker] = attrs.Factory(list)
    gone: list[Worker] = attrs.Factory(list)
    notes: list[str] = attrs.Factory(list)

    @abstractmethod
    def url(self, *, directly: bool = False) -> str:
        """Where the store is; directly: without what disturbs the line to it."""

    @abstractmethod
    async def check_store(self) -> None:
        """Check what must hold for the store itself when all have left it."""

    def options(self) -> dict[str, Any]:
        return {"lease": self.lease, "patience": self.patience}

    def job(self, does: str, count: int = 0, **more: Any) -> Job:
        number = 1 + len(self.readers) + len(self.gone) if does == "read" else more.get("first", 0)
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

    def publish(self, **more: Any) -> Worker:
        return self.nursery.start(self.job("publish", self.count, **{**self.publishes, **more}))

    def read(self, **more: Any) -> Worker:
        more = {"restless": self.chance.choice(self.restless), "slow": self.slow, **more}
        worker = self.nursery.start(self.job("read", self.chance.randrange(1, 4), **more))
        self.readers.append(worker)
        return worker

    async def told_elsewhere(self, what: str) -> bool:
        """The answer to a cancel or a delete that another process calls."""
        self.note(f"{what} in another process")
        worker = self.nursery.start(self.job(what))
        while worker.runs:
            await asyncio.sleep(0.005)
        assert worker.said("done"), worker.records(-1)
        told = bool(worker.records()[0].more[0])
        self.note(f"{what}: {told}")
        return told

    def workers(self) -> list[Worker]:
        return [
            worker
            for worker in (self.publisher, self.former, self.rival, *self.readers)
            if worker is not None
        ]

    def note(self, text: str) -> None:
        self.notes.append(f"{time.monotonic():.3f} {text}")

    async def somewhen(self, longest: float = 1.0) -> None:
        await asyncio.sleep(self.chance.uniform(0, longest))

    async def kill_publisher(self) -> None:
        self.note("kill -9 of the publisher")
        self.killed, self.dead = time.monotonic(), self.publisher
        self.publisher.send(signal.SIGKILL)

    def leave_reader(self) -> list[tuple[str, int]]:
        """Kill a process of readers. Returns the ids and numbers that its first one had."""
        worker = self.readers.pop(0)
        self.note("kill -9 of readers")
        worker.send(signal.SIGKILL)
        self.gone.append(worker)
        had = [(record.more[0], record.more[1:]) for record in worker.records() if record.what == "got"]
        return [(entry, numbers[-1]) for entry, numbers in had if numbers]


async def kill_the_publisher(run: Run) -> None:
    await run.somewhen()
    await run.kill_publisher()


async def kill_a_reader(run: Run) -> None:
    await run.somewhen()
    run.read(have=run.leave_reader())


async def stop_the_publisher(run: Run) -> None:
    await run.somewhen()
    run.note("SIGSTOP of the publisher")
    run.publisher.send(signal.SIGSTOP)
    await asyncio.sleep(LEASE * run.chance.choice((0.3, 2.2)))
    run.publisher.send(signal.SIGCONT)
    run.note("SIGCONT")


async def drain_the_publisher(run: Run) -> None:
    await run.somewhen()
    run.note("SIGTERM")
    run.publisher.send(signal.SIGTERM)


async def read_slowly(run: Run) -> None:
    await run.somewhen()


async def cancel_elsewhere(run: Run) -> None:
    await run.somewhen()
    run.told = await run.told_elsewhere("cancel")


async def delete_elsewhere(run: Run) -> None:
    await run.somewhen()
    run.deleted = True
    assert await run.told_elsewhere("delete")
    run.former, run.publisher = run.publisher, None


async def publish_again_after_a_delete(run: Run) -> None:
    """The name of a publisher that was killed goes to another one."""
    await run.somewhen()
    await run.kill_publisher()
    await run.somewhen(LEASE * run.chance.choice((0.2, 2)))
    run.deleted = True
    assert await run.told_elsewhere("delete")
    run.former, run.publisher = run.publisher, run.publish(first=OTHERS)
    run.killed = None


async def publish_twice(run: Run) -> None:
    """Two processes publish one stream at the same moment: one source is subscribed."""
    both = [run.publisher, run.rival]
    while not any(map(_has_begun, both)):
        await asyncio.sleep(0.005)
    run.publisher, run.rival = sorted(both, key=_has_begun, reverse=True)
    run.note(f"{run.publisher.job.file} has begun")
    if run.chance.random() < 0.5:
        await run.somewhen()
        await run.kill_publisher()


KINDS: list[Callable[[Any], Awaitable[None]]] = [
    kill_the_publisher,
    kill_a_reader,
    stop_the_publisher,
    drain_the_publisher,
    read_slowly,
    cancel_elsewhere,
    delete_elsewhere,
    publish_again_after_a_delete,
    publish_twice,
]


def prepare(run: Run, kind: Callable[[Any], Awaitable[None]]) -> None:
    """What a kind of these needs before the processes start."""
    if kind is kill_the_publisher:
        run.is_early = run.chance.random() < 0.2
    elif kind is drain_the_publisher:
        run.publishes["drains"] = run.chance.choice((0.05, 0.5, 20.0))
    elif kind is read_slowly:
        run.slow, run.stays, run.count = run.chance.choice((0.005, 0.02)), True, 300
        run.restless = (0, 0.005)
    elif kind is publish_twice:
        run.publishes["at"] = time.monotonic() + 0.3
        run.rival = run.publish(first=OTHERS)


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
        lasts = [
            f"{one.job.does} {one.job.url}: {one.records(-1)[-1:] + one.records()[-1:]}"
            for one in run.workers()
        ]
        for note in (*run.notes, *lasts):
            error.add_note(f"  {note}")
        raise
    finally:
        for worker in run.workers():
            worker.send(signal.SIGKILL)


async def _play(run: Run, kind: Callable[[Any], Awaitable[None]]) -> None:
    run.publisher = run.publish()
    run.read()
    while not run.is_early and not run.publisher.records():
        await asyncio.sleep(0.005)
    if run.chance.random() < 0.6:
        run.read()
    await kind(run)
    if run.chance.random() < 0.5:
        run.read()
    for worker in run.workers():
        while worker.runs:
            await asyncio.sleep(0.02)
    await _check(run)


@attrs.frozen
class _Log:
    """What there was of a log.

    Attributes:
        written: How many events its publisher had back.
        numbers: Those that a late reader has.
        end: How it ended for a late reader.
        last: The last event of a late reader.
    """

    written: int
    numbers: list[int]
    end: list[Any]
    last: rd.Event | None


async def _check(run: Run) -> None:
    log = await _read_whole(run)
    run.note(f"the log has {len(log.numbers)} events and ends with {log.end}, behind {log.last}")
    for worker in run.workers():
        if worker is not run.dead:
            said = worker.records(-1)
            assert [record.what for record in said if record.what != "waits"] == ["done"], said
    if run.rival is not None:
        assert not _has_begun(run.rival), "two sources were subscribed"
        assert [record.more[0] for record in run.rival.records()] == ["InvalidValueError"]
    if run.deleted:
        _check_former(run)
    if run.publisher is not None:
        _check_publisher(run, log)
    else:
        assert log.end[0] == "EmptyStreamError"
    for worker in [*run.readers, *run.gone]:
        for who in range(worker.job.count):
            _check_reader(run, worker, who, log)
    if run.killed is not None and log.end != ["|"]:
        last = [
            record.time
            for worker in run.readers
            for who in range(worker.job.count)
            for record in worker.records(who)
            if record.what == "end"
        ]
        run.closes = max(last) - run.killed
    await run.check_store()


def _has_begun(publisher: Worker) -> bool:
    """Whether its source was subscribed."""
    return any(record.what == "begun" for record in publisher.records())


def _written(publisher: Worker) -> list[int]:
    records = publisher.records()
    return [number for record in records if record.what == "written" for number in record.more]


def _ends(publisher: Worker) -> list[list[Any]]:
    return [record.more for record in publisher.records() if record.what == "end"]


def _numbers(publisher: Worker, count: int) -> list[int]:
    return [*range(publisher.job.first, publisher.job.first + count)]


def _check_former(run: Run) -> None:
    """The publisher of a stream that was deleted ends as one that was stopped, if it wasn't killed."""
    assert _written(run.former) == _numbers(run.former, len(_written(run.former)))
    if run.publisher is None:
        (end,) = _ends(run.former)
        assert end == ["|"] or any(text in end[1] for text in (DEAD, GONE)), end


def _check_publisher(run: Run, log: _Log) -> None:
    publisher = run.publisher
    written, ends = _written(publisher), _ends(publisher)
    run.note(f"the publisher had {len(written)} written and ended with {ends}")
    assert written == _numbers(publisher, len(written))
    kept = [record.more for record in publisher.records() if record.what == "kept"]
    assert kept == [[20]] * run.publishes.get("herd", 0)
    if run.stays:
        assert ends == [["|"]]
        assert len(written) == run.count
    assert ends or run.killed is not None, "the publisher has no end"
    if not run.loses:
        _check_log(run, log, ends)
    elif log.end == ["|"]:
        assert len(log.numbers) >= len(written)


def _check_log(run: Run, log: _Log, ends: list[list[Any]]) -> None:
    assert log.numbers == _numbers(run.publisher, len(log.numbers))
    assert log.written <= len(log.numbers)
    if log.end == ["|"] and len(log.numbers) < run.count:
        reason = log.last.reason if isinstance(log.last, ev.MessageInterrupted) else log.last
        assert reason == ("enough" if run.told else "the server is stopping")
    if ends == [["|"]]:
        assert log.end == ["|"]
        assert len(log.numbers) == run.count or run.told or run.publishes.get("drains")
    elif ends:
        assert ends[0][0] == "StreamInterrupted"
        assert log.end != ["|"] or any(text in ends[0][1] for text in AWAY)
    if log.end[0] == "EmptyStreamError":
        assert not log.written
        assert run.killed is not None or any(text in ends[0][1] for text in AWAY)
    elif log.end != ["|"]:
        assert log.end[0] == "StreamInterrupted"
        assert DEAD in log.end[1]


def _check_reader(run: Run, worker: Worker, who: int, log: _Log) -> None:
    """What a reader got has no gap, and it has all there was when it was told the end."""
    firsts = [one.job.first for one in (run.publisher, run.former) if one is not None]
    expected: int | None = None
    records = worker.records(who)
    for record in records:
        if record.what == "open":
            expected = record.more[0] + 1 if record.more[0] >= 0 else None
        elif record.what == "got" and record.more[1:]:
            numbers = record.more[1:]
            begin = numbers[0] if expected is None and numbers[0] in firsts else expected
            assert begin is not None, f"{worker.job.file} {who}: {record}"
            assert numbers == [*range(begin, begin + len(numbers))], f"{worker.job.file} {who}: {record}"
            expected = begin + len(numbers)
    if worker in run.gone:
        return
    end = records[-1]
    assert end.what == "end", f"{worker.job.file} {who}: {end}"
    try:
        if run.deleted:
            _check_end_with_others(run, expected, end)
        else:
            _check_end(run, 0 if expected is None else expected - run.publisher.job.first, end, log)
    except AssertionError as error:
        error.add_note(f"{worker.job.file} {who}: it has all before {expected}, and then {end}")
        raise


def _check_end(run: Run, has: int, end: Record, log: _Log) -> None:
    if end.more == ["|"]:
        assert has >= log.written
    else:
        missing = ("StreamUnreadableError", "EmptyStreamError", "InvalidValueError") if run.loses else ()
        unborn = end.more == log.end and end.more[0] == "EmptyStreamError"  # killed before it began
        assert unborn or end.more[0] in ("StreamInterrupted", *missing)
    if not run.loses:
        assert has == len(log.numbers)
        assert end.more == log.end


def _check_end_with_others(run: Run, expected: int | None, end: Record) -> None:
    """The stream was deleted, and perhaps another one has its name: a reader has all of one of them, or finds none."""
    which = run.former if expected is None or expected < OTHERS else run.publisher
    has = 0 if expected is None else expected - which.job.first
    if end.more == ["|"]:
        assert has == len(_written(which))
    elif end.more[0] == "StreamInterrupted":
        assert DEAD in end.more[1]
        assert has >= len(_written(which))
    elif end.more[0] == "InvalidValueError":  # the id of an entry of the other stream
        assert run.publisher is not None
        assert which is run.former
    elif end.more[0] == "StreamUnreadableError":
        assert GONE in end.more[1]
        assert which is run.former
    else:
        assert end.more[0] == "EmptyStreamError"
        assert which is run.former


async def _read_whole(run: Run) -> _Log:
    """The log as a new reader has it who isn't disturbed."""
    numbers: list[int] = []
    events: list[rd.Event] = []
    end: list[Any] = ["|"]

    def take(event: rd.Event) -> None:
        numbers.extend(numbers_of(event))
        events.append(event)

    async with Relay.open(run.url(directly=True), **run.options()) as relay:
        try:
            await rd.for_each(relay.watch(STREAM), take)
        except rd.RxDeltaError as error:
            end = [type(error).__name__, str(error)]
    written = 0 if run.publisher is None else len(_written(run.publisher))
    return _Log(written, numbers, end, events[-1] if events else None)
