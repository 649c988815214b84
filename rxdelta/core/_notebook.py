"""A reply as the markdown that a notebook draws.

The text is the model's, so nobody knows what is in it, and a notebook runs the HTML of its own outputs. Nothing of a reply
becomes HTML here, no picture is loaded, and no text hides where a link goes to: outside of code the few characters that
could do so are written as entities; code is HTML of our own, whose every mark is an entity. So it is safe however the
notebook's markdown takes the text apart.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rxdelta.core._content_part import ContentPart
from rxdelta.core._frozen import thaw
from rxdelta.core._visible import visible

if TYPE_CHECKING:
    from rxdelta.core._blocks import Block
    from rxdelta.core._message import Message
    from rxdelta.core._snapshot import Snapshot

__all__ = ["markdown"]

_SHOWN = 50_000
"""How many characters of a block are drawn."""

_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)")
_MARKS = re.compile(
    r"<|!(?=\[)|\](?=[(:])|(?<=\])[(:]|\\(?=(?:href|url|class|cssId|data|style|require)(?![a-zA-Z]))"
)
"""What makes HTML, pictures and links; in formulas, which notebooks draw, these are macros."""


def markdown(reply: Snapshot | Message) -> str:
    """The reply's text as markdown, and the rest folded."""
    shown = [_block(block) for block in reply.blocks]
    if reply.status != "complete":
        shown.append(f"*{reply.status}*")
    return "\n\n".join(part for part in shown if part)


def _block(block: Block) -> str:
    if isinstance(block, ContentPart):
        if block.type == "text":
            return _text(_shortened(block.text or ""))
        body = block.text or (json.dumps(thaw(block.options), ensure_ascii=False) if block.options else "")
        return _folded(block.type, body) if body else ""
    so_far = block.arguments if block.type == "invalid_tool_call" else block.arguments_so_far
    body = so_far if isinstance(so_far, str) else json.dumps(thaw(so_far or {}), ensure_ascii=False, indent=2)
    return _folded(f"{block.type} {block.name or ''}", body)


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_literal(title)}</summary><pre>{_literal(_shortened(body))}</pre></details>"


def _shortened(text: str) -> str:
    shown = visible(text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}… ({len(text):,} characters)"


def _text(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for found in _FENCED.finditer(text):
        pieces += [_prose(text[end : found.start()]), f"\n\n<pre><code>{_literal(found[2])}</code></pre>\n\n"]
        end = found.end()
    return "".join([*pieces, _prose(text[end:])]).strip("\n")


def _prose(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        pieces += [_without_marks(text[end : found.start()]), f"<code>{_literal(found[2])}</code>"]
        end = found.end()
    return "".join([*pieces, _without_marks(text[end:])])


def _without_marks(text: str) -> str:
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", text)


def _literal(text: str) -> str:
    """The text with every mark of ASCII as an entity, which neither markdown nor HTML takes for anything else."""
    return "".join(one if one.isalnum() or one == " " or one > "\x7f" else f"&#{ord(one)};" for one in text)
