"""The picture of the command shows what the command draws now."""

from __future__ import annotations

import importlib.util
import re

import pytest
from support.pages import DOCS

pytest.importorskip("rich")


def texts(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_the_picture_of_the_readme_is_what_the_command_draws() -> None:
    """Its words: rich may change the strokes around them. `nox -s pictures` draws it anew."""
    spec = importlib.util.spec_from_file_location("docs_draw", DOCS / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shown = texts((DOCS / "demo.svg").read_text("utf-8"))
    assert len(shown) > 100
    assert texts(module.drawn()) == shown
