"""What the checkers infer of the relay. Never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_type

from reactivex import Observable

import rxdelta as rd
from rxdelta.relay import Entry, Relay


async def relaying(events: Observable[rd.Event]) -> None:
    async with Relay.open(lease=5, keep=60, max_events=1000) as relay:
        assert_type(relay, Relay)
        assert_type(relay.publish("chat"), Callable[[Observable[rd.Event]], Observable[rd.Event]])
        assert_type(events.pipe(relay.publish("chat"), rd.scan_deltas()), Observable[rd.Snapshot])
        assert_type(relay.watch("chat"), Observable[rd.Event])
        assert_type(relay.watch("chat", "id").pipe(rd.scan_deltas(), rd.to_message()), Observable[rd.Message])
        assert_type(relay.entries("chat", after=None, split_at="id"), Observable[Entry])
        entry = await rd.first_value(relay.entries("chat"))
        assert_type(entry.id, str)
        assert_type(entry.event, rd.Event)
        assert_type(await relay.start("chat", events), bool)
        assert_type(await relay.cancel("chat", "enough"), bool)
        assert_type(await relay.is_live("chat"), bool)
        assert_type(await relay.streams(), list[str])
        assert_type(await relay.delete("chat"), bool)


class Users:
    def may(self, action: str, stream_id: str) -> bool:
        return action == "watch" and stream_id != "secret"


async def may_later(action: Literal["publish", "watch", "cancel", "delete"], stream_id: str) -> bool:
    return action == "watch" and stream_id != "secret"


async def may_not_be_asked(stream_id: str) -> bool:
    return stream_id != "secret"


def scoping(relay: Relay, tenant: str | None) -> None:
    assert_type(relay.scope("acme"), Relay)
    assert_type(relay.scope("acme", allow=Users().may).scope(allow=may_later), Relay)
    assert_type(relay.scope(allow=lambda action, stream_id: action == "watch" or stream_id == "lobby"), Relay)
    relay.scope()  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    relay.scope(tenant)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    relay.scope("acme", allow=may_not_be_asked)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def encrypting(encrypt: Callable[[bytes], bytes], decrypt: Callable[[bytes | str], bytes]) -> None:
    async with Relay.open("valkey://localhost", encrypt=encrypt, decrypt=decrypt) as relay:
        assert_type(relay, Relay)
    Relay.open(encrypt=str.encode, decrypt=decrypt)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
