"""The project's checks: `nox` runs tests, lint and typing; `nox -s bench` measures."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nox

nox.options.sessions = ["lint", "typing", "tests"]
nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"  # the second run of a session takes seconds
nox.options.error_on_missing_interpreters = False  # in CI, too: other_pythons takes those that are there

PROJECT = nox.project.load_toml("pyproject.toml")
GROUPS = PROJECT["dependency-groups"]
OTHER_PYTHONS = [
    version
    for version in nox.project.python_versions(PROJECT)
    if version != f"{sys.version_info.major}.{sys.version_info.minor}"
]
CLIENTS = Path("tests/clients")


def group(name: str) -> list[str]:
    return list(nox.project.dependency_groups(PROJECT, name))


def run_tests(session: nox.Session) -> None:
    """The tests and the examples in docstrings and docs, against the wheel that pip builds."""
    session.install(*PROJECT["build-system"]["requires"], *group("tests"), *group("judges"))
    session.install("--no-build-isolation", ".[all]")
    if shutil.which("npm") and _is_older(
        CLIENTS / "node_modules/.package-lock.json", CLIENTS / "package-lock.json"
    ):
        # The front ends' own clients, without which their tests are skipped.
        clients = ["npm", "ci", "--prefix", str(CLIENTS)]
        session.run(*clients, external=True, silent=True, success_codes=range(256))
    session.run("pytest", "-n", "auto", *(session.posargs or ["--slow"]))


def _is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


@nox.session
def tests(session: nox.Session) -> None:
    """All tests; with arguments, what pytest makes of them, which leaves out those marked slow."""
    run_tests(session)


@nox.session(python=OTHER_PYTHONS)
def other_pythons(session: nox.Session) -> None:
    """The same under each other Python that we support and this machine has."""
    run_tests(session)


@nox.session
def lint(session: nox.Session) -> None:
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def typing(session: nox.Session) -> None:
    """The package and the inference tests, under both checkers, strict."""
    session.install("-e", ".[all]", *group("typing"), *group("tests"), *group("judges"))
    session.run("mypy")
    session.run("mypy", "tests/typing")
    session.run("pyright", "rxdelta", "tests/typing")


@nox.session
def bench(session: nox.Session) -> None:
    """Time for each delta, as ratios against peers in the same run; results go to benchmarks/results/."""
    session.install("-e", ".[all]", *group("judges"), "pydantic-ai-slim==2.68.0", "ag-ui-protocol")
    session.run("python", "benchmarks/fold.py", *session.posargs)
    session.run("python", "benchmarks/wire.py")
    session.run("python", "benchmarks/framing.py")


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw the pictures in the README and the docs anew."""
    session.install("-e", ".[all]", "playwright", "uvicorn")
    session.run("python", "docs/draw.py")
    session.run("python", "docs/draw_chat.py")  # with npm and Chromium
