"""What the library never does."""

from __future__ import annotations

import ast
import re
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from support.security_page import says

import rxdelta as rd
from rxdelta.testing import FakeProvider

ev = rd.events

ROOT = Path(__file__).resolve().parents[2]


@cache
def sources() -> dict[str, tuple[set[str], set[str]]]:
    """Of each file of the package the modules that it imports, and the names of the functions that it calls."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for path in sorted((ROOT / "rxdelta").rglob("*.py")):
        modules, functions = found[path.relative_to(ROOT / "rxdelta").as_posix()] = set[str](), set[str]()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                functions.add(node.func.id)
    return found


@says("It opens no connection")
def test_no_connection_no_file_no_program() -> None:
    forbidden = {
        "ctypes", "ftplib", "http", "requests", "httpx", "aiohttp", "shutil", "smtplib", "socket", "sqlite3", "ssl",
        "subprocess", "tempfile", "urllib.request", "io", "pathlib", "redis", "valkey",
    }  # fmt: skip
    found = {name: modules & forbidden for name, (modules, _) in sources().items()}
    assert {name: modules for name, modules in found.items() if modules} == {
        "aio/_from_iterable.py": {"socket"},  # to shut down a connection that the program has opened
        "cli/_inspect.py": {"pathlib"},  # for the name of a file
        "cli/_lines.py": {"shutil"},  # for the width of the terminal
        "cli/_record.py": {"shutil", "subprocess"},  # the command that it records
        "relay/_postgres_lines.py": {"socket"},  # to shut down a connection
        "relay/_sqlite.py": {"sqlite3"},  # the file of `sqlite:////path`
        "relay/_sqlite_tables.py": {"sqlite3"},
        "relay/_valkey/_lines.py": {"socket"},  # for the size of a buffer
        "relay/_workers.py": {"pathlib"},  # for the name of the program
        "testing/_http.py": {"socket"},  # the server of a fake provider
    }
    files = [name for name, (_, functions) in sources().items() if "open" in functions]
    assert files == [
        "cli/_files.py",
        "cli/_main.py",  # where the output of a closed terminal goes
        "operators/edges/encode.py",  # has a parameter of this name
        "recording/_reading.py",  # the recording that the program names
        "recording/_recorder.py",
    ]


@says("`rxdelta.testing` reads its own samples")
def test_a_fake_provider_is_reached_from_this_machine_only() -> None:
    with FakeProvider("Hi", repeat=True).serve("ollama") as server:
        assert urlsplit(server.url).hostname == "127.0.0.1"
        for page, status in (("http://localhost:3000", 200), ("https://evil.example", 403)):
            asked = HTTPConnection("127.0.0.1", urlsplit(server.url).port or 0, timeout=30)
            asked.request("POST", "/api/chat", "{}", {"Origin": page})
            assert asked.getresponse().status == status
            asked.close()


@says("It runs no code that it receives")
def test_no_code_is_made_of_input() -> None:
    run_code = {"eval", "exec", "compile", "__import__"}
    assert {name: found for name, (_, functions) in sources().items() if (found := functions & run_code)} == {
        "core/_fast_constructor.py": {"exec"}  # of names in our own source
    }
    unpickles = {"pickle", "marshal", "shelve", "dill", "yaml", "runpy", "code"}
    assert [name for name, (modules, _) in sources().items() if modules & unpickles] == []


@says("It sends nothing anywhere by itself")
def test_telemetry_is_where_it_was_put() -> None:
    reports = [
        name
        for name, (modules, _) in sources().items()
        if any(map(re.compile("opentelemetry").match, modules))
    ]
    assert reports == [
        "aio/_meter.py",
        "operators/watching/tap_otel.py",
        "relay/_metrics.py",
        "relay/_relay.py",
    ]
