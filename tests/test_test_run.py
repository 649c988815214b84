"""How pytest runs this project's tests: which ones, with which plugins, for how long."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

QUICK_AND_SLOW = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass
"""
HANGING = """
import asyncio, threading
import pytest

@pytest.mark.timeout(1)
def test_a_loop():
    asyncio.run(asyncio.Event().wait())

@pytest.mark.timeout(1)
def test_a_thread():
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    thread.join()

def test_the_next_one(): pass
"""
SPINNING = """
import asyncio
import pytest

@pytest.mark.timeout(1)
def test_a_loop_that_never_idles():
    async def main():
        while True:
            await asyncio.sleep(0)
    asyncio.run(main())

def test_the_next_one(): pass
"""
WITH_RECORDINGS = """
import pytest
from support.shared import parity

@pytest.mark.parametrize("case", parity("no_such_file.json"))
def test_with_a_recording(case): pass

def test_without(): pass
"""


@pytest.fixture
def pytest_run(tmp_path: Path) -> Any:
    def run(tests: str, *arguments: str, ci: bool = False) -> dict[str, int]:
        """How many tests passed, failed and so on, in a project with our settings."""
        shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
        shutil.copytree(ROOT / "tests" / "support", tmp_path / "tests" / "support")
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
        (tmp_path / "test_it.py").write_text(tests)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *(arguments or ["test_it.py"])],
            cwd=tmp_path,
            env={**os.environ, "CI": "true" if ci else ""},
            capture_output=True,
            text=True,
            timeout=100,
        )
        last = done.stdout.splitlines()[-1]
        return {word: int(count) for count, word in re.findall(r"(\d+) (\w+)[, ]", last)} or pytest.fail(
            done.stdout + done.stderr
        )

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "run"),
    [
        (["test_it.py"], {"passed": 1, "deselected": 1}),
        (["test_it.py", "--slow"], {"passed": 2}),
        (["test_it.py", "-m", "slow"], {"passed": 1, "deselected": 1}),
        (["test_it.py::test_slow"], {"passed": 1}),
        (["test_it.py", "-n", "1"], {"passed": 1}),
        (["test_it.py", "-p", "no:timeout", "-p", "no:xdist", "-p", "no:hypothesispytest"], {"passed": 1, "deselected": 1}),
    ],
    ids=["a file", "asked for", "a mark", "a name", "workers", "no plugins"],
)  # fmt: skip
def test_slow_tests_run_where_they_are_asked_for(
    arguments: list[str], run: dict[str, int], pytest_run: Any
) -> None:
    assert pytest_run(QUICK_AND_SLOW, *arguments) == run


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_test_that_hangs_fails_and_the_next_one_runs(workers: str, pytest_run: Any) -> None:
    assert pytest_run(HANGING, "test_it.py", "-n", workers) == {"failed": 2, "passed": 1}


@pytest.mark.slow
def test_a_test_that_spins_fails_and_the_next_one_runs(pytest_run: Any) -> None:
    arguments = ["test_it.py", "-n", "1", "-o", "faulthandler_timeout=3"]
    assert pytest_run(SPINNING, *arguments) == {"failed": 1, "passed": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "ci", "run"),
    [
        ([], False, {"passed": 1, "skipped": 1}),
        ([], True, {"error": 1}),
        (["--without", "recordings"], True, {"passed": 1, "skipped": 1}),
        (["--without", "clients", "--without", "browser"], True, {"error": 1}),
    ],
    ids=["missing", "missing in CI", "left out in CI", "other things left out in CI"],
)
def test_ci_fails_for_missing_recordings_unless_they_are_left_out(
    arguments: list[str], ci: bool, run: dict[str, int], pytest_run: Any
) -> None:
    assert pytest_run(WITH_RECORDINGS, "test_it.py", *arguments, ci=ci) == run


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("timeout").args == (120,)


@pytest.mark.slow
def test_a_slow_one_has_a_longer_limit(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("timeout").args == (300,)


@pytest.mark.parametrize("plugin", ["langsmith_plugin", "anyio"])
def test_plugins_that_other_packages_bring_along_are_off(plugin: str, pytestconfig: pytest.Config) -> None:
    assert not pytestconfig.pluginmanager.hasplugin(plugin)
