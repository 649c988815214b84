"""A `TokenUsage` in the event protocol's vocabulary, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from rxdelta.core._frozen import freeze_mapping, is_mapping, thaw
from rxdelta.core._stored_form import unknown_fields
from rxdelta.core._values import USAGE_COUNTS, TokenUsage, count_or_none

__all__ = ["usage_from_wire", "usage_to_wire"]


def usage_to_wire(usage: TokenUsage | None) -> dict[str, Any] | None:
    """The usage in the protocol's form. A provider's object in this form is used unchanged."""
    if usage is None:
        return None
    raw: dict[str, Any] = thaw(usage.raw)
    if not usage.more and usage_from_wire(raw) == usage:
        return raw
    return usage.to_dict() | {"total_tokens": usage.total(), "raw": raw}


def usage_from_wire(value: object) -> TokenUsage | None:
    """Read either form that `usage_to_wire` writes. An invalid count becomes `None` (unknown), not 0."""
    if not is_mapping(value):
        return None
    raw = value.get("raw")
    if not is_mapping(raw):
        return _of_the_protocol(value)
    billed = value.get("billed")
    return TokenUsage(
        **_counts(value, USAGE_COUNTS),
        raw=freeze_mapping(raw, "usage", lenient=True),
        cumulative=value.get("cumulative") is True,
        billed=_counts(billed, billed) if is_mapping(billed) else None,
        _more=unknown_fields(value, _WRITTEN),
    )


def _of_the_protocol(value: Mapping[str, Any]) -> TokenUsage:
    """The totals, and details that they include.

    An integration that knows how long the cache keeps what is written gives that for `cache_creation`, which is then 0.
    """
    inputs, outputs = _details(value, "input_token_details"), _details(value, "output_token_details")
    known = (
        _counts(value, ("input_tokens", "output_tokens")) | _named(inputs, _INPUT) | _named(outputs, _OUTPUT)
    )
    lasting = _named(inputs, _LASTING)
    if any(lasting.values()):
        known["cache_write_tokens"] = sum(lasting.values())
    usage = TokenUsage(**known, raw=freeze_mapping(value, "usage", lenient=True))
    return attrs.evolve(usage, billed={**usage.billed, **lasting}) if lasting else usage


def _details(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if is_mapping(found) else {}


def _named(value: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: count for name, count in _counts(value, names).items()}


def _counts(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The valid counts among these fields."""
    found = {name: value.get(name) for name in names}
    return {
        name: count
        for name, count in found.items()
        if count is not None and count_or_none(name, count) is None
    }


_INPUT = {
    "cache_read": "cache_read_tokens",
    "cache_creation": "cache_write_tokens",
    "audio": "input_audio_tokens",
}
_OUTPUT = {"reasoning": "reasoning_tokens", "audio": "output_audio_tokens"}
_LASTING = {
    "ephemeral_5m_input_tokens": "cache_write_5m_tokens",
    "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
}
_WRITTEN = frozenset([*USAGE_COUNTS, "billed", "total_tokens", "raw", "cumulative"])
