"""What the library never does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import reactivex as rx
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
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                functions.add(f".{node.func.attr}")
    return found


REACHES = {
    ".Popen", ".create_connection", ".create_datagram_endpoint", ".create_server", ".create_subprocess_exec",
    ".create_subprocess_shell", ".create_unix_connection", ".create_unix_server", ".execv", ".fork", ".fdopen", ".makedirs",
    ".mkdir", ".mkstemp", ".open_connection", ".open_unix_connection", ".popen", ".read_bytes", ".rmdir", ".spawnv",
    ".start_server", ".start_unix_server", ".system", ".unlink", ".urlopen", ".urlretrieve", ".write_bytes",
}  # fmt: skip
"""Methods that reach files, connections and programs, without an import that shows it."""


@says("It opens no connection")
def test_no_connection_no_file_no_program() -> None:
    forbidden = {
        "ctypes", "ftplib", "http", "requests", "httpx", "aiohttp", "shutil", "smtplib", "socket", "sqlite3", "ssl",
        "subprocess", "tempfile", "urllib.request", "io", "pathlib", "redis", "valkey",
    }  # fmt: skip
    found = {name: modules & forbidden for name, (modules, _) in sources().items()}
    assert {name: modules for name, modules in found.items() if modules} == {
        "aio/threads.py": {"socket"},  # to shut down a connection that the program has opened
        "cli/inspect.py": {"pathlib"},  # for the name of a file
        "cli/output.py": {"shutil"},  # for the width of the terminal
        "cli/record.py": {"shutil", "subprocess"},  # the command that it records
        "relay/postgres_lines.py": {"socket"},  # to shut down a connection
        "relay/sqlite.py": {"sqlite3"},  # the file of `sqlite:////path`
        "relay/sqlite_tables.py": {"sqlite3"},
        "relay/valkey/lines.py": {"socket"},  # for the size of a buffer
        "relay/places.py": {"pathlib"},  # for the name of the program
        "testing/http.py": {"socket"},  # the server of a fake provider
    }
    files = [name for name, (_, functions) in sources().items() if "open" in functions]
    assert files == [
        "cli/files.py",
        "cli/main.py",  # where the output of a closed terminal goes
        "operators/edges/encode.py",  # has a parameter of this name
        "recording/reading.py",  # the recording that the program names
        "recording/recorder.py",
    ]
    assert {name: found for name, (_, functions) in sources().items() if (found := functions & REACHES)} == {
        "cli/inspect.py": {".write_bytes"},  # the page that `rxdelta inspect` writes
        "cli/record.py": {".Popen"},  # the command that it records
        "recording/recorder.py": {".unlink"},  # the recording that the program names
        "testing/stores/bench.py": {".create_subprocess_exec"},  # the check of a store
    }


HOSTILE_RUN = """
import json, sys
import reactivex as rx
import rxdelta as rd
from reactivex import operators as ops

ev = rd.events
hostile = ["os.system", "__import__", "eval", "__class__", "builtins.exec", "rxdelta.relay", "../x", "pay.__globals__"]
events = [ev.MessageStart("m", "os.system", metadata={"class": "builtins.SystemExit"})]
for index, name in enumerate(hostile):
    call = {"type": "tool_call", "id": f"c{index}", "name": name, "args": {"command": "touch owned", "__class__": "os"}}
    events += [ev.BlockStart(index, call), ev.BlockFinish(index)]
events += [ev.BlockStart(99, {"type": "os.system", "x": 1}), ev.BlockFinish(99), ev.MessageFinish("os.system")]
error = [{"error": {"type": "builtins.SystemExit", "message": "__import__('os').system('touch owned')", "code": "os"}}]
body = [{"id": "1", "role": "assistant", "parts": [
    {"type": f"tool-{name}", "toolCallId": f"c{n}", "state": "input-available", "input": {}} for n, name in enumerate(hostile)
]}]

def play():
    ran = []
    source = rx.from_iterable(events)
    done = source.pipe(rd.run_tools({"pay": ran.append}), rd.scan_deltas(), rd.to_message()).run()
    stored = rd.Message.from_dict(json.loads(json.dumps(done.to_dict())))
    for encode in (rd.to_ai_sdk(), rd.to_openai_chat(), rd.to_langchain_events(), rd.to_anthropic_messages(), rd.to_ollama()):
        source.pipe(encode, rd.to_sse(), ops.to_list()).run()
    for wire_format in ("openai-chat", "anthropic-messages", "gemini", "ollama"):
        for chunks in ([b'data: {"type": "os.system"}\\n\\n'], [b"data: " + json.dumps(error[0]).encode() + b"\\n\\n"]):
            read = rx.from_iterable(chunks).pipe(rd.parse_sse(), rd.decode(wire_format), rd.scan_deltas())
            read.subscribe(on_error=lambda _: None)
    for wire_format in ("openai-chat", "anthropic-messages"):
        rd.to_request([stored, *rd.from_ai_sdk(body)], wire_format)
    rx.from_iterable(rd.to_events(rd.from_ai_sdk(body)[0])).pipe(rd.run_tools({"pay": ran.append})).subscribe()
    try:
        events_of_a_stranger = rd.events.from_dict({"event": "os.system", "__class__": "os"})
    except rd.RxDeltaError:
        pass
    assert ran == []

play()  # imports what it needs
seen = []
sys.addaudithook(lambda name, arguments: seen.append(name))
play()
REACHES = ("open", "os.", "socket.", "subprocess.", "shutil.", "import", "exec", "compile", "pickle.", "marshal.", "ctypes.", "urllib.")
print(sorted({name for name in seen if name.startswith(REACHES)}))
"""


@says("It opens no connection", "It runs no code that it receives", "It sends nothing anywhere by itself")
def test_a_hostile_stream_makes_python_reach_nothing() -> None:
    """Python itself tells of each file, connection, program and import, and of each piece of code that it makes."""
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE_RUN], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


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
        "core/fast_constructor.py": {"exec"}  # of names in our own source
    }
    unpickles = {"pickle", "marshal", "shelve", "dill", "yaml", "runpy", "code"}
    assert [name for name, (modules, _) in sources().items() if modules & unpickles] == []


@says("It runs no code that it receives")
def test_a_call_names_a_tool_of_the_program_and_nothing_else() -> None:
    class Tools(dict[str, object]):
        def secret(self) -> str:
            ran.append("secret")
            return "secret"

    ran: list[str] = []
    tools = Tools(pay=lambda **_: ran.append("pay"))
    names = ["secret", "__init__", "clear", "pay.__call__", "PAY", "pay ", "", "0", "builtins.print", "pay"]
    events: list[rd.Event] = [ev.MessageStart("m")]
    for index, name in enumerate(names):
        call = {"type": "tool_call", "id": f"c{index}", "name": name, "args": {}}
        events += [ev.BlockStart(index, call), ev.BlockFinish(index)]
    events.append(ev.MessageFinish("tool_use"))
    rx.from_iterable(events).pipe(rd.run_tools(tools)).subscribe()  # type: ignore[arg-type]
    assert ran == ["pay"]


@says("It sends nothing anywhere by itself")
def test_spans_are_made_only_where_they_were_asked_for() -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry import trace as api

    spans = memory.InMemorySpanExporter()
    tracers = trace.TracerProvider()
    tracers.add_span_processor(export.SimpleSpanProcessor(spans))
    call = {"type": "tool_call", "id": "c", "name": "pay", "args": {}}
    told = [ev.MessageStart("m"), ev.BlockStart(0, call), ev.BlockFinish(0), ev.MessageFinish("tool_use")]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(api, "_TRACER_PROVIDER", tracers)  # that of the program
        running = rx.from_iterable(told).pipe(rd.run_tools({"pay": lambda: 1}))
        running.pipe(rd.scan_deltas(), rd.to_message()).run()
        assert spans.get_finished_spans() == ()
        running.pipe(rd.tap_otel("openai")).subscribe()
        assert spans.get_finished_spans() != ()


@says("It sends nothing anywhere by itself")
def test_telemetry_is_where_it_was_put() -> None:
    reports = [
        name
        for name, (modules, _) in sources().items()
        if any(map(re.compile("opentelemetry").match, modules))
    ]
    assert reports == [
        "aio/queues.py",
        "operators/watching/tap_otel.py",
        "relay/metrics.py",
        "relay/relay.py",
    ]
