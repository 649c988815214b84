"""What Anthropic and Bedrock refuse in the content of a message, and what is written instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

__all__ = ["accepted"]

Json: TypeAlias = dict[str, Any]


def accepted(blocks: Sequence[Json], is_thought: Callable[[Json], bool] | None = None) -> list[Json]:
    """The content without a text of nothing but space, and without reasoning at its end. Both are refused.

    Such a text is joined to the one before or after it, so that no space between words gets lost, or left out. A
    message whose content is empty then is left out too; both APIs take two messages of one side in a row for one, or
    are given them as one.

    Example:
        >>> accepted([{"text": "two"}, {"text": " "}, {"text": "words"}, {"toolUse": {}}, {"text": "\\n"}])
        [{'text': 'two '}, {'text': 'words'}, {'toolUse': {}}]
    """
    kept: list[Json] = []
    for block in blocks:
        before, text = kept[-1].get("text") if kept else None, block.get("text")
        if isinstance(before, str) and isinstance(text, str) and not (before.strip() and text.strip()):
            blank, full = (block, kept[-1]) if before.strip() else (kept[-1], block)
            kept[-1] = {**blank, **full, "text": before + text}
        else:
            kept.append(block)
    kept = [block for block in kept if not isinstance(text := block.get("text"), str) or text.strip()]
    while is_thought is not None and kept and is_thought(kept[-1]):
        kept.pop()
    return kept
