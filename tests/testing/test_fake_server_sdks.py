"""The official SDKs as judges of a fake provider's server: what they read, and what they raise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from support.served_sdks import SURFACES, Said

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import FakeProvider

CALLS: Any = [
    "Let me ",
    "look.",
    (
        rd.ToolCall(name="weather", arguments={"city": "Zürich"}),
        rd.ToolCall(name="time", arguments={"zone": "CET"}),
    ),
]
SOON = 10.0  # seconds in which what has to happen does

ALL = [*SURFACES]
WHOLE = [name for name, surface in SURFACES.items() if not surface.helper]


@pytest.mark.parametrize(
    ("name", "streams"), [*((name, True) for name in ALL), *((name, False) for name in WHOLE)]
)
def test_an_sdk_reads_text_parallel_calls_and_usage(name: str, streams: bool) -> None:
    surface = SURFACES[name]
    has_calls = surface.wire_format != "openai-completions"
    provider = FakeProvider(CALLS if has_calls else CALLS[:2])
    with provider.serve() as server:
        said = surface(server.base_url(surface.wire_format), streams=streams)
    calls = [("weather", {"city": "Zürich"}), ("time", {"zone": "CET"})]
    assert said == (Said("Let me look.", calls, (1, 6)) if has_calls else Said("Let me look.", [], (1, 2)))
    assert provider.requests[0].wire_format == surface.wire_format


FAULTS: dict[str, Any] = {
    "refused": [ConnectionError()],
    "429": ev.StreamError("Slow down", "rate_limit_error"),
    "event": ["Hel", ev.StreamError("Boo", "overloaded_error")],
    "cut": ["Hel", ConnectionError()],
    "stall": ["Hel", 3600.0, "lo"],
}
OPENAI = {
    "refused": "APIConnectionError",
    "429": "RateLimitError",
    "event": "APIError",
    "cut": "APIConnectionError",
    "stall": "APITimeoutError",
}
HTTPX = {"refused": "RemoteProtocolError", "cut": "RemoteProtocolError", "stall": "ReadTimeout"}
RAISES: dict[str, dict[str, str]] = {
    "openai-chat": OPENAI,
    "openai-chat-helper": OPENAI,
    "openai-responses": OPENAI,
    "openai-responses-helper": {
        **OPENAI,
        "event": "RuntimeError",
    },  # of an `error` it says "Didn't receive …"
    "openai-completions": OPENAI,
    "anthropic": {
        **HTTPX,
        "refused": "APIConnectionError",
        "429": "RateLimitError",
        "event": "APIStatusError",
    },
    "google-genai": {**HTTPX, "429": "ClientError", "event": "ServerError"},
    "ollama": {**HTTPX, "429": "ResponseError", "event": "ResponseError"},
    "mistralai": {**HTTPX, "429": "SDKError", "event": "ResponseValidationError"},  # it knows no error events
    "cohere": {**HTTPX, "429": "TooManyRequestsError", "event": "ApiError"},
    "botocore": {
        "refused": "ConnectionClosedError",
        "429": "ThrottlingException",
        "event": "EventStreamError",
        "cut": "ProtocolError",
        "stall": "ReadTimeoutError",
    },
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ALL)
def test_an_sdk_raises_its_own_error(name: str, fault: str) -> None:
    surface = SURFACES[name]
    provider = FakeProvider(FAULTS[fault])
    with provider.serve() as server, pytest.raises(Exception) as raised:  # each has its own
        surface(server.base_url(surface.wire_format), timeout=0.2 if fault == "stall" else SOON)
    assert type(raised.value).__name__ == RAISES[name][fault]
    if fault == "429" or (fault == "event" and name not in ("mistralai", "openai-responses-helper")):
        assert FAULTS["429"].message in str(raised.value) or "Boo" in str(raised.value)
    assert provider.left == 0


def test_an_sdk_does_not_try_again_what_is_refused_in_words() -> None:
    openai = pytest.importorskip("openai")
    provider = FakeProvider()
    with (
        provider.serve() as server,
        openai.OpenAI(base_url=server.base_url("openai-chat"), api_key="x") as client,
        pytest.raises(openai.BadRequestError, match="has 0 replies, and was asked once more"),
    ):
        client.chat.completions.create(model="m", messages=[])
    assert len(provider.requests) == 1


def test_an_sdk_that_tries_again_gets_the_next_reply() -> None:
    openai = pytest.importorskip("openai")
    provider = FakeProvider(ev.StreamError("Slow down", "rate_limit_error"), "Hello")
    with (
        provider.serve() as server,
        openai.OpenAI(base_url=server.base_url("openai-chat"), api_key="x") as client,
    ):
        client._calculate_retry_timeout = lambda *_: 0.0
        found = client.chat.completions.create(model="m", messages=[])
    assert found.choices[0].message.content == "Hello"
    assert provider.left == 0


# rd.stream over the SDKs' own streams.


def test_rd_stream_over_openai_s_stream_gives_the_reply_s_message() -> None:
    openai = pytest.importorskip("openai")

    async def main() -> rd.Message:
        with FakeProvider(CALLS).serve() as server:
            async with openai.AsyncOpenAI(base_url=server.base_url("openai-chat"), api_key="x") as client:
                chunks = await client.chat.completions.create(model="m", messages=[], stream=True)
                async with rd.stream(chunks) as reply:
                    return await reply.result()

    _is_the_reply(asyncio.run(main()))


def test_rd_stream_over_anthropic_s_stream_gives_the_reply_s_message() -> None:
    anthropic = pytest.importorskip("anthropic")

    async def main() -> rd.Message:
        with FakeProvider(CALLS).serve() as server:
            url = server.base_url("anthropic-messages")
            async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
                chunks = await client.messages.create(model="m", max_tokens=9, messages=[], stream=True)
                async with rd.stream(chunks) as reply:
                    return await reply.result()

    _is_the_reply(asyncio.run(main()))


def _is_the_reply(message: rd.Message) -> None:
    assert message.text == "Let me look."
    assert [(call.name, dict(call.arguments_as_map())) for call in message.tool_calls] == [
        ("weather", {"city": "Zürich"}),
        ("time", {"zone": "CET"}),
    ]
    assert message.finish_reason == "tool_use"
    assert (message.id, message.model) == ("reply_1", "fake-model")


def test_to_stop_rd_stream_closes_the_request() -> None:
    openai = pytest.importorskip("openai")
    provider = FakeProvider(["Hello", 3600.0, "world"])

    async def main() -> None:
        with provider.serve() as server:
            async with openai.AsyncOpenAI(base_url=server.base_url("openai-chat"), api_key="x") as client:
                chunks = await client.chat.completions.create(model="m", messages=[], stream=True)
                async with rd.stream(chunks) as reply:
                    async for snapshot in reply:
                        if snapshot.text:
                            break
                    reply.stop()
                assert await asyncio.to_thread(provider.requests[0].closed.wait, SOON)

    asyncio.run(main())


# A program that knows nothing of the fake.

PROGRAM = """
import anthropic, cohere, ollama, openai
from google import genai
asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
print(openai.OpenAI().chat.completions.create(**asked).choices[0].message.content)
print(anthropic.Anthropic().messages.create(**asked, max_tokens=9).content[0].text)
print(ollama.chat(**asked).message.content)
print(cohere.ClientV2().chat(**asked).message.content[0].text)
client = genai.Client()
print(client.models.generate_content(model="m", contents="Hi").text)
import botocore.session
bedrock = botocore.session.get_session().create_client("bedrock-runtime")
asked["messages"] = [{"role": "user", "content": [{"text": "Hi"}]}]
print(bedrock.converse(modelId="m", messages=asked["messages"])["output"]["message"]["content"][0]["text"])
"""


@pytest.mark.slow
def test_the_sdks_of_a_program_in_another_process_find_the_server_by_its_environment() -> None:
    for package in ("anthropic", "cohere", "ollama", "openai", "google.genai", "botocore"):
        pytest.importorskip(package)
    names = ["one", "two", "three", "four", "five", "six"]
    with FakeProvider(*names).serve() as server:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            env=os.environ | server.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.stdout.split() == names, done.stderr
