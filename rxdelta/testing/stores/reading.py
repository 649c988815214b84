"""The laws of what reads and tells: `read`, `stop`, `free`, `names`, `follow`, `total` and `probe`."""

from __future__ import annotations

import asyncio

from rxdelta.relay import Record
from rxdelta.testing.stores.bench import Bench, broken_unless, expect, follow, gathered, law, records
from rxdelta.testing.stores.writing import DEAD

_PAGE = 2**19
_LARGE = 10**9  # a size that sums of others don't reach


@law(
    "read",
    "a page has about as many bytes as were asked for, at least one record, and all pages have each record once",
)
async def _(bench: Bench) -> None:
    wrote = [Record(number, 1, b"%03d" % number * 70_000) for number in range(1, 31)]
    key = await bench.log(*wrote)
    for most in (1, _PAGE, 2**30):
        found: list[Record] = []
        while (page := await bench.page(key, found[-1].number if found else 0, most)).records:
            size = sum(len(record.events) for record in page.records)
            broken_unless(size <= 4 * max(most, _PAGE), f"a page of {size} bytes, when {most} were asked for")
            found += page.records
            broken_unless(len(found) <= len(wrote), "the pages have more records than the log")
        expect("the numbers on all pages", [one.number for one in found], [one.number for one in wrote])
        broken_unless(found == wrote, "the records on the pages aren't what was written")


@law(
    "read", "a page begins behind any number: that of a record, one within a record, and one beyond the last"
)
async def _(bench: Bench) -> None:
    wrote = [*records(4, each=3), Record(13, 1, b"last", b"end")]
    key = await bench.log(*wrote)
    for after in (0, 1, 2, 3, 5, 11, 12, 13, 14, 10**6, 2**40):
        page = await bench.page(key, after)
        wanted = [record.number for record in wrote if record.number > after]
        expect(f"the records behind {after}", [record.number for record in page.records], wanted)
        expect(f"`newest` and `has_ended` behind {after}", (page.newest, page.has_ended), (13, True))


@law("read", "a log has no records when it has begun, and its page says what it is")
async def _(bench: Bench) -> None:
    key = await bench.log()
    page = await bench.page(key)
    got = len(page.records), page.epoch, page.newest, page.has_ended
    expect("the page of a log that has begun", got, (0, key.epoch, 0, False))
    expect("`lease`", page.lease, 60.0)


@law(
    "read", "without an epoch it's the log that has the name; with one it's that log, with or without a name"
)
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2))
    for epoch in (None, key.epoch):
        page = await bench.b.read(key.tenant, key.id, epoch, 0, 2**20)
        expect("the epoch", page and page.epoch, key.epoch)
    await bench.a.free(key)
    expect("the log of a name that was freed", await bench.b.read(key.tenant, key.id, None, 0, 1), None)
    await bench.holds(key, *records(2), what="without a name")
    for other in (bench.key(), bench.key(key.id), key._replace(tenant=bench.tenant())):
        expect("a log that isn't there", await bench.b.read(*other, 0, 1), None)
    expect("a name that no log has", await bench.b.read(key.tenant, bench.key().id, None, 0, 1), None)


@law("read", "`lease` is that of the publisher's store")
async def _(bench: Bench) -> None:
    other = await bench.store("c", lease=7.0)
    key = await bench.log(store=other)
    expect("`lease` for a reader with another one", (await bench.page(key)).lease, 7.0)


@law("read", "`age` is the time since the last sign", waits=True)
async def _(bench: Bench) -> None:
    key = await bench.log()
    await asyncio.sleep(0.5)
    page = await bench.page(key)
    broken_unless(0.4 <= page.age < 30, f"`age` is {page.age:.2f} half a second after the last sign")
    clock = asyncio.get_running_loop().time()
    await bench.a.append(key, 0, None)
    age, most = (await bench.page(key)).age, asyncio.get_running_loop().time() - clock + 0.1
    broken_unless(-0.1 <= age <= most, f"`age` is {age:.2f} at most {most:.2f} seconds after a sign")
    expect("bury with the page's sign", await bench.b.bury(key, page.sign, DEAD), False)


@law("read", "what a reader gets while the publisher writes has no gap and nothing twice")
async def _(bench: Bench) -> None:
    key, wrote = await bench.log(), records(60, each=2, end=b"completed")

    async def write() -> None:
        for record in wrote:
            answer = await bench.a.append(key, record.number - 2, record)
            expect("the state", answer.state, "written")

    async def read(most: int) -> None:
        found: list[Record] = []
        while not found or found[-1].end is None:
            after = found[-1].number if found else 0
            page = await bench.page(key, after, most)
            broken_unless(
                page.records or page.newest <= after,
                f"a page for {most} bytes has no record, and there is one",
            )
            for record in page.records:
                expect("the record's number", record.number, (found[-1].number if found else 0) + 2)
                found.append(record)
            await asyncio.sleep(0)
        broken_unless(found == wrote, "a reader that read while it was written has other records")

    await gathered([write(), *(read(most) for most in (1, 100, 2**20))])


@law(
    "stop",
    "the first call that stops a live log gets True, and again with the same token; others get False",
)
async def _(bench: Bench) -> None:
    key = await bench.log(*records(1))
    for store, token, wanted in (
        (bench.b, "t1", True),
        (bench.a, "t2", False),
        (bench.a, "t1", True),
        (bench.b, "t2", False),
    ):
        expect(f"stop with the token {token}", await store.stop(key, token, token.encode()), wanted)
    for _ in range(5):
        key = await bench.log()
        answers = await gathered([(bench.a, bench.b)[at % 2].stop(key, f"t{at}", b"") for at in range(10)])
        expect("calls with different tokens at once that get True", sum(answers), 1)


@law("stop", "a log that has ended or isn't there can't be stopped; one without a name can")
async def _(bench: Bench) -> None:
    ended, buried, nameless = await bench.log(Record(1, 0, b"", b"end")), await bench.log(), await bench.log()
    await bench.a.bury(buried, None, DEAD)
    for key in (ended, buried, bench.key(), bench.key(nameless.id)):
        expect("stop of a log that has ended or isn't there", await bench.b.stop(key, "t", b"r"), False)
    await bench.a.free(nameless)
    expect("stop of a live log without a name", await bench.b.stop(nameless, "t", b"r"), True)
    expect("the publisher's answer", (await bench.a.append(nameless, 0, None)).stop, b"r")


@law("free", "it returns True also for a log that has no name or isn't there, and again")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(1))
    for store in (bench.b, bench.a, bench.b):
        expect("free", await store.free(key), True)
    expect("free of a log that isn't there", await bench.a.free(bench.key()), True)
    await bench.holds(key, *records(1), what="freed")


@law("free", "it takes no name from another log")
async def _(bench: Bench) -> None:
    first = await bench.log()
    await bench.a.free(first)
    key = await bench.log(*records(1), key=bench.key(first.id))
    expect("free of the earlier log", await bench.b.free(first), True)
    expect("free of a log that has never begun", await bench.b.free(bench.key(key.id)), True)
    for other in (key._replace(tenant=bench.tenant()), key._replace(id=bench.key().id)):
        await bench.b.free(other)
    page = await bench.b.read(key.tenant, key.id, None, 0, 2**20)
    broken_unless(page, "a log has lost its name by `free` of another log")
    expect("begin of that name", await bench.a.begin(bench.key(key.id)), key.epoch)
    expect("the publisher's answer", (await bench.a.append(key, 1, None)).is_named, True)


@law("names", "they are those of a tenant's logs that have their name, in the order in which they began")
async def _(bench: Bench) -> None:
    tenant, other = bench.tenant(), bench.tenant()
    expect("the names of a tenant without logs", [*await bench.a.names(tenant)], [])
    keys = [bench.key(tenant=tenant) for _ in range(12)]
    for number, key in enumerate(keys):
        await bench.log(
            *records(1, end=b"end" if number % 3 == 0 else None),
            key=key,
            store=(bench.a, bench.b)[number % 2],
        )
    await bench.log(key=bench.key(tenant=other))
    names = [key.id for key in keys]
    expect("the names", [*await bench.b.names(tenant)], names)
    expect("the names of another tenant", len(await bench.a.names(other)), 1)
    await bench.a.free(keys[3])
    await bench.a.bury(keys[4], None, DEAD)
    await bench.a.append(keys[1], 1, None)
    del names[3]
    expect("the names without one that was freed", [*await bench.b.names(tenant)], names)
    await bench.log(key=bench.key(keys[3].id, tenant))
    expect("the names, when it began again", [*await bench.b.names(tenant)], [*names, keys[3].id])


@law("follow", "each piece of news wakes a follower in another store and in the same one, on the loop")
async def _(bench: Bench) -> None:
    for _ in range(3):
        key = bench.key(tenant=bench.tenant())
        for what, call in (
            ("begun", lambda key=key: bench.a.begin(key)),
            ("written", lambda key=key: bench.a.append(key, 0, Record(1, 1))),
            ("written", lambda key=key: bench.a.bury(key, None, DEAD)),
        ):
            follows = [
                (await follow(store, what, key), where)
                for store, where in ((bench.b, "another store"), (bench.a, "the same store"))
            ]
            await call()
            for news, where in follows:
                await news.comes(where)
                news.end()


@law("follow", "a stop from another store and from the same one wakes the publisher's store")
async def _(bench: Bench) -> None:
    for store, where in (
        (bench.b, "the publisher's store, when another one stops it"),
        (bench.a, "the publisher's store, when it stops it"),
    ):
        key = await bench.log(*records(1))
        news = await follow(bench.a, "stopped", key)
        await store.stop(key, "t", b"enough")
        await news.comes(where)
        news.end()
        expect("the answer to the next sign", (await bench.a.append(key, None, None)).stop, b"enough")


@law("follow", "each of a hundred records that a publisher writes reaches who reads when woken")
async def _(bench: Bench) -> None:
    key, wrote = await bench.log(), records(100)
    news = await follow(bench.b, "written", key)

    async def read() -> None:
        after = (await bench.page(key)).newest
        while after < 100:
            await news.comes("another store")
            after = (await bench.page(key)).newest

    async def write() -> None:
        for record in wrote:
            await bench.a.append(key, record.number - 1, record)
            await asyncio.sleep(0.001 * (record.number % 4))

    await gathered([read(), write()])
    news.end()


@law(
    "follow",
    "of several followers each is woken; one that has ended isn't called, and ending it twice harms no other",
)
async def _(bench: Bench) -> None:
    key = await bench.log()
    first, second, ended = [await follow(bench.b, "written", key) for _ in range(3)]
    ended.end()
    await bench.log(*records(1), key=key)
    await first.comes("another store")
    await second.comes("another store")
    first.end()
    ended.end()
    first.end()
    count = first.count
    await bench.a.append(key, 1, records(2)[1])
    await second.comes("another store, when others have ended")
    second.end()
    await asyncio.sleep(0.1)
    expect("calls of followers that had ended", (ended.count, first.count - count), (0, 0))


@law("follow", "two hundred topics at once are followed, each by itself")
async def _(bench: Bench) -> None:
    keys = [await bench.log() for _ in range(200)]
    follows = [await follow(bench.b, "written", key) for key in keys]
    await gathered([bench.a.append(key, 0, Record(1, 1)) for key in keys])
    await gathered([news.comes("another store, where 200 topics are followed") for news in follows])
    for news in follows:
        news.end()


@law("follow", "a name is followed before there is any log of it, and when it begins again")
async def _(bench: Bench) -> None:
    name = bench.key().id
    news = await follow(bench.b, "begun", bench.key(name))
    for when in ("begins", "begins again", "begins a third time"):
        key = await bench.log(key=bench.key(name))
        await news.comes(f"another store, when a name {when}")
        await bench.a.free(key)
    news.end()


@law("total", "it's the sum of the sizes of all records that are there")
async def _(bench: Bench) -> None:
    before = await bench.b.total()
    key = await bench.log(Record(1, 1, b"x", size=_LARGE), Record(2, 1, b"x", size=2 * _LARGE))
    await bench.a.append(key, 1, Record(2, 1, b"x", size=2 * _LARGE))  # again
    await bench.a.append(key, 1, Record(4, 1, b"y", size=4 * _LARGE))  # lost
    grown = (await bench.b.total() - before) / _LARGE
    broken_unless(
        2.9 < grown < 3.1, f"it has grown by {grown:.1f} e9 when records of 1e9 and 2e9 were written"
    )
    await bench.a.free(key)
    grown = (await bench.b.total() - before) / _LARGE
    broken_unless(2.9 < grown < 3.1, "it doesn't count a log that is there without a name")


@law("probe", "it answers, also many at once and again, and leaves no name")
async def _(bench: Bench) -> None:
    before = [*await bench.a.names("")]
    await gathered([store.probe() for store in (bench.a, bench.b) * 5])
    await bench.a.probe()
    left = {*await bench.a.names("")} - {*before}
    expect("names of the application itself that are new", {name for name in left if name == "-"}, set[str]())
