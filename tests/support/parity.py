"""The comparison that the parity set prescribes."""

from __future__ import annotations

from typing import Any

__all__ = ["same"]

WHOLE = {"arguments", "args", "metadata", "options", "raw", "extras", "fields", "value"}
EMPTYISH = {"tool_calls", "merged_content", "options", "citations", "metadata"}


def same(expected: Any, got: Any, key: str | None = None) -> bool:
    """The comparison that the parity set prescribes: a subset, but for the fields compared whole."""
    if key in EMPTYISH and not expected and not got:
        return True
    if expected is None:
        return got is None
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return False
        if key in WHOLE and {k for k in got if got[k] is not None} != {
            k for k in expected if expected[k] is not None
        }:
            return False
        return all(same(value, got.get(name), name) for name, value in expected.items())
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(expected) == len(got)
            and all(same(a, b) for a, b in zip(expected, got, strict=True))
        )
    return type(expected) is type(got) and bool(expected == got)
