"""The connections of one process to a store, while nothing goes wrong."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from relay.server.steps import opened
from support.valkey_servers import ValkeyServer

from rxdelta import InvalidValueError, StreamInterrupted
from rxdelta.relay.valkey.calls import Script
from rxdelta.relay.valkey.connections import Connections

PUSH = Script("redis.call('RPUSH', KEYS[1], ARGV[1]); return redis.call('LRANGE', KEYS[1], 0, -1)")
ADD = Script("return redis.call('XADD', KEYS[1], ARGV[1], 'f', ARGV[2])")
READ = Script("return redis.call('GET', KEYS[1])", writes=False)


def keys(tag: int, *names: str) -> list[bytes]:
    return [b"{rx:%d}:%b" % (tag, name.encode()) for name in names]


def test_calls_and_reads(server_combination: Any) -> None:
    """With each package, protocol and kind of servers the answers are the same."""
    answers = Script(
        "return {1, -2, ARGV[1], ARGV[2], {'nested', {}}, false, redis.status_reply('fine'), #KEYS, KEYS[2]}"
    )

    async def main() -> None:
        async with opened(server_combination.url) as store:
            asked = [store.call(tag, answers, keys(tag, "a", "b"), [b"\x00\xff\r\n", 7]) for tag in range(16)]
            for tag, answer in enumerate(await asyncio.gather(*asked)):
                last = keys(tag, "b")[0]
                assert answer == [1, -2, b"\x00\xff\r\n", b"7", [b"nested", []], None, b"fine", 2, last]
            for tag in (0, 5):
                first, second = keys(tag, "s1", "s2")
                for number in (1, 2):
                    await store.call(tag, ADD, [first], [f"{number}-0", "x"])
                await store.call(tag, ADD, [second], ["9-0", b"\xfe"])
                entries = await store.read(store.lane_of(tag), {first: b"1-0", second: b"0-0"}, 5.0)
                assert sorted(entries) == [
                    (first, [(b"2-0", {b"f": b"x"})]),
                    (second, [(b"9-0", {b"f": b"\xfe"})]),
                ]
                assert await store.read(store.lane_of(tag), {first: b"2-0"}, 0.01) == []
        assert server_combination.has_no_clients()

    asyncio.run(main())


def test_calls_run_in_their_order(server_combination: Any) -> None:
    async def main() -> None:
        async with opened(server_combination.url) as store:
            asked = [store.call(n % 16, PUSH, keys(n % 16, "list"), [n]) for n in range(3000)]
            await asyncio.wait(asked)
            for tag in range(16):
                last = await store.call(tag, PUSH, keys(tag, "list"), ["end"])
                assert last == [*(str(n).encode() for n in range(tag, 3000, 16)), b"end"]

    asyncio.run(main())


def test_what_is_asked_meanwhile_goes_together(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            await store.call(0, PUSH, [b"l"], [1])
            before = int(server.info("stats")["total_reads_processed"])
            await asyncio.gather(*(store.call(0, PUSH, [b"l"], [n]) for n in range(200)))
            assert int(server.info("stats")["total_reads_processed"]) - before < 20

    asyncio.run(main())


def test_a_read_gets_what_is_added_later(server_combination: Any) -> None:
    async def main() -> None:
        async with opened(server_combination.url) as store:
            [key] = keys(3, "stream")
            read = asyncio.create_task(store.read(store.lane_of(3), {key: b"0-0"}, 30.0))
            while not any(int(one.info("clients")["blocked_clients"]) for one in server_combination.servers):
                await asyncio.sleep(0.001)
            await store.call(3, ADD, [key], ["1-0", "x"])
            assert await read == [(key, [(b"1-0", {b"f": b"x"})])]

    asyncio.run(main())


def test_a_read_gets_64_entries_at_most(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            await asyncio.gather(*(store.call(0, ADD, [b"s"], [f"{n}-0", n]) for n in range(1, 101)))
            [(_, entries)] = await store.read(0, {b"s": b"0-0"}, 1.0)
            assert [id_ for id_, _ in entries] == [b"%d-0" % n for n in range(1, 65)]
            [(_, entries)] = await store.read(0, {b"s": entries[-1][0]}, 1.0)
            assert [id_ for id_, _ in entries] == [b"%d-0" % n for n in range(65, 101)]

    asyncio.run(main())


def test_one_connection_for_calls_and_one_for_reads(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            await asyncio.gather(*(store.call(n, PUSH, [b"l"], [n]) for n in range(500)))
            assert len(server.clients()) == 1
            for _ in range(3):
                await store.read(store.lane_of(9), {b"s": b"0-0"}, 0.01)
            assert len(server.clients()) == 2
            store.rest(0)
            while len(server.clients()) != 1:
                await asyncio.sleep(0.001)
            await store.read(0, {b"s": b"0-0"}, 0.01)
            assert len(server.clients()) == 2
        assert server.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_cancelled_read_leaves_nothing(server_combination: Any) -> None:
    """Cancelled at a random moment: at once, while it connects, while it waits, when the answer comes."""
    moments = random.Random(1)

    async def main() -> None:
        async with opened(server_combination.url) as store:
            [key] = keys(2, "stream")
            lane = store.lane_of(2)
            for number in range(100):
                read = asyncio.create_task(store.read(lane, {key: b"%d-0" % number}, 30.0))
                await asyncio.sleep(moments.choice([0, 0, 0.001, moments.uniform(0, 0.004)]))
                added = store.call(2, ADD, [key], [f"{number + 1}-0", "x"])
                await asyncio.sleep(moments.choice([0, moments.uniform(0, 0.002)]))
                cancelled = read.cancel()
                await asyncio.wait([read])
                assert read.cancelled() == cancelled
                await added
                # The next read has the next answer, not the one that was cancelled.
                [(_, entries)] = await store.read(lane, {key: b"%d-0" % number}, 30.0)
                assert [id_ for id_, _ in entries] == [b"%d-0" % (number + 1)]
            while sum(len(one.clients()) for one in server_combination.servers) > 2 + len(
                server_combination.servers
            ):
                await asyncio.sleep(0.001)
        assert server_combination.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_cancelled_call_disturbs_nobody(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            for number in range(50):
                left = store.call(0, PUSH, [b"left"], [number])
                await asyncio.sleep(0 if number % 2 else 0.0001)
                left.cancel()
                answer = await store.call(0, PUSH, [b"stayed"], [number])
                assert answer == [b"%d" % n for n in range(number + 1)]

    asyncio.run(main())


def test_a_faulty_script_fails_at_once_and_alone(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            wrong = [
                store.call(0, Script("return redis.error_reply('OUCH no')"), [b"k"], []),
                store.call(0, Script("return redis.call('NOSUCH')"), [b"k"], []),
                store.call(0, Script("this is no Lua"), [b"k"], []),
            ]
            right = store.call(0, PUSH, [b"k"], ["x"])
            for call in wrong:
                with pytest.raises(StreamInterrupted, match="refuses"):
                    await asyncio.wait_for(call, 5)
                assert call.exception().__cause__ is not None  # type: ignore[union-attr]
            with pytest.raises(StreamInterrupted, match="OUCH no"):
                await wrong[0]
            assert await right == [b"x"]

    asyncio.run(main())


def test_a_wrong_read_fails(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            await store.call(0, PUSH, [b"list"], ["x"])
            with pytest.raises(StreamInterrupted, match="WRONGTYPE"):
                await store.read(0, {b"list": b"0-0"}, 1.0)
            assert await store.read(0, {b"stream": b"0-0"}, 0.01) == []

    asyncio.run(main())


def test_a_database_and_a_password(new_server: Callable[..., ValkeyServer]) -> None:
    server = new_server(password="s3cr3t#/@")
    login = "s3cr3t%23%2F%40"

    async def main() -> None:
        for url in (
            f"valkey://:{login}@127.0.0.1:{server.port}/5",
            f"redis+unix://:{login}@{server.socket}?db=5&protocol=3",
            f"valkey://default:{login}@127.0.0.1:{server.port}?db=5&protocol=3",
        ):
            async with opened(url) as store:
                await store.call(0, PUSH, [b"l"], [1])
            assert server.info("keyspace").keys() == {"db5"}
        for wrong in ("", ":wrong@"):
            for protocol in (2, 3):
                with pytest.raises(StreamInterrupted, match="can't be reached") as refused:
                    await Connections.open(
                        f"valkey://{wrong}127.0.0.1:{server.port}?protocol={protocol}", patience=5
                    )
                assert "wrong" not in str(refused.value).replace("WRONGPASS", "")
                assert refused.value.__cause__ is not None
        assert server.has_no_clients()

    asyncio.run(main())


def test_nobody_there(server: ValkeyServer, tmp_path: Any) -> None:
    async def main() -> None:
        for url in (
            "redis://u:secret@127.0.0.1:1",
            f"valkey+unix://u:secret@{tmp_path}/none",
            "valkey://u:secret@no-such-host.invalid",
            "valkey+cluster://u:secret@127.0.0.1:1,127.0.0.1:2",
            "valkey+sentinel://u:secret@127.0.0.1:1/main",
            f"valkey+cluster://127.0.0.1:{server.port}",
            f"valkey+sentinel://127.0.0.1:{server.port}/main",
        ):
            with pytest.raises(StreamInterrupted, match="can't be reached: ") as failed:
                await Connections.open(url, patience=5)
            assert "secret" not in str(failed.value)
        with pytest.raises(InvalidValueError):
            await Connections.open("http://host", patience=5)
        assert len(asyncio.all_tasks()) == 1
        assert server.has_no_clients()

    asyncio.run(main())


def test_closing_ends_what_is_under_way(server: ValkeyServer) -> None:
    async def main() -> None:
        async with opened(server.url) as store:
            await store.call(0, PUSH, [b"k"], ["x"])
            server.pause()  # so that nothing is answered before the end
            flying = store.call(0, PUSH, [b"k"], ["x"])
            reads = [asyncio.create_task(store.read(lane, {b"s": b"0-0"}, 60.0)) for lane in range(3)]
            await asyncio.sleep(0.001)
            waiting = store.call(0, PUSH, [b"k"], ["x"])
        server.resume()
        for call in (flying, waiting, store.call(0, PUSH, [b"k"], ["x"])):
            with pytest.raises(StreamInterrupted, match="closed"):
                await call
        for read in reads:
            with pytest.raises(Exception, match=r"closed|127\.0\.0\.1"):
                await read
        with pytest.raises(StreamInterrupted, match="closed"):
            await store.read(0, {b"s": b"0-0"}, 60.0)
        await store.aclose()
        assert len(asyncio.all_tasks()) == 1
        assert server.has_no_clients()

    asyncio.run(main())


def test_the_packages_are_imported_only_for_a_url() -> None:
    program = """
        import sys, rxdelta, rxdelta.relay
        import rxdelta.relay.valkey.connections
        assert not {"redis", "valkey"} & sys.modules.keys()
    """
    subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in program.splitlines())], check=True
    )


def test_without_a_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis", "valkey", "redis.asyncio", "valkey.asyncio"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidValueError, match=r"pip install 'rxdelta\[relay\]'"):
        asyncio.run(Connections.open("valkey://localhost", patience=1))


@pytest.mark.parametrize(("there", "scheme"), [("redis", "valkey"), ("valkey", "redis")])
def test_one_package_is_enough(
    there: str, scheme: str, server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(there)
    for name in (scheme, f"{scheme}.asyncio"):
        monkeypatch.setitem(sys.modules, name, None)

    async def main() -> None:
        async with opened(f"{scheme}://127.0.0.1:{server.port}") as store:
            assert await store.call(0, PUSH, [b"l"], ["x"]) == [b"x"]
        assert f"lib-name={there}" not in str(server.clients())

    asyncio.run(main())
