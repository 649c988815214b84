"""The sentences of the page on security and of the table of limits, and the tests of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["says", "sentences"]

Test = TypeVar("Test", bound=Callable[..., Any])

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "production" / "security.md", DOCS / "reference" / "bounds.md"]


def says(*_beginnings: str) -> Callable[[Test], Test]:
    """The sentences of the page that a test is of, by their first words. `tests/security/test_page.py` reads them."""
    return lambda test: test


def sentences() -> list[str]:
    """Those of the pages: of paragraphs, items and rows. What ends with a colon introduces the next ones."""
    page = "\n\n".join(path.read_text("utf-8") for path in PAGES)
    page = re.sub(r"^```.*?^```\n", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"^\|.*\n\| ---.*\n", "", page, flags=re.MULTILINE)  # the head of a table
    page = re.sub(r"^#.*", "", page, flags=re.MULTILINE)
    page = re.sub(r"^(- |\| )", "\n", page, flags=re.MULTILINE)
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", page))
    found = (one for paragraph in paragraphs for one in re.split(r"(?<=\.)\s+(?=[A-Z`\[])", paragraph))
    return [one for one in found if one and not one.endswith(":")]
