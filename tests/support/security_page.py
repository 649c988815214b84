"""The sentences that promise something about security, and the tests of each.

They stand in `SECURITY.md`, on the page on security and in the table of limits. `docs/reference/security-tests.md` lists each
with its tests: run this file to write it anew. The site has a mark behind each sentence, which names them too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import attrs

__all__ = [
    "DOCS",
    "LIST",
    "PAGES",
    "Claim",
    "Sentence",
    "claims",
    "list_of_tests",
    "marked",
    "said",
    "says",
    "sentences",
]

Test = TypeVar("Test", bound=Callable[..., Any])

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "SECURITY.md", DOCS / "production" / "security.md", DOCS / "reference" / "bounds.md"]
LIST = DOCS / "reference" / "security-tests.md"

LEFT_OUT = re.compile(
    r"^```[\s\S]*?^```\n"  # programs
    r"|^\|.*\n\| ---.*\n"  # the head of a table
    r"|^\[Tests\]\(.*\n",  # of the section below the heading
    re.MULTILINE,
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
END = re.compile(r"(?<=\.)\s+(?=[A-Z`\[])")
HEAD = """# Tests of the security pages

Each sentence of [SECURITY.md](../../SECURITY.md), of [Security](../production/security.md) and of [Limits](bounds.md) that promises
something, and the tests that fail when it is broken; of what counts as a vulnerability, the tests that find it. `python tests/support/security_page.py` writes this page.
"""


@attrs.frozen
class Sentence:
    """A sentence of a page, the heading above it, and where it ends in the page's text."""

    page: Path
    heading: str
    text: str
    end: int


@attrs.frozen
class Claim:
    """The first words of a sentence, and the test that is of it."""

    beginning: str
    test: str
    path: Path


def says(*_beginnings: str) -> Callable[[Test], Test]:
    """The sentences of the pages that a test is of, by their first words. `tests/security/test_page.py` reads them."""
    return lambda test: test


def _read(page: Path, text: str) -> Iterator[Sentence]:
    """Of paragraphs, items and rows. What ends with a colon introduces the next ones."""
    blank = LEFT_OUT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)  # the places stay
    headings = [(found.start(), found[1]) for found in HEADING.finditer(blank)]
    blank = HEADING.sub(lambda found: " " * len(found[0]), blank)
    for paragraph in re.finditer(
        r"(?:[^\n]*\S[^\n]*\n?)+", re.sub(r"^(- |\| )", "\n ", blank, flags=re.MULTILINE)
    ):
        # An item's mark is as long as what stands for it, so the places are still those of the page.
        for one in re.finditer(rf"\S.*?(?={END.pattern}|\s*\Z)", paragraph[0], re.DOTALL):
            start, end = paragraph.start() + one.start(), paragraph.start() + one.end()
            words = " ".join(one[0].split())
            if words and not words.endswith(":"):
                heading = next(title for place, title in reversed(headings) if place < start)
                yield Sentence(page, heading, words, end)


@cache
def said() -> list[Sentence]:
    return [one for page in PAGES for one in _read(page, page.read_text("utf-8"))]


def sentences() -> list[str]:
    return [one.text for one in said()]


@cache
def claims() -> list[Claim]:
    """What the tests say that they are of, from their source: `says(…)` above a function."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        if "security_page import" not in (text := path.read_text("utf-8")):
            continue
        for node in ast.parse(text).body:
            calls = [one for one in getattr(node, "decorator_list", []) if isinstance(one, ast.Call)]
            for call in calls:
                if getattr(call.func, "id", "") == "says":
                    found += [Claim(ast.literal_eval(one), node.name, path) for one in call.args]  # type: ignore[attr-defined]
    return found


def claims_of(sentence: Sentence) -> list[Claim]:
    return [one for one in claims() if sentence.text.startswith(one.beginning)]


def anchor(heading: str) -> str:
    """As GitHub and the site make it of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _plain(text: str) -> str:
    """Without links, which lead elsewhere from another page, and with a row's cells as a list of words."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.removesuffix("|").strip())
    return text.replace(" | ", "; ").replace("**", "")


def list_of_tests() -> str:
    """The page that lists them."""
    lines, heading = [HEAD], ""
    for one in said():
        if not (tests := claims_of(one)):
            continue  # it says something of the page, or of people: tests/security/test_page.py has these
        if one.heading != heading:
            heading = one.heading
            lines.append(f"## {heading}\n")
        links = [f"[`{test.test}`](../../{test.path.relative_to(ROOT).as_posix()})" for test in tests]
        lines.append(f"- {_plain(one.text)}\n  {', '.join(links)}")
    text = "\n".join(lines) + "\n"
    return re.sub(r"(\n  .*\n)(## )", r"\1\n\2", text)


def marked(page: Path, text: str) -> str:
    """A page's text with a mark behind each sentence that has tests. It leads to the list, and names them."""
    to_list = "security-tests.md" if page.parent == LIST.parent else "../reference/security-tests.md"
    for one in reversed(list(_read(page, text))):
        if tests := claims_of(one):
            names = ", ".join(test.test for test in tests)
            mark = f' [✓]({to_list}#{anchor(one.heading)} "{names}")'
            is_row = one.text.endswith("|")
            end = text.rindex(" |", 0, one.end) if is_row else one.end
            text = text[:end] + mark + text[end:]
    return re.sub(r"^\[Tests\]\(.*\n\n?", "", text, flags=re.MULTILINE)


if __name__ == "__main__":
    LIST.write_text(list_of_tests(), "utf-8")
