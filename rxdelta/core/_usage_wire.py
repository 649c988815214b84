"""A `TokenUsage` in the event protocol's vocabulary, both ways."""

from __future__ import annotations

from typing import Any

from rxdelta.core._frozen import freeze_mapping, is_mapping, thaw
from rxdelta.core._values import TokenUsage, count_or_none, without_empty

__all__ = ["usage_from_wire", "usage_to_wire"]


def usage_to_wire(usage: TokenUsage | None) -> dict[str, Any] | None:
    """The usage in the protocol's form. A provider's object in this form is used unchanged."""
    if usage is None:
        return None
    raw: dict[str, Any] = thaw(usage.raw)
    if usage_from_wire(raw) == usage:
        return raw
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    flag = {"cumulative": True} if usage.cumulative else {}
    return without_empty(counts) | {"total_tokens": usage.total(), "raw": raw} | flag


def usage_from_wire(value: object) -> TokenUsage | None:
    """Read either form that `usage_to_wire` writes. An invalid count becomes `None` (unknown), not 0."""
    if not is_mapping(value):
        return None
    counts = [value.get(name) for name in ("input_tokens", "output_tokens")]
    known = [None if count_or_none("", count) else count for count in counts]
    raw = value.get("raw")
    ours = is_mapping(raw)
    whole = freeze_mapping(raw if ours else value, "usage", lenient=True)
    return TokenUsage(known[0], known[1], whole, ours and value.get("cumulative") is True)
