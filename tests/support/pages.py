"""The pages of the documentation, and the blocks of code that they show."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PRINTED = re.compile(r"\n*It prints:\n+```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FENCE = re.compile(
    r"^ *(?:[-*+] +|\d+\. +)?(?P<ticks>`{3,}|~{3,})(?P<said>[^`\n]*)\n(?P<text>.*?)^ *(?P=ticks) *$",
    re.DOTALL | re.MULTILINE,
)
PYTHON = re.compile(r"(?:\{code(?:-block)?\} *)?(?:python3?|py|pycon)\b", re.IGNORECASE)
IMPORTED = re.compile(r"^\s*(?:>>> )?(?:from|import) (\w+)", re.MULTILINE)


@attrs.frozen
class Fenced:
    """A fenced block: its language or directive ("python" however it is written), its text, the page and line where it begins, and what it prints.

    A page shows what a block prints in a block of `text` behind the words "It prints:".
    """

    language: str
    text: str
    place: str
    printed: str | None


def pages() -> list[Path]:
    """The pages of the site, and the README. The design is no page of the site."""
    return [README, *(page for page in sorted(DOCS.rglob("*.md")) if page != DOCS / "design.md")]


def is_reference(page: Path) -> bool:
    """The reference of names, and the pages of tables that say field by field what a format sends."""
    of_a_format = page.parent == DOCS / "providers" and page.stem != "index"
    return of_a_format or DOCS / "reference" in page.parents


def fenced(page: Path) -> list[Fenced]:
    return fenced_in(page.read_text("utf-8"), page.relative_to(ROOT).as_posix())


def fenced_in(text: str, name: str, above: int = 0) -> list[Fenced]:
    """The blocks of a page, also those in a list, and those in a note, which is a block itself."""
    blocks: list[Fenced] = []
    for found in FENCE.finditer(text):
        printed = PRINTED.match(text, found.end())
        line = above + text[: found.start()].count("\n") + 1
        language = "python" if PYTHON.match(found["said"].strip()) else found["said"].strip()
        code = textwrap.dedent(found["text"])
        blocks.append(Fenced(language, code, f"{name}:{line}", printed[1] if printed else None))
        if language.startswith("{"):
            blocks += fenced_in(found["text"], name, line)
    return blocks


def missing(code: str) -> str | None:
    """A package that this code imports, and that pyproject.toml names, if it isn't here. Any other has to be."""
    declared = (ROOT / "pyproject.toml").read_text("utf-8")
    for package in IMPORTED.findall(code):
        if importlib.util.find_spec(package) is None:
            name = package.replace("_", "-")
            return package if re.search(rf'"{name}(?:-\w+)*[\[>=]', declared) else None
    return None


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    return FENCE.sub("", page.read_text("utf-8"))
