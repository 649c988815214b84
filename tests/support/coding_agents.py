"""Codex and Claude Code, each with a home of its own and no other address than ours.

`npm ci` in tests/clients/agents installs them, 640 MB. AGENTS= names another folder that has them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from support.needs import LEFT_OUT

__all__ = ["CLAUDE", "CODEX", "Agent", "Run"]

FOLDER = Path(os.environ.get("AGENTS", Path(__file__).resolve().parents[1] / "clients" / "agents"))
SECONDS = 60  # a run takes one or two

CONFIG = """
model = "{model}"
model_provider = "gateway"
check_for_update_on_startup = false
[model_providers.gateway]
name = "gateway"
base_url = "{address}/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = {retries}
stream_max_retries = {retries}
[analytics]
enabled = false
[features]
apps = false
daemon_auto_start = false
plugins = false
remote_plugin = false
skill_search = false
tool_suggest = false
"""


@attrs.frozen
class Run:
    """What became of a question.

    Attributes:
        code: The exit code.
        events: What it told, one JSON object a line.
        elsewhere: What it wanted of other addresses than the gateway's.
    """

    code: int
    events: list[Any]
    elsewhere: list[bytes]

    def of(self, *kinds: str) -> list[Any]:
        return [event for event in self.events if event["type"] in kinds]


@attrs.frozen
class Agent:
    """One of them.

    Attributes:
        shell: The name of its tool that runs a command, and that of the argument.
    """

    name: str
    shell: tuple[str, str]

    def ask(self, address: str, folder: Path, *, model: str = "house", retries: int = 0) -> Run:
        """Ask it to do something, in an empty directory `work` in the folder.

        A model of this name is known to neither. Of some others, Codex knows what tools they take.
        """
        program = FOLDER / "node_modules" / ".bin" / self.name
        if not program.exists() or shutil.which("node") is None or "clients" in LEFT_OUT:
            pytest.skip(f"needs {self.name}: npm ci --prefix {FOLDER} (640 MB)")
        home, work = folder / "home", folder / "work"
        home.mkdir()
        work.mkdir()
        given = {"address": address, "home": home, "model": model, "retries": retries}
        (home / "config.toml").write_text(CONFIG.format(**given), "utf-8")
        with _nowhere() as (proxy, elsewhere):
            around = {"PATH": os.environ["PATH"], "HOME": str(home), **_by_proxy(proxy)}
            own = _CODEX if self.name == "codex" else _CLAUDE
            own = {name: value.format(**given) for name, value in own.items()}
            code, out = _run([str(program), *_COMMANDS[self.name]], work, around | own)
        return Run(code, [json.loads(line) for line in out.splitlines()], elsewhere)


CODEX = Agent("codex", ("exec_command", "cmd"))
CLAUDE = Agent("claude", ("Bash", "command"))

_COMMANDS = {
    "codex": [
        "exec", "Do it.", "--json", "--ephemeral", "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",  # the commands are the tests' own
    ],
    "claude": ["-p", "Do it.", "--output-format", "stream-json", "--verbose", "--allowedTools=Bash"],
}  # fmt: skip
_CODEX = {"CODEX_HOME": "{home}"}
_CLAUDE = {
    "CLAUDE_CONFIG_DIR": "{home}",
    "ANTHROPIC_BASE_URL": "{address}",
    "ANTHROPIC_API_KEY": "none",
    "ANTHROPIC_MODEL": "{model}",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "{retries}",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


def _run(command: Sequence[str], work: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a program, and end all that it has started."""
    with subprocess.Popen(
        command,
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        start_new_session=True,
    ) as running:
        try:
            out, _ = running.communicate(timeout=SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    return running.returncode, out


def _by_proxy(address: str) -> dict[str, str]:
    names = ("http_proxy", "https_proxy", "all_proxy")
    proxy = {spelled: address for name in names for spelled in (name, name.upper())}
    return {**proxy, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


@contextmanager
def _nowhere() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that leads nowhere, and what it was asked for."""
    asked: list[bytes] = []

    def refuse() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                asked.append(connection.recv(200).partition(b"\r\n")[0])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse, name="nowhere")
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
