"""The reference material that lies beside the project: parity cases and recorded streams.

It isn't part of the project: see `support.needs` for what happens where it is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rxdelta.providers import FORMATS
from support.needs import LEFT_OUT, without

RECORDED = tuple(name for name in FORMATS if name not in ("ag-ui", "ai-sdk", "langchain"))
"""The formats that have recorded streams."""

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def parity(file: str) -> list[Any]:
    """The cases of a parity file as parameters, or one that is skipped."""
    path = SHARED / "parity" / file
    if "recordings" in LEFT_OUT or not path.exists():
        return [_absent(path, 1)]
    return [pytest.param(case, id=case["id"]) for case in json.loads(path.read_text("utf-8"))["cases"]]


def recordings(wire_format: str) -> list[Any]:
    """(chunks, expectation) of each recorded stream of a format as parameters, or one that is skipped.

    They are read once and all tests share them, so no test changes them: the last one fails if one has.
    """
    if "recordings" in LEFT_OUT:
        found = []
    else:
        found = _KNOWN[wire_format] = _KNOWN.get(wire_format) or [*_read(wire_format)]
    return [*found] or [_absent(SHARED / "corpus" / "streams" / wire_format, 2)]


def changed_recordings() -> list[str]:
    """Which of them aren't as their files say, because a test has changed them."""
    return [
        f"{wire_format}/{known.id}"
        for wire_format, found in _KNOWN.items()
        for known, read in zip(found, _read(wire_format), strict=True)
        if known.values != read.values
    ]


_KNOWN: dict[str, list[Any]] = {}


def _read(wire_format: str) -> Iterator[Any]:
    for path in sorted((SHARED / "corpus" / "streams" / wire_format).glob("*.jsonl")):
        expected = SHARED / "corpus" / "expected" / wire_format / f"{path.stem}.json"
        told = json.loads(expected.read_text("utf-8")) if expected.exists() else None
        chunks = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
        yield pytest.param(chunks, told, id=path.stem)


def _absent(path: Path, arguments: int) -> Any:
    reason = without("recordings", str(path))
    return pytest.param(*[None] * arguments, marks=pytest.mark.skip(reason=reason), id="absent")
