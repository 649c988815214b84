"""The sentences of docs/reference/relay-promises.md, and the tests of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["claimed", "promised", "promises"]

Test = TypeVar("Test", bound=Callable[..., Any])

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "reference" / "relay-promises.md"


def promised(*_beginnings: str) -> Callable[[Test], Test]:
    """The promises that a test is of, by their first words."""
    return lambda test: test


def promises() -> list[str]:
    """The items of the page."""
    items = re.findall(r"^- (.*(?:\n  .*)*)", PAGE.read_text("utf-8"), re.MULTILINE)
    return [" ".join(item.split()) for item in items]


def claimed() -> list[str]:
    """The arguments of each `promised(…)` in the tests of the relay."""
    files = sorted([*HERE.rglob("test_*.py"), *(HERE.parent / "asgi").glob("test_*.py")])
    trees = [ast.parse(path.read_text("utf-8")) for path in files]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [one for call in calls if getattr(call.func, "id", "") == "promised" for one in call.args]
    return [ast.literal_eval(one) for one in given]
