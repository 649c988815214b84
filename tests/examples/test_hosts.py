"""The programs of `examples/tasks` for hosts, each in its real host: a server, a worker, a kernel, a terminal without a screen."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.ai_sdk import Client
from support.browser import page
from support.celery_site import CelerySite, kill, words
from support.clients import ask
from support.coding_agents import CLAUDE, CODEX, Agent
from support.hosts import SECONDS, TASKS, asks, environment, program, served
from support.postgres_servers import need_postgres

import rxdelta as rd
from rxdelta.testing import FakeProvider

pytestmark = pytest.mark.slow

httpx = pytest.importorskip("httpx")

QUESTION = {"id": "q", "role": "user", "parts": [{"type": "text", "text": "Lisbon or Oslo?"}]}
CHAT = {"id": "c 1", "messages": [QUESTION]}
HALF = ["High wa", 600.0, "ter"]
FORECAST = "**Lisbon** is the place to walk"
RUN = {"threadId": "t", "runId": "r", "tools": [], "context": [], "forwardedProps": {}, "state": {}}
RUN["messages"] = [{"id": "q", "role": "user", "content": "When is high water?"}]


def shown(body: str) -> list[Any]:
    """The parts of the message that the AI SDK's rules make of a body."""
    client = Client()
    for line in re.findall("^data: (.*)$", body, re.MULTILINE):
        client.take(rd.wire.DONE if line == "[DONE]" else json.loads(line))
    assert client.done
    return client.parts


def texts(parts: list[Any]) -> list[str]:
    return [part["text"] for part in parts if part["type"] == "text"]


def left_early(url: str, body: Any, module: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the request to the provider is closed when a reader leaves, while the provider is silent."""
    provider = asks(monkeypatch, module, HALF)
    with httpx.stream("POST", url, json=body, timeout=SECONDS) as response:
        assert response.status_code == 200
        next(text for text in response.iter_text() if "High wa" in text)
    return provider.requests[0].closed.wait(SECONDS)


def needs(package: str) -> None:
    """Skip the test where a package is missing, without importing it here."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")


def run_apart(script: str, *arguments: str, **more: str) -> Any:
    """What a script prints as JSON in a process of its own: some hosts warn, and some leave threads."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=2 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_use_chat_shows_the_turns_of_an_agent_as_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    module = program("use_chat", "starlette", "uvicorn")
    with served(module.app) as address:
        url = f"{address}/api/chat"
        parts = shown(httpx.post(url, json=CHAT).text)
        assert [part["output"]["city"] for part in parts if "output" in part] == ["Lisbon", "Oslo"]
        assert [text.split(" is")[0][:12] for text in texts(parts)] == ["I'll compare", "**Lisbon**"]
        for body in (b"x", b"[]", b"{}", b'{"messages": [{"role": 1}]}'):
            assert httpx.post(url, content=body).status_code == 400
        assert left_early(url, CHAT, module, monkeypatch)


def test_use_chat_is_read_by_the_sdks_own_client() -> None:
    module = program("use_chat", "starlette", "uvicorn")
    with served(module.app) as address:
        (told,) = ask("ai_sdk.mjs", [{"url": f"{address}/api/chat"}])
    assert (told["error"], told["invalid"], told["status"]) == (None, None, "ready")
    kinds = [part["type"] for part in told["message"]["parts"]]
    assert kinds.count("tool-get_forecast") == 2
    assert kinds.count("step-start") == 2


def test_fastapi_answers_with_text_and_with_events(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = program("fastapi_chat", "fastapi", "uvicorn")
    kept: list[Any] = []
    monkeypatch.setattr(module, "keep", lambda snapshot, outcome: kept.append((outcome.kind, snapshot.text)))
    with served(module.app) as address:
        answer = httpx.post(f"{address}/text", json={"text": "?"})
        assert answer.text.startswith(FORECAST)
        assert texts(shown(httpx.post(f"{address}/events", json={"text": "?"}).text)) == [answer.text]
        assert httpx.post(f"{address}/text", json={}).status_code == 422
        assert left_early(f"{address}/text", {"text": "?"}, module, monkeypatch)
        assert left_early(f"{address}/events", {"text": "?"}, module, monkeypatch)
    assert kept == [("completed", answer.text)] * 2 + [("disposed", "High wa")] * 2


def test_django_streams_behind_asgi(monkeypatch: pytest.MonkeyPatch) -> None:
    module = program("django_chat", "django", "uvicorn")
    with served(module.application) as address:
        answer = httpx.post(f"{address}/chat", json=CHAT)
        assert texts(shown(answer.text))[0].startswith(FORECAST)
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert left_early(f"{address}/chat", CHAT, module, monkeypatch)


def test_django_streams_behind_wsgi(monkeypatch: pytest.MonkeyPatch) -> None:
    module = program("django_chat", "django")
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet) as server:
        serving = threading.Thread(target=server.serve_forever, args=[0.01])
        serving.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/chat-sync"
            answer = httpx.post(url, json=CHAT)
            assert texts(shown(answer.text))[0].startswith(FORECAST)
            # Here leaving shows when the next piece is written.
            provider = asks(monkeypatch, module, ["High wa", *([0.02, "ter "] * 500)])
            with httpx.stream("POST", url, json=CHAT, timeout=SECONDS) as response:
                next(text for text in response.iter_text() if "High wa" in text)
            assert provider.requests[0].closed.wait(SECONDS)
        finally:
            server.shutdown()
            serving.join(SECONDS)


def test_textual_draws_the_reply_and_a_new_question_ends_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = program("textual_chat", "textual")
    provider = asks(monkeypatch, module, HALF, "At *six*.", ["Hi ", ConnectionResetError()])

    async def main() -> None:
        app = module.Chat()
        async with app.run_test(notifications=True) as pilot:

            async def shows(text: str) -> None:
                while [markdown.source for markdown in app.query(module.Markdown)][-1:] != [text]:
                    await pilot.pause(0.01)

            await pilot.press(*"one", "enter")
            await shows("High wa")
            await pilot.press(*"two", "enter")
            await shows("At *six*.")
            assert provider.requests[0].closed.is_set()
            await app.workers.wait_for_complete([worker for worker in app.workers if worker.is_running])
            assert [message.text for message in app.messages] == ["one", "two", "At *six*."]
            await pilot.press(*"three", "enter")
            await shows("Hi ")
            await app.workers.wait_for_complete([worker for worker in app.workers if worker.is_running])
            assert [notice.severity for notice in app._notifications] == ["error"]

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_the_cells_of_the_notebook_run_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    source = (TASKS / "jupyter_cells.py").read_text("utf-8")
    _, *cells = re.split(r"^# %%.*\n", source, flags=re.MULTILINE)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(TASKS.parents[1])}}
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    outputs = [[dict(output) for output in cell.outputs] for cell in notebook.cells]
    assert outputs[0] == []
    ((whole,), (drawn,), (calls,)) = outputs[1:]
    assert "I'll compare the two forecasts" in whole["data"]["text/markdown"]
    assert drawn["output_type"] == "display_data"
    assert drawn["data"]["text/markdown"] == whole["data"]["text/markdown"]
    assert (
        calls["data"]["text/plain"] == "[{'city': 'Lisbon', 'celsius': 17}, {'city': 'Oslo', 'celsius': 17}]"
    )


MARIMO = """
import asyncio, json
from marimo._ai._types import ChatMessage, ChatModelConfig
from marimo._plugins.ui._impl.chat.chat import CancelPromptRequest, SendMessageRequest
import marimo_chat
from rxdelta.testing import FakeProvider

_, defined = marimo_chat.app.run()
chat, sent = defined["chat"], []
chat._send_message = lambda message, buffers: sent.append(message["content"])
said = ChatMessage("user", "Lisbon or Oslo?", "q", [{"type": "text", "text": "Lisbon or Oslo?"}])


async def ask(request_id):
    await chat._send_prompt(SendMessageRequest([said], ChatModelConfig(), request_id))


async def main():
    await ask("a")
    whole = sent.copy()
    sent.clear()
    provider = FakeProvider(["High wa", 600.0, "ter"])
    defined["answer"].__globals__["ask"] = lambda messages: provider.stream("anthropic-messages")
    asking = asyncio.create_task(ask("b"))
    while not any("High wa" in str(one) for one in sent):
        await asyncio.sleep(0.01)
    await chat._cancel_prompt(CancelPromptRequest("b"))
    await asking
    return whole, sent, provider.requests[0].closed.is_set()


print(json.dumps(asyncio.run(main())))
"""


def test_marimo_runs_the_notebook_and_its_chat_shows_the_frames() -> None:
    """What a browser would send is sent to the element by hand."""
    needs("marimo")
    whole, stopped, closed = run_apart(MARIMO)
    client = Client(6)
    for frame in [*whole[:-1], rd.wire.DONE]:
        client.take(frame)
    assert texts(client.parts)[0].startswith(FORECAST)
    assert whole[-1] is None  # marimo's own end
    assert [frame["type"] for frame in stopped[-3:-1]] == ["text-delta", "text-end"]
    assert closed


STREAMLIT = """
import json, sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from rxdelta import testing

path = sys.argv[1]
app = AppTest.from_file(path, default_timeout=20).run()
app.chat_input[0].set_value("Lisbon or Oslo?").run()
shown = [[one.name, [text.value for text in one.markdown], [status.label for status in one.status]] for one in app.chat_message]
again = [len(app.run().chat_message), len(app.exception)]

provider = testing.FakeProvider(["High wa", *([0.05, "ter "] * 600)], repeat=True)
testing.sample_chunks = lambda *_, **more: provider.stream("anthropic-messages")
for seconds in (0.5, 2, 10):  # the script must come so far that it asks
    app = AppTest.from_file(path, default_timeout=20).run()
    app.chat_input[0].set_value("?")
    try:
        app.run(timeout=seconds)  # the script is stopped, as by a rerun
    except RuntimeError:
        pass
    if provider.requests:
        break
print(json.dumps([shown, again, provider.requests[0].closed.wait(20)]))
"""


def test_streamlit_shows_the_reply_and_its_calls_and_a_rerun_closes_the_request() -> None:
    needs("streamlit")
    shown, again, closed = run_apart(STREAMLIT, str(TASKS / "streamlit_chat.py"))
    assert [name for name, _, _ in shown] == ["user", "assistant", "assistant"]
    assert shown[1][2] == ["get_forecast", "get_forecast"]
    assert shown[2][1][0].startswith(FORECAST)
    assert again == [3, 0]
    assert closed


GRADIO = """
import json, os, time
import gradio_chat
from gradio_client import Client
from rxdelta.testing import FakeProvider

_, address, _ = gradio_chat.demo.launch(prevent_thread_lock=True, quiet=True)
client = Client(address, verbose=False, analytics_enabled=False)
values = [*client.submit("Lisbon or Oslo?", api_name="/answer")]
provider = FakeProvider(["High wa", 600.0, "ter"])
gradio_chat.ask = lambda messages: provider.stream("anthropic-messages")
job = client.submit("?", api_name="/answer")
while not job.outputs():
    time.sleep(0.01)
job.cancel()  # the stop button
print(json.dumps([values, provider.requests[0].closed.wait(20)]), flush=True)
os._exit(0)
"""


def test_gradio_shows_boxes_that_grow_and_a_stop_closes_the_request() -> None:
    for package in ("gradio", "gradio_client"):
        needs(package)
    values, closed = run_apart(GRADIO, GRADIO_ANALYTICS_ENABLED="False")
    assert len(values) > 5
    titles = [box["metadata"].get("title") for box in values[-1]]
    assert titles == ["Reasoning", None, "get_forecast", "get_forecast", None]
    assert [box["metadata"].get("status") for box in values[-1][2:4]] == ["done", "done"]
    assert values[-1][-1]["content"].startswith(FORECAST)
    assert closed


@pytest.fixture
def celery_site(tmp_path: Path) -> Iterator[CelerySite]:
    for package in ("celery", "django", "psycopg", "uvicorn"):
        needs(package)
    need_postgres()
    with CelerySite.running(tmp_path) as site:
        yield site


def test_a_worker_of_celery_publishes_and_a_page_of_django_reads(celery_site: CelerySite) -> None:
    """`support.celery_site` runs examples/tasks/celery_chat.py."""
    with (
        celery_site.web() as web,
        celery_site.worker(),
        celery_site.browser() as browser,
        celery_site.browser() as stranger,
    ):
        assert browser.get("/reply").status_code == 204
        assert browser.post("/ask", data={"question": "?"}).status_code == 403  # a form of another site
        assert "<h3>1 &lt; 2?</h3>" in celery_site.ask(browser, "1 < 2?")
        first, second = (browser.get("/reply") for _ in range(2))
        assert texts(shown(first.text))[0].startswith(FORECAST)
        assert shown(second.text) == shown(first.text)
        assert first.headers["content-type"].startswith("text/event-stream")
        for wrong in ("x", "0123456789abcdef-1"):
            assert browser.get("/reply", headers={"last-event-id": wrong}).status_code == 404
        assert stranger.get("/reply").status_code == 204
        web.terminate()
        web.wait(SECONDS)
        assert celery_site.database.has_no_clients()
    assert "Finished server process" in celery_site.log
    assert "Traceback" not in celery_site.log, celery_site.log


@pytest.mark.slow
def test_a_page_of_django_goes_on_where_its_line_broke_and_learns_that_the_worker_was_killed(
    celery_site: CelerySite,
) -> None:
    celery_site.allow(5)
    with celery_site.web(), celery_site.worker() as worker, celery_site.browser() as browser:
        celery_site.ask(browser, "How far?")
        with browser.stream("GET", "/reply") as response:
            begun = "".join(up_to(response.iter_text(), "4w "))
        last = re.findall("^id: (.*)$", begun, re.MULTILINE)[-1]
        celery_site.allow(1000)
        rest = browser.get("/reply", headers={"last-event-id": last}).text
        (whole,) = texts(shown(begun + rest))
        assert whole == words(40)

        celery_site.allow(5)
        celery_site.ask(browser, "And now?")
        with browser.stream("GET", "/reply") as response:
            begun = "".join(up_to(response.iter_text(), "4w "))
        last = re.findall("^id: (.*)$", begun, re.MULTILINE)[-1]
        with browser.stream("GET", "/reply", headers={"last-event-id": last}) as response:
            assert not [query for _, query in celery_site.database.clients() if "django_" in query]
            kill(worker)
            rest = "".join(response.iter_text())  # it ends
    client = Client()
    for line in re.findall("^data: (.*)$", begun + rest, re.MULTILINE)[:-1]:
        client.take(json.loads(line))
    assert texts(client.parts) == [words(5)]
    assert '"type":"error"' in rest
    assert rest.endswith("data: [DONE]\n\n")


@pytest.mark.slow
def test_the_page_of_django_goes_on_through_a_reload_and_a_deploy_and_says_what_failed(
    celery_site: CelerySite,
) -> None:
    celery_site.allow(5)
    with page() as shown, celery_site.worker() as worker:
        with celery_site.web() as web:
            shown.goto(celery_site.address)
            shown.fill("[name=question]", "1 < 2?")
            shown.click("button")
            shown.wait_for_selector("#reply >> text=4w")
            shown.reload()
            shown.wait_for_selector("#reply >> text=4w")
            assert shown.locator("h3").text_content() == "1 < 2?"
            web.terminate()
            web.wait(SECONDS)
        celery_site.allow(9)
        with celery_site.web():
            shown.wait_for_selector("#reply >> text=8w")
            assert shown.locator("#reply").text_content() == words(9)
            kill(worker)
            shown.wait_for_selector("#reply >> text=/[(].+[)]$/")
            assert shown.locator("#reply").text_content().startswith(f"{words(9)} (")

            shown.fill("[name=question]", "Anybody?")
            shown.click("button")
            shown.wait_for_selector("#reply >> text=(no worker answers)")
    assert "Internal Server Error" not in celery_site.log


def up_to(body: Iterator[str], text: str) -> Iterator[str]:
    """What a body says, up to this text."""
    for said in body:
        yield said
        if text in said:
            return
    raise AssertionError(f"it ended without {text!r}")


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
def test_the_clients_of_coding_agents_read_the_gateway(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`test_gateway.py` runs the agents themselves."""
    openai, anthropic = pytest.importorskip("openai"), pytest.importorskip("anthropic")
    module = program("coding_agents", "starlette", "uvicorn")
    with served(module.app) as address:
        with openai.OpenAI(base_url=f"{address}/v1", api_key="x") as client:
            if streams:
                with client.responses.stream(model="house", input="?") as stream:
                    answer = stream.get_final_response()
            else:
                answer = client.responses.create(model="house", input="?")
            assert answer.output_text.startswith(FORECAST)
        asked: Any = {"model": "house", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
        with anthropic.Anthropic(base_url=address, api_key="x") as client:
            if streams:
                with client.messages.stream(**asked) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**asked)
            assert message.content[0].text.startswith(FORECAST)
        assert httpx.post(f"{address}/v1/messages", json={"messages": "x"}).status_code == 400
        if streams:
            assert left_early(f"{address}/v1/messages", {**asked, "stream": True}, module, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [CODEX, CLAUDE], ids=["codex", "claude"])
def test_a_coding_agent_runs_the_calls_of_any_model(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = program("coding_agents", "starlette", "uvicorn")
    tool, argument = agent.shell
    call = rd.ToolCall(call_id="a", name=tool, arguments={argument: "printf one > a.txt"})
    provider = asks(monkeypatch, module, ["I write a file. ", call], "It is there.")
    with served(module.app) as address:
        ran = agent.ask(address, tmp_path)
    assert (ran.code, ran.elsewhere, provider.left) == (0, [], 0)
    assert (tmp_path / "work" / "a.txt").read_text() == "one"


def test_a_langgraph_agent_is_read_by_ag_uis_own_client() -> None:
    module = program("langgraph_to_ag_ui", "langgraph", "starlette", "uvicorn", "ag_ui")
    with served(module.app) as address:
        answer = httpx.post(f"{address}/agent", json=RUN)
        for body in (b"[]", b"{}", b'{"messages": 1}'):
            assert httpx.post(f"{address}/agent", content=body).status_code == 400
    frames = [json.loads(line) for line in re.findall("^data: (.*)$", answer.text, re.MULTILINE)]
    assert [frames[0]["type"], frames[-1]["type"]] == ["RUN_STARTED", "RUN_FINISHED"]
    (told,) = ask("ag_ui.mjs", [{"body": answer.text, "messages": RUN["messages"], "threadId": "t", "runId": "r", "client": "1.0.0"}])  # fmt: skip
    assert told["messages"][-1]["content"] == "High water in Brest is at six."


def test_a_reply_goes_on_through_a_reload_at_either_of_two_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    module = program("resume_after_reload", "fastapi", "uvicorn")
    monkeypatch.delitem(sys.modules, "resume_after_reload")
    other = program("resume_after_reload")
    with served(module.app) as here, served(other.app) as there:
        urls = [f"{address}/api/chat/c 1/stream" for address in (here, there)]
        assert [httpx.get(url).status_code for url in urls] == [204, 204]
        going_on = threading.Event()

        async def chunks(*_: Any) -> AsyncIterator[Any]:
            async for chunk in FakeProvider(["High wa", "ter is at six."]).stream("anthropic-messages"):
                yield chunk
                while "High wa" in str(chunk) and not going_on.is_set():
                    await asyncio.sleep(0.01)

        monkeypatch.setattr(module, "ask", chunks)
        with httpx.stream("POST", f"{here}/api/chat", json=CHAT) as response:
            next(text for text in response.iter_text() if "High wa" in text)
        with ExitStack() as stack:
            resumed = [stack.enter_context(httpx.stream("GET", url, timeout=SECONDS)) for url in urls]
            assert [one.status_code for one in resumed] == [200, 200]
            readers = [one.iter_text() for one in resumed]
            begun = ["".join(up_to(reader, "High wa")) for reader in readers]
            going_on.set()
            bodies = [said + "".join(reader) for said, reader in zip(begun, readers)]
        assert [texts(shown(body)) for body in bodies] == [["High water is at six."]] * 2
        assert [httpx.get(url).status_code for url in urls] == [204, 204]


def test_a_websocket_carries_questions_a_stop_and_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    module = program("websocket_chat", "starlette", "uvicorn", "websockets")
    from websockets.sync.client import connect

    provider = asks(monkeypatch, module, "At six.", HALF, ["Hi ", ConnectionResetError()], HALF)

    def until(last: str) -> list[Any]:
        events = []
        while last not in (text := socket.recv(SECONDS)):
            events.append(json.loads(text))
        return [*events, json.loads(text)]

    with served(module.app) as address:
        with connect(f"{address.replace('http', 'ws')}/chat") as socket:
            socket.send('{"question": "When?"}')
            events = [rd.events.from_dict(event) for event in until("message-finish")]
            fold = rd.Fold()
            for event in events:
                fold.step(event)
            assert fold.snapshot is not None
            assert (fold.snapshot.text, fold.snapshot.status) == ("At six.", "complete")
            socket.send('{"question": "When?"}')
            until("High wa")
            socket.send('{"stop": true}')
            assert until("message-interrupted")
            assert provider.requests[1].closed.wait(SECONDS)
            socket.send('{"question": "When?"}')
            until("failed")
            socket.send('{"question": "When?"}')
            until("High wa")
        assert provider.requests[3].closed.wait(SECONDS)
