"""`EventStreamResponse` on a real server, and against an ASGI server that the test plays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.loops import run
from support.security_page import says

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.aio import reading
from rxdelta.aio.reading import Inbox
from rxdelta.asgi import EventStreamResponse, end_streams, open_response

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
starlette = pytest.importorskip("starlette.applications")
routing = pytest.importorskip("starlette.routing")

TEXT = {"type": "text", "text": ""}
BEGUN = [ev.MessageStart("m"), ev.BlockStart(0, TEXT)]
ENDED = [ev.BlockFinish(0), ev.MessageFinish("stop")]


class Provider:
    """A stream of events whose end the test decides, and which says when it was closed."""

    def __init__(self, *given: rd.Event, hold: bool = True) -> None:
        self.given = given
        self.more = asyncio.Event()
        self.told = asyncio.Event()
        self.closed = asyncio.Event()
        if not hold:
            self.more.set()

    async def __call__(self) -> AsyncIterator[rd.Event]:
        try:
            for event in self.given:
                yield event
                await asyncio.sleep(0)  # each comes by itself
            self.told.set()
            await self.more.wait()
            for event in ENDED:
                yield event
        finally:
            self.closed.set()

    def response(self, **more: Any) -> EventStreamResponse:
        events = rd.from_async_iterable(lambda: self())
        return EventStreamResponse(events, rd.to_ai_sdk(), **more)


@asynccontextmanager
async def served(endpoint: Callable[[Any], Any]) -> AsyncIterator[Any]:
    """A server on a small socket, so that a client who doesn't read is soon felt."""

    async def answer(request: Any) -> Any:
        return endpoint(request)

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    listening.bind(("127.0.0.1", 0))
    app = starlette.Starlette(routes=[routing.Route("/{name}", answer)])
    config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    server.port = listening.getsockname()[1]
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await until(lambda: server.started)
    server.serving = serving
    try:
        yield server
    finally:
        end_streams()
        server.should_exit = True
        await serving
        listening.close()


@asynccontextmanager
async def answered(server: Any) -> AsyncIterator[Any]:
    """The answer to a reader, who leaves with the block."""
    async with httpx.AsyncClient() as client, client.stream("GET", url(server)) as response:
        yield response


async def got(server: Any) -> Any:
    """The whole answer."""
    async with httpx.AsyncClient() as client:
        return await client.get(url(server))


async def until(holds: Callable[[], object]) -> None:
    """Wait for what must come to be; who waits for ever is found by `run`."""
    while not holds():
        await asyncio.sleep(0.001)


def url(server: Any, name: str = "chat") -> str:
    return f"http://127.0.0.1:{server.port}/{name}"


async def connected(server: Any, name: str = "chat") -> socket.socket:
    """A client that has asked and doesn't read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", server.port))
    await loop.sock_sendall(client, f"GET /{name} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
    return client


async def rest(client: socket.socket) -> bytes:
    """What the client gets when it reads at last."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
    pieces = []
    while piece := await asyncio.get_running_loop().sock_recv(client, 65536):
        pieces.append(piece)
    return b"".join(pieces)


def frames(body: bytes) -> list[Any]:
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def text(body: bytes) -> str:
    return "".join(
        one["delta"] for one in frames(body) if isinstance(one, dict) and one["type"] == "text-delta"
    )


def kinds(body: bytes) -> list[str]:
    return [one if isinstance(one, str) else one["type"] for one in frames(body)]


# A whole reply.


def test_a_reply_comes_as_it_is_told_with_its_headers() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, ev.TextDelta(0, "Hel"), ev.TextDelta(0, "lo"), hold=False)
        async with served(lambda _: provider.response()) as server, httpx.AsyncClient() as client:
            response = await client.get(url(server))
        assert response.status_code == 200
        assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert text(response.content) == "Hello"
        assert kinds(response.content)[-2:] == ["finish", "[DONE]"]

    run(main)


def test_the_first_piece_comes_before_the_next_is_there() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, ev.TextDelta(0, "Hi"))
        async with served(lambda _: provider.response()) as server, answered(server) as response:
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if text(body) == "Hi":
                    provider.more.set()
            assert kinds(body)[-1] == "[DONE]"

    run(main)


def test_an_error_of_the_source_is_told_by_the_protocol(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        failing = rx.concat(rx.from_iterable(BEGUN), rx.throw(RuntimeError("secret")))
        async with served(lambda _: EventStreamResponse(failing, rd.to_ai_sdk())) as server:
            response = await got(server)
        assert kinds(response.content)[-2:] == ["error", "[DONE]"]
        assert "secret" not in response.text

    run(main)
    assert "secret" in caplog.text


@says("A HEAD starts no request")
def test_head_starts_no_request_and_has_the_headers() -> None:
    async def main() -> None:
        provider, asked = Provider(*BEGUN, hold=False), list[int]()

        def ask() -> AsyncIterator[rd.Event]:
            asked.append(1)
            return provider()

        events = rd.from_async_iterable(ask)

        def endpoint(_: Any) -> EventStreamResponse:
            return EventStreamResponse(events, rd.to_ai_sdk())

        async with served(endpoint) as server, httpx.AsyncClient() as client:
            response = await client.head(url(server))
            assert (response.status_code, response.content, asked) == (200, b"", [])
            assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
            await client.get(url(server))
            assert asked == [1]

    run(main)


# A reader who leaves.


def test_a_reader_who_leaves_in_silence_closes_the_providers_stream() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, ev.TextDelta(0, "Hi"))
        async with served(lambda _: provider.response()) as server:
            async with answered(server) as response:
                async for piece in response.aiter_bytes():
                    if b"Hi" in piece:
                        break
            await provider.closed.wait()
            await until(lambda: not server.server_state.tasks)

    run(main)


def test_a_reader_who_never_read_and_leaves_closes_the_providers_stream() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, *(ev.TextDelta(0, "x" * 1000) for _ in range(500)))
        async with served(lambda _: provider.response()) as server:
            client = await connected(server)
            await provider.told.wait()
            client.close()
            await provider.closed.wait()
            await until(lambda: not server.server_state.tasks)

    run(main)


def test_tools_are_cancelled_with_the_reply() -> None:
    async def main() -> None:
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def look(at: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return at

        call = {"type": "tool_call_chunk", "id": "c", "name": "look", "args": '{"at": "sea"}'}
        reply = [ev.MessageStart("m"), ev.BlockStart(0, call), *ENDED]
        events = rx.from_iterable(reply).pipe(rd.run_tools({"look": look}))
        async with served(lambda _: EventStreamResponse(events, rd.to_ai_sdk())) as server:
            client = await connected(server)
            await begun.wait()
            client.close()
            await cancelled.wait()

    run(main)


@pytest.mark.parametrize("spec", ["2.0", "2.3", "2.4", "2.5"])
def test_a_reader_who_leaves_is_noticed_in_silence_whatever_the_server_speaks(spec: str) -> None:
    async def main() -> None:
        provider, left = Provider(*BEGUN), asyncio.Event()

        async def receive() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        scope = {"type": "http", "asgi": {"spec_version": spec}}
        answering = asyncio.create_task(provider.response()(scope, receive, send))
        await provider.told.wait()
        left.set()
        await answering
        assert provider.closed.is_set()

    run(main)


def test_a_server_that_says_so_by_failing_to_send_is_understood() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN)

        async def send(message: Any) -> None:
            if b"text-start" in message.get("body", b""):
                raise OSError("gone")

        await provider.response()({"type": "http"}, asyncio.Event().wait, send)
        assert provider.closed.is_set()

    run(main)


def test_what_else_goes_wrong_in_sending_is_the_servers_to_hear() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN)

        async def send(message: Any) -> None:
            raise ValueError("wrong")

        with pytest.raises(ValueError, match="wrong"):
            await provider.response()({"type": "http"}, asyncio.Event().wait, send)

    run(main)


def test_a_server_that_cancels_closes_the_provider_first() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN)

        async def send(message: Any) -> None:
            pass

        answering = asyncio.create_task(provider.response()({"type": "http"}, asyncio.Event().wait, send))
        await provider.told.wait()
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering
        assert provider.closed.is_set()

    run(main)


def test_a_response_that_is_never_sent_asks_for_nothing() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN)
        provider.response()
        await asyncio.sleep(0)
        assert not provider.told.is_set()

    run(main)


def test_a_background_task_runs_after_the_reply() -> None:
    from starlette.background import BackgroundTask

    async def main() -> None:
        provider, ran = Provider(*BEGUN, hold=False), []

        async def note() -> None:
            ran.append(provider.closed.is_set())

        response = provider.response(background=BackgroundTask(note))
        async with served(lambda _: response) as server, httpx.AsyncClient() as client:
            await client.get(url(server))
            await until(lambda: ran)
        assert ran == [True]

    run(main)


# Readers who are slow.


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """The longest that each queue was: of events (`join`), and of what they are written as (`block`)."""
    longest: dict[str, list[int]] = {"join": [], "block": []}
    places: dict[Inbox[Any], int] = {}
    on_next = Inbox.on_next

    def counted(inbox: Inbox[Any], value: Any) -> None:
        on_next(inbox, value)
        kind = longest[inbox._overflow]
        if inbox not in places:
            places[inbox] = len(kind)
            kind.append(0)
        kind[places[inbox]] = max(kind[places[inbox]], len(inbox._values))

    monkeypatch.setattr(Inbox, "on_next", counted)
    return longest


@pytest.mark.slow
def test_two_hundred_slow_readers_hold_a_few_events_each_and_get_their_own(
    lengths: dict[str, list[int]],
) -> None:
    readers, pieces = 200, 400

    async def main() -> None:
        def piece(name: str, number: int) -> str:
            return f"{name}:{number};".ljust(800, ".")

        providers = {
            name: Provider(*BEGUN, *(ev.TextDelta(0, piece(name, number)) for number in range(pieces)))
            for name in map(str, range(readers))
        }
        async with served(lambda request: providers[request.path_params["name"]].response()) as server:
            before = asyncio.all_tasks()
            clients = {name: await connected(server, name) for name in providers}
            for provider in providers.values():
                await provider.told.wait()  # nobody has read a byte, and the provider was not held up
            assert [len(kind) for kind in lengths.values()] == [readers, readers]
            assert max(map(max, lengths.values())) <= 4
            for provider in providers.values():
                provider.more.set()
            bodies = await asyncio.gather(*map(rest, clients.values()))
            for (name, client), body in zip(clients.items(), bodies):
                assert text(body) == "".join(piece(name, number) for number in range(pieces))
                assert kinds(body).count("text-delta") < pieces / 2, (
                    "it was behind, so its deltas were joined"
                )
                client.close()
            await until(lambda: not server.server_state.tasks)
            await until(lambda: asyncio.all_tasks() == before)

    run(main)


def test_a_slow_reader_holds_up_nobody_who_reads_the_same_source(lengths: dict[str, list[int]]) -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, *(ev.TextDelta(0, "x" * 1000) for _ in range(500)), hold=False)
        shared = rd.from_async_iterable(lambda: provider()).pipe(rd.share_events())
        async with served(lambda _: EventStreamResponse(shared, rd.to_ai_sdk())) as server:
            slow = await connected(server)
            await until(lambda: lengths["block"])
            async with httpx.AsyncClient() as client:
                response = await client.get(url(server))
            assert len(text(response.content)) == 500_000
            assert max(map(max, lengths.values())) <= 8
            assert len(text(await rest(slow))) == 500_000
            slow.close()

    run(main)


@pytest.mark.parametrize("far", [100, 8_192])
def test_a_reader_who_is_stuck_starves_nobody_who_reads_the_same_source_and_little_is_queued_for_him(
    far: int, lengths: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By events that can't be joined. Who is so far behind that he is ended is told so."""
    monkeypatch.setitem(reading._MAX_LAG, "join", far)
    scope: Any = {
        "type": "http",
        "asgi": {"spec_version": "2.4"},
        "method": "GET",
        "path": "/",
        "headers": [],
    }
    reads_again, never = asyncio.Event(), asyncio.Event()
    bodies = {"stuck": b"", "quick": b""}

    async def main() -> None:
        news = [ev.ProviderEvent("somebody", str(number)) for number in range(3000)]
        provider = Provider(*BEGUN, *news, hold=False)
        shared = rd.from_async_iterable(lambda: provider()).pipe(rd.share_events())

        async def answer(who: str) -> None:
            async def send(message: Any) -> None:
                if who == "stuck" and message.get("body"):
                    await reads_again.wait()
                bodies[who] += message.get("body", b"")

            told = ops.map(lambda event: {"type": getattr(event, "name", event.event)})
            await EventStreamResponse(shared, told)(scope, never.wait, send)  # type: ignore[arg-type]

        stuck = asyncio.create_task(answer("stuck"))
        await answer("quick")
        whole = [*(event.event for event in BEGUN), *map(str, range(3000)), *(event.event for event in ENDED)]
        assert kinds(bodies["quick"])[-2900:] == whole[-2900:]  # all that came after it had
        assert max(lengths["join"]) <= 1024 + far
        reads_again.set()
        if far == 100:
            with pytest.raises(rd.errors.BufferOverflowError, match="1,124 values behind the others"):
                await stuck
        else:
            await stuck
        assert kinds(bodies["stuck"]) == whole[: len(kinds(bodies["stuck"]))]
        assert len(kinds(bodies["stuck"])) >= min(1024 + far, len(whole))

    run(main)


# Silence.


def test_silence_is_broken_by_comments_which_carry_nothing() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN)
        response = provider.response(keep_alive=0.001)
        async with served(lambda _: response) as server, answered(server) as answer:
            body = b""
            async for piece in answer.aiter_bytes():
                body += piece
                if body.count(rd.wire.KEEP_ALIVE) >= 3:
                    provider.more.set()
        assert kinds(body) == [
            "start",
            "start-step",
            "text-start",
            "text-end",
            "finish-step",
            "finish",
            "[DONE]",
        ]

    run(main)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "15"])
def test_a_wrong_keep_alive_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="keep_alive"):
        EventStreamResponse(rx.never(), rd.to_ai_sdk(), keep_alive=wrong)


# A server that stops.


def test_a_server_that_stops_ends_its_streams_as_a_stop_would() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, ev.TextDelta(0, "Hi"))
        async with served(lambda _: provider.response()) as server, answered(server) as response:
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if text(body) == "Hi" and not server.should_exit:
                    server.should_exit = True
                    end_streams()
            await server.serving
            assert kinds(body)[-2:] == ["abort", "[DONE]"]
            assert provider.closed.is_set()

    run(main)
    assert not open_response._streams


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_stops_the_server_ends_its_streams(number: signal.Signals) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are for the main thread")
    heard: list[int] = []

    async def main() -> None:
        provider = Provider(*BEGUN, ev.TextDelta(0, "Hi"))
        async with served(lambda _: provider.response()) as server, answered(server) as response:
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if text(body) == "Hi" and not server.should_exit:
                    os.kill(os.getpid(), number)
            await server.serving
            assert kinds(body)[-2:] == ["abort", "[DONE]"]

    def mine(signal_number: int, _: Any) -> None:
        heard.append(signal_number)

    before = signal.signal(number, mine)
    try:
        run(main)
        assert signal.getsignal(number) is mine, "everybody has their handler back"
    finally:
        signal.signal(number, before)
    assert heard == [number]  # uvicorn hands it on when it has stopped


def test_handlers_are_given_back_with_the_last_stream() -> None:
    async def main() -> None:
        before = signal.getsignal(signal.SIGTERM)
        provider = Provider(*BEGUN)

        async def send(message: Any) -> None:
            pass

        def mine(*_: Any) -> None: ...

        signal.signal(signal.SIGTERM, mine)
        try:
            answering = [
                asyncio.create_task(provider.response()({"type": "http"}, asyncio.Event().wait, send))
                for _ in range(2)
            ]
            await until(lambda: sum(map(len, open_response._streams.values())) == 2)
            assert signal.getsignal(signal.SIGTERM) is not mine
            end_streams()
            await asyncio.gather(*answering)
            assert signal.getsignal(signal.SIGTERM) is mine
        finally:
            signal.signal(signal.SIGTERM, before)

    if threading.current_thread() is threading.main_thread():
        run(main)


def test_a_stream_that_begins_while_the_server_stops_ends_at_once() -> None:
    """A server hears of the signal a little later, and a page whose stream has ended asks again at once."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are for the main thread")
    kinds_sent: list[list[str]] = []

    async def main() -> None:
        for _ in range(2):
            provider, body = Provider(*BEGUN, ev.TextDelta(0, "Hi")), b""

            async def send(message: Any) -> None:
                nonlocal body
                body += message.get("body", b"")
                if text(body) == "Hi" and not kinds_sent:
                    os.kill(os.getpid(), signal.SIGTERM)

            await provider.response()({"type": "http"}, asyncio.Event().wait, send)
            assert provider.closed.is_set() or not provider.told.is_set()
            kinds_sent.append(kinds(body)[-1:])

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        run(main)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert kinds_sent == [["[DONE]"], ["[DONE]"]]


def test_a_reader_who_takes_nothing_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_response, "_SECONDS_TO_END", 0.0)

    async def main() -> None:
        provider = Provider(*BEGUN, *(ev.TextDelta(0, "x" * 1000) for _ in range(500)))
        async with served(lambda _: provider.response()) as server:
            client = await connected(server)
            await provider.told.wait()
            end_streams()
            await until(lambda: not server.server_state.tasks)
            assert provider.closed.is_set()
            client.close()

    run(main)


def test_streams_are_ended_from_another_thread() -> None:
    async def main() -> None:
        provider, sent = Provider(*BEGUN), []

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        answering = asyncio.create_task(provider.response()({"type": "http"}, asyncio.Event().wait, send))
        await provider.told.wait()
        thread = threading.Thread(target=end_streams)
        thread.start()
        await answering
        thread.join()
        assert kinds(b"".join(sent))[-2:] == ["abort", "[DONE]"]

    run(main)


# Other protocols, and other applications.


def test_langchains_protocol_comes_back_over_http() -> None:
    async def main() -> None:
        provider = Provider(*BEGUN, ev.TextDelta(0, "Hi"), hold=False)
        events = rd.from_async_iterable(lambda: provider())
        answer = EventStreamResponse(events, rd.to_langchain_events())
        async with served(lambda _: answer) as server, answered(server) as response:
            body = rd.from_async_iterable(response.aiter_bytes())
            message = await rd.last_value(
                body.pipe(rd.parse_sse(), rd.decode("langchain"), rd.scan_deltas(), rd.to_message())
            )
        assert (message.id, message.text) == ("m", "Hi")

    run(main)


def test_it_is_a_response_of_fastapi_too() -> None:
    fastapi = pytest.importorskip("fastapi")
    app = fastapi.FastAPI()

    @app.get("/chat")
    async def chat() -> EventStreamResponse:
        return EventStreamResponse(rx.from_iterable([*BEGUN, *ENDED]), rd.to_ai_sdk())

    async def main() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            response = await client.get("/chat")
        assert kinds(response.content)[-1] == "[DONE]"

    run(main)


def test_what_is_no_observable_is_refused_at_once() -> None:
    async def chunks() -> AsyncIterator[Any]:
        yield {}

    for source in (chunks(), rd.stream(chunks)):
        with pytest.raises(rd.InvalidValueError, match=r"events: must be an Observable .* `reply\.events`"):
            EventStreamResponse(source, rd.to_ai_sdk())  # type: ignore[arg-type]


# What the response says when it is made.


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (lambda events: events.pipe(rd.scan_deltas()), "scan_deltas() in front of it emits snapshots"),
        (
            lambda events: events.pipe(rd.scan_deltas(), rd.throttle_latest(1)),
            "throttle_latest() in front of it",
        ),
        (lambda events: events.pipe(rd.to_ai_sdk()), "emits frames; leave out to_ai_sdk()"),
        (lambda events: events.pipe(rd.text_deltas()), "emits pieces of text"),
        (lambda events: rx.never().pipe(rd.parse_sse()), "emits chunks; put decode() behind parse_sse()"),
        (lambda events: events.pipe(rd.group_by_run()), "ops.merge_all()"),
    ],
)
def test_what_is_no_stream_of_events_is_refused_when_the_response_is_made(pipeline: Any, said: str) -> None:
    events = rx.never().pipe(rd.decode("auto"))
    with pytest.raises(rd.InvalidValueError) as caught:
        EventStreamResponse(pipeline(events), rd.to_ai_sdk())
    assert "EventStreamResponse reads events" in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("encode", "marker"),
    [
        (rd.to_ai_sdk(), "v1"),
        (lambda events: events.pipe(rd.with_run("a"), rd.to_ai_sdk()), "v1"),
        (rd.to_langchain_events(), None),
        (rd.to_openai_chat(), None),
    ],
)
def test_the_headers_are_those_of_the_protocol(encode: Any, marker: str | None) -> None:
    made = EventStreamResponse(rx.never(), encode, headers={"Cache-Control": "no-store", "x-own": "1"})
    assert made.headers.get("x-vercel-ai-ui-message-stream") == marker
    assert made.headers["content-type"].startswith("text/event-stream")
    assert made.headers.getlist("cache-control") == ["no-store"]
    assert made.headers["x-own"] == "1"


def test_the_encoder_is_a_function() -> None:
    with pytest.raises(rd.InvalidValueError, match="encode: must be an encoder, such as"):
        EventStreamResponse(rx.never(), None)  # type: ignore[arg-type]
