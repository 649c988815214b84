"""Requests of HTTP: methods, ids, other origins."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import reactivex as rx
from support.front_end_bodies import (
    BEGUN,
    ENDED,
)
from support.loops import run
from support.security_page import says

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

routing = pytest.importorskip("starlette.routing")
requests = pytest.importorskip("starlette.requests")


async def sent(response: Any, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """What a response of ASGI sends."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await response({"type": "http", "method": method, "headers": given}, asyncio.Event().wait, send)
    head = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return messages[0]["status"], head, b"".join(message.get("body", b"") for message in messages)


@says("A HEAD starts no request", "A plain `StreamingResponse` does")
def test_head_starts_no_request() -> None:
    from starlette.responses import StreamingResponse

    from rxdelta.asgi import EventStreamResponse, RelayResponse

    async def main() -> None:
        asked: list[int] = []
        events = rx.defer(lambda _: asked.append(1) or rx.from_iterable([*BEGUN, *ENDED]))
        status, _, body = await sent(EventStreamResponse(events, rd.to_ai_sdk()), "HEAD")
        assert (status, body, asked) == (200, b"", [])
        async with Relay.open() as relay:
            await relay.start("s", events)
            assert await rd.last_value(relay.watch("s"))
            assert asked == [1]
            for _ in range(2):
                status, _, body = await sent(RelayResponse(relay, "s", rd.to_ai_sdk()), "HEAD")
                assert (status, body, asked) == (200, b"", [1])
        frames = rd.iterate(events.pipe(rd.to_ai_sdk(), rd.to_sse()))
        await sent(StreamingResponse(frames), "HEAD")
        assert asked == [1, 1]

    run(main)


@says("A `Last-Event-ID`", "A relay's stream id is a name", "**Another tenant.**")
def test_an_id_leads_to_no_other_stream_and_a_name_to_its_own_for_everybody() -> None:
    from rxdelta.asgi import RelayResponse

    async def main() -> None:
        async with Relay.open() as relay:
            for name in ("mine", "yours"):
                events = [*BEGUN, ev.TextDelta(0, name), *ENDED]
                await relay.start(name, rx.from_iterable(events))
            ids = {
                name: [entry.id async for entry in rd.iterate(relay.entries(name))]
                for name in ("mine", "yours")
            }
            number = ids["mine"][0].partition("-")[2]
            for hostile in (
                "0",
                "-1",
                "../yours",
                f"{'0' * 16}-{number}",
                f"{ids['mine'][0]}0000",
                ids["yours"][0],
            ):
                response = RelayResponse(relay, "mine", rd.to_ai_sdk())
                status, _, body = await sent(response, last_event_id=hostile)
                assert (status, b"yours" in body, hostile.encode() in body) == (400, False, False)
            _, _, body = await sent(RelayResponse(relay, "yours", rd.to_ai_sdk()))
            assert b"yours" in body
            refusing = relay.scope(allow=lambda _action, stream_id: stream_id != "yours")
            status, _, body = await sent(RelayResponse(refusing, "yours", rd.to_ai_sdk()))
            assert (status, b"yours" in body) == (403, False)

    run(main)


@says("The responses have no CORS header", "But it can send a POST")
def test_another_origin_reads_nothing_and_may_send_all_the_same() -> None:
    from starlette.applications import Starlette

    from rxdelta.asgi import EventStreamResponse, RelayResponse

    asked: list[str] = []

    async def chat(request: Any) -> Any:
        asked.append(json.loads(await request.body())["question"])
        return EventStreamResponse(rx.from_iterable([*BEGUN, *ENDED]), rd.to_ai_sdk())

    async def main() -> None:
        app = Starlette(routes=[routing.Route("/", chat, methods=["POST"])])
        messages: list[Any] = []

        async def send(message: Any) -> None:
            messages.append(message)

        body = [{"type": "http.request", "body": b'{"question": "paid?"}'}]
        gone = asyncio.Event()

        async def receive() -> Any:
            return body.pop() if body else await gone.wait()

        headers = [(b"origin", b"https://evil.example"), (b"content-type", b"text/plain")]
        scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
        await app(scope, receive, send)
        names = {name.decode() for name, _ in messages[0]["headers"]}
        async with Relay.open() as relay:
            await relay.start("s", rx.from_iterable([*BEGUN, *ENDED]))
            status, of_relay, _ = await sent(
                RelayResponse(relay, "s", rd.to_ai_sdk()), origin="https://evil.example"
            )
            assert status == 200
        assert not any(name.startswith("access-control") for name in names | of_relay.keys())
        assert asked == ["paid?"]

    run(main)
