"""Citations in the protocol's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.formats.json_values import kept

__all__ = ["as_citation"]


def as_citation(fields: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """A citation with those of the protocol's fields that are known, and with the provider's own object.

    Example:
        >>> as_citation({"title": "A", "url": None}, {"name": "A"})
        {'title': 'A', 'raw': {'name': 'A'}}
    """
    return kept({name: value for name, value in fields.items() if value is not None} | {"raw": raw})
