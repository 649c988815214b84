"""A store that is closed while its server goes away and comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("redis")

from rxdelta.relay.store import LogKey, Terms
from rxdelta.relay.valkey.store import ValkeyStore


def test_a_store_closes_also_when_an_inbox_fails_meanwhile(
    valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        store = ValkeyStore(valkey_url)
        await store.open(Terms(lease=10.0, keep=60.0, patience=10.0))
        assert await store.begin(LogKey("", "reply", "0" * 16)) is None
        call = store._call

        async def answered_late(tag: int, *more: Any) -> Any:
            answer = await call(tag, *more)
            store._inboxes.discard(tag)  # as when the inbox couldn't be read for longer than the patience
            return answer

        monkeypatch.setattr(store, "_call", answered_late)
        await store.close()

    asyncio.run(main())
