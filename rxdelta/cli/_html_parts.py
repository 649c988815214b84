"""Pieces of a page: everything that a recording says is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable

from rxdelta.core import clean_text, visible

__all__ = ["Markup", "cut", "element", "esc", "table"]


class Markup(str):
    """Text that is markup already. `element` escapes all other text."""

    __slots__ = ()


def esc(text: str, *, lines: bool = False) -> Markup:
    """A text of the recording as markup: no tags, no control characters, and no change of the direction.

    Args:
        text: Any text.
        lines: Whether line ends and tabs are kept, or spelt out as well.
    """
    return Markup(html.escape(visible(clean_text(text), lines=lines)))


def element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """An element.

    Args:
        tag: Its name.
        children: Its content. Text that isn't `Markup` is escaped.
        attributes: Its attributes, which are escaped; `class_` is `class`, and `_` within a name is `-`. `None` leaves one out,
            and `""` is an attribute without a value.
    """
    given = "".join(
        f" {_attribute(name)}" + (f'="{esc(value)}"' if value else "")
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else esc(child) for child in children)
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def cut(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text, and how many characters are left out."""
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)


def table(
    caption: str, heads: Iterable[tuple[str, str]], rows: Iterable[Markup], *, seen: bool = False
) -> Markup:
    """A table, which scrolls by itself where it is too wide.

    Args:
        caption: What it shows.
        heads: Of each column its text and its class.
        rows: The rows as markup.
        seen: Whether the caption is for all, or only for screen readers.
    """
    head = element("tr", *(element("th", text, scope="col", class_=kind or None) for text, kind in heads))
    body = Markup("".join(rows))
    inside = element(
        "table",
        element("caption", caption, class_=None if seen else "unseen"),
        element("thead", head),
        element("tbody", body),
    )
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
