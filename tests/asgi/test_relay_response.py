"""`RelayResponse`: a reply that goes on without its readers, and readers that come back, on a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.encoded import encoded
from support.loops import run
from support.security_page import says
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.asgi import RelayResponse, end_streams
from rxdelta.operators.edges.encode import made_id
from rxdelta.relay import Relay

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
starlette = pytest.importorskip("starlette.applications")
routing = pytest.importorskip("starlette.routing")

BEGUN = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]
ENDED = [ev.BlockFinish(0), ev.MessageFinish("stop")]
EVENT_SOURCE = {"accept": "text/event-stream"}


def wire() -> Any:
    return ops.map(lambda event: event.to_dict())


class Model:
    """A reply that a test continues word by word."""

    def __init__(self) -> None:
        self.words: asyncio.Queue[str | None] = asyncio.Queue()
        self.asked = 0
        self.closed = asyncio.Event()

    def say(self, *words: str | None) -> None:
        for word in words:
            self.words.put_nowait(word)

    async def _reply(self) -> AsyncIterator[rd.Event]:
        self.asked += 1
        try:
            for event in BEGUN:
                yield event
            while (word := await self.words.get()) is not None:
                yield ev.TextDelta(0, word)
            for event in ENDED:
                yield event
        finally:
            self.closed.set()

    @property
    def events(self) -> Any:
        return rd.from_async_iterable(self._reply)


class Reading:
    """A response's body, as far as it has come."""

    def __init__(self, response: Any) -> None:
        self.status = response.status_code
        self.body = ""
        self._pieces = response.aiter_text()

    async def until(self, text: str) -> str:
        while text not in self.body:
            self.body += await anext(self._pieces)
        return self.body

    async def end(self) -> str:
        async for piece in self._pieces:
            self.body += piece
        return self.body


class Server:
    """A server on a port of its own, which may be stopped while the relay goes on."""

    def __init__(
        self,
        endpoint: Callable[[Any], Awaitable[Any]],
        wrap: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))
        self._url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/s"
        app = starlette.Starlette(routes=[routing.Route("/s", endpoint, methods=["GET", "POST"])])
        app = app if wrap is None else wrap(app)
        how: Any = {"log_level": "critical", **options}
        config = uvicorn.Config(app, lifespan="off", access_log=False, **how)
        self.server = uvicorn.Server(config)

    async def __aenter__(self) -> Self:
        self._serving = asyncio.create_task(self.server.serve(sockets=[self._listening]))
        await until(lambda: self.server.started)
        self._client = httpx.AsyncClient(timeout=30, verify=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._client.aclose()
        self._listening.close()

    async def stop(self) -> None:
        end_streams()
        self.server.should_exit = True
        await self._serving

    @asynccontextmanager
    async def read(self, method: str = "GET", **headers: Any) -> AsyncIterator[Reading]:
        async with self._client.stream(method, self._url, headers=named(headers)) as response:
            yield Reading(response)

    async def got(self, method: str = "GET", **headers: Any) -> Any:
        return await self._client.request(method, self._url, headers=named(headers))


def named(headers: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def served(respond: Callable[[Relay], Any], **options: Any) -> AsyncIterator[tuple[Server, Relay]]:
    async with Relay.open(**{"lease": 5, **options}) as relay:

        async def endpoint(_: Any) -> Any:
            return respond(relay)

        async with Server(endpoint) as server:
            yield server, relay


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def ids(body: str) -> list[str]:
    return re.findall("^id: (.*)$", body, re.MULTILINE)


def data(body: str) -> list[str]:
    return re.findall("^data: (.*)$", body, re.MULTILINE)


def words(body: str) -> str:
    """The text of the deltas, in any of the protocols."""
    told = [json.loads(frame) for frame in data(body) if frame != "[DONE]"]
    deltas = [
        frame.get("params", {}).get("data", frame).get("delta", "")
        for frame in told
        if "choices" not in frame
    ]
    deltas += [choice["delta"].get("content", "") for frame in told for choice in frame.get("choices", ())]
    return "".join(delta if isinstance(delta, str) else delta["text"] for delta in deltas)


def ai_sdk(relay: Relay, **options: Any) -> RelayResponse:
    return RelayResponse(relay, "c1", rd.to_ai_sdk(), **options)


# Readers that leave, come late, and read together.


def test_the_reply_goes_on_without_its_reader_and_two_others_get_all_of_it() -> None:
    async def main() -> None:
        model = Model()
        async with served(ai_sdk) as (server, relay):
            assert await relay.start("c1", model.events)
            async with server.read() as first:
                model.say("Hel")
                await first.until("Hel")
            async with server.read() as second, server.read() as third:
                await second.until("Hel")
                model.say("lo", None)
                bodies = [await second.end(), await third.end()]
            late = (await server.got()).text
            assert model.asked == 1
        assert [words(body) for body in (*bodies, late)] == ["Hello"] * 3
        assert all(data(body)[-1] == "[DONE]" for body in (*bodies, late))

    run(main)


def test_a_reply_that_is_waited_for_begins_when_it_is_published() -> None:
    async def main() -> None:
        model = Model()
        async with served(ai_sdk) as (server, relay):
            waiting = asyncio.create_task(server.got())
            await until(lambda: server.server.server_state.tasks)
            await relay.start("c1", model.events)
            model.say("Hi", None)
            assert words((await waiting).text) == "Hi"

    run(main)


def test_a_slow_reader_holds_up_nobody_and_gets_all() -> None:
    async def main() -> None:
        model = Model()
        async with served(ai_sdk) as (server, relay):
            await relay.start("c1", model.events)
            async with server.read() as slow:
                await slow.until("text-start")
                model.say(*["x" * 1000] * 1000, None)
                assert len(words((await server.got()).text)) == 1_000_000
                assert not await relay.is_live("c1")
                assert len(words(await slow.end())) == 1_000_000

    run(main)


def test_a_stop_ends_all_readers_by_their_protocol() -> None:
    async def main() -> None:
        model = Model()
        async with served(ai_sdk) as (server, relay):
            await relay.start("c1", model.events)
            async with server.read() as one, server.read() as other:
                await one.until("text-start")
                await other.until("text-start")
                assert await relay.cancel("c1", "enough")
                for reading in (one, other):
                    assert data(await reading.end())[-2:] == ['{"type":"abort","reason":"enough"}', "[DONE]"]
            await model.closed.wait()

    run(main)


# Going on behind an id.


@pytest.mark.parametrize(
    "encode",
    [
        rd.to_ai_sdk,
        rd.to_ag_ui,
        lambda: encoded(lambda: rd.wire.LangChainEncoder(now=lambda: 0.0, new_id=made_id)),
        lambda: encoded(lambda: rd.wire.OpenAiChatEncoder(now=lambda: 0.0, new_id=made_id)),
        wire,
    ],
)
def test_a_reader_that_is_cut_off_behind_any_frame_gets_the_rest(encode: Callable[[], Any]) -> None:
    """The first connection is there from the start; what comes back reads a log whose deltas are joined."""

    async def main() -> None:
        model = Model()
        async with served(lambda relay: RelayResponse(relay, "c1", encode())) as (server, relay):
            await relay.start("c1", model.events)
            async with server.read() as first:
                for word in ("Hel", "lo ", "you", "."):
                    model.say(word)
                    await first.until(word)
                model.say(None)
                whole = await first.end()
            assert len(ids(whole)) >= 5
            for at in ids(whole):
                before, _, after = whole.partition(f"id: {at}\n")
                frame, _, rest = after.partition("\n\n")
                response = await server.got(last_event_id=at)
                if rest:
                    assert response.text.startswith("retry: 1000\n")
                    assert words(f"{before}{frame}\n\n{response.text}") == words(whole) == "Hello you."
                    again = ids(response.text)
                    assert again == [one for one in ids(rest) if one in again]
                    if '"Hel' not in rest and '"lo ' not in rest and '"you' not in rest:
                        assert unnumbered(response.text) == unnumbered("retry: 1000\n" + rest)
                else:
                    assert response.status_code == 204

    def unnumbered(body: str) -> str:
        return re.sub('"seq":[0-9]+', "", body)  # the number within a connection

    run(main)


def test_an_event_source_that_comes_back_while_the_reply_is_live_misses_nothing() -> None:
    async def main() -> None:
        model = Model()
        async with served(ai_sdk) as (server, relay):
            await relay.start("c1", model.events)
            async with server.read() as reading:
                model.say("Hel")
                body = await reading.until("Hel")
            model.say("lo")
            async with server.read(last_event_id=ids(body)[-1], **EVENT_SOURCE) as reading:
                await reading.until("lo")
                model.say(" you", None)
                assert words(body + await reading.end()) == "Hello you"
                assert '"start"' not in reading.body

    run(main)


def test_what_is_no_id_of_this_stream_is_refused_before_the_response_begins() -> None:
    async def main() -> None:
        async with served(ai_sdk) as (server, relay):
            for name in ("c1", "c2"):
                await relay.start(name, rx.from_iterable([*BEGUN, *ENDED]))
            own, other = [(await rd.first_value(relay.entries(name))).id for name in ("c1", "c2")]
            for given in ("nonsense", "-1", "e" * 500, "\u00e9\u00e8", f"{own}9", other, f"{own}, {own}"):
                response = await server.got(last_event_id=given.encode())
                assert (response.status_code, response.text) == (
                    400,
                    "this is no id of an event of this stream",
                )
            assert (await server.got(last_event_id=own)).status_code == 200
            assert (await server.got(last_event_id="")).text == (await server.got()).text

    run(main)


def test_an_id_of_an_earlier_stream_with_the_same_name_is_refused() -> None:
    async def main() -> None:
        async with served(ai_sdk) as (server, relay):
            found = []
            for _ in range(2):
                await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
                found.append((await rd.first_value(relay.entries("c1"))).id)
                codes = [(await server.got(last_event_id=one)).status_code for one in found]
                await relay.delete("c1")
            assert codes == [400, 200]

    run(main)


def test_the_application_may_read_the_id_from_elsewhere() -> None:
    async def main() -> None:
        found: list[str] = []
        async with served(lambda relay: ai_sdk(relay, after=found[0])) as (server, relay):
            await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
            found.append((await rd.last_value(relay.entries("c1"))).id)
            assert data((await server.got(last_event_id="nonsense")).text)[-1] == "[DONE]"

    run(main)


# What there is to read.


def test_useChat_is_told_that_nothing_is_live() -> None:
    async def main() -> None:
        model = Model()
        async with served(lambda relay: ai_sdk(relay, live_only=True)) as (server, relay):
            before = await server.got()
            await relay.start("c1", model.events)
            async with server.read() as reading:
                await reading.until("text-start")
                model.say(None)
                await reading.end()
            after = await server.got()
            rest = await server.got(last_event_id=ids(reading.body)[0])
        assert (before.status_code, reading.status, after.status_code) == (204, 200, 204)
        assert before.content == b""
        assert data(rest.text)[-1] == "[DONE]"  # who has a part of it gets the rest

    run(main)


def test_a_stream_that_nobody_publishes_is_not_found() -> None:
    async def main() -> None:
        async with served(ai_sdk, lease=0.5) as (server, _):
            response = await server.got()
            assert (response.status_code, response.headers["cache-control"]) == (404, "no-store")

    run(main)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("options", [{}, {"live_only": True}], ids=["", "live_only"])
def test_who_may_not_read_gets_one_answer_whether_there_is_such_a_stream_or_not(
    options: dict[str, Any], is_async: bool, there: bool, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def allow(action: str, stream_id: str) -> bool:
        asked.append(action)
        return False

    async def allow_later(action: str, stream_id: str) -> bool:
        await asyncio.sleep(0)
        return allow(action, stream_id)

    def respond(relay: Relay) -> RelayResponse:
        return ai_sdk(relay.scope(allow=allow_later if is_async else allow), **options)

    async def main() -> None:
        async with served(respond, lease=1000) as (server, relay):
            if there:
                model = Model()
                await relay.start("c1", model.events)
                model.say("Hi")
            last = "0123456789abcdef-1"
            for headers in (
                {},
                EVENT_SOURCE,
                {"last_event_id": last},
                {**EVENT_SOURCE, "last_event_id": last},
            ):
                for method in ("GET", "HEAD"):
                    response = await server.got(method, **headers)
                    assert (response.status_code, response.headers["cache-control"]) == (403, "no-store")
                    assert response.text == ("" if method == "HEAD" else "this stream isn't for this reader")
        assert {*asked} == {"watch"}

    run(main)
    assert caplog.text == ""


def test_a_check_that_fails_lets_nobody_in_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def allow(*_: str) -> bool:
        raise ConnectionError("the database is away, password=hunter2")

    async def main() -> None:
        async with served(lambda relay: ai_sdk(relay.scope(allow=allow))) as (server, relay):
            await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
            response = await server.got()
            assert response.status_code == 403
            assert "database" not in response.text

    run(main)
    assert "the database is away" in caplog.text
    assert {record.name for record in caplog.records} == {"rxdelta"}


def test_who_may_no_more_read_when_the_entries_are_asked_for_is_refused_too() -> None:
    answers = [True, False]

    async def main() -> None:
        async with served(lambda relay: ai_sdk(relay.scope(allow=lambda *_: answers.pop(0)))) as (
            server,
            relay,
        ):
            await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
            assert (await server.got()).status_code == 403
            assert answers == []

    run(main)


def test_who_may_read_gets_the_stream_of_the_own_tenant() -> None:
    def respond(relay: Relay) -> RelayResponse:
        return ai_sdk(relay.scope("ours", allow=lambda action, _: action == "watch"))

    async def main() -> None:
        async with served(respond) as (server, relay):
            for tenant in ("ours", "theirs"):
                model = Model()
                await relay.scope(tenant).start("c1", model.events)
                model.say(tenant, None)
            assert words((await server.got()).text) == "ours"

    run(main)


def test_behind_the_end_an_event_source_is_told_to_come_no_more() -> None:
    async def main() -> None:
        async with served(lambda relay: RelayResponse(relay, "c1", wire())) as (server, relay):
            await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
            whole = (await server.got(**EVENT_SOURCE)).text
            assert len(ids(whole)) == len(data(whole)) == 4
            assert (await server.got(last_event_id=ids(whole)[-1], **EVENT_SOURCE)).status_code == 204

    run(main)


def test_the_frames_of_the_end_come_again_because_nobody_knows_whether_they_arrived() -> None:
    async def main() -> None:
        async with served(ai_sdk) as (server, relay):
            await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
            whole = (await server.got()).text
            rest = (await server.got(last_event_id=ids(whole)[-1])).text
            assert data(rest) == data(whole)[-2:]
            assert data(rest)[-1] == "[DONE]"

    run(main)


def test_an_error_in_the_log_is_the_encoders_to_write(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with served(ai_sdk) as (server, relay):
            await relay.start("c1", rx.concat(rx.from_iterable(BEGUN), rx.throw(RuntimeError("secret"))))
            whole = (await server.got()).text
            rest = (await server.got(last_event_id=ids(whole)[-1])).text
            for body in (whole, rest):
                assert '"errorText":"An error occurred."' in body
                assert "secret" not in body

    run(main)


def test_an_error_that_the_encoder_does_not_write_is_the_servers() -> None:
    async def main() -> None:
        async with served(lambda relay: RelayResponse(relay, "c1", wire())) as (server, relay):
            await relay.start("c1", rx.concat(rx.from_iterable(BEGUN), rx.throw(rd.ProviderError("busy"))))
            last = (await rd.last_value(relay.entries("c1").pipe(ops.take(2)))).id
            assert (await server.got(last_event_id=last)).status_code == 500

    run(main)


@says("A HEAD starts no request")
def test_head_has_the_status_and_headers_and_no_body() -> None:
    async def main() -> None:
        async with served(lambda relay: ai_sdk(relay)) as (server, relay):
            model = Model()
            await relay.start("c1", model.events)
            response = await server.got("HEAD")
            assert (response.status_code, response.content) == (200, b"")
            assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
            assert (await server.got("HEAD", last_event_id="nonsense")).status_code == 400
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {"type": "http", "method": "HEAD", "headers": []}
            await ai_sdk(relay)(scope, asyncio.Event().wait, send)
            assert [message.get("body") for message in sent] == [None, b""]

    run(main)


def test_a_response_that_is_never_sent_reads_nothing() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            ai_sdk(relay)
            with pytest.raises(rd.InvalidValueError, match="retry"):
                ai_sdk(relay, retry=-1)
            with pytest.raises(rd.InvalidValueError, match="keep_alive"):
                ai_sdk(relay, keep_alive=0)

    run(main)


def test_comments_break_a_silence_and_have_no_id() -> None:
    async def main() -> None:
        model = Model()
        async with served(lambda relay: ai_sdk(relay, keep_alive=0.01)) as (server, relay):
            await relay.start("c1", model.events)
            async with server.read() as reading:
                body = await reading.until(": keep-alive\n: keep-alive\n")
                assert len(ids(body)) == 2
                model.say("Hi", None)
                assert words(await reading.end()) == "Hi"

    run(main)


def test_a_connection_that_is_no_request_is_denied_with_the_stream() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("c1", rx.from_iterable([*BEGUN, *ENDED]))
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            await ai_sdk(relay)({"type": "websocket", "headers": []}, asyncio.Event().wait, send)
            assert {message["type"] for message in sent} == {
                "websocket.http.response.start",
                "websocket.http.response.body",
            }
            assert b"[DONE]" in sent[-2]["body"]

    run(main)


# A reader or a server that goes.


@pytest.mark.parametrize("published", [True, False])
def test_a_reader_that_leaves_in_silence_leaves_nothing_behind(published: bool) -> None:
    async def main() -> None:
        model = Model()
        async with served(ai_sdk, lease=100) as (server, relay):
            if published:
                await relay.start("c1", model.events)
            asking = asyncio.create_task(server.got())
            await until(lambda: server.server.server_state.tasks)
            await asyncio.sleep(0.01)
            asking.cancel()
            await until(lambda: not server.server.server_state.tasks)
            assert await relay.is_live("c1") == published

    run(main)


def test_when_the_server_stops_an_event_source_goes_on_at_the_next_and_others_are_told() -> None:
    async def main() -> None:
        model = Model()
        async with Relay.open() as relay:

            async def endpoint(_: Any) -> Any:
                return ai_sdk(relay)

            await relay.start("c1", model.events)
            async with Server(endpoint) as first, first.read(**EVENT_SOURCE) as one, first.read() as other:
                model.say("Hel")
                await one.until("Hel")
                await other.until("Hel")
                await first.stop()
                kept = await one.end()
                assert data(kept)[-1] == '{"type":"text-delta","id":"1","delta":"Hel"}'
                ended = data(await other.end())
                assert ended[-2:] == ['{"type":"abort","reason":"the server is stopping"}', "[DONE]"]
            async with Server(endpoint) as second:
                model.say("lo", None)
                rest = await second.got(last_event_id=ids(kept)[-1], **EVENT_SOURCE)
                assert words(kept + rest.text) == "Hello"

    run(main)


def behind_middleware(app: Any) -> Any:
    """Behind Starlette's, which ends the body of a response that returns."""
    base = pytest.importorskip("starlette.middleware.base")
    return base.BaseHTTPMiddleware(app, lambda request, call_next: call_next(request))


@pytest.mark.parametrize("http", ["h11", "httptools"])
@pytest.mark.parametrize("is_behind_a_middleware", [False, True])
def test_when_the_server_stops_a_stream_that_goes_on_elsewhere_is_broken_off(
    http: str,
    is_behind_a_middleware: bool,
    valkey: ValkeyServer,
    server_log: list[logging.LogRecord],
) -> None:
    """Nobody is told that it ends. What a reader got and what it gets when it comes back is the whole."""
    pytest.importorskip(http)

    async def main() -> None:
        model = Model()
        wrap = behind_middleware if is_behind_a_middleware else None
        how: Any = {"log_config": None, "log_level": "critical" if is_behind_a_middleware else "error"}
        async with Relay.open(valkey.url, prefix=f"{http}-{is_behind_a_middleware}") as relay:

            async def endpoint(_: Any) -> Any:
                return ai_sdk(relay.scope("acme"))

            await relay.scope("acme").start("c1", model.events)
            async with (
                Server(endpoint, wrap, http=http, **how) as first,
                first.read(**EVENT_SOURCE) as one,
                first.read() as other,
            ):
                model.say("Hel")
                await one.until("Hel")
                await other.until("Hel")
                await first.stop()
                assert data(await one.end())[-1] == '{"type":"text-delta","id":"1","delta":"Hel"}'
                with pytest.raises(httpx.RemoteProtocolError):
                    await other.end()
                assert data(other.body) == data(one.body)
            async with Server(endpoint) as second:
                model.say("lo", None)
                rest = await second.got(last_event_id=ids(other.body)[-1])
                assert words(other.body + rest.text) == "Hello"
                assert data(rest.text)[-1] == "[DONE]"

    run(main)
    wanted = [("ASGI callable returned without completing response.", None)]
    if is_behind_a_middleware:
        wanted.clear()  # it raises the server's error, and here nothing is logged
    assert [(record.getMessage(), record.exc_info) for record in server_log] == wanted


def test_a_stream_that_has_ended_when_the_server_stops_is_whole_for_its_reader(valkey: ValkeyServer) -> None:
    async def main() -> None:
        stops = asyncio.Event()
        pieces: list[bytes] = []

        async with Relay.open(valkey.url, prefix="ended") as relay:
            model = Model()
            model.say("Hello", None)
            await relay.start("c1", model.events)
            await until_not_live(relay)

            async def send(message: Any) -> None:
                pieces.append(message.get("body", b""))
                if b"[DONE]" in pieces[-1]:
                    end_streams()
                    await asyncio.sleep(0.01)
                assert isinstance(pieces[-1], bytes), "it isn't broken off"

            scope: Any = {"type": "http", "method": "GET", "headers": []}
            await ai_sdk(relay)(scope, stops.wait, send)
        assert words(b"".join(pieces).decode()) == "Hello"

    async def until_not_live(relay: Relay) -> None:
        while await relay.is_live("c1"):
            await asyncio.sleep(0.01)

    run(main)


@pytest.mark.parametrize(("accept", "status"), [("text/event-stream", 200), ("*/*", 503)])
def test_when_the_server_stops_a_reader_that_waits_for_a_stream_is_not_told_that_there_is_none(
    accept: str, status: int
) -> None:
    async def main() -> None:
        async with served(ai_sdk, lease=100) as (server, _):
            asking = asyncio.create_task(server.got(accept=accept))
            await until(lambda: server.server.server_state.tasks)
            await asyncio.sleep(0.05)
            await server.stop()
            response = await asking
            assert (response.status_code, response.content) == (status, b"")

    run(main)
