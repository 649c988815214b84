"""What late readers, long events and lost answers cost the others: nothing but time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex as rx
from relay.comparing import folded
from relay.promises import promised
from relay.reading import HELLO, Source, read, until
from relay.server.steps import opened
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.core import StreamInterrupted
from rxdelta.relay import Relay
from rxdelta.relay.valkey.calls import Script

ev = rd.events
FILL = Script("return string.rep('x', ARGV[1])", most=1 << 19)
LENGTH = Script("return #ARGV[1]")


def notes(count: int, length: int) -> list[rd.Event]:
    return [ev.Custom("note", f"{number} {'x' * length}") for number in range(count)]


async def keep(relay: Relay, name: str, events: list[rd.Event]) -> None:
    await rd.for_each(rx.from_iterable(events).pipe(relay.publish(name)), lambda _: None)


@pytest.mark.slow
@promised("Late readers make nobody wait")
def test_a_herd_of_late_readers_is_whole_and_a_publisher_goes_on_beside_it(server: ValkeyServer) -> None:
    """Their logs take longer than a server may be silent, and longer than the patience."""
    kept = notes(25, 4000)

    async def main() -> None:
        async with CuttingProxy(server.port) as proxy, Relay.open(server.url) as direct:
            for number in range(40):
                await keep(direct, f"kept-{number}", kept)
            url = f"valkey://127.0.0.1:{proxy.port}"
            async with Relay.open(url, lease=6.0, patience=3.0) as relay:
                source, got = Source(), list[Any]()
                publishing = asyncio.create_task(read(source.events.pipe(relay.publish("live")), got))
                source.emit(*HELLO[:1])
                await until(lambda: len(got) == 1)
                proxy.rate = 1e6
                herd = [asyncio.create_task(read(relay.watch(f"kept-{number}"))) for number in range(40)]
                for number, event in enumerate(HELLO[1:], 2):
                    await asyncio.sleep(0.1)
                    source.emit(event)
                    await until(lambda number=number: len(got) == number)
                source.complete()
                assert (await publishing)[-1] == "|"
                assert not all(task.done() for task in herd), "it didn't wait for the herd"
                for readers in await asyncio.gather(*herd):
                    assert readers == [*kept, "|"]
                assert await read(direct.watch("live")) == [*folded_form(HELLO), "|"]

    run(main)
    assert server.has_no_clients()


def folded_form(events: list[rd.Event]) -> list[rd.Event]:
    """What a late reader gets of a reply whose deltas are neighbours."""
    texts = [event for event in events if isinstance(event, ev.TextDelta)]
    joined = ev.TextDelta(0, "".join(event.text for event in texts))
    first = events.index(texts[0])
    return [*events[:first], joined, *(event for event in events[first:] if event not in texts)]


@promised("Late readers make nobody wait")
def test_what_is_long_has_the_time_that_it_needs(server: ValkeyServer) -> None:
    """It takes longer than a server may be silent, and longer than the patience."""

    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            opened(f"valkey://127.0.0.1:{proxy.port}", patience=1.5) as store,
        ):
            await store.call(0, LENGTH, [b"k"], [b"short"])
            proxy.rate = 1e6
            for script, args, answer in (
                (FILL, [3_000_000], b"x" * 3_000_000),
                (LENGTH, [b"x" * 3_000_000], 3_000_000),
            ):
                asked = store.call(0, script, [b"k"], args)
                assert await store.call(0, LENGTH, [b"k"], [b"short"]) == 5
                assert not asked.done()
                assert await asked == answer

    run(main)


@promised("Late readers make nobody wait")
def test_a_line_that_stands_still_in_the_middle_of_an_answer_is_given_up(server: ValkeyServer) -> None:
    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            opened(f"valkey://127.0.0.1:{proxy.port}", patience=1.5) as store,
        ):
            proxy.rate = 1e5
            asked = store.call(0, FILL, [b"k"], [1_000_000])
            await asyncio.sleep(0.3)
            proxy.is_hole = True
            with pytest.raises(StreamInterrupted, match="couldn't be used for"):
                await asked
            proxy.is_hole = False

    run(main)


@promised("A line that goes silent")
@pytest.mark.slow
@pytest.mark.parametrize("lease", [3.0, pytest.param(10.0, marks=pytest.mark.soak)])
def test_a_line_that_goes_silent_costs_no_publisher_its_stream(server: ValkeyServer, lease: float) -> None:
    """A router has forgotten the connections: nothing is answered on them, and new ones work."""

    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=lease) as relay,
            Relay.open(server.url, lease=lease) as direct,
        ):
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(relay.publish("live")), got))
            source.emit(HELLO[0])
            await until(lambda: len(got) == 1)
            near, far = (asyncio.create_task(read(each.watch("live"))) for each in (relay, direct))
            await asyncio.sleep(0.3)
            assert proxy.silence() >= 2
            source.emit(*HELLO[1:])
            await until(lambda: len(got) == len(HELLO))
            source.complete()
            assert (await publishing)[-1] == "|"
            for reader in await asyncio.gather(near, far):
                assert reader[-1] == "|"
                assert folded(reader[:-1]) == folded(HELLO)

    run(main)


class TestALostClaim:
    """The answer to `start` was lost, though the server had begun the stream."""

    async def lose(self, proxy: CuttingProxy, relay: Relay) -> None:
        proxy.chance = lambda: "cut after"
        with pytest.raises(StreamInterrupted, match="couldn't be used"):
            await relay.start("chat", rx.from_iterable(HELLO))
        proxy.chance = lambda: "pass"

    @promised("An id isn't lost")
    def test_the_same_process_goes_on_with_it(self, server: ValkeyServer) -> None:
        async def main() -> None:
            async with (
                CuttingProxy(server.port) as proxy,
                Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=60.0, patience=0.5) as relay,
            ):
                await self.lose(proxy, relay)
                assert await relay.streams() == ["chat"]
                assert await relay.start("chat", rx.from_iterable(HELLO))
                assert folded((await read(relay.watch("chat")))[:-1]) == folded(HELLO)
                assert not await relay.start("chat", rx.never())

        run(main)

    @promised("An id isn't lost")
    def test_another_process_begins_it_when_the_lease_is_over(self, server: ValkeyServer) -> None:
        async def main() -> None:
            async with (
                CuttingProxy(server.port) as proxy,
                Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=0.5, patience=0.3) as relay,
                Relay.open(server.url, lease=0.5) as other,
            ):
                await self.lose(proxy, relay)
                waiting = asyncio.create_task(
                    read(other.watch("chat"))
                )  # of the stream that has no publisher
                while not await other.start("chat", rx.from_iterable(HELLO)):
                    await asyncio.sleep(0.05)
                assert folded((await read(other.watch("chat")))[:-1]) == folded(HELLO)
                assert not await relay.start(
                    "chat", rx.never()
                )  # it remembers a claim that is no longer its own
                (error,) = await waiting
                assert isinstance(error, rd.errors.EmptyStreamError)
                assert "died before its first event" in str(error)

        run(main)

    def test_a_stream_that_died_behind_its_first_event_is_no_lost_claim(self, server: ValkeyServer) -> None:
        async def main() -> None:
            async with (
                CuttingProxy(server.port) as proxy,
                Relay.open(server.url, lease=0.5) as other,
                Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=0.5, patience=0.3) as relay,
            ):
                source, got = Source(), list[Any]()
                publishing = asyncio.create_task(read(source.events.pipe(relay.publish("chat")), got))
                source.emit(HELLO[0])
                await until(lambda: got)
                proxy.is_hole = True
                end = await read(other.watch("chat"))
                assert isinstance(end[-1], StreamInterrupted)
                assert not await other.start("chat", rx.never())
                proxy.is_hole = False
                await publishing

        run(main)
