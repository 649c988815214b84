"""The gateway of the examples, asked by the official packages, and driven by Codex and Claude Code."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.coding_agents import CLAUDE, CODEX, Agent, Run

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn

PATH = Path(__file__).resolve().parents[2] / "examples" / "gateway.py"
SECONDS = 30  # nothing here takes time; what hangs is found
SECRET = "the provider's secret 4711"
QUESTION = [{"role": "user", "content": "Lisbon or Oslo?"}]


class Model:
    """A model that says what a test wants, in Anthropic's words, one list of chunks for each request."""

    def __init__(self) -> None:
        self.says: list[list[Any]] = []
        self.asked: list[Any] = []
        self.left = threading.Event()  # a reply has been closed

    async def ask(self, asked: Any) -> AsyncIterator[Any]:
        self.asked.append(asked)
        try:
            for chunk in self.says[min(len(self.asked), len(self.says)) - 1]:
                if isinstance(chunk, Exception):
                    raise chunk
                if chunk is FOR_EVER:
                    await asyncio.Event().wait()
                yield chunk
        finally:
            self.left.set()


FOR_EVER = object()


class ServiceError(Exception):
    """What a provider's package raises for an answer with this status."""

    def __init__(self, status_code: int) -> None:
        super().__init__(SECRET)
        self.status_code = status_code


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    pieces = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [{"type": "content_block_start", "index": index, "content_block": start}, *pieces]


def text(index: int, *pieces: str) -> list[Any]:
    deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
    return [*block(index, {"type": "text", "text": ""}, *deltas), end(index)]


def thinking(index: int, *pieces: str) -> list[Any]:
    deltas = ({"type": "thinking_delta", "thinking": piece} for piece in pieces)
    return [*block(index, {"type": "thinking", "thinking": ""}, *deltas), end(index)]


def call(index: int, call_id: str, name: str, *pieces: str) -> list[Any]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, *deltas)


def end(index: int) -> Any:
    return {"type": "content_block_stop", "index": index}


def started(*chunks: Any) -> list[Any]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    head = {"id": "msg_1", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return [{"type": "message_start", "message": head}, *chunks]


def said(*chunks: Any, reason: str = "end_turn") -> list[Any]:
    last = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}
    return [*started(*chunks), last, {"type": "message_stop"}]


WEATHER = said(
    *thinking(0, "Two ", "cities."),
    *text(1, "I look ", "it up."),
    *call(2, "call_a", "get_forecast", '{"city": ', '"Lisbon"}'),
    end(2),
    *call(3, "call_b", "get_forecast", '{"city": "Oslo"}'),
    end(3),
    reason="tool_use",
)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = [("call_a", {"city": "Lisbon"}), ("call_b", {"city": "Oslo"})]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Any, str]]:
    """The example's module, and the address at which it is served."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GATEWAY_KEY", "MODEL"):
            patch.delenv(name, raising=False)
        spec = importlib.util.spec_from_file_location("gateway", PATH)
        assert spec is not None
        assert spec.loader is not None
        gateway: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(gateway)
    server = uvicorn.Server(uvicorn.Config(gateway.app, port=0, log_level="critical", ws="none"))
    serving = threading.Thread(target=server.run, name="gateway")
    serving.start()
    while not server.started:
        assert serving.is_alive()
    yield gateway, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    serving.join(SECONDS)


@pytest.fixture
def model(served: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> Model:
    gateway, _ = served
    gateway.entries.clear()
    one = Model()
    monkeypatch.setattr(gateway, "ask", one.ask)
    return one


@pytest.fixture
def address(served: tuple[Any, str]) -> str:
    return served[1]


def http(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """The status of an answer, and its body."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(asked, timeout=SECONDS) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


# The official packages.


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_anthropics_package_gets_thinking_text_and_calls(model: Model, address: str, stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    model.says = [WEATHER]
    asked: Any = {
        "model": "house",
        "max_tokens": 100,
        "system": "Be short.",
        "messages": QUESTION,
        "tools": [{"name": "get_forecast", "description": "The weather.", "input_schema": CITY}],
    }
    with anthropic.Anthropic(api_key="none", base_url=address, max_retries=0) as client:
        if stream:
            with client.messages.stream(**asked) as reply:
                message = reply.get_final_message()
        else:
            message = client.messages.create(**asked)
    assert [one.type for one in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (message.content[0].thinking, message.content[1].text) == ("Two cities.", "I look it up.")
    assert [(one.id, one.input) for one in message.content[2:]] == CALLS
    assert (message.model, message.stop_reason, message.usage.output_tokens) == ("house", "tool_use", 7)
    (got,) = model.asked
    assert [(one.role, one.text) for one in got.messages] == [
        ("system", "Be short."),
        ("user", "Lisbon or Oslo?"),
    ]
    assert (got.request["model"], got.request["max_tokens"]) == ("house", 100)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_openais_package_gets_a_response_with_reasoning_text_and_calls(
    model: Model, address: str, stream: bool
) -> None:
    openai = pytest.importorskip("openai")
    model.says = [WEATHER]
    asked: Any = {
        "model": "house",
        "instructions": "Be short.",
        "input": "Lisbon or Oslo?",
        "tools": [{"type": "function", "name": "get_forecast", "parameters": CITY, "strict": False}],
        "max_output_tokens": 100,
    }
    with openai.OpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0) as client:
        if stream:
            with client.responses.stream(**asked) as reply:
                response = reply.get_final_response()
        else:
            response = client.responses.create(**asked)
    assert [one.type for one in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert (response.output[0].summary[0].text, response.output_text) == ("Two cities.", "I look it up.")
    assert [(one.call_id, json.loads(one.arguments)) for one in response.output[2:]] == CALLS
    assert (response.model, response.status, response.usage.output_tokens) == ("house", "completed", 7)
    (got,) = model.asked
    assert [(one.role, one.text) for one in got.messages] == [
        ("system", "Be short."),
        ("user", "Lisbon or Oslo?"),
    ]
    assert [(one.name, dict(one.parameters)["required"]) for one in got.tools] == [("get_forecast", ["city"])]
    assert (got.request["model"], got.request["max_tokens"]) == ("claude-sonnet-4-5", 100)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_openais_package_gets_a_completion_with_text_and_calls(
    model: Model, address: str, stream: bool
) -> None:
    openai = pytest.importorskip("openai")
    model.says = [WEATHER]
    asked: Any = {
        "model": "house",
        "messages": QUESTION,
        "tools": [{"type": "function", "function": {"name": "get_forecast", "parameters": CITY}}],
    }
    with openai.OpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as reply:
                completion = reply.get_final_completion()
        else:
            completion = client.chat.completions.create(**asked)
    (choice,) = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("I look it up.", "tool_calls")
    calls = choice.message.tool_calls
    assert [(one.id, json.loads(one.function.arguments)) for one in calls] == CALLS
    assert (completion.model, completion.usage.completion_tokens) == ("house", 7)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_ollamas_package_gets_thinking_text_and_calls(model: Model, address: str, stream: bool) -> None:
    ollama = pytest.importorskip("ollama")
    model.says = [WEATHER]
    tool = {"type": "function", "function": {"name": "get_forecast", "parameters": CITY}}
    asked: Any = {"model": "house", "messages": QUESTION, "tools": [tool]}
    with ollama.Client(host=address) as client:
        lines = [*client.chat(**asked, stream=True)] if stream else [client.chat(**asked)]
    assert "".join(line.message.thinking or "" for line in lines) == "Two cities."
    assert "".join(line.message.content or "" for line in lines) == "I look it up."
    calls = [one for line in lines for one in line.message.tool_calls or ()]
    assert [dict(one.function.arguments) for one in calls] == [given for _, given in CALLS]
    assert (lines[-1].model, lines[-1].done, lines[-1].eval_count) == ("house", True, 7)
    (got,) = model.asked
    assert [(one.role, one.text) for one in got.messages] == [("user", "Lisbon or Oslo?")]
    assert [one.name for one in got.tools] == ["get_forecast"]


def test_ollamas_package_sends_images_calls_and_results_in_their_order(model: Model, address: str) -> None:
    ollama = pytest.importorskip("ollama")
    model.says = [said(*text(0, "Take skis."))]
    calls = [{"function": {"name": "get_forecast", "arguments": given}} for _, given in CALLS]
    messages = [
        {"role": "user", "content": "Here?", "images": [b"\x89PNG\r\n\x1a\n"]},
        {"role": "assistant", "thinking": "Hm.", "content": "", "tool_calls": calls},
        *({"role": "tool", "tool_name": "get_forecast", "content": given["city"]} for _, given in CALLS),
    ]
    with ollama.Client(host=address) as client:
        client.chat(model="house", messages=messages)
    asked = model.asked[0]
    (image,) = (one for one in asked.request["messages"][0]["content"] if one["type"] == "image")
    assert image["source"]["media_type"] == "image/png"
    reply = asked.messages[1]
    assert [(one.arguments["city"], one.result.content) for one in reply.tool_calls] == [
        ("Lisbon", "Lisbon"),
        ("Oslo", "Oslo"),
    ]


def test_the_results_of_a_client_stand_behind_its_calls(model: Model, address: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    model.says = [said(*text(0, "Take skis."))]
    calls = [
        {"type": "tool_use", "id": call_id, "name": "get_forecast", "input": given}
        for call_id, given in CALLS
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call_id, "content": given["city"]} for call_id, given in CALLS
    ]
    messages = [
        *QUESTION,
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    with anthropic.Anthropic(api_key="none", base_url=address, max_retries=0) as client:
        client.messages.create(model="house", max_tokens=9, messages=messages)
    asked = model.asked[0].messages[-1]
    assert [(one.call_id, one.result.content) for one in asked.tool_calls] == [
        ("call_a", "Lisbon"),
        ("call_b", "Oslo"),
    ]


# Refusals and failures.

PATHS = ["/v1/responses", "/v1/chat/completions", "/v1/messages", "/api/chat"]
ASKED: dict[str, Any] = {
    "/v1/responses": {"input": "Hi"},
    "/v1/chat/completions": {"messages": QUESTION},
    "/v1/messages": {"messages": QUESTION, "max_tokens": 9},
    "/api/chat": {"messages": QUESTION, "stream": False},
}


def message_of(path: str, body: Any) -> str:
    """The text of an error in the protocol of a path."""
    if path == "/api/chat":
        assert list(body) == ["error"]
        return str(body["error"])
    assert (body.get("type") == "error") is (path == "/v1/messages")
    return str(body["error"]["message"])


def test_a_response_to_another_is_refused(model: Model, address: str) -> None:
    body = {"model": "house", "input": "And then?", "previous_response_id": "resp_1"}
    status, answer = http(f"{address}/v1/responses", body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert "previous_response_id" in answer["error"]["message"]
    assert model.asked == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"a"', b"[" * 100_000, b"{}", b"\xff", b'{"tools": 1}'])
def test_what_is_no_request_is_refused(model: Model, address: str, path: str, body: bytes) -> None:
    status, answer = http(address + path, body)
    assert status == 400
    assert message_of(path, answer)
    assert model.asked == []


FIELDS = [
    "input", "instructions", "max_tokens", "messages", "model", "options", "stream", "stream_options", "system",
    "tool_choice", "tools",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_what_is_odd_is_read_or_refused(model: Model, address: str, path: str) -> None:
    model.says = [said(*text(0, "Hello"))]
    for field in FIELDS:
        for odd in (None, -1, "\ud800", [1], [{"role": "\ud800"}], {"a": 1}):
            status, answer = http(address + path, {**ASKED[path], field: odd})
            assert status in (200, 400), (field, odd, answer)


def test_what_the_provider_doesnt_take_is_refused_too(model: Model, address: str) -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    body = {"messages": [{"role": "user", "content": [sound]}]}
    status, answer = http(f"{address}/v1/chat/completions", body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert model.asked == []


def test_a_provider_gets_its_own_words_and_no_other_does(model: Model, address: str) -> None:
    model.says = [said(*text(0, "Hello"))]
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    effort = {"thinking": {"type": "adaptive"}, "reasoning": {"effort": "high"}, "tools": tools}
    assert http(f"{address}/v1/messages", {**ASKED["/v1/messages"], **effort})[0] == 200
    assert http(f"{address}/v1/responses", {**ASKED["/v1/responses"], **effort})[0] == 200
    own, other = (one.request for one in model.asked)
    assert (own["thinking"], own["tools"]) == ({"type": "adaptive"}, tools)
    assert own.keys() ^ other.keys() == {"thinking", "tools"}


@pytest.mark.parametrize("path", PATHS)
def test_a_page_in_a_browser_cant_ask(model: Model, address: str, path: str) -> None:
    status, answer = http(address + path, ASKED[path], origin="https://example.com")
    assert (status, message_of(path, answer)) == (403, "Pages can't ask here.")
    assert model.asked == []


@pytest.mark.parametrize("path", PATHS)
def test_with_a_key_only_those_who_have_it_can_ask(
    served: tuple[Any, str], model: Model, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    gateway, address = served
    monkeypatch.setattr(gateway, "KEY", "secret")
    model.says = [said(*text(0, "Hello"))]
    assert http(address + path, ASKED[path])[0] == 401
    assert http(address + path, ASKED[path], authorization="Bearer sécret")[0] == 401
    assert http(address + path, ASKED[path], authorization="Bearer secret")[0] == 200
    assert http(address + path, ASKED[path], **{"x-api-key": "secret"})[0] == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("raised", "status"), [(429, 429), (529, 503), (500, 503), (400, 400), (401, 500)])
def test_an_error_before_the_first_event_has_a_status_and_a_masked_text(
    model: Model, address: str, path: str, stream: bool, raised: int, status: int
) -> None:
    model.says = [[ServiceError(raised)]]
    got, answer = http(address + path, {**ASKED[path], "stream": stream})
    assert got == status
    assert "4711" not in json.dumps(answer)
    assert message_of(path, answer).startswith("The provider of this model ")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "broken",
    [
        [*started(*text(0, "Hel")), ServiceError(500)],
        started(*text(0, "Hel")),
        [*started(), {"type": "error", "error": {"type": "overloaded_error", "message": SECRET}}],
    ],
    ids=["raised", "cut", "said"],
)
def test_an_error_later_is_the_protocols_own(
    model: Model, address: str, path: str, broken: list[Any]
) -> None:
    model.says = [broken]
    status, answer = http(address + path, {**ASKED[path], "stream": True})
    assert status == 200
    assert "4711" not in answer
    assert '"error"' in answer
    for ended in ("response.completed", "message_stop", '"finish_reason":"stop"', '"done":true'):
        assert ended not in answer
    status, answer = http(address + path, ASKED[path])
    assert status == 500
    assert "4711" not in message_of(path, answer)


def test_a_key_that_the_model_says_reaches_no_client(model: Model, address: str) -> None:
    model.says = [said(*text(0, "It is s", "k-0123456789", "abcdefgh."))]
    for path in PATHS:
        for stream in (True, False):
            status, answer = http(address + path, {**ASKED[path], "stream": stream})
            assert status == 200
            assert "cdefgh" not in answer
            assert "[key]" in answer


def test_a_sentence_that_is_refused_ends_the_reply_in_front_of_it(
    served: tuple[Any, str], model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, address = served
    monkeypatch.setattr(gateway, "REFUSED", "[Ss]ecret")
    model.says = [said(*text(0, "It is blue. The sec", "ret is green. Bye."))]
    for path in PATHS:
        for stream in (True, False):
            status, answer = http(address + path, {**ASKED[path], "stream": stream})
            assert status == 200
            assert "It is blue." in answer
            assert "green" not in answer
            assert "Bye" not in answer


def test_who_leaves_ends_the_request(model: Model, address: str) -> None:
    model.says = [[*started(*text(0, "Hel")), FOR_EVER]]
    asked = urllib.request.Request(
        f"{address}/v1/messages", json.dumps({**ASKED["/v1/messages"], "stream": True}).encode()
    )
    with urllib.request.urlopen(asked, timeout=SECONDS) as got:
        assert got.readline().startswith(b"event: message_start")
    assert model.left.wait(SECONDS)


# What else is asked.


def test_counting_tokens_asks_no_model(model: Model, address: str) -> None:
    status, answer = http(f"{address}/v1/messages/count_tokens", {"model": "house", "messages": QUESTION})
    assert status == 200
    assert 5 < json.loads(answer)["input_tokens"] < 50
    assert http(f"{address}/v1/messages/count_tokens", b"[]")[1]["type"] == "error"
    assert model.asked == []


def test_the_packages_read_the_list_of_models(address: str) -> None:
    openai, anthropic = pytest.importorskip("openai"), pytest.importorskip("anthropic")
    ollama = pytest.importorskip("ollama")
    with ollama.Client(host=address) as client:
        assert [one.model for one in client.list().models] == ["claude-sonnet-4-5"]
    with openai.OpenAI(api_key="none", base_url=f"{address}/v1") as client:
        assert [one.id for one in client.models.list()] == ["claude-sonnet-4-5"]
    with anthropic.Anthropic(api_key="none", base_url=address) as client:
        assert [one.id for one in client.models.list()] == ["claude-sonnet-4-5"]


def test_the_page_shows_what_has_come_by_and_runs_nothing(
    model: Model, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model.says = [said(*text(0, "Hello"))]
    script = "<script>alert(1)</script>\ud800"
    for path in PATHS:
        assert http(address + path, {**ASKED[path], "model": script})[0] == 200
    with urllib.request.urlopen(address, timeout=SECONDS) as got:
        policy, page = got.headers["content-security-policy"], got.read().decode()
    assert "default-src 'none'" in policy
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    rows = [re.findall(r">([^<]*)</td>", row) for row in page.split("<tr>")[2:]]
    assert [row[1] for row in rows] == ["ollama", "anthropic-messages", "openai-chat", "openai-responses"]
    assert {(row[5], row[6], row[7]) for row in rows} == {("completed", "10", "7")}


FORECASTS: dict[str, Any] = {
    "/v1/responses": {"type": "function", "name": "get_forecast", "parameters": CITY},
    "/v1/chat/completions": {
        "type": "function",
        "function": {"name": "get_forecast", "parameters": CITY},
    },
    "/v1/messages": {"name": "get_forecast", "input_schema": CITY},
    "/api/chat": {"type": "function", "function": {"name": "get_forecast", "parameters": CITY}},
}


@pytest.mark.parametrize("path", PATHS)
def test_without_a_key_a_recorded_model_asks_for_the_weather(address: str, path: str) -> None:
    status, answer = http(address + path, {**ASKED[path], "tools": [FORECASTS[path]]})
    assert (status, answer.count("get_forecast")) == (200, 2)
    status, answer = http(address + path, ASKED[path])
    assert (status, "17 °C and dry" in answer) == (200, True)


# Codex and Claude Code.

AGENTS = pytest.mark.parametrize("agent", [CODEX, CLAUDE], ids=lambda agent: agent.name)


def run(agent: Agent, index: int, call_id: str, command: str) -> list[Any]:
    """The call of an agent's shell, whose end is another chunk."""
    name, argument = agent.shell
    return call(index, call_id, name, json.dumps({argument: command}))


def texts(ran: Run) -> list[str]:
    """What the agent showed of the model's texts."""
    codex = [one["item"] for one in ran.of("item.completed")]
    claude = [part for one in ran.of("assistant") for part in one["message"]["content"]]
    shown = [one["text"] for one in [*codex, *claude] if one["type"] in ("agent_message", "text")]
    return [one for one in shown if not one.startswith("API Error")]


@pytest.mark.slow
@AGENTS
def test_an_agent_runs_two_calls_of_one_reply_and_tells_the_model(
    agent: Agent, model: Model, address: str, tmp_path: Path
) -> None:
    model.says = [
        said(
            *thinking(0, "I ", "plan."),
            *text(1, "I write ", "two files."),
            *run(agent, 2, "call_a", "printf one > a.txt; echo alpha"),
            end(2),
            *run(agent, 3, "call_b", "printf two > b.txt; echo omega"),
            end(3),
            reason="tool_use",
        ),
        said(*text(0, "Both are ", "there.")),
    ]
    ran = agent.ask(address, tmp_path)
    assert ran.code == 0
    assert ran.elsewhere == []
    assert [(tmp_path / "work" / f"{name}.txt").read_text() for name in "ab"] == ["one", "two"]
    assert texts(ran) == ["I write two files.", "Both are there."]
    first, second = model.asked
    assert agent.shell[0] in [tool["name"] if isinstance(tool, dict) else tool.name for tool in first.tools]
    reply = second.messages[-1]
    assert [(one.type, one.text) for one in reply.blocks[:2]] == [
        ("reasoning", "I plan."),
        ("text", "I write two files."),
    ]
    told = [(one.call_id, "alpha" in str(one.result), "omega" in str(one.result)) for one in reply.tool_calls]
    assert told == [("call_a", True, False), ("call_b", False, True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "how"),
    [(CODEX, "cut"), (CODEX, "said"), (CLAUDE, "said")],
    ids=["codex-cut", "codex-said", "claude-said"],
)
def test_an_agent_runs_no_call_that_was_cut(
    agent: Agent, how: str, model: Model, address: str, tmp_path: Path
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": SECRET}}
    half = run(agent, 1, "call_a", "printf one > a.txt")
    model.says = [started(*text(0, "I write a file."), *half, *([error] if how == "said" else []))]
    ran = agent.ask(address, tmp_path)
    assert ran.code == 1
    assert list((tmp_path / "work").iterdir()) == []
    assert texts(ran) == ["I write a file."]
    assert "4711" not in json.dumps(ran.events)
    assert len(model.asked) == 1


@pytest.mark.slow
@AGENTS
def test_an_agent_says_that_the_provider_failed(
    agent: Agent, model: Model, address: str, tmp_path: Path
) -> None:
    model.says = [[ServiceError(401)]]
    ran = agent.ask(address, tmp_path)
    assert ran.code == 1
    assert texts(ran) == []
    assert "4711" not in json.dumps(ran.events)


@pytest.mark.slow
@AGENTS
def test_an_agent_asks_again_where_a_stream_failed_before_any_content(
    agent: Agent, served: tuple[Any, str], model: Model, tmp_path: Path
) -> None:
    """Codex streams again. Claude Code asks for the message in one piece, so both kinds of answers are needed."""
    gateway, address = served
    model.says = [
        [*started(), {"type": "error", "error": {"type": "api_error", "message": SECRET}}],
        said(
            *text(0, "I write."),
            *run(agent, 1, "call_a", "printf one > a.txt"),
            end(1),
            reason="tool_use",
        ),
        said(*text(0, "Done.")),
    ]
    ran = agent.ask(address, tmp_path, retries=1)
    assert ran.code == 0
    assert (tmp_path / "work" / "a.txt").read_text() == "one"
    assert texts(ran) == ["I write.", "Done."]
    assert [one.streams for one in gateway.entries] == [True, agent is CODEX, True]


PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n"
PROGRAM = "text(await tools.exec_command({cmd: 'echo one > a.txt'}))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "tool", "given"),
    [("gpt-5.5", "apply_patch", PATCH), ("gpt-6-sol", "exec", PROGRAM)],
    ids=["apply_patch", "exec"],
)
def test_codex_gets_a_text_for_a_tool_that_takes_one_though_the_model_calls_a_function(
    known: str, tool: str, given: str, model: Model, address: str, tmp_path: Path
) -> None:
    """Of these models Codex knows that they take such tools. Those of the second stand in an item of the conversation."""
    made = call(0, "call_a", tool, json.dumps({"input": given}))
    model.says = [said(*made, end(0), reason="tool_use"), said(*text(0, "Done."))]
    ran = CODEX.ask(address, tmp_path, model=known)
    assert ran.code == 0
    assert texts(ran) == ["Done."]
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"
    first, second = model.asked
    (defined,) = (one for one in first.tools if one.name == tool)
    assert [*defined.parameters["properties"]] == ["input"]
    (asked,) = second.messages[-1].tool_calls
    assert asked.arguments == {"input": given}
    assert asked.result is not None


@pytest.mark.slow
def test_codex_runs_a_tool_in_a_namespace_though_the_model_calls_it_by_its_name_alone(
    model: Model, address: str, tmp_path: Path
) -> None:
    """Those for sub-agents are in one. What the sub-agent says to the same model is of no matter here."""
    made = call(0, "call_a", "spawn_agent", json.dumps({"message": "Say hello."}))
    model.says = [said(*made, end(0), reason="tool_use"), said(*text(0, "Done."))]
    ran = CODEX.ask(address, tmp_path)
    assert ran.code == 0
    assert "spawn_agent" in [one.name for one in model.asked[0].tools]
    calls = [one for asked in model.asked[1:] for message in asked.messages for one in message.tool_calls]
    assert calls
    assert all("agent_id" in str(one.result) for one in calls)
