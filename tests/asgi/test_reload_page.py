"""The FastAPI application of docs/frontends/reload.md, as it stands there, on a real server."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from support.loops import run

from rxdelta.asgi import end_streams
from rxdelta.testing import sample_chunks

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "frontends" / "reload.md"
ASKED = {"id": "c1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Well?"}]}]}


def application(pause: float) -> Any:
    """The page's application at another pace. It has no `__future__`: FastAPI reads the annotations."""
    section = PAGE.read_text("utf-8").partition("## With FastAPI")[2]
    (code,) = re.findall("^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[:1]
    space: dict[str, Any] = {}
    exec(compile(code, "reload.md", "exec", dont_inherit=True), space)
    space["ask"] = lambda fields: sample_chunks("weather", pause=pause)
    return space["app"]


@pytest.mark.parametrize("stops", [False, True])
def test_the_reply_goes_on_through_a_reload_for_its_own_user_alone_until_it_is_stopped(stops: bool) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(
                uvicorn.Config(application(0.003), log_level="critical", access_log=False)
            )
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:
                await asyncio.sleep(0.001)
            address = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
            ada, bob = [
                httpx.AsyncClient(base_url=address, headers={"x-user": name}, timeout=30, verify=False)
                for name in ("ada", "bob")
            ]
            async with ada, bob:
                assert (await ada.get("/chat/c1/stream")).status_code == 204
                async with ada.stream("POST", "/chat", json=ASKED) as response:
                    await anext(response.aiter_text())  # the page is loaded anew
                assert (await bob.get("/chat/c1/stream")).status_code == 204
                assert (await bob.post("/chat/c1/stop")).json() is False
                if stops:
                    assert (await ada.post("/chat/c1/stop")).json() is True
                    assert (await ada.get("/chat/c1/stream")).status_code == 204
                else:
                    tabs = await asyncio.gather(ada.get("/chat/c1/stream"), ada.get("/chat/c1/stream"))
                    for tab in tabs:
                        assert tab.headers["x-vercel-ai-ui-message-stream"] == "v1"
                        assert '"type":"start"' in tab.text
                        assert '"status":"complete"' in tab.text
                    assert (await ada.get("/chat/c1/stream")).status_code == 204
                    assert (await ada.post("/chat/c1/stop")).json() is False
            end_streams()
            server.should_exit = True
            await serving

    run(main)
