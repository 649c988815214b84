"""The front ends' own clients, in Node: `npm ci` in tests/clients installs them.

See `support.needs` for what happens where they are missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support.needs import LEFT_OUT, without

__all__ = ["ask"]

FOLDER = Path(__file__).resolve().parents[1] / "clients"


def ask(script: str, lines: Iterable[Any], *, timeout: float = 120) -> list[Any]:
    """What a script of that folder answers, one JSON value a line for one a line."""
    node = shutil.which("node")
    installed = (FOLDER / "node_modules").is_dir()
    if node is None or not installed or "clients" in LEFT_OUT:
        pytest.skip(without("clients", "node" if node is None else f"`npm ci --prefix {FOLDER}`"))
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
