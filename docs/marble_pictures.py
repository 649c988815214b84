"""Pictures of the operators, for the site: the directive `marble`, and a picture in the place of each docstring's diagram.

    ```{marble} rxdelta.throttle_latest
    ```

shows the picture of one operator on any page, and `{marble-legend}` all marks with what they mean. Builders other than
HTML show the diagram as text.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

from docutils import nodes
from marble_svg import legend, picture
from sphinx.util.docutils import SphinxDirective
from support.diagrams import BLOCK, diagram_in, diagram_of, written

from rxdelta import operators

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]

LEGEND = "reference/marbles"  # the page that shows all marks


class Picture(nodes.literal_block):
    """A diagram: as SVG in HTML, elsewhere the text."""


class MarbleDirective(SphinxDirective):
    """Shows an operator's picture."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0].rpartition(".")[2]
        diagram = diagram_of(name) if name in operators.__all__ else None
        if diagram is None:
            raise self.error(f"{self.arguments[0]} has no marble diagram")
        for file in (inspect.getsourcefile(inspect.unwrap(getattr(operators, name))), __file__):
            if file:
                self.env.note_dependency(file)
        text = written(diagram)
        node = Picture(text, text, name=name, language="text")
        self.set_source_info(node)
        return [node]


class LegendDirective(SphinxDirective):
    """Shows all marks."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(__file__)
        items = (
            nodes.paragraph("", "", nodes.raw("", svg, format="html"), nodes.Text(said))
            for svg, said in legend()
        )
        return [nodes.container("", *items, classes=["marbles-legend"])]


@cache
def svg_of(name: str) -> str:
    diagram = diagram_of(name)
    assert diagram is not None
    return picture(diagram)


def visit_picture(translator: Any, node: Picture) -> None:
    builder = translator.builder
    link = builder.get_relative_uri(builder.current_docname, LEGEND)
    translator.body.append(
        f'<div class="marbles-frame"><div class="marbles-scroll">{svg_of(node["name"])}</div>'
        f'<a class="m-legend" href="{link}">What the marks mean</a></div>\n'
    )
    raise nodes.SkipNode


def put_picture(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """The picture, in the place of a docstring's diagram."""
    text = "\n".join(lines)
    if what == "function" and (found := BLOCK.search(text)) and diagram_in(text):
        text = f"{text[: found.start()]}\n.. marble:: {name}\n{text[found.end() :]}"
        lines[:] = text.split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(Picture, html=(visit_picture, None))
    app.add_directive("marble", MarbleDirective)
    app.add_directive("marble-legend", LegendDirective)
    app.add_css_file("marbles.css")
    app.connect("autodoc-process-docstring", put_picture, priority=300)  # before the words of Sphinx
    return {"parallel_read_safe": True, "parallel_write_safe": True}
