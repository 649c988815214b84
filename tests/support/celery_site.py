"""`examples/tasks/celery_chat.py` as a person starts it: a database, a web server and a worker, each in its own process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from support.hosts import SECONDS, TASKS, environment
from support.postgres_servers import PostgresServer, running, until

if TYPE_CHECKING:
    import httpx

__all__ = ["CelerySite", "kill", "words"]

SCRIPTED = """
import asyncio
from pathlib import Path
import celery_chat
from rxdelta.testing import FakeProvider

WORDS = [f"{number}w " for number in range(40)]


async def ask(question):
    said = 0
    async for chunk in FakeProvider(WORDS).stream("anthropic-messages"):
        yield chunk
        said += chunk["type"] == "content_block_delta"
        while said >= int(Path("allowed").read_text()):
            await asyncio.sleep(0.01)


celery_chat.LEASE = 5.0
if Path("allowed").exists():
    celery_chat.ask = ask
app, application = celery_chat.app, celery_chat.application
"""


def words(number: int) -> str:
    """What the model has said when it was allowed so much."""
    return "".join(f"{one}w " for one in range(number))


class CelerySite:
    """A database that runs, and a folder in which its web server and its worker can be started. `allow` writes a script for the model.

    Attributes:
        folder: Where both run. What they print is in its file `log`.
        address: Of the page.
    """

    def __init__(self, database: PostgresServer, folder: Path) -> None:
        self.database = database
        self.folder = folder
        (folder / "scripted.py").write_text(SCRIPTED)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[CelerySite]:
        with running() as database:
            site = cls(database, folder)
            with site._process(str(TASKS / "celery_chat.py"), "migrate") as migrating:
                assert migrating.wait(2 * SECONDS) == 0, site.log
            yield site

    @contextmanager
    def web(self) -> Iterator[subprocess.Popen[bytes]]:
        """Ends as by `kill`, unless it has ended before."""
        command = ["-m", "uvicorn", "--timeout-graceful-shutdown", "5", "--port", str(self._port)]
        with self._process(*command, "scripted:application") as server:
            until(lambda: self._listens(server), "the web server doesn't start")
            yield server

    def _listens(self, server: subprocess.Popen[bytes]) -> bool:
        assert server.poll() is None, self.log
        with closing(socket.socket()) as client:
            return client.connect_ex(("127.0.0.1", self._port)) == 0

    def worker(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return self._process("-m", "celery", "-A", "scripted", "worker", "--concurrency=1")

    @contextmanager
    def _process(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        own = environment(DATABASE=self.database.url)
        own["PYTHONPATH"] += f"{os.pathsep}{self.folder}"
        with (
            (self.folder / "log").open("ab") as log,
            subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=own,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                kill(process)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def browser(self) -> httpx.Client:
        """Something that keeps cookies, and gives up what hangs."""
        import httpx

        return httpx.Client(base_url=self.address, timeout=SECONDS)

    def ask(self, browser: httpx.Client, question: str) -> str:
        """Ask as a browser does with the page's form. Returns the page that is shown, when the worker has begun."""
        known = self._streams()
        (token,) = re.findall('name="csrfmiddlewaretoken" value="(.*?)"', browser.get("/").text)
        form = {"question": question, "csrfmiddlewaretoken": token}
        shown = browser.post("/ask", data=form, follow_redirects=True).raise_for_status()
        until(lambda: self._streams() > known, "no worker begins")
        return shown.text

    def _streams(self) -> int:
        is_there = self.database.value("SELECT to_regclass('rxdelta.streams') IS NOT NULL")
        return self.database.value("SELECT count(*) FROM rxdelta.streams") if is_there else 0  # type: ignore[no-any-return]

    def allow(self, words: int) -> None:
        """Let the model say so many words of its reply, and no more."""
        new = self.folder / "new"
        new.write_text(str(words))
        new.replace(self.folder / "allowed")


def kill(process: subprocess.Popen[bytes]) -> None:
    """`kill -9`, with all its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
