"""A pipeline as an endpoint of chat completions, asked by OpenAI's own clients for Python and for JavaScript."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from support.clients import FOLDER, ask
from support.loops import run
from support.needs import without

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse, RelayResponse, end_streams
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks

openai = pytest.importorskip("openai")
uvicorn = pytest.importorskip("uvicorn")
applications = pytest.importorskip("starlette.applications")
responses = pytest.importorskip("starlette.responses")
routing = pytest.importorskip("starlette.routing")

ev = rd.events
SPENT = rd.TokenUsage(3, 5, cache_read_tokens=2, reasoning_tokens=1)
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def said(index: int, *pieces: str, kind: str = "text", choice: int = 0) -> list[rd.Event]:
    delta = ev.ReasoningDelta if kind == "reasoning" else ev.TextDelta
    return [
        ev.BlockStart(index, {"type": kind}, choice=choice),
        *(delta(index, piece, choice=choice) for piece in pieces),
        ev.BlockFinish(index, choice=choice),
    ]


def called(index: int, call_id: str, *pieces: str, name: str = "look") -> list[rd.Event]:
    start = {"type": "tool_call_chunk", "id": call_id, "name": name, "args": ""}
    return [
        ev.BlockStart(index, start),
        *(ev.ToolCallDelta(index, one) for one in pieces),
        ev.BlockFinish(index),
    ]


def reply(*events: rd.Event, reason: str = "stop", choice: int = 0) -> list[rd.Event]:
    finish = ev.MessageFinish(reason, usage=SPENT, choice=choice)
    return [ev.MessageStart("m1", "small", choice=choice), *events, finish]


def cited(index: int) -> list[rd.Event]:
    source = {"url": f"https://x.test/{index}", "start_index": 0, "end_index": 2}
    return [ev.BlockFinish(index, {"type": "text", "text": "So", "citations": [source]})]


def drawn(index: int) -> list[rd.Event]:
    return [ev.BlockFinish(index, {"type": "image", "url": f"https://x.test/{index}.png"})]


ANSWER = reply(*said(0, "Hm.", kind="reasoning"), *said(1, "Hel", "lo ", "👋"))
TWO_CALLS = reply(
    *said(0, "I look."),
    *called(1, "c1", '{"at"', ": 1}"),
    *called(2, "c2", '{"at": 2}'),
    *called(3, "c3", "{}", name="ours"),
    reason="tool_use",
)


def model(messages: Sequence[rd.Message], name: str) -> rx.Observable[rd.Event]:
    """What the model says to a conversation."""
    if any(call.result is not None for message in messages for call in message.tool_calls):
        results = [call.result and call.result.content for message in messages for call in message.tool_calls]
        return rx.from_iterable(reply(*said(0, f"It says {results}.")))
    tools = {"ours": lambda: "found"}
    scripts: dict[str, rx.Observable[rd.Event]] = {
        "answers": rx.from_iterable(ANSWER),
        "calls": rx.from_iterable(TWO_CALLS).pipe(rd.run_tools(tools, unknown="leave")),
        "chooses": rx.from_iterable([*reply(*said(0, "one")), *reply(*said(0, "two", choice=1), choice=1)]),
        "breaks": rx.concat(rx.from_iterable(ANSWER[:4]), rx.throw(ValueError("secret"))),
        "stops": rx.from_iterable([*ANSWER[:6], ev.MessageInterrupted("the server stops")]),
        "pauses": rx.concat(
            rx.from_iterable(ANSWER[:5]),
            rx.timer(0.05).pipe(ops.ignore_elements()),
            rx.from_iterable(ANSWER[5:]),
        ),
        "cites": rx.from_iterable(reply(*cited(0), *drawn(1), *cited(2), *drawn(3))),
        "refuses": rx.from_iterable(reply(*said(0, "No.", kind="refusal"))),
    }
    return scripts[name]


async def completions(request: Any) -> Any:
    body = await request.json()
    try:
        messages = rd.requests.from_openai_chat(body["messages"], system=True)
    except rd.InvalidValueError as error:
        return responses.JSONResponse(
            {"error": {"message": str(error), "type": "invalid_request_error"}}, 400
        )
    wants_usage = not body.get("stream") or (body.get("stream_options") or {}).get("include_usage", False)
    encode = rd.to_openai_chat(body["model"], include_usage=wants_usage)
    events = model(messages, body["model"])
    if body.get("stream"):
        return EventStreamResponse(events, encode, keep_alive=0.01)
    completion = rd.wire.openai_chat_completion(await events.pipe(encode, ops.to_list()))
    return responses.JSONResponse(completion, 500 if "error" in completion else 200)


def application(endpoint: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    return applications.Starlette(routes=[routing.Route("/v1/chat/completions", endpoint, methods=["POST"])])


@asynccontextmanager
async def served(app: Any = None) -> AsyncIterator[str]:
    """The address of an API: this one, or that of `completions`."""
    app = app or application(completions)
    config = uvicorn.Config(app, port=0, lifespan="off", log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        end_streams()
        server.should_exit = True
        await serving


def asked(name: str, *more: Any, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, *more]
    return {"model": name, "messages": messages, **fields}


async def talk(url: str, test: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Let the asynchronous client talk, on a loop of its own: it leaves its generators to the loop's end."""

    async def talking() -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            await test(client)

    await asyncio.to_thread(lambda: asyncio.run(talking()))


def with_client(test: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Run the test with a client of the served API."""

    async def main() -> None:
        async with served() as url:
            await talk(url, test)

    run(main)


def ask_synchronously(ask_it: Callable[[Any], Any]) -> Any:
    """What the synchronous client gets."""

    async def main() -> Any:
        async with served() as url:
            with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
                return await asyncio.to_thread(ask_it, client)

    return run(main)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


# Python.


def test_the_client_reads_texts_reasoning_and_usage() -> None:
    async def test(client: Any) -> None:
        request = asked("answers", stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in await client.chat.completions.create(**request)]
        deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == "Hello 👋"
        assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "Hm."
        assert {(chunk.id, chunk.model, chunk.object) for chunk in chunks} == {
            ("m1", "answers", "chat.completion.chunk")
        }
        assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-2:] == [None, "stop"]
        usage = chunks[-1].usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (3, 5, 8)
        assert usage.prompt_tokens_details.cached_tokens == 2
        assert usage.completion_tokens_details.reasoning_tokens == 1
        assert not chunks[-1].choices
        without_usage = [
            chunk async for chunk in await client.chat.completions.create(**asked("answers", stream=True))
        ]
        assert all(chunk.usage is None and chunk.choices for chunk in without_usage)

    with_client(test)


def test_the_clients_helper_runs_a_conversation_with_tools() -> None:
    async def test(client: Any) -> None:
        async with client.chat.completions.stream(**asked("calls", tools=[LOOK])) as stream:
            kinds = {event.type async for event in stream}
            completion = await stream.get_final_completion()
        assert "tool_calls.function.arguments.delta" in kinds
        (choice,) = completion.choices
        calls = choice.message.tool_calls
        assert choice.finish_reason == "tool_calls"
        assert [(one.id, one.function.name, one.function.parsed_arguments) for one in calls] == [
            ("c1", "look", None),
            ("c2", "look", None),
        ]
        assert [json.loads(one.function.arguments) for one in calls] == [{"at": 1}, {"at": 2}]
        results = [{"role": "tool", "tool_call_id": one.id, "content": one.id.upper()} for one in calls]
        said_so = choice.message.model_dump(
            exclude_none=True, exclude={"tool_calls": {"__all__": {"function": {"parsed_arguments"}}}}
        )
        async with client.chat.completions.stream(**asked("calls", said_so, *results)) as stream:
            completion = await stream.get_final_completion()
        assert completion.choices[0].message.content == "It says ['C1', 'C2']."
        assert completion.choices[0].finish_reason == "stop"

    with_client(test)


def test_the_client_gets_every_choice_a_refusal_and_a_reply_in_one_piece() -> None:
    async def test(client: Any) -> None:
        async with client.chat.completions.stream(**asked("chooses", n=2)) as stream:
            completion = await stream.get_final_completion()
        assert [one.message.content for one in completion.choices] == ["one", "two"]
        whole = await client.chat.completions.create(**asked("chooses", n=2))
        assert [one.message.content for one in whole.choices] == ["one", "two"]
        assert (whole.object, whole.usage.total_tokens) == ("chat.completion", 8)
        refused = await client.chat.completions.create(**asked("refuses"))
        assert (refused.choices[0].message.refusal, refused.choices[0].message.content) == ("No.", None)
        called = await client.chat.completions.create(**asked("calls"))
        assert [one.function.arguments for one in called.choices[0].message.tool_calls] == [
            '{"at": 1}',
            '{"at": 2}',
        ]

    with_client(test)


def test_the_clients_helper_collects_the_sources_and_images_of_several_blocks() -> None:
    async def test(client: Any) -> None:
        async with client.chat.completions.stream(**asked("cites")) as stream:
            streamed = (await stream.get_final_completion()).choices[0].message
        whole = (await client.chat.completions.create(**asked("cites"))).choices[0].message
        for message in (streamed, whole):
            assert [one.url_citation.url for one in message.annotations] == [
                "https://x.test/0",
                "https://x.test/2",
            ]
            assert [one["image_url"]["url"] for one in message.images] == [
                "https://x.test/1.png",
                "https://x.test/3.png",
            ]

    with_client(test)


@pytest.mark.parametrize(("name", "says"), [("breaks", rd.wire.MASKED), ("stops", "the server stops")])
def test_the_client_raises_what_ended_the_stream_and_has_what_came_before(name: str, says: str) -> None:
    def ask_it(client: Any) -> tuple[str, str]:
        pieces: list[str] = []
        with pytest.raises(openai.APIError) as raised:
            for chunk in client.chat.completions.create(**asked(name, stream=True)):
                pieces += [choice.delta.content or "" for choice in chunk.choices]
        return "".join(pieces), raised.value.message

    expected = "" if name == "breaks" else "Hel"
    assert ask_synchronously(ask_it) == (expected, says)


def test_the_synchronous_client_skips_comments() -> None:
    def ask_it(client: Any) -> str:
        with client.chat.completions.stream(**asked("pauses")) as stream:
            text: str = stream.get_final_completion().choices[0].message.content
            return text

    assert ask_synchronously(ask_it) == "Hello 👋"


def test_the_client_raises_for_what_is_no_conversation_and_for_a_reply_that_failed() -> None:
    async def test(client: Any) -> None:
        with pytest.raises(openai.BadRequestError, match=r"messages\[2\]: has the scheme s3") as refused:
            image = {"type": "image_url", "image_url": {"url": "s3://bucket/a.png"}}
            await client.chat.completions.create(**asked("answers", {"role": "user", "content": [image]}))
        assert refused.value.type == "invalid_request_error"
        with pytest.raises(openai.InternalServerError, match="An error occurred") as failed:
            await client.chat.completions.create(**asked("breaks"))
        assert failed.value.type == "server_error"

    with_client(test)


def test_the_client_reads_a_reply_of_a_relay() -> None:
    async def test(client: Any) -> None:
        for _ in range(2):
            async with client.chat.completions.stream(**asked("any")) as stream:
                completion = await stream.get_final_completion()
            assert completion.choices[0].message.content == "Hello 👋"
            assert completion.usage.total_tokens == 8

    async def main() -> None:
        is_read = Subject[rd.Event]()  # then there is a silence, with comments, behind frames with ids
        async with Relay.open() as relay:

            async def numbered(_: Any) -> Any:
                is_read.on_completed()
                return RelayResponse(relay, "c1", rd.to_openai_chat(), keep_alive=0.01)

            async def unnumbered(_: Any) -> Any:
                return EventStreamResponse(relay.watch("c1"), rd.to_openai_chat(), keep_alive=0.01)

            paused = rx.concat(is_read, rx.timer(0.1).pipe(ops.ignore_elements()))
            await relay.start(
                "c1", rx.concat(rx.from_iterable(ANSWER[:5]), paused, rx.from_iterable(ANSWER[5:]))
            )
            for endpoint in (numbered, unnumbered):
                async with served(application(endpoint)) as url:
                    await talk(url, test)

    run(main)


def test_the_documented_endpoints_are_some() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "frontends" / "openai.md").read_text("utf-8")
    requests: list[Any] = []

    def ask(fields: Any) -> Any:
        requests.append(fields)
        return sample_chunks("weather")

    program: Any = {}
    code = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0]
    exec(code.partition("\nasked = ")[0], program)  # without the question at its end
    program["ask"] = ask

    async def test(client: Any) -> None:
        async with client.chat.completions.stream(**asked("house", tools=[LOOK])) as stream:
            streamed = await stream.get_final_completion()
        whole = await client.chat.completions.create(**asked("house"))
        for completion in (streamed, whole):
            (choice,) = completion.choices
            assert choice.finish_reason == "tool_calls"
            assert {one.function.name for one in choice.message.tool_calls} == {"get_forecast"}
            assert all(json.loads(one.function.arguments) for one in choice.message.tool_calls)
            assert completion.model == "house"
            assert completion.usage.total_tokens > 0
        response = await client.responses.create(model="house", instructions="Be brief.", input="Look.")
        called = {one.name for one in response.output if one.type == "function_call"}
        assert (response.status, called) == ("completed", {"get_forecast"})

    async def main() -> None:
        async with served(program["app"]) as url:
            await talk(url, test)

    run(main)
    assert [[tool["name"] for tool in request.get("tools", ())] for request in requests] == [["look"], [], []]
    assert requests[0]["system"]


# JavaScript.


def javascript(*requests: Any) -> list[Any]:
    """What the client for JavaScript ends up with."""
    if not (FOLDER / "node_modules" / "openai").is_dir():
        pytest.skip(without("clients", f"`npm ci --prefix {FOLDER}`"))

    async def main() -> list[Any]:
        async with served() as url:
            lines = [{"url": url, **one} for one in requests]
            return await asyncio.to_thread(ask, "openai.mjs", lines)

    found: list[Any] = run(main)
    return found


def test_the_client_for_javascript_reads_the_same() -> None:
    options = {"stream_options": {"include_usage": True}}
    names = ["answers", "calls", "chooses", "breaks", "stops"]
    requests: list[Any] = [{"request": asked(name, **options)} for name in names]
    image = {"type": "image_url", "image_url": {"url": "s3://bucket/a.png"}}
    requests.append({"request": asked("answers", {"role": "user", "content": [image]})})
    requests.append({"request": asked("calls", tools=[LOOK]), "tool": "seen"})
    answers, calls, chooses, breaks, stops, refused, ran = javascript(*requests)
    (choice,) = answers["completion"]["choices"]
    assert choice["message"]["content"] == "Hello 👋"
    assert "".join(delta.get("reasoning_content", "") for _, delta in answers["pieces"]) == "Hm."
    assert answers["usage"]["total_tokens"] == answers["completion"]["usage"]["total_tokens"] == 8
    (choice,) = calls["completion"]["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert [one["function"]["arguments"] for one in choice["message"]["tool_calls"]] == [
        '{"at": 1}',
        '{"at": 2}',
    ]
    assert [one["message"]["content"] for one in chooses["completion"]["choices"]] == ["one", "two"]
    assert rd.wire.MASKED in breaks["error"]["message"]
    assert "the server stops" in stops["error"]["message"]
    assert "".join(delta.get("content", "") for _, delta in stops["pieces"]) == "Hel"
    assert (refused["error"]["name"], refused["error"]["type"]) == (
        "BadRequestError",
        "invalid_request_error",
    )
    assert ran == {"text": "It says ['seen', 'seen'].", "given": [{"at": 1}, {"at": 2}]}
