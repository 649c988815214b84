"""`TextResponse` on a real server, read by real clients, and against an ASGI server that the test plays."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from support.clients import FOLDER, ask
from support.front_ends import recorded_replies
from support.loops import run
from support.needs import without

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.asgi import TextResponse, end_streams
from rxdelta.testing import sample_chunks

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
applications = pytest.importorskip("starlette.applications")
routing = pytest.importorskip("starlette.routing")

SECRET = "hunter2"
BEGUN = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]
ENDED = [ev.BlockFinish(0), ev.MessageFinish("stop")]


def said(*pieces: str) -> list[rd.Event]:
    return [*BEGUN, *(ev.TextDelta(0, piece) for piece in pieces)]


class Provider:
    """A stream of events whose end the test decides, and which says when it was closed."""

    def __init__(self, *given: rd.Event) -> None:
        self.given = given
        self.more = asyncio.Event()
        self.told = asyncio.Event()
        self.closed = asyncio.Event()

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

    def response(self) -> TextResponse:
        return TextResponse(rd.from_async_iterable(lambda: self()))


@asynccontextmanager
async def served(
    events: Callable[[], Any], wrap: Callable[[Any], Any] | None = None, **options: Any
) -> AsyncIterator[Any]:
    """A server whose answer is the text of these events, or this response."""

    async def answer(_: Any) -> Any:
        made = events()
        return made if isinstance(made, TextResponse) else TextResponse(made, **options)

    app = applications.Starlette(routes=[routing.Route("/", answer, methods=["GET", "POST"])])
    app = app if wrap is None else wrap(app)
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, lifespan="off", log_config=None, access_log=False)  # the log is pytest's
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    server.port = server.servers[0].sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{server.port}/"
    try:
        yield server
    finally:
        end_streams()
        server.should_exit = True
        await serving


@asynccontextmanager
async def answered(server: Any) -> AsyncIterator[Any]:
    """The answer to a reader, who leaves with the block."""
    async with httpx.AsyncClient() as client, client.stream("GET", server.url) as response:
        yield response


async def got(server: Any) -> tuple[int, str, bool]:
    """The status, the text as far as it came, and whether the client takes it for the whole."""
    text = ""
    async with answered(server) as response:
        try:
            async for piece in response.aiter_text():
                text += piece
        except httpx.RemoteProtocolError:
            return response.status_code, text, False
        return response.status_code, text, True


def answer_to(events: Callable[[], Any], **options: Any) -> tuple[int, str, bool]:
    async def main() -> tuple[int, str, bool]:
        async with served(events, **options) as server:
            return await got(server)

    return run(main)


def answer_of(*events: rd.Event, **options: Any) -> tuple[int, str, bool]:
    return answer_to(lambda: rx.from_iterable(events), **options)


# A whole reply.


def test_a_reply_comes_as_plain_text_that_no_proxy_holds_back() -> None:
    async def main() -> None:
        whole = [*said("Hel", "lo"), *ENDED]
        async with served(lambda: rx.from_iterable(whole)) as server, httpx.AsyncClient() as client:
            response = await client.get(server.url)
        assert (response.status_code, response.text) == (200, "Hello")
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache, no-transform"
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["x-content-type-options"] == "nosniff"

    run(main)


def test_the_first_piece_comes_before_the_next_is_there() -> None:
    async def main() -> None:
        provider = Provider(*said("Hi"))
        async with served(provider.response) as server, answered(server) as response:
            text = ""
            async for piece in response.aiter_text():
                text += piece
                provider.more.set()  # nothing more comes before this
        assert text == "Hi"

    run(main)


def test_the_text_is_what_the_model_answers() -> None:
    reasoning = [
        ev.BlockStart(5, {"type": "reasoning"}),
        ev.ReasoningDelta(5, "Hm."),
        ev.BlockFinish(5),
    ]
    call = [
        ev.BlockStart(6, {"type": "tool_call_chunk", "id": "c", "name": "look", "args": "{}"}),
        ev.BlockFinish(6),
    ]
    refusal = [ev.BlockStart(7, {"type": "refusal", "text": "No, "}), ev.BlockFinish(7)]
    helper = [
        ev.MessageStart("h", run_id="helper", parent_run_id="main"),
        ev.BlockStart(0, {"type": "text", "text": "between us"}, run_id="helper"),
        ev.BlockFinish(0, run_id="helper"),
        ev.MessageFinish("stop", run_id="helper"),
    ]
    main = [
        ev.MessageStart("m", run_id="main"),
        ev.BlockStart(0, {"type": "text", "text": "Hi"}, run_id="main"),
    ]
    end = [ev.BlockFinish(0, run_id="main"), ev.MessageFinish("stop", run_id="main")]
    assert answer_of(*main, *helper, *end) == (200, "Hi", True)
    assert answer_of(ev.MessageStart("m"), *reasoning, *refusal, *said("never")[1:], *call, *ENDED) == (
        200,
        "No, never",
        True,
    )
    assert answer_of(*said("Let me look."), *ENDED, *said("It's 7."), *ENDED)[1] == "Let me look.\n\nIt's 7."


def test_a_reply_without_text_is_an_empty_body() -> None:
    assert answer_of(*BEGUN, *ENDED) == (200, "", True)


def test_characters_that_come_in_halves_are_whole() -> None:
    assert answer_of(*said("a\ud83d", "\ude00\ud83d"), *ENDED)[1] == "a😀\N{REPLACEMENT CHARACTER}"


def test_of_several_choices_one_is_the_text() -> None:
    def reply(choice: int) -> list[rd.Event]:
        text = {"type": "text", "text": f"choice {choice}"}
        return [
            ev.MessageStart("m", choice=choice),
            ev.BlockStart(0, text, choice=choice),
            ev.BlockFinish(0, choice=choice),
            ev.MessageFinish("stop", choice=choice),
        ]

    both = [event for pair in zip(reply(0), reply(1)) for event in pair]
    assert answer_of(*both)[1] == "choice 0"
    assert answer_to(lambda: rx.from_iterable(both).pipe(rd.only_choice(1))) == (200, "choice 1", True)


def test_head_starts_no_request_and_has_the_headers() -> None:
    async def main() -> None:
        def never() -> Any:
            raise AssertionError("asked")

        scope, sent = {"type": "http", "method": "HEAD"}, list[Any]()

        async def send(message: Any) -> None:
            sent.append(message)

        await TextResponse(rd.from_async_iterable(never))(scope, asyncio.Event().wait, send)
        assert sent[0]["status"] == 200
        assert (b"content-type", b"text/plain; charset=utf-8") in sent[0]["headers"]
        assert [message.get("body", b"") for message in sent] == [b"", b""]

    run(main)


def recorded() -> Sequence[Any]:
    return recorded_replies()[::20] or pytest.skip("no recordings")


def test_recorded_replies_come_as_their_text() -> None:
    async def body(events: Sequence[rd.Event]) -> tuple[str, bool]:
        text, whole = b"", False

        async def send(message: Any) -> None:
            nonlocal text, whole
            text += message.get("body", b"")
            whole = not message.get("more_body", True)

        try:
            await TextResponse(rx.from_iterable(events))({"type": "http"}, asyncio.Event().wait, send)
        except rd.errors.StreamInterrupted:
            assert not whole
        return text.decode(), whole

    async def main() -> None:
        for reply in recorded():
            for count in (len(reply.events), len(reply.events) - 1, len(reply.events) // 2):
                message = reply.folded(count, cut=False)
                said = "".join(one.text or "" for one in message.blocks if one.type in ("text", "refusal"))
                text, whole = await body(reply.events[:count])
                if message.status == "incomplete" and not said:
                    assert (text, whole) == (rd.wire.MASKED, True), reply.name  # with the status 500
                else:
                    assert (text, whole) == (said, message.status != "incomplete"), reply.name

    run(main)


# A reply that isn't whole.


async def fails(*given: rd.Event) -> AsyncIterator[rd.Event]:
    for event in given:
        yield event
    raise ConnectionError(SECRET)


ENDINGS: dict[str, Callable[..., Any]] = {
    "an error of the source": lambda *given: rd.from_async_iterable(lambda: fails(*given)),
    "an error of the provider": lambda *given: rx.from_iterable([*given, ev.StreamError(SECRET)]),
    "a cut": lambda *given: rx.from_iterable(given),
    "no event of ours": lambda *given: rx.from_iterable([*given, {"text": SECRET}]),
    "an interruption": lambda *given: rx.from_iterable([*given, ev.MessageInterrupted("stopped")]),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_before_the_first_piece_it_is_a_status(how: str, caplog: pytest.LogCaptureFixture) -> None:
    wanted = (503, "stopped", True) if how == "an interruption" else (500, rd.wire.MASKED, True)
    assert answer_to(lambda: ENDINGS[how](*BEGUN)) == wanted
    assert [record.name for record in caplog.records if record.levelno >= logging.ERROR] == (
        [] if how == "an interruption" else ["rxdelta.wire"]
    )


@pytest.mark.parametrize("how", ENDINGS)
def test_later_the_text_is_broken_off_for_its_reader(how: str, server_log: list[logging.LogRecord]) -> None:
    """And the server's own log has nothing of the error."""
    assert answer_to(lambda: ENDINGS[how](*said("Hel"))) == (200, "Hel", False)
    (told,) = [record for record in server_log if record.exc_info]
    log = logging.Formatter().format(told)
    assert f"broken off: {'stopped' if how == 'an interruption' else rd.wire.MASKED}" in log
    assert SECRET not in log
    assert SECRET not in str(told.exc_info and told.exc_info[1] and told.exc_info[1].__context__)


def test_a_text_that_the_reader_has_is_not_taken_back() -> None:
    again = [ev.AttemptReset(), *said("Hello"), *ENDED]
    assert answer_of(*BEGUN, *again) == (200, "Hello", True), "nothing was sent of the first attempt"

    async def main() -> None:
        provider = Provider(*said("Goo"))

        async def retried() -> AsyncIterator[rd.Event]:
            async for event in provider():
                if isinstance(event, ev.BlockFinish):
                    break
                yield event
            for event in again:
                yield event

        async with served(lambda: rd.from_async_iterable(retried)) as server, answered(server) as response:
            pieces = response.aiter_text()
            assert await anext(pieces) == "Goo"
            provider.more.set()
            with pytest.raises(httpx.RemoteProtocolError):
                await anext(pieces)

    run(main)


def test_the_error_has_the_words_of_on_error() -> None:
    def on_error(error: Exception) -> str:
        return f"It was a {type(error).__name__}."

    status, text, _ = answer_to(lambda: ENDINGS["an error of the source"](), on_error=on_error)
    assert (status, text) == (500, "It was a ConnectionError.")


def test_a_status_of_an_error_is_plain_text_with_the_responses_headers() -> None:
    async def main() -> None:
        headers = {"content-type": "application/json", "x-own": "1"}
        failing = rx.throw(ValueError(SECRET))
        async with served(lambda: failing, headers=headers) as server, httpx.AsyncClient() as client:
            response = await client.get(server.url)
        assert (response.headers["content-type"], response.headers["x-own"]) == (
            "text/plain; charset=utf-8",
            "1",
        )

    run(main)


def test_the_break_comes_through_middleware_that_ends_a_body_whatever_happens() -> None:
    fastapi = pytest.importorskip("fastapi")

    async def passing(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    async def main() -> None:
        app = fastapi.FastAPI()
        for _ in range(2):
            app.middleware("http")(passing)

        @app.get("/")
        async def text() -> TextResponse:
            return TextResponse(ENDINGS["a cut"](*said("Hel")))

        async with served(rx.never, wrap=lambda _: app) as server:
            assert await got(server) == (200, "Hel", False)

    asyncio.run(asyncio.wait_for(main(), 60))  # not `run`: Starlette leaves a generator of its own behind


@pytest.mark.parametrize("how", [None, *ENDINGS])
def test_a_reader_that_cannot_be_told_of_a_break_gets_the_whole_text_or_a_status(how: str | None) -> None:
    """In HTTP/1.0 the end of a body is the end of the connection."""

    async def main() -> None:
        given = said("Hel", "lo")
        async with served(
            lambda: rx.from_iterable([*given, *ENDED]) if how is None else ENDINGS[how](*given)
        ) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
        status = int(head.split()[1])
        shown = "stopped" if how == "an interruption" else rd.wire.MASKED
        assert (status, body.decode()) == (
            (200, "Hello") if how is None else (503 if shown == "stopped" else 500, shown)
        )
        assert f"content-length: {len(body)}".encode() in head

    run(main)


# A reader who leaves, or is slow; a server that stops.


def test_a_reader_who_leaves_closes_the_providers_stream() -> None:
    async def main() -> None:
        for given in (said("Hi"), BEGUN):  # behind the first piece, and before it
            provider = Provider(*given)
            async with served(provider.response) as server:
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await provider.told.wait()
                writer.close()
                await provider.closed.wait()
                while server.server_state.tasks:
                    await asyncio.sleep(0.001)

    run(main)


@pytest.mark.parametrize("at", [b"Hi", b""])
def test_a_server_that_says_so_by_failing_to_send_is_understood(at: bytes) -> None:
    """At the first piece, and at the end."""

    async def main() -> None:
        provider = Provider(*said("Hi"))
        provider.more.set()

        async def send(message: Any) -> None:
            if message.get("body") == at:
                raise OSError("gone")

        await provider.response()({"type": "http"}, asyncio.Event().wait, send)
        assert provider.closed.is_set()

    run(main)


def test_a_slow_reader_gets_all_in_few_pieces_and_holds_up_nobody() -> None:
    async def main() -> None:
        reads, pieces = asyncio.Event(), list[bytes]()
        provider = Provider(*said(*(f"{number};" for number in range(500))))

        async def send(message: Any) -> None:
            if message.get("body"):
                await reads.wait()
                pieces.append(message["body"])

        answering = asyncio.create_task(provider.response()({"type": "http"}, asyncio.Event().wait, send))
        await provider.told.wait()  # the provider wasn't held up by a reader who takes nothing
        reads.set()
        provider.more.set()
        await answering
        assert b"".join(pieces).decode() == "".join(f"{number};" for number in range(500))
        assert len(pieces) < 10

    run(main)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(BEGUN, (503, "the server is stopping", True)), (said("Hi"), (200, "Hi", False))],
)
def test_a_server_that_stops_leaves_no_half_text(
    given: list[rd.Event], wanted: tuple[int, str, bool]
) -> None:
    async def main() -> None:
        provider = Provider(*given)
        async with served(provider.response) as server:
            answer = asyncio.create_task(got(server))
            await provider.told.wait()
            end_streams()
            assert await answer == wanted
            assert provider.closed.is_set()

    run(main)


# What the response says when it is made.


def test_what_is_no_stream_of_events_is_refused_when_the_response_is_made() -> None:
    events = rx.never().pipe(rd.decode("auto"))
    with pytest.raises(rd.InvalidValueError, match=r"TextResponse reads events, .* emits pieces of text"):
        TextResponse(events.pipe(rd.text_deltas()))  # type: ignore[arg-type]
    with pytest.raises(rd.InvalidValueError, match="events: must be an Observable of events"):
        TextResponse([])  # type: ignore[arg-type]
    with pytest.raises(rd.InvalidValueError, match="on_error: must be a function of an error"):
        TextResponse(events, on_error="Sorry")  # type: ignore[arg-type]


def test_the_documented_endpoint_is_one() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "frontends" / "plain-text.md").read_text("utf-8")
    asked: list[Any] = []

    def ask(fields: Any) -> Any:
        asked.append(fields["messages"])
        return sample_chunks("weather")

    program: Any = {}
    code = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0]
    exec(code.partition("\nasync with ")[0], program)  # without the question at its end
    program["ask"] = ask

    async def main() -> None:
        app = program["app"]
        async with served(rx.never, wrap=lambda _: app) as server, httpx.AsyncClient() as client:
            response = await client.post(f"{server.url.rstrip('/')}/completion", json={"prompt": "Well?"})
        assert response.status_code == 200
        assert response.text

    run(main)
    assert "Well?" in str(asked)


# The AI SDK's own clients.

READERS = ["useCompletion", "useObject", "TextStreamChatTransport"]
JSON = '{"city": "Linz", "tides": [1, 2]}'


def told_by_each(*answers: Callable[[], Any]) -> list[list[Any]]:
    """What each of the clients ends up with, for each of these answers."""
    if not (FOLDER / "node_modules" / "@ai-sdk" / "react").is_dir():
        pytest.skip(without("clients", f"`npm ci --prefix {FOLDER}`"))

    async def main() -> list[Any]:
        left = [*answers] * len(READERS)
        async with served(lambda: left.pop(0)()) as server:
            lines = [{"reader": reader, "url": server.url} for reader in READERS for _ in answers]
            return await asyncio.to_thread(ask, "text.mjs", lines)

    found = run(main)
    return [found[at : at + len(answers)] for at in range(0, len(found), len(answers))]


async def in_pieces(*events: rd.Event) -> AsyncIterator[rd.Event]:
    for event in events:
        yield event
        await asyncio.sleep(
            0.03
        )  # so that a client mostly reads each by itself; what it must show doesn't depend on it


def test_the_ai_sdk_reads_a_text_as_it_grows_and_fails_where_it_is_not_whole() -> None:
    pieces = ['{"city": "Li', 'nz", "tides"', ": [1, 2]}"]
    by_reader = told_by_each(
        lambda: rd.from_async_iterable(lambda: in_pieces(*said(*pieces), *ENDED)),
        lambda: rd.from_async_iterable(lambda: in_pieces(*said(*pieces[:2]))),
        lambda: rx.throw(ValueError(SECRET)),
    )
    for reader, (whole, broken, failed) in zip(READERS, by_reader, strict=True):
        is_object = reader == "useObject"
        assert whole["error"] is None
        assert whole["told"] == ({"city": "Linz", "tides": [1, 2]} if is_object else JSON)
        assert whole["grew"][-1] == whole["told"]
        assert broken["told"] is None
        assert broken["error"] == "terminated"
        assert broken["grew"][-1] == ({"city": "Linz"} if is_object else "".join(pieces[:2]))
        assert failed == {"told": None, "error": rd.wire.MASKED, "grew": failed["grew"]}
    assert SECRET not in str(by_reader)
