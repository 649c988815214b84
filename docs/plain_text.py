"""The site's pages as text beside their HTML, `llms.txt`, which lists them (https://llmstxt.org), and what a preview shows.

A page of Markdown is its source, with the included programs and pictures of time in their places. A page of the reference,
which is made of docstrings, is what Sphinx's text builder makes of it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from docutils import nodes
from markupsafe import escape
from sphinx import addnodes
from sphinx.writers.text import TextTranslator

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

__all__ = ["setup"]

LONGEST = 200
FENCE = re.compile(
    r"^(?P<ticks>`{3,})\{(?P<name>[\w-]+)\} *(?P<argument>.*)\n(?P<body>(?:.*\n)*?)(?P=ticks)$", re.MULTILINE
)
OPTION = re.compile(r"^:([\w-]+): *(.*)$", re.MULTILINE)
CODE = re.compile(r"^(`{3,}).*?^\1$|\]\([^)\s:#]+", re.DOTALL | re.MULTILINE)  # a block, or else a link
LINK = re.compile(r"(\]\()([^)\s:#]+)")
KINDS = {".py": "python", ".json": "json", ".jsonl": "jsonl", ".sh": "sh"}


def description(page: nodes.document) -> str:
    """The first paragraph, or as many of its sentences as a preview shows."""
    for paragraph in page.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section) and (text := " ".join(paragraph.astext().split())):
            whole = re.match(rf".{{1,{LONGEST}}}(?<=[.:?!])(?= |$)", text)
            return (whole[0] if whole else text[:LONGEST].rpartition(" ")[0] + " …").rstrip(":")
    return ""


def title_of(env: BuildEnvironment, name: str) -> str:
    return env.titles[name].astext()


def text_name(env: BuildEnvironment, name: str) -> str:
    """The file with a page's text, from the top of the site."""
    return name + (".md" if Path(env.doc2path(name)).suffix == ".md" else ".txt")


def markdown_of(env: BuildEnvironment, name: str, page: nodes.document) -> str:
    path = Path(env.doc2path(name))
    diagrams = {
        block["name"]: block.astext() for block in page.findall(nodes.literal_block) if block.get("name")
    }

    def resolved(fence: re.Match[str]) -> str:
        options = dict(OPTION.findall(fence["body"]))
        if fence["name"] == "literalinclude":
            included = path.parent / fence["argument"]
            language = options.get("language") or KINDS.get(included.suffix, "text")
            return f"```{language}\n{included.read_text('utf-8').strip()}\n```"
        if fence["name"] == "marble":
            return f"```text\n{diagrams.get(fence['argument'].rpartition('.')[2], '')}\n```"
        if fence["name"] in ("toctree", "marble-legend"):
            return ""
        return OPTION.sub("", fence["body"])  # a note or a block of its own: its text

    def led(link: re.Match[str]) -> str:
        """To the text of another page, and to a picture where the site has it."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link[2]))
        if target in env.images:
            target = f"_images/{env.images[target][1]}"
        elif target.endswith(".rst"):
            target = target.removesuffix("rst") + "txt"
        return link[1] + posixpath.relpath(target, posixpath.dirname(name) or ".")

    source = [path.read_text("utf-8")]
    env.events.emit("source-read", name, source)
    text = re.sub(r"\n{3,}", "\n\n", FENCE.sub(resolved, source[0]))
    return CODE.sub(lambda found: found[0] if found[1] else LINK.sub(led, found[0]), text)


def text_of(app: Sphinx, page: nodes.document) -> str:
    translator = TextTranslator(page, app.builder)
    page.walkabout(translator)
    return translator.body


def write_page(
    app: Sphinx, name: str, template: str, context: dict[str, Any], page: nodes.document | None
) -> None:
    """The page's text, and in its head what a search engine or a message that links to it shows."""
    if page is None:
        return
    file = text_name(app.env, name)
    text = markdown_of(app.env, name, page) if file.endswith(".md") else text_of(app, page)
    path = Path(app.outdir) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    said = description(page) or app.config.html_title
    image = f"{app.config.html_baseurl}_static/{app.config.html_context['preview']}"
    named = {"description": said, "twitter:card": "summary_large_image"}
    properties = {
        "og:title": title_of(app.env, name),
        "og:description": said,
        "og:type": "website",
        "og:site_name": app.config.project,
        "og:url": context["pageurl"],
        "og:image": image,
        "og:image:alt": app.config.html_context["preview_alt"],
    }
    lines = [f'<meta name="{key}" content="{escape(value)}">' for key, value in named.items()]
    lines += [f'<meta property="{key}" content="{escape(value)}">' for key, value in properties.items()]
    beside = PurePosixPath(file).name
    kind = "markdown" if file.endswith(".md") else "plain"
    lines.append(f'<link rel="alternate" type="text/{kind}" href="{beside}" title="This page as text">')
    context["metatags"] += "\n".join(["", *lines])
    context["body"] += f'<p class="as-text"><a href="{beside}">This page as text</a></p>\n'


def pages_below(env: BuildEnvironment, name: str) -> list[str]:
    return [name, *(page for child in env.toctree_includes.get(name, []) for page in pages_below(env, child))]


def write_list(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    env = app.env
    start = env.get_doctree(env.config.root_doc)
    lines = [f"# {app.config.project}", "", f"> {description(start)}", ""]
    for tree in start.findall(addnodes.toctree):
        lines += [f"## {tree['caption']}", ""]
        for _, name in tree["entries"]:
            for page in pages_below(env, name) if name in env.titles else []:
                said = description(env.get_doctree(page))
                address = app.config.html_baseurl + text_name(env, page)
                lines.append(f"- [{title_of(env, page)}]({address})" + (f": {said}" if said else ""))
        lines.append("")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", write_page)
    app.connect("build-finished", write_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
