"""Each sentence of docs/production/security.md and docs/reference/bounds.md is a test here, and each test names its sentences by their first words."""

from __future__ import annotations

import ast
from pathlib import Path

from support.security_page import sentences

OF_THE_PAGE = ["What a hostile provider", "Each sentence below", "[SECURITY.md]", "What is bounded"]
"""What the page says of itself."""


def claimed() -> list[str]:
    """The arguments of each `says(…)` in this folder."""
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(Path(__file__).parent.glob("test_*.py"))]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [one for call in calls if getattr(call.func, "id", "") == "says" for one in call.args]
    return [*OF_THE_PAGE, *(ast.literal_eval(one) for one in given)]


def test_each_sentence_is_a_test_and_each_test_has_its_sentence() -> None:
    said, claims = sentences(), claimed()
    assert len(said) > 50
    assert [one for one in said if not one.startswith(tuple(claims))] == [], "sentences without a test"
    assert [one for one in claims if sum(text.startswith(one) for text in said) != 1] == []
    assert len(claims) == len(set(claims))
