"""The bytes of all streams of a server, which its scripts count for all processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import reactivex as rx
from relay.reading import HELLO, Source, read, said, until
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.relay.logs import bytes_of
from rxdelta.relay.valkey.scripts import Keys

ev = rd.events
DELTA = ev.TextDelta(0, "x" * 136)  # 200 bytes
MUCH = 10**9


def sums(server: ValkeyServer) -> int:
    """What the server has counted."""
    keys: Any = server.command("KEYS", "*}:bytes")
    return sum(int(server.command("HGET", key, "sum")) for key in keys)  # type: ignore[arg-type]


async def keep(relay: Relay, name: str, *events: rd.Event) -> None:
    assert (await read(rx.of(*events).pipe(relay.publish(name))))[-1] == "|"


def beside(stream_id: str) -> str:
    """Another id whose bytes are counted together with this one's."""
    tag = Keys.of("rxdelta", "", stream_id).tag
    names = (f"{stream_id} {number}" for number in count())
    return next(name for name in names if Keys.of("rxdelta", "", name).tag == tag)


async def asked(relay: Relay, wanted: int) -> None:
    await until(lambda: relay.metrics.kept_bytes == wanted)


def test_the_scripts_count_what_is_in_the_logs_and_only_for_who_bounds_it(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url) as unbounded:
            await keep(unbounded, "other", *HELLO)
            assert server.command("KEYS", "*}:bytes") == server.command("KEYS", "*}:until") == []
            async with Relay.open(server.url, max_total_bytes=MUCH) as relay:
                for number in range(40):
                    await keep(relay, f"chat {number}", *HELLO)
                assert sums(server) == 40 * sum(map(bytes_of, HELLO))
                await relay.start("live", rx.concat(rx.of(*HELLO), rx.never()))
                await until(
                    lambda: relay.metrics.events_published == 41 * len(HELLO) and not relay.metrics.backlog
                )
                assert sums(server) == 41 * sum(map(bytes_of, HELLO))
            stopped = bytes_of(ev.MessageInterrupted("the relay was closed"))
            assert sums(server) == 41 * sum(map(bytes_of, HELLO)) + stopped

    run(main)


@pytest.mark.parametrize("fate", ["cut after", "cut before"])
def test_an_entry_whose_answer_was_lost_is_counted_once(server: ValkeyServer, fate: Any) -> None:
    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(
                f"valkey://127.0.0.1:{proxy.port}", lease=1000, patience=10, max_total_bytes=MUCH
            ) as relay,
        ):
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(relay.publish("chat")), got))
            await until(lambda: source.life)
            for number, event in enumerate(HELLO, 1):
                proxy.fates.append(fate)
                source.emit(event)
                await until(lambda: len(got) == number)  # noqa: B023
                assert not proxy.fates
            proxy.fates.append(fate)
            source.complete()
            assert await publishing == [*HELLO, "|"]
            assert sums(server) == sum(map(bytes_of, HELLO))

    run(main)


def test_what_another_process_writes_is_noticed_with_the_signs(server: ValkeyServer) -> None:
    async def main() -> None:
        options: Any = {"lease": 0.5, "max_total_bytes": 2000}
        async with Relay.open(server.url, **options) as here, Relay.open(server.url, **options) as there:
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(DELTA)
            await until(lambda: got)
            await keep(there, "theirs", *[DELTA] * 9)
            await asked(here, 2000)
            source.emit(DELTA)
            *events, error = await publishing
            assert events == [DELTA]
            assert isinstance(error, rd.errors.LimitExceededError)
            assert said(await read(there.watch("chat"))) == DELTA.text
            for relay in (here, there):  # neither publishes: it asks when it is to begin
                with pytest.raises(rd.errors.LimitExceededError):
                    await relay.start("late", rx.of(DELTA))

    run(main)


def test_many_streams_that_begin_at_once_ask_once(server: ValkeyServer) -> None:
    def calls() -> int:
        return int(server.info("commandstats")["cmdstat_evalsha"].removeprefix("calls=").partition(",")[0])

    async def main() -> None:
        async with Relay.open(server.url, lease=1000, max_total_bytes=MUCH) as relay:
            before = calls()
            assert all(await asyncio.gather(*(relay.start(f"chat {n}", rx.never()) for n in range(100))))
            assert calls() - before < 150  # and not for each of them

    run(main)


def test_a_dead_publishers_bytes_count_until_its_log_is_gone(server: ValkeyServer) -> None:
    async def main() -> None:
        options: Any = {"lease": 0.5, "keep": 1.0, "max_total_bytes": MUCH}
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}", **options, patience=30) as here,
            Relay.open(server.url, **options) as there,
        ):
            await here.start("chat", rx.concat(rx.of(DELTA), rx.never()))
            await there.start(beside("chat"), rx.concat(rx.of(DELTA), rx.never()))
            await asked(there, 400)
            proxy.is_hole = True
            *_, error = await read(there.watch("chat"))
            assert "taken for dead" in str(error)
            assert sums(server) == 400
            await asked(there, 200)
            await asyncio.sleep(0.3)  # the sums are asked again
            assert sums(server) == 200
            proxy.is_hole = False

    run(main)


def test_the_counts_are_gone_with_the_log_of_a_publisher_that_never_gave_a_sign(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, lease=1000, keep=1000, max_total_bytes=MUCH) as relay:
            ask: Any = server.command
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(relay.publish("chat")), got))
            source.emit(DELTA)
            await until(lambda: got)
            for kind in ("bytes", "until"):
                [key] = ask("KEYS", f"*}}:{kind}")
                assert 0 < ask("TTL", key) <= 2000
            (_, free), (seconds, _) = ask("ZRANGE", key, "0", "-1", "WITHSCORES"), ask("TIME")
            assert 1900 < float(free) / 1000 - int(seconds) <= 2001
            source.complete()
            await publishing

    run(main)


def test_a_server_that_was_emptied_has_room_again(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, lease=0.5, max_total_bytes=2000) as relay:
            await keep(relay, "chat", *[DELTA] * 9)
            await relay.start("live", rx.concat(rx.of(DELTA), rx.never()))
            await asked(relay, 2000)
            server.command("FLUSHALL")
            while True:
                try:
                    assert await relay.start("chat", rx.of(*[DELTA] * 5))
                    break
                except rd.errors.LimitExceededError:
                    await asyncio.sleep(0.02)
            assert said(await read(relay.watch("chat"))) == DELTA.text * 5
            assert sums(server) == 1000

    run(main)


def test_a_server_that_comes_back_has_its_sums(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server("--appendonly", "yes", "--appendfsync", "always")

    async def main() -> None:
        async with Relay.open(server.url, lease=0.5, max_total_bytes=2000) as relay:
            await keep(relay, "chat", *[DELTA] * 9)
            live = Source()
            assert await relay.start("live", live.events)
            server.kill()
            server.start()
            live.emit(DELTA, DELTA)
            *_, error = await read(relay.watch("live"))
            assert isinstance(error, rd.errors.LimitExceededError)
            assert sums(server) == 2000
        async with Relay.open(server.url, max_total_bytes=2000) as relay:
            with pytest.raises(rd.errors.LimitExceededError):
                await relay.start("late", rx.of(DELTA))

    run(main)


def test_nothing_is_left_when_all_streams_are_gone(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, keep=0.2, lease=0.5, max_total_bytes=MUCH) as relay:
            for number in range(20):
                await keep(relay, f"chat {number}", DELTA)
        await until(lambda: not server.command("DBSIZE"))

    run(main)


def test_a_server_that_is_away_keeps_a_stream_from_beginning_and_no_other_from_going_on(
    server: ValkeyServer,
) -> None:
    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(
                f"valkey://127.0.0.1:{proxy.port}", lease=0.5, patience=0.6, max_total_bytes=MUCH
            ) as relay,
        ):
            proxy.is_down = True
            proxy.cut()
            with pytest.raises(rd.StreamInterrupted):
                await relay.start("chat", rx.of(DELTA))
            proxy.is_down = False
            await keep(relay, "chat", DELTA)

    run(main)
