"""The stored form: what an earlier version has written is read for good, and workers of two versions share a stream."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from relay.comparing import folded, is_transient
from relay.promises import promised
from relay.reading import HELLO, Source, read, said, until
from support.loops import run
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay, StreamUnreadableError

pytest.importorskip("msgspec")
pytest.importorskip("redis")
from relay.server.stored_form import PREFIX, STREAMS, TENANT, client, load, stored

ev = rd.events
FILES = sorted((Path(__file__).parent / "stored").glob("format_*.jsonl"))
LEASE = 0.6


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@promised("Workers of two versions share a stream")
@pytest.mark.parametrize(
    "more", [{}, {"x": "of a newer version", "zz": "\x00"}], ids=["as written", "with more"]
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_written_is_read_for_good(server: ValkeyServer, path: Path, more: dict[str, str]) -> None:
    load(server, lines_of(path), more)

    async def main() -> None:
        async with Relay.open(server.url, prefix=PREFIX, lease=LEASE) as relay:
            assert await relay.streams() == [name for name in STREAMS if "tenant" not in name]
            for name, (events, error) in STREAMS.items():
                here = relay.scope(TENANT) if "tenant" in name else relay
                assert not await here.is_live(name)
                assert not await here.start(name, rx.never())  # it is kept
                *entries, end = await read(here.entries(name))
                assert (end if error is None else type(end).__name__) == (error or "|")
                if events:
                    behind = await read(here.watch(name, entries[0].id[:17] + "1"))
                    assert behind[:-1] == [event for event in events[1:] if not is_transient(event)]
                if name == "failed":
                    assert (end.message, end.code, end.transient) == ("busy", "529", True)
                if name == "dead":
                    assert "dead" in str(end)
                if name not in ("every", "odd"):
                    assert folded([entry.event for entry in entries]) == folded(events)
            assert await relay.delete("every")
            assert await relay.start("every", rx.of(*HELLO))

    run(main)


def test_this_version_writes_as_the_newest_file_has_it(server: ValkeyServer) -> None:
    """Another form needs another number, and a file of its own."""

    def shape(lines: list[dict[str, Any]]) -> set[tuple[str, ...]]:
        shapes = set[tuple[str, ...]]()
        for line in lines:
            kind = line["key"].split("}:")[1].split(":")[0]
            if line["type"] == "stream":
                shapes |= {(kind, *sorted(fields)) for _, fields in line["value"]}
            elif line["type"] == "hash":
                shapes.add((kind, *sorted(line["value"])))
            else:
                shapes.add((kind,))
        return shapes

    async def main() -> None:
        async with Relay.open(server.url, prefix=PREFIX) as relay:
            for name in ("every", "odd"):
                assert await relay.start(name, rx.from_iterable(STREAMS[name][0]))
                await read(relay.watch(name))
            source = rx.concat(rx.of(*HELLO[:4]), rx.throw(rd.ProviderError("busy")))
            await read(source.pipe(relay.publish("failed")))

    run(main)
    now, then = list(stored(server)), lines_of(FILES[-1])
    assert shape(now) <= shape(then)
    values = {line["key"].rpartition(":")[2]: line["value"] for line in then if ":log:" in line["key"]}
    for line in now:
        if ":log:" in line["key"]:
            name = line["key"].rpartition(":")[2]
            if name in ("/every", "/odd"):
                assert [fields.get("e") for _, fields in line["value"]] == [
                    fields.get("e") for _, fields in values[name]
                ]


class Bare:
    """A worker of another version: the bare client, and what the documentation says."""

    def __init__(self, server: ValkeyServer, name: str, form: int = 1) -> None:
        from zlib import crc32

        self.client = client(server)
        self.form = form
        self.epoch = "00000000000000ab"
        full = f"/{name}"
        front = f"{{rxdelta:{crc32(full.encode()) % 16}}}:"
        self.head = f"{front}head:{full}"
        self.log = f"{front}log:{self.epoch}:{full}"
        self.own = f"{front}own:{self.epoch}:{full}"
        self.inbox = f"{front}inbox:bare"
        self.names = f"{front}names:"
        self.number = 0

    def begin(self, lease: float, **more: str) -> None:
        now, micro = self.client.time()
        began = f"{now * 1_000_000 + micro:016d}"
        self.client.xadd(self.head, {"f": self.form, "p": self.epoch, "t": began, **more})
        self.client.xadd(self.log, {"f": self.form, "c": 0, **more}, id="0-1")
        self.client.zadd(self.names, {f"{began}:chat": now * 1000 + 3_600_000})
        self.sign(lease, **more)

    def sign(self, lease: float, **more: str) -> None:
        now, micro = self.client.time()
        until = now * 1000 + micro // 1000 + round(lease * 1000)
        fields = {"u": until, "l": round(lease * 1000), "i": self.inbox, **more}
        self.client.hset(self.own, mapping=fields)

    def append(self, *events: rd.Event, end: Any = None, **more: str) -> None:
        self.number += max(len(events), 1)
        fields: dict[str, Any] = {"f": self.form, "c": len(events), **more}
        if events:
            fields["e"] = json.dumps([event.to_dict() for event in events])
        if end is not None:
            fields["z"] = json.dumps(end)
        self.client.xadd(self.log, fields, id=f"{self.number}-0")


@promised("Workers of two versions share a stream")
def test_a_worker_of_another_version_is_followed_told_and_found_dead(server: ValkeyServer) -> None:
    bare = Bare(server, "chat")
    bare.begin(LEASE, x="new")

    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as relay:
            got: list[Any] = []
            assert await relay.streams() == ["chat"]
            assert not await relay.start("chat", rx.never())
            following = asyncio.create_task(read(relay.watch("chat"), got))
            bare.append(*HELLO[:2], x="new")
            bare.append(*HELLO[2:4])
            bare.sign(LEASE)
            await until(lambda: said(got) == "He")
            assert await relay.cancel("chat", "enough")
            assert not await relay.cancel("chat", "again")
            ((_, told),) = [one for one in bare.client.xrange(bare.inbox) if b"p" in one[1]]
            assert told == {b"p": bare.epoch.encode(), b"r": b"\x91\xa6enough"}
            *events, end = await following  # it gives no sign any more
            assert folded(events) == folded(HELLO[:4])
            assert type(end) is rd.StreamInterrupted
            (number, last) = bare.client.xrange(bare.log)[-1]
            assert (number, last[b"f"], last[b"c"], last[b"d"]) == (b"5-0", b"1", b"0", b"1")

    run(main)
    bare.client.close()


@promised("Workers of two versions share a stream")
def test_a_newer_form_is_refused_and_its_publisher_goes_on(server: ValkeyServer) -> None:
    bare = Bare(server, "chat")
    bare.begin(30)

    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as relay:
            got: list[Any] = []
            following = asyncio.create_task(read(relay.watch("chat"), got))
            bare.append(*HELLO[:4])
            await until(lambda: said(got) == "He")
            bare.form = 2
            bare.append(HELLO[4])
            for *events, end in (await following, await read(relay.watch("chat"))):
                assert folded(events) == folded(HELLO[:4])
                assert type(end) is StreamUnreadableError
                assert "format '2'" in str(end)
            assert await relay.is_live("chat")
            bare.append(*HELLO[5:], end={})
            assert not await relay.is_live("chat")
            assert [fields[b"f"] for _, fields in bare.client.xrange(bare.log)] == [b"1", b"1", b"2", b"2"]
            newer = Bare(server, "newer", form=2)
            newer.begin(30)
            assert not await relay.start("newer", rx.never())
            (error,) = await read(relay.watch("newer"))
            assert "format '2'" in str(error)
            newer.client.close()

    run(main)
    bare.client.close()


@promised("Events come in order")
def test_a_gap_is_seen_and_never_passed_over(server: ValkeyServer) -> None:
    bare = Bare(server, "chat")
    bare.begin(30)

    async def main() -> None:
        async with Relay.open(server.url, lease=LEASE) as relay:
            got: list[Any] = []
            following = asyncio.create_task(read(relay.watch("chat"), got))
            bare.append(*HELLO[:4])
            await until(lambda: said(got) == "He")
            bare.number += 2
            bare.append(HELLO[6])
            bare.append(end={})
            for *events, end in (await following, await read(relay.watch("chat"))):
                assert folded(events) == folded(HELLO[:4])
                assert type(end) is StreamUnreadableError
                assert "events 5 to 6" in str(end)

    run(main)
    bare.client.close()


def test_a_source_of_this_version_is_read_by_the_documented_form(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url, lease=30) as relay:
            source = Source()
            assert await relay.start("chat", source.events)
            source.emit(HELLO[0])
            following = asyncio.create_task(read(relay.watch("chat")))
            bare = Bare(server, "chat")
            ((_, head),) = bare.client.xrange(bare.head)
            assert (head[b"f"], len(head[b"p"]), len(head[b"t"])) == (b"1", 16, 16)
            log, own = (key.replace(bare.epoch, head[b"p"].decode()) for key in (bare.log, bare.own))
            assert bare.client.xrange(log)[0][0] == b"0-1"
            lease = bare.client.hgetall(own)
            assert {b"u", b"l", b"i"} <= lease.keys()
            assert lease[b"l"] == b"30000"
            bare.client.hset(own, mapping={"t": "somebody", "r": '["enough"]', "x": "new"})
            bare.client.xadd(lease[b"i"], {"p": head[b"p"], "r": '["enough"]', "x": "new"})
            assert (await following)[-2:] == [ev.MessageInterrupted("enough"), "|"]
            bare.client.close()

    run(main)
