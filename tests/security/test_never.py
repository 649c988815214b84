"""What the library never does."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from support.security_page import says

import rxdelta as rd

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
        "relay/_server/_embedded.py": {"pathlib", "socket", "subprocess", "tempfile"},
        "relay/_server/_keeper.py": {"pathlib", "shutil", "socket", "subprocess"},
        "relay/_workers.py": {"pathlib"},  # for the name of the program
    }
    files = [name for name, (_, functions) in sources().items() if "open" in functions]
    # The second has a parameter of this name, the third opens the log of the server that it starts.
    assert files == ["cli/_replay.py", "operators/edges/encode.py", "relay/_server/_embedded.py"]


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
    assert reports == ["aio/_meter.py", "operators/watching/tap_otel.py"]
