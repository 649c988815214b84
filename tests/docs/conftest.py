"""The built site, for the tests of it: the one in `$SITE`, as `nox -s docs` has just built it, or one built for them."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages import DOCS, ROOT

NEEDED = ("sphinx", "furo", "myst_parser", "pagefind_bin")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes to the next page leaves what it was reading."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("SITE"):
        return Path(given).resolve()
    fcntl = pytest.importorskip("fcntl")
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: `nox -s docs` runs these tests")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # one for all workers
    folder, built = base / "site", base / "site-is-built"
    with (base / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            command = [sys.executable, "-m", "sphinx", "--quiet", str(DOCS), str(folder)]
            path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
            built.touch()
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served: the browser reads no index from a file."""
    server = Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
