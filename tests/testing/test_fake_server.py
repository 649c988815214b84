"""The server of a fake provider: replies over HTTP, and what ends them."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from support.security_page import says

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import FakeProvider, FakeRequest, FakeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

httpx = pytest.importorskip("httpx")

HTTP = ("openai-chat", "openai-responses", "openai-completions", "anthropic-messages", "gemini", "gemini-interactions",
        "ollama", "mistral", "cohere", "ai-sdk", "langchain", "ag-ui")  # fmt: skip
"""The formats whose streams are lines."""
WHOLE = HTTP[:-3]
PATHS = {
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "openai-completions": "/completions",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent",
    "gemini-interactions": "/v1beta/interactions",
    "ollama": "/api/chat",
    "mistral": "/v1/chat/completions",
    "cohere": "/v2/chat",
    "bedrock-converse": "/model/m/converse-stream",
}
LONG = 3600.0  # seconds that no test waits
SOON = 10.0  # seconds in which what has to happen at once does
CLIENT = httpx.Client(verify=False, timeout=SOON)


def url_of(server: FakeServer, wire_format: str, *, streams: bool = True) -> str:
    path = PATHS.get(wire_format, "/any/route")
    changed = path if streams else path.replace(":stream", ":").replace(":G", ":g").replace("-stream", "")
    return server.base_url(wire_format) + changed


def ask(
    server: FakeServer, wire_format: str, *, streams: bool = True, client: Any = None, **more: Any
) -> httpx.Response:
    body = {"model": "m", "stream": streams, **more}
    return (client or CLIENT).post(url_of(server, wire_format, streams=streams), json=body)


@pytest.fixture(scope="module", autouse=True)
def closed_client() -> Iterator[None]:
    yield
    CLIENT.close()


def message_of(wire_format: str, response: httpx.Response) -> rd.Message:
    assert response.status_code == 200, response.text
    chunks = rx.of(response.content) if "json" not in response.headers["content-type"] else None
    chunks = chunks or rx.from_iterable([json.loads(line) for line in response.text.splitlines()])
    decode = (
        rd.decode("auto", only=wire_format) if "event-stream" in response.headers["content-type"] else None
    )
    found = chunks.pipe(decode or rd.decode(wire_format), rd.scan_deltas(), rd.to_message()).run()
    assert isinstance(found, rd.Message)
    return found


@pytest.mark.parametrize("wire_format", HTTP)
def test_a_client_gets_the_reply_as_a_stream(wire_format: str) -> None:
    if wire_format == "ag-ui":
        pytest.importorskip("ag_ui")
    with FakeProvider("Hello wörld").serve() as server:
        response = ask(server, wire_format)
    assert message_of(wire_format, response).text == "Hello wörld"


@pytest.mark.parametrize("wire_format", WHOLE)
def test_a_client_that_does_not_stream_gets_the_whole_body(wire_format: str) -> None:
    call = rd.ToolCall(call_id="c1", name="tides", arguments={"port": "Brest"})
    reply: Any = "Hello world" if wire_format == "openai-completions" else ["Hello world", call]
    with FakeProvider(reply, repeat=True).serve() as server:
        streamed = message_of(wire_format, ask(server, wire_format))
        response = ask(server, wire_format, streams=False)
    assert response.headers["content-type"] == "application/json"
    whole = message_of(wire_format, response)
    assert whole.text == "Hello world"
    assert whole.blocks == streamed.blocks
    assert (whole.usage, whole.finish_reason) == (streamed.usage, streamed.finish_reason)


def test_the_requests_are_kept_in_order_with_what_was_sent() -> None:
    provider = FakeProvider("one", "two")
    with provider.serve() as server:
        ask(server, "openai-chat", messages=["?"])
        CLIENT.post(url_of(server, "ollama"), json={}, headers={"X-Who": "me"})
    first, second = provider.requests
    assert (first.wire_format, first.path) == ("openai-chat", "/openai-chat/v1/chat/completions")
    assert first.body == {"model": "m", "stream": True, "messages": ["?"]}
    assert (second.wire_format, second.headers["x-who"]) == ("ollama", "me")
    assert provider.left == 0


def test_a_reply_may_be_a_function_of_the_request() -> None:
    def reply(request: FakeRequest) -> str:
        return f"You asked {request.body['question']}"

    with FakeProvider(reply).serve() as server:
        assert message_of("ollama", ask(server, "ollama", question="why")).text == "You asked why"


# Where a request goes.


@pytest.mark.parametrize("wire_format", PATHS)
def test_a_path_without_a_prefix_says_the_format_but_for_a_dialect(wire_format: str) -> None:
    provider = FakeProvider("Hi")
    prefix = "/v1" if wire_format.startswith("openai") else ""
    with provider.serve() as server:
        CLIENT.post(server.url + prefix + PATHS[wire_format], json={"stream": True})
    assert provider.requests[0].wire_format == ("openai-chat" if wire_format == "mistral" else wire_format)


def test_all_of_openai_s_endpoints_are_below_each_base_url() -> None:
    provider = FakeProvider("Hi", repeat=True)
    with provider.serve() as server:
        for end in ("/responses", "/completions", "/chat/completions"):
            CLIENT.post(server.base_url("openai-chat") + end, json={})
    names = [request.wire_format for request in provider.requests]
    assert names == ["openai-responses", "openai-completions", "openai-chat"]


def test_a_server_of_one_format_reads_paths_without_a_prefix_as_that_format_s() -> None:
    provider = FakeProvider("Hi", repeat=True)
    with provider.serve("mistral") as server:
        assert server.base_url("mistral") == server.url
        ask(server, "mistral")
        CLIENT.post(server.url + "/v1/responses", json={})
        ask(server, "openai-chat")
    names = [request.wire_format for request in provider.requests]
    assert names == ["mistral", "openai-responses", "openai-chat"]


@pytest.mark.parametrize(
    "path", ["/", "/v1/embeddings", "/openai-chat/v1/embeddings", "/ollama/api/generate"]
)
def test_another_path_is_refused_and_takes_no_reply(path: str) -> None:
    provider = FakeProvider("Hi")
    with provider.serve() as server:
        response = CLIENT.post(server.url + path, json={"stream": True})
    assert response.status_code == 404
    assert "serves nothing at" in response.text
    assert (provider.left, provider.requests) == (1, [])


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/models", "data"),
        ("/openai-chat/v1/models/fake-model", "id"),
        ("/anthropic-messages/v1/models", "has_more"),
        ("/gemini/v1beta/models", "models"),
        ("/api/tags", "models"),
        ("/api/version", "version"),
        ("/", "fake_provider"),
    ],
)
def test_a_list_of_models_takes_no_reply(path: str, field: str) -> None:
    provider = FakeProvider("Hi")
    with provider.serve() as server:
        response = CLIENT.get(server.url + path)
        head = CLIENT.head(server.url + path)
        assert CLIENT.get(server.url + "/nowhere").status_code == 404
    assert field in response.json()
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == response.headers["content-length"]
    assert provider.left == 1


# What is refused in words, so that no client tries again.


def test_one_request_too_many_is_refused_in_words() -> None:
    with FakeProvider("Hi").serve() as server:
        ask(server, "openai-chat")
        response = ask(server, "openai-chat")
        other = ask(server, "gemini")
    assert response.status_code == other.status_code == 400
    assert "has 1 reply, and was asked once more" in response.json()["error"]["message"]
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert other.json()["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("streams", [True, False])
def test_a_reply_that_the_format_can_not_carry_is_refused_in_words(streams: bool) -> None:
    with FakeProvider(rd.ToolCall(name="f", arguments={})).serve() as server:
        response = ask(server, "openai-completions", streams=streams)
    assert response.status_code == 400
    assert "a stream of openai-completions can't carry" in response.json()["error"]["message"]


def failing(_: FakeRequest) -> str:
    raise AssertionError("the model was asked twice")


def test_an_error_in_a_reply_s_function_reaches_the_client_and_the_test() -> None:
    with pytest.raises(AssertionError, match="asked twice"), FakeProvider(failing).serve() as server:
        response = ask(server, "anthropic-messages")
        assert response.status_code == 500
        assert "asked twice" in response.json()["error"]["message"]


def test_an_error_in_a_reply_s_function_does_not_hide_the_block_s_own() -> None:
    with pytest.raises(ZeroDivisionError), FakeProvider(failing).serve() as server:
        ask(server, "ollama")
        raise ZeroDivisionError


# Errors.


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ev.StreamError("no", "rate_limit_error"), 429),
        (ev.StreamError("no", "overloaded_error"), 529),
        (ev.StreamError("no", "invalid_request_error", "model_not_found"), 404),
        (ev.StreamError("no", "RESOURCE_EXHAUSTED"), 429),
        (ev.StreamError("no", "throttlingException"), 429),
        (ev.StreamError("no", "rate_limit_error", "503"), 503),
        (ev.StreamError("no", None, "999"), 500),
        (ev.StreamError("no"), 500),
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_an_error_that_comes_first_is_the_answer(error: ev.StreamError, status: int, streams: bool) -> None:
    with FakeProvider(error).serve() as server:
        response = ask(server, "openai-chat", streams=streams)
    assert response.status_code == status
    found = response.json()["error"]
    assert (found["message"], found["code"]) == ("no", error.code)
    assert found["type"] == error.type or (error.type is None and found["type"] == "server_error")


@pytest.mark.parametrize("wire_format", [*HTTP, "bedrock-converse"])
def test_an_error_that_comes_first_is_in_the_format_s_own_form(wire_format: str) -> None:
    with FakeProvider(ev.StreamError("Slow down", "rate_limit_error")).serve() as server:
        response = ask(server, wire_format)
    assert response.status_code == 429
    assert "Slow down" in response.text
    if wire_format in PATHS:
        (*_, last) = rd.providers.decoder(wire_format).decode(response.json())
        assert isinstance(last, ev.StreamError)
        assert last.message == "Slow down"


@pytest.mark.parametrize("wire_format", HTTP)
def test_a_later_error_is_an_event_of_the_stream(wire_format: str) -> None:
    if wire_format == "ag-ui":
        pytest.importorskip("ag_ui")
    with FakeProvider(["Hel", ev.StreamError("Boo")]).serve() as server:
        response = ask(server, wire_format)
    with pytest.raises(rd.ProviderError) as raised:
        message_of(wire_format, response)
    assert raised.value.message == "Boo"


@pytest.mark.parametrize("streams", [True, False])
def test_an_exception_that_comes_first_closes_the_connection_without_an_answer(streams: bool) -> None:
    with (
        FakeProvider([0.01, ConnectionError()]).serve() as server,
        pytest.raises(httpx.RemoteProtocolError, match="without sending a response"),
    ):
        ask(server, "openai-chat", streams=streams)


def test_a_later_exception_cuts_the_stream() -> None:
    said: list[bytes] = []
    with (
        FakeProvider(["Hel", OSError()]).serve() as server,
        CLIENT.stream("POST", url_of(server, "ollama"), json={}) as response,
        pytest.raises(httpx.RemoteProtocolError, match="incomplete"),
    ):
        said.extend(response.iter_raw())
    assert b"Hel" in b"".join(said)


# Times, and the ends of connections.


def lines(response: httpx.Response) -> Iterator[str]:
    return (line for line in response.iter_lines() if line)


def test_a_piece_comes_before_the_pause_behind_it_and_leaving_cuts_the_pause() -> None:
    provider = FakeProvider(["Hello", LONG, "world"])
    with provider.serve() as server:
        stream = CLIENT.stream("POST", url_of(server, "ollama"), json={})
        pieces = stream.__enter__().iter_raw()
        said = b""
        while b"Hello" not in said:
            said += next(pieces)
    with pytest.raises(httpx.RemoteProtocolError):
        b"".join(pieces)
    assert not provider.requests[0].closed.is_set()


def test_a_pause_is_kept() -> None:
    provider = FakeProvider(["a", 0.03, "b"], ["a", 0.03, "b"], [0.03, ev.StreamError("no")])
    with provider.serve() as server:
        for streams in (True, False, True):
            before = time.monotonic()
            ask(server, "ollama", streams=streams)
            assert time.monotonic() - before >= 0.03


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_goes_away_in_a_pause_is_seen(streams: bool) -> None:
    asked = threading.Event()

    def reply(_: FakeRequest) -> Any:
        asked.set()
        return ["Hello", LONG, "world"]

    provider = FakeProvider(reply)
    with provider.serve() as server, socket.create_connection(address(server)) as client:
        body = json.dumps({"stream": streams}).encode()
        client.sendall(request_of("/api/chat", f"Content-Length: {len(body)}", body=body))
        assert asked.wait(SOON)
        client.close()
        assert provider.requests[0].closed.wait(SOON)


def test_a_client_that_goes_away_between_pieces_is_seen() -> None:
    provider = FakeProvider([part for _ in range(2000) for part in ("more ", 0.005)])
    with provider.serve() as server, httpx.Client(verify=False) as client:
        with client.stream("POST", url_of(server, "anthropic-messages"), json={"stream": True}) as response:
            next(lines(response))
        assert provider.requests[0].closed.wait(SOON)


def test_a_client_that_has_read_the_reply_has_not_gone_away() -> None:
    provider = FakeProvider("Hi")
    with provider.serve() as server:
        ask(server, "openai-chat")
    assert not provider.requests[0].closed.is_set()


def test_a_client_that_does_not_read_holds_up_nothing() -> None:
    big = rd.ContentPart("image", options={"data": "A" * 30_000_000, "mime_type": "image/png"})
    provider = FakeProvider(big, "Hi")
    with provider.serve() as server, socket.create_connection(address(server)) as slow:
        slow.sendall(request_of("/api/chat", "Content-Length: 2", body=b"{}"))
        slow.recv(1)
        assert message_of("ollama", ask(server, "ollama")).text == "Hi"


def test_twenty_clients_at_once_get_a_reply_each() -> None:
    provider = FakeProvider(*(f"reply {number}" for number in range(20)))
    said: list[str] = []
    with provider.serve() as server:

        def one() -> None:
            said.append(message_of("openai-chat", ask(server, "openai-chat")).text)

        threads = [threading.Thread(target=one) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(said) == sorted(f"reply {number}" for number in range(20))
    assert len(provider.requests) == 20


def test_two_requests_come_by_one_connection() -> None:
    with FakeProvider("one", "two").serve() as server, httpx.Client(verify=False) as client:
        for text in ("one", "two"):
            response = ask(server, "openai-chat", client=client)
            assert message_of("openai-chat", response).text == text
        pool: Any = client._transport
        assert len(pool._pool.connections) == 1


def test_leaving_ends_every_thread_and_frees_the_port() -> None:
    before = {*threading.enumerate()}
    server = FakeProvider(["a", LONG], "b").serve()
    with httpx.Client(verify=False) as client:
        stream = client.stream("POST", url_of(server, "ollama"), json={})
        next(lines(stream.__enter__()))
        ask(server, "ollama", client=client)
        server.close()
        server.close()  # which says nothing new
        assert {*threading.enumerate()} == before
    with FakeProvider("c").serve(port=address(server)[1]) as again:
        assert again.url == server.url
        assert message_of("ollama", ask(again, "ollama")).text == "c"


# The server.


def address(server: FakeServer) -> tuple[str, int]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return host, int(port)


def request_of(path: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    head = "\r\n".join([f"POST {path} HTTP/{version}", "Host: localhost", *headers])
    return f"{head}\r\n\r\n".encode() + body


@says("`rxdelta.testing` reads")
def test_the_server_listens_on_this_machine_only() -> None:
    with FakeProvider().serve() as server:
        assert address(server)[0] == "127.0.0.1"


@pytest.mark.parametrize("port", [-1, 65536, True, "80", 1.5])
def test_a_port_must_be_one(port: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="port: must be a whole number from 0 to 65535"):
        FakeProvider().serve(port=port)


def test_a_port_in_use_is_an_error() -> None:
    with FakeProvider().serve() as server, pytest.raises(OSError, match=r"[Aa]ddress"):
        FakeProvider().serve(port=address(server)[1])


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError, match="openai-chat"):
        FakeProvider().serve("openai")
    with FakeProvider().serve() as server, pytest.raises(rd.errors.UnknownWireFormatError):
        server.base_url("openai")
    with pytest.raises(rd.InvalidValueError, match="wire_format"):
        FakeProvider().serve(3)  # type: ignore[arg-type]


def test_a_recording_is_served_in_its_own_chunks_and_whole_and_in_other_formats(tmp_path: Path) -> None:
    path = tmp_path / "reply.jsonl"
    chunks = [*FakeProvider("Hi there").chunks("openai-chat")]
    for chunk in chunks:  # a server that leaves out what is null
        chunk |= {"system_fingerprint": "fp_1"}
        chunk["choices"] = [{k: v for k, v in one.items() if v is not None} for one in chunk["choices"]]
    rx.from_iterable(chunks).pipe(rd.record(path)).run()
    with FakeProvider.from_recording(path, speed=0, repeat=True).serve() as server:
        streamed = ask(server, "openai-chat")
        assert streamed.text.count("fp_1") == len(chunks)
        assert message_of("openai-chat", streamed).text == "Hi there"
        for wire_format, streams in (("openai-chat", False), ("gemini", True), ("ollama", False)):
            response = ask(server, wire_format, streams=streams)
            assert message_of(wire_format, response).text == "Hi there"


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_with_a_status_is_answered_with_it_and_says_when_to_try_again(stream: bool) -> None:
    limit = rd.RecordedError("Slow down.", "RateLimitError", status_code=429, headers={"retry-after": "2"})
    with FakeProvider([limit], "Hi").serve() as server:
        url = f"{server.base_url('openai-chat')}/chat/completions"
        first, second = (httpx.post(url, json={"stream": stream}) for _ in range(2))
    assert (first.status_code, first.headers["retry-after"]) == (429, "2")
    assert first.json()["error"]["message"] == "Slow down."
    assert second.status_code == 200
