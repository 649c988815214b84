"""The connections of one process to a store that goes away, comes back, loses answers or can't work for a while."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from relay.server.steps import STEP, opened, up_to
from support.cutting_proxy import CuttingProxy, Fate, certificate
from support.valkey_servers import Group, ValkeyServer

from rxdelta import StreamInterrupted
from rxdelta.relay.valkey.calls import Script
from rxdelta.relay.valkey.connections import Connections
from rxdelta.relay.valkey.lines import Away


def step(store: Connections, number: int, stream: int = 0) -> asyncio.Future[Any]:
    keys = [b"list:%d" % stream, b"newest:%d" % stream]
    return store.call(stream % 16, STEP, keys, [number])


def numbers(server: ValkeyServer, stream: int = 0) -> Any:
    return server.command("LRANGE", f"list:{stream}", 0, -1)


async def wait_for_clients(server: ValkeyServer, count: int) -> None:
    while len(server.clients()) != count:
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("fate", "answer"), [("cut before", b"done"), ("cut after", b"there"), ("delay", b"done")]
)
@pytest.mark.parametrize("package", ["valkey", "redis"])
def test_a_call_is_sent_again(fate: Fate, answer: bytes, package: str, server: ValkeyServer) -> None:
    """Also if it has run, and only its answer was lost."""

    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            opened(f"{package}://127.0.0.1:{proxy.port}") as store,
        ):
            assert await step(store, 1) == b"done"
            proxy.fates.append(fate)
            assert await step(store, 2) == answer
            assert proxy.requests == (2 if fate == "delay" else 3)
            assert numbers(server) == up_to(2)

    asyncio.run(main())


def run_with_faults(server: ValkeyServer, seed: int, package: str) -> None:
    """Streams of appends, of which several are under way, through a proxy that fails at random."""
    luck = random.Random(seed)

    def chance() -> Fate:
        return luck.choice(["pass", "pass", "cut before", "cut after", "delay"])

    async def one(store: Connections, stream: int) -> list[bytes]:
        asked = list[asyncio.Future[Any]]()
        for number in range(1, 101):
            asked.append(step(store, number, stream))
            if luck.random() < 0.5:
                await asyncio.sleep(luck.uniform(0, 0.004))
        return await asyncio.gather(*asked)

    async def main() -> None:
        async with CuttingProxy(server.port, chance=chance) as proxy:
            proxy.delay = 0.005
            async with opened(f"{package}://127.0.0.1:{proxy.port}") as store:
                answers = await asyncio.gather(*(one(store, stream) for stream in range(10)))
            assert proxy.requests > 4
            assert {answer for each in answers for answer in each} <= {b"done", b"there"}
        for stream in range(10):
            assert numbers(server, stream) == up_to(100)
        assert server.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_nothing_is_lost_or_out_of_order_when_connections_break(server: ValkeyServer) -> None:
    run_with_faults(server, 1, "valkey")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_nothing_is_lost_or_out_of_order_in_many_runs(server: ValkeyServer, seed: int) -> None:
    run_with_faults(server, seed, ("valkey", "redis")[seed % 2])


@pytest.mark.slow
def test_a_server_that_is_killed_and_started_again(new_server: Callable[..., ValkeyServer]) -> None:
    """With its append-only file it has what it acknowledged. Calls meanwhile wait."""
    server, luck = new_server(), random.Random(3)

    async def kill() -> None:
        for _ in range(5):
            await asyncio.sleep(luck.uniform(0.02, 0.1))
            server.kill()
            await asyncio.sleep(luck.uniform(0, 0.2))
            await asyncio.to_thread(server.start)

    async def append(store: Connections, stream: int, killing: asyncio.Task[None]) -> int:
        number = 0
        while not killing.done():
            number += 1
            assert await step(store, number, stream) in (b"done", b"there")
        return number

    async def main() -> None:
        async with opened(server.url) as store:
            killing = asyncio.create_task(kill())
            counts = await asyncio.gather(*(append(store, stream, killing) for stream in range(5)))
            await killing
        for stream, count in enumerate(counts):
            assert numbers(server, stream) == up_to(count)
        assert server.has_no_clients()

    asyncio.run(main())


def test_patience_ends(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server()

    async def main() -> None:
        async with opened(server.url, patience=0.4) as store:
            server.kill()
            begin = time.monotonic()
            calls = [step(store, number) for number in (1, 2)]
            for call in calls:
                with pytest.raises(StreamInterrupted, match=r"couldn't be used for 0\.4 seconds: ") as failed:
                    await call
                assert isinstance(failed.value.__cause__, Away)
            assert 0.4 <= time.monotonic() - begin < 20
            server.start()
            assert await step(store, 1) == b"done"

    asyncio.run(main())


@pytest.mark.slow
def test_a_hole_is_left_by_a_new_connection(server: ValkeyServer) -> None:
    """Nothing comes back, and no connection breaks."""

    async def main() -> None:
        async with CuttingProxy(server.port) as proxy:
            url = f"valkey://127.0.0.1:{proxy.port}"
            async with opened(url, patience=3.0) as store:
                assert await step(store, 1) == b"done"
                proxy.is_hole = True
                call = step(store, 2)
                read = asyncio.create_task(store.read(0, {b"s": b"0-0"}, 0.1))
                with pytest.raises(Away):  # no answer within 0.1 s and a third of the patience
                    await read
                assert not call.done()
                proxy.is_hole = False
                assert await call in (b"done", b"there")
                assert await store.read(0, {b"s": b"0-0"}, 0.01) == []
            async with opened(url, patience=0.3) as store:
                proxy.is_hole = True
                with pytest.raises(StreamInterrupted, match="doesn't answer"):
                    await step(store, 3)
            proxy.is_hole = False
        assert server.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


@pytest.mark.slow
def test_opening_into_a_hole_ends(server: ValkeyServer) -> None:
    async def main() -> None:
        async with CuttingProxy(server.port) as proxy:
            proxy.is_hole = True
            urls = [f"valkey://127.0.0.1:{proxy.port}?protocol={protocol}" for protocol in (2, 3)]
            opening = [asyncio.wait_for(Connections.open(url, patience=1), 15) for url in urls]
            for end in await asyncio.gather(*opening, return_exceptions=True):
                assert isinstance(end, StreamInterrupted)
                assert "can't be reached" in str(end)
            proxy.is_hole = False
        assert server.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_reads_go_on_when_the_server_is_back(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server()

    async def main() -> None:
        async with opened(server.url) as store:
            read = asyncio.create_task(store.read(0, {b"s": b"0-0"}, 30.0))
            await wait_for_clients(server, 2)
            server.kill()
            with pytest.raises(Away):
                await read
            with pytest.raises(Away):
                await store.read(0, {b"s": b"0-0"}, 30.0)
            server.start()
            server.command("XADD", "s", "1-0", "f", "x")
            while True:
                try:
                    assert await store.read(0, {b"s": b"0-0"}, 30.0) == [(b"s", [(b"1-0", {b"f": b"x"})])]
                    break
                except Away:
                    pass

    asyncio.run(main())


def test_reads_don_t_spin_while_the_server_is_away(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server()

    async def main() -> None:
        async with opened(server.url) as store:
            server.kill()
            tries, end = 0, time.monotonic() + 0.5
            while time.monotonic() < end:
                with pytest.raises(Away):
                    await store.read(0, {b"s": b"0-0"}, 30.0)
                tries += 1
            assert tries < 20

    asyncio.run(main())


def test_a_resting_lane_wakes_its_reader(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            read = asyncio.create_task(store.read(0, {b"s": b"0-0"}, 30.0))
            await wait_for_clients(server, 2)
            store.rest(0)
            with pytest.raises(Away):
                await read
            await wait_for_clients(server, 1)

    asyncio.run(main())


def test_a_server_that_forgets_its_scripts(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            for number in range(1, 6):
                calls = [step(store, 2 * number - 1), step(store, 2 * number)]
                assert await asyncio.gather(*calls) == [b"done", b"done"]
                server.command("SCRIPT", "FLUSH")

    asyncio.run(main())


REFUSALS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "OOM": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "READONLY": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    "NOREPLICAS": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
}


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize("package", ["valkey", "redis"])
def test_a_server_that_can_t_work_now(
    code: str, package: str, new_server: Callable[..., ValkeyServer]
) -> None:
    """The calls wait. Afterwards they run in their order."""
    server, (begin, end) = new_server(), REFUSALS[code]

    async def main() -> None:
        async with opened(f"{package}://127.0.0.1:{server.port}") as store:
            assert await step(store, 1) == b"done"
            server.command(*begin)
            calls = [step(store, number) for number in range(2, 6)]
            await asyncio.sleep(0.1)
            calls += [step(store, number) for number in range(6, 9)]
            assert not any(call.done() for call in calls)
            server.command(*end)
            assert await asyncio.gather(*calls) == [b"done"] * 7
            here = [client["id"] for client in server.clients()]
            assert [await step(store, number) for number in range(9, 14)] == [b"done"] * 5
            assert [client["id"] for client in server.clients()] == here  # it keeps the connection that works
            server.command(*begin)
        async with opened(f"{package}://127.0.0.1:{server.port}", patience=0.3) as store:
            with pytest.raises(StreamInterrupted, match=code):
                await step(store, 14)
            server.command(*end)

    asyncio.run(main())


def test_a_part_of_a_round_trip_that_is_refused_keeps_its_order(server: ValkeyServer) -> None:
    """One call of a stream is refused for now, and the next, of the same round trip, isn't."""
    moody = Script("""
        if redis.call('INCR', KEYS[2]) == 1 then return redis.error_reply('BUSY for once') end
        if redis.call('LLEN', KEYS[1]) == 0 then redis.call('RPUSH', KEYS[1], 1) end
        return 'done'
    """)

    async def main() -> None:
        async with opened(server.url) as store:
            first = store.call(0, moody, [b"list:0", b"mood"], [])
            second, third = step(store, 2), step(store, 3)
            other = step(store, 1, 1)
            assert await asyncio.gather(first, second, third, other) == [b"done"] * 4
            assert numbers(server) == up_to(3)

    asyncio.run(main())


def test_a_server_that_is_busy_with_a_script(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server("--busy-reply-threshold", "10")

    async def main() -> None:
        async with opened(server.url) as store:
            assert await step(store, 1) == b"done"
            long = "while redis.call('EXISTS', 'no') == 0 do end"
            busy = asyncio.create_task(asyncio.to_thread(server.command, "EVAL", long, 0))
            while "BUSY" not in refusal(server):
                await asyncio.sleep(0.01)
            call = step(store, 2)
            await asyncio.sleep(0.1)
            assert not call.done()
            server.command("SCRIPT", "KILL")
            assert await call == b"done"
            assert isinstance((await asyncio.gather(busy, return_exceptions=True))[0], Exception)

    asyncio.run(main())


def refusal(server: ValkeyServer) -> str:
    try:
        return str(server.command("GET", "x"))
    except Exception as error:
        return str(error)


def test_a_long_backlog_goes_in_pieces(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server()
    put = Script("redis.call('RPUSH', KEYS[1], #ARGV[1]); return redis.call('LLEN', KEYS[1])")

    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            opened(f"valkey://127.0.0.1:{proxy.port}") as store,
        ):
            await step(store, 1)
            proxy.is_down = True
            proxy.cut()
            text = b"x" * 20_000
            calls = [store.call(n % 16, put, [b"l"], [text]) for n in range(500)]
            calls += [store.call(n % 16, put, [b"l"], [b""]) for n in range(3000)]
            await asyncio.sleep(0.05)
            proxy.is_down = False
            assert await asyncio.gather(*calls) == list(range(1, 3501))
            assert not proxy.is_down

    asyncio.run(main())


@pytest.mark.slow
class TestReplicas:
    @pytest.fixture
    def group(self, server: ValkeyServer) -> Any:
        group = Group.start(replicas=1, sentinels=0)
        yield group
        group.remove()

    def test_a_call_is_answered_when_replicas_have_it(self, group: Group) -> None:
        [replica] = group.replicas

        async def main() -> None:
            async with opened(group.master.url, replicas=1) as store:
                for number in range(1, 21):
                    assert await step(store, number) in (b"done", b"there")  # twice if a replica is slow
                    assert numbers(replica) == up_to(number)
                replica.pause()
                call = step(store, 21)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.shield(call), 1.5)
                assert numbers(group.master) == up_to(21)
                replica.resume()
                assert await call in (b"done", b"there")
                assert numbers(replica) == up_to(21)

        asyncio.run(main())

    def test_too_few_replicas(self, group: Group) -> None:
        async def main() -> None:
            async with opened(group.master.url, patience=1.5, replicas=2) as store:
                look = Script("return redis.call('LLEN', KEYS[1])", writes=False)
                with pytest.raises(StreamInterrupted, match="of 2 replicas have what was written"):
                    await step(store, 1)
                assert await store.call(0, look, [b"list:0"], []) == 1
            for user in ("-wait", "+wait"):
                group.master.command("ACL", "SETUSER", "default", user)
                async with opened(group.master.url, patience=20, replicas=1) as store:
                    if user == "-wait":
                        with pytest.raises(StreamInterrupted, match="refuses: NOPERM"):
                            await step(store, 2)
                    else:
                        assert await step(store, 2) in (b"done", b"there")

        asyncio.run(main())


class TestTls:
    @pytest.fixture
    def signed(self, tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
        if which("openssl") is None:
            pytest.skip("needs openssl")
        return certificate(tmp_path)

    @pytest.mark.parametrize("package", ["valkey", "redis"])
    def test_through_tls(
        self, package: str, signed: tuple[Path, ssl.SSLContext], server: ValkeyServer
    ) -> None:
        file, context = signed

        async def main() -> None:
            async with CuttingProxy(server.port, tls=context) as proxy:
                scheme = "rediss" if package == "redis" else "valkeys"
                for protocol in (2, 3):
                    url = f"{scheme}://127.0.0.1:{proxy.port}?ssl_ca_certs={file}&protocol={protocol}"
                    async with opened(url) as store:
                        assert await step(store, 1, protocol) == b"done"
                        assert proxy.cut() == 1
                        assert await step(store, 2, protocol) == b"done"
                        read = asyncio.create_task(store.read(0, {b"s": b"0-0"}, 30.0))
                        while proxy.connections != 2:
                            await asyncio.sleep(0.001)
                        read.cancel()
            assert server.has_no_clients()
            assert len(asyncio.all_tasks()) == 1

        asyncio.run(main())

    @pytest.mark.parametrize("package", ["valkeys", "rediss"])
    def test_a_stranger_is_refused(
        self, package: str, signed: tuple[Path, ssl.SSLContext], server: ValkeyServer, tmp_path: Path
    ) -> None:
        """A certificate of an unknown authority, and one for another host."""
        file, context = signed
        other, for_other = certificate(tmp_path, "other.example")

        async def main() -> None:
            async with (
                CuttingProxy(server.port, tls=context) as proxy,
                CuttingProxy(server.port, tls=for_other) as wrong,
            ):
                for port, query in (
                    (proxy.port, ""),
                    (proxy.port, f"?ssl_ca_certs={other}"),
                    (wrong.port, f"?ssl_ca_certs={other}"),
                ):
                    with pytest.raises(StreamInterrupted, match="can't be reached"):
                        await Connections.open(f"{package}://127.0.0.1:{port}{query}", patience=1)
                unchecked = (
                    f"{package}://127.0.0.1:{wrong.port}?ssl_ca_certs={other}&ssl_check_hostname=false"
                )
                async with opened(unchecked) as store:
                    assert await step(store, 1) == b"done"
                assert file != other

        asyncio.run(main())
