"""The programs of `examples/tasks` for hosts: each loaded as a module, and served where it is a server."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rxdelta.testing import FakeProvider

__all__ = ["TASKS", "SECONDS", "asks", "environment", "program", "served"]

TASKS = Path(__file__).resolve().parents[2] / "examples" / "tasks"
SECONDS = 30  # nothing takes time; what hangs is found


def program(name: str, *packages: str) -> Any:
    """A module of `examples/tasks`, made once. The test is skipped where one of these packages is missing."""
    for package in packages:
        pytest.importorskip(package)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TASKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def environment(**more: str) -> dict[str, str]:
    """That of a process which imports the programs and this package."""
    folders = [str(TASKS), str(TASKS.parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), **more}


def asks(monkeypatch: pytest.MonkeyPatch, module: Any, *replies: Any) -> FakeProvider:
    """Let a program ask a provider with these replies."""
    provider = FakeProvider(*replies)
    monkeypatch.setattr(module, "ask", lambda *_: provider.stream("anthropic-messages"))
    return provider


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of a real server."""
    uvicorn = pytest.importorskip("uvicorn")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="auto"))
    serving = threading.Thread(target=server.run, name="host")
    serving.start()
    while not server.started:
        assert serving.is_alive()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        serving.join(SECONDS)
