"""What README says gets lost with the providers' own helpers, and what rxdelta makes of the same bytes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.http_server import Reply, Server

import rxdelta as rd
from rxdelta.testing import sample_chunks

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
START = (ROOT / "docs" / "index.md").read_text("utf-8")
ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
CUT = '{"port": "Brest", "date": "20'


def recorded(name: str) -> list[Any]:
    async def chunks() -> list[Any]:
        return [chunk async for chunk in sample_chunks(name)]

    return asyncio.run(chunks())


def served(chunks: list[Any]) -> Server:
    return Server(
        Reply(
            [
                f"event: {chunk.get('type', 'message')}\ndata: {json.dumps(chunk)}\n\n".encode()
                for chunk in chunks
            ]
        )
    )


@pytest.fixture
def closed_later() -> Iterator[ExitStack]:
    with ExitStack() as clients:
        yield clients


@pytest.fixture
def openai(closed_later: ExitStack) -> Callable[[Server], Any]:
    sdk = pytest.importorskip("openai")
    return lambda server: closed_later.enter_context(
        sdk.OpenAI(api_key="x", base_url=f"{server.url}/v1", max_retries=0)
    )


@pytest.fixture
def anthropic(closed_later: ExitStack) -> Callable[[Server], Any]:
    sdk = pytest.importorskip("anthropic")
    return lambda server: closed_later.enter_context(
        sdk.Anthropic(api_key="x", base_url=server.url, max_retries=0)
    )


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    piece = {
        "index": index,
        **more,
        "function": {"arguments": arguments, **({"name": f"tool_{index}"} if more else {})},
    }
    choice = {"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def test_the_readme_names_the_measured_versions() -> None:
    for name in ("openai", "anthropic"):
        sdk = pytest.importorskip(name)
        assert f"{name} {sdk.__version__}" in README
        assert f"{name} {sdk.__version__}" in START


def test_the_start_page_has_the_readmes_table() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| ") and "what happens" not in line]
    compared = [row for row in rows if row.count("|") == 4 and row in START]
    assert len(compared) >= 3


def test_a_connection_that_closes_in_mid_reply_looks_like_an_end_to_openais_helper(openai: Any) -> None:
    half = recorded("tides")[:-8]
    with served(half) as server, openai(server).chat.completions.stream(**ASK) as stream:
        completion = stream.get_final_completion()
    assert completion.choices[0].message.tool_calls[0].function.arguments == CUT
    assert CUT in README
    with (
        served(half) as server,
        rd.stream(openai(server).chat.completions.create(**ASK, stream=True)) as reply,
        pytest.raises(rd.IncompleteMessageError) as cut,
    ):
        reply.result()
    assert cut.value.snapshot is reply.snapshot
    assert [one.arguments_so_far["port"] for one in reply.snapshot.tool_calls] == ["Brest", "Plymouth"]


def test_a_connection_that_closes_in_mid_reply_looks_like_an_end_to_anthropics_helper(anthropic: Any) -> None:
    half = recorded("weather")[:50]
    request = {**ASK, "max_tokens": 9}
    with served(half) as server, anthropic(server).messages.stream(**request) as stream:
        message = stream.get_final_message()
    assert message.content
    with (
        served(half) as server,
        rd.stream(anthropic(server).messages.create(**request, stream=True)) as reply,
        pytest.raises(rd.IncompleteMessageError) as cut,
    ):
        reply.result()
    assert cut.value.snapshot.text == "".join(block.text for block in message.content if block.type == "text")


def test_the_second_call_first_breaks_openais_helper(openai: Any) -> None:
    chunks = [
        call(1, "", id="b", type="function"),
        call(0, "", id="a", type="function"),
        *(call(index, piece) for piece in ('{"n":', " 1}") for index in (1, 0)),
    ]
    end = {**chunks[0], "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    with (
        served([*chunks, end]) as server,
        openai(server).chat.completions.stream(**ASK) as stream,
        pytest.raises(IndexError, match="list index out of range"),
    ):
        stream.get_final_completion()
    with (
        served([*chunks, end]) as server,
        rd.stream(openai(server).chat.completions.create(**ASK, stream=True)) as reply,
    ):
        message = reply.result()
    assert {one.call_id: (one.name, one.arguments) for one in message.tool_calls} == {
        "a": ("tool_0", {"n": 1}),
        "b": ("tool_1", {"n": 1}),
    }


def test_the_text_is_gone_when_anthropics_events_have_been_read(anthropic: Any) -> None:
    request = {**ASK, "max_tokens": 9}
    with served(recorded("weather")) as server, anthropic(server).messages.stream(**request) as stream:
        assert [*stream]
        theirs = "".join(stream.text_stream)
        whole = "".join(block.text for block in stream.get_final_message().content if block.type == "text")
    with (
        served(recorded("weather")) as server,
        rd.stream(anthropic(server).messages.create(**request, stream=True)) as reply,
    ):
        assert [*reply]
        assert ["".join(reply.text_deltas) for _ in range(2)] == [whole, whole]
    assert re.search(
        rf"`text_stream` gives {len(theirs)} of {len(whole)} characters \| all {len(whole)}", README
    )
