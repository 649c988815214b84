"""The project's checks: `nox` runs tests, lint and typing; `nox -s bench` measures."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nox

nox.options.sessions = ["lint", "typing", "tests"]
nox.options.default_venv_backend = "venv"

PROJECT = nox.project.load_toml("pyproject.toml")
GROUPS = PROJECT["dependency-groups"]


def group(name: str) -> list[str]:
    return list(nox.project.dependency_groups(PROJECT, name))


def wheel(session: nox.Session) -> str:
    """The project as its users get it."""
    session.install("build")
    out = tempfile.mkdtemp()
    session.run("python", "-m", "build", "--wheel", "--outdir", out, silent=True)
    return str(next(Path(out).glob("*.whl")))


@nox.session
def tests(session: nox.Session) -> None:
    """The tests and the examples in docstrings and docs, against the built wheel."""
    session.install(f"{wheel(session)}[all]", *group("tests"), *group("judges"))
    if shutil.which("npm"):  # the front ends' own clients, without which their tests are skipped
        clients = ["npm", "ci", "--prefix", "tests/wire/clients"]
        session.run(*clients, external=True, silent=True, success_codes=range(256))
    session.run("pytest", "-n", "auto", *session.posargs)


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


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw the pictures in the README and the docs anew."""
    session.install("-e", ".[all]", "playwright", "uvicorn")
    session.run("python", "docs/draw.py")
    session.run("python", "docs/draw_chat.py")  # with npm and Chromium
