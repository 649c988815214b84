"""Workers that run a reply's tools on a server's relay, and kill themselves, for `test_killed_tools`.

A mother process imports what they need, and forks a worker for each line that it reads. A worker writes each thing that it
does into its test's file, at once.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
from relay.going_on import finish
from support.runs import call, text, turn

import rxdelta as rd
from rxdelta.relay import Relay

__all__ = ["CALLS", "Job", "Mother"]

CALLS = ("c1", "c2", "c3")
REPLY = turn(text(0, "I look."), *(call(n, one, one) for n, one in enumerate(CALLS, 1)), reason="tool_use")
SECONDS = 100  # a worker that hangs shows where, and ends


@attrs.frozen(kw_only=True)
class Job:
    """What a worker does.

    Attributes:
        file: Where all workers of a reply write what they do.
        begins: Whether it begins the reply. Others wait for it, and go on with it.
        dies: The moment of its end, such as `begin c2`: as the first thing that the tool does. Or seconds, for the first
            worker those since the reply has begun.
        how: `pipeline` or `generator`: how the reply is published.
        concurrency: How many tools may run at once.
    """

    url: str
    reply: str
    file: str
    begins: bool = False
    dies: str | float | None = None
    how: str = "pipeline"
    concurrency: int | None = None


class Mother:
    """A process that forks workers. None is left when the block is left."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore:with a lease of:RuntimeWarning",
                "-m",
                "relay.server.tool_workers",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Mother]:
        mother = cls()
        try:
            yield mother
        finally:
            mother.close()

    def close(self) -> None:
        """Wait until all workers have ended."""
        if self._process.returncode is None:
            self._process.communicate(timeout=SECONDS)

    def start(self, job: Job) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(attrs.asdict(job)) + "\n")
        self._process.stdin.flush()


class Worker:
    def __init__(self, job: Job) -> None:
        self._job = job

    def _note(self, what: str) -> None:
        with Path(self._job.file).open("a") as file:
            file.write(what + "\n")

    def _at(self, moment: str) -> None:
        self._note(moment)
        if self._job.dies == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    async def _look(self, at: str) -> str:
        self._at(f"begin {at}")
        await asyncio.sleep(0.01)
        self._at(f"end {at}")
        return f"seen {at}"

    async def _events(self) -> AsyncIterator[rd.Event]:
        for event in REPLY:
            yield event
            await asyncio.sleep(0.002)

    def _won(self, stream_id: str) -> None:
        self._note(f"won {stream_id}")
        if self._job.begins:
            self._die_later()

    def _die_later(self) -> None:
        if isinstance(self._job.dies, float):
            loop = asyncio.get_running_loop()
            loop.call_later(self._job.dies, os.kill, os.getpid(), signal.SIGKILL)

    async def run(self) -> None:
        job = self._job
        if not job.begins:
            self._die_later()
        async with Relay.open(job.url, lease=0.6) as relay:
            tools = rd.run_tools({"look": self._look}, max_concurrency=job.concurrency)
            if job.begins and job.how == "pipeline":
                await relay.start(f"{job.reply}.1", rd.from_async_iterable(self._events).pipe(tools))
            finishing = finish(
                relay, job.reply, tools, self._won, lambda: rd.from_async_iterable(self._events)
            )
            stream_id, reply = await finishing
            calls = {call.call_id: call.execution_status() for call in reply.tool_calls}
            self._note(f"told {stream_id} {json.dumps(calls, sort_keys=True)}")


def _fork(job: Job) -> None:
    if os.fork():
        return
    code = 1
    try:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        asyncio.run(Worker(job).run())
        code = 0
    except BaseException as error:
        with Path(job.file).open("a") as file:
            file.write(f"error {error!r}\n")
    finally:
        os._exit(code)


def _main(lines: Sequence[str] | None = None) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for line in sys.stdin if lines is None else lines:
        _fork(Job(**json.loads(line)))
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    _main()
