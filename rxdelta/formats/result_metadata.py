"""The metadata of a tool's result, as a front end gets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import is_mapping, thaw

__all__ = ["shown_metadata"]


def shown_metadata(metadata: Mapping[str, Any], *, reasoning: bool) -> dict[str, Any]:
    """The metadata of a tool's result, for a front end.

    Args:
        metadata: The metadata. A tool that is an agent has its messages there, with the results of its own tools, which
            may be agents, too.
        reasoning: Whether the messages keep their reasoning and signatures.

    Example:
        >>> blocks = [{"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "Hi"}]
        >>> shown_metadata({"messages": [{"blocks": blocks}]}, reasoning=False)
        {'messages': [{'blocks': [{'type': 'text', 'text': 'Hi'}]}]}
    """
    shown: dict[str, Any] = thaw(metadata)
    if not reasoning:
        _drop_reasoning(shown)
    return shown


def _drop_reasoning(metadata: dict[str, Any]) -> None:
    for message in _field(metadata, "messages", list):
        blocks = _field(message, "blocks", list)
        blocks[:] = [block for block in blocks if _field(block, "type", str) != "reasoning"]
        for block in blocks:
            for name in ("options", "metadata"):
                _field(block, name, dict).pop("signature", None)
            _drop_reasoning(_field(_field(block, "result", dict), "metadata", dict))


def _field(value: Any, name: str, kind: Callable[[], Any]) -> Any:
    """A field of a JSON object, if it is of this kind; else an empty one, also where there is no object."""
    found = value.get(name) if is_mapping(value) else None
    return found if type(found) is kind else kind()
