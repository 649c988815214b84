"""What a relay keeps on a server, as lines of a file: for a test that reads for good what this version has written.

    python -m relay.server.stored_form tests/relay/server/stored/format_1.jsonl

writes such a file. A file of a released version is never written again.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import reactivex as rx
import redis
from support.cutting_proxy import CuttingProxy
from support.runs import text, turn
from support.valkey_servers import ValkeyServer, running

import rxdelta as rd
from rxdelta.core.events import EVENT_TYPES
from rxdelta.relay import Relay

__all__ = ["LEASE", "PREFIX", "STREAMS", "client", "load", "stored"]

ev = rd.events
PREFIX, TENANT, LEASE = "golden", "a/tenant", 0.5
HELLO = turn(text(0, "Hello"))
EVERY: list[rd.Event] = [
    ev.MessageStart("m1", "small", rd.TokenUsage(1, 2), {"of": "the application"}),
    ev.BlockStart(0, {"type": "reasoning"}),
    ev.ReasoningDelta(0, "hm"),
    ev.ReasoningDelta(0, "m"),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "text"}, run_id="a"),
    ev.TextDelta(1, "in a run", run_id="a"),
    ev.TextDelta(1, "of choice 2", choice=2),
    ev.BlockStart(2, {"type": "tool_call", "id": "c1", "name": "look"}),
    ev.ToolCallDelta(2, '{"at": '),
    ev.ToolCallDelta(2, "1}"),
    ev.BlockFinish(2),
    ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", {"found": [1, 2.5, None]})),
    ev.BlockStart(3, {"type": "data", "media_type": "image/png"}),
    ev.DataDelta(3, "iVBO"),
    ev.DataDelta(3, "Rw0K"),
    ev.BlockDelta(3, {"media_type": "image/png"}),
    ev.BlockFinish(3),
    ev.StreamError("busy", "overloaded_error", "529", transient=True),
    ev.UsageUpdate(rd.TokenUsage(3, 4)),
    ev.AttemptReset(1, "again"),
    ev.ProviderEvent("made-up", "citation", {"url": "https://example.com"}),
    ev.Custom("note", {"a": [1, "é", None]}, "n1"),
    ev.Custom("status", "looking", transient=True),
    ev.MessageFinish("stop", "end_turn", rd.TokenUsage(5, 6)),
    ev.MessageInterrupted("by the source"),
]
assert {type(event) for event in EVERY} == set(EVENT_TYPES)
ODD: list[rd.Event] = [
    ev.Custom("big", 10**30),
    ev.TextDelta(0, "\ud83d"),
    ev.TextDelta(0, "\ude00"),
    ev.Custom("big", -(2**63)),
]
BUSY = rd.ProviderError("busy", type="overloaded_error", code="529", transient=True)

STREAMS: dict[str, tuple[list[rd.Event], str | None]] = {
    "every": (EVERY, None),
    "one by one": (HELLO, None),
    "odd": (ODD, None),
    "empty": ([], None),
    "failed": (HELLO[:4], "ProviderError"),
    "masked": (HELLO[:4], "StreamInterrupted"),
    "stopped": ([*HELLO[:4], ev.MessageInterrupted("enough")], None),
    "dead": (HELLO[:4], "StreamInterrupted"),
    "of a tenant: 100%/é": (HELLO, None),
}
"""By stream: its events, and the kind of the error at its end."""


def client(server: ValkeyServer) -> Any:
    return redis.Redis(port=server.port)


def stored(server: ValkeyServer) -> Iterator[dict[str, Any]]:
    """All keys of the relay, without the messages of processes."""
    with client(server) as bare:
        for key in sorted(bare.keys()):
            kind = bare.type(key).decode()
            if b":inbox:" in key:
                continue
            if kind == "stream":
                value: Any = [[entry.decode(), _packed(fields)] for entry, fields in bare.xrange(key)]
            elif kind == "hash":
                value = _packed(bare.hgetall(key))
            else:
                value = sorted(member.decode() for member in bare.zrange(key, 0, -1))
            yield {"key": key.decode(), "type": kind, "value": value}


def _packed(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): b64encode(value).decode() for name, value in fields.items()}


def load(server: ValkeyServer, lines: list[dict[str, Any]], more: dict[str, str] | None = None) -> None:
    """Put them onto a server, with more fields in each entry and hash."""
    soon = round(time.time() * 1000) + 3_600_000
    with client(server) as bare:
        for line in lines:
            key, value = line["key"], line["value"]
            if line["type"] == "stream":
                for entry, fields in value:
                    bare.xadd(key, {**_unpacked(fields), **(more or {})}, id=entry)
            elif line["type"] == "hash":
                bare.hset(key, mapping={**_unpacked(value), **(more or {})})
            else:
                bare.zadd(key, dict.fromkeys(value, soon))


def _unpacked(fields: dict[str, str]) -> dict[str, bytes]:
    return {name: b64decode(value) for name, value in fields.items()}


async def _publish(server: ValkeyServer) -> None:
    options: Any = {"prefix": PREFIX, "lease": LEASE, "patience": 1.0}
    async with (
        CuttingProxy(server.port) as proxy,
        Relay.open(f"valkey://127.0.0.1:{proxy.port}", **options) as dying,
        Relay.open(server.url, **options) as relay,
    ):
        for name, (events, _) in STREAMS.items():
            here = relay.scope(TENANT) if "tenant" in name else dying if name == "dead" else relay
            source: Any = rx.from_iterable(events)
            if name == "one by one":
                source = rx.timer(0, 0.02).pipe(
                    rx.operators.zip(source), rx.operators.map(lambda pair: pair[1])
                )
            elif name == "failed":
                source = rx.concat(source, rx.throw(BUSY))
            elif name == "masked":
                source = rx.concat(source, rx.throw(RuntimeError("secret")))
            elif name == "stopped":
                source = rx.concat(rx.from_iterable(events[:-1]), rx.never())
            elif name == "dead":
                source = rx.concat(source, rx.never())
            if name in ("failed", "masked"):
                with suppress(rd.ProviderError, RuntimeError):
                    await rd.for_each(source.pipe(here.publish(name)), lambda _: None)
            else:
                await here.start(name, source)
        await asyncio.sleep(1)
        await relay.cancel("stopped", "enough")
        await asyncio.sleep(0.5)
        proxy.is_down = True
        proxy.cut()
        with suppress(rd.StreamInterrupted):
            await rd.for_each(relay.watch("dead"), lambda _: None)


def write(path: Path) -> None:
    with running() as server:
        asyncio.run(_publish(server))
        lines = [json.dumps(line, ensure_ascii=False) for line in stored(server)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
