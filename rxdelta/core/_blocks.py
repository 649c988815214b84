"""The blocks of a reply: a `ContentPart` for what the model says, a `ToolCall` for what it asks to be done."""

from __future__ import annotations

from typing import TypeAlias

from rxdelta.core._block_key import Key
from rxdelta.core._content_part import ContentPart, change_part, raw_text
from rxdelta.core._text import finish_text
from rxdelta.core._tool_call import ToolCall, change, finished_arguments

__all__ = ["Block", "settled"]

Block: TypeAlias = ContentPart | ToolCall
"""A block of a reply."""


def settled(block: Block, *, key: Key = None) -> Block:
    """The block as a finished message holds it: plain strings, closed, and without the key of a snapshot."""
    if isinstance(block, ContentPart):
        text = raw_text(block)
        return change_part(
            block, text=None if text is None else finish_text(text), key=key, open=False, _origin=None
        )
    return change(block, arguments=finished_arguments(block), key=key, open=False, _origin=None)
