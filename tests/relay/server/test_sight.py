"""What an operator sees of a relay on a server: its health, its metrics, and a line in the log for what happens to it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import reactivex as rx
from relay.promises import promised
from relay.reading import HELLO, Source, read, until
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay, RelayMetrics

ev = rd.events


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the log `rxdelta`, which become more."""
    found = list[str]()

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    caplog.set_level(logging.INFO, "rxdelta")
    handler = Lines()
    logging.getLogger("rxdelta").addHandler(handler)
    yield found  # type: ignore[misc]
    logging.getLogger("rxdelta").removeHandler(handler)


def test_health_tells_whether_the_server_writes(new_server: Any) -> None:
    server = new_server()

    async def main() -> None:
        async with CuttingProxy(server.port) as proxy:
            async with Relay.open(f"valkey://127.0.0.1:{proxy.port}") as relay:
                health = await relay.health()
                assert (health.ready, health.why, health.draining) == (True, None, False)
                assert health.latency is not None
                assert 0 < health.latency < 1

                proxy.is_hole = True
                health = await relay.health(0.2)
                assert (health.ready, health.latency) == (False, None)
                assert health.why == "the relay's store hasn't written for 0.2 seconds"
                proxy.is_hole = False
                await until_ready(relay)

                server.command("CONFIG", "SET", "maxmemory", "1mb")
                health = await relay.health(0.5)
                assert health.why is not None
                assert health.why.startswith("the relay's store hasn't written for 0.5 seconds: OOM")
                server.command("CONFIG", "SET", "maxmemory", "0")
                await until_ready(relay)

                await relay.drain(0.1)
                health = await relay.health()
                assert (health.ready, health.why, health.draining) == (False, "the relay is draining", True)
                assert server.command("DBSIZE") == 0
            health = await relay.health()
            assert (health.ready, health.why) == (False, "the relay was closed")

    run(main)


async def until_ready(relay: Relay) -> None:
    while not (await relay.health(0.5)).ready:
        pass


def test_the_health_of_a_cluster_is_that_of_each_node(cluster: Any) -> None:
    async def main() -> None:
        async with Relay.open(cluster.url) as relay:
            assert (await relay.health(5.0)).ready
            cluster.servers[1].pause()
            try:
                assert not (await relay.health(0.3)).ready
            finally:
                cluster.servers[1].resume()
            await until_ready(relay)

    run(main)


def test_metrics_count_what_happens(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url) as here, Relay.open(server.url) as there:
            source = Source()
            assert await here.start("chat", source.events)
            readers = [asyncio.create_task(read(there.watch("chat"))) for _ in range(3)]
            source.emit(HELLO[0])
            await until(lambda: there.metrics.events_read == there.metrics.readers == 3)
            source.emit(*HELLO[1:])
            await until(lambda: there.metrics.events_read == 3 * len(HELLO))
            now = here.metrics
            assert (now.publishing, now.backlog, now.events_published) == (1, 0, len(HELLO))
            assert now.bytes_published > len("Hello")
            assert now.bytes_sent > now.bytes_published / 10
            assert 0 < now.round_trip_p50 <= now.round_trip_p99 <= now.round_trip_seconds
            assert now.round_trips >= 2
            assert now.bytes_received > 0
            assert (now.outages, now.reconnects, now.away, now.fences, now.deaths) == (0, 0, 0.0, 0, 0)
            source.complete()
            await asyncio.gather(*readers)
            await until(lambda: here.metrics.publishing == there.metrics.readers == 0)
            assert here.scope("acme").metrics == here.metrics

    run(main)


def test_events_that_a_server_has_not_got_are_a_backlog(server: ValkeyServer) -> None:
    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}") as relay,
        ):
            source = Source()
            assert await relay.start("chat", source.events)
            proxy.is_hole = True
            source.emit(*HELLO[:5])
            await until(lambda: relay.metrics.backlog == 5)
            proxy.is_hole = False
            await until(lambda: relay.metrics.backlog == 0)
            assert relay.metrics.events_published == 5

    run(main)


@promised("An outage, a reconnect, a")
def test_an_outage_is_one_line_and_so_is_its_end(server: ValkeyServer, lines: list[str]) -> None:
    """However many streams, readers and connections notice it."""

    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=60.0) as relay,
        ):
            sources = [Source() for _ in range(20)]
            for number, source in enumerate(sources):
                assert await relay.start(f"chat-{number}", source.events)
                source.emit(HELLO[0])
            readers = [asyncio.create_task(read(relay.watch(f"chat-{number}"))) for number in range(20)]
            await until(lambda: relay.metrics.events_read == 20)
            assert lines == []
            proxy.is_down = True
            proxy.cut()
            for source in sources:
                source.emit(*HELLO[1:])
            await until(lambda: relay.metrics.outages == 1)
            await asyncio.sleep(0.3)
            assert relay.metrics.away > 0.2
            assert [line.partition(": ")[0] for line in lines] == [
                f"the relay's store valkey://127.0.0.1:{proxy.port} can't be used"
            ]
            proxy.is_down = False
            await until(lambda: relay.metrics.events_read == 20 * len(HELLO))
            await until(lambda: relay.metrics.reconnects == 1)
            assert [line.partition(" after ")[0] for line in lines[1:]] == [
                f"the relay's store valkey://127.0.0.1:{proxy.port} is back"
            ]
            assert (relay.metrics.away, relay.metrics.outages) == (0.0, 1)
            for source in sources:
                source.complete()
            await asyncio.gather(*readers)

    run(main)


@promised("An outage, a reconnect, a")
def test_a_server_that_cannot_write_is_away_until_it_writes(new_server: Any, lines: list[str]) -> None:
    server = new_server()

    async def main() -> None:
        async with Relay.open(server.url, lease=60.0) as relay:
            source = Source()
            assert await relay.start("chat", source.events)
            server.command("CONFIG", "SET", "maxmemory", "1mb")
            source.emit(HELLO[0])
            await until(lambda: relay.metrics.outages == 1)
            for _ in range(5):
                assert not await relay.is_live("another")  # it reads, and that is no end of the outage
            assert len(lines) == 1
            assert "OOM" in lines[0]
            server.command("CONFIG", "SET", "maxmemory", "0")
            await until(lambda: relay.metrics.reconnects == 1)
            assert len(lines) == 2

    run(main)


@promised("An outage, a reconnect, a")
def test_a_death_and_a_fence_are_a_line_each(server: ValkeyServer, lines: list[str]) -> None:
    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=0.5) as here,
            Relay.open(server.url, lease=0.5) as there,
        ):
            source = Source()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat"))))
            source.emit(HELLO[0])
            await until(lambda: here.metrics.events_published and not here.metrics.backlog)
            proxy.is_hole = True
            got = await read(there.watch("chat"))
            assert isinstance(got[-1], rd.StreamInterrupted)
            assert there.metrics.deaths == 1
            dead = "the publisher of the stream chat gave no sign for its lease, and is taken for dead"
            assert [line for line in lines if "publisher" in line] == [dead]
            proxy.is_hole = False
            assert isinstance((await publishing)[-1], rd.StreamInterrupted)
            assert here.metrics.fences == 1
            fenced = (
                "the publisher of the stream chat is stopped: "
                "the publisher gave no sign for its lease, and was taken for dead"
            )
            assert [line for line in lines if "publisher" in line] == [dead, fenced]

    run(main)


def test_a_function_is_called_with_the_metrics_until_the_relay_is_closed(server: ValkeyServer) -> None:
    async def main() -> None:
        got = list[RelayMetrics]()

        def broken(_: RelayMetrics) -> None:
            raise RuntimeError("not today")

        async with Relay.open(server.url) as relay:
            relay.report(got.append, 0.01)
            relay.report(broken, 0.01)
            await until(lambda: len(got) >= 3)
            await relay.start("chat", rx.from_iterable(HELLO))
        assert got[0].publishing == got[-1].publishing == 0
        assert got[-1].events_published == len(HELLO)
        for wrong in (0, -1, float("nan"), "soon"):
            with pytest.raises(rd.InvalidValueError):
                relay.report(got.append, wrong)  # type: ignore[arg-type]
        with pytest.raises(rd.InvalidValueError):
            relay.report(None)  # type: ignore[arg-type]

    run(main)


def test_opentelemetry_gets_each_number(server: ValkeyServer) -> None:
    sdk: Any = pytest.importorskip("opentelemetry.sdk.metrics")
    exporting: Any = pytest.importorskip("opentelemetry.sdk.metrics.export")

    async def main() -> None:
        reader = exporting.InMemoryMetricReader()
        provider = sdk.MeterProvider([reader])
        async with Relay.open(server.url) as relay:
            relay.report_otel(attributes={"worker": "w1"}, meter_provider=provider)
            await relay.start("chat", rx.from_iterable(HELLO))
            await read(relay.watch("chat"))
            data = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
            points = {
                metric.name.removeprefix("rxdelta.relay."): metric.data.data_points[0] for metric in data
            }
            now = relay.metrics
            fields = {name for name in RelayMetrics.__slots__ if not name.startswith(("round_trip", "__"))}
            assert {*points} == {*fields, "round_trip"}
            for name in fields - {"away"}:
                assert points[name].value == getattr(now, name), name
            assert dict(points["readers"].attributes) == {"worker": "w1"}
            assert points["round_trip"].count == now.round_trips
        provider.shutdown()

    run(main)
