"""What is on the server when the relay has keys, and what becomes of it when somebody else writes there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from secrets import token_hex
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from relay.comparing import folded
from support.loops import run
from support.runs import text, turn
from support.security_page import says

import rxdelta as rd
from rxdelta.relay import Relay

fernet = pytest.importorskip("cryptography.fernet")
redis = pytest.importorskip("redis.asyncio")

ev = rd.events
PRIVATE = "what-ann-has-asked"
REPLY: list[rd.Event] = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, PRIVATE),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]
SECONDS = 30


class Server:
    """A server as somebody sees it who can read and write there, and the relays that use it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"test-{token_hex(4)}"
        self.client: Any = redis.Redis.from_url(url.replace("valkey:", "redis:"))

    def relay(self, key: Any = None, **options: Any) -> Any:
        keys = {} if key is None else {"encrypt": key.encrypt, "decrypt": key.decrypt}
        return Relay.open(self.url, prefix=self.prefix, **{"lease": 2, **keys, **options})

    async def keys(self, kind: str = "", name: str = "") -> list[bytes]:
        found = [key async for key in self.client.scan_iter(f"{{{self.prefix}:*")]
        return [key for key in found if f":{kind}".encode() in key and key.endswith(name.encode())]

    async def log(self, name: str) -> bytes:
        [key] = await self.keys("log:", f"/{name}")
        return key

    async def everything(self) -> bytes:
        """All that is stored."""
        dumps = [await self.client.dump(key) for key in await self.keys()]
        streams = [key for kind in ("log:", "inbox:", "head:") for key in await self.keys(kind)]
        entries = [await self.client.xrange(key) for key in streams]
        return b"".join(dumps) + repr(entries).encode()  # a dump may be compressed


@pytest.fixture
def valkey(valkey_url: str) -> Server:
    return Server(valkey_url)


@asynccontextmanager
async def closing(server: Server) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await server.client.aclose()


def key() -> Any:
    return fernet.Fernet(fernet.Fernet.generate_key())


async def read(relay: Relay, stream_id: str) -> list[rd.Event]:
    got: list[rd.Event] = []
    await asyncio.wait_for(rd.for_each(relay.watch(stream_id), got.append), SECONDS)
    return got


async def fault(relay: Relay, stream_id: str) -> rd.StreamInterrupted:
    """The error with which a stream ends here. It ends."""
    with pytest.raises(rd.StreamInterrupted) as caught:
        await read(relay, stream_id)
    return caught.value


def events_of(reply: list[rd.Event]) -> rx.Observable[rd.Event]:
    return rx.from_iterable(reply)


# What is there to be seen.


@says("With keys the server has")
@pytest.mark.parametrize("has_keys", [True, False])
def test_with_keys_nothing_of_a_stream_is_on_the_server_as_it_is(valkey: Server, has_keys: bool) -> None:
    failure = rd.ProviderError("the-text-of-an-error")
    ours = key() if has_keys else None

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay, valkey.relay(ours) as other:
            await relay.start("done", events_of(REPLY))
            await relay.start("live", rx.concat(events_of(REPLY[:3]), rx.never()))
            failing = rx.concat(events_of(REPLY[:3]), rx.throw(failure))
            with pytest.raises(rd.ProviderError):
                await rd.for_each(failing.pipe(relay.publish("failed")), lambda _: None)
            assert await read(relay, "done")
            stored = await valkey.everything()
            await other.cancel("live", "the-reason-of-a-cancel")
            last = (await read(other, "live"))[-1]
            assert last == ev.MessageInterrupted("the-reason-of-a-cancel")
            stored += await valkey.everything()
            with pytest.raises(rd.ProviderError, match="the-text-of-an-error"):
                await read(other, "failed")
        for said in (PRIVATE, "the-text-of-an-error", "the-reason-of-a-cancel", "message-start"):
            assert (said.encode() in stored) is not has_keys
        assert b"done" in stored  # ids are names, and no secrets

    run(main)


def test_what_was_sealed_comes_back_whole_for_each_reader(valkey: Server) -> None:
    ours = key()
    long = turn(text(0, "Many words in many pieces"))
    large = [*long[:2], ev.Custom("n", {"n": 10**40, "t": "\0\U0001f600"}), *long[2:]]

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay, valkey.relay(ours) as other:
            source = Subject[rd.Event]()
            reading = asyncio.create_task(read(other.scope("t"), "chat"))
            source.pipe(relay.scope("t").publish("chat")).subscribe()
            while not source.observers:
                await asyncio.sleep(0.001)
            for event in large:
                source.on_next(event)
                await asyncio.sleep(0)
            source.on_completed()
            assert folded(await reading) == folded(large)  # it may have come late
            entries = [entry async for entry in rd.iterate(other.scope("t").entries("chat"))]
            rest = [event async for event in rd.iterate(relay.scope("t").watch("chat", entries[0].id))]
            assert rest == large[1:]

    run(main)


@says("With keys the server has")
def test_a_dead_publishers_end_is_sealed_too(valkey: Server) -> None:
    """Whoever reads writes it, and reads it again in another process."""
    ours = key()

    async def main() -> None:
        async with closing(valkey):
            with dying(lambda: valkey.relay(ours, lease=0.5), "chat"):
                async with valkey.relay(ours, lease=0.5) as first, valkey.relay(ours, lease=0.5) as second:
                    assert "taken for dead" in str(await fault(first, "chat"))
                    assert "taken for dead" in str(await fault(second, "chat"))
                    assert b"taken for dead" not in await valkey.everything()

    run(main)


@contextmanager
def dying(opened: Callable[[], Any], stream_id: str) -> Iterator[None]:
    """A publisher that gives no sign of life from now on: its loop stands still."""
    stands, on = threading.Event(), threading.Event()

    async def main() -> None:
        async with opened() as relay:
            await relay.start(stream_id, rx.concat(events_of(REPLY[:3]), rx.never()))
            await rd.first_value(relay.watch(stream_id))
            stands.set()
            on.wait(SECONDS)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert stands.wait(SECONDS)
        yield
    finally:
        on.set()
        thread.join(SECONDS)


# Other keys, none, and new ones.


@says("With keys, who can write")
def test_who_has_no_keys_or_others_hears_why_it_can_not_read(valkey: Server) -> None:
    ours = key()

    async def main() -> None:
        async with (
            closing(valkey),
            valkey.relay(ours) as sealing,
            valkey.relay() as plain,
            valkey.relay(key()) as other,
        ):
            await sealing.start("sealed", events_of(REPLY))
            await plain.start("plain", events_of(REPLY))
            assert "opened without keys" in str(await fault(plain, "sealed"))
            assert "isn't encrypted" in str(await fault(sealing, "plain"))
            error = await fault(other, "sealed")
            assert "decrypt raised InvalidToken" in str(error)
            assert isinstance(error.__cause__, fernet.InvalidToken)
            assert await read(sealing, "sealed")
            assert await read(plain, "plain")

    run(main)


@says("With keys, who can write")
def test_a_stop_by_who_has_no_keys_counts_and_its_reason_does_not(valkey: Server) -> None:
    ours = key()

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay, valkey.relay() as plain:
            await relay.start("chat", rx.never())
            assert await plain.cancel("chat", "a reason from somebody")
            assert (await read(relay, "chat"))[-1] == ev.MessageInterrupted("stopped")

    run(main)


def test_keys_are_changed_while_streams_are_kept(valkey: Server) -> None:
    old, new = key(), key()

    async def main() -> None:
        async with closing(valkey), valkey.relay(old) as before:
            await before.start("old", events_of(REPLY))
            async with valkey.relay(
                fernet.MultiFernet([old, new])
            ) as ready:  # first each worker can read both,
                await ready.start("ready", events_of(REPLY))
                async with valkey.relay(
                    fernet.MultiFernet([new, old])
                ) as changed:  # then each writes the new one,
                    await changed.start("new", events_of(REPLY))
                    for relay in (ready, changed):
                        for name in ("old", "ready", "new"):
                            assert len(await read(relay, name)) == len(REPLY)
                    assert len(await read(before, "ready")) == len(REPLY)
                    await fault(before, "new")
            async with valkey.relay(new) as after:  # and at last nobody needs the old one.
                assert len(await read(after, "new")) == len(REPLY)
                await fault(after, "old")

    run(main)


# Somebody who can write to the server.


async def first_entry(valkey: Server, log: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    entry: tuple[bytes, dict[bytes, bytes]] = (await valkey.client.xrange(log))[
        1
    ]  # behind that of the beginning
    return entry


@says("With keys, who can write", "The store of a relay is trusted")
@pytest.mark.parametrize("has_keys", [True, False])
@pytest.mark.parametrize(
    "to", ["another stream", "another tenant", "another number", "a later stream of the name"]
)
def test_an_entry_can_not_be_moved(valkey: Server, to: str, has_keys: bool) -> None:
    """Without keys it can, so this is no test of something else."""
    ours = key() if has_keys else None

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay:
            anns, bobs = relay.scope("ann"), relay.scope("ann" if to != "another tenant" else "bob")
            name = "s2" if to == "another stream" else "s1"
            await anns.start("s1", rx.concat(events_of(REPLY[:3]), rx.never()))
            await rd.first_value(anns.watch("s1"))
            stolen_id, stolen = await first_entry(valkey, await valkey.log("s1"))
            if to != "another number":
                if to == "a later stream of the name":
                    await anns.delete("s1")
                    await valkey.client.delete(*await valkey.keys("log:", "/s1"))
                await bobs.start(name, rx.never())
                [log] = await valkey.keys("log:", f"{'bob' if to == 'another tenant' else 'ann'}/{name}")
            else:
                log = await valkey.log("s1")
                newest_id = (await valkey.client.xrange(log))[-1][0]
                stolen_id = b"%d-0" % (int(newest_id.partition(b"-")[0]) + int(stolen[b"c"]))
            await valkey.client.xadd(log, stolen, stolen_id)
            reading = bobs.watch(name)
            if has_keys:
                with pytest.raises(rd.StreamInterrupted, match="written for another place"):
                    await asyncio.wait_for(rd.for_each(reading, lambda _: None), SECONDS)
            else:
                assert await rd.first_value(reading) == REPLY[0]

    run(main)


@says("With keys, who can write")
@pytest.mark.parametrize("has_keys", [True, False])
def test_a_whole_stream_can_not_be_given_another_name(valkey: Server, has_keys: bool) -> None:
    ours = key() if has_keys else None

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay:
            await relay.scope("ann").start("chat", events_of(REPLY))
            await read(relay.scope("ann"), "chat")
            await relay.scope("bob").start("chat", rx.never())
            [anns_head], [anns_log], [bobs_head], [bobs_log] = [
                await valkey.keys(kind, f"{tenant}/chat")
                for tenant in ("ann", "bob")
                for kind in ("head:", "log:")
            ]
            await valkey.client.copy(anns_head, bobs_head, replace=True)
            epochs = [log.split(b":")[3] for log in (bobs_log, anns_log)]
            await valkey.client.copy(anns_log, bobs_log.replace(*epochs))
            async with valkey.relay(ours) as later:
                if has_keys:
                    assert "written for another place" in str(await fault(later.scope("bob"), "chat"))
                else:
                    assert PRIVATE in str(await read(later.scope("bob"), "chat"))

    run(main)


@says("With keys, who can write")
def test_an_end_can_not_be_moved(valkey: Server) -> None:
    ours = key()

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay:
            await relay.start("done", rx.empty())
            assert await read(relay, "done") == []
            end_id, end = (await valkey.client.xrange(await valkey.log("done")))[-1]
            await relay.start("live", rx.never())
            await valkey.client.xadd(await valkey.log("live"), end, end_id)
            assert "written for another place" in str(await fault(relay, "live"))

    run(main)


@says("With keys, who can write")
@pytest.mark.parametrize("field", [b"e", b"z", b"c"])
@pytest.mark.parametrize(
    "value", [b"", b"\xc1", b"\xc1\xc1", b"\x90", b"[]", b"{}", b"-1", b"\x80", b"9" * 30]
)
@pytest.mark.parametrize("has_keys", [True, False])
def test_an_entry_that_somebody_has_changed_is_an_error_and_nothing_hangs(
    valkey: Server, field: bytes, value: bytes, has_keys: bool
) -> None:
    ours = key() if has_keys else None

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay:
            await relay.start("from", events_of(REPLY))
            await read(relay, "from")
            entry_id, entry = await first_entry(valkey, await valkey.log("from"))
            await relay.start("to", rx.never())
            await valkey.client.xadd(await valkey.log("to"), entry | {field: value}, entry_id)
            if not has_keys and field == b"z" and value in (b"{}", b"\x80"):
                assert await read(relay, "to")  # an end that may be written by anybody
            else:
                await fault(relay, "to")

    run(main)


@pytest.mark.parametrize(
    "fields",
    [{}, {"p": b"\xff"}, {"r": b"\xff"}, {"r": b"\x01"}, {"r": b"\x80"}, {"r": b"\xc1"}, {"w": b"x"}],
    ids=repr,
)
@pytest.mark.parametrize("has_keys", [True, False])
def test_what_somebody_writes_into_an_inbox_breaks_nothing(
    valkey: Server, fields: dict[str, bytes], has_keys: bool
) -> None:
    ours = key() if has_keys else None

    async def main() -> None:
        async with closing(valkey), valkey.relay(ours) as relay, valkey.relay(ours) as other:
            await relay.start("chat", rx.never())
            epoch = (await valkey.log("chat")).split(b":")[3]
            [lease] = await valkey.keys("own:", "/chat")
            inbox = await valkey.client.hget(lease, "i")
            await valkey.client.xadd(inbox, {"p": epoch, **fields} if fields else {"x": "y"})
            await relay.start("next", rx.never())
            assert await other.cancel("next", "enough")
            assert (await read(other, "next"))[-1] == ev.MessageInterrupted("enough")
            assert await other.is_live("chat")  # what stops it is in its lease

    run(main)


def test_what_is_written_over_one_stream_ends_its_readers_and_no_others(valkey: Server) -> None:
    async def main() -> None:
        async with closing(valkey), valkey.relay() as relay, valkey.relay() as other:
            source = Subject[rd.Event]()
            source.pipe(relay.publish("live")).subscribe()
            reading = asyncio.create_task(read(other, "live"))
            await relay.start("ghost", rx.never())
            [head] = await valkey.keys("head:", "/ghost")
            await relay.delete("ghost")
            waiting = asyncio.create_task(fault(other, "ghost"))
            await asyncio.sleep(0.1)
            await valkey.client.xadd(head, {"not": "ours"})
            assert "format ''" in str(await waiting)
            for event in REPLY:
                source.on_next(event)
            source.on_completed()
            assert len(await reading) == len(REPLY)

    run(main)


# Functions that fail.


class OfMyOwn(BaseException):
    """As those of gevent or of a Rust extension."""


@says("The text of what `allow`")
@pytest.mark.parametrize(
    "made", [ValueError("a part of it"), OfMyOwn(), StopIteration(), asyncio.CancelledError()], ids=repr
)
def test_an_encrypt_that_raises_ends_the_stream_for_all(valkey: Server, made: BaseException) -> None:
    ours, fails = key(), [False]

    def encrypt(data: bytes) -> bytes:
        if fails[0]:
            raise made
        return bytes(ours.encrypt(data))

    async def main() -> None:
        options = {"prefix": valkey.prefix, "lease": 0.5}
        async with (
            closing(valkey),
            Relay.open(valkey.url, encrypt=encrypt, decrypt=ours.decrypt, **options) as relay,
            valkey.relay(ours, lease=0.5) as other,
        ):
            source, ended = Subject[rd.Event](), asyncio.get_running_loop().create_future()
            source.pipe(relay.publish("chat")).subscribe(lambda _: None, ended.set_result)
            while not source.observers:
                await asyncio.sleep(0.001)
            reading = asyncio.create_task(fault(other, "chat"))
            source.on_next(REPLY[0])
            await rd.first_value(other.watch("chat"))
            fails[0] = True
            source.on_next(REPLY[1])
            error = await asyncio.wait_for(ended, SECONDS)
            assert type(error) is rd.StreamInterrupted
            assert str(error) == f"the relay's encrypt raised {type(made).__name__}"
            assert error.__cause__ is made
            assert "taken for dead" in str(await reading)
            assert not source.observers
            assert not await relay.is_live("chat")

    run(main)


@says("The text of what `allow`")
@pytest.mark.parametrize("made", [ValueError("a part of it"), OfMyOwn(), StopIteration()], ids=repr)
def test_a_decrypt_that_raises_ends_the_reading(valkey: Server, made: BaseException) -> None:
    ours = key()

    def decrypt(_: bytes) -> bytes:
        raise made

    async def main() -> None:
        async with (
            closing(valkey),
            valkey.relay(ours) as relay,
            Relay.open(valkey.url, prefix=valkey.prefix, encrypt=ours.encrypt, decrypt=decrypt) as other,
        ):
            await relay.start("chat", rx.concat(events_of(REPLY), rx.never()))
            error = await fault(other, "chat")
            assert str(error) == f"the relay's decrypt raised {type(made).__name__}"
            assert error.__cause__ is made
            assert await relay.is_live("chat")

    run(main)


@pytest.mark.parametrize("made", ["text", None, bytearray(b"x"), 1], ids=repr)
def test_what_is_no_bytes_is_refused(valkey: Server, made: Any) -> None:
    ours = key()

    async def main() -> None:
        options = {"prefix": valkey.prefix, "lease": 0.5}
        async with (
            closing(valkey),
            Relay.open(valkey.url, encrypt=lambda _: made, decrypt=ours.decrypt, **options) as writing,
            Relay.open(valkey.url, encrypt=ours.encrypt, decrypt=lambda _: made, **options) as reading,
            valkey.relay(ours) as relay,
        ):
            with pytest.raises(rd.StreamInterrupted, match=r"encrypt returned .* must return bytes"):
                await rd.for_each(events_of(REPLY).pipe(writing.publish("chat")), lambda _: None)
            await relay.start("good", events_of(REPLY))
            assert "decrypt returned" in str(await fault(reading, "good"))

    run(main)


@pytest.mark.parametrize(
    "given",
    [
        {"encrypt": bytes},
        {"decrypt": bytes},
        {"encrypt": bytes, "decrypt": b"key"},
        {"encrypt": 1, "decrypt": 1},
    ],
)
@pytest.mark.parametrize("url", [None, "valkey://127.0.0.1:1"])
def test_both_are_functions_or_neither_is_given(given: dict[str, Any], url: str | None) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        Relay.open(url, **given)
    assert caught.value.field in ("encrypt", "decrypt")


def test_memory_does_not_use_the_keys() -> None:
    def never(_: bytes) -> bytes:
        raise AssertionError

    async def main() -> None:
        async with Relay.open(encrypt=never, decrypt=never) as relay:
            await relay.start("chat", events_of(REPLY))
            assert await read(relay, "chat") == REPLY

    run(main)
