"""The front ends' own clients, cut off behind every frame of a relay's stream, go on with what the relay has."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from support.browser import needed, page
from support.clients import ask
from support.loops import run
from support.streams import streams

import rxdelta as rd
from rxdelta.asgi import RelayResponse, end_streams
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks

uvicorn = pytest.importorskip("uvicorn")
Headers = pytest.importorskip("starlette.datastructures").Headers
HTMLResponse = pytest.importorskip("starlette.responses").HTMLResponse

ev = rd.events
RUN = {"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [], "forwardedProps": {}}
Encode = Callable[[], Any]


async def one_by_one(events: list[rd.Event]) -> AsyncIterator[rd.Event]:
    for event in events:
        yield event
        await asyncio.sleep(0)  # whoever reads live gets each by itself


async def frames(relay: Relay, encode: Encode, after: str | None = None) -> str:
    entries = relay.entries("c1", split_at=after)
    pieces = entries.pipe(rd.to_resumable_sse(encode(), after))
    return b"".join([piece async for piece in rd.iterate(pieces)]).decode()


def resumed(events: list[rd.Event], encode: Encode) -> tuple[str, dict[str, str]]:
    """What the first connection gets, and what comes behind each of its ids, and behind none."""

    async def main() -> tuple[str, dict[str, str]]:
        async with Relay.open() as relay:
            first = asyncio.create_task(frames(relay, encode))
            await asyncio.sleep(0.01)
            await relay.start("c1", rd.from_async_iterable(lambda: one_by_one(events)))
            whole = await first
            behind = {"": await frames(relay, encode)}
            for one in re.findall("^id: (.*)$", whole, re.MULTILINE):
                behind[one] = await frames(relay, encode, one)
            return whole, behind

    return run(main)


def cuts(whole: str, every: int) -> list[str]:
    """The beginning of a body up to each of its frames but the last, or to each second one and so on."""
    return [whole[: found.end()] for found in re.finditer("\n\n", whole)][:-1][::every]


AMOUNTS = pytest.mark.parametrize(
    "every",
    [pytest.param(4, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak, id="all")],
)


def sample() -> list[rd.Event]:
    events: list[rd.Event] = []

    async def main() -> None:
        chunks = rd.from_async_iterable(lambda: sample_chunks("weather"))
        reply = chunks.pipe(
            rd.decode("anthropic-messages"), rd.run_tools({"get_forecast": lambda **_: "dry"})
        )
        await rd.for_each(reply, events.append)

    asyncio.run(main())
    return events


def generated(name: str) -> list[rd.Event]:
    return [*next(stream for stream in streams(seed=3) if stream.name == name).events]


REPLIES = {
    "sample": sample,
    "messages without ids": lambda: generated("messages without ids"),
    "another attempt": lambda: generated("another attempt"),
    "interrupted": lambda: generated("interrupted"),
    "failed": lambda: generated("failed"),
}


@AMOUNTS
def test_a_chat_that_was_cut_off_or_loaded_anew_shows_the_same_in_the_end(
    every: int, caplog: pytest.LogCaptureFixture
) -> None:
    cases: list[dict[str, Any]] = []
    for reply in REPLIES.values():
        whole, behind = resumed(reply(), rd.to_ai_sdk)
        cases.append({"kind": "ai-sdk", "first": whole})
        cases += [{"kind": "ai-sdk", "first": first, "again": behind[""]} for first in cuts(whole, every)]
    uncut: dict[str, Any] = {}
    for case, answer in zip(cases, ask("resume.mjs", cases), strict=True):
        if "again" not in case:
            uncut = answer
            assert answer["asked"] == ["POST /api/chat", "GET /api/chat/c%201/stream"]
            assert answer["open"]["messages"]
            assert answer["loaded"] == {"messages": [], "status": "ready"}  # 204
            continue
        assert answer["open"] == answer["loaded"] == uncut["open"], case["first"]
        assert answer["asked"] == ["POST /api/chat", *["GET /api/chat/c%201/stream"] * 2]
        assert answer["errors"][0] == "network error"


@AMOUNTS
@pytest.mark.parametrize("client", ["1.0.0", "0.0.59"])
def test_an_agents_client_that_was_cut_off_goes_on(
    client: str, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    request = RUN | ({"protocolVersion": "1.0"} if client == "1.0.0" else {})
    cases: list[dict[str, Any]] = []
    for reply in REPLIES.values():
        whole, behind = resumed(reply(), lambda: rd.to_ag_ui(request))
        cut = cuts(whole, every)
        half = [(first[:-5], 7) for first in cut[1:]]  # in the middle of a frame, a few bytes at a time
        firsts = [(whole, 1 << 16), *((first, 1 << 16) for first in cut), *half]
        for first, size in firsts:
            last = last_id(first)  # the client asks for what is behind it
            rest = {last or "": behind[last or ""]}
            cases.append({"kind": "ag-ui", "client": client, "first": first, "rest": rest, "size": size})
    uncut: dict[str, Any] = {}
    for case, answer in zip(cases, ask("resume.mjs", cases), strict=True):
        assert answer["asked"] == [None, last_id(case["first"])], case["first"]
        if "RUN_FINISHED" in case["first"] or "RUN_ERROR" in case["first"]:
            uncut = answer
            assert answer["messages"]
        assert (answer["messages"], answer["error"]) == (uncut["messages"], uncut["error"]), case["first"]


def last_id(body: str) -> str | None:
    """The id of the last frame that has come whole."""
    ids = re.findall("^id: (.*)\n.*\n\n", body, re.MULTILINE)
    return ids[-1] if ids else None


# An `EventSource`, in a browser.


class Served:
    """A server on a thread whose lines break after some pieces, and which can be replaced while the relay goes on."""

    def __init__(self, encode: Encode, pieces: int) -> None:
        self._encode = encode
        self._pieces = pieces
        self.asked: list[tuple[str, str]] = []  # the method and the id
        self.statuses: list[int] = []
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=asyncio.run, args=(self._main(),))
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._left.set)
        self._thread.join(30)

    async def _main(self) -> None:
        self._loop, self._left = asyncio.get_running_loop(), asyncio.Event()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/s"
            async with Relay.open() as self._relay:
                while not self._left.is_set():
                    config = uvicorn.Config(
                        self._app, interface="asgi3", lifespan="off", log_level="critical", access_log=False
                    )
                    self._server = uvicorn.Server(config)
                    serving = asyncio.create_task(self._server.serve(sockets=[listening.dup()]))
                    leaving = asyncio.create_task(self._left.wait())
                    self._ready.set()
                    await asyncio.wait((serving, leaving), return_when=asyncio.FIRST_COMPLETED)
                    leaving.cancel()
                    end_streams()
                    self._server.should_exit = True
                    await serving

    def replace(self) -> None:
        """Stop the server. The next one takes its place."""
        self._server.should_exit = True
        end_streams()

    def start(self, events: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._relay.start("c1", events), self._loop).result(30)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/s":
            await HTMLResponse("<!doctype html><title>page</title>")(scope, receive, send)
            return
        self.asked.append((scope["method"], Headers(scope=scope).get("last-event-id", "")))
        left = self._pieces

        async def break_off(message: Any) -> None:
            nonlocal left
            if "status" in message:
                self.statuses.append(message["status"])
            elif message.get("body"):
                left -= 1
            if left < 0:
                raise ConnectionResetError
            await send(message)

        await RelayResponse(self._relay, "c1", self._encode(), retry=0.02)(scope, receive, break_off)


def code_of_the_page() -> str:
    markdown = (Path(__file__).resolve().parents[2] / "docs" / "frontends" / "reload.md").read_text("utf-8")
    blocks: list[str] = re.findall("^```js\n(.*?)^```", markdown, re.DOTALL | re.MULTILINE)
    (code,) = [block for block in blocks if "new EventSource" in block]
    return code.replace("`/api/chat/${id}/stream`", "'/s'")


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [2, 3, 1000])
def test_an_event_source_comes_back_until_the_last_frame_through_breaks_and_another_server(
    pieces: int,
) -> None:
    needed("chromium")
    events = sample()
    (whole, _) = resumed(events, rd.to_ai_sdk)
    steps = Subject[Any]()
    with Served(rd.to_ai_sdk, pieces) as server, page() as tab:
        tab.goto(server.url + "/page")
        server.start(steps)
        tab.evaluate(
            f"() => {{ window.shown = []; const show = data => shown.push(data); {code_of_the_page()} }}"
        )
        for number, event in enumerate(events):
            steps.on_next(event)
            if number == len(events) // 2:
                tab.wait_for_function("shown.length > 3")
                server.replace()
        steps.on_completed()
        tab.wait_for_function("shown.at(-1) === '[DONE]'")
        shown = tab.evaluate("shown")
        asked = len(server.asked)
        tab.wait_for_timeout(200)  # ten times the pause after which it would come back
        assert len(server.asked) == asked
    assert rest_of_the_frames(shown) == rest_of_the_frames(re.findall("^data: (.*)$", whole, re.MULTILINE))


def rest_of_the_frames(shown: list[str]) -> Any:
    """The frames, those of one block joined: what has come meanwhile is one."""
    joined: list[Any] = []
    for frame in map(json.loads, shown[:-1]):
        delta = {"text-delta": "delta", "reasoning-delta": "delta", "tool-input-delta": "inputTextDelta"}.get(
            frame["type"]
        )
        if (
            delta
            and joined
            and joined[-1].keys() == frame.keys()
            and joined[-1] | {delta: ""} == frame | {delta: ""}
        ):
            joined[-1][delta] += frame[delta]
        else:
            joined.append(frame)
    return joined


@pytest.mark.slow
def test_an_event_source_that_nobody_closes_is_told_to_come_no_more() -> None:
    needed("chromium")
    events = sample()
    with Served(lambda: ops.map(lambda event: event.to_dict()), 1000) as server, page() as tab:
        tab.goto(server.url + "/page")
        server.start(rx.from_iterable(events))
        tab.evaluate(
            "() => { window.shown = []; window.source = new EventSource('/s');"
            "source.onmessage = ({ data }) => shown.push(JSON.parse(data)); }"
        )
        tab.wait_for_function("source.readyState === EventSource.CLOSED")
        assert server.statuses == [200, 204]
        fold = rd.Fold()
        for frame in tab.evaluate("shown"):
            fold.step(ev.from_dict(frame))
        other = rd.Fold()
        for event in events:
            other.step(event)
        assert fold.snapshot == other.snapshot
