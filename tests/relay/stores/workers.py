"""Processes that publish and read a relay's streams, for tests that kill them.

A nursery has imported what they need, and forks one for each job that it reads. A worker writes down what it was told at once,
so that its file is whole also when it is killed.
"""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import attrs

import rxdelta as rd
from rxdelta.relay import Relay

__all__ = ["AWAY", "Job", "Nursery", "Record", "Worker", "numbers_of"]

ev = rd.events
AWAY = (
    "been away for too long",
    "couldn't be reached",
    "couldn't be used",
    "can't be reached",
    "refuses: OOM",
    "was closed",
)
"""In the texts of errors that say that the server can't be asked now."""
SECONDS = 100  # a worker that hangs shows where, and ends


@attrs.frozen(kw_only=True)
class Job:
    """What a worker does.

    Attributes:
        does: `publish` or `read`; `cancel` or `delete`: do that once, and write down the answer.
        file: Where it writes what it was told.
        options: Of `Relay.open`.
        count: Of a publisher: how many events. Of reading: how many readers.
        pauses: Seconds, of which one is drawn before each event or each connection.
        restless: How often a reader leaves, for each entry.
        have: Of a reader that goes on for another process: the ids and numbers that this one had.
        slow: Of a reader: seconds for each entry.
        herd: Of a publisher: how many kept streams, `kept-0` and so on, it reads at the same time.
        drains: Of a publisher: seconds for which it drains at SIGTERM.
        begins_again: Of a publisher: whether it publishes anew until its source is subscribed.
        first: Of a publisher: the number of its first event.
        width: Of a publisher: characters of an event.
        at: Of a publisher: when it begins, by `time.monotonic`, which is one clock for the machine's processes.
        before: Functions, as `module:name`, and what they are called with before everything else.
    """

    does: str
    file: str
    url: str
    stream: str
    seed: int
    options: dict[str, Any]
    count: int
    pauses: Sequence[float]
    restless: float = 0.0
    have: Sequence[tuple[str, int]] = ()
    slow: float = 0.0
    herd: int = 0
    drains: float = 0.0
    begins_again: bool = False
    first: int = 0
    width: int = 0
    at: float = 0.0
    before: Sequence[tuple[str, str]] = ()


@attrs.frozen
class Record:
    """One line of a worker's file: when, by which of its readers, what, and more."""

    time: float
    who: int
    what: str
    more: list[Any]


class Worker:
    """A process as its starter sees it."""

    def __init__(self, pid: int, job: Job) -> None:
        self.pid = pid
        self.job = job

    def send(self, what: signal.Signals) -> None:
        if self.runs:
            os.kill(self.pid, what)

    @property
    def runs(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def records(self, who: int = 0) -> list[Record]:
        path = Path(self.job.file)
        text = path.read_text() if path.exists() else ""
        found = [Record(*json.loads(line)) for line in text.splitlines(keepends=True) if line[-1] == "\n"]
        return [record for record in found if record.who == who]

    def said(self, what: str) -> bool:
        return any(record.what == what for record in self.records(-1))


class Nursery:
    """A process that forks workers. None is left when the block is left."""

    def __init__(self) -> None:
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore:with a lease of:RuntimeWarning", "-m", "relay.stores.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": paths},
        )
        self._workers: list[Worker] = []

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Nursery]:
        nursery = cls()
        try:
            yield nursery
        finally:
            nursery._close()

    def start(self, job: Job) -> Worker:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(attrs.asdict(job)) + "\n")
        self._process.stdin.flush()
        worker = Worker(int(self._process.stdout.readline()), job)
        self._workers.append(worker)
        return worker

    def _close(self) -> None:
        for worker in self._workers:
            worker.send(signal.SIGKILL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()


def serve() -> None:
    """Fork a worker for each line."""
    ours = ("rxdelta.relay.valkey.store", "rxdelta.relay.postgres_lines", "rxdelta.relay.sqlite")
    for module in ("redis.asyncio", "valkey.asyncio", *ours):
        with suppress(ImportError):
            importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries them
    logging.getLogger("rxdelta").setLevel(logging.CRITICAL)  # each fault is logged, as it should be
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            work(Job(**json.loads(line)))
        print(pid, flush=True)


def work(job: Job) -> None:
    status = 1
    try:
        file = os.open(job.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        faulthandler.dump_traceback_later(SECONDS, exit=True, file=file)

        def note(who: int, what: str, *more: Any) -> None:
            os.write(file, (json.dumps([time.monotonic(), who, what, more]) + "\n").encode())

        try:
            asyncio.run(_work(job, note))
            others = [
                thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
            ]
            note(-1, "left", *others) if others else note(-1, "done")
            status = 0
        except BaseException as error:
            note(-1, "failed", repr(error))
    finally:
        os._exit(status)


async def _work(job: Job, note: Any) -> None:
    for what, given in job.before:
        module, _, name = what.partition(":")
        getattr(importlib.import_module(module), name)(given)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: note(-1, "reported", str(context)))
    for _ in range(100):
        try:
            async with Relay.open(job.url, **job.options) as relay:
                if job.does == "publish":
                    await asyncio.sleep(job.at - time.monotonic())
                    await _publish(job, relay, note)
                elif job.does == "cancel":
                    note(0, "told", await relay.cancel(job.stream, "enough"))
                elif job.does == "delete":
                    note(0, "told", await relay.delete(job.stream))
                else:
                    await asyncio.gather(*(_read(job, who, relay, note) for who in range(job.count)))
            break
        except rd.StreamInterrupted as error:  # it can't be opened while the server is away
            note(-1, "waits", str(error))
            await asyncio.sleep(0.1)
    await asyncio.sleep(0)
    left = [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if left:
        note(-1, "left", *left)


async def _publish(job: Job, relay: Relay, note: Any) -> None:
    chance = Random(job.seed)

    begun = list[bool]()

    async def events() -> AsyncIterator[rd.Event]:
        note(0, "begun")
        begun.append(True)
        for number in range(job.first, job.first + job.count):
            await asyncio.sleep(chance.choice(job.pauses))
            text = f"{number:{job.width}};"
            yield ev.Custom("number", text) if chance.random() < 0.3 else ev.TextDelta(0, text)

    async def drain() -> None:
        note(0, "drained", *await relay.drain(job.drains))

    async def read_kept(number: int) -> None:
        try:
            got = [event async for event in rd.iterate(relay.watch(f"kept-{number}"))]
            note(0, "kept", len(got))
        except rd.RxDeltaError as error:
            note(0, "kept", repr(error))

    draining = list[asyncio.Task[None]]()
    if job.drains:
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGTERM, lambda: draining.append(asyncio.create_task(drain()))
        )
    reading = [asyncio.create_task(read_kept(number)) for number in range(job.herd)]
    while True:
        try:
            source = rd.from_async_iterable(events).pipe(relay.publish(job.stream))
            await rd.for_each(source, lambda event: note(0, "written", *numbers_of(event)))
            note(0, "end", "|")
        except rd.RxDeltaError as error:
            if job.begins_again and not begun:
                note(-1, "waits", str(error))
                continue
            note(0, "end", type(error).__name__, str(error))
        break
    await asyncio.gather(*reading, *draining)


async def _read(job: Job, who: int, relay: Relay, note: Any) -> None:
    chance = Random(job.seed * 100 + who)
    had: list[tuple[str, int]] = [(entry, number) for entry, number in job.have]
    after = had[-1][0] if had else None
    while True:
        await asyncio.sleep(chance.choice(job.pauses))
        note(who, "open", dict(had)[after] if after else -1)
        try:
            async with rd.to_async_iterable(relay.entries(job.stream, after)) as entries:
                async for entry in entries:
                    numbers = numbers_of(entry.event)
                    note(who, "got", entry.id, *numbers)
                    had.append((entry.id, numbers[-1] if numbers else had[-1][1] if had else -1))
                    if job.slow:
                        await asyncio.sleep(job.slow)
                    if chance.random() < job.restless:
                        break
                else:
                    note(who, "end", "|")
                    return
        except rd.RxDeltaError as error:
            if not any(text in str(error) for text in AWAY):
                note(who, "end", type(error).__name__, str(error))
                return
            note(who, "away", str(error))
            await asyncio.sleep(0.1)
        come = chance.choice(("on", "on", "on", "start", "any"))
        after = None if come == "start" or not had else had[-1][0] if come == "on" else chance.choice(had)[0]


def numbers_of(event: rd.Event) -> list[int]:
    """The numbers of the published events that are in this one: of a joined delta several."""
    text = event.data if isinstance(event, ev.Custom) else getattr(event, "text", "")
    return [int(part) for part in str(text).split(";")[:-1]]


if __name__ == "__main__":
    serve()
