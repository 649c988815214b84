"""The table of docs/reference/written-formats.md that says what each format carries and loses, made from what the formats declare.

python tests/support/carried.py      writes it into the page
"""

from __future__ import annotations

from pathlib import Path

from rxdelta.formats import registry
from rxdelta.formats.carrying import CONTENT, DETAILS

__all__ = ["table"]

BEGIN, END = "<!-- what formats carry -->", "<!-- end of what formats carry -->"


def table() -> str:
    """The table, between its two marks."""
    known = [
        one
        for one in map(registry.get, registry.names())
        if registry.is_own(one.name) and one.writer is not None
    ]
    lines = ["| format | refused | lost |", "| --- | --- | --- |"]
    for one in known:
        refused = [kind for kind in CONTENT if kind not in one.carries]
        own = " (but for the provider's own)" if one.owns is not None else ""
        lost = [detail for detail in DETAILS if detail in one.loses]
        lines.append(f"| `{one.name}` | {_words(refused)}{own} | {_words(lost)} |")
    lines += ["", *(f"* `{word}`: {said}" for word, said in (*CONTENT.items(), *DETAILS.items()))]
    return "\n".join([BEGIN, *lines, END])


def _words(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "nothing"


if __name__ == "__main__":
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "written-formats.md"
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{table()}{rest.partition(END)[2]}", "utf-8")
