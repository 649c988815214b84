"""Ids as browsers send them: each is a name, and reaches no other stream, no key of the store and no command."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from relay.conftest import Opener
from relay.promises import promised
from support.loops import run
from support.runs import text, turn
from support.security_page import says

import rxdelta as rd
from rxdelta.relay import Relay

redis = pytest.importorskip("redis.asyncio")
pytest.importorskip("msgspec")

from rxdelta.relay.logs import Name  # noqa: E402
from rxdelta.relay.valkey.scripts import Keys, id_of, inbox_key, names_key  # noqa: E402

HOSTILE = [
    "*", "?", "[a-z]*", "vict*", "victim*", "\\*", "^", "$", "+", "-", "(0", "0-0", "0-1", "~",
    "{}", "{", "}", "{0}", "}:head:victim", "{rxdelta:0}:head:/victim", "a}{b", "{victim}",
    ":", "::", "victim:cancel", "head:victim", "log:victim", "own:victim", "inbox", "names:", "victim:",
    "%", "%2F", "%2f", "%25", "%victim", "%00", "/", "//", "a/b", "/victim", "victim/", "../victim", ".", "..",
    " ", " victim", "victim ", "'", '"', "`", "victim'", "victim\\", "\\r\\n", "\\r\\nFLUSHALL\\r\\n", "FLUSHALL",
    "*1 $8 FLUSHALL", "KEYS[1]", "ARGV[1]", "return redis.call('FLUSHALL')", "]]", "--", "-- x", ";",
    "constructor", "__proto__", "__class__", "toString", "None", "null", "nil", "true", "0", "1", "-1", "NaN",
    "VICTIM", "Victim", "vi\u0441tim", "victim\u0301", "\u00e9", "e\u0301", "\ufb01", "fi", "\U0001f600", "\ufffd",
    "\U0001f600" * 256, "%" * 256, "x" * 256, "victim" + "x" * 250,
]  # fmt: skip
NOT_PRINTABLE = [
    "", "\0", "victim\0", "\x7f", "a\x7fb", "\r\n", "a\nb", "\r\nFLUSHALL\r\n", "\t", "\x1b[2J", "\x85", "\u2028", "\xa0",
    "\u200b", "\u202evictim", "\ufeff", "\ud800", "\udcff", "x" * 257, "\U0001f600" * 257,
]  # fmt: skip
printable = st.characters(categories=("L", "M", "N", "P", "S"), include_characters=" ")
ids = st.one_of(st.text(printable, min_size=1), st.sampled_from(HOSTILE))
names = st.builds(Name, st.one_of(st.just(""), ids), ids)
PREFIX = "rxdelta"
EPOCH, OTHER = "0123456789abcdef", "fedcba9876543210"


def shown(name: object) -> str:
    """A name in the name of a test."""
    return ascii(name)[:20]


def keys_of(name: Name) -> list[bytes]:
    """All keys that a name leads to, in two publications."""
    keys = Keys.of(PREFIX, *name)
    return [keys.head, *(key for epoch in (EPOCH, OTHER) for key in (keys.log(epoch), keys.own(epoch)))]


# The keys.


@given(ids)
def test_these_are_ids(id: str) -> None:
    assert id.isprintable()


@promised("Nobody reaches a stream")
@given(names, names)
def test_no_key_of_a_name_is_one_of_another(one: Name, other: Name) -> None:
    assert len({*keys_of(one)}) == 5
    if one != other:
        assert not {*keys_of(one)} & {*keys_of(other)}


@given(names, st.integers(0, 15), ids)
def test_no_key_of_a_name_is_an_index_or_an_inbox(name: Name, tag: int, tenant: str) -> None:
    indexes = {names_key(PREFIX, tag, each) for each in ("", tenant, name.tenant, name.id)}
    inboxes = {inbox_key(PREFIX, tag, each) for each in (EPOCH, OTHER)}
    assert not {*keys_of(name)} & (indexes | inboxes)
    assert not indexes & inboxes


@given(names)
def test_a_key_has_one_hash_tag_and_nothing_that_ends_a_line_or_is_a_pattern(name: Name) -> None:
    keys = Keys.of(PREFIX, *name)
    for key in keys_of(name):
        written = key.decode("ascii")
        assert written.startswith(f"{{{PREFIX}:{keys.tag}}}:")
        assert not set(written[1:].partition("}")[2]) & set("{}*?[]\\^\"' \r\n\0")


@given(names, st.integers(0, 10**16 - 1))
def test_an_index_gives_the_id_back(name: Name, began: int) -> None:
    member = f"{began:016}:{Keys.of(PREFIX, *name).id}".encode()
    assert id_of(member) == (f"{began:016}", name.id)


# Streams.


async def words(relay: Relay, stream_id: str) -> str:
    message = await rd.last_value(relay.watch(stream_id).pipe(rd.scan_deltas(), rd.to_message()))
    return message.text


@says("No id, whatever")
@pytest.mark.parametrize("tenant", [None, "*", "{}:%/", "\U0001f600" * 256], ids=shown)
def test_each_id_is_a_stream_of_its_own(open_relay: Opener, tenant: str | None) -> None:
    async def main() -> None:
        async with open_relay(lease=30) as whole:
            relay = whole if tenant is None else whole.scope(tenant)
            victim = rx.concat(rx.from_iterable(turn(text(0, "victim"))), rx.never())
            await relay.start("victim", victim)
            for number, name in enumerate(HOSTILE):
                assert not await relay.is_live(name)
                assert not await relay.cancel(name)
                assert not await relay.delete(name)
                assert await relay.start(name, rx.from_iterable(turn(text(0, str(number)))))
            assert await relay.streams() == ["victim", *HOSTILE]
            for number, name in enumerate(HOSTILE):
                assert await words(relay, name) == str(number)
                assert not await relay.is_live(name)
                assert not await relay.cancel(name, "mine")
            for name in HOSTILE:
                assert await relay.delete(name)
            assert await relay.streams() == ["victim"]
            assert await relay.is_live("victim")

    run(main)


@pytest.mark.parametrize("name", NOT_PRINTABLE, ids=shown)
def test_what_is_no_name_is_refused_by_each_call(open_relay: Opener, name: str) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            for call in (relay.watch, relay.entries, relay.publish, relay.scope):
                with pytest.raises(rd.InvalidValueError):
                    call(name)
            for ask in (relay.is_live, relay.cancel, relay.delete):
                with pytest.raises(rd.InvalidValueError):
                    await ask(name)
            with pytest.raises(rd.InvalidValueError):
                await relay.start(name, rx.empty())

    run(main)


# The server.


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[Any]:
    client = redis.Redis.from_url(url.replace("valkey:", "redis:"))
    try:
        yield client
    finally:
        await client.aclose()


async def everything(client: Any, prefix: str) -> dict[bytes, bytes]:
    """What is on the server without this prefix."""
    ours = f"{{{prefix}:".encode()
    found = [key async for key in client.scan_iter() if not key.startswith(ours)]
    return {key: await client.dump(key) for key in found if b"}:" not in key.partition(b"{test-")[2]}


async def use_each(relay: Relay, name: str) -> None:
    """Every call there is."""
    await relay.start(name, rx.never())
    await relay.is_live(name)
    await relay.streams()
    relay.watch(name).subscribe(on_error=lambda _: None).dispose()
    await relay.cancel(name, name)
    await relay.delete(name)


@says("No id, whatever")
def test_no_id_changes_what_belongs_to_others(valkey_url: str) -> None:
    """Neither other keys of the server, nor other streams, nor the relay's own bookkeeping of them."""
    prefix = f"test-{token_hex(4)}"

    async def main() -> None:
        async with client_of(valkey_url) as client, Relay.open(valkey_url, prefix=prefix) as relay:
            others = {f"other:{name}": name for name in HOSTILE} | {"victim": "x", "constructor": "x"}
            await client.mset(others)
            done = relay.scope("ann")
            await done.start("victim", rx.from_iterable(turn(text(0, "victim"))))
            assert await words(done, "victim") == "victim"
            own = [key async for key in client.scan_iter(f"{{{prefix}:*/victim")]
            assert len(own) == 2  # the head and the log
            kept = {key: await client.dump(key) for key in own}
            before = await everything(client, prefix)
            for tenant in (None, "bob", "ann/victim", "*"):
                scoped = relay if tenant is None else relay.scope(tenant)
                names = [*HOSTILE, *(key.decode() for key in own)]
                await asyncio.gather(*(use_each(scoped, name) for name in names))
            assert await everything(client, prefix) == before
            assert {key: await client.dump(key) for key in own} == kept
            assert await done.streams() == ["victim"]
            await client.delete(*others)

    run(main)


@says("No id, whatever")
def test_a_command_has_an_id_only_as_a_part_of_its_own_keys(valkey_url: str) -> None:
    """`MONITOR` shows all that a server is told."""
    prefix, canary = f"test-{token_hex(4)}", "c*{}:%/n"
    encoded = canary.replace("%", "%25")
    for character in "*{}:/":
        encoded = encoded.replace(character, f"%{ord(character):02X}")

    async def main() -> None:
        async with client_of(valkey_url) as client, Relay.open(valkey_url, prefix=prefix) as relay:
            scoped, told = relay.scope(canary), list[str]()
            async with client.monitor() as monitor:
                await use_each(scoped, canary)
                await client.echo(f"end of {prefix}")
                async for command in monitor.listen():
                    told.append(command["command"])
                    if f"end of {prefix}" in told[-1]:
                        break
            full = re.escape(f"{encoded}/{encoded}")
            key = rf"\{{{prefix}:\d+\}}:(head:{full}|(log|own):[0-9a-f]{{16}}:{full}|names:{re.escape(encoded)})"
            seen = {word.strip('"') for command in told for word in command.split(" ") if encoded in word}
            assert [
                word for word in seen if not re.fullmatch(rf"{key}|(\d{{16}}:)?{re.escape(encoded)}", word)
            ] == []
            assert sum(word.endswith(f"{encoded}/{encoded}") for word in seen) == 3
            # As it is, the id is only the reason that `use_each` gives, which is a value.
            bare = {word for command in told for word in command.split(" ") if canary in word}
            assert len(bare) <= 2
            assert not any("{" + prefix in word for word in bare)

    run(main)


@says("A refusal is the same")
def test_who_is_refused_asks_the_server_for_nothing(valkey_url: str) -> None:
    prefix = f"test-{token_hex(4)}"

    async def main() -> None:
        async with client_of(valkey_url) as client, Relay.open(valkey_url, prefix=prefix, lease=60) as relay:
            await relay.start("chat", rx.from_iterable(turn(text(0, "Hello"))))
            await words(relay, "chat")
            scoped = relay.scope(allow=lambda *_: False)
            async with client.monitor() as monitor:
                for _ in range(2):
                    for call in (
                        scoped.start("chat", rx.never()),
                        scoped.is_live("chat"),
                        scoped.cancel("chat"),
                        scoped.delete("chat"),
                        rd.for_each(scoped.watch("chat"), print),
                        rd.for_each(scoped.entries("chat"), print),
                        rd.for_each(rx.never().pipe(scoped.publish("chat")), print),
                    ):
                        with pytest.raises(rd.errors.AccessDeniedError):
                            await call
                    await asyncio.sleep(0.02)
                await client.echo(f"end of {prefix}")
                told = list[str]()
                async for command in monitor.listen():
                    told.append(command["command"])
                    if f"end of {prefix}" in told[-1]:
                        break
            assert [command for command in told if "/chat" in command] == []

    run(main)
