"""The pytest plugin, as a project has it that installs rxdelta."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(rd.__file__).parent

OTHERS = [
    "-p",
    "no:langsmith_plugin",
    "-p",
    "no:anyio",
    "-p",
    "no:hypothesispytest",
    "-p",
    "no:cacheprovider",
]

WHAT_IS_IMPORTED = """
import sys

def pytest_unconfigure():
    ours = ("rxdelta", "reactivex", "attr", "attrs", "hypothesis", "starlette")
    print("imported", sorted(name for name in sys.modules if name.partition(".")[0] in ours))
"""

BOTH_FIXTURES = """
def test_time(virtual_time):
    import asyncio

    virtual_time.run(asyncio.sleep(3600))
    assert virtual_time.elapsed == 3600

def test_another_test_has_another_time(virtual_time):
    assert virtual_time.elapsed == 0

def test_provider(fake_provider):
    fake = fake_provider("Hi", "You", repeat=True)
    assert "Hi" in str(list(fake.chunks("ollama")))
    assert fake.left == 1
"""

SERVED = """
import os
import urllib.error
import urllib.request

servers = []

def answers(server):
    try:
        return urllib.request.urlopen(server.url + "/v1/models").status == 200
    except urllib.error.URLError:
        return False

def test_the_environment_leads_to_the_server(fake_provider):
    fake = fake_provider("Hi", serve=True)
    servers.append(fake.server)
    assert answers(fake.server)
    assert os.environ["OPENAI_BASE_URL"] == fake.server.environment["OPENAI_BASE_URL"]
    servers.append(fake_provider("Ho", serve=True).server)
    assert answers(fake.server)
    assert os.environ["OPENAI_BASE_URL"] == servers[1].environment["OPENAI_BASE_URL"]
    fake_provider("not served")

def test_the_servers_end_with_their_test():
    assert os.environ["OPENAI_BASE_URL"] == "before"
    assert [answers(server) for server in servers] == [False, False]
"""


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., str]:
    """Runs pytest on a test of another project, where rxdelta is installed, and returns what pytest printed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    ((name, plugin),) = settings["project"]["entry-points"]["pytest11"].items()
    installed = tmp_path / "site" / "installed_rxdelta-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-rxdelta\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{name} = {plugin}\n")

    def run(test: str, *arguments: str, conftest: str = "") -> str:
        (tmp_path / "test_it.py").write_text(test)
        (tmp_path / "conftest.py").write_text(conftest)
        path = os.pathsep.join([str(installed.parent), str(PACKAGE.parent)])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *OTHERS, *arguments, "test_it.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=100,
        )
        return done.stdout + done.stderr

    return run


def test_a_project_has_both_fixtures_without_a_word_in_its_conftest(project: Callable[..., str]) -> None:
    output = project(BOTH_FIXTURES)
    assert "3 passed" in output, output


def test_nothing_of_the_library_is_imported_before_a_fixture_is_used(project: Callable[..., str]) -> None:
    output = project(BOTH_FIXTURES, "--co", conftest=WHAT_IS_IMPORTED)
    assert "3 tests collected" in output, output
    assert "imported ['rxdelta', 'rxdelta.testing', 'rxdelta.testing.pytest_plugin']" in output


def test_a_served_provider_is_there_until_the_test_ends(
    project: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "before")
    output = project(SERVED)
    assert "2 passed" in output, output
