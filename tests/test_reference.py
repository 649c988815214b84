"""The reference has each public name on one page, and no other name. The pages themselves are built by `nox -s docs`."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

from support.api import DOORS, public

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.rst"))
DIRECTIVE = re.compile(r"^\.\. (?:auto|py:)\w+:: (rxdelta\S*)$", re.MULTILINE)
DESCRIBED = Counter(name for page in PAGES for name in DIRECTIVE.findall(page.read_text("utf-8")))


def test_each_public_class_and_function_says_what_it_does() -> None:
    described = {
        name: thing for name, thing in public().items() if inspect.isclass(thing) or inspect.isroutine(thing)
    }
    assert [name for name, thing in described.items() if not inspect.getdoc(thing)] == []


def test_each_public_name_is_on_one_page() -> None:
    expected = Counter([*public(), *(f"rxdelta.{door}" for door in DOORS if door)])
    assert DESCRIBED - expected == Counter(), "twice, or not public"
    assert expected - DESCRIBED == Counter(), "add them to a page of docs/reference"
