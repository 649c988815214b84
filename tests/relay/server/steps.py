"""Connections to a store, and appends to lists as the relay does them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rxdelta.relay.valkey.calls import Script
from rxdelta.relay.valkey.connections import Connections

__all__ = ["STEP", "opened", "up_to"]

STEP = Script("""
    local number, have = tonumber(ARGV[1]), redis.call('LLEN', KEYS[1])
    redis.call('SET', KEYS[2], number)
    if number > have + 1 then return 'gap' end
    if number <= have then return 'there' end
    redis.call('RPUSH', KEYS[1], number)
    if KEYS[3] then redis.call('XADD', KEYS[3], number .. '-0', 'n', number) end
    return 'done'
""")
"""An append of the next number: safe to run twice, and it sees what is missing before it. Its keys: the list, the number that
came last, and perhaps a stream for those who read."""


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[Connections]:
    connections = await Connections.open(url, **{"patience": 30.0, **settings})
    try:
        yield connections
    finally:
        await connections.aclose()


def up_to(count: int) -> list[str]:
    """What a list has after so many appends."""
    return [str(number) for number in range(1, count + 1)]
