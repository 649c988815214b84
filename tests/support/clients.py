"""The front ends' own clients, in Node: `npm ci` in tests/clients installs them.

Where they are missing their tests are skipped, but in CI that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["ask"]

FOLDER = Path(__file__).resolve().parents[1] / "clients"


def ask(script: str, lines: Iterable[Any], *, timeout: float = 120) -> list[Any]:
    """What a script of that folder answers, one JSON value a line for one a line."""
    node = shutil.which("node")
    if node is None:
        return _absent("node isn't installed")
    if not (FOLDER / "node_modules").is_dir():
        return _absent(f"the clients aren't installed: npm ci --prefix {FOLDER}")
    asked = [json.dumps(line) for line in lines]
    done = subprocess.run(
        [node, script],
        cwd=FOLDER,
        input="".join(f"{line}\n" for line in asked),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked), done.stderr
    return answers


def _absent(reason: str) -> list[Any]:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs the front ends' own clients: {reason}")
    pytest.skip(reason)
