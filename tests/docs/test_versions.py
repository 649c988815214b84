"""The folders of the hosted site: which version is stable, and what the list beside each page offers."""

from __future__ import annotations

import json
import runpy
from typing import TYPE_CHECKING, Any

import pytest
from support.pages import DOCS

if TYPE_CHECKING:
    from pathlib import Path

ARRANGE: Any = runpy.run_path(str(DOCS / "versions.py"))["arrange"]


@pytest.mark.parametrize(
    ("folders", "stable", "listed"),
    [
        (["dev"], "dev", ["dev"]),
        (["dev", "0.9.0", "0.10.0"], "0.10.0", ["0.10.0", "0.9.0", "dev"]),
        (["0.9.0", "0.10.0rc1"], "0.9.0", ["0.10.0rc1", "0.9.0"]),
        (["0.9.0", "0.10.0", "stable"], "0.10.0", ["0.10.0", "0.9.0"]),
    ],
)
def test_the_newest_release_is_stable(
    tmp_path: Path, folders: list[str], stable: str, listed: list[str]
) -> None:
    for name in folders:
        (tmp_path / name).mkdir()
        for file in ("index.html", "llms.txt"):
            (tmp_path / name / file).write_text(name, "utf-8")
    ARRANGE(tmp_path)
    assert json.loads((tmp_path / "versions.json").read_text("utf-8")) == {
        "stable": stable,
        "versions": listed,
    }
    assert (tmp_path / "stable/index.html").read_text("utf-8") == stable
    assert (tmp_path / "llms.txt").read_text("utf-8") == stable
