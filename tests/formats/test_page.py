"""What a format's page in `docs/providers` says holds: its stream is recognised, and folds to its message."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx

import rxdelta as rd

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    path.stem: path.read_text("utf-8") for path in (DOCS / "providers").glob("*.md") if path.stem != "index"
}


def fenced(section: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return str(found)


def test_every_format_has_its_page_and_no_other_has() -> None:
    assert set(PAGES) == set(rd.providers.FORMATS)


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "providers" / "index.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| \[([a-z-]+)\]\(\1\.md\) \|", index, re.MULTILINE)) == sorted(PAGES)


@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
def test_a_page_is_named_after_its_format(wire_format: str) -> None:
    assert PAGES[wire_format].startswith(f"# {wire_format}\n")


@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
def test_the_stream_of_the_page_becomes_the_message_of_the_page(wire_format: str) -> None:
    section = PAGES[wire_format]
    chunks: list[Any] = [json.loads(line) for line in fenced(section, "jsonl").splitlines()]
    assert rd.providers.detect(chunks[0]) == wire_format
    events = rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.validate())
    message = events.pipe(rd.scan_deltas(), rd.to_message()).run()
    assert message.to_dict() == json.loads(fenced(section, "json"))


@pytest.mark.parametrize("wire_format", rd.providers.FORMATS)
def test_the_page_says_what_becomes_of_what_is_sent(wire_format: str) -> None:
    assert "| sent | becomes |" in PAGES[wire_format]


@pytest.mark.parametrize("wire_format", sorted({*rd.providers.FORMATS} - {"langchain", "mistral"}))
def test_the_page_has_each_word_that_says_that_it_broke(wire_format: str) -> None:
    """LangChain's words are those of all other pages, Mistral's those of chat completions."""
    package = f"rxdelta.formats.{wire_format.replace('-', '_')}"
    try:
        known = import_module(f"{package}.tables").BROKEN
    except (ImportError, AttributeError):
        known = getattr(import_module(f"{package}.decoder"), "BROKEN", {})
    section = PAGES[wire_format].partition("## It broke\n")[2]
    rows = re.findall(r"^\| `([^`]+)`[^|]* \| [^|]+ \| (yes|no) \| [^|]+ \|$", section, re.MULTILINE)
    assert section
    assert dict(rows) == {word: "yes" if broken.transient else "no" for word, broken in known.items()}
