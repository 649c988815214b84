"""The site, which `nox -s docs` builds: the `.md` pages as they are, and the reference from the docstrings.

Docstrings are written for readers of the source, so two of their habits are put into Sphinx's words here. A name in
single backticks is code, and a link if the name is public. A paragraph that begins with `Errors:` is a section.
"""

from __future__ import annotations

import asyncio
import builtins
import collections.abc
import contextlib
import datetime as dt
import os
import re
import sys
import textwrap
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import attrs
from docutils.nodes import reference
from pygments.lexers.data import JsonLexer
from sphinx.domains.python import PyObject
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.logging import getLogger
from support.api import is_made_by_rxdelta, public

import rxdelta as rd

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "rxdelta"
version = release = rd.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "marble_pictures",
    "plain_text",
    "security_marks",
    "site_search",
]
nitpicky = True  # a name that leads nowhere is a warning, and a warning fails the session
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"rxdelta {version}"
# Each version of the site has a folder below this address; a search engine is led to the newest release.
html_baseurl = "https://rxdelta.github.io/rxdelta/stable/"
html_favicon = "_static/logo.svg"
html_logo = "_static/logo.svg"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_context = {
    "preview": "preview.png",
    "preview_alt": "rxdelta: a model's streamed reply as immutable snapshots",
}
html_css_files = ["site.css"]
html_js_files = ["versions.js"] if os.environ.get("HOSTED_VERSION") else []  # beside others, `nox -s site`
exclude_patterns = ["design.md"]  # for those who change the project
html_show_copyright = False
html_show_sourcelink = html_copy_source = False

add_module_names = False
maximum_signature_line_length = 70
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
ALIASES = (  # not FinishReason: in the union that a property returns, Sphinx writes the alias as its own object
    "AiSdkFrame Answers Approve Block CallStatus CallType CompleteToolCall Cumulative Event ExecutionStatus Frame Index "
    "InvalidToolCall MessageRole MessageStatus Native OpenAiChatFrame RequestFormat Signal SnapshotRole SnapshotStatus Take WireFormat"
)
autodoc_type_aliases = {name: name for name in ALIASES.split()}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Errors", "Errors")]

REPOSITORY = "https://github.com/rxdelta/rxdelta/blob/main/"
ELSEWHERE = {
    "Observable": "https://rxpy.readthedocs.io/en/latest/reference_observable.html#reactivex.Observable",
    "SchedulerBase": "https://rxpy.readthedocs.io/en/latest/reference_scheduler.html",
    "VirtualTimeScheduler": "https://rxpy.readthedocs.io/en/latest/reference_scheduler.html",
}
PYTHON = {
    name
    for module in (asyncio, builtins, collections.abc, contextlib, dt, os, types, typing)
    for name in dir(module)
}
# Types that a signature shows and nobody has to name; the text at the parameter says what they are.
UNNAMED = (
    "AsyncConnection AsyncConnectionPool BackgroundTask BaseEvent DisposableBase MeterProvider RunAgentInput TracerProvider "
    "Allow BlockingReading Chunking Frame Growth Kind Nested Opener Overflow Reading Reads ReplyOpener Room Signal "
    "Seconds Source Timer Tool Unread Emits KeyOf Origin Content ContentItem Placed By Check OnHit Operator Replacement "
    "Answer Mask MemoryPlace SearchStrategy Take Tally"
)


def _public_names() -> dict[str, str]:
    """Where the reference describes each public name, by its spellings: `Format`, `providers.Format`, with `rd.`, in full."""
    names: dict[str, str] = {}
    for place in public():
        short = place.removeprefix("rxdelta.")
        for spelling in (short.rpartition(".")[2], short, f"rd.{short}", place):
            names.setdefault(spelling, place)
    return names


LOG = getLogger(__name__)
NAMES = _public_names()
TOP = {*rd.__all__, *rd.errors.__all__, *rd.building.__all__, *rd.core.__all__, *rd.requests.__all__}


def _data_docs() -> dict[str, list[str]]:
    """The string below each module's constants. Python doesn't keep it, and Sphinx looks only where a name is exported."""
    found: dict[str, list[str]] = {}
    for path in Path(rd.__file__).parent.rglob("*.py"):
        module = ".".join(("rxdelta", *path.relative_to(Path(rd.__file__).parent).with_suffix("").parts))
        for (scope, name), lines in ModuleAnalyzer.for_file(path, module).find_attr_docs().items():
            if not scope:
                found.setdefault(name, lines)
    return found


DATA_DOCS = _data_docs()


def _code(match: re.Match[str]) -> str:
    text = " ".join(match[1].split())
    head = re.match(r"[\w.]*\w(?!=)\b", text)  # not the keyword in `stream=True`
    name = head[0] if head else ""
    known = NAMES.get(name) if "." in name or name in TOP or name[:1].isupper() else None
    role = f":py:obj:`{text} <{known}>`" if known and "<" not in text else f"``{text}``"
    return role + ("\\ " if match[2] else "")


def _to_rst(text: str) -> str:
    """A docstring in the words of Sphinx; examples and diagrams stay."""
    paragraphs, literal = [], False
    for paragraph in re.split(r"(\n\s*\n)", text):
        if paragraph.strip() and not literal and not paragraph.lstrip().startswith(">>>"):
            if paragraph.startswith("Errors: "):
                paragraph = "Errors:\n" + textwrap.indent(paragraph.removeprefix("Errors: "), "    ")
            paragraph = re.sub(r"(?<![`:])`([^`]+)`(?!`)(?=(\w?))", _code, paragraph)
        if paragraph.strip():
            literal = paragraph.rstrip().endswith("::")
        paragraphs.append(paragraph)
    return "".join(paragraphs)


def read_docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = DATA_DOCS.get(name.rpartition(".")[2], [])
        if not lines:
            LOG.warning("%s has no description below it", name)
    text = _to_rst("\n".join(lines))
    if what in ("attribute", "data", "property"):
        text = f": {text}"  # napoleon looks for a type in front of the first colon: there is none
    lines[:] = text.split("\n")


def read_fields(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Two attributes with one description, `a, b: …`, are two fields. A type is shown without its module."""

    def split(field: re.Match[str]) -> str:
        return "\n".join(f":ivar {one}: {field[2]}" for one in field[1].split(", "))

    text = re.sub(r"^:ivar (\w+(?:, \w+)+): (.+(?:\n +.+)*)$", split, "\n".join(lines), flags=re.MULTILINE)
    text = re.sub(
        r"^:vartype .*", lambda field: re.sub(r"(\w+\.)+(?=\w)", "", field[0]), text, flags=re.MULTILINE
    )
    lines[:] = text.split("\n")


def sign(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """A signature as in the source: aliases by their names, and the defaults that attrs has."""
    if what == "class" and (is_made_by_rxdelta(thing) or getattr(thing, "_is_protocol", False)):
        return "", None
    texts = [re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text or "") for text in (signature, returns)]
    texts = [re.sub(r"~?\b(?:\w+\.)+(?=[A-Z]\w+)", "", text) for text in texts]  # `abc.SchedulerBase`
    if what in ("class", "exception") and attrs.has(thing):
        fields = attrs.fields_dict(thing)
        texts[0] = re.sub(
            r"attr_dict\['(\w+)'\]\.default", lambda found: _default(fields[found[1]]), texts[0]
        )
        texts[0] = texts[0].replace("= NOTHING", "= ...")  # which the class makes of other fields
    return texts[0] or None, texts[1] or None


def _default(field: attrs.Attribute[Any]) -> str:
    made = isinstance(field.default, (attrs.Factory, Mapping))  # an empty one, which the class makes
    return "..." if made else repr(field.default)


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> Element | None:
    """A name as an annotation or a docstring spells it."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    if address := ELSEWHERE.get(name):
        return reference("", "", content, internal=False, refuri=address)
    place = NAMES.get(node["reftarget"]) or NAMES.get(name)
    if place and place != node["reftarget"]:
        return env.domains.python_domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", place, node, content
        )
    is_variable = re.fullmatch("[A-Z](_co|_contra)?", name)
    return content if is_variable or name in PYTHON or name in UNNAMED.split() else None


def read_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Links out of `docs` lead to the repository."""
    source[0] = source[0].replace("](" + "../" * (name.count("/") + 1), f"]({REPOSITORY}")


def setup(app: Sphinx) -> None:
    next(field for field in PyObject.doc_field_types if field.name == "variable").label = "Attributes"
    app.add_lexer("jsonl", JsonLexer)
    app.connect("autodoc-process-docstring", read_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", read_fields, priority=600)  # behind it
    app.connect("autodoc-process-signature", sign)
    app.connect("missing-reference", resolve)
    app.connect("source-read", read_page)
