"""Real clients over a real connection: what they do when it stalls, breaks, refuses, or is left.

httpx with `parse_sse`, the OpenAI and the Anthropic SDK, each asynchronous and synchronous. Nothing goes by the clock:
a stall is the server's silence, and the time that passes meanwhile is virtual.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from reactivex.testing import TestScheduler
from support.http_server import Reply, Server
from support.loops import run
from support.replies import REPLIES

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from reactivex import Observable

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

MESSAGES: list[Any] = [{"role": "user", "content": "Look."}]
TEXT = "Le café — là."  # two characters of two bytes, one of three
WHOLE = {
    "openai": {"messages": MESSAGES, "model": "small"},
    "anthropic": {"messages": MESSAGES, "model": "small", "max_tokens": 9},
}


class Client:
    """One of the clients: how it asks the server, and how it is closed."""

    def __init__(self, name: str, url: str) -> None:
        vendor, _, how = name.partition(" ")
        self.format = "anthropic-messages" if vendor == "anthropic" else "openai-chat"
        self.asynchronous = how != "sync"
        self._vendor = vendor
        self._url = url
        self._sdk: Any = None
        if vendor == "openai":
            made = openai.AsyncOpenAI if self.asynchronous else openai.OpenAI
            self._sdk = made(api_key="x", base_url=url, max_retries=0)
        elif vendor == "anthropic":
            made = anthropic.AsyncAnthropic if self.asynchronous else anthropic.Anthropic
            self._sdk = made(api_key="x", base_url=url, max_retries=0)

    def chunks(self) -> Observable[Any]:
        door: Any = rd.from_async_iterable if self.asynchronous else rd.from_iterable
        if self._sdk is None:
            return door(self._bytes if self.asynchronous else self._blocking_bytes).pipe(rd.parse_sse())  # type: ignore[no-any-return]
        create = self._sdk.chat.completions.create if self._vendor == "openai" else self._sdk.messages.create
        return door(lambda: create(stream=True, **WHOLE[self._vendor]))  # type: ignore[no-any-return]

    def events(self) -> Observable[rd.Event]:
        return self.chunks().pipe(rd.decode(self.format))

    async def _bytes(self) -> AsyncIterator[bytes]:
        async with httpx.AsyncClient() as client, client.stream("POST", self._url, json={}) as response:
            response.raise_for_status()
            async for piece in response.aiter_bytes():
                yield piece

    def _blocking_bytes(self) -> Iterator[bytes]:
        with httpx.Client() as client, client.stream("POST", self._url, json={}) as response:
            response.raise_for_status()
            yield from response.iter_bytes()

    async def close(self) -> None:
        if self.asynchronous and self._sdk is not None:
            await self._sdk.close()
        else:
            self.close_sync()

    def close_sync(self) -> None:
        if self._sdk is not None:
            self._sdk.close()


NAMES = [f"{vendor}{how}" for vendor in ("httpx", "openai", "anthropic") for how in ("", " sync")]
CLIENTS = pytest.mark.parametrize("name", NAMES)


def told(name: str) -> list[dict[str, Any]]:
    """The reply as the server tells it, with letters that need more than a byte."""
    chunks: Any = REPLIES["anthropic-messages" if name.startswith("anthropic") else "openai-chat"]
    return json.loads(json.dumps(chunks).replace("Let me ", "Le café — ").replace("look.", "là."))  # type: ignore[no-any-return]


def pieces(name: str, until: str | None = None) -> list[bytes]:
    """The body, a record a piece; up to and with the one that holds `until`."""
    body = []
    for chunk in told(name):
        kind = f"event: {chunk['type']}\n" if "type" in chunk else ""
        body.append(f"{kind}data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
        if until is not None and until in body[-1].decode():
            return body
    return body if name.startswith("anthropic") else [*body, b"data: [DONE]\n\n"]


def cut(name: str) -> list[bytes]:
    """The body up to the middle of the last character of the second piece of text."""
    *whole, last = pieces(name, "là.")
    return [*whole, last[: last.index("à".encode()) + 1]]


def with_server(name: str, *replies: Reply, main: Callable[[Client, Server], Awaitable[None]]) -> None:
    """Run `main` on a loop, so that neither side keeps anything."""
    with Server(*replies) as server:

        async def whole() -> None:
            client = Client(name, server.url)
            try:
                await main(client, server)
            finally:
                await client.close()

        run(whole)


async def left(server: Server) -> bool:
    return await asyncio.to_thread(server.was_left)


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


# It streams.


@CLIENTS
@pytest.mark.parametrize("size", [None, 1, 7])
def test_the_reply_however_the_body_is_cut(name: str, size: int | None) -> None:
    body = b"".join(pieces(name))
    sent = pieces(name) if size is None else [body[at : at + size] for at in range(0, len(body), size)]

    async def main(client: Client, server: Server) -> None:
        message = await rd.last_value(client.events().pipe(rd.scan_deltas(), rd.to_message()))
        assert message.text == TEXT
        assert [call.arguments for call in message.tool_calls] == [{"at": "sea"}]
        assert message.usage is not None
        assert message.usage.output_tokens == 5

    with_server(name, Reply(sent), main=main)


@CLIENTS
def test_one_client_asks_twice_and_the_first_reply_is_no_longer_held(name: str) -> None:
    async def main(client: Client, server: Server) -> None:
        for _ in range(2):
            assert (await rd.last_value(client.events().pipe(rd.scan_deltas()))).text == TEXT
        assert len(server.requests) == 2

    with_server(name, Reply(pieces(name)), main=main)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("sync")])
def test_without_asyncio(name: str) -> None:
    known = set(threading.enumerate())
    with Server(Reply(pieces(name))) as server, ExitStack() as after:
        client = Client(name, server.url)
        after.callback(client.close_sync)
        with rd.to_iterable(client.events().pipe(rd.scan_deltas()), "buffer") as values:
            *_, last = values
        assert (last.text, last.status) == (TEXT, "complete")
    assert set(threading.enumerate()) <= known


@pytest.mark.parametrize("name", ["openai sync", "anthropic sync"])
@pytest.mark.parametrize("how", ["to_iterable", "subscribe"])
def test_leaving_without_asyncio_closes_the_connection(name: str, how: str) -> None:
    with Server(Reply(pieces(name, "café"), "stall")) as server, ExitStack() as after:
        client = Client(name, server.url)
        after.callback(client.close_sync)
        snapshots = client.events().pipe(rd.scan_deltas())
        if how == "to_iterable":
            with rd.to_iterable(snapshots, "buffer") as values:
                assert next(snapshot for snapshot in values if snapshot.text).text == "Le café — "
        else:
            spoke = threading.Event()
            subscription = snapshots.subscribe(lambda snapshot: spoke.set() if snapshot.text else None)
            assert spoke.wait(30)
            subscription.dispose()
        assert server.was_left()


# It breaks.


@CLIENTS
def test_a_connection_that_drops_inside_a_character_leaves_what_had_come(name: str) -> None:
    async def main(client: Client, server: Server) -> None:
        drawn: list[rd.Snapshot] = []
        with pytest.raises(rd.StreamInterrupted) as raised:
            await rd.for_each(client.events().pipe(rd.scan_deltas(), rd.throttle_latest(3600)), drawn.append)
        cause = raised.value.__cause__
        assert cause is not None
        assert type(cause).__name__ in ("RemoteProtocolError", "APIConnectionError")
        assert rd.errors.is_transient(raised.value)
        assert raised.value.snapshot is drawn[-1]
        assert (drawn[-1].text, drawn[-1].status) == ("Le café — ", "incomplete")
        assert "\ufffd" not in drawn[-1].text

    with_server(name, Reply(cut(name), "drop"), main=main)


@CLIENTS
def test_the_error_shows_the_frames_of_the_client(name: str) -> None:
    async def main(client: Client, server: Server) -> None:
        with pytest.raises(Exception, match=r".") as raised:
            await rd.last_value(client.chunks())
        files = {entry.path.parts[-2] if hasattr(entry.path, "parts") else "" for entry in raised.traceback}
        module = type(raised.value).__module__.partition(".")[0]
        assert module in files

    with_server(name, Reply(cut(name), "drop"), main=main)


@CLIENTS
@pytest.mark.parametrize(
    ("status", "passes"), [(400, False), (401, False), (429, True), (500, True), (529, True)]
)
def test_a_refusal_is_an_error_with_its_cause(name: str, status: int, passes: bool) -> None:
    refusal = json.dumps({"type": "error", "error": {"type": "some_error", "message": "No."}}).encode()

    async def main(client: Client, server: Server) -> None:
        with pytest.raises(rd.StreamInterrupted) as raised:
            await rd.last_value(client.events().pipe(rd.scan_deltas()))
        cause: Any = raised.value.__cause__
        assert cause.response.status_code == status
        assert rd.errors.is_transient(raised.value) is passes
        assert raised.value.snapshot is not None

    with_server(name, Reply([refusal], status=status, kind="application/json"), main=main)


# It stalls, and is left: the connection closes, and the server sees it.

BREAKABLE = pytest.mark.parametrize("name", [name for name in NAMES if name != "httpx sync"])


@BREAKABLE
def test_a_stall_is_noticed_and_closes_the_connection(name: str) -> None:
    async def main(client: Client, server: Server) -> None:
        time = TestScheduler()
        events = client.chunks().pipe(rd.stall_timeout(idle=30, scheduler=time), rd.decode(client.format))
        drawn: list[str] = []
        drawing = asyncio.ensure_future(
            rd.for_each(events.pipe(rd.scan_deltas()), lambda snapshot: drawn.append(snapshot.text))
        )
        await until(lambda: drawn and drawn[-1])
        time.advance_by(29)
        assert not drawing.done()
        time.advance_by(2)
        with pytest.raises(rd.errors.StallTimeoutError) as raised:
            await drawing
        assert raised.value.snapshot is not None
        assert raised.value.snapshot.text == "Le café — "
        assert await left(server)

    with_server(name, Reply(pieces(name, "café"), "stall"), main=main)


@BREAKABLE
@pytest.mark.parametrize("how", ["cancel", "break", "dispose", "first_value"])
def test_54_leaving_closes_the_connection(name: str, how: str) -> None:
    async def main(client: Client, server: Server) -> None:
        before = asyncio.all_tasks()
        snapshots = client.events().pipe(rd.scan_deltas())
        seen: list[str] = []

        def draw(snapshot: rd.Snapshot) -> None:
            seen.append(snapshot.text)

        if how == "cancel":
            drawing = asyncio.ensure_future(rd.for_each(snapshots, draw))
            await until(lambda: seen and seen[-1])
            drawing.cancel()
            await asyncio.wait([drawing])
        elif how == "break":
            async with rd.to_async_iterable(snapshots, "block", maxsize=1) as values:
                async for snapshot in values:
                    if snapshot.text:
                        break
        elif how == "dispose":
            subscription = snapshots.subscribe(draw)
            await until(lambda: seen and seen[-1])
            await asyncio.to_thread(subscription.dispose)
        else:
            await rd.first_value(snapshots)
        assert await left(server)
        if how == "dispose":
            await until(lambda: asyncio.all_tasks() <= before)

    with_server(name, Reply(pieces(name, "café"), "stall"), main=main)


@BREAKABLE
def test_leaving_before_the_server_has_answered(name: str) -> None:
    async def main(client: Client, server: Server) -> None:
        reading = asyncio.ensure_future(rd.last_value(client.events()))
        await until(lambda: server.requests)
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled()
        assert await left(server)

    if not name.endswith("sync"):  # a request that blocks can't be broken off before it is answered
        with_server(name, Reply([], "stall"), main=main)


@BREAKABLE
def test_the_last_of_two_readers_closes_the_connection(name: str) -> None:
    async def main(client: Client, server: Server) -> None:
        shared = client.events().pipe(rd.share_events())
        async with rd.to_async_iterable(shared.pipe(rd.scan_deltas())) as one:
            async with rd.to_async_iterable(shared.pipe(rd.scan_deltas())) as other:
                assert (await anext(one)).role == (await anext(other)).role
            assert server.open == 1
        assert await left(server)
        assert len(server.requests) == 1

    with_server(name, Reply(pieces(name, "café"), "stall"), main=main)
