"""A reply that one process publishes and others read, over each of our stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

import pytest

LEASE = 2.0
pytestmark = pytest.mark.parametrize(
    "url",
    ["sqlite", *(pytest.param(one, marks=pytest.mark.soak) for one in ("postgres", "valkey"))],
    indirect=True,
)

PUBLISHER = """
import asyncio, sys
import rxdelta as rd
from rxdelta.relay import Relay

url, lease = sys.argv[1], float(sys.argv[2])

async def words():
    number = 0
    while await asyncio.to_thread(sys.stdin.readline):
        yield rd.events.TextDelta(0, f"{number} ")
        number += 1

async def main():
    async with Relay.open(url, lease=lease) as relay:
        reply = rd.from_async_iterable(words).pipe(relay.publish("reply"))
        async for event in rd.iterate(reply):
            print(event.text, flush=True)  # the store has it

asyncio.run(main())
"""

READER = """
import asyncio, json, sys
import rxdelta as rd
from rxdelta.relay import Relay

url, lease, after = sys.argv[1], float(sys.argv[2]), sys.argv[3] or None

def say(*what):
    print(json.dumps(what), flush=True)

async def main():
    async with Relay.open(url, lease=lease) as relay:
        try:
            async for entry in rd.iterate(relay.entries("reply", after)):
                say(entry.id, entry.event.text)
            say("end", "it is complete")
        except rd.StreamInterrupted as error:
            say("end", str(error))

asyncio.run(main())
"""


class Process:
    """One that is running a program of these. It is killed when the test is over."""

    def __init__(self, program: str, url: str, more: str = "") -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore:with a lease of:RuntimeWarning",
                "-c",
                program,
                url,
                str(LEASE),
                more,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    @property
    def input(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def kill(self) -> None:
        """`kill -9`."""
        self._process.kill()

    def wait(self) -> int:
        return self._process.wait()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):
            self.input.close()
        self.output.close()


class Publisher(Process):
    """It publishes the reply `0 1 2 …`.

    Attributes:
        written: The words that it knows to be in the store, as far as these methods have heard.
    """

    def __init__(self, url: str) -> None:
        super().__init__(PUBLISHER, url)
        self.written = ""

    def publish(self, words: int) -> None:
        """Let it publish so many words more, and wait until they are in the store."""
        self.begin_to_publish(words)
        for _ in range(words):
            self.written += self.output.readline().rstrip("\n")

    def begin_to_publish(self, words: int) -> None:
        self.input.write("\n" * words)
        self.input.flush()

    def kill_in_the_middle(self) -> None:
        """`kill -9` while it publishes, and hear what it said before."""
        self.begin_to_publish(1000)
        self.written += self.output.readline().rstrip("\n")
        self.kill()
        self.written += "".join(line.rstrip("\n") for line in self.output)

    def complete(self) -> None:
        """Let it end the reply, and wait for its own end."""
        self.input.close()
        assert self.wait() == 0


class Reader(Process):
    """It reads the reply, from its start or behind an entry's id.

    Attributes:
        ids: Of the entries that it had, as far as `read` and `end` have taken them.
        text: What they say.
    """

    def __init__(self, url: str, after: str = "") -> None:
        super().__init__(READER, url, after)
        self.ids: list[str] = []
        self.text = ""

    def read(self, entries: int) -> None:
        """Wait until it has so many entries more."""
        for _ in range(entries):
            entry, text = self._next()
            assert entry != "end", text
            self.ids.append(entry)
            self.text += text

    def end(self) -> str:
        """Wait for the end of the reply. Returns what it says of that."""
        while True:
            entry, text = self._next()
            if entry == "end":
                return str(text)
            self.ids.append(entry)
            self.text += text

    def _next(self) -> Any:
        return json.loads(self.output.readline())


def reply(count: int) -> str:
    return "".join(f"{number} " for number in range(count))


@contextmanager
def running(*processes: Process) -> Iterator[None]:
    with ExitStack() as stack:
        for process in processes:
            stack.callback(process.close)
        yield


def test_a_reply_published_in_one_process_is_read_in_another_when_the_first_has_ended(url: str) -> None:
    publisher = Publisher(url)
    with running(publisher):
        publisher.publish(50)
        publisher.complete()
    late = Reader(url)
    with running(late):
        assert late.end() == "it is complete"
        assert late.text == publisher.written == reply(50)


@pytest.mark.slow
def test_kill_9_of_the_publisher_is_told_to_readers_in_other_processes_within_three_leases(url: str) -> None:
    publisher, reader = Publisher(url), Reader(url)
    with running(publisher, reader):
        publisher.publish(20)
        reader.read(1)
        publisher.kill_in_the_middle()
        killed = time.monotonic()
        assert "taken for dead" in reader.end()
        assert time.monotonic() - killed < 3 * LEASE
        assert reader.text.startswith(publisher.written), "it has all that was acknowledged"
