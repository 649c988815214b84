"""The laws of time, of many calls, and of what stays: `expiry`, `calls`, `close` and `reopen`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from rxdelta.relay import LogKey, Record, Store
from rxdelta.testing.stores.bench import (
    SOON,
    Bench,
    broken_unless,
    expect,
    follow,
    gathered,
    law,
    records,
    until,
)
from rxdelta.testing.stores.traced import TooSlow
from rxdelta.testing.stores.writing import DEAD, END

_MANY = 1000


async def _expires(store: Store, key: LogKey, what: str) -> None:
    """The log must be gone some time, for all calls."""

    async def is_gone() -> bool:
        return await store.read(*key, 0, 1) is None

    await until(is_gone, f"{what} is still there after {SOON:g} seconds")
    expect("append to a log that has expired", (await store.append(key, None, None)).state, "gone")
    expect("stop of a log that has expired", await store.stop(key, "t", b""), False)
    expect("bury of a log that has expired", await store.bury(key, None, DEAD), False)


async def _name_is_free(bench: Bench, store: Store, key: LogKey) -> None:
    expect("names without one that has expired", key.id in await store.names(key.tenant), False)
    expect("read of a name that is free", await store.read(key.tenant, key.id, None, 0, 1), None)
    expect(
        "begin of the name of a log that has expired", await store.begin(bench.key(key.id, key.tenant)), None
    )


@law("expiry", "a log that has ended is kept for `keep`, and then it's gone and its name is free", waits=True)
async def _(bench: Bench) -> None:
    tenant = bench.tenant()
    short, other = await bench.short()
    keeps = await bench.store("e", lease=0.5, keep=60.0)
    kept = await bench.log(*records(2, end=b"end"), key=bench.key(tenant=tenant), store=keeps)
    key = await bench.log(*records(2, end=b"end"), key=bench.key(tenant=tenant), store=short)
    buried = await bench.log(*records(2), key=bench.key(tenant=tenant), store=short)
    await other.bury(buried, None, DEAD)
    for one in (key, buried):
        await _expires(other, one, "a log that has ended, behind `keep`,")
        await _name_is_free(bench, other, one)
    await bench.holds(kept, *records(2, end=b"end"), what="a log that is kept")
    expect("begin of a name that is kept", await bench.b.begin(bench.key(kept.id, tenant)), kept.epoch)


@law(
    "expiry",
    "a live log without signs is kept for a lease and `keep`, and then it's gone and its name is free",
    waits=True,
)
async def _(bench: Bench) -> None:
    store = await bench.store("c", 1.0, 1.0)
    key = await bench.log(*records(1), store=store)
    loop, last = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    while loop.time() - last < 1.5:
        page = await bench.b.read(*key, 0, 2**20)
        took = loop.time() - last
        broken_unless(
            page or took >= 1.9,
            f"it's gone {took:.1f} seconds after a sign, with a lease and `keep` of 1 each",
        )
        await asyncio.sleep(0.1)
    await _expires(bench.b, key, "a live log without signs, behind a lease and `keep`,")
    await _name_is_free(bench, bench.b, key)


@law("expiry", "signs keep a live log, with its name and all of its records", waits=True)
async def _(bench: Bench) -> None:
    short, other = await bench.short()
    signs, writes = await bench.log(*records(2), store=short), await bench.log(*records(2), store=short)
    loop, last = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    for number in range(3, 23):
        await asyncio.sleep(0.1)
        answers = await gathered(
            [
                short.append(signs, None if number % 2 else 2, None),
                short.append(writes, number - 1, records(number)[-1]),
            ]
        )
        before, last = last, loop.time()
        if last - before > 0.8:
            raise TooSlow(f"signs came {last - before:.1f} seconds apart, and logs expired after 1")
        expect(
            "the states for a publisher that has given signs",
            [one.state for one in answers],
            ["written", "written"],
        )
    await bench.holds(signs, *records(2), what="kept by signs", store=other)
    await bench.holds(writes, *records(22), what="kept by records", store=other)
    for key in (signs, writes):
        expect("begin of the name of a live log", await other.begin(bench.key(key.id)), key.epoch)


@law(
    "expiry",
    "a log that was freed is kept for a lease, and then it's gone; whoever has its name then keeps it",
    waits=True,
)
async def _(bench: Bench) -> None:
    store = await bench.store("c", lease=1.0, keep=60.0)
    live, ended = (
        await bench.log(*records(1), store=store),
        await bench.log(*records(1, end=b"end"), store=store),
    )
    later: list[LogKey] = []
    loop = asyncio.get_running_loop()
    for key in (live, ended):
        begin = loop.time()
        await store.free(key)
        page = await bench.b.read(*key, 0, 2**20)
        if loop.time() - begin > 0.8:
            raise TooSlow(f"two calls took {loop.time() - begin:.1f} seconds")
        broken_unless(page, "it's gone at once")
        later.append(await bench.log(*records(3), key=bench.key(key.id)))
    for key in (live, ended):
        await _expires(bench.b, key, "a log that was freed, behind a lease,")
    for key in later:
        await bench.holds(key, *records(3), what="that has the name of one that has expired")
        expect("begin of the name", await bench.b.begin(bench.key(key.id)), key.epoch)


@law("total", "what has expired doesn't count", waits=True)
async def _(bench: Bench) -> None:
    short, _ = await bench.short()
    large = 10**12  # a size that sums of others don't reach
    before = await bench.b.total()
    for number in (1, 2):
        key = await bench.log(Record(1, 1, b"", b"end" if number == 1 else None, size=large), store=short)
        await short.free(key)

    async def is_as_before() -> bool:
        return abs(await bench.b.total() - before) < large / 2

    await until(is_as_before, f"total still counts logs that have expired, after {SOON:g} seconds")


@law("calls", "a thousand at once are answered, each as if it were alone")
async def _(bench: Bench) -> None:
    stores, keys = (bench.a, bench.b), [bench.key() for _ in range(_MANY // 10)]
    broken_unless(
        not any(await gathered([stores[at % 2].begin(key) for at, key in enumerate(keys)])),
        "a begin was refused",
    )
    for record in records(3):
        calls = [stores[at % 2].append(key, record.number - 1, record) for at, key in enumerate(keys * 3)]
        expect("the states", {answer.state for answer in await gathered(calls)}, {"written"})
    pages = await gathered([stores[at % 2].read(*keys[at % len(keys)], 0, 2**20) for at in range(_MANY)])
    for at, page in enumerate(pages):
        expect("the epoch", page and page.epoch, keys[at % len(keys)].epoch)
        broken_unless(page and [*page.records] == records(3), "a page has other records than were written")


@law("calls", "one that is cancelled harms no other, and may come again")
async def _(bench: Bench) -> None:
    chance = Random(1)  # noqa: S311
    wrote = records(5, end=b"end")

    async def cancel(call: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(call)
        await asyncio.sleep(chance.choice((0, 0, 0.0005, 0.002, 0.01)))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def publish(key: LogKey) -> None:
        await cancel(bench.a.begin(key))
        expect("begin after one that was cancelled", await bench.a.begin(key), None)
        for record in wrote:
            await cancel(bench.a.append(key, record.number - 1, record))
            await cancel(bench.b.read(*key, 0, 2**20))
            answer = await bench.a.append(key, record.number - 1, record)
            expect("append after one that was cancelled", answer.state, "written")

    for _ in range(10):
        keys = [bench.key() for _ in range(5)]
        await gathered([publish(key) for key in keys])
        for key in keys:
            await bench.holds(key, *wrote, what="whose calls were cancelled")


@law(
    "close", "calls that are under way end, followers aren't called any more, and no task and no thread stays"
)
async def _(bench: Bench) -> None:
    for store in (bench.a, bench.b):
        await bench.close(store)
    tasks, threads = asyncio.all_tasks(), {*threading.enumerate()}
    for _ in range(2):
        store, other = await bench.store("c"), await bench.store("d")
        key = await bench.log(store=store)
        news = [await follow(store, what, key) for what in ("begun", "written", "stopped")]
        calls = [asyncio.ensure_future(store.append(key, None, None)) for _ in range(20)]
        await asyncio.sleep(0)
        await bench.close(store)
        count = sum(one.count for one in news)
        _, pending = await asyncio.wait(calls, timeout=SOON)
        broken_unless(not pending, f"{len(pending)} calls haven't ended {SOON:g} seconds after `close`")
        await asyncio.gather(*calls, return_exceptions=True)
        await other.append(key, 0, Record(1, 1))
        await other.stop(key, "t", b"")
        await asyncio.sleep(0.05)
        expect("calls of followers of a closed store", sum(one.count for one in news) - count, 0)
        await bench.close(other)

    def left() -> list[str]:
        """The tasks and threads that are there more, but for the threads of the loop's own executor, which stay."""
        more = [thread.name for thread in {*threading.enumerate()} - threads]
        names = [name for name in more if not name.startswith("asyncio_")]
        return names + [f"{task.get_coro()}" for task in asyncio.all_tasks() - tasks]

    with suppress(TimeoutError):
        async with asyncio.timeout(SOON):
            while left():
                await asyncio.sleep(0.05)
    expect(f"tasks and threads of a closed store that are still there {SOON:g} seconds later", left(), [])


@law("reopen", "all is still there when each store was closed and another one is opened")
async def _(bench: Bench) -> None:
    tenant = bench.tenant()
    live, ended, nameless = [bench.key(tenant=tenant) for _ in range(3)]
    await bench.log(*records(3), key=live)
    await bench.log(*records(2), END, key=ended)
    await bench.log(*records(1), key=nameless)
    await bench.b.stop(live, "t1", b"enough")
    await bench.b.free(nameless)
    sign = (await bench.page(live)).sign
    await bench.close(bench.a)
    await bench.close(bench.b)
    bench.a, bench.b = await bench.store("c"), await bench.store("d")
    page = await bench.holds(live, *records(3), what="after a reopening")
    expect("the sign", page.sign, sign)
    await bench.holds(ended, *records(2), END, what="after a reopening")
    await bench.holds(nameless, *records(1), what="after a reopening")
    expect("the names", [*await bench.a.names(tenant)], [live.id, ended.id])
    answer = await bench.a.append(live, 3, None)
    expect("the publisher's state and reason", (answer.state, answer.stop), ("written", b"enough"))
    expect("stop again with the same token", await bench.a.stop(live, "t1", b"enough"), True)
    await bench.a.append(live, 3, records(4)[3])
    await bench.holds(live, *records(4), what="written on after a reopening")
