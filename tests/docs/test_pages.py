"""The pages are short, their links lead somewhere, and each name on `rd` is shown in use."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest
from support.pages import DOCS, IMPORTED, README, ROOT, fenced, is_reference, pages, prose

import rxdelta as rd
from rxdelta import operators

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 1_500
LONGEST_TASK = 300
IN_ALL = 32_000
DESIGN = DOCS / "design.md"
LONGEST_DESIGN = 6_000
WRITTEN = [page for page in pages() if not is_reference(page)]
BESIDE = [
    *(page for page in sorted(ROOT.glob("*.md")) if page != README),
    DESIGN,
    ROOT / "benchmarks" / "REPORT.md",
]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#+ (.+)$|^\((.+)\)=$", re.MULTILINE)  # or a name that a page gives to a place
INCLUDED = re.compile(r"literalinclude\} (\S+)")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_short(page: Path) -> None:
    longest = LONGEST_TASK if page.parent == DOCS / "tasks" else LONGEST
    assert len(prose(page).split()) <= longest


def test_all_pages_together_are_half_a_book() -> None:
    assert sum(len(prose(page).split()) for page in WRITTEN if page != README) <= IN_ALL


def test_the_design_is_read_in_half_an_hour() -> None:
    assert len(DESIGN.read_text("utf-8").split()) <= LONGEST_DESIGN


@pytest.mark.parametrize("page", [*pages(), *BESIDE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_includes_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    targets = {target for target, _ in LINK.findall(text) if target} | set(INCLUDED.findall(text))
    assert {target for target in targets if not (page.parent / target).exists()} == set()


def anchors(page: Path) -> set[str]:
    """What a link to this page may end with, as GitHub and the site make it of the headings."""
    found = HEADING.findall(prose(page))
    return {name or re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title, name in found}


@pytest.mark.parametrize("page", [*pages(), *BESIDE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_a_heading(page: Path) -> None:
    ends = [
        (page / ".." / target if target else page, end[1:])
        for target, end in LINK.findall(prose(page))
        if end
    ]
    pages_only = [(path.resolve(), end) for path, end in ends if path.suffix == ".md" and "." not in end]
    assert [(path.name, end) for path, end in pages_only if path.exists() and end not in anchors(path)] == []


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INSTALLED = re.compile(r"pip install ([^`\n]+)")
ALWAYS = {*sys.stdlib_module_names, "rxdelta", "reactivex", "attrs"}
BROUGHT = {"django": "asgiref", "fastapi": "pydantic starlette", "langgraph": "langchain-core"}
"""What a package brings that a program imports by its own name."""


def installed(page: Path) -> set[str]:
    """The packages that a page says to install, with those of rxdelta's extras."""
    found: set[str] = set()
    for line in INSTALLED.findall(page.read_text("utf-8")):
        for word in shlex.split(line, comments=True):
            name, _, extras = word.rstrip("].,;:").partition("[")
            found |= {name, *BROUGHT.get(name, "").split()}
            if name in ("rxdelta", "."):
                needed = [
                    one
                    for extra in filter(None, extras.split(","))
                    for one in PROJECT["optional-dependencies"][extra]
                ]
                found |= {re.split(r"[^\w-]", one)[0] for one in needed}
    return found


@pytest.mark.parametrize(
    "page",
    [page for page in WRITTEN if page.parent.name in ("tasks", "tutorial")],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_a_page_says_what_its_program_needs(page: Path) -> None:
    programs = [
        page.parent / name for name in INCLUDED.findall(page.read_text("utf-8")) if name.endswith(".py")
    ]
    imported = {name for path in programs for name in IMPORTED.findall(path.read_text("utf-8"))} - ALWAYS
    host = {"IPython"} if page.stem == "jupyter" else set()  # who has a notebook has it
    assert {name for name in imported - host if name.replace("_", "-") not in installed(page)} == set()


def test_each_operator_has_its_place_in_the_chart() -> None:
    chart = (DOCS / "operators.md").read_text("utf-8")
    made = {name for name in operators.__all__ if name.islower() and name in rd.__all__} - {
        "exponential_backoff"
    }
    assert {name for name in made if not re.search(rf"\b{name}\b", chart)} == set()


@pytest.mark.parametrize("name", rd.__all__)
def test_a_name_on_rd_is_shown_in_use(name: str) -> None:
    programs = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.py")]
    shown = [*(block.text for page in pages() for block in fenced(page)), *programs]
    assert any(re.search(rf"\brd\.{name}\b", code) for code in shown), "show it in a block of the docs"


def test_the_figures_of_the_page_are_those_of_the_report() -> None:
    places = re.compile(r"<!-- bench: (?:one tool call|where) -->\n(.*?)<!-- end -->", re.DOTALL)
    report = (ROOT / "benchmarks" / "REPORT.md").read_text("utf-8")
    shown = places.findall((DOCS / "production" / "benchmarks.md").read_text("utf-8"))
    assert len(shown) == 2
    assert [figures for figures in shown if figures.strip() not in report] == []
