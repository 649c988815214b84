"""A mark behind each sentence about security that has tests: it names them, and leads to the list of all.

It is put into a page's source as the site is built, so the page as text has it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.security_page import DOCS, PAGES, marked

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]

MARKED = {page.relative_to(DOCS).with_suffix("").as_posix(): page for page in PAGES if DOCS in page.parents}


def mark(app: Sphinx, name: str, source: list[str]) -> None:
    if page := MARKED.get(name):
        source[0] = marked(page, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
