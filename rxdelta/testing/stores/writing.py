"""The laws of what writes: `begin`, `append` and `bury`."""

from __future__ import annotations

import asyncio
import unicodedata
from secrets import token_hex

import attrs

from rxdelta.relay import Answer, LogKey, Record
from rxdelta.testing.stores.bench import Bench, broken_unless, expect, gathered, law, records

END = Record(3, 1, b"the last event", b"completed")
DEAD = Record(1000, 0, b"", b"died", dead=1)

NAMES = [
    "x", "X", "n" * 256, "\N{GRINNING FACE}" * 256, "a%b", "a%25b", "%s", "a/b", "a//b", "/a", "..", "a:b", "a::b", "{a}", "a*",
    "a_b", "a?b", "[ab]", "'a'", '"a"', "''", "--", "; drop", "a\\b", "a b", " a", "a ", "\N{HEBREW LETTER SHIN}a",
    "0", "00", "-1", "1e3", "null", "None", "true",
    unicodedata.normalize("NFC", "e\N{COMBINING ACUTE ACCENT}"), unicodedata.normalize("NFD", "\N{LATIN SMALL LETTER E WITH ACUTE}"),
    "\N{LATIN SMALL LETTER SHARP S}", "ss", "\N{KELVIN SIGN}", "K", "k",
]  # fmt: skip


@law("begin", "of many logs that begin with one name at once, in two stores, one begins")
async def _(bench: Bench) -> None:
    for _ in range(5):
        name = bench.key().id
        keys = [bench.key(name) for _ in range(20)]
        answers = await gathered([(bench.a, bench.b)[at % 2].begin(key) for at, key in enumerate(keys)])
        won = [key.epoch for key, answer in zip(keys, answers) if answer is None]
        expect("logs that have begun, by their answers", len(won), 1)
        for answer in answers:
            expect("the epoch that the others get", answer or won[0], won[0])


@law("begin", "the same call again answers None, and the log keeps what it has, and no name that was freed")
async def _(bench: Bench) -> None:
    key = await bench.log()
    expect("begin again", await bench.a.begin(key), None)
    await bench.log(*records(2), key=key)
    expect("begin again, when there are records", await bench.b.begin(key), None)
    await bench.holds(key, *records(2), what="after a second begin")
    await bench.b.free(key)
    for owner in (None, bench.key(key.id)):
        if owner is not None:
            await bench.log(key=owner)
        await bench.a.begin(key)
        page = await bench.b.read(key.tenant, key.id, None, 0, 1)
        expect(
            "the log that has the name after a second begin of one that was freed",
            page and page.epoch,
            owner and owner.epoch,
        )
    await bench.holds(key, *records(2), what="after a second begin without its name")


@law("begin", "a name that a live or an ended log has is refused with that log's epoch")
async def _(bench: Bench) -> None:
    for wrote in ([], records(2), [*records(2), END]):
        key = await bench.log(*wrote)
        for store in (bench.a, bench.b):
            expect("begin of a name that is taken", await store.begin(bench.key(key.id)), key.epoch)
        await bench.holds(key, *wrote, what="after a begin that was refused")


@law("begin", "a log that has ended gets its own epoch")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2, end=b"completed"))
    expect("begin of a log that has ended", await bench.a.begin(key), key.epoch)
    buried = await bench.log()
    await bench.a.bury(buried, None, DEAD)
    expect("begin of a log that was buried", await bench.b.begin(buried), buried.epoch)


@law("begin", "a name that was freed begins again, and the earlier log stays as it is")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2))
    await bench.b.free(key)
    again = await bench.log(*records(1), key=bench.key(key.id))
    await bench.holds(again, *records(1), what="the later log")
    await bench.holds(key, *records(2), what="the earlier log")
    page = await bench.b.read(key.tenant, key.id, None, 0, 1)
    expect("the epoch of the log that has the name", page and page.epoch, again.epoch)


@law("begin", "two tenants' logs with one name are two, and so is one without a tenant")
async def _(bench: Bench) -> None:
    name = bench.key().id
    tenants = ["", bench.tenant(), bench.tenant(), name]
    keys = [bench.key(name, tenant) for tenant in tenants]
    for number, key in enumerate(keys, 1):
        expect("begin of a name that another tenant has", await bench.a.begin(key), None)
        await bench.log(*records(number), key=key)
    for number, key in enumerate(keys, 1):
        await bench.holds(key, *records(number), what="one of several tenants")
        page = await bench.b.read(key.tenant, name, None, 0, 2**20)
        expect("the epoch of a tenant's log", page and page.epoch, key.epoch)
    await bench.b.free(keys[0])
    expect("names of a tenant, when another one's is freed", [*await bench.a.names(tenants[1])], [name])


@law(
    "begin",
    "names differ by each character: long ones, with signs, in any script, case and normal form",
)
async def _(bench: Bench) -> None:
    tenant = bench.tenant()
    for keys in (
        [LogKey(tenant, name, token_hex(8)) for name in NAMES],
        [LogKey(f"{name[:240]}{tenant}", "x", token_hex(8)) for name in NAMES],
    ):
        for key in keys:
            expect(f"begin of {key.tenant[:9]!a}/{key.id[:9]!a}", await bench.a.begin(key), None)
        for key in keys:
            page = await bench.b.read(key.tenant, key.id, None, 0, 1)
            expect(f"the log of {key.tenant[:9]!a}/{key.id[:9]!a}", page and page.epoch, key.epoch)
    expect("the names of all", [*await bench.b.names(tenant)], NAMES)


@law("append", "what was written is there for a reader in another store, with each field as it was")
async def _(bench: Bench) -> None:
    wrote = [
        Record(1, 1, bytes(range(256))),
        Record(4, 3, b"\0\r\n\xff" * 9),
        Record(5, 1),
        Record(6, 1, b"one more", b"\0"),
    ]
    key = await bench.log(*wrote)
    await bench.holds(key, *wrote, what="written by `append`")
    end = Record(1, 0, b"", bytes(range(256)))
    await bench.holds(await bench.log(end), end, what="an end without events")


@law("append", "a record of several megabytes is written and read as it was")
async def _(bench: Bench) -> None:
    large = [Record(1, 1, bytes(range(256)) * 2**14), Record(2, 1, b"\xff" * 2**21, b"\0" * 2**20)]
    key = await bench.log(*large)
    await bench.holds(key, *large, what="large")


@law("append", "a record behind another number than the log's last is lost, and changes nothing")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(3))
    for before, record in (
        (2, Record(4, 2)),
        (0, Record(1, 1)),
        (7, Record(8, 1)),
        (1, Record(3, 2, b"", b"end")),
    ):
        answer = await bench.a.append(key, before, record)
        expect(f"the state behind {before}, when the log's last record is 3", answer.state, "lost")
    expect("the state of a sign behind 2", (await bench.b.append(key, 2, None)).state, "lost")
    await bench.holds(key, *records(3), what="after records that were lost")


@law("append", "what comes for a log that isn't there is gone")
async def _(bench: Bench) -> None:
    key = await bench.log()
    for other in (bench.key(), bench.key(key.id), key._replace(tenant=bench.tenant())):
        for before, record in ((0, Record(1, 1)), (0, None), (None, None), (5, Record(6, 1, b"", b"end"))):
            expect("the state", (await bench.a.append(other, before, record)).state, "gone")
    await bench.holds(key, what="after records of other logs")


@law(
    "append",
    "a log that has ended takes nothing more: the answers to another record and to a sign with a number say so",
)
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2), END)
    for before, record in (
        (3, Record(4, 1)),
        (3, Record(4, 0, b"", b"end")),
        (2, attrs.evolve(END, end=b"other")),
        (3, None),
    ):
        expect("the state", (await bench.b.append(key, before, record)).state, "ended")
    expect("the state of a sign without a number", (await bench.a.append(key, None, None)).state, "written")
    await bench.holds(key, *records(2), END, what="after its end")


@law(
    "append",
    "a log that was buried takes nothing more, and the answer to its publisher says so, also to a sign without a number",
)
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2))
    expect("bury", await bench.b.bury(key, None, DEAD), True)
    for before, record in (
        (2, END),
        (2, None),
        (None, None),
        (1000, None),
        (999, Record(1000, 1, b"", b"died")),
    ):
        expect("the state", (await bench.a.append(key, before, record)).state, "ended")
    await bench.holds(key, *records(2), DEAD, what="a log that was buried")


@law("append", "the same record again is written, and isn't there twice: also the first one, and the end")
async def _(bench: Bench) -> None:
    key = await bench.log()
    wrote = [*records(2), END]
    for place, record in enumerate(wrote):
        for store in (bench.a, bench.a, bench.b):
            answer = await store.append(key, wrote[place - 1].number if place else 0, record)
            expect(f"the state, when record {record.number} comes again", answer.state, "written")
        await bench.holds(key, *wrote[: place + 1], what="a record that came again")


@law("append", "the same record twice at once is written once, and both answers say so")
async def _(bench: Bench) -> None:
    key = await bench.log()
    wrote = records(20, end=b"completed")
    for record in wrote:
        before = record.number - 1
        answers = await gathered([store.append(key, before, record) for store in (bench.a, bench.b)])
        expect("the states", [answer.state for answer in answers], ["written", "written"])
    await bench.holds(key, *wrote, what="each written twice at once")


@law("append", "a sign without a record writes nothing, and gives the log another sign")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2))
    signs = [(await bench.page(key)).sign]
    for before in (2, None, 2):
        expect("the state", (await bench.a.append(key, before, None)).state, "written")
        signs.append((await bench.page(key)).sign)
    await bench.a.append(key, 2, END)
    signs.append((await bench.page(key)).sign)
    expect("different signs after five calls", len({*signs}), 5)
    await bench.holds(key, *records(2), END, what="after signs")


@law(
    "append",
    "the reason of a stop comes with the answer to each later sign, and no other one with any answer",
)
async def _(bench: Bench) -> None:
    for reason in (b"enough", b"", bytes(range(256))):
        key = await bench.log()
        expect("`stop` before", (await bench.a.append(key, 0, None)).stop, None)
        await bench.b.stop(key, "t1", reason)
        await bench.b.stop(key, "t2", b"another one")
        for record in records(2):
            answer = await bench.a.append(key, record.number - 1, record)
            broken_unless(
                answer.stop in (None, reason), f"another reason comes with a record: {answer.stop!r}"
            )
            for before in (record.number, None):
                expect(
                    "the answer to a sign", await bench.a.append(key, before, None), Answer("written", reason)
                )


@law("append", "a log without its name is written on, and the answer to each sign says that it has none")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(1))
    await bench.b.free(key)
    for later in (False, True):
        if later:
            await bench.log(key=bench.key(key.id), store=bench.b)
        for before in (1, None):
            expect(
                "the answer", await bench.a.append(key, before, None), Answer("written", None, is_named=False)
            )
    for before, record in ((1, records(2)[1]), (2, END)):
        expect("the state", (await bench.a.append(key, before, record)).state, "written")
    await bench.holds(key, *records(2), END, what="without a name")


@law("bury", "the end is written if the sign is still the publisher's last, and else nothing is")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2))
    old = (await bench.page(key)).sign
    await bench.a.append(key, 2, None)
    expect("bury with an older sign", await bench.b.bury(key, old, DEAD), False)
    page = await bench.holds(key, *records(2), what="after a bury with an older sign")
    expect("bury with the last sign", await bench.b.bury(key, page.sign, DEAD), True)
    page = await bench.holds(key, *records(2), DEAD, what="with a gap in its numbers")
    expect("the last number", page.newest, DEAD.number)


@law("bury", "without a sign it's written whatever the sign is; behind no record, too")
async def _(bench: Bench) -> None:
    dead = attrs.evolve(DEAD, number=1, dead=2)
    key = await bench.log()
    expect("bury", await bench.a.bury(key, None, dead), True)
    await bench.holds(key, dead, what="buried without a sign")
    expect("begin of the name of a log that was buried", await bench.a.begin(bench.key(key.id)), key.epoch)


@law("bury", "the same call again gets True, another one False, and the first end stays")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2))
    page = await bench.page(key)
    for store in (bench.a, bench.b, bench.a):
        expect("bury, the first and again", await store.bury(key, page.sign, DEAD), True)
    for other in (attrs.evolve(DEAD, end=b"other"), attrs.evolve(DEAD, number=1001)):
        for sign in (page.sign, None):
            expect("bury of a log that was buried", await bench.b.bury(key, sign, other), False)
    await bench.holds(key, *records(2), DEAD, what="buried more than once")


@law("bury", "a log that has ended or isn't there isn't buried")
async def _(bench: Bench) -> None:
    key = await bench.log(*records(2), END)
    for sign in ((await bench.page(key)).sign, None):
        expect("bury of a log that has ended", await bench.b.bury(key, sign, DEAD), False)
    await bench.holds(key, *records(2), END, what="a log that has ended")
    for other in (bench.key(), bench.key(key.id)):
        expect("bury of a log that isn't there", await bench.b.bury(other, None, DEAD), False)


@law("bury", "of a publisher that comes back and who buries it at the same moment exactly one wins")
async def _(bench: Bench) -> None:
    for number in range(60):
        key = await bench.log(*records(2))
        sign = (await bench.page(key)).sign
        record = None if number % 3 == 0 else END if number % 3 == 1 else records(3)[2]

        async def publish(key: LogKey = key, record: Record | None = record) -> object:
            return (await bench.a.append(key, 2, record)).state

        async def bury(key: LogKey = key, sign: int = sign) -> object:
            return await bench.b.bury(key, sign, DEAD)

        calls = [publish(), bury()] if number % 2 else [bury(), publish()]
        answers = {*await gathered(calls)}
        broken_unless(
            answers in ({"written", False}, {"ended", True}),
            f"a publisher's append and a bury with the sign before answered {answers}",
        )
        wrote = [DEAD] if True in answers else [] if record is None else [record]
        await bench.holds(key, *records(2), *wrote, what="after both")
        await asyncio.sleep(0)


@law("bury", "of several ends at the same moment one is the log's, and just its call gets True")
async def _(bench: Bench) -> None:
    for _ in range(10):
        key = await bench.log(*records(2))
        ends = [Record(10, 0, b"", f"died {number}".encode(), dead=1) for number in range(6)]
        answers = await gathered(
            [(bench.a, bench.b)[at % 2].bury(key, None, end) for at, end in enumerate(ends)]
        )
        expect("calls that get True", sum(answers), 1)
        await bench.holds(key, *records(2), ends[answers.index(True)], what="buried by several")
