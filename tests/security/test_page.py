"""Each sentence of the pages on security and limits has a test, each test names its sentences, and a reader sees which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.security_page import (
    LIST,
    PAGES,
    anchor,
    claims,
    claims_of,
    list_of_tests,
    marked,
    said,
    sentences,
)

OF_THE_PAGES = [
    "What a hostile provider",
    "Each sentence below",
    "[SECURITY.md]",
    "The [table of limits]",
    "[docs/production/security.md]",
]
"""What a page says of itself."""
OF_PEOPLE = [
    "Please report it privately",
    "Don't open a public issue",
    "Include the version",
    "You get an answer",
    "The newest release",
    "There are no fixes",
    "These aren't, though",
]
"""What those who maintain rxdelta do, and for what they give no promise."""
UNTESTED = (*OF_THE_PAGES, *OF_PEOPLE)


def test_each_sentence_has_a_test_and_each_test_has_its_sentence() -> None:
    beginnings = [one.beginning for one in claims()]
    assert len(sentences()) > 100
    assert [one for one in said() if not claims_of(one) and not one.text.startswith(UNTESTED)] == []
    for one in {*beginnings, *UNTESTED}:
        assert sum(text.startswith(one) for text in sentences()) == 1, one
    assert not {*beginnings} & {*UNTESTED}
    assert len({(one.beginning, one.test, one.path) for one in claims()}) == len(claims())


def test_the_list_has_each_sentence_and_its_tests() -> None:
    assert LIST.read_text("utf-8") == list_of_tests(), "run `python tests/support/security_page.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_section_leads_to_its_tests(page: Path) -> None:
    text = page.read_text("utf-8")
    tested = {anchor(one.heading) for one in said() if one.page == page and claims_of(one)}
    found = re.findall(r"^\[Tests\]\((?:[\w./]*/)?security-tests\.md#(.*)\)$", text, re.MULTILINE)
    assert sorted(found) == sorted(tested)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_site_has_a_mark_behind_each_sentence(page: Path) -> None:
    text = page.read_text("utf-8")
    shown = marked(page, text)
    mark = re.compile(r" \[✓\]\(\S*security-tests\.md#\S+ \"([\w, ]+)\"\)")
    without = re.sub(r"^\[Tests\].*\n\n?", "", text, flags=re.MULTILINE)
    assert mark.sub("", shown) == without
    tested = [one for one in said() if one.page == page and claims_of(one)]
    assert [found[1] for found in mark.finditer(shown)] == [
        ", ".join(test.test for test in claims_of(one)) for one in tested
    ]
    places = [" ".join(shown[: found.start()].split()).removesuffix(" |") for found in mark.finditer(shown)]
    bare = [" ".join(mark.sub("", one).split()) for one in places]
    assert [
        one for one, at in zip(tested, bare, strict=True) if not at.endswith(one.text.removesuffix(" |"))
    ] == []
