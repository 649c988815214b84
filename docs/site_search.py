"""The site's search: Pagefind's, over the built pages. Sphinx's own has no frequencies and doesn't split `throttle_latest`.

A page weighs by what its reader wants: tasks more than the guide, the guide more than the reference. `WORDS` has what people
type and a page doesn't say, or says too rarely.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import escape
from pagefind_bin import get_executable
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

__all__ = ["setup"]

# How much words count in headings and in the text below them; 7 and 1 elsewhere. Pagefind takes at most 10.
WEIGHTS = {
    "tasks": (10, 2),
    "tutorial": (7, 1.5),
    "guide": (8, 1.5),
    "reference": (2, 0.4),
    "providers": (4, 0.4),
    "benchmarks": (1, 0.1),
}
WORDS = {
    "index": "install installation pip getting started",
    "guide/reading": "reasoning thinking reasoning snapshot",
    "guide/tools": "tool tools function calling",
    "providers/anthropic-messages": "Claude Anthropic",
    "providers/openai-chat": "OpenAI",
    "providers/openai-responses": "OpenAI GPT",
}
SECTION = re.compile(r'(<section id="([^"]+)"[^>]*>\s*(?:<span id="[^"]*"></span>)*<h[2-6])(?=[ >])')


def weigh(
    app: Sphinx, name: str, template: str, context: dict[str, Any], page: nodes.document | None
) -> None:
    """Say in the HTML of a page what is found in it, and how much it counts."""
    if page is None or "nosearch" in app.env.metadata[name]:
        return
    parts = name.split("/")
    heading, text = next((WEIGHTS[part] for part in reversed(parts) if part in WEIGHTS), (7, 1))
    words = (
        f'<span data-pagefind-weight="10" data-pagefind-index-attrs="data-words" data-words="{escape(WORDS.get(name, ""))}"></span>'
        * 3
    )
    body = SECTION.sub(
        r'\1 id="at-\2"', context["body"]
    )  # a result leads to a heading with an id; Sphinx's sections have it
    body = re.sub(r"<h([1-6])(?=[ >])", rf'<h\1 data-pagefind-weight="{heading}"', body)
    body = body.replace('<a class="headerlink"', '<a data-pagefind-ignore="all" class="headerlink"')
    body = body.replace("<section", f'<section data-pagefind-body data-pagefind-weight="{text}"', 1)
    context["body"] = body.replace("</h1>", f"</h1>{words}", 1) if name in WORDS else body


def search_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    yield "search", {"title": "Search"}, "search.html"


def leave_out_sphinxs(app: Sphinx) -> None:
    app.builder.search = False


def index(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    unknown = WORDS.keys() - app.env.titles.keys()
    if unknown:
        raise ExtensionError(f"docs/site_search.py has words for pages that aren't there: {sorted(unknown)}")
    command = [str(get_executable()), "--site", str(Path(app.outdir)), "--quiet"]
    subprocess.run(command, check=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", leave_out_sphinxs)
    app.connect("html-page-context", weigh)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
