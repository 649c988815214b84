"""What a relay warns of: several worker processes and only memory, a short lease on a server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from rxdelta.relay import Relay


async def open_one() -> None:
    async with Relay.open():
        pass


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["app.py"], {"WEB_CONCURRENCY": "2"}),
        (["uvicorn", "app:app", "--workers", "4"], {}),
        (["/usr/bin/uvicorn", "app:app", "--workers=4"], {}),
        (["gunicorn", "-w", "4", "app:app"], {}),
        (["/usr/bin/gunicorn", "-w4", "app:app"], {}),
        (["gunicorn", "app:app"], {"GUNICORN_CMD_ARGS": "--bind=127.0.0.1 --workers=3"}),
        (["gunicorn", "app:app"], {"GUNICORN_CMD_ARGS": "-w 3"}),
    ],
)
def test_it_warns_of_workers(
    arguments: list[str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.warns(RuntimeWarning, match="several worker processes") as warned:
        asyncio.run(open_one())
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["app.py"], {}),
        (["app.py"], {"WEB_CONCURRENCY": "1"}),
        (["app.py"], {"WEB_CONCURRENCY": "many"}),
        (["uvicorn", "app:app", "--workers", "1"], {}),
        (["pytest", "-w", "4"], {}),
        (["app.py", "--workers-of", "4", "--workers"], {}),
        (["gunicorn", "app:app"], {"GUNICORN_CMD_ARGS": "'unclosed"}),
        ([], {}),
    ],
)
def test_it_is_quiet_otherwise(
    arguments: list[str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.delenv("WEB_CONCURRENCY", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(open_one())


APP = """
import warnings

from rxdelta.relay import Relay

async def app(scope, receive, send):
    assert scope["type"] == "lifespan"
    await receive()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            async with Relay.open():
                pass
    print(f"caught {[one.category.__name__ for one in caught]}\\n", end="", flush=True)  # at once: two do
    await send({"type": "lifespan.startup.failed"})

if __name__ == "__main__":
    import uvicorn

    uvicorn.run("app:app", workers=2, port=0)
"""


@pytest.mark.slow
def test_a_worker_of_uvicorn_shows(tmp_path: Path) -> None:
    """Also where the number of workers is neither in the environment nor in the command line."""
    pytest.importorskip("uvicorn")
    (tmp_path / "app.py").write_text(APP)
    with subprocess.Popen(
        [sys.executable, "app.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline().strip() == "caught ['RuntimeWarning', 'RuntimeWarning']"
        server.terminate()


def test_it_warns_of_a_short_lease_on_a_server() -> None:
    pytest.importorskip("msgspec")
    with pytest.warns(RuntimeWarning, match="a lease of 2.9 seconds, a line that goes silent") as warned:
        Relay.open("valkey://127.0.0.1", lease=2.9)
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize("options", [{"lease": 0.5}, {"store": "valkey://127.0.0.1", "lease": 3}])
def test_it_doesnt_warn_of_a_lease_that_is_long_enough_or_in_memory(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Relay.open(**options)
